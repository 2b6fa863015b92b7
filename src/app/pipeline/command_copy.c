/* tidemark copy: one source to one sink, without a configuration. */
#include "app/adapters.h"
#include "app/commands.h"
#include "app/config/table_globs.h"
#include "app/number_argument.h"
#include "app/pipeline/copy_report.h"
#include "app/pipeline/run_pipeline.h"
#include "app/place.h"
#include "app/state/state_dir.h"
#include "base/limits.h"
#include "port/refusals.h"
#include "stream/channel.h"

#include <argp.h>

enum option_key {
    OPTION_APPEND = 256,
    OPTION_OVERWRITE,
    OPTION_KEEP,
    OPTION_CHUNK_ROWS,
    OPTION_STATE,
    OPTION_RECORD_BYTES,
    OPTION_REFUSED,
    OPTION_MEMORY,
};

struct copy_command {
    const char *source;
    const char *sink;
    const char *state;
    struct tide_table_globs globs;
    bool is_following;
    bool is_keeping;
    bool is_quiet;
    enum tide_sink_existing existing;
    enum tide_refused refused;
    uint64_t chunk_rows;
    uint64_t record_bytes;
    uint64_t memory_bytes;
};

static const struct argp_option option_table[] = {
    {"tables", 't', "GLOB,…", 0, "only tables whose name matches (* and ?)", 0},
    {"follow", 'f', NULL, 0, "go on with changes until stopped", 0},
    {"keep", OPTION_KEEP, NULL, 0, "leave change capture in the source, to go on later", 0},
    {"state", OPTION_STATE, "DIR", 0, "where to keep the state (default: .tidemark/…)", 0},
    {"append", OPTION_APPEND, NULL, 0, "go on behind what the sink's file holds", 0},
    {"overwrite", OPTION_OVERWRITE, NULL, 0, "replace what the sink's file holds", 0},
    {"chunk-rows", OPTION_CHUNK_ROWS, "N", 0, "rows read at once (default 25000)", 0},
    {"max-record-bytes", OPTION_RECORD_BYTES, "N", 0, "longer records are refused (default 921600)",
     0},
    {"refused", OPTION_REFUSED, "ACTION", 0,
     "what becomes of them: dead_letter (default: kept, with a stub in its place), skip or stop",
     0},
    {"memory", OPTION_MEMORY, "BYTES", 0,
     "for all that is held at once, from 8388608 (default 50331648)", 0},
    {"quiet", 'q', NULL, 0, "no progress", 0},
    {0},
};

static enum tide_refused refused_from(const char *word, struct argp_state *state)
{
    for (int i = 0; i <= TIDE_REFUSED_SKIP; i++) {
        if (strcmp(word, tide_refused_name((enum tide_refused)i)) == 0) {
            return (enum tide_refused)i;
        }
    }
    argp_error(state, "--refused takes dead_letter, stop or skip, not \"%s\"", word);
    return TIDE_REFUSED_DEAD_LETTER;
}

static void set_existing(struct copy_command *command, enum tide_sink_existing existing,
                         struct argp_state *state)
{
    if (command->existing != TIDE_EXISTING_REFUSE && command->existing != existing) {
        argp_error(state, "--append goes on behind what is there and --overwrite replaces it; "
                          "choose one");
    }
    command->existing = existing;
}

static error_t parse_flag(int key, struct copy_command *command, struct argp_state *state)
{
    switch (key) {
    case 'f':
        command->is_following = true;
        return 0;
    case 'q':
        command->is_quiet = true;
        return 0;
    case OPTION_KEEP:
        command->is_keeping = true;
        return 0;
    case OPTION_APPEND:
        set_existing(command, TIDE_EXISTING_APPEND, state);
        return 0;
    case OPTION_OVERWRITE:
        set_existing(command, TIDE_EXISTING_OVERWRITE, state);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static error_t parse_argument(struct copy_command *command, char *arg, struct argp_state *state)
{
    if (state->arg_num == 0) {
        command->source = arg;
    } else if (state->arg_num == 1) {
        command->sink = arg;
    } else {
        argp_error(state, "one source and one sink, and then \"%s\"?", arg);
    }
    return 0;
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct copy_command *command = state->input;
    switch (key) {
    case 't':
        tide_table_globs_add(&command->globs, arg, state);
        return 0;
    case OPTION_STATE:
        command->state = arg;
        return 0;
    case OPTION_CHUNK_ROWS:
        command->chunk_rows =
            tide_number_argument(arg, 1, TIDE_CHUNK_ROWS_MAX, "--chunk-rows", state);
        return 0;
    case OPTION_RECORD_BYTES:
        command->record_bytes = tide_number_argument(
            arg, TIDE_RECORD_BYTES_MIN, TIDE_RECORD_BYTES_MAX, "--max-record-bytes", state);
        return 0;
    case OPTION_MEMORY:
        command->memory_bytes = tide_number_argument(arg, TIDE_MEMORY_BYTES_MIN,
                                                     TIDE_MEMORY_BYTES_MAX, "--memory", state);
        return 0;
    case OPTION_REFUSED:
        command->refused = refused_from(arg, state);
        return 0;
    case ARGP_KEY_ARG:
        return parse_argument(command, arg, state);
    case ARGP_KEY_END:
        if (command->sink == NULL) {
            argp_error(state,
                       "a source and a sink are needed, e.g. sqlite:shop.db file:out.ndjson");
        }
        return 0;
    default:
        return parse_flag(key, command, state);
    }
}

static const struct argp parser = {
    .options = option_table,
    .parser = parse_option,
    .args_doc = "SOURCE SINK",
    .doc = "Copies every row of SOURCE, and every change made meanwhile, to SINK. Interrupted, "
           "the same command goes on where it stopped.\v"
           "SOURCE is sqlite:PATH or postgres://USER@HOST/DATABASE. SINK is file:PATH (all frames "
           "in one file), file:DIR/ (a file per table), archive:PATH (rows and changes in one "
           "SQLite file), - (standard output) or null: (encoded and thrown away).",
};

static tide_status run(const struct copy_command *command, struct tide_copy_report *report,
                       struct tide_error *err)
{
    const struct tide_source_ops *source_ops = NULL;
    tide_str source_place;
    struct tide_pipeline_sink sink = {.name = TIDE_STR("sink"),
                                      .existing = command->existing,
                                      .refused.otherwise = command->refused};
    TIDE_TRY(tide_find_source(command->source, &source_ops, &source_place, err));
    TIDE_TRY(tide_find_sink(command->sink, &sink.ops, &sink.place, err));
    struct tide_pipeline_options options = {
        .source_ops = source_ops,
        .source_place = source_place,
        .source_shown = tide_str_from(report->source),
        .connection = tide_connection_name(source_place),
        .globs = command->globs.globs,
        .glob_count = command->globs.count,
        .sinks = &sink,
        .sink_count = 1,
        .state_dir = report->state_dir,
        .name = tide_connection_name(source_place),
        .copy = {.chunk_rows_max = command->chunk_rows},
        .memory_bytes = command->memory_bytes,
        .record_bytes_max = command->record_bytes,
        .is_one_shot = !command->is_following,
    };
    TIDE_TRY(tide_channel_new(NULL, &options.stream, err));
    return tide_run_pipeline(&options, NULL, command->is_quiet, report, err);
}

int tide_command_copy(int argc, char **argv)
{
    struct copy_command command = {.chunk_rows = TIDE_CHUNK_ROWS_DEFAULT,
                                   .record_bytes = TIDE_RECORD_BYTES_DEFAULT,
                                   .memory_bytes = TIDE_MEMORY_BYTES_DEFAULT};
    (void)argp_parse(&parser, argc, argv, 0, NULL, &command);
    struct tide_buf state_dir TIDE_CLEANUP(tide_buf_done) = {0};
    if (command.state != NULL) {
        tide_buf_append_str(&state_dir, tide_str_from(command.state));
    } else {
        tide_state_dir_default(&state_dir, command.source, command.sink);
    }
    struct tide_buf shown TIDE_CLEANUP(tide_buf_done) = {0};
    tide_place_append_shown(&shown, tide_str_from(command.source));
    struct tide_copy_report report = {
        .command = "copy",
        .source = tide_buf_cstr(&shown),
        .sink = command.sink,
        .sink_count = 1,
        .state_dir = tide_buf_cstr(&state_dir),
        .is_following = command.is_following,
        .is_keeping = command.is_keeping,
        .to = strcmp(command.sink, "-") == 0 ? stderr : stdout,
    };
    struct tide_error err = {0};
    tide_status status = run(&command, &report, &err);
    int exit_status = tide_copy_report_end(&report, status, &err);
    tide_findings_done(&report.removed);
    return exit_status;
}
