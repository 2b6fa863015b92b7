/*
 * What tests of the SQLite source share: a database file in a directory of its own, an application
 * that writes into it, and everything that a source brings written as text.
 *
 * A value as text: n NULL, - absent, i7 integer, r<16 hex digits of the double> real, t'…' text,
 * x<hex> text that is no UTF-8, b<hex> blob. A row: values with | between. The kit writes the rows
 * of a table by itself too, straight from SQLite, so that a copy can be compared with its source.
 */
#pragma once

#include "source/sqlite/sqlite_source.h"

#include <sqlite3.h>

#define HUNDRED_ROWS                                                                               \
    "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100)"                          \
    " INSERT INTO t SELECT i, 'row' FROM n"

struct sqlite_kit {
    char dir[64];
    char path[80];
    sqlite3 *app;
    struct tide_source *source;
    struct tide_position start;
    struct tide_arena arena; /* of the last event */
};

/** `mode` is a journal mode: "wal", "delete". */
void kit_init(struct sqlite_kit *kit, const char *mode);
/** Closes all and removes the directory. */
void kit_done(struct sqlite_kit *kit);

/** Runs SQL as the application; it must work. */
void kit_sql(struct sqlite_kit *kit, const char *sql);
/** The first column of the first row, as text with `NULL` for NULL. Free it. */
char *kit_get(struct sqlite_kit *kit, const char *sql);

/** Opens a source on the file; all tables, connection "db". */
struct tide_source *kit_open_source(struct sqlite_kit *kit, const char *pipeline);
/** Opens kit->source for pipeline "p", prepares anew and streams from its start. */
void kit_follow(struct sqlite_kit *kit);
/** Closes and opens the source again, prepares with `state` at `position` and returns the status;
 * streams when that is OK. */
tide_status kit_resume(struct sqlite_kit *kit, const char *state, struct tide_position position,
                       struct tide_error *err);
/** A table t(id INTEGER PRIMARY KEY, a), followed; then the SQL, and all that it caused drained. */
void kit_follow_with_rows(struct sqlite_kit *kit, const char *mode, const char *rows);
/** The last entry of the change log. */
uint64_t kit_log_end(struct sqlite_kit *kit);
/** Confirms until it is done, waiting where it asks for that. */
void kit_confirm(struct tide_source *source, uint64_t id);

/** The source's state. Free it. */
char *kit_state(struct sqlite_kit *kit);

/** All that is at hand now: lines "insert t: key = row", "delete t: key", "commit", "reached". With
 * `with_ids` places and positions too. Free it. */
char *kit_drain(struct sqlite_kit *kit, struct tide_source *source, bool with_ids);
/** Drains and compares; the message shows both. */
void kit_expect(struct sqlite_kit *kit, const char *want);

/** The relation of the table of that name; asserts that it is there. */
const struct tide_relation *kit_relation(struct tide_source *source, const char *name);
/** Reads the whole table in chunks of `rows_max` rows: a row a line, `;` after each chunk. Free it.
 */
char *kit_read_chunks(struct sqlite_kit *kit, const char *table, size_t rows_max);
void kit_expect_chunks(struct sqlite_kit *kit, const char *table, size_t rows_max,
                       const char *want);

/* A table that is read in chunks. Give relation and rows_max; the rest is zero. */
struct kit_chunks {
    const struct tide_relation *relation;
    size_t rows_max;
    struct tide_chunk chunk;
    struct tide_arena arena;
    const struct tide_value *after;
    size_t next_row;
    size_t read_count; /* chunks so far */
};

/** The next row, valid until the next call; NULL after the last one (all is freed then). */
const struct tide_value *kit_next_row(struct kit_chunks *chunks, struct tide_chunk_reader *reader);

/** A column of the row that `stmt` stands on, straight from SQLite. */
void kit_append_column(struct tide_buf *text, sqlite3_stmt *stmt, int column);
void kit_append_values(struct tide_buf *text, const struct tide_value *values, size_t count);
