/*
 * The one table of commands. A new command is two lines, in the order of --help:
 *     its declaration in commands.h   int tide_command_<name>(int argc, char **argv);
 *     its row below                   {"<name>", tide_command_<name>, "what it does"},
 */
#include "app/commands.h"

#include <stddef.h>

/* clang-format off */
const struct tide_command tide_commands[] = {
    {"copy", tide_command_copy, "copy a source to a sink, and follow it"},
    {"run", tide_command_run, "run the pipeline of a configuration file"},
    {"status", tide_command_status, "say what a pipeline is doing"},
    {"backfill", tide_command_backfill, "copy tables anew, to one sink or all"},
    {"pause", tide_command_pause, "let a sink wait, and the others go on"},
    {"resume", tide_command_resume, "let a paused sink go on"},
    {"check", tide_command_check, "say what would keep a source from being copied"},
    {"detach", tide_command_detach, "remove what copies have put into a source"},
    {"verify", tide_command_verify, "tell complete snapshots from truncated ones"},
    {"dead-letters", tide_command_dead_letters, "look at records that sinks did not take, copy them anew"},
    {"archive", tide_command_archive, "look into archives, and keep them in order"},
    {"checkpoint", tide_command_checkpoint, "look at a checkpoint, or import one"},
    {NULL, NULL, NULL},
};
/* clang-format on */
