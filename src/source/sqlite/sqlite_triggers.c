#include "source/sqlite/sqlite_triggers.h"

#include "base/buf.h"
#include "base/status.h"
#include "source/sqlite/sqlite_maker.h"

#include <inttypes.h>

static bool is_rowid_beside_key(const struct tide_sqlite_table *table)
{
    return table->rowid_name.ptr != NULL && (table->identity == TIDE_SQLITE_PRIMARY_KEY ||
                                             table->identity == TIDE_SQLITE_UNIQUE_KEY);
}

static void start(struct tide_sqlite_maker *maker, const char *suffix, const char *when)
{
    tide_buf_reset(&maker->sql);
    tide_buf_printf(&maker->sql, TIDE_SQLITE_PREFIX "%" PRId64 "_%s", maker->table->number, suffix);
    tide_str name = tide_arena_str(maker->arena, tide_buf_str(&maker->sql));
    TIDE_ASSERT(maker->count < TIDE_SQLITE_TRIGGERS_MAX);
    maker->triggers[maker->count] = (struct tide_sqlite_trigger){.name = name};
    tide_buf_reset(&maker->sql);
    tide_sqlite_put(maker, "CREATE TRIGGER ");
    tide_sqlite_put_name(maker, name);
    tide_sqlite_put(maker, when);
}

static void add_on(struct tide_sqlite_maker *maker)
{
    tide_sqlite_put(maker, " ON ");
    tide_sqlite_put_name(maker, maker->table->name);
}

static void finish(struct tide_sqlite_maker *maker)
{
    tide_sqlite_put(maker, " END");
    maker->triggers[maker->count++].sql = tide_arena_str(maker->arena, tide_buf_str(&maker->sql));
}

static void add_log_values(struct tide_sqlite_maker *maker, enum tide_sqlite_op op, const char *row)
{
    tide_sqlite_put_log(maker);
    tide_sqlite_put(maker, " VALUES (");
    tide_sqlite_put_entry(maker, op, row);
    tide_sqlite_put(maker, ");");
}

static void make_before_insert(struct tide_sqlite_maker *maker)
{
    const struct tide_sqlite_table *table = maker->table;
    bool by_rowid = is_rowid_beside_key(table);
    if (tide_sqlite_count_candidates(table, true) + tide_sqlite_count_candidates(table, false) ==
            0 &&
        !by_rowid) {
        return;
    }
    start(maker, "bi", " BEFORE INSERT");
    add_on(maker);
    tide_sqlite_put(maker, " BEGIN");
    tide_sqlite_put_candidates(maker, true, false);
    tide_sqlite_put_candidates(maker, false, false);
    if (by_rowid) {
        tide_sqlite_put_rowid_candidate(maker);
    }
    finish(maker);
}

static void make_before_update_of(struct tide_sqlite_maker *maker)
{
    const struct tide_sqlite_table *table = maker->table;
    if (tide_sqlite_count_candidates(table, true) == 0) {
        return;
    }
    start(maker, "bu", " BEFORE UPDATE OF");
    const char *separator = " ";
    for (uint32_t i = 0; i < table->column_count; i++) {
        if (tide_sqlite_is_in_simple_index(table, i)) {
            tide_sqlite_put(maker, separator);
            tide_sqlite_put_name(maker, table->columns[i].name);
            separator = ", ";
        }
    }
    add_on(maker);
    tide_sqlite_put(maker, " BEGIN");
    tide_sqlite_put_candidates(maker, true, true);
    finish(maker);
}

static void make_before_update(struct tide_sqlite_maker *maker)
{
    if (tide_sqlite_count_candidates(maker->table, false) == 0) {
        return;
    }
    start(maker, "bc", " BEFORE UPDATE");
    add_on(maker);
    tide_sqlite_put(maker, " BEGIN");
    tide_sqlite_put_candidates(maker, false, true);
    finish(maker);
}

static void make_before_rowid_update(struct tide_sqlite_maker *maker)
{
    if (!is_rowid_beside_key(maker->table)) {
        return;
    }
    start(maker, "br", " BEFORE UPDATE");
    add_on(maker);
    tide_sqlite_put(maker, " WHEN ");
    tide_sqlite_put_of(maker, "NEW", maker->table->rowid_name);
    tide_sqlite_put(maker, " <> ");
    tide_sqlite_put_of(maker, "OLD", maker->table->rowid_name);
    tide_sqlite_put(maker, " BEGIN");
    tide_sqlite_put_rowid_candidate(maker);
    finish(maker);
}

/* `OLD.x IS NEW.x`, by bytes: the key's own collation would hold 'a' and 'A' for one. */
static void add_is_same(struct tide_sqlite_maker *maker, tide_str name, bool is_rowid,
                        bool is_exact)
{
    tide_sqlite_put(maker, is_rowid ? "" : "(");
    tide_sqlite_put_of(maker, "OLD", name);
    tide_sqlite_put(maker, is_rowid ? " IS " : " COLLATE BINARY) IS ");
    tide_sqlite_put_of(maker, "NEW", name);
    if (!is_exact) {
        tide_sqlite_put(maker, " AND typeof(");
        tide_sqlite_put_of(maker, "OLD", name);
        tide_sqlite_put(maker, ") = typeof(");
        tide_sqlite_put_of(maker, "NEW", name);
        tide_sqlite_put(maker, ")");
    }
}

static void add_same_key(struct tide_sqlite_maker *maker)
{
    const struct tide_sqlite_table *table = maker->table;
    bool is_rowid =
        table->identity == TIDE_SQLITE_ROWID || table->identity == TIDE_SQLITE_INTEGER_KEY;
    size_t width = tide_sqlite_table_log_width(table);
    for (size_t i = 0; i < width; i++) {
        tide_sqlite_put(maker, i > 0 ? " AND " : "");
        add_is_same(maker, tide_sqlite_key_name(table, i), is_rowid, table->is_exact);
    }
    if (table->is_nullable) {
        tide_sqlite_put(maker, " AND ");
        add_is_same(maker, table->rowid_name, true, true);
    }
}

static void make_update(struct tide_sqlite_maker *maker)
{
    start(maker, "au", " BEFORE UPDATE");
    add_on(maker);
    tide_sqlite_put(maker, " BEGIN");
    tide_sqlite_put_log(maker);
    tide_sqlite_put(maker, " SELECT ");
    tide_sqlite_put_entry(maker, TIDE_SQLITE_OP_DELETE, "OLD");
    tide_sqlite_put(maker, " WHERE NOT (");
    add_same_key(maker);
    tide_sqlite_put(maker, ");");
    add_log_values(maker, TIDE_SQLITE_OP_UPDATE, "NEW");
    finish(maker);
}

/* OR REPLACE turns NULL into the default after BEFORE triggers have run. */
static void make_after_update(struct tide_sqlite_maker *maker)
{
    const struct tide_sqlite_table *table = maker->table;
    const char *separator = " ";
    for (size_t i = 0; table->identity != TIDE_SQLITE_INTEGER_KEY && i < table->key_count; i++) {
        const struct tide_sqlite_column *column = &table->columns[table->key_columns[i]];
        if (!tide_sqlite_has_filled_default(column)) {
            continue;
        }
        if (separator[0] == ' ') {
            start(maker, "ak", " AFTER UPDATE OF");
        }
        tide_sqlite_put(maker, separator);
        tide_sqlite_put_name(maker, column->name);
        separator = ", ";
    }
    if (separator[0] == ' ') {
        return;
    }
    add_on(maker);
    tide_sqlite_put(maker, " BEGIN");
    add_log_values(maker, TIDE_SQLITE_OP_UPDATE, "NEW");
    finish(maker);
}

static void make_one(struct tide_sqlite_maker *maker, const char *suffix, const char *when,
                     enum tide_sqlite_op op, const char *row)
{
    start(maker, suffix, when);
    add_on(maker);
    tide_sqlite_put(maker, " BEGIN");
    add_log_values(maker, op, row);
    finish(maker);
}

size_t tide_sqlite_triggers_make(const struct tide_sqlite_table *table, struct tide_arena *arena,
                                 struct tide_sqlite_trigger ret_triggers[TIDE_SQLITE_TRIGGERS_MAX])
{
    TIDE_ASSERT(table->identity != TIDE_SQLITE_NOT_FOLLOWED);
    TIDE_ASSERT(table->number > 0);
    struct tide_sqlite_maker maker = {.table = table, .arena = arena, .triggers = ret_triggers};
    make_before_insert(&maker);
    make_before_update_of(&maker);
    make_before_update(&maker);
    make_before_rowid_update(&maker);
    make_update(&maker);
    make_after_update(&maker);
    make_one(&maker, "ad", " BEFORE DELETE", TIDE_SQLITE_OP_DELETE, "OLD");
    make_one(&maker, "ai", " AFTER INSERT", TIDE_SQLITE_OP_INSERT, "NEW");
    tide_buf_done(&maker.sql);
    return maker.count;
}
