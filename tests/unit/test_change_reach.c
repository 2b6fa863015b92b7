/* Which moments lie where changes are missing, or may be. */
#include "cmocka_prelude.h"

#include "archive/change_reach.h"

#define ALL  TIDE_INDEX_AFTER_ALL
#define LAST TIDE_INDEX_LAST

/* The base ended at time 100 ms and position 10 of log 1, and held all up to there. A row's commit
 * time is ten times its position, in ms. */
static const struct tide_change_snapshot base = {
    .completed_us = 100000,
    .changes_from = {1, {{0, 9}, 0, true}},
    .newest_row = {1, {{0, 10}, ALL, true}},
    .changes_to = {1, {{0, 9}, 0, true}},
};

struct step {
    char kind; /* c: change, t: truncation, b, r: begin or resume, e: end of another copy, B: begin
                  of one with other columns; 0: none */
    uint32_t incarnation;
    uint64_t position; /* 0: none */
    uint64_t index;    /* of a change that of its prev, with `prev` */
    uint64_t prev;
};

static struct tide_change_row row_of(const struct step *step)
{
    struct tide_place place = {{0, step->position}, step->index, step->position > 0};
    bool is_change = step->kind == 'c' || step->kind == 't';
    struct tide_change_row row = {.kind = is_change                                ? TIDE_ROW_CHANGE
                                          : step->kind == 'b' || step->kind == 'B' ? TIDE_ROW_BEGIN
                                          : step->kind == 'r'                      ? TIDE_ROW_RESUME
                                                                                   : TIDE_ROW_END,
                                  .place = place,
                                  .incarnation = step->incarnation,
                                  .commit_us = (int64_t)step->position * 10000};
    if (is_change) {
        row.op = step->kind == 't' ? TIDE_OP_TRUNCATE : TIDE_OP_INSERT;
        row.place.index = 0;
        row.prev = (struct tide_place){{0, step->prev}, step->index, step->prev > 0};
    }
    return row;
}

static struct tide_change_doubts doubts_of(const struct step *steps,
                                           const struct tide_change_moment *moment)
{
    struct tide_change_reach reach = {.moment = *moment, .base = &base};
    for (size_t i = 0; steps[i].kind != 0; i++) {
        struct tide_change_row row = row_of(&steps[i]);
        bool counts = moment->is_position
                          ? row.incarnation <= moment->place.incarnation &&
                                row.place.position.lo <= moment->place.place.position.lo
                          : row.commit_us <= moment->utc_us;
        tide_change_reach_take(&reach, &row, row.kind == TIDE_ROW_CHANGE && counts,
                               steps[i].kind == 'B');
    }
    return tide_change_reach_doubts(&reach);
}

static const struct {
    struct step steps[6];
    uint64_t certain; /* the last position of log 1 that is, up to 50 */
} cases[] = {
    {{{0}}, 50},
    /* Each leads on from the one before. */
    {{{'c', 1, 20, 0, 9}, {'c', 1, 30, 0, 20}}, 50},
    {{{'c', 1, 20, 0, 9}, {'b', 1, 20, 0}, {'e', 1, 20, 0}, {'c', 1, 30, 0, 20}}, 50},
    {{{'b', 1, 0, 0}, {'e', 1, 0, 0}}, 50},
    /* The log went on behind the newest change, whose copy names it in the end. */
    {{{'c', 1, 20, 0, 9}, {'b', 1, 25, ALL}, {'e', 1, 20, 0}, {'c', 1, 30, 0, 20}}, 50},
    {{{'c', 1, 20, 0, 9}, {'r', 1, 25, TIDE_INDEX_LAST}, {'c', 1, 30, 0, 20}}, 50},
    /* A change says so. */
    {{{'c', 1, 20, 0, 9}, {'c', 1, 30, 0, 25}, {'c', 1, 40, 0, 30}}, 20},
    {{{'c', 1, 20, 0, 9}, {'b', 1, 25, ALL}, {'c', 1, 30, 0, 25}}, 20},
    {{{'c', 1, 20, 0, 9}, {'c', 1, 30, 1, 20}}, 19}, /* of the transaction at 20 */
    /* A copy does, that began behind a change that is not there, or in another log. */
    {{{'c', 1, 20, 0, 9}, {'b', 1, 25, 0}, {'e', 1, 25, 0}, {'c', 1, 30, 0, 25}}, 20},
    {{{'c', 1, 20, 0, 9}, {'b', 2, 0, 0}, {'e', 2, 0, 0}}, 20},
    {{{'b', 2, 0, 0}, {'e', 2, 0, 0}}, 10},
    {{{'c', 1, 20, 0, 9}, {'c', 2, 60, 0, 0}}, 20},
    /* A table was altered while nobody followed. */
    {{{'c', 1, 20, 0, 9}, {'B', 1, 25, ALL}, {'e', 1, 20, 0}, {'c', 1, 30, 0, 20}}, 20},
    {{{'c', 1, 20, 0, 9}, {'B', 1, 20, 0}, {'e', 1, 20, 0}, {'c', 1, 30, 0, 20}}, 50},
    /* The source's changes may not all have come: said by the next change, or by the copy's end. */
    {{{'c', 1, 20, 0, 9}, {'b', 1, 25, LAST}, {'e', 1, 25, LAST}, {'c', 1, 30, 0, 25}}, 20},
    {{{'c', 1, 20, 0, 9}, {'c', 1, 30, LAST, 25}, {'b', 1, 30, 0}, {'e', 1, 30, 0}}, 20},
    {{{'c', 1, 20, 0, 9}, {'b', 1, 20, LAST}, {'e', 1, 20, LAST}}, 20},
    {{{'c', 1, 20, 0, 9}, {'c', 1, 30, LAST, 20}, {'b', 1, 30, 0}, {'e', 1, 30, 0}}, 20},
    /* Its end does; and it may still do so. */
    {{{'c', 1, 20, 0, 9}, {'b', 1, 25, ALL}, {'e', 1, 24, 0}, {'c', 1, 30, 0, 24}}, 20},
    {{{'c', 1, 20, 0, 9}, {'b', 1, 25, ALL}}, 20},
    {{{'c', 1, 20, 0, 9}, {'b', 1, 25, ALL}, {'c', 1, 20, 0, 9}}, 20},
};

static bool is_certain(const struct step *steps, const struct tide_change_moment *moment)
{
    struct tide_change_doubts doubts = doubts_of(steps, moment);
    return doubts.gaps == 0 && !doubts.is_beyond;
}

static void moment_behind_what_came_is_certain_only_where_the_rest_leads_on(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        for (uint64_t at = 10; at <= 50; at++) {
            const struct tide_change_moment place = {.is_position = true,
                                                     .place = {1, {{0, at}, ALL, true}}};
            const struct tide_change_moment time = {.utc_us = (int64_t)at * 10000};
            bool want = at <= cases[i].certain;
            assert_int_equal(is_certain(cases[i].steps, &place), want);
            assert_int_equal(is_certain(cases[i].steps, &time), want);
        }
    }
}

/* Until the table is emptied, and where a copy says that rows came after that, again from then on.
 */
static void moment_behind_a_truncation_is_certain_though_changes_before_it_are_missing(void **state)
{
    (void)state;
    const struct step steps[] = {{'c', 1, 20, 0, 9}, {'t', 1, 30, LAST, 25}, {0}};
    const struct step made_anew[] = {{'c', 1, 20, 0, 9}, {'t', 1, 30, LAST, 25}, {'b', 1, 30, LAST},
                                     {'e', 1, 30, LAST}, {'c', 1, 40, LAST, 30}, {0}};
    for (uint64_t at = 10; at <= 50; at++) {
        const struct tide_change_moment place = {.is_position = true,
                                                 .place = {1, {{0, at}, ALL, true}}};
        const struct tide_change_moment time = {.utc_us = (int64_t)at * 10000};
        assert_int_equal(is_certain(steps, &place), at <= 20 || at >= 30);
        assert_int_equal(is_certain(steps, &time), at <= 20 || at >= 30);
        assert_int_equal(is_certain(made_anew, &place), at <= 20 || at == 30);
        assert_int_equal(is_certain(made_anew, &time), at <= 20 || at == 30);
    }
}

static void doubts_name_what_came_before(void **state)
{
    (void)state;
    const struct tide_change_moment moment = {.utc_us = 210000};
    const struct step steps[] = {{'c', 1, 20, 0, 9}, {'b', 2, 0, 0}, {'c', 2, 5, 0, 0}, {0}};
    struct tide_change_doubts doubts = doubts_of(steps, &moment);
    assert_true(doubts.is_beyond);
    assert_int_equal(doubts.reach_us, 200000);
    assert_int_equal(doubts.reach.place.position.lo, 20);
    assert_int_equal(doubts.reach.incarnation, 1);
}

/* What is printed of a time can be given back. */
static void time_of_the_last_change_is_certain_to_the_millisecond(void **state)
{
    (void)state;
    const struct step steps[] = {{'c', 1, 20, 0, 9}, {'b', 2, 0, 0}, {0}};
    const struct tide_change_moment last = {.utc_us = 200999};
    const struct tide_change_moment next = {.utc_us = 201000};
    assert_true(is_certain(steps, &last));
    assert_false(is_certain(steps, &next));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(moment_behind_what_came_is_certain_only_where_the_rest_leads_on),
        cmocka_unit_test(
            moment_behind_a_truncation_is_certain_though_changes_before_it_are_missing),
        cmocka_unit_test(doubts_name_what_came_before),
        cmocka_unit_test(time_of_the_last_change_is_certain_to_the_millisecond),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
