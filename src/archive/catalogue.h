/*
 * What an archive holds, without reading a single row or segment. All of one answer is of one
 * moment; memory is the arena's.
 */
#pragma once

#include "archive/container.h"
#include "archive/metadata.h"
#include "base/arena.h"
#include "base/status.h"
#include "base/uuid.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One producer of rows, over one span of time, by one clock. */
struct tide_archive_source {
    int64_t id; /* of this file alone: a copy may number anew */
    struct tide_archive_pairs labels;
    struct tide_archive_pairs metadata;
    bool is_complete;
    int64_t clock_anchor_wall_ns;
    char uuid[TIDE_UUID_LEN + 1]; /* empty: unknown; else equal ones are one source */
    bool has_heartbeat;
    int64_t heartbeat; /* stands still when the writer has gone */
    int64_t heartbeat_interval_ns;
};

/** Whether a follower made it of what another archive has (archive/follow.h): whoever writes a
 * source itself gives it a heartbeat as it begins. One without a uuid is too old to tell. */
static inline bool tide_archive_is_copied(const struct tide_archive_source *source)
{
    return source->uuid[0] != '\0' && !source->has_heartbeat;
}

/* A named sequence of rows of a source; there as long as it has a row. */
struct tide_archive_series_info {
    int64_t source;
    tide_str name;
    int64_t segments;
    int64_t sealed_rows;
    int64_t sealed_bytes;
    int64_t sealed_from; /* with segments */
    int64_t sealed_to;
    int64_t live_rows;
    int64_t live_from; /* with live rows */
    int64_t live_to;
};

struct tide_archive_catalogue {
    struct tide_archive_source *sources; /* by id */
    size_t source_count;
    struct tide_archive_series_info *series; /* by source, then name as bytes */
    size_t series_count;
};

/** Reads all of it. TIDE_CORRUPT for what no archive has. */
tide_status tide_archive_catalogue_read(struct tide_archive *archive, struct tide_arena *arena,
                                        struct tide_archive_catalogue *ret_catalogue,
                                        struct tide_error *err);

/** Reads one source. TIDE_INVALID there is none of that id. */
tide_status tide_archive_source_read(struct tide_archive *archive, int64_t id,
                                     struct tide_arena *arena,
                                     struct tide_archive_source *ret_source,
                                     struct tide_error *err);

/** One series; all zero where it has no rows. */
tide_status tide_archive_series_read(struct tide_archive *archive, int64_t source, tide_str name,
                                     struct tide_archive_series_info *ret_info,
                                     struct tide_error *err);

/** The time of a source's newest row, in segments or live tail; `ret_is_any`: it has rows. */
tide_status tide_archive_newest_row(struct tide_archive *archive, int64_t source, bool *ret_is_any,
                                    int64_t *ret_ts, struct tide_error *err);

/* Under which name a sink keeps what it holds (port/owner.h). */
#define TIDE_ARCHIVE_HELD_BY_SINK TIDE_STR("sink")

/** Appends the bytes kept under `name` beside a source's rows; `ret_is_any`: there are some. */
tide_status tide_archive_held_read(struct tide_archive *archive, int64_t source, tide_str name,
                                   bool *ret_is_any, struct tide_buf *ret_bytes,
                                   struct tide_error *err);

enum tide_archive_life {
    TIDE_ARCHIVE_UNKNOWN, /* its writer says nothing of itself */
    TIDE_ARCHIVE_LIVE,
    TIDE_ARCHIVE_STOPPED,
    TIDE_ARCHIVE_COMPLETE,
};

/* Looks at one source again and again. `{0}` has not looked yet. */
struct tide_archive_pulse {
    bool has_looked;
    int64_t heartbeat;
    int64_t changed_us; /* monotonic */
};

/** Whether a source's writer lives, as of this look: a heartbeat that did not move for three of its
 * intervals has stopped. */
enum tide_archive_life tide_archive_pulse_look(struct tide_archive_pulse *pulse,
                                               const struct tide_archive_source *source,
                                               int64_t now_us);
