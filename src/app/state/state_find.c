#include "app/state/state_find.h"

#include "app/config/config.h"
#include "base/fsio.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#define DEFAULT_PARENT  ".tidemark"
#define LOCKS_BYTES_MAX ((size_t)16 * 1024 * 1024)

static bool is_dir(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Every pipeline takes the lock before anything else. */
static int is_state_dir(const struct dirent *entry)
{
    struct tide_buf path TIDE_CLEANUP(tide_buf_done) = {0};
    struct stat st;
    tide_buf_printf(&path, DEFAULT_PARENT "/%s/lock", entry->d_name);
    return entry->d_name[0] != '.' && stat(tide_buf_cstr(&path), &st) == 0;
}

static void free_entries(struct dirent **entries, int count)
{
    for (int i = 0; i < count; i++) {
        free(entries[i]);
    }
    free(entries);
}

static tide_status find_default(struct tide_buf *dir, struct tide_error *err)
{
    struct dirent **entries = NULL;
    int count = scandir(DEFAULT_PARENT, &entries, is_state_dir, alphasort);
    if (count <= 0) {
        free(entries);
        return tide_fail(err, TIDE_INVALID,
                         "there is no state in " DEFAULT_PARENT
                         "; name a configuration or a state directory");
    }
    if (count == 1) {
        tide_buf_printf(dir, DEFAULT_PARENT "/%s", entries[0]->d_name);
    }
    for (int i = 0; count > 1 && i < count; i++) {
        (void)fprintf(stderr, DEFAULT_PARENT "/%s\n", entries[i]->d_name);
    }
    free_entries(entries, count);
    return count == 1
               ? TIDE_OK
               : tide_fail(err, TIDE_INVALID,
                           "there are several states in " DEFAULT_PARENT ": name one of them");
}

tide_status tide_state_find(const char *file, struct tide_buf *dir, struct tide_error *err)
{
    if (file == NULL) {
        return find_default(dir, err);
    }
    if (is_dir(file)) {
        tide_buf_append_str(dir, tide_str_from(file));
        return TIDE_OK;
    }
    if (tide_config_is_file(file)) {
        return tide_config_state_dir(file, dir, err);
    }
    return tide_fail(err, TIDE_INVALID,
                     "%s is no state directory, and no configuration: its name would end in .yaml "
                     "or .yml",
                     file);
}

/* A line of /proc/locks: "1: FLOCK  ADVISORY  WRITE 1234 fe:01:5678 0 EOF". */
static bool has_lock(tide_str locks, ino_t inode)
{
    char wanted[40];
    (void)snprintf(wanted, sizeof(wanted), ":%" PRIuMAX " ", (uintmax_t)inode);
    const char *end = locks.ptr + locks.len;
    for (const char *line = locks.ptr; line < end;) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        size_t len = (size_t)((stop == NULL ? end : stop) - line);
        if (memmem(line, len, " FLOCK ", 7) != NULL &&
            memmem(line, len, wanted, strlen(wanted)) != NULL) {
            return true;
        }
        line += len + 1;
    }
    return false;
}

bool tide_state_is_held(const char *dir)
{
    struct tide_buf path TIDE_CLEANUP(tide_buf_done) = {0};
    struct tide_buf locks TIDE_CLEANUP(tide_buf_done) = {0};
    struct tide_error ignored;
    struct stat st;
    tide_buf_printf(&path, "%s/lock", dir);
    return stat(tide_buf_cstr(&path), &st) == 0 &&
           tide_file_read("/proc/locks", LOCKS_BYTES_MAX, &locks, &ignored) == TIDE_OK &&
           locks.len > 0 && has_lock(tide_buf_str(&locks), st.st_ino);
}
