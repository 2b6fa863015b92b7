/*
 * The commands of `tidemark archive`, in a table of their own; and what they share.
 * A command is `int tide_archive_command_<name>(int argc, char **argv)` in
 * command_archive_<name>.c, as tide_command_<name> is (commands.h).
 */
#pragma once

#include "app/archive/archive_arguments.h"
#include "app/commands.h"
#include "archive/container.h"

/* Every command in the order --help lists them; the last one has a NULL name. */
extern const struct tide_command tide_archive_commands[];

/* The commands themselves; what each does is its line in the table. */
int tide_archive_command_cat(int argc, char **argv);
int tide_archive_command_compact(int argc, char **argv);
int tide_archive_command_copy(int argc, char **argv);
int tide_archive_command_export(int argc, char **argv);
int tide_archive_command_info(int argc, char **argv);
int tide_archive_command_publish(int argc, char **argv);
int tide_archive_command_retain(int argc, char **argv);
int tide_archive_command_subscribe(int argc, char **argv);
int tide_archive_command_tables(int argc, char **argv);
int tide_archive_command_verify(int argc, char **argv);

/** Opens an archive alone, or beside a pipeline that writes it. */
tide_status tide_archive_open_to_edit(const char *path, struct tide_archive **ret_archive,
                                      struct tide_error *err);

/** Opens an archive alone, for `what` ("compact"); in use: a message that says so. */
tide_status tide_archive_open_alone(const char *path, const char *what,
                                    struct tide_archive **ret_archive, struct tide_error *err);
