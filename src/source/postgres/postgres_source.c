#include "source/postgres/postgres_source.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "source/postgres/pg_check.h"
#include "source/postgres/pg_chunk.h"
#include "source/postgres/pg_position.h"
#include "source/postgres/pg_type_await.h"
#include "source/postgres/postgres_source_parts.h"

#include <stdlib.h>

#define SESSION_LOOK_US  200000
#define SLOT_PATIENCE_US ((int64_t)5000000) /* one try; the caller tries again */
#define BEHIND_US        10000              /* in the log before it was sent */

static struct tide_pg_wait query_wait(void)
{
    return tide_pg_wait_for(TIDE_PG_QUERY_US);
}

/* Opening */

static void copy_options(struct tide_source *source, const struct tide_source_options *options)
{
    struct tide_arena *arena = &source->arena;
    tide_str *globs = tide_arena_alloc(arena, options->glob_count, sizeof(*globs));
    for (size_t i = 0; i < options->glob_count; i++) {
        globs[i] = tide_arena_str(arena, options->globs[i]);
    }
    source->options = (struct tide_source_options){
        .place = tide_arena_str(arena, options->place),
        .connection = tide_arena_str(arena, options->connection),
        .pipeline = tide_arena_str(arena, options->pipeline),
        .globs = globs,
        .glob_count = options->glob_count,
        .say = options->say,
        .waker = options->waker,
    };
    tide_pg_ours_name(options->pipeline, source->name);
}

/* The normal connection, made again when it was lost. */
static tide_status connect_within(struct tide_source *source, struct tide_pg_wait wait,
                                  struct tide_error *err)
{
    if (source->conn != NULL && tide_pg_is_alive(source->conn)) {
        return TIDE_OK;
    }
    tide_pg_close(source->conn);
    source->conn = NULL;
    return tide_pg_open(source->options.place, TIDE_PG_NORMAL, wait, &source->conn, err);
}

tide_status tide_pg_source_connect(struct tide_source *source, struct tide_error *err)
{
    return connect_within(source, tide_pg_wait_for(TIDE_PG_CONNECT_US), err);
}

static void postgres_close(struct tide_source *source);

static tide_status postgres_open(const struct tide_source_options *options,
                                 struct tide_source **ret_source, struct tide_error *err)
{
    struct tide_source *source = tide_alloc(1, sizeof(*source));
    copy_options(source, options);
    struct tide_pg_wait wait = tide_pg_wait_for(TIDE_PG_CONNECT_US);
    wait.waker = options->waker;
    tide_status status = connect_within(source, wait, err);
    if (status == TIDE_OK) {
        status = tide_pg_server_read(source->conn, query_wait(), &source->server, err);
    }
    if (status != TIDE_OK) {
        postgres_close(source);
        return status;
    }
    if (source->options.connection.len == 0) {
        source->options.connection = tide_str_from(source->server.database);
    }
    *ret_source = source;
    return TIDE_OK;
}

static void stop_following(struct tide_source *source)
{
    tide_pg_stream_close(source->stream);
    source->stream = NULL;
}

static void forget_preparation(struct tide_source *source)
{
    stop_following(source);
    tide_pg_follow_done(&source->follow);
    tide_pg_relations_free(source->in_force);
    source->in_force = NULL;
    source->is_prepared = false;
    source->looked_at_us = 0;
    tide_pg_tables_done(&source->looked);
}

static void postgres_close(struct tide_source *source)
{
    if (source == NULL) {
        return;
    }
    forget_preparation(source);
    tide_pg_known_done(&source->known);
    tide_pg_tables_done(&source->tables);
    tide_pg_tables_done(&source->looked);
    free((void *)source->relations);
    tide_pg_close(source->conn);
    tide_arena_done(&source->arena);
    free(source);
}

static void postgres_identity(const struct tide_source *source, struct tide_buf *buf)
{
    tide_buf_printf(buf, "\"postgres:%llu/%u\"",
                    (unsigned long long)source->server.system_identifier,
                    source->server.database_oid);
}

/* Looking */

static uint64_t postgres_estimate_rows(struct tide_source *source)
{
    uint64_t rows = 0;
    for (size_t i = 0; i < source->tables.count; i++) {
        const struct tide_pg_table *table = source->tables.items[i];
        if (table->relation != NULL && table->rows > 0) {
            rows += (uint64_t)table->rows;
        }
    }
    return rows;
}

static tide_status postgres_check(struct tide_source *source, struct tide_findings *findings,
                                  struct tide_error *err)
{
    TIDE_TRY(tide_pg_source_connect(source, err));
    return tide_pg_check(source->conn, &source->options, findings, err);
}

/* Preparing */

/* For types that no known column has: a table was changed while it was followed. */
static tide_status look_up_type(void *context, uint32_t oid, int32_t modifier,
                                struct tide_arena *arena, struct tide_pg_type *ret_type,
                                struct tide_error *err)
{
    struct tide_source *source = context;
    TIDE_TRY(tide_pg_source_connect(source, err));
    return tide_pg_type_await(source->conn, source->follow.tx_id, oid, modifier, arena, ret_type,
                              err);
}

static tide_status make_or_find(struct tide_source *source, const tide_str *saved_state,
                                struct tide_position position, struct tide_pg_state *ret_state,
                                struct tide_error *err)
{
    struct tide_pg_patience patience = {.waker = source->options.waker, .say = source->options.say};
    if (saved_state == NULL) {
        tide_pg_known_begin(&source->known, &source->tables);
        return tide_pg_prepare_new(source->conn, source->name, &source->tables, &patience,
                                   ret_state, err);
    }
    struct tide_pg_state saved;
    uint32_t *oids = NULL;
    size_t count = 0;
    TIDE_TRY(tide_pg_state_read(*saved_state, &source->arena, &saved, err));
    TIDE_TRY(tide_pg_prepare_saved(source->conn, &saved, position, &source->tables, &patience,
                                   &source->arena, &oids, &count, err));
    tide_pg_known_go_on(&source->known, &saved, oids, count, &source->tables);
    *ret_state = saved;
    return TIDE_OK;
}

static tide_status postgres_prepare(struct tide_source *source, const tide_str *saved_state,
                                    struct tide_position position, struct tide_position *ret_start,
                                    struct tide_error *err)
{
    forget_preparation(source);
    TIDE_TRY(tide_pg_source_read_tables(source, err));
    TIDE_TRY(make_or_find(source, saved_state, position, &source->state, err));
    struct tide_pg_type_lookup lookup = {.look = look_up_type, .context = source};
    source->in_force = tide_pg_relations_new(source->options.connection, &source->tables, lookup);
    source->confirmed =
        saved_state == NULL ? tide_pg_position_up_to(source->state.consistent_lsn) : position;
    source->is_prepared = true;
    *ret_start = source->confirmed;
    return TIDE_OK;
}

static tide_status postgres_check_saved(struct tide_source *source, tide_str saved_state,
                                        struct tide_position position, struct tide_error *err)
{
    struct tide_pg_state saved;
    TIDE_TRY(tide_pg_source_connect(source, err));
    TIDE_TRY(tide_pg_state_read(saved_state, &source->arena, &saved, err));
    return tide_pg_prepare_check(source->conn, &saved, position, &source->arena, err);
}

static void postgres_state(struct tide_source *source, struct tide_buf *buf)
{
    TIDE_ASSERT(source->is_prepared);
    struct tide_pg_state state = source->state;
    state.has_tables = true;
    state.tables = source->known.told;
    state.table_count = source->known.count;
    tide_pg_state_write(&state, buf);
}

/* Following */

/* On the connection that is going to stream: nobody can put another server in between. */
static tide_status start_stream(struct tide_source *source, struct tide_pg_stream *stream,
                                const struct tide_pg_stream_server *server,
                                struct tide_position position, struct tide_error *err)
{
    TIDE_TRY(tide_pg_prepare_same_server(&source->state, server->system_identifier,
                                         server->timeline, err));
    return tide_pg_stream_start(stream, source->state.slot, source->state.publication,
                                tide_pg_position_next(position), query_wait(), err);
}

static tide_status postgres_stream(struct tide_source *source, struct tide_position position,
                                   struct tide_error *err)
{
    struct tide_pg_stream_server server;
    struct tide_pg_stream *stream = NULL;
    TIDE_ASSERT(source->is_prepared);
    stop_following(source);
    tide_pg_close(source->conn); /* after a failure it may be one of a server that is gone */
    source->conn = NULL;
    TIDE_TRY(tide_pg_source_connect(source, err));
    TIDE_TRY(tide_pg_prepare_slot(source->conn, &source->state, position, SLOT_PATIENCE_US, err));
    TIDE_TRY(tide_pg_stream_open(source->options.place, tide_pg_wait_for(TIDE_PG_CONNECT_US),
                                 &stream, &server, err));
    tide_status status = start_stream(source, stream, &server, position, err);
    if (status != TIDE_OK) {
        tide_pg_stream_close(stream);
        return status;
    }
    source->stream = stream;
    source->epoch = (uint64_t)server.started_us;
    tide_pg_follow_start(&source->follow, source->in_force, position, server.next_tx_id);
    return TIDE_OK;
}

/* A frame of the stream; `ret_has_event` when it gave an event. */
static tide_status take_frame(struct tide_source *source, const struct tide_pg_frame *frame,
                              struct tide_arena *arena, struct tide_event *ret_event,
                              bool *ret_has_event, struct tide_error *err)
{
    struct tide_pg_follow *follow = &source->follow;
    if (frame->end_lsn > source->log_end) {
        source->log_end = frame->end_lsn;
    }
    if (frame->type == TIDE_PG_FRAME_KEEPALIVE) {
        *ret_has_event = tide_pg_follow_keepalive(follow, frame->end_lsn, ret_event);
        return TIDE_OK;
    }
    TIDE_TRY(tide_pg_follow_take(follow, frame->body, arena, ret_event, ret_has_event, err));
    tide_pg_stream_set_behind(source->stream, frame->sent_us - follow->commit_us > BEHIND_US);
    return TIDE_OK;
}

/* What is left of a lost or broken stream is of no use. */
static tide_status end_stream(struct tide_source *source, tide_status status)
{
    if (status != TIDE_OK && status != TIDE_TIMEOUT) {
        stop_following(source);
    }
    return status;
}

static tide_status fail_not_streaming(const struct tide_source *source, struct tide_error *err)
{
    return tide_fail_retriable(err, TIDE_IO, "PostgreSQL %s: the change stream is not open",
                               source->server.database);
}

/* Tables that the pipeline does not have yet are told of before anything else. */
static bool take_fresh(struct tide_source *source, struct tide_event *ret_event)
{
    const struct tide_pg_table *table = tide_pg_known_take_fresh(&source->known);
    if (table == NULL) {
        return false;
    }
    *ret_event = (struct tide_event){
        .kind = TIDE_EVENT_TABLE,
        .store = table->relation->store,
        .relation = table->relation,
        .reason = TIDE_STR("it is new to the pipeline"),
        .was_unfollowed = true,
    };
    return true;
}

static tide_status postgres_next(struct tide_source *source, struct tide_arena *arena,
                                 struct tide_waker *waker, int64_t deadline_us,
                                 struct tide_event *ret_event, struct tide_error *err)
{
    struct tide_pg_wait wait = {.waker = waker, .deadline_us = deadline_us};
    if (source->stream == NULL) {
        return fail_not_streaming(source, err);
    }
    if (take_fresh(source, ret_event) ||
        tide_pg_follow_take_pending(&source->follow, arena, ret_event)) {
        return TIDE_OK;
    }
    for (;;) {
        struct tide_pg_frame frame;
        bool has_event = false;
        tide_status status = tide_pg_stream_next(source->stream, wait, &frame, err);
        if (status == TIDE_OK) {
            status = take_frame(source, &frame, arena, ret_event, &has_event, err);
        }
        if (status != TIDE_OK || has_event) {
            return end_stream(source, status);
        }
    }
}

static tide_status postgres_confirm(struct tide_source *source, struct tide_position position,
                                    struct tide_error *err)
{
    TIDE_ASSERT(source->is_prepared);
    if (source->stream == NULL) {
        return fail_not_streaming(source, err);
    }
    tide_status status =
        tide_pg_stream_confirm(source->stream, tide_pg_position_next(position), err);
    if (status == TIDE_OK) {
        source->confirmed = position;
    }
    return end_stream(source, status);
}

/*
 * A server that shuts down ends idle sessions at once, but a stream only when all it has sent is
 * confirmed: a sink that stands still would keep it from stopping. So the end of our idle session
 * is the end of the stream.
 */
static tide_status look_at_session(struct tide_source *source, struct tide_error *err)
{
    int64_t now_us = tide_clock_monotonic_us();
    if (now_us < source->session_look_us || source->conn == NULL) {
        return TIDE_OK;
    }
    source->session_look_us = now_us + SESSION_LOOK_US;
    for (int i = 0; i < 2; i++) { /* a last word, and then the end */
        if (PQconsumeInput(source->conn->pg) == 0) {
            return tide_fail_retriable(err, TIDE_IO,
                                       "PostgreSQL %s: the server has ended our session, it may be "
                                       "shutting down",
                                       source->conn->place);
        }
    }
    return TIDE_OK;
}

static tide_status postgres_tick(struct tide_source *source, struct tide_error *err)
{
    if (source->stream == NULL) {
        return fail_not_streaming(source, err);
    }
    tide_status status = look_at_session(source, err);
    if (status == TIDE_OK) {
        status = tide_pg_stream_tick(source->stream, err);
    }
    return end_stream(source, status);
}

static uint64_t postgres_epoch(const struct tide_source *source)
{
    return source->epoch;
}

/* The message makes the server write out its log, and tell the stream of a place past the end. */
static tide_status postgres_log_end(struct tide_source *source, struct tide_position *ret_position,
                                    struct tide_error *err)
{
    uint64_t lsn = 0;
    TIDE_TRY(tide_pg_source_connect(source, err));
    TIDE_TRY(tide_pg_log_end(source->conn, query_wait(), &lsn, err));
    TIDE_TRY(tide_pg_exec(source->conn,
                          "SELECT pg_catalog.pg_logical_emit_message(true, 'tidemark', '')",
                          "send a message", query_wait(), err));
    *ret_position = tide_pg_position_up_to(lsn);
    return TIDE_OK;
}

static uint64_t postgres_retained_bytes(struct tide_source *source)
{
    uint64_t confirmed = tide_pg_position_next(source->confirmed);
    return source->log_end > confirmed ? source->log_end - confirmed : 0;
}

static tide_status postgres_detach(struct tide_source *source, struct tide_findings *findings,
                                   struct tide_error *err)
{
    forget_preparation(source);
    TIDE_TRY(tide_pg_source_connect(source, err));
    return tide_pg_detach(source->conn, source->options.pipeline, findings, err);
}

/* Chunks */

static tide_status postgres_reader_open(struct tide_source *source,
                                        struct tide_chunk_reader **ret_reader,
                                        struct tide_error *err)
{
    (void)err;
    *ret_reader = tide_pg_chunk_reader_new(source->options.place, source->options.connection);
    return TIDE_OK;
}

const struct tide_source_ops tide_postgres_source_ops = {
    .scheme = "postgres",
    .position_kind = &tide_position_lsn,
    .valid = tide_pg_url_valid,
    .open = postgres_open,
    .close = postgres_close,
    .identity = postgres_identity,
    .tables = tide_pg_source_tables,
    .estimate_rows = postgres_estimate_rows,
    .check = postgres_check,
    .prepare = postgres_prepare,
    .check_saved = postgres_check_saved,
    .stream = postgres_stream,
    .next = postgres_next,
    .state = postgres_state,
    .confirm = postgres_confirm,
    .tick = postgres_tick,
    .epoch = postgres_epoch,
    .log_end = postgres_log_end,
    .retained_bytes = postgres_retained_bytes,
    .detach = postgres_detach,
    .reader_open = postgres_reader_open,
    .reader_close = tide_pg_chunk_reader_free,
    .reader_remember = tide_pg_chunk_remember,
    .reader_read = tide_pg_chunk_read,
    .reader_cancel = tide_pg_chunk_cancel,
};
