#include "engine/state_scan.h"

#include "base/clock.h"
#include "base/fsio.h"
#include "base/limits.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PREFIX TIDE_STR("checkpoint_")
#define SUFFIX TIDE_STR(".json")

bool tide_state_is_checkpoint(const char *name)
{
    tide_str s = tide_str_from(name);
    return s.len > PREFIX.len + SUFFIX.len && tide_str_starts_with(s, PREFIX) &&
           tide_str_ends_with(s, SUFFIX);
}

void tide_state_scan_done(struct tide_state_scan *scan)
{
    tide_arena_done(&scan->arena);
    tide_buf_done(&scan->torn);
    *scan = (struct tide_state_scan){0};
}

/* The array of `count` elements, moved where twice as many have room when it is full. */
static void *grown(struct tide_arena *arena, void *items, size_t count, size_t *cap, size_t size)
{
    if (count < *cap) {
        return items;
    }
    *cap = count < 4 ? 4 : count * 2;
    void *moved = tide_arena_alloc(arena, *cap, size);
    if (count > 0) {
        memcpy(moved, items, count * size);
    }
    return moved;
}

static void add_torn(struct tide_state_scan *scan, tide_str name, const struct tide_error *why)
{
    scan->torn_names = grown(&scan->arena, scan->torn_names, scan->torn_count, &scan->torn_cap,
                             sizeof(*scan->torn_names));
    scan->torn_names[scan->torn_count++] = name;
    tide_buf_printf(&scan->torn, "%.*s: %s\n", TIDE_STR_ARG(name), why->message);
}

/* The time that the name ends with counts also for a torn file: a later one must be past it. */
static void note_time_of_name(struct tide_state_scan *scan, tide_str name)
{
    struct tide_error ignored;
    int64_t time_us = 0;
    const char *underscore = memrchr(name.ptr, '_', name.len);
    const char *from = underscore == NULL ? name.ptr : underscore + 1;
    size_t len = (size_t)(name.ptr + name.len - from);
    tide_str text = tide_str_of(from, len < SUFFIX.len ? 0 : len - SUFFIX.len);
    if (tide_rfc3339_parse(text, &time_us, &ignored) == TIDE_OK && time_us > scan->newest_us) {
        scan->newest_us = time_us;
    }
}

/* Decodes the whole of it: what is torn inside must show now, not when it is needed. */
static tide_status decode(struct tide_arena *arena, tide_str bytes,
                          struct tide_state_checkpoint *ret_item, struct tide_error *err)
{
    struct tide_checkpoint checkpoint = {0};
    TIDE_TRY(tide_checkpoint_file_decode(bytes, arena, &ret_item->json, &ret_item->phase,
                                         &ret_item->created_us, err));
    TIDE_TRY(tide_checkpoint_decode(ret_item->json, NULL, arena, &checkpoint, err));
    ret_item->has_sequence = checkpoint.has_tidemark;
    ret_item->sequence = checkpoint.sequence;
    return TIDE_OK;
}

static tide_status read_one(int dir_fd, const char *dir, const char *name,
                            struct tide_state_scan *scan, struct tide_error *err)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf bytes = {0};
    TIDE_CLEANUP(tide_arena_done) struct tide_arena scratch = {0};
    char path[PATH_MAX];
    struct tide_state_checkpoint item = {0};
    (void)snprintf(path, sizeof(path), "%s/%s", dir, name);
    tide_status status = tide_file_read(path, TIDE_CHECKPOINT_BYTES_MAX, &bytes, err);
    if (status == TIDE_IO && faccessat(dir_fd, name, F_OK, 0) != 0 && errno == ENOENT) {
        return TIDE_OK; /* replaced and removed while we looked */
    }
    item.file = tide_arena_str(&scan->arena, tide_str_from(name));
    note_time_of_name(scan, item.file);
    if (status == TIDE_OK) {
        status = decode(&scratch, tide_buf_str(&bytes), &item, err);
    }
    if (status == TIDE_CORRUPT) {
        add_torn(scan, item.file, err);
        return TIDE_OK;
    }
    if (status != TIDE_OK) {
        return tide_fail_context(err, "checkpoint %s", path);
    }
    item.json = tide_arena_str(&scan->arena, item.json);
    scan->items = grown(&scan->arena, scan->items, scan->count, &scan->cap, sizeof(*scan->items));
    scan->items[scan->count++] = item;
    scan->newest_us = item.created_us > scan->newest_us ? item.created_us : scan->newest_us;
    return TIDE_OK;
}

static void close_dir(DIR **stream)
{
    if (*stream != NULL) {
        (void)closedir(*stream);
    }
}

tide_status tide_state_scan(int dir_fd, const char *dir, struct tide_state_scan *scan,
                            struct tide_error *err)
{
    TIDE_CLEANUP(close_dir) DIR *stream = opendir(dir);
    if (stream == NULL) {
        return tide_fail(err, TIDE_IO, "cannot open directory %s: %s", dir, strerror(errno));
    }
    scan->newest_us = INT64_MIN;
    for (;;) {
        errno = 0;
        const struct dirent *entry = readdir(stream);
        if (entry == NULL) {
            return errno == 0 ? TIDE_OK
                              : tide_fail(err, TIDE_IO, "cannot read directory %s: %s", dir,
                                          strerror(errno));
        }
        if (tide_state_is_checkpoint(entry->d_name)) {
            TIDE_TRY(read_one(dir_fd, dir, entry->d_name, scan, err));
        }
    }
}

/* Sequence numbers before times; times, then names, where there are none. */
static bool is_newer(const struct tide_state_checkpoint *a, const struct tide_state_checkpoint *b)
{
    if (a->has_sequence != b->has_sequence) {
        return a->has_sequence;
    }
    if (a->sequence != b->sequence) {
        return a->sequence > b->sequence;
    }
    if (a->created_us != b->created_us) {
        return a->created_us > b->created_us;
    }
    return tide_str_compare(a->file, b->file) > 0;
}

const struct tide_state_checkpoint *
tide_state_scan_newest(const struct tide_state_scan *scan,
                       const struct tide_state_checkpoint *except)
{
    const struct tide_state_checkpoint *newest = NULL;
    for (size_t i = 0; i < scan->count; i++) {
        const struct tide_state_checkpoint *item = &scan->items[i];
        if (item != except && (newest == NULL || is_newer(item, newest))) {
            newest = item;
        }
    }
    return newest;
}

tide_status tide_state_scan_check(const struct tide_state_scan *scan, const char *dir,
                                  struct tide_error *err)
{
    if (scan->count > 0 || scan->torn_count == 0) {
        return TIDE_OK;
    }
    TIDE_CLEANUP(tide_buf_done) struct tide_buf names = {0};
    for (size_t i = 0; i < scan->torn_count && names.len < 256; i++) {
        tide_buf_printf(&names, "%s%.*s", i == 0 ? "" : ", ", TIDE_STR_ARG(scan->torn_names[i]));
    }
    return tide_fail(err, TIDE_CORRUPT,
                     "no checkpoint in %s can be read (%s): put back a good one with `tidemark "
                     "checkpoint import`, or remove them to start anew",
                     dir, tide_buf_cstr(&names));
}
