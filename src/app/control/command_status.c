/* tidemark status: what a pipeline is doing. */
#include "app/commands.h"
#include "app/control/control_client.h"
#include "app/control/status_print.h"
#include "app/control/status_stopped.h"
#include "app/one_argument.h"
#include "app/safe_text.h"
#include "app/state/state_find.h"
#include "base/clock.h"
#include "engine/state.h"
#include "format/json_writer.h"

#include <argp.h>
#include <stdio.h>
#include <sys/stat.h>

#define ANSWER_US 5000000 /* longer than what another request may take before it */

enum {
    OPTION_JSON = 256
};

struct status_command {
    const char *file;
    bool is_json;
};

static const struct argp_option option_table[] = {
    {"json", OPTION_JSON, NULL, 0, "one line of JSON, for programs", 0},
    {0},
};

static const struct tide_one_argument argument = {
    .wanted = "one configuration or state directory",
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct status_command *command = state->input;
    switch (key) {
    case OPTION_JSON:
        command->is_json = true;
        return 0;
    default:
        return tide_one_argument_parse(&argument, key, arg, state, &command->file);
    }
}

static const struct argp parser = {
    .options = option_table,
    .parser = parse_option,
    .args_doc = "[FILE]",
    .doc = "Says what the pipeline of FILE, a configuration or a state directory, is doing: how "
           "far it is behind, its sinks, its snapshots. Without FILE it is the one that has its "
           "state in .tidemark here. When it does not run, what its newest checkpoint says.\v"
           "Exit status: 0 it runs and is well; 1 it does not run, has not started yet, stands "
           "still, a sink has failed or waits after an error, or a table could not be copied; "
           "2 wrong usage, or several pipelines have their state here; 3 its state could not be "
           "read, or it does not answer within 5 s.",
};

static void write_out(const struct tide_buf *out)
{
    (void)fwrite(out->ptr, 1, out->len, stdout);
}

/* {"state":"not running",…}: the same key as in a report. */
static void begin_json(struct tide_buf *out, const char *state, const char *dir)
{
    tide_buf_append_char(out, '{');
    tide_json_append_key(out, TIDE_STR("state"));
    tide_json_append_string(out, tide_str_from(state));
    if (tide_str_is_utf8(tide_str_from(dir))) {
        tide_buf_append_char(out, ',');
        tide_json_append_key(out, TIDE_STR("state_directory"));
        tide_json_append_string(out, tide_str_from(dir));
    }
}

/* No pipeline answers, and there is nothing more to say than in which state it is. */
static void say_state(const char *state, const char *dir, bool is_json)
{
    struct tide_buf out TIDE_CLEANUP(tide_buf_done) = {0};
    if (is_json) {
        begin_json(&out, state, dir);
        tide_buf_append_str(&out, TIDE_STR("}\n"));
    } else {
        tide_buf_printf(&out, "the pipeline of %s is %s\n", dir, state);
    }
    write_out(&out);
}

static tide_status print_checkpoint(const char *dir, const struct tide_state_checkpoint *found,
                                    struct tide_arena *arena, struct tide_buf *out,
                                    struct tide_error *err)
{
    struct tide_checkpoint checkpoint = {0};
    if (tide_checkpoint_decode(found->json, NULL, arena, &checkpoint, err) != TIDE_OK) {
        return tide_fail_context(err, "%s/%.*s", dir, TIDE_STR_ARG(found->file));
    }
    const struct tide_checkpoint_shown shown = {.file = found->file,
                                                .phase = found->phase,
                                                .created_us = found->created_us,
                                                .checkpoint = &checkpoint};
    tide_buf_printf(out, "the pipeline of %s is not running; its newest checkpoint says:\n\n", dir);
    tide_status_print_stopped(out, &shown, arena);
    return TIDE_OK;
}

static void append_checkpoint_json(const char *dir, const struct tide_state_checkpoint *found,
                                   struct tide_buf *out)
{
    char created[40];
    tide_rfc3339_us(found->created_us, "Z", created);
    begin_json(out, "not running", dir);
    tide_buf_printf(out, ",\"created_at\":\"%s\",\"checkpoint\":", created);
    tide_buf_append_str(out, found->json);
    tide_buf_append_str(out, TIDE_STR("}\n"));
}

static tide_status show_stopped(const char *dir, bool is_json, struct tide_error *err)
{
    struct tide_arena arena TIDE_CLEANUP(tide_arena_done) = {0};
    struct tide_buf out TIDE_CLEANUP(tide_buf_done) = {0};
    struct tide_buf warnings TIDE_CLEANUP(tide_buf_done) = {0};
    struct tide_state_checkpoint found = {0};
    struct stat st;
    bool is_found = false;
    if (tide_state_is_held(dir)) {
        say_state("starting or stopping", dir, is_json);
        return TIDE_OK;
    }
    if (stat(dir, &st) != 0 && errno == ENOENT) {
        say_state("not running, and never was", dir, is_json);
        return TIDE_OK;
    }
    TIDE_TRY(tide_state_peek(dir, &arena, &is_found, &found, &warnings, err));
    (void)fprintf(stderr, "%.*s", TIDE_STR_ARG(tide_buf_str(&warnings)));
    if (!is_found) {
        say_state("not running, and has no checkpoint", dir, is_json);
        return TIDE_OK;
    }
    if (is_json) {
        append_checkpoint_json(dir, &found, &out);
    } else {
        TIDE_TRY(print_checkpoint(dir, &found, &arena, &out, err));
    }
    write_out(&out);
    return TIDE_OK;
}

static tide_status show_running(const struct tide_control_answer *answer, bool is_json,
                                struct tide_arena *arena, bool *ret_is_fine, struct tide_error *err)
{
    struct tide_buf out TIDE_CLEANUP(tide_buf_done) = {0};
    struct tide_status_report report = {0};
    if (tide_status_report_read(answer->report, arena, &report, err) != TIDE_OK) {
        return tide_fail_context(err, "the pipeline's report");
    }
    if (is_json) {
        tide_buf_append_str(&out, answer->report);
        tide_buf_append_char(&out, '\n');
    } else {
        tide_status_print(&out, &report);
    }
    write_out(&out);
    *ret_is_fine = tide_status_report_is_fine(&report);
    return TIDE_OK;
}

static tide_status show(const struct status_command *command, bool *ret_is_fine,
                        struct tide_error *err)
{
    static const struct tide_control_request request = {.command = {"status", 6}};
    struct tide_arena arena TIDE_CLEANUP(tide_arena_done) = {0};
    struct tide_buf path TIDE_CLEANUP(tide_buf_done) = {0};
    struct tide_control_answer answer = {0};
    TIDE_TRY(tide_state_find(command->file, &path, err));
    const char *dir = tide_buf_cstr(&path);
    tide_status status =
        tide_control_ask(dir, &request, tide_clock_deadline_us(ANSWER_US), &arena, &answer, err);
    if (status == TIDE_CLOSED) {
        return show_stopped(dir, command->is_json, err);
    }
    TIDE_TRY(status);
    if (answer.status == TIDE_OK) {
        return show_running(&answer, command->is_json, &arena, ret_is_fine, err);
    }
    const char *message = tide_arena_cstr(&arena, answer.message);
    if (answer.status == TIDE_CLOSED) { /* "starting" or "stopping" */
        say_state(message, dir, command->is_json);
        return TIDE_OK;
    }
    return tide_fail(err, answer.status, "%s", message);
}

int tide_command_status(int argc, char **argv)
{
    struct status_command command = {0};
    struct tide_error err = {0};
    bool is_fine = false;
    (void)argp_parse(&parser, argc, argv, 0, NULL, &command);
    tide_status status = show(&command, &is_fine, &err);
    return status != TIDE_OK ? tide_command_end("status", status, &err)
           : is_fine         ? TIDE_EXIT_DONE
                             : TIDE_EXIT_NO;
}
