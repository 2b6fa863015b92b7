#include "app/state/state_edit.h"

#include "app/adapters.h"
#include "base/glob.h"

#include <errno.h>
#include <sys/stat.h>

#define SHOWN_BYTES_MAX 300 /* of lists in messages */

static tide_status check_dir(const char *dir, struct tide_error *err)
{
    struct stat st;
    if (stat(dir, &st) != 0) {
        return errno == ENOENT
                   ? tide_fail(err, TIDE_INVALID, "there is no state in %s", dir)
                   : tide_fail(err, TIDE_IO, "cannot look at %s: %s", dir, strerror(errno));
    }
    return TIDE_OK;
}

/* A run goes on from it: there is something to change. */
static tide_status check_checkpoint(const struct tide_checkpoint *checkpoint, const char *dir,
                                    struct tide_error *err)
{
    if (!checkpoint->has_tidemark) {
        return tide_fail(err, TIDE_INVALID, "the checkpoint in %s is another program's", dir);
    }
    if (checkpoint->is_closed || checkpoint->is_creating) {
        return tide_fail(err, TIDE_INVALID,
                         "the next run with %s starts anew, and copies everything to every sink",
                         dir);
    }
    return TIDE_OK;
}

static tide_status load(struct tide_state_edit *edit, const char *dir, struct tide_error *err)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf warnings = {0};
    tide_str json = {0};
    bool was_found = false;
    TIDE_TRY(check_dir(dir, err));
    TIDE_TRY(tide_state_open(dir, &edit->state, err));
    TIDE_TRY(tide_state_load(edit->state, &edit->arena, &was_found, &json, &edit->phase, &warnings,
                             err));
    if (!was_found) {
        return tide_fail(err, TIDE_INVALID, "%s holds no checkpoint: nothing ran with it yet", dir);
    }
    if (tide_decode_checkpoint(json, &edit->arena, &edit->checkpoint, &edit->kind, err) !=
        TIDE_OK) {
        return tide_fail_context(err, "checkpoint in %s", dir);
    }
    return check_checkpoint(&edit->checkpoint, dir, err);
}

tide_status tide_state_edit_open(const char *dir, struct tide_state_edit *ret_edit,
                                 struct tide_error *err)
{
    struct tide_state_edit edit = {0};
    tide_status status = load(&edit, dir, err);
    if (status != TIDE_OK) {
        tide_state_edit_done(&edit);
        return status;
    }
    *ret_edit = edit;
    return TIDE_OK;
}

tide_status tide_state_edit_save(struct tide_state_edit *edit, struct tide_error *err)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf json = {0};
    edit->checkpoint.sequence++;
    tide_checkpoint_encode(&edit->checkpoint, edit->kind, &json);
    return tide_state_save(edit->state, tide_buf_str(&json), edit->phase, err);
}

void tide_state_edit_done(struct tide_state_edit *edit)
{
    tide_state_close(edit->state);
    tide_arena_done(&edit->arena);
    *edit = (struct tide_state_edit){0};
}

static void append_listed(struct tide_buf *list, tide_str name)
{
    if (list->len < SHOWN_BYTES_MAX) {
        tide_buf_printf(list, "%s%.*s", list->len == 0 ? "" : ", ", TIDE_STR_ARG(name));
    } else if (!tide_str_ends_with(tide_buf_str(list), TIDE_STR(" …"))) {
        tide_buf_append_str(list, TIDE_STR(", …"));
    }
}

static tide_status fail_sink(const struct tide_checkpoint *checkpoint, tide_str name,
                             struct tide_error *err)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf known = {0};
    for (size_t i = 0; i < checkpoint->sink_count; i++) {
        append_listed(&known, checkpoint->sinks[i].name);
    }
    return tide_fail(err, TIDE_INVALID, "the checkpoint has no sink \"%.*s\"; it has %s",
                     TIDE_STR_ARG(name), tide_buf_cstr(&known));
}

static tide_status fail_glob(tide_str glob, const tide_str *stores, size_t count,
                             struct tide_error *err)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf known = {0};
    for (size_t i = 0; i < count; i++) {
        append_listed(&known, stores[i]);
    }
    return tide_fail(err, TIDE_INVALID, "\"%.*s\" matches no table; there are %s",
                     TIDE_STR_ARG(glob), count == 0 ? "none" : tide_buf_cstr(&known));
}

static bool has(const tide_str *names, size_t count, tide_str name)
{
    for (size_t i = 0; i < count; i++) {
        if (tide_str_equal(names[i], name)) {
            return true;
        }
    }
    return false;
}

/* The tables that were ever copied, or are to be: each store once. */
static size_t list_stores(const struct tide_checkpoint *checkpoint, struct tide_arena *arena,
                          tide_str **ret_stores)
{
    size_t count = 0;
    *ret_stores = tide_arena_alloc(arena, checkpoint->copy_count, sizeof(**ret_stores));
    for (size_t i = 0; i < checkpoint->copy_count; i++) {
        if (!has(*ret_stores, count, checkpoint->copies[i].store)) {
            (*ret_stores)[count++] = checkpoint->copies[i].store;
        }
    }
    return count;
}

/* Adds those that the glob matches; false: there is none. */
static bool add_matching(tide_str glob, const tide_str *stores, size_t count, tide_str *chosen,
                         size_t *chosen_count)
{
    bool is_used = false;
    for (size_t i = 0; i < count; i++) {
        bool is_chosen = tide_glob_matches_store(glob, stores[i]);
        is_used = is_used || is_chosen;
        if (is_chosen && !has(chosen, *chosen_count, stores[i])) {
            chosen[(*chosen_count)++] = stores[i];
        }
    }
    return is_used;
}

static tide_status choose_tables(struct tide_state_edit *edit,
                                 const struct tide_control_request *request,
                                 struct tide_control_answer *ret_answer, struct tide_error *err)
{
    tide_str *stores = NULL;
    size_t count = list_stores(&edit->checkpoint, &edit->arena, &stores);
    tide_str *chosen = tide_arena_alloc(&edit->arena, count, sizeof(*chosen));
    size_t chosen_count = 0;
    if (request->table_count == 0) {
        (void)add_matching(TIDE_STR("*"), stores, count, chosen, &chosen_count);
    }
    for (size_t i = 0; i < request->table_count; i++) {
        if (!add_matching(request->tables[i], stores, count, chosen, &chosen_count)) {
            return fail_glob(request->tables[i], stores, count, err);
        }
    }
    if (chosen_count == 0) {
        return tide_fail(err, TIDE_INVALID, "nothing was copied yet: the next run copies it all");
    }
    ret_answer->tables = chosen;
    ret_answer->table_count = chosen_count;
    return TIDE_OK;
}

static bool has_request(const struct tide_checkpoint *checkpoint, tide_str sink)
{
    for (size_t i = 0; i < checkpoint->request_count; i++) {
        if (tide_str_equal(checkpoint->requests[i].sink, sink)) {
            return true;
        }
    }
    return false;
}

/* The next run copies all tables to it anyway. A request for some of them would be taken for that
 * first one. */
static bool will_get_all(const struct tide_checkpoint *checkpoint, tide_str name)
{
    for (size_t i = 0; i < checkpoint->sink_count; i++) {
        const struct tide_checkpoint_sink *sink = &checkpoint->sinks[i];
        if (tide_str_equal(sink->name, name)) {
            return sink->is_detached || (!sink->is_seeded && !has_request(checkpoint, name));
        }
    }
    return false;
}

static tide_status choose_sinks(struct tide_state_edit *edit, tide_str wanted,
                                struct tide_control_answer *ret_answer, struct tide_error *err)
{
    const struct tide_checkpoint *checkpoint = &edit->checkpoint;
    tide_str *chosen = tide_arena_alloc(&edit->arena, checkpoint->sink_count, sizeof(*chosen));
    size_t count = 0;
    for (size_t i = 0; i < checkpoint->sink_count; i++) {
        const struct tide_checkpoint_sink *sink = &checkpoint->sinks[i];
        if (wanted.len > 0 && !tide_str_equal(sink->name, wanted)) {
            continue;
        }
        chosen[count++] = sink->name;
    }
    if (count == 0) {
        return fail_sink(checkpoint, wanted, err);
    }
    ret_answer->sinks = chosen;
    ret_answer->sink_count = count;
    return TIDE_OK;
}

static bool has_begun(const struct tide_checkpoint *checkpoint, uint64_t request_id)
{
    for (size_t i = 0; i < checkpoint->copy_count; i++) {
        const struct tide_checkpoint_copy *copy = &checkpoint->copies[i];
        if (copy->request_id == request_id && (copy->is_begun || copy->is_done)) {
            return true;
        }
    }
    return false;
}

/* What is chosen has each table once, and so have requests. */
static bool has_same_tables(const struct tide_checkpoint_request *request,
                            const struct tide_control_answer *chosen)
{
    size_t found = 0;
    for (size_t i = 0; i < request->table_count; i++) {
        found += has(chosen->tables, chosen->table_count, request->tables[i]);
    }
    return found == request->table_count && found == chosen->table_count;
}

/* The same was asked for before, and no copy of it has begun: what changed since is in it too. */
static bool is_asked_for(const struct tide_checkpoint *checkpoint, tide_str sink,
                         const struct tide_control_answer *chosen)
{
    for (size_t i = 0; i < checkpoint->request_count; i++) {
        const struct tide_checkpoint_request *request = &checkpoint->requests[i];
        if (tide_str_equal(request->sink, sink) && has_same_tables(request, chosen) &&
            !has_begun(checkpoint, request->id)) {
            return true;
        }
    }
    return false;
}

/* No id may ever be given twice: those of finished requests live on in their copies. */
static uint64_t highest_request_id(const struct tide_checkpoint *checkpoint)
{
    uint64_t highest = 0;
    for (size_t i = 0; i < checkpoint->copy_count; i++) {
        uint64_t id = checkpoint->copies[i].request_id;
        highest = id > highest ? id : highest;
    }
    for (size_t i = 0; i < checkpoint->request_count; i++) {
        uint64_t id = checkpoint->requests[i].id;
        highest = id > highest ? id : highest;
    }
    return highest;
}

static void add_requests(struct tide_state_edit *edit, const struct tide_control_answer *chosen)
{
    struct tide_checkpoint *checkpoint = &edit->checkpoint;
    size_t count = checkpoint->request_count;
    uint64_t id = highest_request_id(checkpoint);
    struct tide_checkpoint_request *requests =
        tide_arena_alloc(&edit->arena, count + chosen->sink_count, sizeof(*requests));
    for (size_t i = 0; i < count; i++) {
        requests[i] = checkpoint->requests[i];
    }
    for (size_t i = 0; i < chosen->sink_count; i++) {
        if (!will_get_all(checkpoint, chosen->sinks[i]) &&
            !is_asked_for(checkpoint, chosen->sinks[i], chosen)) {
            requests[count++] = (struct tide_checkpoint_request){
                .id = ++id,
                .sink = chosen->sinks[i],
                .tables = chosen->tables,
                .table_count = chosen->table_count,
            };
        }
    }
    checkpoint->requests = requests;
    checkpoint->request_count = count;
    edit->phase = TIDE_PHASE_SNAPSHOT_PROGRESS;
}

tide_status tide_state_edit_backfill(struct tide_state_edit *edit,
                                     const struct tide_control_request *request,
                                     struct tide_control_answer *ret_answer, struct tide_error *err)
{
    struct tide_control_answer answer = {.status = TIDE_OK};
    TIDE_TRY(choose_sinks(edit, request->sink, &answer, err));
    TIDE_TRY(choose_tables(edit, request, &answer, err));
    add_requests(edit, &answer);
    *ret_answer = answer;
    return TIDE_OK;
}

tide_status tide_state_edit_pause(struct tide_state_edit *edit, tide_str sink, bool is_paused,
                                  struct tide_error *err)
{
    struct tide_checkpoint *checkpoint = &edit->checkpoint;
    struct tide_checkpoint_sink *sinks =
        tide_arena_alloc(&edit->arena, checkpoint->sink_count, sizeof(*sinks));
    bool is_there = false;
    for (size_t i = 0; i < checkpoint->sink_count; i++) {
        bool is_it = tide_str_equal(checkpoint->sinks[i].name, sink);
        sinks[i] = checkpoint->sinks[i];
        sinks[i].is_paused = is_it ? is_paused : sinks[i].is_paused;
        is_there = is_there || is_it;
    }
    if (!is_there) {
        return fail_sink(checkpoint, sink, err);
    }
    checkpoint->sinks = sinks;
    return TIDE_OK;
}
