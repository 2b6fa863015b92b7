/*
 * A pull reader for JSON (RFC 8259): one pass, no allocation, no recursion. Numbers keep their
 * digits: a token is a slice of the input. Strict: UTF-8 is checked, lone surrogate escapes are
 * refused, control bytes inside strings are refused, depth is limited. Duplicate keys are given
 * as they come; whoever reads an object decides (our formats refuse them).
 */
#pragma once

#include "base/arena.h"
#include "base/limits.h"
#include "base/status.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum tide_json_type {
    TIDE_JSON_END, /* after the top value: only white space was left */
    TIDE_JSON_OBJECT_BEGIN,
    TIDE_JSON_OBJECT_END,
    TIDE_JSON_ARRAY_BEGIN,
    TIDE_JSON_ARRAY_END,
    TIDE_JSON_KEY,    /* text: between the quotes */
    TIDE_JSON_STRING, /* text: between the quotes */
    TIDE_JSON_NUMBER, /* text: as written */
    TIDE_JSON_TRUE,
    TIDE_JSON_FALSE,
    TIDE_JSON_NULL,
};

struct tide_json_token {
    enum tide_json_type type;
    bool has_escapes; /* of KEY and STRING: tide_json_unescape is needed */
    tide_str text;    /* borrowed from the input */
};

struct tide_json_reader {
    tide_str input;
    size_t pos;                                   /* of the next unread byte: for messages */
    size_t depth;                                 /* open objects and arrays */
    size_t depth_max;                             /* <= TIDE_JSON_DEPTH_MAX */
    uint8_t expect;                               /* private */
    uint64_t is_object[TIDE_JSON_DEPTH_MAX / 64]; /* private: what each open level is */
};

/** Reads `input`, which must stay; nesting deeper than `depth_max` is TIDE_CORRUPT. */
void tide_json_reader_init(struct tide_json_reader *reader, tide_str input, size_t depth_max);

/** The next token. TIDE_CORRUPT with the byte offset in the message; then the reader is not used
 * on. */
tide_status tide_json_next(struct tide_json_reader *reader, struct tide_json_token *ret_token,
                           struct tide_error *err);

/** Checks and passes over the value that comes next; `ret_raw` is its bytes as written. */
tide_status tide_json_skip(struct tide_json_reader *reader, tide_str *ret_raw,
                           struct tide_error *err);

/** The same for a value whose first token, `first`, has just been read: for items of an array,
 * which may end instead. */
tide_status tide_json_skip_rest(struct tide_json_reader *reader,
                                const struct tide_json_token *first, tide_str *ret_raw,
                                struct tide_error *err);

/** The text of a KEY or STRING token with escapes resolved; lives in the input or in `arena`. */
tide_str tide_json_unescape(const struct tide_json_token *token, struct tide_arena *arena);

/** OK when `text` is exactly one JSON value (white space around it allowed). */
tide_status tide_json_check(tide_str text, size_t depth_max, struct tide_error *err);

/* Reading objects of a known form. */

/** The next token must be of `type`, else TIDE_CORRUPT saying what was wanted. */
tide_status tide_json_expect(struct tide_json_reader *reader, enum tide_json_type type,
                             struct tide_json_token *ret_token, struct tide_error *err);

/** The next value as an unsigned integer (digits only). */
tide_status tide_json_expect_u64(struct tide_json_reader *reader, uint64_t *ret_value,
                                 struct tide_error *err);
tide_status tide_json_expect_i64(struct tide_json_reader *reader, int64_t *ret_value,
                                 struct tide_error *err);
tide_status tide_json_expect_bool(struct tide_json_reader *reader, bool *ret_value,
                                  struct tide_error *err);
/** The next value as a string, unescaped. */
tide_status tide_json_expect_string(struct tide_json_reader *reader, struct tide_arena *arena,
                                    tide_str *ret_text, struct tide_error *err);
