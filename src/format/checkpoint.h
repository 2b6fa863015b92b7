/*
 * The checkpoint as JSON: readable by and for surreal-sync (public source), with everything of
 * ours under one more key, "tidemark". Pure. docs/checkpoint.md has the layout.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/status.h"
#include "base/uuid.h"
#include "model/position.h"
#include "model/value.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A key as JSON is an array of typed values, `[{"type":"Int64","value":42}]`. In the compatible
 * part INTEGER is Int64, REAL Float64 with the digits as they are, TEXT Text, BYTES Bytes (an array
 * of numbers), BOOL Bool, NULL Null and DECIMAL Decimal with precision 38 and the scale of its
 * digits; what has no exact form there goes as Text in the source's own spelling. Under our own key
 * every kind of value reads back as it was: what those cannot hold (a REAL or DECIMAL that is not
 * finite, more than 38 digits, an integer beyond 64 bits, RAW_TEXT, JSON, ABSENT, UNCHANGED) is
 * `{"type":"Tidemark","value":{"kind":"raw_text","text":"/w=="}}`, raw text in base 64.
 */
struct tide_checkpoint_key {
    struct tide_value *values;
    size_t count; /* 0: none (JSON null) */
};

/* One table of the compatible part. */
struct tide_checkpoint_table {
    tide_str name;
    tide_str
        last_pk; /* raw JSON as read (array of typed values or null); when written: see `copies` */
    bool done;
};

/* Place of the last change of a store, as of the checkpoint's position. */
struct tide_checkpoint_store {
    tide_str store;
    struct tide_place place;
};

struct tide_checkpoint_sink {
    tide_str name;
    bool is_seeded;
    bool is_detached;
    bool is_paused;
    const tide_str *failed_tables;
    size_t failed_count;
};

/* One table's copy for some sinks. */
struct tide_checkpoint_copy {
    uint64_t request_id;
    const tide_str *sinks;
    size_t sink_count;
    tide_str table; /* the relation's name, with schema where there is one: "s.t" */
    tide_str store;
    const tide_str *key_columns;
    size_t key_column_count;
    bool is_begun; /* the fields below are set */
    bool is_done;  /* its end is held by every lane */
    char snapshot_id[TIDE_UUID_LEN + 1];
    int64_t snapshot_at_us;
    uint32_t attempt;
    const uint64_t *starts; /* `attempt` elements */
    uint64_t next_seq;
    struct tide_checkpoint_key last_pk;
    struct tide_checkpoint_key *read_again;
    size_t read_again_count;
};

struct tide_checkpoint_request {
    uint64_t id;
    tide_str sink;
    const tide_str *tables;
    size_t table_count;
};

/* All strings and arrays live where the maker put them: an arena, when decoded. */
struct tide_checkpoint {
    tide_str position_json; /* reconciliation_pos, opaque; "null" when there is none yet */
    const struct tide_checkpoint_table *tables;
    size_t table_count;
    bool has_tidemark; /* false: a file of another program; nothing below is set */
    uint64_t sequence; /* at most 2^63-1 */
    tide_str pipeline;
    tide_str identity_json;     /* of the source */
    tide_str source_state_json; /* what the source's prepare wants back */
    uint32_t incarnation;
    bool is_creating; /* what is made in the source may be half made */
    bool is_closed;   /* a one-shot copy that has ended: the next run starts anew */
    const struct tide_checkpoint_store *stores;
    size_t store_count;
    const struct tide_checkpoint_sink *sinks;
    size_t sink_count;
    const struct tide_checkpoint_copy *copies;
    size_t copy_count;
    const struct tide_checkpoint_request *requests;
    size_t request_count;
};

enum tide_checkpoint_phase {
    TIDE_PHASE_FULL_SYNC_START,
    TIDE_PHASE_FULL_SYNC_END,
    TIDE_PHASE_SNAPSHOT_PROGRESS,
    TIDE_PHASE_SNAPSHOT_HANDOFF, /* accepted, never written */
    TIDE_PHASE_CATCH_UP_PROGRESS,
};

/** The phase as it stands in file names and in the JSON: "snapshot_progress" and so on. */
const char *tide_checkpoint_phase_name(enum tide_checkpoint_phase phase);

/** The phase of that name; false when there is none. */
bool tide_checkpoint_phase_find(tide_str name, enum tide_checkpoint_phase *ret_phase);

/** Every table is done; true of none. Of a decoded checkpoint (looks at `tables`). */
bool tide_checkpoint_all_done(const struct tide_checkpoint *checkpoint);

/**
 * The compact JSON; the same for the same checkpoint. `tables` is made from `copies` (one entry a
 * table: done only if done for all; last_pk of its only unfinished copy, else null); where there
 * are no copies and no tidemark part, from `tables`. Raw JSON goes in as it is and must be valid;
 * an empty identity or state is null. `kind` may be NULL when no store's place is known.
 */
void tide_checkpoint_encode(const struct tide_checkpoint *checkpoint,
                            const struct tide_position_kind *kind, struct tide_buf *buf);

/**
 * Reads what tide_checkpoint_encode or surreal-sync wrote. `kind` may be NULL: then places of
 * stores are not read (for looking at a file without its source). Everything lives in `json` or
 * `arena`; raw JSON keeps its digits and loses its white space. A `last_pk` of the compatible part
 * may be any JSON (see tide_checkpoint_key_decode); nesting over 127 levels is refused.
 * Errors: TIDE_CORRUPT with what is wrong and the byte offset; TIDE_UNSUPPORTED a newer version.
 */
tide_status tide_checkpoint_decode(tide_str json, const struct tide_position_kind *kind,
                                   struct tide_arena *arena, struct tide_checkpoint *ret_checkpoint,
                                   struct tide_error *err);

/**
 * Reads a `last_pk` of the compatible part, every type of value that surreal-sync writes: all
 * integers as INTEGER, floats as REAL, the string types, dates and times as TEXT as written, UUIDs
 * as TEXT in lower case with hyphens, structures (Array, Set, Object …) as JSON. null is a key of 0
 * values. Everything lives in `json` or `arena`. Errors: TIDE_CORRUPT with the byte offset.
 */
tide_status tide_checkpoint_key_decode(tide_str json, struct tide_arena *arena,
                                       struct tide_checkpoint_key *ret_key, struct tide_error *err);

/** The file form: pretty JSON with the compact one as a string. `created_us` is UTC. */
void tide_checkpoint_file_encode(tide_str compact_json, enum tide_checkpoint_phase phase,
                                 int64_t created_us, struct tide_buf *buf);

/**
 * The compact JSON inside a file, or in the transport form; also bare compact JSON, which says no
 * time (`*ret_created_us` 0) and whose phase is full_sync_end when all is done, else
 * snapshot_progress. Of the first two the checkpoint inside is checked for syntax only. It lives in
 * `file` or `arena`.
 */
tide_status tide_checkpoint_file_decode(tide_str file, struct tide_arena *arena,
                                        tide_str *ret_compact_json,
                                        enum tide_checkpoint_phase *ret_phase,
                                        int64_t *ret_created_us, struct tide_error *err);
