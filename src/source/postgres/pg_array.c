/*
 * Arrays (PostgreSQL manual, "Array Input and Output Syntax"). As the server writes them:
 *
 *     text    = [ bounds '=' ] array            bounds only where one is not 1-based
 *     array   = '{' [ item *( ',' item ) ] '}'  empty only as a whole; ';' for box
 *     item    = array | element                 all elements at one depth
 *     element = 'NULL' | plain | '"' *( any | '\' any ) '"'
 *
 * One pass without recursion: the brackets that are open are all alike, so a count of them is all
 * there is to know.
 */
#include "base/limits.h"
#include "format/record.h"
#include "source/postgres/pg_rule.h"

/* One byte of text becomes at most 17 of JSON (a lone invalid byte as base64 in an object), and a
 * value's length has 32 bits. */
#define TEXT_LEN_MAX ((size_t)UINT32_MAX / 17)

struct parse {
    const char *pos;
    const char *end;
    unsigned depth;      /* brackets open */
    unsigned leaf_depth; /* of the elements; 0: none was seen yet */
    struct tide_pg_rule rule;
    struct tide_buf *json;
    struct tide_buf *element; /* an element without its escapes */
};

static tide_status fail_array(const char *what, const struct parse *parse, struct tide_error *err)
{
    return tide_fail(err, TIDE_CORRUPT,
                     "text of an array from PostgreSQL %s, %zu bytes before its end", what,
                     (size_t)(parse->end - parse->pos));
}

/* The text between quotes, without its escapes: a slice of the input or in parse->element. */
static tide_status read_quoted(struct parse *parse, tide_str *ret_text, struct tide_error *err)
{
    const char *start = ++parse->pos;
    parse->element->len = 0;
    for (const char *p = start; p < parse->end; p++) {
        if (*p == '"') {
            tide_str rest = tide_str_of(start, (size_t)(p - start));
            parse->pos = p + 1;
            *ret_text = rest;
            if (parse->element->len > 0) {
                tide_buf_append_str(parse->element, rest);
                *ret_text = tide_buf_str(parse->element);
            }
            return TIDE_OK;
        }
        if (*p == '\\' && p + 1 < parse->end) {
            tide_buf_append(parse->element, start, (size_t)(p - start));
            start = ++p; /* the escaped character begins the next run */
            tide_buf_append_char(parse->element, *start++);
        }
    }
    return fail_array("has an open quote", parse, err);
}

static tide_status read_plain(struct parse *parse, tide_str *ret_text, struct tide_error *err)
{
    const char *start = parse->pos;
    const char *p = start;
    while (p < parse->end && *p != parse->rule.delimiter && *p != '}') {
        if (*p == '{' || *p == '"' || *p == '\\') {
            return fail_array("has a mark inside a plain element", parse, err);
        }
        p++;
    }
    if (p == start) {
        return fail_array("lacks an element", parse, err);
    }
    parse->pos = p;
    *ret_text = tide_str_of(start, (size_t)(p - start));
    return TIDE_OK;
}

static tide_status append_element(struct parse *parse, tide_str text, struct tide_error *err)
{
    struct tide_value value = {0};
    enum tide_pg_rule_kind kind = (enum tide_pg_rule_kind)parse->rule.element_kind;
    if (kind == TIDE_PG_RULE_BYTES && text.ptr != parse->element->ptr) {
        return fail_array("has a bytea that is not in hex", parse, err); /* `\x` has an escape */
    }
    if (kind == TIDE_PG_RULE_TIMESTAMP && text.ptr != parse->element->ptr) {
        tide_buf_reset(parse->element);
        (void)tide_buf_reserve(parse->element, text.len + 1);
    }
    TIDE_TRY(tide_pg_scalar_value(kind, text, parse->element->ptr, &value, err));
    tide_record_append_value(parse->json, value);
    return TIDE_OK;
}

static tide_status read_element(struct parse *parse, struct tide_error *err)
{
    if (parse->leaf_depth != 0 && parse->leaf_depth != parse->depth) {
        return fail_array("mixes elements and arrays", parse, err);
    }
    parse->leaf_depth = parse->depth;
    tide_str text = {0};
    if (*parse->pos == '"') {
        TIDE_TRY(read_quoted(parse, &text, err));
        return append_element(parse, text, err);
    }
    TIDE_TRY(read_plain(parse, &text, err));
    if (tide_str_equal(text, TIDE_STR("NULL"))) {
        tide_buf_append_str(parse->json, TIDE_STR("null"));
        return TIDE_OK;
    }
    return append_element(parse, text, err);
}

/* `{` as often as it comes. */
static tide_status open_arrays(struct parse *parse, struct tide_error *err)
{
    for (; parse->pos < parse->end && *parse->pos == '{'; parse->pos++) {
        if (++parse->depth > TIDE_PG_ARRAY_DEPTH_MAX) {
            return fail_array("has too many dimensions", parse, err);
        }
        tide_buf_append_char(parse->json, '[');
    }
    if (parse->pos == parse->end) {
        return fail_array("is cut off", parse, err);
    }
    return TIDE_OK;
}

static void close_arrays(struct parse *parse)
{
    for (; parse->pos < parse->end && *parse->pos == '}' && parse->depth > 0; parse->pos++) {
        parse->depth--;
        tide_buf_append_char(parse->json, ']');
    }
}

/* Item after item until the outermost bracket is closed. */
static tide_status read_items(struct parse *parse, struct tide_error *err)
{
    while (true) {
        TIDE_TRY(open_arrays(parse, err));
        TIDE_TRY(read_element(parse, err));
        close_arrays(parse);
        if (parse->depth == 0) {
            break;
        }
        if (parse->pos == parse->end || *parse->pos != parse->rule.delimiter) {
            return fail_array("lacks a mark between elements", parse, err);
        }
        parse->pos++;
        tide_buf_append_char(parse->json, ',');
    }
    if (parse->pos != parse->end) {
        return fail_array("goes on after its last bracket", parse, err);
    }
    return TIDE_OK;
}

static tide_status build_json(struct tide_pg_rule rule, tide_str text,
                              struct tide_pg_scratch *scratch, struct tide_error *err)
{
    struct parse parse = {.pos = text.ptr,
                          .end = text.ptr + text.len,
                          .rule = rule,
                          .json = &scratch->json,
                          .element = &scratch->element};
    tide_buf_reset(parse.json);
    if (text.len == 0 || text.ptr[0] != '{') {
        return fail_array("does not begin with a bracket", &parse, err);
    }
    if (tide_str_equal(text, TIDE_STR("{}"))) {
        tide_buf_append_str(parse.json, TIDE_STR("[]"));
        return TIDE_OK;
    }
    return read_items(&parse, err);
}

tide_status tide_pg_array_value(struct tide_pg_rule rule, tide_str text, struct tide_arena *arena,
                                struct tide_pg_scratch *scratch, struct tide_value *ret_value,
                                struct tide_error *err)
{
    bool has_bounds = text.len > 0 && text.ptr[0] == '[';
    if (has_bounds || text.len > TEXT_LEN_MAX) {
        return tide_pg_scalar_value(TIDE_PG_RULE_TEXT, text, NULL, ret_value, err);
    }
    TIDE_TRY(build_json(rule, text, scratch, err));
    tide_str json = tide_arena_str(arena, tide_buf_str(&scratch->json));
    *ret_value = (struct tide_value){json.ptr, (uint32_t)json.len, TIDE_VALUE_JSON};
    return TIDE_OK;
}
