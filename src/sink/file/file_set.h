/*
 * A file sink's inside: its files with what is held of each, one file for all stores or one for
 * each. What is in `held` is what the record on disk says. One sink thread uses it.
 */
#pragma once

#include "base/map.h"
#include "port/progress.h"
#include "port/sink.h"
#include "sink/file/durability.h"
#include "sink/file/file_place.h"
#include "sink/file/frames_file.h"
#include "sink/file/held_record.h"

#include <stddef.h>
#include <stdint.h>

struct tide_file_set {
    struct tide_file_place place;
    enum tide_sink_existing existing; /* what becomes of a file that no record knows */
    struct tide_durability durability;
    struct tide_held_record held;
    struct tide_frames_file **files; /* held.file_count elements, in its order */
    size_t cap;
    struct tide_map by_store; /* to the number of the file; unused with one file for all */
    uint64_t clock;           /* counts writes, for telling which file was used last */
    struct tide_buf scratch;
};

/** Opens the place (file_place.h); nothing is read or written yet. */
tide_status tide_file_set_init(struct tide_file_set *set, tide_str place, bool is_resumed,
                               struct tide_error *err);
void tide_file_set_done(struct tide_file_set *set);

/** For a set whose place was opened apart from it. */
void tide_file_set_begin(struct tide_file_set *set);

/** The place as a user writes it, a slash behind a directory: for messages. */
void tide_file_set_append_name(const struct tide_file_set *set, struct tide_buf *buf);

/** Room for the objects of all files in `held`; those that are there stay. */
void tide_file_set_reserve(struct tide_file_set *set, size_t count);

/** Closes a file if many are open, so that one more may be. TIDE_IO, retriable. */
tide_status tide_file_set_make_room(struct tide_file_set *set, struct tide_error *err);

/** Makes names that were added or removed durable. TIDE_IO, retriable. */
tide_status tide_file_set_sync_dir(const struct tide_file_set *set, struct tide_error *err);

/** Number `index` is the file of its store from now on. */
void tide_file_set_index(struct tide_file_set *set, size_t index);

/**
 * Adds a file and says so in the record, before anything is written to it. Errors: TIDE_INVALID it
 * is there and is to be refused, or two stores would share it; TIDE_IO.
 */
tide_status tide_file_set_add(struct tide_file_set *set, tide_str name, tide_str store,
                              struct tide_frames_file **ret_file, struct tide_error *err);

/** The file that takes the frames of `store`, made when it is new. */
tide_status tide_file_set_find(struct tide_file_set *set, tide_str store,
                               struct tide_frames_file **ret_file, struct tide_error *err);

/** Writes what the file has buffered. */
tide_status tide_file_set_write_out(struct tide_file_set *set, struct tide_frames_file *file,
                                    struct tide_error *err);

/** Writes what all have buffered. */
tide_status tide_file_set_write_out_all(struct tide_file_set *set, struct tide_error *err);

/** Writes and syncs all, then makes the record say so, with `progress`. */
tide_status tide_file_set_flush(struct tide_file_set *set, const struct tide_progress *progress,
                                struct tide_error *err);

/** Writes the record as `held` has it. */
tide_status tide_file_set_store_record(struct tide_file_set *set, struct tide_error *err);
