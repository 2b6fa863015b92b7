/* tidemark archive: commands that read archives and keep them in order. */
#include "app/archive/archive_commands.h"

#include <stdio.h>
#include <string.h>

/* clang-format off */
const struct tide_command tide_archive_commands[] = {
    {"info", tide_archive_command_info, "say what is in an archive, and whether it is written"},
    {"tables", tide_archive_command_tables, "list its tables: rows, changes, complete copies"},
    {"cat", tide_archive_command_cat, "print a table as it was, or its changes"},
    {"export", tide_archive_command_export, "write tables as Parquet files"},
    {"verify", tide_archive_command_verify, "check that an archive is sound"},
    {"copy", tide_archive_command_copy, "copy an archive, also one that is being written"},
    {"compact", tide_archive_command_compact, "join small segments into larger ones"},
    {"retain", tide_archive_command_retain, "forget what is older than a moment"},
    {"publish", tide_archive_command_publish, "send an archive to those that follow it"},
    {"subscribe", tide_archive_command_subscribe, "follow an archive that is published"},
    {NULL, NULL, NULL},
};

/* clang-format on */

tide_status tide_archive_open_alone(const char *path, const char *what,
                                    struct tide_archive **ret_archive, struct tide_error *err)
{
    tide_status status = tide_archive_open(path, TIDE_ARCHIVE_EDIT, ret_archive, err);
    if (status == TIDE_TIMEOUT) {
        return tide_fail_retriable(err, TIDE_TIMEOUT,
                                   "%s is in use by another program: %s wants it alone; stop what "
                                   "reads or writes it, and try again",
                                   path, what);
    }
    return status;
}

tide_status tide_archive_open_to_edit(const char *path, struct tide_archive **ret_archive,
                                      struct tide_error *err)
{
    tide_status status = tide_archive_open(path, TIDE_ARCHIVE_EDIT, ret_archive, err);
    return status == TIDE_TIMEOUT
               ? tide_archive_open(path, TIDE_ARCHIVE_EDIT_BESIDE, ret_archive, err)
               : status;
}

static int print_help(void)
{
    (void)puts("Usage: tidemark archive COMMAND ARCHIVE [ARGUMENT...]\n"
               "Looks into archives, also while they are written, and keeps them in order.\n\n"
               "Commands:");
    tide_commands_list(stdout, tide_archive_commands);
    (void)puts("\nARCHIVE is the path of the file; archive:PATH is the same.\n\n"
               "  tidemark archive COMMAND --help   what a command takes\n\n"
               "Exit status: 0 done, 1 the answer is no, 2 wrong usage, 3 failed.");
    return TIDE_EXIT_DONE;
}

int tide_command_archive(int argc, char **argv)
{
    if (argc < 2) {
        (void)fputs("tidemark: archive: say what to do; see tidemark archive --help\n", stderr);
        return TIDE_EXIT_USAGE;
    }
    const char *name = argv[1];
    if (strcmp(name, "--help") == 0 || strcmp(name, "-?") == 0 || strcmp(name, "help") == 0) {
        return print_help();
    }
    const struct tide_command *command = tide_commands_find(tide_archive_commands, name);
    if (command == NULL) {
        return tide_commands_unknown("tidemark archive", tide_archive_commands, name);
    }
    char full_name[64];
    (void)snprintf(full_name, sizeof(full_name), "tidemark archive %s", name);
    argv[1] = full_name;
    return command->run(argc - 1, argv + 1);
}
