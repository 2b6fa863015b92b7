/*
 * A pipeline's state directory: the newest two checkpoints, one file each, and the lock that keeps
 * a second process out.
 *
 *     lock                                                      pid of the process that holds it
 *     checkpoint_{phase}_{2026-11-29T13:40:55.567381+00:00}.json
 *
 * A checkpoint is written beside (a name that begins with a dot), synced, renamed, the directory
 * synced: at any moment a whole one is there. The one before is kept too, so the source may be
 * confirmed up to the older of the two only. Which one is the newest the sequence number inside
 * says, not the clock. One thread at a time.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/status.h"
#include "format/checkpoint.h"

#include <stdbool.h>
#include <stdint.h>

struct tide_state;

/* A checkpoint found in a directory. Strings live in the arena that was given. */
struct tide_state_checkpoint {
    tide_str file; /* name within the directory */
    tide_str json; /* compact */
    enum tide_checkpoint_phase phase;
    int64_t created_us; /* UTC */
    bool has_sequence;  /* false: of another program, no `tidemark` inside */
    uint64_t sequence;
};

/**
 * Makes the directory (0700) where it is missing, takes its lock and removes temporary files that
 * an interrupted process left. Waits two seconds for the lock: commands have it for a moment.
 * Errors: TIDE_INVALID another process has it, with its pid; TIDE_IO.
 */
tide_status tide_state_open(const char *dir, struct tide_state **ret_state, struct tide_error *err);

/** Frees the lock. NULL is fine. */
void tide_state_close(struct tide_state *state);

/** The directory as it was given to open. */
const char *tide_state_dir(const struct tide_state *state);

/**
 * The newest valid checkpoint's compact JSON, in `arena`: the highest sequence number, and only
 * where no file has one the newest created_at. `*ret_found` false: the directory holds none. Files
 * that are torn are passed over, a line each in `ret_warnings`.
 * Errors: TIDE_CORRUPT none is valid where some exist, naming them; TIDE_UNSUPPORTED one is of a
 * newer version of the program; TIDE_IO one cannot be read.
 */
tide_status tide_state_load(struct tide_state *state, struct tide_arena *arena, bool *ret_found,
                            tide_str *ret_json, enum tide_checkpoint_phase *ret_phase,
                            struct tide_buf *ret_warnings, struct tide_error *err);

/**
 * Saves the checkpoint durably and then removes all but it and the newest valid one before it. Its
 * sequence number must be higher than that of every one loaded or saved before, also when a copy
 * starts anew. created_at is the clock, or a microsecond past the one before if that is later.
 * Seven system calls. Errors: TIDE_IO; TIDE_INVALID larger than could be loaded again.
 */
tide_status tide_state_save(struct tide_state *state, tide_str compact_json,
                            enum tide_checkpoint_phase phase, struct tide_error *err);

/** Removes every checkpoint but the one saved last, whatever their sequence numbers. */
tide_status tide_state_drop_older(struct tide_state *state, struct tide_error *err);

/**
 * As load, without lock and without changing anything: for looking at a directory that another
 * process may be writing to.
 */
tide_status tide_state_peek(const char *dir, struct tide_arena *arena, bool *ret_found,
                            struct tide_state_checkpoint *ret_checkpoint,
                            struct tide_buf *ret_warnings, struct tide_error *err);
