/* What the files of the checkpoint codec share. */
#pragma once

#include "format/checkpoint.h"
#include "format/json_shape.h"

/*
 * Nesting of a whole checkpoint: serde_json gives up at 128, so a deeper one could be written but
 * not be read by others.
 */
#define TIDE_CHECKPOINT_DEPTH_MAX 127

/* Of our own key: a higher one is refused. */
#define TIDE_CHECKPOINT_VERSION 1

/** Appends one typed value. `is_exact` (under our own key): every kind reads back the same; else
 * what surreal-sync has no exact form for goes as Text. */
void tide_checkpoint_value_append(struct tide_buf *buf, struct tide_value value, bool is_exact);

/** Reads one typed value; our own type is known only when `is_exact`. */
tide_status tide_checkpoint_value_read(const struct tide_shape *shape, tide_str raw, bool is_exact,
                                       struct tide_value *ret_value, struct tide_error *err);

/** The same for a whole key: an array of typed values, or null for none. */
void tide_checkpoint_key_append(struct tide_buf *buf, const struct tide_checkpoint_key *key,
                                bool is_exact);
tide_status tide_checkpoint_key_read(const struct tide_shape *shape, tide_str raw, bool is_exact,
                                     struct tide_checkpoint_key *ret_key, struct tide_error *err);

struct tide_checkpoint_nested {
    const tide_str *items; /* typed values still to be checked */
    size_t count;
};

/* A type of value, and what checks its `value` and makes a tide_value of it; typed values inside
 * are not looked at but handed back in `ret_nested`. */
struct tide_checkpoint_variant {
    const char *name;
    tide_status (*read)(const struct tide_shape *shape, tide_str raw, struct tide_value *ret_value,
                        struct tide_checkpoint_nested *ret_nested, struct tide_error *err);
};

/* The variants with a scalar value and those with a structured one; each ends with a NULL name. */
extern const struct tide_checkpoint_variant tide_checkpoint_scalars[];
extern const struct tide_checkpoint_variant tide_checkpoint_structs[];

/** A date and time as chrono reads it: any year, T or a space, any fraction, Z or an offset. */
bool tide_checkpoint_is_datetime(tide_str text);

/** A type as in an array's element_type: a name, or an object with a name and its parameters. */
tide_status tide_checkpoint_type_check(const struct tide_shape *shape, tide_str raw,
                                       struct tide_error *err);

/** Appends `"tidemark":{…}`. */
void tide_checkpoint_ours_append(const struct tide_checkpoint *checkpoint,
                                 const struct tide_position_kind *kind, struct tide_buf *buf);

/** Reads the value of the key `tidemark` into `checkpoint`, which is changed on failure too. */
tide_status tide_checkpoint_ours_read(const struct tide_shape *shape, tide_str raw,
                                      const struct tide_position_kind *kind,
                                      struct tide_checkpoint *checkpoint, struct tide_error *err);

/** Checks size, nesting and syntax of a whole document; `ret_raw` is its one value. */
tide_status tide_checkpoint_document_begin(tide_str json, struct tide_arena *arena,
                                           struct tide_shape *ret_shape, tide_str *ret_raw,
                                           struct tide_error *err);
