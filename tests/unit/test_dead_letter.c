#include "cmocka_prelude.h"

#include "base/limits.h"
#include "format/dead_letter.h"

#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define SNAPSHOT     "019acfd5-0b4f-7000-8000-000000000003"

static struct tide_dead_letter row_letter(void)
{
    struct tide_dead_letter letter = {
        .sink = TIDE_STR("all"),
        .store = TIDE_STR("shop.t"),
        .destination = TIDE_STR("file:out \"x\".ndjson"),
        .reason = TIDE_STR("9 bytes, limit 8"),
        .bytes = TIDE_STR("{\"a\":\n1}"),
        .key_json = TIDE_STR("[\"k\"]"),
        .has_seq = true,
        .seq = UINT64_MAX,
        .snapshot_id = SNAPSHOT,
    };
    return letter;
}

static struct tide_dead_letter change_letter(void)
{
    return (struct tide_dead_letter){
        .sink = TIDE_STR("all"),
        .store = TIDE_STR("shop.t"),
        .destination = TIDE_STR("-"),
        .reason = TIDE_STR("r"),
        .bytes = TIDE_STR("x"),
        .key_json = TIDE_STR("{\"id\":7}"),
        .place = {.position = {.lo = 44}, .index = 2, .known = true},
    };
}

static void append(struct tide_buf *buf, const struct tide_dead_letter *letter, size_t bytes_max)
{
    tide_dead_letter_append(buf, letter, (struct tide_dead_letter_id){.hi = 1, .lo = 0xab},
                            1764423600123456, bytes_max, &tide_position_integer);
}

#define HEAD                                                                                       \
    "{\"id\":\"000000000000000100000000000000ab\",\"timestamp\":\"2025-11-29T13:40:00.123Z\","     \
    "\"sink\":\"all\",\"store\":\"shop.t\","

static void append_writes_rows_and_changes(void **state)
{
    (void)state;
    struct tide_buf buf = {0};
    struct tide_dead_letter letter = row_letter();
    append(&buf, &letter, 64);
    letter.key_json = (tide_str){0};
    letter.attempt = 3;
    append(&buf, &letter, 64);
    letter = change_letter();
    append(&buf, &letter, 64);
    letter.incarnation = 2;
    letter.key_json = (tide_str){0};
    append(&buf, &letter, 64);
    assert_string_equal(
        tide_buf_cstr(&buf),
        HEAD "\"destination\":\"file:out \\\"x\\\".ndjson\",\"reason\":\"9 bytes, limit 8\","
             "\"snapshot_id\":\"" SNAPSHOT "\",\"seq\":18446744073709551615,"
             "\"row_key\":\"[\\\"k\\\"]\",\"bytes\":8,\"record\":\"{\\\"a\\\":\\n1}\"}\n" HEAD
             "\"destination\":\"file:out \\\"x\\\".ndjson\",\"reason\":\"9 bytes, limit 8\","
             "\"snapshot_id\":\"" SNAPSHOT "\",\"attempt\":3,\"seq\":18446744073709551615,"
             "\"bytes\":8,\"record\":\"{\\\"a\\\":\\n1}\"}\n" HEAD
             "\"destination\":\"-\",\"reason\":\"r\",\"position\":44,\"index\":2,"
             "\"key\":{\"id\":7},\"bytes\":1,\"record\":\"x\"}\n" HEAD
             "\"destination\":\"-\",\"reason\":\"r\",\"position\":44,\"index\":2,"
             "\"incarnation\":2,\"bytes\":1,\"record\":\"x\"}\n");
    tide_buf_done(&buf);
}

static void append_keeps_the_first_bytes_only(void **state)
{
    (void)state;

    static const struct {
        tide_str bytes;
        const char *want;
        tide_str kept;
    } cases[] = {
        {TIDE_STR("1234"), "4,\"record\":\"1234\"}\n", TIDE_STR("1234")},
        {TIDE_STR("12345"), "5,\"record\":\"1234\"}\n", TIDE_STR("1234")},
        {TIDE_STR(""), "0,\"record\":\"\"}\n", TIDE_STR("")},
        {TIDE_STR("123\xc3\xa4"), "5,\"record\":\"123\"}\n", TIDE_STR("123")},
        {TIDE_STR("12\xc3\xa4"), "4,\"record\":\"12\xc3\xa4\"}\n", TIDE_STR("12\xc3\xa4")},
        {TIDE_STR("\xf0\x9f\x90\x8c\x8c"), "5,\"record\":\"\xf0\x9f\x90\x8c\"}\n",
         TIDE_STR("\xf0\x9f\x90\x8c")},
        {TIDE_STR("1\0"
                  "3"),
         "3,\"record\":\"1\\u00003\"}\n",
         TIDE_STR("1\0"
                  "3")},
        {TIDE_STR("12\xff"), "3,\"record_base64\":\"MTL/\"}\n", TIDE_STR("12\xff")},
        {TIDE_STR("\xff\xff\xff\xff\xff"), "5,\"record_base64\":\"/////w==\"}\n",
         TIDE_STR("\xff\xff\xff\xff")},
        {TIDE_STR("123\xff\xff"), "5,\"record_base64\":\"MTIz/w==\"}\n", TIDE_STR("123\xff")},
        {TIDE_STR("123\xc3"), "4,\"record_base64\":\"MTIzww==\"}\n", TIDE_STR("123\xc3")},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct tide_buf buf = {0};
        struct tide_arena arena = {0};
        struct tide_error err;
        struct tide_dead_letter_read read = {0};
        struct tide_dead_letter letter = row_letter();
        letter.bytes = cases[i].bytes;
        append(&buf, &letter, 4);
        assert_true(tide_str_ends_with(tide_buf_str(&buf), tide_str_from(cases[i].want)));
        assert_int_equal(
            tide_dead_letter_decode(tide_str_of(buf.ptr, buf.len - 1), &arena, &read, &err),
            TIDE_OK);
        assert_int_equal(read.bytes, cases[i].bytes.len);
        assert_true(tide_str_equal(read.record, cases[i].kept));
        tide_arena_done(&arena);
        tide_buf_done(&buf);
    }
}

static void append_leaves_out_a_key_that_is_too_long(void **state)
{
    (void)state;
    char *key = calloc(1, TIDE_DEAD_LETTER_KEY_BYTES_MAX + 1);
    assert_non_null(key);
    memset(key, '1', TIDE_DEAD_LETTER_KEY_BYTES_MAX + 1);
    for (size_t extra = 0; extra < 2; extra++) {
        struct tide_buf buf = {0};
        struct tide_dead_letter letter = change_letter();
        letter.key_json = tide_str_of(key, TIDE_DEAD_LETTER_KEY_BYTES_MAX + extra);
        append(&buf, &letter, 4);
        assert_true((strstr(tide_buf_cstr(&buf), "\"key\":") == NULL) == (extra == 1));
        tide_buf_done(&buf);
    }
    free(key);
}

static void expect(tide_str is, const char *want)
{
    if (want == NULL) {
        assert_null(is.ptr);
    } else if (!tide_str_equal(is, tide_str_from(want))) {
        fail_msg("\"%.*s\", not \"%s\"", TIDE_STR_ARG(is), want);
    }
}

static void decode_reads_what_append_wrote(void **state)
{
    (void)state;
    struct tide_buf buf = {0};
    struct tide_arena arena = {0};
    struct tide_error err;
    struct tide_dead_letter_read read;
    struct tide_dead_letter letter = row_letter();
    letter.attempt = 9;
    append(&buf, &letter, 3);
    tide_str line = tide_str_of(buf.ptr, buf.len - 1);
    assert_int_equal(tide_dead_letter_decode(line, &arena, &read, &err), TIDE_OK);
    assert_true(read.id.hi == 1 && read.id.lo == 0xab);
    expect(read.timestamp, "2025-11-29T13:40:00.123Z");
    expect(read.sink, "all");
    expect(read.store, "shop.t");
    expect(read.destination, "file:out \"x\".ndjson");
    expect(read.reason, "9 bytes, limit 8");
    expect(read.snapshot_id, SNAPSHOT);
    expect(read.key_json, "[\"k\"]");
    expect(read.position_json, NULL);
    expect(read.record, "{\"a");
    assert_true(read.attempt == 9 && read.seq == UINT64_MAX && read.bytes == 8);
    tide_buf_reset(&buf);
    letter = change_letter();
    append(&buf, &letter, 64);
    line = tide_str_of(buf.ptr, buf.len - 1);
    assert_int_equal(tide_dead_letter_decode(line, &arena, &read, &err), TIDE_OK);
    expect(read.snapshot_id, NULL);
    expect(read.position_json, "44");
    expect(read.key_json, "{\"id\":7}");
    assert_int_equal(read.index, 2);
    tide_arena_done(&arena);
    tide_buf_done(&buf);
}

static void decode_truncated_is_corrupt(void **state)
{
    (void)state;
    struct tide_buf buf = {0};
    struct tide_dead_letter letters[] = {row_letter(), change_letter()};
    for (size_t i = 0; i < COUNT(letters); i++) {
        tide_buf_reset(&buf);
        append(&buf, &letters[i], 64);
        for (size_t len = 0; len < buf.len - 1; len++) {
            struct tide_arena arena = {0};
            struct tide_error err;
            struct tide_dead_letter_read read = {.seq = 77};
            char *exact = malloc(len + 1); /* so that reading on is noticed */
            assert_non_null(exact);
            memcpy(exact, buf.ptr, len);
            assert_int_equal(tide_dead_letter_decode(tide_str_of(exact, len), &arena, &read, &err),
                             TIDE_CORRUPT);
            assert_int_equal(read.seq, 77);
            free(exact);
            tide_arena_done(&arena);
        }
    }
    tide_buf_done(&buf);
}

#define OLD                                                                                        \
    "\"timestamp\":\"2025-11-29T13:40:00.123Z\",\"store\":\"s\",\"destination\":\"-\","            \
    "\"reason\":\"r\",\"bytes\":1"

static void decode_of_what_we_did_not_write(void **state)
{
    (void)state;

    static const struct {
        const char *line;
        const char *want; /* NULL: fine */
    } cases[] = {
        {"{" OLD ",\"record\":\"x\"}", NULL}, /* of an older version */
        {"{\"record\":\"x\"," OLD "}", NULL}, /* in another order */
        {" {\"record\":\"x\", " OLD "} ", NULL},
        {"{" OLD ",\"record\":\"x\",\"more\":[]}", NULL},
        {"{" OLD "}", "it has neither record nor record_base64"},
        {"{" OLD ",\"record_base64\":\"MTL\"}", "record_base64 is no base64 at byte 109"},
        {"{" OLD ",\"record_base64\":\"=TL=\"}", "record_base64 is no base64 at byte 109"},
        {"{" OLD ",\"record\":1}", NULL},
        {"{" OLD ",\"id\":\"1\",\"record\":\"x\"}", "id is not 32 hexadecimal digits at byte 98"},
        {"{" OLD ",\"seq\":-1,\"record\":\"x\"}", ""},
        {"{" OLD ",\"record\":\"x\",\"record\":\"x\"}", "repeated key `record` at byte 107"},
        {"[]", "no object at byte 0"},
        {"", ""},
        {"{}", "missing key `timestamp` in the object at byte 0"},
        {"{" OLD ",\"record\":\"\xff\"}", ""},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct tide_arena arena = {0};
        struct tide_error err = {0};
        struct tide_dead_letter_read read;
        tide_status status =
            tide_dead_letter_decode(tide_str_from(cases[i].line), &arena, &read, &err);
        if (strstr(cases[i].line, "\"record\":1") != NULL) {
            assert_int_equal(status, TIDE_CORRUPT);
        } else if (cases[i].want == NULL) {
            assert_int_equal(status, TIDE_OK);
        } else {
            assert_int_equal(status, TIDE_CORRUPT);
            assert_true(err.message[0] != '\0');
            if (cases[i].want[0] != '\0') {
                assert_string_equal(err.message, cases[i].want);
            }
        }
        tide_arena_done(&arena);
    }
}

static bool same_id(struct tide_dead_letter a, struct tide_dead_letter b)
{
    struct tide_dead_letter_id left = tide_dead_letter_id(&a);
    struct tide_dead_letter_id right = tide_dead_letter_id(&b);
    return left.hi == right.hi && left.lo == right.lo;
}

/* A row that is read again may have another seq, attempt and time; what else differs is another. */
static void id_is_the_same_for_what_is_delivered_again(void **state)
{
    (void)state;
    struct tide_dead_letter other = row_letter();
    other.seq = 4;
    other.attempt = 2;
    assert_true(same_id(row_letter(), other));
    other.key_json = (tide_str){0};
    struct tide_dead_letter keyless = other;
    assert_true(same_id(other, keyless));
    keyless.seq = 5;
    assert_false(same_id(other, keyless));
#define DIFFERS(make, field, value)                                                                \
    other = make();                                                                                \
    other.field = value;                                                                           \
    assert_false(same_id(make(), other))
    DIFFERS(row_letter, sink, TIDE_STR("al"));
    DIFFERS(row_letter, store, TIDE_STR("shop.u"));
    DIFFERS(row_letter, bytes, TIDE_STR("{\"a\":\n2}"));
    DIFFERS(row_letter, key_json, TIDE_STR("[\"l\"]"));
    DIFFERS(row_letter, snapshot_id[0], 'f');
    DIFFERS(change_letter, sink, TIDE_STR("al"));
    DIFFERS(change_letter, place.position.lo, 45);
    DIFFERS(change_letter, place.position.hi, 1);
    DIFFERS(change_letter, place.index, 3);
    DIFFERS(change_letter, incarnation, 1);
    other = change_letter();
    other.bytes = TIDE_STR("newer");
    assert_true(same_id(change_letter(), other));
}

static void line_id_is_that_of_the_line(void **state)
{
    (void)state;
    struct tide_buf buf = {0};
    struct tide_dead_letter letter = row_letter();
    struct tide_dead_letter_id id = tide_dead_letter_id(&letter);
    struct tide_dead_letter_id read = {0};
    tide_dead_letter_append(&buf, &letter, id, 0, 8, &tide_position_integer);
    assert_true(tide_dead_letter_line_id(tide_buf_str(&buf), &read));
    assert_true(id.hi == read.hi && id.lo == read.lo);
    for (size_t len = 0; len < 39; len++) {
        assert_false(tide_dead_letter_line_id(tide_str_of(buf.ptr, len), &read));
    }
    buf.ptr[20] = 'G';
    assert_false(tide_dead_letter_line_id(tide_buf_str(&buf), &read));
    tide_buf_done(&buf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(append_writes_rows_and_changes),
        cmocka_unit_test(append_keeps_the_first_bytes_only),
        cmocka_unit_test(append_leaves_out_a_key_that_is_too_long),
        cmocka_unit_test(decode_reads_what_append_wrote),
        cmocka_unit_test(decode_truncated_is_corrupt),
        cmocka_unit_test(decode_of_what_we_did_not_write),
        cmocka_unit_test(id_is_the_same_for_what_is_delivered_again),
        cmocka_unit_test(line_id_is_that_of_the_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
