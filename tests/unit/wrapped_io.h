/*
 * The calls that change files, counted, for tests that die at each of them. Link with the options
 * that tests/unit/meson.build has for it. Until armed, calls go through.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct wrapped_plan {
    unsigned die_at; /* the call, from 1 on, before or halfway through which SIGKILL comes */
    bool cuts_power; /* before that, what was not synced is lost in part */
    uint64_t seed;
};

/* In a child process, which works on files below its current directory. */
void wrapped_io_arm(const struct wrapped_plan *plan);
