/*
 * Asks a server to cancel what a connection runs. libpq connects anew for that and waits without a
 * deadline, so that it is done by a thread of its own that nobody has to wait for.
 */
#pragma once

#include "base/thread.h"

#include <libpq-fe.h>
#include <stdbool.h>
#include <stdint.h>

struct tide_pg_canceller;

/** Of an open connection, which may be closed before it. NULL when there is nothing to cancel. */
struct tide_pg_canceller *tide_pg_canceller_new(PGconn *pg);

/** NULL is fine. A request under way is not waited for. */
void tide_pg_canceller_free(struct tide_pg_canceller *canceller);

/** Starts a request unless one is under way. Any thread; does not wait. */
void tide_pg_canceller_ask(struct tide_pg_canceller *canceller);

/**
 * Waits until no request is under way, so that none can hit what runs next; false: `deadline_us`
 * passed.
 */
bool tide_pg_canceller_settle(struct tide_pg_canceller *canceller, int64_t deadline_us);
