#include "sink/file/file_place.h"

#include "base/alloc.h"
#include "base/fsio.h"
#include "port/file_error.h"
#include "port/owner.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* With what is put around it (".", ".tidemark", and those of a temporary file) within 255. */
#define NAME_BYTES_MAX ((size_t)240)
#define RECORD_SUFFIX  ".tidemark"
#define DIR_RECORD     ".tidemark-held"

void tide_file_place_close(struct tide_file_place *place)
{
    tide_fd_close(&place->dir.fd);
    free(place->dir_path);
    free(place->file_name);
    free(place->record_name);
    *place = (struct tide_file_place){.dir = {.fd = -1}};
}

static bool is_directory(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static char *without_slashes(tide_str path)
{
    while (path.len > 1 && path.ptr[path.len - 1] == '/') {
        path.len--;
    }
    return tide_strndup(path.ptr, path.len);
}

/* `path` is a file's: what is before and behind its last slash. */
static void split(tide_str path, struct tide_file_place *place)
{
    size_t at = path.len;
    while (at > 0 && path.ptr[at - 1] != '/') {
        at--;
    }
    place->file_name = tide_strndup(path.ptr + at, path.len - at);
    place->dir_path = at == 0 ? tide_strndup(".", 1) : without_slashes(tide_str_of(path.ptr, at));
    struct tide_buf name = {0};
    tide_buf_printf(&name, ".%s%s", place->file_name, RECORD_SUFFIX);
    place->record_name = tide_strndup(name.ptr, name.len);
    tide_buf_done(&name);
}

tide_status tide_file_place_valid(tide_str place, struct tide_error *err)
{
    return place.len > 0 && memchr(place.ptr, '\0', place.len) == NULL
               ? TIDE_OK
               : tide_fail(err, TIDE_INVALID,
                           "file: needs a path: file:out.ndjson for one file, file:out/ for a "
                           "file for each table");
}

tide_status tide_file_place_name(tide_str place, struct tide_file_place *ret_place,
                                 struct tide_error *err)
{
    TIDE_TRY(tide_file_place_valid(place, err));
    struct tide_file_place named = {.dir = {.fd = -1}};
    TIDE_CLEANUP(tide_free_ptr) char *path = tide_strndup(place.ptr, place.len);
    if (place.ptr[place.len - 1] == '/' || is_directory(path)) {
        named.dir_path = without_slashes(place);
        named.record_name = tide_strndup(DIR_RECORD, strlen(DIR_RECORD));
    } else {
        split(place, &named);
    }
    named.dir.path = named.dir_path;
    *ret_place = named;
    return TIDE_OK;
}

static tide_status open_dir_of_file(struct tide_file_place *place, struct tide_error *err)
{
    if (strlen(place->file_name) > NAME_BYTES_MAX) {
        return tide_fail(err, TIDE_INVALID, "the file name \"%.40s…\" is longer than %zu bytes",
                         place->file_name, NAME_BYTES_MAX);
    }
    if (!is_directory(place->dir_path)) {
        return tide_fail(err, TIDE_INVALID,
                         "cannot write %s: there is no directory %s; make it first",
                         place->file_name, place->dir_path);
    }
    return tide_dir_open(place->dir_path, &place->dir.fd, err);
}

tide_status tide_file_place_look(struct tide_file_place *place, struct tide_error *err)
{
    return place->file_name == NULL ? tide_dir_open(place->dir_path, &place->dir.fd, err)
                                    : open_dir_of_file(place, err);
}

static bool is_missing(const char *path)
{
    struct stat st;
    return lstat(path, &st) != 0 && errno == ENOENT;
}

static tide_status open_dir_of_tables(struct tide_file_place *place, bool is_resumed,
                                      struct tide_error *err)
{
    if (is_resumed && is_missing(place->dir_path)) {
        (void)tide_fail(err, TIDE_STALE,
                        "this pipeline goes on from a checkpoint, but the directory %s is not "
                        "there any more",
                        place->dir_path);
        return tide_owner_add_ways(err, true);
    }
    TIDE_TRY(tide_dir_make(place->dir_path, err));
    TIDE_TRY(tide_dir_open(place->dir_path, &place->dir.fd, err));
    if (flock(place->dir.fd, LOCK_EX | LOCK_NB) != 0) {
        return tide_fail(err, TIDE_INVALID, "%s is being written by another process",
                         place->dir_path);
    }
    return TIDE_OK;
}

static tide_status open_dir(struct tide_file_place *place, bool is_resumed, struct tide_error *err)
{
    errno = 0;
    tide_status status = place->file_name == NULL ? open_dir_of_tables(place, is_resumed, err)
                                                  : open_dir_of_file(place, err);
    if (status == TIDE_IO) {
        tide_file_judge(err, errno);
    }
    return status;
}

tide_status tide_file_place_open(tide_str place, bool is_resumed, struct tide_file_place *ret_place,
                                 struct tide_error *err)
{
    TIDE_CLEANUP(tide_file_place_close) struct tide_file_place opened = {.dir = {.fd = -1}};
    TIDE_TRY(tide_file_place_name(place, &opened, err));
    TIDE_TRY(open_dir(&opened, is_resumed, err));
    *ret_place = opened;
    opened = (struct tide_file_place){.dir = {.fd = -1}};
    return TIDE_OK;
}
