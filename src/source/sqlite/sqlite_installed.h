/*
 * What install, uninstall, load and watch share: reading and comparing what of ours is in the
 * schema. Not for others.
 */
#pragma once

#include "base/map.h"
#include "base/status.h"
#include "source/sqlite/sqlite_install.h"
#include "source/sqlite/sqlite_triggers.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

/** Whether a table of that name (one of ours) is in the schema. */
tide_status tide_sqlite_has_table(sqlite3 *db, const char *name, bool *ret_has,
                                  struct tide_error *err);

/** The value of `key` in _tidemark_state as text; TIDE_STALE when it is not there. */
tide_status tide_sqlite_state_read(sqlite3 *db, const char *key,
                                   char ret_value[TIDE_SQLITE_HEX_LEN + 1], struct tide_error *err);

/** The log's last id; 0 when it is empty. */
tide_status tide_sqlite_log_last(sqlite3 *db, int64_t *ret_id, struct tide_error *err);

/** How many k columns the log has. */
tide_status tide_sqlite_log_width(sqlite3 *db, int64_t *ret_width, struct tide_error *err);

/* Where the canary's one row is, unless VACUUM has moved it. */
#define TIDE_SQLITE_CANARY_ROWID 7

/** Where VACUUM has put the canary: 7 when it did not move, 0 when it is gone. */
tide_status tide_sqlite_canary(sqlite3 *db, int64_t *ret_rowid, struct tide_error *err);

/** PRAGMA schema_version, and what it was when all triggers were last known to be right; 0:
 * unknown.
 */
tide_status tide_sqlite_schema_versions(sqlite3 *db, int64_t *ret_now, int64_t *ret_known,
                                        struct tide_error *err);

/** Writes down that all triggers are right as of now. In the caller's write transaction. */
tide_status tide_sqlite_schema_settle(sqlite3 *db, struct tide_error *err);

/** The pipeline of that name among those in the database, copied into `arena`. */
tide_status tide_sqlite_pipeline_find(sqlite3 *db, tide_str name, struct tide_arena *arena,
                                      bool *ret_is_there, struct tide_sqlite_pipeline *ret_pipeline,
                                      struct tide_error *err);

/** Whether `numbers` (",1,4,") holds the number. */
bool tide_sqlite_numbers_hold(tide_str numbers, int64_t number);

/* The triggers that are in the schema, read once for all tables. */
struct tide_sqlite_present {
    struct tide_arena arena;
    struct tide_map ours;     /* by name: struct tide_sqlite_present_trigger, ours alone */
    struct tide_map counts;   /* by "_tidemark_<number>_": how many ours are of that number */
    struct tide_map youngest; /* by table: the youngest AFTER INSERT trigger that is not ours */
};

/** Reads them. Free with tide_sqlite_present_done; `{0}` is empty. */
tide_status tide_sqlite_present_read(sqlite3 *db, struct tide_sqlite_present *ret_present,
                                     struct tide_error *err);
void tide_sqlite_present_done(struct tide_sqlite_present *present);

/** Whether any trigger of ours of that number is on the table of that name. */
bool tide_sqlite_present_has_on(const struct tide_sqlite_present *present, int64_t number,
                                tide_str table);

/* How a table's triggers in the database compare with those that its shape needs. */
enum tide_sqlite_fit {
    TIDE_SQLITE_FIT,
    TIDE_SQLITE_FIT_MISSING,  /* one is not there */
    TIDE_SQLITE_FIT_OTHER,    /* one has another text or table, or there is one too many */
    TIDE_SQLITE_FIT_NOT_LAST, /* another AFTER INSERT trigger is younger than ours: fires first */
};

/** Compares. `ret_name` (in `arena` or `present`) is the trigger that does not fit; it may be
 * empty. */
enum tide_sqlite_fit tide_sqlite_triggers_fit(const struct tide_sqlite_present *present,
                                              const struct tide_sqlite_table *table,
                                              struct tide_arena *arena, tide_str *ret_name);

/** What tells these triggers from any others, in any order: a word of hexadecimal digits, in
 * `arena`. */
tide_str tide_sqlite_triggers_digest(const struct tide_sqlite_trigger *triggers, size_t count,
                                     struct tide_arena *arena);

/** Like tide_sqlite_triggers_fit, where the table's shape needs others by now: compares with those
 * that were made, by their digest. What is missing is not told from what is other. */
enum tide_sqlite_fit tide_sqlite_triggers_fit_made(const struct tide_sqlite_present *present,
                                                   const struct tide_sqlite_table *table,
                                                   tide_str digest, struct tide_arena *arena,
                                                   tide_str *ret_name);

/** The table on which our trigger `ad` of that number is now, copied into `arena`; ptr NULL: there
 * is no such trigger. */
tide_status tide_sqlite_triggered_table(sqlite3 *db, int64_t number, struct tide_arena *arena,
                                        tide_str *ret_name, struct tide_error *err);

/** Drops our triggers of that number, wherever they are. In the caller's write transaction. */
tide_status tide_sqlite_triggers_drop(sqlite3 *db, int64_t number, struct tide_error *err);

/** The number is no table's any more; it is not given to another one. */
tide_status tide_sqlite_number_free(sqlite3 *db, int64_t number, struct tide_error *err);

/** Drops triggers of ours whose number no table has. In the caller's write transaction. */
tide_status tide_sqlite_strays_drop(sqlite3 *db, struct tide_error *err);

/** Drops the triggers of tables that no pipeline wants. In the caller's write transaction. */
tide_status tide_sqlite_unwanted_drop(sqlite3 *db, struct tide_error *err);

/** The pipeline's row (in `arena`) and what is installed; TIDE_STALE when it has no row. */
tide_status tide_sqlite_describe(sqlite3 *db, tide_str pipeline, struct tide_arena *arena,
                                 struct tide_sqlite_installed *ret_installed,
                                 struct tide_sqlite_pipeline *ret_pipeline, struct tide_error *err);

/** TIDE_INVALID when another format version of ours is in the database; nothing of ours is fine. */
tide_status tide_sqlite_version_check(sqlite3 *db, struct tide_error *err);

/** TIDE_STALE when any of our tables is missing. */
tide_status tide_sqlite_whole_check(sqlite3 *db, struct tide_error *err);
