/*
 * The commands of the program: one table, one line a command.
 *
 * A command is `int tide_command_<name>(int argc, char **argv)` in command_<name>.c. It reads its
 * arguments with argp, which answers --help and leaves with TIDE_EXIT_USAGE on wrong ones; argv[0]
 * is "tidemark <name>", so argp's messages name the command. It returns an enum tide_exit.
 */
#pragma once

#include "base/status.h"

#include <stdio.h>

/* What the exit status says, in every command. */
enum tide_exit {
    TIDE_EXIT_DONE = 0,
    TIDE_EXIT_NO = 1,     /* the answer is no: not complete, differs, not ready */
    TIDE_EXIT_USAGE = 2,  /* wrong usage or configuration */
    TIDE_EXIT_FAILED = 3, /* could not be read, reached or written */
};

struct tide_command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *help; /* one line, under 60 characters, no full stop */
};

/* Every command in the order --help lists them; the last one has a NULL name. */
extern const struct tide_command tide_commands[];

/* The commands themselves; what each does is its line in the table. */
int tide_command_archive(int argc, char **argv);
int tide_command_backfill(int argc, char **argv);
int tide_command_check(int argc, char **argv);
int tide_command_checkpoint(int argc, char **argv);
int tide_command_copy(int argc, char **argv);
int tide_command_dead_letters(int argc, char **argv);
int tide_command_detach(int argc, char **argv);
int tide_command_pause(int argc, char **argv);
int tide_command_resume(int argc, char **argv);
int tide_command_run(int argc, char **argv);
int tide_command_status(int argc, char **argv);
int tide_command_verify(int argc, char **argv);

/**
 * Runs the command line: `tidemark COMMAND …`, --help or --version.
 *
 * Shape:   argv as main gets it; argv[0] of the command is replaced by "tidemark COMMAND".
 * Errors:  an enum tide_exit; usage errors have been said on standard error.
 */
int tide_commands_run(const struct tide_command *commands, int argc, char **argv);

/* For commands that have commands of their own, in a table of the same form. */

/** The command of that name, or NULL. */
const struct tide_command *tide_commands_find(const struct tide_command *commands,
                                              const char *name);

/** Says that `program` ("tidemark") has no such command, and which was meant; TIDE_EXIT_USAGE. */
int tide_commands_unknown(const char *program, const struct tide_command *commands,
                          const char *name);

/** Prints a line for each. */
void tide_commands_list(FILE *to, const struct tide_command *commands);

/** The exit status a status stands for: TIDE_OK and TIDE_END are done, TIDE_INVALID is usage. */
enum tide_exit tide_exit_from(tide_status status);

/**
 * Ends a command: says "tidemark: COMMAND: message" on standard error when `status` is a failure
 * and returns tide_exit_from(status). Call as `return tide_command_end("copy", status, &err);`.
 */
int tide_command_end(const char *command, tide_status status, const struct tide_error *err);
