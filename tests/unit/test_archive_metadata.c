#include "cmocka_prelude.h"

#include "archive/metadata.h"
#include "archive/seal_policy.h"
#include "archive/sessions_trim.h"
#include "base/limits.h"

#include <stdio.h>

static struct tide_arena arena;
static struct tide_buf buf;

static int teardown(void **state)
{
    (void)state;
    tide_arena_done(&arena);
    tide_buf_done(&buf);
    return 0;
}

static const char *rewritten(const char *json, tide_status want)
{
    struct tide_archive_pairs pairs = {0};
    struct tide_error err;
    tide_buf_reset(&buf);
    tide_status status = tide_archive_pairs_read(tide_str_from(json), &arena, &pairs, &err);
    if (status != want) {
        fail_msg("%s: %s", json, status == TIDE_OK ? "is read" : err.message);
    }
    if (status == TIDE_OK) {
        tide_archive_pairs_write(&pairs, &buf);
    }
    return tide_buf_cstr(&buf);
}

static void pairs_are_written_compact_by_rising_key(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"{}", "{}"},
        {" { } ", "{}"},
        {"{\"a\":\"b\"}", "{\"a\":\"b\"}"},
        {"{ \"b\" : \"2\", \"a\":\"1\" ,\"\":\"\" }", "{\"\":\"\",\"a\":\"1\",\"b\":\"2\"}"},
        {"{\"a\":\"\\u00e9\\n\\\"\"}", "{\"a\":\"\xc3\xa9\\n\\\"\"}"},
        {"{\"b\":\"\",\"B\":\"\",\"aa\":\"\",\"a\":\"\"}",
         "{\"B\":\"\",\"a\":\"\",\"aa\":\"\",\"b\":\"\"}"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_string_equal(rewritten(cases[i][0], TIDE_OK), cases[i][1]);
    }
}

static void pairs_of_another_form_are_corrupt(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "",
        "null",
        "[]",
        "\"a\"",
        "{\"a\":1}",
        "{\"a\":null}",
        "{\"a\":{}}",
        "{\"a\":[\"b\"]}",
        "{\"a\":\"b",
        "{\"a\":\"b\"}x",
        "{\"a\"}",
        "{\"a\":\"b\",}",
        "{a:\"b\"}",
        "{\"a\":true}",
        "{\"a\":\"\\ud800\"}",
        "{\"a\":\"1\",\"a\":\"2\"}",
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        (void)rewritten(cases[i], TIDE_CORRUPT);
    }
}

static void pairs_cut_short_are_corrupt(void **state)
{
    (void)state;
    char json[] = "{\"a\":\"b\",\"writer_sessions\":\"[{\\\"session\\\":\\\"x\\\"}]\"}";
    for (size_t len = sizeof(json) - 1; len > 0; len--) {
        json[len - 1] = '\0';
        (void)rewritten(json, TIDE_CORRUPT);
    }
}

static void pairs_set_replaces_or_adds(void **state)
{
    (void)state;
    struct tide_archive_pairs pairs = {0};
    char keys[100][4];
    for (int i = 0; i < 100; i++) {
        (void)snprintf(keys[i], sizeof(keys[i]), "k%02d", i);
        tide_archive_pairs_set(&pairs, &arena, tide_str_from(keys[i]), TIDE_STR("old"));
    }
    tide_archive_pairs_set(&pairs, &arena, TIDE_STR("k42"), TIDE_STR("new"));
    assert_int_equal(pairs.count, 100);
    assert_true(tide_str_equal(tide_archive_pairs_get(&pairs, TIDE_STR("k42")), TIDE_STR("new")));
    assert_true(tide_str_equal(tide_archive_pairs_get(&pairs, TIDE_STR("k99")), TIDE_STR("old")));
    assert_null(tide_archive_pairs_get(&pairs, TIDE_STR("k")).ptr);
}

static const struct tide_archive_session first = {
    .session = {"s1", 2}, .clock_anchor_wall_ns = -5, .writer = {"w", 1}};
static const struct tide_archive_session resumed = {.session = {"s2", 2},
                                                    .clock_anchor_wall_ns = INT64_MAX,
                                                    .writer = {"w", 1},
                                                    .is_resumed = true,
                                                    .has_resumed_after = true,
                                                    .resumed_after_ts = INT64_MIN};
static const struct tide_archive_session resumed_empty = {
    .session = {"s3", 2}, .writer = {"w", 1}, .is_resumed = true};

static void sessions_append_keeps_what_others_wrote(void **state)
{
    (void)state;
    struct tide_error err;
    static const char one[] = "[{\"clock_anchor_wall_ns\":-5,\"dendro\":\"w\",\"session\":\"s1\"}]";
    assert_int_equal(tide_archive_sessions_append((tide_str){NULL, 0}, &first, &buf, &err),
                     TIDE_OK);
    assert_string_equal(tide_buf_cstr(&buf), one);
    tide_buf_reset(&buf);
    assert_int_equal(
        tide_archive_sessions_append(TIDE_STR(" [ {\"x\":[1,{}]} ] "), &resumed, &buf, &err),
        TIDE_OK);
    assert_string_equal(tide_buf_cstr(&buf),
                        " [ {\"x\":[1,{}]} ,{\"clock_anchor_wall_ns\":9223372036854775807,"
                        "\"dendro\":\"w\",\"resumed_after_ts\":-9223372036854775808,"
                        "\"session\":\"s2\"}] ");
    tide_buf_reset(&buf);
    assert_int_equal(tide_archive_sessions_append(TIDE_STR("[ ]"), &resumed_empty, &buf, &err),
                     TIDE_OK);
    assert_string_equal(tide_buf_cstr(&buf),
                        "[ {\"clock_anchor_wall_ns\":0,\"dendro\":\"w\",\"resumed_after_ts\":null,"
                        "\"session\":\"s3\"}]");
    static const char *const bad[] = {"", "{}", "[", "null", "[1,]", "[]]", "[{}"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(tide_archive_sessions_append(tide_str_from(bad[i]), &first, &buf, &err),
                         TIDE_CORRUPT);
    }
}

static void sessions_read_gives_what_was_appended(void **state)
{
    (void)state;
    struct tide_error err;
    struct tide_archive_session *found = NULL;
    struct tide_buf all = {0};
    size_t count = 0;
    assert_int_equal(tide_archive_sessions_append((tide_str){NULL, 0}, &first, &buf, &err),
                     TIDE_OK);
    assert_int_equal(tide_archive_sessions_append(tide_buf_str(&buf), &resumed, &all, &err),
                     TIDE_OK);
    tide_buf_reset(&buf);
    assert_int_equal(tide_archive_sessions_append(tide_buf_str(&all), &resumed_empty, &buf, &err),
                     TIDE_OK);
    assert_int_equal(tide_archive_sessions_read(tide_buf_str(&buf), &arena, &found, &count, &err),
                     TIDE_OK);
    assert_int_equal(count, 3);
    assert_true(tide_str_equal(found[0].session, TIDE_STR("s1")));
    assert_int_equal(found[0].clock_anchor_wall_ns, -5);
    assert_false(found[0].is_resumed);
    assert_true(found[1].is_resumed && found[1].has_resumed_after);
    assert_true(found[1].resumed_after_ts == INT64_MIN);
    assert_true(found[2].is_resumed && !found[2].has_resumed_after);
    for (size_t len = 0; len < buf.len; len++) {
        struct tide_archive_session *ignored = NULL;
        assert_int_equal(
            tide_archive_sessions_read(tide_str_of(buf.ptr, len), &arena, &ignored, &count, &err),
            TIDE_CORRUPT);
    }
    tide_buf_done(&all);
}

static void events_append_keeps_what_others_wrote(void **state)
{
    (void)state;
    struct tide_error err;
    const struct tide_archive_event event = {7, TIDE_STR("d"), TIDE_STR("writer_session"),
                                             TIDE_STR("writer_session:u")};
    static const char ours[] = "{\"description\":\"d\",\"id\":\"writer_session:u\",\"kind\":"
                               "\"writer_session\",\"timestamp\":7}";

    static const struct {
        const char *json;
        const char *before;
        const char *after;
    } cases[] = {
        {NULL, "{\"events\":[", "]}"},
        {"{\"events\":[]}", "{\"events\":[", "]}"},
        {"{\"events\":[{\"timestamp\":1}],\"x\":[2]}", "{\"events\":[{\"timestamp\":1},",
         "],\"x\":[2]}"},
        {"{\"x\":{\"events\":[3]},\"events\":[\"]\"] }",
         "{\"x\":{\"events\":[3]},\"events\":[\"]\",", "] }"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        tide_str json = cases[i].json == NULL ? (tide_str){NULL, 0} : tide_str_from(cases[i].json);
        char want[512];
        tide_buf_reset(&buf);
        assert_int_equal(tide_archive_events_append(json, &event, &buf, &err), TIDE_OK);
        (void)snprintf(want, sizeof(want), "%s%s%s", cases[i].before, ours, cases[i].after);
        assert_string_equal(tide_buf_cstr(&buf), want);
    }
    static const char *const bad[] = {
        "", "{}", "[]", "{\"events\":{}}", "{\"events\":[}", "{\"event\":[]}"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(tide_archive_events_append(tide_str_from(bad[i]), &event, &buf, &err),
                         TIDE_CORRUPT);
    }
}

static void sessions_trim_leaves_out_an_idle_one_with_its_event(void **state)
{
    (void)state;
    struct tide_error err;
    struct tide_archive_gone gone = {0};
    struct tide_buf trimmed TIDE_CLEANUP(tide_buf_done) = {0};
    struct tide_archive_session next = resumed;
    tide_str json = TIDE_STR(" [{\"session\":\"a\",\"dendro\":\"0.3\"}, {\"session\":\"b\","
                             "\"dendro\":\"tidemark 1\",\"resumed_after_ts\":5}] ");
    next.writer = TIDE_STR("tidemark 2");
    next.resumed_after_ts = 6;
    assert_int_equal(tide_archive_sessions_trim(json, &next, &arena, &gone, &buf, &err), TIDE_OK);
    assert_int_equal(gone.count, 0); /* it has written rows */
    next.resumed_after_ts = 5;
    buf.len = 0;
    assert_int_equal(tide_archive_sessions_trim(json, &next, &arena, &gone, &buf, &err), TIDE_OK);
    assert_string_equal(tide_buf_cstr(&buf), "[{\"session\":\"a\",\"dendro\":\"0.3\"}]");
    assert_int_equal(gone.count, 1);
    json = TIDE_STR("{\"x\":1,\"events\":[7, {\"id\":\"writer_session:b\"},{\"id\":[\"b\"]},"
                    "{\"id\":\"writer_session:c\"}] }");
    assert_int_equal(tide_archive_events_trim(json, &gone, &arena, &trimmed, &err), TIDE_OK);
    assert_string_equal(tide_buf_cstr(&trimmed), "{\"x\":1,\"events\":[7,{\"id\":[\"b\"]},"
                                                 "{\"id\":\"writer_session:c\"}] }");
    next.writer = TIDE_STR("another 2");
    buf.len = 0;
    json = TIDE_STR("[{\"dendro\":\"tidemark 1\",\"resumed_after_ts\":5}]");
    assert_int_equal(tide_archive_sessions_trim(json, &next, &arena, &gone, &buf, &err), TIDE_OK);
    assert_int_equal(gone.count, 0);
}

static void sessions_trim_keeps_the_first_and_the_newest(void **state)
{
    (void)state;
    struct tide_error err;
    struct tide_buf trimmed TIDE_CLEANUP(tide_buf_done) = {0};
    struct tide_archive_session next = resumed;
    struct tide_archive_session *found = NULL;
    size_t count = 0;
    tide_buf_append_str(&buf, TIDE_STR("[]"));
    for (int64_t i = 0; i < 3 * (int64_t)TIDE_ARCHIVE_SESSIONS_MAX; i++) {
        struct tide_archive_gone gone = {0};
        next.resumed_after_ts = next.clock_anchor_wall_ns = i;
        trimmed.len = 0;
        assert_int_equal(
            tide_archive_sessions_trim(tide_buf_str(&buf), &next, &arena, &gone, &trimmed, &err),
            TIDE_OK);
        buf.len = 0;
        assert_int_equal(tide_archive_sessions_append(tide_buf_str(&trimmed), &next, &buf, &err),
                         TIDE_OK);
    }
    assert_int_equal(tide_archive_sessions_read(tide_buf_str(&buf), &arena, &found, &count, &err),
                     TIDE_OK);
    assert_int_equal(count, TIDE_ARCHIVE_SESSIONS_MAX);
    assert_int_equal(found[0].clock_anchor_wall_ns, 0);
    assert_int_equal(found[1].clock_anchor_wall_ns, 2 * (int64_t)TIDE_ARCHIVE_SESSIONS_MAX + 1);
}

static void stagger_agrees_with_the_known_vectors(void **state)
{
    (void)state;
    assert_int_equal(tide_archive_stagger(TIDE_STR("cpu_usage"), TIDE_STR("")), 32);
    assert_int_equal(tide_archive_stagger(TIDE_STR("scheduler"), TIDE_STR("")), 19);
    for (int i = 0; i < 1000; i++) {
        char name[8];
        (void)snprintf(name, sizeof(name), "%d\xff", i);
        assert_true(tide_archive_stagger(tide_str_from(name), TIDE_STR("a=b\1c=d")) < 64);
    }
}

static void seal_is_due_at_each_cap(void **state)
{
    (void)state;
    static const struct tide_archive_seal_policy policy = {
        .rows_max = 900, .bytes_max = 8192, .age_ns_max = 300};
    static const struct tide_archive_seal_policy aligned = {
        .rows_max = 900, .bytes_max = 8192, .age_ns_max = 0, .align_ns = 10};

    static const struct {
        const struct tide_archive_seal_policy *policy;
        struct tide_archive_tail tail;
        int64_t now;
        bool want;
    } cases[] = {
        {&policy, {0, 0, 0, 0}, INT64_MAX, false},
        {&policy, {899, 8191, 0, 9}, 299, false},
        {&policy, {900, 1, 0, 9}, 0, true},
        {&policy, {1, 8192, 0, 9}, 0, true},
        {&policy, {1, 1, 0, 0}, 300, true},
        {&policy, {1, 1, 0, 0}, -1, false},
        {&policy, {1, 1, INT64_MIN, 0}, INT64_MAX, true},
        {&aligned, {2, 1, 0, 9}, 0, false},
        {&aligned, {2, 1, 9, 10}, 0, true},
        {&aligned, {2, 1, -1, 0}, 0, true}, /* spans round down, also below 0 */
        {&aligned, {2, 1, -10, -1}, 0, false},
        {&aligned, {2, 1, -11, -10}, 0, true},
        {&aligned, {1, 1, 9, 9}, INT64_MAX, false},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(tide_archive_seal_is_due(cases[i].policy, &cases[i].tail, cases[i].now),
                         cases[i].want);
    }
}

static void seal_of_a_first_segment_is_due_earlier(void **state)
{
    (void)state;
    const struct tide_archive_seal_policy policy = {.rows_max = 900, .bytes_max = INT64_MAX};
    struct tide_archive_tail tail = {
        .rows = 900 - 900 / 128 * 32, .is_first = true, .name = TIDE_STR("cpu_usage")};
    assert_true(tide_archive_seal_is_due(&policy, &tail, 0));
    tail.rows--;
    assert_false(tide_archive_seal_is_due(&policy, &tail, 0));
    tail.rows++;
    tail.is_first = false;
    assert_false(tide_archive_seal_is_due(&policy, &tail, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(pairs_are_written_compact_by_rising_key, teardown),
        cmocka_unit_test_teardown(pairs_of_another_form_are_corrupt, teardown),
        cmocka_unit_test_teardown(pairs_cut_short_are_corrupt, teardown),
        cmocka_unit_test_teardown(pairs_set_replaces_or_adds, teardown),
        cmocka_unit_test_teardown(sessions_append_keeps_what_others_wrote, teardown),
        cmocka_unit_test_teardown(sessions_read_gives_what_was_appended, teardown),
        cmocka_unit_test_teardown(events_append_keeps_what_others_wrote, teardown),
        cmocka_unit_test_teardown(sessions_trim_leaves_out_an_idle_one_with_its_event, teardown),
        cmocka_unit_test_teardown(sessions_trim_keeps_the_first_and_the_newest, teardown),
        cmocka_unit_test_teardown(stagger_agrees_with_the_known_vectors, teardown),
        cmocka_unit_test_teardown(seal_is_due_at_each_cap, teardown),
        cmocka_unit_test_teardown(seal_of_a_first_segment_is_due_earlier, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
