#include "source/postgres/pg_type_await.h"

#include "base/clock.h"

#include <unistd.h>

#define PATIENCE_US ((int64_t)2000000)
#define LOOK_US     5000

static tide_status is_visible(struct tide_pg_conn *conn, uint64_t tx_id, bool *ret_is_visible,
                              struct tide_error *err)
{
    TIDE_CLEANUP(tide_pg_result_done) PGresult *result = NULL;
    struct tide_buf sql TIDE_CLEANUP(tide_buf_done) = {0};
    tide_buf_printf(&sql,
                    "SELECT pg_catalog.pg_visible_in_snapshot('%llu'::pg_catalog.xid8,"
                    " pg_catalog.pg_current_snapshot())",
                    (unsigned long long)tx_id);
    TIDE_TRY(tide_pg_query(conn, tide_buf_cstr(&sql), "ask for a transaction",
                           tide_pg_wait_for(TIDE_PG_QUERY_US), &result, err));
    *ret_is_visible = PQntuples(result) == 1 && tide_pg_result_bool(result, 0, 0);
    return TIDE_OK;
}

tide_status tide_pg_type_await(struct tide_pg_conn *conn, uint64_t tx_id, uint32_t oid,
                               int32_t modifier, struct tide_arena *arena,
                               struct tide_pg_type *ret_type, struct tide_error *err)
{
    int64_t until_us = tide_clock_deadline_us(PATIENCE_US);
    for (;;) {
        bool was_visible = false;
        TIDE_TRY(is_visible(conn, tx_id, &was_visible, err));
        tide_status status = tide_pg_type_read(
            conn, oid, modifier, tide_pg_wait_for(TIDE_PG_QUERY_US), arena, ret_type, err);
        if (status != TIDE_UNSUPPORTED || was_visible) {
            return status;
        }
        if (tide_clock_monotonic_us() >= until_us) {
            return tide_fail_retriable(err, TIDE_IO,
                                       "PostgreSQL %s: the catalogue does not show yet what "
                                       "transaction %llu did, which may wait for a standby",
                                       conn->place, (unsigned long long)tx_id);
        }
        (void)usleep(LOOK_US);
    }
}
