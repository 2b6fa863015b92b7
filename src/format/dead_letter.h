/*
 * A dead letter as a line, written and read:
 *
 *     {"id":ID,"timestamp":T,"sink":NAME,"store":S,"destination":D,"reason":R,
 *      "snapshot_id":ID,"attempt":N?,"seq":N,"row_key":"[…]"?      a snapshot's row
 *      "position":P,"index":I,"incarnation":N?,"key":{…}?          a change
 *      ,"bytes":TOTAL,"record":"text"      its first bytes when they are valid UTF-8
 *                    ,"record_base64":"…"  else }
 *
 * Letters of older versions have no id, sink and key. Pure.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/status.h"
#include "base/uuid.h"
#include "model/position.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A record that a sink could not take as it is; kept beside the pipeline's state. Borrowed for the
 * call. */
struct tide_dead_letter {
    tide_str sink; /* its name in the pipeline */
    tide_str store;
    tide_str destination; /* where it would have gone, as a user writes it */
    tide_str reason;      /* e.g. "921700 bytes, limit 921600" */
    tide_str bytes;       /* the record as the sink would have written it, whole */
    tide_str key_json;    /* a row's: its values, `[…]`; a change's: `{…}`; empty: none */
    bool has_seq;         /* a snapshot row's number; else a change's place */
    uint64_t seq;
    uint32_t attempt;                    /* of the snapshot */
    char snapshot_id[TIDE_UUID_LEN + 1]; /* empty for a change */
    struct tide_place place;
    uint32_t incarnation; /* of the place */
};

/* What a letter is known by: the same each time its record is delivered. */
struct tide_dead_letter_id {
    uint64_t hi;
    uint64_t lo;
};

#define TIDE_DEAD_LETTER_ID_LEN 32 /* hexadecimal digits */

/**
 * Of a row: the sink, the snapshot, the key (the seq where there is none) and what is in the
 * record, as a row that is read again after an interruption may get another seq. Of a change: the
 * sink and the place.
 */
struct tide_dead_letter_id tide_dead_letter_id(const struct tide_dead_letter *letter);

/** Lower case, 32 digits. */
void tide_dead_letter_id_append(struct tide_buf *buf, struct tide_dead_letter_id id);

/** True when `text` is 32 lower-case hexadecimal digits. */
bool tide_dead_letter_id_parse(tide_str text, struct tide_dead_letter_id *ret_id);

/**
 * Appends the letter with its line end. Of the record the first `record_bytes_max` bytes are kept,
 * of a text so many that no character is cut; a key of more than TIDE_DEAD_LETTER_KEY_BYTES_MAX is
 * left out.
 */
void tide_dead_letter_append(struct tide_buf *buf, const struct tide_dead_letter *letter,
                             struct tide_dead_letter_id id, int64_t utc_us, size_t record_bytes_max,
                             const struct tide_position_kind *kind);

/** The id at the start of a line, read without the rest of it. */
bool tide_dead_letter_line_id(tide_str line, struct tide_dead_letter_id *ret_id);

/* A letter as it was read. Texts live in the line or in the arena; ptr NULL where one is absent. */
struct tide_dead_letter_read {
    struct tide_dead_letter_id id; /* of an older version's letter: a hash of its line */
    tide_str timestamp;
    tide_str sink;
    tide_str store;
    tide_str destination;
    tide_str reason;
    tide_str snapshot_id; /* absent: a change */
    uint64_t attempt;
    uint64_t seq;
    tide_str position_json; /* of a change; opaque */
    uint64_t index;
    uint64_t incarnation;
    tide_str key_json; /* `[…]` of a row, `{…}` of a change */
    uint64_t bytes;    /* of the whole record */
    tide_str record;   /* its first bytes */
};

/** `line` without its end. TIDE_CORRUPT says what is wrong with it, and where. */
tide_status tide_dead_letter_decode(tide_str line, struct tide_arena *arena,
                                    struct tide_dead_letter_read *ret_letter,
                                    struct tide_error *err);
