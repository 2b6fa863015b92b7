/* tidemark run: the pipeline of a configuration, until it is stopped. */
#include "app/commands.h"
#include "app/config/config.h"
#include "app/one_argument.h"
#include "app/pipeline/run_pipeline.h"

#include <argp.h>

struct run_command {
    const char *file;
    bool is_quiet;
};

static const struct argp_option option_table[] = {
    {"quiet", 'q', NULL, 0, "no progress", 0},
    {0},
};

static const struct tide_one_argument argument = {
    .wanted = "one configuration",
    .needed = "a configuration is needed, e.g. shop.yaml",
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct run_command *command = state->input;
    switch (key) {
    case 'q':
        command->is_quiet = true;
        return 0;
    default:
        return tide_one_argument_parse(&argument, key, arg, state, &command->file);
    }
}

static const struct argp parser = {
    .options = option_table,
    .parser = parse_option,
    .args_doc = "FILE",
    .doc =
        "Copies what the configuration FILE says to its sinks, each at its own pace, and follows "
        "the changes until it is stopped. The same command again goes on where it stopped; a "
        "sink that was added meanwhile gets its own copy.\v"
        "Relative paths in FILE are of its folder. `tidemark check FILE` tries it without "
        "changing anything.",
};

/* "a, b and c" */
static void append_sinks(struct tide_buf *buf, const struct tide_config *config)
{
    for (size_t i = 0; i < config->sink_count; i++) {
        const char *between = i == 0 ? "" : i + 1 < config->sink_count ? ", " : " and ";
        tide_buf_printf(buf, "%s%.*s", between, TIDE_STR_ARG(config->sinks[i].name));
    }
}

static tide_status run(const struct tide_config *config, bool is_quiet,
                       struct tide_copy_report *report, struct tide_error *err)
{
    struct tide_pipeline_options options = {0};
    TIDE_TRY(tide_config_pipeline(config, &options, err));
    return tide_run_pipeline(&options, tide_config_file_name(config), is_quiet, report, err);
}

int tide_command_run(int argc, char **argv)
{
    struct run_command command = {0};
    struct tide_config config TIDE_CLEANUP(tide_config_done) = {0};
    struct tide_buf sinks TIDE_CLEANUP(tide_buf_done) = {0};
    struct tide_error err = {0};
    (void)argp_parse(&parser, argc, argv, 0, NULL, &command);
    tide_status status = tide_config_load(command.file, &config, &err);
    if (status != TIDE_OK) {
        return tide_command_end("run", status, &err);
    }
    append_sinks(&sinks, &config);
    struct tide_copy_report report = {
        .command = "run",
        .configuration = command.file,
        .source = config.source_shown.ptr,
        .sink = tide_buf_cstr(&sinks),
        .sink_count = config.sink_count,
        .state_dir = config.state_dir,
        .is_following = true,
        .to = config.writes_standard_output ? stderr : stdout,
    };
    status = run(&config, command.is_quiet, &report, &err);
    int exit_status = tide_copy_report_end(&report, status, &err);
    tide_findings_done(&report.removed);
    return exit_status;
}
