/*
 * Whose copy a sink holds, as sinks that remember keep it together with how far it has come; and
 * what they say when it is not the one that goes on. Pure.
 *
 *     integers little-endian; text: u32 length, bytes
 *     text pipeline   text source identity   text kind of positions
 *     u8 is there a place   u64 hi   u64 lo   u64 index
 *     u32 snapshots, each: 36 bytes id   u32 attempt   u64 next seq
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/reader.h"
#include "base/status.h"
#include "port/progress.h"
#include "port/sink.h"

struct tide_owner {
    tide_str pipeline;
    tide_str identity; /* of the source */
    tide_str position_kind;
};

/** Whose copy a sink with these options writes; borrows from them. */
struct tide_owner tide_owner_of(const struct tide_sink_options *options);

/** The same with its texts in `arena`. */
struct tide_owner tide_owner_copy(const struct tide_owner *owner, struct tide_arena *arena);

/** TIDE_INVALID another pipeline's, TIDE_STALE of another source; `shown` is the sink's place. */
tide_status tide_owner_check(const struct tide_owner *owner, const char *shown,
                             const struct tide_sink_options *options, struct tide_error *err);

/** Says that a copy that begins finds this one in its place; TIDE_INVALID or TIDE_STALE. */
tide_status tide_owner_refuse(const struct tide_owner *owner, const char *shown,
                              const struct tide_sink_options *options, struct tide_error *err);

/** Puts the ways on behind the error's message: of a copy that goes on, or of one that begins. */
tide_status tide_owner_add_ways(struct tide_error *err, bool is_resumed);

/** The same of a copy that begins, where what is there cannot be appended to. */
tide_status tide_owner_add_ways_but_append(struct tide_error *err);

/** Appends both as they are kept. */
void tide_owner_encode(const struct tide_owner *owner, const struct tide_progress *progress,
                       struct tide_buf *buf);

/** Takes what encode wrote; texts go to `arena`, snapshots are added to `progress`. On a shortage
 * the reader has failed. */
void tide_owner_take(struct tide_reader *reader, struct tide_arena *arena,
                     struct tide_owner *ret_owner, struct tide_progress *progress);

/* The parts of such records, for what a sink keeps beside these. */

/** Appends the lowest `bytes` bytes of a number, the lowest first. */
void tide_held_put_number(struct tide_buf *buf, uint64_t value, size_t bytes);
void tide_held_put_text(struct tide_buf *buf, tide_str text);
uint64_t tide_held_take_number(struct tide_reader *reader, size_t bytes);
/** Borrows. */
tide_str tide_held_take_text(struct tide_reader *reader);
