#include "plain_encoder.h"

#include "base/reader.h"

static const char magic[] = "plain";
#define MAGIC_LEN (sizeof(magic) - 1)

static void append_be(struct tide_buf *buf, uint64_t value, unsigned bytes)
{
    for (unsigned i = bytes; i > 0; i--) {
        tide_buf_append_char(buf, (char)(value >> (8 * (i - 1))));
    }
}

static void append_row(struct tide_archive_draft *draft, int64_t ts, tide_str bytes)
{
    append_be(&draft->bytes, (uint64_t)ts, 8);
    append_be(&draft->bytes, bytes.len, 4);
    tide_buf_append_str(&draft->bytes, bytes);
    draft->first_ts = draft->rows == 0 ? ts : draft->first_ts;
    draft->last_ts = ts;
    draft->rows++;
}

static tide_status encode(void *context, const struct tide_archive_encode_input *input,
                          struct tide_archive_draft *ret_draft, struct tide_error *err)
{
    static const struct plain_encoder_fault none = {0};
    const struct plain_encoder_fault *fault = context == NULL ? &none : context;
    if (fault->does_fail) {
        return tide_fail(err, TIDE_INVALID, "the plain encoder was told to fail");
    }
    if (fault->does_take_none) {
        return TIDE_OK;
    }
    tide_buf_append(&ret_draft->bytes, magic, MAGIC_LEN);
    for (size_t i = 0; i < input->row_count; i++) {
        bool is_left_out =
            (i == 0 && fault->does_skip_first) || (i == 1 && fault->does_skip_middle);
        if (fault->rows_max > 0 && ret_draft->rows == fault->rows_max) {
            break;
        }
        if (!is_left_out) {
            append_row(ret_draft, input->rows[i].ts, input->rows[i].bytes);
        }
    }
    ret_draft->rows += fault->does_overstate;
    ret_draft->first_ts += fault->does_misdate;
    ret_draft->has_index = true;
    tide_buf_append_i64(&ret_draft->index, ret_draft->rows);
    return TIDE_OK;
}

static tide_status decode(void *context, tide_str series,
                          const struct tide_archive_segment *segment,
                          const struct tide_archive_row_taker *taker, struct tide_error *err)
{
    struct tide_reader reader = tide_reader_of(segment->bytes);
    (void)context;
    (void)series;
    if (!tide_str_equal(tide_reader_take(&reader, MAGIC_LEN), TIDE_STR("plain"))) {
        return tide_fail(err, TIDE_CORRUPT, "it is no plain segment");
    }
    while (!tide_reader_is_done(&reader)) {
        int64_t ts = tide_reader_i64be(&reader);
        tide_str bytes = tide_reader_take(&reader, tide_reader_u32be(&reader));
        if (reader.failed) {
            return tide_fail(err, TIDE_CORRUPT, "a plain segment is cut short");
        }
        TIDE_TRY(taker->take(taker->context, ts, bytes, err));
    }
    return TIDE_OK;
}

static bool may_merge(void *context, const struct tide_archive_segment *a,
                      const struct tide_archive_segment *b)
{
    (void)context;
    return a->bytes.len > MAGIC_LEN && b->bytes.len > MAGIC_LEN;
}

static tide_status take_into_draft(void *context, int64_t ts, tide_str bytes,
                                   struct tide_error *err)
{
    (void)err;
    append_row(context, ts, bytes);
    return TIDE_OK;
}

static tide_status merge(void *context, tide_str series,
                         const struct tide_archive_segment *segments, size_t count,
                         struct tide_archive_draft *ret_draft, struct tide_error *err)
{
    struct tide_archive_row_taker taker = {take_into_draft, ret_draft};
    tide_buf_append(&ret_draft->bytes, magic, MAGIC_LEN);
    for (size_t i = 0; i < count; i++) {
        TIDE_TRY(decode(context, series, &segments[i], &taker, err));
    }
    return TIDE_OK;
}

struct tide_archive_encoder plain_encoder(struct plain_encoder_fault *fault)
{
    return (struct tide_archive_encoder){
        .name = "plain",
        .version = "plain-1",
        .context = fault,
        .encode = encode,
        .decode = decode,
        .may_merge = may_merge,
        .merge = merge,
    };
}
