#include "cmocka_prelude.h"

#include "sink/file/file_sink.h"
#include "sink/null/null_sink.h"
#include "sink_kit.h"

/* It encodes what the file sink encodes: the counts agree to the byte. */
static void write_batch_counts_like_the_file_sink(void **state)
{
    (void)state;
    const struct tide_sink_ops *const both[] = {&tide_null_sink_ops, &tide_file_sink_ops};
    struct tide_sink_counts counts[2];
    for (size_t i = 0; i < 2; i++) {
        struct tide_sink_options options = kit_options(i == 0 ? "" : "out.ndjson");
        struct tide_sink *sink = kit_open(both[i], &options);
        for (uint64_t position = 1; position < 5; position++) {
            kit_write(both[i], sink, kit_changes(kit_relation("t"), position, 1000));
        }
        kit_write(both[i], sink,
                  kit_rows((struct kit_part){.relation = kit_relation("t"),
                                             .opening = TIDE_OPENING_BEGIN,
                                             .rows = 3000,
                                             .is_end = true}));
        kit_flush(both[i], sink);
        both[i]->counts(sink, &counts[i]);
        both[i]->close(sink);
    }
    assert_int_equal(counts[0].rows, 3000);
    assert_int_equal(counts[0].changes, 4000);
    assert_int_equal(counts[0].bytes, counts[1].bytes);
    assert_true(counts[0].bytes > 1000000);
}

static void held_knows_nothing(void **state)
{
    (void)state;
    struct tide_sink_held held = {.is_known = true};
    struct tide_sink_options options = kit_options("");
    struct tide_sink *sink = kit_open(&tide_null_sink_ops, &options);
    tide_null_sink_ops.held(sink, &held);
    assert_false(held.is_known);
    tide_null_sink_ops.close(sink);
    tide_null_sink_ops.close(NULL);
}

static void open_with_a_path_is_invalid(void **state)
{
    (void)state;
    struct tide_error err;
    struct tide_sink *sink = NULL;
    struct tide_sink_options options = kit_options("out");
    assert_int_equal(tide_null_sink_ops.open(&options, &sink, &err), TIDE_INVALID);
    assert_string_equal(err.message, "null: takes no path; write null: alone");
    assert_null(sink);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, kit_setup, kit_teardown)
    const struct CMUnitTest tests[] = {
        TEST(write_batch_counts_like_the_file_sink),
        TEST(held_knows_nothing),
        TEST(open_with_a_path_is_invalid),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
