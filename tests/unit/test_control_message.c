#include "cmocka_prelude.h"

#include "app/control/control_message.h"
#include "app/control/status_print.h"
#include "app/control/status_report.h"
#include "base/alloc.h"

#include <stdlib.h>

static void request_comes_out_as_it_went_in(void **state)
{
    static const tide_str tables[] = {{"or\"d\\ers", 8}, {"log_*", 5}, {"é\n", 3}};
    const struct tide_control_request cases[] = {
        {.command = TIDE_STR("status")},
        {.command = TIDE_STR("pause"), .sink = TIDE_STR("a \"b\"")},
        {.command = TIDE_STR("backfill"), .tables = tables, .table_count = 3},
        {.command = TIDE_STR("backfill"),
         .sink = TIDE_STR("x"),
         .tables = tables,
         .table_count = 1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tide_buf line = {0};
        struct tide_arena arena = {0};
        struct tide_control_request got;
        struct tide_error err;
        tide_control_request_encode(&cases[i], &line);
        assert_null(memchr(line.ptr, '\n', line.len));
        assert_int_equal(tide_control_request_decode(tide_buf_str(&line), &arena, &got, &err),
                         TIDE_OK);
        assert_true(tide_str_equal(got.command, cases[i].command));
        assert_true(tide_str_equal(got.sink, cases[i].sink));
        assert_int_equal(got.table_count, cases[i].table_count);
        for (size_t j = 0; j < got.table_count; j++) {
            assert_true(tide_str_equal(got.tables[j], tables[j]));
        }
        for (size_t cut = 0; cut < line.len; cut++) {
            assert_int_equal(
                tide_control_request_decode(tide_str_of(line.ptr, cut), &arena, &got, &err),
                TIDE_CORRUPT);
        }
        tide_arena_done(&arena);
        tide_buf_done(&line);
    }
}

static void request_that_is_none_is_corrupt(void **state)
{
    static const char *const lines[] = {
        "",
        "status",
        "[]",
        "{}",
        "{\"command\":null}",
        "{\"command\":[\"status\"]}",
        "{\"command\":\"status\",\"sink\":7}",
        "{\"command\":\"backfill\",\"tables\":\"orders\"}",
        "{\"command\":\"backfill\",\"tables\":[1]}",
        "{\"command\":\"status\",\"command\":\"status\"}",
        "{\"command\":\"status\"} x",
        "{\"command\":\"backfill\",\"table\":\"orders\"}",
        "\xff\xfe",
        "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
    };
    (void)state;
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        struct tide_arena arena = {0};
        struct tide_control_request got;
        struct tide_error err;
        if (tide_control_request_decode(tide_str_from(lines[i]), &arena, &got, &err) !=
            TIDE_CORRUPT) {
            fail_msg("%s", lines[i]);
        }
        tide_arena_done(&arena);
    }
}

static void answer_comes_out_as_it_went_in(void **state)
{
    static const tide_str names[] = {{"all", 3}, {"ea\"ch", 5}};
    const struct tide_control_answer cases[] = {
        {.status = TIDE_OK, .report = TIDE_STR("{\"a\":[1.50]}")},
        {.status = TIDE_OK, .sinks = names, .sink_count = 2, .tables = names, .table_count = 1},
        {.status = TIDE_INVALID, .message = TIDE_STR("no \"x\"")},
        {.status = TIDE_STALE, .message = TIDE_STR("y")},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tide_buf line = {0};
        struct tide_arena arena = {0};
        struct tide_control_answer got;
        struct tide_error err;
        tide_control_answer_encode(&cases[i], &line);
        assert_int_equal(tide_control_answer_decode(tide_buf_str(&line), &arena, &got, &err),
                         TIDE_OK);
        assert_int_equal(got.status, cases[i].status);
        assert_true(tide_str_equal(got.message, cases[i].message));
        assert_true(tide_str_equal(got.report, cases[i].report));
        assert_int_equal(got.sink_count, cases[i].sink_count);
        assert_int_equal(got.table_count, cases[i].table_count);
        tide_arena_done(&arena);
        tide_buf_done(&line);
    }
}

#define SINK(state, error) "{\"name\":\"all\",\"state\":\"" state "\",\"error\":" error "}"
#define COPY(state)        "{\"store\":\"s.t\",\"sinks\":[\"all\",\"each\"],\"state\":\"" state "\"}"
#define PART(state)        "{\"store\":\"s.t\",\"sinks\":[\"all\"],\"state\":\"" state "\"}"
#define REST(state)        "{\"store\":\"s.t\",\"sinks\":[\"each\"],\"state\":\"" state "\"}"

static void report_is_fine_when_nobody_need_look(void **state)
{
    static const struct {
        const char *json;
        bool want;
    } cases[] = {
        {"{}", true},
        {"{\"state\":\"following\",\"sinks\":[],\"snapshots\":[]}", true},
        {"{\"state\":\"stalled\"}", false},
        {"{\"sinks\":[" SINK("running", "null") "]}", true},
        {"{\"sinks\":[" SINK("running", "\"was slow\"") "]}", true},
        {"{\"sinks\":[" SINK("paused", "null") "]}", true},
        {"{\"sinks\":[" SINK("waiting", "\"disk full\"") "]}", false},
        {"{\"sinks\":[" SINK("running", "null") "," SINK("failed", "\"x\"") "]}", false},
        {"{\"sinks\":[" SINK("detached", "null") "]}", false},
        {"{\"snapshots\":[" COPY("done") "]}", true},
        {"{\"snapshots\":[" COPY("failed") "]}", false},
        {"{\"snapshots\":[" COPY("failed") "," COPY("running") "]}", true},
        {"{\"snapshots\":[" COPY("done") "," COPY("failed") "]}", false},
        {"{\"snapshots\":[" COPY("failed") "," PART("done") "]}", false},
        {"{\"snapshots\":[" COPY("failed") "," PART("done") "," REST("queued") "]}", true},
        {"{\"snapshots\":[" COPY("failed") "," COPY("failed") "]}", false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tide_arena arena = {0};
        struct tide_status_report report;
        struct tide_error err;
        if (tide_status_report_read(tide_str_from(cases[i].json), &arena, &report, &err) !=
            TIDE_OK) {
            fail_msg("%s: %s", cases[i].json, err.message);
        }
        if (tide_status_report_is_fine(&report) != cases[i].want) {
            fail_msg("%s", cases[i].json);
        }
        tide_arena_done(&arena);
    }
}

static const char whole[] =
    "{\"pipeline\":\"shop-1a\",\"source\":\"sqlite:shop.db\",\"state\":\"stalled\","
    "\"started_at\":\"2026-11-29T13:40:55.567Z\",\"position\":\"0/20\",\"held\":\"0/10\","
    "\"confirmed\":\"0/8\",\"lag_bytes\":2048,\"lag_seconds\":1.234,\"stalled_seconds\":61.5,"
    "\"reason\":\"the lane of each is full\",\"changes\":12,\"rows\":12000,\"dead_letters\":1,"
    "\"checkpoint\":{\"sequence\":7,\"seconds_ago\":0.4},\"memory\":{\"used\":1024,\"limit\":4096},"
    "\"sinks\":[{\"name\":\"all\",\"state\":\"running\",\"seeded\":true,"
    "\"lane_items\":0,\"lane_bytes\":0,\"acknowledged\":5,\"rows\":12000,"
    "\"stubs\":0,\"changes\":12,\"bytes\":2048,\"restarts\":0,\"error\":null,"
    "\"retry_seconds\":null},"
    "{\"name\":\"each\",\"state\":\"waiting\",\"seeded\":false,"
    "\"lane_items\":9,\"lane_bytes\":1048576,\"acknowledged\":1,\"rows\":3,"
    "\"stubs\":1,\"changes\":0,\"bytes\":10,\"restarts\":4,\"error\":\"no \\u001b[2Jspace\","
    "\"retry_seconds\":2.5}],"
    "\"snapshots\":[{\"store\":\"shop.users\",\"sinks\":[\"all\",\"each\"],\"state\":\"running\","
    "\"snapshot_id\":null,\"attempt\":2,\"rows\":1000,\"reason\":null},"
    "{\"store\":\"shop.x\",\"sinks\":[\"all\"],\"state\":\"failed\",\"snapshot_id\":null,"
    "\"attempt\":1,\"rows\":0,\"reason\":\"it is gone\"}]}";

static const char whole_text[] =
    "pipeline    shop-1a: stalled for 61.5 s: the lane of each is full\n"
    "runs since  2026-11-29T13:40:55.567Z\n"
    "source      sqlite:shop.db\n"
    "lag         2.0 KiB, 1.234 s\n"
    "watermark   0/10 held by every sink, of 0/20; confirmed up to 0/8\n"
    "checkpoint  7, saved 0.4 s ago\n"
    "published   12,000 rows, 12 changes, 1 dead letter\n"
    "memory      1.0 KiB of 4.0 KiB\n"
    "\n"
    "SINK  STATE    LANE          ROWS    STUBS  CHANGES  BYTES    RESTARTS\n"
    "all   running  0 B in 0      12,000  0      12       2.0 KiB  0\n"
    "each  waiting  1.0 MiB in 9  3       1      0        10 B     4\n"
    "each: no \\x1b[2Jspace; tried again in 2.5 s\n"
    "\n"
    "SNAPSHOT    FOR        ROWS   STATE\n"
    "shop.users  all, each  1,000  running, attempt 2\n"
    "shop.x      all        0      failed: it is gone\n";

static void report_is_printed_for_people(void **state)
{
    struct tide_arena arena = {0};
    struct tide_buf text = {0};
    struct tide_status_report report;
    struct tide_error err;
    (void)state;
    assert_int_equal(tide_status_report_read(tide_str_from(whole), &arena, &report, &err), TIDE_OK);
    assert_int_equal(report.sink_count, 2);
    tide_status_print(&text, &report);
    assert_string_equal(tide_buf_cstr(&text), whole_text);
    for (size_t cut = 0; cut < sizeof(whole) - 1; cut++) {
        assert_int_equal(tide_status_report_read(tide_str_of(whole, cut), &arena, &report, &err),
                         TIDE_CORRUPT);
    }
    tide_buf_done(&text);
    tide_arena_done(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(request_comes_out_as_it_went_in),
        cmocka_unit_test(request_that_is_none_is_corrupt),
        cmocka_unit_test(answer_comes_out_as_it_went_in),
        cmocka_unit_test(report_is_fine_when_nobody_need_look),
        cmocka_unit_test(report_is_printed_for_people),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
