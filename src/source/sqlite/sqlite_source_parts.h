/*
 * The source object, and its parts in several files. Not for others than sqlite_source.c,
 * sqlite_prepare.c.
 */
#pragma once

#include "port/source.h"
#include "source/sqlite/sqlite_confirm.h"
#include "source/sqlite/sqlite_db.h"
#include "source/sqlite/sqlite_files.h"
#include "source/sqlite/sqlite_install.h"
#include "source/sqlite/sqlite_log.h"
#include "source/sqlite/sqlite_nonces.h"
#include "source/sqlite/sqlite_notes.h"
#include "source/sqlite/sqlite_schema.h"
#include "source/sqlite/sqlite_watch.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#define TIDE_SQLITE_CHANGE_BUSY_MS 10000 /* for what needs the write lock: prepare, detach */

struct tide_source {
    struct tide_arena arena; /* of the options' copy */
    struct tide_source_options options;
    const char *path;
    struct tide_sqlite_choice choice;     /* borrows from the options */
    sqlite3 *db;                          /* that of `files`, which closes it */
    struct tide_sqlite_patience patience; /* of open and prepare, which may be called off */
    struct tide_sqlite_files files;
    char source_id[TIDE_SQLITE_HEX_LEN + 1];
    struct tide_sqlite_tables tables;       /* that are followed; before prepare: those chosen */
    struct tide_sqlite_tables left;         /* that are chosen and cannot be followed */
    struct tide_sqlite_kept kept;           /* relations of tables that were others before */
    const struct tide_relation **relations; /* what tables() returned */

    bool is_prepared;
    struct tide_sqlite_nonces nonces;
    struct tide_sqlite_trail trail;
    struct tide_sqlite_confirm confirm;
    struct tide_sqlite_watch *watch;
    struct tide_sqlite_log *log;
    int64_t poll_us; /* the next wait */
};

/** See port/source.h. */
tide_status tide_sqlite_prepare_source(struct tide_source *source, const tide_str *saved_state,
                                       struct tide_position position,
                                       struct tide_position *ret_start, struct tide_error *err);

/** See port/source.h. */
tide_status tide_sqlite_check_saved(struct tide_source *source, tide_str saved_state,
                                    struct tide_position position, struct tide_error *err);

/** Waits for locks from now on, until nobody wants what is waited for any more. */
void tide_sqlite_be_patient(struct tide_source *source, int wait_ms);

/** Of something that has waited: TIDE_CANCELLED, with what for, when it was called off. */
tide_status tide_sqlite_note_called_off(const struct tide_source *source, tide_status status,
                                        struct tide_error *err);

/** Mends what is to be mended (sqlite_mend.h) and goes on with the tables that there are now. */
tide_status tide_sqlite_mend_source(struct tide_source *source, struct tide_error *err);

/** The nonces that our row may have: TIDE_SQLITE_NONCES_NOW of them, borrowed. */
void tide_sqlite_known_nonces(const struct tide_source *source, tide_str *ret_known);

/** Forgets what prepare has made of this run. */
void tide_sqlite_forget_installation(struct tide_source *source);

/** Ends the read transaction that is open. */
void tide_sqlite_end_read(struct tide_source *source);
