/* tidemark check: what would keep a copy of a source from working. Changes nothing. */
#include "app/adapters.h"
#include "app/commands.h"
#include "app/config/config.h"
#include "app/config/table_globs.h"
#include "app/one_argument.h"
#include "app/pipeline/apart.h"
#include "app/verify/findings_print.h"
#include "base/alloc.h"
#include "engine/sink_check.h"

#include <argp.h>

struct check_command {
    const char *source;
    struct tide_table_globs globs;
};

static const struct argp_option option_table[] = {
    {"tables", 't', "GLOB,…", 0, "only tables whose name matches (* and ?)", 0},
    {0},
};

static const struct tide_one_argument argument = {
    .wanted = "one source",
    .needed = "a source or a configuration is needed, e.g. sqlite:shop.db",
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct check_command *command = state->input;
    switch (key) {
    case 't':
        tide_table_globs_add(&command->globs, arg, state);
        return 0;
    default:
        return tide_one_argument_parse(&argument, key, arg, state, &command->source);
    }
}

static const struct argp parser = {
    .options = option_table,
    .parser = parse_option,
    .args_doc = "FILE|SOURCE",
    .doc =
        "Says what would keep a copy of SOURCE from working or from being exact, and what "
        "mends it. Changes nothing. Exit status 1 when there is a problem.\v"
        "FILE is a configuration: its name ends in .yaml or .yml. Its mistakes are said first; its "
        "state and its sinks are looked at too.",
};

static void list_tables(const struct tide_relation *const *tables, size_t count)
{
    (void)printf("%zu %s can be copied:\n", count, count == 1 ? "table" : "tables");
    for (size_t i = 0; i < count; i++) {
        const struct tide_relation *table = tables[i];
        (void)printf("    ");
        tide_print_name(stdout, table->schema);
        (void)fputs(table->schema.len > 0 ? "." : "", stdout);
        tide_print_name(stdout, table->name);
        for (size_t k = 0; k < table->key_count; k++) {
            (void)fputs(k > 0 ? ", " : " (", stdout);
            tide_print_name(stdout, table->columns[table->key_columns[k]].name);
        }
        (void)fputs(table->key_count > 0 ? ")\n" : "\n", stdout);
    }
}

static size_t count_problems(const struct tide_findings *findings)
{
    size_t count = 0;
    for (size_t i = 0; i < findings->count; i++) {
        count += findings->items[i].is_problem;
    }
    return count;
}

static tide_status check_source(const struct tide_source_ops *ops, struct tide_source *source,
                                struct tide_findings *findings, struct tide_error *err)
{
    const struct tide_relation *const *tables = NULL;
    size_t count = 0;
    TIDE_TRY(ops->check(source, findings, err));
    tide_status status = ops->tables(source, &tables, &count, err);
    if (status == TIDE_OK) {
        list_tables(tables, count);
    }
    /* the problems say why */
    return status == TIDE_INVALID && count_problems(findings) > 0 ? TIDE_OK : status;
}

static tide_status open_and_check(const struct tide_source_ops *ops,
                                  const struct tide_source_options *options,
                                  struct tide_findings *findings, struct tide_error *err)
{
    struct tide_source *source = NULL;
    TIDE_TRY(ops->open(options, &source, err));
    tide_status status = check_source(ops, source, findings, err);
    ops->close(source);
    return status;
}

/* Sinks whose places are refused are not looked at further: what they would find is not theirs. */
static tide_status check_sinks(struct tide_pipeline_options *options, const bool *is_refused,
                               struct tide_findings *findings, struct tide_error *err)
{
    TIDE_CLEANUP(tide_free_ptr)
    struct tide_pipeline_sink *left = tide_alloc(options->sink_count, sizeof(*left));
    size_t count = 0;
    for (size_t i = 0; i < options->sink_count; i++) {
        if (!is_refused[i]) {
            left[count++] = options->sinks[i];
        }
    }
    options->sinks = left;
    options->sink_count = count;
    return tide_pipeline_check_sinks(options, findings, err);
}

/* What is beside the source: places that are its own, the state, the sinks. */
static tide_status check_targets(const struct tide_config *config, struct tide_findings *findings,
                                 struct tide_error *err)
{
    struct tide_pipeline_options options = {0};
    TIDE_TRY(tide_config_pipeline(config, &options, err));
    TIDE_CLEANUP(tide_free_ptr)
    bool *is_refused = tide_alloc(options.sink_count, sizeof(*is_refused));
    tide_check_each_apart(&options, tide_config_file_name(config), findings, is_refused);
    tide_status status = check_sinks(&options, is_refused, findings, err);
    if (status == TIDE_OK) {
        status = tide_pipeline_check_source(&options, findings, err);
    }
    options.stream->ops->free(options.stream);
    return status;
}

static tide_status run(const struct check_command *command, struct tide_findings *findings,
                       struct tide_error *err)
{
    const struct tide_source_ops *ops = NULL;
    tide_str place;
    TIDE_TRY(tide_find_source(command->source, &ops, &place, err));
    struct tide_source_options options = {
        .place = place,
        .connection = tide_connection_name(place),
        .globs = command->globs.globs,
        .glob_count = command->globs.count,
    };
    return open_and_check(ops, &options, findings, err);
}

static tide_status run_file(const struct check_command *command, struct tide_findings *findings,
                            struct tide_error *err)
{
    struct tide_config config TIDE_CLEANUP(tide_config_done) = {0};
    if (command->globs.count > 0) {
        return tide_fail(err, TIDE_INVALID, "--tables is for a source; %s says which it takes",
                         command->source);
    }
    TIDE_TRY(tide_config_load(command->source, &config, err));
    struct tide_source_options options = {
        .place = config.source_place,
        .connection = tide_connection_name(config.source_place),
        .globs = config.globs,
        .glob_count = config.glob_count,
    };
    /* first, so that a source which cannot be reached hides nothing of the rest */
    TIDE_TRY(check_targets(&config, findings, err));
    return open_and_check(config.source_ops, &options, findings, err);
}

int tide_command_check(int argc, char **argv)
{
    struct check_command command = {0};
    struct tide_error err = {0};
    struct tide_findings findings = {0};
    (void)argp_parse(&parser, argc, argv, 0, NULL, &command);
    tide_status status = tide_config_is_file(command.source) ? run_file(&command, &findings, &err)
                                                             : run(&command, &findings, &err);
    size_t problems = tide_findings_print(stdout, &findings);
    tide_findings_done(&findings);
    if (status != TIDE_OK) {
        return tide_command_end("check", status, &err);
    }
    if (problems == 0) {
        (void)printf("ready to be copied\n");
    } else {
        (void)printf("%zu %s\n", problems, problems == 1 ? "problem" : "problems");
    }
    return problems == 0 ? TIDE_EXIT_DONE : TIDE_EXIT_NO;
}
