#include "app/control/control_command.h"

#include "app/commands.h"
#include "app/control/control_client.h"
#include "app/one_argument.h"
#include "app/safe_text.h"
#include "app/state/state_edit.h"
#include "app/state/state_find.h"
#include "base/clock.h"
#include "base/thread.h"

#include <stdio.h>
#include <time.h>

#define ANSWER_US 10000000 /* longer than two requests wait for their checkpoints */
#define AGAIN_US  10000000 /* a pipeline that is starting or stopping is asked again so long */
#define REST_US   50000

static const struct tide_one_argument argument = {
    .wanted = "one configuration or state directory",
    .needed = "a configuration or a state directory is needed, e.g. shop.yaml",
};

error_t tide_control_command_argument(struct tide_control_command *command, int key, char *arg,
                                      struct argp_state *state)
{
    return tide_one_argument_parse(&argument, key, arg, state, &command->file);
}

static tide_status check_utf8(tide_str text, const char *what, struct tide_error *err)
{
    return tide_str_is_utf8(text) ? TIDE_OK : tide_fail(err, TIDE_INVALID, "%s is no UTF-8", what);
}

static tide_status change(struct tide_state_edit *edit, const struct tide_control_request *request,
                          struct tide_control_answer *answer, struct tide_error *err)
{
    bool is_pause = tide_str_equal(request->command, TIDE_STR("pause"));
    if (tide_str_equal(request->command, TIDE_STR("backfill"))) {
        TIDE_TRY(tide_state_edit_backfill(edit, request, answer, err));
    } else {
        TIDE_TRY(tide_state_edit_pause(edit, request->sink, is_pause, err));
        answer->sinks = &request->sink;
        answer->sink_count = 1;
    }
    return tide_state_edit_save(edit, err);
}

/* Without a pipeline. The answer's names are kept in `arena`. */
static tide_status do_offline(const char *dir, const struct tide_control_request *request,
                              struct tide_arena *arena, struct tide_control_answer *ret_answer,
                              struct tide_error *err)
{
    struct tide_state_edit one TIDE_CLEANUP(tide_state_edit_done) = {0};
    struct tide_control_answer answer = {.status = TIDE_OK};
    TIDE_TRY(tide_state_edit_open(dir, &one, err));
    TIDE_TRY(change(&one, request, &answer, err));
    tide_arena_adopt(arena, &one.arena);
    *ret_answer = answer;
    return TIDE_OK;
}

static tide_status ask(const char *dir, const struct tide_control_request *request,
                       struct tide_arena *arena, struct tide_control_answer *ret_answer,
                       struct tide_error *err)
{
    struct tide_control_answer answer = {0};
    TIDE_TRY(
        tide_control_ask(dir, request, tide_clock_deadline_us(ANSWER_US), arena, &answer, err));
    if (answer.status != TIDE_OK) {
        return tide_fail(err, answer.status, "%.*s", TIDE_STR_ARG(answer.message));
    }
    *ret_answer = answer;
    return TIDE_OK;
}

static void rest(void)
{
    struct timespec time = {.tv_nsec = REST_US * 1000};
    (void)nanosleep(&time, NULL);
}

/* A pipeline that is just starting or stopping has the lock and answers nobody: then both ways are
 * tried again for a while. */
static tide_status do_either(const char *dir, const struct tide_control_request *request,
                             struct tide_arena *arena, struct tide_control_answer *ret_answer,
                             bool *ret_is_running, struct tide_error *err)
{
    int64_t deadline_us = tide_clock_deadline_us(AGAIN_US);
    for (;;) {
        tide_status status = ask(dir, request, arena, ret_answer, err);
        *ret_is_running = true;
        if (status == TIDE_CLOSED && !tide_state_is_held(dir)) {
            *ret_is_running = false;
            status = do_offline(dir, request, arena, ret_answer, err);
        }
        bool comes_again = status == TIDE_CLOSED ||
                           (status == TIDE_INVALID && !*ret_is_running && tide_state_is_held(dir));
        if (!comes_again || tide_clock_monotonic_us() >= deadline_us) {
            return status == TIDE_CLOSED
                       ? tide_fail(err, TIDE_TIMEOUT,
                                   "the pipeline of %s is starting or stopping and takes no "
                                   "requests yet; try again",
                                   dir)
                       : status;
        }
        rest();
    }
}

tide_status tide_control_command_do(const struct tide_control_command *command,
                                    const tide_str *tables, size_t table_count,
                                    struct tide_arena *arena,
                                    struct tide_control_answer *ret_answer, bool *ret_is_running,
                                    struct tide_error *err)
{
    struct tide_buf dir TIDE_CLEANUP(tide_buf_done) = {0};
    struct tide_control_request request = {
        .command = tide_str_from(command->name),
        .sink = command->sink == NULL ? TIDE_STR("") : tide_str_from(command->sink),
        .tables = tables,
        .table_count = table_count,
    };
    TIDE_TRY(check_utf8(request.sink, "the sink's name", err));
    for (size_t i = 0; i < table_count; i++) {
        TIDE_TRY(check_utf8(tables[i], "a glob", err));
    }
    TIDE_TRY(tide_state_find(command->file, &dir, err));
    return do_either(tide_buf_cstr(&dir), &request, arena, ret_answer, ret_is_running, err);
}

void tide_control_append_names(struct tide_buf *buf, const tide_str *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *between = i == 0 ? "" : i + 1 < count ? ", " : " and ";
        tide_buf_append_str(buf, tide_str_from(between));
        tide_append_safe(buf, names[i]);
    }
}

static const struct argp_option pause_options[] = {
    {"sink", 's', "NAME", 0, "the sink, by its name in the configuration", 0},
    {0},
};

static error_t parse_pause_option(int key, char *arg, struct argp_state *state)
{
    struct tide_control_command *command = state->input;
    if (key == 's') {
        command->sink = arg;
        return 0;
    }
    if (key == ARGP_KEY_END && (command->sink == NULL || command->sink[0] == '\0')) {
        argp_error(state, "say which sink, with --sink NAME");
    }
    return tide_control_command_argument(command, key, arg, state);
}

int tide_control_pause_command(const char *name, const char *doc, const char *done, int argc,
                               char **argv)
{
    const struct argp parser = {
        .options = pause_options, .parser = parse_pause_option, .args_doc = "FILE", .doc = doc};
    struct tide_control_command command = {.name = name};
    struct tide_control_answer answer = {0};
    struct tide_arena arena TIDE_CLEANUP(tide_arena_done) = {0};
    struct tide_error err = {0};
    bool is_running = false;
    (void)argp_parse(&parser, argc, argv, 0, NULL, &command);
    tide_status status =
        tide_control_command_do(&command, NULL, 0, &arena, &answer, &is_running, &err);
    if (status == TIDE_OK) {
        (void)printf("%s %s%s\n", command.sink, done,
                     is_running ? "" : "; the pipeline does not run now");
    }
    return tide_command_end(name, status, &err);
}
