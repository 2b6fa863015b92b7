/*
 * Streams of any frames, made of the input's bytes, fed to a subscriber, with cuts and new
 * connections. What must hold:
 *   - a frame is applied wholly or not at all: what the archive has at the end are just the rows of
 *     the frames that were taken, each once, with its bytes;
 *   - the archive is sound.
 */
#include "archive/catalogue.h"
#include "archive/scan.h"
#include "archive/verify.h"
#include "base/reader.h"
#include "format/wire/stream.h"
#include "plain_encoder.h"
#include "replication/subscriber.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define SOURCES 2
#define SERIES  2
#define TIMES   32
#define ROWS    6

static const char *const uuids[SOURCES] = {"3f2b1c4d-0000-4000-8000-00000000abcd",
                                           "3f2b1c4d-0000-4000-8000-00000000abce"};
static const char *const names[SERIES] = {"a", "b"};

/* What should be there. */
struct model {
    char rows[SOURCES][SERIES][TIMES]; /* their bytes, one each; 0: none */
    bool is_spoiled[SOURCES][SERIES];  /* a segment that lies was taken */
};

struct fuzz {
    struct tide_reader input;
    struct tide_archive_encoder encoder;
    struct tide_subscriber *subscriber;
    struct tide_buf stream; /* of a frame */
    struct model model;
    int places[3]; /* which source a number of the stream is; -1: none */
    bool has_preamble;
};

static unsigned draw(struct fuzz *fuzz, unsigned below)
{
    return tide_reader_u8(&fuzz->input) % below;
}

static void must(tide_status status, const struct tide_error *err)
{
    if (status != TIDE_OK) {
        (void)fprintf(stderr, "%s\n", err->message);
        abort();
    }
}

static void restart(struct fuzz *fuzz)
{
    struct tide_error err = {0};
    TIDE_CLEANUP(tide_buf_done) struct tide_buf hello = {0};
    (void)!tide_subscriber_end(fuzz->subscriber, &err);
    must(tide_subscriber_restart(fuzz->subscriber, &err), &err);
    if (draw(fuzz, 2) == 0) {
        must(tide_subscriber_hello(fuzz->subscriber, &hello, &err), &err);
    }
    fuzz->has_preamble = false;
    memset(fuzz->places, -1, sizeof(fuzz->places));
}

/* Whether what is in `stream` was taken. */
static bool feed(struct fuzz *fuzz)
{
    struct tide_error err = {0};
    size_t size = fuzz->stream.len;
    memcpy(tide_subscriber_room(fuzz->subscriber, size), fuzz->stream.ptr, size);
    tide_status status = tide_subscriber_came(fuzz->subscriber, size, &err);
    status = status == TIDE_OK && draw(fuzz, 4) == 0 ? tide_subscriber_sync(fuzz->subscriber, &err)
                                                     : status;
    TIDE_ASSERT(status != TIDE_IO && status != TIDE_STALE && status != TIDE_TIMEOUT);
    tide_buf_reset(&fuzz->stream);
    if (status != TIDE_OK) {
        restart(fuzz);
    }
    return status == TIDE_OK;
}

static bool feed_frame(struct fuzz *fuzz, const struct tide_wire_frame *frame)
{
    struct tide_error err;
    if (!fuzz->has_preamble) {
        tide_wire_preamble_append(&fuzz->stream);
        fuzz->has_preamble = true;
    }
    must(tide_wire_encode(frame, &fuzz->stream, &err), &err);
    return feed(fuzz);
}

static void feed_handshake(struct fuzz *fuzz)
{
    unsigned source = draw(fuzz, SOURCES);
    struct tide_wire_frame frame = {.kind = TIDE_WIRE_HANDSHAKE, .source = draw(fuzz, 3)};
    frame.handshake.has_uuid = true;
    frame.handshake.uuid = tide_str_from(uuids[source]);
    frame.handshake.is_complete = draw(fuzz, 2) == 0;
    if (feed_frame(fuzz, &frame)) {
        fuzz->places[frame.source] = (int)source;
    }
}

static void feed_index(struct fuzz *fuzz)
{
    struct tide_wire_frame frame = {.kind = TIDE_WIRE_INDEX, .source = draw(fuzz, 3)};
    frame.index.series = tide_str_from(names[draw(fuzz, SERIES)]);
    frame.index.ts = draw(fuzz, TIMES);
    frame.index.is_delta = draw(fuzz, 2) == 0;
    frame.index.state.a = draw(fuzz, 2);
    frame.index.bytes = TIDE_STR("columns");
    (void)feed_frame(fuzz, &frame);
}

static void feed_rows(struct fuzz *fuzz)
{
    struct tide_subscriber_counts before;
    struct tide_subscriber_counts after;
    struct model model = fuzz->model;
    struct tide_error err;
    struct tide_wire_state state = {draw(fuzz, 2), 0};
    unsigned number = draw(fuzz, 3);
    int source = fuzz->places[number];
    unsigned count = draw(fuzz, ROWS);
    if (!fuzz->has_preamble) {
        tide_wire_preamble_append(&fuzz->stream);
        fuzz->has_preamble = true;
    }
    struct tide_wire_draft draft =
        tide_wire_rows_begin(number, draw(fuzz, 4), state, &fuzz->stream);
    for (unsigned i = 0; i < count; i++) {
        char byte = (char)('x' + draw(fuzz, 2));
        unsigned series = draw(fuzz, SERIES);
        const struct tide_wire_row row = {
            tide_str_from(names[series]), draw(fuzz, TIMES), 3, {&byte, 1}};
        must(tide_wire_rows_add(&draft, &row, &fuzz->stream, &err), &err);
        if (source >= 0) {
            model.rows[source][series][row.ts] = byte;
        }
    }
    tide_wire_rows_end(&draft, &fuzz->stream);
    tide_subscriber_counts(fuzz->subscriber, &before);
    if (feed(fuzz)) {
        tide_subscriber_counts(fuzz->subscriber, &after);
        if (after.rows_skipped == before.rows_skipped) {
            fuzz->model = model;
        }
    }
}

static void feed_segment(struct fuzz *fuzz)
{
    struct tide_subscriber_counts before;
    struct tide_subscriber_counts after;
    struct tide_archive_live_row rows[ROWS];
    char bytes[ROWS];
    TIDE_CLEANUP(tide_archive_draft_done) struct tide_archive_draft made = {0};
    struct tide_error err;
    unsigned series = draw(fuzz, SERIES);
    unsigned count = 1 + draw(fuzz, ROWS);
    unsigned ts = draw(fuzz, TIMES);
    struct tide_archive_encode_input input = {.series = tide_str_from(names[series]), .rows = rows};
    struct tide_wire_frame frame = {.kind = TIDE_WIRE_SEGMENT, .source = draw(fuzz, 3)};
    for (; input.row_count < count && ts < TIMES; input.row_count++) {
        bytes[input.row_count] = (char)('x' + draw(fuzz, 2));
        rows[input.row_count] = (struct tide_archive_live_row){ts, 0, {&bytes[input.row_count], 1}};
        ts += 1 + draw(fuzz, 3);
    }
    must(fuzz->encoder.encode(fuzz->encoder.context, &input, &made, &err), &err);
    frame.segment.series = input.series;
    frame.segment.rows = made.rows;
    frame.segment.first_ts = made.first_ts;
    frame.segment.last_ts = made.last_ts;
    frame.segment.bytes = tide_buf_str(&made.bytes);
    bool lies = draw(fuzz, 8) == 0;
    if (lies) {
        frame.segment.rows += (int)draw(fuzz, 4) - 2;
        frame.segment.first_ts += (int)draw(fuzz, 4) - 2;
        frame.segment.bytes.len -= draw(fuzz, (unsigned)frame.segment.bytes.len);
        frame.segment.rows = frame.segment.rows < 0 ? 0 : frame.segment.rows;
    }
    int source = fuzz->places[frame.source];
    tide_subscriber_counts(fuzz->subscriber, &before);
    if (!feed_frame(fuzz, &frame)) {
        return;
    }
    tide_subscriber_counts(fuzz->subscriber, &after);
    if (after.segments_held > before.segments_held) {
        return;
    }
    fuzz->model.is_spoiled[source][series] |= lies;
    for (size_t i = 0; i < input.row_count; i++) {
        fuzz->model.rows[source][series][rows[i].ts] = bytes[i];
    }
}

static void feed_offset(struct fuzz *fuzz)
{
    struct tide_wire_frame frame = {.kind = TIDE_WIRE_CLOCK_OFFSET, .source = draw(fuzz, 3)};
    frame.clock_offset.ts = draw(fuzz, TIMES);
    frame.clock_offset.offset_ns = draw(fuzz, 4);
    (void)feed_frame(fuzz, &frame);
}

static void feed_anything(struct fuzz *fuzz)
{
    size_t size = draw(fuzz, 40);
    size_t left = (size_t)(fuzz->input.end - fuzz->input.pos);
    size = size < left ? size : left;
    tide_buf_append_str(&fuzz->stream, tide_reader_take(&fuzz->input, size));
    if (fuzz->stream.len > 0) {
        fuzz->has_preamble = true; /* there is something in its place */
        (void)feed(fuzz);
        restart(fuzz); /* nothing can follow bytes of which nobody knows what they began */
    }
}

static void take_step(struct fuzz *fuzz)
{
    struct tide_error err;
    switch (draw(fuzz, 10)) {
    case 0:
    case 1:
        feed_handshake(fuzz);
        break;
    case 2:
        feed_index(fuzz);
        break;
    case 3:
    case 4:
        feed_rows(fuzz);
        break;
    case 5:
    case 6:
        feed_segment(fuzz);
        break;
    case 7:
        feed_offset(fuzz);
        break;
    case 8:
        must(tide_subscriber_sync(fuzz->subscriber, &err), &err);
        break;
    default:
        if (draw(fuzz, 3) == 0) {
            feed_anything(fuzz);
        } else {
            restart(fuzz);
        }
        break;
    }
}

static tide_status take_row(void *context, int64_t ts, tide_str bytes, struct tide_error *err)
{
    char *rows = context;
    (void)err;
    TIDE_ASSERT(ts >= 0 && ts < TIMES && bytes.len == 1 && rows[ts] == 0);
    rows[ts] = bytes.ptr[0];
    return TIDE_OK;
}

static void check_series(const struct fuzz *fuzz, struct tide_archive *archive,
                         const struct tide_archive_source *source, unsigned which, unsigned series)
{
    char rows[TIMES] = {0};
    struct tide_error err;
    const struct tide_archive_row_taker taker = {take_row, rows};
    const struct tide_archive_range range = {source->id, tide_str_from(names[series]), INT64_MIN,
                                             INT64_MAX};
    if (fuzz->model.is_spoiled[which][series]) {
        return;
    }
    must(tide_archive_rows_read(archive, &range, &fuzz->encoder, &taker, &err), &err);
    TIDE_ASSERT(memcmp(rows, fuzz->model.rows[which][series], TIMES) == 0);
}

static void check(const struct fuzz *fuzz, const char *path)
{
    TIDE_CLEANUP(tide_arena_done) struct tide_arena arena = {0};
    TIDE_CLEANUP(tide_archive_close_ptr) struct tide_archive *archive = NULL;
    struct tide_archive_catalogue catalogue = {0};
    struct tide_archive_findings findings = {0};
    struct tide_error err;
    must(tide_archive_open(path, TIDE_ARCHIVE_READ, &archive, &err), &err);
    must(tide_archive_verify(archive, false, &arena, &findings, &err), &err);
    TIDE_ASSERT(findings.harmful == 0);
    must(tide_archive_catalogue_read(archive, &arena, &catalogue, &err), &err);
    for (size_t i = 0; i < catalogue.source_count; i++) {
        unsigned which = strcmp(catalogue.sources[i].uuid, uuids[0]) == 0 ? 0 : 1;
        for (unsigned series = 0; series < SERIES; series++) {
            check_series(fuzz, archive, &catalogue.sources[i], which, series);
        }
    }
}

static const char *folder(void)
{
    static char made[64];
    if (made[0] == '\0') {
        (void)snprintf(made, sizeof(made), "%s/fuzz_subscriber_XXXXXX",
                       access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
        TIDE_ASSERT(mkdtemp(made) != NULL);
    }
    return made;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[96];
    struct tide_error err;
    const struct tide_archive_seal_policy policy = {.rows_max = 4, .bytes_max = 1 << 20};
    struct fuzz fuzz = {.input = tide_reader_of(tide_str_of(data, size)),
                        .encoder = plain_encoder(NULL)};
    const struct tide_subscriber_options options = {
        .encoder = &fuzz.encoder, .policy = &policy, .group_bytes = size % 8 == 0 ? 300 : 0};
    memset(fuzz.places, -1, sizeof(fuzz.places));
    (void)snprintf(path, sizeof(path), "%s/a.tide", folder());
    must(tide_subscriber_open(path, &options, &fuzz.subscriber, &err), &err);
    while (fuzz.input.pos != fuzz.input.end) {
        take_step(&fuzz);
    }
    tide_subscriber_close(fuzz.subscriber);
    check(&fuzz, path);
    tide_buf_done(&fuzz.stream);
    (void)unlink(path);
    return 0;
}
