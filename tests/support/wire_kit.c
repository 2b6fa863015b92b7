#include "wire_kit.h"

#include <inttypes.h>
#include <stdio.h>

#define TEXTS_SIZE 65536 /* room for all texts of one frame */

/* As text. */

static void print_bytes(struct tide_buf *out, const char *name, tide_str bytes)
{
    tide_buf_printf(out, " %s=\"", name);
    for (size_t i = 0; i < bytes.len; i++) {
        unsigned char c = (unsigned char)bytes.ptr[i];
        if (c < 0x20 || c > 0x7e || c == '"' || c == '\\') {
            const char escape[] = {'\\', 'x', "0123456789abcdef"[c >> 4],
                                   "0123456789abcdef"[c & 15]};
            tide_buf_append(out, escape, sizeof(escape));
        } else {
            tide_buf_append_char(out, (char)c);
        }
    }
    tide_buf_append_char(out, '"');
}

static void print_map(struct tide_buf *out, const char *name, const struct tide_wire_map *map)
{
    struct tide_reader walk = tide_wire_map_walk(map);
    tide_buf_printf(out, " %s(%" PRIu32 ")={", name, map->count);
    for (struct tide_wire_pair pair; tide_wire_map_next(&walk, &pair);) {
        print_bytes(out, "key", pair.key);
        print_bytes(out, "value", pair.value);
    }
    tide_buf_append_str(out, TIDE_STR(" }"));
}

static void print_state(struct tide_buf *out, struct tide_wire_state state)
{
    tide_buf_printf(out, " state=%016" PRIx64 ".%016" PRIx64, state.a, state.b);
}

static void print_handshake(struct tide_buf *out, const struct tide_wire_handshake *handshake)
{
    if (handshake->has_uuid) {
        print_bytes(out, "uuid", handshake->uuid);
    }
    print_map(out, "labels", &handshake->labels);
    print_map(out, "metadata", &handshake->metadata);
    tide_buf_printf(out, " anchor=%" PRId64 " complete=%d", handshake->clock_anchor_wall_ns,
                    handshake->is_complete);
}

static void print_index(struct tide_buf *out, const struct tide_wire_index *index)
{
    print_bytes(out, "series", index->series);
    tide_buf_printf(out, " ts=%" PRId64 " %s", index->ts, index->is_delta ? "delta" : "full");
    print_state(out, index->state);
    print_bytes(out, "bytes", index->bytes);
}

static void print_rows(struct tide_buf *out, const struct tide_wire_rows *rows)
{
    struct tide_reader walk = tide_wire_rows_walk(rows);
    tide_buf_printf(out, " seq=%" PRIu64, rows->seq);
    print_state(out, rows->state);
    tide_buf_printf(out, " count=%" PRIu32, rows->count);
    for (struct tide_wire_row row; tide_wire_rows_next(&walk, &row);) {
        print_bytes(out, "series", row.series);
        tide_buf_printf(out, " ts=%" PRId64 " wall=%" PRId64, row.ts, row.wall_offset);
        print_bytes(out, "bytes", row.bytes);
    }
}

static void print_segment(struct tide_buf *out, const struct tide_wire_segment *segment)
{
    print_bytes(out, "series", segment->series);
    tide_buf_printf(out, " rows=%" PRId64 " first=%" PRId64 " last=%" PRId64, segment->rows,
                    segment->first_ts, segment->last_ts);
    print_bytes(out, "bytes", segment->bytes);
    if (segment->has_caller_index) {
        print_bytes(out, "index", segment->caller_index);
    }
}

void wire_print(struct tide_buf *out, const struct tide_wire_frame *frame)
{
    tide_buf_printf(out, "%s source=%" PRIu32, tide_wire_kind_name(frame->kind), frame->source);
    switch (frame->kind) {
    case TIDE_WIRE_HANDSHAKE:
        print_handshake(out, &frame->handshake);
        break;
    case TIDE_WIRE_INDEX:
        print_index(out, &frame->index);
        break;
    case TIDE_WIRE_ROWS:
        print_rows(out, &frame->rows);
        break;
    case TIDE_WIRE_SEGMENT:
        print_segment(out, &frame->segment);
        break;
    case TIDE_WIRE_CLOCK_OFFSET:
        tide_buf_printf(out, " ts=%" PRId64 " offset=%" PRId64, frame->clock_offset.ts,
                        frame->clock_offset.offset_ns);
        break;
    }
    tide_buf_append_char(out, '\n');
}

/* At random. */

void wire_maker_done(struct wire_maker *maker)
{
    tide_buf_done(&maker->texts);
    tide_buf_done(&maker->labels);
    tide_buf_done(&maker->metadata);
    tide_buf_done(&maker->rows);
}

static uint64_t next_number(struct wire_maker *maker)
{
    maker->state ^= maker->state << 13; /* xorshift64 */
    maker->state ^= maker->state >> 7;
    maker->state ^= maker->state << 17;
    return maker->state;
}

uint64_t wire_random(struct wire_maker *maker, uint64_t below)
{
    return next_number(maker) % below;
}

/* Often at an end of what 64 bits hold. */
static uint64_t make_number(struct wire_maker *maker)
{
    static const uint64_t ends[] = {0, 1, INT64_MAX, (uint64_t)INT64_MIN, UINT64_MAX, 0xff, 1000};
    uint64_t pick = wire_random(maker, 10);
    return pick < 7 ? ends[pick] : next_number(maker);
}

static tide_str take_room(struct wire_maker *maker, size_t len)
{
    TIDE_ASSERT(maker->texts.len + len <= maker->texts.cap);
    tide_str room = {maker->texts.ptr + maker->texts.len, len};
    maker->texts.len += len;
    return room;
}

static tide_str make_bytes(struct wire_maker *maker, size_t len_max)
{
    size_t len = wire_random(maker, len_max + 1);
    tide_str bytes = take_room(maker, len);
    for (size_t i = 0; i < len; i++) {
        maker->texts.ptr[maker->texts.len - len + i] = (char)next_number(maker);
    }
    return bytes;
}

static tide_str make_text(struct wire_maker *maker)
{
    static const char *const pieces[] = {
        "a", "orders", "\xc3\xa4", "\xe2\x82\xac", "\xf0\x9f\x8c\x8a",
        "/", "\"",     "\x7f",     "\xef\xbf\xbf", "_2"};
    size_t start = maker->texts.len;
    for (uint64_t count = wire_random(maker, 8); count > 0; count--) {
        uint64_t pick = wire_random(maker, 11);
        tide_str piece = pick == 10 ? TIDE_STR("\0") : tide_str_from(pieces[pick]);
        tide_buf_append_str(&maker->texts, piece);
    }
    return tide_str_of(maker->texts.ptr + start, maker->texts.len - start);
}

static struct tide_wire_map make_map(struct wire_maker *maker, struct tide_buf *pairs)
{
    struct tide_wire_map map = {0};
    char key[40];
    tide_buf_reset(pairs);
    for (uint64_t count = wire_random(maker, 5); map.count < count; map.count++) {
        int len =
            snprintf(key, sizeof(key), "%c%" PRIu64, 'a' + (int)map.count, wire_random(maker, 100));
        tide_wire_pair_append(pairs, tide_str_of(key, (size_t)len), make_text(maker));
    }
    map.pairs = tide_buf_str(pairs);
    return map;
}

static struct tide_wire_rows make_rows(struct wire_maker *maker)
{
    struct tide_wire_rows rows = {.seq = make_number(maker)};
    struct tide_wire_draft draft;
    struct tide_error err;
    rows.state = (struct tide_wire_state){make_number(maker), make_number(maker)};
    tide_buf_reset(&maker->rows);
    draft = tide_wire_rows_begin(0, 0, rows.state, &maker->rows);
    size_t head = maker->rows.len;
    for (uint64_t count = wire_random(maker, 12); draft.count < count;) {
        struct tide_wire_row row = {make_text(maker), (int64_t)make_number(maker),
                                    (int64_t)make_number(maker), make_bytes(maker, 60)};
        tide_status status = tide_wire_rows_add(&draft, &row, &maker->rows, &err);
        TIDE_ASSERT(status == TIDE_OK);
    }
    rows.count = draft.count;
    rows.rows = tide_str_of(maker->rows.ptr + head, maker->rows.len - head);
    return rows;
}

static struct tide_wire_segment make_segment(struct wire_maker *maker)
{
    struct tide_wire_segment segment = {.series = make_text(maker)};
    segment.rows = (int64_t)(make_number(maker) & INT64_MAX);
    segment.first_ts = (int64_t)make_number(maker);
    segment.last_ts = (int64_t)make_number(maker);
    segment.bytes = make_bytes(maker, wire_random(maker, 8) == 0 ? 5000 : 100);
    segment.has_caller_index = wire_random(maker, 2) == 1;
    segment.caller_index = segment.has_caller_index ? make_bytes(maker, 10) : TIDE_STR("");
    return segment;
}

void wire_make(struct wire_maker *maker, struct tide_wire_frame *ret_frame)
{
    struct tide_wire_frame frame = {.kind = (enum tide_wire_kind)(1 + wire_random(maker, 5))};
    tide_buf_reset(&maker->texts);
    (void)tide_buf_reserve(&maker->texts, TEXTS_SIZE);
    frame.source = (uint32_t)make_number(maker);
    switch (frame.kind) {
    case TIDE_WIRE_HANDSHAKE:
        frame.handshake.has_uuid = wire_random(maker, 2) == 1;
        frame.handshake.uuid = frame.handshake.has_uuid ? make_text(maker) : TIDE_STR("");
        frame.handshake.labels = make_map(maker, &maker->labels);
        frame.handshake.metadata = make_map(maker, &maker->metadata);
        frame.handshake.clock_anchor_wall_ns = (int64_t)make_number(maker);
        frame.handshake.is_complete = wire_random(maker, 2) == 1;
        break;
    case TIDE_WIRE_INDEX:
        frame.index = (struct tide_wire_index){
            make_text(maker),           (int64_t)make_number(maker),
            wire_random(maker, 2) == 1, {make_number(maker), make_number(maker)},
            make_bytes(maker, 200),
        };
        break;
    case TIDE_WIRE_ROWS:
        frame.rows = make_rows(maker);
        break;
    case TIDE_WIRE_SEGMENT:
        frame.segment = make_segment(maker);
        break;
    case TIDE_WIRE_CLOCK_OFFSET:
        frame.clock_offset.ts = (int64_t)make_number(maker);
        frame.clock_offset.offset_ns = (int64_t)make_number(maker);
        break;
    }
    *ret_frame = frame;
}

/* Both ways. */

void wire_outcome_done(struct wire_outcome *outcome)
{
    tide_buf_done(&outcome->text);
}

static void outcome_reset(struct wire_outcome *outcome)
{
    tide_buf_reset(&outcome->text);
    outcome->err = (struct tide_error){0};
}

/* One that has ended says the same again. */
void wire_read(tide_str stream, struct wire_outcome *ret_outcome)
{
    struct tide_wire_reader reader = tide_wire_reader_of(stream);
    struct tide_wire_frame frame;
    struct tide_error again = {0};
    outcome_reset(ret_outcome);
    do {
        ret_outcome->status = tide_wire_reader_next(&reader, &frame, &ret_outcome->err);
        if (ret_outcome->status == TIDE_OK) {
            wire_print(&ret_outcome->text, &frame);
        }
    } while (ret_outcome->status == TIDE_OK);
    TIDE_ASSERT(tide_wire_reader_next(&reader, &frame, &again) == ret_outcome->status);
    TIDE_ASSERT(strcmp(again.message, ret_outcome->err.message) == 0);
    ret_outcome->progress = reader.progress;
}

static tide_status take_frames(struct tide_wire_decoder *decoder, struct wire_outcome *outcome)
{
    struct tide_wire_frame frame;
    bool is_frame = true;
    while (is_frame) {
        TIDE_TRY(tide_wire_decoder_next(decoder, &frame, &is_frame, &outcome->err));
        if (is_frame) {
            wire_print(&outcome->text, &frame);
        }
    }
    return TIDE_OK;
}

void wire_push(tide_str stream, struct wire_maker *maker, size_t size_max,
               struct wire_outcome *ret_outcome)
{
    TIDE_CLEANUP(tide_wire_decoder_done) struct tide_wire_decoder decoder = {0};
    tide_status status = TIDE_OK;
    outcome_reset(ret_outcome);
    for (size_t at = 0; at < stream.len && status == TIDE_OK;) {
        size_t len = 1 + wire_random(maker, size_max);
        len = len < stream.len - at ? len : stream.len - at;
        tide_wire_decoder_feed(&decoder, tide_str_of(stream.ptr + at, len));
        status = take_frames(&decoder, ret_outcome);
        at += len;
    }
    if (status == TIDE_OK) {
        status = tide_wire_decoder_end(&decoder, &ret_outcome->err);
    }
    TIDE_ASSERT(decoder.buf.cap <= 64 + 4 * stream.len); /* memory is what came */
    ret_outcome->status = status == TIDE_OK ? TIDE_END : status;
    ret_outcome->progress = decoder.progress;
}

const char *wire_differ(const struct wire_outcome *a, const struct wire_outcome *b)
{
    if (!tide_str_equal(tide_buf_str(&a->text), tide_buf_str(&b->text))) {
        return "the frames";
    }
    if (a->status != b->status || a->err.retriable != b->err.retriable ||
        strcmp(a->err.message, b->err.message) != 0) {
        return "the errors";
    }
    bool is_as_far = memcmp(&a->progress, &b->progress, sizeof(a->progress)) == 0;
    return is_as_far ? NULL : "how far they came";
}
