#include "archive/writer.h"

#include <sqlite3.h>
#include <stdlib.h>

#include "archive/follow_opened.h"
#include "archive/schema.h"
#include "archive/writer_state.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/limits.h"

#define BEAT_US         INT64_C(5000000)
#define CHECKPOINT_US   INT64_C(10000000)
#define GIVE_BACK_US    INT64_C(2000000)
#define GIVE_BACK_PAGES 100
#define FOLD_WAIT_MS    200

tide_status tide_archive_enter(struct tide_archive_writer *writer, const char *doing,
                               struct tide_error *err)
{
    tide_mutex_lock(&writer->mutex);
    if (writer->is_stopped) {
        *err = writer->stopped;
        tide_mutex_unlock(&writer->mutex);
        return err->status;
    }
    writer->archive->doing = doing;
    return TIDE_OK;
}

tide_status tide_archive_leave(struct tide_archive_writer *writer, tide_status status,
                               struct tide_error *err)
{
    writer->has_failed = writer->has_failed || status != TIDE_OK;
    if (status == TIDE_STALE || status == TIDE_CORRUPT) {
        writer->is_stopped = true;
        writer->stopped = *err;
    }
    tide_mutex_unlock(&writer->mutex);
    return status;
}

/* A kill between sealing and pruning leaves rows that nobody can read any more. */
static tide_status settle(const struct tide_archive_writer *writer, struct tide_error *err)
{
    struct tide_archive *archive = writer->archive;
    TIDE_CLEANUP(tide_archive_rollback) struct tide_archive *open = archive;
    TIDE_TRY(tide_archive_begin(open, err));
    TIDE_TRY(tide_archive_run(archive, err,
                              "DELETE FROM wal WHERE EXISTS (SELECT 1 FROM segments WHERE "
                              "segments.source_id = wal.source_id AND "
                              "segments.stream = wal.stream AND segments.last_ts >= wal.ts)",
                              ""));
    TIDE_TRY(tide_archive_allow_edits(archive, writer->options.allows_edits, err));
    return tide_archive_commit(archive, err);
}

static tide_status prepare(struct tide_archive_writer *writer, struct tide_error *err)
{
    struct tide_archive *archive = writer->archive;
    TIDE_TRY(tide_archive_schema_complete(archive, err));
    TIDE_TRY(settle(writer, err));
    int rc = sqlite3_prepare_v3(
        archive->db,
        "INSERT INTO wal (source_id, stream, ts, wall_offset, row) VALUES (?1, ?2, ?3, ?4, ?5)", -1,
        SQLITE_PREPARE_PERSISTENT, &writer->insert_row, NULL);
    return rc == SQLITE_OK ? TIDE_OK : tide_archive_fail(archive, rc, err);
}

tide_status tide_archive_writer_open(const char *path,
                                     const struct tide_archive_writer_options *options,
                                     struct tide_archive_writer **ret_writer,
                                     struct tide_error *err)
{
    TIDE_CLEANUP(tide_archive_writer_close_ptr)
    struct tide_archive_writer *writer = tide_alloc(1, sizeof(*writer));
    TIDE_ASSERT(pthread_mutex_init(&writer->mutex, NULL) == 0);
    writer->options = *options;
    if (writer->options.heartbeat_us <= 0) {
        writer->options.heartbeat_us = BEAT_US;
    }
    if (writer->options.checkpoint_us <= 0) {
        writer->options.checkpoint_us = CHECKPOINT_US;
    }
    TIDE_TRY(tide_archive_open(path, TIDE_ARCHIVE_WRITE, &writer->archive, err));
    TIDE_TRY(prepare(writer, err));
    writer->next_beat_us = tide_clock_deadline_us(writer->options.heartbeat_us);
    writer->next_checkpoint_us = tide_clock_deadline_us(writer->options.checkpoint_us);
    if (options->has_keeper) {
        tide_archive_keeper_start(writer);
    }
    *ret_writer = writer;
    writer = NULL;
    return TIDE_OK;
}

/* After a clean end the file is left as small as can be. */
static void give_back(struct tide_archive_writer *writer)
{
    bool is_clean = writer->source_count > 0 && !writer->is_stopped;
    for (size_t i = 0; i < writer->source_count; i++) {
        is_clean = is_clean && writer->sources[i]->is_finalized;
    }
    if (is_clean) {
        struct tide_error ignored;
        (void)tide_archive_give_back(writer->archive, GIVE_BACK_PAGES,
                                     tide_clock_deadline_us(GIVE_BACK_US), &ignored);
    }
}

/* Also where readers have the archive open: then nobody does it when we have gone, since they do
 * not write. What one of them still reads stays in the log. A writer that has written nothing
 * leaves it to another, who would take it for a change. */
static void fold_log(const struct tide_archive_writer *writer)
{
    if (writer->source_count > 0) {
        sqlite3 *db = writer->archive->db;
        (void)sqlite3_busy_timeout(db, FOLD_WAIT_MS);
        (void)sqlite3_wal_checkpoint_v2(db, "main", SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    }
}

static void free_parts(struct tide_archive_writer *writer)
{
    for (size_t i = 0; i < writer->series_count; i++) {
        tide_archive_free_series(writer->series[i]);
    }
    for (size_t i = 0; i < writer->source_count; i++) {
        free(writer->sources[i]->label);
        free(writer->sources[i]);
    }
    free(writer->series);
    free(writer->sources);
    tide_map_done(&writer->by_name);
    tide_map_done(&writer->source_by_id);
    tide_map_done(&writer->known);
}

void tide_archive_writer_close(struct tide_archive_writer *writer)
{
    if (writer == NULL) {
        return;
    }
    tide_archive_keeper_stop(writer);
    if (writer->archive != NULL) {
        give_back(writer);
        fold_log(writer);
    }
    tide_archive_stmt_done(&writer->insert_row);
    tide_archive_stmt_done(&writer->insert_rows);
    tide_archive_stmt_done(&writer->copy_row);
    tide_archive_opened_free(writer);
    tide_archive_close(writer->archive);
    free_parts(writer);
    TIDE_ASSERT(pthread_mutex_destroy(&writer->mutex) == 0);
    free(writer);
}

void tide_archive_writer_close_ptr(struct tide_archive_writer **writer)
{
    tide_archive_writer_close(*writer);
    *writer = NULL;
}

tide_status tide_archive_writer_held(struct tide_archive_writer *writer, int64_t source,
                                     tide_str name, bool *ret_is_any, struct tide_buf *ret_bytes,
                                     struct tide_error *err)
{
    TIDE_TRY(tide_archive_enter(writer, "reading what is held", err));
    tide_status status =
        tide_archive_held_read(writer->archive, source, name, ret_is_any, ret_bytes, err);
    return tide_archive_leave(writer, status, err);
}

tide_status tide_archive_writer_catalogue(struct tide_archive_writer *writer,
                                          struct tide_arena *arena,
                                          struct tide_archive_catalogue *ret_catalogue,
                                          struct tide_error *err)
{
    TIDE_TRY(tide_archive_enter(writer, "reading the catalogue", err));
    tide_status status = tide_archive_catalogue_read(writer->archive, arena, ret_catalogue, err);
    return tide_archive_leave(writer, status, err);
}
