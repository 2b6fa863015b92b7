/* An archive that follows another one: what comes, what comes again, and what is made of it. */
#include "replication_kit.h"

#include <stdio.h>

static void write_note(const char *series, int64_t ts, const char *text)
{
    const struct tide_archive_note note = {kit_series(&kit, series), ts, tide_str_from(text)};
    const struct tide_archive_tick tick = {.notes = &note, .note_count = 1};
    kit_ok(&kit, tide_archive_write(kit.writer, &tick, &kit.err));
}

/* Segments, live rows, notes and offsets of two series. */
static void fill(void)
{
    write_note("a", 1, "columns of a");
    write_note("b", 1, "columns of b");
    kit_ok(&kit, kit_write(&kit, "a", 1, 50));
    kit_ok(&kit, kit_write(&kit, "b", 1, 30));
    kit_ok(&kit, kit_seal(&kit, "a"));
    write_note("a", 51, "columns of a");
    write_note("a", 51, "columns of a");
    kit_ok(&kit, kit_write(&kit, "a", 51, 80));
    kit_ok(&kit, kit_seal(&kit, "a"));
    kit_ok(&kit, kit_write(&kit, "a", 81, 99));
}

static void pump_copies_all_tables(void **state)
{
    (void)state;
    for (size_t piece = 1; piece < 5000; piece = piece * 3 + 1) {
        struct follow follow = {.piece_max = piece};
        char name[32];
        (void)snprintf(name, sizeof(name), "copy-%zu.tide", piece);
        if (piece == 1) {
            fill();
        }
        follow_open(&follow, &kit, name);
        kit_ok(&kit, follow_pump(&follow));
        follow_is_equal(&follow);
        follow_close(&follow);
    }
}

static void pump_quiet_copies_all_tables(void **state)
{
    (void)state;
    struct follow follow = {.is_quiet = true};
    fill();
    follow_open(&follow, &kit, "copy.tide");
    kit_ok(&kit, follow_pump(&follow));
    follow_is_equal(&follow);
    follow_close(&follow);
}

static void pump_follows_rows_and_segments(void **state)
{
    (void)state;
    struct follow follow = {0};
    follow_open(&follow, &kit, "copy.tide");
    for (int64_t i = 0; i < 20; i++) {
        kit_ok(&kit, kit_write(&kit, "a", i * 10, i * 10 + 9));
        kit_ok(&kit, follow_pump(&follow));
        follow_is_equal(&follow);
        if (i % 3 == 2) {
            kit_ok(&kit, kit_seal(&kit, "a"));
            write_note("a", i * 10 + 10, "again");
            kit_ok(&kit, follow_pump(&follow));
            follow_is_equal(&follow);
        }
        if (i % 5 == 4) {
            follow_cut(&follow);
        }
    }
    follow_close(&follow);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(pump_copies_all_tables, kit_setup_test, kit_teardown_test),
        cmocka_unit_test_setup_teardown(pump_quiet_copies_all_tables, kit_setup_test,
                                        kit_teardown_test),
        cmocka_unit_test_setup_teardown(pump_follows_rows_and_segments, kit_setup_test,
                                        kit_teardown_test),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
