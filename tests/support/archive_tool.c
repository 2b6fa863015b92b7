/*
 * An archive's writer and reader for scenarios, with the plain encoder of the tests.
 *
 *     archive_tool make PATH                 a small archive with something of everything
 *     archive_tool write PATH [key=value …]  writes on, in ticks, and says what is written
 *         rows=10 seal=100 forget=0 compact=0 ticks=0 pause_us=0 faults_every=0
 *     archive_tool read PATH SERIES          the times of all rows, as spans
 *     archive_tool watch PATH SECONDS        reads again and again; what must hold of each reading
 *     archive_tool catalogue PATH
 *     archive_tool verify PATH [full]
 *     archive_tool copy PATH TO
 *
 * `write` writes the same times to the series a and b, from 1 on, in one tick, with the newest of
 * them as what is held. It prints "written N" when the tick is, "failed …" when it is not, and goes
 * on. Exit status: 0 done, 1 the answer is no, 3 an error, which is printed.
 */
#include "archive/compact.h"
#include "archive/container.h"
#include "archive/scan.h"
#include "archive/verify.h"
#include "archive/writer.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "faulty_vfs.h"
#include "plain_encoder.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ROWS_MAX 1000

static struct tide_archive_encoder encoder;

struct options {
    int64_t rows;     /* a series, in each tick */
    int64_t seal;     /* when a series has so many live rows */
    int64_t forget;   /* keep so many newest rows; 0: all */
    int64_t compact;  /* after so many segments */
    int64_t ticks;    /* 0: until killed */
    int64_t pause_us; /* between ticks */
    int64_t faults_every;
};

struct work {
    const char *path;
    struct tide_archive_writer *writer;
    int64_t source;
    struct tide_archive_series *series[2];
    struct options options;
    int64_t newest;
    int64_t segments;
};

static int report(const struct tide_error *err)
{
    (void)fprintf(stderr, "%s: %s\n", tide_status_name(err->status), err->message);
    return 3;
}

static tide_status write_tick(struct work *work, int64_t count, struct tide_error *err)
{
    static struct tide_archive_row rows[2 * ROWS_MAX];
    static char texts[ROWS_MAX][24];
    char newest[24];
    for (int64_t i = 0; i < count; i++) {
        int64_t ts = work->newest + 1 + i;
        (void)snprintf(texts[i], sizeof(texts[i]), "%" PRId64, ts);
        for (int64_t j = 0; j < 2; j++) {
            rows[2 * i + j] =
                (struct tide_archive_row){work->series[j], ts, 1000 - ts, tide_str_from(texts[i])};
        }
    }
    (void)snprintf(newest, sizeof(newest), "%" PRId64, work->newest + count);
    struct tide_archive_held held = {work->source, TIDE_STR("newest"), tide_str_from(newest)};
    struct tide_archive_tick tick = {
        .rows = rows, .row_count = (size_t)(2 * count), .held = &held, .held_count = 1};
    TIDE_TRY(tide_archive_write(work->writer, &tick, err));
    work->newest += count;
    printf("written %" PRId64 "\n", work->newest);
    return TIDE_OK;
}

static tide_status seal_if_due(struct work *work, struct tide_error *err)
{
    struct tide_archive_series_state state;
    struct tide_archive_seal_counts counts;
    tide_archive_series_state(work->series[0], &state);
    if (work->options.seal == 0 || state.live_rows < work->options.seal) {
        return TIDE_OK;
    }
    TIDE_TRY(tide_archive_seal(work->writer, work->series, 2, NULL, &counts, err));
    work->segments++;
    printf("sealed\n");
    return TIDE_OK;
}

/* As beside a writer: found and joined by a handle that reads. */
static tide_status compact_series(struct work *work, const char *series, struct tide_error *err)
{
    const struct tide_archive_merge_policy policy = {work->options.seal * 4, INT64_MAX, INT64_MAX,
                                                     INT64_MAX, 2};
    TIDE_CLEANUP(tide_archive_close_ptr) struct tide_archive *archive = NULL;
    TIDE_CLEANUP(tide_archive_merge_done) struct tide_archive_merge merge = {0};
    tide_status status = TIDE_OK;
    int64_t from = INT64_MIN;
    TIDE_TRY(tide_archive_open(work->path, TIDE_ARCHIVE_READ, &archive, err));
    while ((status = tide_archive_merge_next(archive, &encoder, &policy, work->source,
                                             tide_str_from(series), &from, &merge, err)) ==
           TIDE_OK) {
        bool is_put = false;
        TIDE_TRY(tide_archive_writer_put_merge(work->writer, work->source, tide_str_from(series),
                                               &merge, &is_put, err));
    }
    return status == TIDE_END ? TIDE_OK : status;
}

static tide_status forget_and_compact(struct work *work, struct tide_error *err)
{
    struct tide_archive_retained retained;
    struct tide_archive_retention retention = {.source = work->source,
                                               .cutoff_ts = work->newest - work->options.forget};
    if (work->options.forget > 0 && work->newest % 7 == 0) {
        TIDE_TRY(tide_archive_writer_retain(work->writer, &retention, &retained, err));
        printf("forgotten before %" PRId64 "\n", retention.cutoff_ts);
    }
    if (work->options.compact > 0 && work->segments >= work->options.compact) {
        TIDE_TRY(compact_series(work, "a", err));
        TIDE_TRY(compact_series(work, "b", err));
        work->segments = 0;
        printf("compacted\n");
    }
    return TIDE_OK;
}

static tide_status open_work(const char *path, struct work *work, struct tide_error *err)
{
    struct tide_archive_writer_options options = {
        .encoder = &encoder, .heartbeat_us = 20000, .checkpoint_us = 50000, .has_keeper = true};
    TIDE_CLEANUP(tide_arena_done) struct tide_arena arena = {0};
    struct tide_archive_catalogue found;
    if (access(path, F_OK) != 0) {
        TIDE_TRY(tide_archive_create(path, err));
    }
    TIDE_TRY(tide_archive_writer_open(path, &options, &work->writer, err));
    TIDE_TRY(tide_archive_writer_catalogue(work->writer, &arena, &found, err));
    if (found.source_count == 0) {
        struct tide_archive_new_source source = {.clock_anchor_wall_ns = 0};
        TIDE_TRY(tide_archive_add_source(work->writer, &source, &work->source, err));
    } else {
        int64_t anchor = 0;
        work->source = found.sources[0].id;
        TIDE_TRY(tide_archive_resume_anchor(work->writer, work->source, 0, &anchor, err));
        TIDE_TRY(tide_archive_resume_source(work->writer, work->source, anchor, err));
    }
    TIDE_TRY(
        tide_archive_series_open(work->writer, work->source, TIDE_STR("a"), &work->series[0], err));
    return tide_archive_series_open(work->writer, work->source, TIDE_STR("b"), &work->series[1],
                                    err);
}

/* What is held goes with the rows: the newest of them is the same in both. */
static tide_status find_newest(struct work *work, struct tide_error *err)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf held = {0};
    struct tide_archive_series_state state;
    bool is_any = false;
    TIDE_TRY(tide_archive_writer_held(work->writer, work->source, TIDE_STR("newest"), &is_any,
                                      &held, err));
    for (int i = 0; i < 2; i++) {
        tide_archive_series_state(work->series[i], &state);
        int64_t newest = 0;
        if (is_any && !tide_str_to_i64(tide_buf_str(&held), &newest)) {
            return tide_fail(err, TIDE_CORRUPT, "what is held is no number");
        }
        if (state.has_newest && state.newest_ts != newest) {
            return tide_fail(err, TIDE_CORRUPT, "held %" PRId64 ", newest row %" PRId64, newest,
                             state.newest_ts);
        }
        work->newest = newest;
    }
    printf("going on behind %" PRId64 "\n", work->newest);
    return TIDE_OK;
}

static bool read_option(struct options *options, const char *text)
{
    struct {
        const char *name;
        int64_t *value;
    } known[] = {{"rows=", &options->rows},
                 {"seal=", &options->seal},
                 {"forget=", &options->forget},
                 {"compact=", &options->compact},
                 {"ticks=", &options->ticks},
                 {"pause_us=", &options->pause_us},
                 {"faults_every=", &options->faults_every}};

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (strncmp(text, known[i].name, strlen(known[i].name)) == 0) {
            *known[i].value = strtoll(text + strlen(known[i].name), NULL, 10);
            return true;
        }
    }
    return false;
}

static void arm_fault(const struct work *work, int64_t tick)
{
    faulty_vfs.fault = work->options.faults_every > 0 ? FAULTY_VFS_ERROR : FAULTY_VFS_NONE;
    faulty_vfs.at = faulty_vfs.calls + work->options.faults_every + tick % 5;
}

static int run_write(const char *path, int count, char **args)
{
    struct tide_error err;
    struct work work = {.path = path, .options = {.rows = 10, .seal = 100}};
    for (int i = 0; i < count; i++) {
        if (!read_option(&work.options, args[i])) {
            return 2;
        }
    }
    if (open_work(path, &work, &err) != TIDE_OK || find_newest(&work, &err) != TIDE_OK) {
        return report(&err);
    }
    for (int64_t tick = 0; work.options.ticks == 0 || tick < work.options.ticks; tick++) {
        if (faulty_vfs.hits > 0 || tick == 0) {
            faulty_vfs.hits = 0;
            arm_fault(&work, tick);
        }
        if (write_tick(&work, work.options.rows, &err) != TIDE_OK ||
            seal_if_due(&work, &err) != TIDE_OK || forget_and_compact(&work, &err) != TIDE_OK) {
            printf("failed: %s\n", err.message);
            if (!err.retriable) {
                return report(&err);
            }
            (void)usleep(1000);
        }
        (void)usleep((useconds_t)work.options.pause_us);
    }
    faulty_vfs.fault = FAULTY_VFS_NONE;
    tide_archive_writer_close(work.writer);
    return 0;
}

/* Spans of times, each row saying its own. */
struct spans {
    bool is_quiet;
    bool has_any;
    int64_t first; /* of the present span */
    int64_t last;
    int64_t least;
    int64_t count;
    int64_t gaps;
};

static void print_span(const struct spans *spans)
{
    if (spans->has_any && !spans->is_quiet) {
        printf("%" PRId64 "-%" PRId64 "\n", spans->first, spans->last);
    }
}

static tide_status take(void *context, int64_t ts, tide_str bytes, struct tide_error *err)
{
    struct spans *spans = context;
    int64_t said = 0;
    if (!tide_str_to_i64(bytes, &said) || said != ts || (spans->has_any && ts <= spans->last)) {
        return tide_fail(err, TIDE_CORRUPT, "the row at %" PRId64 " is \"%.*s\", behind %" PRId64,
                         ts, TIDE_STR_ARG(bytes), spans->last);
    }
    if (spans->has_any && ts != spans->last + 1) {
        print_span(spans);
        spans->gaps++;
        spans->first = ts;
    }
    if (!spans->has_any) {
        spans->first = spans->least = ts;
    }
    spans->has_any = true;
    spans->last = ts;
    spans->count++;
    return TIDE_OK;
}

static tide_status read_series(struct tide_archive *archive, const char *name, struct spans *spans,
                               struct tide_error *err)
{
    struct tide_archive_range range = {1, tide_str_from(name), INT64_MIN, INT64_MAX};
    struct tide_archive_row_taker taker = {take, spans};
    return tide_archive_rows_read(archive, &range, &encoder, &taker, err);
}

static int run_read(const char *path, const char *series)
{
    struct tide_error err;
    struct spans spans = {0};
    TIDE_CLEANUP(tide_archive_close_ptr) struct tide_archive *archive = NULL;
    if (tide_archive_open(path, TIDE_ARCHIVE_READ, &archive, &err) != TIDE_OK ||
        read_series(archive, series, &spans, &err) != TIDE_OK) {
        return report(&err);
    }
    print_span(&spans);
    return 0;
}

/* Both series and what is held, of one moment. */
static tide_status look(struct tide_archive *archive, struct spans *a, struct spans *b,
                        int64_t *ret_held, struct tide_error *err)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf held = {0};
    bool is_any = false;
    TIDE_TRY(tide_archive_snapshot_begin(archive, err));
    TIDE_CLEANUP(tide_archive_snapshot_end_ptr) struct tide_archive *open = archive;
    TIDE_TRY(read_series(open, "a", a, err));
    TIDE_TRY(read_series(open, "b", b, err));
    TIDE_TRY(tide_archive_held_read(open, 1, TIDE_STR("newest"), &is_any, &held, err));
    *ret_held = 0;
    if (is_any && !tide_str_to_i64(tide_buf_str(&held), ret_held)) {
        return tide_fail(err, TIDE_CORRUPT, "what is held is no number");
    }
    return TIDE_OK;
}

static int run_watch(const char *path, double seconds)
{
    struct tide_error err;
    TIDE_CLEANUP(tide_archive_close_ptr) struct tide_archive *archive = NULL;
    int64_t end_us = tide_clock_deadline_us((int64_t)(seconds * 1e6));
    int64_t newest = 0;
    int64_t readings = 0;
    if (tide_archive_open(path, TIDE_ARCHIVE_READ, &archive, &err) != TIDE_OK) {
        return report(&err);
    }
    for (; tide_clock_monotonic_us() < end_us; readings++) {
        struct spans a = {.is_quiet = true};
        struct spans b = {.is_quiet = true};
        int64_t held = 0;
        if (look(archive, &a, &b, &held, &err) != TIDE_OK) {
            return report(&err);
        }
        if (a.gaps + b.gaps > 0 || a.last != b.last || a.least != b.least || a.last != held ||
            held < newest) {
            printf("torn: a %" PRId64 "-%" PRId64 ", b %" PRId64 "-%" PRId64 ", %" PRId64
                   " gaps, held %" PRId64 ", before %" PRId64 "\n",
                   a.least, a.last, b.least, b.last, a.gaps + b.gaps, held, newest);
            return 1;
        }
        newest = held;
    }
    printf("%" PRId64 " readings up to %" PRId64 "\n", readings, newest);
    return 0;
}

static int run_catalogue(const char *path)
{
    struct tide_error err;
    TIDE_CLEANUP(tide_arena_done) struct tide_arena arena = {0};
    TIDE_CLEANUP(tide_archive_close_ptr) struct tide_archive *archive = NULL;
    struct tide_archive_catalogue found;
    if (tide_archive_open(path, TIDE_ARCHIVE_READ, &archive, &err) != TIDE_OK ||
        tide_archive_catalogue_read(archive, &arena, &found, &err) != TIDE_OK) {
        return report(&err);
    }
    for (size_t i = 0; i < found.series_count; i++) {
        const struct tide_archive_series_info *one = &found.series[i];
        printf("%" PRId64 " %.*s %" PRId64 " %" PRId64 " %" PRId64 "\n", one->source,
               TIDE_STR_ARG(one->name), one->segments, one->sealed_rows, one->live_rows);
    }
    return 0;
}

static int run_verify(const char *path, bool is_full)
{
    struct tide_error err;
    TIDE_CLEANUP(tide_arena_done) struct tide_arena arena = {0};
    TIDE_CLEANUP(tide_archive_close_ptr) struct tide_archive *archive = NULL;
    struct tide_archive_findings found;
    if (tide_archive_open(path, TIDE_ARCHIVE_READ, &archive, &err) != TIDE_OK ||
        tide_archive_verify(archive, is_full, &arena, &found, &err) != TIDE_OK) {
        return report(&err);
    }
    for (size_t i = 0; i < found.count && i < TIDE_ARCHIVE_FINDINGS_MAX; i++) {
        printf("%.*s\n", TIDE_STR_ARG(found.items[i].text));
    }
    return found.harmful > 0;
}

static int run_copy(const char *path, const char *to)
{
    struct tide_error err;
    TIDE_CLEANUP(tide_archive_close_ptr) struct tide_archive *archive = NULL;
    if (tide_archive_open(path, TIDE_ARCHIVE_READ, &archive, &err) != TIDE_OK ||
        tide_archive_copy_to(archive, to, &err) != TIDE_OK) {
        return report(&err);
    }
    return 0;
}

static tide_status make_notes(const struct work *work, struct tide_error *err)
{
    struct tide_archive_note notes[] = {{work->series[0], 1, TIDE_STR("columns 1")},
                                        {work->series[0], 1, TIDE_STR("columns 2")},
                                        {work->series[1], 5, TIDE_STR("columns 3")}};
    struct tide_archive_tick tick = {.notes = notes, .note_count = 3};
    return tide_archive_write(work->writer, &tick, err);
}

/* Rows 1 to 30 sealed twice, 31 to 35 live; another source, complete, with negative times. */
static tide_status make(const char *path, struct tide_error *err)
{
    struct work work = {0};
    struct tide_archive_seal_counts counts;
    TIDE_TRY(open_work(path, &work, err));
    TIDE_TRY(make_notes(&work, err));
    for (int i = 0; i < 2; i++) {
        TIDE_TRY(write_tick(&work, 15, err));
        TIDE_TRY(tide_archive_seal(work.writer, work.series, 2, NULL, &counts, err));
    }
    TIDE_TRY(write_tick(&work, 5, err));
    struct tide_archive_pair labels[] = {{TIDE_STR("z"), TIDE_STR("1")},
                                         {TIDE_STR("a"), TIDE_STR("\xc3\xa9\"")}};
    struct tide_archive_new_source other = {.labels = {labels, 2}, .clock_anchor_wall_ns = -5};
    TIDE_TRY(tide_archive_add_source(work.writer, &other, &work.source, err));
    TIDE_TRY(
        tide_archive_series_open(work.writer, work.source, TIDE_STR("a"), &work.series[0], err));
    TIDE_TRY(
        tide_archive_series_open(work.writer, work.source, TIDE_STR("b"), &work.series[1], err));
    work.newest = -11;
    TIDE_TRY(write_tick(&work, 11, err));
    TIDE_TRY(tide_archive_seal(work.writer, work.series, 1, NULL, &counts, err));
    TIDE_TRY(tide_archive_finalize_source(work.writer, work.source, 100, 7, err));
    tide_archive_writer_close(work.writer);
    return TIDE_OK;
}

int main(int argc, char **argv)
{
    const char *what = argc > 2 ? argv[1] : "";
    struct tide_error err;
    encoder = plain_encoder(NULL);
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    faulty_vfs_install();
    if (strcmp(what, "make") == 0) {
        return make(argv[2], &err) == TIDE_OK ? 0 : report(&err);
    }
    if (strcmp(what, "write") == 0) {
        return run_write(argv[2], argc - 3, argv + 3);
    }
    if (strcmp(what, "read") == 0 && argc == 4) {
        return run_read(argv[2], argv[3]);
    }
    if (strcmp(what, "watch") == 0 && argc == 4) {
        return run_watch(argv[2], strtod(argv[3], NULL));
    }
    if (strcmp(what, "catalogue") == 0) {
        return run_catalogue(argv[2]);
    }
    if (strcmp(what, "verify") == 0) {
        return run_verify(argv[2], argc == 4);
    }
    if (strcmp(what, "copy") == 0 && argc == 4) {
        return run_copy(argv[2], argv[3]);
    }
    (void)fprintf(stderr, "usage: archive_tool make|write|read|watch|catalogue|verify|copy PATH\n");
    return 2;
}
