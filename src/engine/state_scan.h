/* Looking through a state directory; what state.c and a look from outside share. */
#pragma once

#include "engine/state.h"

/* What one look through the directory found. */
struct tide_state_scan {
    struct tide_arena arena;
    struct tide_state_checkpoint *items; /* valid ones, in no order */
    size_t count;
    size_t cap;
    struct tide_buf torn; /* a line "name: why" each */
    tide_str *torn_names;
    size_t torn_count;
    size_t torn_cap;
    int64_t newest_us; /* latest time that any name or file says, INT64_MIN without any */
};

/** Reads every checkpoint in the directory. A file that vanishes meanwhile is passed over. */
tide_status tide_state_scan(int dir_fd, const char *dir, struct tide_state_scan *scan,
                            struct tide_error *err);

/** Frees it. `{0}` is fine. For TIDE_CLEANUP too. */
void tide_state_scan_done(struct tide_state_scan *scan);

/** The newest valid one but `except` (NULL: of all); NULL when there is none. */
const struct tide_state_checkpoint *
tide_state_scan_newest(const struct tide_state_scan *scan,
                       const struct tide_state_checkpoint *except);

/** TIDE_CORRUPT when there are torn ones and no valid one, naming them. */
tide_status tide_state_scan_check(const struct tide_state_scan *scan, const char *dir,
                                  struct tide_error *err);

/** True for the name of a checkpoint, "checkpoint_….json". */
bool tide_state_is_checkpoint(const char *name);
