/*
 * A table's values between their text and what a typed column of a segment holds. Pure.
 *
 * A value has a scalar exactly when the scalar's value is the same again, kind and text: what
 * cannot be held so goes beside its column (change_plan.h).
 */
#pragma once

#include "archive/change_plan.h"
#include "base/buf.h"
#include "model/value.h"

struct tide_change_scalar {
    union {
        bool flag;        /* BOOL */
        int32_t i32;      /* DATE */
        int64_t i64;      /* I64, TIME, TIMESTAMP, TIMESTAMP_UTC */
        double real;      /* DOUBLE, DOUBLE_PG, FLOAT_PG */
        tide_int128 i128; /* DECIMAL, NUMBER */
        tide_str bytes;   /* JSON, BINARY: borrowed */
        uint8_t uuid[16]; /* UUID */
    };
};

/** Memory for texts. `{0}` is ready. */
struct tide_change_scratch {
    struct tide_buf text;
};

/** Frees the memory. For TIDE_CLEANUP too. */
void tide_change_scratch_done(struct tide_change_scratch *scratch);

/** True and sets `ret_scalar` when the value has one in a column of that form (not STRING). */
bool tide_change_scalar_of(const struct tide_change_column *column, unsigned precision,
                           struct tide_value value, struct tide_change_scratch *scratch,
                           struct tide_change_scalar *ret_scalar);

/**
 * Appends the text of a scalar's value and sets its kind; of JSON and BINARY just the kind. False
 * when there is no value of that scalar, as of a date beyond the calendar.
 */
bool tide_change_scalar_append(const struct tide_change_column *column,
                               const struct tide_change_scalar *scalar, struct tide_buf *buf,
                               uint8_t *ret_kind);
