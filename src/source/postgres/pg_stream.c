#include "source/postgres/pg_stream.h"

#include "base/alloc.h"
#include "base/clock.h"

#include <stdlib.h>
#include <unistd.h>

#define STATUS_US  ((int64_t)1000000)   /* between status updates, or a quarter of the timeout */
#define SILENCE_US ((int64_t)300000000) /* the server answers every status update */
#define NAP_US     150
#define DOING      "read the change stream"

struct tide_pg_stream {
    struct tide_pg_conn *conn;
    char *packet;           /* libpq's: the frame that was given last */
    uint64_t confirmed_lsn; /* 0: nothing was confirmed in this session */
    int64_t status_us;      /* between two updates */
    int64_t status_due_us;
    int64_t heard_us;
    bool is_behind;
    bool has_taken; /* a frame, since nothing was at hand the last time */
};

/* Opening */

static tide_status identify(struct tide_pg_stream *stream, struct tide_pg_wait wait,
                            struct tide_pg_stream_server *ret_server, struct tide_error *err)
{
    TIDE_CLEANUP(tide_pg_result_done) PGresult *result = NULL;
    TIDE_TRY(
        tide_pg_query(stream->conn, "IDENTIFY_SYSTEM", "identify the server", wait, &result, err));
    if (PQntuples(result) != 1 || PQnfields(result) < 2) {
        return tide_fail(err, TIDE_REMOTE, "PostgreSQL %s: IDENTIFY_SYSTEM gave no row",
                         stream->conn->place);
    }
    ret_server->system_identifier = tide_pg_result_u64(result, 0, 0);
    ret_server->timeline = (uint32_t)tide_pg_result_u64(result, 0, 1);
    return TIDE_OK;
}

static tide_status ask_session(struct tide_pg_stream *stream, struct tide_pg_wait wait,
                               struct tide_pg_stream_server *ret_server, struct tide_error *err)
{
    static const char sql[] =
        "SELECT (extract(epoch FROM pg_catalog.pg_postmaster_start_time()) * 1000000)::int8, "
        "pg_catalog.pg_snapshot_xmax(pg_catalog.pg_current_snapshot()), "
        "(SELECT setting FROM pg_catalog.pg_settings WHERE name = 'wal_sender_timeout')";
    TIDE_CLEANUP(tide_pg_result_done) PGresult *result = NULL;
    TIDE_TRY(tide_pg_query(stream->conn, sql, "ask for the server's start", wait, &result, err));
    if (PQntuples(result) != 1) {
        return tide_fail(err, TIDE_REMOTE, "PostgreSQL %s: the server's start has no row",
                         stream->conn->place);
    }
    ret_server->started_us = tide_pg_result_i64(result, 0, 0);
    ret_server->next_tx_id = tide_pg_result_u64(result, 0, 1);
    int64_t timeout_us = tide_pg_result_i64(result, 0, 2) * 1000; /* 0: none */
    bool is_short = timeout_us > 0 && timeout_us / 4 < STATUS_US;
    stream->status_us = is_short ? timeout_us / 4 : STATUS_US;
    return TIDE_OK;
}

tide_status tide_pg_stream_open(tide_str url, struct tide_pg_wait wait,
                                struct tide_pg_stream **ret_stream,
                                struct tide_pg_stream_server *ret_server, struct tide_error *err)
{
    struct tide_pg_stream *stream = tide_alloc(1, sizeof(*stream));
    struct tide_pg_stream_server server = {0};
    tide_status status = tide_pg_open(url, TIDE_PG_REPLICATION, wait, &stream->conn, err);
    if (status == TIDE_OK) {
        status = identify(stream, wait, &server, err);
    }
    if (status == TIDE_OK) {
        status = ask_session(stream, wait, &server, err);
    }
    if (status != TIDE_OK) {
        tide_pg_stream_close(stream);
        return status;
    }
    *ret_stream = stream;
    *ret_server = server;
    return TIDE_OK;
}

void tide_pg_stream_close(struct tide_pg_stream *stream)
{
    if (stream == NULL) {
        return;
    }
    if (stream->packet != NULL) {
        PQfreemem(stream->packet);
    }
    tide_pg_close(stream->conn);
    free(stream);
}

tide_status tide_pg_stream_start(struct tide_pg_stream *stream, const char *slot,
                                 const char *publication, uint64_t lsn, struct tide_pg_wait wait,
                                 struct tide_error *err)
{
    struct tide_buf sql TIDE_CLEANUP(tide_buf_done) = {0};
    struct tide_buf name TIDE_CLEANUP(tide_buf_done) = {0};
    tide_pg_append_name(&name, tide_str_from(publication));
    tide_buf_append_str(&sql, TIDE_STR("START_REPLICATION SLOT "));
    tide_pg_append_name(&sql, tide_str_from(slot));
    tide_buf_printf(&sql, " LOGICAL %X/%X (proto_version '1', publication_names ",
                    (unsigned)(lsn >> 32), (unsigned)lsn);
    tide_pg_append_text(&sql, tide_buf_str(&name)); /* a list of names inside a text */
    tide_buf_append_char(&sql, ')');
    tide_status status =
        tide_pg_copy_start(stream->conn, tide_buf_cstr(&sql), "start the change stream", wait, err);
    if (status != TIDE_OK) {
        if (strcmp(stream->conn->sqlstate, "55006") == 0) { /* object_in_use */
            err->status = TIDE_IO;
            err->retriable = true;
        }
        return err->status;
    }
    stream->heard_us = tide_clock_monotonic_us();
    stream->status_due_us = stream->heard_us + stream->status_us;
    return TIDE_OK;
}

/* Status updates */

/* Sent without waiting: what does not fit into the socket goes with the next one. */
static tide_status send_status(struct tide_pg_stream *stream, int64_t now_us,
                               struct tide_error *err)
{
    char packet[TIDE_PG_STATUS_SIZE];
    tide_pg_status_encode(
        &(struct tide_pg_status){
            .written_lsn = stream->confirmed_lsn,
            .flushed_lsn = stream->confirmed_lsn,
            .applied_lsn = stream->confirmed_lsn,
            .now_us = tide_clock_utc_us(),
            .reply_requested = now_us >= stream->status_due_us,
        },
        packet);
    stream->status_due_us = now_us + stream->status_us;
    tide_status status =
        tide_pg_copy_send(stream->conn, packet, sizeof(packet), (struct tide_pg_wait){0}, err);
    return status == TIDE_TIMEOUT ? TIDE_OK : status;
}

tide_status tide_pg_stream_tick(struct tide_pg_stream *stream, struct tide_error *err)
{
    int64_t now_us = tide_clock_monotonic_us();
    return now_us < stream->status_due_us ? TIDE_OK : send_status(stream, now_us, err);
}

tide_status tide_pg_stream_confirm(struct tide_pg_stream *stream, uint64_t lsn,
                                   struct tide_error *err)
{
    if (lsn <= stream->confirmed_lsn) {
        return TIDE_OK;
    }
    stream->confirmed_lsn = lsn;
    return send_status(stream, tide_clock_monotonic_us(), err);
}

/* Frames */

void tide_pg_stream_set_behind(struct tide_pg_stream *stream, bool is_behind)
{
    stream->is_behind = is_behind;
}

/* One frame that is at hand, or that comes within `wait`. */
static tide_status take(struct tide_pg_stream *stream, struct tide_pg_wait wait,
                        struct tide_pg_frame *ret_frame, struct tide_error *err)
{
    size_t len = 0;
    if (stream->packet != NULL) {
        PQfreemem(stream->packet);
        stream->packet = NULL;
    }
    TIDE_TRY(tide_pg_copy_next(stream->conn, DOING, wait, &stream->packet, &len, err));
    stream->has_taken = true;
    tide_status status = tide_pg_frame_decode(tide_str_of(stream->packet, len), ret_frame, err);
    if (status != TIDE_OK) {
        return tide_fail_context(err, "PostgreSQL %s: " DOING, stream->conn->place);
    }
    if (ret_frame->reply_requested) {
        return send_status(stream, tide_clock_monotonic_us(), err);
    }
    return TIDE_OK;
}

/* Nothing is at hand. TIDE_OK: look once more. */
static tide_status look_again(struct tide_pg_stream *stream, int64_t now_us, struct tide_error *err)
{
    if (stream->has_taken) {
        stream->heard_us = now_us;
    }
    TIDE_TRY(tide_pg_stream_tick(stream, err));
    bool must_nap = stream->is_behind && stream->has_taken;
    stream->has_taken = false;
    if (must_nap) {
        (void)usleep(NAP_US);
        return TIDE_OK;
    }
    if (now_us - stream->heard_us > SILENCE_US) {
        return tide_fail_retriable(err, TIDE_IO,
                                   "PostgreSQL %s: the change stream has been silent for %d s",
                                   stream->conn->place, (int)(SILENCE_US / 1000000));
    }
    return TIDE_TIMEOUT;
}

tide_status tide_pg_stream_next(struct tide_pg_stream *stream, struct tide_pg_wait wait,
                                struct tide_pg_frame *ret_frame, struct tide_error *err)
{
    for (;;) {
        tide_status status = take(stream, (struct tide_pg_wait){0}, ret_frame, err);
        if (status != TIDE_TIMEOUT) {
            return status;
        }
        int64_t now_us = tide_clock_monotonic_us();
        status = look_again(stream, now_us, err);
        if (status == TIDE_OK) {
            continue;
        }
        if (status != TIDE_TIMEOUT || now_us >= wait.deadline_us) {
            return status;
        }
        struct tide_pg_wait part = wait;
        if (stream->status_due_us < part.deadline_us) {
            part.deadline_us = stream->status_due_us;
        }
        status = take(stream, part, ret_frame, err);
        if (status != TIDE_TIMEOUT || tide_clock_monotonic_us() < part.deadline_us) {
            return status; /* a frame, an error, or somebody woke us */
        }
    }
}
