/* tidemark archive copy: an exact copy of an archive, also while it is written. */
#include "app/archive/archive_commands.h"
#include "base/fsio.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    return tide_archive_arguments_take(state->input, key, arg, state);
}

static const struct argp argp = {
    .parser = parse_option,
    .args_doc = "ARCHIVE NEW",
    .doc = "Copies an archive as it is at one moment, also while it is written.\vNEW must not "
           "exist; it appears under its name once it is whole and on the disk. The copy has no "
           "free pages, and is gone on with like the archive it is of.\n\nExit status: 0 done, "
           "2 wrong usage, no archive, or NEW exists, 3 failed.",
};

/* "DIR/.NAME.tmp" */
static void append_temporary(struct tide_buf *buf, const char *path)
{
    const char *slash = strrchr(path, '/');
    size_t dir = slash == NULL ? 0 : (size_t)(slash - path) + 1;
    tide_buf_append(buf, path, dir);
    tide_buf_printf(buf, ".%s.tmp", path + dir);
}

static tide_status fail_new(const char *path, const char *doing, struct tide_error *err)
{
    return tide_fail(err, errno == EEXIST ? TIDE_INVALID : TIDE_IO, "%s: %s: %s", path, doing,
                     strerror(errno));
}

static tide_status sync_file(const char *path, struct tide_error *err)
{
    TIDE_CLEANUP(tide_fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd >= 0 && fsync(fd) == 0 ? TIDE_OK : fail_new(path, "writing the copy", err);
}

static tide_status sync_dir_of(const char *path, struct tide_error *err)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf dir = {0};
    const char *slash = strrchr(path, '/');
    tide_buf_append_str(&dir, slash == NULL ? TIDE_STR(".")
                                            : tide_str_of(path, (size_t)(slash - path) + 1));
    return tide_dir_sync(tide_buf_cstr(&dir), err);
}

/* Takes its name only where nobody has it. */
static tide_status publish(const char *temporary, const char *path, struct tide_error *err)
{
    TIDE_TRY(sync_file(temporary, err));
    if (renameat2(AT_FDCWD, temporary, AT_FDCWD, path, RENAME_NOREPLACE) != 0) {
        return fail_new(path, "naming the copy", err);
    }
    return sync_dir_of(path, err);
}

static tide_status run(const struct tide_archive_arguments *arguments, struct tide_error *err)
{
    TIDE_CLEANUP(tide_archive_close_ptr) struct tide_archive *archive = NULL;
    TIDE_CLEANUP(tide_buf_done) struct tide_buf temporary = {0};
    const char *to = tide_archive_path(arguments->to);
    TIDE_TRY(tide_archive_open(arguments->path, TIDE_ARCHIVE_READ, &archive, err));
    if (access(to, F_OK) == 0) {
        return tide_fail(err, TIDE_INVALID, "%s is there already; give another name for the copy",
                         to);
    }
    append_temporary(&temporary, to);
    (void)unlink(tide_buf_cstr(&temporary)); /* what a copy that was killed has left */
    (void)umask(0077);
    tide_status status = tide_archive_copy_to(archive, tide_buf_cstr(&temporary), err);
    status = status == TIDE_OK ? publish(tide_buf_cstr(&temporary), to, err) : status;
    if (status != TIDE_OK) {
        (void)unlink(tide_buf_cstr(&temporary));
    }
    return status;
}

int tide_archive_command_copy(int argc, char **argv)
{
    struct tide_archive_arguments arguments = {.to_wanted = "the path of its copy"};
    struct tide_error err = {0};
    (void)argp_parse(&argp, argc, argv, 0, NULL, &arguments);
    return tide_command_end("archive copy", run(&arguments, &err), &err);
}
