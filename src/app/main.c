#include "app/commands.h"

#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

const char *argp_program_version = "tidemark " TIDE_VERSION;

/* A result that did not reach its reader must not look done: this runs on every way out, argp's
 * --help included. A reader that left early (`| head`) is told by the exit status alone. */
static void check_standard_output(void)
{
    bool failed = ferror(stdout) != 0;
    errno = 0;
    if (fflush(stdout) != 0 || failed) {
        if (errno != EPIPE) {
            (void)fprintf(stderr, "tidemark: standard output could not be written: %s\n",
                          errno != 0 ? strerror(errno) : "an earlier write failed");
        }
        _exit(TIDE_EXIT_FAILED);
    }
}

/* A standard descriptor that was closed would be given to the next file that is opened, which what
 * is said to people would then be written into. What stands in for it fails as it did. */
static void hold_standard_descriptors(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) < 0 &&
            open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd) {
            _exit(TIDE_EXIT_FAILED);
        }
    }
}

/* Batches are made by one thread and freed by others: with a heap for each thread, what is free in
 * one is of no use to the others, and a fifth more is resident. Nothing is reserved for a row, so
 * the threads do not meet there. */
static void share_one_heap(void)
{
    (void)mallopt(M_ARENA_MAX, 1);
}

/* A file for each table may be many files: what is granted is used. */
static void raise_open_files(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

int main(int argc, char **argv)
{
    hold_standard_descriptors();
    argp_err_exit_status = TIDE_EXIT_USAGE;
    /* A closed pipe or socket is an error of the write that meets it, not the end of the program.
     */
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGXFSZ, SIG_IGN); /* a file that may not grow is an error of the write, too */
    share_one_heap();
    raise_open_files();
    (void)atexit(check_standard_output);
    return tide_commands_run(tide_commands, argc, argv);
}
