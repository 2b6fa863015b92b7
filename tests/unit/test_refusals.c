#include "cmocka_prelude.h"

#include "port/frames.h"
#include "port/refusals.h"
#include "sink/null/null_sink.h"
#include "sink_kit.h"

#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define LONG_NAME    "a name that is too long for a record of sixty bytes, as one can see"

static const struct tide_sink_ops *const ops = &tide_null_sink_ops;

static void rule_of_is_the_first_that_matches(void **state)
{
    (void)state;

    static const struct tide_refused_rule rules[] = {
        {{"app.log*", sizeof("app.log*") - 1}, TIDE_REFUSED_SKIP},
        {{"log_?", sizeof("log_?") - 1}, TIDE_REFUSED_STOP},
        {{"*.orders", sizeof("*.orders") - 1}, TIDE_REFUSED_SKIP},
        {{"orders*", sizeof("orders*") - 1}, TIDE_REFUSED_DEAD_LETTER},
    };

    static const struct {
        const char *schema;
        const char *name;
        int rule; /* -1: none */
    } cases[] = {
        {"app", "log_a", 0},  {"public", "log_a", 1}, {"", "log_a", 1},   {"", "log_ab", -1},
        {"app", "orders", 2}, {"", "orders", 3},      {"", "orders2", 3}, {"", "order", -1},
        {"", "Orders", -1},   {"a", "b.orders", 2},   {"log_", "a", -1},  {"", "log_\xc3\xa4", 1},
    };

    const struct tide_refused_policy policy = {.rules = rules, .rule_count = COUNT(rules)};
    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct tide_relation relation = {.schema = tide_str_from(cases[i].schema),
                                               .name = tide_str_from(cases[i].name)};
        const struct tide_refused_rule *rule = tide_refused_rule_of(&policy, &relation);
        assert_ptr_equal(rule, cases[i].rule < 0 ? NULL : &rules[cases[i].rule]);
    }
}

static struct tide_sink_options options_with(enum tide_refused refused, struct kit_letters *letters)
{
    struct tide_sink_options options = kit_options("");
    options.name = TIDE_STR("all");
    options.record_bytes_max = 60;
    options.refused.otherwise = refused;
    options.dead_letters = kit_letters_target(letters);
    return options;
}

static struct tide_batch *long_rows(void)
{
    return kit_rows((struct kit_part){.relation = kit_relation("t"),
                                      .snapshot = 1,
                                      .first_seq = 5,
                                      .rows = 2,
                                      .name = LONG_NAME});
}

static void write_counts_what_is_kept_and_skipped(void **state)
{
    (void)state;
    for (int is_skip = 0; is_skip < 2; is_skip++) {
        struct kit_letters letters = {0};
        struct tide_sink_counts counts;
        struct tide_sink_options options =
            options_with(is_skip ? TIDE_REFUSED_SKIP : TIDE_REFUSED_DEAD_LETTER, &letters);
        struct tide_sink *sink = kit_open(ops, &options);
        kit_write(ops, sink, long_rows());
        kit_write(ops, sink, kit_change_named(kit_relation("t"), 9, LONG_NAME));
        kit_write(ops, sink, kit_changes(kit_relation("t"), 10, 2));
        ops->counts(sink, &counts);
        assert_int_equal(counts.dead_letters, is_skip ? 0 : 3);
        assert_int_equal(counts.skipped, is_skip ? 3 : 0);
        assert_int_equal(counts.stubs, 2);
        assert_int_equal(counts.changes, 3);
        assert_int_equal(letters.text.len > 0, !is_skip);
        ops->close(sink);
        tide_buf_done(&letters.text);
    }
}

/* What is delivered again is counted once. */
static void write_again_counts_nothing_new(void **state)
{
    (void)state;
    struct kit_letters letters = {.knows_all = true};
    struct tide_sink_counts counts;
    for (int is_skip = 0; is_skip < 2; is_skip++) {
        struct tide_sink_options options =
            options_with(is_skip ? TIDE_REFUSED_SKIP : TIDE_REFUSED_DEAD_LETTER, &letters);
        struct tide_sink *sink = kit_open(ops, &options);
        kit_write(ops, sink, long_rows());
        ops->counts(sink, &counts);
        assert_int_equal(counts.dead_letters + counts.skipped, 0);
        assert_int_equal(counts.stubs, 2);
        ops->close(sink);
    }
    tide_buf_done(&letters.text);
}

static void write_that_is_to_stop_writes_and_keeps_nothing(void **state)
{
    (void)state;

    static const char *const want[] = {
        "sink all cannot take a record and `refused` says stop (shop.t, key [5], seq 5 of snapshot "
        "019acfd5-0b4f-7000-8000-000000000001: 97 bytes, limit 60); raise its max_record_bytes, or "
        "set refused to dead_letter or skip for the table, then run again",
        "sink all cannot take a record and `refused` says stop (shop.t, key {\"id\":900}, change "
        "at "
        "9, index 0: 99 bytes, limit 60); raise its max_record_bytes, or set refused to "
        "dead_letter or skip for the table, then run again",
    };

    for (size_t i = 0; i < COUNT(want); i++) {
        struct kit_letters letters = {0};
        struct tide_frames frames;
        struct tide_buf buf = {0};
        struct tide_error err;
        struct tide_sink_counts counts;
        struct tide_sink_options options = options_with(TIDE_REFUSED_STOP, &letters);
        struct tide_batch *batch =
            i == 0 ? long_rows() : kit_change_named(kit_relation("t"), 9, LONG_NAME);
        tide_frames_init(&frames, &options, TIDE_STR("null:"));
        tide_frames_start(&frames, batch, 0);
        assert_int_equal(tide_frames_append(&frames, &buf, &err), TIDE_INVALID);
        assert_string_equal(err.message, want[i]);
        assert_true(!err.retriable && err.is_final);
        tide_frames_counts(&frames, &counts);
        assert_int_equal(counts.rows + counts.stubs + counts.changes + counts.bytes, 0);
        assert_int_equal(counts.dead_letters + counts.skipped, 0);
        assert_int_equal(buf.len, 0);
        assert_int_equal(letters.text.len, 0);
        tide_batch_unref(batch);
        tide_frames_done(&frames);
        tide_buf_done(&buf);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rule_of_is_the_first_that_matches),
        cmocka_unit_test(write_counts_what_is_kept_and_skipped),
        cmocka_unit_test(write_again_counts_nothing_new),
        cmocka_unit_test(write_that_is_to_stop_writes_and_keeps_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
