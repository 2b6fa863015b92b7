/* Sealing: the oldest rows of live tails become segments. */
#include <inttypes.h>
#include <sqlite3.h>
#include <stdlib.h>

#include "archive/caller_rows.h"
#include "archive/writer_state.h"
#include "base/alloc.h"

/* One series on its way. */
struct sealing {
    struct tide_archive_series *series;
    struct tide_archive_draft draft; /* without rows: there is nothing to seal */
    bool has_offset;
    int64_t wall_offset; /* of the row whose time is the segment's end */
};

struct batch {
    struct sealing *items;
    size_t count;
};

static void batch_done(struct batch *batch)
{
    for (size_t i = 0; i < batch->count; i++) {
        tide_archive_draft_done(&batch->items[i].draft);
    }
    free(batch->items);
}

/* Rows of one segment, in an arena. */
struct tail {
    struct tide_arena arena;
    struct tide_archive_live_row *rows;
    size_t count;
};

static void tail_done(struct tail *tail)
{
    tide_arena_done(&tail->arena);
    free(tail->rows);
}

static struct tide_archive_live_row *tail_add(struct tail *tail)
{
    if ((tail->count & (tail->count - 1)) == 0) {
        tail->rows =
            tide_realloc(tail->rows, tail->count == 0 ? 1 : tail->count * 2, sizeof(*tail->rows));
    }
    return &tail->rows[tail->count++];
}

static tide_status read_tail(const struct tide_archive_series *series,
                             const struct tide_archive_seal_policy *policy, struct tail *tail,
                             struct tide_error *err)
{
    struct tide_archive *archive = series->writer->archive;
    TIDE_CLEANUP(tide_archive_stmt_done) struct sqlite3_stmt *stmt = NULL;
    bool is_row = false;
    int64_t start = 0;
    int64_t size = 0;
    TIDE_TRY(
        tide_archive_live_start(archive, series->source->id, series->name, &is_row, &start, err));
    TIDE_TRY(tide_archive_query(archive, &stmt, err,
                                "SELECT ts, wall_offset, row FROM wal WHERE source_id = ?1 AND "
                                "stream = ?2 AND ts >= ?3 ORDER BY ts LIMIT ?4",
                                "itii", series->source->id, series->name, start,
                                is_row ? policy->rows_max : (int64_t)0));
    for (is_row = true; size < policy->bytes_max;) {
        TIDE_TRY(tide_archive_step(archive, stmt, &is_row, err));
        if (!is_row) {
            break;
        }
        struct tide_archive_live_row *row = tail_add(tail);
        TIDE_TRY(tide_archive_column_i64(archive, stmt, 0, &row->ts, err));
        TIDE_TRY(tide_archive_column_i64(archive, stmt, 1, &row->wall_offset, err));
        row->bytes = tide_arena_str(&tail->arena, tide_archive_column_bytes(stmt, 2));
        size += (int64_t)row->bytes.len;
    }
    return TIDE_OK;
}

static void note_offset(struct sealing *sealing, const struct tail *tail)
{
    for (size_t i = tail->count; i > 0; i--) {
        if (tail->rows[i - 1].ts == sealing->draft.last_ts) {
            sealing->has_offset = true;
            sealing->wall_offset = tail->rows[i - 1].wall_offset;
            return;
        }
    }
}

static tide_status encode(struct sealing *sealing, const struct tide_archive_seal_policy *policy,
                          struct tide_error *err)
{
    const struct tide_archive_series *series = sealing->series;
    struct tide_archive *archive = series->writer->archive;
    const struct tide_archive_encoder *encoder = series->writer->options.encoder;
    TIDE_CLEANUP(tail_done) struct tail tail = {0};
    struct tide_archive_caller_row *caller_rows = NULL;
    struct tide_archive_encode_input input = {.series = series->name};
    TIDE_TRY(read_tail(series, policy, &tail, err));
    if (tail.count == 0) {
        return TIDE_OK;
    }
    TIDE_TRY(tide_archive_caller_rows_in_force(
        archive, series->source->id, series->name, tail.rows[0].ts, tail.rows[tail.count - 1].ts,
        &tail.arena, &caller_rows, &input.caller_row_count, err));
    input.rows = tail.rows;
    input.row_count = tail.count;
    input.caller_rows = caller_rows;
    if (encoder->encode(encoder->context, &input, &sealing->draft, err) != TIDE_OK) {
        return tide_fail_context(err, "%s: sealing %.*s", archive->path,
                                 TIDE_STR_ARG(series->name));
    }
    if (sealing->draft.rows == 0 && sealing->draft.bytes.len == 0) {
        return TIDE_OK;
    }
    TIDE_TRY(tide_archive_draft_check(encoder, &input, &sealing->draft, err));
    TIDE_TRY(tide_archive_check_size(archive, "a segment",
                                     sealing->draft.bytes.len + sealing->draft.index.len, err));
    note_offset(sealing, &tail);
    return TIDE_OK;
}

tide_status tide_archive_insert_segment(const struct tide_archive_series *series,
                                        const struct tide_archive_segment *segment,
                                        struct tide_error *err)
{
    return tide_archive_run(series->writer->archive, err,
                            "INSERT INTO segments (source_id, stream, seq, rows, first_ts, "
                            "last_ts, bytes, caller_index) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
                            "itiiiibo", series->source->id, series->name, segment->seq,
                            segment->rows, segment->first_ts, segment->last_ts, segment->bytes,
                            segment->index);
}

static tide_status insert_draft(const struct sealing *sealing, struct tide_error *err)
{
    const struct tide_archive_segment segment =
        tide_archive_draft_segment(&sealing->draft, sealing->series->state.next_seq);
    return tide_archive_insert_segment(sealing->series, &segment, err);
}

/* The clock is noted once a batch: where its newest segment ends, of those the later series. */
static tide_status insert_offset(const struct batch *batch, struct tide_error *err)
{
    const struct sealing *newest = NULL;
    for (size_t i = 0; i < batch->count; i++) {
        const struct sealing *sealing = &batch->items[i];
        if (sealing->draft.rows > 0 && sealing->has_offset &&
            (newest == NULL || sealing->draft.last_ts >= newest->draft.last_ts)) {
            newest = sealing;
        }
    }
    return newest == NULL || newest->series->writer->options.is_copy
               ? TIDE_OK
               : tide_archive_run(newest->series->writer->archive, err,
                                  "INSERT OR IGNORE INTO clock_offsets (source_id, ts, offset_ns) "
                                  "VALUES (?1, ?2, ?3)",
                                  "iii", newest->series->source->id, newest->draft.last_ts,
                                  newest->wall_offset);
}

static tide_status commit_batch(struct tide_archive_writer *writer, const struct batch *batch,
                                struct tide_error *err)
{
    TIDE_CLEANUP(tide_archive_rollback) struct tide_archive *open = writer->archive;
    TIDE_TRY(tide_archive_begin(open, err));
    for (size_t i = 0; i < batch->count; i++) {
        if (batch->items[i].draft.rows > 0) {
            TIDE_TRY(insert_draft(&batch->items[i], err));
        }
    }
    TIDE_TRY(insert_offset(batch, err));
    return tide_archive_commit(writer->archive, err);
}

/* Only what has been committed counts as sealed. */
static void note_sealed(const struct batch *batch, struct tide_archive_seal_counts *counts)
{
    for (size_t i = 0; i < batch->count; i++) {
        const struct tide_archive_draft *draft = &batch->items[i].draft;
        struct tide_archive_series *series = batch->items[i].series;
        if (draft->rows == 0) {
            continue;
        }
        series->state.is_sealed = true;
        series->state.sealed_to = draft->last_ts;
        series->state.next_seq++;
        series->is_prune_due = true;
        counts->segments++;
        counts->rows += draft->rows;
        counts->bytes += (int64_t)draft->bytes.len;
    }
}

static tide_status prune(struct tide_archive_series *series, struct tide_error *err)
{
    struct tide_archive *archive = series->writer->archive;
    TIDE_CLEANUP(tide_archive_rollback) struct tide_archive *open = archive;
    TIDE_TRY(tide_archive_begin(open, err));
    TIDE_TRY(tide_archive_run(archive, err,
                              "DELETE FROM wal WHERE source_id = ?1 AND stream = ?2 AND ts <= ?3",
                              "iti", series->source->id, series->name, series->state.sealed_to));
    TIDE_TRY(tide_archive_commit(archive, err));
    series->is_prune_due = false;
    return TIDE_OK;
}

/*
 * In a transaction of its own, after the segment is in the file: rows that are in both are read
 * from the segment alone. Where it cannot be done now, the next sealing does it, or the next
 * opening.
 */
static void prune_all(struct tide_archive_writer *writer)
{
    for (size_t i = 0; i < writer->series_count; i++) {
        struct tide_error ignored;
        if (writer->series[i]->is_prune_due && prune(writer->series[i], &ignored) != TIDE_OK) {
            writer->has_failed = true;
        }
    }
}

/* Numbers that only say when to seal again; where they cannot be read now, they stay too high. */
static void refresh_all(const struct batch *batch)
{
    for (size_t i = 0; i < batch->count; i++) {
        struct tide_error ignored;
        if (batch->items[i].draft.rows > 0) {
            (void)tide_archive_series_refresh(batch->items[i].series, &ignored);
        }
    }
}

static tide_status check_batch(const struct tide_archive_writer *writer,
                               struct tide_archive_series *const *series, size_t count,
                               struct tide_error *err)
{
    if (writer->options.encoder == NULL) {
        return tide_fail(err, TIDE_INVALID, "%s: sealing: the writer was given no encoder",
                         writer->archive->path);
    }
    for (size_t i = 0; i < count; i++) {
        TIDE_ASSERT(series[i]->writer == writer);
        if (series[i]->source != series[0]->source) {
            return tide_fail(err, TIDE_INVALID,
                             "%s: sealing: series of several sources cannot be sealed together",
                             writer->archive->path);
        }
        for (size_t j = 0; j < i; j++) {
            if (series[i] == series[j]) {
                return tide_fail(err, TIDE_INVALID, "%s: sealing: %.*s was named twice",
                                 writer->archive->path, TIDE_STR_ARG(series[i]->name));
            }
        }
    }
    return TIDE_OK;
}

static tide_status seal(struct tide_archive_writer *writer,
                        struct tide_archive_series *const *series, size_t count,
                        const struct tide_archive_seal_policy *policy,
                        struct tide_archive_seal_counts *ret_counts, struct tide_error *err)
{
    struct tide_archive_seal_counts counts = {0};
    TIDE_CLEANUP(batch_done) struct batch batch = {0};
    TIDE_TRY(check_batch(writer, series, count, err));
    batch.items = tide_alloc(count + 1, sizeof(*batch.items));
    for (; batch.count < count; batch.count++) {
        batch.items[batch.count].series = series[batch.count];
    }
    for (size_t i = 0; i < count; i++) {
        TIDE_TRY(encode(&batch.items[i], policy, err));
        counts.segments += batch.items[i].draft.rows > 0;
    }
    if (counts.segments > 0) {
        counts.segments = 0;
        TIDE_TRY(commit_batch(writer, &batch, err));
        note_sealed(&batch, &counts);
        prune_all(writer);
        refresh_all(&batch);
    }
    *ret_counts = counts;
    return TIDE_OK;
}

tide_status tide_archive_seal(struct tide_archive_writer *writer,
                              struct tide_archive_series *const *series, size_t count,
                              const struct tide_archive_seal_policy *policy,
                              struct tide_archive_seal_counts *ret_counts, struct tide_error *err)
{
    policy = policy == NULL ? &tide_archive_seal_policy_default : policy;
    TIDE_TRY(tide_archive_enter(writer, "sealing", err));
    return tide_archive_leave(writer, seal(writer, series, count, policy, ret_counts, err), err);
}
