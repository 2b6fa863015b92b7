/*
 * What a source's metadata says of who wrote it: `writer_sessions`, an array with an object for
 * each time a writer began or went on, and `events`, {"events":[…]}. Both only grow; what other
 * programs have put into them stays as it is. Pure.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/status.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tide_archive_session {
    tide_str session; /* its UUID */
    int64_t clock_anchor_wall_ns;
    tide_str writer; /* the program and its version, under the key `dendro` */
    bool is_resumed;
    bool has_resumed_after; /* false on a resume: there were no rows */
    int64_t resumed_after_ts;
};

struct tide_archive_event {
    int64_t timestamp;
    tide_str description;
    tide_str kind;
    tide_str id;
};

/** Reads the array; keys that it does not know are passed over. TIDE_CORRUPT. */
tide_status tide_archive_sessions_read(tide_str json, struct tide_arena *arena,
                                       struct tide_archive_session **ret_sessions,
                                       size_t *ret_count, struct tide_error *err);

/** Appends to `buf` the array `json` with one session more; ptr NULL: there is none yet. */
tide_status tide_archive_sessions_append(tide_str json, const struct tide_archive_session *session,
                                         struct tide_buf *buf, struct tide_error *err);

/** Appends to `buf` the object `json` with one event more; ptr NULL: there is none yet. */
tide_status tide_archive_events_append(tide_str json, const struct tide_archive_event *event,
                                       struct tide_buf *buf, struct tide_error *err);
