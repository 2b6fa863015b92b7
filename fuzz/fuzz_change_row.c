/*
 * Any bytes as a row of an archive's series; the first of them draws the table. What must hold: a
 * row that is read is written as the same bytes, and a segment of it gives the same bytes, too.
 */
#include "change_maker.h"

#include "archive/change_encoder.h"
#include "base/status.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static tide_status expect(void *context, int64_t ts, tide_str bytes, struct tide_error *err)
{
    const tide_str *want = context;
    (void)err;
    TIDE_ASSERT(ts == 7 && tide_str_equal(bytes, *want));
    return TIDE_OK;
}

static void check_segment(const struct tide_change_schema *schema, tide_str bytes)
{
    struct tide_buf json = {0};
    struct tide_archive_draft draft = {0};
    struct tide_error err = {0};
    change_maker_json(schema, &json);
    const struct tide_archive_live_row row = {.ts = 7, .bytes = bytes};
    const struct tide_archive_caller_row columns = {.bytes = tide_buf_str(&json)};
    const struct tide_archive_encode_input input = {TIDE_STR("t"), &row, 1, &columns, 1};
    const struct tide_archive_row_taker taker = {expect, &bytes};
    TIDE_ASSERT(tide_change_encoder.encode(NULL, &input, &draft, &err) == TIDE_OK);
    const struct tide_archive_segment segment = {.bytes = tide_buf_str(&draft.bytes)};
    TIDE_ASSERT(tide_change_encoder.decode(NULL, input.series, &segment, &taker, &err) == TIDE_OK);
    tide_archive_draft_done(&draft);
    tide_buf_done(&json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct change_maker maker = {.state = size == 0 ? 0 : data[0]};
    struct tide_change_schema schema = change_maker_schema(&maker);
    struct tide_change_row row = {0};
    struct tide_error err = {0};
    tide_str bytes = size == 0 ? (tide_str){0} : tide_str_of(data + 1, size - 1);
    tide_status status = tide_change_row_decode(bytes, schema.column_count, schema.key_count,
                                                &maker.arena, &row, &err);
    TIDE_ASSERT(status == TIDE_OK || status == TIDE_CORRUPT);
    if (status == TIDE_OK) {
        struct tide_buf again = {0};
        tide_change_row_encode(&row, schema.column_count, schema.key_count, &again);
        TIDE_ASSERT(tide_str_equal(tide_buf_str(&again), bytes));
        tide_buf_done(&again);
        check_segment(&schema, bytes);
    }
    change_maker_done(&maker);
    return 0;
}
