/*
 * Conformance: random runs against a plain model (G, R). The model keeps every item ever published
 * on a lane and works out floors and the watermark from that anew after each step.
 */
#include "cmocka_prelude.h"

#include "stream_conformance_kit.h"

#define MODEL_LANES 3
#define MODEL_ITEMS 200
#define MODEL_STEPS 80

struct model_lane {
    bool is_present;
    unsigned number;
    struct tide_lane_consumer end;
    uint64_t builds[MODEL_ITEMS]; /* in the order of publishing */
    bool is_acknowledged[MODEL_ITEMS];
    bool was_delivered[MODEL_ITEMS];
    struct tide_delivery deliveries[MODEL_ITEMS];
    size_t count;
    size_t next;
};

struct model {
    struct kit kit;
    uint64_t seed;
    size_t items_max;
    struct model_lane lanes[MODEL_LANES];
    uint64_t build;
    bool is_positioned[MODEL_ITEMS]; /* by build number */
    uint64_t watermark;              /* its build number */
    bool is_publishing;
    struct tide_publication publication;
    unsigned names;
};

static size_t floor_count(const struct model_lane *lane)
{
    size_t count = 0;
    while (count < lane->count && lane->is_acknowledged[count]) {
        count++;
    }
    return count;
}

static uint64_t floor_build(const struct model_lane *lane)
{
    size_t count = floor_count(lane);
    return count == 0 ? 0 : lane->builds[count - 1];
}

static bool has_positioned(const struct model *model, const struct model_lane *lane)
{
    for (size_t i = 0; i < floor_count(lane); i++) {
        if (model->is_positioned[lane->builds[i]]) {
            return true;
        }
    }
    return false;
}

/* The contract to the letter: the newest position at or before the smallest floor, once every lane
 * has acknowledged a positioned item; never back. */
static void work_out_watermark(struct model *model)
{
    uint64_t least = UINT64_MAX;
    for (size_t i = 0; i < MODEL_LANES; i++) {
        const struct model_lane *lane = &model->lanes[i];
        if (lane->is_present) {
            uint64_t floor = has_positioned(model, lane) ? floor_build(lane) : 0;
            least = floor < least ? floor : least;
        }
    }
    for (uint64_t build = least == UINT64_MAX ? 0 : least; build > model->watermark; build--) {
        if (model->is_positioned[build]) {
            model->watermark = build;
        }
    }
}

static void compare(struct model *model)
{
    struct kit *kit = &model->kit;
    size_t all = 0;
    work_out_watermark(model);
    for (size_t i = 0; i < MODEL_LANES; i++) {
        struct model_lane *lane = &model->lanes[i];
        if (!lane->is_present) {
            continue;
        }
        size_t items = 0;
        size_t bytes = 0;
        kit->ops->lane_load(kit->stream, lane->number, &items, &bytes);
        assert_int_equal(items, lane->count - floor_count(lane));
        assert_int_equal(bytes, items * KIT_ITEM_SIZE);
        assert_int_equal(kit->ops->held(kit->stream, lane->number), floor_build(lane));
        assert_int_equal(kit->ops->is_empty(&lane->end), lane->next == lane->count);
        all += items;
    }
    assert_int_equal(kit->ops->is_idle(kit->stream), all == 0);
    kit_expect_watermark(kit, model->watermark);
}

static bool has_room(const struct model *model, const struct model_lane *lane)
{
    return lane->count - floor_count(lane) < model->items_max;
}

static void begin_publication(struct model *model)
{
    bool is_positioned = kit_random(&model->seed, 3) != 0;
    tide_lane_set set = 0;
    for (size_t i = 0; i < MODEL_LANES; i++) {
        if (model->lanes[i].is_present && (is_positioned || kit_random(&model->seed, 2) == 0)) {
            set |= (tide_lane_set)1 << model->lanes[i].number;
        }
    }
    model->build++;
    model->is_positioned[model->build] = is_positioned;
    model->publication = (struct tide_publication){
        .item.batch = kit_batch(is_positioned ? model->build : 0, KIT_ITEM_SIZE), .pending = set};
    model->is_publishing = true;
}

static void end_publication(struct model *model)
{
    tide_item_unref(model->publication.item);
    model->is_publishing = false;
}

static void step_publish(struct model *model)
{
    if (!model->is_publishing) {
        begin_publication(model);
    }
    tide_lane_set left = 0;
    for (size_t i = 0; i < MODEL_LANES; i++) {
        struct model_lane *lane = &model->lanes[i];
        tide_lane_set bit = (tide_lane_set)1 << lane->number;
        if (!lane->is_present || (model->publication.pending & bit) == 0) {
            continue;
        }
        if (has_room(model, lane)) {
            lane->builds[lane->count++] = model->build;
        } else {
            left |= bit;
        }
    }
    struct kit *kit = &model->kit;
    tide_status status = kit->ops->publish(kit->stream, &model->publication, NULL, 0, &kit->err);
    assert_int_equal(status, left == 0 ? TIDE_OK : TIDE_TIMEOUT);
    assert_true(model->publication.pending == left);
    assert_int_equal(model->publication.build, model->build);
    if (left == 0) {
        end_publication(model);
    }
}

static void step_receive(struct model *model, struct model_lane *lane)
{
    struct kit *kit = &model->kit;
    struct tide_delivery delivery = {0};
    tide_status status = kit->ops->receive(&lane->end, 0, &delivery, &kit->err);
    if (lane->next == lane->count) {
        assert_int_equal(status, TIDE_TIMEOUT);
        return;
    }
    assert_int_equal(status, TIDE_OK);
    assert_int_equal(delivery.build, lane->builds[lane->next]);
    assert_int_equal(delivery.is_redelivered, lane->was_delivered[lane->next]);
    lane->was_delivered[lane->next] = true;
    lane->deliveries[lane->next++] = delivery;
}

/* Any item that was ever delivered by this lane: also one that is done or was taken back. */
static void step_answer(struct model *model, struct model_lane *lane, bool is_return)
{
    struct kit *kit = &model->kit;
    if (lane->next == 0) {
        return;
    }
    size_t at = kit_random(&model->seed, (unsigned)lane->next);
    if (kit_random(&model->seed, 4) != 0) {
        at = floor_count(lane) < lane->next ? floor_count(lane) : at; /* mostly in order */
    }
    bool is_stale = lane->is_acknowledged[at];
    tide_status (*answer)(struct tide_lane_consumer *, const struct tide_delivery *,
                          struct tide_error *) =
        is_return ? kit->ops->give_back : kit->ops->acknowledge;
    assert_int_equal(answer(&lane->end, &lane->deliveries[at], &kit->err),
                     is_stale ? TIDE_STALE : TIDE_OK);
    if (is_stale) {
        return;
    }
    if (!is_return) {
        lane->is_acknowledged[at] = true;
        return;
    }
    for (size_t i = at; i < lane->next; i++) {
        lane->is_acknowledged[i] = false;
    }
    lane->next = at;
}

static void step_attach(struct model *model, struct model_lane *lane)
{
    struct kit *kit = &model->kit;
    struct tide_lane_consumer former = lane->end;
    assert_int_equal(kit->ops->attach(kit->stream, lane->number, &lane->end, &kit->err), TIDE_OK);
    size_t floor = floor_count(lane);
    if (floor < lane->next) {
        assert_int_equal(kit->ops->acknowledge(&former, &lane->deliveries[floor], &kit->err),
                         TIDE_STALE);
    }
    for (size_t i = floor; i < lane->next; i++) {
        lane->is_acknowledged[i] = false;
    }
    lane->next = floor;
}

static void step_drop_or_add(struct model *model, struct model_lane *lane)
{
    struct kit *kit = &model->kit;
    if (lane->is_present) {
        assert_int_equal(kit->ops->drop_lane(kit->stream, lane->number, &kit->err), TIDE_OK);
        lane->is_present = false;
        return;
    }
    char name = (char)('A' + model->names++ % 58);
    *lane = (struct model_lane){.is_present = true};
    assert_int_equal(
        kit->ops->add_lane(kit->stream, tide_str_of(&name, 1), &lane->number, &kit->err), TIDE_OK);
    assert_int_equal(kit->ops->attach(kit->stream, lane->number, &lane->end, &kit->err), TIDE_OK);
}

static void step(struct model *model)
{
    struct model_lane *lane = &model->lanes[kit_random(&model->seed, MODEL_LANES)];
    unsigned what = kit_random(&model->seed, 100);
    if (what < 25) {
        step_publish(model);
    } else if (what >= 98 && !model->is_publishing) {
        step_drop_or_add(model, lane);
    } else if (!lane->is_present) {
        return;
    } else if (what < 60) {
        step_receive(model, lane);
    } else if (what < 88) {
        step_answer(model, lane, false);
    } else if (what < 94) {
        step_answer(model, lane, true);
    } else {
        step_attach(model, lane);
    }
    compare(model);
}

static void run_model(uint64_t seed)
{
    struct model model = {.seed = seed};
    model.items_max = 1 + kit_random(&model.seed, 8);
    kit_open(&model.kit, model.items_max, 0, 0);
    for (unsigned i = 0; i < 1 + seed % MODEL_LANES; i++) {
        step_drop_or_add(&model, &model.lanes[i]);
    }
    for (unsigned i = 0; i < MODEL_STEPS; i++) {
        step(&model);
    }
    if (model.is_publishing) {
        end_publication(&model);
    }
    kit_close(&model.kit);
}

static void random_runs_agree_with_the_model(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= kit_factory->random_runs; seed++) {
        run_model(seed * 0x9E3779B97F4A7C15u);
    }
}

/* R: the watermark never goes back */

static void watermark_stays_while_a_new_lane_catches_up(void **state)
{
    (void)state;
    struct kit kit;
    kit_open(&kit, 0, 0, 1);
    kit_pass(&kit, 0, kit_publish(&kit, kit_set(&kit, 1), 10));
    kit.lane_count = 2;
    assert_int_equal(kit.ops->add_lane(kit.stream, TIDE_STR("new"), &kit.lanes[1], &kit.err),
                     TIDE_OK);
    assert_int_equal(kit.ops->attach(kit.stream, kit.lanes[1], &kit.ends[1], &kit.err), TIDE_OK);
    kit_expect_watermark(&kit, 10);
    kit_expect_none(&kit, 1, TIDE_TIMEOUT); /* nothing of before it */
    uint64_t build = kit_publish(&kit, kit_set(&kit, 2), 20);
    kit_pass(&kit, 0, build);
    kit_expect_watermark(&kit, 10);
    kit_pass(&kit, 1, build);
    kit_expect_watermark(&kit, 20);
    kit_close(&kit);
}

static void dropped_lane_no_longer_holds_the_minimum(void **state)
{
    (void)state;
    struct kit kit;
    kit_open(&kit, 0, 0, 2);
    kit_pass(&kit, 0, kit_publish(&kit, kit_set(&kit, 2), 10));
    kit_expect_watermark(&kit, 0);
    assert_int_equal(kit.ops->drop_lane(kit.stream, kit.lanes[1], &kit.err), TIDE_OK);
    kit_expect_watermark(&kit, 10);
    assert_int_equal(kit.ops->drop_lane(kit.stream, kit.lanes[0], &kit.err), TIDE_OK);
    kit_expect_watermark(&kit, 10);
    assert_true(kit.ops->is_idle(kit.stream));
    kit_close(&kit);
}

int stream_conformance_model(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_runs_agree_with_the_model),
        cmocka_unit_test(watermark_stays_while_a_new_lane_catches_up),
        cmocka_unit_test(dropped_lane_no_longer_holds_the_minimum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
