/*
 * Which segments of a copy were made here: the one who is followed may have others, with rows that
 * came late there, below what is sealed here. A table that other programs pass over has, for each
 * series, where those begin that have not been compared yet.
 */
#include "archive/follow.h"
#include "archive/writer_state.h"

static tide_status note(const struct tide_archive_series *series, struct tide_error *err)
{
    TIDE_CLEANUP(tide_archive_rollback) struct tide_archive *open = series->writer->archive;
    TIDE_TRY(tide_archive_begin(open, err));
    TIDE_TRY(tide_archive_run(
        open, err,
        "CREATE TABLE IF NOT EXISTS tidemark_sealed_here (source_id INTEGER NOT NULL REFERENCES "
        "sources(id), stream TEXT NOT NULL, from_ts INTEGER NOT NULL, PRIMARY KEY (source_id, "
        "stream))",
        ""));
    TIDE_TRY(tide_archive_run(
        open, err,
        "INSERT INTO tidemark_sealed_here (source_id, stream, from_ts) VALUES (?1, ?2, ?3) "
        "ON CONFLICT (source_id, stream) DO UPDATE SET from_ts = MIN(from_ts, excluded.from_ts)",
        "iti", series->source->id, series->name, series->state.oldest_live_ts));
    return tide_archive_commit(series->writer->archive, err);
}

tide_status tide_archive_sealed_here_note(struct tide_archive_series *series,
                                          struct tide_error *err)
{
    TIDE_TRY(tide_archive_enter(series->writer, "sealing", err));
    return tide_archive_leave(series->writer, note(series, err), err);
}

static tide_status is_any(struct tide_archive *archive, bool *ret_is_any, struct tide_error *err)
{
    int64_t ignored = 0;
    TIDE_TRY(tide_archive_has_table(archive, TIDE_STR("tidemark_sealed_here"), ret_is_any, err));
    return *ret_is_any ? tide_archive_ask(archive, err, ret_is_any, &ignored,
                                          "SELECT 1 FROM tidemark_sealed_here LIMIT 1", "")
                       : TIDE_OK;
}

tide_status tide_archive_sealed_here_any(struct tide_archive_writer *writer, bool *ret_is_any,
                                         struct tide_error *err)
{
    TIDE_TRY(tide_archive_enter(writer, "reading what is sealed", err));
    return tide_archive_leave(writer, is_any(writer->archive, ret_is_any, err), err);
}

static tide_status read_mark(struct tide_archive *archive, int64_t source, tide_str series,
                             struct tide_archive_sealed_here *ret_here, struct tide_error *err)
{
    TIDE_TRY(tide_archive_ask(archive, err, &ret_here->is_any, &ret_here->from_ts,
                              "SELECT from_ts FROM tidemark_sealed_here WHERE source_id = ?1 AND "
                              "stream = ?2",
                              "it", source, series));
    return !ret_here->is_any
               ? TIDE_OK
               : tide_archive_ask(archive, err, &ret_here->has_before, &ret_here->before_to,
                                  "SELECT last_ts FROM segments WHERE source_id = ?1 AND "
                                  "stream = ?2 AND last_ts < ?3 ORDER BY last_ts DESC LIMIT 1",
                                  "iti", source, series, ret_here->from_ts);
}

tide_status tide_archive_sealed_here_read(struct tide_archive_writer *writer, int64_t source,
                                          tide_str series,
                                          struct tide_archive_sealed_here *ret_here,
                                          struct tide_error *err)
{
    *ret_here = (struct tide_archive_sealed_here){0};
    TIDE_TRY(tide_archive_enter(writer, "reading what is sealed", err));
    return tide_archive_leave(writer, read_mark(writer->archive, source, series, ret_here, err),
                              err);
}

tide_status tide_archive_sealed_here_forget(struct tide_archive_writer *writer, int64_t source,
                                            struct tide_error *err)
{
    TIDE_TRY(tide_archive_enter(writer, "following", err));
    tide_status status = tide_archive_run(
        writer->archive, err, "DELETE FROM tidemark_sealed_here WHERE source_id = ?1", "i", source);
    return tide_archive_leave(writer, status, err);
}
