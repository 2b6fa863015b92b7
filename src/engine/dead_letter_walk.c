#include "engine/dead_letter_walk.h"

#include "base/alloc.h"
#include "base/fsio.h"
#include "base/limits.h"
#include "engine/dead_letter_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct walk {
    const char *dir;
    int dir_fd;
    tide_dead_letter_each each;
    void *context;
    struct tide_arena arena; /* of one letter */
    const char *path;        /* of the file under way */
};

static void walk_done(struct walk *walk)
{
    tide_fd_close(&walk->dir_fd);
    tide_arena_done(&walk->arena);
}

static tide_status take_line(void *context, const struct tide_dead_letters_line *line,
                             struct tide_error *err)
{
    struct walk *walk = context;
    struct tide_error why = {.message = "the line is too long for a letter"};
    struct tide_dead_letter_read letter;
    bool is_letter = !line->is_cut &&
                     tide_dead_letter_decode(line->text, &walk->arena, &letter, &why) == TIDE_OK;
    const struct tide_dead_letter_found found = {
        .path = walk->path,
        .line_number = line->number,
        .line = line->text,
        .letter = is_letter ? &letter : NULL,
        .why = is_letter ? NULL : why.message,
    };
    tide_status status = walk->each(walk->context, &found, err);
    tide_arena_reset(&walk->arena);
    return status;
}

/* -1 with errno. */
static int open_file(const struct walk *walk, const char *name, struct stat *st)
{
    int fd = openat(walk->dir_fd, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0 && fstat(fd, st) == 0 && S_ISREG(st->st_mode)) {
        return fd;
    }
    int failed = fd >= 0 ? EINVAL : errno;
    tide_fd_close(&fd);
    errno = failed;
    return -1;
}

static tide_status fail_open(const struct walk *walk, const char *name, struct tide_error *err)
{
    return tide_fail(err, TIDE_IO, "cannot read %s/%s: %s", walk->dir, name, strerror(errno));
}

/* As much of it as was there when it was opened: what is cut again lies behind that. */
static tide_status walk_file(struct walk *walk, int fd, const char *name, uint64_t size,
                             struct tide_error *err)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf path = {0};
    uint64_t length;
    tide_buf_printf(&path, "%s/%s", walk->dir, name);
    walk->path = tide_buf_cstr(&path);
    return tide_dead_letters_each_line(fd, walk->path, size, TIDE_DEAD_LETTER_LINE_MAX, take_line,
                                       walk, &length, err);
}

/* `current` is given a number while we look: then it is read last, with what was there before. */
static tide_status walk_full_file(struct walk *walk, uint64_t number, const struct stat *current,
                                  struct tide_error *err)
{
    char name[TIDE_DEAD_LETTERS_NAME_MAX];
    struct stat st;
    tide_dead_letters_name(number, name);
    TIDE_CLEANUP(tide_fd_close) int fd = open_file(walk, name, &st);
    if (fd < 0) {
        return errno == ENOENT ? TIDE_OK : fail_open(walk, name, err);
    }
    if (current != NULL && st.st_dev == current->st_dev && st.st_ino == current->st_ino) {
        return TIDE_OK;
    }
    return walk_file(walk, fd, name, (uint64_t)st.st_size, err);
}

tide_status tide_dead_letter_walk(const char *dir, tide_dead_letter_each each, void *context,
                                  struct tide_error *err)
{
    TIDE_CLEANUP(walk_done)
    struct walk walk = {.dir = dir, .dir_fd = -1, .each = each, .context = context};
    TIDE_CLEANUP(tide_free_ptr) uint64_t *numbers = NULL;
    size_t count = 0;
    struct stat st;
    TIDE_TRY(tide_dir_open(dir, &walk.dir_fd, err));
    /* opened before the others are listed, so that one that becomes full meanwhile is seen */
    TIDE_CLEANUP(tide_fd_close) int fd = open_file(&walk, TIDE_DEAD_LETTERS_FILE, &st);
    if (fd < 0 && errno != ENOENT) {
        return fail_open(&walk, TIDE_DEAD_LETTERS_FILE, err);
    }
    TIDE_TRY(tide_dead_letters_list(walk.dir_fd, dir, &numbers, &count, err));
    for (size_t i = 0; i < count; i++) {
        TIDE_TRY(walk_full_file(&walk, numbers[i], fd >= 0 ? &st : NULL, err));
    }
    return fd < 0 ? TIDE_OK
                  : walk_file(&walk, fd, TIDE_DEAD_LETTERS_FILE, (uint64_t)st.st_size, err);
}
