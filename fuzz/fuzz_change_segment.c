/*
 * Any bytes as a segment of changes. What must hold: rows that come out are rows, and a segment
 * that is made of them gives the same again.
 */
#include "change_maker.h"

#include "archive/change_read.h"
#include "archive/change_segment.h"
#include "base/status.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define ROWS_MAX 64

/* The bytes of the rows, one after the other; returns how many. */
static size_t read_all(struct tide_change_reader *reader, struct tide_change_segment *into,
                       struct tide_buf *bytes)
{
    const struct tide_change_schema *schema = tide_change_reader_schema(reader);
    struct tide_error err = {0};
    size_t count = 0;
    for (; count < ROWS_MAX; count++) {
        struct tide_change_row row;
        int64_t time = 0;
        if (tide_change_reader_next(reader, &time, &row, &err) != TIDE_OK) {
            break;
        }
        tide_change_row_encode(&row, schema->column_count, schema->key_count, bytes);
        TIDE_ASSERT(into == NULL || tide_change_segment_add(into, time, &row, &err) == TIDE_OK);
    }
    return count;
}

/* Heads come of all rows that do, and maybe of more. */
static void check_heads(tide_str file, size_t row_count)
{
    struct tide_error err = {0};
    struct tide_change_reader *reader = NULL;
    TIDE_ASSERT(tide_change_reader_new(file, &reader, &err) == TIDE_OK);
    tide_change_reader_want_heads(reader);
    size_t count = 0;
    for (; count < ROWS_MAX; count++) {
        struct tide_change_row row;
        int64_t time = 0;
        if (tide_change_reader_next(reader, &time, &row, &err) != TIDE_OK) {
            break;
        }
        TIDE_ASSERT(tide_change_row_head_mistake(&row) == NULL);
    }
    TIDE_ASSERT(count >= row_count);
    tide_change_reader_free(reader);
}

static void check_again(struct tide_change_segment *segment, tide_str want)
{
    struct tide_buf file = {0};
    struct tide_buf bytes = {0};
    struct tide_error err = {0};
    struct tide_change_reader *reader = NULL;
    TIDE_ASSERT(tide_change_segment_finish(segment, &file, &err) == TIDE_OK);
    TIDE_ASSERT(tide_change_reader_new(tide_buf_str(&file), &reader, &err) == TIDE_OK);
    (void)read_all(reader, NULL, &bytes);
    TIDE_ASSERT(tide_str_equal(tide_buf_str(&bytes), want));
    tide_change_reader_free(reader);
    tide_buf_done(&file);
    tide_buf_done(&bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tide_change_reader *reader = NULL;
    struct tide_error err = {0};
    if (tide_change_reader_new(tide_str_of(data, size), &reader, &err) == TIDE_OK) {
        const struct tide_change_schema *schema = tide_change_reader_schema(reader);
        struct tide_change_segment *segment = NULL;
        struct tide_buf json = {0};
        struct tide_buf bytes = {0};
        change_maker_json(schema, &json);
        TIDE_ASSERT(tide_change_segment_new(TIDE_STR("t"), tide_buf_str(&json), &segment, &err) ==
                    TIDE_OK);
        size_t count = read_all(reader, segment, &bytes);
        check_heads(tide_str_of(data, size), count);
        check_again(segment, tide_buf_str(&bytes));
        tide_change_segment_free(segment);
        tide_buf_done(&json);
        tide_buf_done(&bytes);
    }
    tide_change_reader_free(reader);
    return 0;
}
