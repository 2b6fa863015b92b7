#include "source/postgres/pg_check.h"

#include "source/postgres/pg_catalogue.h"
#include "source/postgres/pg_setup.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct check {
    struct tide_pg_conn *conn;
    const struct tide_source_options *options;
    struct tide_findings *findings;
    struct tide_pg_server server;
};

static void find(struct check *check, bool is_problem, tide_str remedy, const char *fmt, ...)
    TIDE_PRINTF(4, 5);

static void find(struct check *check, bool is_problem, tide_str remedy, const char *fmt, ...)
{
    char what[1024];
    va_list args;
    va_start(args, fmt);
    int len = vsnprintf(what, sizeof(what), fmt, args);
    va_end(args);
    TIDE_ASSERT(len >= 0);
    size_t kept = (size_t)len < sizeof(what) ? (size_t)len : sizeof(what) - 1;
    tide_findings_add(check->findings, is_problem, tide_str_of(what, kept), remedy);
}

static struct tide_pg_wait query_wait(void)
{
    return tide_pg_wait_for(TIDE_PG_QUERY_US);
}

/* "12 MB", as people read sizes. */
static void size_text(uint64_t bytes, char *ret_text, size_t size)
{
    static const char *const units[] = {"bytes", "kB", "MB", "GB", "TB"};
    size_t unit = 0;
    while (bytes >= 10240 && unit + 1 < sizeof(units) / sizeof(units[0])) {
        bytes /= 1024;
        unit++;
    }
    (void)snprintf(ret_text, size, "%" PRIu64 " %s", bytes, units[unit]);
}

static void check_limits(struct check *check)
{
    const struct tide_pg_server *server = &check->server;
    char remedy[160];
    if (server->slots_used >= server->slots_max) {
        (void)snprintf(remedy, sizeof(remedy),
                       "ALTER SYSTEM SET max_replication_slots = %u; and restart the server",
                       server->slots_max + 5);
        find(check, true, tide_str_from(remedy),
             "no replication slot is left: %u of %u are taken (pg_replication_slots lists them)",
             server->slots_used, server->slots_max);
    }
    if (server->senders_used >= server->senders_max) {
        (void)snprintf(remedy, sizeof(remedy),
                       "ALTER SYSTEM SET max_wal_senders = %u; and restart the server",
                       server->senders_max + 5);
        find(check, true, tide_str_from(remedy),
             "no process that sends the log is left: %u of %u are in use", server->senders_used,
             server->senders_max);
    }
}

static void check_server(struct check *check)
{
    if (check->server.is_in_recovery) {
        find(check, true, TIDE_STR("give the address of the primary"),
             "the server is a standby, which does not tell what its snapshots see");
        return;
    }
    if (strcmp(check->server.wal_level, "logical") != 0) {
        find(check, true,
             TIDE_STR("ALTER SYSTEM SET wal_level = logical; and restart the server (in a managed "
                      "service: switch logical replication on)"),
             "wal_level is %s: the log does not hold what following needs",
             check->server.wal_level);
    }
    check_limits(check);
}

static void check_settings_row(struct check *check, const PGresult *result)
{
    tide_str keep = tide_pg_result_str(result, 0, 0);
    tide_str standbys = tide_pg_result_str(result, 0, 1);
    if (!tide_str_equal(keep, TIDE_STR("-1"))) {
        find(check, false, TIDE_STR("choose it as large as the disk allows"),
             "max_slot_wal_keep_size is %.*s: a pipeline that is stopped or slow while that much "
             "log is written loses its slot and must copy anew",
             TIDE_STR_ARG(keep));
    }
    tide_str idle = tide_pg_result_str(result, 0, 3);
    if (idle.len > 0 && !tide_str_equal(idle, TIDE_STR("0"))) {
        find(check, false, TIDE_STR("ALTER SYSTEM SET idle_replication_slot_timeout = 0;"),
             "idle_replication_slot_timeout is %.*s: a pipeline that is stopped for so long loses "
             "its slot and must copy anew",
             TIDE_STR_ARG(idle));
    }
    if (memmem(standbys.ptr, standbys.len, "*", 1) != NULL ||
        memmem(standbys.ptr, standbys.len, "tidemark", 8) != NULL) {
        find(check, false, TIDE_STR("name the standbys in synchronous_standby_names"),
             "synchronous_standby_names is %.*s, which means this program too: commits may wait "
             "until what they changed has been copied",
             TIDE_STR_ARG(standbys));
    }
    if (tide_str_equal(tide_pg_result_str(result, 0, 2), TIDE_STR("SQL_ASCII"))) {
        find(check, false, TIDE_STR(""),
             "the database has the encoding SQL_ASCII: text is copied as it is, and what is no "
             "UTF-8 is marked as such");
    }
}

static tide_status check_settings(struct check *check, struct tide_error *err)
{
    TIDE_CLEANUP(tide_pg_result_done) PGresult *result = NULL;
    TIDE_TRY(tide_pg_query(check->conn,
                           "SELECT pg_catalog.current_setting('max_slot_wal_keep_size'),"
                           " pg_catalog.current_setting('synchronous_standby_names'),"
                           " pg_catalog.current_setting('server_encoding'),"
                           " pg_catalog.current_setting('idle_replication_slot_timeout', true)",
                           "look at the settings", query_wait(), &result, err));
    check_settings_row(check, result);
    return TIDE_OK;
}

static void check_database_right(struct check *check)
{
    if (check->server.may_create) {
        return;
    }
    TIDE_CLEANUP(tide_buf_done) struct tide_buf sql = {0};
    tide_buf_append_str(&sql, TIDE_STR("GRANT CREATE ON DATABASE "));
    tide_pg_append_name(&sql, tide_str_from(check->server.database));
    tide_buf_append_str(&sql, TIDE_STR(" TO "));
    tide_pg_append_name(&sql, tide_str_from(check->server.user));
    tide_buf_append_char(&sql, ';');
    find(check, true, tide_buf_str(&sql), "role %s may not create a publication in database %s",
         check->server.user, check->server.database);
}

static void find_no_replication(struct check *check, const char *sqlstate, const char *message)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf sql = {0};
    bool is_right =
        strcmp(sqlstate, "42501") == 0 || (sqlstate[0] != '\0' && !check->server.may_replicate);
    if (!is_right) {
        find(check, true,
             TIDE_STR("give the address of the server itself, not of a pooler, and let pg_hba.conf "
                      "allow the role"),
             "a replication connection cannot be opened: %s", message);
        return;
    }
    tide_buf_append_str(&sql, TIDE_STR("ALTER ROLE "));
    tide_pg_append_name(&sql, tide_str_from(check->server.user));
    tide_buf_append_str(&sql, TIDE_STR(" REPLICATION;"));
    find(check, true, tide_buf_str(&sql), "role %s may not follow the log", check->server.user);
}

/* A load balancer may send the two connections to two servers. */
static tide_status check_same_server(struct check *check, struct tide_pg_conn *replication,
                                     struct tide_error *err)
{
    TIDE_CLEANUP(tide_pg_result_done) PGresult *result = NULL;
    TIDE_TRY(tide_pg_query(replication, "IDENTIFY_SYSTEM", "look at the server", query_wait(),
                           &result, err));
    if (tide_pg_result_u64(result, 0, 0) != check->server.system_identifier) {
        find(check, true, TIDE_STR("give the address of the server itself"),
             "two connections to %s have reached two different servers", check->conn->place);
    }
    return TIDE_OK;
}

/* The connection itself tells best: services have rights of their own, and poolers say no. */
static tide_status check_replication(struct check *check, struct tide_error *err)
{
    TIDE_CLEANUP(tide_pg_conn_done) struct tide_pg_conn *replication = NULL;
    if (check->server.senders_used >= check->server.senders_max) {
        return TIDE_OK; /* which has been said */
    }
    char sqlstate[6] = "";
    tide_status status =
        tide_pg_open_told(check->options->place, TIDE_PG_REPLICATION,
                          tide_pg_wait_for(TIDE_PG_CONNECT_US), &replication, sqlstate, err);
    if (status == TIDE_OK) {
        return check_same_server(check, replication, err);
    }
    find_no_replication(check, sqlstate, err->message);
    return TIDE_OK;
}

static void check_generated(struct check *check, const struct tide_pg_table *table)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf names = {0};
    for (size_t i = 0; i < table->generated_count; i++) {
        tide_buf_append_str(&names, i == 0 ? TIDE_STR("") : TIDE_STR(", "));
        tide_buf_append_str(&names, table->generated[i]);
    }
    if (table->generated_count > 0) {
        find(check, false, TIDE_STR(""),
             "table %.*s.%.*s: generated columns are left out, as the log does not hold them: "
             "%.*s",
             TIDE_STR_ARG(table->schema), TIDE_STR_ARG(table->name),
             TIDE_STR_ARG(tide_buf_str(&names)));
    }
}

static void check_table(struct check *check, const struct tide_pg_table *table)
{
    bool is_refused = table->is_named || table->is_right_missing;
    if (table->problem.len > 0) {
        find(check, is_refused, table->remedy, "table %.*s.%.*s %s%.*s",
             TIDE_STR_ARG(table->schema), TIDE_STR_ARG(table->name),
             is_refused ? "" : "is left out: it ", TIDE_STR_ARG(table->problem));
        tide_findings_mark_left_out(check->findings);
        return;
    }
    check_generated(check, table);
    if (table->is_partition) {
        find(check, false, TIDE_STR(""),
             "table %.*s.%.*s is a partition: rows that come or go by ATTACH and DETACH are in no "
             "log, and rows that move to another partition are deleted here",
             TIDE_STR_ARG(table->schema), TIDE_STR_ARG(table->name));
    }
}

/* Looks at what the globs choose; `ret_is_idle`: one of them chooses nothing, as `err` says. */
static tide_status check_globs(struct check *check, const tide_str *globs, size_t count,
                               size_t *followed, bool *ret_is_idle, struct tide_error *err)
{
    TIDE_CLEANUP(tide_pg_tables_done) struct tide_pg_tables tables = {0};
    tide_status status = tide_pg_tables_read(check->conn, check->options->connection, globs, count,
                                             query_wait(), &tables, err);
    *ret_is_idle = status == TIDE_INVALID && check->conn->sqlstate[0] == '\0';
    if (*ret_is_idle) {
        return TIDE_OK;
    }
    TIDE_TRY(status);
    for (size_t i = 0; i < tables.count; i++) {
        check_table(check, tables.items[i]);
        *followed += tables.items[i]->problem.len == 0;
    }
    return TIDE_OK;
}

static tide_status check_tables(struct check *check, struct tide_error *err)
{
    const struct tide_source_options *options = check->options;
    size_t followed = 0;
    bool is_idle = false;
    TIDE_TRY(check_globs(check, options->globs, options->glob_count, &followed, &is_idle, err));
    /* One that chooses nothing must not hide what the others choose. */
    for (size_t i = 0, idle_count = is_idle ? options->glob_count : 0; i < idle_count; i++) {
        TIDE_TRY(check_globs(check, &options->globs[i], 1, &followed, &is_idle, err));
        if (is_idle) {
            find(check, true, TIDE_STR(""), "%s", err->message);
        }
    }
    if (followed == 0) {
        find(check, true, TIDE_STR(""), "there is no table that can be followed");
    }
    return TIDE_OK;
}

/* Making the slot waits for what writes at that moment, in every database of the server. */
static tide_status check_transactions(struct check *check, struct tide_error *err)
{
    TIDE_CLEANUP(tide_pg_result_done) PGresult *result = NULL;
    TIDE_TRY(tide_pg_query(
        check->conn,
        "SELECT a.pid, pg_catalog.date_trunc('second', pg_catalog.now() - a.xact_start),"
        " COALESCE(pg_catalog.pg_get_userbyid(a.usesysid), '')"
        " FROM pg_catalog.pg_stat_get_activity(NULL) a"
        " JOIN pg_catalog.pg_locks l ON l.pid = a.pid AND l.locktype = 'transactionid'"
        "  AND l.mode = 'ExclusiveLock' AND l.granted"
        " WHERE a.xact_start < pg_catalog.now() - interval '2 seconds'"
        " GROUP BY a.pid, a.xact_start, a.usesysid ORDER BY a.xact_start LIMIT 20",
        "look at transactions", query_wait(), &result, err));
    for (int row = 0; row < PQntuples(result); row++) {
        char remedy[80];
        (void)snprintf(remedy, sizeof(remedy), "end it, or SELECT pg_terminate_backend(%s);",
                       PQgetvalue(result, row, 0));
        find(check, false, tide_str_from(remedy),
             "server process %s of role %s has had a transaction open for %s: starting to follow "
             "waits for its end",
             PQgetvalue(result, row, 0), PQgetvalue(result, row, 2), PQgetvalue(result, row, 1));
    }
    return TIDE_OK;
}

static tide_status check_prepared(struct check *check, struct tide_error *err)
{
    TIDE_CLEANUP(tide_pg_result_done) PGresult *result = NULL;
    TIDE_TRY(tide_pg_query(check->conn,
                           "SELECT gid, pg_catalog.date_trunc('second', prepared), database"
                           " FROM pg_catalog.pg_prepared_xacts"
                           " WHERE prepared < pg_catalog.now() - interval '5 seconds'"
                           " ORDER BY prepared LIMIT 20",
                           "look at prepared transactions", query_wait(), &result, err));
    for (int row = 0; row < PQntuples(result); row++) {
        TIDE_CLEANUP(tide_buf_done) struct tide_buf sql = {0};
        tide_buf_append_str(&sql, TIDE_STR("COMMIT PREPARED "));
        tide_pg_append_text(&sql, tide_pg_result_str(result, row, 0));
        tide_buf_append_str(&sql, TIDE_STR("; or ROLLBACK PREPARED "));
        tide_pg_append_text(&sql, tide_pg_result_str(result, row, 0));
        tide_buf_append_char(&sql, ';');
        find(check, true, tide_buf_str(&sql),
             "transaction %s in database %s has been prepared since %s and not ended: starting to "
             "follow would wait for it for ever",
             PQgetvalue(result, row, 0), PQgetvalue(result, row, 2), PQgetvalue(result, row, 1));
    }
    return TIDE_OK;
}

static void check_slot(struct check *check, const struct tide_pg_leftover *item)
{
    char kept[32];
    size_text(item->slot.retained_bytes, kept, sizeof(kept));
    if (item->slot.is_lost) {
        find(check, false, TIDE_STR("tidemark detach"),
             "slot %s has lost its place in the log: its pipeline must copy anew", item->name);
    } else if (item->slot.is_active) {
        find(check, false, TIDE_STR(""),
             "slot %s is in use by server process %d; %s of log are kept", item->name,
             item->slot.active_pid, kept);
    } else {
        find(check, false, TIDE_STR("tidemark detach, if nobody runs it any more"),
             "slot %s is there and not in use; the server keeps %s of log for it", item->name,
             kept);
    }
}

static tide_status check_leftovers(struct check *check, struct tide_error *err)
{
    TIDE_CLEANUP(tide_arena_done) struct tide_arena arena = {0};
    struct tide_pg_leftover *items = NULL;
    size_t count = 0;
    TIDE_TRY(tide_pg_leftovers_read(check->conn, query_wait(), &arena, &items, &count, err));
    for (size_t i = 0; i < count; i++) {
        bool has_slot = false;
        for (size_t j = 0; j < count; j++) {
            has_slot = has_slot || (items[j].is_slot && strcmp(items[i].name, items[j].name) == 0);
        }
        if (items[i].is_slot) {
            check_slot(check, &items[i]);
        } else if (!has_slot) {
            find(check, false, TIDE_STR("tidemark detach"),
                 "publication %s is there without its slot", items[i].name);
        }
    }
    return TIDE_OK;
}

tide_status tide_pg_check(struct tide_pg_conn *conn, const struct tide_source_options *options,
                          struct tide_findings *findings, struct tide_error *err)
{
    struct check check = {.conn = conn, .options = options, .findings = findings};
    TIDE_TRY(tide_pg_server_read(conn, query_wait(), &check.server, err));
    check_server(&check);
    if (!check.server.is_in_recovery) {
        check_database_right(&check);
        TIDE_TRY(check_replication(&check, err));
        TIDE_TRY(check_settings(&check, err));
        TIDE_TRY(check_transactions(&check, err));
        TIDE_TRY(check_prepared(&check, err));
    }
    TIDE_TRY(check_leftovers(&check, err));
    return check_tables(&check, err);
}
