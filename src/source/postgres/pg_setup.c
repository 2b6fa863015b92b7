#include "source/postgres/pg_setup.h"

#include "base/clock.h"
#include "model/position.h"

#include <stdio.h>
#include <string.h>
#include <xxhash.h>

static uint64_t field_lsn(const PGresult *result, int row, int column)
{
    uint64_t lsn = 0;
    return tide_lsn_parse(tide_pg_result_str(result, row, column), &lsn) ? lsn : 0;
}

static void field_name(const PGresult *result, int row, int column, char *ret_text, size_t size)
{
    (void)snprintf(ret_text, size, "%s", PQgetvalue(result, row, column));
}

void tide_pg_ours_name(tide_str pipeline, char ret_name[TIDE_PG_NAME_SIZE])
{
    const size_t prefix_len = sizeof(TIDE_PG_PREFIX) - 1;
    const size_t room = TIDE_PG_NAME_SIZE - 1 - prefix_len;
    char name[TIDE_PG_NAME_SIZE] = TIDE_PG_PREFIX;
    bool is_same = pipeline.len > 0 && pipeline.len <= room;
    size_t kept = is_same || pipeline.len < room - 9 ? pipeline.len : room - 9;
    for (size_t i = 0; i < pipeline.len; i++) {
        char c = pipeline.ptr[i];
        bool is_allowed = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
        is_same = is_same && is_allowed;
        char small = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : '_';
        if (i < kept) {
            name[prefix_len + i] = is_allowed ? c : small;
        }
    }
    if (!is_same) {
        kept = kept < room - 9 ? kept : room - 9;
        uint64_t hash = XXH3_64bits(pipeline.ptr, pipeline.len);
        (void)snprintf(name + prefix_len + kept, sizeof(name) - prefix_len - kept, "_%08x",
                       (unsigned)(hash & 0xffffffffu));
    }
    memcpy(ret_name, name, sizeof(name));
}

/* The timeline stands in the names of the log's files; the control file tells it only as of the
 * last checkpoint, which a promotion does not wait for. */
static const char server_sql[] =
    "SELECT pg_catalog.current_setting('server_version_num'),"
    " (SELECT system_identifier FROM pg_catalog.pg_control_system()),"
    " CASE WHEN pg_catalog.pg_is_in_recovery()"
    "  THEN (SELECT timeline_id FROM pg_catalog.pg_control_checkpoint())::pg_catalog.int8"
    "  ELSE ('x' || pg_catalog.left(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), "
    "8))"
    "   ::pg_catalog.bit(32)::pg_catalog.int8 END,"
    " d.oid, d.datname, r.rolname,"
    " pg_catalog.trunc(EXTRACT(epoch FROM pg_catalog.pg_postmaster_start_time()) * 1000000),"
    " pg_catalog.pg_is_in_recovery(), pg_catalog.current_setting('wal_level'),"
    " pg_catalog.current_setting('max_replication_slots'),"
    " (SELECT pg_catalog.count(*) FROM pg_catalog.pg_replication_slots),"
    " pg_catalog.current_setting('max_wal_senders'),"
    " (SELECT pg_catalog.count(*) FROM pg_catalog.pg_stat_get_activity(NULL) a"
    "  WHERE a.backend_type = 'walsender'),"
    " r.rolsuper, r.rolsuper OR r.rolreplication,"
    " pg_catalog.has_database_privilege(d.oid, 'CREATE')"
    " FROM pg_catalog.pg_database d, pg_catalog.pg_roles r"
    " WHERE d.datname = pg_catalog.current_database() AND r.rolname = current_user";

static void fill_server(const PGresult *result, struct tide_pg_server *ret_server)
{
    int at = 0;
    ret_server->version = (int)tide_pg_result_i64(result, 0, at++);
    /* An int8 in the catalogue, but a number without sign everywhere else. */
    ret_server->system_identifier = (uint64_t)tide_pg_result_i64(result, 0, at++);
    ret_server->timeline = (uint32_t)tide_pg_result_u64(result, 0, at++);
    ret_server->database_oid = (uint32_t)tide_pg_result_u64(result, 0, at++);
    field_name(result, 0, at++, ret_server->database, sizeof(ret_server->database));
    field_name(result, 0, at++, ret_server->user, sizeof(ret_server->user));
    ret_server->started_us = tide_pg_result_i64(result, 0, at++);
    ret_server->is_in_recovery = tide_pg_result_bool(result, 0, at++);
    field_name(result, 0, at++, ret_server->wal_level, sizeof(ret_server->wal_level));
    ret_server->slots_max = (uint32_t)tide_pg_result_u64(result, 0, at++);
    ret_server->slots_used = (uint32_t)tide_pg_result_u64(result, 0, at++);
    ret_server->senders_max = (uint32_t)tide_pg_result_u64(result, 0, at++);
    ret_server->senders_used = (uint32_t)tide_pg_result_u64(result, 0, at++);
    ret_server->is_superuser = tide_pg_result_bool(result, 0, at++);
    ret_server->may_replicate = tide_pg_result_bool(result, 0, at++);
    ret_server->may_create = tide_pg_result_bool(result, 0, at++);
}

tide_status tide_pg_server_read(struct tide_pg_conn *conn, struct tide_pg_wait wait,
                                struct tide_pg_server *ret_server, struct tide_error *err)
{
    TIDE_CLEANUP(tide_pg_result_done) PGresult *result = NULL;
    TIDE_TRY(tide_pg_query(conn, server_sql, "look at the server", wait, &result, err));
    if (PQntuples(result) != 1) {
        return tide_fail_retriable(err, TIDE_IO, "PostgreSQL %s: our role or database is gone",
                                   conn->place);
    }
    *ret_server = (struct tide_pg_server){0};
    fill_server(result, ret_server);
    return TIDE_OK;
}

/* A slot of another database is no slot of ours, whatever it is called. 17 tells more about lost
 * ones, but wal_status says it in every version. */
#define SLOT_SQL                                                                                   \
    "SELECT s.slot_name, COALESCE(s.plugin = 'pgoutput' AND s.slot_type = 'logical'"               \
    "  AND NOT s.temporary AND s.database = pg_catalog.current_database(), false),"                \
    " s.active, s.active_pid, s.confirmed_flush_lsn, s.restart_lsn, s.wal_status,"                 \
    " CASE WHEN pg_catalog.pg_is_in_recovery() THEN 0 ELSE GREATEST(pg_catalog.pg_wal_lsn_diff("   \
    "  pg_catalog.pg_current_wal_lsn(), s.restart_lsn), 0) END"                                    \
    " FROM pg_catalog.pg_replication_slots s"

static struct tide_pg_slot slot_of_row(const PGresult *result, int row)
{
    struct tide_pg_slot slot = {
        .exists = true,
        .is_ours = tide_pg_result_bool(result, row, 1),
        .is_active = tide_pg_result_bool(result, row, 2),
        .active_pid = (int32_t)tide_pg_result_i64(result, row, 3),
        .confirmed_lsn = field_lsn(result, row, 4),
        .restart_lsn = field_lsn(result, row, 5),
        .retained_bytes = tide_pg_result_u64(result, row, 7),
    };
    field_name(result, row, 6, slot.wal_status, sizeof(slot.wal_status));
    slot.is_lost = strcmp(slot.wal_status, "lost") == 0;
    return slot;
}

tide_status tide_pg_slot_look(struct tide_pg_conn *conn, const char *name, struct tide_pg_wait wait,
                              struct tide_pg_slot *ret_slot, struct tide_error *err)
{
    TIDE_CLEANUP(tide_pg_result_done) PGresult *result = NULL;
    const char *params[] = {name};
    TIDE_TRY(tide_pg_query_params(conn, SLOT_SQL " WHERE s.slot_name = $1", params, 1,
                                  "look at the slot", wait, &result, err));
    *ret_slot = PQntuples(result) == 0 ? (struct tide_pg_slot){0} : slot_of_row(result, 0);
    return TIDE_OK;
}

/* The server may have made the slot just before it was told to stop. */
static void drop_half_made(struct tide_pg_conn *conn, const char *name)
{
    struct tide_error ignored;
    bool was_there = false;
    if (tide_pg_is_alive(conn)) {
        (void)tide_pg_slot_drop(conn, name, tide_pg_wait_for(TIDE_PG_QUERY_US), &was_there,
                                &ignored);
    }
}

tide_status tide_pg_slot_create(struct tide_pg_conn *conn, const char *name,
                                struct tide_pg_wait wait, uint64_t *ret_lsn, struct tide_error *err)
{
    TIDE_CLEANUP(tide_pg_result_done) PGresult *result = NULL;
    const char *params[] = {name};
    tide_status status = tide_pg_query_params(
        conn, "SELECT s.lsn FROM pg_catalog.pg_create_logical_replication_slot($1, 'pgoutput') s",
        params, 1, "create the slot, which waits for open transactions", wait, &result, err);
    uint64_t lsn = 0;
    if (status == TIDE_OK && PQntuples(result) == 1) {
        lsn = field_lsn(result, 0, 0);
    }
    if (status == TIDE_OK && lsn == 0) {
        status = tide_fail(err, TIDE_REMOTE, "PostgreSQL %s: the new slot %s has no place",
                           conn->place, name);
    }
    if (status == TIDE_OK) {
        *ret_lsn = lsn;
        return TIDE_OK;
    }
    if (conn->sqlstate[0] == '\0') {
        drop_half_made(conn, name);
    }
    return status;
}

tide_status tide_pg_slot_drop(struct tide_pg_conn *conn, const char *name, struct tide_pg_wait wait,
                              bool *ret_was_there, struct tide_error *err)
{
    struct tide_pg_slot slot;
    TIDE_TRY(tide_pg_slot_look(conn, name, wait, &slot, err));
    if (!slot.exists) {
        *ret_was_there = false;
        return TIDE_OK;
    }
    if (!slot.is_ours) {
        return tide_fail(err, TIDE_INVALID,
                         "PostgreSQL %s: the slot %s is of another database or kind and was left "
                         "alone; drop it by hand if nobody needs it",
                         conn->place, name);
    }
    TIDE_CLEANUP(tide_pg_result_done) PGresult *result = NULL;
    const char *params[] = {name};
    tide_status status =
        tide_pg_query_params(conn, "SELECT pg_catalog.pg_drop_replication_slot($1)", params, 1,
                             "drop the slot", wait, &result, err);
    if (status != TIDE_OK && strcmp(conn->sqlstate, "55006") == 0) {
        return tide_fail(err, TIDE_INVALID,
                         "PostgreSQL %s: the slot %s is in use by server process %d; end the "
                         "program that follows with it, or SELECT pg_terminate_backend(%d)",
                         conn->place, name, slot.active_pid, slot.active_pid);
    }
    /* 42704: somebody was quicker. */
    if (status != TIDE_OK && strcmp(conn->sqlstate, "42704") != 0) {
        return status;
    }
    *ret_was_there = status == TIDE_OK;
    return TIDE_OK;
}

tide_status tide_pg_publication_create(struct tide_pg_conn *conn, const char *name,
                                       const struct tide_pg_tables *tables,
                                       struct tide_pg_wait wait, struct tide_error *err)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf sql = {0};
    tide_buf_append_str(&sql, TIDE_STR("CREATE PUBLICATION "));
    tide_pg_append_name(&sql, tide_str_from(name));
    const char *before = " FOR TABLE ONLY ";
    for (size_t i = 0; i < tables->count; i++) {
        const struct tide_pg_table *table = tables->items[i];
        if (table->problem.len == 0) {
            tide_buf_append_str(&sql, tide_str_from(before));
            tide_pg_append_table(&sql, table->schema, table->name);
            before = ", ONLY ";
        }
    }
    tide_buf_append_str(&sql, TIDE_STR(" WITH (publish = 'insert, update, delete, truncate')"));
    return tide_pg_exec(conn, tide_buf_cstr(&sql), "create the publication", wait, err);
}

/* Several statements in one are one transaction. */
tide_status tide_pg_publication_add(struct tide_pg_conn *conn, const char *name,
                                    const struct tide_pg_table *table, unsigned lock_ms,
                                    struct tide_pg_wait wait, struct tide_error *err)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf sql = {0};
    tide_buf_printf(&sql, "SET LOCAL lock_timeout = %u; LOCK TABLE ONLY ", lock_ms);
    tide_pg_append_table(&sql, table->schema, table->name);
    tide_buf_append_str(&sql, TIDE_STR(" IN SHARE ROW EXCLUSIVE MODE; ALTER PUBLICATION "));
    tide_pg_append_name(&sql, tide_str_from(name));
    tide_buf_append_str(&sql, TIDE_STR(" ADD TABLE ONLY "));
    tide_pg_append_table(&sql, table->schema, table->name);
    tide_status status =
        tide_pg_exec(conn, tide_buf_cstr(&sql), "add a table to the publication", wait, err);
    if (status != TIDE_OK && strcmp(conn->sqlstate, "55P03") == 0) {
        return tide_fail_retriable(err, TIDE_TIMEOUT,
                                   "PostgreSQL %s: table %.*s.%.*s waits for transactions that "
                                   "have written to it",
                                   conn->place, TIDE_STR_ARG(table->schema),
                                   TIDE_STR_ARG(table->name));
    }
    return status;
}

tide_status tide_pg_publication_look(struct tide_pg_conn *conn, const char *name,
                                     struct tide_pg_wait wait, struct tide_arena *arena,
                                     bool *ret_exists, uint32_t **ret_oids, size_t *ret_count,
                                     struct tide_error *err)
{
    TIDE_CLEANUP(tide_pg_result_done) PGresult *result = NULL;
    const char *params[] = {name};
    TIDE_TRY(tide_pg_query_params(conn,
                                  "SELECT r.prrelid FROM pg_catalog.pg_publication p"
                                  " LEFT JOIN pg_catalog.pg_publication_rel r ON r.prpubid = p.oid"
                                  " WHERE p.pubname = $1 ORDER BY r.prrelid",
                                  params, 1, "look at the publication", wait, &result, err));
    int rows = PQntuples(result);
    uint32_t *oids = tide_arena_alloc(arena, (size_t)rows, sizeof(*oids));
    size_t count = 0;
    for (int row = 0; row < rows; row++) {
        if (!PQgetisnull(result, row, 0)) {
            oids[count++] = (uint32_t)tide_pg_result_u64(result, row, 0);
        }
    }
    *ret_exists = rows > 0;
    *ret_oids = oids;
    *ret_count = count;
    return TIDE_OK;
}

/* The server of version 14 has neither row filters nor column lists: as JSON, what is missing is
 * null. */
#define NARROWED_SQL                                                                               \
    "SELECT 1 FROM pg_catalog.pg_publication p WHERE p.pubname = $1 AND (NOT (p.pubinsert AND"     \
    " p.pubupdate AND p.pubdelete AND p.pubtruncate) OR EXISTS (SELECT 1 FROM"                     \
    " pg_catalog.pg_publication_rel r, pg_catalog.to_jsonb(r) j WHERE r.prpubid = p.oid AND"       \
    " coalesce(j ->> 'prqual', j ->> 'prattrs') IS NOT NULL))"

tide_status tide_pg_publication_is_narrowed(struct tide_pg_conn *conn, const char *name,
                                            struct tide_pg_wait wait, bool *ret_is_narrowed,
                                            struct tide_error *err)
{
    TIDE_CLEANUP(tide_pg_result_done) PGresult *result = NULL;
    const char *params[] = {name};
    TIDE_TRY(tide_pg_query_params(conn, NARROWED_SQL, params, 1, "look at the publication", wait,
                                  &result, err));
    *ret_is_narrowed = PQntuples(result) > 0;
    return TIDE_OK;
}

bool tide_pg_has_oid(const uint32_t *oids, size_t count, uint32_t oid)
{
    for (size_t i = 0; i < count; i++) {
        if (oids[i] == oid) {
            return true;
        }
    }
    return false;
}

tide_status tide_pg_publication_drop(struct tide_pg_conn *conn, const char *name,
                                     struct tide_pg_wait wait, bool *ret_was_there,
                                     struct tide_error *err)
{
    TIDE_CLEANUP(tide_arena_done) struct tide_arena arena = {0};
    uint32_t *oids = NULL;
    size_t count = 0;
    bool exists = false;
    TIDE_TRY(tide_pg_publication_look(conn, name, wait, &arena, &exists, &oids, &count, err));
    if (exists) {
        TIDE_CLEANUP(tide_buf_done) struct tide_buf sql = {0};
        tide_buf_append_str(&sql, TIDE_STR("DROP PUBLICATION IF EXISTS "));
        tide_pg_append_name(&sql, tide_str_from(name));
        TIDE_TRY(tide_pg_exec(conn, tide_buf_cstr(&sql), "drop the publication", wait, err));
    }
    *ret_was_there = exists;
    return TIDE_OK;
}

/* left() compares the prefix itself: in LIKE its underscore would stand for any character. */
#define IS_OURS_SQL(name) "pg_catalog.left(" name "::pg_catalog.text, 9) = '" TIDE_PG_PREFIX "'"

static tide_status read_publications(struct tide_pg_conn *conn, struct tide_pg_wait wait,
                                     PGresult **ret_result, struct tide_error *err)
{
    return tide_pg_query(conn,
                         "SELECT pubname FROM pg_catalog.pg_publication"
                         " WHERE " IS_OURS_SQL("pubname") " ORDER BY pubname",
                         "look for publications", wait, ret_result, err);
}

tide_status tide_pg_leftovers_read(struct tide_pg_conn *conn, struct tide_pg_wait wait,
                                   struct tide_arena *arena, struct tide_pg_leftover **ret_items,
                                   size_t *ret_count, struct tide_error *err)
{
    TIDE_CLEANUP(tide_pg_result_done) PGresult *publications = NULL;
    TIDE_CLEANUP(tide_pg_result_done) PGresult *slots = NULL;
    TIDE_TRY(read_publications(conn, wait, &publications, err));
    TIDE_TRY(tide_pg_query(
        conn,
        SLOT_SQL " WHERE " IS_OURS_SQL(
            "s.slot_name") " AND s.database = pg_catalog.current_database() ORDER BY s.slot_name",
        "look for slots", wait, &slots, err));
    int publication_count = PQntuples(publications);
    int slot_count = PQntuples(slots);
    size_t count = (size_t)publication_count + (size_t)slot_count;
    struct tide_pg_leftover *items = tide_arena_alloc(arena, count, sizeof(*items));
    for (int row = 0; row < publication_count; row++) {
        items[row] = (struct tide_pg_leftover){.is_slot = false};
        field_name(publications, row, 0, items[row].name, sizeof(items[row].name));
    }
    for (int row = 0; row < slot_count; row++) {
        struct tide_pg_leftover *item = &items[publication_count + row];
        *item = (struct tide_pg_leftover){.is_slot = true, .slot = slot_of_row(slots, row)};
        field_name(slots, row, 0, item->name, sizeof(item->name));
    }
    *ret_items = items;
    *ret_count = count;
    return TIDE_OK;
}

tide_status tide_pg_log_end(struct tide_pg_conn *conn, struct tide_pg_wait wait, uint64_t *ret_lsn,
                            struct tide_error *err)
{
    TIDE_CLEANUP(tide_pg_result_done) PGresult *result = NULL;
    TIDE_TRY(tide_pg_query(conn, "SELECT pg_catalog.pg_current_wal_insert_lsn()",
                           "look at the log's end", wait, &result, err));
    *ret_lsn = PQntuples(result) == 1 ? field_lsn(result, 0, 0) : 0;
    return TIDE_OK;
}
