/* tidemark detach: takes out of a source what copies have put there. */
#include "app/adapters.h"
#include "app/commands.h"
#include "app/config/config.h"
#include "app/one_argument.h"
#include "app/verify/findings_print.h"

#include <argp.h>
#include <unistd.h>

struct detach_command {
    const char *source;
    const char *pipeline;
};

static const struct argp_option option_table[] = {
    {"pipeline", 'p', "NAME", 0, "only what this pipeline put there (default: of all)", 0},
    {0},
};

static const struct tide_one_argument argument = {
    .wanted = "one source",
    .needed = "a source or a configuration is needed, e.g. sqlite:shop.db",
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct detach_command *command = state->input;
    switch (key) {
    case 'p':
        command->pipeline = arg;
        return 0;
    default:
        return tide_one_argument_parse(&argument, key, arg, state, &command->source);
    }
}

static const struct argp parser = {
    .options = option_table,
    .parser = parse_option,
    .args_doc = "FILE|SOURCE",
    .doc = "Removes from SOURCE what copies have put there (SQLite: triggers, change log; "
           "PostgreSQL: publication, replication slot). A copy that still follows an SQLite file "
           "stops; a slot in use is left alone. A state cannot be gone on from afterwards.\v"
           "FILE is a configuration: its name ends in .yaml or .yml. Then only what its pipeline "
           "has put there is removed, and its next run starts anew.",
};

static tide_status run(const struct detach_command *command, struct tide_findings *findings,
                       struct tide_error *err)
{
    const struct tide_source_ops *ops = NULL;
    struct tide_source *source = NULL;
    tide_str place;
    TIDE_TRY(tide_find_source(command->source, &ops, &place, err));
    struct tide_source_options options = {
        .place = place,
        .connection = tide_connection_name(place),
        .pipeline = command->pipeline == NULL ? TIDE_STR("") : tide_str_from(command->pipeline),
    };
    TIDE_TRY(ops->open(&options, &source, err));
    tide_status status = ops->detach(source, findings, err);
    ops->close(source);
    return status;
}

/* The pipeline is opened without its sinks: they have no part in this. */
static tide_status detach_pipeline(const struct tide_config *config, struct tide_findings *findings,
                                   struct tide_error *err)
{
    struct tide_pipeline_options options = {0};
    struct tide_pipeline *pipeline = NULL;
    struct tide_buf notes TIDE_CLEANUP(tide_buf_done) = {0};
    struct tide_waker waker;
    TIDE_TRY(tide_config_pipeline(config, &options, err));
    options.sink_count = 0;
    options.glob_count = 0; /* what was put there may be of tables that are no longer chosen */
    tide_waker_init(&waker);
    tide_status status = tide_pipeline_open(&options, &waker, &pipeline, &notes, err);
    (void)fprintf(stderr, "%.*s", TIDE_STR_ARG(tide_buf_str(&notes)));
    if (status == TIDE_OK) {
        status = tide_pipeline_detach(pipeline, findings, err);
        tide_pipeline_free(pipeline);
    }
    tide_waker_done(&waker);
    return status;
}

/* The files stay, and the next run would be refused over them. */
static void note_next_run(const struct tide_config *config, const char *file,
                          struct tide_findings *findings)
{
    struct tide_buf what TIDE_CLEANUP(tide_buf_done) = {0};
    for (size_t i = 0; i < config->sink_count; i++) {
        const struct tide_pipeline_sink *sink = &config->sinks[i];
        if (sink->ops->check != NULL && sink->existing == TIDE_EXISTING_REFUSE) {
            tide_buf_printf(&what, "%s%.*s", what.len > 0 ? ", " : "what was copied stays, to ",
                            TIDE_STR_ARG(sink->name));
        }
    }
    if (what.len > 0) {
        struct tide_buf remedy TIDE_CLEANUP(tide_buf_done) = {0};
        tide_buf_printf(&remedy,
                        "the next run of %s starts anew: say there existing: append, or existing: "
                        "overwrite, or another place",
                        file);
        tide_findings_add(findings, false, tide_buf_str(&what), tide_buf_str(&remedy));
    }
}

static tide_status run_file(const struct detach_command *command, struct tide_findings *findings,
                            struct tide_error *err)
{
    struct tide_config config TIDE_CLEANUP(tide_config_done) = {0};
    if (command->pipeline != NULL) {
        return tide_fail(err, TIDE_INVALID, "--pipeline is for a source; %s is of one pipeline",
                         command->source);
    }
    TIDE_TRY(tide_config_load(command->source, &config, err));
    if (access(config.state_dir, F_OK) != 0) {
        (void)printf("%s was never run: %s is not there\n", command->source, config.state_dir);
        return TIDE_OK;
    }
    TIDE_TRY(detach_pipeline(&config, findings, err));
    note_next_run(&config, command->source, findings);
    return TIDE_OK;
}

int tide_command_detach(int argc, char **argv)
{
    struct detach_command command = {0};
    struct tide_error err = {0};
    struct tide_findings findings = {0};
    (void)argp_parse(&parser, argc, argv, 0, NULL, &command);
    if (command.pipeline != NULL && command.pipeline[0] == '\0') {
        (void)fprintf(stderr, "tidemark: detach: --pipeline needs a name\n");
        return TIDE_EXIT_USAGE;
    }
    tide_status status = tide_config_is_file(command.source) ? run_file(&command, &findings, &err)
                                                             : run(&command, &findings, &err);
    size_t problems = tide_findings_print(stdout, &findings);
    tide_findings_done(&findings);
    int code = tide_command_end("detach", status, &err);
    /* A name that nobody has may be a slip: what was to be removed is still there. */
    bool is_missed = command.pipeline != NULL && problems > 0;
    return code == TIDE_EXIT_DONE && is_missed ? TIDE_EXIT_NO : code;
}
