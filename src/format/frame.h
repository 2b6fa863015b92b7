/*
 * Envelope frames, read: one line becomes one struct whose fields borrow from it. docs/envelope.md
 * has the layout of each kind. Keys may come in any order and unknown ones are passed over, so the
 * frames of plain snapshot envelopes and enriched frames are read as well as ours.
 */
#pragma once

#include "base/limits.h"
#include "base/status.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum tide_frame_kind {
    TIDE_FRAME_BEGIN,
    TIDE_FRAME_ROW,
    TIDE_FRAME_OVERSIZE,
    TIDE_FRAME_END,
    TIDE_FRAME_RESUME,
    TIDE_FRAME_CHANGE,
};

/* `[position, index]` of a change, or null. */
struct tide_frame_place {
    bool is_given; /* the key was there */
    bool is_known; /* and was not null */
    tide_str position;
    uint64_t index;
};

/*
 * Text fields are what stands between the quotes, escapes unresolved; the rest are JSON values as
 * written. A slice whose key was not there has a NULL `ptr`, a number is 0.
 */
struct tide_frame {
    enum tide_frame_kind kind;
    bool store_has_escapes;
    bool has_total;
    uint32_t attempt;
    uint32_t incarnation;
    uint32_t starts_count; /* equals `attempt` in a resume, and in an end that has an attempt */
    tide_str snapshot_id;
    tide_str snapshot_at;
    tide_str timestamp;
    tide_str store;
    uint64_t seq;
    tide_str record;   /* JSON: of a row or change */
    tide_str position; /* JSON: of a row or change */
    uint64_t total;
    uint64_t bytes;   /* of a stub: the size of the record it stands for */
    tide_str row_key; /* JSON string with its quotes */
    uint64_t row_count;
    tide_str completed_at;
    tide_str starts; /* JSON array: see tide_frame_read_starts */
    struct tide_frame_place changes_from;
    struct tide_frame_place changes_to;
    /* changes */
    tide_str op;
    uint64_t index;
    struct tide_frame_place prev;
    tide_str tx;         /* JSON */
    tide_str key;        /* JSON */
    tide_str moved_from; /* JSON */
    tide_str before;     /* JSON */
    tide_str unchanged;  /* JSON */
    uint64_t oversize;   /* the size of a record that was left out, or 0 */
    /* enrichment */
    tide_str received; /* JSON: milliseconds since 1970 */
};

#define TIDE_FRAME_HEAD_MAX ((size_t)1024)

/* What a decoder remembers of the row before: its bytes up to the seq, and what they mean. */
struct tide_frame_decoder {
    size_t head_len;
    struct tide_frame head;
    char head_bytes[TIDE_FRAME_HEAD_MAX];
};

/**
 * Decodes one frame.
 *
 * Input:   `line` is one frame without its line end. `{0}` is a decoder; one for each stream of
 *          frames, since rows that begin like the one before are read faster.
 * Owns:    fields borrow from `line` and from `decoder`, until its next use.
 * Errors:  TIDE_CORRUPT with the byte within the line: not JSON, a head or needed tail field
 *          missing or of the wrong type, an unknown kind, a known key twice.
 * Threads: pure.
 */
tide_status tide_frame_decode(struct tide_frame_decoder *decoder, tide_str line,
                              struct tide_frame *ret_frame, struct tide_error *err);

/** Puts the frame's starts_count starts into `ret_starts`. */
void tide_frame_read_starts(const struct tide_frame *frame, uint64_t *ret_starts);

/** True when `line` begins an object and ends before it does: a frame that was cut off. */
bool tide_frame_is_cut_off(tide_str line);
