#include "source/postgres/pg_follow.h"

#include "base/alloc.h"
#include "source/postgres/pg_position.h"
#include "source/postgres/pg_row.h"

#include <stdlib.h>

void tide_pg_follow_start(struct tide_pg_follow *follow, struct tide_pg_relations *relations,
                          struct tide_position start, uint64_t known_tx_id)
{
    tide_pg_relations_restart(relations);
    follow->relations = relations;
    follow->start = start;
    follow->reached = start;
    follow->known_tx_id = known_tx_id;
    follow->is_open = false;
    follow->pending_count = 0;
    follow->pending_at = 0;
}

void tide_pg_follow_done(struct tide_pg_follow *follow)
{
    free(follow->pending);
    tide_arena_done(&follow->arena);
    tide_pg_scratch_done(&follow->scratch);
    *follow = (struct tide_pg_follow){0};
}

uint64_t tide_pg_extend_tx_id(uint32_t xid, uint64_t near_id)
{
    uint64_t round = (uint64_t)1 << 32;
    uint64_t id = (near_id & ~(round - 1)) | xid;
    if (id > near_id && id - near_id > round / 2 && id >= round) {
        return id - round;
    }
    if (id < near_id && near_id - id > round / 2) {
        return id + round;
    }
    return id;
}

/* Transactions */

static tide_status begin(struct tide_pg_follow *follow, const struct tide_pgoutput_begin *message,
                         struct tide_error *err)
{
    if (follow->is_open) {
        return tide_fail(err, TIDE_CORRUPT, "change stream: a BEGIN inside a transaction");
    }
    follow->is_open = true;
    follow->is_known = message->final_lsn <= follow->start.lo;
    follow->has_brought = false;
    follow->lsn = message->final_lsn;
    follow->commit_us = message->commit_us;
    follow->tx_id = tide_pg_extend_tx_id(message->xid, follow->known_tx_id);
    follow->known_tx_id = follow->tx_id;
    follow->index = 0;
    return TIDE_OK;
}

static bool reach(struct tide_pg_follow *follow, enum tide_event_kind kind,
                  struct tide_position position, struct tide_event *ret_event)
{
    if (tide_position_compare(position, follow->reached) <= 0) {
        return false;
    }
    follow->reached = position;
    *ret_event = (struct tide_event){.kind = kind, .position = position};
    return true;
}

static tide_status commit(struct tide_pg_follow *follow, const struct tide_pgoutput_commit *message,
                          struct tide_event *ret_event, bool *ret_has_event, struct tide_error *err)
{
    if (!follow->is_open || message->commit_lsn != follow->lsn) {
        return tide_fail(err, TIDE_CORRUPT,
                         "change stream: a COMMIT at %X/%X that no BEGIN announced",
                         (unsigned)(message->commit_lsn >> 32), (unsigned)message->commit_lsn);
    }
    enum tide_event_kind kind = follow->has_brought ? TIDE_EVENT_COMMIT : TIDE_EVENT_REACHED;
    follow->is_open = false;
    *ret_has_event = reach(follow, kind, (struct tide_position){.lo = follow->lsn}, ret_event);
    return TIDE_OK;
}

bool tide_pg_follow_keepalive(struct tide_pg_follow *follow, uint64_t lsn,
                              struct tide_event *ret_event)
{
    return !follow->is_open &&
           reach(follow, TIDE_EVENT_REACHED, tide_pg_position_up_to(lsn), ret_event);
}

/* Changes */

static tide_str tx_text(const struct tide_pg_follow *follow, struct tide_arena *arena)
{
    char digits[20];
    size_t at = sizeof(digits);
    uint64_t rest = follow->tx_id;
    do {
        digits[--at] = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest > 0);
    return tide_arena_str(arena, tide_str_of(digits + at, sizeof(digits) - at));
}

/* A change of the transaction under way; the caller fills in what it changed. */
static struct tide_change *start_change(struct tide_pg_follow *follow, enum tide_op op,
                                        const struct tide_pg_followed *table,
                                        struct tide_arena *arena, struct tide_event *ret_event)
{
    *ret_event = (struct tide_event){
        .kind = TIDE_EVENT_CHANGE,
        .change = {
            .op = op,
            .relation = table->relation,
            .place = {.position = {.lo = follow->lsn}, .index = follow->index, .known = true},
            .tx_id = follow->tx_id,
            .commit_us = follow->commit_us,
            .tx = tx_text(follow, arena),
        }};
    follow->has_brought = true;
    return &ret_event->change;
}

static tide_status row_change(struct tide_pg_follow *follow, enum tide_op op,
                              const struct tide_pgoutput_change *message,
                              const struct tide_pg_followed *table, struct tide_arena *arena,
                              struct tide_event *ret_event, struct tide_error *err)
{
    if (!table->is_described) {
        return tide_fail(err, TIDE_CORRUPT,
                         "change stream: a change to table %.*s comes before its description",
                         TIDE_STR_ARG(table->relation->store));
    }
    struct tide_change *change = start_change(follow, op, table, arena, ret_event);
    tide_status status = tide_pg_row_fill(table, message, arena, &follow->scratch, change, err);
    if (status != TIDE_OK) {
        return tide_fail_context(err, "change stream: table %.*s",
                                 TIDE_STR_ARG(table->relation->store));
    }
    return TIDE_OK;
}

static void keep_pending(struct tide_pg_follow *follow,
                         const struct tide_pgoutput_truncate *message)
{
    if (follow->pending_cap < message->count) {
        follow->pending_cap = message->count;
        follow->pending = tide_realloc(follow->pending, message->count, sizeof(*follow->pending));
    }
    if (message->count > 0) {
        memcpy(follow->pending, message->relation_oids, message->count * sizeof(*follow->pending));
    }
    follow->pending_count = message->count;
    follow->pending_at = 0;
}

bool tide_pg_follow_take_pending(struct tide_pg_follow *follow, struct tide_arena *arena,
                                 struct tide_event *ret_event)
{
    while (follow->pending_at < follow->pending_count) {
        uint32_t oid = follow->pending[follow->pending_at++];
        const struct tide_pg_followed *table = tide_pg_relations_find(follow->relations, oid);
        bool is_brought = table != NULL && !follow->is_known;
        if (is_brought) {
            (void)start_change(follow, TIDE_OP_TRUNCATE, table, arena, ret_event);
        }
        follow->index++;
        if (is_brought) {
            return true;
        }
    }
    return false;
}

static bool is_row_type(enum tide_pgoutput_type type)
{
    return type == TIDE_PGOUTPUT_INSERT || type == TIDE_PGOUTPUT_UPDATE ||
           type == TIDE_PGOUTPUT_DELETE;
}

static enum tide_op op_of(enum tide_pgoutput_type type)
{
    return type == TIDE_PGOUTPUT_INSERT   ? TIDE_OP_INSERT
           : type == TIDE_PGOUTPUT_UPDATE ? TIDE_OP_UPDATE
                                          : TIDE_OP_DELETE;
}

static tide_status take_change(struct tide_pg_follow *follow, const struct tide_pgoutput *message,
                               struct tide_arena *arena, struct tide_event *ret_event,
                               bool *ret_has_event, struct tide_error *err)
{
    if (!follow->is_open) {
        return tide_fail(err, TIDE_CORRUPT, "change stream: a change outside of a transaction");
    }
    if (message->type == TIDE_PGOUTPUT_TRUNCATE) {
        keep_pending(follow, &message->truncate);
        *ret_has_event = tide_pg_follow_take_pending(follow, arena, ret_event);
        return TIDE_OK;
    }
    const struct tide_pg_followed *table =
        tide_pg_relations_find(follow->relations, message->change.relation_oid);
    if (table != NULL && !follow->is_known) {
        TIDE_TRY(row_change(follow, op_of(message->type), &message->change, table, arena, ret_event,
                            err));
        *ret_has_event = true;
    }
    follow->index++;
    return TIDE_OK;
}

tide_status tide_pg_follow_take(struct tide_pg_follow *follow, tide_str body,
                                struct tide_arena *arena, struct tide_event *ret_event,
                                bool *ret_has_event, struct tide_error *err)
{
    struct tide_pgoutput message;
    *ret_has_event = false;
    TIDE_ASSERT(follow->pending_at == follow->pending_count);
    tide_arena_reset(&follow->arena);
    if (body.len > 0 && is_row_type((enum tide_pgoutput_type)body.ptr[0]) && !follow->is_known) {
        body = tide_arena_str(arena, body); /* values are slices of it */
    }
    TIDE_TRY(tide_pgoutput_decode(body, &follow->arena, &message, err));
    switch (message.type) {
    case TIDE_PGOUTPUT_BEGIN:
        return begin(follow, &message.begin, err);
    case TIDE_PGOUTPUT_COMMIT:
        return commit(follow, &message.commit, ret_event, ret_has_event, err);
    case TIDE_PGOUTPUT_RELATION:
        return tide_pg_relations_describe(follow->relations, &message.relation, err);
    case TIDE_PGOUTPUT_INSERT:
    case TIDE_PGOUTPUT_UPDATE:
    case TIDE_PGOUTPUT_DELETE:
    case TIDE_PGOUTPUT_TRUNCATE:
        return take_change(follow, &message, arena, ret_event, ret_has_event, err);
    case TIDE_PGOUTPUT_ORIGIN:  /* where it was made first does not matter to a copy */
    case TIDE_PGOUTPUT_TYPE:    /* the catalogue says it, and more of it */
    case TIDE_PGOUTPUT_MESSAGE: /* not asked for */
        return TIDE_OK;
    }
    return tide_fail(err, TIDE_UNSUPPORTED, "change stream: a message of type %d",
                     (int)message.type);
}
