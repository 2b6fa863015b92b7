/*
 * Where in a source's log. Two machine words, ordered; what they mean is the source's affair
 * (SQLite: lo = id of the log entry; PostgreSQL: lo = LSN; MySQL: hi = file number, lo = place).
 * Its JSON form is written and read by the source's position kind, opaque to everyone else.
 */
#pragma once

#include "base/buf.h"
#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

struct tide_position {
    uint64_t hi;
    uint64_t lo;
};

/* A change's place: its transaction's position and its 0-based number inside the transaction. */
struct tide_place {
    struct tide_position position;
    uint64_t index;
    bool known; /* false: there was none yet; ordered before every other */
};

/* The index that counts as after every change of a transaction: a snapshot row's. */
#define TIDE_INDEX_AFTER_ALL UINT64_MAX

/* The same where a place is written: the largest integer that every reader of JSON keeps. */
#define TIDE_INDEX_LAST ((uint64_t)9007199254740991)

/* How a source writes its positions as JSON. Pure functions. */
struct tide_position_kind {
    const char *name;
    void (*write)(struct tide_position position, struct tide_buf *buf);
    /** TIDE_CORRUPT when `json` is not of this kind. */
    tide_status (*parse)(tide_str json, struct tide_position *ret_position, struct tide_error *err);
};

/** <0, 0, >0. */
int tide_position_compare(struct tide_position a, struct tide_position b);

/** <0, 0, >0; an unknown place comes before all others. */
int tide_place_compare(struct tide_place a, struct tide_place b);

/* Plain integers (SQLite): JSON integers 0..2^63-1, lo only. */
extern const struct tide_position_kind tide_position_integer;

/* Places in PostgreSQL's log (LSN): JSON strings as the server writes them, "16/B374D848"; lo only.
 */
extern const struct tide_position_kind tide_position_lsn;

/** True and sets `ret_lsn` when all of `text` is two hexadecimal numbers of 1 to 8 digits around a
 * `/`. */
bool tide_lsn_parse(tide_str text, uint64_t *ret_lsn);

/** Appends the LSN as the server writes it: capital digits, no leading zeros. */
void tide_lsn_append(struct tide_buf *buf, uint64_t lsn);
