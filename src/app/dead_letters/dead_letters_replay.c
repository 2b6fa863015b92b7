#include "app/dead_letters/dead_letters_replay.h"

#include "app/config/config.h"
#include "app/control/control_client.h"
#include "app/control/control_command.h"
#include "app/control/status_report.h"
#include "app/safe_text.h"
#include "base/clock.h"
#include "base/map.h"
#include "engine/dead_letter_marks.h"
#include "engine/state.h"

#include <stdio.h>

#define ANSWER_US 5000000

/* The letters of one sink. */
struct group {
    struct group *next;
    const char *sink;
    struct tide_map stores; /* each to the size of its largest record */
    struct tide_buf ids;    /* struct tide_dead_letter_id, one behind the other */
    size_t count;
};

struct plan {
    const struct tide_dead_letters_replay *replay;
    const char *dir;
    const struct tide_config *config;         /* NULL: only the directory was named */
    const struct tide_status_report *running; /* NULL: no pipeline runs */
    const struct tide_checkpoint *saved;      /* else what it last said; NULL: it never ran */
    struct tide_arena arena;
    struct group *groups;
    uint64_t nameless;           /* of older versions: which sink refused them is not known */
    struct tide_map passed_over; /* why, to the number of letters */
};

static void plan_done(struct plan *plan)
{
    for (struct group *group = plan->groups; group != NULL; group = group->next) {
        tide_map_done(&group->stores);
        tide_buf_done(&group->ids);
    }
    tide_map_done(&plan->passed_over);
    tide_arena_done(&plan->arena);
}

static struct group *find_group(const struct plan *plan, tide_str sink)
{
    struct group *group = plan->groups;
    while (group != NULL && !tide_str_equal(tide_str_from(group->sink), sink)) {
        group = group->next;
    }
    return group;
}

static struct group *group_of(struct plan *plan, tide_str sink)
{
    struct group *group = find_group(plan, sink);
    if (group == NULL) {
        group = tide_arena_alloc(&plan->arena, 1, sizeof(*group));
        *group = (struct group){.next = plan->groups, .sink = tide_arena_cstr(&plan->arena, sink)};
        plan->groups = group;
    }
    return group;
}

static bool has_configured(const struct tide_config *config, tide_str sink)
{
    for (size_t i = 0; i < config->sink_count; i++) {
        if (tide_str_equal(config->sinks[i].name, sink)) {
            return true;
        }
    }
    return false;
}

static const struct tide_status_sink *find_running(const struct plan *plan, tide_str sink)
{
    for (size_t i = 0; i < plan->running->sink_count; i++) {
        if (tide_str_equal(plan->running->sinks[i].name, sink)) {
            return &plan->running->sinks[i];
        }
    }
    return NULL;
}

static bool has_sink(const struct plan *plan, tide_str sink)
{
    if (plan->running != NULL) {
        return find_running(plan, sink) != NULL;
    }
    bool is_saved = plan->saved == NULL;
    for (size_t i = 0; !is_saved && i < plan->saved->sink_count; i++) {
        is_saved = tide_str_equal(plan->saved->sinks[i].name, sink);
    }
    return is_saved && (plan->config == NULL || has_configured(plan->config, sink));
}

static bool has_table(const struct plan *plan, tide_str store)
{
    bool is_there = plan->running == NULL && plan->saved == NULL;
    for (size_t i = 0; plan->running != NULL && i < plan->running->snapshot_count; i++) {
        is_there = is_there || tide_str_equal(plan->running->snapshots[i].store, store);
    }
    for (size_t i = 0; plan->running == NULL && plan->saved != NULL && i < plan->saved->copy_count;
         i++) {
        is_there = is_there || tide_str_equal(plan->saved->copies[i].store, store);
    }
    return is_there;
}

/* A letter of the same sink and table was not passed over: there may be many. */
static bool is_taken(const struct plan *plan, const struct tide_dead_letter_read *letter)
{
    const struct group *group = find_group(plan, letter->sink);
    return group != NULL && tide_map_get(&group->stores, letter->store) != NULL;
}

/* Nothing can be asked for it, now or ever; or it comes anyway. False: it can be. */
static bool pass_over(struct plan *plan, const struct tide_dead_letter_read *letter)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf why = {0};
    const struct tide_status_sink *running =
        plan->running == NULL ? NULL : find_running(plan, letter->sink);
    if (!has_sink(plan, letter->sink)) {
        tide_buf_append_str(&why, TIDE_STR("there is no sink "));
        tide_append_safe(&why, letter->sink);
        tide_buf_append_str(&why, TIDE_STR(" any more"));
    } else if (!has_table(plan, letter->store)) {
        tide_buf_append_str(&why, TIDE_STR("there is no table "));
        tide_append_safe(&why, letter->store);
        tide_buf_append_str(&why, TIDE_STR(" any more"));
    } else if (running != NULL && tide_str_equal(running->state, TIDE_STR("detached"))) {
        tide_buf_printf(&why, "sink %.*s is detached, and every table is copied to it anyway",
                        TIDE_STR_ARG(letter->sink));
    } else {
        return false;
    }
    tide_map_put(&plan->passed_over, tide_buf_str(&why), NULL)->number++;
    return true;
}

static tide_status take_letter(void *context, const struct tide_dead_letter_found *found,
                               bool is_replayed, struct tide_error *err)
{
    struct plan *plan = context;
    const struct tide_dead_letter_read *letter = found->letter;
    (void)is_replayed;
    (void)err;
    if (letter->sink.len == 0) {
        plan->nameless++;
        return TIDE_OK;
    }
    if (!is_taken(plan, letter) && pass_over(plan, letter)) {
        return TIDE_OK;
    }
    struct group *group = group_of(plan, letter->sink);
    uint64_t *largest = &tide_map_put(&group->stores, letter->store, NULL)->number;
    *largest = letter->bytes > *largest ? letter->bytes : *largest;
    tide_buf_append(&group->ids, &letter->id, sizeof(letter->id));
    group->count++;
    return TIDE_OK;
}

/* What the sink takes: by the pipeline that runs, else as it is configured. False: not known. */
static bool find_limit(const struct plan *plan, const char *name, uint64_t *ret_limit)
{
    tide_str sink = tide_str_from(name);
    for (size_t i = 0; plan->running != NULL && i < plan->running->sink_count; i++) {
        if (tide_str_equal(plan->running->sinks[i].name, sink)) {
            *ret_limit = plan->running->sinks[i].max_record_bytes;
            return true;
        }
    }
    for (size_t i = 0;
         plan->running == NULL && plan->config != NULL && i < plan->config->sink_count; i++) {
        const struct tide_pipeline_sink *configured = &plan->config->sinks[i];
        if (tide_str_equal(configured->name, sink)) {
            *ret_limit = configured->record_bytes_max > 0 ? configured->record_bytes_max
                                                          : plan->config->record_bytes;
            return true;
        }
    }
    return false;
}

static tide_status fail_limit(const struct plan *plan, const struct group *group, tide_str store,
                              uint64_t size, uint64_t limit, struct tide_error *err)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf shown = {0};
    tide_append_safe(&shown, store);
    return tide_fail(err, TIDE_INVALID,
                     "sink %s would refuse a record of %s again: it has %llu bytes, limit %llu; "
                     "raise max_record_bytes of the sink%s first, or say --force",
                     group->sink, tide_buf_cstr(&shown), (unsigned long long)size,
                     (unsigned long long)limit,
                     plan->running != NULL ? " and run the pipeline again" : "");
}

static tide_status check_group(const struct plan *plan, const struct group *group,
                               struct tide_error *err)
{
    uint64_t limit = 0;
    size_t at = 0;
    if (plan->replay->is_forced) {
        return TIDE_OK;
    }
    if (!find_limit(plan, group->sink, &limit)) {
        return tide_fail(err, TIDE_INVALID,
                         "no pipeline runs with %s: name its configuration instead, which says "
                         "what its sinks take, or say --force",
                         plan->dir);
    }
    for (const struct tide_map_entry *entry;
         (entry = tide_map_next(&group->stores, &at)) != NULL;) {
        if (entry->value.number > limit) {
            return fail_limit(plan, group, entry->key, entry->value.number, limit, err);
        }
    }
    return TIDE_OK;
}

static void say_asked(const struct group *group, const struct tide_control_answer *answer,
                      bool is_running)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf out = {0};
    tide_buf_printf(&out, "%zu letter%s of sink %s: %zu %s will be copied anew%s:\n", group->count,
                    group->count == 1 ? "" : "s", group->sink, answer->table_count,
                    answer->table_count == 1 ? "table" : "tables",
                    is_running ? "" : " by the next run");
    for (size_t i = 0; i < answer->table_count; i++) {
        tide_buf_append_str(&out, TIDE_STR("    "));
        tide_append_safe(&out, answer->tables[i]);
        tide_buf_append_char(&out, '\n');
    }
    (void)fwrite(out.ptr, 1, out.len, stdout);
}

/* The mark comes after the request: killed in between, the letters are still listed. */
static tide_status ask_group(struct plan *plan, const struct group *group, struct tide_error *err)
{
    const struct tide_control_command command = {
        .name = "backfill", .file = plan->dir, .sink = group->sink};
    struct tide_control_answer answer = {0};
    bool is_running = false;
    size_t count = 0;
    size_t at = 0;
    tide_str *stores = tide_arena_alloc(&plan->arena, group->stores.count, sizeof(*stores));
    for (const struct tide_map_entry *entry;
         (entry = tide_map_next(&group->stores, &at)) != NULL;) {
        stores[count++] = entry->key;
    }
    TIDE_TRY(
        tide_control_command_do(&command, stores, count, &plan->arena, &answer, &is_running, err));
    TIDE_TRY(tide_dead_letter_marks_add(
        plan->dir, (const struct tide_dead_letter_id *)(const void *)group->ids.ptr, group->count,
        err));
    say_asked(group, &answer, is_running);
    return TIDE_OK;
}

static void say_passed_over(const struct plan *plan)
{
    size_t at = 0;
    for (const struct tide_map_entry *entry;
         (entry = tide_map_next(&plan->passed_over, &at)) != NULL;) {
        unsigned long long count = entry->value.number;
        (void)fprintf(stderr, "note: %llu letter%s passed over: %.*s\n", count,
                      count == 1 ? " is" : "s are", TIDE_STR_ARG(entry->key));
    }
}

static tide_status ask_all(struct plan *plan, struct tide_error *err)
{
    for (const struct group *group = plan->groups; group != NULL; group = group->next) {
        TIDE_TRY(check_group(plan, group, err));
    }
    for (const struct group *group = plan->groups; group != NULL; group = group->next) {
        TIDE_TRY(ask_group(plan, group, err));
    }
    say_passed_over(plan);
    if (plan->groups == NULL && plan->passed_over.count == 0) {
        (void)printf("there are no letters to replay\n");
    }
    if (plan->nameless > 0) {
        (void)fprintf(stderr,
                      "%llu letters of an older version do not say which sink refused them; "
                      "`tidemark backfill` copies their tables anew\n",
                      (unsigned long long)plan->nameless);
    }
    return TIDE_OK;
}

/* What the pipeline says of itself, if one runs; one that is only starting has no limits yet. */
static tide_status ask_running(struct plan *plan, struct tide_status_report *report,
                               struct tide_error *err)
{
    const struct tide_control_request request = {.command = TIDE_STR("status")};
    struct tide_control_answer answer = {0};
    tide_status status = tide_control_ask(plan->dir, &request, tide_clock_deadline_us(ANSWER_US),
                                          &plan->arena, &answer, err);
    if (status == TIDE_CLOSED || (status == TIDE_OK && answer.status != TIDE_OK)) {
        return TIDE_OK;
    }
    TIDE_TRY(status);
    TIDE_TRY(tide_status_report_read(answer.report, &plan->arena, report, err));
    plan->running = report;
    return TIDE_OK;
}

/* Which sinks and tables there were when nothing is there to ask. */
static tide_status look_at_state(struct plan *plan, struct tide_checkpoint *saved,
                                 struct tide_error *err)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf warnings = {0};
    struct tide_state_checkpoint found = {0};
    bool is_found = false;
    if (plan->running != NULL) {
        return TIDE_OK;
    }
    TIDE_TRY(tide_state_peek(plan->dir, &plan->arena, &is_found, &found, &warnings, err));
    if (!is_found) {
        return TIDE_OK;
    }
    if (tide_checkpoint_decode(found.json, NULL, &plan->arena, saved, err) != TIDE_OK) {
        return tide_fail_context(err, "%s/%.*s", plan->dir, TIDE_STR_ARG(found.file));
    }
    plan->saved = saved->has_tidemark ? saved : NULL;
    return TIDE_OK;
}

tide_status tide_dead_letters_replay(const struct tide_dead_letters_replay *replay,
                                     uint64_t *ret_bad_lines, struct tide_error *err)
{
    struct tide_config config TIDE_CLEANUP(tide_config_done) = {0};
    struct tide_status_report report = {0};
    struct tide_checkpoint saved = {0};
    TIDE_CLEANUP(plan_done) struct plan plan = {.replay = replay, .dir = replay->file};
    const struct tide_dead_letters_view view = {.sink = replay->sink, .globs = replay->globs};
    if (tide_config_is_file(replay->file)) {
        TIDE_TRY(tide_config_load(replay->file, &config, err));
        plan.config = &config;
        plan.dir = config.state_dir;
    }
    TIDE_TRY(ask_running(&plan, &report, err));
    TIDE_TRY(look_at_state(&plan, &saved, err));
    TIDE_TRY(tide_dead_letters_view(plan.dir, &view, take_letter, &plan, ret_bad_lines, err));
    return ask_all(&plan, err);
}
