/*
 * Lines of any bytes as frames, fed to a reassembler. What must hold:
 *   - a decoder that has seen other rows says the same as a fresh one, with the same message;
 *   - a frame that is taken is not taken for cut off;
 *   - feeding everything a second time changes no verdict, and comparing what came twice ends.
 */
#include "base/status.h"
#include "format/frame.h"
#include "format/reassembler.h"

#include <string.h>

#define SNAPSHOTS_MAX 8

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum what {
    CHECK_AND_FEED,
    FEED,
    RECHECK,
};

static void check_same(const struct tide_frame *a, const struct tide_frame *b)
{
    TIDE_ASSERT(a->kind == b->kind && a->seq == b->seq && a->attempt == b->attempt);
    TIDE_ASSERT(a->row_count == b->row_count && a->starts_count == b->starts_count);
    TIDE_ASSERT(tide_str_equal(a->snapshot_id, b->snapshot_id));
    TIDE_ASSERT(tide_str_equal(a->store, b->store));
    TIDE_ASSERT(tide_str_equal(a->record, b->record));
    TIDE_ASSERT(tide_str_equal(a->position, b->position));
}

static void check_fresh(tide_str line, tide_status status, const struct tide_frame *frame,
                        const struct tide_error *err)
{
    static struct tide_frame_decoder fresh;
    struct tide_frame again = {0};
    struct tide_error again_err = {0};
    fresh.head_len = 0;
    TIDE_ASSERT(tide_frame_decode(&fresh, line, &again, &again_err) == status);
    if (status == TIDE_OK) {
        check_same(frame, &again);
        TIDE_ASSERT(!tide_frame_is_cut_off(line) || line.ptr[0] != '{');
    } else {
        TIDE_ASSERT(status == TIDE_CORRUPT && strcmp(err->message, again_err.message) == 0);
    }
}

static void take_line(struct tide_reassembler *reassembler, struct tide_frame_decoder *decoder,
                      tide_str line, enum what what)
{
    struct tide_frame frame = {0};
    struct tide_error err = {0};
    tide_status status = tide_frame_decode(decoder, line, &frame, &err);
    if (what == CHECK_AND_FEED) {
        check_fresh(line, status, &frame, &err);
    }
    if (status == TIDE_OK && what == RECHECK) {
        tide_reassembler_recheck(reassembler, &frame);
    } else if (status == TIDE_OK) {
        tide_reassembler_feed(reassembler, &frame, 0);
    }
}

static void take_all(struct tide_reassembler *reassembler, tide_str input, enum what what)
{
    static struct tide_frame_decoder decoder;
    decoder.head_len = 0;
    while (input.len > 0) {
        const char *end = memchr(input.ptr, '\n', input.len);
        size_t len = end == NULL ? input.len : (size_t)(end - input.ptr);
        take_line(reassembler, &decoder, tide_str_of(input.ptr, len), what);
        len += end != NULL;
        input = tide_str_of(input.ptr + len, input.len - len);
    }
}

static struct tide_snapshot_report judge(struct tide_reassembler *reassembler, size_t index)
{
    return tide_reassembler_judge(reassembler, tide_reassembler_id(reassembler, index));
}

static size_t known(const struct tide_reassembler *reassembler)
{
    size_t count = tide_reassembler_count(reassembler);
    return count < SNAPSHOTS_MAX ? count : SNAPSHOTS_MAX;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tide_str input = tide_str_of(data, size);
    struct tide_reassembler *reassembler = tide_reassembler_new();
    struct tide_snapshot_report first[SNAPSHOTS_MAX];
    take_all(reassembler, input, CHECK_AND_FEED);
    for (size_t i = 0; i < known(reassembler); i++) {
        first[i] = judge(reassembler, i);
        TIDE_ASSERT(first[i].status != TIDE_SNAPSHOT_UNKNOWN);
    }
    take_all(reassembler, input, FEED);
    for (size_t i = 0; i < known(reassembler); i++) {
        struct tide_snapshot_report second = judge(reassembler, i);
        TIDE_ASSERT(second.status == first[i].status);
        TIDE_ASSERT(second.rows == first[i].rows && second.stubs == first[i].stubs);
        TIDE_ASSERT(second.missing == first[i].missing);
    }
    while (tide_reassembler_recheck_next(reassembler)) {
        take_all(reassembler, input, RECHECK);
    }
    tide_reassembler_free(reassembler);
    return 0;
}
