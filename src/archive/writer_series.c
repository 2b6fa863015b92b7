/* Handles of series: what the writer knows of each without asking the file. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "archive/writer_state.h"
#include "base/alloc.h"
#include "base/limits.h"

static tide_status read_sealed(struct tide_archive_series *series, struct tide_error *err)
{
    struct tide_archive *archive = series->writer->archive;
    struct tide_archive_series_state *state = &series->state;
    int64_t seq = 0;
    TIDE_TRY(
        tide_archive_ask(archive, err, &state->is_sealed, &state->sealed_to,
                         "SELECT MAX(last_ts) FROM segments WHERE source_id = ?1 AND stream = ?2",
                         "it", series->source->id, series->name));
    TIDE_TRY(tide_archive_ask(archive, err, &state->is_sealed, &seq,
                              "SELECT MAX(seq) FROM segments WHERE source_id = ?1 AND stream = ?2",
                              "it", series->source->id, series->name));
    if (state->is_sealed && seq == INT64_MAX) {
        return tide_archive_corrupt(archive, "a segment has the last possible number", err);
    }
    state->next_seq = state->is_sealed ? seq + 1 : 0;
    state->has_newest = state->is_sealed;
    state->newest_ts = state->sealed_to;
    return TIDE_OK;
}

static tide_status read_live(struct tide_archive_series *series,
                             struct tide_archive_series_state *state, struct tide_error *err)
{
    struct tide_archive *archive = series->writer->archive;
    TIDE_CLEANUP(tide_archive_stmt_done) struct sqlite3_stmt *stmt = NULL;
    bool is_any = false;
    int64_t start = 0;
    int64_t newest = 0;
    TIDE_TRY(
        tide_archive_live_start(archive, series->source->id, series->name, &is_any, &start, err));
    TIDE_TRY(tide_archive_query(
        archive, &stmt, err,
        "SELECT COUNT(*), COALESCE(SUM(length(row)), 0), MIN(ts), MAX(ts) FROM wal WHERE "
        "source_id = ?1 AND stream = ?2 AND ts >= ?3 AND ?4",
        "itii", series->source->id, series->name, start, (int64_t)is_any));
    TIDE_TRY(tide_archive_step(archive, stmt, &is_any, err));
    TIDE_TRY(tide_archive_column_count(archive, stmt, 0, &state->live_rows, err));
    TIDE_TRY(tide_archive_column_count(archive, stmt, 1, &state->live_bytes, err));
    if (state->live_rows == 0) {
        return TIDE_OK;
    }
    TIDE_TRY(tide_archive_column_i64(archive, stmt, 2, &state->oldest_live_ts, err));
    TIDE_TRY(tide_archive_column_i64(archive, stmt, 3, &newest, err));
    state->newest_ts = !state->has_newest || newest > state->newest_ts ? newest : state->newest_ts;
    state->has_newest = true;
    return TIDE_OK;
}

tide_status tide_archive_series_refresh(struct tide_archive_series *series, struct tide_error *err)
{
    struct tide_archive_series_state state = series->state;
    TIDE_TRY(read_live(series, &state, err));
    series->state = state;
    return TIDE_OK;
}

tide_status tide_archive_series_reload(struct tide_archive_series *series, struct tide_error *err)
{
    series->state = (struct tide_archive_series_state){0};
    TIDE_TRY(read_sealed(series, err));
    return tide_archive_series_refresh(series, err);
}

tide_status tide_archive_check_name(tide_str name, struct tide_error *err)
{
    if (name.len == 0 || name.len > TIDE_ARCHIVE_SERIES_BYTES_MAX || !tide_str_is_utf8(name) ||
        memchr(name.ptr, '\0', name.len) != NULL) {
        return tide_fail(err, TIDE_INVALID,
                         "the name of a series must be UTF-8 text without NUL, of 1 to %zu bytes; "
                         "this one has %zu",
                         TIDE_ARCHIVE_SERIES_BYTES_MAX, name.len);
    }
    return TIDE_OK;
}

void tide_archive_free_series(struct tide_archive_series *series)
{
    free((void *)(uintptr_t)series->name.ptr);
    free(series);
}

static tide_status load(struct tide_archive_writer *writer, struct tide_archive_open_source *source,
                        tide_str name, struct tide_archive_series **ret_series,
                        struct tide_error *err)
{
    struct tide_archive_series *series = tide_alloc(1, sizeof(*series));
    series->writer = writer;
    series->source = source;
    series->name = tide_str_of(tide_strndup(name.ptr, name.len), name.len);
    tide_status status = read_sealed(series, err);
    status = status == TIDE_OK ? tide_archive_series_refresh(series, err) : status;
    if (status != TIDE_OK) {
        tide_archive_free_series(series);
        return status;
    }
    *ret_series = series;
    return TIDE_OK;
}

static tide_status series_open(struct tide_archive_writer *writer, int64_t source_id, tide_str name,
                               struct tide_archive_series **ret_series, struct tide_error *err)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf key = {0};
    struct tide_archive_open_source *source = tide_archive_open_source(writer, source_id);
    if (source == NULL) {
        return tide_fail(err, TIDE_INVALID,
                         "%s: source %" PRId64 " is not open; add or resume it first",
                         writer->archive->path, source_id);
    }
    TIDE_TRY(tide_archive_check_name(name, err));
    tide_buf_printf(&key, "%" PRId64 " ", source_id);
    tide_buf_append_str(&key, name);
    const union tide_map_value *known = tide_map_get(&writer->by_name, tide_buf_str(&key));
    if (known != NULL) {
        *ret_series = known->ptr;
        return TIDE_OK;
    }
    if (writer->series_count == TIDE_ARCHIVE_SERIES_MAX) {
        return tide_fail(err, TIDE_UNSUPPORTED,
                         "%s: one program writes %zu series of an archive at most; use several "
                         "archives",
                         writer->archive->path, TIDE_ARCHIVE_SERIES_MAX);
    }
    TIDE_TRY(load(writer, source, name, ret_series, err));
    tide_map_put(&writer->by_name, tide_buf_str(&key), NULL)->ptr = *ret_series;
    writer->series =
        tide_realloc(writer->series, writer->series_count + 1, sizeof(*writer->series));
    writer->series[writer->series_count++] = *ret_series;
    return TIDE_OK;
}

tide_status tide_archive_series_open(struct tide_archive_writer *writer, int64_t source,
                                     tide_str name, struct tide_archive_series **ret_series,
                                     struct tide_error *err)
{
    TIDE_TRY(tide_archive_enter(writer, "opening a series", err));
    return tide_archive_leave(writer, series_open(writer, source, name, ret_series, err), err);
}

tide_str tide_archive_series_name(const struct tide_archive_series *series)
{
    return series->name;
}

void tide_archive_series_state(const struct tide_archive_series *series,
                               struct tide_archive_series_state *ret_state)
{
    tide_mutex_lock(&series->writer->mutex); /* retention may be at work beside who writes */
    *ret_state = series->state;
    tide_mutex_unlock(&series->writer->mutex);
}

bool tide_archive_series_is_due(const struct tide_archive_series *series,
                                const struct tide_archive_seal_policy *policy, int64_t now_ts)
{
    struct tide_archive_series_state state;
    tide_archive_series_state(series, &state);
    struct tide_archive_tail tail = {
        .rows = state.live_rows,
        .bytes = state.live_bytes,
        .oldest_ts = state.oldest_live_ts,
        .newest_ts = state.newest_ts,
        .is_first = !state.is_sealed,
        .name = series->name,
        .label = tide_str_from(series->source->label),
    };
    return tide_archive_seal_is_due(policy, &tail, now_ts);
}
