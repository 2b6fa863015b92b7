/* An archive that follows another one: what comes, what comes again, and what is made of it. */
#include "replication_kit.h"

#include "format/wire/stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void write_note(const char *series, int64_t ts, const char *text)
{
    const struct tide_archive_note note = {kit_series(&kit, series), ts, tide_str_from(text)};
    const struct tide_archive_tick tick = {.notes = &note, .note_count = 1};
    kit_ok(&kit, tide_archive_write(kit.writer, &tick, &kit.err));
}

/* Segments, live rows, notes and offsets of two series. */
static void fill(void)
{
    write_note("a", 1, "columns of a");
    write_note("b", 1, "columns of b");
    kit_ok(&kit, kit_write(&kit, "a", 1, 50));
    kit_ok(&kit, kit_write(&kit, "b", 1, 30));
    kit_ok(&kit, kit_seal(&kit, "a"));
    write_note("a", 51, "columns of a");
    write_note("a", 51, "columns of a");
    kit_ok(&kit, kit_write(&kit, "a", 51, 80));
    kit_ok(&kit, kit_seal(&kit, "a"));
    kit_ok(&kit, kit_write(&kit, "a", 81, 99));
}

static void pump_copies_all_tables(void **state)
{
    (void)state;
    for (size_t piece = 1; piece < 5000; piece = piece * 3 + 1) {
        struct follow follow = {.piece_max = piece};
        char name[32];
        (void)snprintf(name, sizeof(name), "copy-%zu.tide", piece);
        if (piece == 1) {
            fill();
        }
        follow_open(&follow, &kit, name);
        kit_ok(&kit, follow_pump(&follow));
        follow_is_equal(&follow);
        follow_close(&follow);
    }
}

static void pump_quiet_copies_all_tables(void **state)
{
    (void)state;
    struct follow follow = {.is_quiet = true};
    struct archive_kit copy = kit;
    fill();
    follow_open(&follow, &kit, "copy.tide");
    memcpy(copy.path, follow.path, sizeof(copy.path));
    assert_string_equal(kit_text(&copy, "PRAGMA journal_mode"), "delete"); /* being filled */
    kit_ok(&kit, follow_pump(&follow));
    follow_is_equal(&follow);
    assert_string_equal(kit_text(&copy, "PRAGMA journal_mode"), "wal");
    follow_close(&follow);
}

static void pump_follows_rows_and_segments(void **state)
{
    (void)state;
    struct follow follow = {0};
    follow_open(&follow, &kit, "copy.tide");
    for (int64_t i = 0; i < 20; i++) {
        kit_ok(&kit, kit_write(&kit, "a", i * 10, i * 10 + 9));
        kit_ok(&kit, follow_pump(&follow));
        follow_is_equal(&follow);
        if (i % 3 == 2) {
            kit_ok(&kit, kit_seal(&kit, "a"));
            write_note("a", i * 10 + 10, "again");
            kit_ok(&kit, follow_pump(&follow));
            follow_is_equal(&follow);
        }
        if (i % 5 == 4) {
            follow_cut(&follow);
        }
    }
    follow_close(&follow);
}

/* What comes again */

static void index_that_is_there_twice_comes_twice(void **state)
{
    (void)state;
    struct follow follow = {0};
    follow_open(&follow, &kit, "copy.tide");
    write_note("a", 5, "columns");
    kit_ok(&kit, follow_pump(&follow));
    follow_cut(&follow);
    write_note("a", 5, "columns");
    write_note("b", 5, "columns");
    kit_ok(&kit, follow_pump(&follow));
    write_note("a", 5, "columns");
    kit_ok(&kit, follow_pump(&follow));
    follow_is_equal(&follow);
    struct tide_subscriber_counts counts;
    tide_subscriber_counts(follow.subscriber, &counts);
    assert_int_equal(counts.index_entries, 4);
    assert_int_equal(counts.index_entries_held, 1);
    follow_close(&follow);
}

static void rows_that_are_there_are_held(void **state)
{
    (void)state;
    struct follow follow = {.is_quiet = true};
    struct tide_subscriber_counts counts;
    follow_open(&follow, &kit, "copy.tide");
    fill();
    kit_ok(&kit, follow_pump(&follow));
    follow_cut(&follow);
    kit_ok(&kit, kit_write(&kit, "a", 100, 109));
    kit_ok(&kit, follow_pump(&follow));
    tide_subscriber_counts(follow.subscriber, &counts);
    assert_int_equal(counts.rows, 19 + 30 + 10);
    assert_int_equal(counts.rows_held, 19 + 30);
    assert_int_equal(counts.segments, 2);
    assert_int_equal(counts.segments_held, 2);
    follow_is_equal(&follow);
    follow_close(&follow);
}

/* Frames by hand */

static const struct tide_wire_frame hello_frame = {
    .kind = TIDE_WIRE_HANDSHAKE,
    .handshake = {.has_uuid = true,
                  .uuid = {"3f2b1c4d-0000-4000-8000-00000000abcd", 36},
                  .clock_anchor_wall_ns = 17},
};

static void add_frame(struct tide_buf *stream, const struct tide_wire_frame *frame)
{
    kit_ok(&kit, tide_wire_encode(frame, stream, &kit.err));
}

static void add_rows(struct tide_buf *stream, struct tide_wire_state state, uint64_t seq,
                     const char *series, int64_t ts, const char *bytes)
{
    const struct tide_wire_row row = {tide_str_from(series), ts, 3, tide_str_from(bytes)};
    struct tide_wire_draft draft = tide_wire_rows_begin(0, seq, state, stream);
    kit_ok(&kit, tide_wire_rows_add(&draft, &row, stream, &kit.err));
    tide_wire_rows_end(&draft, stream);
}

static void add_segment(struct tide_buf *stream, int64_t rows, int64_t first, int64_t last,
                        tide_str bytes)
{
    const struct tide_wire_frame frame = {
        .kind = TIDE_WIRE_SEGMENT,
        .segment = {.series = TIDE_STR("a"),
                    .rows = rows,
                    .first_ts = first,
                    .last_ts = last,
                    .bytes = bytes},
    };
    add_frame(stream, &frame);
}

static const struct tide_wire_state no_state = {0, 0};

/* The plain encoder's segment of rows with these times, each with `text`. */
static void plain_segment(struct tide_buf *bytes, const int64_t *times, size_t count,
                          const char *text)
{
    struct tide_archive_live_row rows[10];
    struct tide_archive_draft draft = {0};
    for (size_t i = 0; i < count; i++) {
        rows[i] = (struct tide_archive_live_row){times[i], 0, tide_str_from(text)};
    }
    const struct tide_archive_encode_input input = {
        .series = TIDE_STR("a"), .rows = rows, .row_count = count};
    kit_ok(&kit, kit.encoder.encode(kit.encoder.context, &input, &draft, &kit.err));
    tide_buf_append_str(bytes, tide_buf_str(&draft.bytes));
    tide_archive_draft_done(&draft);
}

static void add_source(struct tide_buf *stream)
{
    struct tide_wire_frame frame = hello_frame;
    TIDE_CLEANUP(tide_buf_done) struct tide_buf pairs = {0};
    tide_wire_pair_append(&pairs, TIDE_STR(TIDE_ARCHIVE_KEY_ENCODER),
                          tide_str_from(kit.encoder.version));
    frame.handshake.metadata = (struct tide_wire_map){.count = 1, .pairs = tide_buf_str(&pairs)};
    add_frame(stream, &frame);
}

/* A copy of one source of which a stream has begun. */
static void begin_by_hand(struct follow *follow, struct tide_buf *stream)
{
    follow_open(follow, &kit, "copy.tide");
    tide_wire_preamble_append(stream);
    add_source(stream);
}

/* The same of a source that names no encoder. */
static void begin_unnamed(struct follow *follow, struct tide_buf *stream)
{
    follow_open(follow, &kit, "copy.tide");
    tide_wire_preamble_append(stream);
    add_frame(stream, &hello_frame);
}

static void must_fail(struct follow *follow, struct tide_buf *stream, tide_status want,
                      const char *why)
{
    struct tide_error ignored;
    tide_status status = follow_feed(follow, tide_buf_str(stream));
    assert_int_equal(status, want);
    if (strstr(follow->err.message, why) == NULL) {
        fail_msg("wanted %s in: %s", why, follow->err.message);
    }
    (void)tide_subscriber_end(follow->subscriber, &ignored);
    kit_ok(&kit, tide_subscriber_restart(follow->subscriber, &follow->err));
}

/* One number out of the copy. */
static int64_t number_of(const struct follow *follow, const char *sql)
{
    struct archive_kit other = kit;
    other.writer = NULL;
    memcpy(other.path, follow->path, sizeof(other.path));
    return kit_number(&other, sql);
}

static void row_with_other_bytes_is_refused_with_its_frame(void **state)
{
    (void)state;
    struct follow follow = {0};
    TIDE_CLEANUP(tide_buf_done) struct tide_buf stream = {0};
    begin_by_hand(&follow, &stream);
    add_rows(&stream, no_state, 0, "a", 5, "five");
    const struct tide_wire_row rows[] = {{TIDE_STR("a"), 6, 3, TIDE_STR("six")},
                                         {TIDE_STR("a"), 5, 3, TIDE_STR("fife")}};
    struct tide_wire_draft draft = tide_wire_rows_begin(0, 1, no_state, &stream);
    kit_ok(&kit, tide_wire_rows_add(&draft, &rows[0], &stream, &kit.err));
    kit_ok(&kit, tide_wire_rows_add(&draft, &rows[1], &stream, &kit.err));
    tide_wire_rows_end(&draft, &stream);
    must_fail(&follow, &stream, TIDE_INVALID, "is held with 4 bytes, and came with 4");
    assert_int_equal(number_of(&follow, "SELECT COUNT(*) FROM wal"), 1);
    assert_int_equal(number_of(&follow, "SELECT ts FROM wal"), 5);
    follow_close(&follow);
}

static void segment_without_a_live_row_is_refused(void **state)
{
    (void)state;

    static const struct {
        int64_t live;
        const char *text;
        const char *why;
    } cases[] = {{6, "x", "has no such row"},
                 {9, "x", "has no such row"},
                 {7, "y", "has another one of that time"}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct follow follow = {0};
        TIDE_CLEANUP(tide_buf_done) struct tide_buf stream = {0};
        TIDE_CLEANUP(tide_buf_done) struct tide_buf bytes = {0};
        const int64_t times[] = {5, 7, 8, 10};
        begin_by_hand(&follow, &stream);
        add_rows(&stream, no_state, 0, "a", cases[i].live, cases[i].text);
        plain_segment(&bytes, times, 4, "x");
        add_segment(&stream, 4, 5, 10, tide_buf_str(&bytes));
        must_fail(&follow, &stream, TIDE_INVALID, cases[i].why);
        assert_int_equal(number_of(&follow, "SELECT COUNT(*) FROM wal"), 1);
        assert_int_equal(number_of(&follow, "SELECT COUNT(*) FROM segments"), 0);
        follow_close(&follow);
        (void)remove(follow.path);
    }
}

/* What cannot be opened takes the place of live rows that it may have: of those that lie within it,
 * as many as it has at most. */
static void segment_of_an_unnamed_encoder_is_not_opened(void **state)
{
    (void)state;

    static const struct {
        int64_t rows;
        int64_t first;
        const char *why; /* NULL: it is taken */
    } cases[] = {{2, 7, NULL}, {5, 1, NULL}, {1, 7, "has fewer rows"}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct follow follow = {0};
        TIDE_CLEANUP(tide_buf_done) struct tide_buf stream = {0};
        begin_unnamed(&follow, &stream);
        add_rows(&stream, no_state, 0, "a", 7, "x");
        add_rows(&stream, no_state, 1, "a", 9, "x");
        add_segment(&stream, cases[i].rows, cases[i].first, 10, TIDE_STR("whatever"));
        if (cases[i].why != NULL) {
            must_fail(&follow, &stream, TIDE_INVALID, cases[i].why);
        } else {
            kit_ok(&kit, follow_feed(&follow, tide_buf_str(&stream)));
            kit_ok(&kit, tide_subscriber_sync(follow.subscriber, &follow.err));
        }
        assert_int_equal(number_of(&follow, "SELECT COUNT(*) FROM wal"),
                         cases[i].why == NULL ? 0 : 2);
        follow_close(&follow);
        (void)remove(follow.path);
    }
}

static void segment_that_lies_is_refused(void **state)
{
    (void)state;

    static const struct {
        int64_t rows;
        int64_t first;
        int64_t last;
        const char *why;
    } cases[] = {{0, 5, 10, "can exist"},
                 {4, 10, 5, "can exist"},
                 {3, 5, 10, "and has 4 from 5 to 10"},
                 {4, 4, 10, "and has 4 from 5 to 10"},
                 {4, 5, 11, "and has 4 from 5 to 10"}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct follow follow = {0};
        TIDE_CLEANUP(tide_buf_done) struct tide_buf stream = {0};
        TIDE_CLEANUP(tide_buf_done) struct tide_buf bytes = {0};
        const int64_t times[] = {5, 7, 8, 10};
        begin_by_hand(&follow, &stream);
        add_rows(&stream, no_state, 0, "a", 7, "x");
        plain_segment(&bytes, times, 4, "x");
        add_segment(&stream, cases[i].rows, cases[i].first, cases[i].last, tide_buf_str(&bytes));
        must_fail(&follow, &stream, TIDE_INVALID, cases[i].why);
        assert_int_equal(number_of(&follow, "SELECT COUNT(*) FROM wal"), 1);
        follow_close(&follow);
        (void)remove(follow.path);
    }
}

/* One that reaches across what is sealed is opened, and judged by what is in it. */
static void segment_that_lies_across_what_is_sealed_is_refused(void **state)
{
    (void)state;
    struct follow follow = {0};
    TIDE_CLEANUP(tide_buf_done) struct tide_buf stream = {0};
    TIDE_CLEANUP(tide_buf_done) struct tide_buf first = {0};
    TIDE_CLEANUP(tide_buf_done) struct tide_buf second = {0};
    const int64_t times[] = {5, 7, 8, 10};
    begin_by_hand(&follow, &stream);
    plain_segment(&first, times, 2, "x");
    add_segment(&stream, 2, 5, 7, tide_buf_str(&first));
    plain_segment(&second, times, 4, "x");
    add_segment(&stream, 5, 5, 10, tide_buf_str(&second));
    must_fail(&follow, &stream, TIDE_INVALID, "says 5 rows from 5 to 10, and has 4");
    assert_int_equal(number_of(&follow, "SELECT COUNT(*) FROM wal"), 0);
    tide_buf_reset(&stream);
    tide_wire_preamble_append(&stream);
    add_source(&stream);
    add_segment(&stream, 4, 5, 10, tide_buf_str(&second));
    kit_ok(&kit, follow_feed(&follow, tide_buf_str(&stream)));
    kit_ok(&kit, tide_subscriber_sync(follow.subscriber, &follow.err));
    assert_int_equal(number_of(&follow, "SELECT COUNT(*) FROM wal"), 2);
    follow_close(&follow);
}

static void rows_of_unknown_columns_are_skipped_until_those_come(void **state)
{
    (void)state;
    struct follow follow = {0};
    struct tide_subscriber_counts counts;
    TIDE_CLEANUP(tide_buf_done) struct tide_buf stream = {0};
    const struct tide_wire_state state_one = {1, 1};
    struct tide_wire_frame index = {
        .kind = TIDE_WIRE_INDEX,
        .index = {.series = TIDE_STR("a"), .ts = 1, .state = {1, 1}, .bytes = TIDE_STR("c")}};
    begin_by_hand(&follow, &stream);
    add_rows(&stream, state_one, 0, "a", 5, "five");
    add_frame(&stream, &index);
    add_rows(&stream, state_one, 4, "a", 6, "six");
    kit_ok(&kit, follow_feed(&follow, tide_buf_str(&stream)));
    tide_subscriber_counts(follow.subscriber, &counts);
    assert_int_equal(counts.rows_skipped, 1);
    assert_int_equal(counts.rows, 1);
    assert_int_equal(counts.gaps, 1);
    assert_non_null(strstr(follow.warning, "left intervals out"));
    kit_ok(&kit, tide_subscriber_sync(follow.subscriber, &follow.err));
    assert_int_equal(number_of(&follow, "SELECT ts FROM wal"), 6);
    follow_close(&follow);
}

static void unknown_frames_are_passed_over_and_counted(void **state)
{
    (void)state;
    struct follow follow = {0};
    struct tide_subscriber_counts counts;
    TIDE_CLEANUP(tide_buf_done) struct tide_buf stream = {0};
    begin_by_hand(&follow, &stream);
    tide_buf_append_str(&stream, TIDE_STR("\5\0\0\0\310abcd"));
    add_rows(&stream, no_state, 0, "a", 5, "five");
    kit_ok(&kit, follow_feed(&follow, tide_buf_str(&stream)));
    tide_subscriber_counts(follow.subscriber, &counts);
    assert_int_equal(counts.unknown_frames, 1);
    assert_int_equal(counts.rows, 1);
    assert_int_equal(counts.frames, 2);
    assert_int_equal(counts.bytes, stream.len);
    follow_close(&follow);
}

static void stream_out_of_order_is_refused(void **state)
{
    (void)state;
    struct follow follow = {0};
    TIDE_CLEANUP(tide_buf_done) struct tide_buf stream = {0};
    follow_open(&follow, &kit, "copy.tide");
    tide_wire_preamble_append(&stream);
    add_rows(&stream, no_state, 0, "a", 5, "five");
    must_fail(&follow, &stream, TIDE_INVALID, "source 0");
    tide_buf_reset(&stream);
    tide_wire_preamble_append(&stream);
    add_frame(&stream, &hello_frame);
    add_frame(&stream, &hello_frame);
    must_fail(&follow, &stream, TIDE_INVALID, "source 0");
    assert_int_equal(number_of(&follow, "SELECT COUNT(*) FROM wal"), 0);
    assert_int_equal(number_of(&follow, "SELECT COUNT(*) FROM sources"), 1);
    follow_close(&follow);
}

/* As the crate writes it, or whoever else: one UUID, whatever its case. */
static void uuid_of_upper_case_is_the_same(void **state)
{
    (void)state;
    static const char *const texts[] = {"3F2B1C4D-0000-4000-8000-00000000ABCD",
                                        "3f2b1c4d-0000-4000-8000-00000000abcd"};
    struct follow follow = {0};
    follow_open(&follow, &kit, "copy.tide");
    for (size_t i = 0; i < 2; i++) {
        struct tide_wire_frame frame = hello_frame;
        TIDE_CLEANUP(tide_buf_done) struct tide_buf stream = {0};
        frame.handshake.uuid = tide_str_from(texts[i]);
        tide_wire_preamble_append(&stream);
        add_frame(&stream, &frame);
        kit_ok(&kit, follow_feed(&follow, tide_buf_str(&stream)));
        follow_end(&follow);
    }
    assert_int_equal(number_of(&follow, "SELECT COUNT(*) FROM sources WHERE uuid = "
                                        "'3f2b1c4d-0000-4000-8000-00000000abcd'"),
                     1);
    follow_close(&follow);
}

/* Nothing is known of it then: not that it rests, nor that it does not. */
static void source_that_is_refused_is_not_asked(void **state)
{
    (void)state;
    struct follow follow = {0};
    struct tide_wire_frame frame = hello_frame;
    TIDE_CLEANUP(tide_buf_done) struct tide_buf stream = {0};
    TIDE_CLEANUP(tide_buf_done) struct tide_buf pairs = {0};
    follow_open(&follow, &kit, "copy.tide");
    tide_wire_pair_append(&pairs, TIDE_STR(TIDE_ARCHIVE_KEY_ENCODER), TIDE_STR("another-3"));
    frame.handshake.metadata = (struct tide_wire_map){.count = 1, .pairs = tide_buf_str(&pairs)};
    tide_wire_preamble_append(&stream);
    add_frame(&stream, &frame);
    must_fail(&follow, &stream, TIDE_UNSUPPORTED, "another-3");
    assert_false(tide_subscriber_is_at_rest(follow.subscriber));
    assert_false(tide_subscriber_is_caught_up(follow.subscriber));
    follow_close(&follow);
}

/* Without one, or with one of another form, it is known by its labels and its clock. */
static void source_without_a_uuid_is_found_again(void **state)
{
    (void)state;
    struct follow follow = {0};
    struct tide_wire_frame frame = hello_frame;
    follow_open(&follow, &kit, "copy.tide");
    for (int i = 0; i < 2; i++) {
        TIDE_CLEANUP(tide_buf_done) struct tide_buf stream = {0};
        frame.handshake.has_uuid = i == 1;
        frame.handshake.uuid = TIDE_STR("my host");
        tide_wire_preamble_append(&stream);
        add_frame(&stream, &frame);
        add_rows(&stream, no_state, 0, "a", 5, "five");
        kit_ok(&kit, follow_feed(&follow, tide_buf_str(&stream)));
        follow_end(&follow);
    }
    assert_int_equal(number_of(&follow, "SELECT COUNT(*) FROM sources"), 1);
    assert_int_equal(number_of(&follow, "SELECT COUNT(*) FROM wal"), 1);
    follow_close(&follow);
}

static void cut_stream_is_said_and_what_came_is_kept(void **state)
{
    (void)state;
    struct follow follow = {0};
    TIDE_CLEANUP(tide_buf_done) struct tide_buf stream = {0};
    begin_by_hand(&follow, &stream);
    add_rows(&stream, no_state, 0, "a", 5, "five");
    tide_buf_append_str(&stream, TIDE_STR("\377"));
    kit_ok(&kit, follow_feed(&follow, tide_buf_str(&stream)));
    assert_int_equal(tide_subscriber_end(follow.subscriber, &follow.err), TIDE_CLOSED);
    assert_true(follow.err.retriable);
    assert_int_equal(number_of(&follow, "SELECT COUNT(*) FROM wal"), 1);
    assert_int_equal(number_of(&follow, "SELECT complete FROM sources"), 0);
    follow_close(&follow);
}

/* Whom a subscriber does not follow, and where */

static void other_encoder_is_refused_by_both_names(void **state)
{
    (void)state;
    struct follow follow = {0};
    struct tide_wire_frame frame = hello_frame;
    TIDE_CLEANUP(tide_buf_done) struct tide_buf pairs = {0};
    TIDE_CLEANUP(tide_buf_done) struct tide_buf stream = {0};
    tide_wire_pair_append(&pairs, TIDE_STR("encoder"), TIDE_STR("metrics-7"));
    frame.handshake.metadata = (struct tide_wire_map){1, tide_buf_str(&pairs)};
    follow_open(&follow, &kit, "copy.tide");
    tide_wire_preamble_append(&stream);
    add_frame(&stream, &frame);
    must_fail(&follow, &stream, TIDE_UNSUPPORTED,
              "encoder metrics-7, and we write those of plain-1");
    assert_int_equal(number_of(&follow, "SELECT COUNT(*) FROM sources"), 0);
    follow_close(&follow);
}

static void open_of_what_others_write_is_refused(void **state)
{
    (void)state;
    struct tide_subscriber *subscriber = NULL;
    struct tide_subscriber *second = NULL;
    const struct tide_subscriber_options options = {.encoder = &kit.encoder};
    char path[KIT_PATH_MAX + 8];
    kit_fails(tide_subscriber_open(kit.path, &options, &subscriber, &kit.err), TIDE_INVALID,
              "is written by another program, or has not been ended by it (source 1)");
    const struct tide_archive_held held = {kit.source, TIDE_STR("sink"), TIDE_STR("x")};
    const struct tide_archive_tick tick = {.held = &held, .held_count = 1};
    kit_ok(&kit, tide_archive_write(kit.writer, &tick, &kit.err));
    kit_fails(tide_subscriber_open(kit.path, &options, &subscriber, &kit.err), TIDE_INVALID,
              "is what a pipeline writes");
    (void)snprintf(path, sizeof(path), "%s-2", kit.path);
    kit_ok(&kit, tide_subscriber_open(path, &options, &subscriber, &kit.err));
    kit_fails(tide_subscriber_open(path, &options, &second, &kit.err), TIDE_INVALID,
              "is being written by another process");
    tide_subscriber_close(subscriber);
}

/* What ends and begins later */

static void source_that_ends_later_is_complete_at_a_follower(void **state)
{
    (void)state;
    struct follow follow = {0};
    follow_open(&follow, &kit, "copy.tide");
    fill();
    kit_ok(&kit, follow_pump(&follow));
    assert_int_equal(number_of(&follow, "SELECT complete FROM sources"), 0);
    kit_ok(&kit, tide_archive_finalize_source(kit.writer, kit.source, 99, 1, &kit.err));
    kit_ok(&kit, follow_pump(&follow));
    assert_int_equal(number_of(&follow, "SELECT complete FROM sources"), 1);
    follow_is_equal(&follow);
    kit_reopen(&kit);
    kit_ok(&kit, follow_pump(&follow));
    follow_is_equal(&follow);
    follow_close(&follow);
}

static void source_that_has_ended_is_complete_at_the_end(void **state)
{
    (void)state;
    struct follow follow = {.is_quiet = true};
    fill();
    kit_ok(&kit, tide_archive_finalize_source(kit.writer, kit.source, 99, 1, &kit.err));
    follow_open(&follow, &kit, "copy.tide");
    kit_ok(&kit, follow_pump(&follow));
    assert_int_equal(number_of(&follow, "SELECT complete FROM sources"), 0);
    follow_end(&follow);
    follow_is_equal(&follow);
    follow_close(&follow);
}

static void series_that_begins_and_is_sealed_between_polls_is_sent(void **state)
{
    (void)state;
    struct follow follow = {.is_quiet = true};
    follow_open(&follow, &kit, "copy.tide");
    kit_ok(&kit, kit_write(&kit, "a", 1, 5));
    kit_ok(&kit, follow_pump(&follow));
    kit_ok(&kit, kit_write(&kit, "b", 6, 9));
    kit_ok(&kit, kit_seal(&kit, "b"));
    kit_ok(&kit, follow_pump(&follow));
    follow_is_equal(&follow);
    follow_close(&follow);
}

static void rows_sealed_between_polls_end_a_quiet_stream(void **state)
{
    (void)state;
    struct follow follow = {.is_quiet = true};
    follow_open(&follow, &kit, "copy.tide");
    kit_ok(&kit, kit_write(&kit, "a", 1, 5));
    kit_ok(&kit, follow_pump(&follow));
    kit_ok(&kit, kit_write(&kit, "a", 6, 9));
    kit_ok(&kit, kit_seal(&kit, "a"));
    assert_int_equal(follow_pump(&follow), TIDE_STALE);
    assert_true(follow.err.retriable);
    assert_non_null(strstr(follow.err.message, "sealed past what this publisher has sent"));
    follow_cut(&follow);
    kit_ok(&kit, follow_pump(&follow));
    follow_has_same_rows(&follow);
    follow_close(&follow);
}

/* The crate takes no segment where it has rows of the series that are not sealed. */
static void segment_is_not_sent_behind_rows_to_a_quiet_one(void **state)
{
    (void)state;
    struct follow follow = {.is_quiet = true};
    follow_open(&follow, &kit, "copy.tide");
    kit_ok(&kit, kit_write(&kit, "a", 1, 5));
    kit_ok(&kit, follow_pump(&follow));
    kit_ok(&kit, kit_seal(&kit, "a"));
    kit_ok(&kit, follow_pump(&follow));
    kit_ok(&kit, kit_write(&kit, "a", 6, 9));
    kit_ok(&kit, kit_seal(&kit, "a"));
    assert_int_equal(follow_pump(&follow), TIDE_STALE);
    assert_int_equal(number_of(&follow, "SELECT COUNT(*) FROM segments"), 0);
    follow_close(&follow);
}

/* From where on */

static void publish_now_sends_what_comes(void **state)
{
    (void)state;
    struct follow follow = {.from = {.from = TIDE_PUBLISH_NOW}};
    follow_open(&follow, &kit, "copy.tide");
    fill();
    kit_ok(&kit, follow_pump(&follow));
    assert_int_equal(number_of(&follow, "SELECT COUNT(*) FROM wal"), 0);
    assert_int_equal(number_of(&follow, "SELECT COUNT(*) FROM segments"), 0);
    assert_int_equal(number_of(&follow, "SELECT COUNT(*) FROM caller_rows"), 4);
    kit_ok(&kit, kit_write(&kit, "a", 100, 104));
    kit_ok(&kit, follow_pump(&follow));
    assert_int_equal(number_of(&follow, "SELECT COUNT(*) FROM wal"), 5);
    follow_cut(&follow);
    kit_ok(&kit, kit_write(&kit, "a", 105, 109));
    kit_ok(&kit, kit_write(&kit, "b", 105, 109));
    kit_ok(&kit, kit_write(&kit, "c", 105, 109));
    kit_ok(&kit, follow_pump(&follow));
    assert_int_equal(number_of(&follow, "SELECT COUNT(*) FROM wal"), 20);
    kit_ok(&kit, kit_seal(&kit, "a"));
    kit_ok(&kit, follow_pump(&follow));
    assert_int_equal(number_of(&follow, "SELECT SUM(rows) FROM segments"), 29);
    follow_close(&follow);
}

static void publish_since_sends_segments_that_reach_there(void **state)
{
    (void)state;
    struct follow follow = {.from = {.from = TIDE_PUBLISH_SINCE, .since_ts = 60}};
    follow_open(&follow, &kit, "copy.tide");
    fill();
    kit_ok(&kit, follow_pump(&follow));
    assert_int_equal(number_of(&follow, "SELECT COUNT(*) FROM segments"), 1);
    assert_int_equal(number_of(&follow, "SELECT COUNT(*) FROM wal"), 19); /* none of b */
    follow_close(&follow);
}

/* A publisher */

static void keepalive_sends_a_frame_for_each_source(void **state)
{
    (void)state;
    struct follow follow = {0};
    struct tide_subscriber_counts counts;
    TIDE_CLEANUP(tide_buf_done) struct tide_buf out = {0};
    follow_open(&follow, &kit, "copy.tide");
    kit_ok(&kit, kit_write(&kit, "a", 1, 5));
    kit_ok(&kit, follow_pump(&follow));
    tide_subscriber_counts(follow.subscriber, &counts);
    uint64_t before = counts.frames;
    kit_ok(&kit, tide_publisher_keepalive(follow.publisher, &out, &follow.err));
    kit_ok(&kit, tide_publisher_keepalive(follow.publisher, &out, &follow.err));
    kit_ok(&kit, follow_feed(&follow, tide_buf_str(&out)));
    tide_subscriber_counts(follow.subscriber, &counts);
    assert_int_equal(counts.frames, before + 2);
    kit_ok(&kit, kit_write(&kit, "a", 6, 9));
    kit_ok(&kit, follow_pump(&follow));
    tide_subscriber_counts(follow.subscriber, &counts);
    assert_int_equal(counts.gaps, 0);
    follow_is_equal(&follow);
    follow_close(&follow);
}

static void segment_that_goes_while_it_is_sent_ends_the_connection(void **state)
{
    (void)state;
    struct follow follow = {.piece_max = 64};
    TIDE_CLEANUP(tide_buf_done) struct tide_buf out = {0};
    bool is_caught_up = false;
    fill();
    follow_open(&follow, &kit, "copy.tide");
    follow_connect(&follow);
    while (out.len < 900) { /* within the first segment */
        size_t before = out.len;
        kit_ok(&kit, tide_publisher_next(follow.publisher, &out, 64, &is_caught_up, &kit.err));
        kit_ok(&kit, follow_feed(&follow, tide_str_of(out.ptr + before, out.len - before)));
    }
    kit_join(&kit, kit.source, "a");
    tide_status status = TIDE_OK;
    while (status == TIDE_OK && !is_caught_up) {
        status = tide_publisher_next(follow.publisher, &out, 64, &is_caught_up, &follow.err);
    }
    assert_int_equal(status, TIDE_STALE);
    assert_true(follow.err.retriable);
    follow_cut(&follow);
    kit_ok(&kit, follow_pump(&follow));
    follow_has_same_rows(&follow);
    follow_close(&follow);
}

static void forget_before(int64_t ts)
{
    struct tide_archive_retained retained;
    const struct tide_archive_retention retention = {.source = kit.source, .cutoff_ts = ts};
    kit_ok(&kit, tide_archive_writer_retain(kit.writer, &retention, &retained, &kit.err));
}

/* Follows once, while the publisher has everything, and again; the gaps that were said then. */
static uint64_t gaps_after(int64_t held_to, int64_t forgotten_to, bool is_sealed)
{
    struct follow follow = {0};
    struct tide_subscriber_counts counts;
    TIDE_CLEANUP(tide_buf_done) struct tide_buf out = {0};
    kit_setup(&kit);
    follow_open(&follow, &kit, "copy.tide");
    kit_ok(&kit, kit_write(&kit, "a", 1, held_to));
    kit_ok(&kit, follow_pump(&follow));
    follow_cut(&follow);
    kit_ok(&kit, kit_write(&kit, "a", held_to + 1, 100));
    forget_before(forgotten_to + 1);
    if (is_sealed) {
        kit_ok(&kit, kit_seal(&kit, "a"));
    }
    kit_ok(&kit, follow_pump(&follow));
    kit_ok(&kit, tide_publisher_keepalive(follow.publisher, &out, &follow.err));
    kit_ok(&kit, follow_feed(&follow, tide_buf_str(&out)));
    tide_subscriber_counts(follow.subscriber, &counts);
    assert_true(tide_subscriber_is_caught_up(follow.subscriber));
    assert_int_equal(strstr(follow.warning, "forgotten") != NULL, counts.gaps > 0);
    follow_cut(&follow); /* it is told once */
    kit_ok(&kit, follow_pump(&follow));
    tide_buf_reset(&out);
    kit_ok(&kit, tide_publisher_keepalive(follow.publisher, &out, &follow.err));
    kit_ok(&kit, follow_feed(&follow, tide_buf_str(&out)));
    uint64_t before = counts.gaps;
    tide_subscriber_counts(follow.subscriber, &counts);
    assert_int_equal(counts.gaps, before);
    follow_close(&follow);
    kit_teardown(&kit);
    return counts.gaps;
}

static void rows_forgotten_before_they_were_sent_are_a_gap(void **state)
{
    (void)state;
    kit_teardown(&kit);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(gaps_after(50, 60, i == 1), 1);
        assert_int_equal(gaps_after(50, 49, i == 1), 0);
        assert_int_equal(gaps_after(50, 0, i == 1), 0);
    }
    kit_setup(&kit);
}

static void keep_warning(void *context, const char *message)
{
    struct follow *follow = context;
    (void)snprintf(follow->warning, sizeof(follow->warning), "%s", message);
}

/* No frame takes it, sealed or not: others do not wait for it, and both sides are told. */
static void what_is_larger_than_a_frame_is_left_out(void **state)
{
    (void)state;
    size_t size = TIDE_WIRE_FRAME_BYTES_MAX + 1;
    char *bytes = calloc(1, size);
    assert_non_null(bytes);
    const struct tide_archive_row row = {kit_series(&kit, "a"), 5, 0, tide_str_of(bytes, size)};
    const struct tide_archive_tick tick = {.rows = &row, .row_count = 1};
    kit_ok(&kit, tide_archive_write(kit.writer, &tick, &kit.err));
    free(bytes);
    for (int sealed = 0; sealed < 2; sealed++) {
        if (sealed == 1) {
            kit_ok(&kit, kit_seal(&kit, "a"));
        }
        kit_ok(&kit, kit_write(&kit, "a", 10 + sealed, 10 + sealed));
        kit_ok(&kit, kit_write(&kit, "b", 10 + sealed, 10 + sealed));
        struct follow follow = {.is_quiet = sealed == 0};
        follow.from = (struct tide_publisher_options){.warn = keep_warning, .context = &follow};
        follow_open(&follow, &kit, "copy.tide");
        kit_ok(&kit, follow_pump(&follow));
        struct tide_buf out = {0};
        kit_ok(&kit, tide_publisher_keepalive(follow.publisher, &out, &follow.err));
        kit_ok(&kit, follow_feed(&follow, tide_buf_str(&out)));
        tide_buf_done(&out);
        follow_end(&follow);
        struct tide_subscriber_counts counts;
        tide_subscriber_counts(follow.subscriber, &counts);
        assert_int_equal(counts.gaps, 1);
        assert_int_equal(number_of(&follow, "SELECT COUNT(*) FROM wal"), 2 + 2 * sealed);
        assert_int_equal(number_of(&follow, "SELECT COUNT(*) FROM segments"), 0);
        follow_close(&follow);
        (void)remove(follow.path);
    }
}

/* Its name is what users go by. */
static void archive_of_another_file_is_not_gone_on_with(void **state)
{
    (void)state;
    struct follow follow = {0};
    char other[KIT_PATH_MAX + 8];
    (void)snprintf(other, sizeof(other), "%s.other", kit.path);
    kit_ok(&kit, kit_write(&kit, "a", 1, 10));
    follow_open(&follow, &kit, "copy.tide");
    kit_ok(&kit, follow_pump(&follow));
    assert_int_equal(rename(kit.path, other), 0);
    tide_status status = TIDE_OK;
    for (int i = 0; i < 300 && status == TIDE_OK; i++) {
        const struct timespec soon = {.tv_nsec = 20000000};
        (void)nanosleep(&soon, NULL);
        status = follow_pump(&follow);
    }
    assert_int_equal(status, TIDE_STALE);
    assert_true(follow.err.retriable);
    assert_non_null(strstr(follow.err.message, "another file has its name"));
    assert_int_equal(rename(other, kit.path), 0);
    follow_close(&follow);
}

static void next_without_news_sends_nothing(void **state)
{
    (void)state;
    struct follow follow = {0};
    TIDE_CLEANUP(tide_buf_done) struct tide_buf out = {0};
    bool is_caught_up = false;
    fill();
    follow_open(&follow, &kit, "copy.tide");
    kit_ok(&kit, follow_pump(&follow));
    kit_ok(&kit, tide_publisher_next(follow.publisher, &out, 1000, &is_caught_up, &kit.err));
    assert_true(is_caught_up && out.len == 0);
    kit_ok(&kit, tide_archive_set_metadata(
                     kit.writer, kit.source,
                     &(struct tide_archive_pairs){
                         &(struct tide_archive_pair){TIDE_STR("colour"), TIDE_STR("blue")}, 1},
                     &kit.err));
    kit_ok(&kit, follow_pump(&follow));
    follow_is_equal(&follow);
    follow_close(&follow);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, kit_setup_test, kit_teardown_test)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(pump_copies_all_tables),
        TEST(pump_quiet_copies_all_tables),
        TEST(pump_follows_rows_and_segments),
        TEST(index_that_is_there_twice_comes_twice),
        TEST(rows_that_are_there_are_held),
        TEST(row_with_other_bytes_is_refused_with_its_frame),
        TEST(segment_without_a_live_row_is_refused),
        TEST(segment_of_an_unnamed_encoder_is_not_opened),
        TEST(segment_that_lies_is_refused),
        TEST(rows_of_unknown_columns_are_skipped_until_those_come),
        TEST(unknown_frames_are_passed_over_and_counted),
        TEST(stream_out_of_order_is_refused),
        TEST(uuid_of_upper_case_is_the_same),
        TEST(source_that_is_refused_is_not_asked),
        TEST(source_without_a_uuid_is_found_again),
        TEST(cut_stream_is_said_and_what_came_is_kept),
        TEST(other_encoder_is_refused_by_both_names),
        TEST(open_of_what_others_write_is_refused),
        TEST(source_that_ends_later_is_complete_at_a_follower),
        TEST(source_that_has_ended_is_complete_at_the_end),
        TEST(series_that_begins_and_is_sealed_between_polls_is_sent),
        TEST(rows_sealed_between_polls_end_a_quiet_stream),
        TEST(publish_now_sends_what_comes),
        TEST(publish_since_sends_segments_that_reach_there),
        TEST(keepalive_sends_a_frame_for_each_source),
        TEST(segment_that_goes_while_it_is_sent_ends_the_connection),
        TEST(segment_is_not_sent_behind_rows_to_a_quiet_one),
        TEST(segment_that_lies_across_what_is_sealed_is_refused),
        TEST(rows_forgotten_before_they_were_sent_are_a_gap),
        TEST(what_is_larger_than_a_frame_is_left_out),
        TEST(archive_of_another_file_is_not_gone_on_with),
        TEST(next_without_news_sends_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
