#include "archive/follow_opened.h"

#include <inttypes.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "archive/caller_rows.h"
#include "archive/writer_state.h"
#include "base/alloc.h"
#include "base/limits.h"

struct tide_archive_opened {
    struct tide_archive_series *series;
    struct tide_archive_segment segment; /* without its bytes */
    struct tide_arena arena;
    struct tide_archive_live_row *rows; /* by time */
    size_t count;
    size_t size;
    size_t place; /* where the row is, or would be, that was looked for */
    bool is_changed;
};

void tide_archive_opened_free(struct tide_archive_writer *writer)
{
    if (writer->opened != NULL) {
        tide_arena_done(&writer->opened->arena);
        free(writer->opened->rows);
        free(writer->opened);
        writer->opened = NULL;
    }
}

static struct tide_archive_live_row *add_place(struct tide_archive_opened *opened)
{
    if ((opened->count & (opened->count - 1)) == 0) {
        opened->rows = tide_realloc(opened->rows, opened->count == 0 ? 1 : opened->count * 2,
                                    sizeof(*opened->rows));
    }
    return &opened->rows[opened->count++];
}

static tide_status take_row(void *context, int64_t ts, tide_str bytes, struct tide_error *err)
{
    struct tide_archive_opened *opened = context;
    opened->size += bytes.len + sizeof(*opened->rows);
    if (opened->size > TIDE_ARCHIVE_OPENED_BYTES_MAX) {
        return tide_fail(err, TIDE_UNSUPPORTED, "its rows are more than %zu bytes",
                         TIDE_ARCHIVE_OPENED_BYTES_MAX);
    }
    *add_place(opened) =
        (struct tide_archive_live_row){.ts = ts, .bytes = tide_arena_str(&opened->arena, bytes)};
    return TIDE_OK;
}

static tide_status decode(struct tide_archive_opened *opened, tide_str bytes,
                          struct tide_error *err)
{
    struct tide_archive_writer *writer = opened->series->writer;
    const struct tide_archive_encoder *encoder = writer->options.encoder;
    const struct tide_archive_row_taker taker = {take_row, opened};
    struct tide_archive_segment segment = opened->segment;
    segment.bytes = bytes;
    if (encoder == NULL) {
        return tide_fail(err, TIDE_INVALID, "%s: following: the writer was given no encoder",
                         writer->archive->path);
    }
    if (encoder->decode(encoder->context, opened->series->name, &segment, &taker, err) == TIDE_OK) {
        return TIDE_OK;
    }
    if (err->status == TIDE_CORRUPT) { /* as it was sent: the file itself is sound */
        err->status = TIDE_INVALID;
    }
    return tide_fail_context(err, "%s: the segment of %.*s up to %" PRId64 ", which is held",
                             writer->archive->path, TIDE_STR_ARG(opened->series->name),
                             segment.last_ts);
}

/* Opens the segment of the series that ends at or behind a time, which has one. */
static tide_status open_segment(struct tide_archive_series *series, int64_t ts,
                                struct tide_error *err)
{
    struct tide_archive_writer *writer = series->writer;
    TIDE_CLEANUP(tide_archive_stmt_done) struct sqlite3_stmt *stmt = NULL;
    bool is_row = false;
    TIDE_TRY(tide_archive_query(writer->archive, &stmt, err,
                                "SELECT seq, rows, first_ts, last_ts, bytes FROM segments WHERE "
                                "source_id = ?1 AND stream = ?2 AND last_ts >= ?3 "
                                "ORDER BY last_ts LIMIT 1",
                                "iti", series->source->id, series->name, ts));
    TIDE_TRY(tide_archive_step(writer->archive, stmt, &is_row, err));
    if (!is_row) {
        return tide_archive_corrupt(writer->archive, "a segment is not there any more", err);
    }
    struct tide_archive_opened *opened = tide_alloc(1, sizeof(*opened));
    writer->opened = opened;
    opened->series = series;
    opened->segment = (struct tide_archive_segment){
        .seq = sqlite3_column_int64(stmt, 0),
        .rows = sqlite3_column_int64(stmt, 1),
        .first_ts = sqlite3_column_int64(stmt, 2),
        .last_ts = sqlite3_column_int64(stmt, 3),
    };
    tide_status status = decode(opened, tide_archive_column_bytes(stmt, 4), err);
    if (status != TIDE_OK) {
        tide_archive_opened_free(writer);
    }
    return status;
}

static bool is_open(const struct tide_archive_series *series, int64_t ts)
{
    const struct tide_archive_opened *opened = series->writer->opened;
    return opened != NULL && opened->series == series && ts >= opened->segment.first_ts &&
           ts <= opened->segment.last_ts;
}

/* The first place whose row is not before the time. */
static size_t place_of(const struct tide_archive_opened *opened, int64_t ts)
{
    size_t low = 0;
    size_t high = opened->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (opened->rows[middle].ts < ts) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

tide_status tide_archive_opened_find(struct tide_archive_series *series, int64_t ts,
                                     const struct tide_archive_live_row **ret_row,
                                     struct tide_error *err)
{
    struct tide_archive_writer *writer = series->writer;
    if (!is_open(series, ts)) {
        TIDE_TRY(tide_archive_opened_put_back(writer, err));
        tide_archive_opened_free(writer);
        TIDE_TRY(open_segment(series, ts, err));
    }
    struct tide_archive_opened *opened = writer->opened;
    TIDE_ASSERT(opened != NULL);
    opened->place = place_of(opened, ts);
    bool is_there = opened->place < opened->count && opened->rows[opened->place].ts == ts;
    *ret_row = is_there ? &opened->rows[opened->place] : NULL;
    return TIDE_OK;
}

void tide_archive_opened_add(struct tide_archive_writer *writer,
                             const struct tide_archive_live_row *row)
{
    struct tide_archive_opened *opened = writer->opened;
    TIDE_ASSERT(opened != NULL);
    size_t behind = opened->count - opened->place;
    (void)add_place(opened);
    struct tide_archive_live_row *at = &opened->rows[opened->place];
    memmove(at + 1, at, behind * sizeof(*at));
    *at = *row;
    at->bytes = tide_arena_str(&opened->arena, row->bytes);
    opened->size += row->bytes.len + sizeof(*at);
    if (row->ts < opened->segment.first_ts) {
        opened->segment.first_ts = row->ts;
    }
    opened->is_changed = true;
}

/* Makes room for one more segment behind number `seq`. */
static tide_status move_numbers(const struct tide_archive_series *series, int64_t seq,
                                struct tide_error *err)
{
    struct tide_archive *archive = series->writer->archive;
    TIDE_TRY(tide_archive_run(archive, err,
                              "UPDATE segments SET seq = -seq - 2 WHERE source_id = ?1 AND "
                              "stream = ?2 AND seq > ?3",
                              "iti", series->source->id, series->name, seq));
    return tide_archive_run(archive, err,
                            "UPDATE segments SET seq = -seq - 1 WHERE source_id = ?1 AND "
                            "stream = ?2 AND seq < 0",
                            "it", series->source->id, series->name);
}

static tide_status encode(const struct tide_archive_opened *opened, size_t first,
                          struct tide_archive_draft *draft, struct tide_error *err)
{
    const struct tide_archive_series *series = opened->series;
    struct tide_archive *archive = series->writer->archive;
    const struct tide_archive_encoder *encoder = series->writer->options.encoder;
    TIDE_CLEANUP(tide_arena_done) struct tide_arena arena = {0};
    struct tide_archive_caller_row *caller_rows = NULL;
    struct tide_archive_encode_input input = {
        .series = series->name,
        .rows = &opened->rows[first],
        .row_count = opened->count - first,
    };
    TIDE_TRY(tide_archive_caller_rows_in_force(
        archive, series->source->id, series->name, opened->rows[first].ts,
        opened->rows[opened->count - 1].ts, &arena, &caller_rows, &input.caller_row_count, err));
    input.caller_rows = caller_rows;
    TIDE_TRY(encoder->encode(encoder->context, &input, draft, err));
    TIDE_TRY(tide_archive_draft_check(encoder, &input, draft, err));
    return tide_archive_check_size(archive, "a segment", draft->bytes.len + draft->index.len, err);
}

/* Rows of several columns become several segments. */
static tide_status replace(const struct tide_archive_opened *opened, struct tide_error *err)
{
    const struct tide_archive_series *series = opened->series;
    int64_t seq = opened->segment.seq;
    TIDE_TRY(tide_archive_run(series->writer->archive, err,
                              "DELETE FROM segments WHERE source_id = ?1 AND stream = ?2 AND "
                              "seq = ?3",
                              "iti", series->source->id, series->name, seq));
    for (size_t done = 0; done < opened->count;) {
        TIDE_CLEANUP(tide_archive_draft_done) struct tide_archive_draft draft = {0};
        TIDE_TRY(encode(opened, done, &draft, err));
        if (done > 0) {
            TIDE_TRY(move_numbers(series, seq, err));
            seq++;
        }
        const struct tide_archive_segment segment = tide_archive_draft_segment(&draft, seq);
        TIDE_TRY(tide_archive_insert_segment(series, &segment, err));
        done += (size_t)draft.rows;
    }
    return TIDE_OK;
}

tide_status tide_archive_opened_put_back(struct tide_archive_writer *writer, struct tide_error *err)
{
    struct tide_archive_opened *opened = writer->opened;
    if (opened == NULL || !opened->is_changed) {
        return TIDE_OK;
    }
    struct tide_archive_series *series = opened->series;
    TIDE_TRY(replace(opened, err));
    tide_archive_opened_free(writer);
    return tide_archive_series_reload(series, err);
}
