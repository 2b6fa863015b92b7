#include "scripted_source.h"

#include <string.h>

uint64_t scripted_random(struct scripted_source *source, uint64_t below)
{
    source->random += 0x9e3779b97f4a7c15u; /* splitmix64 */
    uint64_t z = source->random;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (z ^ (z >> 31)) % below;
}

void scripted_init(struct scripted_source *source, uint64_t seed)
{
    memset(source, 0, sizeof(*source));
    source->random = seed;
    source->next_xid = 1;
    for (unsigned k = 0; k < SCRIPTED_KEYS; k++) {
        source->rows[k].exists = scripted_random(source, 10) < 7;
    }
    memcpy(source->seen_rows, source->rows, sizeof(source->rows));
    const struct tide_column columns[] = {
        {.name = TIDE_STR("k"), .type = TIDE_STR("int")},
        {.name = TIDE_STR("small"), .type = TIDE_STR("int")},
        {.name = TIDE_STR("big"), .type = TIDE_STR("int")},
    };
    const uint32_t key = 0;
    source->relation = tide_relation_new(&(struct tide_relation_spec){
        .id = 1,
        .connection = TIDE_STR("db"),
        .name = TIDE_STR("t"),
        .columns = columns,
        .column_count = 3,
        .key_columns = &key,
        .key_count = 1,
    });
}

void scripted_done(struct scripted_source *source)
{
    tide_relation_unref(source->relation);
    source->relation = NULL;
}

static void apply(struct scripted_row *rows, const struct scripted_change *change)
{
    if (change->op == TIDE_OP_TRUNCATE) {
        memset(rows, 0, SCRIPTED_KEYS * sizeof(*rows));
        return;
    }
    struct scripted_row old = rows[change->key];
    if (change->moved_from >= 0) {
        old = rows[change->moved_from];
        rows[change->moved_from] = (struct scripted_row){0};
    }
    rows[change->key] = (struct scripted_row){0};
    if (change->op != TIDE_OP_DELETE) {
        rows[change->key] = (struct scripted_row){
            .exists = true,
            .small = change->small,
            .big = change->is_partial ? old.big : change->big,
        };
    }
}

void scripted_begin(struct scripted_source *source)
{
    if (source->running_count == SCRIPTED_RUNNING_MAX ||
        source->log_count + source->running_count >= SCRIPTED_LOG_MAX) {
        return;
    }
    struct scripted_transaction *tx = &source->running[source->running_count++];
    tx->xid = source->next_xid++;
    tx->count = 0;
    tx->has_truncated = false;
    tx->is_silent = false;
}

static bool is_free(const struct scripted_source *source, unsigned key, uint64_t xid)
{
    return source->locked[key] == 0 || source->locked[key] == xid;
}

static bool is_all_free(const struct scripted_source *source, uint64_t xid)
{
    for (unsigned k = 0; k < SCRIPTED_KEYS; k++) {
        if (!is_free(source, k, xid)) {
            return false;
        }
    }
    return true;
}

/* The rows as the transaction sees them: what is visible and its own changes. */
static void rows_of(const struct scripted_source *source, const struct scripted_transaction *tx,
                    struct scripted_row *ret_rows)
{
    memcpy(ret_rows, source->seen_rows, sizeof(source->seen_rows));
    for (size_t i = 0; i < tx->count; i++) {
        apply(ret_rows, &tx->changes[i]);
    }
}

/* A row stays locked until its writer is visible; a truncate takes every lock. */
static bool choose_change(struct scripted_source *source, const struct scripted_transaction *tx,
                          struct scripted_change *ret_change)
{
    struct scripted_row mine[SCRIPTED_KEYS];
    rows_of(source, tx, mine);
    unsigned key = (unsigned)scripted_random(source, SCRIPTED_KEYS);
    unsigned other = (unsigned)scripted_random(source, SCRIPTED_KEYS);
    uint64_t kind = scripted_random(source, 100);
    bool is_partial = scripted_random(source, source->moves_often ? 4 : 2) != 1;
    uint32_t tag = (uint32_t)(tx->xid * 64 + tx->count);
    *ret_change = (struct scripted_change){
        .op = TIDE_OP_UPDATE, .key = key, .moved_from = -1, .small = tag, .big = tag};
    if (kind == 99 && is_all_free(source, tx->xid)) {
        ret_change->op = TIDE_OP_TRUNCATE;
        return true;
    }
    if (!is_free(source, key, tx->xid)) {
        return false;
    }
    source->locked[key] = tx->xid;
    if (!mine[key].exists) {
        return true;
    }
    ret_change->is_partial = is_partial;
    if (kind < 20) {
        *ret_change = (struct scripted_change){.op = TIDE_OP_DELETE, .key = key, .moved_from = -1};
    } else if (kind < (source->moves_often ? 90u : 40u) && !mine[other].exists &&
               is_free(source, other, tx->xid)) {
        source->locked[other] = tx->xid;
        ret_change->key = other;
        ret_change->moved_from = (int)key;
    }
    return true;
}

void scripted_write(struct scripted_source *source)
{
    if (source->running_count == 0) {
        return;
    }
    struct scripted_transaction *tx =
        &source->running[scripted_random(source, source->running_count)];
    struct scripted_change change;
    if (tx->count == SCRIPTED_CHANGES_MAX || !choose_change(source, tx, &change)) {
        return;
    }
    if (change.op == TIDE_OP_TRUNCATE) {
        tx->has_truncated = true;
        for (unsigned k = 0; k < SCRIPTED_KEYS; k++) {
            source->locked[k] = tx->xid;
        }
    }
    tx->changes[tx->count++] = change;
}

static void copy_transaction(struct scripted_transaction *to,
                             const struct scripted_transaction *from)
{
    to->xid = from->xid;
    to->count = from->count;
    to->has_truncated = from->has_truncated;
    to->is_silent = from->is_silent;
    memcpy(to->changes, from->changes, from->count * sizeof(from->changes[0]));
}

void scripted_commit_record(struct scripted_source *source)
{
    if (source->running_count == 0) {
        return;
    }
    size_t index = scripted_random(source, source->running_count);
    struct scripted_transaction *tx = &source->log[source->log_count];
    copy_transaction(tx, &source->running[index]);
    source->running_count--;
    if (index != source->running_count) {
        copy_transaction(&source->running[index], &source->running[source->running_count]);
    }
    for (size_t i = 0; i < tx->count; i++) {
        apply(source->rows, &tx->changes[i]);
    }
    source->hidden[source->hidden_count++] = source->log_count++;
}

static void finish(struct scripted_source *source, uint64_t xid)
{
    source->finished = xid > source->finished ? xid : source->finished;
}

void scripted_become_visible(struct scripted_source *source)
{
    if (source->hidden_count == 0) {
        return;
    }
    size_t at = scripted_random(source, source->hidden_count);
    const struct scripted_transaction *tx = &source->log[source->hidden[at]];
    source->hidden[at] = source->hidden[--source->hidden_count];
    finish(source, tx->xid);
    for (size_t i = 0; i < tx->count; i++) {
        apply(source->seen_rows, &tx->changes[i]);
    }
    for (unsigned k = 0; k < SCRIPTED_KEYS; k++) {
        source->locked[k] = source->locked[k] == tx->xid ? 0 : source->locked[k];
    }
}

void scripted_change_silently(struct scripted_source *source)
{
    unsigned key = (unsigned)scripted_random(source, SCRIPTED_KEYS);
    if (source->hidden_count > 0 || source->locked[key] != 0 || !source->rows[key].exists ||
        source->log_count + source->running_count >= SCRIPTED_LOG_MAX) {
        return;
    }
    struct scripted_transaction *tx = &source->log[source->log_count++];
    *tx = (struct scripted_transaction){.xid = source->next_xid++,
                                        .is_silent = source->fault != SCRIPTED_TABLE_UNSAID};
    uint32_t tag = (uint32_t)(tx->xid * 64);
    source->rows[key].small = tag;
    source->rows[key].big = tag;
    source->seen_rows[key] = source->rows[key];
    finish(source, tx->xid);
}

void scripted_make_anew(struct scripted_source *source)
{
    if (source->hidden_count > 0 || source->running_count > 0 ||
        source->log_count == SCRIPTED_LOG_MAX) {
        return;
    }
    for (size_t i = 0; i < source->log_count; i++) {
        source->log[i].count = 0;
        source->log[i].is_silent = false;
    }
    for (unsigned k = 0; k < SCRIPTED_KEYS; k++) {
        if (scripted_random(source, 2) == 0) {
            source->rows[k].exists = false;
            source->seen_rows[k].exists = false;
        }
    }
    struct scripted_transaction *tx = &source->log[source->log_count++];
    *tx = (struct scripted_transaction){.xid = source->next_xid++, .is_silent = true};
    finish(source, tx->xid);
}

size_t scripted_order_of(const struct scripted_source *source, uint32_t small)
{
    for (size_t i = 0; i < source->log_count; i++) {
        if (source->log[i].xid == small / 64) {
            return i + 1;
        }
    }
    return 0;
}

/* The ops. */

static struct scripted_source *of(struct tide_source *source)
{
    return (struct scripted_source *)(void *)source;
}

static void identity(const struct tide_source *source, struct tide_buf *buf)
{
    (void)source;
    tide_buf_append_str(buf, TIDE_STR("\"scripted\""));
}

static tide_status tables(struct tide_source *source,
                          const struct tide_relation *const **ret_tables, size_t *ret_count,
                          struct tide_error *err)
{
    (void)err;
    *ret_tables = &of(source)->relation;
    *ret_count = 1;
    return TIDE_OK;
}

static tide_status prepare(struct tide_source *source, const tide_str *saved_state,
                           struct tide_position position, struct tide_position *ret_start,
                           struct tide_error *err)
{
    if (saved_state == NULL) {
        position = (struct tide_position){.lo = of(source)->log_count};
        of(source)->confirmed = position.lo;
    } else if (!tide_str_equal(*saved_state, TIDE_STR("7"))) {
        return tide_fail(err, TIDE_STALE, "another state");
    }
    *ret_start = position;
    return TIDE_OK;
}

static tide_status stream(struct tide_source *source, struct tide_position position,
                          struct tide_error *err)
{
    if (position.lo < of(source)->confirmed) {
        return tide_fail(err, TIDE_STALE, "the log is gone");
    }
    of(source)->stream_at = position.lo;
    of(source)->stream_change = 0;
    return TIDE_OK;
}

static struct tide_value number(struct tide_arena *arena, uint64_t value)
{
    char digits[20];
    size_t at = sizeof(digits);
    do {
        digits[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value > 0);
    tide_str text = tide_arena_str(arena, tide_str_of(digits + at, sizeof(digits) - at));
    return (struct tide_value){
        .ptr = text.ptr, .len = (uint32_t)text.len, .kind = TIDE_VALUE_INTEGER};
}

static const struct tide_value *key_value(struct tide_arena *arena, unsigned key)
{
    struct tide_value *value = tide_arena_alloc(arena, 1, sizeof(*value));
    *value = number(arena, key);
    return value;
}

static bool is_hushed(const struct scripted_source *source, const struct scripted_change *change)
{
    bool is_move = change->moved_from >= 0;
    return (source->fault == SCRIPTED_PARTIAL_AS_WHOLE && !is_move) ||
           (source->fault == SCRIPTED_MOVE_AS_WHOLE && is_move);
}

static void fill_change(struct scripted_source *source, struct tide_arena *arena,
                        const struct scripted_change *change, uint64_t xid,
                        struct tide_change *ret_change)
{
    *ret_change = (struct tide_change){
        .op = change->op,
        .relation = source->relation,
        .place = {.position = {.lo = source->stream_at + 1},
                  .index = source->stream_change,
                  .known = true},
        .tx_id = xid,
    };
    if (change->op == TIDE_OP_TRUNCATE) {
        return;
    }
    ret_change->key = key_value(arena, change->key);
    if (change->moved_from >= 0) {
        ret_change->moved_from = key_value(arena, (unsigned)change->moved_from);
    }
    if (change->op == TIDE_OP_DELETE) {
        return;
    }
    struct tide_value *values = tide_arena_alloc(arena, 3, sizeof(*values));
    values[0] = number(arena, change->key);
    values[1] = number(arena, change->small);
    values[2] = change->is_partial ? (struct tide_value){.kind = TIDE_VALUE_UNCHANGED}
                                   : number(arena, change->big);
    ret_change->values = values;
    ret_change->is_partial = change->is_partial && !is_hushed(source, change);
}

static tide_status next(struct tide_source *self, struct tide_arena *arena,
                        struct tide_waker *waker, int64_t deadline_us, struct tide_event *ret_event,
                        struct tide_error *err)
{
    struct scripted_source *source = of(self);
    (void)waker;
    (void)deadline_us;
    if (source->stream_at == source->log_count) {
        return tide_fail(err, TIDE_TIMEOUT, "nothing at hand");
    }
    const struct scripted_transaction *tx = &source->log[source->stream_at];
    if (tx->is_silent && source->stream_change == 0) {
        source->stream_change++;
        *ret_event = (struct tide_event){
            .kind = TIDE_EVENT_TABLE,
            .store = source->relation->store,
            .relation = source->relation,
            .reason = TIDE_STR("its rows changed"),
        };
        return TIDE_OK;
    }
    if (source->stream_change == tx->count + tx->is_silent) {
        source->stream_at++;
        source->stream_change = 0;
        ret_event->kind = tx->count == 0 ? TIDE_EVENT_REACHED : TIDE_EVENT_COMMIT;
        ret_event->position = (struct tide_position){.lo = source->stream_at};
        return TIDE_OK;
    }
    ret_event->kind = TIDE_EVENT_CHANGE;
    fill_change(source, arena, &tx->changes[source->stream_change], tx->xid, &ret_event->change);
    source->stream_change++;
    return TIDE_OK;
}

static void state(struct tide_source *source, struct tide_buf *buf)
{
    (void)source;
    tide_buf_append_char(buf, '7');
}

static tide_status confirm(struct tide_source *source, struct tide_position position,
                           struct tide_error *err)
{
    (void)err;
    TIDE_ASSERT(position.lo >= of(source)->confirmed && position.lo <= of(source)->log_count);
    of(source)->confirmed = position.lo;
    return TIDE_OK;
}

static uint64_t retained_bytes(struct tide_source *source)
{
    return of(source)->retained;
}

static struct scripted_source *reader_of(struct tide_chunk_reader *reader)
{
    return (struct scripted_source *)(void *)reader;
}

static tide_status reader_open(struct tide_source *source, struct tide_chunk_reader **ret_reader,
                               struct tide_error *err)
{
    (void)err;
    *ret_reader = (struct tide_chunk_reader *)(void *)source;
    return TIDE_OK;
}

static void reader_close(struct tide_chunk_reader *reader)
{
    (void)reader;
}

/* A transaction of our own that takes an id and is finished at once. */
static tide_status reader_remember(struct tide_chunk_reader *reader,
                                   const struct tide_relation *relation, struct tide_error *err)
{
    struct scripted_source *source = reader_of(reader);
    (void)relation;
    (void)err;
    if (source->fault == SCRIPTED_HORIZON_FROM_XMAX) {
        source->horizon = source->finished; /* trusted then means xmin >= xmax seen here */
        return TIDE_OK;
    }
    source->horizon = source->next_xid++;
    finish(source, source->horizon);
    return TIDE_OK;
}

static void add_in_progress(uint64_t *ids, size_t *count, uint64_t xid, uint64_t xmax)
{
    if (xid >= xmax) {
        return;
    }
    size_t at = *count;
    for (; at > 0 && ids[at - 1] > xid; at--) {
        ids[at] = ids[at - 1];
    }
    ids[at] = xid;
    (*count)++;
}

static void set_visibility(struct tide_chunk *chunk, uint64_t *ids, size_t count, uint64_t xmax)
{
    chunk->visibility = (struct tide_visibility){.xmin = count > 0 ? ids[0] : xmax,
                                                 .xmax = xmax,
                                                 .in_progress = ids,
                                                 .in_progress_count = count};
}

/* False: a truncate that is not visible yet holds the table's lock. */
static bool take_snapshot(const struct scripted_source *source, struct tide_chunk *chunk)
{
    bool is_locked = false;
    uint64_t xmax = source->finished + 1;
    uint64_t *ids =
        tide_arena_alloc(&chunk->arena, source->running_count + source->hidden_count, sizeof(*ids));
    size_t count = 0;
    for (size_t i = 0; i < source->running_count; i++) {
        add_in_progress(ids, &count, source->running[i].xid, xmax);
        is_locked = is_locked || source->running[i].has_truncated;
    }
    for (size_t i = 0; i < source->hidden_count; i++) {
        const struct scripted_transaction *tx = &source->log[source->hidden[i]];
        add_in_progress(ids, &count, tx->xid, xmax);
        is_locked = is_locked || tx->has_truncated;
    }
    set_visibility(chunk, ids, count, xmax);
    return !is_locked;
}

/* The watermark fault: everything streamed so far counts as seen, nothing else does. */
static void take_watermark(const struct scripted_source *source, struct tide_chunk *chunk)
{
    uint64_t *ids =
        tide_arena_alloc(&chunk->arena, SCRIPTED_LOG_MAX + SCRIPTED_RUNNING_MAX, sizeof(*ids));
    size_t count = 0;
    for (size_t i = source->stream_at; i < source->log_count; i++) {
        add_in_progress(ids, &count, source->log[i].xid, UINT64_MAX);
    }
    for (size_t i = 0; i < source->running_count; i++) {
        add_in_progress(ids, &count, source->running[i].xid, UINT64_MAX);
    }
    set_visibility(chunk, ids, count, source->next_xid);
}

static void read_key(const struct scripted_source *source, struct tide_chunk *chunk, unsigned key)
{
    const struct scripted_row *row = &source->seen_rows[key];
    if (row->exists) {
        struct tide_value *values = tide_chunk_add_row(chunk, 3);
        values[0] = number(&chunk->arena, key);
        values[1] = number(&chunk->arena, row->small);
        values[2] = number(&chunk->arena, row->big);
    }
}

static unsigned key_number(const struct tide_value *key)
{
    uint64_t value = 0;
    TIDE_ASSERT(tide_str_to_u64(tide_value_str(*key), &value));
    return (unsigned)value;
}

static void read_range(const struct scripted_source *source,
                       const struct tide_chunk_request *request, struct tide_chunk *chunk)
{
    unsigned key = request->after_key == NULL ? 0 : key_number(request->after_key) + 1;
    for (; key < SCRIPTED_KEYS && chunk->row_count < request->rows_max; key++) {
        if (source->seen_rows[key].exists) {
            read_key(source, chunk, key);
            chunk->last_key = key_value(&chunk->arena, key);
        }
    }
    chunk->is_last = chunk->row_count < request->rows_max;
}

static tide_status reader_read(struct tide_chunk_reader *reader,
                               const struct tide_chunk_request *request,
                               struct tide_chunk *ret_chunk, struct tide_error *err)
{
    struct scripted_source *source = reader_of(reader);
    if (!take_snapshot(source, ret_chunk)) {
        tide_chunk_done(ret_chunk);
        return tide_fail_retriable(err, TIDE_TIMEOUT, "the table is locked");
    }
    bool has_position = source->fault != SCRIPTED_NO_POSITION;
    ret_chunk->position = (struct tide_position){.lo = has_position ? source->log_count : 0};
    ret_chunk->is_trusted =
        ret_chunk->visibility.xmin > source->horizon || source->fault == SCRIPTED_ALWAYS_TRUSTED;
    if (!ret_chunk->is_trusted) {
        return TIDE_OK;
    }
    if (source->fault == SCRIPTED_WATERMARKS) {
        take_watermark(source, ret_chunk);
    }
    if (!request->range_is_done) {
        read_range(source, request, ret_chunk);
    }
    for (size_t i = 0; i < request->again_count; i++) {
        read_key(source, ret_chunk, key_number(request->again[i]));
    }
    return TIDE_OK;
}

const struct tide_source_ops scripted_source_ops = {
    .scheme = "scripted",
    .position_kind = &tide_position_integer,
    .identity = identity,
    .tables = tables,
    .prepare = prepare,
    .stream = stream,
    .retained_bytes = retained_bytes,
    .next = next,
    .state = state,
    .confirm = confirm,
    .reader_open = reader_open,
    .reader_close = reader_close,
    .reader_remember = reader_remember,
    .reader_read = reader_read,
};
