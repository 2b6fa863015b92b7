/* What a checkpoint keeps of this source: to what its position belongs. Pure. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/status.h"
#include "source/postgres/pg_setup.h"

/* A table that the engine was told of. */
struct tide_pg_told {
    uint32_t oid;
    tide_str store; /* as it was called then */
};

struct tide_pg_state {
    uint64_t system_identifier;
    uint32_t timeline;
    char slot[TIDE_PG_NAME_SIZE];
    char publication[TIDE_PG_NAME_SIZE];
    uint64_t consistent_lsn; /* where the slot began when it was made */
    bool has_tables;         /* older checkpoints do not name them */
    const struct tide_pg_told *tables;
    size_t table_count;
};

/** Appends {"system_identifier":"…","timeline":N,"slot":"…","publication":"…","consistent_point":
 * "X/Y","tables":[[OID,"store"],…]}. */
void tide_pg_state_write(const struct tide_pg_state *state, struct tide_buf *buf);

/** TIDE_CORRUPT when `json` is not of that form. The tables are in `arena`. */
tide_status tide_pg_state_read(tide_str json, struct tide_arena *arena,
                               struct tide_pg_state *ret_state, struct tide_error *err);
