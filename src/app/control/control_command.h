/*
 * What backfill, pause and resume share: a request is done by the pipeline that runs, else in the
 * newest checkpoint, for the next run. Either way it is durable before the command ends.
 */
#pragma once

#include "app/control/control_message.h"

#include <argp.h>
#include <stdbool.h>

struct tide_control_command {
    const char *name; /* also of the request */
    const char *file;
    const char *sink; /* NULL: not given */
};

/** For argp: takes the argument FILE, which is needed; `argp` otherwise. */
error_t tide_control_command_argument(struct tide_control_command *command, int key, char *arg,
                                      struct argp_state *state);

/**
 * Does the request of the command. `ret_is_running`: by the pipeline that runs. The answer, whose
 * status is TIDE_OK, lives in `arena`.
 */
tide_status tide_control_command_do(const struct tide_control_command *command,
                                    const tide_str *tables, size_t table_count,
                                    struct tide_arena *arena,
                                    struct tide_control_answer *ret_answer, bool *ret_is_running,
                                    struct tide_error *err);

/** Appends "all", "all and tables", … */
void tide_control_append_names(struct tide_buf *buf, const tide_str *names, size_t count);

/** All of `tidemark pause` or `tidemark resume`: argp's parser is of the name and doc given. */
int tide_control_pause_command(const char *name, const char *doc, const char *done, int argc,
                               char **argv);
