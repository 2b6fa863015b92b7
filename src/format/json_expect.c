/* Reading objects of a known form, and resolving escapes: the slower half of json_reader.h. */
#include "format/json_reader.h"

static const char *type_name(enum tide_json_type type)
{
    static const char *const names[] = {
        [TIDE_JSON_END] = "the end",     [TIDE_JSON_OBJECT_BEGIN] = "an object",
        [TIDE_JSON_OBJECT_END] = "`}`",  [TIDE_JSON_ARRAY_BEGIN] = "an array",
        [TIDE_JSON_ARRAY_END] = "`]`",   [TIDE_JSON_KEY] = "a key",
        [TIDE_JSON_STRING] = "a string", [TIDE_JSON_NUMBER] = "a number",
        [TIDE_JSON_TRUE] = "true",       [TIDE_JSON_FALSE] = "false",
        [TIDE_JSON_NULL] = "null",
    };
    TIDE_ASSERT((size_t)type < sizeof(names) / sizeof(names[0]));
    return names[type];
}

static tide_status fail_wanted(const struct tide_json_reader *reader,
                               const struct tide_json_token *token, const char *wanted,
                               struct tide_error *err)
{
    bool is_quoted = token->type == TIDE_JSON_STRING || token->type == TIDE_JSON_KEY;
    size_t at = (size_t)(token->text.ptr - reader->input.ptr) - (is_quoted ? 1 : 0);
    return tide_fail(err, TIDE_CORRUPT, "at byte %zu: wanted %s, found %s", at, wanted,
                     type_name(token->type));
}

tide_status tide_json_expect(struct tide_json_reader *reader, enum tide_json_type type,
                             struct tide_json_token *ret_token, struct tide_error *err)
{
    struct tide_json_token token = {0};
    TIDE_TRY(tide_json_next(reader, &token, err));
    if (token.type != type) {
        return fail_wanted(reader, &token, type_name(type), err);
    }
    *ret_token = token;
    return TIDE_OK;
}

tide_status tide_json_expect_u64(struct tide_json_reader *reader, uint64_t *ret_value,
                                 struct tide_error *err)
{
    struct tide_json_token token = {0};
    TIDE_TRY(tide_json_next(reader, &token, err));
    if (token.type != TIDE_JSON_NUMBER || !tide_str_to_u64(token.text, ret_value)) {
        return fail_wanted(reader, &token, "an integer within 0 and 2^64-1", err);
    }
    return TIDE_OK;
}

tide_status tide_json_expect_i64(struct tide_json_reader *reader, int64_t *ret_value,
                                 struct tide_error *err)
{
    struct tide_json_token token = {0};
    TIDE_TRY(tide_json_next(reader, &token, err));
    if (token.type != TIDE_JSON_NUMBER || !tide_str_to_i64(token.text, ret_value)) {
        return fail_wanted(reader, &token, "an integer of 64 bits", err);
    }
    return TIDE_OK;
}

tide_status tide_json_expect_bool(struct tide_json_reader *reader, bool *ret_value,
                                  struct tide_error *err)
{
    struct tide_json_token token = {0};
    TIDE_TRY(tide_json_next(reader, &token, err));
    if (token.type != TIDE_JSON_TRUE && token.type != TIDE_JSON_FALSE) {
        return fail_wanted(reader, &token, "true or false", err);
    }
    *ret_value = token.type == TIDE_JSON_TRUE;
    return TIDE_OK;
}

tide_status tide_json_expect_string(struct tide_json_reader *reader, struct tide_arena *arena,
                                    tide_str *ret_text, struct tide_error *err)
{
    struct tide_json_token token = {0};
    TIDE_TRY(tide_json_expect(reader, TIDE_JSON_STRING, &token, err));
    *ret_text = tide_json_unescape(&token, arena);
    return TIDE_OK;
}

/* The reader has checked the digits. */
static unsigned hex_unit(const char *p)
{
    unsigned unit = 0;
    for (int i = 0; i < 4; i++) {
        int digit = p[i] <= '9' ? p[i] - '0' : (p[i] | 0x20) - 'a' + 10;
        unit = unit << 4 | (unsigned)digit;
    }
    return unit;
}

static char *put_utf8(char *to, unsigned code)
{
    if (code < 0x80) {
        *to++ = (char)code;
        return to;
    }
    if (code < 0x800) {
        *to++ = (char)(0xc0 | code >> 6);
    } else if (code < 0x10000) {
        *to++ = (char)(0xe0 | code >> 12);
        *to++ = (char)(0x80 | (code >> 6 & 63));
    } else {
        *to++ = (char)(0xf0 | code >> 18);
        *to++ = (char)(0x80 | (code >> 12 & 63));
        *to++ = (char)(0x80 | (code >> 6 & 63));
    }
    *to++ = (char)(0x80 | (code & 63));
    return to;
}

/* Writes what the escape at `*from` (a backslash) stands for and moves `*from` past it. */
static char *put_escaped(char *to, const char **from)
{
    static const char letters[] = "bfnrt";
    static const char controls[] = "\b\f\n\r\t";
    const char *p = *from;
    if (p[1] != 'u') {
        const char *letter = strchr(letters, p[1]);
        if (letter != NULL) {
            *to++ = controls[letter - letters];
        } else {
            *to++ = p[1];
        }
        *from = p + 2;
        return to;
    }
    unsigned code = hex_unit(p + 2);
    *from = p + 6;
    if (code >= 0xd800 && code <= 0xdbff) {
        code = 0x10000 + ((code - 0xd800) << 10) + (hex_unit(p + 8) - 0xdc00);
        *from = p + 12;
    }
    return put_utf8(to, code);
}

tide_str tide_json_unescape(const struct tide_json_token *token, struct tide_arena *arena)
{
    TIDE_ASSERT(token->type == TIDE_JSON_KEY || token->type == TIDE_JSON_STRING);
    if (!token->has_escapes) {
        return token->text;
    }
    const char *from = token->text.ptr;
    const char *end = from + token->text.len;
    char *start = tide_arena_bytes(arena, token->text.len); /* escapes only shrink */
    char *to = start;
    while (from < end) {
        const char *escape = memchr(from, '\\', (size_t)(end - from));
        size_t plain = (size_t)((escape == NULL ? end : escape) - from);
        memcpy(to, from, plain);
        to += plain;
        from += plain;
        if (escape != NULL) {
            to = put_escaped(to, &from);
        }
    }
    tide_str text = tide_str_of(start, (size_t)(to - start));
    tide_arena_give_back(arena, token->text.len - text.len);
    return text;
}
