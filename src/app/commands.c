#include "app/commands.h"

#include "app/config/nearest.h"
#include "base/log.h"

#include <stdio.h>
#include <string.h>

static int print_version(void)
{
    (void)puts("tidemark " TIDE_VERSION);
    return TIDE_EXIT_DONE;
}

void tide_commands_list(FILE *to, const struct tide_command *commands)
{
    for (const struct tide_command *command = commands; command->name != NULL; command++) {
        (void)fprintf(to, "  %-14s %s\n", command->name, command->help);
    }
}

static int print_help(const struct tide_command *commands)
{
    (void)puts("Usage: tidemark COMMAND [ARGUMENT...]\n"
               "Keeps copies of live data and proves that they are complete.\n");
    if (commands->name != NULL) {
        (void)puts("Commands:");
        tide_commands_list(stdout, commands);
        (void)putchar('\n');
    }
    (void)puts(
        "  tidemark COMMAND --help   what a command takes\n"
        "  tidemark --version        the version\n\n"
        "Exit status: 0 done, 1 the answer is no, 2 wrong usage or configuration, 3 failed.");
    return TIDE_EXIT_DONE;
}

const struct tide_command *tide_commands_find(const struct tide_command *commands, const char *name)
{
    for (const struct tide_command *command = commands; command->name != NULL; command++) {
        if (strcmp(command->name, name) == 0) {
            return command;
        }
    }
    return NULL;
}

/* Names are collected into an array because the nearest is looked for among plain words. */
static const char *nearest_command(const struct tide_command *commands, const char *name)
{
    const char *names[64];
    size_t count = 0;
    while (count < 64 && commands[count].name != NULL) {
        names[count] = commands[count].name;
        count++;
    }
    return tide_nearest(name, names, count);
}

int tide_commands_unknown(const char *program, const struct tide_command *commands,
                          const char *name)
{
    const char *kind = name[0] == '-' ? "option" : "command";
    const char *nearest = nearest_command(commands, name);
    if (nearest != NULL) {
        (void)fprintf(stderr, "%s: there is no %s '%s'; did you mean '%s'?\n", program, kind, name,
                      nearest);
    } else {
        (void)fprintf(stderr, "%s: there is no %s '%s'; see %s --help\n", program, kind, name,
                      program);
    }
    return TIDE_EXIT_USAGE;
}

int tide_commands_run(const struct tide_command *commands, int argc, char **argv)
{
    if (argc < 2) {
        (void)fputs("tidemark: a command is missing; see tidemark --help\n", stderr);
        return TIDE_EXIT_USAGE;
    }
    const char *name = argv[1];
    if (strcmp(name, "--help") == 0 || strcmp(name, "-?") == 0 || strcmp(name, "help") == 0) {
        return print_help(commands);
    }
    if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0) {
        return print_version();
    }
    const struct tide_command *command = tide_commands_find(commands, name);
    if (command == NULL) {
        return tide_commands_unknown("tidemark", commands, name);
    }
    char full_name[64];
    (void)snprintf(full_name, sizeof(full_name), "tidemark %s", name);
    argv[1] = full_name;
    return command->run(argc - 1, argv + 1);
}

enum tide_exit tide_exit_from(tide_status status)
{
    switch (status) {
    case TIDE_OK:
    case TIDE_END:
        return TIDE_EXIT_DONE;
    case TIDE_INVALID:
        return TIDE_EXIT_USAGE;
    case TIDE_CANCELLED:
    case TIDE_CORRUPT:
    case TIDE_UNSUPPORTED:
    case TIDE_IO:
    case TIDE_REMOTE:
    case TIDE_CLOSED:
    case TIDE_TIMEOUT:
    case TIDE_STALE:
        break;
    }
    return TIDE_EXIT_FAILED;
}

int tide_command_end(const char *command, tide_status status, const struct tide_error *err)
{
    enum tide_exit result = tide_exit_from(status);
    if (result != TIDE_EXIT_DONE) {
        struct tide_error shown = *err;
        tide_log_make_safe(shown.message, strlen(shown.message));
        (void)fflush(stdout);
        (void)fprintf(stderr, "tidemark: %s: %s\n", command, shown.message);
    }
    return result;
}
