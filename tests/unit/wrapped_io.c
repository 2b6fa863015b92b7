#include "wrapped_io.h"

#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILES_MAX 64
#define SECTOR    ((size_t)512)

/* A file as it would be after the power went: its name only once its directory was synced, its
 * bytes as of its own last sync. */
struct shadow {
    char path[PATH_MAX];
    bool has_entry;
    bool is_renamed; /* onto an older one of this name; its directory is not synced yet */
    char *bytes;     /* NULL: never synced */
    size_t len;
};

/* A file that was given a new name, which no other had; its directory is not synced yet. Either
 * name is there after the power went, never none. */
struct move {
    bool is_pending;
    char from[PATH_MAX];
    char to[PATH_MAX];
};

static struct wrapped_plan plan;
static struct move move;
static bool is_armed;
static unsigned steps;
static struct shadow shadows[FILES_MAX];
static size_t shadow_count;

int __real_openat64(int dir_fd, const char *path, int flags, ...);
int __wrap_openat64(int dir_fd, const char *path, int flags, ...);
ssize_t __real_write(int fd, const void *bytes, size_t len);
ssize_t __wrap_write(int fd, const void *bytes, size_t len);
ssize_t __real_pwrite64(int fd, const void *bytes, size_t len, off_t at);
ssize_t __wrap_pwrite64(int fd, const void *bytes, size_t len, off_t at);
int __real_ftruncate64(int fd, off_t len);
int __wrap_ftruncate64(int fd, off_t len);
int __real_fsync(int fd);
int __wrap_fsync(int fd);
int __real_fdatasync(int fd);
int __wrap_fdatasync(int fd);
int __real_renameat(int from_fd, const char *from, int to_fd, const char *to);
int __wrap_renameat(int from_fd, const char *from, int to_fd, const char *to);
int __real_mkdir(const char *path, mode_t mode);
int __wrap_mkdir(const char *path, mode_t mode);
int __real_unlinkat(int dir_fd, const char *path, int flags);
int __wrap_unlinkat(int dir_fd, const char *path, int flags);

static unsigned random_below(unsigned end)
{
    plan.seed = plan.seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(plan.seed >> 33) % end;
}

static struct shadow *shadow_of(const char *path)
{
    for (size_t i = 0; i < shadow_count; i++) {
        if (strcmp(shadows[i].path, path) == 0) {
            return &shadows[i];
        }
    }
    if (shadow_count == FILES_MAX) {
        abort();
    }
    struct shadow *made = &shadows[shadow_count++];
    if ((size_t)snprintf(made->path, sizeof(made->path), "%s", path) >= sizeof(made->path)) {
        abort();
    }
    return made;
}

static void path_of(int fd, char ret_path[PATH_MAX])
{
    char link[64];
    (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t len = readlink(link, ret_path, PATH_MAX - 1);
    if (len < 0) {
        abort();
    }
    ret_path[len] = '\0';
}

static char *read_whole(const char *path, size_t *ret_len)
{
    int fd = __real_openat64(AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) != 0) {
        abort();
    }
    char *bytes = malloc((size_t)st.st_size + 1);
    *ret_len = (size_t)st.st_size;
    if (bytes == NULL || read(fd, bytes, *ret_len) != st.st_size) {
        abort();
    }
    (void)close(fd);
    return bytes;
}

static void write_whole(const char *path, const char *bytes, size_t len)
{
    int fd = __real_openat64(AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || __real_write(fd, bytes, len) != (ssize_t)len) {
        abort();
    }
    (void)close(fd);
}

static bool is_in(const char *path, const char *dir)
{
    size_t len = strlen(dir);
    return strncmp(path, dir, len) == 0 && path[len] == '/' && strchr(path + len + 1, '/') == NULL;
}

static void file_synced(const char *path)
{
    struct shadow *shadow = shadow_of(path);
    if (!shadow->is_renamed) {
        free(shadow->bytes);
        shadow->bytes = read_whole(path, &shadow->len);
    }
}

static void dir_synced(const char *dir)
{
    move.is_pending = move.is_pending && !is_in(move.to, dir);
    for (size_t i = 0; i < shadow_count; i++) {
        struct shadow *shadow = &shadows[i];
        if (!is_in(shadow->path, dir)) {
            continue;
        }
        shadow->has_entry = access(shadow->path, F_OK) == 0;
        if (!shadow->has_entry) { /* a later file of this name is another one */
            free(shadow->bytes);
            shadow->bytes = NULL;
            shadow->len = 0;
        }
        if (shadow->is_renamed) { /* what was renamed had been synced before */
            shadow->is_renamed = false;
            file_synced(shadow->path);
        }
    }
}

static void synced(int fd)
{
    char path[PATH_MAX];
    struct stat st;
    path_of(fd, path);
    if (fstat(fd, &st) != 0) {
        abort();
    }
    if (S_ISDIR(st.st_mode)) {
        dir_synced(path);
    } else {
        file_synced(path);
    }
}

/* Each sector as it was synced, as it was written since, or, where it is new, never written. */
static void mix(const struct shadow *shadow)
{
    size_t now_len = 0;
    char *now = read_whole(shadow->path, &now_len);
    size_t low = now_len < shadow->len ? now_len : shadow->len;
    size_t high = now_len < shadow->len ? shadow->len : now_len;
    size_t len = low + random_below((unsigned)(high - low) + 1);
    char *mixed = calloc(high + 1, 1);
    if (mixed == NULL) {
        abort();
    }
    for (size_t at = 0; at < len; at += SECTOR) {
        bool takes_now = random_below(2) == 0;
        const char *from = takes_now ? now : shadow->bytes;
        size_t from_len = takes_now ? now_len : shadow->len;
        if (at < from_len) {
            memcpy(mixed + at, from + at, from_len - at < SECTOR ? from_len - at : SECTOR);
        }
    }
    write_whole(shadow->path, mixed, len);
    free(mixed);
    free(now);
}

static void lose_unsynced(const struct shadow *shadow)
{
    unsigned choice = random_below(4);
    if (access(shadow->path, F_OK) != 0) {
        if (shadow->has_entry && choice < 2) { /* its removal was not synced */
            write_whole(shadow->path, shadow->bytes, shadow->len);
        }
        return;
    }
    if (!shadow->has_entry && choice < 2) {
        (void)unlink(shadow->path);
    } else if (choice == 1 || (shadow->is_renamed && choice < 3)) {
        write_whole(shadow->path, shadow->bytes == NULL ? "" : shadow->bytes, shadow->len);
    } else if (choice > 1 && !shadow->is_renamed) {
        mix(shadow);
    } /* else: all of it had reached the disk */
}

static int remember(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)ftw;
    if (type == FTW_F) {
        shadow_of(path)->has_entry = true;
        file_synced(path);
    }
    return 0;
}

void wrapped_io_arm(const struct wrapped_plan *armed)
{
    char here[PATH_MAX];
    plan = *armed;
    plan.seed = plan.seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    if (getcwd(here, sizeof(here)) == NULL || nftw(here, remember, 16, FTW_PHYS) != 0) {
        abort();
    }
    is_armed = true;
}

/* True when this call is the last one: the caller does a part of its work and dies. */
static bool is_last_step(void)
{
    return is_armed && ++steps == plan.die_at;
}

static void lose_move(void)
{
    struct shadow *from = shadow_of(move.from);
    struct shadow *to = shadow_of(move.to);
    to->is_renamed = false;
    if (random_below(2) == 0) {
        (void)__real_renameat(AT_FDCWD, move.to, AT_FDCWD, move.from);
        return;
    }
    to->has_entry = true;
    to->bytes = from->bytes;
    to->len = from->len;
    from->has_entry = false;
    from->bytes = NULL;
    from->len = 0;
}

static void die(void)
{
    if (plan.cuts_power && move.is_pending) {
        lose_move();
    }
    for (size_t i = 0; plan.cuts_power && i < shadow_count; i++) {
        lose_unsynced(&shadows[i]);
    }
    (void)kill(getpid(), SIGKILL);
}

int __wrap_openat64(int dir_fd, const char *path, int flags, ...)
{
    mode_t mode = 0;
    if ((flags & O_CREAT) != 0) {
        va_list args;
        va_start(args, flags);
        mode = va_arg(args, mode_t);
        va_end(args);
    }
    if ((flags & O_CREAT) != 0 && is_last_step()) {
        die();
    }
    int fd = __real_openat64(dir_fd, path, flags, mode);
    if (fd >= 0 && is_armed && (flags & O_CREAT) != 0) {
        char full[PATH_MAX];
        path_of(fd, full);
        (void)shadow_of(full);
    }
    return fd;
}

ssize_t __wrap_write(int fd, const void *bytes, size_t len)
{
    if (is_last_step()) {
        (void)__real_write(fd, bytes, len / 2);
        die();
    }
    return __real_write(fd, bytes, len);
}

ssize_t __wrap_pwrite64(int fd, const void *bytes, size_t len, off_t at)
{
    if (is_last_step()) {
        (void)__real_pwrite64(fd, bytes, len / 2, at);
        die();
    }
    return __real_pwrite64(fd, bytes, len, at);
}

int __wrap_ftruncate64(int fd, off_t len)
{
    if (is_last_step()) {
        die();
    }
    return __real_ftruncate64(fd, len);
}

int __wrap_fsync(int fd)
{
    if (is_last_step()) {
        die();
    }
    int rc = __real_fsync(fd);
    if (rc == 0 && is_armed) {
        synced(fd);
    }
    return rc;
}

int __wrap_fdatasync(int fd)
{
    if (is_last_step()) {
        die();
    }
    int rc = __real_fdatasync(fd);
    if (rc == 0 && is_armed) {
        synced(fd);
    }
    return rc;
}

static void full_path(int dir_fd, const char *name, char ret_path[PATH_MAX])
{
    char dir[PATH_MAX];
    path_of(dir_fd, dir);
    if (snprintf(ret_path, PATH_MAX, "%s/%s", dir, name) >= PATH_MAX) {
        abort();
    }
}

int __wrap_renameat(int from_fd, const char *from, int to_fd, const char *to)
{
    if (is_last_step()) {
        die();
    }
    struct stat st;
    bool was_there = fstatat(to_fd, to, &st, AT_SYMLINK_NOFOLLOW) == 0;
    int rc = __real_renameat(from_fd, from, to_fd, to);
    if (rc == 0 && is_armed) {
        char path[PATH_MAX];
        char old_path[PATH_MAX];
        full_path(to_fd, to, path);
        full_path(from_fd, from, old_path);
        shadow_of(path)->is_renamed = true;
        if (!was_there && shadow_of(old_path)->has_entry) {
            move.is_pending = true;
            (void)snprintf(move.from, sizeof(move.from), "%s", old_path);
            (void)snprintf(move.to, sizeof(move.to), "%s", path);
        }
    }
    return rc;
}

int __wrap_mkdir(const char *path, mode_t mode)
{
    if (is_last_step()) {
        die();
    }
    return __real_mkdir(path, mode);
}

int __wrap_unlinkat(int dir_fd, const char *path, int flags)
{
    if (is_last_step()) {
        die();
    }
    return __real_unlinkat(dir_fd, path, flags);
}
