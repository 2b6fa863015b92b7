/* A type as a transaction of the stream left it, which others may not see yet. */
#pragma once

#include "source/postgres/pg_catalogue.h"

/**
 * As tide_pg_type_read, for a type that transaction `tx_id` of the stream uses. The log has a
 * commit before others see what it did, for as long as a synchronous standby lets it wait: only
 * once the transaction is seen does a type that is missing mean that it is gone. Waits some seconds
 * at most.
 * Errors: TIDE_UNSUPPORTED the type is gone; TIDE_IO retriable the transaction is not seen yet.
 */
tide_status tide_pg_type_await(struct tide_pg_conn *conn, uint64_t tx_id, uint32_t oid,
                               int32_t modifier, struct tide_arena *arena,
                               struct tide_pg_type *ret_type, struct tide_error *err);
