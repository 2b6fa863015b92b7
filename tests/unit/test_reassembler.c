#include "cmocka_prelude.h"

#include "format/reassembler.h"
#include "frame_history.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    UNKNOWN = TIDE_SNAPSHOT_UNKNOWN,
    OPEN = TIDE_SNAPSHOT_OPEN,
    COMPLETE = TIDE_SNAPSHOT_COMPLETE,
    TRUNCATED = TIDE_SNAPSHOT_TRUNCATED,
    CONFLICTING = TIDE_SNAPSHOT_CONFLICTING,
};

struct verdict_case {
    const char *name;
    const char *history;
    int status;
    uint64_t rows;
    uint64_t stubs;
    uint64_t missing;
    enum tide_snapshot_conflict conflict;
};

/* clang-format off */
static const struct verdict_case cases[] = {
    {"nothing of it", "begin,id=B", UNKNOWN, 0, 0, 0, 0},
    {"only changes", "change=5,prev=null", UNKNOWN, 0, 0, 0, 0},
    {"plain", "begin row=0 row=1 stub=2 end=3", COMPLETE, 2, 1, 0, 0},
    {"no rows", "begin end=0", COMPLETE, 0, 0, 0, 0},
    {"no begin", "row=0 end=1", COMPLETE, 1, 0, 0, 0},
    {"no end", "begin row=0 row=1", OPEN, 2, 0, 0, 0},
    {"begin only", "begin", OPEN, 0, 0, 0, 0},
    {"lost row", "begin row=0 row=2 end=3", TRUNCATED, 2, 0, 1, 0},
    {"lost last row", "begin row=0 row=1 end=3", TRUNCATED, 2, 0, 1, 0},
    {"lost stub", "begin row=0 end=2", TRUNCATED, 1, 0, 1, 0},
    {"all lost", "end=5", TRUNCATED, 0, 0, 5, 0},
    {"hostile count", "begin row=0 end=18446744073709551615", TRUNCATED, 1, 0, UINT64_MAX - 1, 0},
    {"hostile seq", "row=18446744073709551615 end=1", CONFLICTING, 1, 0, 1, TIDE_CONFLICT_PAST_THE_END},
    {"total agrees", "begin,total=1 row=0 end=1", COMPLETE, 1, 0, 0, 0},
    {"total differs", "begin,total=2 row=0 end=1", CONFLICTING, 1, 0, 0, TIDE_CONFLICT_TOTAL},
    {"total differs, open", "begin,total=2 row=0", OPEN, 1, 0, 0, 0},
    {"row and stub", "row=0 stub=0 end=1", CONFLICTING, 0, 1, 0, TIDE_CONFLICT_ROW_AND_STUB},
    {"row and stub, open", "row=0 stub=0", CONFLICTING, 0, 1, 0, TIDE_CONFLICT_ROW_AND_STUB},
    {"past the count", "row=0 row=1 end=1", CONFLICTING, 2, 0, 0, TIDE_CONFLICT_PAST_THE_END},
    {"two ends", "row=0 end=1 end=2", CONFLICTING, 1, 0, 0, TIDE_CONFLICT_TWO_COUNTS},
    {"an end twice", "row=0 end=1 end=1", COMPLETE, 1, 0, 0, 0},
    {"two stores", "row=0,store=a row=1,store=b end=2,store=a", CONFLICTING, 2, 0, 0, TIDE_CONFLICT_TWO_STORES},
    {"escaped store", "row=0,store=a\\u0062 row=1,store=ab end=2,store=\\u0061b", COMPLETE, 2, 0, 0, 0},
    /* attempts */
    {"one interruption", "begin row=0 row=1 resume=2,starts=2,attempt=1 row=2,attempt=1 end=3,starts=2,attempt=1", COMPLETE, 3, 0, 0, 0},
    {"lost resume", "begin row=0 row=1 row=2,attempt=1 end=3,starts=2,attempt=1", COMPLETE, 3, 0, 0, 0},
    {"void rows", "row=0 row=1 row=2 row=3 resume=2,starts=2,attempt=1 row=2,attempt=1 end=3,starts=2,attempt=1", COMPLETE, 3, 0, 0, 0},
    {"void row does not fill", "row=0 row=1 row=2 end=3,starts=2,attempt=1", TRUNCATED, 2, 0, 1, 0},
    {"void stub", "row=0 stub=1 resume=1,starts=1,attempt=1 row=1,attempt=1 end=2,starts=1,attempt=1", COMPLETE, 2, 0, 0, 0},
    {"void end", "row=0 row=1 end=2 resume=1,starts=1,attempt=1 row=1,attempt=1", OPEN, 2, 0, 0, 0},
    {"void end by a row only", "row=0 row=1 end=2 row=1,attempt=1", OPEN, 2, 0, 0, 0},
    {"void end, new end", "row=0 row=1 end=2 resume=2,starts=2,attempt=1 end=2,starts=2,attempt=1", COMPLETE, 2, 0, 0, 0},
    {"void end, more rows", "row=0 row=1 end=2 row=1,attempt=1 row=2,attempt=1 end=3,starts=1,attempt=1", COMPLETE, 3, 0, 0, 0},
    {"higher attempt than the end's", "row=0 end=1,starts=1,attempt=1 resume=1,starts=1:1,attempt=2", OPEN, 1, 0, 0, 0},
    {"row of a higher attempt", "row=0 end=1,starts=1,attempt=1 row=1,attempt=2", OPEN, 2, 0, 0, 0},
    {"nothing of attempt 0", "row=0,attempt=1 end=1,starts=0,attempt=1", COMPLETE, 1, 0, 0, 0},
    {"void conflict", "row=0 row=1 stub=1 row=1,attempt=1 end=2,starts=1,attempt=1", COMPLETE, 2, 0, 0, 0},
    {"void past the end", "row=0 row=1 row=9 row=1,attempt=1 end=2,starts=1,attempt=1", COMPLETE, 2, 0, 0, 0},
    {"lost in attempt 0", "row=0 row=2,attempt=1 end=3,starts=2,attempt=1", TRUNCATED, 2, 0, 1, 0},
    {"lost in attempt 1", "row=0 row=1 row=3,attempt=1 end=4,starts=2,attempt=1", TRUNCATED, 3, 0, 1, 0},
    {"three attempts", "row=0 row=1 row=1,attempt=1 row=2,attempt=1 row=3,attempt=1 row=3,attempt=2 end=4,starts=1:3,attempt=2", COMPLETE, 4, 0, 0, 0},
    {"a later attempt starts lower", "row=0 row=1 row=2,attempt=1 row=3,attempt=1 row=1,attempt=2 row=2,attempt=2 end=3,starts=2:1,attempt=2", COMPLETE, 3, 0, 0, 0},
    {"an attempt without rows", "row=0 row=1,attempt=2 end=2,starts=1:1,attempt=2", COMPLETE, 2, 0, 0, 0},
    {"row and stub in two attempts", "row=0 stub=1 row=1,attempt=1 end=2,starts=1,attempt=1", COMPLETE, 2, 0, 0, 0},
    {"before its start", "row=0 row=0,attempt=1 row=1,attempt=1 end=2,starts=1,attempt=1", CONFLICTING, 2, 0, 0, TIDE_CONFLICT_BEFORE_START},
    {"two starts", "row=0 row=1,attempt=1 resume=0,starts=0,attempt=1 end=2,starts=1,attempt=1", CONFLICTING, 99, 99, 99, TIDE_CONFLICT_TWO_STARTS},
    {"two starts of a void attempt", "row=0 resume=1,starts=1,attempt=1 resume=0,starts=0,attempt=1 end=1,starts=1:1,attempt=2", COMPLETE, 1, 0, 0, 0},
    {"two ends of a void attempt", "row=0 end=1 end=2 end=1,starts=1,attempt=1", COMPLETE, 1, 0, 0, 0},
    {"an end of attempt 1 twice", "row=0 end=1,starts=1,attempt=1 end=1,starts=1,attempt=1", COMPLETE, 1, 0, 0, 0},
    {"two ends of attempt 1", "row=0 end=1,starts=1,attempt=1 end=2,starts=1,attempt=1", CONFLICTING, 1, 0, 99, TIDE_CONFLICT_TWO_COUNTS},
    {"lost end and resume", "row=0 row=1 row=2 row=1,attempt=1", OPEN, 2, 0, 0, 0},
    /* changes */
    {"no changes", "begin,from=null end=0,to=null", COMPLETE, 0, 0, 0, 0},
    {"begin never arrived, all of it is done over", "resume=0,from=7,starts=0,attempt=1 row=0,attempt=1 end=1,to=7,starts=0,attempt=1", COMPLETE, 1, 0, 0, 0},
    {"begin lost, some of it counts", "row=0 resume=1,from=7,starts=1,attempt=1 row=1,attempt=1 end=2,to=7,starts=1,attempt=1", TRUNCATED, 2, 0, 0, 0},
    {"the second attempt begins anew", "row=0 resume=0,from=7,starts=0,attempt=1 row=0,attempt=1 resume=1,from=8,starts=0:1,attempt=2 change=8,prev=7 row=1,attempt=2 end=2,to=8,starts=0:1,attempt=2", COMPLETE, 2, 0, 0, 0},
    {"no changes since", "begin,from=7 end=0,to=7", COMPLETE, 0, 0, 0, 0},
    {"one change", "begin,from=null change=5,prev=null row=0 end=1,to=5", COMPLETE, 1, 0, 0, 0},
    {"changes", "begin,from=3 change=5,prev=3 change=6,prev=5 change=9,prev=6 end=0,to=9", COMPLETE, 0, 0, 0, 0},
    {"lost change", "begin,from=3 change=5,prev=3 change=9,prev=6 end=0,to=9", TRUNCATED, 0, 0, 0, 0},
    {"lost first change", "begin,from=3 change=6,prev=5 end=0,to=6", TRUNCATED, 0, 0, 0, 0},
    {"lost last change", "begin,from=3 change=5,prev=3 end=0,to=6", TRUNCATED, 0, 0, 0, 0},
    {"lost only change", "begin,from=null end=0,to=6", TRUNCATED, 0, 0, 0, 0},
    {"changes and rows lost", "begin,from=3 row=0 end=2,to=6", TRUNCATED, 1, 0, 1, 0},
    {"changes on both sides", "change=2,prev=null change=3,prev=2 begin,from=3 change=5,prev=3 end=0,to=5 change=8,prev=5", COMPLETE, 0, 0, 0, 0},
    {"lost before and after", "change=2,prev=1 begin,from=3 change=5,prev=3 end=0,to=5 change=9,prev=8", COMPLETE, 0, 0, 0, 0},
    {"merged differently", "begin,from=null change=5,prev=null change=6,prev=5 change=9,prev=5 change=10,prev=9 end=0,to=10", COMPLETE, 0, 0, 0, 0},
    {"merged over a loss", "begin,from=null change=5,prev=null change=9,prev=6 change=9,prev=5 end=0,to=9", COMPLETE, 0, 0, 0, 0},
    {"merged past the end", "begin,from=null change=9,prev=null end=0,to=5", COMPLETE, 0, 0, 0, 0},
    {"a change from before", "begin,from=5 change=9,prev=2 end=0,to=9", COMPLETE, 0, 0, 0, 0},
    {"of another store", "begin,from=3 change=5,prev=3,store=shop.b end=0,to=5", TRUNCATED, 0, 0, 0, 0},
    {"digits are not text", "begin,from=9 change=10,prev=9 change=100,prev=10 end=0,to=100", COMPLETE, 0, 0, 0, 0},
    {"begin before resume counts", "begin,from=3 resume=0,from=7,starts=0,attempt=1 change=9,prev=7 end=0,to=9,starts=0,attempt=1", TRUNCATED, 0, 0, 0, 0},
    {"from begin over resume", "begin,from=3 change=7,prev=3 resume=0,from=7,starts=0,attempt=1 change=9,prev=7 end=0,to=9,starts=0,attempt=1", COMPLETE, 0, 0, 0, 0},
    {"no begin, changes", "change=5,prev=3 end=0,to=5", TRUNCATED, 0, 0, 0, 0},
    {"no begin, changes from the first on", "change=3,prev=null change=5,prev=3 end=0,to=5", COMPLETE, 0, 0, 0, 0},
    {"no begin, no changes", "row=0 end=1,to=null", COMPLETE, 1, 0, 0, 0},
    {"log starts over", "change=90,prev=80 begin,from=3,inc=1 change=5,prev=3,inc=1 end=0,to=5", COMPLETE, 0, 0, 0, 0},
    {"log starts over while copying", "begin,from=90 row=0 resume=1,from=2,inc=1,starts=1,attempt=1 change=5,prev=2,inc=1 end=1,to=5,starts=1,attempt=1", COMPLETE, 1, 0, 0, 0},
    {"log starts over, a change lost", "begin,from=90 row=0 resume=1,from=2,inc=1,starts=1,attempt=1 end=1,to=5,starts=1,attempt=1", TRUNCATED, 1, 0, 0, 0},
    {"log starts over, no begin", "change=3,prev=null,inc=1 row=0,inc=1 end=1,to=3", COMPLETE, 1, 0, 0, 0},
    /* a truncate stands for the end of what came before it */
    {"emptied", "begin,from=3 row=0,at=3 row=1,at=4 change=5,prev=3,op=truncate", COMPLETE, 2, 0, 0, 0},
    {"emptied before any row", "begin,from=null change=5,prev=null,op=truncate", COMPLETE, 0, 0, 0, 0},
    {"emptied, changes after and one lost", "begin,from=3 row=0,at=3 change=5,prev=4,op=truncate change=9,prev=8", COMPLETE, 1, 0, 0, 0},
    {"emptied twice", "begin,from=3 row=0,at=6 change=5,prev=3,op=truncate change=9,prev=5,op=truncate", COMPLETE, 1, 0, 0, 0},
    {"emptied, the log starts over", "begin,from=90 row=0,at=95 change=5,prev=3,op=truncate,inc=1", COMPLETE, 1, 0, 0, 0},
    {"emptied before it began", "change=3,prev=null,op=truncate begin,from=3 row=0,at=3", OPEN, 1, 0, 0, 0},
    {"a row after the truncate", "begin,from=3 row=0,at=3 change=5,prev=3,op=truncate row=1,at=6", OPEN, 2, 0, 0, 0},
    {"a row in its transaction", "begin,from=3 row=0,at=5 change=5,prev=3,op=truncate", OPEN, 1, 0, 0, 0},
    {"a resume after the truncate", "begin,from=3 row=0,at=3 change=5,prev=3,op=truncate resume=1,from=5,starts=1,attempt=1", OPEN, 1, 0, 0, 0},
    {"a row of a newer log", "begin,from=3 row=0,at=1,inc=1 change=5,prev=3,op=truncate", OPEN, 1, 0, 0, 0},
    {"emptied, its begin lost", "row=0,at=3 change=5,prev=3,op=truncate", OPEN, 1, 0, 0, 0},
    {"another store emptied", "begin,from=3 row=0,at=3 change=5,prev=3,op=truncate,store=shop.b", OPEN, 1, 0, 0, 0},
    {"places without order", "begin,from=\"x\" row=0,at=\"y\" change=\"z\",prev=\"x\",op=truncate", OPEN, 1, 0, 0, 0},
    {"emptied, conflicting", "begin,from=3 row=0,at=3 stub=0 change=5,prev=3,op=truncate", CONFLICTING, 0, 1, 0, TIDE_CONFLICT_ROW_AND_STUB},
    {"emptied, void end", "begin,from=3 row=0,at=3 end=1,to=3 resume=0,from=3,starts=0,attempt=1 change=5,prev=3,op=truncate", COMPLETE, 0, 0, 0, 0},
    {"emptied after a lost row", "begin,from=3 row=0,at=3 end=2,to=5 change=5,prev=3,op=truncate", TRUNCATED, 1, 0, 1, 0},
    {"only old changes", "change=5,prev=3 begin,from=3,inc=1 end=0,to=5", TRUNCATED, 0, 0, 0, 0},
};
/* clang-format on */

#define CASE_COUNT (sizeof(cases) / sizeof(cases[0]))

static uint64_t seed = 11;

static size_t next_random(size_t below)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (size_t)(seed >> 33) % below;
}

static void shuffle(size_t *order, size_t count)
{
    for (size_t i = count; i > 1; i--) {
        size_t other = next_random(i);
        size_t swap = order[i - 1];
        order[i - 1] = order[other];
        order[other] = swap;
    }
}

/* 99 in a case: not compared, since it depends on which of two came first. */
static void assert_number(const char *name, const char *what, uint64_t got, uint64_t want)
{
    if (want != 99 && got != want) {
        fail_msg("%s: %s is %llu, not %llu", name, what, (unsigned long long)got,
                 (unsigned long long)want);
    }
}

static void check_case(const struct verdict_case *c, const struct history *history,
                       const size_t *order, size_t count)
{
    struct tide_reassembler *reassembler = tide_reassembler_new();
    for (size_t i = 0; i < count; i++) {
        history_feed(reassembler, history->tokens[order[i]]);
    }
    struct tide_snapshot_report report = tide_reassembler_judge(reassembler, TIDE_STR("A"));
    assert_number(c->name, "status", report.status, (uint64_t)c->status);
    assert_number(c->name, "rows", report.rows, c->rows);
    assert_number(c->name, "stubs", report.stubs, c->stubs);
    bool has_two_counts = c->conflict == TIDE_CONFLICT_TWO_COUNTS;
    assert_number(c->name, "missing", report.missing, has_two_counts ? 99 : c->missing);
    if (!has_two_counts || report.conflict != TIDE_CONFLICT_PAST_THE_END) {
        assert_number(c->name, "conflict", report.conflict, c->conflict);
    }
    tide_reassembler_free(reassembler);
}

/* In any order, and with every frame twice: the verdict is the same. */
static void judge_every_case_in_every_order(void **state)
{
    (void)state;
    for (size_t i = 0; i < CASE_COUNT; i++) {
        struct history *history = history_parse(cases[i].history);
        size_t order[HISTORY_MAX * 2];
        size_t count = history->count;
        for (size_t k = 0; k < count * 2; k++) {
            order[k] = k % count;
        }
        check_case(&cases[i], history, order, count);
        check_case(&cases[i], history, order, count * 2);
        for (int round = 0; round < 30; round++) {
            shuffle(order, count * 2);
            check_case(&cases[i], history, order, count * 2);
        }
        for (size_t k = 0; k < count; k++) {
            order[k] = count - 1 - k;
        }
        check_case(&cases[i], history, order, count);
        free(history);
    }
}

static struct tide_reassembler *fed(const char *text)
{
    struct tide_reassembler *reassembler = tide_reassembler_new();
    struct history *history = history_parse(text);
    for (size_t i = 0; i < history->count; i++) {
        history_feed(reassembler, history->tokens[i]);
    }
    free(history);
    return reassembler;
}

static void judge_two_interleaved_snapshots_of_one_store_each_alone(void **state)
{
    (void)state;
    struct tide_reassembler *reassembler = fed(
        "begin,id=A row=0,id=A begin,id=B row=0,id=B row=1,id=B row=2,id=A end=2,id=B end=3,id=A");
    assert_int_equal(tide_reassembler_count(reassembler), 2);
    assert_memory_equal(tide_reassembler_id(reassembler, 0).ptr, "A", 1);
    assert_int_equal(tide_reassembler_judge(reassembler, TIDE_STR("A")).status, TRUNCATED);
    assert_int_equal(tide_reassembler_judge(reassembler, TIDE_STR("B")).status, COMPLETE);
    assert_true(tide_reassembler_forget(reassembler, TIDE_STR("A")));
    assert_false(tide_reassembler_forget(reassembler, TIDE_STR("A")));
    assert_int_equal(tide_reassembler_count(reassembler), 1);
    assert_int_equal(tide_reassembler_judge(reassembler, TIDE_STR("A")).status, UNKNOWN);
    history_feed(reassembler, "row=0,id=A");
    assert_int_equal(tide_reassembler_judge(reassembler, TIDE_STR("A")).rows, 1);
    assert_int_equal(tide_reassembler_judge(reassembler, TIDE_STR("B")).status, COMPLETE);
    tide_reassembler_free(reassembler);
}

static void judge_truncated_names_the_first_missing_ranges(void **state)
{
    (void)state;
    struct tide_reassembler *reassembler =
        fed("row=1 row=2 row=5 row=6 row=7 row=9,attempt=1 end=12,starts=6,attempt=1");
    struct tide_snapshot_report report = tide_reassembler_judge(reassembler, TIDE_STR("A"));
    assert_int_equal(report.expected, 12);
    assert_int_equal(report.missing, 8);
    assert_int_equal(report.attempts, 2);
    const struct tide_interval want[] = {{0, 0}, {3, 4}, {6, 8}, {10, 11}};
    assert_int_equal(report.missing_range_count, 4);
    assert_memory_equal(report.missing_ranges, want, sizeof(want));
    tide_reassembler_free(reassembler);
}

static void judge_truncated_names_the_first_hole_in_the_changes(void **state)
{
    (void)state;
    struct tide_reassembler *reassembler =
        fed("begin,from=3 change=30,prev=20 change=5,prev=3 change=12,prev=9 end=0,to=30");
    struct tide_snapshot_report report = tide_reassembler_judge(reassembler, TIDE_STR("A"));
    assert_true(report.has_changes);
    assert_false(report.changes_are_whole);
    assert_int_equal(report.covered.lo, 5);
    assert_int_equal(report.hole_to.lo, 9);
    assert_int_equal(report.changes_seen, 3);
    tide_reassembler_free(reassembler);
}

static bool recheck_all(struct tide_reassembler *reassembler, const char *text)
{
    struct history *history = history_parse(text);
    bool any = false;
    while (tide_reassembler_recheck_next(reassembler)) {
        any = true;
        for (size_t i = 0; i < history->count; i++) {
            history_recheck(reassembler, history->tokens[i]);
        }
    }
    free(history);
    return any;
}

static void recheck_finds_two_records_under_one_seq(void **state)
{
    (void)state;

    const struct {
        const char *history;
        bool any;
        int status;
    } recheck_cases[] = {
        {"row=0 row=1 end=2", false, COMPLETE},
        {"row=0 row=1 row=0 end=2", true, COMPLETE},
        {"row=0 row=1 row=0,record=7 end=2", true, CONFLICTING},
        {"row=0 row=1 row=1 row=0 row=1 row=1,record=7 end=2", true, CONFLICTING},
        {"stub=0 stub=0 end=1", true, COMPLETE},
        {"stub=0 stub=0,key=9 end=1", true, CONFLICTING},
        {"stub=0 stub=0,bytes=9 end=1", true, CONFLICTING},
        /* after a higher seq of another snapshot, and of an earlier attempt */
        {"row=5,id=B row=5,id=B row=0 row=0,record=7 end=1", true, CONFLICTING},
        {"row=5,id=B row=5,id=B row=2,id=B,attempt=1 row=2,id=B,attempt=1 row=0 row=0,record=7 "
         "end=1",
         true, CONFLICTING},
        {"row=0 row=9 row=9 row=1,attempt=1 row=1,record=7,attempt=1 end=2,starts=1,attempt=1",
         true, CONFLICTING},
        {"row=0 row=0,record=7,id=B end=1", false, COMPLETE},
        /* void rows may differ from what replaced them, and from each other */
        {"row=0 row=1,record=7 row=1,attempt=1 end=2,starts=1,attempt=1", false, COMPLETE},
        {"row=0 row=1,record=7 row=1 row=1,attempt=1 end=2,starts=1,attempt=1", true, COMPLETE},
        {"row=0 row=1,attempt=1 row=1,record=7,attempt=1 end=2,starts=1,attempt=1", true,
         CONFLICTING},
    };

    for (size_t i = 0; i < sizeof(recheck_cases) / sizeof(recheck_cases[0]); i++) {
        struct tide_reassembler *reassembler = fed(recheck_cases[i].history);
        struct tide_snapshot_report report = tide_reassembler_judge(reassembler, TIDE_STR("A"));
        assert_int_equal(report.is_compared, report.duplicates == 0);
        assert_int_equal(recheck_all(reassembler, recheck_cases[i].history), recheck_cases[i].any);
        report = tide_reassembler_judge(reassembler, TIDE_STR("A"));
        assert_int_equal(report.status, recheck_cases[i].status);
        assert_true(report.is_compared);
        tide_reassembler_free(reassembler);
    }
}

/* A row of snapshot `id` that feeds or rechecks. */
static void big_row(struct tide_reassembler *reassembler, const char *id, uint64_t seq,
                    const char *record, bool is_recheck)
{
    struct tide_frame frame = {.kind = TIDE_FRAME_ROW,
                               .snapshot_id = tide_str_from(id),
                               .snapshot_at = TIDE_STR("T"),
                               .store = TIDE_STR("s"),
                               .seq = seq,
                               .record = tide_str_from(record)};
    if (is_recheck) {
        tide_reassembler_recheck(reassembler, &frame);
    } else {
        tide_reassembler_feed(reassembler, &frame, 0);
    }
}

/* Snapshot A has one seq twice, which is the first that the second round compares of B. */
static void big_history(struct tide_reassembler *reassembler, uint64_t count, bool is_recheck)
{
    uint64_t shared = ((uint64_t)1 << 20) - 1;
    for (int again = 0; again < 2; again++) {
        big_row(reassembler, "A", shared, "7", is_recheck);
        for (uint64_t seq = 0; seq < count; seq++) {
            bool is_odd = again == 1 && seq == count - 1;
            big_row(reassembler, "B", seq, is_odd ? "2" : "1", is_recheck);
        }
    }
}

/* More seqs came twice than one round takes. */
static void recheck_goes_on_until_every_seq_was_compared(void **state)
{
    (void)state;
    struct tide_reassembler *reassembler = tide_reassembler_new();
    uint64_t count = ((uint64_t)1 << 20) + 1000;
    int rounds = 0;
    big_history(reassembler, count, false);
    while (tide_reassembler_recheck_next(reassembler)) {
        rounds++;
        big_history(reassembler, count, true);
    }
    assert_int_equal(rounds, 2);
    struct tide_snapshot_report report = tide_reassembler_judge(reassembler, TIDE_STR("B"));
    assert_int_equal(report.conflict, TIDE_CONFLICT_TWO_RECORDS);
    assert_int_equal(report.conflict_seq, count - 1);
    assert_int_equal(report.duplicates, count);
    report = tide_reassembler_judge(reassembler, TIDE_STR("A"));
    assert_int_equal(report.status, OPEN);
    tide_reassembler_free(reassembler);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(judge_every_case_in_every_order),
        cmocka_unit_test(judge_two_interleaved_snapshots_of_one_store_each_alone),
        cmocka_unit_test(judge_truncated_names_the_first_missing_ranges),
        cmocka_unit_test(judge_truncated_names_the_first_hole_in_the_changes),
        cmocka_unit_test(recheck_finds_two_records_under_one_seq),
        cmocka_unit_test(recheck_goes_on_until_every_seq_was_compared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
