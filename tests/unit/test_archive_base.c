/* Where a state may stand in place of the rows that led to it, and where not. */
#include "cmocka_prelude.h"

#include "archive/change_base.h"
#include "archive/change_encoder.h"
#include "archive/change_series.h"
#include "archive/writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char json[] = "{\"version\":1,\"store\":\"s.t\",\"schema\":\"\",\"table\":\"t\","
                           "\"position_kind\":\"%s\",\"columns\":["
                           "{\"name\":\"k\",\"type\":\"INTEGER\",\"hidden\":false},"
                           "{\"name\":\"a\",\"type\":\"INTEGER\",\"hidden\":false}],"
                           "\"key\":[\"k\"]}";

/* What a case is made of: a letter a row, `|` seals what is live.
 *   B begin, E end of a copy; 1..9 a row of it with that key
 *   a..i an update of key 1..9, the first of a transaction; A the same of key 1 in the last one
 *   ! a gap: the change after it names one before it that never came
 *   ~ the next change has a value that was not sent, * or is too long; - it is a delete
 */
struct maker {
    struct tide_archive_writer *writer;
    struct tide_archive_series *series;
    int64_t ts;
    uint64_t position, index, seq;
    struct tide_place prev;
    unsigned copy;
    char mark; /* of the next change */
    const char *kind;
};

struct folder {
    char root[64];
    char path[128];
};

struct number {
    char text[24];
};

static struct tide_value number_of(struct number *number, uint64_t value)
{
    int len = snprintf(number->text, sizeof(number->text), "%llu", (unsigned long long)value);
    return (struct tide_value){number->text, (uint32_t)len, TIDE_VALUE_INTEGER};
}

static void ok(tide_status status, const struct tide_error *err)
{
    if (status != TIDE_OK) {
        fail_msg("%s", err->message);
    }
}

static void write_row(struct maker *maker, struct tide_change_row *row)
{
    struct tide_error err = {0};
    TIDE_CLEANUP(tide_buf_done) struct tide_buf bytes = {0};
    tide_change_row_encode(row, 2, 1, &bytes);
    struct tide_archive_row item = {
        .series = maker->series, .ts = maker->ts, .bytes = tide_buf_str(&bytes)};
    TIDE_CLEANUP(tide_buf_done) struct tide_buf columns = {0};
    tide_buf_printf(&columns, json, maker->kind);
    struct tide_archive_note note = {maker->series, maker->ts, tide_buf_str(&columns)};
    struct tide_archive_tick tick = {
        .rows = &item, .row_count = 1, .notes = &note, .note_count = maker->ts == 1000};
    ok(tide_archive_write(maker->writer, &tick, &err), &err);
    maker->ts += 1000;
}

static void write_snapshot(struct maker *maker, char letter)
{
    struct number key;
    struct number a;
    struct tide_value values[] = {number_of(&key, (uint64_t)(letter - '0')), number_of(&a, 0)};
    struct tide_change_row row = {
        .place = {.position.lo = maker->position, .index = TIDE_INDEX_AFTER_ALL, .known = true},
    };
    maker->copy += letter == 'B';
    maker->seq = letter == 'B' ? 0 : maker->seq;
    (void)snprintf(row.snapshot_id, sizeof(row.snapshot_id), "01900000-0000-7000-8000-%012u",
                   maker->copy);
    row.kind = letter == 'B' ? TIDE_ROW_BEGIN : letter == 'E' ? TIDE_ROW_END : TIDE_ROW_SNAPSHOT;
    row.seq = maker->seq;
    row.commit_us = row.kind == TIDE_ROW_SNAPSHOT ? 0 : maker->ts / 1000;
    row.values = row.kind == TIDE_ROW_SNAPSHOT ? values : NULL;
    maker->seq += row.kind == TIDE_ROW_SNAPSHOT;
    write_row(maker, &row);
}

static void write_change(struct maker *maker, char letter)
{
    bool goes_on = letter == 'A';
    maker->index = goes_on ? maker->index + 1 : 0;
    maker->position += goes_on ? 0 : 10;
    struct number key;
    struct number a;
    struct tide_value values[] = {number_of(&key, goes_on ? 1 : (uint64_t)(letter - 'a') + 1),
                                  number_of(&a, maker->position + maker->index)};
    struct tide_change_row row = {
        .kind = TIDE_ROW_CHANGE,
        .op = maker->mark == '-' ? TIDE_OP_DELETE : TIDE_OP_UPDATE,
        .place = {.position.lo = maker->position, .index = maker->index, .known = true},
        .prev = maker->prev,
        .commit_us = maker->ts / 1000,
        .key = values,
        .values = maker->mark == '-' || maker->mark == '*' ? NULL : values,
        .bytes = maker->mark == '*' ? 1000 : 0,
    };
    if (maker->mark == '~') {
        values[1] = (struct tide_value){.kind = TIDE_VALUE_UNCHANGED};
    }
    if (maker->mark == '!') {
        row.prev.position.lo = maker->position - 1;
    }
    maker->prev = row.place;
    maker->mark = 0;
    write_row(maker, &row);
}

static void take(struct maker *maker, char letter)
{
    struct tide_archive_seal_counts counts;
    struct tide_error err = {0};
    if (letter == '|') {
        ok(tide_archive_seal(maker->writer, &maker->series, 1, NULL, &counts, &err), &err);
    } else if (strchr("!~*-", letter) != NULL) {
        maker->mark = letter;
    } else if (letter == 'B' || letter == 'E' || (letter >= '1' && letter <= '9')) {
        write_snapshot(maker, letter);
    } else {
        write_change(maker, letter);
    }
}

static void make(const struct folder *folder, const char *rows, const char *kind)
{
    struct tide_error err = {0};
    const struct tide_archive_writer_options options = {.encoder = &tide_change_encoder};
    const struct tide_archive_new_source source = {.clock_anchor_wall_ns = 1};
    struct maker maker = {
        .kind = kind, .ts = 1000, .position = 100, .prev = {.position.lo = 100, .known = true}};
    int64_t id = 0;
    ok(tide_archive_create(folder->path, &err), &err);
    ok(tide_archive_writer_open(folder->path, &options, &maker.writer, &err), &err);
    ok(tide_archive_add_source(maker.writer, &source, &id, &err), &err);
    ok(tide_archive_series_open(maker.writer, id, TIDE_STR("s.t"), &maker.series, &err), &err);
    for (; *rows != '\0'; rows++) {
        take(&maker, *rows);
    }
    tide_archive_writer_close(maker.writer);
}

/* The table as it is: "k=a", and "?" behind what is in doubt. */
static void append_state(struct tide_archive *archive,
                         const struct tide_archive_series_info *series, struct tide_buf *text)
{
    struct tide_error err = {0};
    TIDE_CLEANUP(tide_change_history_free_ptr) struct tide_change_history *history = NULL;
    TIDE_CLEANUP(tide_change_fold_free_ptr) struct tide_change_fold *fold = NULL;
    const struct tide_change_moment now = {.utc_us = INT64_MAX};
    struct tide_change_summary summary;
    struct tide_change_state row;
    ok(tide_change_series_look(archive, series, &summary, &history, &err), &err);
    ok(tide_change_series_fold(archive, series, history, &now, &fold, &err), &err);
    while (tide_change_fold_next(fold, &row)) {
        tide_buf_append_str(text, tide_value_str(row.key[0]));
        tide_buf_append_char(text, '=');
        if (row.values != NULL) {
            tide_buf_append_str(text, tide_value_str(row.values[1]));
        }
        tide_buf_append_str(text, row.is_stale ? TIDE_STR("? ") : TIDE_STR(" "));
    }
}

struct base_case {
    const char *rows;
    int before;          /* the cutoff is behind so many segments */
    int64_t gone;        /* segments */
    const char *why_not; /* part of it, with none gone */
    const char *error;   /* part of TIDE_INVALID's */
    bool is_lsn;         /* positions are those of PostgreSQL */
};

static const struct base_case cases[] = {
    {"B12E|ab|c|d", 2, 2, NULL, NULL, false},
    {"B12E|ab|c|d", 3, 3, NULL, NULL, false},
    {"B12E|-ab|c|", 3, 3, NULL, NULL, false},
    {"B12E|ab|c|", 3, 2, NULL, NULL, true}, /* more of the last transaction may come */
    {"B12E|ab|cA", 2, 2, NULL, NULL, true},
    {"B12E|ab|B12E|", 3, 0, "nothing but a copy", NULL, true},
    {"B12Ea|b|A|c|", 2, 1, NULL, NULL, false}, /* not through a transaction */
    {"B12Ea|b|A|c|", 3, 3, NULL, NULL, false},
    {"B12E|a|B1|2E|", 3, 2, NULL, NULL, false}, /* nor through a copy */
    {"B12E|a|B1|2E|", 4, 4, NULL, NULL, false},
    {"B12E|a|B1|b|", 4, 2, NULL, NULL, false},    /* that may go on, */
    {"B12E|a|B1|B12E|", 4, 4, NULL, NULL, false}, /* unless another one has begun */
    {"B12E|~a|", 2, 2, NULL, NULL, false},        /* known from the copy */
    {"B12E|*c|", 2, 2, NULL, NULL, false},        /* a stub says so */
    {"B12E|~c|", 2, 0, "not sent or too long", NULL, false},
    {"B12E|*a|", 2, 0, "not sent or too long", NULL, false},
    {"B12E|!a|", 2, 0, "changes are missing", NULL, false},
    {"B12E|ab|", 0, 0, "no segment ends outside", NULL, false},
    {"B12E|ab", 1, 0, "nothing but a copy", NULL, false},
    {"ab|c|", 2, 0, NULL, "no copy of the table is complete", false},
};

static int64_t cutoff_of(const char *rows, int segments)
{
    int64_t count = 0;
    for (; segments > 0; rows++) {
        segments -= *rows == '|';
        count += strchr("|!~*-", *rows) == NULL;
    }
    return count * 1000 + 1;
}

static void check(const struct base_case *one, struct tide_archive *archive,
                  const struct tide_archive_series_info *series)
{
    struct tide_change_base base = {0};
    struct tide_error err = {0};
    int64_t cutoff = cutoff_of(one->rows, one->before);
    tide_status status = tide_change_base_write(archive, series, cutoff, true, &base, &err);
    if (one->error != NULL) {
        assert_int_equal(status, TIDE_INVALID);
        assert_non_null(strstr(err.message, one->error));
        return;
    }
    ok(status, &err);
    ok(tide_change_base_write(archive, series, cutoff, false, &base, &err), &err);
    if (one->why_not != NULL) {
        assert_non_null(base.why_not);
        assert_non_null(strstr(base.why_not, one->why_not));
    } else {
        assert_null(base.why_not);
        assert_int_equal(base.segments, one->gone);
        assert_int_equal(base.state_us, (cutoff_of(one->rows, (int)one->gone) - 1) / 1000);
    }
}

static void check_file(const struct base_case *one, const char *path)
{
    TIDE_CLEANUP(tide_archive_close_ptr) struct tide_archive *archive = NULL;
    TIDE_CLEANUP(tide_arena_done) struct tide_arena arena = {0};
    TIDE_CLEANUP(tide_buf_done) struct tide_buf before = {0};
    TIDE_CLEANUP(tide_buf_done) struct tide_buf after = {0};
    struct tide_archive_catalogue catalogue;
    struct tide_archive_catalogue later;
    struct tide_error err = {0};
    ok(tide_archive_open(path, TIDE_ARCHIVE_EDIT, &archive, &err), &err);
    ok(tide_archive_catalogue_read(archive, &arena, &catalogue, &err), &err);
    if (one->error == NULL) {
        append_state(archive, &catalogue.series[0], &before);
    }
    check(one, archive, &catalogue.series[0]);
    ok(tide_archive_catalogue_read(archive, &arena, &later, &err), &err);
    assert_int_equal(later.series[0].segments,
                     catalogue.series[0].segments - (one->gone > 0 ? one->gone - 1 : 0));
    if (one->error == NULL) {
        append_state(archive, &later.series[0], &after);
        assert_string_equal(tide_buf_cstr(&after), tide_buf_cstr(&before));
    }
}

static void base_of_rows_is_where_nothing_is_parted(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct folder folder = {.root = "/tmp/tidemark-base-XXXXXX"};
        assert_non_null(mkdtemp(folder.root));
        (void)snprintf(folder.path, sizeof(folder.path), "%s/a.tide", folder.root);
        print_message("%s before %d\n", cases[i].rows, cases[i].before);
        make(&folder, cases[i].rows, cases[i].is_lsn ? "lsn" : "integer");
        check_file(&cases[i], folder.path);
        assert_int_equal(unlink(folder.path), 0);
        assert_int_equal(rmdir(folder.root), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(base_of_rows_is_where_nothing_is_parted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
