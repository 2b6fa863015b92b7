#include "format/wire/rows.h"

#include "format/wire/pieces.h"
#include "format/wire/wire.h"

#define ROW_SIZE    24                   /* without its name and bytes */
#define FIELDS_SIZE (8 + 16 + 4)         /* before the rows */
#define HEAD_SIZE   (4 + 1 + 4)          /* of a frame: length, kind, source */
#define COUNT_AT    (HEAD_SIZE + 8 + 16) /* in a frame */

/* One row. */

static size_t row_size(const struct tide_wire_row *row)
{
    return ROW_SIZE + row->series.len + row->bytes.len;
}

static void put_row(char *at, const struct tide_wire_row *row)
{
    at = tide_wire_put_bytes(at, row->series);
    at = tide_wire_put_i64(at, row->ts);
    at = tide_wire_put_i64(at, row->wall_offset);
    (void)tide_wire_put_bytes(at, row->bytes);
}

struct tide_reader tide_wire_rows_walk(const struct tide_wire_rows *rows)
{
    return tide_reader_of(rows->rows);
}

bool tide_wire_rows_next(struct tide_reader *walk, struct tide_wire_row *ret_row)
{
    if (tide_reader_left(walk) == 0) {
        return false;
    }
    struct tide_wire_row row;
    row.series = tide_reader_take(walk, tide_reader_u32le(walk));
    row.ts = tide_reader_i64le(walk);
    row.wall_offset = tide_reader_i64le(walk);
    row.bytes = tide_reader_take(walk, tide_reader_u32le(walk));
    *ret_row = row;
    return !walk->failed;
}

/* All of them. */

/* Returns the bytes of `count` rows. A name that is that of the row before needs no second look. No
 * memory is taken for a count: each row is there, or the loop ends. */
static tide_str take_rows(struct tide_wire_take *take, uint32_t count)
{
    struct tide_reader *reader = &take->reader;
    const char *start = reader->pos;
    tide_str checked = {"", 0};
    for (uint32_t i = 0; i < count && !reader->failed; i++) {
        tide_str series = tide_wire_take_bytes(take);
        if (!tide_str_equal(series, checked) && !tide_str_is_utf8(series)) {
            take->wrong = "the name of a series in it is not UTF-8";
        }
        checked = series;
        (void)tide_reader_take(reader, 2 * sizeof(int64_t));
        (void)tide_wire_take_bytes(take);
    }
    return tide_str_of(start, (size_t)(reader->pos - start));
}

const char *tide_wire_rows_wrong(const struct tide_wire_rows *rows)
{
    struct tide_wire_take take = {.reader = tide_reader_of(rows->rows)};
    (void)take_rows(&take, rows->count);
    bool is_right = take.wrong == NULL && tide_reader_is_done(&take.reader);
    return is_right ? NULL : "rows are not as many encoded rows as is said";
}

size_t tide_wire_rows_size(const struct tide_wire_rows *rows)
{
    return FIELDS_SIZE + rows->rows.len;
}

char *tide_wire_rows_put(char *at, const struct tide_wire_rows *rows)
{
    at = tide_wire_put_u64(at, rows->seq);
    at = tide_wire_put_u64(at, rows->state.a);
    at = tide_wire_put_u64(at, rows->state.b);
    at = tide_wire_put_u32(at, rows->count);
    return tide_wire_put_raw(at, rows->rows);
}

struct tide_wire_rows tide_wire_rows_take(struct tide_wire_take *take)
{
    struct tide_wire_rows rows;
    rows.seq = tide_reader_u64le(&take->reader);
    rows.state.a = tide_reader_u64le(&take->reader);
    rows.state.b = tide_reader_u64le(&take->reader);
    rows.count = tide_reader_u32le(&take->reader);
    rows.rows = take_rows(take, rows.count);
    return rows;
}

/* A frame in the making. */

struct tide_wire_draft tide_wire_rows_begin(uint32_t source, uint64_t seq,
                                            struct tide_wire_state state, struct tide_buf *out)
{
    struct tide_wire_draft draft = {.start = out->len};
    struct tide_wire_rows none = {.seq = seq, .state = state};
    char *at = tide_buf_reserve(out, HEAD_SIZE + FIELDS_SIZE);
    at = tide_wire_put_u32(at, 0); /* written at the end, as is the count */
    at = tide_wire_put_u8(at, TIDE_WIRE_ROWS);
    (void)tide_wire_rows_put(tide_wire_put_u32(at, source), &none);
    out->len += HEAD_SIZE + FIELDS_SIZE;
    return draft;
}

bool tide_wire_row_fits(const struct tide_wire_row *row)
{
    return row_size(row) <=
           TIDE_WIRE_FRAME_BYTES_MAX - (HEAD_SIZE + FIELDS_SIZE - sizeof(uint32_t));
}

bool tide_wire_rows_has_room(const struct tide_wire_draft *draft, const struct tide_wire_row *row,
                             const struct tide_buf *out)
{
    size_t used = out->len - draft->start - sizeof(uint32_t);
    TIDE_ASSERT(used <= TIDE_WIRE_FRAME_BYTES_MAX);
    return row_size(row) <= TIDE_WIRE_FRAME_BYTES_MAX - used;
}

tide_status tide_wire_rows_add(struct tide_wire_draft *draft, const struct tide_wire_row *row,
                               struct tide_buf *out, struct tide_error *err)
{
    if (!tide_wire_rows_has_room(draft, row, out)) {
        return tide_fail(err, TIDE_INVALID,
                         "a row of %zu bytes does not fit into a replication frame, whose limit "
                         "is %zu bytes",
                         row->bytes.len, TIDE_WIRE_FRAME_BYTES_MAX);
    }
    if (!tide_str_is_utf8(row->series)) {
        return tide_fail(err, TIDE_INVALID, "the name of a row's series is not UTF-8");
    }
    size_t size = row_size(row);
    put_row(tide_buf_reserve(out, size), row);
    out->len += size;
    draft->count++;
    return TIDE_OK;
}

void tide_wire_rows_end(const struct tide_wire_draft *draft, struct tide_buf *out)
{
    size_t body = out->len - draft->start - sizeof(uint32_t);
    TIDE_ASSERT(body <= TIDE_WIRE_FRAME_BYTES_MAX);
    (void)tide_wire_put_u32(out->ptr + draft->start, (uint32_t)body);
    (void)tide_wire_put_u32(out->ptr + draft->start + COUNT_AT, draft->count);
}
