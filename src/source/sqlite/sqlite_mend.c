#include "source/sqlite/sqlite_mend.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "source/sqlite/sqlite_db.h"

#include <inttypes.h>

#define MEND_ATTEMPTS 5

struct mending {
    sqlite3 *db;
    struct tide_sqlite_plan *plan;
    bool is_first; /* our pipeline begins behind this … */
    bool is_alone; /* … and there is no other one: nobody reads what is noted */
    struct tide_sqlite_pipeline *pipelines; /* all, in the plan's arena */
    size_t pipeline_count;
};

static bool makes_triggers(const struct tide_sqlite_step *step)
{
    return step->kind == TIDE_SQLITE_STEP_REMAKE || step->kind == TIDE_SQLITE_STEP_COPY ||
           step->kind == TIDE_SQLITE_STEP_NEW;
}

static bool gives_number_up(const struct tide_sqlite_step *step)
{
    return step->kind == TIDE_SQLITE_STEP_COPY || step->kind == TIDE_SQLITE_STEP_GONE;
}

/* Triggers */

static tide_status widen_log(struct mending *mending, struct tide_error *err)
{
    int64_t width = 0;
    TIDE_TRY(tide_sqlite_log_width(mending->db, &width, err));
    for (size_t i = 0; i < mending->plan->count; i++) {
        const struct tide_sqlite_step *step = &mending->plan->steps[i];
        int64_t wanted =
            makes_triggers(step) ? (int64_t)tide_sqlite_table_log_width(step->table) : 0;
        for (; width < wanted; width++) {
            TIDE_TRY(tide_sqlite_execf(mending->db, err,
                                       "ALTER TABLE main.\"" TIDE_SQLITE_LOG "\" ADD COLUMN k%lld",
                                       (long long)width + 1));
        }
    }
    return TIDE_OK;
}

/* Before any are made: those of a renamed table are now on another one, and where our tables were
 * damaged some may be nobody's. */
static tide_status drop_triggers(struct mending *mending, struct tide_error *err)
{
    TIDE_TRY(tide_sqlite_strays_drop(mending->db, err));
    for (size_t i = 0; i < mending->plan->count; i++) {
        const struct tide_sqlite_step *step = &mending->plan->steps[i];
        if (step->number != 0 && step->kind != TIDE_SQLITE_STEP_JOIN &&
            step->kind != TIDE_SQLITE_STEP_LEAVE) {
            TIDE_TRY(tide_sqlite_triggers_drop(mending->db, step->number, err));
        }
    }
    return TIDE_OK;
}

static tide_status make_triggers(struct mending *mending, const struct tide_sqlite_table *table,
                                 struct tide_error *err)
{
    struct tide_arena *arena = &mending->plan->arena;
    struct tide_sqlite_trigger triggers[TIDE_SQLITE_TRIGGERS_MAX];
    size_t count = tide_sqlite_triggers_make(table, arena, triggers);
    tide_str made = tide_sqlite_triggers_digest(triggers, count, arena);
    for (size_t i = 0; i < count; i++) {
        const char *sql = tide_arena_cstr(arena, triggers[i].sql);
        if (tide_sqlite_exec(mending->db, sql, err) != TIDE_OK) {
            return tide_fail_context(err, "making the triggers of table %.*s",
                                     TIDE_STR_ARG(table->name));
        }
    }
    return tide_sqlite_execf(mending->db, err,
                             "INSERT OR REPLACE INTO main.\"" TIDE_SQLITE_TABLES
                             "\" (t, name, spec) VALUES (%lld, %.*Q, '%.*s:%.*s')",
                             (long long)table->number, (int)table->name.len, table->name.ptr,
                             (int)table->spec.len, table->spec.ptr, TIDE_STR_ARG(made));
}

/* Numbers */

/* The next number of ",1,4,", from `*at` on, which is 1 at first. False: there is none. */
static bool next_number(tide_str numbers, size_t *at, int64_t *ret_number)
{
    while (*at < numbers.len) {
        const char *end = memchr(numbers.ptr + *at, ',', numbers.len - *at);
        size_t len = end == NULL ? numbers.len - *at : (size_t)(end - numbers.ptr) - *at;
        tide_str text = tide_str_of(numbers.ptr + *at, len);
        *at += len + 1;
        if (tide_str_to_i64(text, ret_number)) {
            return true;
        }
    }
    return false;
}

/* No pipeline has it, even where _tidemark_tables was lost. */
static tide_status new_number(struct mending *mending, int64_t *ret_number, struct tide_error *err)
{
    int64_t last = 0;
    TIDE_TRY(tide_sqlite_int(mending->db, "SELECT max(t) FROM main.\"" TIDE_SQLITE_TABLES "\"", 0,
                             &last, err));
    for (size_t i = 0; i < mending->pipeline_count; i++) {
        int64_t number = 0;
        for (size_t at = 1; next_number(mending->pipelines[i].tables, &at, &number);) {
            last = number > last ? number : last;
        }
    }
    *ret_number = last + 1;
    return TIDE_OK;
}

/* ",1,4," without 4, or with 9 in its place. */
static tide_str change_numbers(struct mending *mending, tide_str numbers, int64_t before,
                               int64_t now)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf buf = {0};
    tide_buf_append_char(&buf, ',');
    int64_t number = 0;
    for (size_t at = 1; next_number(numbers, &at, &number);) {
        if (number != before) {
            tide_buf_printf(&buf, "%" PRId64 ",", number);
        }
    }
    if (now != 0) {
        tide_buf_printf(&buf, "%" PRId64 ",", now);
    }
    return tide_arena_str(&mending->plan->arena, tide_buf_str(&buf));
}

static tide_status write_numbers(struct mending *mending, struct tide_sqlite_pipeline *pipeline,
                                 tide_str numbers, struct tide_error *err)
{
    pipeline->tables = numbers;
    return tide_sqlite_execf(
        mending->db, err,
        "UPDATE main.\"" TIDE_SQLITE_PIPELINES "\" SET tables = %.*Q WHERE name = %.*Q",
        (int)numbers.len, numbers.ptr, (int)pipeline->name.len, pipeline->name.ptr);
}

/* Every pipeline that has the number gets the other one, or (0) none. */
static tide_status replace_number(struct mending *mending, int64_t before, int64_t now,
                                  struct tide_error *err)
{
    for (size_t i = 0; i < mending->pipeline_count; i++) {
        struct tide_sqlite_pipeline *pipeline = &mending->pipelines[i];
        if (tide_sqlite_numbers_hold(pipeline->tables, before)) {
            tide_str numbers = change_numbers(mending, pipeline->tables, before, now);
            TIDE_TRY(write_numbers(mending, pipeline, numbers, err));
        }
    }
    return tide_sqlite_number_free(mending->db, before, err);
}

/* Our row names the tables that we want. */
static tide_status write_our_numbers(struct mending *mending, struct tide_error *err)
{
    const struct tide_sqlite_plan *plan = mending->plan;
    for (size_t i = 0; i < mending->pipeline_count; i++) {
        struct tide_sqlite_pipeline *pipeline = &mending->pipelines[i];
        if (!tide_str_equal(pipeline->name, plan->choice->pipeline)) {
            continue;
        }
        tide_str numbers = TIDE_STR(",");
        for (size_t t = 0; t < plan->all.count; t++) {
            if (tide_sqlite_plan_wants(plan, plan->all.items[t])) {
                numbers = change_numbers(mending, numbers, 0, plan->all.items[t]->number);
            }
        }
        TIDE_TRY(write_numbers(mending, pipeline, numbers, err));
    }
    return tide_sqlite_unwanted_drop(mending->db, err);
}

/* What is written into the log */

static tide_status note(struct mending *mending, enum tide_sqlite_op op, int64_t number,
                        tide_str name, tide_str r, struct tide_error *err)
{
    if (mending->is_alone) {
        return TIDE_OK;
    }
    return tide_sqlite_execf(
        mending->db, err,
        "INSERT INTO main.\"" TIDE_SQLITE_LOG "\" (t, op, r, k1) VALUES (%lld, %d, %.*Q, %.*Q)",
        (long long)number, (int)op, (int)r.len, r.ptr, (int)name.len, name.ptr);
}

static tide_status note_step(struct mending *mending, const struct tide_sqlite_step *step,
                             struct tide_error *err)
{
    int64_t now = step->table == NULL ? 0 : step->table->number;
    switch (step->kind) {
    case TIDE_SQLITE_STEP_COPY:
    case TIDE_SQLITE_STEP_NEW:
        return note(mending, TIDE_SQLITE_OP_COPY, now, step->name, step->reason, err);
    case TIDE_SQLITE_STEP_GONE:
        return note(mending, TIDE_SQLITE_OP_GONE, step->number, step->name, step->reason, err);
    case TIDE_SQLITE_STEP_JOIN:
        return mending->is_first ? TIDE_OK
                                 : note(mending, TIDE_SQLITE_OP_JOIN, now, step->name,
                                        mending->plan->choice->pipeline, err);
    case TIDE_SQLITE_STEP_REMAKE:
    case TIDE_SQLITE_STEP_LEAVE:
    default:
        return TIDE_OK;
    }
}

/* Behind the note by which copies that are under way end: the truncation has the new shape. */
static tide_status note_emptied(struct mending *mending, const struct tide_sqlite_step *step,
                                struct tide_error *err)
{
    return step->is_emptied
               ? note(mending, TIDE_SQLITE_OP_TRUNCATE, step->number, step->name, TIDE_STR(""), err)
               : TIDE_OK;
}

static tide_status do_step(struct mending *mending, struct tide_sqlite_step *step,
                           struct tide_error *err)
{
    int64_t number = 0;
    if (step->kind == TIDE_SQLITE_STEP_COPY || step->kind == TIDE_SQLITE_STEP_NEW) {
        TIDE_TRY(new_number(mending, &number, err));
        tide_sqlite_table_set_number(step->table, number);
    }
    if (makes_triggers(step)) {
        TIDE_TRY(make_triggers(mending, step->table, err));
    }
    if (gives_number_up(step)) {
        TIDE_TRY(replace_number(mending, step->number, number, err));
    }
    TIDE_TRY(note_step(mending, step, err));
    return note_emptied(mending, step, err);
}

tide_status tide_sqlite_mend_apply(sqlite3 *db, struct tide_sqlite_plan *plan, bool is_first,
                                   struct tide_error *err)
{
    struct mending mending = {.db = db, .plan = plan, .is_first = is_first};
    TIDE_TRY(tide_sqlite_pipelines_read(db, &plan->arena, &mending.pipelines,
                                        &mending.pipeline_count, err));
    mending.is_alone = is_first && mending.pipeline_count == 1;
    TIDE_TRY(drop_triggers(&mending, err));
    TIDE_TRY(widen_log(&mending, err));
    for (size_t i = 0; i < plan->count; i++) {
        TIDE_TRY(do_step(&mending, &plan->steps[i], err));
    }
    TIDE_TRY(write_our_numbers(&mending, err));
    if (plan->canary != TIDE_SQLITE_CANARY_ROWID) {
        TIDE_TRY(tide_sqlite_execf(db, err, "DELETE FROM main.\"" TIDE_SQLITE_CANARY "\""));
        TIDE_TRY(tide_sqlite_execf(
            db, err, "INSERT INTO main.\"" TIDE_SQLITE_CANARY "\" (rowid, v) VALUES (%d, 0)",
            TIDE_SQLITE_CANARY_ROWID));
    }
    return tide_sqlite_schema_settle(db, err);
}

/* Whether nobody follows what our pipeline would. */
static bool is_left_out(const struct tide_sqlite_plan *plan, const struct tide_sqlite_table *table)
{
    return table->identity == TIDE_SQLITE_NOT_FOLLOWED &&
           (plan->choice->glob_count > 0 || !table->is_shadow) &&
           tide_sqlite_is_chosen(plan->choice->globs, plan->choice->glob_count, table->name);
}

/* Moves those tables out of the plan, in order. */
static void take_tables(struct tide_sqlite_plan *plan,
                        bool (*is_wanted)(const struct tide_sqlite_plan *plan,
                                          const struct tide_sqlite_table *table),
                        struct tide_sqlite_tables *ret_tables)
{
    struct tide_sqlite_tables *all = &plan->all;
    ret_tables->items = tide_alloc(all->count + 1, sizeof(struct tide_sqlite_table *));
    size_t left = 0;
    for (size_t i = 0; i < all->count; i++) {
        struct tide_sqlite_table *table = all->items[i];
        if (is_wanted(plan, table)) {
            ret_tables->items[ret_tables->count++] = table;
        } else {
            all->items[left++] = table;
        }
    }
    all->count = left;
}

/* Looks again now that nobody else can write, and does what is then to be done. */
static tide_status mend_now(sqlite3 *db, const struct tide_sqlite_choice *choice,
                            struct tide_sqlite_watch *watch, const tide_str *nonces,
                            size_t nonce_count, struct tide_error *err)
{
    TIDE_CLEANUP(tide_sqlite_plan_done) struct tide_sqlite_plan plan = {0};
    TIDE_TRY(tide_sqlite_begin_write(db, err));
    TIDE_CLEANUP(tide_sqlite_rollback) sqlite3 *open_db = db;
    TIDE_TRY(tide_sqlite_watch_row(watch, nonces, nonce_count, err));
    TIDE_TRY(tide_sqlite_whole_check(db, err));
    TIDE_TRY(tide_sqlite_version_check(db, err));
    TIDE_TRY(tide_sqlite_plan_make(db, choice, &plan, err));
    TIDE_TRY(tide_sqlite_mend_apply(db, &plan, false, err));
    return tide_sqlite_exec(open_db, "COMMIT", err);
}

/* `ret_tables` stays empty where something is to be mended. */
static tide_status look(sqlite3 *db, const struct tide_sqlite_choice *choice,
                        struct tide_sqlite_watch *watch, struct tide_sqlite_tables *ret_tables,
                        struct tide_sqlite_tables *ret_left, bool *ret_is_whole,
                        struct tide_error *err)
{
    TIDE_CLEANUP(tide_sqlite_plan_done) struct tide_sqlite_plan plan = {0};
    TIDE_TRY(tide_sqlite_exec(db, "BEGIN", err));
    TIDE_CLEANUP(tide_sqlite_rollback) sqlite3 *open_db = db;
    TIDE_TRY(tide_sqlite_whole_check(open_db, err));
    TIDE_TRY(tide_sqlite_version_check(open_db, err));
    TIDE_TRY(tide_sqlite_plan_make(open_db, choice, &plan, err));
    *ret_is_whole = tide_sqlite_plan_is_empty(&plan);
    if (*ret_is_whole) {
        TIDE_TRY(tide_sqlite_watch_settle(watch, err));
        take_tables(&plan, tide_sqlite_plan_wants, ret_tables);
        if (ret_left != NULL) {
            take_tables(&plan, is_left_out, ret_left);
        }
    }
    return TIDE_OK;
}

tide_status tide_sqlite_mend(sqlite3 *db, const struct tide_sqlite_choice *choice,
                             struct tide_sqlite_watch *watch, const tide_str *nonces,
                             size_t nonce_count, struct tide_sqlite_tables *ret_tables,
                             struct tide_sqlite_tables *ret_left, struct tide_error *err)
{
    TIDE_ASSERT(ret_tables->count == 0);
    for (int attempt = 0; attempt < MEND_ATTEMPTS; attempt++) {
        bool is_whole = false;
        TIDE_TRY(look(db, choice, watch, ret_tables, ret_left, &is_whole, err));
        if (is_whole) {
            return TIDE_OK;
        }
        TIDE_TRY(mend_now(db, choice, watch, nonces, nonce_count, err));
    }
    return tide_fail_retriable(err, TIDE_TIMEOUT, "the schema does not stop changing");
}
