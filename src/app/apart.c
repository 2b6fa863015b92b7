#include "app/apart.h"

#include "base/alloc.h"
#include "engine/dead_letter_files.h"
#include "sink/archive/archive_place.h"
#include "sink/archive/archive_sink.h"
#include "sink/file/file_place.h"
#include "sink/file/file_sink.h"
#include "sink/file/stdout_sink.h"
#include "source/sqlite/sqlite_source.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const suffixes[] = {"", "-wal", "-shm", "-journal"};

#define FILE_COUNT (sizeof(suffixes) / sizeof(suffixes[0]))

/* A file that may not be there (yet): known by itself, or by its directory and name. */
struct place_on_disk {
    const char *name; /* behind the last slash; borrowed */
    bool is_there;
    struct stat st;
    bool has_dir;
    struct stat dir;
};

struct database {
    struct tide_buf paths[FILE_COUNT];
    struct place_on_disk files[FILE_COUNT];
};

static struct place_on_disk look_at(const char *path)
{
    struct place_on_disk found = {0};
    struct tide_buf dir TIDE_CLEANUP(tide_buf_done) = {0};
    const char *slash = strrchr(path, '/');
    found.name = slash == NULL ? path : slash + 1;
    if (slash == NULL) {
        tide_buf_append_char(&dir, '.');
    } else {
        tide_buf_append(&dir, path, (size_t)(found.name - path));
    }
    found.is_there = stat(path, &found.st) == 0;
    found.has_dir = stat(tide_buf_cstr(&dir), &found.dir) == 0;
    return found;
}

static bool is_same_inode(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

static bool is_same(const struct place_on_disk *a, const struct place_on_disk *b)
{
    if (a->is_there && b->is_there && is_same_inode(&a->st, &b->st)) {
        return true;
    }
    return a->has_dir && b->has_dir && is_same_inode(&a->dir, &b->dir) &&
           strcmp(a->name, b->name) == 0;
}

/* SQLite follows symbolic links before it names the files beside the database; so do we. */
static void database_init(struct database *database, tide_str place)
{
    TIDE_CLEANUP(tide_free_ptr) char *path = tide_strndup(place.ptr, place.len);
    TIDE_CLEANUP(tide_free_ptr) char *resolved = realpath(path, NULL);
    for (size_t i = 0; i < FILE_COUNT; i++) {
        tide_buf_printf(&database->paths[i], "%s%s", resolved == NULL ? path : resolved,
                        suffixes[i]);
        database->files[i] = look_at(tide_buf_cstr(&database->paths[i]));
    }
}

static void database_done(struct database *database)
{
    for (size_t i = 0; i < FILE_COUNT; i++) {
        tide_buf_done(&database->paths[i]);
    }
}

static tide_status check_found(struct database *database, const char *shown,
                               const struct place_on_disk *found, struct tide_error *err)
{
    for (size_t i = 0; i < FILE_COUNT; i++) {
        if (is_same(found, &database->files[i])) {
            return tide_fail(err, TIDE_INVALID,
                             "%.160s would be written, but is the source's own file %.160s: that "
                             "would destroy the database; choose another place",
                             shown, tide_buf_cstr(&database->paths[i]));
        }
    }
    return TIDE_OK;
}

static tide_status check_path(struct database *database, const char *path, struct tide_error *err)
{
    struct place_on_disk found = look_at(path);
    return check_found(database, path, &found, err);
}

static tide_status check_in_dir(struct database *database, const char *dir, const char *name,
                                struct tide_error *err)
{
    struct tide_buf path TIDE_CLEANUP(tide_buf_done) = {0};
    tide_buf_printf(&path, "%s/%s", dir, name);
    return check_path(database, tide_buf_cstr(&path), err);
}

static void close_dir(DIR **dir)
{
    if (*dir != NULL) {
        (void)closedir(*dir);
    }
}

/* Checks what lies in `path` already under a name that would be written to. */
static tide_status check_entries(struct database *database, const char *path,
                                 bool (*is_written)(tide_str name), struct tide_error *err)
{
    TIDE_CLEANUP(close_dir) DIR *dir = opendir(path);
    if (dir == NULL) {
        return TIDE_OK; /* not there yet; else opening it will say so */
    }
    for (const struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        if (is_written(tide_str_from(entry->d_name))) {
            TIDE_TRY(check_in_dir(database, path, entry->d_name, err));
        }
    }
    return TIDE_OK;
}

static bool is_temporary(tide_str name)
{
    return name.ptr[0] == '.' && tide_str_ends_with(name, TIDE_STR(".tmp"));
}

static bool is_of_tables(tide_str name)
{
    return tide_str_ends_with(name, TIDE_STR(".ndjson"));
}

static bool is_of_state(tide_str name)
{
    return is_temporary(name) || tide_str_starts_with(name, TIDE_STR("checkpoint_")) ||
           tide_str_equal(name, TIDE_STR("lock")) || tide_dead_letters_is_name(name);
}

static tide_status check_file_sink(struct database *database, tide_str place,
                                   struct tide_error *err)
{
    TIDE_CLEANUP(tide_file_place_close) struct tide_file_place named = {.dir = {.fd = -1}};
    struct tide_buf temporary TIDE_CLEANUP(tide_buf_done) = {0};
    TIDE_TRY(tide_file_place_name(place, &named, err));
    tide_buf_printf(&temporary, ".%s.tmp", named.record_name);
    TIDE_TRY(check_in_dir(database, named.dir_path, named.record_name, err));
    TIDE_TRY(check_in_dir(database, named.dir_path, tide_buf_cstr(&temporary), err));
    if (named.file_name != NULL) {
        return check_in_dir(database, named.dir_path, named.file_name, err);
    }
    TIDE_TRY(check_path(database, named.dir_path, err));
    return check_entries(database, named.dir_path, is_of_tables, err);
}

/* The archive, what SQLite and we put beside it, and a new one before it takes its place. */
static tide_status check_archive_sink(struct database *database, tide_str text,
                                      struct tide_error *err)
{
    static const char *const made[] = {"", "-new"};
    TIDE_CLEANUP(tide_archive_place_done) struct tide_archive_place place = {.lock_fd = -1};
    TIDE_TRY(tide_archive_place_name(text, &place, err));
    TIDE_TRY(check_path(database, place.lock_path, err));
    for (size_t i = 0; i < FILE_COUNT * 2; i++) {
        struct tide_buf path TIDE_CLEANUP(tide_buf_done) = {0};
        tide_buf_printf(&path, "%s%s%s", place.path, made[i / FILE_COUNT],
                        suffixes[i % FILE_COUNT]);
        TIDE_TRY(check_path(database, tide_buf_cstr(&path), err));
    }
    return TIDE_OK;
}

/* Redirected to the database with `>>`. */
static tide_status check_standard_output(struct database *database, struct tide_error *err)
{
    struct place_on_disk found = {.name = ""};
    found.is_there = fstat(STDOUT_FILENO, &found.st) == 0;
    return check_found(database, "standard output", &found, err);
}

static tide_status check_state(struct database *database, const char *state_dir,
                               struct tide_error *err)
{
    struct tide_buf path TIDE_CLEANUP(tide_buf_done) = {0};
    size_t len = strlen(state_dir);
    while (len > 1 && state_dir[len - 1] == '/') {
        len--;
    }
    tide_buf_append(&path, state_dir, len);
    TIDE_TRY(check_path(database, tide_buf_cstr(&path), err));
    return check_entries(database, tide_buf_cstr(&path), is_of_state, err);
}

static tide_status check_all(struct database *database, const struct tide_pipeline_options *options,
                             struct tide_error *err)
{
    for (size_t i = 0; i < options->sink_count; i++) {
        const struct tide_pipeline_sink *sink = &options->sinks[i];
        if (sink->ops == &tide_file_sink_ops) {
            TIDE_TRY(check_file_sink(database, sink->place, err));
        } else if (sink->ops == &tide_archive_sink_ops) {
            TIDE_TRY(check_archive_sink(database, sink->place, err));
        } else if (sink->ops == &tide_stdout_sink_ops) {
            TIDE_TRY(check_standard_output(database, err));
        }
    }
    return check_state(database, options->state_dir, err);
}

tide_status tide_check_apart(const struct tide_pipeline_options *options, struct tide_error *err)
{
    if (options->source_ops != &tide_sqlite_source_ops) {
        return TIDE_OK;
    }
    TIDE_CLEANUP(database_done) struct database database = {0};
    database_init(&database, options->source_place);
    return check_all(&database, options, err);
}
