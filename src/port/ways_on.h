/*
 * How messages name the way out of a state that cannot be gone on from. Both `copy`, which has
 * options, and `run`, which has a configuration, say it. Both begin "start anew".
 */
#pragma once

/* With another state. */
#define TIDE_ANEW_STATE                                                                            \
    "start anew with another state directory (--state, or state: in the configuration)"

/* The same where the targets hold what the old state is about. */
#define TIDE_ANEW TIDE_ANEW_STATE " and --overwrite (or existing: overwrite)"
