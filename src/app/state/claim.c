#include "app/state/claim.h"

#include "archive/place.h"
#include "base/alloc.h"
#include "engine/dead_letter_files.h"
#include "sink/archive/archive_sink.h"
#include "sink/file/file_place.h"
#include "sink/file/file_sink.h"
#include "sink/file/stdout_sink.h"
#include "source/sqlite/sqlite_source.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const suffixes[] = {"", "-wal", "-shm", "-journal"};

#define FILE_COUNT (sizeof(suffixes) / sizeof(suffixes[0]))

static void place_done(struct tide_claim_place *place)
{
    tide_buf_done(&place->rest);
}

void tide_claim_done(struct tide_claim *claim)
{
    for (size_t i = 0; i < claim->count; i++) {
        tide_buf_done(&claim->spots[i].path);
        tide_buf_done(&claim->spots[i].name);
        place_done(&claim->spots[i].self);
        place_done(&claim->spots[i].folder);
    }
    free(claim->spots);
    place_done(&claim->folder);
    *claim = (struct tide_claim){0};
}

/* Where the last part of `path` begins; a slash at its end belongs to it. */
static size_t last_part(const char *path, size_t len)
{
    while (len > 0 && path[len - 1] == '/') {
        len--;
    }
    while (len > 0 && path[len - 1] != '/') {
        len--;
    }
    return len;
}

/* "a//./b/" is "a/b". */
static void append_parts(struct tide_buf *buf, const char *path)
{
    for (const char *at = path; *at != '\0';) {
        size_t len = strcspn(at, "/");
        if (len > 0 && !(len == 1 && at[0] == '.')) {
            tide_buf_printf(buf, "%s%.*s", buf->len > 0 ? "/" : "", (int)len, at);
        }
        at += len;
        at += strspn(at, "/");
    }
}

static bool look_above(struct tide_claim_place *place, const char *path, size_t len)
{
    TIDE_CLEANUP(tide_free_ptr)
    char *above = tide_strndup(len == 0 ? "." : path, len == 0 ? 1 : len);
    return stat(above, &place->above) == 0;
}

static void look(struct tide_claim_place *place, const char *path)
{
    size_t len = last_part(path, strlen(path));
    place->is_there = stat(path, &place->st) == 0;
    place->has_above = look_above(place, path, len);
    while (!place->has_above && len > 0) {
        len = last_part(path, len);
        place->has_above = look_above(place, path, len);
    }
    append_parts(&place->rest, path + len);
}

static bool is_same_inode(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

static bool is_same(const struct tide_claim_place *a, const struct tide_claim_place *b)
{
    if (a->is_there && b->is_there && is_same_inode(&a->st, &b->st)) {
        return true;
    }
    return a->has_above && b->has_above && a->rest.len > 0 && is_same_inode(&a->above, &b->above) &&
           tide_str_equal(tide_buf_str(&a->rest), tide_buf_str(&b->rest));
}

static struct tide_claim_spot *new_spot(struct tide_claim *claim, const char *path)
{
    if (claim->count == claim->cap) {
        claim->cap = claim->cap == 0 ? 8 : claim->cap * 2;
        claim->spots = tide_realloc(claim->spots, claim->cap, sizeof(*claim->spots));
    }
    struct tide_claim_spot *spot = &claim->spots[claim->count++];
    *spot = (struct tide_claim_spot){0};
    tide_buf_append_str(&spot->path, tide_str_from(path));
    (void)tide_buf_cstr(&spot->path);
    return spot;
}

/* What a link leads to is in the folder of that. */
static void add(struct tide_claim *claim, const char *path)
{
    TIDE_CLEANUP(tide_free_ptr) char *resolved = realpath(path, NULL);
    TIDE_CLEANUP(tide_buf_done) struct tide_buf folder = {0};
    const char *real = resolved == NULL ? path : resolved;
    struct tide_claim_spot *spot = new_spot(claim, path);
    size_t len = last_part(real, strlen(real));
    look(&spot->self, path);
    append_parts(&spot->name, real + len);
    tide_buf_append_str(&folder, len == 0 ? TIDE_STR(".") : tide_str_of(real, len));
    look(&spot->folder, tide_buf_cstr(&folder));
}

static void add_in(struct tide_claim *claim, const char *dir, const char *name)
{
    struct tide_buf path TIDE_CLEANUP(tide_buf_done) = {0};
    tide_buf_printf(&path, "%s/%s", dir, name);
    add(claim, tide_buf_cstr(&path));
}

static void add_folder(struct tide_claim *claim, const char *path)
{
    add(claim, path);
    claim->spots[claim->count - 1].is_folder = true;
    look(&claim->folder, path);
    claim->has_folder = true;
}

static void close_dir(DIR **dir)
{
    if (*dir != NULL) {
        (void)closedir(*dir);
    }
}

/* A file that has another name, by a link of either kind. */
static bool has_another_name(DIR *dir, const char *name)
{
    struct stat st;
    return fstatat(dirfd(dir), name, &st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISDIR(st.st_mode) &&
           (S_ISLNK(st.st_mode) || st.st_nlink > 1);
}

/* What lies in `path` already under a name that would be written to: those that its folder and
 * name do not tell. */
static void add_linked(struct tide_claim *claim, const char *path,
                       bool (*is_written)(tide_str name))
{
    TIDE_CLEANUP(close_dir) DIR *dir = opendir(path);
    if (dir == NULL) {
        return; /* not there yet; else opening it will say so */
    }
    for (const struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        if (is_written(tide_str_from(entry->d_name)) && has_another_name(dir, entry->d_name)) {
            add_in(claim, path, entry->d_name);
        }
    }
}

static bool is_temporary(tide_str name)
{
    return name.len > 0 && name.ptr[0] == '.' && tide_str_ends_with(name, TIDE_STR(".tmp"));
}

static bool is_of_tables(tide_str name)
{
    return tide_str_ends_with(name, TIDE_STR(".ndjson"));
}

static bool is_of_state(tide_str name)
{
    return is_temporary(name) || tide_str_starts_with(name, TIDE_STR("checkpoint_")) ||
           tide_str_equal(name, TIDE_STR("lock")) || tide_str_equal(name, TIDE_STR("control")) ||
           tide_dead_letters_is_name(name);
}

/* SQLite follows symbolic links before it names the files beside the database; so do we. */
void tide_claim_source(struct tide_claim *claim, const struct tide_pipeline_options *options)
{
    claim->kind = TIDE_CLAIM_SOURCE;
    if (options->source_ops != &tide_sqlite_source_ops) {
        return;
    }
    TIDE_CLEANUP(tide_free_ptr)
    char *path = tide_strndup(options->source_place.ptr, options->source_place.len);
    TIDE_CLEANUP(tide_free_ptr) char *resolved = realpath(path, NULL);
    for (size_t i = 0; i < FILE_COUNT; i++) {
        struct tide_buf name TIDE_CLEANUP(tide_buf_done) = {0};
        tide_buf_printf(&name, "%s%s", resolved == NULL ? path : resolved, suffixes[i]);
        add(claim, tide_buf_cstr(&name));
    }
}

void tide_claim_configuration(struct tide_claim *claim, const char *path)
{
    claim->kind = TIDE_CLAIM_CONFIGURATION;
    if (path != NULL) {
        add(claim, path);
    }
}

void tide_claim_state(struct tide_claim *claim, const char *state_dir)
{
    struct tide_buf path TIDE_CLEANUP(tide_buf_done) = {0};
    size_t len = strlen(state_dir);
    while (len > 1 && state_dir[len - 1] == '/') {
        len--;
    }
    tide_buf_append(&path, state_dir, len);
    claim->kind = TIDE_CLAIM_STATE;
    add_folder(claim, tide_buf_cstr(&path));
    add_linked(claim, tide_buf_cstr(&path), is_of_state);
}

static tide_status claim_files(struct tide_claim *claim, tide_str place, struct tide_error *err)
{
    TIDE_CLEANUP(tide_file_place_close) struct tide_file_place named = {.dir = {.fd = -1}};
    struct tide_buf temporary TIDE_CLEANUP(tide_buf_done) = {0};
    TIDE_TRY(tide_file_place_name(place, &named, err));
    tide_buf_printf(&temporary, ".%s.tmp", named.record_name);
    if (named.file_name != NULL) {
        add_in(claim, named.dir_path, named.file_name);
    } else {
        add_folder(claim, named.dir_path);
        add_linked(claim, named.dir_path, is_of_tables);
    }
    add_in(claim, named.dir_path, named.record_name);
    add_in(claim, named.dir_path, tide_buf_cstr(&temporary));
    return TIDE_OK;
}

/* The archive, what SQLite and we put beside it, and a new one before it takes its place. */
static tide_status claim_archive(struct tide_claim *claim, tide_str text, struct tide_error *err)
{
    static const char *const made[] = {"", "-new"};
    TIDE_CLEANUP(tide_archive_place_done) struct tide_archive_place place = {.lock_fd = -1};
    TIDE_TRY(tide_archive_place_name(text, &place, err));
    for (size_t i = 0; i < FILE_COUNT * 2; i++) {
        struct tide_buf path TIDE_CLEANUP(tide_buf_done) = {0};
        tide_buf_printf(&path, "%s%s%s", place.path, made[i / FILE_COUNT],
                        suffixes[i % FILE_COUNT]);
        add(claim, tide_buf_cstr(&path));
    }
    add(claim, place.lock_path);
    return TIDE_OK;
}

/* Redirected to a file, with `>>`. A terminal or pipe is nobody's. */
static void claim_standard_output(struct tide_claim *claim)
{
    struct stat st;
    if (fstat(STDOUT_FILENO, &st) == 0 && S_ISREG(st.st_mode)) {
        struct tide_claim_spot *spot = new_spot(claim, "standard output");
        spot->self.is_there = true;
        spot->self.st = st;
    }
}

tide_status tide_claim_sink(struct tide_claim *claim, const struct tide_pipeline_sink *sink,
                            struct tide_error *err)
{
    claim->kind = TIDE_CLAIM_SINK;
    claim->sink = sink->name;
    if (sink->ops == &tide_file_sink_ops) {
        return claim_files(claim, sink->place, err);
    }
    if (sink->ops == &tide_archive_sink_ops) {
        return claim_archive(claim, sink->place, err);
    }
    if (sink->ops == &tide_stdout_sink_ops) {
        claim_standard_output(claim);
    }
    return TIDE_OK;
}

/* Whether `owner` may come to write a file of this name into its folder. All files in the state
 * directory are the pipeline's; sources and folders may be there, by other names. */
static bool is_taken(const struct tide_claim *owner, const struct tide_claim *other,
                     const struct tide_claim_spot *spot)
{
    if (!owner->has_folder || !is_same(&owner->folder, &spot->folder)) {
        return false;
    }
    if (owner->kind == TIDE_CLAIM_STATE) {
        return (other->kind == TIDE_CLAIM_SINK && !spot->is_folder) ||
               is_of_state(tide_buf_str(&spot->name));
    }
    return is_of_tables(tide_buf_str(&spot->name));
}

static const struct tide_claim_spot *find_taken(const struct tide_claim *owner,
                                                const struct tide_claim *other)
{
    for (size_t i = 0; i < other->count; i++) {
        if (is_taken(owner, other, &other->spots[i])) {
            return &other->spots[i];
        }
    }
    return NULL;
}

const struct tide_claim_spot *tide_claim_meet(const struct tide_claim *writer,
                                              const struct tide_claim *owner,
                                              const struct tide_claim_spot **ret_owned)
{
    for (size_t i = 0; i < writer->count; i++) {
        for (size_t k = 0; k < owner->count; k++) {
            if (is_same(&writer->spots[i].self, &owner->spots[k].self)) {
                *ret_owned = &owner->spots[k];
                return &writer->spots[i];
            }
        }
    }
    *ret_owned = find_taken(writer, owner);
    return *ret_owned != NULL ? *ret_owned : find_taken(owner, writer);
}
