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

static tide_status give_back_some(struct tide_archive *archive, struct tide_error *err)
{
    bool is_any = false;
    int64_t free_pages = 0;
    int64_t pages = 0;
    TIDE_TRY(tide_archive_ask(archive, err, &is_any, &free_pages, "PRAGMA freelist_count", ""));
    TIDE_TRY(tide_archive_ask(archive, err, &is_any, &pages, "PRAGMA page_count", ""));
    return free_pages * 10 > pages
               ? tide_archive_run(archive, err, "PRAGMA incremental_vacuum(100)", "")
               : TIDE_OK;
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
    /* It has been done; where pages cannot be given back now, they are used again. */
    struct tide_error ignored;
    (void)give_back_some(archive, &ignored);
    return TIDE_OK;
}

/* Numbers that only say when to seal; what was sealed and was newest stays, so that nothing is ever
 * written behind what has been there. */
static void refresh(const struct tide_archive_writer *writer, int64_t source)
{
    for (size_t i = 0; i < writer->series_count; i++) {
        struct tide_error ignored;
        if (writer->series[i]->source->id == source) {
            (void)tide_archive_series_refresh(writer->series[i], &ignored);
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
        refresh(writer, retention->source);
    }
    return tide_archive_leave(writer, status, err);
}
