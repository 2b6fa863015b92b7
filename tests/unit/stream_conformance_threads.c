/*
 * Conformance: many threads at once (N), ends abandoned at each step and streams made anew with
 * other sinks (O, P).
 */
#include "cmocka_prelude.h"

#include "stream_conformance_kit.h"

#include <stdatomic.h>

/* N: is_idle, floors and the watermark while everything moves */

#define CROWD_LANES 4
#define CROWD_ITEMS 2000

struct crowd {
    struct kit kit;
    _Atomic uint64_t published; /* the newest build number that every lane has */
    atomic_bool is_over;
    _Atomic unsigned faults;
    _Atomic unsigned idle_seen;
};

struct crowd_consumer {
    struct crowd *crowd;
    unsigned i;
};

static void note_fault(struct crowd *crowd, bool is_right)
{
    if (!is_right) {
        atomic_fetch_add(&crowd->faults, 1);
    }
}

/* Takes what comes, in order; now and then gives something back or attaches anew. */
static void *crowd_consume(void *arg)
{
    const struct crowd_consumer *self = arg;
    struct crowd *crowd = self->crowd;
    const struct tide_stream_ops *ops = crowd->kit.ops;
    struct tide_lane_consumer end = crowd->kit.ends[self->i];
    struct tide_error err;
    uint64_t seed = self->i + 1;
    uint64_t want = 1;
    struct tide_delivery delivery;
    while (ops->receive(&end, TIDE_NO_DEADLINE, &delivery, &err) == TIDE_OK) {
        note_fault(crowd, delivery.build == want && delivery.item.batch->position.lo == want);
        unsigned dice = kit_random(&seed, 16);
        if (dice == 0) {
            note_fault(crowd, ops->give_back(&end, &delivery, &err) == TIDE_OK);
        } else if (dice == 1) {
            note_fault(crowd, ops->attach(crowd->kit.stream, end.lane, &end, &err) == TIDE_OK);
        } else {
            note_fault(crowd, ops->acknowledge(&end, &delivery, &err) == TIDE_OK);
            want++;
        }
    }
    note_fault(crowd, err.status == TIDE_CLOSED && want == CROWD_ITEMS + 1);
    return NULL;
}

static void *crowd_watch(void *arg)
{
    struct crowd *crowd = arg;
    const struct tide_stream_ops *ops = crowd->kit.ops;
    struct tide_stream *stream = crowd->kit.stream;
    uint64_t last = 0;
    while (!atomic_load(&crowd->is_over)) {
        uint64_t published = atomic_load(&crowd->published);
        if (ops->is_idle(stream)) {
            atomic_fetch_add(&crowd->idle_seen, 1);
            for (unsigned i = 0; i < CROWD_LANES; i++) {
                note_fault(crowd, ops->held(stream, crowd->kit.lanes[i]) >= published);
            }
        }
        struct tide_position position = {0};
        uint64_t build = 0;
        if (ops->watermark(stream, &position, &build)) {
            note_fault(crowd, build >= last && position.lo == build);
            last = build;
        }
        for (unsigned i = 0; i < CROWD_LANES; i++) {
            note_fault(crowd, ops->held(stream, crowd->kit.lanes[i]) >= last);
        }
    }
    return NULL;
}

static void crowd_publish(struct crowd *crowd, struct tide_waker *waker)
{
    for (uint64_t i = 1; i <= CROWD_ITEMS; i++) {
        struct tide_publication publication = {.item.batch = kit_batch(i, KIT_ITEM_SIZE),
                                               .pending = kit_set(&crowd->kit, CROWD_LANES)};
        tide_status status = TIDE_TIMEOUT;
        while (status == TIDE_TIMEOUT) {
            status = crowd->kit.ops->publish(crowd->kit.stream, &publication, waker,
                                             tide_clock_deadline_us(1000), &crowd->kit.err);
        }
        note_fault(crowd, status == TIDE_OK && publication.build == i);
        tide_item_unref(publication.item);
        atomic_store(&crowd->published, i);
        if (i % 100 == 0) {
            kit_sleep_us(500); /* lets the lanes run empty now and then */
        }
    }
}

static void crowd_of_threads_keeps_the_contract(void **state)
{
    (void)state;
    struct crowd crowd = {0};
    struct crowd_consumer consumers[CROWD_LANES];
    pthread_t threads[CROWD_LANES];
    pthread_t watcher;
    struct tide_waker waker;
    tide_waker_init(&waker);
    kit_open(&crowd.kit, 8, 0, CROWD_LANES);
    crowd.kit.ops->set_waker(crowd.kit.stream, &waker);
    tide_thread_start(&watcher, crowd_watch, &crowd);
    for (unsigned i = 0; i < CROWD_LANES; i++) {
        consumers[i] = (struct crowd_consumer){.crowd = &crowd, .i = i};
        tide_thread_start(&threads[i], crowd_consume, &consumers[i]);
    }
    crowd_publish(&crowd, &waker);
    crowd.kit.ops->close(crowd.kit.stream);
    for (unsigned i = 0; i < CROWD_LANES; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    while (atomic_load(&crowd.idle_seen) == 0) { /* it must show, at the latest now */
        kit_sleep_us(100);
    }
    atomic_store(&crowd.is_over, true);
    assert_int_equal(pthread_join(watcher, NULL), 0);
    assert_int_equal(atomic_load(&crowd.faults), 0);
    assert_true(crowd.kit.ops->is_idle(crowd.kit.stream));
    kit_expect_watermark(&crowd.kit, CROWD_ITEMS);
    crowd.kit.ops->set_waker(crowd.kit.stream, NULL);
    kit_close(&crowd.kit);
    tide_waker_done(&waker);
}

/* A lane that is dropped and added again and again under its consumers. */

#define TURNS 100

struct turner {
    struct kit *kit;
    unsigned lane;
    struct tide_lane_consumer end;
    _Atomic unsigned faults;
};

static void *turn_consume(void *arg)
{
    struct turner *turner = arg;
    const struct tide_stream_ops *ops = turner->kit->ops;
    struct tide_error err;
    struct tide_delivery delivery;
    uint64_t last = 0;
    while (ops->receive(&turner->end, TIDE_NO_DEADLINE, &delivery, &err) == TIDE_OK) {
        kit_sleep_us(20);
        /* in hand: valid, also when the lane was dropped meanwhile */
        uint64_t position = delivery.item.batch->position.lo;
        atomic_fetch_add(&turner->faults, position <= last);
        last = position;
        if (position % 2 == 0 && ops->acknowledge(&turner->end, &delivery, &err) != TIDE_OK) {
            break;
        }
    }
    atomic_fetch_add(&turner->faults, err.status != TIDE_CLOSED);
    return NULL;
}

static void lane_dropped_under_its_consumer_leaves_it_what_it_has_in_hand(void **state)
{
    (void)state;
    struct kit kit;
    kit_open(&kit, 0, 0, 0);
    for (unsigned turn = 0; turn < TURNS; turn++) {
        struct turner turner = {.kit = &kit};
        pthread_t thread;
        assert_int_equal(kit.ops->add_lane(kit.stream, TIDE_STR("x"), &turner.lane, &kit.err),
                         TIDE_OK);
        assert_int_equal(kit.ops->attach(kit.stream, turner.lane, &turner.end, &kit.err), TIDE_OK);
        tide_thread_start(&thread, turn_consume, &turner);
        for (unsigned i = 1; i <= 8; i++) {
            (void)kit_publish(&kit, (tide_lane_set)1 << turner.lane, i);
        }
        kit_sleep_us(turn * 7);
        assert_int_equal(kit.ops->drop_lane(kit.stream, turner.lane, &kit.err), TIDE_OK);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_int_equal(atomic_load(&turner.faults), 0);
        assert_true(kit.ops->is_idle(kit.stream));
    }
    kit_close(&kit);
}

/* O: the consumer is abandoned after each number of steps; the next one starts at the floor. */
static void consumer_abandoned_at_each_step_loses_nothing(void **state)
{
    (void)state;

    enum {
        ITEMS = 6
    };

    for (unsigned steps = 0; steps <= 2 * ITEMS; steps++) {
        struct kit kit;
        kit_open(&kit, 0, 0, 1);
        for (unsigned i = 1; i <= ITEMS; i++) {
            (void)kit_publish(&kit, kit_set(&kit, 1), i);
        }
        struct tide_delivery got[ITEMS];
        for (unsigned step = 0; step < steps; step++) { /* receives are two ahead of answers */
            unsigned received = step / 2 + 2 < ITEMS ? step / 2 + 2 : ITEMS;
            if (step == 0) {
                got[0] = kit_expect(&kit, 0, 1);
                got[1] = kit_expect(&kit, 0, 2);
            } else if (step % 2 == 0 && step / 2 + 1 < ITEMS) {
                got[received - 1] = kit_expect(&kit, 0, received);
            } else if (step % 2 == 1) {
                kit_acknowledge(&kit, 0, &got[step / 2]);
            }
        }
        assert_int_equal(kit.ops->held(kit.stream, kit.lanes[0]), steps / 2);
        assert_int_equal(kit.ops->attach(kit.stream, kit.lanes[0], &kit.ends[0], &kit.err),
                         TIDE_OK);
        for (unsigned build = steps / 2 + 1; build <= ITEMS; build++) {
            kit_pass(&kit, 0, build);
        }
        kit_expect_none(&kit, 0, TIDE_TIMEOUT);
        kit_expect_watermark(&kit, ITEMS);
        kit_close(&kit);
    }
}

/*
 * O and P: a pipeline in small. The source is the numbers 1 to SOURCE_ROWS; a sink holds how far it
 * has applied them and refuses a gap. The stream and its sinks are killed after a random number of
 * steps and made anew, at times with one sink more or less; ingest goes on from what it confirmed.
 */
#define SOURCE_ROWS  60
#define SINKS        4
#define RESTARTS_MAX 1000

struct small_sink {
    bool is_configured;
    bool is_attached;
    uint64_t held;
};

struct small_pipeline {
    struct kit kit;
    uint64_t seed;
    uint64_t confirmed;
    uint64_t read; /* the last row that was published in this run */
    struct small_sink sinks[SINKS];
    unsigned lane_of[SINKS];
};

static void small_confirm(struct small_pipeline *pipeline)
{
    struct tide_position position = {0};
    uint64_t build = 0;
    if (!pipeline->kit.ops->watermark(pipeline->kit.stream, &position, &build)) {
        return;
    }
    assert_true(position.lo >= pipeline->confirmed);
    pipeline->confirmed = position.lo;
    for (unsigned i = 0; i < SINKS; i++) {
        assert_true(!pipeline->sinks[i].is_configured ||
                    pipeline->sinks[i].held >= pipeline->confirmed);
    }
}

static void small_publish(struct small_pipeline *pipeline)
{
    struct kit *kit = &pipeline->kit;
    if (pipeline->read == SOURCE_ROWS) {
        return;
    }
    struct tide_publication publication = {.item.batch =
                                               kit_batch(pipeline->read + 1, KIT_ITEM_SIZE),
                                           .pending = kit_set(kit, kit->lane_count)};
    /* when a lane is full it is given up half-way: what the others got is read again all the same
     * after the restart, and until then nothing more is published */
    tide_status status = kit->ops->publish(kit->stream, &publication, NULL, 0, &kit->err);
    pipeline->read = status == TIDE_OK ? pipeline->read + 1 : SOURCE_ROWS;
    tide_item_unref(publication.item);
}

static void small_apply(struct small_pipeline *pipeline, unsigned i)
{
    struct kit *kit = &pipeline->kit;
    struct small_sink *sink = &pipeline->sinks[i];
    struct tide_delivery delivery;
    struct tide_lane_consumer *end = &kit->ends[pipeline->lane_of[i]];
    if (!sink->is_configured || kit->ops->receive(end, 0, &delivery, &kit->err) != TIDE_OK) {
        return;
    }
    uint64_t row = delivery.item.batch->position.lo;
    assert_true(row <= sink->held + 1); /* no gap; a row that it holds may come again */
    sink->held = row > sink->held ? row : sink->held;
    if (kit_random(&pipeline->seed, 8) == 0) {
        assert_int_equal(kit->ops->attach(kit->stream, end->lane, end, &kit->err), TIDE_OK);
    } else {
        kit_acknowledge(kit, pipeline->lane_of[i], &delivery);
    }
}

/* One sink comes, seeded up to what is confirmed, or goes; at least one stays. */
static void small_reconfigure(struct small_pipeline *pipeline)
{
    unsigned i = 1 + kit_random(&pipeline->seed, SINKS - 1);
    pipeline->sinks[i].is_configured = !pipeline->sinks[i].is_configured;
    pipeline->sinks[i].held = pipeline->confirmed;
}

static void small_start(struct small_pipeline *pipeline)
{
    unsigned lanes = 0;
    for (unsigned i = 0; i < SINKS; i++) {
        if (pipeline->sinks[i].is_configured) {
            pipeline->lane_of[i] = lanes++;
        }
    }
    kit_open(&pipeline->kit, 1 + kit_random(&pipeline->seed, 6), 0, lanes);
    pipeline->read = pipeline->confirmed;
}

static void pipeline_killed_at_any_step_loses_nothing(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 1 + kit_factory->random_runs / 20; seed++) {
        struct small_pipeline pipeline = {.seed = seed, .sinks[0].is_configured = true};
        unsigned restarts = 0;
        for (; pipeline.confirmed < SOURCE_ROWS && restarts < RESTARTS_MAX; restarts++) {
            small_start(&pipeline);
            for (unsigned steps = kit_random(&pipeline.seed, 120); steps > 0; steps--) {
                unsigned what = kit_random(&pipeline.seed, SINKS + 2);
                if (what < SINKS) {
                    small_apply(&pipeline, what);
                } else if (what == SINKS) {
                    small_publish(&pipeline);
                } else {
                    small_confirm(&pipeline);
                }
            }
            kit_close(&pipeline.kit);
            if (kit_random(&pipeline.seed, 3) == 0) {
                small_reconfigure(&pipeline);
            }
        }
        assert_true(restarts < RESTARTS_MAX);
        assert_int_equal(pipeline.confirmed, SOURCE_ROWS);
    }
}

int stream_conformance_threads(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(crowd_of_threads_keeps_the_contract),
        cmocka_unit_test(lane_dropped_under_its_consumer_leaves_it_what_it_has_in_hand),
        cmocka_unit_test(consumer_abandoned_at_each_step_loses_nothing),
        cmocka_unit_test(pipeline_killed_at_any_step_loses_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
