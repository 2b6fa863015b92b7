/* Archives of tables that are followed: rows out of segments, and columns before rows. */
#include "replication_kit.h"

#include "archive/change_encoder.h"
#include "archive/follow.h"
#include "change_maker.h"
#include "format/wire/stream.h"
#include "soak.h"

#include <stdio.h>
#include <string.h>

/* A table whose rows are made at random. */
struct table {
    struct change_maker maker;
    struct tide_change_schema schema;
    int64_t now;
};

/* The kit's archive, anew, with rows of tables. */
static void setup_tables(void)
{
    const struct tide_archive_writer_options options = {.encoder = &kit.encoder};
    const struct tide_archive_new_source source = {.clock_anchor_wall_ns = 1};
    kit_setup(&kit);
    tide_archive_writer_close(kit.writer);
    kit.writer = NULL;
    assert_int_equal(remove(kit.path), 0);
    kit.encoder = tide_change_encoder;
    kit_ok(&kit, tide_archive_create(kit.path, &kit.err));
    kit_ok(&kit, tide_archive_writer_open(kit.path, &options, &kit.writer, &kit.err));
    kit_ok(&kit, tide_archive_add_source(kit.writer, &source, &kit.source, &kit.err));
}

/* Columns, from the next row on. */
static void change_columns(struct table *table)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf json = {0};
    table->schema = change_maker_schema(&table->maker);
    change_maker_json(&table->schema, &json);
    const struct tide_archive_note note = {kit_series(&kit, "shop.t"), table->now + 1,
                                           tide_buf_str(&json)};
    const struct tide_archive_tick tick = {.notes = &note, .note_count = 1};
    kit_ok(&kit, tide_archive_write(kit.writer, &tick, &kit.err));
}

static void write_rows(struct table *table, size_t count)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf bytes = {0};
    for (size_t i = 0; i < count; i++) {
        struct tide_change_row made = change_maker_row(&table->maker, &table->schema);
        tide_buf_reset(&bytes);
        tide_change_row_encode(&made, table->schema.column_count, table->schema.key_count, &bytes);
        const struct tide_archive_row row = {kit_series(&kit, "shop.t"), ++table->now, 5,
                                             tide_buf_str(&bytes)};
        const struct tide_archive_tick tick = {.rows = &row, .row_count = 1};
        kit_ok(&kit, tide_archive_write(kit.writer, &tick, &kit.err));
    }
}

static void table_done(struct table *table)
{
    change_maker_done(&table->maker);
}

static void rows_sealed_between_polls_come_as_rows(void **state)
{
    (void)state;
    for (long seed = soak_rounds(15, 1000); seed > 0; seed--) {
        TIDE_CLEANUP(table_done) struct table table = {.maker = {.state = (uint64_t)seed}};
        struct follow quiet = {.is_quiet = true};
        struct follow said = {0};
        struct tide_subscriber_counts counts;
        setup_tables();
        follow_open(&quiet, &kit, "quiet.tide");
        follow_open(&said, &kit, "said.tide");
        change_columns(&table);
        write_rows(&table, 3);
        for (int step = 0; step < 12; step++) {
            switch (change_maker_below(&table.maker, 5)) {
            case 0:
                change_columns(&table);
                break;
            case 1:
                kit_ok(&kit, kit_seal(&kit, "shop.t"));
                break;
            case 2:
                kit_ok(&kit, follow_pump(&quiet));
                kit_ok(&kit, follow_pump(&said));
                break;
            default:
                break;
            }
            write_rows(&table, change_maker_below(&table.maker, 6));
        }
        kit_ok(&kit, follow_pump(&quiet));
        kit_ok(&kit, follow_pump(&said));
        follow_has_same_rows(&quiet);
        follow_has_same_rows(&said);
        assert_null(rest_differs(kit.path, quiet.path));
        assert_null(rest_differs(kit.path, said.path));
        tide_subscriber_counts(quiet.subscriber, &counts);
        assert_int_equal(counts.rows_held + counts.segments_held + counts.segments_opened, 0);
        follow_close(&quiet);
        follow_close(&said);
        kit_teardown(&kit);
    }
}

static void append_form(struct tide_publisher *publisher, struct tide_buf *stream,
                        struct tide_buf *forms)
{
    struct tide_wire_frame frame;
    bool is_caught_up = false;
    kit_ok(&kit, tide_publisher_next(publisher, stream, 1000000, &is_caught_up, &kit.err));
    struct tide_wire_reader reader = tide_wire_reader_of(tide_buf_str(stream));
    tide_buf_reset(forms);
    while (tide_wire_reader_next(&reader, &frame, &kit.err) == TIDE_OK) {
        if (frame.kind == TIDE_WIRE_INDEX) {
            tide_buf_append_str(forms, frame.index.is_delta ? TIDE_STR("d") : TIDE_STR("F"));
        } else if (frame.kind == TIDE_WIRE_SEGMENT) {
            tide_buf_append_char(forms, 's');
        } else if (frame.kind == TIDE_WIRE_ROWS) {
            tide_buf_append_char(forms, 'r');
        }
    }
}

static void columns_are_full_at_the_beginning_and_behind_each_sealing(void **state)
{
    (void)state;
    TIDE_CLEANUP(table_done) struct table table = {.maker = {.state = 5}};
    TIDE_CLEANUP(tide_buf_done) struct tide_buf stream = {0};
    TIDE_CLEANUP(tide_buf_done) struct tide_buf forms = {0};
    const struct tide_wire_hello hello = {0};
    const struct tide_publisher_options options = {.hello = &hello};
    struct tide_publisher *publisher = NULL;
    setup_tables();
    kit_ok(&kit, tide_publisher_open(kit.path, &options, &publisher, &kit.err));
    change_columns(&table);
    write_rows(&table, 2);
    append_form(publisher, &stream, &forms);
    change_columns(&table);
    write_rows(&table, 2);
    append_form(publisher, &stream, &forms);
    kit_ok(&kit, kit_seal(&kit, "shop.t"));
    append_form(publisher, &stream, &forms);
    change_columns(&table);
    write_rows(&table, 2);
    append_form(publisher, &stream, &forms);
    assert_string_equal(tide_buf_cstr(&forms), "FrdrsFr");
    tide_publisher_close(publisher);
    kit_teardown(&kit);
}

/* The stream without its index frame of that number, or nothing: it has not so many. */
static bool without_index(tide_str stream, int number, struct tide_buf *out)
{
    struct tide_wire_reader reader = tide_wire_reader_of(stream);
    struct tide_wire_frame frame;
    tide_buf_reset(out);
    for (size_t from = 0;; from = reader.pos) {
        tide_status status = tide_wire_reader_next(&reader, &frame, &kit.err);
        if (status == TIDE_END) {
            return number < 0;
        }
        kit_ok(&kit, status);
        if (frame.kind != TIDE_WIRE_INDEX || number-- != 0) {
            tide_buf_append(out, stream.ptr + from, reader.pos - from);
        }
    }
}

static void missing_columns_are_said_and_no_rows_taken_by_others(void **state)
{
    (void)state;
    TIDE_CLEANUP(table_done) struct table table = {.maker = {.state = 11}};
    TIDE_CLEANUP(tide_buf_done) struct tide_buf whole = {0};
    TIDE_CLEANUP(tide_buf_done) struct tide_buf cut = {0};
    const struct tide_publisher_options options = {0};
    struct tide_subscriber_counts counts;
    struct tide_publisher *publisher = NULL;
    bool is_caught_up = false;
    int tried = 0;
    setup_tables();
    for (int i = 0; i < 4; i++) {
        change_columns(&table);
        write_rows(&table, 3);
    }
    kit_ok(&kit, tide_publisher_open(kit.path, &options, &publisher, &kit.err));
    kit_ok(&kit, tide_publisher_next(publisher, &whole, 1 << 20, &is_caught_up, &kit.err));
    kit_ok(&kit, tide_publisher_keepalive(publisher, &whole, &kit.err));
    tide_publisher_close(publisher);
    for (; without_index(tide_buf_str(&whole), tried, &cut); tried++) {
        struct follow follow = {.is_quiet = true};
        char name[32];
        (void)snprintf(name, sizeof(name), "copy-%d.tide", tried);
        follow_open(&follow, &kit, name);
        kit_ok(&kit, follow_feed(&follow, tide_buf_str(&cut)));
        tide_subscriber_counts(follow.subscriber, &counts);
        assert_int_equal(counts.gaps, 1);
        assert_int_equal(counts.rows, 0);
        assert_int_equal(counts.rows_skipped, 12);
        follow_cut(&follow);
        kit_ok(&kit, follow_feed(&follow, tide_buf_str(&whole)));
        kit_ok(&kit, tide_subscriber_sync(follow.subscriber, &follow.err));
        follow_has_same_rows(&follow);
        follow_close(&follow);
    }
    assert_int_equal(tried, 4);
    kit_teardown(&kit);
}

/* A copy has the hearts that it was told of: none. */
static void heart_of_a_copy_does_not_beat(void **state)
{
    (void)state;
    kit_setup(&kit);
    const struct tide_archive_writer_options options = {.heartbeat_us = 1, .is_copy = true};
    const struct tide_archive_copied_source source = {.clock_anchor_wall_ns = 1};
    struct tide_archive_writer *writer = NULL;
    struct archive_kit copy = {0};
    int64_t id = 0;
    int64_t next_us = 0;
    (void)snprintf(copy.path, sizeof(copy.path), "%s/copy.tide", kit.root);
    kit_ok(&kit, tide_archive_create(copy.path, &kit.err));
    kit_ok(&kit, tide_archive_writer_open(copy.path, &options, &writer, &kit.err));
    kit_ok(&kit, tide_archive_group_begin(writer, &kit.err));
    kit_ok(&kit, tide_archive_copy_source(writer, &source, &id, &kit.err));
    kit_ok(&kit, tide_archive_group_commit(writer, &kit.err));
    kit_ok(&kit, tide_archive_tend(writer, &next_us, &kit.err));
    kit_ok(&kit, tide_archive_tend(writer, &next_us, &kit.err));
    assert_int_equal(kit_number(&copy, "SELECT COUNT(heartbeat) FROM sources"), 0);
    assert_int_equal(kit_number(&copy, "SELECT COUNT(*) FROM sources"), 1);
    tide_archive_writer_close(writer);
    kit_teardown(&kit);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_sealed_between_polls_come_as_rows),
        cmocka_unit_test(columns_are_full_at_the_beginning_and_behind_each_sealing),
        cmocka_unit_test(missing_columns_are_said_and_no_rows_taken_by_others),
        cmocka_unit_test(heart_of_a_copy_does_not_beat),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
