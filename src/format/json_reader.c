/*
 * The reader is a small state machine: `expect` says what may come next, `is_object` has one bit
 * for each open level. tide_json_next and tide_json_skip run the same step, so they accept the
 * same input.
 */
#include "format/json_reader.h"

#include "format/json_scan.h"

enum expect {
    EXPECT_VALUE,      /* at the top, or after a key */
    EXPECT_FIRST_ITEM, /* after `[`: a value or `]` */
    EXPECT_FIRST_KEY,  /* after `{`: a key or `}` */
    EXPECT_NEXT,       /* after a value inside: `,` or the closing bracket */
    EXPECT_NOTHING,    /* after the top value */
};

#define INLINE static inline __attribute__((always_inline))

__attribute__((noinline, cold)) static tide_status fail_at(const struct tide_json_reader *reader,
                                                           const char *at, const char *what,
                                                           struct tide_error *err)
{
    return tide_fail(err, TIDE_CORRUPT, "not valid JSON at byte %zu: %s",
                     (size_t)(at - reader->input.ptr), what);
}

__attribute__((noinline, cold)) static tide_status fail_end(const struct tide_json_reader *reader,
                                                            struct tide_error *err)
{
    return fail_at(reader, reader->input.ptr + reader->input.len, "it ends too early", err);
}

INLINE const char *skip_space(const char *p, const char *end)
{
    while (p < end && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t')) {
        p++;
    }
    return p;
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* The four hex digits at `p`, or -1 (also when fewer than four bytes are left). */
static int hex_unit(const char *p, const char *end)
{
    if (end - p < 4) {
        return -1;
    }
    int unit = 0;
    for (int i = 0; i < 4; i++) {
        int digit = hex_digit(p[i]);
        if (digit < 0) {
            return -1;
        }
        unit = unit << 4 | digit;
    }
    return unit;
}

/*
 * The place after the escape at `p` (a backslash), or NULL with `*ret_what`. A high surrogate must
 * be followed by the escape of a low one.
 */
static const char *pass_escape(const char *p, const char *end, const char **ret_what)
{
    if (end - p < 2) {
        *ret_what = "an escape is cut off";
        return NULL;
    }
    if (p[1] != 'u') {
        *ret_what = "no such escape in a string";
        return p[1] != '\0' && strchr("\"\\/bfnrt", p[1]) != NULL ? p + 2 : NULL;
    }
    int unit = hex_unit(p + 2, end);
    if (unit < 0) {
        *ret_what = "\\u wants four hex digits";
        return NULL;
    }
    if (unit < 0xd800 || unit > 0xdfff) {
        return p + 6;
    }
    *ret_what = "a surrogate stands alone";
    if (unit > 0xdbff || end - p < 12 || p[6] != '\\' || p[7] != 'u') {
        return NULL;
    }
    unit = hex_unit(p + 8, end);
    return unit >= 0xdc00 && unit <= 0xdfff ? p + 12 : NULL;
}

/* What a string that has more than plain ASCII needs; `p` is at the first special byte. */
__attribute__((noinline)) static tide_status
finish_string(const struct tide_json_reader *reader, const char *start, const char *p,
              bool is_ascii, struct tide_json_token *token, struct tide_error *err)
{
    const char *end = reader->input.ptr + reader->input.len;
    bool has_escapes = false;
    while (p < end && *p != '"') {
        const char *what = "a control byte in a string";
        const char *next = *p == '\\' ? pass_escape(p, end, &what) : NULL;
        if (next == NULL) {
            return fail_at(reader, p, what, err);
        }
        has_escapes = true;
        p = tide_json_scan(next, end, &is_ascii);
    }
    if (p == end) {
        return fail_at(reader, end, "a string does not end", err);
    }
    tide_str text = tide_str_of(start, (size_t)(p - start));
    size_t valid = is_ascii ? text.len : tide_str_utf8_valid_prefix(text);
    if (valid < text.len) {
        return fail_at(reader, start + valid, "not UTF-8", err);
    }
    token->has_escapes = has_escapes;
    token->text = text;
    return TIDE_OK;
}

/* `p` is at the opening quote. */
INLINE tide_status read_string(struct tide_json_reader *reader, const char *p, const char *end,
                               struct tide_json_token *token, const char **ret_next,
                               struct tide_error *err)
{
    const char *start = p + 1;
    bool is_ascii = true;
    const char *stop = tide_json_scan(start, end, &is_ascii);
    if (TIDE_LIKELY(stop < end && *stop == '"' && is_ascii)) {
        token->has_escapes = false;
        token->text = tide_str_of(start, (size_t)(stop - start));
    } else {
        TIDE_TRY(finish_string(reader, start, stop, is_ascii, token, err));
    }
    *ret_next = token->text.ptr + token->text.len + 1;
    return TIDE_OK;
}

INLINE bool is_digit(const char *p, const char *end)
{
    return p < end && (unsigned char)(*p - '0') < 10;
}

INLINE const char *pass_digits(const char *p, const char *end)
{
    while (is_digit(p, end)) {
        p++;
    }
    return p;
}

__attribute__((noinline, cold)) static tide_status fail_digit(const struct tide_json_reader *reader,
                                                              const char *p, struct tide_error *err)
{
    bool at_end = p == reader->input.ptr + reader->input.len;
    return at_end ? fail_end(reader, err) : fail_at(reader, p, "a number wants a digit here", err);
}

INLINE tide_status read_number(const struct tide_json_reader *reader, const char *p,
                               const char *end, const char **ret_next, struct tide_error *err)
{
    p += *p == '-';
    if (TIDE_UNLIKELY(!is_digit(p, end))) {
        return fail_digit(reader, p, err);
    }
    p = *p == '0' ? p + 1 : pass_digits(p, end);
    if (p < end && *p == '.') {
        if (!is_digit(++p, end)) {
            return fail_digit(reader, p, err);
        }
        p = pass_digits(p, end);
    }
    if (p < end && (*p == 'e' || *p == 'E')) {
        p++;
        p += p < end && (*p == '+' || *p == '-');
        if (!is_digit(p, end)) {
            return fail_digit(reader, p, err);
        }
        p = pass_digits(p, end);
    }
    *ret_next = p;
    return TIDE_OK;
}

INLINE bool inside_object(const struct tide_json_reader *reader)
{
    size_t level = reader->depth - 1;
    return (reader->is_object[level / 64] >> (level % 64) & 1) != 0;
}

INLINE void value_is_over(struct tide_json_reader *reader)
{
    reader->expect = reader->depth == 0 ? EXPECT_NOTHING : EXPECT_NEXT;
}

INLINE tide_status open_level(struct tide_json_reader *reader, const char *p, bool is_object,
                              struct tide_json_token *token, struct tide_error *err)
{
    if (TIDE_UNLIKELY(reader->depth >= reader->depth_max)) {
        return fail_at(reader, p, "nested too deep", err);
    }
    size_t level = reader->depth++;
    uint64_t bit = UINT64_C(1) << (level % 64);
    uint64_t *word = &reader->is_object[level / 64];
    *word = is_object ? *word | bit : *word & ~bit;
    reader->expect = is_object ? EXPECT_FIRST_KEY : EXPECT_FIRST_ITEM;
    token->type = is_object ? TIDE_JSON_OBJECT_BEGIN : TIDE_JSON_ARRAY_BEGIN;
    token->text = tide_str_of(p, 1);
    return TIDE_OK;
}

INLINE tide_status close_level(struct tide_json_reader *reader, const char *p, const char *end,
                               struct tide_json_token *token, struct tide_error *err)
{
    if (TIDE_UNLIKELY(p == end)) {
        return fail_end(reader, err);
    }
    bool is_object = inside_object(reader);
    if (TIDE_UNLIKELY(*p != (is_object ? '}' : ']'))) {
        return fail_at(reader, p, is_object ? "wanted `,` or `}`" : "wanted `,` or `]`", err);
    }
    reader->depth--;
    token->type = is_object ? TIDE_JSON_OBJECT_END : TIDE_JSON_ARRAY_END;
    token->text = tide_str_of(p, 1);
    value_is_over(reader);
    return TIDE_OK;
}

static tide_status read_literal(struct tide_json_reader *reader, const char *p, const char *end,
                                struct tide_json_token *token, struct tide_error *err)
{
    tide_str word = *p == 't' ? TIDE_STR("true") : *p == 'f' ? TIDE_STR("false") : TIDE_STR("null");
    size_t left = (size_t)(end - p);
    if (!tide_str_starts_with(tide_str_of(p, left), word)) {
        return fail_at(reader, p, "no such word", err);
    }
    token->type = *p == 't' ? TIDE_JSON_TRUE : *p == 'f' ? TIDE_JSON_FALSE : TIDE_JSON_NULL;
    token->text = tide_str_of(p, word.len);
    value_is_over(reader);
    return TIDE_OK;
}

INLINE tide_status read_value(struct tide_json_reader *reader, const char *p, const char *end,
                              struct tide_json_token *token, const char **ret_next,
                              struct tide_error *err)
{
    if (TIDE_UNLIKELY(p == end)) {
        return fail_end(reader, err);
    }
    if (*p == '"') {
        TIDE_TRY(read_string(reader, p, end, token, ret_next, err));
        token->type = TIDE_JSON_STRING;
        value_is_over(reader);
        return TIDE_OK;
    }
    token->has_escapes = false;
    if (*p == '-' || is_digit(p, end)) {
        TIDE_TRY(read_number(reader, p, end, ret_next, err));
        token->type = TIDE_JSON_NUMBER;
        token->text = tide_str_of(p, (size_t)(*ret_next - p));
        value_is_over(reader);
        return TIDE_OK;
    }
    if (*p == '{' || *p == '[') {
        TIDE_TRY(open_level(reader, p, *p == '{', token, err));
    } else if (*p == 't' || *p == 'f' || *p == 'n') {
        TIDE_TRY(read_literal(reader, p, end, token, err));
    } else {
        return fail_at(reader, p, "wanted a value", err);
    }
    *ret_next = p + token->text.len;
    return TIDE_OK;
}

/* A key with its colon. */
INLINE tide_status read_key(struct tide_json_reader *reader, const char *p, const char *end,
                            struct tide_json_token *token, const char **ret_next,
                            struct tide_error *err)
{
    if (TIDE_UNLIKELY(p == end)) {
        return fail_end(reader, err);
    }
    if (TIDE_UNLIKELY(*p != '"')) {
        return fail_at(reader, p, "wanted a key in quotes", err);
    }
    TIDE_TRY(read_string(reader, p, end, token, &p, err));
    p = skip_space(p, end);
    if (TIDE_UNLIKELY(p == end)) {
        return fail_end(reader, err);
    }
    if (TIDE_UNLIKELY(*p != ':')) {
        return fail_at(reader, p, "wanted `:` after a key", err);
    }
    token->type = TIDE_JSON_KEY;
    reader->expect = EXPECT_VALUE;
    *ret_next = p + 1;
    return TIDE_OK;
}

/* After a value inside an object or array: a comma and what it announces, or the end. */
INLINE tide_status read_next(struct tide_json_reader *reader, const char *p, const char *end,
                             struct tide_json_token *token, const char **ret_next,
                             struct tide_error *err)
{
    if (p < end && *p == ',') {
        p = skip_space(p + 1, end);
        return inside_object(reader) ? read_key(reader, p, end, token, ret_next, err)
                                     : read_value(reader, p, end, token, ret_next, err);
    }
    token->has_escapes = false;
    *ret_next = p + 1;
    return close_level(reader, p, end, token, err);
}

/* The first item or key of an array or object, or its end. */
INLINE tide_status read_first(struct tide_json_reader *reader, const char *p, const char *end,
                              struct tide_json_token *token, const char **ret_next,
                              struct tide_error *err)
{
    bool is_object = reader->expect == EXPECT_FIRST_KEY;
    if (p < end && *p == (is_object ? '}' : ']')) {
        token->has_escapes = false;
        *ret_next = p + 1;
        return close_level(reader, p, end, token, err);
    }
    return is_object ? read_key(reader, p, end, token, ret_next, err)
                     : read_value(reader, p, end, token, ret_next, err);
}

static tide_status read_nothing(const struct tide_json_reader *reader, const char *p,
                                const char *end, struct tide_json_token *token,
                                struct tide_error *err)
{
    if (p < end) {
        return fail_at(reader, p, "more follows after the value", err);
    }
    *token = (struct tide_json_token){.type = TIDE_JSON_END, .text = {end, 0}};
    return TIDE_OK;
}

INLINE tide_status step(struct tide_json_reader *reader, struct tide_json_token *token,
                        struct tide_error *err)
{
    const char *end = reader->input.ptr + reader->input.len;
    const char *p = skip_space(reader->input.ptr + reader->pos, end);
    const char *next = p;
    if (reader->expect == EXPECT_NEXT) {
        TIDE_TRY(read_next(reader, p, end, token, &next, err));
    } else if (reader->expect == EXPECT_VALUE) {
        TIDE_TRY(read_value(reader, p, end, token, &next, err));
    } else if (reader->expect == EXPECT_NOTHING) {
        TIDE_TRY(read_nothing(reader, p, end, token, err));
    } else {
        TIDE_TRY(read_first(reader, p, end, token, &next, err));
    }
    reader->pos = (size_t)(next - reader->input.ptr);
    return TIDE_OK;
}

void tide_json_reader_init(struct tide_json_reader *reader, tide_str input, size_t depth_max)
{
    TIDE_ASSERT(depth_max <= TIDE_JSON_DEPTH_MAX);
    if (input.ptr == NULL) {
        input = TIDE_STR("");
    }
    *reader = (struct tide_json_reader){.input = input, .depth_max = depth_max};
    reader->expect = EXPECT_VALUE;
}

tide_status tide_json_next(struct tide_json_reader *reader, struct tide_json_token *ret_token,
                           struct tide_error *err)
{
    struct tide_json_token token = {0};
    TIDE_TRY(step(reader, &token, err));
    *ret_token = token;
    return TIDE_OK;
}

static const char *token_start(const struct tide_json_token *token)
{
    bool is_quoted = token->type == TIDE_JSON_STRING || token->type == TIDE_JSON_KEY;
    return is_quoted ? token->text.ptr - 1 : token->text.ptr;
}

/* Reads on until the innermost open level is closed. */
static tide_status pass_level(struct tide_json_reader *reader, struct tide_error *err)
{
    /* a copy, so that the compiler may keep the state in registers */
    struct tide_json_reader local = *reader;
    struct tide_json_token token = {0};
    size_t outside = local.depth - 1;
    while (local.depth > outside) {
        TIDE_TRY(step(&local, &token, err));
    }
    *reader = local;
    return TIDE_OK;
}

tide_status tide_json_skip_rest(struct tide_json_reader *reader,
                                const struct tide_json_token *first, tide_str *ret_raw,
                                struct tide_error *err)
{
    const char *start = token_start(first);
    if (first->type == TIDE_JSON_OBJECT_BEGIN || first->type == TIDE_JSON_ARRAY_BEGIN) {
        TIDE_TRY(pass_level(reader, err));
    }
    *ret_raw = tide_str_of(start, (size_t)(reader->input.ptr + reader->pos - start));
    return TIDE_OK;
}

tide_status tide_json_skip(struct tide_json_reader *reader, tide_str *ret_raw,
                           struct tide_error *err)
{
    struct tide_json_token first = {0};
    TIDE_TRY(step(reader, &first, err));
    if (first.type == TIDE_JSON_END || first.type == TIDE_JSON_KEY ||
        first.type == TIDE_JSON_OBJECT_END || first.type == TIDE_JSON_ARRAY_END) {
        return fail_at(reader, token_start(&first), "wanted a value", err);
    }
    return tide_json_skip_rest(reader, &first, ret_raw, err);
}

tide_status tide_json_check(tide_str text, size_t depth_max, struct tide_error *err)
{
    struct tide_json_reader reader;
    struct tide_json_token token = {0};
    tide_str raw = {0};
    tide_json_reader_init(&reader, text, depth_max);
    TIDE_TRY(tide_json_skip(&reader, &raw, err));
    return step(&reader, &token, err);
}
