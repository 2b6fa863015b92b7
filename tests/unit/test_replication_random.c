/* Histories of an archive at random, followed with cuts anywhere. */
#include "replication_kit.h"

#include "soak.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SERIES  3
#define SOURCES 3

static const char *const series_names[SERIES] = {"a", "b", "orders"};

static size_t steady_total; /* streams that went on to the end */

struct random {
    uint64_t state;
};

static uint64_t below(struct random *random, uint64_t bound)
{
    random->state ^= random->state << 13;
    random->state ^= random->state >> 7;
    random->state ^= random->state << 17;
    return random->state % bound;
}

/* What has been done to the source's archive. */
struct history {
    struct random random;
    int64_t sources[SOURCES];
    bool is_ended[SOURCES];
    size_t source_count;
    int64_t now;
    bool forgets; /* what is old is removed from it */
    bool is_late; /* rows come out of order */
};

static struct tide_archive_series *pick_series(struct history *history, size_t *ret_source)
{
    struct tide_archive_series *series = NULL;
    *ret_source = below(&history->random, history->source_count);
    const char *name = series_names[below(&history->random, SERIES)];
    kit_ok(&kit, tide_archive_series_open(kit.writer, history->sources[*ret_source],
                                          tide_str_from(name), &series, &kit.err));
    return series;
}

static void go_on_with(struct history *history, size_t source)
{
    int64_t anchor = 0;
    if (!history->is_ended[source]) {
        return;
    }
    int64_t id = history->sources[source];
    kit_ok(&kit, tide_archive_resume_anchor(kit.writer, id, history->now, &anchor, &kit.err));
    kit_ok(&kit, tide_archive_resume_source(kit.writer, id, anchor, &kit.err));
    history->is_ended[source] = false;
    history->now = anchor > history->now ? anchor : history->now;
}

static void write_rows(struct history *history)
{
    struct tide_archive_row rows[40];
    char texts[40][24];
    size_t source = 0;
    size_t count = 1 + below(&history->random, 40);
    struct tide_archive_series *series = pick_series(history, &source);
    go_on_with(history, source);
    for (size_t i = 0; i < count; i++) {
        history->now += 1 + (int64_t)below(&history->random, 3);
        (void)snprintf(texts[i], sizeof(texts[i]), "%" PRId64, history->now);
        rows[i] = (struct tide_archive_row){series, history->now, 7, tide_str_from(texts[i])};
        if (below(&history->random, 8) == 0) {
            series = pick_series(history, &source);
            go_on_with(history, source);
        }
    }
    const struct tide_archive_tick tick = {.rows = rows, .row_count = count};
    kit_ok(&kit, tide_archive_write(kit.writer, &tick, &kit.err));
}

/* A row among those that are not sealed; where it may not be, nothing happens. */
static void write_late(struct history *history)
{
    size_t source = 0;
    struct tide_archive_series *series = pick_series(history, &source);
    int64_t ts = history->now - (int64_t)below(&history->random, 60);
    const struct tide_archive_row row = {series, ts, 7, TIDE_STR("late")};
    const struct tide_archive_tick tick = {.rows = &row, .row_count = 1};
    if (history->is_late && !history->is_ended[source]) {
        (void)(tide_archive_write(kit.writer, &tick, &kit.err) == TIDE_OK);
    }
}

static void write_note(struct history *history)
{
    size_t source = 0;
    struct tide_archive_series *series = pick_series(history, &source);
    const struct tide_archive_note note = {
        series, history->now - (int64_t)below(&history->random, 30), TIDE_STR("columns")};
    const struct tide_archive_tick tick = {.notes = &note, .note_count = 1};
    kit_ok(&kit, tide_archive_write(kit.writer, &tick, &kit.err));
}

static void seal(struct history *history)
{
    size_t source = 0;
    struct tide_archive_series *series = pick_series(history, &source);
    struct tide_archive_seal_counts counts;
    const struct tide_archive_seal_policy policy = {
        .rows_max = 1 + (int64_t)below(&history->random, 60), .bytes_max = 1000000};
    kit_ok(&kit, tide_archive_seal(kit.writer, &series, 1, &policy, &counts, &kit.err));
}

static void compact(struct history *history)
{
    size_t source = below(&history->random, history->source_count);
    kit_join(&kit, history->sources[source], series_names[below(&history->random, SERIES)]);
}

static void forget(struct history *history)
{
    struct tide_archive_retained retained;
    struct tide_archive_retention retention = {
        .source = history->sources[below(&history->random, history->source_count)],
        .cutoff_ts = history->now - (int64_t)below(&history->random, 300),
    };
    if (history->forgets) {
        kit_ok(&kit, tide_archive_writer_retain(kit.writer, &retention, &retained, &kit.err));
    }
}

static void add_source(struct history *history)
{
    const struct tide_archive_new_source source = {.clock_anchor_wall_ns = history->now};
    if (history->source_count == SOURCES) {
        return;
    }
    kit_ok(&kit, tide_archive_add_source(kit.writer, &source,
                                         &history->sources[history->source_count], &kit.err));
    history->source_count++;
}

static void end_source(struct history *history)
{
    size_t source = below(&history->random, history->source_count);
    kit_ok(&kit, tide_archive_finalize_source(kit.writer, history->sources[source], history->now, 5,
                                              &kit.err));
    history->is_ended[source] = true;
}

static void take_step(struct history *history)
{
    switch (below(&history->random, 24)) {
    case 0:
        add_source(history);
        break;
    case 1:
        end_source(history);
        break;
    case 2:
    case 3:
        write_note(history);
        break;
    case 4:
        compact(history);
        break;
    case 5:
        forget(history);
        break;
    case 6:
    case 7:
    case 8:
    case 9:
        write_late(history);
        break;
    case 10:
    case 11:
    case 12:
    case 13:
        seal(history);
        break;
    default:
        write_rows(history);
        break;
    }
}

static uint64_t seed_now;

/* A stream that cannot go on is begun anew, as any transport does. */
static void pump(struct follow *follow, struct random *random)
{
    follow->piece_max = 1 + below(random, 3000);
    follow->is_cut = below(random, 3) == 0;
    follow->bytes_left = below(random, 4000);
    tide_status status = follow_pump(follow);
    if (status != TIDE_OK) {
        if (status != TIDE_STALE || !follow->err.retriable) {
            fail_msg("seed %" PRIu64 ": %s: %s", seed_now, tide_status_name(status),
                     follow->err.message);
        }
        follow_cut(follow);
    }
    follow->is_cut = false;
}

/* Follows by a socket and by a pipe in turn. */
static void pump_mixed(struct follow *follow, struct random *random)
{
    if (below(random, 3) == 0) {
        follow_cut(follow);
        follow->is_quiet = below(random, 2) == 0;
    }
    pump(follow, random);
}

static void pump_all(struct follow *follow)
{
    for (int i = 0; i < 3; i++) {
        tide_status status = follow_pump(follow);
        if (status == TIDE_OK) {
            return;
        }
        assert_int_equal(status, TIDE_STALE);
        follow_cut(follow);
    }
    fail_msg("seed %" PRIu64 ": %s", seed_now, follow->err.message);
}

static size_t verify(const char *path)
{
    struct archive_kit other = kit;
    other.writer = NULL;
    (void)snprintf(other.path, sizeof(other.path), "%s", path);
    return kit_verify(&other);
}

static void judge(const struct follow *follow, uint64_t seed, bool forgets)
{
    const char *wrong = forgets ? row_missing(&kit, kit.path, follow->path)
                                : rows_differ(&kit, kit.path, follow->path);
    wrong = wrong == NULL && !forgets ? rest_differs(kit.path, follow->path) : wrong;
    if (wrong != NULL) {
        fail_msg("seed %" PRIu64 ", %s: %s", seed, follow->is_quiet ? "quiet" : "said", wrong);
    }
    assert_int_equal(verify(follow->path), 0);
}

static void judge_mixed(const struct follow *follow, uint64_t seed, bool forgets)
{
    const char *wrong = forgets ? row_missing(&kit, kit.path, follow->path)
                                : rows_differ(&kit, kit.path, follow->path);
    if (wrong != NULL) {
        fail_msg("seed %" PRIu64 ", mixed: %s", seed, wrong);
    }
    assert_int_equal(verify(follow->path), 0);
}

/* One stream that is never cut, until it cannot go on. */
static bool pump_steadily(struct follow *follow)
{
    tide_status status = follow_pump(follow);
    assert_true(status == TIDE_OK || (status == TIDE_STALE && follow->err.retriable));
    return status == TIDE_OK;
}

/* All is there, and nothing came twice. */
static void judge_steady(const struct follow *follow, uint64_t seed, bool forgets)
{
    struct tide_subscriber_counts counts;
    const char *wrong = forgets ? row_missing(&kit, kit.path, follow->path)
                                : rows_differ(&kit, kit.path, follow->path);
    tide_subscriber_counts(follow->subscriber, &counts);
    if (wrong != NULL) {
        fail_msg("seed %" PRIu64 ", steady: %s", seed, wrong);
    }
    assert_int_equal(counts.rows_held + counts.segments_held + counts.segments_opened, 0);
    assert_int_equal(counts.index_entries_held + counts.gaps + counts.rows_skipped, 0);
    steady_total++;
}

static void run_history(uint64_t seed, bool forgets, bool is_late)
{
    const struct tide_archive_seal_policy policy = {.rows_max = 25, .bytes_max = 1000000};
    struct history history = {.random = {seed * 2654435761u + 1},
                              .source_count = 1,
                              .now = 1000,
                              .forgets = forgets,
                              .is_late = is_late};
    seed_now = seed;
    size_t group = (size_t)(seed % 2 == 0 ? 0 : seed % 4096); /* committed beside, or at rests */
    struct random other = {seed * 40503u + 7};
    struct follow said = {.group_bytes = group};
    struct follow quiet = {.is_quiet = true, .policy = &policy, .group_bytes = group};
    struct follow steady = {.is_quiet = true};
    struct follow mixed = {.policy = &policy, .group_bytes = group}; /* says hello at times */
    bool is_steady = true;
    kit_setup(&kit);
    history.sources[0] = kit.source;
    follow_open(&said, &kit, "said.tide");
    follow_open(&quiet, &kit, "quiet.tide");
    follow_open(&steady, &kit, "steady.tide");
    follow_open(&mixed, &kit, "mixed.tide");
    size_t steps = 20 + below(&history.random, 100);
    for (size_t i = 0; i < steps; i++) {
        take_step(&history);
        if (below(&history.random, 4) == 0) {
            pump(&said, &history.random);
        }
        if (below(&history.random, 4) == 0) {
            pump(&quiet, &history.random);
        }
        if (below(&other, 4) == 0) {
            pump_mixed(&mixed, &other);
        }
        if (is_steady && below(&history.random, 2) == 0) {
            is_steady = pump_steadily(&steady);
        }
    }
    pump_all(&said);
    pump_all(&quiet);
    follow_cut(&quiet); /* what ended later is told by another stream */
    pump_all(&quiet);
    follow_end(&quiet);
    follow_cut(&mixed);
    mixed.is_quiet = false;
    pump_all(&mixed);
    /* Not told of rows that came late and were sealed at once, where others have been forgotten. */
    if (is_steady && !(forgets && is_late) && pump_steadily(&steady)) {
        judge_steady(&steady, seed, forgets);
    }
    judge(&said, seed, forgets);
    judge(&quiet, seed, forgets);
    judge_mixed(&mixed, seed, forgets);
    follow_close(&said);
    follow_close(&quiet);
    follow_close(&steady);
    follow_close(&mixed);
    kit_teardown(&kit);
}

static void followers_hold_what_the_source_holds(void **state)
{
    (void)state;
    for (long i = soak_rounds(25, 5000); i > 0; i--) {
        run_history((uint64_t)i, false, false);
    }
}

static void followers_hold_what_came_late(void **state)
{
    (void)state;
    for (long i = soak_rounds(25, 5000); i > 0; i--) {
        run_history((uint64_t)i, false, true);
    }
}

static void followers_hold_what_was_not_forgotten(void **state)
{
    (void)state;
    for (long i = soak_rounds(25, 5000); i > 0; i--) {
        run_history((uint64_t)i, true, i % 2 == 0);
    }
}

static void some_streams_go_on_to_the_end(void **state)
{
    (void)state;
    assert_true(steady_total > 30);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(followers_hold_what_the_source_holds),
        cmocka_unit_test(followers_hold_what_came_late),
        cmocka_unit_test(followers_hold_what_was_not_forgotten),
        cmocka_unit_test(some_streams_go_on_to_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
