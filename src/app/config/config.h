/* The configuration of one pipeline: what its file says, ready to be run. See
 * docs/configuration.md.
 */
#pragma once

#include "app/config/mistakes.h"
#include "engine/pipeline.h"

#define TIDE_CONFIG_GLOBS_MAX 256

/* Everything lives in `arena`. */
struct tide_config {
    struct tide_arena arena;
    const char *file; /* as the user wrote it */
    const char *dir;  /* where the file is: what relative paths in it are of */
    tide_str name;
    const struct tide_source_ops *source_ops;
    tide_str source_place;
    tide_str source_shown; /* as the file has it, a password masked */
    tide_str *globs;
    size_t glob_count;
    struct tide_pipeline_sink *sinks;
    tide_str *sink_places; /* whole ones, with what they name expanded: not to be shown */
    size_t sink_count;
    const char *state_dir; /* absolute, unless the file is in the working directory */
    uint64_t chunk_rows;
    uint64_t lane_items;
    uint64_t lane_bytes;
    uint64_t max_retained_bytes; /* 0: any */
    uint64_t stalled_after_s;
    uint64_t retry_max_s;
    uint64_t record_bytes;
    uint64_t memory_bytes;
    struct tide_dead_letter_limits dead_letters;
    bool writes_standard_output;              /* a sink is `-` */
    const struct tide_yaml_node *detach_node; /* while it is read */
};

/** Frees what it holds; `{0}` holds nothing. For TIDE_CLEANUP too. */
void tide_config_done(struct tide_config *config);

/** Whether a command's SOURCE is the name of a configuration: it ends in .yaml or .yml. */
bool tide_config_is_file(const char *argument);

/**
 * Reads a configuration and all that it names in the environment and in files. Everything that is
 * wrong goes to `mistakes`; with one or more of them `ret_config` is not fit for use.
 *
 * Errors:  TIDE_IO the file cannot be read; TIDE_INVALID it has mistakes: `err` says how many.
 */
tide_status tide_config_read(const char *file, struct tide_config *ret_config,
                             struct tide_mistakes *mistakes, struct tide_error *err);

/** The same of a file's bytes; `file` gives the folder. */
tide_status tide_config_parse(const char *file, tide_str bytes, struct tide_config *ret_config,
                              struct tide_mistakes *mistakes, struct tide_error *err);

/**
 * Reads a configuration for a command: says its mistakes on standard error, then makes its folder
 * the working directory, so that relative places in it are found.
 */
tide_status tide_config_load(const char *file, struct tide_config *ret_config,
                             struct tide_error *err);

/** The file's name in its folder: what it is called after load. */
const char *tide_config_file_name(const struct tide_config *config);

/**
 * Appends the state directory that a configuration names, for commands that need no more of it:
 * mistakes and secrets in its other keys do not matter. What is wrong is said on standard error.
 */
tide_status tide_config_state_dir(const char *file, struct tide_buf *dir, struct tide_error *err);

/** The pipeline it describes; borrows from `config`. Makes the stream, which the pipeline takes
 * over. */
tide_status tide_config_pipeline(const struct tide_config *config,
                                 struct tide_pipeline_options *ret_options, struct tide_error *err);
