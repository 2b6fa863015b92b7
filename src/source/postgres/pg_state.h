/* What a checkpoint keeps of this source: to what its position belongs. Pure. */
#pragma once

#include "base/buf.h"
#include "base/status.h"
#include "source/postgres/pg_setup.h"

struct tide_pg_state {
    uint64_t system_identifier;
    uint32_t timeline;
    char slot[TIDE_PG_NAME_SIZE];
    char publication[TIDE_PG_NAME_SIZE];
    uint64_t consistent_lsn; /* where the slot began when it was made */
};

/** Appends {"system_identifier":"…","timeline":N,"slot":"…","publication":"…","consistent_point":
 * "X/Y"}. */
void tide_pg_state_write(const struct tide_pg_state *state, struct tide_buf *buf);

/** TIDE_CORRUPT when `json` is not of that form. */
tide_status tide_pg_state_read(tide_str json, struct tide_pg_state *ret_state,
                               struct tide_error *err);
