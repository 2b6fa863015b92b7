/*
 * From the messages of the stream to the events of the source port: keeps where in a transaction
 * we are. No I/O, but for types that only the server knows (see pg_relations.h).
 *
 *     B (R* I|U|D|T|O|Y|M)* C   k        a transaction, then a keep-alive
 *       each row change: CHANGE          COMMIT behind its changes, REACHED when there were none
 *
 * A Truncate of several tables gives a change for each of them: take_pending brings the rest.
 */
#pragma once

#include "port/source.h"
#include "source/postgres/pg_relations.h"
#include "source/postgres/pgoutput.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tide_pg_follow {
    struct tide_pg_relations *relations;
    struct tide_position start;   /* transactions at or before it have been brought before */
    struct tide_position reached; /* the last that an event said */
    uint64_t known_tx_id;         /* near which the next one lies */

    /* the transaction under way */
    bool is_open;
    bool is_known;     /* at or before `start` */
    bool has_brought;  /* a change */
    uint64_t lsn;      /* of its commit record */
    int64_t commit_us; /* UTC */
    uint64_t tx_id;
    uint64_t index; /* of the next change */

    /* of a Truncate: tables not yet brought */
    uint32_t *pending;
    size_t pending_count;
    size_t pending_at;
    size_t pending_cap;

    struct tide_arena arena; /* of the message in hand */
    struct tide_pg_scratch scratch;
};

/** A session of the stream begins behind `start`. `relations` stays the caller's; `known_tx_id` is
 * a recent transaction id of the server. `{0}` may be started, and started again. */
void tide_pg_follow_start(struct tide_pg_follow *follow, struct tide_pg_relations *relations,
                          struct tide_position start, uint64_t known_tx_id);
void tide_pg_follow_done(struct tide_pg_follow *follow);

/**
 * Takes one pgoutput message. `ret_has_event` says whether it gave an event; its values are in
 * `arena`, copied.
 * Errors: TIDE_CORRUPT messages in an order that cannot be, values that are none of their type,
 * changes of tables that were not described; of tide_pgoutput_decode and
 * tide_pg_relations_describe.
 */
tide_status tide_pg_follow_take(struct tide_pg_follow *follow, tide_str body,
                                struct tide_arena *arena, struct tide_event *ret_event,
                                bool *ret_has_event, struct tide_error *err);

/** The next change of a Truncate that was taken before; false: there is none. */
bool tide_pg_follow_take_pending(struct tide_pg_follow *follow, struct tide_arena *arena,
                                 struct tide_event *ret_event);

/** A keep-alive: the sender has dealt with the log up to `lsn`. False: it says nothing new, or a
 * transaction is under way. */
bool tide_pg_follow_keepalive(struct tide_pg_follow *follow, uint64_t lsn,
                              struct tide_event *ret_event);

/** A transaction id with its upper half: the one nearest to `near_id`. */
uint64_t tide_pg_extend_tx_id(uint32_t xid, uint64_t near_id);
