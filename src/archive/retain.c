#include "archive/retain.h"

#include <sqlite3.h>

#include "archive/archive_db.h"
#include "archive/writer_state.h"
#include "base/arena.h"

/* The names are listed before anything is removed, since names vanish with their last row. */
struct names {
    struct tide_arena arena;
    tide_str *items;
    size_t count;
};

static void names_done(struct names *names)
{
    tide_arena_done(&names->arena);
}

static tide_status list_names(struct tide_archive *archive, int64_t source, struct names *names,
                              struct tide_error *err)
{
    static const char sql[] = "SELECT stream FROM segments WHERE source_id = ?1 "
                              "UNION SELECT stream FROM wal WHERE source_id = ?1 "
                              "UNION SELECT stream FROM caller_rows WHERE source_id = ?1";
    TIDE_CLEANUP(tide_archive_stmt_done) struct sqlite3_stmt *stmt = NULL;
    bool is_any = false;
    int64_t count = 0;
    TIDE_TRY(tide_archive_ask(archive, err, &is_any, &count,
                              "SELECT COUNT(*) FROM (SELECT stream FROM segments WHERE "
                              "source_id = ?1 UNION SELECT stream FROM wal WHERE source_id = ?1 "
                              "UNION SELECT stream FROM caller_rows WHERE source_id = ?1)",
                              "i", source));
    TIDE_TRY(tide_archive_query(archive, &stmt, err, sql, "i", source));
    names->items = tide_arena_alloc(&names->arena, (size_t)count + 1, sizeof(*names->items));
    for (names->count = 0; names->count < (size_t)count; names->count++) {
        bool is_row = false;
        TIDE_TRY(tide_archive_step(archive, stmt, &is_row, err));
        if (!is_row) {
            return TIDE_OK;
        }
        names->items[names->count] =
            tide_arena_str(&names->arena, tide_archive_column_bytes(stmt, 0));
    }
    return TIDE_OK;
}

static tide_status remove_rows(struct tide_archive *archive, int64_t *count, const char *sql,
                               int64_t source, tide_str series, int64_t before,
                               struct tide_error *err)
{
    TIDE_TRY(tide_archive_run(archive, err, sql, "iti", source, series, before));
    *count += sqlite3_changes64(archive->db);
    return TIDE_OK;
}

static tide_status count_live(struct tide_archive *archive, int64_t source, tide_str series,
                              int64_t before, int64_t *count, struct tide_error *err)
{
    bool is_any = false;
    int64_t start = 0;
    int64_t found = 0;
    TIDE_TRY(tide_archive_live_start(archive, source, series, &is_any, &start, err));
    if (is_any) {
        TIDE_TRY(tide_archive_ask(archive, err, &is_any, &found,
                                  "SELECT COUNT(*) FROM wal WHERE source_id = ?1 AND stream = ?2 "
                                  "AND ts >= ?3 AND ts < ?4",
                                  "itii", source, series, start, before));
    }
    *count += found;
    return TIDE_OK;
}

static const char oldest_sql[] =
    "SELECT MIN(ts) FROM (SELECT MIN(first_ts) AS ts FROM segments WHERE source_id = ?1 AND "
    "(?2 IS NULL OR stream = ?2) UNION ALL SELECT MIN(ts) FROM wal WHERE source_id = ?1 AND "
    "(?2 IS NULL OR stream = ?2))";

static tide_status caller_rows_end(struct tide_archive *archive,
                                   const struct tide_archive_retention *retention, tide_str series,
                                   int64_t *ret_end, struct tide_error *err)
{
    bool has_rows = false;
    int64_t oldest = 0;
    *ret_end = retention->cutoff_ts;
    if (retention->keep_from == NULL) {
        return TIDE_OK;
    }
    TIDE_TRY(tide_archive_ask(archive, err, &has_rows, &oldest, oldest_sql, "it", retention->source,
                              series));
    int64_t keep_from = retention->keep_from(retention->context, series, has_rows, oldest);
    *ret_end = keep_from < retention->cutoff_ts ? keep_from : retention->cutoff_ts;
    return TIDE_OK;
}

/* Segments and live rows share the transaction and the cutoff: rows that a removed segment had
 * shadowed would be live again. */
static tide_status retain_series(struct tide_archive *archive,
                                 const struct tide_archive_retention *retention, tide_str series,
                                 struct tide_archive_retained *retained, struct tide_error *err)
{
    int64_t source = retention->source;
    int64_t cutoff = retention->cutoff_ts;
    int64_t end = 0;
    TIDE_TRY(count_live(archive, source, series, cutoff, &retained->live_rows, err));
    TIDE_TRY(
        remove_rows(archive, &retained->segments,
                    "DELETE FROM segments WHERE source_id = ?1 AND stream = ?2 AND last_ts < ?3",
                    source, series, cutoff, err));
    TIDE_TRY(remove_rows(archive, &retained->wal_rows,
                         "DELETE FROM wal WHERE source_id = ?1 AND stream = ?2 AND ts < ?3", source,
                         series, cutoff, err));
    TIDE_TRY(caller_rows_end(archive, retention, series, &end, err));
    return remove_rows(archive, &retained->caller_rows,
                       "DELETE FROM caller_rows WHERE source_id = ?1 AND stream = ?2 AND ts < ?3",
                       source, series, end, err);
}

/* Of a part of the series, offsets are kept that older rows of the others still need. */
static tide_status retain_offsets(struct tide_archive *archive,
                                  const struct tide_archive_retention *retention,
                                  struct tide_error *err)
{
    int64_t before = retention->cutoff_ts;
    if (retention->is_removed != NULL) {
        bool is_any = false;
        int64_t oldest = 0;
        TIDE_TRY(
            tide_archive_ask(archive, err, &is_any, &oldest, oldest_sql, "i", retention->source));
        before = is_any ? oldest : before;
    }
    return tide_archive_run(archive, err,
                            "DELETE FROM clock_offsets WHERE source_id = ?1 AND ts < ?2", "ii",
                            retention->source, before);
}

static tide_status retain_all(struct tide_archive *archive,
                              const struct tide_archive_retention *retention,
                              struct tide_archive_retained *retained, struct tide_error *err)
{
    TIDE_CLEANUP(names_done) struct names names = {0};
    TIDE_CLEANUP(tide_archive_rollback) struct tide_archive *open = archive;
    TIDE_TRY(tide_archive_begin(open, err));
    TIDE_TRY(list_names(archive, retention->source, &names, err));
    for (size_t i = 0; i < names.count; i++) {
        if (retention->is_removed == NULL ||
            retention->is_removed(retention->context, names.items[i])) {
            TIDE_TRY(retain_series(archive, retention, names.items[i], retained, err));
        }
    }
    TIDE_TRY(retain_offsets(archive, retention, err));
    return tide_archive_commit(archive, err);
}

tide_status tide_archive_retain_in(struct tide_archive *archive,
                                   const struct tide_archive_retention *retention,
                                   struct tide_archive_retained *ret_retained,
                                   struct tide_error *err)
{
    struct tide_archive_retained retained = {0};
    archive->doing = "forgetting old rows";
    TIDE_TRY(retain_all(archive, retention, &retained, err));
    *ret_retained = retained;
    return TIDE_OK;
}

tide_status tide_archive_retain_step(struct tide_archive *archive, int64_t source, tide_str series,
                                     int64_t cutoff_ts, int64_t bytes_max, int64_t *ret_cutoff_ts,
                                     struct tide_error *err)
{
    TIDE_CLEANUP(tide_archive_stmt_done) struct sqlite3_stmt *stmt = NULL;
    int64_t sum = 0;
    int64_t before = cutoff_ts;
    TIDE_TRY(tide_archive_query(archive, &stmt, err,
                                "SELECT last_ts, length(bytes) FROM segments WHERE source_id = ?1 "
                                "AND stream = ?2 AND last_ts < ?3 ORDER BY seq",
                                "iti", source, series, cutoff_ts));
    for (;;) {
        bool is_row = false;
        int64_t last_ts = 0;
        int64_t bytes = 0;
        TIDE_TRY(tide_archive_step(archive, stmt, &is_row, err));
        if (!is_row || sum >= bytes_max) {
            *ret_cutoff_ts = is_row ? before : cutoff_ts;
            return TIDE_OK;
        }
        TIDE_TRY(tide_archive_column_i64(archive, stmt, 0, &last_ts, err));
        TIDE_TRY(tide_archive_column_count(archive, stmt, 1, &bytes, err));
        before = last_ts + 1; /* it is before the cutoff, so there is a later time */
        sum += bytes;
    }
}

/* Up to the cutoff, or to the newest row, where that is before it. */
static void note_forgotten(struct tide_archive_series *series, int64_t cutoff)
{
    const struct tide_archive_series_state *state = &series->state;
    if (!state->has_newest) {
        return;
    }
    int64_t before = state->newest_ts < cutoff ? state->newest_ts + 1 : cutoff;
    if (!series->has_forgotten || before > series->forgotten_before) {
        series->has_forgotten = true;
        series->forgotten_before = before;
    }
}

/*
 * Numbers that only say when to seal; what was sealed and was newest stays, so that nothing is ever
 * written behind what has been there. Neither is it before what was forgotten of the live tail: a
 * copy that has those rows would find a segment around them that lacks them.
 */
static void refresh(const struct tide_archive_writer *writer,
                    const struct tide_archive_retention *retention)
{
    for (size_t i = 0; i < writer->series_count; i++) {
        struct tide_archive_series *series = writer->series[i];
        struct tide_error ignored;
        if (series->source->id == retention->source &&
            (retention->is_removed == NULL ||
             retention->is_removed(retention->context, series->name))) {
            note_forgotten(series, retention->cutoff_ts);
            (void)tide_archive_series_refresh(series, &ignored);
        }
    }
}

tide_status tide_archive_writer_retain(struct tide_archive_writer *writer,
                                       const struct tide_archive_retention *retention,
                                       struct tide_archive_retained *ret_retained,
                                       struct tide_error *err)
{
    TIDE_TRY(tide_archive_enter(writer, "forgetting old rows", err));
    tide_status status = tide_archive_retain_in(writer->archive, retention, ret_retained, err);
    if (status == TIDE_OK) {
        refresh(writer, retention);
    }
    return tide_archive_leave(writer, status, err);
}
