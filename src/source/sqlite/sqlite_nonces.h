/*
 * How a restored backup is told from the database that a checkpoint belongs to. Our row in the
 * database holds a random nonce, and each confirm writes the next one, known before: a checkpoint
 * holds the nonce that is in the database now and the two that will be written next, since it is
 * made durable before the confirm, and the checkpoint before it may have to serve too. A database
 * with any other nonce is not where we left it.
 */
#pragma once

#include "base/buf.h"
#include "base/status.h"
#include "source/sqlite/sqlite_table.h"
#include "source/sqlite/sqlite_trail.h"

#include <stdbool.h>

#define TIDE_SQLITE_NONCES 3
/* How many of them the database may have while we run: what confirming does is known. */
#define TIDE_SQLITE_NONCES_NOW 2

struct tide_sqlite_nonces {
    char text[TIDE_SQLITE_NONCES][TIDE_SQLITE_HEX_LEN + 1]; /* now, next, after next */
    bool is_next_saved; /* the state was asked for since the last step: the next may be written */
};

/** A random name: a nonce, or the id of a source. */
void tide_sqlite_nonce_make(char text[TIDE_SQLITE_HEX_LEN + 1]);

/** Starts with `now` in the database; the others are random. */
void tide_sqlite_nonces_init(struct tide_sqlite_nonces *nonces, const char *now);

/** The next one has been written. */
void tide_sqlite_nonces_step(struct tide_sqlite_nonces *nonces);

/** Appends the source's state for the checkpoint:
 * {"source":"…","nonces":["…","…","…"],"trail":"…"}. */
void tide_sqlite_nonces_save(struct tide_sqlite_nonces *nonces,
                             const struct tide_sqlite_trail *trail, const char *source_id,
                             struct tide_buf *buf);

/**
 * Reads a saved state and takes up the nonces from `now`, which the database has, and the trail.
 * TIDE_STALE: it has another source's id, or `now` is none of them; TIDE_CORRUPT: not a state.
 */
tide_status tide_sqlite_nonces_load(struct tide_sqlite_nonces *nonces, tide_str state,
                                    const char *source_id, const char *now,
                                    struct tide_sqlite_trail *ret_trail, struct tide_error *err);
