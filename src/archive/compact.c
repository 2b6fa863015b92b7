#include "archive/compact.h"

#include <inttypes.h>
#include <stdlib.h>

#include "archive/archive_db.h"
#include "archive/scan.h"
#include "archive/writer_state.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/limits.h"

#define GIVE_BACK_US INT64_C(10000000)

struct compaction {
    struct tide_archive *archive;
    const struct tide_archive_encoder *encoder;
    int64_t source;
    tide_str series;
    int64_t rows_target;
};

/* Adjacent segments of one form. */
struct run {
    struct tide_arena arena;
    struct tide_archive_segment *items;
    size_t count;
    int64_t rows;
    size_t bytes;
};

static void run_done(struct run *run)
{
    tide_arena_done(&run->arena);
    free(run->items);
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
    return segment->rows <= compaction->rows_target - run->rows &&
           segment->bytes.len <= TIDE_ARCHIVE_MERGE_BYTES_MAX - run->bytes &&
           compaction->encoder->may_merge(compaction->encoder->context, &run->items[run->count - 1],
                                          segment);
}

static void run_add(struct run *run, const struct tide_archive_segment *segment)
{
    run->items = tide_realloc(run->items, run->count + 1, sizeof(*run->items));
    run->items[run->count++] = *segment;
    run->rows += segment->rows;
    run->bytes += segment->bytes.len;
}

/* Reads on until a segment does not join; that one is not of the run. */
static tide_status fill_run(const struct compaction *compaction, struct sqlite3_stmt *stmt,
                            struct run *run, bool *ret_is_row, struct tide_error *err)
{
    for (;;) {
        struct tide_archive_segment segment = {0};
        TIDE_TRY(tide_archive_step(compaction->archive, stmt, ret_is_row, err));
        if (!*ret_is_row) {
            return TIDE_OK;
        }
        TIDE_TRY(read_segment(compaction->archive, stmt, &run->arena, &segment, err));
        if (run->count > 0 && !fits(compaction, run, &segment)) {
            return TIDE_OK;
        }
        run_add(run, &segment);
        if (run->rows >= compaction->rows_target || run->bytes >= TIDE_ARCHIVE_MERGE_BYTES_MAX) {
            return TIDE_OK;
        }
    }
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

static tide_status replace_run(const struct compaction *compaction, const struct run *run,
                               const struct tide_archive_draft *draft, struct tide_error *err)
{
    TIDE_TRY(tide_archive_run(
        compaction->archive, err,
        "DELETE FROM segments WHERE source_id = ?1 AND stream = ?2 AND seq BETWEEN ?3 AND ?4",
        "itii", compaction->source, compaction->series, run->items[0].seq,
        run->items[run->count - 1].seq));
    return tide_archive_run(
        compaction->archive, err,
        "INSERT INTO segments (source_id, stream, seq, rows, first_ts, last_ts, bytes) "
        "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        "itiiiib", compaction->source, compaction->series, run->items[0].seq, draft->rows,
        draft->first_ts, draft->last_ts, tide_buf_str(&draft->bytes));
}

static tide_status merge_run(const struct compaction *compaction, const struct run *run,
                             struct tide_error *err)
{
    const struct tide_archive_encoder *encoder = compaction->encoder;
    TIDE_CLEANUP(tide_archive_draft_done) struct tide_archive_draft draft = {0};
    tide_status status =
        encoder->merge(encoder->context, compaction->series, run->items, run->count, &draft, err);
    status = status == TIDE_OK ? check_merged(compaction, run, &draft, err) : status;
    if (status != TIDE_OK) {
        return tide_fail_context(err, "%s: compacting %.*s", compaction->archive->path,
                                 TIDE_STR_ARG(compaction->series));
    }
    return replace_run(compaction, run, &draft, err);
}

/* The next run from `*from` on, joined where it has several; `*from` is where to go on. */
static tide_status next_run(const struct compaction *compaction, int64_t *from, bool *ret_is_more,
                            int64_t *merged, struct tide_error *err)
{
    struct tide_archive *archive = compaction->archive;
    TIDE_CLEANUP(run_done) struct run run = {0};
    TIDE_CLEANUP(tide_archive_rollback) struct tide_archive *open = archive;
    TIDE_CLEANUP(tide_archive_stmt_done) struct sqlite3_stmt *stmt = NULL;
    TIDE_TRY(tide_archive_begin(open, err));
    TIDE_TRY(tide_archive_query(archive, &stmt, err,
                                "SELECT seq, rows, first_ts, last_ts, bytes FROM segments WHERE "
                                "source_id = ?1 AND stream = ?2 AND seq >= ?3 ORDER BY seq",
                                "iti", compaction->source, compaction->series, *from));
    TIDE_TRY(fill_run(compaction, stmt, &run, ret_is_more, err));
    tide_archive_stmt_done(&stmt);
    if (run.count == 0 || run.items[run.count - 1].seq == INT64_MAX) {
        *ret_is_more = false;
        return TIDE_OK;
    }
    *from = run.items[run.count - 1].seq + 1;
    if (run.count < 2) {
        return TIDE_OK;
    }
    TIDE_TRY(merge_run(compaction, &run, err));
    TIDE_TRY(tide_archive_commit(archive, err));
    *merged += (int64_t)run.count;
    return TIDE_OK;
}

tide_status tide_archive_compact(struct tide_archive *archive,
                                 const struct tide_archive_encoder *encoder, int64_t source,
                                 tide_str series, int64_t rows_target, int64_t *ret_merged,
                                 struct tide_error *err)
{
    struct compaction compaction = {archive, encoder, source, series, rows_target};
    int64_t from = INT64_MIN;
    int64_t merged = 0;
    if (encoder == NULL || encoder->merge == NULL || encoder->may_merge == NULL) {
        return tide_fail(err, TIDE_INVALID, "%s: compacting: the encoder cannot join segments",
                         archive->path);
    }
    TIDE_TRY(tide_archive_encoder_check(archive, source, encoder, err));
    archive->doing = "compacting";
    for (bool is_more = true; is_more;) {
        TIDE_TRY(next_run(&compaction, &from, &is_more, &merged, err));
    }
    *ret_merged = merged;
    if (merged > 0) { /* no space comes back by itself */
        struct tide_error ignored;
        (void)tide_archive_give_back(archive, 0, tide_clock_deadline_us(GIVE_BACK_US), &ignored);
    }
    return TIDE_OK;
}

tide_status tide_archive_writer_compact(struct tide_archive_writer *writer, int64_t source,
                                        tide_str series, int64_t rows_target, int64_t *ret_merged,
                                        struct tide_error *err)
{
    TIDE_TRY(tide_archive_enter(writer, "compacting", err));
    tide_status status = tide_archive_compact(writer->archive, writer->options.encoder, source,
                                              series, rows_target, ret_merged, err);
    return tide_archive_leave(writer, status, err);
}
