#include "sink/archive/archive_upkeep.h"

#include "archive/change_encoder.h"
#include "archive/change_retain.h"
#include "archive/change_series.h"
#include "archive/tail.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/map.h"
#include "base/thread.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define LOOKS_AN_AGE      100
#define LOOK_EVERY_US_MIN INT64_C(100000)
#define LOOK_EVERY_US_MAX INT64_C(600000000)
#define LOOK_FIRST_US     INT64_C(10000000)
#define PAUSE_US          INT64_C(20000) /* in which whoever writes has its turn */
#define STEP_PAGES        256            /* given back in one */
#define FEED_ROWS         (4 * TIDE_ARCHIVE_SEAL_ROWS)
#define CACHE_KIB         4096
#define SMALL_PARTS       4 /* a small segment is so much of a full one */
#define SMALL_COUNT       8

/* What is known of a table's copies without reading its rows again. */
struct table {
    struct tide_change_history *history; /* of rows up to `fed_to` */
    bool is_fed;
    int64_t fed_to;
    bool is_kept; /* all before `kept_from` has been forgotten */
    int64_t kept_from;
};

struct tide_archive_upkeep {
    const struct tide_archive_target *target;
    tide_str name; /* of the sink */
    void (*say)(tide_str name, const char *what);
    int64_t retain_ns; /* 0: all is kept */
    bool compacts;
    struct tide_archive_merge_policy policy;
    struct tide_map tables; /* by series */
    bool has_said_left;
    bool has_said_error;
    pthread_t thread;
    bool is_started;
    _Atomic bool is_closing;
    struct tide_waker waker;
};

/* One look. */
struct look {
    struct tide_archive_upkeep *upkeep;
    struct tide_archive *archive;
    int64_t cutoff_ts;
    size_t left_count; /* tables that keep all for want of a copy */
    tide_str left;     /* the first of them */
    int64_t segments;  /* forgotten */
    int64_t live_rows;
    tide_status status; /* of the first table that failed */
    struct tide_error err;
};

/* Larger ones take more memory to join than is worth it. */
static int64_t at_most(int64_t usual, uint64_t wish)
{
    return wish > 0 && wish < (uint64_t)usual ? (int64_t)wish : usual;
}

struct tide_archive_upkeep *tide_archive_upkeep_new(const struct tide_archive_target *target,
                                                    const struct tide_sink_options *options)
{
    const struct tide_sink_segments *segments = &options->segments;
    struct tide_archive_upkeep *upkeep = tide_alloc(1, sizeof(*upkeep));
    int64_t rows = at_most(tide_archive_seal_policy_default.rows_max, segments->rows_max);
    int64_t bytes = at_most(tide_archive_seal_policy_default.bytes_max, segments->bytes_max);
    upkeep->target = target;
    upkeep->name = options->name;
    upkeep->say = options->say;
    upkeep->retain_ns =
        segments->retain_us > INT64_MAX / 1000 ? INT64_MAX : segments->retain_us * 1000;
    upkeep->compacts = !segments->leaves_small;
    upkeep->policy = (struct tide_archive_merge_policy){
        .rows_max = rows,
        .bytes_max = bytes,
        .small_rows_max = rows / SMALL_PARTS,
        .small_bytes_max = bytes / SMALL_PARTS,
        .count_min = SMALL_COUNT,
    };
    tide_waker_init(&upkeep->waker);
    return upkeep;
}

static void say(const struct tide_archive_upkeep *upkeep, const char *what)
{
    if (upkeep->say != NULL) {
        upkeep->say(upkeep->name, what);
    }
}

static tide_status check_closing(const struct tide_archive_upkeep *upkeep, struct tide_error *err)
{
    return upkeep->is_closing ? tide_fail(err, TIDE_CANCELLED, "the archive is being closed")
                              : TIDE_OK;
}

/* Between two transactions. */
static tide_status pause_for_others(struct tide_archive_upkeep *upkeep, struct tide_error *err)
{
    (void)tide_waker_wait(&upkeep->waker, tide_clock_deadline_us(PAUSE_US));
    return check_closing(upkeep, err);
}

/* Forgetting */

static struct table *table_of(struct tide_archive_upkeep *upkeep, tide_str series)
{
    union tide_map_value *value = tide_map_put(&upkeep->tables, series, NULL);
    if (value->ptr == NULL) {
        value->ptr = tide_alloc(1, sizeof(struct table));
    }
    return value->ptr;
}

/* A snapshot is held for so many rows at most, since the log grows meanwhile. */
static tide_status feed_some(const struct look *look, const struct tide_archive_series_info *series,
                             struct table *table, bool *ret_is_more, struct tide_error *err)
{
    TIDE_CLEANUP(tide_change_scan_close_ptr) struct tide_change_scan *scan = NULL;
    const struct tide_archive_range range = {
        .source = series->source,
        .series = series->name,
        .start_ts = table->is_fed ? table->fed_to + 1 : INT64_MIN,
        .end_ts = look->cutoff_ts - 1,
    };
    struct tide_change_seen seen;
    tide_status status = TIDE_OK;
    TIDE_TRY(tide_change_scan_open(look->archive, &range, &scan, err));
    tide_change_scan_want_heads(scan);
    for (int64_t count = 0; status == TIDE_OK && count < FEED_ROWS; count++) {
        status = tide_change_scan_next(scan, &seen, err);
        if (status == TIDE_OK) {
            tide_change_history_add(table->history, seen.ts, &seen.row);
            table->is_fed = true;
            table->fed_to = seen.ts;
            status = check_closing(look->upkeep, err);
        }
    }
    *ret_is_more = status == TIDE_OK;
    return status == TIDE_END ? TIDE_OK : status;
}

/* Times of a series only rise, so each row is read once for as long as the archive is open. */
static tide_status feed(const struct look *look, const struct tide_archive_series_info *series,
                        struct table *table, struct tide_error *err)
{
    for (bool is_more = true; is_more;) {
        TIDE_TRY(feed_some(look, series, table, &is_more, err));
    }
    return TIDE_OK;
}

static tide_status forget(struct look *look, const struct tide_archive_series_info *series,
                          int64_t keep_from, struct tide_error *err)
{
    int64_t cutoff_ts = INT64_MIN;
    while (cutoff_ts < keep_from) {
        TIDE_CLEANUP(tide_change_retention_done) struct tide_change_retention retention = {0};
        struct tide_archive_retained done = {0};
        TIDE_TRY(tide_archive_retain_step(look->archive, series->source, series->name, keep_from,
                                          TIDE_ARCHIVE_RETAIN_BYTES, &cutoff_ts, err));
        TIDE_TRY(tide_change_retention_init(look->archive, series, cutoff_ts, &retention, err));
        TIDE_TRY(tide_archive_place_check(&look->upkeep->target->place, err));
        TIDE_TRY(tide_archive_writer_retain(look->upkeep->target->writer, &retention.retention,
                                            &done, err));
        look->segments += done.segments;
        look->live_rows += done.live_rows;
        TIDE_TRY(pause_for_others(look->upkeep, err));
    }
    return TIDE_OK;
}

static tide_status retain(struct look *look, const struct tide_archive_series_info *series,
                          struct tide_error *err)
{
    int64_t oldest = series->segments > 0 ? series->sealed_from : series->live_from;
    struct table *table = table_of(look->upkeep, series->name);
    if (oldest >= look->cutoff_ts) {
        return TIDE_OK;
    }
    if (table->history == NULL) {
        table->history = tide_change_history_new(NULL);
    }
    TIDE_TRY(feed(look, series, table, err));
    const struct tide_change_snapshot *floor =
        tide_change_history_floor(table->history, look->cutoff_ts);
    if (floor == NULL) {
        look->left = look->left_count++ == 0 ? series->name : look->left;
        return TIDE_OK;
    }
    if (table->is_kept && table->kept_from == floor->begin_ts) {
        return TIDE_OK;
    }
    TIDE_TRY(forget(look, series, floor->begin_ts, err));
    table->is_kept = true;
    table->kept_from = floor->begin_ts;
    return TIDE_OK;
}

/* Joining */

static tide_status compact(struct look *look, const struct tide_archive_series_info *series,
                           struct tide_error *err)
{
    TIDE_CLEANUP(tide_archive_merge_done) struct tide_archive_merge merge = {0};
    struct tide_archive_upkeep *upkeep = look->upkeep;
    int64_t from = INT64_MIN;
    tide_status status = TIDE_OK;
    while ((status = tide_archive_merge_next(look->archive, &tide_change_encoder, &upkeep->policy,
                                             series->source, series->name, &from, &merge, err)) ==
           TIDE_OK) {
        bool is_put = false;
        TIDE_TRY(tide_archive_place_check(&upkeep->target->place, err));
        TIDE_TRY(tide_archive_writer_put_merge(upkeep->target->writer, series->source, series->name,
                                               &merge, &is_put, err));
        TIDE_TRY(pause_for_others(upkeep, err));
    }
    return status == TIDE_END ? TIDE_OK : status;
}

static tide_status give_back(struct tide_archive_upkeep *upkeep, struct tide_error *err)
{
    for (bool is_more = true; is_more;) {
        TIDE_TRY(tide_archive_writer_give_back(upkeep->target->writer, STEP_PAGES, &is_more, err));
        TIDE_TRY(is_more ? pause_for_others(upkeep, err) : TIDE_OK);
    }
    return TIDE_OK;
}

/* Looking */

static void say_what_was_done(struct look *look)
{
    struct tide_archive_upkeep *upkeep = look->upkeep;
    char text[512];
    if (look->segments > 0 || look->live_rows > 0) {
        (void)snprintf(text, sizeof(text),
                       "forgot %" PRId64 " segments and %" PRId64 " live rows as old",
                       look->segments, look->live_rows);
        say(upkeep, text);
    }
    if (look->left_count > 0 && !upkeep->has_said_left) {
        upkeep->has_said_left = true;
        (void)snprintf(
            text, sizeof(text),
            "nothing of %.*s%s is forgotten, however old: no complete copy of it is as old as the "
            "archive is to keep, and without one rows would be lost that have not changed since; "
            "copy it anew now and then (tidemark backfill)",
            (int)(look->left.len < 100 ? look->left.len : 100), look->left.ptr,
            look->left_count > 1 ? " and other tables" : "");
        say(upkeep, text);
    }
}

static tide_status look_at(struct look *look, const struct tide_archive_series_info *series,
                           struct tide_error *err)
{
    const struct tide_archive_upkeep *upkeep = look->upkeep;
    if (series->source != upkeep->target->source) {
        return TIDE_OK;
    }
    TIDE_TRY(check_closing(upkeep, err));
    TIDE_TRY(upkeep->retain_ns > 0 ? retain(look, series, err) : TIDE_OK);
    return upkeep->compacts ? compact(look, series, err) : TIDE_OK;
}

static tide_status look_at_all(struct look *look, struct tide_error *err)
{
    TIDE_CLEANUP(tide_arena_done) struct tide_arena arena = {0};
    struct tide_archive_catalogue catalogue;
    TIDE_TRY(tide_archive_catalogue_read(look->archive, &arena, &catalogue, err));
    TIDE_TRY(tide_archive_place_check(&look->upkeep->target->place, err));
    for (size_t i = 0; i < catalogue.series_count; i++) {
        tide_status status = look_at(look, &catalogue.series[i], err);
        if (status == TIDE_CANCELLED || status == TIDE_STALE) {
            return status;
        }
        if (status != TIDE_OK && look->status == TIDE_OK) {
            look->status = status;
            look->err = *err;
        }
    }
    say_what_was_done(look); /* while the names are there */
    return give_back(look->upkeep, err);
}

tide_status tide_archive_upkeep_look(struct tide_archive_upkeep *upkeep, int64_t now_ns,
                                     struct tide_error *err)
{
    TIDE_CLEANUP(tide_archive_close_ptr) struct tide_archive *archive = NULL;
    struct look look = {.upkeep = upkeep, .status = TIDE_OK};
    if (__builtin_sub_overflow(now_ns, upkeep->retain_ns, &look.cutoff_ts)) {
        look.cutoff_ts = INT64_MIN + 1;
    }
    TIDE_TRY(tide_archive_open(upkeep->target->place.path, TIDE_ARCHIVE_READ, &archive, err));
    TIDE_TRY(tide_archive_set_cache(archive, CACHE_KIB, err));
    look.archive = archive;
    TIDE_TRY(look_at_all(&look, err));
    if (look.status != TIDE_OK) {
        *err = look.err;
    }
    return look.status;
}

/* What may pass is tried again; an error of the writer is told by the next flush. */
static void note_outcome(struct tide_archive_upkeep *upkeep, tide_status status,
                         const struct tide_error *err)
{
    char text[sizeof(err->message) + 80];
    if (status == TIDE_OK) {
        upkeep->has_said_error = false;
    } else if (status != TIDE_CANCELLED && !err->retriable && !upkeep->has_said_error) {
        upkeep->has_said_error = true;
        (void)snprintf(text, sizeof(text), "the archive is not kept in order: %s", err->message);
        say(upkeep, text);
    }
}

static int64_t interval_us(const struct tide_archive_upkeep *upkeep)
{
    int64_t interval = upkeep->retain_ns / 1000 / LOOKS_AN_AGE;
    if (upkeep->retain_ns == 0 || interval > LOOK_EVERY_US_MAX) {
        return LOOK_EVERY_US_MAX;
    }
    return interval < LOOK_EVERY_US_MIN ? LOOK_EVERY_US_MIN : interval;
}

static void *run(void *context)
{
    struct tide_archive_upkeep *upkeep = context;
    int64_t interval = interval_us(upkeep);
    int64_t wait = interval < LOOK_FIRST_US ? interval : LOOK_FIRST_US;
    while (!upkeep->is_closing) {
        struct tide_error err = {0};
        if (tide_waker_wait(&upkeep->waker, tide_clock_deadline_us(wait))) {
            continue;
        }
        note_outcome(upkeep, tide_archive_upkeep_look(upkeep, tide_clock_utc_us() * 1000, &err),
                     &err);
        wait = interval;
    }
    return NULL;
}

void tide_archive_upkeep_start(struct tide_archive_upkeep *upkeep)
{
    if (upkeep->retain_ns > 0 || upkeep->compacts) {
        upkeep->is_started = true;
        tide_thread_start(&upkeep->thread, run, upkeep);
    }
}

static void free_tables(struct tide_archive_upkeep *upkeep)
{
    size_t at = 0;
    for (struct tide_map_entry *entry = tide_map_next(&upkeep->tables, &at); entry != NULL;
         entry = tide_map_next(&upkeep->tables, &at)) {
        struct table *table = entry->value.ptr;
        tide_change_history_free(table->history);
        free(table);
    }
    tide_map_done(&upkeep->tables);
}

void tide_archive_upkeep_free(struct tide_archive_upkeep *upkeep)
{
    if (upkeep == NULL) {
        return;
    }
    upkeep->is_closing = true;
    tide_waker_wake(&upkeep->waker);
    if (upkeep->is_started) {
        TIDE_ASSERT(pthread_join(upkeep->thread, NULL) == 0);
    }
    free_tables(upkeep);
    tide_waker_done(&upkeep->waker);
    free(upkeep);
}
