/*
 * From the server's text of a value to a value of the model and back. One decoder for both paths:
 * a row read in a chunk and a change of the stream give the same bytes. Pure; no number ever passes
 * through a double.
 *
 *     type (after domains are resolved)         value
 *     bool                                      BOOL `true`, `false`
 *     int2, int4, int8, oid                     INTEGER
 *     numeric                                   DECIMAL, also NaN and ±Infinity
 *     float4, float8                            REAL, also NaN and ±Infinity
 *     json, jsonb                               JSON; TEXT where the text is none to our strict
 *                                               reader (a lone surrogate escape, too deep)
 *     bytea                                     BYTES
 *     array of a built-in type                  JSON: an array of what the element's type gives,
 *                                               nested for more dimensions, null for NULL; TEXT of
 *                                               the server where bounds are not 1-based
 *     anything else                             TEXT of the server (RAW_TEXT: it is no UTF-8)
 *
 * Key columns: the value must go back to the server as a literal, byte for byte. Where that is not
 * possible from JSON (arrays, json, jsonb), a rule asked for with `is_key` keeps the server's
 * text as TEXT. The choice is the column's, for snapshot, stream, record and key alike.
 *
 * Settings that the connection must have: client_encoding UTF8, bytea_output hex,
 * extra_float_digits >= 1, and fixed DateStyle, IntervalStyle, TimeZone, lc_monetary.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/status.h"
#include "base/str.h"
#include "model/value.h"
#include "source/postgres/pg_field.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How a column's text is read, worked out once per column. Passed by value. */
struct tide_pg_rule {
    uint8_t kind;         /* private */
    uint8_t element_kind; /* private: of an array */
    char delimiter;       /* private: between elements of an array */
};

/**
 * The rule for a type.
 *
 * Input: `value_oid` is pg_type.oid, for a domain that of its base type (through all levels: a
 *        domain's own oid gives TEXT). Unknown oids give TEXT.
 */
struct tide_pg_rule tide_pg_rule_of(uint32_t value_oid, bool is_key);

/* Memory for building arrays, kept between calls. `{0}` is ready; one per thread. */
struct tide_pg_scratch {
    struct tide_buf json;
    struct tide_buf element;
};

/** Frees the memory. For TIDE_CLEANUP too. */
void tide_pg_scratch_done(struct tide_pg_scratch *scratch);

/**
 * The value of one text.
 *
 * Owns:   the value's bytes are a slice of `text`, static (BOOL), or in `arena` (BYTES, arrays):
 *         both must live as long as the value. A caller that keeps rows copies the whole message
 *         into its arena once, before decoding.
 * Errors: TIDE_CORRUPT the text is none of this type; the message names the type's kind but not the
 *         value: add the column with tide_fail_context.
 */
tide_status tide_pg_value(struct tide_pg_rule rule, tide_str text, struct tide_arena *arena,
                          struct tide_pg_scratch *scratch, struct tide_value *ret_value,
                          struct tide_error *err);

/**
 * A row: `ret_values[i]` from `fields[i]` by `rules[i]`, NULL and UNCHANGED as they are. On failure
 * `ret_index` is the column at fault (and values before it are written), else untouched.
 */
tide_status tide_pg_row_values(const struct tide_pg_rule *rules, const struct tide_pg_field *fields,
                               size_t count, struct tide_arena *arena,
                               struct tide_pg_scratch *scratch, struct tide_value *ret_values,
                               size_t *ret_index, struct tide_error *err);

/**
 * Appends the server's own text of a value: what `'…'::type` takes, before quoting. The inverse of
 * tide_pg_value for rules asked for with `is_key`; for arrays read otherwise there is none.
 *
 * Errors: TIDE_INVALID for NULL, UNCHANGED and ABSENT, which have no text, and for RAW_TEXT, which
 *         a literal in UTF-8 cannot carry.
 */
tide_status tide_pg_value_to_text(struct tide_value value, struct tide_buf *buf,
                                  struct tide_error *err);
