#include "source/sqlite/sqlite_source.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "source/sqlite/sqlite_check.h"
#include "source/sqlite/sqlite_chunk.h"
#include "source/sqlite/sqlite_db.h"
#include "source/sqlite/sqlite_estimate.h"
#include "source/sqlite/sqlite_installed.h"
#include "source/sqlite/sqlite_source_parts.h"

#include <stdlib.h>
#include <unistd.h>

#define OPEN_BUSY_MS 20000
#define MEND_BUSY_MS 200 /* the same, while following */
#define POLL_US_MIN  10000
#define POLL_US_MAX  50000

/* Opening */

/* "shop" of "/srv/shop.db". */
static tide_str file_stem(tide_str path)
{
    size_t start = path.len;
    while (start > 0 && path.ptr[start - 1] != '/') {
        start--;
    }
    tide_str name = tide_str_of(path.ptr + start, path.len - start);
    for (size_t i = name.len; i > 1; i--) {
        if (name.ptr[i - 1] == '.') {
            return tide_str_of(name.ptr, i - 1);
        }
    }
    return name;
}

static void copy_options(struct tide_source *source, const struct tide_source_options *options)
{
    struct tide_arena *arena = &source->arena;
    tide_str *globs = tide_arena_alloc(arena, options->glob_count, sizeof(*globs));
    for (size_t i = 0; i < options->glob_count; i++) {
        globs[i] = tide_arena_str(arena, options->globs[i]);
    }
    bool is_named = options->connection.len > 0;
    source->options = (struct tide_source_options){
        .place = tide_arena_str(arena, options->place),
        .connection =
            tide_arena_str(arena, is_named ? options->connection : file_stem(options->place)),
        .pipeline = tide_arena_str(arena, options->pipeline),
        .globs = globs,
        .glob_count = options->glob_count,
        .waker = options->waker,
    };
    source->path = tide_arena_cstr(arena, options->place);
    source->choice = (struct tide_sqlite_choice){
        .pipeline = source->options.pipeline,
        .connection = source->options.connection,
        .globs = globs,
        .glob_count = options->glob_count,
    };
}

/* The id that the first installation wrote. Before that, where the log was emptied, or where it is
 * damaged (prepare will say so, detach must work): the one that an installation is going to write.
 */
static tide_status read_source_id(sqlite3 *db, char ret_id[TIDE_SQLITE_HEX_LEN + 1],
                                  struct tide_error *err)
{
    static const char sql[] = "SELECT v FROM main.\"" TIDE_SQLITE_STATE "\" WHERE k = 'source_id'"
                              " AND EXISTS (SELECT 1 FROM main.\"" TIDE_SQLITE_LOG "\")";
    TIDE_CLEANUP(tide_sqlite_stmt_done) sqlite3_stmt *stmt = NULL;
    bool has_row = false;
    tide_status status = tide_sqlite_prepare(db, TIDE_STR(sql), &stmt, err);
    if (status == TIDE_OK) {
        TIDE_TRY(tide_sqlite_step(stmt, &has_row, err));
    } else if (sqlite3_errcode(db) != SQLITE_ERROR) { /* else there is no such table */
        return status;
    }
    tide_str id = has_row ? tide_sqlite_column_str(stmt, 0) : TIDE_STR("");
    if (id.len != TIDE_SQLITE_HEX_LEN) {
        tide_sqlite_nonce_make(ret_id);
        return TIDE_OK;
    }
    memcpy(ret_id, id.ptr, id.len);
    ret_id[id.len] = '\0';
    return TIDE_OK;
}

/* The connection's name is the first part of every table's name in the frames. */
static tide_status require_text(const struct tide_source *source, struct tide_error *err)
{
    return tide_str_is_utf8(source->options.connection)
               ? TIDE_OK
               : tide_fail(err, TIDE_INVALID,
                           "the file's name, which frames carry, is not valid UTF-8; rename the "
                           "file, or make a link to it");
}

static void sqlite_close(struct tide_source *source);

void tide_sqlite_be_patient(struct tide_source *source, int wait_ms)
{
    source->patience = (struct tide_sqlite_patience){wait_ms, source->options.waker};
    tide_sqlite_set_interruptible(source->db, &source->patience);
}

tide_status tide_sqlite_note_called_off(const struct tide_source *source, tide_status status,
                                        struct tide_error *err)
{
    const struct tide_waker *waker = source->options.waker;
    if (status != TIDE_TIMEOUT || waker == NULL || !tide_waker_look(waker, 0)) {
        return status;
    }
    struct tide_error why = *err;
    return tide_fail(err, TIDE_CANCELLED, "%s", why.message);
}

static tide_status sqlite_valid(tide_str place, struct tide_error *err)
{
    return place.len > 0 && memchr(place.ptr, 0, place.len) == NULL
               ? TIDE_OK
               : tide_fail(err, TIDE_INVALID, "no path of a SQLite database was given");
}

static tide_status sqlite_open(const struct tide_source_options *options,
                               struct tide_source **ret_source, struct tide_error *err)
{
    TIDE_TRY(sqlite_valid(options->place, err));
    struct tide_source *source = tide_alloc(1, sizeof(*source));
    copy_options(source, options);
    tide_status status = require_text(source, err);
    if (status == TIDE_OK) {
        source->patience = (struct tide_sqlite_patience){OPEN_BUSY_MS, options->waker};
        status = tide_sqlite_db_open_best(source->path, &source->patience, &source->db, err);
    }
    if (status == TIDE_OK) {
        tide_sqlite_files_open(&source->files, source->db);
        status = read_source_id(source->db, source->source_id, err);
    }
    if (status != TIDE_OK) {
        status = tide_sqlite_note_called_off(source, status, err);
        sqlite_close(source);
        return status;
    }
    *ret_source = source;
    return TIDE_OK;
}

static void stop_following(struct tide_source *source)
{
    tide_sqlite_log_free(source->log);
    source->log = NULL;
}

void tide_sqlite_forget_installation(struct tide_source *source)
{
    stop_following(source);
    tide_sqlite_watch_free(source->watch);
    source->watch = NULL;
    source->is_prepared = false;
}

static void sqlite_close(struct tide_source *source)
{
    if (source == NULL) {
        return;
    }
    tide_sqlite_forget_installation(source);
    tide_sqlite_tables_done(&source->tables);
    tide_sqlite_tables_done(&source->left);
    tide_sqlite_kept_done(&source->kept);
    free(source->relations);
    tide_sqlite_files_close(&source->files);
    tide_arena_done(&source->arena);
    free(source);
}

static void sqlite_identity(const struct tide_source *source, struct tide_buf *buf)
{
    tide_buf_append_char(buf, '"');
    tide_buf_append_str(buf, tide_str_from(source->source_id));
    tide_buf_append_char(buf, '"');
}

/* With links followed, from the root. */
static void sqlite_location(const struct tide_source *source, struct tide_buf *buf)
{
    tide_buf_append_str(buf, TIDE_STR("sqlite:"));
    tide_buf_append_str(buf, tide_str_from(sqlite3_db_filename(source->db, "main")));
}

/* Looking */

void tide_sqlite_end_read(struct tide_source *source)
{
    (void)sqlite3_exec(source->db, "COMMIT", NULL, NULL, NULL); /* of a read: cannot fail */
}

/* Where our pipeline is at work, what a glob has matched may be gone by now. */
static tide_status may_miss_tables(struct tide_source *source, bool *ret_may,
                                   struct tide_error *err)
{
    TIDE_CLEANUP(tide_arena_done) struct tide_arena arena = {0};
    struct tide_sqlite_pipeline row;
    TIDE_TRY(tide_sqlite_is_installed(source->db, ret_may, err));
    if (*ret_may) {
        TIDE_TRY(tide_sqlite_pipeline_find(source->db, source->options.pipeline, &arena, ret_may,
                                           &row, err));
    }
    return TIDE_OK;
}

static tide_status read_chosen(struct tide_source *source, struct tide_sqlite_tables *ret_tables,
                               struct tide_error *err)
{
    const struct tide_source_options *options = &source->options;
    bool may_miss = false;
    TIDE_TRY(may_miss_tables(source, &may_miss, err));
    if (!may_miss) {
        return tide_sqlite_tables_read(source->db, options->connection, options->globs,
                                       options->glob_count, ret_tables, err);
    }
    TIDE_TRY(tide_sqlite_tables_read(source->db, options->connection, NULL, 0, ret_tables, err));
    tide_sqlite_tables_choose(ret_tables, options->globs, options->glob_count);
    return TIDE_OK;
}

static tide_status read_tables(struct tide_source *source, struct tide_error *err)
{
    struct tide_sqlite_tables tables = {0};
    tide_sqlite_be_patient(source, OPEN_BUSY_MS);
    TIDE_TRY(tide_sqlite_exec(source->db, "BEGIN", err));
    tide_status status = read_chosen(source, &tables, err);
    tide_sqlite_end_read(source);
    TIDE_TRY(tide_sqlite_note_called_off(source, status, err));
    tide_sqlite_tables_done(&source->tables);
    source->tables = tables;
    return TIDE_OK;
}

static tide_status sqlite_tables(struct tide_source *source,
                                 const struct tide_relation *const **ret_tables, size_t *ret_count,
                                 struct tide_error *err)
{
    if (!source->is_prepared) {
        TIDE_TRY(read_tables(source, err));
    }
    free(source->relations);
    source->relations = tide_alloc(source->tables.count, sizeof(*source->relations));
    size_t count = 0;
    for (size_t i = 0; i < source->tables.count; i++) {
        if (source->tables.items[i]->relation != NULL) {
            source->relations[count++] = source->tables.items[i]->relation;
        }
    }
    *ret_tables = source->relations;
    *ret_count = count;
    return TIDE_OK;
}

static uint64_t sqlite_estimate_rows(struct tide_source *source)
{
    return tide_sqlite_estimate_rows(source->db, &source->tables);
}

static tide_status sqlite_check(struct tide_source *source, struct tide_findings *findings,
                                struct tide_error *err)
{
    tide_sqlite_be_patient(source, OPEN_BUSY_MS);
    return tide_sqlite_check(source->db, source->path, &source->options, findings, err);
}

/* Following */

static tide_status sqlite_stream(struct tide_source *source, struct tide_position position,
                                 struct tide_error *err)
{
    TIDE_ASSERT(source->is_prepared);
    stop_following(source);
    tide_sqlite_set_patience(source->db, TIDE_SQLITE_LOG_PATIENCE_MS);
    source->poll_us = POLL_US_MIN;
    struct tide_sqlite_log_scope scope = {
        .choice = &source->choice,
        .tables = &source->tables,
        .kept = &source->kept,
        .watch = source->watch,
        .trail = &source->trail,
    };
    return tide_sqlite_log_new(source->db, &scope, &tide_sqlite_log_limits, (int64_t)position.lo,
                               &source->log, err);
}

void tide_sqlite_known_nonces(const struct tide_source *source, tide_str *ret_known)
{
    for (size_t i = 0; i < TIDE_SQLITE_NONCES_NOW; i++) {
        ret_known[i] = tide_str_from(source->nonces.text[i]);
    }
}

/* Whether what is open is what the path names. */
static tide_status look_at_files(struct tide_source *source, struct tide_error *err)
{
    TIDE_TRY(tide_sqlite_watch_file(source->watch, err));
    return tide_sqlite_files_check(&source->files, err);
}

/* What was read is handed out only if the files have been ours until then. */
static tide_status read_ours(struct tide_source *source, bool *ret_has_moved,
                             struct tide_error *err)
{
    tide_str known[TIDE_SQLITE_NONCES_NOW];
    tide_sqlite_known_nonces(source, known);
    TIDE_TRY(look_at_files(source, err));
    struct tide_error read_err = {0};
    tide_status status =
        tide_sqlite_log_read(source->log, known, TIDE_SQLITE_NONCES_NOW, ret_has_moved, &read_err);
    TIDE_TRY(look_at_files(source, err));
    *err = read_err;
    return status;
}

static tide_status read_log(struct tide_source *source, struct tide_error *err)
{
    bool has_moved = false;
    tide_status status = read_ours(source, &has_moved, err);
    if (status == TIDE_OK && has_moved) {
        tide_sqlite_set_patience(source->db, MEND_BUSY_MS);
        status = tide_sqlite_mend_source(source, err);
        tide_sqlite_set_patience(source->db, TIDE_SQLITE_LOG_PATIENCE_MS);
    }
    if (status != TIDE_OK && status != TIDE_TIMEOUT) {
        stop_following(source);
    }
    return status;
}

/* Waits for the next look; false: the deadline passed or somebody woke us. */
static bool wait_for_look(struct tide_source *source, struct tide_waker *waker, int64_t deadline_us)
{
    int64_t look_us = tide_clock_deadline_us(source->poll_us);
    int64_t until_us = look_us < deadline_us ? look_us : deadline_us;
    source->poll_us = source->poll_us * 2 < POLL_US_MAX ? source->poll_us * 2 : POLL_US_MAX;
    if (waker != NULL) {
        return !tide_waker_wait(waker, until_us) && until_us == look_us;
    }
    int64_t left_us = until_us - tide_clock_monotonic_us();
    if (left_us > 0) {
        (void)usleep((useconds_t)left_us);
    }
    return until_us == look_us;
}

static tide_status sqlite_next(struct tide_source *source, struct tide_arena *arena,
                               struct tide_waker *waker, int64_t deadline_us,
                               struct tide_event *ret_event, struct tide_error *err)
{
    for (;;) {
        if (source->log == NULL) {
            return tide_fail_retriable(err, TIDE_IO, "%s: following has not been started",
                                       source->path);
        }
        if (tide_sqlite_log_take(source->log, arena, ret_event)) {
            return TIDE_OK;
        }
        tide_status status = read_log(source, err);
        if (status == TIDE_OK || err->retriable) { /* retriable: locked, there may be more soon */
            source->poll_us = POLL_US_MIN;
        }
        if (status == TIDE_OK) {
            continue;
        }
        if (status != TIDE_TIMEOUT || tide_clock_monotonic_us() >= deadline_us ||
            !wait_for_look(source, waker, deadline_us)) {
            return status;
        }
    }
}

static void sqlite_state(struct tide_source *source, struct tide_buf *buf)
{
    TIDE_ASSERT(source->is_prepared);
    tide_sqlite_nonces_save(&source->nonces, &source->trail, source->source_id, buf);
}

static tide_status sqlite_confirm(struct tide_source *source, struct tide_position position,
                                  struct tide_error *err)
{
    TIDE_ASSERT(source->is_prepared);
    if ((int64_t)position.lo > source->trail.confirmed) {
        source->trail.confirmed = (int64_t)position.lo; /* also when it is put off half way */
    }
    return tide_sqlite_confirm(&source->confirm, source->db, source->watch,
                               source->options.pipeline, &source->nonces, (int64_t)position.lo,
                               err);
}

/* Asked of the log itself: while lanes are full nobody reads it. Its ids are dense enough. */
static uint64_t sqlite_retained_bytes(struct tide_source *source)
{
    struct tide_error err;
    int64_t last = 0;
    if (source->log == NULL || tide_sqlite_log_last(source->db, &last, &err) != TIDE_OK) {
        return 0;
    }
    int64_t entries = last - source->confirm.confirmed;
    return entries <= 0 ? 0 : (uint64_t)entries * tide_sqlite_log_entry_size(source->log);
}

static tide_status sqlite_detach(struct tide_source *source, struct tide_findings *findings,
                                 struct tide_error *err)
{
    tide_sqlite_forget_installation(source);
    tide_sqlite_set_patience(source->db, TIDE_SQLITE_CHANGE_BUSY_MS);
    return tide_sqlite_uninstall(source->db, source->options.pipeline, findings, err);
}

/* Chunks */

static tide_status sqlite_reader_open(struct tide_source *source,
                                      struct tide_chunk_reader **ret_reader, struct tide_error *err)
{
    return tide_sqlite_chunk_reader_open(source->path, source->options.connection, ret_reader, err);
}

/* Nothing to remember: a chunk and the log's end are read in one transaction. */
static tide_status sqlite_reader_remember(struct tide_chunk_reader *reader,
                                          const struct tide_relation *relation,
                                          struct tide_error *err)
{
    (void)reader;
    (void)relation;
    (void)err;
    return TIDE_OK;
}

const struct tide_source_ops tide_sqlite_source_ops = {
    .scheme = "sqlite",
    .position_kind = &tide_position_integer,
    .valid = sqlite_valid,
    .open = sqlite_open,
    .close = sqlite_close,
    .identity = sqlite_identity,
    .location = sqlite_location,
    .tables = sqlite_tables,
    .estimate_rows = sqlite_estimate_rows,
    .check = sqlite_check,
    .prepare = tide_sqlite_prepare_source,
    .check_saved = tide_sqlite_check_saved,
    .stream = sqlite_stream,
    .next = sqlite_next,
    .state = sqlite_state,
    .confirm = sqlite_confirm,
    .retained_bytes = sqlite_retained_bytes,
    .detach = sqlite_detach,
    .reader_open = sqlite_reader_open,
    .reader_close = tide_sqlite_chunk_reader_close,
    .reader_remember = sqlite_reader_remember,
    .reader_read = tide_sqlite_chunk_read,
    .reader_cancel = tide_sqlite_chunk_cancel,
};
