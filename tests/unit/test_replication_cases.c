/*
 * What each side has sealed when a connection ends, in every order, with the cut at every byte
 * where something can change: nothing is stuck, lost or there twice afterwards.
 */
#include "replication_kit.h"

#include "format/wire/stream.h"
#include "soak.h"

#include <stdio.h>
#include <string.h>

static const struct tide_archive_seal_policy never = {.rows_max = 1000000, .bytes_max = 1 << 30};
static const struct tide_archive_seal_policy small = {.rows_max = 7, .bytes_max = 1 << 30};
static const struct tide_archive_seal_policy each = {.rows_max = 1, .bytes_max = 1 << 30};

/* What the source does before each of two connections, and behind them: w writes ten rows, s seals
 * all, h seals all but some, j joins, l writes one late. */
struct plan {
    const char *before;
    const char *between;
    const char *behind;
};

static const struct plan plans[] = {
    {"w", "", ""},        {"w", "s", "w"},      {"w", "ws", "w"},   {"ws", "", "w"},
    {"ws", "w", "s"},     {"wsw", "s", "ws"},   {"wsw", "ws", "w"}, {"wswsw", "j", "s"},
    {"wsws", "jw", "s"},  {"wsw", "wsws", "j"}, {"wh", "s", "w"},   {"wh", "wh", "whs"},
    {"wsw", "sjw", "sj"}, {"w", "l", "s"},      {"wsw", "ls", "w"}, {"wsw", "l", "lw"},
};

struct side {
    bool is_quiet;
    const struct tide_archive_seal_policy *policy;
};

static const struct side sides[] = {{false, &never}, {true, &never}, {true, &small}, {true, &each}};

static int64_t newest;

static void seal_some(void)
{
    struct tide_archive_series *series = kit_series(&kit, "a");
    struct tide_archive_seal_counts counts;
    const struct tide_archive_seal_policy policy = {.rows_max = 6, .bytes_max = 1 << 20};
    kit_ok(&kit, tide_archive_seal(kit.writer, &series, 1, &policy, &counts, &kit.err));
}

static void act(const char *steps)
{
    for (; *steps != '\0'; steps++) {
        switch (*steps) {
        case 'w': /* odd times: a late one is between them */
            for (int i = 0; i < 10; i++) {
                newest += 2;
                kit_ok(&kit, kit_write(&kit, "a", newest, newest));
            }
            break;
        case 's':
            kit_ok(&kit, kit_seal(&kit, "a"));
            break;
        case 'h':
            seal_some();
            break;
        case 'j':
            kit_join(&kit, kit.source, "a");
            break;
        default: /* the last but one, or none where that is sealed */
            (void)(kit_write(&kit, "a", newest - 3, newest - 3) == TIDE_OK);
            break;
        }
    }
}

/* Where frames end in the stream of an archive; the last one is its length. */
static size_t frame_ends(const char *path, size_t *ends)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf stream = {0};
    const struct tide_publisher_options all = {0};
    struct tide_wire_frame frame;
    struct tide_error err;
    size_t count = 0;
    stream_of(path, &all, &stream);
    struct tide_wire_reader reader = tide_wire_reader_of(tide_buf_str(&stream));
    do {
        ends[count++] = reader.pos;
        assert_true(count < 100);
    } while (tide_wire_reader_next(&reader, &frame, &err) == TIDE_OK);
    return count;
}

static void try_cut(const struct plan *plan, const struct side *first, const struct side *second,
                    size_t boundary, bool *ret_is_last)
{
    size_t ends[100];
    kit_setup(&kit);
    newest = 10;
    act(plan->before);
    size_t count = frame_ends(kit.path, ends);
    *ret_is_last = boundary + 1 >= count;
    struct follow follow = {.is_quiet = first->is_quiet,
                            .policy = first->policy,
                            .is_cut = !*ret_is_last,
                            .bytes_left = ends[boundary < count ? boundary : count - 1]};
    follow_open(&follow, &kit, "copy.tide");
    kit_ok(&kit, follow_pump(&follow));
    follow_cut(&follow);
    act(plan->between);
    follow_close(&follow);
    follow = (struct follow){.is_quiet = second->is_quiet, .policy = second->policy};
    follow_open(&follow, &kit, "copy.tide");
    if (follow_pump(&follow) != TIDE_OK) {
        fail_msg("%s/%s/%s, cut at %zu: %s", plan->before, plan->between, plan->behind, boundary,
                 follow.err.message);
    }
    follow_has_same_rows(&follow);
    act(plan->behind);
    if (follow_pump(&follow) != TIDE_OK) { /* another connection, where rows were overtaken */
        assert_int_equal(follow.err.status, TIDE_STALE);
        follow_cut(&follow);
        if (follow_pump(&follow) != TIDE_OK) {
            fail_msg("%s", follow.err.message);
        }
    }
    const char *differ = rows_differ(&kit, kit.path, follow.path);
    if (differ != NULL) {
        fail_msg("%s/%s/%s, cut at %zu: %s", plan->before, plan->between, plan->behind, boundary,
                 differ);
    }
    follow_close(&follow);
    kit_teardown(&kit);
}

static void every_cut_heals(void **state)
{
    (void)state;
    long stride = soak_rounds(5, 1); /* few of them, and never the same for all plans */
    long number = 0;
    for (size_t i = 0; i < sizeof(plans) / sizeof(plans[0]); i++) {
        for (size_t x = 0; x < sizeof(sides) / sizeof(sides[0]); x++) {
            for (size_t y = 0; y < sizeof(sides) / sizeof(sides[0]); y++) {
                bool is_last = false;
                for (size_t at = 0; !is_last; at++) {
                    if (number++ % stride != 0 && at > 0) {
                        is_last = at > 20;
                        continue;
                    }
                    try_cut(&plans[i], &sides[x], &sides[y], at, &is_last);
                }
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_cut_heals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
