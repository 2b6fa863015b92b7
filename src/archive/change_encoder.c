#include "archive/change_encoder.h"

#include "archive/change_pairs.h"
#include "archive/change_read.h"
#include "archive/change_segment.h"
#include "base/attr.h"
#include "format/parquet/reader.h"

static bool is_same(const struct tide_archive_caller_row *a,
                    const struct tide_archive_caller_row *b)
{
    return tide_str_equal(a->bytes, b->bytes);
}

/*
 * The schema of the first row, the last caller row at or before it, and the time from which another
 * one holds. Of several at one time the last counts.
 */
static tide_status find_schema(const struct tide_archive_encode_input *input, tide_str *ret_schema,
                               int64_t *ret_last, struct tide_error *err)
{
    const struct tide_archive_caller_row *rows = input->caller_rows;
    size_t next = 0;
    while (next < input->caller_row_count && rows[next].ts <= input->rows[0].ts) {
        next++;
    }
    if (next == 0) {
        return tide_fail(err, TIDE_CORRUPT,
                         "series %.*s: nothing says of which columns the row of time %lld is",
                         TIDE_STR_ARG(input->series), (long long)input->rows[0].ts);
    }
    int64_t last = INT64_MAX;
    for (size_t i = next; i < input->caller_row_count && last == INT64_MAX; i++) {
        bool is_last_of_time = i + 1 == input->caller_row_count || rows[i + 1].ts != rows[i].ts;
        if (is_last_of_time && !is_same(&rows[i], &rows[next - 1])) {
            last = rows[i].ts - 1;
        }
    }
    *ret_schema = rows[next - 1].bytes;
    *ret_last = last;
    return TIDE_OK;
}

static tide_status encode(void *context, const struct tide_archive_encode_input *input,
                          struct tide_archive_draft *ret_draft, struct tide_error *err)
{
    struct tide_change_segment *segment TIDE_CLEANUP(tide_change_segment_free_ptr) = NULL;
    tide_str schema = {0};
    int64_t last = 0;
    size_t count = 0;
    (void)context;
    TIDE_TRY(find_schema(input, &schema, &last, err));
    TIDE_TRY(tide_change_segment_new(input->series, schema, &segment, err));
    for (; count < input->row_count && input->rows[count].ts <= last; count++) {
        TIDE_TRY(tide_change_segment_add_bytes(segment, input->rows[count].ts,
                                               input->rows[count].bytes, err));
    }
    TIDE_TRY(tide_change_segment_finish(segment, &ret_draft->bytes, err));
    ret_draft->rows = (int64_t)count;
    ret_draft->first_ts = input->rows[0].ts;
    ret_draft->last_ts = input->rows[count - 1].ts;
    return TIDE_OK;
}

/* The rows of a segment, which must rise, as bytes. */
static tide_status decode(void *context, tide_str series,
                          const struct tide_archive_segment *segment,
                          const struct tide_archive_row_taker *taker, struct tide_error *err)
{
    struct tide_change_reader *reader TIDE_CLEANUP(tide_change_reader_free_ptr) = NULL;
    struct tide_buf bytes TIDE_CLEANUP(tide_buf_done) = {0};
    struct tide_change_row row;
    int64_t ts = 0;
    int64_t before = INT64_MIN;
    tide_status status = TIDE_OK;
    (void)context;
    (void)series;
    TIDE_TRY(tide_change_reader_new(segment->bytes, &reader, err));
    const struct tide_change_schema *schema = tide_change_reader_schema(reader);
    for (bool is_first = true;
         (status = tide_change_reader_next(reader, &ts, &row, err)) == TIDE_OK;
         is_first = false, before = ts) {
        if (!is_first && ts <= before) {
            return tide_fail(err, TIDE_CORRUPT, "the rows of a segment are not in their order");
        }
        tide_buf_reset(&bytes);
        tide_change_row_encode(&row, schema->column_count, schema->key_count, &bytes);
        TIDE_TRY(taker->take(taker->context, ts, tide_buf_str(&bytes), err));
    }
    return status == TIDE_END ? TIDE_OK : status;
}

struct head {
    struct tide_parquet_reader *parquet;
    tide_str version;
    tide_str schema;
};

static void head_done(struct head *head)
{
    tide_parquet_reader_free(head->parquet);
}

static bool head_open(const struct tide_archive_segment *segment, struct head *head)
{
    struct tide_parquet_limits limits = tide_parquet_limits_default();
    struct tide_error ignored;
    if (tide_parquet_reader_new(segment->bytes, &limits, &head->parquet, &ignored) != TIDE_OK) {
        return false;
    }
    const struct tide_parquet_metadata *metadata = tide_parquet_reader_metadata(head->parquet);
    head->version = tide_change_pair(metadata, TIDE_CHANGE_PAIR_ENCODER);
    head->schema = tide_change_pair(metadata, TIDE_CHANGE_PAIR_SCHEMA);
    return head->schema.ptr != NULL;
}

static bool may_merge(void *context, const struct tide_archive_segment *a,
                      const struct tide_archive_segment *b)
{
    struct head first TIDE_CLEANUP(head_done) = {0};
    struct head second TIDE_CLEANUP(head_done) = {0};
    (void)context;
    return head_open(a, &first) && head_open(b, &second) &&
           tide_str_equal(first.version, second.version) &&
           tide_str_equal(first.schema, second.schema);
}

struct merge {
    struct tide_change_segment *into;
    struct tide_archive_draft *draft;
};

static tide_status add_rows(struct merge *merge, const struct tide_archive_segment *segment,
                            struct tide_error *err)
{
    struct tide_change_reader *reader TIDE_CLEANUP(tide_change_reader_free_ptr) = NULL;
    struct tide_change_row row;
    int64_t ts = 0;
    tide_status status = TIDE_OK;
    TIDE_TRY(tide_change_reader_new(segment->bytes, &reader, err));
    while ((status = tide_change_reader_next(reader, &ts, &row, err)) == TIDE_OK) {
        if (merge->draft->rows++ == 0) {
            merge->draft->first_ts = ts;
        }
        merge->draft->last_ts = ts;
        TIDE_TRY(tide_change_segment_add(merge->into, ts, &row, err));
    }
    return status == TIDE_END ? TIDE_OK : status;
}

static tide_status merge(void *context, tide_str series,
                         const struct tide_archive_segment *segments, size_t count,
                         struct tide_archive_draft *ret_draft, struct tide_error *err)
{
    struct head first TIDE_CLEANUP(head_done) = {0};
    struct tide_change_segment *into TIDE_CLEANUP(tide_change_segment_free_ptr) = NULL;
    if (!head_open(&segments[0], &first)) {
        return tide_fail(err, TIDE_CORRUPT, "a segment of %.*s is none of changes",
                         TIDE_STR_ARG(series));
    }
    for (size_t i = 1; i < count; i++) {
        if (!may_merge(context, &segments[0], &segments[i])) {
            return tide_fail(err, TIDE_CORRUPT, "segments of %.*s are of different columns",
                             TIDE_STR_ARG(series));
        }
    }
    TIDE_TRY(tide_change_segment_new(series, first.schema, &into, err));
    struct merge merge = {.into = into, .draft = ret_draft};
    for (size_t i = 0; i < count; i++) {
        TIDE_TRY(add_rows(&merge, &segments[i], err));
    }
    return tide_change_segment_finish(into, &ret_draft->bytes, err);
}

const struct tide_archive_encoder tide_change_encoder = {
    .name = "changes",
    .version = TIDE_CHANGE_ENCODER_VERSION,
    .encode = encode,
    .decode = decode,
    .may_merge = may_merge,
    .merge = merge,
};
