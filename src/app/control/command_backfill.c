/* tidemark backfill: new copies of tables, for one sink or all. */
#include "app/commands.h"
#include "app/config/table_globs.h"
#include "app/control/control_command.h"
#include "app/safe_text.h"

#include <stdio.h>

struct backfill_command {
    struct tide_control_command control;
    struct tide_table_globs globs;
};

static const struct argp_option option_table[] = {
    {"sink", 's', "NAME", 0, "for this sink (default: every sink)", 0},
    {"tables", 't', "GLOB,…", 0, "only tables whose name matches (* and ?; default: all)", 0},
    {0},
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct backfill_command *command = state->input;
    switch (key) {
    case 's':
        if (arg[0] == '\0') {
            argp_error(state, "--sink needs a name");
        }
        command->control.sink = arg;
        return 0;
    case 't':
        tide_table_globs_add(&command->globs, arg, state);
        return 0;
    default:
        return tide_control_command_argument(&command->control, key, arg, state);
    }
}

static const struct argp parser = {
    .options = option_table,
    .parser = parse_option,
    .args_doc = "FILE",
    .doc = "Asks for new copies of tables, for a sink of the pipeline of FILE, a configuration or "
           "a state directory. Changes go on meanwhile; consumers see a new snapshot of each "
           "table, from its begin to its end.\v"
           "The command ends once the request is durable, not when the copies are made: see "
           "`tidemark status`. When the pipeline does not run, its next run makes them. A glob "
           "matches a table's name, also with its schema or as a whole (shop.public.orders).\n\n"
           "Exit status: 0 done, 2 there is no such sink or table, or the sink is detached, 3 it "
           "could not be done.",
};

static void print(const struct tide_control_answer *answer, bool is_running)
{
    struct tide_buf out TIDE_CLEANUP(tide_buf_done) = {0};
    tide_buf_printf(&out, "%zu %s will be copied anew to ", answer->table_count,
                    answer->table_count == 1 ? "table" : "tables");
    tide_control_append_names(&out, answer->sinks, answer->sink_count);
    tide_buf_append_str(&out, is_running ? TIDE_STR(":\n") : TIDE_STR(" by the next run:\n"));
    for (size_t i = 0; i < answer->table_count; i++) {
        tide_buf_append_str(&out, TIDE_STR("    "));
        tide_append_safe(&out, answer->tables[i]);
        tide_buf_append_char(&out, '\n');
    }
    (void)fwrite(out.ptr, 1, out.len, stdout);
    if (answer->message.len > 0) {
        tide_buf_reset(&out);
        tide_append_safe(&out, answer->message);
        (void)fprintf(stderr, "note: %s\n", tide_buf_cstr(&out));
    }
}

int tide_command_backfill(int argc, char **argv)
{
    struct backfill_command command = {.control = {.name = "backfill"}};
    struct tide_control_answer answer = {0};
    struct tide_arena arena TIDE_CLEANUP(tide_arena_done) = {0};
    struct tide_error err = {0};
    bool is_running = false;
    (void)argp_parse(&parser, argc, argv, 0, NULL, &command);
    tide_status status =
        tide_control_command_do(&command.control, command.globs.globs, command.globs.count, &arena,
                                &answer, &is_running, &err);
    if (status == TIDE_OK) {
        print(&answer, is_running);
    }
    return tide_command_end("backfill", status, &err);
}
