#include "replication/publisher.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/limits.h"
#include "format/wire/order.h"
#include "format/wire/stream.h"
#include "replication/publisher_state.h"

/* Followers are many, and read what was written just now, or once: little is to be remembered. */
#define CACHE_KIB 256

#define LOOK_US 1000000 /* from one look for another file of the archive's name to the next */

static void copy_hello(struct tide_publisher *publisher, const struct tide_wire_hello *hello)
{
    struct tide_arena *arena = &publisher->arena;
    struct tide_wire_hello *copy = tide_arena_alloc(arena, 1, sizeof(*copy));
    copy->sources = tide_arena_alloc(arena, hello->source_count + 1, sizeof(*copy->sources));
    copy->source_count = hello->source_count;
    for (size_t i = 0; i < hello->source_count; i++) {
        const struct tide_wire_hello_source *source = &hello->sources[i];
        struct tide_wire_hello_series *series =
            tide_arena_alloc(arena, source->series_count + 1, sizeof(*series));
        for (size_t at = 0; at < source->series_count; at++) {
            series[at] = source->series[at];
            series[at].name = tide_arena_str(arena, source->series[at].name);
        }
        copy->sources[i] = (struct tide_wire_hello_source){
            .uuid = tide_arena_str(arena, source->uuid),
            .series = series,
            .series_count = source->series_count,
        };
    }
    publisher->options.hello = copy;
}

static tide_status open_tails(struct tide_publisher *publisher, struct tide_error *err)
{
    for (int table = 0; table < TIDE_ARCHIVE_TABLES; table++) {
        publisher->marks[table] = TIDE_ARCHIVE_MARK_FIRST;
        TIDE_TRY(tide_archive_tail_open(publisher->archive, (enum tide_archive_table)table,
                                        &publisher->tails[table], err));
    }
    return TIDE_OK;
}

tide_status tide_publisher_open(const char *path, const struct tide_publisher_options *options,
                                struct tide_publisher **ret_publisher, struct tide_error *err)
{
    TIDE_CLEANUP(tide_publisher_close_ptr)
    struct tide_publisher *publisher = tide_alloc(1, sizeof(*publisher));
    publisher->options = *options;
    publisher->has_hello = options->hello != NULL;
    if (publisher->has_hello) {
        copy_hello(publisher, options->hello);
    }
    TIDE_TRY(tide_archive_open(path, TIDE_ARCHIVE_READ, &publisher->archive, err));
    TIDE_TRY(tide_archive_set_cache(publisher->archive, CACHE_KIB, err));
    TIDE_TRY(open_tails(publisher, err));
    *ret_publisher = publisher;
    publisher = NULL;
    return TIDE_OK;
}

void tide_publisher_close(struct tide_publisher *publisher)
{
    if (publisher == NULL) {
        return;
    }
    for (int table = 0; table < TIDE_ARCHIVE_TABLES; table++) {
        tide_archive_tail_close(publisher->tails[table]);
    }
    tide_archive_close(publisher->archive);
    for (size_t i = 0; i < publisher->source_count; i++) {
        free(publisher->sources[i]);
    }
    for (size_t i = 0; i < publisher->series_count; i++) {
        free(publisher->series[i]->late);
        free(publisher->series[i]);
    }
    free(publisher->sources);
    free(publisher->series);
    tide_map_done(&publisher->by_name);
    tide_buf_done(&publisher->key);
    tide_arena_done(&publisher->arena);
    free(publisher);
}

void tide_publisher_close_ptr(struct tide_publisher **publisher)
{
    tide_publisher_close(*publisher);
    *publisher = NULL;
}

typedef tide_status step_function(struct tide_publisher *publisher, struct tide_buf *out,
                                  struct tide_error *err);

/* What a row is read by comes before it, and segments before rows: what they hold need not be
 * sent again. Sources are renewed once all of it was sent. */
static step_function *const steps[] = {
    tide_publisher_introduce,  tide_publisher_send_index,    tide_publisher_send_offsets,
    tide_publisher_check_rows, tide_publisher_send_segments, tide_publisher_send_rows,
    tide_publisher_renew,
};

/* Within a snapshot. */
static tide_status take_steps(struct tide_publisher *publisher, struct tide_buf *out,
                              struct tide_error *err)
{
    publisher->round++;
    publisher->is_caught_up = false;
    TIDE_TRY(tide_archive_version(publisher->archive, &publisher->version, err));
    if (!publisher->is_begun) {
        tide_wire_preamble_append(out);
        TIDE_TRY(tide_publisher_begin(publisher, out, err));
    }
    if (publisher->sending.series != NULL) {
        TIDE_TRY(tide_publisher_go_on(publisher, out, err));
    }
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        if (publisher->sending.series != NULL || tide_publisher_is_full(publisher, out)) {
            return TIDE_OK;
        }
        TIDE_TRY(steps[i](publisher, out, err));
    }
    publisher->is_caught_up =
        publisher->sending.series == NULL && !tide_publisher_is_full(publisher, out);
    return TIDE_OK;
}

static tide_status take_round(struct tide_publisher *publisher, struct tide_buf *out,
                              struct tide_error *err)
{
    TIDE_CLEANUP(tide_archive_snapshot_end_ptr) struct tide_archive *snapshot = NULL;
    TIDE_TRY(tide_archive_snapshot_begin(publisher->archive, err));
    snapshot = publisher->archive;
    tide_status status = take_steps(publisher, out, err);
    for (int table = 0; table < TIDE_ARCHIVE_TABLES; table++) {
        tide_archive_tail_rest(publisher->tails[table]);
    }
    return status;
}

static tide_status check_place(struct tide_publisher *publisher, struct tide_error *err)
{
    int64_t now_us = tide_clock_monotonic_us();
    if (now_us < publisher->look_at_us) {
        return TIDE_OK;
    }
    publisher->look_at_us = now_us + LOOK_US;
    return !tide_archive_has_moved(publisher->archive)
               ? TIDE_OK
               : tide_fail_retriable(err, TIDE_STALE,
                                     "the archive has been removed, or another file has its name; "
                                     "connect again");
}

void tide_publisher_leave_out(struct tide_publisher *publisher,
                              struct tide_publisher_series *series, const char *what, int64_t ts,
                              size_t size)
{
    const struct tide_publisher_options *options = &publisher->options;
    struct tide_publisher_source *source = series->source;
    char message[512];
    source->seq = source->seq == 0 ? TIDE_WIRE_SEQ_BEHIND_GAP : source->seq + 1;
    if (options->warn != NULL) {
        (void)snprintf(message, sizeof(message),
                       "%s of %.*s at %" PRId64 " has %zu bytes, which is more than can be sent "
                       "at once (%zu): it is left out",
                       what, TIDE_STR_ARG(series->name), ts, size, TIDE_WIRE_FRAME_BYTES_MAX);
        options->warn(options->context, message);
    }
}

tide_status tide_publisher_next(struct tide_publisher *publisher, struct tide_buf *out,
                                size_t bytes_max, bool *ret_is_caught_up, struct tide_error *err)
{
    TIDE_TRY(check_place(publisher, err));
    if (publisher->is_caught_up) {
        int64_t version = 0;
        TIDE_TRY(tide_archive_version(publisher->archive, &version, err));
        if (version == publisher->version) {
            *ret_is_caught_up = true;
            return TIDE_OK;
        }
    }
    publisher->limit = out->len + (bytes_max == 0 ? 1 : bytes_max);
    TIDE_TRY(take_round(publisher, out, err));
    *ret_is_caught_up = publisher->is_caught_up;
    return TIDE_OK;
}

tide_status tide_publisher_keepalive(struct tide_publisher *publisher, struct tide_buf *out,
                                     struct tide_error *err)
{
    if (publisher->sending.series != NULL) {
        return tide_fail(err, TIDE_INVALID, "a publisher has not sent all of a segment yet");
    }
    for (size_t i = 0; i < publisher->source_count; i++) {
        struct tide_publisher_source *source = publisher->sources[i];
        struct tide_wire_draft draft =
            tide_wire_rows_begin(source->number, source->seq++, source->state, out);
        tide_wire_rows_end(&draft, out);
    }
    return TIDE_OK;
}
