/* Whether the triggers in the schema are those that tables need. */
#include "source/sqlite/sqlite_installed.h"

#include "source/sqlite/sqlite_db.h"
#include "source/sqlite/sqlite_tokens.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

/* Triggers of one event fire from the highest rowid in sqlite_schema down. */
struct tide_sqlite_present_trigger {
    int64_t rowid;
    tide_str name;
    tide_str table;
    tide_str sql;
};

void tide_sqlite_present_done(struct tide_sqlite_present *present)
{
    tide_map_done(&present->ours);
    tide_map_done(&present->counts);
    tide_map_done(&present->youngest);
    tide_arena_done(&present->arena);
}

/* "_tidemark_12_" of "_tidemark_12_ai". */
static tide_str number_part(tide_str name)
{
    size_t tail = strlen("ai");
    return (tide_str){name.ptr, name.len > tail ? name.len - tail : 0};
}

static void add_present(struct tide_sqlite_present *present, sqlite3_stmt *stmt)
{
    struct tide_sqlite_present_trigger *trigger =
        tide_arena_alloc(&present->arena, 1, sizeof(*trigger));
    *trigger = (struct tide_sqlite_present_trigger){
        .rowid = sqlite3_column_int64(stmt, 0),
        .name = tide_arena_str(&present->arena, tide_sqlite_column_str(stmt, 1)),
        .table = tide_arena_str(&present->arena, tide_sqlite_column_str(stmt, 2)),
        .sql = tide_arena_str(&present->arena, tide_sqlite_column_str(stmt, 3)),
    };
    if (tide_str_starts_with(trigger->name, TIDE_STR(TIDE_SQLITE_PREFIX))) {
        tide_map_put(&present->ours, trigger->name, NULL)->ptr = trigger;
        tide_map_put(&present->counts, number_part(trigger->name), NULL)->number++;
    } else if (tide_sqlite_is_after_insert(trigger->sql)) {
        tide_map_put(&present->youngest, trigger->table, NULL)->ptr = trigger;
    }
}

tide_status tide_sqlite_present_read(sqlite3 *db, struct tide_sqlite_present *ret_present,
                                     struct tide_error *err)
{
    TIDE_CLEANUP(tide_sqlite_present_done) struct tide_sqlite_present present = {0};
    TIDE_CLEANUP(tide_sqlite_stmt_done) sqlite3_stmt *stmt = NULL;
    TIDE_TRY(tide_sqlite_prepare(db,
                                 TIDE_STR("SELECT rowid, name, tbl_name, sql FROM "
                                          "main.sqlite_schema WHERE type = 'trigger' "
                                          "ORDER BY rowid"),
                                 &stmt, err));
    for (;;) {
        bool is_row = false;
        TIDE_TRY(tide_sqlite_step(stmt, &is_row, err));
        if (!is_row) {
            break;
        }
        add_present(&present, stmt);
    }
    *ret_present = present;
    present = (struct tide_sqlite_present){0};
    return TIDE_OK;
}

static uint64_t count_of(const struct tide_sqlite_present *present, int64_t number)
{
    char prefix[48];
    int len = snprintf(prefix, sizeof(prefix), TIDE_SQLITE_PREFIX "%" PRId64 "_", number);
    union tide_map_value *count = tide_map_get(&present->counts, tide_str_of(prefix, (size_t)len));
    return count == NULL ? 0 : count->number;
}

static const char *const suffixes[] = {"ad", "au", "ak", "bi", "bu", "bc", "br", "ai"};

#define SUFFIX_COUNT (sizeof(suffixes) / sizeof(suffixes[0]))

/* Our trigger of that number and suffix; NULL: there is none. */
static const struct tide_sqlite_present_trigger *
find_ours(const struct tide_sqlite_present *present, int64_t number, const char *suffix)
{
    char name[48];
    int len = snprintf(name, sizeof(name), TIDE_SQLITE_PREFIX "%" PRId64 "_%s", number, suffix);
    union tide_map_value *value = tide_map_get(&present->ours, tide_str_of(name, (size_t)len));
    return value == NULL ? NULL : value->ptr;
}

bool tide_sqlite_present_has_on(const struct tide_sqlite_present *present, int64_t number,
                                tide_str table)
{
    for (size_t i = 0; i < SUFFIX_COUNT; i++) {
        const struct tide_sqlite_present_trigger *found = find_ours(present, number, suffixes[i]);
        if (found != NULL && tide_str_equal(found->table, table)) {
            return true;
        }
    }
    return false;
}

/* One wanted trigger; `ret_found` is what is there under its name, when it fits. */
static enum tide_sqlite_fit fit_one(const struct tide_sqlite_present *present,
                                    const struct tide_sqlite_table *table,
                                    const struct tide_sqlite_trigger *wanted,
                                    const struct tide_sqlite_present_trigger **ret_found)
{
    union tide_map_value *value = tide_map_get(&present->ours, wanted->name);
    if (value == NULL) {
        return TIDE_SQLITE_FIT_MISSING;
    }
    const struct tide_sqlite_present_trigger *found = value->ptr;
    if (!tide_str_equal(found->table, table->name) || !tide_str_equal(found->sql, wanted->sql)) {
        return TIDE_SQLITE_FIT_OTHER;
    }
    *ret_found = found;
    return TIDE_SQLITE_FIT;
}

/* `ours` is our AFTER INSERT trigger. */
static enum tide_sqlite_fit fit_last(const struct tide_sqlite_present *present,
                                     const struct tide_sqlite_table *table,
                                     const struct tide_sqlite_present_trigger *ours,
                                     tide_str *ret_name)
{
    union tide_map_value *youngest = tide_map_get(&present->youngest, table->name);
    const struct tide_sqlite_present_trigger *other = youngest == NULL ? NULL : youngest->ptr;
    if (other == NULL || ours == NULL || other->rowid < ours->rowid) {
        return TIDE_SQLITE_FIT;
    }
    *ret_name = other->name;
    return TIDE_SQLITE_FIT_NOT_LAST;
}

enum tide_sqlite_fit tide_sqlite_triggers_fit(const struct tide_sqlite_present *present,
                                              const struct tide_sqlite_table *table,
                                              struct tide_arena *arena, tide_str *ret_name)
{
    struct tide_sqlite_trigger wanted[TIDE_SQLITE_TRIGGERS_MAX];
    size_t count = tide_sqlite_triggers_make(table, arena, wanted);
    const struct tide_sqlite_present_trigger *last = NULL;
    for (size_t i = 0; i < count; i++) {
        *ret_name = wanted[i].name;
        enum tide_sqlite_fit fit = fit_one(present, table, &wanted[i], &last);
        if (fit != TIDE_SQLITE_FIT) {
            return fit;
        }
    }
    *ret_name = TIDE_STR("");
    if (count_of(present, table->number) != count) {
        return TIDE_SQLITE_FIT_OTHER;
    }
    return fit_last(present, table, last, ret_name); /* ai is made last */
}

/* One trigger's part of a digest. */
static uint64_t digest_of(tide_str name, tide_str sql)
{
    return XXH3_64bits_withSeed(sql.ptr, sql.len, XXH3_64bits(name.ptr, name.len));
}

static tide_str digest_text(uint64_t sum, struct tide_arena *arena)
{
    char text[TIDE_SQLITE_HEX_LEN + 1];
    int len = snprintf(text, sizeof(text), "%016" PRIx64, sum);
    return tide_arena_str(arena, tide_str_of(text, (size_t)len));
}

tide_str tide_sqlite_triggers_digest(const struct tide_sqlite_trigger *triggers, size_t count,
                                     struct tide_arena *arena)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        sum += digest_of(triggers[i].name, triggers[i].sql);
    }
    return digest_text(sum, arena);
}

enum tide_sqlite_fit tide_sqlite_triggers_fit_made(const struct tide_sqlite_present *present,
                                                   const struct tide_sqlite_table *table,
                                                   tide_str digest, struct tide_arena *arena,
                                                   tide_str *ret_name)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < SUFFIX_COUNT; i++) {
        const struct tide_sqlite_present_trigger *found =
            find_ours(present, table->number, suffixes[i]);
        if (found != NULL && tide_str_equal(found->table, table->name)) {
            sum += digest_of(found->name, found->sql);
        }
    }
    *ret_name = TIDE_STR("");
    if (!tide_str_equal(digest_text(sum, arena), digest)) {
        return TIDE_SQLITE_FIT_OTHER;
    }
    return fit_last(present, table, find_ours(present, table->number, "ai"), ret_name);
}
