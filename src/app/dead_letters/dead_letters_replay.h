/* Copying anew the tables of which dead letters were kept. */
#pragma once

#include "app/dead_letters/dead_letters_view.h"

struct tide_dead_letters_replay {
    const char *file; /* a configuration or a state directory */
    const char *sink; /* NULL: every sink that has letters */
    const struct tide_table_globs *globs;
    bool is_forced; /* also where the sink would refuse the same records again */
};

/**
 * Asks for new copies of the tables that the letters are of, each for the sink that refused it, and
 * marks the letters as replayed once that is durable; says so on standard output. Nothing is asked
 * for when a sink would refuse one of the records again. Letters of which the sink or the table is
 * not there any more are passed over, with a note on standard error.
 *
 * Errors:  TIDE_INVALID a record would be refused again; TIDE_IO.
 */
tide_status tide_dead_letters_replay(const struct tide_dead_letters_replay *replay,
                                     uint64_t *ret_bad_lines, struct tide_error *err);
