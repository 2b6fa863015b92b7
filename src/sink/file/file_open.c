#include "sink/file/file_open.h"

#include "base/alloc.h"
#include "port/file_error.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Opens file number `index` of `held` and compares it with what was held. */
static tide_status check_file(struct tide_file_set *set, size_t index, struct tide_error *err)
{
    const struct tide_held_file *held = &set->held.files[index];
    tide_file_set_reserve(set, index + 1);
    TIDE_TRY(tide_file_set_make_room(set, err));
    tide_frames_file_free(set->files[index]);
    set->files[index] = tide_frames_file_new(&set->place.dir, held->name, held->store);
    return tide_frames_file_check(set->files[index], held, err);
}

/* What an interrupted run wrote and never acknowledged goes. */
static tide_status cut_all(struct tide_file_set *set, struct tide_error *err)
{
    for (size_t i = 0; i < set->held.file_count; i++) {
        struct tide_frames_file *file = set->files[i];
        if (file->has_more && file->fd < 0) {
            TIDE_TRY(tide_file_set_make_room(set, err));
        }
        if (file->has_more) {
            TIDE_TRY(tide_frames_file_cut(file, set->held.files[i].length, err));
        }
        tide_frames_file_end_line(file);
        tide_file_set_index(set, i);
    }
    return TIDE_OK;
}

static bool is_of_place(const struct tide_file_set *set)
{
    const char *name = set->place.file_name;
    return name == NULL || (set->held.file_count == 1 &&
                            tide_str_equal(set->held.files[0].name, tide_str_from(name)));
}

static tide_status check_record(const struct tide_file_set *set, const char *shown,
                                const struct tide_sink_options *options, struct tide_error *err)
{
    TIDE_TRY(tide_owner_check(&set->held.owner, shown, options, err));
    if (!is_of_place(set)) {
        return tide_fail(err, TIDE_STALE, "the record %s is of another file than %s",
                         set->place.record_name, shown);
    }
    return TIDE_OK;
}

/* The pipeline goes on from a checkpoint: what it holds here must be here. */
static tide_status continue_held(struct tide_file_set *set, const char *shown,
                                 const struct tide_sink_options *options, struct tide_error *err)
{
    TIDE_TRY(check_record(set, shown, options, err));
    for (size_t i = 0; i < set->held.file_count; i++) {
        TIDE_TRY(check_file(set, i, err));
    }
    return cut_all(set, err);
}

/* The same from outside: by name and length alone, since another process may be writing. */
static tide_status look_at_held(struct tide_file_set *set, const char *shown,
                                const struct tide_sink_options *options, struct tide_error *err)
{
    TIDE_TRY(check_record(set, shown, options, err));
    for (size_t i = 0; i < set->held.file_count; i++) {
        const struct tide_held_file *held = &set->held.files[i];
        TIDE_CLEANUP(tide_free_ptr) char *name = tide_strndup(held->name.ptr, held->name.len);
        struct stat st;
        if (fstatat(set->place.dir.fd, name, &st, 0) != 0) {
            return tide_fail(err, TIDE_STALE, "%s/%s cannot be read: %s", set->place.dir.path, name,
                             strerror(errno));
        }
        if ((uint64_t)st.st_ino != held->inode || (uint64_t)st.st_size < held->length) {
            return tide_fail(err, TIDE_STALE, "%s/%s is not the file that was written",
                             set->place.dir.path, name);
        }
    }
    return TIDE_OK;
}

/* True: nothing of the file was ever acknowledged, so that an interrupted start left it. */
static bool is_unheld_of_ours(const struct tide_file_set *set, const char *name, ino_t inode)
{
    for (size_t i = 0; i < set->held.file_count; i++) {
        const struct tide_held_file *file = &set->held.files[i];
        if (tide_str_equal(file->name, tide_str_from(name))) {
            return file->length == 0 && file->inode == inode;
        }
    }
    return false;
}

static bool is_occupied(const struct tide_file_set *set, const char *name, bool is_ours)
{
    struct stat st; /* anything but a regular file is refused where it is opened */
    return fstatat(set->place.dir.fd, name, &st, 0) == 0 && S_ISREG(st.st_mode) && st.st_size > 0 &&
           !(is_ours && is_unheld_of_ours(set, name, st.st_ino));
}

/* Looks for a file of frames in the directory that is not ours to cut; its name goes to `found`. */
static tide_status find_occupied(const struct tide_file_set *set, bool is_ours,
                                 struct tide_buf *found, struct tide_error *err)
{
    int fd = openat(set->place.dir.fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (dir == NULL) {
        return tide_file_fail(err, errno, "read directory", set->place.dir.path);
    }
    const struct dirent *entry;
    while (found->len == 0 && (entry = readdir(dir)) != NULL) {
        if (tide_str_ends_with(tide_str_from(entry->d_name), TIDE_STR(".ndjson")) &&
            is_occupied(set, entry->d_name, is_ours)) {
            tide_buf_append_str(found, tide_str_from(entry->d_name));
        }
    }
    (void)closedir(dir);
    return TIDE_OK;
}

/* Keeps those files of the record that are as it says, cut to there; forgets the others. */
static tide_status keep_valid(struct tide_file_set *set, struct tide_error *err)
{
    struct tide_held_record *held = &set->held;
    size_t kept = 0;
    size_t count = held->file_count;
    for (size_t i = 0; i < count; i++) {
        held->files[kept] = held->files[i];
        tide_status status = check_file(set, kept, err);
        if (status == TIDE_OK) {
            kept++;
        } else if (status == TIDE_STALE) {
            tide_frames_file_free(set->files[kept]);
            set->files[kept] = NULL;
        } else {
            return status;
        }
    }
    held->file_count = kept;
    return cut_all(set, err);
}

/* The files of the copy that is to be replaced. A single file is emptied where it is made. */
static tide_status remove_recorded(struct tide_file_set *set, struct tide_error *err)
{
    for (size_t i = 0; i < set->held.file_count && set->place.file_name == NULL; i++) {
        char name[NAME_MAX + 1] = {0};
        tide_str recorded = set->held.files[i].name;
        memcpy(name, recorded.ptr, recorded.len);
        if (unlinkat(set->place.dir.fd, name, 0) != 0 && errno != ENOENT) {
            int error = errno;
            (void)tide_fail(err, TIDE_IO, "cannot remove %s/%s: %s", set->place.dir.path, name,
                            strerror(error));
            tide_file_judge(err, error);
            return TIDE_IO;
        }
    }
    set->held.file_count = 0;
    return tide_file_set_sync_dir(set, err); /* or they would be back, known to no record */
}

/* The record says from now on that this pipeline begins here, behind the files that are kept. */
static tide_status take_over(struct tide_file_set *set, const struct tide_sink_options *options,
                             struct tide_error *err)
{
    struct tide_held_record *held = &set->held;
    struct tide_owner owner = tide_owner_of(options);
    held->owner = tide_owner_copy(&owner, &held->arena);
    tide_progress_done(&held->progress);
    if (set->place.file_name == NULL || held->file_count > 0) {
        return tide_file_set_store_record(set, err);
    }
    struct tide_frames_file *file;
    return tide_file_set_add(set, tide_str_from(set->place.file_name), (tide_str){0}, &file, err);
}

/* `loaded` is how reading the record went, its failure in `err`. */
static tide_status refuse(const struct tide_file_set *set, const char *shown, tide_str occupied,
                          tide_status loaded, bool found, const struct tide_sink_options *options,
                          struct tide_error *err)
{
    if (loaded != TIDE_OK) {
        return tide_owner_add_ways(err, false);
    }
    bool is_listed = set->place.file_name != NULL && set->held.file_count > 0;
    for (size_t i = 0; i < set->held.file_count && !is_listed; i++) {
        is_listed = tide_str_equal(set->held.files[i].name, occupied);
    }
    if (!found || !is_listed) {
        bool is_dir = set->place.file_name == NULL;
        (void)tide_fail(err, TIDE_INVALID,
                        "%s%.*s is there, and no record says that it is a copy of ours", shown,
                        is_dir ? (int)occupied.len : 0, occupied.ptr);
    } else {
        (void)tide_owner_refuse(&set->held.owner, shown, options, err);
    }
    return tide_owner_add_ways(err, false);
}

/* Refuses what is in the way of a copy that begins, unless it is to be kept or replaced. */
static tide_status check_free(struct tide_file_set *set, const char *shown, tide_status loaded,
                              bool found, const struct tide_sink_options *options,
                              struct tide_error *err)
{
    struct tide_error ignored;
    TIDE_CLEANUP(tide_buf_done) struct tide_buf occupied = {0};
    bool is_ours = found && tide_owner_check(&set->held.owner, shown, options, &ignored) == TIDE_OK;
    const char *name = set->place.file_name;
    if (options->existing != TIDE_EXISTING_REFUSE) {
        return TIDE_OK;
    }
    if (name == NULL) {
        TIDE_TRY(find_occupied(set, is_ours, &occupied, err));
    } else if (is_occupied(set, name, is_ours)) {
        tide_buf_append_str(&occupied, tide_str_from(name));
    }
    return occupied.len == 0
               ? TIDE_OK
               : refuse(set, shown, tide_buf_str(&occupied), loaded, found, options, err);
}

static tide_status start_anew(struct tide_file_set *set, const char *shown, tide_status loaded,
                              bool found, const struct tide_sink_options *options,
                              struct tide_error *err)
{
    TIDE_TRY(check_free(set, shown, loaded, found, options, err));
    if (options->existing == TIDE_EXISTING_OVERWRITE || !is_of_place(set)) {
        TIDE_TRY(remove_recorded(set, err));
    } else {
        TIDE_TRY(keep_valid(set, err));
    }
    return take_over(set, options, err);
}

static tide_status load_record(struct tide_file_set *set, bool *ret_found, struct tide_error *err)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf payload = {0};
    bool found = false;
    TIDE_TRY(tide_durability_load(&set->durability, &found, &payload, err));
    if (found) {
        tide_status status = tide_held_record_decode(tide_buf_str(&payload), &set->held, err);
        if (status != TIDE_OK) {
            return tide_fail_context(err, "%s/%s", set->place.dir.path, set->place.record_name);
        }
    }
    *ret_found = found;
    return TIDE_OK;
}

/* What is done once the record was read, going on and beginning. */
struct manner {
    tide_status (*go_on)(struct tide_file_set *set, const char *shown,
                         const struct tide_sink_options *options, struct tide_error *err);
    tide_status (*begin)(struct tide_file_set *set, const char *shown, tide_status loaded,
                         bool found, const struct tide_sink_options *options,
                         struct tide_error *err);
};

static tide_status prepare(struct tide_file_set *set, const struct manner *manner,
                           const struct tide_sink_options *options, struct tide_error *err)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf name = {0};
    tide_file_set_append_name(set, &name);
    const char *shown = tide_buf_cstr(&name);
    bool found = false;
    set->existing = options->existing;
    tide_status status = load_record(set, &found, err);
    if (status == TIDE_IO) {
        return status;
    }
    if (!options->is_resumed) {
        return manner->begin(set, shown, status, found, options, err);
    }
    if (status == TIDE_OK && found) {
        status = manner->go_on(set, shown, options, err);
    } else if (status == TIDE_OK) {
        status = tide_fail(err, TIDE_STALE,
                           "this pipeline goes on from a checkpoint, but %s has no record of what "
                           "it holds (%s is not there)",
                           shown, set->place.record_name);
    }
    return status == TIDE_OK || status == TIDE_IO ? status : tide_owner_add_ways(err, true);
}

tide_status tide_file_set_prepare(struct tide_file_set *set,
                                  const struct tide_sink_options *options, struct tide_error *err)
{
    static const struct manner opening = {.go_on = continue_held, .begin = start_anew};
    return prepare(set, &opening, options, err);
}

tide_status tide_file_set_look(struct tide_file_set *set, const struct tide_sink_options *options,
                               struct tide_error *err)
{
    static const struct manner looking = {.go_on = look_at_held, .begin = check_free};
    return prepare(set, &looking, options, err);
}
