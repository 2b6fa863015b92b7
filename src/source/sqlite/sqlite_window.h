/*
 * A piece of the change log in memory: of its entries the last one of each row, in the log's
 * order. Where a later entry only says that the row may be gone (a candidate), the earlier
 * operation stays. Between them stand the notes about tables, each as it is.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/status.h"
#include "base/str.h"
#include "source/sqlite/sqlite_schema.h"

#include <sqlite3.h>
#include <stddef.h>
#include <stdint.h>

#define TIDE_SQLITE_WINDOW_ENTRIES 4096
/* A window ends early when its keys take more. */
#define TIDE_SQLITE_WINDOW_BYTES (4 * 1024 * 1024)

struct tide_sqlite_mark {
    int64_t id;
    int64_t number;                        /* the log's t */
    const struct tide_sqlite_table *table; /* of a note: NULL where the number is not ours */
    tide_str key;  /* sqlite_key.h, in the window's arena; of a note: the table's name */
    tide_str note; /* of a note: the log's r */
    uint64_t hash;
    enum tide_sqlite_op op;
    bool is_superseded; /* a later mark of the same row follows in the window */
};

/* What the log says of a table, not of a row: an operation from TRUNCATE on. */
static inline bool tide_sqlite_mark_is_note(const struct tide_sqlite_mark *mark)
{
    return mark->op >= TIDE_SQLITE_OP_TRUNCATE;
}

struct tide_sqlite_window {
    struct tide_arena arena;
    int64_t number;                        /* the table that was looked up last, … */
    const struct tide_sqlite_table *table; /* … NULL: not ours */
    struct tide_buf key;                   /* the key that is looked at */
    struct tide_sqlite_mark *marks;        /* TIDE_SQLITE_WINDOW_ENTRIES of them */
    uint32_t *places;                      /* hash table: 1 + index of a mark, 0: free */
    size_t count;                          /* of marks */
    size_t next;                           /* mark to be delivered next: the reader's */
    size_t entries;                        /* of the log, also those of others' tables */
    size_t bytes;                          /* of their keys */
    size_t entries_max;                    /* of the log, at most this many in one window */
    int64_t last_id;                       /* of the last entry that was read */
};

/** Zeroed storage becomes an empty window of 1 to TIDE_SQLITE_WINDOW_ENTRIES entries. */
void tide_sqlite_window_init(struct tide_sqlite_window *window, size_t entries_max);
void tide_sqlite_window_done(struct tide_sqlite_window *window);

/** Forgets all marks. */
void tide_sqlite_window_reset(struct tide_sqlite_window *window);

/** How wide the log must be for these tables: the largest k column. */
size_t tide_sqlite_window_width(const struct tide_sqlite_tables *tables);

/** The SELECT of entries that tide_sqlite_window_load runs: ?1 < id <= ?2, ?3 limit. */
tide_status tide_sqlite_window_prepare(sqlite3 *db, size_t width, sqlite3_stmt **ret_stmt,
                                       struct tide_error *err);

/**
 * Empties the window and reads the entries with first < id <= last into it, as many as it holds.
 * With fewer than that, `last_id` is `last`. Entries of other tables than `tables` are passed over,
 * but not notes.
 */
tide_status tide_sqlite_window_load(struct tide_sqlite_window *window, sqlite3_stmt *stmt,
                                    const struct tide_sqlite_tables *tables, int64_t first,
                                    int64_t last, struct tide_error *err);

/** Other tables take the place of those that the window was loaded with (they may be gone already):
 * a mark whose number none of them has counts no more. */
void tide_sqlite_window_retable(struct tide_sqlite_window *window,
                                const struct tide_sqlite_tables *tables);
