#include "source/postgres/pg_prepare.h"

#include "base/clock.h"
#include "base/thread.h"
#include "port/ways_on.h"
#include "source/postgres/pg_position.h"

#include <stdio.h>
#include <unistd.h>

#define CREATE_US ((int64_t)600000000) /* waits for transactions that write */
#define FREE_US   ((int64_t)10000000)  /* until the server notices that a follower is gone */
#define LEFT_US   ((int64_t)3000000)   /* the same, where it may well be that one still follows */
#define LOOK_US   50000

#define ADD_LOCK_MS 1000 /* writers of a table that is new to us wait so long at most, at once */
#define ADD_REST_US ((int64_t)2000000)

#define WAYS_ON                                                                                    \
    "; go on with the server and the state directory that belong together, or " TIDE_ANEW

static struct tide_pg_wait query_wait(void)
{
    return tide_pg_wait_for(TIDE_PG_QUERY_US);
}

/* The slot as it is once nobody uses it, or when patience ends. */
static tide_status look_until_free(struct tide_pg_conn *conn, const char *name, int64_t patience_us,
                                   struct tide_pg_slot *ret_slot, struct tide_error *err)
{
    int64_t until_us = tide_clock_deadline_us(patience_us);
    for (;;) {
        TIDE_TRY(tide_pg_slot_look(conn, name, query_wait(), ret_slot, err));
        if (!ret_slot->exists || !ret_slot->is_active || tide_clock_monotonic_us() >= until_us) {
            return TIDE_OK;
        }
        (void)usleep(LOOK_US);
    }
}

/* The slot first: a publication that is missing would break whoever still reads the slot. */
static tide_status drop(struct tide_pg_conn *conn, const char *name, int64_t patience_us,
                        bool *ret_had_slot, bool *ret_had_publication, struct tide_error *err)
{
    struct tide_pg_slot slot;
    TIDE_TRY(look_until_free(conn, name, patience_us, &slot, err));
    TIDE_TRY(tide_pg_slot_drop(conn, name, query_wait(), ret_had_slot, err));
    return tide_pg_publication_drop(conn, name, query_wait(), ret_had_publication, err);
}

/* Making */

/* The oldest transaction that a new slot waits for; false: none, or the server does not tell. */
static bool find_oldest(struct tide_pg_conn *conn, char *ret_text, size_t size)
{
    static const char sql[] =
        "SELECT 'transaction of process ' || pid || ' (' || application_name || ', '"
        " || coalesce(state, 'unknown') || ')', xact_start FROM pg_catalog.pg_stat_activity"
        " WHERE backend_xid IS NOT NULL AND pid <> pg_catalog.pg_backend_pid()"
        " UNION ALL SELECT 'prepared transaction ' || gid, prepared"
        " FROM pg_catalog.pg_prepared_xacts ORDER BY 2 LIMIT 1";
    TIDE_CLEANUP(tide_pg_result_done) PGresult *result = NULL;
    struct tide_error ignored;
    if (tide_pg_query(conn, sql, "look for open transactions", query_wait(), &result, &ignored) !=
            TIDE_OK ||
        PQntuples(result) != 1) {
        return false;
    }
    (void)snprintf(ret_text, size,
                   "PostgreSQL %s: the slot cannot be made before all open transactions that "
                   "write have ended; the oldest is the %s, begun %s",
                   conn->place, PQgetvalue(result, 0, 0), PQgetvalue(result, 0, 1));
    return true;
}

/* Says who kept us waiting. */
static tide_status fail_waiting(struct tide_pg_conn *conn, struct tide_error *err)
{
    char text[sizeof(err->message)];
    bool is_waiting = err->status == TIDE_CANCELLED || err->status == TIDE_TIMEOUT;
    if (is_waiting && find_oldest(conn, text, sizeof(text))) {
        return tide_fail(err, err->status, "%s", text);
    }
    return err->status;
}

static tide_status make_slot(struct tide_pg_conn *conn, const char *name,
                             const struct tide_pg_patience *patience, uint64_t *ret_lsn,
                             struct tide_error *err)
{
    char text[512];
    struct tide_pg_wait wait = tide_pg_wait_for(CREATE_US);
    wait.waker = patience->waker;
    if (patience->say != NULL && find_oldest(conn, text, sizeof(text))) {
        patience->say(text);
    }
    if (tide_pg_slot_create(conn, name, wait, ret_lsn, err) != TIDE_OK) {
        return fail_waiting(conn, err);
    }
    return TIDE_OK;
}

tide_status tide_pg_prepare_new(struct tide_pg_conn *conn, const char *name,
                                const struct tide_pg_tables *tables,
                                const struct tide_pg_patience *patience,
                                struct tide_pg_state *ret_state, struct tide_error *err)
{
    struct tide_pg_server server;
    struct tide_pg_state state = {0};
    bool had_slot = false;
    bool had_publication = false;
    TIDE_TRY(tide_pg_server_read(conn, query_wait(), &server, err));
    if (server.is_in_recovery) {
        return tide_fail(
            err, TIDE_UNSUPPORTED,
            "PostgreSQL %s: the server is a standby, whose snapshots do not tell which "
            "transactions run; follow its primary",
            conn->place);
    }
    TIDE_TRY(drop(conn, name, FREE_US, &had_slot, &had_publication, err));
    TIDE_TRY(tide_pg_publication_create(conn, name, tables, query_wait(), err));
    TIDE_TRY(make_slot(conn, name, patience, &state.consistent_lsn, err));
    state.system_identifier = server.system_identifier;
    state.timeline = server.timeline;
    (void)snprintf(state.slot, sizeof(state.slot), "%s", name);
    (void)snprintf(state.publication, sizeof(state.publication), "%s", name);
    *ret_state = state;
    return TIDE_OK;
}

/* Going on */

tide_status tide_pg_prepare_same_server(const struct tide_pg_state *state,
                                        uint64_t system_identifier, uint32_t timeline,
                                        struct tide_error *err)
{
    if (state->system_identifier != system_identifier) {
        return tide_fail(
            err, TIDE_STALE, "the server is system %llu, the checkpoint is of system %llu" WAYS_ON,
            (unsigned long long)system_identifier, (unsigned long long)state->system_identifier);
    }
    if (state->timeline != timeline) {
        return tide_fail(
            err, TIDE_STALE,
            "the server is on timeline %u, the checkpoint on %u: the server was "
            "promoted or restored, and changes that were copied may not be in it" WAYS_ON,
            timeline, state->timeline);
    }
    return TIDE_OK;
}

static tide_status fail_slot(const struct tide_pg_state *state, const char *what,
                             struct tide_error *err)
{
    return tide_fail(err, TIDE_STALE,
                     "replication slot %s %s: changes after the checkpoint are "
                     "lost" WAYS_ON,
                     state->slot, what);
}

static tide_status check_confirmed(const struct tide_pg_state *state,
                                   const struct tide_pg_slot *slot, struct tide_position position,
                                   struct tide_error *err)
{
    struct tide_buf at TIDE_CLEANUP(tide_buf_done) = {0};
    if (slot->confirmed_lsn <= tide_pg_position_next(position)) {
        return TIDE_OK;
    }
    tide_buf_append_str(&at, TIDE_STR("begins at "));
    tide_lsn_append(&at, slot->confirmed_lsn);
    tide_buf_append_str(&at, TIDE_STR(", past the checkpoint at "));
    tide_lsn_append(&at, position.lo);
    tide_buf_append_str(&at, TIDE_STR(" (it was made anew, or somebody else reads it)"));
    return fail_slot(state, tide_buf_cstr(&at), err);
}

tide_status tide_pg_prepare_slot(struct tide_pg_conn *conn, const struct tide_pg_state *state,
                                 struct tide_position position, int64_t patience_us,
                                 struct tide_error *err)
{
    struct tide_pg_slot slot;
    TIDE_TRY(look_until_free(conn, state->slot, patience_us, &slot, err));
    if (!slot.exists) {
        return fail_slot(state, "is gone", err);
    }
    if (!slot.is_ours) {
        return fail_slot(state, "is none of this database for pgoutput", err);
    }
    if (slot.is_lost) {
        return fail_slot(state, "was invalidated by the server (see max_slot_wal_keep_size)", err);
    }
    TIDE_TRY(check_confirmed(state, &slot, position, err));
    if (slot.is_active) {
        return tide_fail_retriable(err, TIDE_IO,
                                   "PostgreSQL %s: replication slot %s is in use by server process "
                                   "%d; stop the other copy, or wait until it is noticed as gone",
                                   conn->place, state->slot, (int)slot.active_pid);
    }
    return TIDE_OK;
}

/* Waits for the table's writers in short turns, so that new ones are not held up for long. */
static tide_status add_table(struct tide_pg_conn *conn, const char *publication,
                             const struct tide_pg_table *table,
                             const struct tide_pg_patience *patience, struct tide_error *err)
{
    int64_t until_us = tide_clock_deadline_us(CREATE_US);
    for (bool was_said = false;;) {
        tide_status status =
            tide_pg_publication_add(conn, publication, table, ADD_LOCK_MS, query_wait(), err);
        if (status != TIDE_TIMEOUT || tide_clock_monotonic_us() >= until_us) {
            return status;
        }
        if (patience->say != NULL && !was_said) {
            patience->say(err->message);
            was_said = true;
        }
        if (patience->waker != NULL &&
            tide_waker_wait(patience->waker, tide_clock_deadline_us(ADD_REST_US))) {
            err->status = TIDE_CANCELLED;
            return TIDE_CANCELLED;
        }
    }
}

static tide_status check_publication(struct tide_pg_conn *conn, const struct tide_pg_state *state,
                                     struct tide_arena *arena, uint32_t **ret_oids,
                                     size_t *ret_count, struct tide_error *err)
{
    bool exists = false;
    TIDE_TRY(tide_pg_publication_look(conn, state->publication, query_wait(), arena, &exists,
                                      ret_oids, ret_count, err));
    if (!exists) {
        return tide_fail(
            err, TIDE_STALE,
            "publication %s is gone: changes after the checkpoint cannot be read" WAYS_ON,
            state->publication);
    }
    bool is_narrowed = false;
    TIDE_TRY(
        tide_pg_publication_is_narrowed(conn, state->publication, query_wait(), &is_narrowed, err));
    if (is_narrowed) {
        return tide_fail(err, TIDE_STALE,
                         "publication %s was altered and leaves out rows, columns or kinds of "
                         "change: what it left out is missing" WAYS_ON,
                         state->publication);
    }
    return TIDE_OK;
}

static tide_status complete_publication(struct tide_pg_conn *conn,
                                        const struct tide_pg_state *state,
                                        const struct tide_pg_tables *tables,
                                        const struct tide_pg_patience *patience,
                                        struct tide_arena *arena, uint32_t **ret_oids,
                                        size_t *ret_count, struct tide_error *err)
{
    TIDE_TRY(check_publication(conn, state, arena, ret_oids, ret_count, err));
    for (size_t i = 0; i < tables->count; i++) {
        const struct tide_pg_table *table = tables->items[i];
        if (table->relation != NULL && !tide_pg_has_oid(*ret_oids, *ret_count, table->oid)) {
            TIDE_TRY(add_table(conn, state->publication, table, patience, err));
        }
    }
    return TIDE_OK;
}

static tide_status check_log_end(struct tide_pg_conn *conn, struct tide_position position,
                                 struct tide_error *err)
{
    uint64_t end = 0;
    TIDE_TRY(tide_pg_log_end(conn, query_wait(), &end, err));
    if (end <= position.lo) {
        struct tide_buf at TIDE_CLEANUP(tide_buf_done) = {0};
        tide_lsn_append(&at, end);
        tide_buf_append_str(&at, TIDE_STR(", the checkpoint is at "));
        tide_lsn_append(&at, position.lo);
        return tide_fail(
            err, TIDE_STALE,
            "the server's log ends at %s: the server is an older state of itself" WAYS_ON,
            tide_buf_cstr(&at));
    }
    return TIDE_OK;
}

tide_status tide_pg_prepare_saved(struct tide_pg_conn *conn, const struct tide_pg_state *state,
                                  struct tide_position position,
                                  const struct tide_pg_tables *tables,
                                  const struct tide_pg_patience *patience, struct tide_arena *arena,
                                  uint32_t **ret_oids, size_t *ret_count, struct tide_error *err)
{
    struct tide_pg_server server;
    TIDE_TRY(tide_pg_server_read(conn, query_wait(), &server, err));
    TIDE_TRY(tide_pg_prepare_same_server(state, server.system_identifier, server.timeline, err));
    TIDE_TRY(tide_pg_prepare_slot(conn, state, position, FREE_US, err));
    TIDE_TRY(check_log_end(conn, position, err));
    return complete_publication(conn, state, tables, patience, arena, ret_oids, ret_count, err);
}

tide_status tide_pg_prepare_check(struct tide_pg_conn *conn, const struct tide_pg_state *state,
                                  struct tide_position position, struct tide_arena *arena,
                                  struct tide_error *err)
{
    struct tide_pg_server server;
    uint32_t *oids = NULL;
    size_t count = 0;
    TIDE_TRY(tide_pg_server_read(conn, query_wait(), &server, err));
    TIDE_TRY(tide_pg_prepare_same_server(state, server.system_identifier, server.timeline, err));
    tide_status status = tide_pg_prepare_slot(conn, state, position, 0, err);
    if (status != TIDE_OK && !(status == TIDE_IO && err->retriable)) {
        return status;
    }
    TIDE_TRY(check_log_end(conn, position, err));
    return check_publication(conn, state, arena, &oids, &count, err);
}

/* Taking away */

static void say(struct tide_findings *findings, const char *what, const char *name)
{
    struct tide_buf text TIDE_CLEANUP(tide_buf_done) = {0};
    tide_buf_printf(&text, "%s %s", what, name);
    tide_findings_add(findings, false, tide_buf_str(&text), TIDE_STR(""));
}

static tide_status drop_one(struct tide_pg_conn *conn, const char *name, int64_t patience_us,
                            struct tide_findings *findings, bool *ret_was_there,
                            struct tide_error *err)
{
    bool had_slot = false;
    bool had_publication = false;
    tide_status status = drop(conn, name, patience_us, &had_slot, &had_publication, err);
    if (had_slot) {
        say(findings, "removed replication slot", name);
    }
    if (had_publication) {
        say(findings, "removed publication", name);
    }
    *ret_was_there = had_slot || had_publication;
    return status;
}

/* A publication and a slot of one name are one thing. */
static bool is_repeated(const struct tide_pg_leftover *items, size_t index)
{
    for (size_t i = 0; i < index; i++) {
        if (strcmp(items[i].name, items[index].name) == 0) {
            return true;
        }
    }
    return false;
}

static tide_status drop_all(struct tide_pg_conn *conn, struct tide_findings *findings,
                            struct tide_error *err)
{
    struct tide_arena arena TIDE_CLEANUP(tide_arena_done) = {0};
    struct tide_pg_leftover *items = NULL;
    size_t count = 0;
    TIDE_TRY(tide_pg_leftovers_read(conn, query_wait(), &arena, &items, &count, err));
    for (size_t i = 0; i < count; i++) {
        bool was_there = false;
        if (is_repeated(items, i)) {
            continue;
        }
        tide_status status = drop_one(conn, items[i].name, LEFT_US, findings, &was_there, err);
        if (status == TIDE_INVALID) { /* in use: the others can go all the same */
            tide_findings_add(findings, true, tide_str_from(err->message), TIDE_STR(""));
        } else {
            TIDE_TRY(status);
        }
    }
    return TIDE_OK;
}

tide_status tide_pg_detach(struct tide_pg_conn *conn, tide_str pipeline,
                           struct tide_findings *findings, struct tide_error *err)
{
    if (pipeline.len == 0) {
        return drop_all(conn, findings, err);
    }
    char name[TIDE_PG_NAME_SIZE];
    bool was_there = false;
    tide_pg_ours_name(pipeline, name);
    TIDE_TRY(drop_one(conn, name, FREE_US, findings, &was_there, err));
    if (!was_there) {
        say(findings, "there was neither a slot nor a publication", name);
    }
    return TIDE_OK;
}
