#include "archive/catalogue.h"

#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "archive/archive_db.h"
#include "base/limits.h"
#include "base/uuid.h"

static tide_status read_pairs(struct tide_archive *archive, struct sqlite3_stmt *stmt, int column,
                              struct tide_arena *arena, struct tide_archive_pairs *ret_pairs,
                              struct tide_error *err)
{
    tide_str json = tide_archive_column_bytes(stmt, column);
    if (json.len > TIDE_ARCHIVE_META_BYTES_MAX) {
        return tide_archive_corrupt(archive, "labels or metadata of a source are over 16 MiB", err);
    }
    if (tide_archive_pairs_read(tide_arena_str(arena, json), arena, ret_pairs, err) != TIDE_OK) {
        return tide_fail_context(err, "%s: %s: %s of source %" PRId64, archive->path,
                                 archive->doing, sqlite3_column_name(stmt, column),
                                 (int64_t)sqlite3_column_int64(stmt, 0));
    }
    return TIDE_OK;
}

static tide_status read_source(struct tide_archive *archive, struct sqlite3_stmt *stmt,
                               struct tide_arena *arena, struct tide_archive_source *ret_source,
                               struct tide_error *err)
{
    struct tide_archive_source source = {0};
    int64_t complete = 0;
    TIDE_TRY(tide_archive_column_i64(archive, stmt, 0, &source.id, err));
    TIDE_TRY(read_pairs(archive, stmt, 1, arena, &source.labels, err));
    TIDE_TRY(read_pairs(archive, stmt, 2, arena, &source.metadata, err));
    TIDE_TRY(tide_archive_column_i64(archive, stmt, 3, &complete, err));
    TIDE_TRY(tide_archive_column_i64(archive, stmt, 4, &source.clock_anchor_wall_ns, err));
    source.is_complete = complete != 0;
    (void)tide_uuid_read(tide_archive_column_bytes(stmt, 5), source.uuid); /* else it has none */
    source.has_heartbeat = sqlite3_column_type(stmt, 6) == SQLITE_INTEGER;
    source.heartbeat = sqlite3_column_int64(stmt, 6);
    source.heartbeat_interval_ns = sqlite3_column_int64(stmt, 7);
    *ret_source = source;
    return TIDE_OK;
}

/* Columns that the file may lack read as NULL. */
static tide_status query_sources(struct tide_archive *archive, const char *where, int64_t id,
                                 struct sqlite3_stmt **ret_stmt, struct tide_error *err)
{
    char sql[320];
    (void)snprintf(sql, sizeof(sql),
                   "SELECT id, labels, metadata, complete, clock_anchor_wall_ns, %s, %s, %s "
                   "FROM sources %s ORDER BY id",
                   archive->has_uuid ? "uuid" : "NULL",
                   archive->has_heartbeat ? "heartbeat" : "NULL",
                   archive->has_heartbeat_interval ? "heartbeat_interval_ns" : "NULL", where);
    return tide_archive_query(archive, ret_stmt, err, sql, "i", id);
}

static tide_status read_sources(struct tide_archive *archive, struct tide_arena *arena,
                                struct tide_archive_catalogue *catalogue, struct tide_error *err)
{
    TIDE_CLEANUP(tide_archive_stmt_done) struct sqlite3_stmt *stmt = NULL;
    TIDE_TRY(query_sources(archive, "WHERE ?1 IS NOT NULL", 0, &stmt, err));
    for (;;) {
        bool is_row = false;
        TIDE_TRY(tide_archive_step(archive, stmt, &is_row, err));
        if (!is_row) {
            return TIDE_OK;
        }
        catalogue->sources = tide_arena_grow(arena, catalogue->sources, catalogue->source_count,
                                             sizeof(*catalogue->sources));
        TIDE_TRY(
            read_source(archive, stmt, arena, &catalogue->sources[catalogue->source_count], err));
        catalogue->source_count++;
    }
}

#define SEALED_COLUMNS                                                                             \
    "source_id, stream, COUNT(*), SUM(rows), SUM(length(bytes)), MIN(first_ts), MAX(last_ts)"
#define LIVE_COLUMNS "source_id, stream, COUNT(*), MIN(ts), MAX(ts)"
#define LIVE_RULE                                                                                  \
    "NOT EXISTS (SELECT 1 FROM segments WHERE segments.source_id = wal.source_id AND "             \
    "segments.stream = wal.stream AND segments.last_ts >= wal.ts)"

static tide_status fill_sealed(struct tide_archive *archive, struct sqlite3_stmt *stmt,
                               struct tide_archive_series_info *info, struct tide_error *err)
{
    TIDE_TRY(tide_archive_column_count(archive, stmt, 2, &info->segments, err));
    TIDE_TRY(tide_archive_column_count(archive, stmt, 3, &info->sealed_rows, err));
    TIDE_TRY(tide_archive_column_count(archive, stmt, 4, &info->sealed_bytes, err));
    TIDE_TRY(tide_archive_column_i64(archive, stmt, 5, &info->sealed_from, err));
    return tide_archive_column_i64(archive, stmt, 6, &info->sealed_to, err);
}

static tide_status fill_live(struct tide_archive *archive, struct sqlite3_stmt *stmt,
                             struct tide_archive_series_info *info, struct tide_error *err)
{
    TIDE_TRY(tide_archive_column_count(archive, stmt, 2, &info->live_rows, err));
    TIDE_TRY(tide_archive_column_i64(archive, stmt, 3, &info->live_from, err));
    return tide_archive_column_i64(archive, stmt, 4, &info->live_to, err);
}

static int compare_place(int64_t source, tide_str name, const struct tide_archive_series_info *info)
{
    if (source != info->source) {
        return source < info->source ? -1 : 1;
    }
    return tide_str_compare(name, info->name);
}

/* Walks two lists that are sorted alike, of sealed and of live series, and joins them. */
struct side {
    struct sqlite3_stmt *stmt;
    bool is_row;
    int64_t source;
    tide_str name; /* until the next step */
};

static tide_status side_next(struct tide_archive *archive, struct side *side,
                             struct tide_error *err)
{
    TIDE_TRY(tide_archive_step(archive, side->stmt, &side->is_row, err));
    if (side->is_row) {
        TIDE_TRY(tide_archive_column_i64(archive, side->stmt, 0, &side->source, err));
        side->name = tide_archive_column_bytes(side->stmt, 1);
    }
    return TIDE_OK;
}

static tide_status join(struct tide_archive *archive, struct side *sealed, struct side *live,
                        struct tide_arena *arena, struct tide_archive_catalogue *catalogue,
                        struct tide_error *err)
{
    TIDE_TRY(side_next(archive, sealed, err));
    TIDE_TRY(side_next(archive, live, err));
    while (sealed->is_row || live->is_row) {
        catalogue->series = tide_arena_grow(arena, catalogue->series, catalogue->series_count,
                                            sizeof(*catalogue->series));
        struct tide_archive_series_info *info = &catalogue->series[catalogue->series_count++];
        *info = (struct tide_archive_series_info){.source = live->source, .name = live->name};
        int order = !sealed->is_row ? 1
                    : !live->is_row ? -1
                                    : compare_place(sealed->source, sealed->name, info);
        const struct side *first = order <= 0 ? sealed : live;
        info->source = first->source;
        info->name = tide_arena_str(arena, first->name);
        if (order <= 0) {
            TIDE_TRY(fill_sealed(archive, sealed->stmt, info, err));
            TIDE_TRY(side_next(archive, sealed, err));
        }
        if (order >= 0) {
            TIDE_TRY(fill_live(archive, live->stmt, info, err));
            TIDE_TRY(side_next(archive, live, err));
        }
    }
    return TIDE_OK;
}

static tide_status read_series(struct tide_archive *archive, struct tide_arena *arena,
                               struct tide_archive_catalogue *catalogue, struct tide_error *err)
{
    TIDE_CLEANUP(tide_archive_stmt_done) struct sqlite3_stmt *sealed = NULL;
    TIDE_CLEANUP(tide_archive_stmt_done) struct sqlite3_stmt *live = NULL;
    TIDE_TRY(tide_archive_query(archive, &sealed, err,
                                "SELECT " SEALED_COLUMNS " FROM segments "
                                "GROUP BY source_id, stream ORDER BY source_id, stream",
                                ""));
    TIDE_TRY(tide_archive_query(archive, &live, err,
                                "SELECT " LIVE_COLUMNS " FROM wal WHERE " LIVE_RULE
                                " GROUP BY source_id, stream ORDER BY source_id, stream",
                                ""));
    struct side of_sealed = {.stmt = sealed};
    struct side of_live = {.stmt = live};
    return join(archive, &of_sealed, &of_live, arena, catalogue, err);
}

tide_status tide_archive_catalogue_read(struct tide_archive *archive, struct tide_arena *arena,
                                        struct tide_archive_catalogue *ret_catalogue,
                                        struct tide_error *err)
{
    struct tide_archive_catalogue catalogue = {0};
    archive->doing = "reading the catalogue";
    TIDE_TRY(tide_archive_snapshot_begin(archive, err));
    TIDE_CLEANUP(tide_archive_snapshot_end_ptr) struct tide_archive *held = archive;
    TIDE_TRY(read_sources(held, arena, &catalogue, err));
    TIDE_TRY(read_series(held, arena, &catalogue, err));
    *ret_catalogue = catalogue;
    return TIDE_OK;
}

tide_status tide_archive_source_read(struct tide_archive *archive, int64_t id,
                                     struct tide_arena *arena,
                                     struct tide_archive_source *ret_source, struct tide_error *err)
{
    archive->doing = "reading a source";
    TIDE_CLEANUP(tide_archive_stmt_done) struct sqlite3_stmt *stmt = NULL;
    TIDE_TRY(query_sources(archive, "WHERE id = ?1", id, &stmt, err));
    bool is_row = false;
    TIDE_TRY(tide_archive_step(archive, stmt, &is_row, err));
    if (!is_row) {
        return tide_fail(err, TIDE_INVALID,
                         "%s has no source %" PRId64 "; its catalogue lists those it has",
                         archive->path, id);
    }
    return read_source(archive, stmt, arena, ret_source, err);
}

tide_status tide_archive_series_read(struct tide_archive *archive, int64_t source, tide_str name,
                                     struct tide_archive_series_info *ret_info,
                                     struct tide_error *err)
{
    struct tide_archive_series_info info = {.source = source, .name = name};
    archive->doing = "reading the catalogue";
    TIDE_TRY(tide_archive_snapshot_begin(archive, err));
    TIDE_CLEANUP(tide_archive_snapshot_end_ptr) struct tide_archive *held = archive;
    TIDE_CLEANUP(tide_archive_stmt_done) struct sqlite3_stmt *sealed = NULL;
    TIDE_CLEANUP(tide_archive_stmt_done) struct sqlite3_stmt *live = NULL;
    bool is_row = false;
    TIDE_TRY(tide_archive_query(held, &sealed, err,
                                "SELECT " SEALED_COLUMNS " FROM segments "
                                "WHERE source_id = ?1 AND stream = ?2 GROUP BY source_id, stream",
                                "it", source, name));
    TIDE_TRY(tide_archive_step(held, sealed, &is_row, err));
    if (is_row) {
        TIDE_TRY(fill_sealed(held, sealed, &info, err));
    }
    TIDE_TRY(tide_archive_query(held, &live, err,
                                "SELECT " LIVE_COLUMNS " FROM wal WHERE source_id = ?1 AND "
                                "stream = ?2 AND " LIVE_RULE " GROUP BY source_id, stream",
                                "it", source, name));
    TIDE_TRY(tide_archive_step(held, live, &is_row, err));
    if (is_row) {
        TIDE_TRY(fill_live(held, live, &info, err));
    }
    *ret_info = info;
    return TIDE_OK;
}

tide_status tide_archive_newest_row(struct tide_archive *archive, int64_t source, bool *ret_is_any,
                                    int64_t *ret_ts, struct tide_error *err)
{
    /* A shadowed row is never newer than the segment that shadows it. */
    return tide_archive_ask(archive, err, ret_is_any, ret_ts,
                            "SELECT MAX(ts) FROM ("
                            "SELECT MAX(last_ts) AS ts FROM segments WHERE source_id = ?1 "
                            "UNION ALL SELECT MAX(ts) FROM wal WHERE source_id = ?1)",
                            "i", source);
}

tide_status tide_archive_held_read(struct tide_archive *archive, int64_t source, tide_str name,
                                   bool *ret_is_any, struct tide_buf *ret_bytes,
                                   struct tide_error *err)
{
    archive->doing = "reading what is held";
    bool has_table = false;
    TIDE_TRY(tide_archive_has_table(archive, TIDE_STR("tidemark_held"), &has_table, err));
    bool is_row = false;
    if (has_table) {
        TIDE_CLEANUP(tide_archive_stmt_done) struct sqlite3_stmt *stmt = NULL;
        TIDE_TRY(
            tide_archive_query(archive, &stmt, err,
                               "SELECT bytes FROM tidemark_held WHERE source_id = ?1 AND name = ?2",
                               "it", source, name));
        TIDE_TRY(tide_archive_step(archive, stmt, &is_row, err));
        if (is_row) {
            tide_buf_append_str(ret_bytes, tide_archive_column_bytes(stmt, 0));
        }
    }
    *ret_is_any = is_row;
    return TIDE_OK;
}

enum tide_archive_life tide_archive_pulse_look(struct tide_archive_pulse *pulse,
                                               const struct tide_archive_source *source,
                                               int64_t now_us)
{
    if (source->is_complete) {
        return TIDE_ARCHIVE_COMPLETE;
    }
    if (!source->has_heartbeat || source->heartbeat_interval_ns <= 0) {
        return TIDE_ARCHIVE_UNKNOWN;
    }
    if (!pulse->has_looked || pulse->heartbeat != source->heartbeat) {
        *pulse = (struct tide_archive_pulse){true, source->heartbeat, now_us};
        return TIDE_ARCHIVE_LIVE;
    }
    int64_t silent_us = now_us - pulse->changed_us;
    return silent_us / 3 >= source->heartbeat_interval_ns / 1000 ? TIDE_ARCHIVE_STOPPED
                                                                 : TIDE_ARCHIVE_LIVE;
}
