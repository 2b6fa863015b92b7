/* Sources as a publisher introduces them, and what need not be sent of their series. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "archive/catalogue.h"
#include "archive/change_encoder.h"
#include "base/alloc.h"
#include "base/limits.h"
#include "format/wire/order.h"
#include "replication/publisher_state.h"

/* Where the source of that id is among all, or would be. */
static size_t place_of(const struct tide_publisher *publisher, int64_t id)
{
    size_t low = 0;
    size_t high = publisher->source_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (publisher->sources[middle]->id < id) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

struct tide_publisher_source *tide_publisher_source(const struct tide_publisher *publisher,
                                                    int64_t id)
{
    size_t place = place_of(publisher, id);
    return place < publisher->source_count && publisher->sources[place]->id == id
               ? publisher->sources[place]
               : NULL;
}

static struct tide_publisher_source *add_source(struct tide_publisher *publisher, int64_t id)
{
    struct tide_publisher_source *source = tide_alloc(1, sizeof(*source));
    size_t place = place_of(publisher, id);
    publisher->sources =
        tide_realloc(publisher->sources, publisher->source_count + 1, sizeof(*publisher->sources));
    memmove(&publisher->sources[place + 1], &publisher->sources[place],
            (publisher->source_count - place) * sizeof(*publisher->sources));
    publisher->sources[place] = source;
    publisher->source_count++;
    source->id = id;
    return source;
}

/* Series */

/* They rise by name. */
static int compare_name(const void *key, const void *item)
{
    const tide_str *name = key;
    const struct tide_wire_hello_series *series = item;
    return tide_str_compare(*name, series->name);
}

static const struct tide_wire_hello_series *find_held(const struct tide_wire_hello_source *hello,
                                                      tide_str name)
{
    return hello->series_count == 0 ? NULL
                                    : bsearch(&name, hello->series, hello->series_count,
                                              sizeof(*hello->series), compare_name);
}

static void set_sealed(struct tide_publisher_series *series, int64_t ts)
{
    series->has_sealed = true;
    series->sealed_to = ts;
}

static void set_skip(struct tide_publisher_series *series, bool is_held, int64_t ts)
{
    series->has_skip = is_held || ts > INT64_MIN;
    series->skip_below = ts;
}

/* Rows at or before `ts` need not be sent. */
static void skip_to(struct tide_publisher_series *series, int64_t ts)
{
    /* A row at the end of time is sent again, and is held. */
    set_skip(series, true, ts == INT64_MAX ? ts : ts + 1);
}

static void begin_since(struct tide_publisher_series *series, int64_t since)
{
    set_skip(series, false, since);
    if (since > INT64_MIN) {
        set_sealed(series, since - 1);
    }
}

/* The follower has rows of it; what was written late, below the newest, may be missing there. */
static tide_status begin_held(const struct tide_publisher *publisher,
                              struct tide_publisher_series *series,
                              const struct tide_wire_hello_series *held, struct tide_error *err)
{
    bool is_disordered = false;
    int64_t least = 0;
    TIDE_TRY(tide_archive_live_disorder(publisher->archive, series->source->id, series->name,
                                        &is_disordered, &least, err));
    if (publisher->options.from == TIDE_PUBLISH_SINCE) {
        begin_since(series, publisher->options.since_ts);
    }
    if (held->has_newest) {
        skip_to(series, held->newest_ts);
        if (is_disordered && least < series->skip_below) {
            series->skip_below = least;
        }
    }
    if (held->is_sealed) {
        set_sealed(series, held->sealed_to);
    } else if (publisher->options.from == TIDE_PUBLISH_NOW && held->has_newest) {
        set_sealed(series, held->newest_ts);
    }
    return TIDE_OK;
}

/* The follower has its source, and no row of it: with "now", what came since it was last there. */
static void begin_unheard_of(struct tide_publisher_series *series)
{
    const struct tide_wire_hello_source *hello = series->source->hello;
    bool is_any = false;
    int64_t newest = 0;
    for (size_t i = 0; i < hello->series_count; i++) {
        if (hello->series[i].has_newest && (!is_any || hello->series[i].newest_ts > newest)) {
            is_any = true;
            newest = hello->series[i].newest_ts;
        }
    }
    if (is_any) {
        skip_to(series, newest);
        set_sealed(series, newest);
    }
}

static tide_status begin_series(const struct tide_publisher *publisher,
                                struct tide_publisher_series *series, struct tide_error *err)
{
    const struct tide_wire_hello_source *hello = series->source->hello;
    const struct tide_wire_hello_series *held =
        hello == NULL ? NULL : find_held(hello, series->name);
    if (held != NULL) {
        return begin_held(publisher, series, held, err);
    }
    if (publisher->options.from == TIDE_PUBLISH_SINCE) {
        begin_since(series, publisher->options.since_ts);
    } else if (publisher->options.from == TIDE_PUBLISH_NOW && hello != NULL) {
        begin_unheard_of(series);
    }
    return TIDE_OK;
}

static void append_key(struct tide_publisher *publisher, int64_t source, tide_str name)
{
    tide_buf_reset(&publisher->key);
    tide_buf_append_i64(&publisher->key, source);
    tide_buf_append_char(&publisher->key, ' ');
    tide_buf_append_str(&publisher->key, name);
}

static tide_status make_series(struct tide_publisher *publisher,
                               struct tide_publisher_source *source, tide_str name,
                               struct tide_publisher_series **ret_series, struct tide_error *err)
{
    if (publisher->series_count == TIDE_ARCHIVE_SERIES_MAX) {
        return tide_fail(err, TIDE_UNSUPPORTED, "more than %zu series cannot be published",
                         TIDE_ARCHIVE_SERIES_MAX);
    }
    struct tide_publisher_series *series = tide_alloc(1, sizeof(*series));
    publisher->series =
        tide_realloc(publisher->series, publisher->series_count + 1, sizeof(*publisher->series));
    publisher->series[publisher->series_count++] = series;
    series->source = source;
    series->name = tide_arena_str(&publisher->arena, name);
    series->wants_full = true;
    TIDE_TRY(begin_series(publisher, series, err));
    tide_map_put(&publisher->by_name, tide_buf_str(&publisher->key), NULL)->ptr = series;
    *ret_series = series;
    return TIDE_OK;
}

tide_status tide_publisher_series(struct tide_publisher *publisher, int64_t source_id,
                                  tide_str name, struct tide_publisher_series **ret_series,
                                  struct tide_error *err)
{
    struct tide_publisher_series *last = publisher->last;
    if (last != NULL && last->source->id == source_id && tide_str_equal(last->name, name)) {
        *ret_series = last;
        return TIDE_OK;
    }
    append_key(publisher, source_id, name);
    const union tide_map_value *known =
        tide_map_get(&publisher->by_name, tide_buf_str(&publisher->key));
    struct tide_publisher_source *source = tide_publisher_source(publisher, source_id);
    if (known != NULL) {
        publisher->last = known->ptr;
    } else if (source == NULL) {
        return tide_fail(err, TIDE_CORRUPT,
                         "the archive has rows of source %" PRId64 ", which is not there",
                         source_id);
    } else {
        TIDE_TRY(make_series(publisher, source, name, &publisher->last, err));
    }
    *ret_series = publisher->last;
    return TIDE_OK;
}

tide_status tide_publisher_sealed_now(struct tide_publisher *publisher,
                                      struct tide_publisher_series *series, struct tide_error *err)
{
    if (series->round == publisher->round) {
        return TIDE_OK;
    }
    TIDE_TRY(tide_archive_sealed_to(publisher->archive, series->source->id, series->name,
                                    &series->is_sealed_now, &series->sealed_now, err));
    series->round = publisher->round;
    return TIDE_OK;
}

/* Sources */

static void append_pairs(struct tide_archive_pairs *pairs, struct tide_buf *encoded,
                         struct tide_wire_map *map)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf ignored = {0};
    tide_archive_pairs_write(pairs, &ignored); /* sorts them */
    for (size_t i = 0; i < pairs->count; i++) {
        tide_wire_pair_append(encoded, pairs->items[i].key, pairs->items[i].value);
    }
    *map = (struct tide_wire_map){.count = (uint32_t)pairs->count, .pairs = tide_buf_str(encoded)};
}

static tide_status send_handshake(uint32_t number, struct tide_archive_source *source,
                                  struct tide_buf *out, struct tide_error *err)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf labels = {0};
    TIDE_CLEANUP(tide_buf_done) struct tide_buf metadata = {0};
    struct tide_wire_frame frame = {
        .kind = TIDE_WIRE_HANDSHAKE,
        .source = number,
        .handshake =
            {
                .has_uuid = source->uuid[0] != '\0',
                .uuid = tide_str_from(source->uuid),
                .clock_anchor_wall_ns = source->clock_anchor_wall_ns,
                .is_complete = source->is_complete,
            },
    };
    append_pairs(&source->labels, &labels, &frame.handshake.labels);
    append_pairs(&source->metadata, &metadata, &frame.handshake.metadata);
    return tide_wire_encode(&frame, out, err);
}

static const struct tide_wire_hello_source *find_hello(const struct tide_publisher *publisher,
                                                       const struct tide_archive_source *source)
{
    for (size_t i = 0; publisher->has_hello && i < publisher->options.hello->source_count; i++) {
        const struct tide_wire_hello_source *hello = &publisher->options.hello->sources[i];
        if (tide_str_equal(hello->uuid, tide_str_from(source->uuid))) {
            return hello;
        }
    }
    return NULL;
}

static tide_status take_number(struct tide_publisher *publisher, uint32_t *ret_number,
                               struct tide_error *err)
{
    if (publisher->next_number == TIDE_WIRE_SOURCES_MAX) {
        return tide_fail_retriable(err, TIDE_STALE,
                                   "one stream introduces %zu sources at most; connect again",
                                   TIDE_WIRE_SOURCES_MAX);
    }
    *ret_number = publisher->next_number++;
    return TIDE_OK;
}

static tide_status introduce(struct tide_publisher *publisher, int64_t id, uint64_t digest,
                             struct tide_buf *out, struct tide_error *err)
{
    TIDE_CLEANUP(tide_arena_done) struct tide_arena arena = {0};
    struct tide_archive_source found;
    uint32_t number = 0;
    struct tide_publisher_source *source = tide_publisher_source(publisher, id);
    TIDE_TRY(tide_archive_source_read(publisher->archive, id, &arena, &found, err));
    TIDE_TRY(take_number(publisher, &number, err));
    TIDE_TRY(send_handshake(number, &found, out, err));
    if (source == NULL) {
        source = add_source(publisher, id);
        source->number = number;
        source->hello = find_hello(publisher, &found);
        source->is_of_tables = tide_str_equal(
            tide_archive_pairs_get(&found.metadata, TIDE_STR(TIDE_ARCHIVE_KEY_ENCODER)),
            tide_str_from(tide_change_encoder.version));
    } else {
        source->is_end_said = found.is_complete; /* renewed: the number that rows have stays */
    }
    source->digest = digest;
    source->is_complete = found.is_complete;
    return TIDE_OK;
}

/* Calls `introduce` for sources that are new, or, with `is_renewal`, for those that have changed.
 */
static tide_status walk_sources(struct tide_publisher *publisher, bool is_renewal,
                                struct tide_buf *out, struct tide_error *err)
{
    struct tide_archive_tail *tail = publisher->tails[TIDE_ARCHIVE_SOURCES];
    tide_archive_tail_begin(tail, TIDE_ARCHIVE_MARK_FIRST);
    for (;;) {
        struct tide_archive_written written;
        bool is_any = false;
        TIDE_TRY(tide_archive_tail_next(tail, &written, &is_any, err));
        if (!is_any) {
            return TIDE_OK;
        }
        uint64_t digest = tide_archive_mark_of(&written).digest;
        const struct tide_publisher_source *source =
            tide_publisher_source(publisher, written.source);
        bool is_changed = source != NULL && (source->digest != digest ||
                                             (source->is_complete && !source->is_end_said));
        if (is_renewal ? is_changed : source == NULL) {
            TIDE_TRY(introduce(publisher, written.source, digest, out, err));
        }
    }
}

tide_status tide_publisher_introduce(struct tide_publisher *publisher, struct tide_buf *out,
                                     struct tide_error *err)
{
    return walk_sources(publisher, false, out, err);
}

/* Others would take a source that is introduced again for another one. */
tide_status tide_publisher_renew(struct tide_publisher *publisher, struct tide_buf *out,
                                 struct tide_error *err)
{
    return publisher->has_hello ? walk_sources(publisher, true, out, err) : TIDE_OK;
}

/* Of all series that are there now, rows and segments are passed over. */
static tide_status begin_now(struct tide_publisher *publisher,
                             const struct tide_archive_catalogue *catalogue, struct tide_error *err)
{
    for (size_t i = 0; i < catalogue->series_count; i++) {
        const struct tide_archive_series_info *info = &catalogue->series[i];
        struct tide_publisher_series *series = NULL;
        TIDE_TRY(tide_publisher_series(publisher, info->source, info->name, &series, err));
        if (series->source->hello != NULL) {
            continue;
        }
        if (info->segments > 0) {
            skip_to(series, info->sealed_to);
            set_sealed(series, info->sealed_to);
        }
        if (info->live_rows > 0) {
            skip_to(series, info->live_to);
        }
    }
    return TIDE_OK;
}

/*
 * The newest row that the follower has of a series came from here. Where all that is left begins
 * behind it, it has been forgotten, and with it rows behind it, for all anybody knows.
 */
static tide_status note_gaps(struct tide_publisher_source *source, struct tide_archive *archive,
                             struct tide_error *err)
{
    for (size_t i = 0; source->hello != NULL && i < source->hello->series_count; i++) {
        const struct tide_wire_hello_series *held = &source->hello->series[i];
        bool is_any = false;
        int64_t oldest = 0;
        TIDE_TRY(tide_archive_oldest(archive, source->id, held->name, &is_any, &oldest, err));
        if (is_any && held->has_newest && oldest > held->newest_ts) {
            source->seq = TIDE_WIRE_SEQ_BEHIND_GAP;
        }
    }
    return TIDE_OK;
}

tide_status tide_publisher_begin(struct tide_publisher *publisher, struct tide_buf *out,
                                 struct tide_error *err)
{
    TIDE_CLEANUP(tide_arena_done) struct tide_arena arena = {0};
    struct tide_archive_catalogue catalogue = {0};
    struct tide_archive_mark newest;
    publisher->is_begun = true;
    TIDE_TRY(tide_archive_tail_newest(publisher->tails[TIDE_ARCHIVE_LIVE_ROWS], &newest, err));
    publisher->opening_number = newest.number;
    TIDE_TRY(tide_archive_tail_newest(publisher->tails[TIDE_ARCHIVE_CLOCK_OFFSETS], &newest, err));
    publisher->opening_offset = newest.number;
    TIDE_TRY(tide_publisher_introduce(publisher, out, err));
    for (size_t i = 0; i < publisher->source_count; i++) {
        TIDE_TRY(note_gaps(publisher->sources[i], publisher->archive, err));
    }
    if (publisher->options.from != TIDE_PUBLISH_NOW) {
        return TIDE_OK;
    }
    TIDE_TRY(tide_archive_catalogue_read(publisher->archive, &arena, &catalogue, err));
    return begin_now(publisher, &catalogue, err);
}
