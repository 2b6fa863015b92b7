#include "cmocka_prelude.h"

#include "base/fsio.h"
#include "base/limits.h"
#include "format/json_reader.h"
#include "format/json_writer.h"
#include "format/record.h"
#include "source/postgres/pg_copy_text.h"
#include "source/postgres/pg_value.h"

#include <stdio.h>
#include <stdlib.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Oids of pg_type that the tests name. */
enum {
    OID_BOOL = 16,
    OID_BYTEA = 17,
    OID_INT8 = 20,
    OID_INT4 = 23,
    OID_TEXT = 25,
    OID_JSON = 114,
    OID_FLOAT8 = 701,
    OID_NUMERIC = 1700,
    OID_JSONB = 3802,
    OID_BOOL_ARRAY = 1000,
    OID_BYTEA_ARRAY = 1001,
    OID_INT4_ARRAY = 1007,
    OID_TEXT_ARRAY = 1009,
    OID_BOX_ARRAY = 1020,
};

/* A value of a copy of the text in memory of just its size, so that a sanitizer sees a byte read
 * too far. */
struct made {
    struct tide_arena arena;
    struct tide_pg_scratch scratch;
    char *text;
    struct tide_value value;
    struct tide_error err;
    tide_status status;
};

static void make_value(struct made *made, uint32_t oid, bool is_key, tide_str text)
{
    *made = (struct made){.text = malloc(text.len > 0 ? text.len : 1)};
    assert_non_null(made->text);
    if (text.len > 0) {
        memcpy(made->text, text.ptr, text.len);
    }
    made->status = tide_pg_value(tide_pg_rule_of(oid, is_key), tide_str_of(made->text, text.len),
                                 &made->arena, &made->scratch, &made->value, &made->err);
}

static void made_done(struct made *made)
{
    tide_arena_done(&made->arena);
    tide_pg_scratch_done(&made->scratch);
    free(made->text);
}

static void print_value(struct tide_buf *out, struct tide_value value)
{
    static const char *const names[] = {"null",    "unchanged", "absent", "bool",
                                        "integer", "decimal",   "real",   "text",
                                        "raw",     "bytes",     "json"};
    struct tide_error err;
    tide_buf_printf(out, "%s ", names[value.kind]);
    size_t start = out->len;
    tide_record_append_value(out, value);
    tide_str json = {out->ptr + start, out->len - start};
    assert_int_equal(tide_json_check(json, TIDE_JSON_DEPTH_MAX - 2, &err), TIDE_OK);
}

/* The recorded values of a real server. */

static void read_golden(const char *name, struct tide_buf *buf)
{
    char path[512];
    struct tide_error err = {0};
    (void)snprintf(path, sizeof(path), "%s/golden/pg_value/%s", TIDE_TEST_ROOT, name);
    if (tide_file_read(path, 4 * TIDE_MIB, buf, &err) != TIDE_OK) {
        fail_msg("%s", err.message);
    }
}

static bool next_line(tide_str *rest, tide_str *ret_line)
{
    if (rest->len == 0) {
        return false;
    }
    const char *feed = memchr(rest->ptr, '\n', rest->len);
    assert_non_null(feed);
    *ret_line = tide_str_of(rest->ptr, (size_t)(feed - rest->ptr));
    *rest = tide_str_of(feed + 1, rest->len - ret_line->len - 1);
    return true;
}

/* A line of COPY: oid and text. */
static void read_recorded(tide_str line, struct tide_arena *arena, uint32_t *ret_oid,
                          tide_str *ret_text)
{
    struct tide_pg_field fields[2];
    struct tide_error err = {0};
    uint64_t oid = 0;
    assert_int_equal(tide_pg_copy_line(line, 2, arena, fields, &err), TIDE_OK);
    assert_true(tide_str_to_u64(tide_pg_field_str(fields[0]), &oid));
    *ret_oid = (uint32_t)oid;
    *ret_text = tide_pg_field_str(fields[1]);
}

static void value_recorded_values_are_golden(void **state)
{
    (void)state;
    TIDE_CLEANUP(tide_buf_done) struct tide_buf recording = {0};
    TIDE_CLEANUP(tide_buf_done) struct tide_buf want = {0};
    TIDE_CLEANUP(tide_buf_done) struct tide_buf got = {0};
    TIDE_CLEANUP(tide_arena_done) struct tide_arena arena = {0};
    read_golden("values.copy", &recording);
    read_golden("values.txt", &want);
    tide_str rest = tide_buf_str(&recording);
    for (tide_str line; next_line(&rest, &line);) {
        if (line.len > 0 && line.ptr[0] == '#') {
            tide_buf_printf(&got, "%.*s\n", TIDE_STR_ARG(line));
            continue;
        }
        struct made made;
        uint32_t oid = 0;
        tide_str text = {0};
        read_recorded(line, &arena, &oid, &text);
        make_value(&made, oid, false, text);
        if (made.status != TIDE_OK) {
            fail_msg("%.*s: %s", TIDE_STR_ARG(line), made.err.message);
        }
        print_value(&got, made.value);
        tide_buf_append_char(&got, '\n');
        made_done(&made);
    }
    if (!tide_str_equal(tide_buf_str(&got), tide_buf_str(&want))) {
        (void)fputs(tide_buf_cstr(&got), stderr);
        fail_msg("values.txt differs from what was just written");
    }
}

/* A timestamp's T stands for the server's space, which reads both. */
static void put_space_back(struct tide_buf *text, uint32_t oid)
{
    char *mark =
        (oid == 1114 || oid == 1184) && text->len > 0 ? memchr(text->ptr, 'T', text->len) : NULL;
    if (mark != NULL) {
        *mark = ' ';
    }
}

/* What comes back from a key column's value is what the server sent. */
static void value_to_text_is_the_servers_text_of_every_key(void **state)
{
    (void)state;
    TIDE_CLEANUP(tide_buf_done) struct tide_buf recording = {0};
    TIDE_CLEANUP(tide_arena_done) struct tide_arena arena = {0};
    read_golden("values.copy", &recording);
    tide_str rest = tide_buf_str(&recording);
    size_t count = 0;
    for (tide_str line; next_line(&rest, &line);) {
        if (line.len > 0 && line.ptr[0] == '#') {
            continue;
        }
        TIDE_CLEANUP(tide_buf_done) struct tide_buf back = {0};
        struct made made;
        uint32_t oid = 0;
        tide_str text = {0};
        read_recorded(line, &arena, &oid, &text);
        make_value(&made, oid, true, text);
        assert_int_equal(made.status, TIDE_OK);
        assert_int_not_equal(made.value.kind, TIDE_VALUE_JSON);
        assert_int_equal(tide_pg_value_to_text(made.value, &back, &made.err), TIDE_OK);
        put_space_back(&back, oid);
        assert_true(tide_str_equal(tide_buf_str(&back), text));
        made_done(&made);
        count++;
    }
    assert_true(count > 140);
}

/* An array cut anywhere is no array. */
static void value_every_truncation_of_an_array_is_corrupt(void **state)
{
    (void)state;
    TIDE_CLEANUP(tide_buf_done) struct tide_buf recording = {0};
    TIDE_CLEANUP(tide_arena_done) struct tide_arena arena = {0};
    read_golden("values.copy", &recording);
    tide_str rest = tide_buf_str(&recording);
    size_t count = 0;
    for (tide_str line; next_line(&rest, &line);) {
        uint32_t oid = 0;
        tide_str text = {0};
        if (line.len > 0 && line.ptr[0] == '#') {
            continue;
        }
        read_recorded(line, &arena, &oid, &text);
        struct made made;
        make_value(&made, oid, false, text);
        bool is_array = made.value.kind == TIDE_VALUE_JSON && oid != OID_JSON && oid != OID_JSONB;
        made_done(&made);
        for (size_t len = 0; is_array && len < text.len; len++) {
            make_value(&made, oid, false, tide_str_of(text.ptr, len));
            assert_int_equal(made.status, TIDE_CORRUPT);
            made_done(&made);
        }
        count += is_array;
    }
    assert_true(count > 25);
}

/* Texts that no server sends. */

static void value_wrong_texts_are_corrupt(void **state)
{
    (void)state;

    /* clang-format off */
    static const struct { uint32_t oid; const char *text; } cases[] = {
        {OID_BOOL, ""}, {OID_BOOL, "true"}, {OID_BOOL, "T"}, {OID_BOOL, "1"}, {OID_BOOL, "tf"},
        {OID_INT4, ""}, {OID_INT4, "-"}, {OID_INT4, "+1"}, {OID_INT4, "01"}, {OID_INT4, "1 "},
        {OID_INT4, " 1"}, {OID_INT4, "1.0"}, {OID_INT4, "1e3"}, {OID_INT4, "0x1"}, {OID_INT4, "-01"},
        {OID_INT4, "NaN"}, {OID_INT8, "1,2"},
        {OID_NUMERIC, ""}, {OID_NUMERIC, "."}, {OID_NUMERIC, ".5"}, {OID_NUMERIC, "5."},
        {OID_NUMERIC, "-"}, {OID_NUMERIC, "-.5"}, {OID_NUMERIC, "00"}, {OID_NUMERIC, "1.5.2"},
        {OID_NUMERIC, "nan"}, {OID_NUMERIC, "+Infinity"}, {OID_NUMERIC, "-NaN"},
        {OID_NUMERIC, "Infinity "}, {OID_NUMERIC, "1e"}, {OID_NUMERIC, "1_000"},
        {OID_FLOAT8, "1e"}, {OID_FLOAT8, "1e+"}, {OID_FLOAT8, "e5"}, {OID_FLOAT8, "1e5.0"},
        {OID_FLOAT8, "0x1p3"}, {OID_FLOAT8, "inf"}, {OID_FLOAT8, "1.e5"}, {OID_FLOAT8, ""},
        {OID_BYTEA, ""}, {OID_BYTEA, "\\"}, {OID_BYTEA, "\\x0"}, {OID_BYTEA, "\\x0g"},
        {OID_BYTEA, "\\xg0"}, {OID_BYTEA, "\\x 0"}, {OID_BYTEA, "x00"}, {OID_BYTEA, "\\000"},
        {OID_BYTEA, "\\X00"}, {OID_BYTEA, "\\x@@"}, {OID_BYTEA, "\\x``"}, {OID_BYTEA, "\\x\xff\xff"},
        {OID_INT4_ARRAY, ""}, {OID_INT4_ARRAY, "1"}, {OID_INT4_ARRAY, "{"}, {OID_INT4_ARRAY, "}"},
        {OID_INT4_ARRAY, "{}}"}, {OID_INT4_ARRAY, "{{}}"}, {OID_INT4_ARRAY, "{},{}"},
        {OID_INT4_ARRAY, "{1}x"}, {OID_INT4_ARRAY, "{1},"}, {OID_INT4_ARRAY, "{1,}"},
        {OID_INT4_ARRAY, "{,1}"}, {OID_INT4_ARRAY, "{1,,2}"}, {OID_INT4_ARRAY, "{1 2}"},
        {OID_INT4_ARRAY, "{1;2}"}, {OID_INT4_ARRAY, "{a}"}, {OID_INT4_ARRAY, "{null}"},
        {OID_INT4_ARRAY, "{\"NULL\"}"}, {OID_INT4_ARRAY, "{1,{2}}"}, {OID_INT4_ARRAY, "{{1},2}"},
        {OID_INT4_ARRAY, "{{1},{{2}}}"}, {OID_INT4_ARRAY, "{{1}{2}}"}, {OID_INT4_ARRAY, "{1{2}}"},
        {OID_INT4_ARRAY, "{{{{{{{1}}}}}}}"}, {OID_INT4_ARRAY, "{{1}"}, {OID_INT4_ARRAY, "{ }"},
        {OID_TEXT_ARRAY, "{\"a}"}, {OID_TEXT_ARRAY, "{\"a\\\"}"}, {OID_TEXT_ARRAY, "{\"a\\"},
        {OID_TEXT_ARRAY, "{a\"b}"}, {OID_TEXT_ARRAY, "{\"a\"b}"}, {OID_TEXT_ARRAY, "{a\\b}"},
        {OID_TEXT_ARRAY, "{\"a\"\"b\"}"},
        {OID_BOOL_ARRAY, "{true}"}, {OID_BYTEA_ARRAY, "{\"x00\"}"}, {OID_BYTEA_ARRAY, "{00}"},
        {OID_BYTEA_ARRAY, "{\"\\\\x0\"}"}, {OID_BYTEA_ARRAY, "{\"\\\\x0g\"}"},
        {OID_BYTEA_ARRAY, "{\"\"}"}, {OID_BOX_ARRAY, "{(1,1),(0,0);}"},
    };

    /* clang-format on */
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct made made;
        make_value(&made, cases[i].oid, false, tide_str_from(cases[i].text));
        if (made.status != TIDE_CORRUPT) {
            fail_msg("%u '%s' is %s", cases[i].oid, cases[i].text, tide_status_name(made.status));
        }
        assert_true(made.value.ptr == NULL && made.err.message[0] != '\0');
        made_done(&made);
    }
}

static void value_text_without_utf8_is_raw(void **state)
{
    (void)state;

    /* clang-format off */
    static const struct { uint32_t oid; const char *text; const char *want; } cases[] = {
        {OID_TEXT, "a\xff", "raw {\"$text\":\"Yf8=\"}"},
        {18, "\xe4", "raw {\"$text\":\"5A==\"}"}, /* "char" */
        {OID_JSON, "\"\xff\"", "raw {\"$text\":\"Iv8i\"}"},
        {OID_JSON, "nope", "text \"nope\""},
        {OID_TEXT_ARRAY, "{\xff}", "json [{\"$text\":\"/w==\"}]"},
        {OID_TEXT_ARRAY, "[0:0]={\xff}", "raw {\"$text\":\"WzA6MF09e/99\"}"},
        {99999, "\\x00", "text \"\\\\x00\""}, /* no type that is known */
    };

    /* clang-format on */
    for (size_t i = 0; i < COUNT(cases); i++) {
        TIDE_CLEANUP(tide_buf_done) struct tide_buf got = {0};
        struct made made;
        make_value(&made, cases[i].oid, false, tide_str_from(cases[i].text));
        assert_int_equal(made.status, TIDE_OK);
        print_value(&got, made.value);
        assert_string_equal(tide_buf_cstr(&got), cases[i].want);
        made_done(&made);
    }
}

static void value_plain_texts_are_not_copied(void **state)
{
    (void)state;

    static const struct {
        uint32_t oid;
        const char *text;
    } cases[] = {{OID_INT4, "17"},     {OID_NUMERIC, "1.50"}, {OID_FLOAT8, "1e+20"},
                 {OID_TEXT, "some"},   {OID_JSON, "[1]"},     {OID_JSONB, "{\"a\": 1}"},
                 {1184, "2026-11-29"}, {OID_TEXT, ""},        {OID_INT4_ARRAY, "[0:0]={1}"}};

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct made made;
        make_value(&made, cases[i].oid, false, tide_str_from(cases[i].text));
        assert_int_equal(made.status, TIDE_OK);
        assert_ptr_equal(made.value.ptr, made.text);
        assert_null(made.arena.block);
        made_done(&made);
    }
}

/* Random bytes and arrays there and back. */

static uint64_t next_random(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return *seed >> 33;
}

static void value_random_bytes_round_trip(void **state)
{
    (void)state;
    uint64_t seed = 4;
    for (int i = 0; i < 3000; i++) {
        TIDE_CLEANUP(tide_buf_done) struct tide_buf text = {0};
        char bytes[64];
        struct made made;
        size_t len = next_random(&seed) % sizeof(bytes);
        for (size_t at = 0; at < len; at++) {
            bytes[at] = (char)(unsigned char)next_random(&seed);
        }
        struct tide_value value = {bytes, (uint32_t)len, TIDE_VALUE_BYTES};
        assert_int_equal(tide_pg_value_to_text(value, &text, &made.err), TIDE_OK);
        make_value(&made, OID_BYTEA, true, tide_buf_str(&text));
        assert_int_equal(made.status, TIDE_OK);
        assert_true(tide_value_equal(made.value, value));
        made_done(&made);
    }
}

/* A text element, as the server writes it into an array (always in quotes, which it may) and as it
 * must come out. */
static void random_element(struct tide_buf *text, struct tide_buf *want, uint64_t *seed)
{
    static const char *const parts[] = {"a",  "\"",   "\\", ",", "{",   "}",
                                        "\n", "\x01", "Ж",  " ", "NULL"};
    TIDE_CLEANUP(tide_buf_done) struct tide_buf plain = {0};
    if (next_random(seed) % 6 == 0) {
        tide_buf_append_str(text, TIDE_STR("NULL"));
        tide_buf_append_str(want, TIDE_STR("null"));
        return;
    }
    for (size_t i = next_random(seed) % 8; i > 0; i--) {
        tide_buf_append_str(&plain, tide_str_from(parts[next_random(seed) % COUNT(parts)]));
    }
    tide_buf_append_char(text, '"');
    for (size_t i = 0; i < plain.len; i++) {
        if (plain.ptr[i] == '"' || plain.ptr[i] == '\\') {
            tide_buf_append_char(text, '\\');
        }
        tide_buf_append_char(text, plain.ptr[i]);
    }
    tide_buf_append_char(text, '"');
    tide_json_append_string(want, tide_buf_str(&plain));
}

/* Brackets around and marks between elements, by an odometer over the dimensions. */
static void random_array(struct tide_buf *text, struct tide_buf *want, uint64_t *seed)
{
    size_t sizes[6];
    size_t at[6] = {0};
    size_t depth = 1 + next_random(seed) % COUNT(sizes);
    for (size_t i = 0; i < depth; i++) {
        sizes[i] = 1 + next_random(seed) % 3;
    }
    size_t opened = depth;
    while (true) {
        for (size_t i = 0; i < opened; i++) {
            tide_buf_append_char(text, '{');
            tide_buf_append_char(want, '[');
        }
        random_element(text, want, seed);
        size_t level = depth;
        while (level > 0 && ++at[level - 1] == sizes[level - 1]) {
            at[--level] = 0;
            tide_buf_append_char(text, '}');
            tide_buf_append_char(want, ']');
        }
        if (level == 0) {
            return;
        }
        opened = depth - level;
        tide_buf_append_char(text, ',');
        tide_buf_append_char(want, ',');
    }
}

static void value_random_arrays_become_json(void **state)
{
    (void)state;
    uint64_t seed = 6;
    for (int i = 0; i < 5000; i++) {
        TIDE_CLEANUP(tide_buf_done) struct tide_buf text = {0};
        TIDE_CLEANUP(tide_buf_done) struct tide_buf want = {0};
        struct made made;
        random_array(&text, &want, &seed);
        make_value(&made, OID_TEXT_ARRAY, false, tide_buf_str(&text));
        if (made.status != TIDE_OK) {
            fail_msg("%s: %s", tide_buf_cstr(&text), made.err.message);
        }
        assert_int_equal(made.value.kind, TIDE_VALUE_JSON);
        if (!tide_str_equal(tide_value_str(made.value), tide_buf_str(&want))) {
            fail_msg("%s should be %s", tide_buf_cstr(&text), tide_buf_cstr(&want));
        }
        made_done(&made);
    }
}

/* Rows. */

static void row_values_keeps_null_and_unchanged(void **state)
{
    (void)state;
    TIDE_CLEANUP(tide_arena_done) struct tide_arena arena = {0};
    TIDE_CLEANUP(tide_pg_scratch_done) struct tide_pg_scratch scratch = {0};
    const struct tide_pg_rule rules[] = {
        tide_pg_rule_of(OID_INT4, true), tide_pg_rule_of(OID_TEXT, false),
        tide_pg_rule_of(OID_BOOL, false), tide_pg_rule_of(OID_BOOL, false)};
    struct tide_pg_field fields[] = {{"7", 1, TIDE_PG_FIELD_TEXT},
                                     {NULL, 0, TIDE_PG_FIELD_UNCHANGED},
                                     {NULL, 0, TIDE_PG_FIELD_NULL},
                                     {"t", 1, TIDE_PG_FIELD_TEXT}};
    struct tide_value values[4];
    struct tide_error err = {0};
    size_t index = 99;
    assert_int_equal(tide_pg_row_values(rules, fields, 4, &arena, &scratch, values, &index, &err),
                     TIDE_OK);
    assert_int_equal(index, 99);
    assert_int_equal(values[0].kind, TIDE_VALUE_INTEGER);
    assert_int_equal(values[1].kind, TIDE_VALUE_UNCHANGED);
    assert_int_equal(values[2].kind, TIDE_VALUE_NULL);
    assert_int_equal(values[3].kind, TIDE_VALUE_BOOL);
    fields[2] = (struct tide_pg_field){"x", 1, TIDE_PG_FIELD_TEXT};
    assert_int_equal(tide_pg_row_values(rules, fields, 4, &arena, &scratch, values, &index, &err),
                     TIDE_CORRUPT);
    assert_int_equal(index, 2);
}

static void value_to_text_refuses_what_has_none(void **state)
{
    (void)state;
    static const struct tide_value values[] = {{NULL, 0, TIDE_VALUE_NULL},
                                               {NULL, 0, TIDE_VALUE_UNCHANGED},
                                               {NULL, 0, TIDE_VALUE_ABSENT},
                                               {"\xff", 1, TIDE_VALUE_RAW_TEXT}};
    for (size_t i = 0; i < COUNT(values); i++) {
        TIDE_CLEANUP(tide_buf_done) struct tide_buf text = {0};
        struct tide_error err = {0};
        assert_int_equal(tide_pg_value_to_text(values[i], &text, &err), TIDE_INVALID);
        assert_int_equal(text.len, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(value_recorded_values_are_golden),
        cmocka_unit_test(value_to_text_is_the_servers_text_of_every_key),
        cmocka_unit_test(value_every_truncation_of_an_array_is_corrupt),
        cmocka_unit_test(value_wrong_texts_are_corrupt),
        cmocka_unit_test(value_text_without_utf8_is_raw),
        cmocka_unit_test(value_plain_texts_are_not_copied),
        cmocka_unit_test(value_random_bytes_round_trip),
        cmocka_unit_test(value_random_arrays_become_json),
        cmocka_unit_test(row_values_keeps_null_and_unchanged),
        cmocka_unit_test(value_to_text_refuses_what_has_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
