/*
 * Reading JSON documents of a known shape, leniently as serde does: an object by its keys in any
 * order, or an array of the same values in the order of the fields. Values come out as slices of
 * the document, read further where they are needed; opaque ones keep their digits.
 *
 * The document has been checked as a whole before (tide_json_check): what fails here is its shape,
 * and messages say where, as a byte offset. Pure; everything made lives in the arena.
 */
#pragma once

#include "base/arena.h"
#include "base/status.h"
#include "base/str.h"
#include "format/json_reader.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Elements of one array or object that are read: more is refused, whatever they are. */
#define TIDE_SHAPE_ITEMS_MAX ((size_t)1 << 20)

/* The document that slices are of, and where to put what is made. */
struct tide_shape {
    const char *document; /* first byte: for offsets in messages */
    struct tide_arena *arena;
};

struct tide_shape_field {
    const char *name;
    const char *alias; /* another name for it, or NULL; both at once are a repeated key */
    bool is_optional;  /* of an object; an array has every value */
};

struct tide_shape_form {
    const struct tide_shape_field *fields;
    size_t count;
    size_t sequence_count; /* an array may stand for it, of the first so many fields; 0: none may */
    bool refuse_unknown;   /* else unknown keys are passed over */
};

/** TIDE_CORRUPT: `wanted` at the offset of `raw`. */
tide_status tide_shape_fail(const struct tide_shape *shape, tide_str raw, const char *wanted,
                            struct tide_error *err);

/**
 * The values of the form's fields as slices of `raw`, in `ret_values` (form->count); ptr NULL where
 * an optional one is missing. Repeated keys, missing fields and arrays of another length are
 * TIDE_CORRUPT.
 */
tide_status tide_shape_fields(const struct tide_shape *shape, tide_str raw,
                              const struct tide_shape_form *form, tide_str *ret_values,
                              struct tide_error *err);

/** The elements of an array as slices, in the arena. */
tide_status tide_shape_items(const struct tide_shape *shape, tide_str raw, tide_str **ret_items,
                             size_t *ret_count, struct tide_error *err);

/** The values of an object as slices, in the arena, keys left aside (repeated ones too). */
tide_status tide_shape_values(const struct tide_shape *shape, tide_str raw, tide_str **ret_items,
                              size_t *ret_count, struct tide_error *err);

/** A string, unescaped: a slice of the document or in the arena. */
tide_status tide_shape_string(const struct tide_shape *shape, tide_str raw, tide_str *ret_text,
                              struct tide_error *err);

/** An array of strings. */
tide_status tide_shape_strings(const struct tide_shape *shape, tide_str raw,
                               const tide_str **ret_texts, size_t *ret_count,
                               struct tide_error *err);

/** true or false. */
tide_status tide_shape_bool(const struct tide_shape *shape, tide_str raw, bool *ret_value,
                            struct tide_error *err);

/** An integer without fraction, exponent or a minus before zero, within the bounds. */
tide_status tide_shape_u64(const struct tide_shape *shape, tide_str raw, uint64_t max,
                           uint64_t *ret_value, struct tide_error *err);

/** The same with a sign; only checks it, the digits stay. */
tide_status tide_shape_i64(const struct tide_shape *shape, tide_str raw, int64_t min, int64_t max,
                           struct tide_error *err);

/** True when `raw` is a JSON number that is finite as a double. */
bool tide_shape_is_double(tide_str raw);

static inline bool tide_shape_is_null(tide_str raw)
{
    return raw.len == 4 && raw.ptr[0] == 'n';
}

/** The valid JSON `raw` without white space between tokens: itself, or a copy in the arena. */
tide_str tide_shape_compact(struct tide_arena *arena, tide_str raw);
