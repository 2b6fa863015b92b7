/*
 * Labels and metadata of a source: JSON objects from string to string. Written compact, by rising
 * key. Pure: the text comes from a file and is checked.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/status.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>

struct tide_archive_pair {
    tide_str key;
    tide_str value;
};

struct tide_archive_pairs {
    struct tide_archive_pair *items;
    size_t count;
};

/* Keys of the metadata that have a meaning of their own. */
#define TIDE_ARCHIVE_KEY_SESSIONS "writer_sessions"
#define TIDE_ARCHIVE_KEY_ENCODER  "encoder"
#define TIDE_ARCHIVE_KEY_EVENTS   "events"

/** Reads an object of strings; a key that stands twice is refused. Texts live in `json` or `arena`.
 * TIDE_CORRUPT for anything else. */
tide_status tide_archive_pairs_read(tide_str json, struct tide_arena *arena,
                                    struct tide_archive_pairs *ret_pairs, struct tide_error *err);

/** Appends the object, sorting `pairs`. Keys and values must be UTF-8. */
void tide_archive_pairs_write(struct tide_archive_pairs *pairs, struct tide_buf *buf);

/** The value under `key`; ptr NULL when there is none. */
tide_str tide_archive_pairs_get(const struct tide_archive_pairs *pairs, tide_str key);

/** Sets `key`; the array moves into `arena`, texts are borrowed. */
void tide_archive_pairs_set(struct tide_archive_pairs *pairs, struct tide_arena *arena,
                            tide_str key, tide_str value);
