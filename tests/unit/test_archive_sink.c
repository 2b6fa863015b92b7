#include "cmocka_prelude.h"

#include "archive_sink_kit.h"
#include "sink/archive/archive_fill.h"
#include "sink/archive/archive_sink.h"
#include "sink_kit.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define PATH "a.tide"

static const struct tide_sink_ops *const ops = &tide_archive_sink_ops;

static struct tide_batch *rows_of(const char *table, uint64_t first, size_t count, bool is_end)
{
    return kit_rows((struct kit_part){
        .relation = kit_relation(table),
        .snapshot = 1,
        .opening = first == 0 ? TIDE_OPENING_BEGIN : TIDE_OPENING_NONE,
        .first_seq = first,
        .rows = count,
        .is_end = is_end,
    });
}

static void write_batches_are_rows_of_their_series(void **state)
{
    (void)state;
    struct stat st;
    struct tide_sink_counts counts;
    struct tide_sink *sink = open_new(PATH);
    kit_write(ops, sink, kit_changes(kit_relation("other"), 5, 1));
    kit_write(ops, sink, rows_of("t", 0, 2, false));
    kit_write(ops, sink, kit_changes(kit_relation("t"), 9, 2));
    kit_write(ops, sink, rows_of("t", 2, 1, true));
    kit_flush(ops, sink);
    ops->counts(sink, &counts);
    assert_int_equal(counts.rows, 3);
    assert_int_equal(counts.changes, 3);
    assert_int_equal(counts.stubs, 0);
    assert_true(counts.bytes > 0);
    ops->close(sink);
    assert_int_equal(stat(PATH, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_false(kit_exists(PATH "-wal"));
    assert_false(kit_exists(PATH "-lock"));
    assert_rows(PATH, "1 shop.other\n"
                      "change at 5.0 key 500 values 500,name 500,null\n"
                      "1 shop.t\n"
                      "begin seq 0\n"
                      "row at 7 seq 0 values 0,name 0,null\n"
                      "row at 7 seq 1 values 1,name 1,null\n"
                      "change at 9.0 key 900 values 900,name 900,null\n"
                      "change at 9.1 key 901 values 901,name 901,null\n"
                      "row at 7 seq 2 values 2,name 2,null\n"
                      "end seq 3\n");
}

static void write_batch_from_first_change_leaves_out_what_is_held(void **state)
{
    (void)state;
    struct tide_error err;
    struct tide_sink *sink = open_new(PATH);
    struct tide_batch *batch = kit_changes(kit_relation("t"), 9, 3);
    assert_int_equal(ops->write_batch(sink, batch, 2, &err), TIDE_OK);
    assert_int_equal(ops->write_batch(sink, batch, 3, &err), TIDE_OK);
    tide_batch_unref(batch);
    kit_flush(ops, sink);
    ops->close(sink);
    assert_rows(PATH, "1 shop.t\nchange at 9.2 key 902 values 902,name 902,null\n");
}

static void held_follows_flush_and_survives(void **state)
{
    (void)state;
    struct tide_sink_held held;
    struct tide_sink *sink = open_new(PATH);
    kit_write(ops, sink, kit_changes(kit_relation("t"), 9, 2));
    kit_write(ops, sink, rows_of("t", 0, 2, false));
    ops->held(sink, &held);
    assert_true(held.is_known && !held.place.known && held.snapshot_count == 0);
    kit_flush(ops, sink);
    kit_write(ops, sink, kit_changes(kit_relation("t"), 10, 1)); /* lost: never flushed */
    ops->close(sink);
    sink = open_resumed(PATH);
    ops->held(sink, &held);
    assert_int_equal(held.place.position.lo, 9);
    assert_true(held.place.index == TIDE_INDEX_AFTER_ALL && held.lists_all);
    assert_int_equal(held.snapshot_count, 1);
    assert_int_equal(held.snapshots[0].next_seq, 2);
    kit_write(ops, sink, kit_changes(kit_relation("t"), 10, 1));
    kit_write(ops, sink, rows_of("t", 2, 0, true));
    kit_flush(ops, sink);
    ops->held(sink, &held);
    assert_true(held.snapshots[0].next_seq == TIDE_SEQ_ENDED);
    ops->close(sink);
    assert_rows(PATH, "1 shop.t\n"
                      "change at 9.0 key 900 values 900,name 900,null\n"
                      "change at 9.1 key 901 values 901,name 901,null\n"
                      "begin seq 0\n"
                      "row at 7 seq 0 values 0,name 0,null\n"
                      "row at 7 seq 1 values 1,name 1,null\n"
                      "change at 10.0 key 1000 values 1000,name 1000,null\n"
                      "end seq 2\n");
}

static void flush_without_rows_holds_the_position(void **state)
{
    (void)state;
    struct tide_sink_held held;
    struct tide_sink *sink = open_new(PATH);
    kit_write(ops, sink, kit_changes(kit_relation("t"), 9, 0));
    kit_flush(ops, sink);
    kit_flush(ops, sink);
    ops->close(sink);
    sink = open_resumed(PATH);
    ops->held(sink, &held);
    assert_int_equal(held.place.position.lo, 9);
    ops->close(sink);
    assert_rows(PATH, "");
}

/* As after a commit of which the caller never heard. */
static void write_batch_of_what_is_held_is_not_doubled(void **state)
{
    (void)state;
    struct tide_sink *sink = open_new(PATH);
    kit_write(ops, sink, rows_of("t", 0, 2, false));
    kit_flush(ops, sink);
    ops->close(sink);
    sink = open_resumed(PATH);
    kit_write(ops, sink, rows_of("t", 0, 2, false));
    kit_write(ops, sink, rows_of("t", 1, 3, true)); /* half of it is new */
    kit_flush(ops, sink);
    ops->close(sink);
    sink = open_resumed(PATH);
    kit_write(ops, sink, rows_of("t", 0, 2, false)); /* all of it once more */
    kit_write(ops, sink, rows_of("t", 2, 1, false));
    kit_write(ops, sink, rows_of("t", 1, 3, true));
    kit_flush(ops, sink);
    struct tide_sink_held held;
    ops->held(sink, &held);
    assert_true(held.snapshot_count == 1 && held.snapshots[0].next_seq == TIDE_SEQ_ENDED);
    ops->close(sink);
    assert_rows(PATH, "1 shop.t\n"
                      "begin seq 0\n"
                      "row at 7 seq 0 values 0,name 0,null\n"
                      "row at 7 seq 1 values 1,name 1,null\n"
                      "row at 7 seq 2 values 2,name 2,null\n"
                      "row at 7 seq 3 values 3,name 3,null\n"
                      "end seq 4\n");
}

static void write_batch_of_a_new_attempt_is_written_again(void **state)
{
    (void)state;
    struct tide_sink *sink = open_new(PATH);
    kit_write(ops, sink, rows_of("t", 0, 3, false));
    kit_flush(ops, sink);
    kit_write(ops, sink,
              kit_rows((struct kit_part){.relation = kit_relation("t"),
                                         .snapshot = 1,
                                         .attempt = 1,
                                         .opening = TIDE_OPENING_RESUME,
                                         .first_seq = 2,
                                         .rows = 1,
                                         .is_end = true}));
    kit_flush(ops, sink);
    ops->close(sink);
    assert_rows(PATH, "1 shop.t\n"
                      "begin seq 0\n"
                      "row at 7 seq 0 values 0,name 0,null\n"
                      "row at 7 seq 1 values 1,name 1,null\n"
                      "row at 7 seq 2 values 2,name 2,null\n"
                      "resume seq 2 attempt 1\n"
                      "row at 7 seq 2 attempt 1 values 2,name 2,null\n"
                      "end seq 3 attempt 1\n");
}

/* Commit times that stand still or go back leave rows in their order, and stay what they were. */
static void write_batch_times_rise_and_clocks_stay(void **state)
{
    (void)state;
    struct tide_sink *sink = open_new(PATH);
    kit_write(ops, sink, kit_changes(kit_relation("t"), 20, 2));
    struct tide_batch *batch = kit_changes(kit_relation("t"), 21, 1);
    batch->changes[0].commit_us -= INT64_C(5000000);
    kit_write(ops, sink, batch);
    kit_flush(ops, sink);
    batch = kit_changes(kit_relation("t"), 22, 3);
    batch->changes[0].commit_us = INT64_MIN;
    batch->changes[1].commit_us = INT64_MAX;
    kit_write(ops, sink, batch);
    kit_flush(ops, sink);
    kit_write(ops, sink, kit_changes(kit_relation("t"), 23, 1));
    kit_flush(ops, sink);
    ops->close(sink);
    assert_int_equal(number_of(PATH,
                               "SELECT MAX(ts) - MIN(ts) FROM (SELECT ts FROM wal ORDER BY ts "
                               "LIMIT 4)"),
                     3);
    assert_int_equal(
        number_of(PATH, "SELECT ts + wall_offset FROM wal ORDER BY ts LIMIT 1 OFFSET 2"),
        INT64_C(1764423655567000000) + INT64_C(16000000000));
    assert_int_equal(number_of(PATH, "SELECT COUNT(DISTINCT ts) FROM wal"), 7);
}

/* Other columns */

static const struct tide_relation *wider(void)
{
    static const uint32_t key[] = {0};
    static const struct tide_column columns[] = {
        {.name = {"id", 2}, .type = {"INTEGER", 7}},
        {.name = {"name", 4}, .type = {"TEXT", 4}},
        {.name = {"note", 4}, .type = {"JSON", 4}},
        {.name = {"more", 4}, .type = {"TEXT", 4}},
    };
    return tide_relation_new(&(struct tide_relation_spec){.connection = TIDE_STR("shop"),
                                                          .name = TIDE_STR("t"),
                                                          .columns = columns,
                                                          .column_count = 4,
                                                          .key_columns = key,
                                                          .key_count = 1});
}

static struct tide_batch *wide_change(const struct tide_relation *relation, uint64_t position)
{
    struct tide_batch *batch = kit_changes(relation, position, 1);
    struct tide_value *values = tide_arena_alloc(&batch->arena, 4, sizeof(*values));
    memcpy(values, batch->changes[0].values, 3 * sizeof(*values));
    values[3] = (struct tide_value){.ptr = "x", .len = 1, .kind = TIDE_VALUE_TEXT};
    batch->changes[0].values = values;
    return batch;
}

static void write_batch_of_other_columns_notes_them(void **state)
{
    (void)state;
    struct tide_error err = {0};
    const struct tide_relation *wide = wider();
    struct tide_sink_options options = kit_options(PATH);
    options.segments.rows_max = 3;
    struct tide_sink *sink = kit_open(ops, &options);
    kit_write(ops, sink, kit_changes(kit_relation("t"), 5, 2));
    kit_write(ops, sink, wide_change(wide, 6));
    kit_write(ops, sink, kit_changes(kit_relation("t"), 7, 1));
    kit_flush(ops, sink);
    kit_write(ops, sink, wide_change(wide, 8));
    kit_flush(ops, sink);
    ok(ops->finish(sink, &err), &err);
    ops->close(sink);
    assert_rows(PATH, "1 shop.t\n"
                      "change at 5.0 key 500 values 500,name 500,null\n"
                      "change at 5.1 key 501 values 501,name 501,null\n"
                      "change at 6.0 key 600 values 600,name 600,null,x\n"
                      "change at 7.0 key 700 values 700,name 700,null\n"
                      "change at 8.0 key 800 values 800,name 800,null,x\n");
    tide_relation_unref(wide);
}

/* Sealing */

static void flush_seals_what_is_due_and_notes_columns_there(void **state)
{
    (void)state;
    struct tide_sink_options options = kit_options(PATH);
    options.segments.rows_max = 10;
    struct tide_sink *sink = kit_open(ops, &options);
    for (uint64_t i = 0; i < 20; i++) {
        kit_write(ops, sink, kit_changes(kit_relation("t"), 10 + i, 4));
        kit_flush(ops, sink);
    }
    ops->close(sink);
    assert_true(number_of(PATH, "SELECT COUNT(*) FROM segments") >= 7);
    assert_true(number_of(PATH, "SELECT MAX(rows) FROM segments") <= 10);
    assert_true(number_of(PATH, "SELECT COUNT(*) FROM wal") < 10);
    assert_int_equal(number_of(PATH, "SELECT (SELECT SUM(rows) FROM segments) + COUNT(*) FROM wal"),
                     80);
    /* each segment and what is live begin with their columns */
    assert_int_equal(number_of(PATH, "SELECT COUNT(*) FROM segments WHERE first_ts NOT IN "
                                     "(SELECT ts FROM caller_rows)"),
                     0);
    assert_int_equal(
        number_of(PATH, "SELECT COUNT(*) FROM (SELECT MIN(ts) AS t FROM wal HAVING COUNT(*) > 0) "
                        "WHERE t NOT IN (SELECT ts FROM caller_rows)"),
        0);
    assert_int_equal(number_of(PATH, "SELECT complete FROM sources"), 0);
}

static void finish_seals_all_and_completes(void **state)
{
    (void)state;
    struct tide_error err = {0};
    struct tide_sink *sink = open_new(PATH);
    kit_write(ops, sink, rows_of("t", 0, 3, false));
    kit_flush(ops, sink);
    ok(ops->finish(sink, &err), &err); /* a copy is under way: nothing is whole */
    ops->close(sink);
    assert_int_equal(number_of(PATH, "SELECT complete FROM sources"), 0);
    assert_int_equal(number_of(PATH, "SELECT COUNT(*) FROM wal"), 4);
    sink = open_resumed(PATH);
    kit_write(ops, sink, rows_of("t", 3, 1, true));
    kit_flush(ops, sink);
    ok(ops->finish(sink, &err), &err);
    ops->close(sink);
    assert_int_equal(number_of(PATH, "SELECT complete FROM sources"), 1);
    assert_int_equal(number_of(PATH, "SELECT COUNT(*) FROM wal"), 0);
    assert_int_equal(number_of(PATH, "SELECT SUM(rows) FROM segments"), 6);
    sink = open_resumed(PATH); /* gone on with, it is no longer whole */
    assert_int_equal(number_of(PATH, "SELECT complete FROM sources"), 0);
    kit_write(ops, sink, kit_changes(kit_relation("t"), 9, 1));
    kit_flush(ops, sink);
    ops->close(sink);
    assert_int_equal(number_of(PATH,
                               "SELECT json_array_length(metadata ->> 'writer_sessions') FROM "
                               "sources"),
                     3);
}

/* Records that are too long */

static void write_batch_long_records_become_stubs(void **state)
{
    (void)state;
    struct kit_letters letters = {0};
    struct tide_sink_counts counts;
    struct tide_sink_options options = kit_options(PATH);
    char name[2001];
    memset(name, '\n', 2000); /* each becomes two in a record */
    name[2000] = '\0';
    options.name = TIDE_STR("all");
    options.record_bytes_max = 4000;
    options.dead_letters = kit_letters_target(&letters);
    struct tide_sink *sink = kit_open(ops, &options);
    kit_write(ops, sink,
              kit_rows((struct kit_part){.relation = kit_relation("t"),
                                         .snapshot = 1,
                                         .opening = TIDE_OPENING_BEGIN,
                                         .rows = 1,
                                         .name = name,
                                         .is_end = true}));
    kit_write(ops, sink, kit_change_named(kit_relation("t"), 9, name));
    kit_flush(ops, sink);
    ops->counts(sink, &counts);
    assert_int_equal(counts.stubs, 1);
    assert_int_equal(counts.rows, 0);
    assert_int_equal(counts.dead_letters, 2);
    ops->close(sink);
    assert_rows(PATH, "1 shop.t\n"
                      "begin seq 0\n"
                      "stub at 7 seq 0 bytes 4030 key 0\n"
                      "end seq 1\n"
                      "change at 9.0 bytes 4032 key 900\n");
    assert_non_null(strstr(tide_buf_cstr(&letters.text), "4030 bytes, limit 4000"));
    tide_buf_done(&letters.text);
}

static void write_batch_long_record_stops_where_asked(void **state)
{
    (void)state;
    struct tide_error err = {0};
    struct tide_sink_options options = kit_options(PATH);
    options.record_bytes_max = 60;
    options.refused.otherwise = TIDE_REFUSED_STOP;
    struct tide_sink *sink = kit_open(ops, &options);
    struct tide_batch *batch =
        kit_change_named(kit_relation("t"), 9, "a name that is too long for a record of sixty");
    assert_int_equal(ops->write_batch(sink, batch, 0, &err), TIDE_INVALID);
    assert_true(err.is_final);
    tide_batch_unref(batch);
    ops->close(sink);
    assert_rows(PATH, "");
}

/* Values that were not sent */

#define LONG_A "a text that is long enough to be kept apart by a server, and then some more of it"
#define LONG_B "another text that is long enough to be kept apart by a server, and some more"

static struct tide_batch *partial(uint64_t position, uint64_t id, uint64_t moved_from)
{
    char text[32];
    struct tide_batch *batch = kit_changes(kit_relation("t"), position, 1);
    struct tide_change *change = &batch->changes[0];
    struct tide_value *values = tide_arena_alloc(&batch->arena, 3, sizeof(*values));
    struct tide_value *from = tide_arena_alloc(&batch->arena, 1, sizeof(*from));
    (void)snprintf(text, sizeof(text), "%llu", (unsigned long long)id);
    tide_str copy = tide_arena_str(&batch->arena, tide_str_from(text));
    values[0] = (struct tide_value){copy.ptr, (uint32_t)copy.len, TIDE_VALUE_INTEGER};
    values[1] = (struct tide_value){.kind = TIDE_VALUE_UNCHANGED};
    values[2] = (struct tide_value){.kind = TIDE_VALUE_NULL};
    (void)snprintf(text, sizeof(text), "%llu", (unsigned long long)moved_from);
    copy = tide_arena_str(&batch->arena, tide_str_from(text));
    *from = (struct tide_value){copy.ptr, (uint32_t)copy.len, TIDE_VALUE_INTEGER};
    change->is_partial = true;
    change->key = values;
    change->values = values;
    change->moved_from = moved_from == 0 ? NULL : from;
    return batch;
}

static void write_batch_fills_in_what_was_not_sent(void **state)
{
    (void)state;
    struct tide_sink_counts counts;
    struct tide_sink_options options = kit_options(PATH);
    options.segments.fills_unchanged = true;
    struct tide_sink *sink = kit_open(ops, &options);
    kit_write(ops, sink,
              kit_rows((struct kit_part){.relation = kit_relation("t"),
                                         .snapshot = 1,
                                         .opening = TIDE_OPENING_BEGIN,
                                         .first_seq = 7,
                                         .rows = 1,
                                         .name = LONG_A}));
    kit_write(ops, sink, partial(9, 7, 0));
    kit_write(ops, sink, partial(10, 8, 7)); /* moves */
    kit_write(ops, sink, partial(11, 7, 0)); /* of this nothing is known */
    kit_write(ops, sink, partial(12, 8, 0));
    kit_write(ops, sink, kit_change_named(kit_relation("t"), 13, LONG_B));
    kit_write(ops, sink, partial(14, 1300, 0));
    struct tide_batch *batch = kit_changes(kit_relation("t"), 15, 1);
    batch->changes[0].op = TIDE_OP_TRUNCATE;
    batch->changes[0].key = NULL;
    batch->changes[0].values = NULL;
    kit_write(ops, sink, batch);
    kit_write(ops, sink, partial(16, 8, 0));
    kit_flush(ops, sink);
    ops->counts(sink, &counts);
    assert_int_equal(counts.unfilled, 2);
    ops->close(sink);
    assert_rows(PATH, "1 shop.t\n"
                      "begin seq 0\n"
                      "row at 7 seq 7 values 7," LONG_A ",null\n"
                      "change at 9.0 key 7 values 7," LONG_A ",null\n"
                      "change at 10.0 key 8 values 8," LONG_A ",null\n"
                      "change at 11.0 key 7 values 7,?,null\n"
                      "change at 12.0 key 8 values 8," LONG_A ",null\n"
                      "change at 13.0 key 1300 values 1300," LONG_B ",null\n"
                      "change at 14.0 key 1300 values 1300," LONG_B ",null\n"
                      "change at 15.0\n"
                      "change at 16.0 key 8 values 8,?,null\n");
}

/* Opened again, it reads what is there, sealed or live, and knows what has become of each row. */
static void write_batch_fills_in_what_an_earlier_session_wrote(void **state)
{
    (void)state;
    struct tide_error err = {0};
    struct tide_sink_counts counts;
    struct tide_sink *sink = open_new(PATH);
    kit_write(ops, sink, kit_change_named(kit_relation("t"), 1, LONG_A)); /* row 100 */
    kit_write(ops, sink, kit_change_named(kit_relation("t"), 2, LONG_A));
    kit_write(ops, sink, partial(3, 100, 0)); /* as not sent: filled in on reading */
    kit_flush(ops, sink);
    ok(ops->finish(sink, &err), &err);
    ops->close(sink);
    sink = open_resumed(PATH);
    kit_write(ops, sink, kit_change_named(kit_relation("t"), 4, LONG_A));
    kit_write(ops, sink, partial(5, 7, 400));                              /* 400 is 7 now */
    kit_write(ops, sink, kit_change_named(kit_relation("t"), 6, "short")); /* row 600 */
    kit_flush(ops, sink);
    ops->close(sink);
    struct tide_sink_options options = kit_options(PATH);
    options.is_resumed = true;
    options.segments.fills_unchanged = true;
    sink = kit_open(ops, &options);
    for (uint64_t id = 100; id <= 700; id += 100) {
        kit_write(ops, sink, partial(10 + id / 100, id == 700 ? 7 : id, 0));
    }
    kit_flush(ops, sink);
    ops->counts(sink, &counts);
    assert_int_equal(counts.unfilled, 4); /* 300, 400, 500, 600 */
    ops->close(sink);
    TIDE_CLEANUP(tide_buf_done) struct tide_buf text = {0};
    list_rows(PATH, &text);
    const char *tail = strstr(tide_buf_cstr(&text), "change at 11.0");
    assert_non_null(tail);
    assert_string_equal(tail, "change at 11.0 key 100 values 100," LONG_A ",null\n"
                              "change at 12.0 key 200 values 200," LONG_A ",null\n"
                              "change at 13.0 key 300 values 300,?,null\n"
                              "change at 14.0 key 400 values 400,?,null\n"
                              "change at 15.0 key 500 values 500,?,null\n"
                              "change at 16.0 key 600 values 600,?,null\n"
                              "change at 17.0 key 7 values 7," LONG_A ",null\n");
}

static void write_batch_leaves_unsent_what_is_not_to_be_filled(void **state)
{
    (void)state;
    struct tide_sink_counts counts;
    struct tide_sink *sink = open_new(PATH);
    kit_write(ops, sink, kit_change_named(kit_relation("t"), 13, LONG_B));
    kit_write(ops, sink, partial(14, 1300, 0));
    kit_flush(ops, sink);
    ops->counts(sink, &counts);
    assert_int_equal(counts.unfilled, 0);
    ops->close(sink);
    assert_rows(PATH, "1 shop.t\n"
                      "change at 13.0 key 1300 values 1300," LONG_B ",null\n"
                      "change at 14.0 key 1300 values 1300,?,null\n");
}

static void fill_forgets_the_oldest_when_it_is_full(void **state)
{
    (void)state;
    struct tide_archive_fill fill;
    const struct tide_relation *t = kit_relation("t");
    struct tide_value row[3] = {{"1", 1, TIDE_VALUE_INTEGER},
                                {LONG_A, sizeof(LONG_A) - 1, TIDE_VALUE_TEXT},
                                {.kind = TIDE_VALUE_NULL}};
    char id[4][2] = {"1", "2", "3", "4"};
    tide_archive_fill_init(&fill, 700);
    for (size_t i = 0; i < 4; i++) {
        row[0].ptr = id[i];
        tide_archive_fill_note(&fill, t, row, row);
        row[0].ptr = id[0];
        tide_archive_fill_note(&fill, t, row, row); /* touched each time */
        assert_true(fill.bytes <= 700);
    }
    for (size_t i = 0; i < 4; i++) {
        struct tide_value unsent[3] = {{id[i], 1, TIDE_VALUE_INTEGER},
                                       {.kind = TIDE_VALUE_UNCHANGED},
                                       {.kind = TIDE_VALUE_NULL}};
        bool is_known = tide_archive_fill_apply(&fill, t, unsent, unsent);
        assert_int_equal(is_known, i == 0 || i == 3);
        assert_int_equal(unsent[1].kind, is_known ? TIDE_VALUE_TEXT : TIDE_VALUE_UNCHANGED);
    }
    assert_int_equal(fill.by_key.count, 2);
    row[1].len = 10; /* too short to be kept apart */
    row[0].ptr = id[0];
    tide_archive_fill_note(&fill, t, row, row);
    tide_archive_fill_forget_table(&fill, kit_relation("other"));
    assert_int_equal(fill.by_key.count, 1);
    tide_archive_fill_forget_table(&fill, t);
    assert_int_equal(fill.by_key.count, 0);
    assert_int_equal(fill.bytes, 0);
    tide_archive_fill_done(&fill);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, kit_setup, kit_teardown)
    const struct CMUnitTest tests[] = {
        TEST(write_batches_are_rows_of_their_series),
        TEST(write_batch_from_first_change_leaves_out_what_is_held),
        TEST(held_follows_flush_and_survives),
        TEST(flush_without_rows_holds_the_position),
        TEST(write_batch_of_what_is_held_is_not_doubled),
        TEST(write_batch_of_a_new_attempt_is_written_again),
        TEST(write_batch_times_rise_and_clocks_stay),
        TEST(write_batch_of_other_columns_notes_them),
        TEST(flush_seals_what_is_due_and_notes_columns_there),
        TEST(finish_seals_all_and_completes),
        TEST(write_batch_long_records_become_stubs),
        TEST(write_batch_long_record_stops_where_asked),
        TEST(write_batch_fills_in_what_was_not_sent),
        TEST(write_batch_fills_in_what_an_earlier_session_wrote),
        TEST(write_batch_leaves_unsent_what_is_not_to_be_filled),
        TEST(fill_forgets_the_oldest_when_it_is_full),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
