#include "replication/subscriber.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "archive/catalogue.h"
#include "archive/change_encoder.h"
#include "base/alloc.h"
#include "base/limits.h"
#include "format/wire/hello.h"
#include "replication/subscriber_state.h"

#define GROUP_BYTES (16 * TIDE_MIB)

tide_status tide_subscriber_set_filling(struct tide_subscriber *subscriber, struct tide_error *err)
{
    return subscriber->is_filling == subscriber->is_to_be_filled
               ? TIDE_OK
               : tide_archive_set_filling(subscriber->writer, subscriber->is_to_be_filled,
                                          &subscriber->is_filling, err);
}

void tide_subscriber_is_filled(struct tide_subscriber *subscriber)
{
    subscriber->is_to_be_filled = false;
}

static tide_status open_archive(struct tide_subscriber *subscriber, const char *path,
                                struct tide_error *err)
{
    enum tide_archive_thing there = TIDE_ARCHIVE_NOTHING;
    const struct tide_archive_writer_options options = {.encoder = subscriber->options.encoder,
                                                        .is_copy = true};
    TIDE_TRY(tide_archive_place_name(tide_str_from(path), &subscriber->place, err));
    TIDE_TRY(tide_archive_place_lock(&subscriber->place, err));
    TIDE_TRY(tide_archive_place_look(&subscriber->place, &there, err));
    if (there == TIDE_ARCHIVE_NOTHING) {
        TIDE_TRY(tide_archive_place_make(&subscriber->place, there, err));
    }
    TIDE_TRY(tide_archive_writer_open(subscriber->place.path, &options, &subscriber->writer, err));
    TIDE_TRY(tide_archive_check_followable(subscriber->writer, err));
    TIDE_TRY(tide_archive_place_remember(&subscriber->place, err));
    subscriber->is_new = there == TIDE_ARCHIVE_NOTHING;
    subscriber->is_to_be_filled = subscriber->is_new;
    return tide_subscriber_set_filling(subscriber, err);
}

tide_status tide_subscriber_open(const char *path, const struct tide_subscriber_options *options,
                                 struct tide_subscriber **ret_subscriber, struct tide_error *err)
{
    TIDE_CLEANUP(tide_subscriber_close_ptr)
    struct tide_subscriber *subscriber = tide_alloc(1, sizeof(*subscriber));
    subscriber->options = *options;
    subscriber->place = (struct tide_archive_place){.lock_fd = -1};
    subscriber->policy =
        options->policy == NULL ? tide_archive_seal_policy_default : *options->policy;
    if (subscriber->options.group_bytes == 0) {
        subscriber->options.group_bytes = GROUP_BYTES;
    }
    if (subscriber->options.encoder == NULL) {
        subscriber->options.encoder = &tide_change_encoder;
    }
    TIDE_TRY(open_archive(subscriber, path, err));
    *ret_subscriber = subscriber;
    subscriber = NULL;
    return TIDE_OK;
}

void tide_subscriber_leave_nothing(struct tide_subscriber *subscriber)
{
    struct tide_error moved;
    subscriber->leaves_nothing =
        subscriber->is_new && subscriber->counts.frames == 0 &&
        tide_archive_place_check(&subscriber->place, &moved) == TIDE_OK; /* it is there still */
}

void tide_subscriber_close(struct tide_subscriber *subscriber)
{
    if (subscriber == NULL) {
        return;
    }
    if (subscriber->writer != NULL) {
        struct tide_error ignored;
        (void)tide_subscriber_commit_end(subscriber, &ignored);
        (void)tide_archive_group_commit(subscriber->writer, &ignored);
        tide_subscriber_is_filled(subscriber);
        (void)tide_subscriber_set_filling(subscriber, &ignored);
    }
    tide_archive_writer_close(subscriber->writer);
    if (subscriber->leaves_nothing) {
        (void)unlink(subscriber->place.path);
    }
    tide_archive_place_done(&subscriber->place); /* unlocked last */
    tide_wire_decoder_done(&subscriber->decoder);
    tide_wire_order_done(&subscriber->order);
    tide_map_done(&subscriber->held_index);
    tide_map_done(&subscriber->place_of);
    free(subscriber->places);
    free(subscriber->touched);
    free(subscriber);
}

void tide_subscriber_close_ptr(struct tide_subscriber **subscriber)
{
    tide_subscriber_close(*subscriber);
    *subscriber = NULL;
}

void tide_subscriber_warn(struct tide_subscriber *subscriber, enum tide_subscriber_warning warning,
                          const char *fmt, ...)
{
    char message[512];
    va_list args;
    if (subscriber->warned[warning] || subscriber->options.warn == NULL) {
        return;
    }
    subscriber->warned[warning] = true;
    va_start(args, fmt);
    (void)vsnprintf(message, sizeof(message), fmt, args);
    va_end(args);
    subscriber->options.warn(subscriber->options.context, message);
}

/* The hello */

/* Of each series of the catalogue. */
static tide_status read_sealed_here(struct tide_subscriber *subscriber,
                                    const struct tide_archive_catalogue *catalogue,
                                    struct tide_archive_sealed_here *here, struct tide_error *err)
{
    TIDE_TRY(tide_archive_sealed_here_any(subscriber->writer, &subscriber->compares, err));
    for (size_t i = 0; i < catalogue->series_count; i++) {
        const struct tide_archive_series_info *info = &catalogue->series[i];
        here[i] = (struct tide_archive_sealed_here){0};
        if (!subscriber->compares) {
            continue;
        }
        TIDE_TRY(tide_archive_sealed_here_read(subscriber->writer, info->source, info->name,
                                               &here[i], err));
    }
    return TIDE_OK;
}

/* What the catalogue has of a source, from `*at` on; moves that behind it. What was sealed here
 * does not count as sealed: it is asked for, to be compared. */
static size_t fill_hello_series(const struct tide_archive_catalogue *catalogue,
                                const struct tide_archive_sealed_here *here, int64_t source,
                                size_t *at, struct tide_wire_hello_series *series)
{
    size_t first = *at;
    for (; *at < catalogue->series_count && catalogue->series[*at].source == source; (*at)++) {
        const struct tide_archive_series_info *info = &catalogue->series[*at];
        series[*at] = (struct tide_wire_hello_series){
            .name = info->name,
            .has_newest = true,
            .newest_ts = info->live_rows > 0 ? info->live_to : info->sealed_to,
            .is_sealed = here[*at].is_any ? here[*at].has_before : info->segments > 0,
            .sealed_to = here[*at].is_any ? here[*at].before_to : info->sealed_to,
        };
    }
    return *at - first;
}

static int compare_sources(const void *a, const void *b)
{
    const struct tide_wire_hello_source *x = a;
    const struct tide_wire_hello_source *y = b;
    return tide_str_compare(x->uuid, y->uuid);
}

/* Of the catalogue, in the arena. A uuid that several sources have is not told. */
static struct tide_wire_hello hello_of(const struct tide_archive_catalogue *catalogue,
                                       const struct tide_archive_sealed_here *here,
                                       struct tide_arena *arena)
{
    struct tide_wire_hello hello = {
        .sources = tide_arena_alloc(arena, catalogue->source_count + 1, sizeof(*hello.sources))};
    struct tide_wire_hello_series *series =
        tide_arena_alloc(arena, catalogue->series_count + 1, sizeof(*series));
    size_t at = 0;
    for (size_t i = 0; i < catalogue->source_count; i++) {
        const struct tide_archive_source *source = &catalogue->sources[i];
        struct tide_wire_hello_source *said = &hello.sources[hello.source_count];
        said->uuid = tide_str_from(source->uuid);
        said->series = &series[at];
        said->series_count = fill_hello_series(catalogue, here, source->id, &at, series);
        hello.source_count += said->uuid.len > 0;
    }
    qsort(hello.sources, hello.source_count, sizeof(*hello.sources), compare_sources);
    size_t kept = 0;
    for (size_t i = 0; i < hello.source_count; i++) {
        if (kept == 0 || !tide_str_equal(hello.sources[kept - 1].uuid, hello.sources[i].uuid)) {
            hello.sources[kept++] = hello.sources[i];
        }
    }
    hello.source_count = kept;
    return hello;
}

tide_status tide_subscriber_hello(struct tide_subscriber *subscriber, struct tide_buf *out,
                                  struct tide_error *err)
{
    TIDE_CLEANUP(tide_arena_done) struct tide_arena arena = {0};
    struct tide_archive_catalogue catalogue = {0};
    TIDE_TRY(tide_subscriber_sync(subscriber, err));
    TIDE_TRY(tide_archive_writer_catalogue(subscriber->writer, &arena, &catalogue, err));
    struct tide_archive_sealed_here *here =
        tide_arena_alloc(&arena, catalogue.series_count + 1, sizeof(*here));
    TIDE_TRY(read_sealed_here(subscriber, &catalogue, here, err));
    struct tide_wire_hello hello = hello_of(&catalogue, here, &arena);
    if (tide_wire_hello_encode(&hello, out, err) != TIDE_OK) {
        /* Too large: what is held of the series is sent again then, and counted as held. */
        for (size_t i = 0; i < hello.source_count; i++) {
            hello.sources[i].series_count = 0;
        }
        TIDE_TRY(tide_wire_hello_encode(&hello, out, err));
    }
    subscriber->has_said_hello = true;
    subscriber->skipped_rows_before = subscriber->counts.rows_skipped;
    return TIDE_OK;
}

/* The stream */

char *tide_subscriber_room(struct tide_subscriber *subscriber, size_t size)
{
    return tide_wire_decoder_room(&subscriber->decoder, size);
}

static void count_progress(struct tide_subscriber *subscriber)
{
    const struct tide_wire_progress *progress = &subscriber->decoder.progress;
    struct tide_subscriber_counts *counts = &subscriber->counts;
    uint64_t skipped = progress->skipped - subscriber->skipped_before;
    counts->bytes += progress->bytes - subscriber->bytes_before;
    subscriber->open_bytes += (size_t)(progress->bytes - subscriber->bytes_before);
    subscriber->bytes_before = progress->bytes;
    subscriber->skipped_before = progress->skipped;
    counts->unknown_frames += skipped;
    if (skipped > 0) {
        tide_subscriber_warn(subscriber, TIDE_WARN_UNKNOWN,
                             "the publisher sends frames that are not known here: it is of a "
                             "later version, and what they say is passed over");
    }
}

static tide_status take_frames(struct tide_subscriber *subscriber, struct tide_error *err)
{
    while (!tide_subscriber_may_wait(subscriber)) {
        struct tide_wire_frame frame;
        bool is_frame = false;
        TIDE_TRY(tide_subscriber_commit_end(subscriber, err));
        tide_status status = tide_wire_decoder_next(&subscriber->decoder, &frame, &is_frame, err);
        count_progress(subscriber);
        TIDE_TRY(status);
        if (!is_frame) {
            return TIDE_OK;
        }
        TIDE_TRY(tide_subscriber_apply(subscriber, &frame, err));
        subscriber->counts.frames++;
        TIDE_TRY(tide_subscriber_commit_begin_if_due(subscriber, err));
    }
    return TIDE_OK;
}

tide_status tide_subscriber_came(struct tide_subscriber *subscriber, size_t size,
                                 struct tide_error *err)
{
    TIDE_ASSERT(!subscriber->is_failed);
    tide_wire_decoder_came(&subscriber->decoder, size);
    tide_status status = take_frames(subscriber, err);
    subscriber->is_failed = status != TIDE_OK;
    return status;
}

tide_status tide_subscriber_go_on(struct tide_subscriber *subscriber, bool *ret_is_busy,
                                  struct tide_error *err)
{
    tide_status status = TIDE_OK;
    if (subscriber->commit.is_pending && !tide_subscriber_may_wait(subscriber)) {
        status = take_frames(subscriber, err);
        subscriber->is_failed = status != TIDE_OK;
    }
    *ret_is_busy = subscriber->commit.is_pending;
    return status;
}

tide_status tide_subscriber_settle(struct tide_subscriber *subscriber, struct tide_error *err)
{
    tide_status status = TIDE_OK;
    while (status == TIDE_OK && subscriber->commit.is_pending) {
        status = tide_subscriber_commit_end(subscriber, err);
        if (status == TIDE_OK && !subscriber->is_failed) {
            status = take_frames(subscriber, err);
        }
        subscriber->is_failed = subscriber->is_failed || status != TIDE_OK;
    }
    return status;
}

/* All that its sources have has come. */
static tide_status complete_sources(struct tide_subscriber *subscriber, struct tide_error *err)
{
    for (size_t i = 0; i < subscriber->order.count; i++) {
        if (subscriber->places[i].is_complete && !subscriber->order.places[i].has_missed) {
            TIDE_TRY(tide_archive_set_complete(subscriber->writer, subscriber->places[i].source,
                                               true, err));
        }
    }
    return TIDE_OK;
}

tide_status tide_subscriber_end(struct tide_subscriber *subscriber, struct tide_error *err)
{
    tide_subscriber_is_filled(subscriber);
    TIDE_TRY(tide_subscriber_sync(subscriber, err));
    if (subscriber->is_failed) {
        return TIDE_OK; /* that was said */
    }
    subscriber->is_failed = true; /* nothing may come any more */
    TIDE_TRY(tide_wire_decoder_end(&subscriber->decoder, err));
    return complete_sources(subscriber, err);
}

tide_status tide_subscriber_restart(struct tide_subscriber *subscriber, struct tide_error *err)
{
    TIDE_TRY(tide_subscriber_sync(subscriber, err));
    tide_wire_decoder_reset(&subscriber->decoder);
    tide_wire_order_done(&subscriber->order);
    subscriber->place_count = 0;
    tide_map_reset(&subscriber->held_index);
    tide_map_reset(&subscriber->place_of);
    subscriber->has_said_hello = false;
    subscriber->compares = false;
    subscriber->is_failed = false;
    subscriber->has_newest = false;
    subscriber->skipped_before = 0;
    subscriber->bytes_before = 0;
    for (int i = 0; i < TIDE_WARNINGS; i++) {
        subscriber->warned[i] = false;
    }
    return TIDE_OK;
}

void tide_subscriber_counts(const struct tide_subscriber *subscriber,
                            struct tide_subscriber_counts *ret_counts)
{
    *ret_counts = subscriber->counts;
}

bool tide_subscriber_is_caught_up(const struct tide_subscriber *subscriber)
{
    bool is_caught_up = subscriber->place_count > 0;
    for (size_t i = 0; i < subscriber->place_count; i++) {
        is_caught_up = is_caught_up && subscriber->places[i].has_rested;
    }
    return is_caught_up;
}

bool tide_subscriber_is_at_rest(const struct tide_subscriber *subscriber)
{
    bool is_at_rest = subscriber->place_count > 0;
    for (size_t i = 0; i < subscriber->place_count; i++) {
        is_at_rest = is_at_rest && subscriber->places[i].is_at_rest;
    }
    return is_at_rest;
}
