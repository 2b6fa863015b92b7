/* Folding against a simple model: a source whose every state is known, copied and followed with
 * kills, replays and abandoned copies, then rebuilt as of random moments. */
#include "cmocka_prelude.h"

#include "archive/change_fold.h"
#include "base/alloc.h"
#include "base/attr.h"

#include <stdio.h>
#include <stdlib.h>

#define KEYS        8
#define STEPS       250
#define CHANGES_MAX 1024
#define POSITIONS   400
#define SNAPSHOTS   64

static const char json[] = "{\"version\":1,\"store\":\"s.t\",\"schema\":\"\",\"table\":\"t\","
                           "\"position_kind\":\"integer\",\"columns\":["
                           "{\"name\":\"k\",\"type\":\"INTEGER\",\"hidden\":false},"
                           "{\"name\":\"a\",\"type\":\"INTEGER\",\"hidden\":false},"
                           "{\"name\":\"b\",\"type\":\"TEXT\",\"hidden\":false}],\"key\":[\"k\"]}";

/* A row of the source; `a` of 9 makes its record too long. */
struct cell {
    bool is_there;
    unsigned a, b;
};

struct state {
    struct cell rows[KEYS];
    int64_t commit_us; /* of the transaction that made it */
};

struct change {
    enum tide_op op;
    struct tide_place place, prev;
    int64_t commit_us;
    unsigned key, old_key; /* the same when it did not move */
    struct cell row;
    bool is_b_sent;
};

struct copy {
    bool is_open;
    char id[TIDE_UUID_LEN + 1];
    unsigned next_key;
    uint64_t seq;
    unsigned key_after[1024]; /* where to go on after so many rows */
    uint32_t attempt;
    uint64_t starts[64];
    struct tide_place changes_from;
    uint64_t newest_row;
    uint64_t floor; /* chunks are read at this position or later */
};

/* A snapshot that is complete. */
struct done {
    int64_t completed_us;
    uint64_t newest; /* position */
};

struct world {
    uint64_t random;
    int64_t now_us;
    struct state states[POSITIONS]; /* by position, from 0: empty */
    uint64_t position;
    struct change changes[CHANGES_MAX]; /* of the log */
    size_t change_count;
    size_t published; /* changes that were delivered, at least once */
    struct copy copy;
    unsigned copy_count;
    struct done done[SNAPSHOTS];
    size_t done_count;
    int64_t ts;
    struct tide_buf bytes; /* of all rows */
    struct tide_buf rows;  /* size_t: their ends */
};

static uint64_t below(struct world *world, uint64_t limit)
{
    uint64_t z = world->random += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (z ^ (z >> 31)) % limit;
}

static void world_free(struct world **world)
{
    tide_buf_done(&(*world)->bytes);
    tide_buf_done(&(*world)->rows);
    free(*world);
}

static void deliver(struct world *world, const struct tide_change_row *row)
{
    tide_change_row_encode(row, 3, 1, &world->bytes);
    tide_buf_append(&world->rows, &world->bytes.len, sizeof(world->bytes.len));
    world->ts++;
}

static struct tide_value number(unsigned value)
{
    static const char digits[] = "0123456789";
    return (struct tide_value){.ptr = digits + value, .len = 1, .kind = TIDE_VALUE_INTEGER};
}

static void set_values(struct tide_value values[3], unsigned key, const struct cell *row)
{
    values[0] = number(key);
    values[1] = number(row->a);
    values[2] = number(row->b);
    values[2].kind = TIDE_VALUE_TEXT;
}

/* The source. */

static void log_change(struct world *world, struct change change, uint64_t index)
{
    change.place = (struct tide_place){{0, world->position}, index, true};
    change.commit_us = world->now_us;
    if (world->change_count > 0) {
        change.prev = world->changes[world->change_count - 1].place;
    }
    world->changes[world->change_count++] = change;
}

static void change_row(struct world *world, struct state *state, unsigned key, uint64_t index)
{
    struct cell *row = &state->rows[key];
    struct change change = {.key = key, .old_key = key, .is_b_sent = true};
    unsigned to = (unsigned)below(world, KEYS);
    bool was_too_long = row->a == 9;
    if (!row->is_there) {
        *row = (struct cell){true, (unsigned)below(world, 10), (unsigned)below(world, 10)};
        change.op = TIDE_OP_INSERT;
    } else if (below(world, 4) == 0) {
        *row = (struct cell){0};
        change.op = TIDE_OP_DELETE;
    } else {
        change.op = TIDE_OP_UPDATE;
        row->a = (unsigned)below(world, 10);
        change.is_b_sent = was_too_long || below(world, 2) == 0;
        if (below(world, 2) == 0 && change.is_b_sent) {
            row->b = (unsigned)below(world, 10);
        }
        if (below(world, 3) == 0 && !state->rows[to].is_there) {
            state->rows[to] = *row;
            *row = (struct cell){0};
            row = &state->rows[to];
            change.key = to;
            change.is_b_sent = true; /* else the new key would have to be read again */
        }
    }
    change.row = *row;
    log_change(world, change, index);
}

static void commit(struct world *world)
{
    if (world->position + 1 == POSITIONS || world->change_count + 4 > CHANGES_MAX) {
        return;
    }
    struct state *state = &world->states[world->position + 1];
    *state = world->states[world->position];
    state->commit_us = world->now_us;
    world->position++;
    uint64_t count = 1 + below(world, 3);
    for (uint64_t i = 0; i < count; i++) {
        if (below(world, 25) == 0) {
            memset(state->rows, 0, sizeof(state->rows));
            log_change(world, (struct change){.op = TIDE_OP_TRUNCATE}, i);
        } else {
            change_row(world, state, (unsigned)below(world, KEYS), i);
        }
    }
}

/* What is delivered. */

static void deliver_change(struct world *world, const struct change *change)
{
    struct tide_value values[3];
    struct tide_value old_key = number(change->old_key);
    bool has_record = change->op == TIDE_OP_INSERT || change->op == TIDE_OP_UPDATE;
    bool is_too_long = has_record && change->row.a == 9;
    set_values(values, change->key, &change->row);
    if (!change->is_b_sent) {
        values[2] = (struct tide_value){.kind = TIDE_VALUE_UNCHANGED};
    }
    const struct tide_change_row row = {
        .op = change->op,
        .place = change->place,
        .prev = change->prev,
        .commit_us = change->commit_us,
        .key = change->op == TIDE_OP_TRUNCATE ? NULL : values,
        .moved_from = has_record && change->key != change->old_key ? &old_key : NULL,
        .values = has_record && !is_too_long ? values : NULL,
        .bytes = is_too_long ? 1000000 : 0,
    };
    deliver(world, &row);
}

static void publish(struct world *world)
{
    if (world->published < world->change_count) {
        deliver_change(world, &world->changes[world->published++]);
    }
}

static struct tide_place last_published(const struct world *world)
{
    return world->published == 0 ? (struct tide_place){0}
                                 : world->changes[world->published - 1].place;
}

static struct tide_change_row copy_row(const struct copy *copy, enum tide_change_row_kind kind)
{
    struct tide_change_row row = {.kind = kind, .attempt = copy->attempt, .seq = copy->seq};
    memcpy(row.snapshot_id, copy->id, sizeof(row.snapshot_id));
    row.starts = kind >= TIDE_ROW_RESUME ? copy->starts : NULL;
    return row;
}

static void begin_copy(struct world *world)
{
    struct copy *copy = &world->copy;
    *copy = (struct copy){.is_open = true, .changes_from = last_published(world)};
    (void)snprintf(copy->id, sizeof(copy->id), "01900000-0000-7000-8000-%012u",
                   world->copy_count++);
    copy->floor = world->position;
    struct tide_change_row row = copy_row(copy, TIDE_ROW_BEGIN);
    row.place = copy->changes_from;
    row.commit_us = world->now_us;
    deliver(world, &row);
}

/* The newest change of the key that was published and is of a later position. */
static const struct change *unseen(const struct world *world, unsigned key, uint64_t position)
{
    for (size_t i = world->published; i > 0; i--) {
        const struct change *change = &world->changes[i - 1];
        if (change->place.position.lo <= position) {
            return NULL;
        }
        if (change->op == TIDE_OP_TRUNCATE || change->key == key || change->old_key == key) {
            return change;
        }
    }
    return NULL;
}

/* Whether the change leaves the key with a row, and does not tell all of it. */
static bool is_partial(const struct change *change, unsigned key)
{
    bool has_row = change->op == TIDE_OP_INSERT || change->op == TIDE_OP_UPDATE;
    return has_row && change->key == key && !(change->is_b_sent && change->row.a != 9);
}

static void deliver_row(struct world *world, unsigned key, uint64_t position)
{
    struct copy *copy = &world->copy;
    const struct cell *cell = &world->states[position].rows[key];
    if (cell->is_there) {
        struct tide_value values[3];
        bool is_stub = cell->a == 9;
        struct tide_change_row row = copy_row(copy, is_stub ? TIDE_ROW_STUB : TIDE_ROW_SNAPSHOT);
        set_values(values, key, cell);
        row.place = (struct tide_place){{0, position}, TIDE_INDEX_AFTER_ALL, true};
        row.values = is_stub ? NULL : values;
        row.key = is_stub ? values : NULL;
        row.bytes = is_stub ? 1000000 : 0;
        deliver(world, &row);
        copy->seq++;
        copy->newest_row = position > copy->newest_row ? position : copy->newest_row;
    }
}

/* As docs/snapshot.md: at the end of a transaction, of a chunk that was read some time before; what
 * changes bring is withheld, what they bring in part goes out as they have made it. */
static void read_row(struct world *world)
{
    struct copy *copy = &world->copy;
    uint64_t now = world->published == world->change_count
                       ? world->position
                       : world->changes[world->published].place.position.lo - 1;
    if (now < copy->floor || last_published(world).position.lo > now) {
        return;
    }
    uint64_t read = copy->floor + below(world, now - copy->floor + 1);
    unsigned key = copy->next_key++;
    const struct change *change = unseen(world, key, read);
    if (change == NULL || is_partial(change, key)) {
        deliver_row(world, key, change == NULL ? read : now);
    }
    copy->key_after[copy->seq] = copy->next_key;
}

static void end_copy(struct world *world)
{
    struct copy *copy = &world->copy;
    struct tide_change_row row = copy_row(copy, TIDE_ROW_END);
    struct tide_place to = last_published(world);
    row.place = to;
    row.commit_us = world->now_us;
    deliver(world, &row);
    copy->is_open = false;
    struct done *done = &world->done[world->done_count++];
    *done = (struct done){world->now_us, copy->newest_row};
    if (to.known && to.position.lo > done->newest) {
        done->newest = to.position.lo;
    }
}

static void step_copy(struct world *world)
{
    struct copy *copy = &world->copy;
    if (!copy->is_open) {
        if (below(world, 4) == 0 && world->done_count < SNAPSHOTS) {
            begin_copy(world);
        }
    } else if (copy->next_key < KEYS) {
        read_row(world);
    } else {
        end_copy(world);
    }
}

/* Changes come again from an earlier one; a copy goes on from an earlier row, or is given up. */
static void die(struct world *world)
{
    struct copy *copy = &world->copy;
    size_t back = below(world, 6);
    size_t floor = 0;
    while (copy->is_open && floor < world->published &&
           tide_place_compare(world->changes[floor].place, copy->changes_from) <= 0) {
        floor++;
    }
    size_t to = world->published > back ? world->published - back : 0;
    world->published = to < floor ? floor : to;
    if (!copy->is_open) {
        return;
    }
    if (copy->attempt == 10 || below(world, 4) == 0) {
        copy->is_open = false;
        return;
    }
    copy->seq -= below(world, copy->seq + 1);
    copy->next_key = copy->key_after[copy->seq];
    copy->starts[copy->attempt++] = copy->seq;
    struct tide_change_row row = copy_row(copy, TIDE_ROW_RESUME);
    row.place = last_published(world);
    row.commit_us = world->now_us;
    copy->floor = world->position;
    deliver(world, &row);
}

static struct world *make_world(uint64_t seed)
{
    struct world *world = tide_alloc(1, sizeof(*world));
    world->random = seed;
    for (size_t i = 0; i < STEPS; i++) {
        world->now_us += 1 + (int64_t)below(world, 5);
        switch (below(world, 8)) {
        case 0:
        case 1:
            commit(world);
            break;
        case 2:
        case 3:
        case 4:
            for (uint64_t n = below(world, 4); n > 0; n--) {
                publish(world);
            }
            break;
        case 5:
        case 6:
            step_copy(world);
            break;
        default:
            if (below(world, 4) == 0) {
                die(world);
            }
        }
    }
    world->now_us++;
    while (world->published < world->change_count) {
        publish(world);
    }
    return world;
}

/* Rebuilding. */

static tide_str row_bytes(const struct world *world, size_t i)
{
    const size_t *ends = (const size_t *)(const void *)world->rows.ptr;
    size_t start = i == 0 ? 0 : ends[i - 1];
    return tide_str_of(world->bytes.ptr + start, ends[i] - start);
}

/* Of all rows from `first` on, but for `left_out`. */
static struct tide_change_history *read_some(const struct world *world, int64_t first,
                                             int64_t left_out)
{
    struct tide_change_history *history = tide_change_history_new(&tide_position_integer);
    struct tide_arena arena TIDE_CLEANUP(tide_arena_done) = {0};
    for (int64_t i = first; i < world->ts; i++) {
        struct tide_change_row row;
        struct tide_error err = {0};
        if (i == left_out) {
            continue;
        }
        tide_arena_reset(&arena);
        assert_int_equal(
            tide_change_row_decode(row_bytes(world, (size_t)i), 3, 1, &arena, &row, &err), TIDE_OK);
        tide_change_history_add(history, i, &row);
    }
    return history;
}

static struct tide_change_history *read_history(const struct world *world)
{
    return read_some(world, 0, -1);
}

static struct tide_change_lack lack_of(const struct tide_change_history *history)
{
    struct tide_change_lack lack = {0};
    size_t count = 0;
    (void)tide_change_history_snapshots(history, &count);
    for (size_t i = 0; i < count; i++) {
        struct tide_change_lack one = tide_change_history_lack(history, i, 0);
        lack.rows += one.rows;
        lack.first_seq = one.rows > 0 ? one.first_seq : lack.first_seq;
    }
    return lack;
}

static void expect_lack(const struct world *world, int64_t first, int64_t left_out, uint64_t rows,
                        uint64_t seq)
{
    struct tide_change_history *history TIDE_CLEANUP(tide_change_history_free_ptr) =
        read_some(world, first, left_out);
    struct tide_change_lack lack = lack_of(history);
    assert_int_equal(lack.rows, rows);
    assert_int_equal(lack.first_seq, seq);
}

/* One row of a copy that has ended, and counts, is left out. False: that row is none. */
static bool expect_one_lack(const struct world *world, const struct tide_change_history *history,
                            int64_t at)
{
    struct tide_arena arena TIDE_CLEANUP(tide_arena_done) = {0};
    struct tide_change_row row;
    struct tide_error err = {0};
    size_t count = 0;
    assert_int_equal(tide_change_row_decode(row_bytes(world, (size_t)at), 3, 1, &arena, &row, &err),
                     TIDE_OK);
    const struct tide_change_snapshot *all = tide_change_history_snapshots(history, &count);
    for (size_t i = 0; i < count; i++) {
        if ((row.kind == TIDE_ROW_SNAPSHOT || row.kind == TIDE_ROW_STUB) && all[i].is_complete &&
            strcmp(all[i].id, row.snapshot_id) == 0 && !tide_change_snapshot_voids(&all[i], &row)) {
            expect_lack(world, 0, at, 1, row.seq);
            return true;
        }
    }
    return false;
}

static void lack_of_random_histories_is_what_was_left_out(void **state)
{
    size_t left_out = 0;
    (void)state;
    for (uint64_t seed = 1; seed <= 1500; seed++) {
        struct world *world TIDE_CLEANUP(world_free) = make_world(seed);
        struct tide_change_history *history TIDE_CLEANUP(tide_change_history_free_ptr) =
            read_history(world);
        expect_lack(world, 0, -1, 0, 0);
        for (int i = 0; i < 16 && world->ts > 0; i++) {
            int64_t at = (int64_t)below(world, (uint64_t)world->ts);
            expect_lack(world, at, -1, 0, 0); /* what is older was forgotten */
            left_out += expect_one_lack(world, history, at);
        }
    }
    assert_true(left_out > 300);
}

static void expect_row(const struct tide_change_state *got, const struct cell *want, unsigned key)
{
    assert_true(tide_value_equal(got->key[0], number(key)));
    assert_int_equal(got->is_stale, want->a == 9);
    assert_int_equal(got->bytes, want->a == 9 ? 1000000 : 0);
    if (want->a != 9) {
        struct tide_value values[3];
        set_values(values, key, want);
        assert_non_null(got->values);
        for (size_t i = 0; i < 3; i++) {
            assert_true(tide_value_equal(got->values[i], values[i]));
        }
    }
}

static void expect_state(const struct world *world, const struct tide_change_history *history,
                         const struct tide_change_moment *moment, const struct state *want,
                         bool from_start)
{
    struct tide_change_fold *fold TIDE_CLEANUP(tide_change_fold_free_ptr) = NULL;
    struct tide_error err = {0};
    struct tide_change_state row;
    assert_int_equal(tide_change_fold_new(history, moment, &fold, &err), TIDE_OK);
    assert_int_equal(tide_change_fold_set_schema(fold, TIDE_STR(json), &err), TIDE_OK);
    for (int64_t i = from_start ? 0 : tide_change_fold_start(fold); i < world->ts; i++) {
        TIDE_CLEANUP(tide_arena_done) struct tide_arena arena = {0};
        struct tide_change_row taken;
        assert_int_equal(
            tide_change_row_decode(row_bytes(world, (size_t)i), 3, 1, &arena, &taken, &err),
            TIDE_OK);
        assert_int_equal(tide_change_fold_add(fold, &taken, &err), TIDE_OK);
    }
    for (unsigned key = 0; key < KEYS; key++) {
        if (want->rows[key].is_there) {
            assert_true(tide_change_fold_next(fold, &row));
            expect_row(&row, &want->rows[key], key);
        }
    }
    assert_false(tide_change_fold_next(fold, &row));
    assert_int_equal(tide_change_fold_doubts(fold).gaps, 0);
    assert_false(tide_change_fold_doubts(fold).is_beyond);
}

static bool can_rebuild(const struct world *world, const struct tide_change_moment *moment)
{
    for (size_t i = 0; i < world->done_count; i++) {
        const struct done *done = &world->done[i];
        if (moment->is_position ? done->newest <= moment->place.place.position.lo
                                : done->completed_us <= moment->utc_us) {
            return true;
        }
    }
    return false;
}

static size_t expect_moment(struct world *world, const struct tide_change_history *history,
                            bool is_position)
{
    struct tide_change_moment moment = {.is_position = is_position};
    uint64_t position = below(world, world->position + 1);
    struct tide_error err = {0};
    if (is_position) {
        moment.place.place = (struct tide_place){{0, position}, 0, true};
    } else {
        moment.utc_us = (int64_t)below(world, (uint64_t)world->now_us + 10);
        for (position = world->position;
             position > 0 && world->states[position].commit_us > moment.utc_us; position--) {
        }
    }
    if (!can_rebuild(world, &moment)) {
        struct tide_change_fold *fold = NULL;
        assert_int_equal(tide_change_fold_new(history, &moment, &fold, &err), TIDE_INVALID);
        return 0;
    }
    expect_state(world, history, &moment, &world->states[position], below(world, 4) == 0);
    return 1;
}

static void fold_of_random_histories_is_the_source_at_that_moment(void **state)
{
    size_t rebuilt = 0;
    (void)state;
    for (uint64_t seed = 1; seed <= 1500; seed++) {
        struct world *world TIDE_CLEANUP(world_free) = make_world(seed);
        struct tide_change_history *history TIDE_CLEANUP(tide_change_history_free_ptr) =
            read_history(world);
        for (int i = 0; i < 8; i++) {
            rebuilt += expect_moment(world, history, i % 2 == 0);
        }
    }
    assert_true(rebuilt > 3000);
}

/* Single cases that the model does not have. */

struct script {
    struct tide_change_history *history;
    struct tide_change_row rows[32];
    struct tide_value values[32][3];
    size_t count;
};

static void script_done(struct script *script)
{
    tide_change_history_free(script->history);
}

static struct tide_change_row *add(struct script *script, enum tide_change_row_kind kind,
                                   uint64_t position)
{
    struct tide_change_row *row = &script->rows[script->count++];
    *row = (struct tide_change_row){.kind = kind, .place = {{0, position}, 0, true}};
    if (kind != TIDE_ROW_CHANGE) {
        (void)snprintf(row->snapshot_id, sizeof(row->snapshot_id), "01900000-0000-7000-8000-%012u",
                       1u);
        row->commit_us = 100;
    }
    return row;
}

static struct tide_change_row *add_row(struct script *script, enum tide_change_row_kind kind,
                                       uint64_t position, unsigned key, unsigned a)
{
    struct tide_value *values = script->values[script->count];
    struct tide_change_row *row = add(script, kind, position);
    const struct cell cell = {true, a, a};
    set_values(values, key, &cell);
    row->values = values;
    row->key = kind == TIDE_ROW_CHANGE ? values : NULL;
    row->place.index = kind == TIDE_ROW_CHANGE ? 0 : TIDE_INDEX_AFTER_ALL;
    return row;
}

static struct tide_change_fold *fold_script(struct script *script)
{
    const struct tide_change_moment moment = {.utc_us = 1000};
    struct tide_change_fold *fold = NULL;
    struct tide_error err = {0};
    script->history = tide_change_history_new(NULL);
    for (size_t i = 0; i < script->count; i++) {
        tide_change_history_add(script->history, (int64_t)i, &script->rows[i]);
    }
    if (tide_change_fold_new(script->history, &moment, &fold, &err) != TIDE_OK) {
        return NULL;
    }
    assert_int_equal(tide_change_fold_set_schema(fold, TIDE_STR(json), &err), TIDE_OK);
    for (size_t i = 0; i < script->count; i++) {
        assert_int_equal(tide_change_fold_add(fold, &script->rows[i], &err), TIDE_OK);
    }
    return fold;
}

static size_t count_rows(struct tide_change_fold *fold)
{
    struct tide_change_state row;
    size_t count = 0;
    while (tide_change_fold_next(fold, &row)) {
        count++;
    }
    return count;
}

static void fold_of_a_copy_without_a_seq_is_refused(void **state)
{
    struct script script TIDE_CLEANUP(script_done) = {0};
    (void)state;
    (void)add(&script, TIDE_ROW_BEGIN, 5);
    add_row(&script, TIDE_ROW_SNAPSHOT, 5, 1, 1)->seq = 1;
    add(&script, TIDE_ROW_END, 5)->seq = 2;
    assert_null(fold_script(&script));
}

static void end_removes_what_the_copy_did_not_have(void **state)
{
    struct script script TIDE_CLEANUP(script_done) = {0};
    (void)state;
    (void)add_row(&script, TIDE_ROW_CHANGE, 3, 7, 7); /* deleted since, which nobody told */
    (void)add(&script, TIDE_ROW_BEGIN, 5);
    (void)add_row(&script, TIDE_ROW_SNAPSHOT, 5, 1, 1);
    (void)add_row(&script, TIDE_ROW_CHANGE, 6, 2, 2);
    add(&script, TIDE_ROW_END, 6)->seq = 1;
    struct tide_change_fold *fold TIDE_CLEANUP(tide_change_fold_free_ptr) = fold_script(&script);
    assert_int_equal(count_rows(fold), 2);
}

static void fold_counts_changes_that_never_came(void **state)
{
    struct script script TIDE_CLEANUP(script_done) = {0};
    (void)state;
    (void)add(&script, TIDE_ROW_BEGIN, 5);
    add(&script, TIDE_ROW_END, 5)->seq = 0;
    add_row(&script, TIDE_ROW_CHANGE, 6, 1, 1)->prev = (struct tide_place){{0, 5}, 0, true};
    add_row(&script, TIDE_ROW_CHANGE, 9, 2, 1)->prev = (struct tide_place){{0, 8}, 0, true};
    struct tide_change_fold *fold TIDE_CLEANUP(tide_change_fold_free_ptr) = fold_script(&script);
    assert_int_equal(tide_change_fold_doubts(fold).gaps, 1);
    assert_int_equal(count_rows(fold), 2);
}

/* A log that has started over: lower positions, and yet later ones. */
static void row_of_a_later_incarnation_wins(void **state)
{
    struct script script TIDE_CLEANUP(script_done) = {0};
    struct tide_change_state row;
    (void)state;
    (void)add(&script, TIDE_ROW_BEGIN, 50);
    (void)add_row(&script, TIDE_ROW_SNAPSHOT, 50, 1, 1);
    add(&script, TIDE_ROW_END, 50)->seq = 1;
    add_row(&script, TIDE_ROW_CHANGE, 2, 1, 4)->incarnation = 1;
    (void)add_row(&script, TIDE_ROW_CHANGE, 60, 1, 3);
    struct tide_change_fold *fold TIDE_CLEANUP(tide_change_fold_free_ptr) = fold_script(&script);
    assert_true(tide_change_fold_next(fold, &row));
    assert_true(tide_value_equal(row.values[1], number(4)));
    assert_false(tide_change_fold_next(fold, &row));
}

/* What a move does not send is taken from the row under the old key, which goes. */
static void move_takes_what_was_not_sent_along(void **state)
{
    static const struct tide_value unsent = {.kind = TIDE_VALUE_UNCHANGED};
    struct script script TIDE_CLEANUP(script_done) = {0};
    struct tide_value old_key = number(1);
    struct tide_change_state row;
    (void)state;
    (void)add(&script, TIDE_ROW_BEGIN, 5);
    (void)add_row(&script, TIDE_ROW_SNAPSHOT, 5, 1, 3);
    struct tide_change_row *move = add_row(&script, TIDE_ROW_CHANGE, 6, 2, 4);
    script.values[script.count - 1][2] = unsent;
    move->op = TIDE_OP_UPDATE;
    move->moved_from = &old_key;
    /* the same again, and the old row: neither counts */
    script.rows[script.count++] = *move;
    add_row(&script, TIDE_ROW_SNAPSHOT, 5, 1, 3)->seq = 1;
    add(&script, TIDE_ROW_END, 6)->seq = 2;
    struct tide_change_fold *fold TIDE_CLEANUP(tide_change_fold_free_ptr) = fold_script(&script);
    assert_true(tide_change_fold_next(fold, &row));
    assert_true(tide_value_equal(row.key[0], number(2)));
    assert_true(tide_value_equal(row.values[1], number(4)));
    assert_true(tide_value_equal(
        row.values[2], (struct tide_value){.ptr = "3", .len = 1, .kind = TIDE_VALUE_TEXT}));
    assert_false(tide_change_fold_next(fold, &row));
}

/* Rows that come after what they are older than. */
static void row_from_before_a_truncate_or_a_move_does_not_count(void **state)
{
    struct script script TIDE_CLEANUP(script_done) = {0};
    struct tide_value old_key = number(3);
    struct tide_change_state row;
    (void)state;
    (void)add(&script, TIDE_ROW_BEGIN, 1);
    add(&script, TIDE_ROW_CHANGE, 6)->op = TIDE_OP_TRUNCATE;
    (void)add_row(&script, TIDE_ROW_SNAPSHOT, 5, 1, 1);
    (void)add_row(&script, TIDE_ROW_CHANGE, 4, 2, 2);
    struct tide_change_row *move = add_row(&script, TIDE_ROW_CHANGE, 9, 4, 4);
    move->op = TIDE_OP_UPDATE;
    move->moved_from = &old_key;
    add_row(&script, TIDE_ROW_SNAPSHOT, 8, 3, 3)->seq = 1;
    add(&script, TIDE_ROW_END, 9)->seq = 2;
    struct tide_change_fold *fold TIDE_CLEANUP(tide_change_fold_free_ptr) = fold_script(&script);
    assert_true(tide_change_fold_next(fold, &row));
    assert_true(tide_value_equal(row.key[0], number(4)));
    assert_false(tide_change_fold_next(fold, &row));
}

static void void_row_of_an_attempt_does_not_count(void **state)
{
    static const uint64_t starts[] = {1};
    struct script script TIDE_CLEANUP(script_done) = {0};
    struct tide_change_state row;
    (void)state;
    (void)add(&script, TIDE_ROW_BEGIN, 1);
    (void)add_row(&script, TIDE_ROW_SNAPSHOT, 5, 1, 1);
    add_row(&script, TIDE_ROW_SNAPSHOT, 5, 2, 2)->seq = 1;
    struct tide_change_row *resume = add(&script, TIDE_ROW_RESUME, 5);
    add_row(&script, TIDE_ROW_SNAPSHOT, 6, 3, 3)->seq = 1;
    struct tide_change_row *end = add(&script, TIDE_ROW_END, 6);
    end->seq = 2;
    for (struct tide_change_row *later = resume; later <= end; later++) {
        later->attempt = 1;
        later->starts = later->kind == TIDE_ROW_SNAPSHOT ? NULL : starts;
    }
    struct tide_change_fold *fold TIDE_CLEANUP(tide_change_fold_free_ptr) = fold_script(&script);
    assert_true(tide_change_fold_next(fold, &row));
    assert_true(tide_value_equal(row.key[0], number(1)));
    assert_true(tide_change_fold_next(fold, &row));
    assert_true(tide_value_equal(row.key[0], number(3)));
    assert_false(tide_change_fold_next(fold, &row));
}

/* After a change that was too long one that does not send all: the rest is as old as it was. */
static void row_stays_stale_until_all_of_it_is_sent(void **state)
{
    struct script script TIDE_CLEANUP(script_done) = {0};
    struct tide_change_state row;
    (void)state;
    (void)add(&script, TIDE_ROW_BEGIN, 1);
    (void)add_row(&script, TIDE_ROW_SNAPSHOT, 5, 1, 1);
    add(&script, TIDE_ROW_END, 5)->seq = 1;
    for (uint64_t position = 6; position < 8; position++) {
        struct tide_change_row *update = add_row(&script, TIDE_ROW_CHANGE, position, 1, 2);
        update->op = TIDE_OP_UPDATE;
        if (position == 6) {
            update->values = NULL;
            update->bytes = 77;
        } else {
            script.values[script.count - 1][2] = (struct tide_value){.kind = TIDE_VALUE_UNCHANGED};
        }
    }
    struct tide_change_fold *fold TIDE_CLEANUP(tide_change_fold_free_ptr) = fold_script(&script);
    assert_true(tide_change_fold_next(fold, &row));
    assert_true(row.is_stale);
    assert_int_equal(row.bytes, 77);
    assert_true(tide_value_equal(row.values[1], number(2)));
    assert_memory_equal(row.values[2].ptr, "1", 1);
}

static void resume_from_the_first_row_serves_as_a_begin(void **state)
{
    static const uint64_t starts[] = {0};
    struct script script TIDE_CLEANUP(script_done) = {0};
    (void)state;
    struct tide_change_row *resume = add(&script, TIDE_ROW_RESUME, 1);
    (void)add_row(&script, TIDE_ROW_SNAPSHOT, 5, 1, 1);
    add(&script, TIDE_ROW_END, 5)->seq = 1;
    for (size_t i = 0; i < 3; i++) {
        script.rows[i].attempt = 1;
    }
    resume->starts = script.rows[2].starts = starts;
    struct tide_change_fold *fold TIDE_CLEANUP(tide_change_fold_free_ptr) = fold_script(&script);
    assert_non_null(fold);
    assert_int_equal(count_rows(fold), 1);
}

static void stub_without_a_key_is_told(void **state)
{
    struct script script TIDE_CLEANUP(script_done) = {0};
    (void)state;
    (void)add(&script, TIDE_ROW_BEGIN, 5);
    add(&script, TIDE_ROW_STUB, 5)->bytes = 1000000;
    add(&script, TIDE_ROW_END, 5)->seq = 1;
    struct tide_change_fold *fold TIDE_CLEANUP(tide_change_fold_free_ptr) = fold_script(&script);
    assert_true(tide_change_fold_doubts(fold).has_keyless_stub);
    assert_int_equal(count_rows(fold), 0);
}

static void rows_of_before_a_column_lack_it(void **state)
{
    static const char more[] =
        "{\"version\":1,\"store\":\"s.t\",\"schema\":\"\",\"table\":\"t\","
        "\"position_kind\":\"integer\",\"columns\":["
        "{\"name\":\"c\",\"type\":\"\",\"hidden\":false},"
        "{\"name\":\"k\",\"type\":\"INTEGER\",\"hidden\":false},"
        "{\"name\":\"b\",\"type\":\"TEXT\",\"hidden\":false}],\"key\":[\"k\"]}";
    static const char other_key[] =
        "{\"version\":1,\"store\":\"s.t\",\"schema\":\"\",\"table\":\"t\","
        "\"position_kind\":\"integer\",\"columns\":["
        "{\"name\":\"c\",\"type\":\"\",\"hidden\":false}],\"key\":[\"c\"]}";
    struct script script TIDE_CLEANUP(script_done) = {0};
    struct tide_error err = {0};
    struct tide_change_state row;
    (void)state;
    (void)add(&script, TIDE_ROW_BEGIN, 5);
    (void)add_row(&script, TIDE_ROW_SNAPSHOT, 5, 1, 1);
    add_row(&script, TIDE_ROW_SNAPSHOT, 5, 2, 2)->seq = 1;
    add(&script, TIDE_ROW_END, 5)->seq = 2;
    struct tide_change_fold *fold TIDE_CLEANUP(tide_change_fold_free_ptr) = fold_script(&script);
    const struct tide_value values[3] = {number(8), number(2), {.kind = TIDE_VALUE_UNCHANGED}};
    const struct tide_change_row update = {.op = TIDE_OP_UPDATE,
                                           .place = {{0, 6}, 0, true},
                                           .prev = {{0, 5}, 0, true},
                                           .key = &values[1],
                                           .values = values};
    assert_int_equal(tide_change_fold_set_schema(fold, TIDE_STR(more), &err), TIDE_OK);
    assert_int_equal(tide_change_fold_add(fold, &update, &err), TIDE_OK);
    assert_int_equal(tide_change_fold_set_schema(fold, TIDE_STR(other_key), &err), TIDE_OK);
    struct tide_change_row other = {
        .op = TIDE_OP_DELETE, .place = {{0, 7}, 0, true}, .key = values};
    assert_int_equal(tide_change_fold_add(fold, &other, &err), TIDE_UNSUPPORTED);
    assert_int_equal(tide_change_fold_schema(fold)->column_count, 3);
    assert_true(tide_change_fold_next(fold, &row));
    assert_int_equal(row.values[0].kind, TIDE_VALUE_ABSENT);
    assert_true(tide_value_equal(row.values[1], number(1)));
    assert_true(tide_value_equal(
        row.values[2], (struct tide_value){.ptr = "1", .len = 1, .kind = TIDE_VALUE_TEXT}));
    assert_true(tide_change_fold_next(fold, &row));
    assert_true(tide_value_equal(row.values[0], number(8)));
    assert_true(tide_value_equal(
        row.values[2], (struct tide_value){.ptr = "2", .len = 1, .kind = TIDE_VALUE_TEXT}));
    assert_false(tide_change_fold_next(fold, &row));
}

static void table_without_a_key_has_no_state(void **state)
{
    static const char keyless[] =
        "{\"version\":1,\"store\":\"s.t\",\"schema\":\"\",\"table\":\"t\",\"position_kind\":"
        "\"lsn\","
        "\"columns\":[{\"name\":\"c\",\"type\":\"\",\"hidden\":false}],\"key\":[]}";
    struct script script TIDE_CLEANUP(script_done) = {0};
    struct tide_error err = {0};
    (void)state;
    (void)add(&script, TIDE_ROW_BEGIN, 5);
    add(&script, TIDE_ROW_END, 5)->seq = 0;
    struct tide_change_fold *fold TIDE_CLEANUP(tide_change_fold_free_ptr) = fold_script(&script);
    assert_int_equal(tide_change_fold_set_schema(fold, TIDE_STR(keyless), &err), TIDE_UNSUPPORTED);
}

static bool is_by_position(const struct script *script, size_t number, uint64_t position)
{
    const struct tide_change_moment moment = {.is_position = true,
                                              .place = {0, {{0, position}, 0, true}}};
    size_t count = 0;
    return tide_change_snapshot_is_by(
        &tide_change_history_snapshots(script->history, &count)[number], &moment);
}

/* A copy of an empty table before any change has no place but that of the first that follows. */
static void copy_without_a_place_is_of_no_earlier_position(void **state)
{
    struct script script TIDE_CLEANUP(script_done) = {0};
    const struct tide_change_moment late = {.is_position = true, .place = {0, {{0, 8}, 0, true}}};
    const struct tide_change_snapshot *base = NULL;
    struct tide_error err = {0};
    (void)state;
    (void)add(&script, TIDE_ROW_BEGIN, 5); /* another, which is abandoned */
    add(&script, TIDE_ROW_BEGIN, 5)->place.known = false;
    struct tide_change_row *end = add(&script, TIDE_ROW_END, 5);
    end->seq = 0;
    end->place.known = false;
    script.rows[1].snapshot_id[0] = end->snapshot_id[0] = '1';
    struct tide_change_fold *fold TIDE_CLEANUP(tide_change_fold_free_ptr) = fold_script(&script);
    assert_non_null(fold); /* by time there is no doubt */
    assert_false(is_by_position(&script, 1, 8));
    assert_int_equal(tide_change_history_base(script.history, &late, &base, &err), TIDE_INVALID);
    assert_non_null(strstr(err.message, "as of 1970-01-01T00:00:00.000Z and after"));
    tide_change_history_add(script.history, 10, add_row(&script, TIDE_ROW_CHANGE, 9, 1, 1));
    assert_int_equal(tide_change_history_base(script.history, &late, &base, &err), TIDE_INVALID);
    assert_non_null(strstr(err.message, "as of position [0,9] and after"));
    assert_false(is_by_position(&script, 1, 8));
    assert_true(is_by_position(&script, 1, 9));
    assert_true(is_by_position(&script, 1, 10));
}

static void floor_is_the_begin_of_the_newest_copy_that_ended_before(void **state)
{
    struct script script TIDE_CLEANUP(script_done) = {0};
    (void)state;
    (void)add(&script, TIDE_ROW_BEGIN, 5);  /* time 0 */
    add(&script, TIDE_ROW_END, 5)->seq = 0; /* 1 */
    (void)add(&script, TIDE_ROW_BEGIN, 6);  /* 2 */
    add(&script, TIDE_ROW_END, 6)->seq = 0; /* 3 */
    (void)add(&script, TIDE_ROW_BEGIN, 7);  /* 4: never ends */
    for (size_t i = 0; i < script.count; i++) {
        script.rows[i].snapshot_id[TIDE_UUID_LEN - 1] = (char)('0' + i / 2);
    }
    struct tide_change_fold *fold TIDE_CLEANUP(tide_change_fold_free_ptr) = fold_script(&script);
    assert_null(tide_change_history_floor(script.history, 1));
    assert_int_equal(tide_change_history_floor(script.history, 2)->begin_ts, 0);
    assert_int_equal(tide_change_history_floor(script.history, 3)->begin_ts, 0);
    assert_int_equal(tide_change_history_floor(script.history, 4)->begin_ts, 2);
    assert_false(tide_change_history_floor(script.history, 4)->has_stub);
    assert_int_equal(tide_change_fold_start(fold), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fold_of_random_histories_is_the_source_at_that_moment),
        cmocka_unit_test(lack_of_random_histories_is_what_was_left_out),
        cmocka_unit_test(fold_of_a_copy_without_a_seq_is_refused),
        cmocka_unit_test(end_removes_what_the_copy_did_not_have),
        cmocka_unit_test(fold_counts_changes_that_never_came),
        cmocka_unit_test(row_of_a_later_incarnation_wins),
        cmocka_unit_test(move_takes_what_was_not_sent_along),
        cmocka_unit_test(row_from_before_a_truncate_or_a_move_does_not_count),
        cmocka_unit_test(void_row_of_an_attempt_does_not_count),
        cmocka_unit_test(row_stays_stale_until_all_of_it_is_sent),
        cmocka_unit_test(resume_from_the_first_row_serves_as_a_begin),
        cmocka_unit_test(stub_without_a_key_is_told),
        cmocka_unit_test(rows_of_before_a_column_lack_it),
        cmocka_unit_test(table_without_a_key_has_no_state),
        cmocka_unit_test(copy_without_a_place_is_of_no_earlier_position),
        cmocka_unit_test(floor_is_the_begin_of_the_newest_copy_that_ended_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
