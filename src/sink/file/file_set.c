#include "sink/file/file_set.h"

#include "base/alloc.h"
#include "port/owner.h"
#include "sink/file/file_name.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Well below the usual limit of 1024 for a process that has other things open too. */
#define OPEN_MAX_FILES ((size_t)128)

tide_status tide_file_set_init(struct tide_file_set *set, tide_str place, bool is_resumed,
                               struct tide_error *err)
{
    *set = (struct tide_file_set){.place = {.dir = {.fd = -1}}, .durability = {.fd = -1}};
    TIDE_TRY(tide_file_place_open(place, is_resumed, &set->place, err));
    tide_file_set_begin(set);
    return TIDE_OK;
}

void tide_file_set_begin(struct tide_file_set *set)
{
    tide_durability_init(&set->durability, set->place.dir.fd, set->place.dir.path,
                         set->place.record_name);
}

void tide_file_set_done(struct tide_file_set *set)
{
    for (size_t i = 0; i < set->cap; i++) {
        tide_frames_file_free(set->files[i]);
    }
    free(set->files);
    tide_map_done(&set->by_store);
    tide_held_record_done(&set->held);
    tide_durability_done(&set->durability);
    tide_file_place_close(&set->place);
    tide_buf_done(&set->scratch);
}

void tide_file_set_append_name(const struct tide_file_set *set, struct tide_buf *buf)
{
    const struct tide_file_place *place = &set->place;
    if (place->file_name == NULL) {
        tide_buf_printf(buf, "%s/", strcmp(place->dir_path, "/") == 0 ? "" : place->dir_path);
    } else if (strcmp(place->dir_path, ".") == 0) {
        tide_buf_printf(buf, "%s", place->file_name);
    } else {
        tide_buf_printf(buf, "%s/%s", strcmp(place->dir_path, "/") == 0 ? "" : place->dir_path,
                        place->file_name);
    }
}

void tide_file_set_reserve(struct tide_file_set *set, size_t count)
{
    if (count > set->cap) {
        size_t cap = count < 2 * set->cap ? 2 * set->cap : count;
        set->files = tide_realloc(set->files, cap, sizeof(*set->files));
        memset(set->files + set->cap, 0, (cap - set->cap) * sizeof(*set->files));
        set->cap = cap;
    }
}

tide_status tide_file_set_make_room(struct tide_file_set *set, struct tide_error *err)
{
    struct tide_frames_file *oldest = NULL;
    size_t open = 0;
    for (size_t i = 0; i < set->held.file_count && i < set->cap; i++) {
        struct tide_frames_file *file = set->files[i];
        if (file != NULL && file->fd >= 0) {
            open++;
            oldest = oldest == NULL || file->used < oldest->used ? file : oldest;
        }
    }
    if (open < OPEN_MAX_FILES) {
        return TIDE_OK;
    }
    TIDE_TRY(tide_frames_file_sync(oldest, err));
    tide_frames_file_close(oldest);
    return TIDE_OK;
}

tide_status tide_file_set_sync_dir(const struct tide_file_set *set, struct tide_error *err)
{
    if (fsync(set->place.dir.fd) != 0) {
        return tide_fail_retriable(err, TIDE_IO, "cannot sync directory %s: %s",
                                   set->place.dir.path, strerror(errno));
    }
    return TIDE_OK;
}

void tide_file_set_index(struct tide_file_set *set, size_t index)
{
    set->files[index]->store = set->held.files[index].store;
    tide_map_put(&set->by_store, set->held.files[index].store, NULL)->number = index;
}

tide_status tide_file_set_store_record(struct tide_file_set *set, struct tide_error *err)
{
    tide_buf_reset(&set->scratch);
    tide_held_record_encode(&set->held, &set->held.progress, &set->scratch);
    return tide_durability_store(&set->durability, tide_buf_str(&set->scratch), err);
}

/* Two stores must not share a file: neither by name nor where the file system ignores case. */
static tide_status check_alone(const struct tide_file_set *set, const struct tide_frames_file *file,
                               struct tide_error *err)
{
    struct stat st = {0};
    bool is_there = fstatat(set->place.dir.fd, file->name, &st, 0) == 0;
    for (size_t i = 0; i < set->held.file_count; i++) {
        const struct tide_frames_file *other = set->files[i];
        if (strcmp(other->name, file->name) == 0 || (is_there && other->inode == st.st_ino)) {
            return tide_fail(
                err, TIDE_INVALID,
                "the tables \"%.*s\" and \"%.*s\" would share the file %s; copy one of "
                "them to another place",
                TIDE_STR_ARG(other->store), TIDE_STR_ARG(file->store), file->path);
        }
    }
    return TIDE_OK;
}

/* What becomes of bytes that are there already. */
static tide_status settle_existing(const struct tide_file_set *set, struct tide_frames_file *file,
                                   struct tide_error *err)
{
    switch (set->existing) {
    case TIDE_EXISTING_APPEND:
        if (tide_frames_file_check_kind(file, err) != TIDE_OK) {
            return err->status == TIDE_INVALID ? tide_owner_add_ways_but_append(err) : err->status;
        }
        tide_frames_file_end_line(file);
        return TIDE_OK;
    case TIDE_EXISTING_OVERWRITE:
        return tide_frames_file_cut(file, 0, err);
    case TIDE_EXISTING_REFUSE:
        break;
    }
    return tide_fail(err, TIDE_INVALID,
                     "%s is there, and no record says that it is a copy of ours; append to it "
                     "(--append, or existing: append), replace it (--overwrite, or existing: "
                     "overwrite) or choose another place",
                     file->path);
}

static tide_status create(struct tide_file_set *set, struct tide_frames_file *file,
                          struct tide_error *err)
{
    uint64_t size = 0;
    TIDE_TRY(check_alone(set, file, err));
    TIDE_TRY(tide_file_set_make_room(set, err));
    TIDE_TRY(tide_frames_file_create(file, &size, err));
    if (size > 0) {
        TIDE_TRY(settle_existing(set, file, err));
    }
    return tide_file_set_sync_dir(set, err);
}

tide_status tide_file_set_add(struct tide_file_set *set, tide_str name, tide_str store,
                              struct tide_frames_file **ret_file, struct tide_error *err)
{
    struct tide_frames_file *file = tide_frames_file_new(&set->place.dir, name, store);
    tide_status status = create(set, file, err);
    if (status != TIDE_OK) {
        tide_frames_file_free(file);
        return status;
    }
    size_t index = set->held.file_count;
    struct tide_held_file held = {
        .name = name,
        .store = store,
        .inode = file->inode,
        .length = file->length,
        .tail_hash = tide_frames_file_tail_hash(file),
    };
    (void)tide_held_record_add(&set->held, &held);
    tide_file_set_reserve(set, index + 1);
    set->files[index] = file;
    tide_file_set_index(set, index);
    TIDE_TRY(tide_file_set_store_record(set, err));
    *ret_file = file;
    return TIDE_OK;
}

tide_status tide_file_set_find(struct tide_file_set *set, tide_str store,
                               struct tide_frames_file **ret_file, struct tide_error *err)
{
    if (set->place.file_name != NULL) {
        *ret_file = set->files[0];
        return TIDE_OK;
    }
    const union tide_map_value *index = tide_map_get(&set->by_store, store);
    if (index != NULL) {
        *ret_file = set->files[index->number];
        return TIDE_OK;
    }
    TIDE_CLEANUP(tide_buf_done) struct tide_buf name = {0};
    tide_file_name_append(&name, store);
    return tide_file_set_add(set, tide_buf_str(&name), store, ret_file, err);
}

tide_status tide_file_set_write_out(struct tide_file_set *set, struct tide_frames_file *file,
                                    struct tide_error *err)
{
    if (file->buf.len == 0) {
        return TIDE_OK;
    }
    if (file->fd < 0) {
        TIDE_TRY(tide_file_set_make_room(set, err));
    }
    file->used = ++set->clock;
    return tide_frames_file_write_out(file, err);
}

tide_status tide_file_set_write_out_all(struct tide_file_set *set, struct tide_error *err)
{
    for (size_t i = 0; i < set->held.file_count; i++) {
        TIDE_TRY(tide_file_set_write_out(set, set->files[i], err));
    }
    return TIDE_OK;
}

/* Syncs all; `held` gets their lengths. True in `ret_changed` when one differs from before. */
static tide_status sync_all(struct tide_file_set *set, bool *ret_changed, struct tide_error *err)
{
    bool changed = false;
    for (size_t i = 0; i < set->held.file_count; i++) {
        struct tide_frames_file *file = set->files[i];
        struct tide_held_file *held = &set->held.files[i];
        TIDE_TRY(tide_frames_file_sync(file, err));
        if (held->length != file->length) {
            held->length = file->length;
            held->tail_hash = tide_frames_file_tail_hash(file);
            changed = true;
        }
    }
    *ret_changed = changed;
    return TIDE_OK;
}

/* Files are found through the open directory: that it is still what its path names is checked here.
 */
static tide_status check_dir(const struct tide_file_set *set, struct tide_error *err)
{
    struct stat named;
    struct stat open;
    if (stat(set->place.dir_path, &named) == 0 && fstat(set->place.dir.fd, &open) == 0 &&
        named.st_dev == open.st_dev && named.st_ino == open.st_ino) {
        return TIDE_OK;
    }
    return tide_fail(err, TIDE_STALE,
                     "directory %s was moved or replaced while files in it were being written",
                     set->place.dir_path);
}

tide_status tide_file_set_flush(struct tide_file_set *set, const struct tide_progress *progress,
                                struct tide_error *err)
{
    bool changed = false;
    TIDE_TRY(tide_file_set_write_out_all(set, err));
    TIDE_TRY(sync_all(set, &changed, err));
    if (!changed && tide_progress_equal(progress, &set->held.progress)) {
        return TIDE_OK;
    }
    TIDE_TRY(check_dir(set, err));
    tide_buf_reset(&set->scratch);
    tide_held_record_encode(&set->held, progress, &set->scratch);
    TIDE_TRY(tide_durability_store(&set->durability, tide_buf_str(&set->scratch), err));
    tide_progress_copy(&set->held.progress, progress);
    return TIDE_OK;
}
