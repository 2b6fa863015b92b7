#include "archive/place.h"

#include "archive/container.h"
#include "base/alloc.h"
#include "base/fsio.h"
#include "port/file_error.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOCK_SUFFIX "-lock"
#define NEW_SUFFIX  "-new"
#define TRIES_MAX   100

/* A link's end, where SQLite puts what it keeps beside the file. One that leads nowhere stays. */
static char *follow(char *path)
{
    struct stat st;
    bool is_link = lstat(path, &st) == 0 && S_ISLNK(st.st_mode);
    char *end = is_link ? realpath(path, NULL) : NULL;
    if (end == NULL) {
        return path;
    }
    free(path);
    return end;
}

tide_status tide_archive_place_valid(tide_str text, struct tide_error *err)
{
    bool is_path = text.len > 0 && memchr(text.ptr, '\0', text.len) == NULL;
    return is_path && text.ptr[text.len - 1] != '/'
               ? TIDE_OK
               : tide_fail(err, TIDE_INVALID,
                           "archive: needs the path of a file: archive:shop.tide");
}

tide_status tide_archive_place_name(tide_str text, struct tide_archive_place *ret_place,
                                    struct tide_error *err)
{
    TIDE_TRY(tide_archive_place_valid(text, err));
    char *path = follow(tide_strndup(text.ptr, text.len));
    TIDE_CLEANUP(tide_buf_done) struct tide_buf lock = {0};
    tide_buf_printf(&lock, "%s" LOCK_SUFFIX, path);
    *ret_place = (struct tide_archive_place){
        .path = path,
        .lock_path = tide_strndup(lock.ptr, lock.len),
        .lock_fd = -1,
    };
    return TIDE_OK;
}

/* Whoever opened it meanwhile finds that it is another file now, and takes that. */
static void unlock(struct tide_archive_place *place)
{
    if (place->lock_fd >= 0) {
        (void)unlink(place->lock_path);
        (void)close(place->lock_fd);
        place->lock_fd = -1;
    }
}

void tide_archive_place_done(struct tide_archive_place *place)
{
    unlock(place);
    free(place->path);
    free(place->lock_path);
    *place = (struct tide_archive_place){.lock_fd = -1};
}

static tide_status fail_lock(const struct tide_archive_place *place, int error,
                             struct tide_error *err)
{
    if (error == ENOENT || error == ENOTDIR) {
        return tide_fail(err, TIDE_INVALID,
                         "cannot write %s: there is no such directory; make it first", place->path);
    }
    return tide_file_fail(err, error, "lock", place->lock_path);
}

/* False: the file was removed before it was locked, by the one who had it. */
static bool is_same_file(const struct tide_archive_place *place, int fd)
{
    struct stat named;
    struct stat open;
    return stat(place->lock_path, &named) == 0 && fstat(fd, &open) == 0 &&
           named.st_dev == open.st_dev && named.st_ino == open.st_ino;
}

tide_status tide_archive_place_lock(struct tide_archive_place *place, struct tide_error *err)
{
    for (int i = 0; i < TRIES_MAX; i++) {
        TIDE_CLEANUP(tide_fd_close)
        int fd = open(place->lock_path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0) {
            return fail_lock(place, errno, err);
        }
        if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
            return errno == EWOULDBLOCK
                       ? tide_fail(err, TIDE_INVALID, "%s is being written by another process",
                                   place->path)
                       : fail_lock(place, errno, err);
        }
        if (is_same_file(place, fd)) {
            place->lock_fd = fd;
            fd = -1;
            return TIDE_OK;
        }
    }
    return tide_fail_retriable(err, TIDE_IO, "cannot lock %s: it is removed again and again",
                               place->lock_path);
}

tide_status tide_archive_place_look(const struct tide_archive_place *place,
                                    enum tide_archive_thing *ret_thing, struct tide_error *err)
{
    struct stat st;
    if (stat(place->path, &st) != 0) {
        if (errno != ENOENT) {
            return tide_file_fail(err, errno, "look at", place->path);
        }
        if (lstat(place->path, &st) == 0) {
            return tide_fail(err, TIDE_INVALID,
                             "%s is a link that leads nowhere; remove it, or give the path of the "
                             "archive itself",
                             place->path);
        }
        *ret_thing = TIDE_ARCHIVE_NOTHING;
        return TIDE_OK;
    }
    if (!S_ISREG(st.st_mode)) {
        return tide_fail(err, TIDE_INVALID, "%s is not a regular file; give the path of an archive",
                         place->path);
    }
    TIDE_TRY(tide_archive_require_one_name(place->path, st.st_nlink, err));
    *ret_thing = st.st_size == 0 ? TIDE_ARCHIVE_NOTHING : TIDE_ARCHIVE_FILE;
    return TIDE_OK;
}

static void remove_beside(const char *path, bool is_with_itself)
{
    static const char *const suffixes[] = {"-wal", "-shm", "-journal", ""};
    size_t count = sizeof(suffixes) / sizeof(suffixes[0]) - (is_with_itself ? 0 : 1);
    for (size_t i = 0; i < count; i++) {
        TIDE_CLEANUP(tide_buf_done) struct tide_buf name = {0};
        tide_buf_printf(&name, "%s%s", path, suffixes[i]);
        (void)unlink(tide_buf_cstr(&name));
    }
}

/*
 * An archive that is in use stays as it is. Closing one that is not folds its log into it, so that
 * the log, which must not be taken for the new one's, can go. What is no archive just goes.
 */
static tide_status leave_old(const char *path, struct tide_error *err)
{
    struct tide_archive *archive = NULL;
    tide_status status = tide_archive_open(path, TIDE_ARCHIVE_EDIT, &archive, err);
    if (status == TIDE_TIMEOUT) {
        return status;
    }
    tide_archive_close(archive);
    remove_beside(path, false);
    return TIDE_OK;
}

static tide_status put_in_place(const char *made, const char *path, struct tide_error *err)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf folder = {0};
    const char *slash = strrchr(path, '/');
    tide_buf_append_str(&folder, slash == NULL ? TIDE_STR(".")
                                               : tide_str_of(path, (size_t)(slash - path) + 1));
    TIDE_TRY(leave_old(path, err));
    if (rename(made, path) != 0) {
        return tide_file_fail(err, errno, "replace", path);
    }
    return tide_dir_sync(tide_buf_cstr(&folder), err);
}

/* "NAME.new-XXXXXX" or "NAME-new.new-XXXXXX", and what SQLite puts beside it. */
static bool is_half_made(const char *name, const char *archive)
{
    size_t len = strlen(archive);
    if (strncmp(name, archive, len) != 0) {
        return false;
    }
    name += len;
    name += strncmp(name, NEW_SUFFIX, strlen(NEW_SUFFIX)) == 0 ? strlen(NEW_SUFFIX) : 0;
    size_t lead = strlen(TIDE_ARCHIVE_MADE_SUFFIX);
    if (strncmp(name, TIDE_ARCHIVE_MADE_SUFFIX, lead) != 0 || strlen(name) < lead + 6) {
        return false;
    }
    const char *beside = name + lead + 6;
    return *beside == '\0' || strcmp(beside, "-wal") == 0 || strcmp(beside, "-shm") == 0 ||
           strcmp(beside, "-journal") == 0;
}

/* Of starts that were killed while an archive was made: whoever has the lock makes it. */
static void remove_half_made(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *archive = slash == NULL ? path : slash + 1;
    TIDE_CLEANUP(tide_buf_done) struct tide_buf folder = {0};
    tide_buf_append_str(&folder, slash == NULL ? TIDE_STR(".")
                                               : tide_str_of(path, (size_t)(slash - path) + 1));
    DIR *dir = opendir(tide_buf_cstr(&folder));
    const struct dirent *entry;
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        if (is_half_made(entry->d_name, archive)) {
            (void)unlinkat(dirfd(dir), entry->d_name, 0);
        }
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
}

tide_status tide_archive_place_make(const struct tide_archive_place *place,
                                    enum tide_archive_thing there, struct tide_error *err)
{
    struct stat st;
    remove_half_made(place->path);
    if (there == TIDE_ARCHIVE_NOTHING && stat(place->path, &st) != 0) {
        return tide_archive_create(place->path, err);
    }
    TIDE_CLEANUP(tide_buf_done) struct tide_buf made = {0};
    tide_buf_printf(&made, "%s" NEW_SUFFIX, place->path);
    remove_beside(tide_buf_cstr(&made), true); /* of a start that was interrupted */
    TIDE_TRY(tide_archive_create(tide_buf_cstr(&made), err));
    tide_status status = put_in_place(tide_buf_cstr(&made), place->path, err);
    if (status != TIDE_OK) {
        remove_beside(tide_buf_cstr(&made), true);
    }
    return status;
}

tide_status tide_archive_place_remember(struct tide_archive_place *place, struct tide_error *err)
{
    struct stat st;
    if (stat(place->path, &st) != 0) {
        return tide_fail_retriable(err, TIDE_IO, "cannot look at %s: %s", place->path,
                                   strerror(errno));
    }
    place->device = st.st_dev;
    place->inode = st.st_ino;
    return TIDE_OK;
}

tide_status tide_archive_place_check(const struct tide_archive_place *place, struct tide_error *err)
{
    struct stat st;
    if (place->inode == 0 ||
        (stat(place->path, &st) == 0 && st.st_dev == place->device && st.st_ino == place->inode)) {
        return TIDE_OK; /* while it is being opened, nothing is remembered yet */
    }
    return tide_fail(err, TIDE_STALE,
                     "%s was moved, removed or replaced while it was being written; put it back "
                     "with what belongs to it (%s-wal, %s-shm)",
                     place->path, place->path, place->path);
}
