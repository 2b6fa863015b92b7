/*
 * Random histories: what the log brings, folded into a copy, is what the tables hold, at every
 * commit; delivered again it is the same; and chunks bring the tables as they are. With windows and
 * slices so small that rows change between them.
 */
#include "cmocka_prelude.h"

#include "base/alloc.h"
#include "base/map.h"
#include "soak.h"
#include "source/sqlite/sqlite_db.h"
#include "source/sqlite/sqlite_log.h"
#include "source/sqlite/sqlite_mend.h"
#include "source/sqlite/sqlite_window.h"
#include "sqlite_kit.h"
#include "sqlite_random.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct moment {
    int64_t id; /* the log's end */
    char *dump; /* of the tables */
};

#define MOMENTS_MAX 64

struct history {
    struct sqlite_kit kit;
    struct sqlite_random random;
    sqlite3 *db;
    struct tide_sqlite_choice choice;
    struct tide_sqlite_tables tables;
    struct tide_sqlite_kept kept;
    struct tide_sqlite_watch *watch;
    struct tide_sqlite_trail trail;
    struct tide_sqlite_log *log;
    struct tide_sqlite_log_limits limits;
    struct tide_map copy;   /* "table: key" → its row */
    struct tide_map latest; /* since the last commit: "table: key" → "table: key@id" */
    struct tide_map seen;   /* "table: key@id" → row, "" for a delete */
    struct moment moments[MOMENTS_MAX];
    size_t moment_count;
    int64_t position;
    int64_t confirmed;
    bool is_exact;          /* ranges end where a commit ended */
    struct tide_buf script; /* what was run, for the message */
};

static void put_text(struct tide_map *map, tide_str key, tide_str text)
{
    union tide_map_value *value = tide_map_put(map, key, NULL);
    free(value->ptr);
    value->ptr = tide_strndup(text.ptr, text.len);
}

static void remove_text(struct tide_map *map, tide_str key)
{
    union tide_map_value *value = tide_map_get(map, key);
    if (value != NULL) {
        free(value->ptr);
        (void)tide_map_remove(map, key);
    }
}

static void reset_texts(struct tide_map *map)
{
    size_t at = 0;
    for (struct tide_map_entry *entry; (entry = tide_map_next(map, &at)) != NULL;) {
        free(entry->value.ptr);
    }
    tide_map_reset(map);
}

static int compare_lines(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Joins sorted lines; frees them. */
static char *join(char **lines, size_t count)
{
    struct tide_buf text = {0};
    qsort(lines, count, sizeof(*lines), compare_lines);
    for (size_t i = 0; i < count; i++) {
        tide_buf_append_str(&text, tide_str_from(lines[i]));
        tide_buf_append_char(&text, '\n');
        free(lines[i]);
    }
    free(lines);
    (void)tide_buf_cstr(&text);
    return text.ptr;
}

static char *dump_copy(struct history *history)
{
    char **lines = tide_alloc(history->copy.count, sizeof(*lines));
    size_t count = 0;
    size_t at = 0;
    for (struct tide_map_entry *entry; (entry = tide_map_next(&history->copy, &at)) != NULL;) {
        struct tide_buf line = {0};
        tide_buf_append_str(&line, entry->key);
        tide_buf_append_str(&line, TIDE_STR(" = "));
        tide_buf_append_str(&line, tide_str_from(entry->value.ptr));
        (void)tide_buf_cstr(&line);
        lines[count++] = line.ptr;
    }
    return join(lines, count);
}

/* The row that the statement stands on, as the source should bring it. */
static char *dump_row(const struct tide_sqlite_table *table, sqlite3_stmt *stmt)
{
    const struct tide_relation *relation = table->relation;
    struct tide_buf cells[16] = {{0}};
    bool has_null = false;
    assert_true(relation->column_count <= 16);
    for (size_t i = 0; i < relation->column_count; i++) {
        kit_append_column(&cells[i], stmt, (int)i);
    }
    for (size_t i = 0; i < relation->key_count; i++) {
        struct tide_buf *cell = &cells[relation->key_columns[i]];
        has_null = has_null || tide_str_equal(tide_buf_str(cell), TIDE_STR("n"));
        if (tide_str_equal(tide_buf_str(cell), TIDE_STR("r8000000000000000"))) {
            cell->ptr[1] = '0';
        }
    }
    if (table->is_nullable && !has_null) {
        tide_buf_reset(&cells[relation->column_count - 1]);
        tide_buf_append_char(&cells[relation->column_count - 1], '-');
    }
    struct tide_buf line = {0};
    tide_buf_append_str(&line, relation->name);
    for (size_t i = 0; i < relation->key_count; i++) {
        tide_buf_append_str(&line, i == 0 ? TIDE_STR(": ") : TIDE_STR("|"));
        tide_buf_append_str(&line, tide_buf_str(&cells[relation->key_columns[i]]));
    }
    for (size_t i = 0; i < relation->column_count; i++) {
        tide_buf_append_str(&line, i == 0 ? TIDE_STR(" = ") : TIDE_STR("|"));
        tide_buf_append_str(&line, tide_buf_str(&cells[i]));
        tide_buf_done(&cells[i]);
    }
    (void)tide_buf_cstr(&line);
    return line.ptr;
}

static char *dump_tables(struct history *history)
{
    size_t count = 0;
    size_t cap = 4096;
    char **lines = tide_alloc(cap, sizeof(*lines));
    for (size_t i = 0; i < history->tables.count; i++) {
        const struct tide_sqlite_table *table = history->tables.items[i];
        struct tide_buf sql = {0};
        for (size_t k = 0; k < table->relation->column_count; k++) {
            tide_buf_append_str(&sql, k == 0 ? TIDE_STR("SELECT ") : TIDE_STR(", "));
            tide_sqlite_append_name(&sql, table->relation->columns[k].name);
        }
        tide_buf_printf(&sql, " FROM %.*s", TIDE_STR_ARG(table->name));
        sqlite3_stmt *stmt = NULL;
        assert_int_equal(sqlite3_prepare_v2(history->kit.app, tide_buf_cstr(&sql), -1, &stmt, NULL),
                         SQLITE_OK);
        while (sqlite3_step(stmt) == SQLITE_ROW) {
            assert_true(count < cap);
            lines[count++] = dump_row(table, stmt);
        }
        (void)sqlite3_finalize(stmt);
        tide_buf_done(&sql);
    }
    return join(lines, count);
}

static void expect_same(struct history *history, const char *what, const char *got,
                        const char *want)
{
    if (strcmp(got, want) != 0) {
        print_error("%s\n%s\ngot:\n%s\nwant:\n%s\n", what, tide_buf_cstr(&history->script), got,
                    want);
        fail();
    }
}

static void run(struct history *history, const char *sql)
{
    bool is_ok = sqlite3_exec(history->kit.app, sql, NULL, NULL, NULL) == SQLITE_OK;
    tide_buf_printf(&history->script, "%s;%s\n", sql, is_ok ? "" : " -- failed");
}

static void run_random(struct history *history)
{
    struct tide_buf sql = {0};
    random_append_statement(&history->random, &sql);
    run(history, tide_buf_cstr(&sql));
    tide_buf_done(&sql);
}

static void note_moment(struct history *history)
{
    char *end = kit_get(&history->kit, "SELECT max(id) FROM _tidemark_changes");
    assert_true(history->moment_count < MOMENTS_MAX);
    history->moments[history->moment_count++] =
        (struct moment){.id = strtoll(end, NULL, 10), .dump = dump_tables(history)};
    free(end);
}

static void forget_moments(struct history *history)
{
    for (size_t i = 0; i < history->moment_count; i++) {
        free(history->moments[i].dump);
    }
    history->moment_count = 0;
}

static void write_some(struct history *history)
{
    struct sqlite_random *random = &history->random;
    bool in_transaction = random_below(random, 2) == 0;
    if (in_transaction) {
        run(history, "BEGIN");
    }
    for (size_t i = random_below(random, 6) + 1; i > 0; i--) {
        bool in_savepoint = random_below(random, 6) == 0;
        if (in_savepoint) {
            run(history, "SAVEPOINT s");
        }
        run_random(history);
        if (in_savepoint) {
            run(history, random_below(random, 2) == 0 ? "ROLLBACK TO s" : "SAVEPOINT s2");
            run(history, "RELEASE s");
        }
    }
    if (sqlite3_get_autocommit(history->kit.app) == 0) {
        run(history, random_below(random, 6) == 0 ? "ROLLBACK" : "COMMIT");
    }
    note_moment(history);
}

static void apply_change(struct history *history, const struct tide_change *change)
{
    const struct tide_relation *relation = change->relation;
    struct tide_buf key = {0};
    struct tide_buf row = {0};
    tide_buf_append_str(&key, relation->name);
    tide_buf_append_str(&key, TIDE_STR(": "));
    kit_append_values(&key, change->key, relation->key_count);
    if (change->op == TIDE_OP_DELETE) {
        remove_text(&history->copy, tide_buf_str(&key));
    } else {
        kit_append_values(&row, change->values, relation->column_count);
        put_text(&history->copy, tide_buf_str(&key), tide_buf_str(&row));
    }
    size_t key_len = key.len;
    tide_buf_printf(&key, "@%llu", (unsigned long long)change->place.position.lo);
    tide_buf_append_char(&row, ';');
    tide_buf_append_str(&row, tide_buf_str(&key));
    put_text(&history->latest, tide_str_of(key.ptr, key_len), tide_buf_str(&row));
    tide_buf_done(&key);
    tide_buf_done(&row);
}

/* The last delivery of each row in a range has one content for its place, whenever it comes. */
static void check_latest(struct history *history)
{
    size_t at = 0;
    for (struct tide_map_entry *entry; (entry = tide_map_next(&history->latest, &at)) != NULL;) {
        const char *text = entry->value.ptr;
        tide_str place = tide_str_from(strrchr(text, ';') + 1);
        union tide_map_value *old = tide_map_get(&history->seen, place);
        if (old != NULL) {
            expect_same(history, "delivered again", text, old->ptr);
        }
        put_text(&history->seen, place, tide_str_from(text));
    }
}

static void apply_commit(struct history *history, int64_t position)
{
    assert_true(position > history->position);
    history->position = position;
    if (history->is_exact) {
        check_latest(history);
        for (size_t i = 0; i < history->moment_count; i++) {
            if (history->moments[i].id == position) {
                char *copy = dump_copy(history);
                expect_same(history, "at a commit", copy, history->moments[i].dump);
                free(copy);
                break;
            }
        }
    }
    reset_texts(&history->latest);
}

static void read_all(struct history *history)
{
    struct tide_arena arena = {0};
    struct tide_event event;
    struct tide_error err;
    for (;;) {
        tide_arena_reset(&arena);
        if (tide_sqlite_log_take(history->log, &arena, &event)) {
            if (event.kind == TIDE_EVENT_CHANGE) {
                apply_change(history, &event.change);
            } else {
                apply_commit(history, (int64_t)event.position.lo);
            }
            continue;
        }
        bool has_moved = false;
        tide_status status = tide_sqlite_log_read(history->log, NULL, 0, &has_moved, &err);
        assert_false(has_moved);
        if (status == TIDE_TIMEOUT) {
            break;
        }
        if (status != TIDE_OK) {
            fail_msg("%s", err.message);
        }
        if (history->moment_count < MOMENTS_MAX / 2 && random_below(&history->random, 6) == 0) {
            write_some(history);
        }
    }
    tide_arena_done(&arena);
}

static void open_log(struct history *history, int64_t position)
{
    struct tide_error err;
    static const size_t windows[] = {1, 3, TIDE_SQLITE_WINDOW_ENTRIES};
    history->limits = tide_sqlite_log_limits;
    history->limits.window_entries = windows[random_below(&history->random, 3)];
    history->limits.slice_bytes = random_below(&history->random, 2) == 0 ? 1 : 1 << 20;
    history->is_exact = random_below(&history->random, 4) != 0;
    history->limits.range_entries = history->is_exact ? 1000000 : 2;
    tide_sqlite_log_free(history->log);
    struct tide_sqlite_log_scope scope = {
        .choice = &history->choice,
        .tables = &history->tables,
        .kept = &history->kept,
        .watch = history->watch,
        .trail = &history->trail,
    };
    assert_int_equal(
        tide_sqlite_log_new(history->db, &scope, &history->limits, position, &history->log, &err),
        TIDE_OK);
    history->position = position;
    reset_texts(&history->latest);
}

static void make_tables(struct history *history)
{
    for (size_t table = 0; table < 2; table++) {
        struct tide_buf sql = {0};
        do {
            tide_buf_reset(&sql);
            random_append_table(&history->random, table, &sql);
            char drop[32];
            (void)snprintf(drop, sizeof(drop), "DROP TABLE IF EXISTS t%zu", table + 1);
            kit_sql(&history->kit, drop);
        } while (sqlite3_exec(history->kit.app, tide_buf_cstr(&sql), NULL, NULL, NULL) !=
                 SQLITE_OK);
        tide_buf_printf(&history->script, "%s;\n", tide_buf_cstr(&sql));
        tide_buf_done(&sql);
    }
}

static void install(struct history *history)
{
    struct tide_error err;
    struct tide_sqlite_installed installed;
    assert_int_equal(
        tide_sqlite_db_open(history->kit.path, TIDE_SQLITE_READ_WRITE, 5000, &history->db, &err),
        TIDE_OK);
    history->choice =
        (struct tide_sqlite_choice){.pipeline = TIDE_STR("p"), .connection = TIDE_STR("db")};
    if (tide_sqlite_install(history->db, &history->choice, NULL, &installed, &err) != TIDE_OK) {
        fail_msg("%s\n%s", err.message, tide_buf_cstr(&history->script));
    }
    assert_int_equal(tide_sqlite_watch_new(history->db, history->kit.path, TIDE_STR("p"),
                                           &installed, &history->watch, &err),
                     TIDE_OK);
    assert_int_equal(tide_sqlite_mend(history->db, &history->choice, history->watch, NULL, 0,
                                      &history->tables, NULL, &err),
                     TIDE_OK);
    history->confirmed = installed.confirmed;
    open_log(history, installed.confirmed);
}

/* Reads both tables in chunks: the whole copy, or a comparison with it. */
static void read_chunks(struct history *history)
{
    struct tide_error err;
    struct tide_chunk_reader *reader = NULL;
    reset_texts(&history->copy);
    struct tide_source *source = kit_open_source(&history->kit, "p");
    assert_int_equal(tide_sqlite_source_ops.reader_open(source, &reader, &err), TIDE_OK);
    for (size_t i = 0; i < history->tables.count; i++) {
        const struct tide_relation *relation = history->tables.items[i]->relation;
        struct kit_chunks chunks = {.relation = relation,
                                    .rows_max = random_below(&history->random, 5) + 1};
        for (const struct tide_value *row; (row = kit_next_row(&chunks, reader)) != NULL;) {
            struct tide_value *key = tide_alloc(relation->key_count, sizeof(*key));
            tide_relation_key_of(relation, row, key);
            struct tide_change change = {
                .op = TIDE_OP_INSERT, .relation = relation, .key = key, .values = row};
            apply_change(history, &change);
            free(key);
        }
    }
    reset_texts(&history->latest);
    tide_sqlite_source_ops.reader_close(reader);
    tide_sqlite_source_ops.close(source);
}

static void expect_copy(struct history *history, const char *what)
{
    char *copy = dump_copy(history);
    char *tables = dump_tables(history);
    expect_same(history, what, copy, tables);
    free(copy);
    free(tables);
}

static void one_round(struct history *history)
{
    write_some(history);
    if (random_below(&history->random, 4) == 0) {
        open_log(history, history->confirmed); /* killed, and back to the checkpoint */
    }
    read_all(history);
    forget_moments(history);
    expect_copy(history, "after a round");
    if (random_below(&history->random, 5) == 0) {
        read_chunks(history);
        expect_copy(history, "in chunks");
    }
    if (random_below(&history->random, 3) == 0) {
        char sql[96];
        history->confirmed = history->position;
        history->trail.confirmed = history->position;
        (void)snprintf(sql, sizeof(sql), "DELETE FROM _tidemark_changes WHERE id < %lld",
                       (long long)history->confirmed);
        kit_sql(&history->kit, sql);
    }
}

static void history_done(struct history *history)
{
    tide_sqlite_log_free(history->log);
    tide_sqlite_watch_free(history->watch);
    tide_sqlite_tables_done(&history->tables);
    tide_sqlite_kept_done(&history->kept);
    tide_sqlite_db_close(&history->db);
    reset_texts(&history->copy);
    reset_texts(&history->latest);
    reset_texts(&history->seen);
    tide_map_done(&history->copy);
    tide_map_done(&history->latest);
    tide_map_done(&history->seen);
    forget_moments(history);
    tide_buf_done(&history->script);
    kit_done(&history->kit);
}

static void histories_end_as_their_tables(void **state)
{
    (void)state;
    long count = soak_rounds(40, 2000);
    const char *first = getenv("TIDEMARK_SEED");
    uint64_t seed = first != NULL ? strtoull(first, NULL, 10) : 1;
    for (long i = 0; i < count; i++, seed++) {
        struct history history = {.random = {.state = seed * 0x9e3779b97f4a7c15u + 1}};
        kit_init(&history.kit, seed % 2 == 0 ? "wal" : "delete");
        tide_buf_printf(&history.script, "seed %llu\n", (unsigned long long)seed);
        make_tables(&history);
        for (int k = 0; k < 6; k++) {
            run_random(&history);
        }
        install(&history);
        read_chunks(&history);
        expect_copy(&history, "copied in chunks");
        for (int round = 0; round < 12; round++) {
            one_round(&history);
        }
        history_done(&history);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(histories_end_as_their_tables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
