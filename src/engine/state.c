#include "engine/state.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fsio.h"
#include "base/limits.h"
#include "engine/state_scan.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A look that finds files only just removed is taken again so often. */
#define PEEKS_MAX 10

/* A command that changes a stopped pipeline has the lock for a moment: it is waited for so long. */
#define LOCK_WAIT_US INT64_C(2000000)
#define LOCK_LOOK_US 10000

struct tide_state {
    char *dir;
    int dir_fd;
    int lock_fd;
    bool is_scanned;           /* newest and what is to go are known */
    int64_t created_us;        /* of the newest file, whatever is in it */
    char newest[NAME_MAX + 1]; /* last valid one; empty: none */
    char older[NAME_MAX + 1];  /* the valid one before it */
    struct tide_arena arena;   /* of `stale` */
    const char **stale;        /* older and torn ones, removed after the next save */
    size_t stale_count;
    struct tide_buf file; /* kept for its memory */
};

static bool is_temporary(const char *name)
{
    return name[0] == '.' && tide_str_ends_with(tide_str_from(name), TIDE_STR(".tmp"));
}

/* Behind the lock nobody else writes: what is left is of a process that died. */
static tide_status remove_temporaries(const struct tide_state *state, struct tide_error *err)
{
    DIR *stream = opendir(state->dir);
    if (stream == NULL) {
        return tide_fail(err, TIDE_IO, "cannot read directory %s: %s", state->dir, strerror(errno));
    }
    for (const struct dirent *entry; (entry = readdir(stream)) != NULL;) {
        if (is_temporary(entry->d_name)) {
            (void)unlinkat(state->dir_fd, entry->d_name, 0);
        }
    }
    (void)closedir(stream);
    return TIDE_OK;
}

static tide_status take_lock(struct tide_state *state, struct tide_error *err)
{
    int64_t deadline_us = tide_clock_deadline_us(LOCK_WAIT_US);
    for (;;) {
        tide_status status = tide_dir_lock(state->dir, &state->lock_fd, err);
        if (status != TIDE_INVALID || tide_clock_monotonic_us() >= deadline_us) {
            return status;
        }
        (void)usleep(LOCK_LOOK_US);
    }
}

static tide_status open_locked(struct tide_state *state, struct tide_error *err)
{
    TIDE_TRY(tide_dir_make(state->dir, err));
    TIDE_TRY(tide_dir_open(state->dir, &state->dir_fd, err));
    TIDE_TRY(take_lock(state, err));
    return remove_temporaries(state, err);
}

tide_status tide_state_open(const char *dir, struct tide_state **ret_state, struct tide_error *err)
{
    struct tide_state *state = tide_alloc(1, sizeof(*state));
    state->dir = tide_strndup(dir, strlen(dir));
    state->dir_fd = -1;
    state->lock_fd = -1;
    state->created_us = INT64_MIN;
    tide_status status = open_locked(state, err);
    if (status != TIDE_OK) {
        tide_state_close(state);
        return status;
    }
    *ret_state = state;
    return TIDE_OK;
}

void tide_state_close(struct tide_state *state)
{
    if (state == NULL) {
        return;
    }
    tide_fd_close(&state->lock_fd);
    tide_fd_close(&state->dir_fd);
    tide_arena_done(&state->arena);
    tide_buf_done(&state->file);
    free(state->dir);
    free(state);
}

const char *tide_state_dir(const struct tide_state *state)
{
    return state->dir;
}

static void copy_name(char to[NAME_MAX + 1], const struct tide_state_checkpoint *item)
{
    size_t len = item == NULL ? 0 : item->file.len;
    TIDE_ASSERT(len <= NAME_MAX);
    if (len > 0) {
        memcpy(to, item->file.ptr, len);
    }
    to[len] = '\0';
}

/* Remembers the two newest, and all others as stale. */
static void take_over(struct tide_state *state, const struct tide_state_scan *scan)
{
    const struct tide_state_checkpoint *newest = tide_state_scan_newest(scan, NULL);
    const struct tide_state_checkpoint *older =
        newest == NULL ? NULL : tide_state_scan_newest(scan, newest);
    copy_name(state->newest, newest);
    copy_name(state->older, older);
    state->stale =
        tide_arena_alloc(&state->arena, scan->count + scan->torn_count, sizeof(*state->stale));
    state->stale_count = 0;
    for (size_t i = 0; i < scan->count; i++) {
        if (&scan->items[i] != newest && &scan->items[i] != older) {
            state->stale[state->stale_count++] =
                tide_arena_cstr(&state->arena, scan->items[i].file);
        }
    }
    for (size_t i = 0; i < scan->torn_count; i++) {
        state->stale[state->stale_count++] = tide_arena_cstr(&state->arena, scan->torn_names[i]);
    }
    if (scan->newest_us > state->created_us) {
        state->created_us = scan->newest_us;
    }
    state->is_scanned = true;
}

tide_status tide_state_load(struct tide_state *state, struct tide_arena *arena, bool *ret_found,
                            tide_str *ret_json, enum tide_checkpoint_phase *ret_phase,
                            struct tide_buf *ret_warnings, struct tide_error *err)
{
    TIDE_CLEANUP(tide_state_scan_done) struct tide_state_scan scan = {0};
    TIDE_TRY(tide_state_scan(state->dir_fd, state->dir, &scan, err));
    take_over(state, &scan);
    TIDE_TRY(tide_state_scan_check(&scan, state->dir, err));
    const struct tide_state_checkpoint *newest = tide_state_scan_newest(&scan, NULL);
    tide_buf_append_str(ret_warnings, tide_buf_str(&scan.torn));
    *ret_found = newest != NULL;
    if (newest != NULL) {
        *ret_json = tide_arena_str(arena, newest->json);
        *ret_phase = newest->phase;
    }
    return TIDE_OK;
}

static void remove_stale(struct tide_state *state)
{
    for (size_t i = 0; i < state->stale_count; i++) {
        (void)unlinkat(state->dir_fd, state->stale[i], 0); /* one that stays does no harm */
    }
    state->stale_count = 0;
    tide_arena_done(&state->arena);
}

/* The clock, or just past the checkpoint before where the clock was set back. */
static int64_t next_created_us(const struct tide_state *state)
{
    int64_t now_us = tide_clock_utc_us();
    return now_us > state->created_us ? now_us : state->created_us + 1;
}

static void name_of(enum tide_checkpoint_phase phase, int64_t created_us, char to[NAME_MAX + 1])
{
    char time[40];
    tide_rfc3339_us(created_us, "+00:00", time);
    (void)snprintf(to, NAME_MAX + 1, "checkpoint_%s_%s.json", tide_checkpoint_phase_name(phase),
                   time);
}

/* The file just written is the newest; of the others only the one before it stays. */
static void shift(struct tide_state *state, const char *name, int64_t created_us)
{
    if (state->older[0] != '\0' && strcmp(state->older, name) != 0) {
        (void)unlinkat(state->dir_fd, state->older, 0);
    }
    remove_stale(state);
    if (strcmp(state->newest, name) != 0) {
        memcpy(state->older, state->newest, sizeof(state->older));
    }
    (void)snprintf(state->newest, sizeof(state->newest), "%s", name);
    state->created_us = created_us;
}

tide_status tide_state_save(struct tide_state *state, tide_str compact_json,
                            enum tide_checkpoint_phase phase, struct tide_error *err)
{
    char name[NAME_MAX + 1];
    if (!state->is_scanned) {
        TIDE_CLEANUP(tide_state_scan_done) struct tide_state_scan scan = {0};
        TIDE_TRY(tide_state_scan(state->dir_fd, state->dir, &scan, err));
        take_over(state, &scan);
    }
    int64_t created_us = next_created_us(state);
    tide_buf_reset(&state->file);
    tide_checkpoint_file_encode(compact_json, phase, created_us, &state->file);
    if (state->file.len > TIDE_CHECKPOINT_BYTES_MAX) {
        return tide_fail(err, TIDE_INVALID,
                         "checkpoint of %zu bytes is larger than the %zu that can be read again: "
                         "copy fewer tables at a time",
                         state->file.len, TIDE_CHECKPOINT_BYTES_MAX);
    }
    name_of(phase, created_us, name);
    TIDE_TRY(
        tide_file_replace_at(state->dir_fd, state->dir, name, tide_buf_str(&state->file), err));
    shift(state, name, created_us);
    return TIDE_OK;
}

tide_status tide_state_drop_older(struct tide_state *state, struct tide_error *err)
{
    if (state->older[0] != '\0' && unlinkat(state->dir_fd, state->older, 0) != 0 &&
        errno != ENOENT) {
        return tide_fail(err, TIDE_IO, "cannot remove %s/%s: %s", state->dir, state->older,
                         strerror(errno));
    }
    state->older[0] = '\0';
    return TIDE_OK;
}

/* One look. False in `ret_settled`: only files that vanished under it. */
static tide_status peek_once(int dir_fd, const char *dir, struct tide_arena *arena, bool *ret_found,
                             struct tide_state_checkpoint *ret_checkpoint,
                             struct tide_buf *ret_warnings, struct tide_error *err)
{
    TIDE_CLEANUP(tide_state_scan_done) struct tide_state_scan scan = {0};
    TIDE_TRY(tide_state_scan(dir_fd, dir, &scan, err));
    TIDE_TRY(tide_state_scan_check(&scan, dir, err));
    const struct tide_state_checkpoint *newest = tide_state_scan_newest(&scan, NULL);
    *ret_found = newest != NULL;
    if (newest != NULL) {
        tide_buf_append_str(ret_warnings, tide_buf_str(&scan.torn));
        *ret_checkpoint = *newest;
        ret_checkpoint->file = tide_arena_str(arena, newest->file);
        ret_checkpoint->json = tide_arena_str(arena, newest->json);
    }
    return TIDE_OK;
}

tide_status tide_state_peek(const char *dir, struct tide_arena *arena, bool *ret_found,
                            struct tide_state_checkpoint *ret_checkpoint,
                            struct tide_buf *ret_warnings, struct tide_error *err)
{
    TIDE_CLEANUP(tide_fd_close) int dir_fd = -1;
    bool found = false;
    TIDE_TRY(tide_dir_open(dir, &dir_fd, err));
    for (unsigned i = 0; i < PEEKS_MAX && !found; i++) {
        TIDE_TRY(peek_once(dir_fd, dir, arena, &found, ret_checkpoint, ret_warnings, err));
    }
    *ret_found = found;
    return TIDE_OK;
}
