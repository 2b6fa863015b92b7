/*
 * The one table of commands. A new command is two lines, in the order of --help:
 *     its declaration in commands.h   int tide_command_<name>(int argc, char **argv);
 *     its row below                   {"<name>", tide_command_<name>, "what it does"},
 */
#include "app/commands.h"

#include <stddef.h>

/* clang-format off */
const struct tide_command tide_commands[] = {
    {"verify", tide_command_verify, "tell complete snapshots from truncated ones"},
    {"checkpoint", tide_command_checkpoint, "look at a checkpoint, or import one"},
    {NULL, NULL, NULL},
};
/* clang-format on */
