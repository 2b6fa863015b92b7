/*
 * Changing what a pipeline that does not run will do next: its newest checkpoint is loaded, changed
 * and saved as a newer one, under the lock of its state directory.
 */
#pragma once

#include "app/control/control_message.h"
#include "engine/state.h"
#include "format/checkpoint.h"

struct tide_state_edit {
    struct tide_state *state;
    struct tide_arena arena; /* of the checkpoint and what is put into it */
    enum tide_checkpoint_phase phase;
    struct tide_checkpoint checkpoint;
    const struct tide_position_kind *kind;
};

/**
 * Takes the lock and loads the newest checkpoint. Errors: TIDE_INVALID another process has the
 * directory, or there is no checkpoint that a run would go on from; others as tide_state_load.
 */
tide_status tide_state_edit_open(const char *dir, struct tide_state_edit *ret_edit,
                                 struct tide_error *err);

/** Saves the checkpoint as it is now, durably. */
tide_status tide_state_edit_save(struct tide_state_edit *edit, struct tide_error *err);

/** Gives the lock back. For TIDE_CLEANUP too. */
void tide_state_edit_done(struct tide_state_edit *edit);

/**
 * Asks for new copies of the tables that the globs choose (none: all) for the sink (empty: every
 * sink), in the checkpoint alone; of sinks that the next run copies everything to nothing is asked,
 * nor is what waits already and has not begun.
 * `ret_answer` gets what was chosen, in the arena. Errors:
 * TIDE_INVALID no such sink or table, naming those that there are; nothing was changed then.
 */
tide_status tide_state_edit_backfill(struct tide_state_edit *edit,
                                     const struct tide_control_request *request,
                                     struct tide_control_answer *ret_answer,
                                     struct tide_error *err);

/** Marks the sink as paused, or not; in the checkpoint alone. Errors: TIDE_INVALID no such sink. */
tide_status tide_state_edit_pause(struct tide_state_edit *edit, tide_str sink, bool is_paused,
                                  struct tide_error *err);
