#include "archive/follow.h"

#include <inttypes.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "archive/follow_opened.h"
#include "archive/scan.h"
#include "archive/writer_state.h"
#include "base/uuid.h"

/* Groups and steps */

static bool is_open(const struct tide_archive_writer *writer)
{
    return sqlite3_get_autocommit(writer->archive->db) == 0;
}

static tide_status reload(struct tide_archive_writer *writer, struct tide_error *err)
{
    tide_archive_opened_free(writer);
    tide_map_reset(&writer->known);
    writer->has_known = false;
    for (size_t i = 0; i < writer->series_count; i++) {
        TIDE_TRY(tide_archive_series_reload(writer->series[i], err));
    }
    return TIDE_OK;
}

/*
 * Where something has failed, SQLite may have undone all of the group (a full disk does so), and
 * what is remembered of series is of what is not there. The file's version, too, is another one
 * then, though nobody else has written.
 */
static tide_status settle(struct tide_archive_writer *writer, struct tide_error *err)
{
    struct tide_archive *archive = writer->archive;
    if (!writer->has_failed || is_open(writer)) {
        return TIDE_OK;
    }
    TIDE_CLEANUP(tide_archive_rollback) struct tide_archive *open = archive;
    archive->has_data_version = false;
    TIDE_TRY(tide_archive_begin(open, err));
    TIDE_TRY(reload(writer, err));
    TIDE_TRY(tide_archive_commit(archive, err));
    writer->has_failed = false;
    return TIDE_OK;
}

static tide_status begin_group(struct tide_archive_writer *writer, struct tide_error *err)
{
    TIDE_TRY(settle(writer, err));
    return is_open(writer) ? TIDE_OK : tide_archive_begin(writer->archive, err);
}

tide_status tide_archive_group_begin(struct tide_archive_writer *writer, struct tide_error *err)
{
    TIDE_TRY(tide_archive_enter(writer, "following", err));
    return tide_archive_leave(writer, begin_group(writer, err), err);
}

static tide_status commit_group(struct tide_archive_writer *writer, struct tide_error *err)
{
    tide_archive_opened_free(writer);
    return is_open(writer) ? tide_archive_commit(writer->archive, err) : settle(writer, err);
}

tide_status tide_archive_group_commit(struct tide_archive_writer *writer, struct tide_error *err)
{
    TIDE_TRY(tide_archive_enter(writer, "following", err));
    return tide_archive_leave(writer, commit_group(writer, err), err);
}

tide_status tide_archive_step_begin(struct tide_archive_writer *writer, struct tide_error *err)
{
    TIDE_TRY(tide_archive_enter(writer, "following", err));
    return tide_archive_leave(writer, tide_archive_run(writer->archive, err, "SAVEPOINT step", ""),
                              err);
}

static tide_status end_step(struct tide_archive_writer *writer, struct tide_error *err)
{
    TIDE_TRY(tide_archive_opened_put_back(writer, err));
    return tide_archive_run(writer->archive, err, "RELEASE step", "");
}

tide_status tide_archive_step_end(struct tide_archive_writer *writer, struct tide_error *err)
{
    TIDE_TRY(tide_archive_enter(writer, "following", err));
    return tide_archive_leave(writer, end_step(writer, err), err);
}

/* Where the group is undone, too, what is remembered is read again before the next one. */
static tide_status undo(struct tide_archive_writer *writer, struct tide_error *err)
{
    writer->has_failed = true;
    if (!is_open(writer)) {
        return TIDE_OK;
    }
    TIDE_TRY(tide_archive_run(writer->archive, err, "ROLLBACK TO step", ""));
    TIDE_TRY(tide_archive_run(writer->archive, err, "RELEASE step", ""));
    return reload(writer, err);
}

tide_status tide_archive_step_undo(struct tide_archive_writer *writer, struct tide_error *err)
{
    TIDE_TRY(tide_archive_enter(writer, "following", err));
    return tide_archive_leave(writer, undo(writer, err), err);
}

static tide_status set_filling(struct tide_archive *archive, bool is_on, bool *ret_is_on,
                               struct tide_error *err)
{
    TIDE_CLEANUP(tide_archive_stmt_done) struct sqlite3_stmt *stmt = NULL;
    bool is_row = false;
    archive->has_data_version = false; /* it is another one by that, also where it fails */
    TIDE_TRY(tide_archive_query(
        archive, &stmt, err, is_on ? "PRAGMA journal_mode = DELETE" : "PRAGMA journal_mode = WAL",
        ""));
    tide_status status = tide_archive_step(archive, stmt, &is_row, err);
    if (status == TIDE_TIMEOUT) {
        return TIDE_OK;
    }
    TIDE_TRY(status);
    *ret_is_on = !tide_str_equal(tide_archive_column_bytes(stmt, 0), TIDE_STR("wal"));
    return TIDE_OK;
}

tide_status tide_archive_set_filling(struct tide_archive_writer *writer, bool is_on,
                                     bool *ret_is_on, struct tide_error *err)
{
    TIDE_TRY(tide_archive_enter(writer, "choosing how to write", err));
    return tide_archive_leave(writer, set_filling(writer->archive, is_on, ret_is_on, err), err);
}

/* Sources */

/* What tells a source from others: its uuid, or, without one, its labels and its anchor. */
struct source_key {
    char bytes[TIDE_UUID_LEN + 1];
    size_t size;
};

static struct source_key key_of(tide_str uuid, tide_str labels, int64_t anchor)
{
    struct source_key key = {.size = TIDE_UUID_LEN};
    if (tide_uuid_read(uuid, key.bytes)) {
        return key;
    }
    XXH128_hash_t digest = XXH3_128bits(labels.ptr, labels.len);
    memcpy(key.bytes, &digest, sizeof(digest));
    memcpy(key.bytes + sizeof(digest), &anchor, sizeof(anchor));
    key.size = sizeof(digest) + sizeof(anchor);
    return key;
}

static void note_known(struct tide_archive_writer *writer, const struct source_key *key, int64_t id)
{
    tide_map_put(&writer->known, tide_str_of(key->bytes, key->size), NULL)->number = (uint64_t)id;
}

/* All at once: a publisher may introduce thousands. Of those that are alike the first counts. */
static tide_status read_known(struct tide_archive_writer *writer, struct tide_error *err)
{
    struct tide_archive *archive = writer->archive;
    TIDE_CLEANUP(tide_archive_stmt_done) struct sqlite3_stmt *stmt = NULL;
    TIDE_TRY(tide_archive_query(archive, &stmt, err,
                                "SELECT id, uuid, labels, clock_anchor_wall_ns FROM sources "
                                "ORDER BY id DESC",
                                ""));
    for (;;) {
        bool is_row = false;
        TIDE_TRY(tide_archive_step(archive, stmt, &is_row, err));
        if (!is_row) {
            writer->has_known = true;
            return TIDE_OK;
        }
        struct source_key key =
            key_of(tide_archive_column_bytes(stmt, 1), tide_archive_column_bytes(stmt, 2),
                   sqlite3_column_int64(stmt, 3));
        note_known(writer, &key, sqlite3_column_int64(stmt, 0));
    }
}

static tide_status find_source(struct tide_archive_writer *writer, const struct source_key *key,
                               bool *ret_is_any, int64_t *ret_id, struct tide_error *err)
{
    if (!writer->has_known) {
        TIDE_TRY(read_known(writer, err));
    }
    const union tide_map_value *found =
        tide_map_get(&writer->known, tide_str_of(key->bytes, key->size));
    *ret_is_any = found != NULL;
    *ret_id = found == NULL ? 0 : (int64_t)found->number;
    return TIDE_OK;
}

static tide_status insert_source(struct tide_archive *archive,
                                 const struct tide_archive_copied_source *source, tide_str labels,
                                 tide_str metadata, int64_t *ret_id, struct tide_error *err)
{
    TIDE_TRY(tide_archive_run(
        archive, err,
        "INSERT INTO sources (labels, metadata, complete, clock_anchor_wall_ns, uuid) "
        "VALUES (?1, ?2, 0, ?3, nullif(?4, ''))",
        "ttit", labels, metadata, source->clock_anchor_wall_ns, source->uuid));
    *ret_id = sqlite3_last_insert_rowid(archive->db);
    return TIDE_OK;
}

static tide_status update_source(struct tide_archive *archive,
                                 const struct tide_archive_copied_source *source, tide_str labels,
                                 tide_str metadata, int64_t id, struct tide_error *err)
{
    return tide_archive_run(archive, err,
                            "UPDATE sources SET labels = ?1, metadata = ?2, "
                            "clock_anchor_wall_ns = ?3, complete = complete AND ?4 WHERE id = ?5",
                            "ttiii", labels, metadata, source->clock_anchor_wall_ns,
                            (int64_t)source->is_complete, id);
}

static tide_status fail_encoder(const struct tide_archive_writer *writer, const char *whose,
                                tide_str has, const char *other, tide_str wants,
                                struct tide_error *err)
{
    return tide_fail(err, TIDE_UNSUPPORTED,
                     "%s: %s has rows of the encoder %.*s, and %s of %.*s: follow it into another "
                     "archive, with the program that reads them",
                     writer->archive->path, whose, TIDE_STR_ARG(has), other, TIDE_STR_ARG(wants));
}

/* Either may name none. */
static tide_status check_encoder(struct tide_archive_writer *writer,
                                 const struct tide_archive_pairs *metadata, bool is_there,
                                 int64_t id, struct tide_error *err)
{
    const struct tide_archive_encoder *encoder = writer->options.encoder;
    tide_str key = TIDE_STR(TIDE_ARCHIVE_KEY_ENCODER);
    tide_str has = tide_archive_pairs_get(metadata, key);
    tide_str ours =
        tide_str_from(encoder == NULL || encoder->version == NULL ? "" : encoder->version);
    if (has.ptr != NULL && ours.len > 0 && !tide_str_equal(has, ours)) {
        return fail_encoder(writer, "the source that was sent", has, "we write those", ours, err);
    }
    if (!is_there || has.ptr == NULL) {
        return TIDE_OK;
    }
    TIDE_CLEANUP(tide_arena_done) struct tide_arena arena = {0};
    struct tide_archive_source there;
    TIDE_TRY(tide_archive_source_read(writer->archive, id, &arena, &there, err));
    tide_str was = tide_archive_pairs_get(&there.metadata, key);
    return was.ptr == NULL || tide_str_equal(was, has)
               ? TIDE_OK
               : fail_encoder(writer, "the source that was sent", has, "that in the archive", was,
                              err);
}

static tide_status copy_source(struct tide_archive_writer *writer,
                               const struct tide_archive_copied_source *source, int64_t *ret_id,
                               struct tide_error *err)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf labels_json = {0};
    TIDE_CLEANUP(tide_buf_done) struct tide_buf metadata_json = {0};
    struct tide_archive_pairs labels = source->labels;
    struct tide_archive_pairs metadata = source->metadata;
    int64_t id = 0;
    bool is_there = false;
    TIDE_TRY(tide_archive_check_pairs(&labels, false, err));
    TIDE_TRY(tide_archive_check_pairs(&metadata, false, err));
    tide_archive_pairs_write(&labels, &labels_json);
    tide_archive_pairs_write(&metadata, &metadata_json);
    struct source_key key =
        key_of(source->uuid, tide_buf_str(&labels_json), source->clock_anchor_wall_ns);
    TIDE_TRY(find_source(writer, &key, &is_there, &id, err));
    TIDE_TRY(check_encoder(writer, &metadata, is_there, id, err));
    TIDE_TRY(is_there ? update_source(writer->archive, source, tide_buf_str(&labels_json),
                                      tide_buf_str(&metadata_json), id, err)
                      : insert_source(writer->archive, source, tide_buf_str(&labels_json),
                                      tide_buf_str(&metadata_json), &id, err));
    note_known(writer, &key, id);
    tide_str encoder = tide_archive_pairs_get(&metadata, TIDE_STR(TIDE_ARCHIVE_KEY_ENCODER));
    tide_archive_remember_source(writer, &(struct tide_archive_open_source){
                                             .id = id,
                                             .label = tide_archive_label_of(&labels),
                                             .has_encoder = encoder.ptr != NULL,
                                         });
    *ret_id = id;
    return TIDE_OK;
}

tide_status tide_archive_copy_source(struct tide_archive_writer *writer,
                                     const struct tide_archive_copied_source *source,
                                     int64_t *ret_id, struct tide_error *err)
{
    TIDE_TRY(tide_archive_enter(writer, "following a source", err));
    return tide_archive_leave(writer, copy_source(writer, source, ret_id, err), err);
}

tide_status tide_archive_set_complete(struct tide_archive_writer *writer, int64_t id,
                                      bool is_complete, struct tide_error *err)
{
    TIDE_TRY(tide_archive_enter(writer, "ending a source", err));
    tide_status status =
        tide_archive_run(writer->archive, err, "UPDATE sources SET complete = ?2 WHERE id = ?1",
                         "ii", id, (int64_t)is_complete);
    return tide_archive_leave(writer, status, err);
}

/* Caller rows and clock offsets */

tide_status tide_archive_caller_row_newest(struct tide_archive_writer *writer, int64_t *ret_number,
                                           struct tide_error *err)
{
    bool is_any = false;
    *ret_number = INT64_MIN;
    TIDE_TRY(tide_archive_enter(writer, "following", err));
    return tide_archive_leave(writer,
                              tide_archive_ask(writer->archive, err, &is_any, ret_number,
                                               "SELECT MAX(rowid) FROM caller_rows", ""),
                              err);
}

tide_status tide_archive_caller_row_count(struct tide_archive_writer *writer, int64_t source,
                                          tide_str series,
                                          const struct tide_archive_caller_row *row, int64_t number,
                                          int64_t *ret_count, struct tide_error *err)
{
    bool is_any = false;
    TIDE_TRY(tide_archive_enter(writer, "following", err));
    tide_status status = tide_archive_ask(writer->archive, err, &is_any, ret_count,
                                          "SELECT COUNT(*) FROM caller_rows WHERE source_id = ?1 "
                                          "AND stream = ?2 AND ts = ?3 AND blob = ?4 AND "
                                          "rowid <= ?5",
                                          "itibi", source, series, row->ts, row->bytes, number);
    return tide_archive_leave(writer, status, err);
}

tide_status tide_archive_copy_caller_row(struct tide_archive_writer *writer, int64_t source,
                                         tide_str series, const struct tide_archive_caller_row *row,
                                         struct tide_error *err)
{
    TIDE_TRY(tide_archive_enter(writer, "following", err));
    tide_status status = tide_archive_run(
        writer->archive, err,
        "INSERT INTO caller_rows (source_id, stream, ts, blob) VALUES (?1, ?2, ?3, ?4)", "itib",
        source, series, row->ts, row->bytes);
    return tide_archive_leave(writer, status, err);
}

tide_status tide_archive_copy_offset(struct tide_archive_writer *writer, int64_t source, int64_t ts,
                                     int64_t offset_ns, struct tide_error *err)
{
    TIDE_TRY(tide_archive_enter(writer, "following", err));
    tide_status status = tide_archive_run(writer->archive, err,
                                          "INSERT OR IGNORE INTO clock_offsets (source_id, ts, "
                                          "offset_ns) VALUES (?1, ?2, ?3)",
                                          "iii", source, ts, offset_ns);
    return tide_archive_leave(writer, status, err);
}

/* Whose an archive is */

static tide_status has_held(struct tide_archive *archive, bool *ret_has, struct tide_error *err)
{
    int64_t count = 0;
    TIDE_TRY(tide_archive_has_table(archive, TIDE_STR("tidemark_held"), ret_has, err));
    return *ret_has ? tide_archive_ask(archive, err, ret_has, &count,
                                       "SELECT 1 FROM tidemark_held LIMIT 1", "")
                    : TIDE_OK;
}

static tide_status check_followable(struct tide_archive *archive, struct tide_error *err)
{
    bool is_any = false;
    int64_t id = 0;
    TIDE_TRY(has_held(archive, &is_any, err));
    if (is_any) {
        return tide_fail(err, TIDE_INVALID,
                         "%s is what a pipeline writes, or a copy of that; follow into a new file",
                         archive->path);
    }
    TIDE_TRY(tide_archive_ask(archive, err, &is_any, &id,
                              "SELECT id FROM sources WHERE complete = 0 AND heartbeat IS NOT NULL "
                              "ORDER BY id LIMIT 1",
                              ""));
    return !is_any ? TIDE_OK
                   : tide_fail(err, TIDE_INVALID,
                               "%s is written by another program, or has not been ended by it "
                               "(source %" PRId64 "); follow into a new file",
                               archive->path, id);
}

tide_status tide_archive_check_followable(struct tide_archive_writer *writer,
                                          struct tide_error *err)
{
    TIDE_TRY(tide_archive_enter(writer, "following", err));
    return tide_archive_leave(writer, check_followable(writer->archive, err), err);
}
