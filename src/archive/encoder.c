#include "archive/encoder.h"

#include <inttypes.h>

void tide_archive_draft_done(struct tide_archive_draft *draft)
{
    tide_buf_done(&draft->bytes);
    tide_buf_done(&draft->index);
}

void tide_archive_draft_reset(struct tide_archive_draft *draft)
{
    tide_buf_reset(&draft->bytes);
    tide_buf_reset(&draft->index);
    draft->rows = 0;
    draft->has_index = false;
}

/* An index that is empty is there nevertheless. */
struct tide_archive_segment tide_archive_draft_segment(const struct tide_archive_draft *draft,
                                                       int64_t seq)
{
    tide_str index = draft->index.len == 0 ? TIDE_STR("") : tide_buf_str(&draft->index);
    return (struct tide_archive_segment){
        .seq = seq,
        .rows = draft->rows,
        .first_ts = draft->first_ts,
        .last_ts = draft->last_ts,
        .bytes = tide_buf_str(&draft->bytes),
        .index = draft->has_index ? index : (tide_str){NULL, 0},
    };
}

static size_t rows_up_to(const struct tide_archive_encode_input *input, int64_t last)
{
    size_t count = 0;
    while (count < input->row_count && input->rows[count].ts <= last) {
        count++;
    }
    return count;
}

tide_status tide_archive_draft_check(const struct tide_archive_encoder *encoder,
                                     const struct tide_archive_encode_input *input,
                                     const struct tide_archive_draft *draft, struct tide_error *err)
{
    int64_t first = input->rows[0].ts;
    int64_t last = input->rows[input->row_count - 1].ts;
    if (draft->rows > 0 && draft->first_ts == first && draft->first_ts <= draft->last_ts &&
        draft->last_ts <= last && rows_up_to(input, draft->last_ts) == (uint64_t)draft->rows) {
        return TIDE_OK;
    }
    return tide_fail(err, TIDE_INVALID,
                     "the encoder %s made a segment of %.*s that does not hold the first of its "
                     "rows: %" PRId64 " rows from %" PRId64 " to %" PRId64
                     ", given %zu from %" PRId64 " to %" PRId64 "; nothing was sealed",
                     encoder->name, TIDE_STR_ARG(input->series), draft->rows, draft->first_ts,
                     draft->last_ts, input->row_count, first, last);
}
