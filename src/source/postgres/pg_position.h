/*
 * Positions of this source. `lo` is an LSN P: covered is every transaction whose commit record
 * starts at or before P. A transaction's own position is the start of its commit record, which
 * BEGIN tells before the first change.
 *
 * The server counts otherwise: "up to L" is every record that ends at or before L, and the next
 * commit record may start exactly at L (two transactions that commit one right after the other).
 * What is known as "up to L" is therefore position L - 1, else the second one would be taken as
 * brought, and a row read between the two as newer than it.
 *
 *         | commit of T1 | commit of T2 |
 *         P1             L=P2            "up to L": T1 and not T2
 */
#pragma once

#include "model/position.h"

/** What is covered when the log was read up to `lsn`: keep-alives, insert and consistent points. */
static inline struct tide_position tide_pg_position_up_to(uint64_t lsn)
{
    return (struct tide_position){.lo = lsn == 0 ? 0 : lsn - 1};
}

/** The LSN from which on nothing of `position` is needed: START_REPLICATION, flushed in a status.
 */
static inline uint64_t tide_pg_position_next(struct tide_position position)
{
    return position.lo + 1;
}
