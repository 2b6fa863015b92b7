/* The layout of each frame: see wire.h. What is written and what is read stand side by side. */
#include "format/wire/wire.h"

#include "format/wire/pieces.h"

#include <stdio.h>

#define INDEX_FULL  0
#define INDEX_DELTA 1

const char *tide_wire_kind_name(unsigned kind)
{
    static const char *const names[] = {"unknown", "handshake", "index",
                                        "rows",    "segment",   "clock offset"};
    return names[tide_wire_kind_is_known(kind) ? kind : 0];
}

/* Handshakes. */

static const char *wrong_handshake(const struct tide_wire_handshake *handshake)
{
    if (handshake->has_uuid && !tide_str_is_utf8(handshake->uuid)) {
        return "its uuid is not UTF-8";
    }
    const char *wrong = tide_wire_map_wrong(&handshake->labels);
    return wrong != NULL ? wrong : tide_wire_map_wrong(&handshake->metadata);
}

static size_t handshake_size(const struct tide_wire_handshake *handshake)
{
    size_t uuid = handshake->has_uuid ? tide_wire_bytes_size(handshake->uuid) : 0;
    return 1 + uuid + tide_wire_map_size(&handshake->labels) +
           tide_wire_map_size(&handshake->metadata) + 8 + 1;
}

static char *put_handshake(char *at, const struct tide_wire_handshake *handshake)
{
    at = tide_wire_put_u8(at, handshake->has_uuid);
    if (handshake->has_uuid) {
        at = tide_wire_put_bytes(at, handshake->uuid);
    }
    at = tide_wire_map_put(at, &handshake->labels);
    at = tide_wire_map_put(at, &handshake->metadata);
    at = tide_wire_put_i64(at, handshake->clock_anchor_wall_ns);
    return tide_wire_put_u8(at, handshake->is_complete);
}

static void take_handshake(struct tide_wire_take *take, struct tide_wire_handshake *handshake)
{
    handshake->has_uuid = tide_wire_take_bool(take);
    if (handshake->has_uuid) {
        handshake->uuid = tide_wire_take_text(take);
    }
    handshake->labels = tide_wire_map_take(take);
    handshake->metadata = tide_wire_map_take(take);
    handshake->clock_anchor_wall_ns = tide_reader_i64le(&take->reader);
    handshake->is_complete = tide_wire_take_bool(take);
}

/* Index. */

static size_t index_size(const struct tide_wire_index *index)
{
    return tide_wire_bytes_size(index->series) + 8 + 1 + 16 + tide_wire_bytes_size(index->bytes);
}

static char *put_index(char *at, const struct tide_wire_index *index)
{
    at = tide_wire_put_bytes(at, index->series);
    at = tide_wire_put_i64(at, index->ts);
    at = tide_wire_put_u8(at, index->is_delta ? INDEX_DELTA : INDEX_FULL);
    at = tide_wire_put_u64(at, index->state.a);
    at = tide_wire_put_u64(at, index->state.b);
    return tide_wire_put_bytes(at, index->bytes);
}

static void take_index(struct tide_wire_take *take, struct tide_wire_index *index)
{
    index->series = tide_wire_take_text(take);
    index->ts = tide_reader_i64le(&take->reader);
    uint8_t form = tide_reader_u8(&take->reader);
    if (form != INDEX_FULL && form != INDEX_DELTA) {
        take->wrong = "it is neither a full index nor a delta";
    }
    index->is_delta = form == INDEX_DELTA;
    index->state.a = tide_reader_u64le(&take->reader);
    index->state.b = tide_reader_u64le(&take->reader);
    index->bytes = tide_wire_take_bytes(take);
}

/* Segments. */

static const char *wrong_segment(const struct tide_wire_segment *segment)
{
    if (segment->rows < 0) {
        return "it has less than no rows";
    }
    return tide_str_is_utf8(segment->series) ? NULL : "the name of its series is not UTF-8";
}

static size_t segment_size(const struct tide_wire_segment *segment)
{
    size_t index = segment->has_caller_index ? tide_wire_bytes_size(segment->caller_index) : 0;
    return tide_wire_bytes_size(segment->series) + 3 * 8 + tide_wire_bytes_size(segment->bytes) +
           1 + index;
}

static char *put_segment(char *at, const struct tide_wire_segment *segment)
{
    at = tide_wire_put_bytes(at, segment->series);
    at = tide_wire_put_i64(at, segment->rows);
    at = tide_wire_put_i64(at, segment->first_ts);
    at = tide_wire_put_i64(at, segment->last_ts);
    at = tide_wire_put_bytes(at, segment->bytes);
    at = tide_wire_put_u8(at, segment->has_caller_index);
    return segment->has_caller_index ? tide_wire_put_bytes(at, segment->caller_index) : at;
}

/* On the wire the count of rows has no sign; in an archive, where it goes, it has one. */
static void take_segment(struct tide_wire_take *take, struct tide_wire_segment *segment)
{
    segment->series = tide_wire_take_text(take);
    segment->rows = tide_reader_i64le(&take->reader);
    if (segment->rows < 0) {
        take->wrong = "it has more rows than an archive can count";
    }
    segment->first_ts = tide_reader_i64le(&take->reader);
    segment->last_ts = tide_reader_i64le(&take->reader);
    segment->bytes = tide_wire_take_bytes(take);
    segment->has_caller_index = tide_wire_take_bool(take);
    if (segment->has_caller_index) {
        segment->caller_index = tide_wire_take_bytes(take);
    }
}

/* Clock offsets. */

static char *put_clock_offset(char *at, const struct tide_wire_clock_offset *offset)
{
    return tide_wire_put_i64(tide_wire_put_i64(at, offset->ts), offset->offset_ns);
}

static void take_clock_offset(struct tide_wire_take *take, struct tide_wire_clock_offset *offset)
{
    offset->ts = tide_reader_i64le(&take->reader);
    offset->offset_ns = tide_reader_i64le(&take->reader);
}

/* All kinds. */

static const char *wrong_frame(const struct tide_wire_frame *frame)
{
    switch (frame->kind) {
    case TIDE_WIRE_HANDSHAKE:
        return wrong_handshake(&frame->handshake);
    case TIDE_WIRE_INDEX:
        return tide_str_is_utf8(frame->index.series) ? NULL : "the name of its series is not UTF-8";
    case TIDE_WIRE_ROWS:
        return tide_wire_rows_wrong(&frame->rows);
    case TIDE_WIRE_SEGMENT:
        return wrong_segment(&frame->segment);
    case TIDE_WIRE_CLOCK_OFFSET:
        return NULL;
    }
    return "there is no such kind";
}

static size_t fields_size(const struct tide_wire_frame *frame)
{
    switch (frame->kind) {
    case TIDE_WIRE_HANDSHAKE:
        return handshake_size(&frame->handshake);
    case TIDE_WIRE_INDEX:
        return index_size(&frame->index);
    case TIDE_WIRE_ROWS:
        return tide_wire_rows_size(&frame->rows);
    case TIDE_WIRE_SEGMENT:
        return segment_size(&frame->segment);
    case TIDE_WIRE_CLOCK_OFFSET:
        return 2 * 8;
    }
    return 0;
}

static char *put_fields(char *at, const struct tide_wire_frame *frame)
{
    switch (frame->kind) {
    case TIDE_WIRE_HANDSHAKE:
        return put_handshake(at, &frame->handshake);
    case TIDE_WIRE_INDEX:
        return put_index(at, &frame->index);
    case TIDE_WIRE_ROWS:
        return tide_wire_rows_put(at, &frame->rows);
    case TIDE_WIRE_SEGMENT:
        return put_segment(at, &frame->segment);
    case TIDE_WIRE_CLOCK_OFFSET:
        return put_clock_offset(at, &frame->clock_offset);
    }
    return at;
}

static void take_fields(struct tide_wire_take *take, struct tide_wire_frame *frame)
{
    switch (frame->kind) {
    case TIDE_WIRE_HANDSHAKE:
        take_handshake(take, &frame->handshake);
        break;
    case TIDE_WIRE_INDEX:
        take_index(take, &frame->index);
        break;
    case TIDE_WIRE_ROWS:
        frame->rows = tide_wire_rows_take(take);
        break;
    case TIDE_WIRE_SEGMENT:
        take_segment(take, &frame->segment);
        break;
    case TIDE_WIRE_CLOCK_OFFSET:
        take_clock_offset(take, &frame->clock_offset);
        break;
    }
}

tide_status tide_wire_encode(const struct tide_wire_frame *frame, struct tide_buf *out,
                             struct tide_error *err)
{
    size_t body = 1 + sizeof(uint32_t) + fields_size(frame);
    if (body > TIDE_WIRE_FRAME_BYTES_MAX) {
        return tide_fail(err, TIDE_INVALID,
                         "a %s frame of %zu bytes cannot be replicated: the limit is %zu bytes%s",
                         tide_wire_kind_name(frame->kind), body, TIDE_WIRE_FRAME_BYTES_MAX,
                         frame->kind == TIDE_WIRE_SEGMENT ? "; seal and join less at a time" : "");
    }
    const char *wrong = wrong_frame(frame);
    if (wrong != NULL) {
        return tide_fail(err, TIDE_INVALID, "a %s frame cannot be replicated: %s",
                         tide_wire_kind_name(frame->kind), wrong);
    }
    char *start = tide_buf_reserve(out, sizeof(uint32_t) + body);
    char *at = tide_wire_put_u32(start, (uint32_t)body);
    at = tide_wire_put_u8(at, (uint8_t)frame->kind);
    at = put_fields(tide_wire_put_u32(at, frame->source), frame);
    TIDE_ASSERT((size_t)(at - start) == sizeof(uint32_t) + body);
    out->len += sizeof(uint32_t) + body;
    return TIDE_OK;
}

tide_status tide_wire_decode(tide_str body, struct tide_wire_frame *ret_frame,
                             struct tide_error *err)
{
    struct tide_wire_take take = {.reader = tide_reader_of(body)};
    struct tide_wire_frame frame = {0};
    char what[40];
    uint8_t kind = tide_reader_u8(&take.reader);
    if (!take.reader.failed && !tide_wire_kind_is_known(kind)) {
        return tide_fail(err, TIDE_UNSUPPORTED, "%u is not a known kind of replication frame",
                         (unsigned)kind);
    }
    frame.kind = kind;
    frame.source = tide_reader_u32le(&take.reader);
    take_fields(&take, &frame);
    if (TIDE_UNLIKELY(take.wrong != NULL || !tide_reader_is_done(&take.reader))) {
        (void)snprintf(what, sizeof(what), "%s frame", tide_wire_kind_name(kind));
        return tide_wire_take_done(&take, what, err);
    }
    *ret_frame = frame;
    return TIDE_OK;
}
