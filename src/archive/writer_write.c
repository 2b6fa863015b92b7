/* Writing a tick: everything of it, or nothing. */
#include <inttypes.h>
#include <sqlite3.h>

#include "archive/writer_state.h"

/* The newest time that rows of a series must be behind. */
static bool newest_of(const struct tide_archive_series *series, int64_t *ret_ts)
{
    const struct tide_archive_open_source *source = series->source;
    *ret_ts = series->state.newest_ts;
    if (source->has_floor && (!series->state.has_newest || source->floor > *ret_ts)) {
        *ret_ts = source->floor;
        return true;
    }
    return series->state.has_newest;
}

static tide_status plan_row(struct tide_archive_row *row, uint64_t round, struct tide_error *err)
{
    struct tide_archive_series *series = row->series;
    int64_t moved = 0;
    if (series->round != round) {
        series->round = round;
        series->has_planned = newest_of(series, &series->planned);
    }
    if (series->has_planned && row->ts <= series->planned) {
        /* Later by `moved`, and the wall clock is as much less behind: it stays what it was. */
        if (series->planned == INT64_MAX ||
            __builtin_sub_overflow(series->planned + 1, row->ts, &moved) ||
            __builtin_sub_overflow(row->wall_offset, moved, &row->wall_offset)) {
            return tide_fail(err, TIDE_INVALID,
                             "%s: the series %.*s has a row at %" PRId64
                             ", and no later time can be given to the next",
                             series->writer->archive->path, TIDE_STR_ARG(series->name),
                             series->planned);
        }
        row->ts = series->planned + 1;
    }
    series->has_planned = true;
    series->planned = row->ts;
    return TIDE_OK;
}

tide_status tide_archive_row_times(struct tide_archive_row *rows, size_t count,
                                   struct tide_error *err)
{
    if (count == 0) {
        return TIDE_OK;
    }
    tide_status status = TIDE_OK;
    struct tide_archive_writer *writer = rows[0].series->writer;
    uint64_t round = ++writer->round;
    tide_mutex_lock(&writer->mutex); /* retention may be at work beside who writes */
    for (size_t i = 0; i < count && status == TIDE_OK; i++) {
        status = plan_row(&rows[i], round, err);
    }
    tide_mutex_unlock(&writer->mutex);
    return status;
}

static tide_status fail_row(const struct tide_archive_row *row, const char *why, int64_t bound,
                            struct tide_error *err)
{
    return tide_fail(err, TIDE_INVALID,
                     "%s: writing: a row of %.*s has the time %" PRId64 ", %s %" PRId64
                     "; nothing of the call has been written",
                     row->series->writer->archive->path, TIDE_STR_ARG(row->series->name), row->ts,
                     why, bound);
}

static tide_status check_row(const struct tide_archive_writer *writer,
                             const struct tide_archive_row *row, struct tide_error *err)
{
    const struct tide_archive_series *series = row->series;
    TIDE_ASSERT(series->writer == writer);
    if (series->source->is_finalized) {
        return tide_fail(err, TIDE_INVALID,
                         "%s: writing: source %" PRId64 " is finalized; resume it to write on",
                         writer->archive->path, series->source->id);
    }
    if (series->state.is_sealed && row->ts <= series->state.sealed_to) {
        return fail_row(row, "and the series is sealed to", series->state.sealed_to, err);
    }
    if (series->has_forgotten && row->ts < series->forgotten_before) {
        return fail_row(row, "and what was there is forgotten before", series->forgotten_before,
                        err);
    }
    if (series->source->has_floor && row->ts <= series->source->floor) {
        return fail_row(row, "and its source was gone on with behind", series->source->floor, err);
    }
    return tide_archive_check_size(writer->archive, "a row", row->bytes.len, err);
}

static void bind_row(struct sqlite3_stmt *stmt, size_t number, const struct tide_archive_row *row)
{
    tide_archive_bind_from(stmt, (int)(number * 5 + 1), "itiib", row->series->source->id,
                           row->series->name, row->ts, row->wall_offset, row->bytes);
}

/* `ret_is_taken`: it failed since a time is taken. */
static tide_status run_insert(struct tide_archive_writer *writer, struct sqlite3_stmt *stmt,
                              bool *ret_is_taken, struct tide_error *err)
{
    bool is_row = false;
    tide_status status = tide_archive_step(writer->archive, stmt, &is_row, err);
    int rc = sqlite3_reset(stmt);
    int code = status == TIDE_OK ? rc : sqlite3_extended_errcode(writer->archive->db);
    *ret_is_taken = status != TIDE_OK &&
                    (code == SQLITE_CONSTRAINT_PRIMARYKEY || code == SQLITE_CONSTRAINT_UNIQUE);
    return status;
}

static tide_status insert_row(struct tide_archive_writer *writer,
                              const struct tide_archive_row *row, struct tide_error *err)
{
    bool is_taken = false;
    bind_row(writer->insert_row, 0, row);
    tide_status status = run_insert(writer, writer->insert_row, &is_taken, err);
    return is_taken ? fail_row(row, "where the series has a row already:", row->ts, err) : status;
}

static tide_status prepare_rows(struct tide_archive_writer *writer, struct tide_error *err)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf sql = {0};
    if (writer->insert_rows != NULL) {
        return TIDE_OK;
    }
    tide_buf_append_str(
        &sql, TIDE_STR("INSERT INTO wal (source_id, stream, ts, wall_offset, row) VALUES "));
    for (size_t i = 0; i < TIDE_ARCHIVE_ROWS_AT_ONCE; i++) {
        tide_buf_append_str(&sql, i == 0 ? TIDE_STR("(?,?,?,?,?)") : TIDE_STR(",(?,?,?,?,?)"));
    }
    int rc = sqlite3_prepare_v3(writer->archive->db, tide_buf_cstr(&sql), -1,
                                SQLITE_PREPARE_PERSISTENT, &writer->insert_rows, NULL);
    return rc == SQLITE_OK ? TIDE_OK : tide_archive_fail(writer->archive, rc, err);
}

/* As many as one statement takes. Where a time is taken none of them is in, and the caller inserts
 * them one by one, to find which it is. */
static tide_status insert_at_once(struct tide_archive_writer *writer,
                                  const struct tide_archive_row *rows, bool *ret_is_taken,
                                  struct tide_error *err)
{
    TIDE_TRY(prepare_rows(writer, err));
    for (size_t i = 0; i < TIDE_ARCHIVE_ROWS_AT_ONCE; i++) {
        bind_row(writer->insert_rows, i, &rows[i]);
    }
    tide_status status = run_insert(writer, writer->insert_rows, ret_is_taken, err);
    (void)sqlite3_clear_bindings(writer->insert_rows); /* what was bound is the caller's */
    return *ret_is_taken ? TIDE_OK : status;
}

static tide_status insert_rows(struct tide_archive_writer *writer,
                               const struct tide_archive_tick *tick, struct tide_error *err)
{
    tide_status status = TIDE_OK;
    bool is_taken = false;
    size_t at = 0;
    while (tick->row_count - at >= TIDE_ARCHIVE_ROWS_AT_ONCE && !is_taken) {
        TIDE_TRY(insert_at_once(writer, &tick->rows[at], &is_taken, err));
        at += is_taken ? 0 : TIDE_ARCHIVE_ROWS_AT_ONCE;
    }
    for (; at < tick->row_count && status == TIDE_OK; at++) {
        status = insert_row(writer, &tick->rows[at], err);
    }
    (void)sqlite3_clear_bindings(writer->insert_row); /* likewise */
    return status;
}

static tide_status insert_notes(struct tide_archive_writer *writer,
                                const struct tide_archive_tick *tick, struct tide_error *err)
{
    for (size_t i = 0; i < tick->note_count; i++) {
        const struct tide_archive_note *note = &tick->notes[i];
        TIDE_ASSERT(note->series->writer == writer);
        TIDE_TRY(tide_archive_check_size(writer->archive, "a caller row", note->bytes.len, err));
        TIDE_TRY(tide_archive_run(
            writer->archive, err,
            "INSERT INTO caller_rows (source_id, stream, ts, blob) VALUES (?1, ?2, ?3, ?4)", "itib",
            note->series->source->id, note->series->name, note->ts, note->bytes));
    }
    return TIDE_OK;
}

static tide_status put_held(struct tide_archive_writer *writer,
                            const struct tide_archive_tick *tick, struct tide_error *err)
{
    if (tick->held_count > 0 && !writer->has_held_table) {
        TIDE_TRY(tide_archive_run(
            writer->archive, err,
            "CREATE TABLE IF NOT EXISTS tidemark_held (source_id INTEGER NOT NULL REFERENCES "
            "sources(id), name TEXT NOT NULL, bytes BLOB NOT NULL, PRIMARY KEY (source_id, name))",
            ""));
    }
    for (size_t i = 0; i < tick->held_count; i++) {
        const struct tide_archive_held *held = &tick->held[i];
        TIDE_TRY(tide_archive_check_size(writer->archive, "what is held", held->bytes.len, err));
        TIDE_TRY(tide_archive_run(
            writer->archive, err,
            "INSERT INTO tidemark_held (source_id, name, bytes) VALUES (?1, ?2, ?3) "
            "ON CONFLICT (source_id, name) DO UPDATE SET bytes = excluded.bytes",
            "itb", held->source, held->name, held->bytes));
    }
    return TIDE_OK;
}

void tide_archive_note_row(struct tide_archive_series *series, int64_t ts, size_t size)
{
    struct tide_archive_series_state *state = &series->state;
    if (state->live_rows == 0 || ts < state->oldest_live_ts) {
        state->oldest_live_ts = ts;
    }
    if (!state->has_newest || ts > state->newest_ts) {
        state->newest_ts = ts;
    }
    state->has_newest = true;
    state->live_rows++;
    state->live_bytes += (int64_t)size;
}

static tide_status write_tick(struct tide_archive_writer *writer,
                              const struct tide_archive_tick *tick, struct tide_error *err)
{
    if (tick->row_count == 0 && tick->note_count == 0 && tick->held_count == 0) {
        return TIDE_OK;
    }
    for (size_t i = 0; i < tick->row_count; i++) {
        TIDE_TRY(check_row(writer, &tick->rows[i], err));
    }
    TIDE_CLEANUP(tide_archive_rollback) struct tide_archive *open = writer->archive;
    TIDE_TRY(tide_archive_begin(open, err));
    TIDE_TRY(insert_rows(writer, tick, err));
    TIDE_TRY(insert_notes(writer, tick, err));
    TIDE_TRY(put_held(writer, tick, err));
    TIDE_TRY(tide_archive_commit(writer->archive, err));
    writer->has_held_table = writer->has_held_table || tick->held_count > 0;
    for (size_t i = 0; i < tick->row_count; i++) {
        const struct tide_archive_row *row = &tick->rows[i];
        tide_archive_note_row(row->series, row->ts, row->bytes.len);
    }
    return TIDE_OK;
}

tide_status tide_archive_write(struct tide_archive_writer *writer,
                               const struct tide_archive_tick *tick, struct tide_error *err)
{
    TIDE_TRY(tide_archive_enter(writer, "writing", err));
    return tide_archive_leave(writer, write_tick(writer, tick, err), err);
}
