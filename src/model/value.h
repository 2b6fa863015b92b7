/*
 * A column's value: a slice of the source's own canonical text, and what kind of text it is.
 * Parsed only where a consumer needs a number. 16 bytes, passed in arrays of one row.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

enum tide_value_kind {
    TIDE_VALUE_NULL = 0,
    TIDE_VALUE_UNCHANGED, /* the source did not send it (unchanged TOAST) */
    TIDE_VALUE_ABSENT,    /* this row has no such column (a rowid that is not needed) */
    TIDE_VALUE_BOOL,      /* "true" or "false" */
    TIDE_VALUE_INTEGER,   /* decimal digits, `-` before a negative one: a JSON number */
    TIDE_VALUE_DECIMAL,   /* exact decimal: a JSON number; or NaN, Infinity, -Infinity */
    TIDE_VALUE_REAL,      /* binary float: a JSON number that reads back the same; or as above */
    TIDE_VALUE_TEXT,      /* valid UTF-8, may contain NUL */
    TIDE_VALUE_RAW_TEXT,  /* text that is not valid UTF-8 */
    TIDE_VALUE_BYTES,     /* raw bytes */
    TIDE_VALUE_JSON,      /* one JSON value, embedded as it is */
};

struct tide_value {
    const char *ptr;
    uint32_t len;
    uint8_t kind; /* enum tide_value_kind */
};

static inline tide_str tide_value_str(struct tide_value value)
{
    return (tide_str){value.ptr, value.len};
}

/** Same kind and same bytes. */
bool tide_value_equal(struct tide_value a, struct tide_value b);

/** A copy in one allocation of `ret_size` bytes, which the caller frees. */
struct tide_value *tide_values_dup(const struct tide_value *values, size_t count, size_t *ret_size);

/** A copy of the array whose bytes live in `arena`. */
struct tide_value *tide_values_copy(struct tide_arena *arena, const struct tide_value *values,
                                    size_t count);

/**
 * Appends a form of the values that is equal exactly when they are equal, for use as a map key:
 * kind and length before each value's bytes.
 */
void tide_values_encode(struct tide_buf *buf, const struct tide_value *values, size_t count);
