#include "engine/dead_letter_marks.h"

#include "base/fsio.h"
#include "engine/dead_letter_files.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINE_LEN (TIDE_DEAD_LETTER_ID_LEN + 1)

static tide_status fail_errno(const char *dir, const char *what, struct tide_error *err)
{
    return tide_fail(err, TIDE_IO, "cannot %s %s/%s: %s", what, dir, TIDE_DEAD_LETTERS_MARKS,
                     strerror(errno));
}

static tide_status take_line(void *context, const struct tide_dead_letters_line *line,
                             struct tide_error *err)
{
    struct tide_dead_letter_id id;
    (void)err;
    if (!line->is_cut && tide_dead_letter_id_parse(line->text, &id)) {
        tide_dead_letter_ids_add(context, id);
    }
    return TIDE_OK;
}

tide_status tide_dead_letter_marks_read(const char *dir, struct tide_dead_letter_ids *ids,
                                        struct tide_error *err)
{
    TIDE_CLEANUP(tide_fd_close) int dir_fd = -1;
    uint64_t length;
    TIDE_TRY(tide_dir_open(dir, &dir_fd, err));
    TIDE_CLEANUP(tide_fd_close)
    int fd = openat(dir_fd, TIDE_DEAD_LETTERS_MARKS, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        return errno == ENOENT ? TIDE_OK : fail_errno(dir, "open", err);
    }
    return tide_dead_letters_each_line(fd, TIDE_DEAD_LETTERS_MARKS, UINT64_MAX, LINE_LEN, take_line,
                                       ids, &length, err);
}

/* Every line has the same length: what is over is of one that was never said to be done. */
static tide_status append(int fd, const char *dir, tide_str lines, struct tide_error *err)
{
    struct stat st;
    if (flock(fd, LOCK_EX) != 0 || fstat(fd, &st) != 0) {
        return fail_errno(dir, "lock", err);
    }
    if (st.st_size % LINE_LEN != 0 && ftruncate(fd, st.st_size - st.st_size % LINE_LEN) != 0) {
        return fail_errno(dir, "cut", err);
    }
    TIDE_TRY(tide_file_write_all(fd, TIDE_DEAD_LETTERS_MARKS, lines, err));
    return fsync(fd) == 0 ? TIDE_OK : fail_errno(dir, "sync", err);
}

tide_status tide_dead_letter_marks_add(const char *dir, const struct tide_dead_letter_id *ids,
                                       size_t count, struct tide_error *err)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf lines = {0};
    TIDE_CLEANUP(tide_fd_close) int dir_fd = -1;
    for (size_t i = 0; i < count; i++) {
        tide_dead_letter_id_append(&lines, ids[i]);
        tide_buf_append_char(&lines, '\n');
    }
    TIDE_TRY(tide_dir_open(dir, &dir_fd, err));
    TIDE_CLEANUP(tide_fd_close)
    int fd = openat(dir_fd, TIDE_DEAD_LETTERS_MARKS,
                    O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        return fail_errno(dir, "make", err);
    }
    TIDE_TRY(append(fd, dir, tide_buf_str(&lines), err));
    return tide_dir_sync(dir, err);
}
