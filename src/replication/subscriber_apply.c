/* What each kind of frame does to the archive. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "archive/change_encoder.h"
#include "base/alloc.h"
#include "base/uuid.h"
#include "replication/subscriber_state.h"

static tide_status read_pairs(const struct tide_wire_map *map, struct tide_arena *arena,
                              struct tide_archive_pairs *ret_pairs, struct tide_error *err)
{
    struct tide_wire_pair *pairs = NULL;
    size_t count = 0;
    TIDE_TRY(tide_wire_map_read(map, arena, &pairs, &count, err));
    struct tide_archive_pair *items = tide_arena_alloc(arena, count + 1, sizeof(*items));
    for (size_t i = 0; i < count; i++) {
        items[i] = (struct tide_archive_pair){pairs[i].key, pairs[i].value};
    }
    *ret_pairs = (struct tide_archive_pairs){.items = items, .count = count};
    return TIDE_OK;
}

static struct tide_subscriber_place *last_place(const struct tide_subscriber *subscriber,
                                                int64_t source)
{
    const union tide_map_value *found =
        tide_map_get(&subscriber->place_of, tide_str_of(&source, sizeof(source)));
    return found == NULL ? NULL : &subscriber->places[found->number];
}

static void note_place(struct tide_subscriber *subscriber, size_t place, int64_t source,
                       bool is_complete)
{
    if (place >= subscriber->place_cap) {
        subscriber->place_cap = place == 0 ? 4 : place * 2;
        subscriber->places =
            tide_realloc(subscriber->places, subscriber->place_cap, sizeof(*subscriber->places));
    }
    struct tide_subscriber_place *before = last_place(subscriber, source);
    if (before != NULL) {
        before->is_complete = false; /* what is said last counts */
    }
    TIDE_ASSERT(subscriber->places != NULL);
    subscriber->places[place] = (struct tide_subscriber_place){
        .source = source,
        .is_complete = is_complete,
        .has_rested = before != NULL, /* its rows keep their first number */
        .is_at_rest = before != NULL,
    };
    subscriber->place_count = place + 1;
    tide_map_put(&subscriber->place_of, tide_str_of(&source, sizeof(source)), NULL)->number = place;
}

/*
 * A source that is introduced again, to one who said hello, was sent wholly before that. One whose
 * id is no UUID is known like one without.
 */
static tide_status apply_handshake(struct tide_subscriber *subscriber,
                                   const struct tide_wire_handshake *handshake, size_t place,
                                   struct tide_error *err)
{
    TIDE_CLEANUP(tide_arena_done) struct tide_arena arena = {0};
    char uuid[TIDE_UUID_LEN + 1] = "";
    bool has_uuid = handshake->has_uuid && tide_uuid_read(handshake->uuid, uuid);
    struct tide_archive_copied_source source = {
        .uuid = has_uuid ? tide_str_from(uuid) : (tide_str){NULL, 0},
        .clock_anchor_wall_ns = handshake->clock_anchor_wall_ns,
        .is_complete = handshake->is_complete,
    };
    int64_t id = 0;
    TIDE_TRY(read_pairs(&handshake->labels, &arena, &source.labels, err));
    TIDE_TRY(read_pairs(&handshake->metadata, &arena, &source.metadata, err));
    TIDE_TRY(tide_archive_copy_source(subscriber->writer, &source, &id, err));
    subscriber->order.places[place].is_folded =
        tide_str_equal(tide_archive_pairs_get(&source.metadata, TIDE_STR(TIDE_ARCHIVE_KEY_ENCODER)),
                       tide_str_from(tide_change_encoder.version));
    if (subscriber->has_said_hello && handshake->is_complete &&
        last_place(subscriber, id) != NULL) {
        TIDE_TRY(tide_archive_set_complete(subscriber->writer, id, true, err));
    }
    note_place(subscriber, place, id, handshake->is_complete);
    return TIDE_OK;
}

/*
 * A caller row may be there twice, and comes again with each connection: of those that are alike,
 * as many are passed over as there were before it.
 */
static tide_status is_held(struct tide_subscriber *subscriber, int64_t source,
                           const struct tide_wire_index *index, bool *ret_is_held,
                           struct tide_error *err)
{
    const struct tide_archive_caller_row row = {.ts = index->ts, .bytes = index->bytes};
    int64_t before = 0;
    if (!subscriber->has_newest) {
        TIDE_TRY(
            tide_archive_caller_row_newest(subscriber->writer, &subscriber->newest_index, err));
        subscriber->has_newest = true;
    }
    TIDE_TRY(tide_archive_caller_row_count(subscriber->writer, source, index->series, &row,
                                           subscriber->newest_index, &before, err));
    *ret_is_held = false;
    if (before > 0) {
        XXH128_hash_t digest = XXH3_128bits(index->bytes.ptr, index->bytes.len);
        XXH128_hash_t name = XXH3_128bits(index->series.ptr, index->series.len);
        const uint64_t key[] = {digest.low64, digest.high64,       name.low64,
                                name.high64,  (uint64_t)index->ts, (uint64_t)source};
        union tide_map_value *came =
            tide_map_put(&subscriber->held_index, tide_str_of(key, sizeof(key)), NULL);
        *ret_is_held = came->number < (uint64_t)before;
        came->number++;
    }
    return TIDE_OK;
}

static tide_status apply_index(struct tide_subscriber *subscriber,
                               const struct tide_wire_index *index, size_t place,
                               struct tide_error *err)
{
    const struct tide_archive_caller_row row = {.ts = index->ts, .bytes = index->bytes};
    int64_t source = subscriber->places[place].source;
    bool is_there = false;
    TIDE_TRY(tide_archive_check_name(index->series, err));
    TIDE_TRY(is_held(subscriber, source, index, &is_there, err));
    if (is_there) {
        subscriber->counts.index_entries_held++;
        return TIDE_OK;
    }
    TIDE_TRY(tide_archive_copy_caller_row(subscriber->writer, source, index->series, &row, err));
    subscriber->counts.index_entries++;
    return TIDE_OK;
}

static tide_status find_series(struct tide_subscriber *subscriber, size_t place, tide_str name,
                               struct tide_archive_series **ret_series, struct tide_error *err)
{
    struct tide_subscriber_place *at = &subscriber->places[place];
    if (at->last == NULL || !tide_str_equal(tide_archive_series_name(at->last), name)) {
        TIDE_TRY(tide_archive_series_open(subscriber->writer, at->source, name, &at->last, err));
    }
    *ret_series = at->last;
    return TIDE_OK;
}

/* One may be noted more than once: the second time there is nothing to do for it. */
static void touch(struct tide_subscriber *subscriber, struct tide_archive_series *series)
{
    size_t count = subscriber->touched_count;
    if (subscriber->has_said_hello || (count > 0 && subscriber->touched[count - 1] == series)) {
        return;
    }
    if (count == subscriber->touched_cap) {
        subscriber->touched_cap = count == 0 ? 16 : count * 2;
        subscriber->touched =
            tide_realloc(subscriber->touched, subscriber->touched_cap, sizeof(void *));
    }
    subscriber->touched[subscriber->touched_count++] = series;
}

static tide_status copy_rows(struct tide_subscriber *subscriber, const struct tide_wire_rows *rows,
                             size_t place, struct tide_error *err)
{
    struct tide_reader walk = tide_wire_rows_walk(rows);
    struct tide_archive_series *last = NULL;
    struct tide_wire_row row;
    uint64_t held = 0;
    while (tide_wire_rows_next(&walk, &row)) {
        const struct tide_archive_live_row live = {row.ts, row.wall_offset, row.bytes};
        struct tide_archive_series *series = NULL;
        bool is_there = false;
        TIDE_TRY(find_series(subscriber, place, row.series, &series, err));
        TIDE_TRY(tide_archive_copy_row(series, &live, &is_there, err));
        held += is_there;
        if (series != last && !is_there) {
            last = series;
            touch(subscriber, series);
        }
    }
    subscriber->counts.rows += rows->count - held;
    subscriber->counts.rows_held += held;
    return TIDE_OK;
}

static void skip(struct tide_subscriber *subscriber, uint64_t rows)
{
    subscriber->counts.rows_skipped += rows;
    tide_subscriber_warn(subscriber, TIDE_WARN_SKIPPED,
                         "rows have come whose columns were not sent before them; they are "
                         "passed over until those come");
}

/* It has sent all that it had, so what was sealed here has been compared, if nothing was skipped.
 */
static tide_status note_rest(struct tide_subscriber *subscriber, size_t place,
                             struct tide_error *err)
{
    struct tide_subscriber_place *at = &subscriber->places[place];
    bool is_whole = subscriber->counts.rows_skipped == subscriber->skipped_rows_before &&
                    !subscriber->order.places[place].has_missed;
    if (subscriber->compares && !at->has_rested && is_whole) {
        TIDE_TRY(tide_archive_group_begin(subscriber->writer, err));
        TIDE_TRY(tide_archive_sealed_here_forget(subscriber->writer, at->source, err));
    }
    at->has_rested = true;
    return TIDE_OK;
}

static tide_status apply_rows(struct tide_subscriber *subscriber, const struct tide_wire_rows *rows,
                              const struct tide_wire_verdict *verdict, struct tide_error *err)
{
    if (verdict->is_gap) {
        subscriber->counts.gaps++;
        tide_subscriber_warn(subscriber, TIDE_WARN_GAP,
                             "the publisher says that it has left intervals out, or forgotten "
                             "them before they could be sent: rows may be missing that came then");
    }
    if (rows->count == 0) {
        return note_rest(subscriber, verdict->place, err);
    }
    if (verdict->is_unmatched && rows->count > 0) {
        skip(subscriber, rows->count);
        return TIDE_OK;
    }
    return copy_rows(subscriber, rows, verdict->place, err);
}

static tide_status apply_segment(struct tide_subscriber *subscriber,
                                 const struct tide_wire_segment *sent, size_t place,
                                 struct tide_error *err)
{
    struct tide_archive_adopted adopted = {0};
    struct tide_archive_series *series = NULL;
    const struct tide_archive_segment segment = {
        .rows = sent->rows,
        .first_ts = sent->first_ts,
        .last_ts = sent->last_ts,
        .bytes = sent->bytes,
        .index = sent->has_caller_index
                     ? tide_str_of(sent->caller_index.len == 0 ? "" : sent->caller_index.ptr,
                                   sent->caller_index.len)
                     : (tide_str){NULL, 0},
    };
    TIDE_TRY(find_series(subscriber, place, sent->series, &series, err));
    TIDE_TRY(tide_archive_adopt(series, &segment, &adopted, err));
    subscriber->counts.rows += (uint64_t)adopted.rows;
    subscriber->counts.rows_held += (uint64_t)adopted.rows_held;
    switch (adopted.what) {
    case TIDE_ARCHIVE_ADOPTED:
        subscriber->counts.segments++;
        break;
    case TIDE_ARCHIVE_HELD:
        subscriber->counts.segments_held++;
        break;
    case TIDE_ARCHIVE_OPENED:
    default:
        subscriber->counts.segments_opened++;
        touch(subscriber, series);
        break;
    }
    return TIDE_OK;
}

static tide_status apply_kind(struct tide_subscriber *subscriber,
                              const struct tide_wire_frame *frame,
                              const struct tide_wire_verdict *verdict, struct tide_error *err)
{
    switch (frame->kind) {
    case TIDE_WIRE_HANDSHAKE:
        return apply_handshake(subscriber, &frame->handshake, verdict->place, err);
    case TIDE_WIRE_INDEX:
        return apply_index(subscriber, &frame->index, verdict->place, err);
    case TIDE_WIRE_ROWS:
        return apply_rows(subscriber, &frame->rows, verdict, err);
    case TIDE_WIRE_CLOCK_OFFSET:
        subscriber->counts.clock_offsets++;
        return tide_archive_copy_offset(subscriber->writer,
                                        subscriber->places[verdict->place].source,
                                        frame->clock_offset.ts, frame->clock_offset.offset_ns, err);
    case TIDE_WIRE_SEGMENT:
    default:
        TIDE_ASSERT(false); /* it has a step of its own */
    }
}

static tide_status apply_in_step(struct tide_subscriber *subscriber,
                                 const struct tide_wire_frame *frame,
                                 const struct tide_wire_verdict *verdict, struct tide_error *err)
{
    struct tide_error ignored;
    TIDE_TRY(tide_archive_group_begin(subscriber->writer, err));
    TIDE_TRY(tide_archive_step_begin(subscriber->writer, err));
    tide_status status = apply_kind(subscriber, frame, verdict, err);
    status = status == TIDE_OK ? tide_archive_step_end(subscriber->writer, err) : status;
    if (status != TIDE_OK) {
        (void)tide_archive_step_undo(subscriber->writer, &ignored);
    }
    return status;
}

tide_status tide_subscriber_apply(struct tide_subscriber *subscriber,
                                  const struct tide_wire_frame *frame, struct tide_error *err)
{
    struct tide_wire_verdict verdict;
    TIDE_TRY(tide_wire_order_take(&subscriber->order, frame, &verdict, err));
    if (frame->kind != TIDE_WIRE_HANDSHAKE) {
        subscriber->places[verdict.place].is_at_rest =
            frame->kind == TIDE_WIRE_ROWS && frame->rows.count == 0;
    }
    if (verdict.is_missing) {
        subscriber->counts.gaps++;
        tide_subscriber_warn(subscriber, TIDE_WARN_GAP,
                             "what rows are read by has not come wholly: no more rows of this "
                             "source are taken out of this stream; let another one follow");
    }
    if (frame->kind == TIDE_WIRE_SEGMENT && verdict.is_unmatched) {
        skip(subscriber, frame->segment.rows);
        return TIDE_OK;
    }
    if (frame->kind == TIDE_WIRE_SEGMENT) {
        return apply_segment(subscriber, &frame->segment, verdict.place, err);
    }
    if (frame->kind == TIDE_WIRE_ROWS) {
        tide_subscriber_is_filled(subscriber);
    }
    if (frame->kind == TIDE_WIRE_ROWS && frame->rows.count == 0) {
        return apply_rows(subscriber, &frame->rows, &verdict, err); /* writes nothing */
    }
    return apply_in_step(subscriber, frame, &verdict, err);
}
