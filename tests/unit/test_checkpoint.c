#include "cmocka_prelude.h"

#include "base/fsio.h"
#include "base/limits.h"
#include "format/checkpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A golden file: lines of columns parted by tabs; `#` begins a remark. */
struct golden {
    struct tide_buf text;
    size_t at;
};

#define COLUMNS_MAX 6

static void golden_open(struct golden *golden, const char *name)
{
    struct tide_error err;
    char path[512];
    (void)snprintf(path, sizeof(path), TIDE_TEST_ROOT "/golden/checkpoint/%s", name);
    *golden = (struct golden){0};
    assert_int_equal(tide_file_read(path, 1000000, &golden->text, &err), TIDE_OK);
}

/* The next line's columns; false at the end. */
static bool golden_next(struct golden *golden, tide_str columns[COLUMNS_MAX])
{
    while (golden->at < golden->text.len) {
        const char *line = golden->text.ptr + golden->at;
        const char *end = memchr(line, '\n', golden->text.len - golden->at);
        assert_non_null(end);
        golden->at += (size_t)(end - line) + 1;
        if (line == end || line[0] == '#') {
            continue;
        }
        for (size_t i = 0; i < COLUMNS_MAX; i++) {
            const char *tab = memchr(line, '\t', (size_t)(end - line));
            const char *stop = tab == NULL ? end : tab;
            columns[i] = tide_str_of(line, (size_t)(stop - line));
            line = tab == NULL ? end : tab + 1;
        }
        return true;
    }
    tide_buf_done(&golden->text);
    return false;
}

/* A copy of its own on the heap, so that reading past it is found. */
static char *heap_copy(tide_str text)
{
    char *copy = malloc(text.len == 0 ? 1 : text.len);
    assert_non_null(copy);
    if (text.len > 0) {
        memcpy(copy, text.ptr, text.len);
    }
    return copy;
}

static void fail_case(tide_str text, const char *what, const struct tide_error *err)
{
    fail_msg("%.*s: %s (%s)", TIDE_STR_ARG(text), what, err->message);
}

static const char *kind_name(unsigned kind)
{
    static const char *const names[] = {
        "null", "unchanged", "absent",   "bool",  "integer", "decimal",
        "real", "text",      "raw_text", "bytes", "json",
    };
    return names[kind];
}

/* Bytes that do not show, and the backslash, as \xHH. */
static void append_shown(struct tide_buf *buf, tide_str text)
{
    bool is_text = tide_str_is_utf8(text);
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        if (c < 0x20 || c == '\\' || (c >= 0x7f && !is_text)) {
            tide_buf_printf(buf, "\\x%02x", c);
        } else {
            tide_buf_append_char(buf, (char)c);
        }
    }
}

static void key_decode_golden_values(void **state)
{
    (void)state;
    struct golden golden;
    tide_str columns[COLUMNS_MAX];
    size_t good = 0;
    size_t bad = 0;
    golden_open(&golden, "values.txt");
    while (golden_next(&golden, columns)) {
        struct tide_error err = {0};
        struct tide_buf json = {0};
        struct tide_buf shown = {0};
        struct tide_arena arena = {0};
        struct tide_checkpoint_key key = {0};
        bool want = tide_str_equal(columns[0], TIDE_STR("ok"));
        tide_buf_printf(&json, "[%.*s]", TIDE_STR_ARG(columns[1]));
        tide_status status = tide_checkpoint_key_decode(tide_buf_str(&json), &arena, &key, &err);
        if (status != (want ? TIDE_OK : TIDE_CORRUPT)) {
            fail_case(columns[1], tide_status_name(status), &err);
        }
        if (want) {
            assert_int_equal(key.count, 1);
            append_shown(&shown, tide_value_str(key.values[0]));
            if (!tide_str_equal(columns[2], tide_str_from(kind_name(key.values[0].kind))) ||
                !tide_str_equal(columns[3], tide_buf_str(&shown))) {
                fail_case(columns[1], tide_buf_cstr(&shown), &err);
            }
        }
        good += want;
        bad += !want;
        tide_arena_done(&arena);
        tide_buf_done(&json);
        tide_buf_done(&shown);
    }
    assert_true(good > 80 && bad > 150);
}

static void key_decode_null_and_composite(void **state)
{
    (void)state;
    struct tide_error err;
    struct tide_arena arena = {0};
    struct tide_checkpoint_key key = {.count = 9};
    assert_int_equal(tide_checkpoint_key_decode(TIDE_STR(" null "), &arena, &key, &err), TIDE_OK);
    assert_int_equal(key.count, 0);
    tide_str two =
        TIDE_STR("[{\"type\":\"Text\",\"value\":\"a\"},{\"type\":\"Int64\",\"value\":1}]");
    assert_int_equal(tide_checkpoint_key_decode(two, &arena, &key, &err), TIDE_OK);
    assert_int_equal(key.count, 2);
    assert_int_equal(key.values[1].kind, TIDE_VALUE_INTEGER);
    key.count = 9;
    assert_int_equal(tide_checkpoint_key_decode(TIDE_STR("5"), &arena, &key, &err), TIDE_CORRUPT);
    assert_int_equal(key.count, 9);
    tide_str second_bad = TIDE_STR("[{\"type\":\"Null\"},{\"type\":\"Int64\",\"value\":1.5}]");
    assert_int_equal(tide_checkpoint_key_decode(second_bad, &arena, &key, &err), TIDE_CORRUPT);
    assert_string_equal(err.message, "no integer within bounds at byte 41");
    tide_arena_done(&arena);
}

static void decode_golden_documents(void **state)
{
    (void)state;
    struct golden golden;
    tide_str columns[COLUMNS_MAX];
    size_t count = 0;
    golden_open(&golden, "documents.txt");
    for (; golden_next(&golden, columns); count++) {
        struct tide_error err = {0};
        struct tide_buf again = {0};
        struct tide_arena arena = {0};
        struct tide_checkpoint checkpoint = {.sequence = 99};
        bool want = tide_str_equal(columns[0], TIDE_STR("ok"));
        char *copy = heap_copy(columns[1]);
        tide_status status = tide_checkpoint_decode(tide_str_of(copy, columns[1].len), NULL, &arena,
                                                    &checkpoint, &err);
        if (status != (want ? TIDE_OK : TIDE_CORRUPT)) {
            fail_case(columns[1], tide_status_name(status), &err);
        }
        if (want) {
            tide_checkpoint_encode(&checkpoint, NULL, &again);
            if (!tide_str_equal(columns[2], tide_buf_str(&again))) {
                fail_case(columns[1], tide_buf_cstr(&again), &err);
            }
        } else {
            assert_int_equal(checkpoint.sequence, 99); /* untouched */
            assert_true(err.message[0] != '\0');
        }
        free(copy);
        tide_arena_done(&arena);
        tide_buf_done(&again);
    }
    assert_int_equal(count, 53);
}

static void file_decode_golden_forms(void **state)
{
    (void)state;
    struct golden golden;
    tide_str columns[COLUMNS_MAX];
    size_t count = 0;
    golden_open(&golden, "files.txt");
    for (; golden_next(&golden, columns); count++) {
        struct tide_error err = {0};
        struct tide_arena arena = {0};
        tide_str json = {0};
        enum tide_checkpoint_phase phase = TIDE_PHASE_FULL_SYNC_START;
        int64_t created_us = -7;
        int64_t want_us = 0;
        bool want = tide_str_equal(columns[0], TIDE_STR("ok"));
        tide_status status =
            tide_checkpoint_file_decode(columns[1], &arena, &json, &phase, &created_us, &err);
        if (status != (want ? TIDE_OK : TIDE_CORRUPT)) {
            fail_case(columns[1], tide_status_name(status), &err);
        }
        if (!want) {
            assert_int_equal(created_us, -7);
        } else if (!tide_str_equal(json, columns[2]) ||
                   !tide_str_equal(tide_str_from(tide_checkpoint_phase_name(phase)), columns[3]) ||
                   !tide_str_to_i64(columns[4], &want_us) || created_us != want_us) {
            fail_case(columns[1], tide_checkpoint_phase_name(phase), &err);
        }
        tide_arena_done(&arena);
    }
    assert_int_equal(count, 29);
}

static const char sample_text[] =
    "{\"reconciliation_pos\":\"0/16B3748\",\"tables\":[{\"name\":\"users\",\"last_pk\":[{"
    "\"type\":\"Int64\",\"value\":42}],\"done\":false},{\"name\":\"orders\",\"last_pk\":"
    "null,\"done\":true}]}";
static const tide_str sample = {sample_text, sizeof(sample_text) - 1};

static void file_encode_is_the_golden_file(void **state)
{
    (void)state;
    struct golden golden;
    struct tide_error err;
    struct tide_buf buf = {0};
    struct tide_arena arena = {0};
    tide_str json = {0};
    enum tide_checkpoint_phase phase = TIDE_PHASE_FULL_SYNC_START;
    int64_t created_us = 0;
    golden_open(&golden, "file.json");
    tide_checkpoint_file_encode(sample, TIDE_PHASE_SNAPSHOT_PROGRESS, INT64_C(1704164645123456),
                                &buf);
    assert_true(tide_str_equal(tide_buf_str(&buf), tide_buf_str(&golden.text)));
    assert_int_equal(
        tide_checkpoint_file_decode(tide_buf_str(&buf), &arena, &json, &phase, &created_us, &err),
        TIDE_OK);
    assert_true(tide_str_equal(json, sample));
    assert_int_equal(phase, TIDE_PHASE_SNAPSHOT_PROGRESS);
    assert_int_equal(created_us, INT64_C(1704164645123456));
    tide_buf_done(&golden.text);
    tide_buf_done(&buf);
    tide_arena_done(&arena);
}

static void file_decode_transport_sample(void **state)
{
    (void)state;
    struct golden golden;
    struct tide_error err;
    struct tide_buf again = {0};
    struct tide_arena arena = {0};
    struct tide_checkpoint checkpoint = {0};
    tide_str json = {0};
    enum tide_checkpoint_phase phase = TIDE_PHASE_FULL_SYNC_START;
    int64_t created_us = 0;
    golden_open(&golden, "transport.json");
    tide_str text = tide_buf_str(&golden.text);
    assert_int_equal(tide_checkpoint_file_decode(text, &arena, &json, &phase, &created_us, &err),
                     TIDE_OK);
    assert_null(memchr(json.ptr, '\n', json.len));
    assert_int_equal(created_us, INT64_C(1795959655567381));
    assert_int_equal(tide_checkpoint_decode(json, NULL, &arena, &checkpoint, &err), TIDE_OK);
    tide_checkpoint_encode(&checkpoint, NULL, &again);
    assert_true(tide_str_equal(tide_buf_str(&again), sample));
    assert_false(tide_checkpoint_all_done(&checkpoint));
    tide_buf_done(&golden.text);
    tide_buf_done(&again);
    tide_arena_done(&arena);
}

static void all_done_of_none_is_true(void **state)
{
    (void)state;
    const struct tide_checkpoint_table tables[] = {{.done = true}, {.done = false}};
    assert_true(tide_checkpoint_all_done(&(struct tide_checkpoint){0}));
    assert_true(
        tide_checkpoint_all_done(&(struct tide_checkpoint){.tables = tables, .table_count = 1}));
    assert_false(
        tide_checkpoint_all_done(&(struct tide_checkpoint){.tables = tables, .table_count = 2}));
}

static void phases_have_their_names(void **state)
{
    (void)state;
    static const char *const names[] = {
        "full_sync_start",  "full_sync_end",     "snapshot_progress",
        "snapshot_handoff", "catch_up_progress",
    };
    for (size_t i = 0; i < 5; i++) {
        enum tide_checkpoint_phase phase = TIDE_PHASE_FULL_SYNC_START;
        assert_string_equal(tide_checkpoint_phase_name((enum tide_checkpoint_phase)i), names[i]);
        assert_true(tide_checkpoint_phase_find(tide_str_from(names[i]), &phase));
        assert_int_equal(phase, i);
        assert_false(tide_checkpoint_phase_find(tide_str_of(names[i], 5), &phase));
    }
}

/* Every prefix of every good golden document and file is refused. */
static void decode_every_truncation_is_corrupt(void **state)
{
    static const char *const names[] = {"documents.txt", "files.txt", "ours.txt"};
    (void)state;
    for (size_t n = 0; n < 3; n++) {
        struct golden golden;
        tide_str columns[COLUMNS_MAX];
        golden_open(&golden, names[n]);
        while (golden_next(&golden, columns)) {
            tide_str text = columns[n == 2 ? 0 : 1];
            while (text.len > 0 && text.ptr[text.len - 1] == ' ') {
                text.len--;
            }
            if (n < 2 && !tide_str_equal(columns[0], TIDE_STR("ok"))) {
                continue;
            }
            for (size_t len = 0; len < text.len; len++) {
                struct tide_error err = {0};
                struct tide_arena arena = {0};
                struct tide_checkpoint checkpoint;
                tide_str json;
                enum tide_checkpoint_phase phase;
                int64_t created_us;
                char *copy = heap_copy(tide_str_of(text.ptr, len));
                tide_str part = tide_str_of(copy, len);
                if (tide_checkpoint_decode(part, &tide_position_integer, &arena, &checkpoint,
                                           &err) != TIDE_CORRUPT ||
                    tide_checkpoint_file_decode(part, &arena, &json, &phase, &created_us, &err) !=
                        TIDE_CORRUPT) {
                    fail_case(part, "was read", &err);
                }
                free(copy);
                tide_arena_done(&arena);
            }
        }
    }
}

/* What we write under our own key, exactly; and each of its keys is wanted. */
static void decode_ours_golden_is_stable_and_complete(void **state)
{
    (void)state;
    struct golden golden;
    tide_str columns[COLUMNS_MAX];
    golden_open(&golden, "ours.txt");
    size_t removed = 0;
    while (golden_next(&golden, columns)) {
        struct tide_error err = {0};
        struct tide_buf again = {0};
        struct tide_arena arena = {0};
        struct tide_checkpoint checkpoint = {0};
        tide_status status =
            tide_checkpoint_decode(columns[0], &tide_position_integer, &arena, &checkpoint, &err);
        if (status != TIDE_OK) {
            fail_case(columns[0], tide_status_name(status), &err);
        }
        tide_checkpoint_encode(&checkpoint, &tide_position_integer, &again);
        assert_true(tide_str_equal(tide_buf_str(&again), columns[0]));
        /* rename one key after the other behind "tidemark" */
        const char *ours = strstr(tide_buf_cstr(&again), "\"tidemark\":");
        assert_non_null(ours);
        for (char *at = again.ptr + (ours - again.ptr) + 11; (at = strstr(at, "\":")) != NULL;) {
            char *last = at - 1;
            char kept = *last;
            *last = '#';
            status = tide_checkpoint_decode(tide_buf_str(&again), &tide_position_integer, &arena,
                                            &checkpoint, &err);
            if (status != TIDE_CORRUPT) {
                fail_case(tide_buf_str(&again), "was read", &err);
            }
            *last = kept;
            at++;
            removed++;
        }
        tide_buf_done(&again);
        tide_arena_done(&arena);
    }
    assert_true(removed > 40);
}

/* Copies once said whether their range was done; no program went by it. */
static void decode_copy_with_the_former_range_done_is_as_without(void **state)
{
    (void)state;
    struct golden golden;
    tide_str columns[COLUMNS_MAX];
    golden_open(&golden, "ours.txt");
    size_t found = 0;
    while (golden_next(&golden, columns)) {
        const char *at = memmem(columns[0].ptr, columns[0].len, "\"read_again\":", 13);
        if (at == NULL) {
            continue;
        }
        struct tide_error err = {0};
        struct tide_arena arena = {0};
        struct tide_checkpoint checkpoint = {0};
        struct tide_buf former = {0};
        struct tide_buf again = {0};
        tide_buf_append(&former, columns[0].ptr, (size_t)(at - columns[0].ptr));
        tide_buf_append_str(&former, TIDE_STR("\"range_done\":true,"));
        tide_buf_append(&former, at, columns[0].len - (size_t)(at - columns[0].ptr));
        assert_int_equal(tide_checkpoint_decode(tide_buf_str(&former), &tide_position_integer,
                                                &arena, &checkpoint, &err),
                         TIDE_OK);
        tide_checkpoint_encode(&checkpoint, &tide_position_integer, &again);
        assert_true(tide_str_equal(tide_buf_str(&again), columns[0]));
        tide_buf_done(&former);
        tide_buf_done(&again);
        tide_arena_done(&arena);
        found++;
    }
    assert_true(found > 0);
}

static void decode_newer_version_is_unsupported(void **state)
{
    (void)state;
    struct golden golden;
    tide_str columns[COLUMNS_MAX];
    golden_open(&golden, "ours.txt");
    while (golden_next(&golden, columns)) {
        struct tide_error err = {0};
        struct tide_arena arena = {0};
        struct tide_checkpoint checkpoint = {0};
        char *copy = heap_copy(columns[0]);
        char *version = memmem(copy, columns[0].len, "\"version\":1", 11);
        assert_non_null(version);
        version[10] = '2';
        assert_int_equal(tide_checkpoint_decode(tide_str_of(copy, columns[0].len), NULL, &arena,
                                                &checkpoint, &err),
                         TIDE_UNSUPPORTED);
        free(copy);
        tide_arena_done(&arena);
    }
}

static void decode_too_large_or_deep_is_corrupt(void **state)
{
    (void)state;
    struct tide_error err;
    struct tide_arena arena = {0};
    struct tide_checkpoint checkpoint;
    tide_str huge = {"[", TIDE_CHECKPOINT_BYTES_MAX + 1}; /* refused before it is looked at */
    assert_int_equal(tide_checkpoint_decode(huge, NULL, &arena, &checkpoint, &err), TIDE_CORRUPT);
    for (unsigned depth = 120; depth < 130; depth++) {
        struct tide_buf buf = {0};
        tide_buf_append_str(&buf, TIDE_STR("{\"reconciliation_pos\":"));
        for (unsigned i = 1; i < depth; i++) {
            tide_buf_append_char(&buf, '[');
        }
        for (unsigned i = 1; i < depth; i++) {
            tide_buf_append_char(&buf, ']');
        }
        tide_buf_append_str(&buf, TIDE_STR(",\"tables\":[]}"));
        assert_int_equal(
            tide_checkpoint_decode(tide_buf_str(&buf), NULL, &arena, &checkpoint, &err),
            depth <= 127 ? TIDE_OK : TIDE_CORRUPT);
        tide_buf_done(&buf);
    }
    tide_arena_done(&arena);
}

/* An array of tiny elements must not cost many times its own size. */
static void decode_many_tiny_elements_is_cheap(void **state)
{
    static const char *const before[] = {
        "{\"reconciliation_pos\":1,\"tables\":[",
        "{\"reconciliation_pos\":1,\"tables\":[],\"tidemark\":{\"version\":1,\"sequence\":1,"
        "\"pipeline\":\"\",\"source\":1,\"source_state\":1,\"incarnation\":0,\"creating\":false,"
        "\"closed\":false,\"stores\":[],\"sinks\":[],\"requests\":[],\"copies\":[",
    };
    static const char *const after[] = {"0]}", "0]}}"};
    (void)state;
    for (size_t n = 0; n < 2; n++) {
        struct tide_error err;
        struct tide_arena arena = {0};
        struct tide_buf buf = {0};
        struct tide_checkpoint checkpoint;
        tide_buf_append_str(&buf, tide_str_from(before[n]));
        for (unsigned i = 0; i < 1200000; i++) {
            tide_buf_append_str(&buf, TIDE_STR("0,"));
        }
        tide_buf_append_str(&buf, tide_str_from(after[n]));
        assert_int_equal(
            tide_checkpoint_decode(tide_buf_str(&buf), NULL, &arena, &checkpoint, &err),
            TIDE_CORRUPT);
        assert_true(arena.size < 64 * TIDE_MIB);
        tide_arena_done(&arena);
        tide_buf_done(&buf);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(key_decode_golden_values),
        cmocka_unit_test(key_decode_null_and_composite),
        cmocka_unit_test(decode_golden_documents),
        cmocka_unit_test(file_decode_golden_forms),
        cmocka_unit_test(file_encode_is_the_golden_file),
        cmocka_unit_test(file_decode_transport_sample),
        cmocka_unit_test(all_done_of_none_is_true),
        cmocka_unit_test(phases_have_their_names),
        cmocka_unit_test(decode_every_truncation_is_corrupt),
        cmocka_unit_test(decode_ours_golden_is_stable_and_complete),
        cmocka_unit_test(decode_copy_with_the_former_range_done_is_as_without),
        cmocka_unit_test(decode_newer_version_is_unsupported),
        cmocka_unit_test(decode_too_large_or_deep_is_corrupt),
        cmocka_unit_test(decode_many_tiny_elements_is_cheap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
