#include "archive/compact.h"

#include <inttypes.h>
#include <stdlib.h>

#include "archive/archive_db.h"
#include "archive/scan.h"
#include "archive/writer_state.h"
#include "base/alloc.h"
#include "base/limits.h"

struct compaction {
    struct tide_archive *archive;
    const struct tide_archive_encoder *encoder;
    const struct tide_archive_merge_policy *policy;
    int64_t source;
    tide_str series;
};

/* Adjacent segments of one form. */
struct run {
    struct tide_arena arena;
    struct tide_archive_segment *items;
    size_t count;
    int64_t rows;
    int64_t bytes;
};

static void run_done(struct run *run)
{
    tide_arena_done(&run->arena);
    free(run->items);
}

void tide_archive_merge_done(struct tide_archive_merge *merge)
{
    tide_archive_draft_done(&merge->draft);
}

static bool is_small(const struct compaction *compaction, int64_t rows, int64_t bytes)
{
    return rows <= compaction->policy->small_rows_max &&
           bytes <= compaction->policy->small_bytes_max;
}

/*
 * Where so many small segments follow one another as are worth joining, by the catalogue alone: no
 * segment is read before some may be joined. TIDE_END: nowhere from `*from` on.
 */
static tide_status find_small(const struct compaction *compaction, int64_t *from,
                              struct tide_error *err)
{
    TIDE_CLEANUP(tide_archive_stmt_done) struct sqlite3_stmt *stmt = NULL;
    struct tide_archive *archive = compaction->archive;
    int64_t first = *from;
    TIDE_TRY(tide_archive_query(archive, &stmt, err,
                                "SELECT seq, rows, length(bytes) FROM segments WHERE "
                                "source_id = ?1 AND stream = ?2 AND seq >= ?3 ORDER BY seq",
                                "iti", compaction->source, compaction->series, *from));
    for (size_t count = 0; count < compaction->policy->count_min;) {
        bool is_row = false;
        int64_t seq = 0;
        int64_t rows = 0;
        int64_t bytes = 0;
        TIDE_TRY(tide_archive_step(archive, stmt, &is_row, err));
        if (!is_row) {
            return TIDE_END;
        }
        TIDE_TRY(tide_archive_column_i64(archive, stmt, 0, &seq, err));
        TIDE_TRY(tide_archive_column_count(archive, stmt, 1, &rows, err));
        TIDE_TRY(tide_archive_column_count(archive, stmt, 2, &bytes, err));
        first = count == 0 ? seq : first;
        count = is_small(compaction, rows, bytes) ? count + 1 : 0;
    }
    *from = first;
    return TIDE_OK;
}

static tide_status read_segment(struct tide_archive *archive, struct sqlite3_stmt *stmt,
                                struct tide_arena *arena, struct tide_archive_segment *segment,
                                struct tide_error *err)
{
    TIDE_TRY(tide_archive_column_i64(archive, stmt, 0, &segment->seq, err));
    TIDE_TRY(tide_archive_column_count(archive, stmt, 1, &segment->rows, err));
    TIDE_TRY(tide_archive_column_i64(archive, stmt, 2, &segment->first_ts, err));
    TIDE_TRY(tide_archive_column_i64(archive, stmt, 3, &segment->last_ts, err));
    segment->bytes = tide_arena_str(arena, tide_archive_column_bytes(stmt, 4));
    return TIDE_OK;
}

static bool fits(const struct compaction *compaction, const struct run *run,
                 const struct tide_archive_segment *segment)
{
    int64_t bytes = (int64_t)segment->bytes.len;
    return is_small(compaction, segment->rows, bytes) &&
           segment->rows <= compaction->policy->rows_max - run->rows &&
           bytes <= compaction->policy->bytes_max - run->bytes &&
           compaction->encoder->may_merge(compaction->encoder->context, &run->items[run->count - 1],
                                          segment);
}

static void run_add(struct run *run, const struct tide_archive_segment *segment)
{
    run->items = tide_realloc(run->items, run->count + 1, sizeof(*run->items));
    run->items[run->count++] = *segment;
    run->rows += segment->rows;
    run->bytes += (int64_t)segment->bytes.len;
}

/* Reads on until a segment does not join; that one is not of the run. */
static tide_status fill_run(const struct compaction *compaction, int64_t from, struct run *run,
                            struct tide_error *err)
{
    TIDE_CLEANUP(tide_archive_stmt_done) struct sqlite3_stmt *stmt = NULL;
    TIDE_TRY(tide_archive_query(compaction->archive, &stmt, err,
                                "SELECT seq, rows, first_ts, last_ts, bytes FROM segments WHERE "
                                "source_id = ?1 AND stream = ?2 AND seq >= ?3 ORDER BY seq",
                                "iti", compaction->source, compaction->series, from));
    while (run->rows < compaction->policy->rows_max && run->bytes < compaction->policy->bytes_max) {
        struct tide_archive_segment segment = {0};
        bool is_row = false;
        TIDE_TRY(tide_archive_step(compaction->archive, stmt, &is_row, err));
        if (!is_row) {
            return TIDE_OK;
        }
        TIDE_TRY(read_segment(compaction->archive, stmt, &run->arena, &segment, err));
        if (run->count > 0 && !fits(compaction, run, &segment)) {
            return TIDE_OK;
        }
        run_add(run, &segment);
    }
    return TIDE_OK;
}

static tide_status check_merged(const struct compaction *compaction, const struct run *run,
                                const struct tide_archive_draft *draft, struct tide_error *err)
{
    if (draft->rows == run->rows && draft->first_ts == run->items[0].first_ts &&
        draft->last_ts == run->items[run->count - 1].last_ts) {
        return TIDE_OK;
    }
    return tide_fail(err, TIDE_INVALID,
                     "the encoder %s did not make of %zu segments with %" PRId64
                     " rows one that holds just these; nothing was joined",
                     compaction->encoder->name, run->count, run->rows);
}

static tide_status merge_run(const struct compaction *compaction, const struct run *run,
                             struct tide_archive_merge *merge, struct tide_error *err)
{
    const struct tide_archive_encoder *encoder = compaction->encoder;
    merge->first_seq = run->items[0].seq;
    merge->last_seq = run->items[run->count - 1].seq;
    merge->count = run->count;
    tide_archive_draft_reset(&merge->draft);
    tide_status status = encoder->merge(encoder->context, compaction->series, run->items,
                                        run->count, &merge->draft, err);
    status = status == TIDE_OK ? check_merged(compaction, run, &merge->draft, err) : status;
    return status == TIDE_OK
               ? TIDE_OK
               : tide_fail_context(err, "%s: compacting %.*s", compaction->archive->path,
                                   TIDE_STR_ARG(compaction->series));
}

/* The run that begins at the first small segments from `*from` on; `count` 0: they are of several
 * forms, look on. */
static tide_status next_run(const struct compaction *compaction, int64_t *from,
                            struct tide_archive_merge *merge, struct tide_error *err)
{
    TIDE_CLEANUP(run_done) struct run run = {0};
    TIDE_CLEANUP(tide_archive_snapshot_end_ptr) struct tide_archive *snapshot = NULL;
    TIDE_TRY(tide_archive_snapshot_begin(compaction->archive, err));
    snapshot = compaction->archive;
    TIDE_TRY(find_small(compaction, from, err));
    TIDE_TRY(fill_run(compaction, *from, &run, err));
    if (run.count == 0 || run.items[run.count - 1].seq == INT64_MAX) {
        return TIDE_END;
    }
    *from = run.items[run.count - 1].seq + 1;
    return run.count < compaction->policy->count_min ? TIDE_OK
                                                     : merge_run(compaction, &run, merge, err);
}

tide_status tide_archive_merge_next(struct tide_archive *archive,
                                    const struct tide_archive_encoder *encoder,
                                    const struct tide_archive_merge_policy *policy, int64_t source,
                                    tide_str series, int64_t *from,
                                    struct tide_archive_merge *ret_merge, struct tide_error *err)
{
    const struct compaction compaction = {archive, encoder, policy, source, series};
    TIDE_ASSERT(policy->count_min >= 2);
    if (encoder == NULL || encoder->merge == NULL || encoder->may_merge == NULL) {
        return tide_fail(err, TIDE_INVALID, "%s: compacting: the encoder cannot join segments",
                         archive->path);
    }
    TIDE_TRY(tide_archive_encoder_check(archive, source, encoder, err));
    archive->doing = "compacting";
    ret_merge->count = 0;
    while (ret_merge->count == 0) {
        TIDE_TRY(next_run(&compaction, from, ret_merge, err));
    }
    return TIDE_OK;
}

/* Segments never change: if just so many with so many rows are there, they are those. */
static tide_status is_there(struct tide_archive *archive, int64_t source, tide_str series,
                            const struct tide_archive_merge *merge, bool *ret_is_there,
                            struct tide_error *err)
{
    bool is_any = false;
    int64_t rows = 0;
    TIDE_TRY(tide_archive_ask(archive, err, &is_any, &rows,
                              "SELECT SUM(rows) FROM segments WHERE source_id = ?1 AND "
                              "stream = ?2 AND seq BETWEEN ?3 AND ?4",
                              "itii", source, series, merge->first_seq, merge->last_seq));
    *ret_is_there = is_any && rows == merge->draft.rows;
    return TIDE_OK;
}

tide_status tide_archive_merge_put(struct tide_archive *archive, int64_t source, tide_str series,
                                   const struct tide_archive_merge *merge, bool *ret_is_put,
                                   struct tide_error *err)
{
    TIDE_CLEANUP(tide_archive_rollback) struct tide_archive *open = archive;
    const struct tide_archive_draft *draft = &merge->draft;
    TIDE_TRY(tide_archive_begin(open, err));
    TIDE_TRY(is_there(archive, source, series, merge, ret_is_put, err));
    if (!*ret_is_put) {
        return TIDE_OK;
    }
    TIDE_TRY(tide_archive_run(
        archive, err,
        "DELETE FROM segments WHERE source_id = ?1 AND stream = ?2 AND seq BETWEEN ?3 AND ?4",
        "itii", source, series, merge->first_seq, merge->last_seq));
    TIDE_TRY(tide_archive_run(
        archive, err,
        "INSERT INTO segments (source_id, stream, seq, rows, first_ts, last_ts, bytes) "
        "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        "itiiiib", source, series, merge->first_seq, draft->rows, draft->first_ts, draft->last_ts,
        tide_buf_str(&draft->bytes)));
    return tide_archive_commit(archive, err);
}

tide_status tide_archive_compact(struct tide_archive *archive,
                                 const struct tide_archive_encoder *encoder, int64_t source,
                                 tide_str series, int64_t rows_target, int64_t *ret_merged,
                                 struct tide_error *err)
{
    TIDE_CLEANUP(tide_archive_merge_done) struct tide_archive_merge merge = {0};
    const struct tide_archive_merge_policy policy = {rows_target, TIDE_ARCHIVE_MERGE_BYTES_MAX,
                                                     INT64_MAX, INT64_MAX, 2};
    int64_t from = INT64_MIN;
    int64_t merged = 0;
    tide_status status = TIDE_OK;
    while ((status = tide_archive_merge_next(archive, encoder, &policy, source, series, &from,
                                             &merge, err)) == TIDE_OK) {
        bool is_put = false;
        TIDE_TRY(tide_archive_merge_put(archive, source, series, &merge, &is_put, err));
        merged += is_put ? (int64_t)merge.count : 0;
    }
    if (status != TIDE_END) {
        return status;
    }
    *ret_merged = merged;
    return TIDE_OK;
}

tide_status tide_archive_writer_put_merge(struct tide_archive_writer *writer, int64_t source,
                                          tide_str series, const struct tide_archive_merge *merge,
                                          bool *ret_is_put, struct tide_error *err)
{
    TIDE_TRY(tide_archive_enter(writer, "compacting", err));
    return tide_archive_leave(
        writer, tide_archive_merge_put(writer->archive, source, series, merge, ret_is_put, err),
        err);
}
