#include "source/sqlite/sqlite_plan.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "source/sqlite/sqlite_db.h"
#include "source/sqlite/sqlite_spec.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void tide_sqlite_plan_done(struct tide_sqlite_plan *plan)
{
    tide_sqlite_tables_done(&plan->all);
    tide_sqlite_present_done(&plan->present);
    tide_arena_done(&plan->arena);
    free(plan->steps);
    *plan = (struct tide_sqlite_plan){0};
}

bool tide_sqlite_plan_is_empty(const struct tide_sqlite_plan *plan)
{
    return plan->count == 0 && plan->canary == TIDE_SQLITE_CANARY_ROWID;
}

bool tide_sqlite_plan_wants(const struct tide_sqlite_plan *plan,
                            const struct tide_sqlite_table *table)
{
    return table->identity != TIDE_SQLITE_NOT_FOLLOWED &&
           tide_sqlite_is_chosen(plan->choice->globs, plan->choice->glob_count, table->name);
}

static struct tide_sqlite_step *add_step(struct tide_sqlite_plan *plan,
                                         enum tide_sqlite_step_kind kind, tide_str name,
                                         struct tide_sqlite_table *table)
{
    if (plan->count == plan->cap) {
        plan->cap = plan->cap * 2 + 8;
        plan->steps = tide_realloc(plan->steps, plan->cap, sizeof(*plan->steps));
    }
    struct tide_sqlite_step *step = &plan->steps[plan->count++];
    *step = (struct tide_sqlite_step){
        .kind = kind, .name = tide_arena_str(&plan->arena, name), .table = table};
    return step;
}

static void give_reason(struct tide_sqlite_plan *plan, struct tide_sqlite_step *step,
                        const char *fmt, ...) TIDE_PRINTF(3, 4);

static void give_reason(struct tide_sqlite_plan *plan, struct tide_sqlite_step *step,
                        const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    tide_str whole = tide_str_from(text);
    whole.len = tide_str_utf8_valid_prefix(whole); /* it may be cut inside a character */
    step->reason = tide_arena_str(&plan->arena, whole);
}

/* A table that had triggers and is not there under its name, or cannot be followed. */
static tide_status plan_gone(sqlite3 *db, struct tide_sqlite_plan *plan, int64_t number,
                             tide_str name, struct tide_error *err)
{
    struct tide_sqlite_step *step = add_step(plan, TIDE_SQLITE_STEP_GONE, name, NULL);
    step->number = number;
    for (size_t i = 0; i < plan->all.count; i++) {
        const struct tide_sqlite_table *table = plan->all.items[i];
        if (tide_str_equal(table->name, name)) {
            give_reason(plan, step, "it cannot be followed any more: %.*s",
                        TIDE_STR_ARG(table->problem));
            return TIDE_OK;
        }
    }
    step->is_emptied = true;
    tide_str now;
    TIDE_TRY(tide_sqlite_triggered_table(db, number, &plan->arena, &now, err));
    if (now.ptr != NULL) {
        give_reason(plan, step, "it was renamed to %.*s", TIDE_STR_ARG(now));
    } else {
        give_reason(plan, step, "it was dropped");
    }
    return TIDE_OK;
}

static const char *reason_of(enum tide_sqlite_difference difference)
{
    switch (difference) {
    case TIDE_SQLITE_MORE_INDEXES:
        return "it has another UNIQUE index, and rows that REPLACE removed by it may have gone "
               "unseen";
    case TIDE_SQLITE_MORE_COLUMNS:
        return "it has more columns";
    case TIDE_SQLITE_FEWER_COLUMNS:
        return "it has fewer columns";
    case TIDE_SQLITE_OTHER_SHAPE:
        return "its columns, types or defaults have changed";
    case TIDE_SQLITE_OTHER_KEY:
        return "its key has changed";
    case TIDE_SQLITE_OTHER_VERSION:
        return "its triggers were another version's";
    case TIDE_SQLITE_SAME:
    case TIDE_SQLITE_FEWER_INDEXES:
    default:
        return "its triggers were not those that it needs";
    }
}

static void plan_copy(struct tide_sqlite_plan *plan, struct tide_sqlite_table *table,
                      bool is_emptied, const char *reason)
{
    struct tide_sqlite_step *step = add_step(plan, TIDE_SQLITE_STEP_COPY, table->name, table);
    step->number = table->number;
    step->is_emptied = is_emptied;
    step->reason = tide_str_from(reason);
}

/* VACUUM has run, and the table had no index then, or may have had none: indexes may be dropped
 * before it and made again. */
static bool is_renumbered(const struct tide_sqlite_plan *plan,
                          const struct tide_sqlite_table *table)
{
    return plan->canary != TIDE_SQLITE_CANARY_ROWID && tide_sqlite_table_has_hidden_rowid(table) &&
           (tide_sqlite_table_is_renumbered(table) || !plan->is_only_vacuum);
}

/* The shape is the one that the triggers were made for: are they whole? */
static void plan_triggers(struct tide_sqlite_plan *plan, struct tide_sqlite_table *table,
                          enum tide_sqlite_fit fit, tide_str misfit)
{
    if (fit == TIDE_SQLITE_FIT_NOT_LAST) {
        plan_copy(plan, table, false, "");
        give_reason(plan, &plan->steps[plan->count - 1],
                    "its AFTER INSERT trigger %.*s was made after ours, and so fired first: what "
                    "it ignored or failed at was not noted",
                    TIDE_STR_ARG(misfit));
    } else if (fit != TIDE_SQLITE_FIT && misfit.len == 0) {
        plan_copy(plan, table, false, "one of our triggers was dropped or changed");
    } else if (fit != TIDE_SQLITE_FIT) {
        plan_copy(plan, table, false, "");
        give_reason(plan, &plan->steps[plan->count - 1], "our trigger %.*s was dropped or changed",
                    TIDE_STR_ARG(misfit));
    } else if (is_renumbered(plan, table)) {
        plan_copy(plan, table, false,
                  "its rows have other rowids: VACUUM has run, or the "
                  "database was dumped and loaded anew");
    }
}

/* A table that has triggers, under its name. `spec` is what they were made from. */
static void plan_table(struct tide_sqlite_plan *plan, struct tide_sqlite_table *table,
                       tide_str spec)
{
    if (!tide_sqlite_present_has_on(&plan->present, table->number, table->name)) {
        plan_copy(plan, table, true, "it was made anew, or all our triggers on it were dropped");
        return;
    }
    tide_str made;
    enum tide_sqlite_difference difference = tide_sqlite_spec_compare(spec, table->spec, &made);
    bool is_other = difference != TIDE_SQLITE_SAME && difference != TIDE_SQLITE_FEWER_INDEXES;
    if (is_other) {
        plan_copy(plan, table, difference == TIDE_SQLITE_OTHER_KEY, reason_of(difference));
        return;
    }
    bool is_fewer = difference == TIDE_SQLITE_FEWER_INDEXES;
    size_t before = plan->count;
    tide_str misfit;
    /* With an index less our triggers cannot be those that are wanted now. */
    enum tide_sqlite_fit fit =
        is_fewer ? tide_sqlite_triggers_fit_made(&plan->present, table, made, &plan->arena, &misfit)
                 : tide_sqlite_triggers_fit(&plan->present, table, &plan->arena, &misfit);
    plan_triggers(plan, table, fit, misfit);
    if (is_fewer && plan->count == before) {
        add_step(plan, TIDE_SQLITE_STEP_REMAKE, table->name, table)->number = table->number;
    }
}

/* One row of _tidemark_tables. */
static tide_status plan_registered(sqlite3 *db, struct tide_sqlite_plan *plan, sqlite3_stmt *stmt,
                                   struct tide_error *err)
{
    int64_t number = sqlite3_column_int64(stmt, 0);
    tide_str name = tide_sqlite_column_str(stmt, 1);
    struct tide_sqlite_table *table = tide_sqlite_tables_by_name(&plan->all, name);
    const struct tide_sqlite_choice *choice = plan->choice;
    if (tide_sqlite_numbers_hold(plan->row.tables, number) &&
        !tide_sqlite_is_chosen(choice->globs, choice->glob_count, name)) {
        add_step(plan, TIDE_SQLITE_STEP_LEAVE, name, NULL)->number = number;
    }
    if (table == NULL) {
        return plan_gone(db, plan, number, name, err);
    }
    plan_table(plan, table, tide_sqlite_column_str(stmt, 2));
    return TIDE_OK;
}

#define REGISTERED_SQL                                                                             \
    "SELECT t, name, spec FROM main.\"" TIDE_SQLITE_TABLES "\" WHERE name IS NOT NULL ORDER BY t"

static tide_status plan_all_registered(sqlite3 *db, struct tide_sqlite_plan *plan,
                                       struct tide_error *err)
{
    TIDE_CLEANUP(tide_sqlite_stmt_done) sqlite3_stmt *stmt = NULL;
    TIDE_TRY(tide_sqlite_prepare(db, TIDE_STR(REGISTERED_SQL), &stmt, err));
    for (;;) {
        bool is_row = false;
        TIDE_TRY(tide_sqlite_step(stmt, &is_row, err));
        if (!is_row) {
            return TIDE_OK;
        }
        TIDE_TRY(plan_registered(db, plan, stmt, err));
    }
}

static bool has_step_for(const struct tide_sqlite_plan *plan, const struct tide_sqlite_table *table)
{
    for (size_t i = 0; i < plan->count; i++) {
        if (plan->steps[i].table == table) {
            return true;
        }
    }
    return false;
}

/* What our globs choose and our row does not have yet. */
static void plan_wanted(struct tide_sqlite_plan *plan)
{
    for (size_t i = 0; i < plan->all.count; i++) {
        struct tide_sqlite_table *table = plan->all.items[i];
        if (!tide_sqlite_plan_wants(plan, table)) {
            continue;
        }
        if (table->number == 0) {
            add_step(plan, TIDE_SQLITE_STEP_NEW, table->name, table)->reason =
                TIDE_STR("it is new");
        } else if (!tide_sqlite_numbers_hold(plan->row.tables, table->number) &&
                   !has_step_for(plan, table)) {
            add_step(plan, TIDE_SQLITE_STEP_JOIN, table->name, table)->number = table->number;
        }
    }
}

tide_status tide_sqlite_plan_make(sqlite3 *db, const struct tide_sqlite_choice *choice,
                                  struct tide_sqlite_plan *ret_plan, struct tide_error *err)
{
    TIDE_CLEANUP(tide_sqlite_plan_done) struct tide_sqlite_plan plan = {.choice = choice};
    bool is_there = false;
    TIDE_TRY(
        tide_sqlite_pipeline_find(db, choice->pipeline, &plan.arena, &is_there, &plan.row, err));
    int64_t now = 0;
    int64_t known = 0;
    TIDE_TRY(tide_sqlite_canary(db, &plan.canary, err));
    TIDE_TRY(tide_sqlite_schema_versions(db, &now, &known, err));
    plan.is_only_vacuum = now == known + 1;
    TIDE_TRY(tide_sqlite_tables_read(db, choice->connection, NULL, 0, &plan.all, err));
    TIDE_TRY(tide_sqlite_present_read(db, &plan.present, err));
    TIDE_TRY(plan_all_registered(db, &plan, err));
    if (is_there) {
        plan_wanted(&plan);
    }
    *ret_plan = plan;
    plan = (struct tide_sqlite_plan){0};
    return TIDE_OK;
}
