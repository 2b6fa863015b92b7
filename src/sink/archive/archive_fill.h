/*
 * Remembers the last version of rows that went by, so that values which a source does not send
 * again when they have not changed can be filled in. Bounded: rows that were not touched for
 * longest are forgotten first. One sink thread uses it.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/limits.h"
#include "base/map.h"
#include "model/change.h"
#include "model/relation.h"
#include "model/value.h"

#include <stddef.h>

#define TIDE_ARCHIVE_FILL_BYTES_MAX (16 * TIDE_MIB)

struct tide_archive_fill_entry;

struct tide_archive_fill {
    struct tide_map by_key; /* store and key to an entry */
    struct tide_archive_fill_entry *newest;
    struct tide_archive_fill_entry *oldest;
    size_t bytes;
    size_t bytes_max;
    struct tide_buf key; /* under way */
};

/** Remembers nothing yet, and so many bytes at most. */
void tide_archive_fill_init(struct tide_archive_fill *fill, size_t bytes_max);
/** Frees what it remembers. */
void tide_archive_fill_done(struct tide_archive_fill *fill);

/** The row of that key (relation->key_count values) is now this; unsent values stay unknown. */
void tide_archive_fill_note(struct tide_archive_fill *fill, const struct tide_relation *relation,
                            const struct tide_value *key, const struct tide_value *values);

/** Of the row of that key nothing is known any more. */
void tide_archive_fill_forget(struct tide_archive_fill *fill, const struct tide_relation *relation,
                              const struct tide_value *key);

/** The same of all rows of a table. */
void tide_archive_fill_forget_table(struct tide_archive_fill *fill,
                                    const struct tide_relation *relation);

/** Fills what is unsent in `values` from the row of that key; true when nothing is left unsent.
 * What is filled in is good until the next note or forget. */
bool tide_archive_fill_apply(struct tide_archive_fill *fill, const struct tide_relation *relation,
                             const struct tide_value *key, struct tide_value *values);

/**
 * The change's values with what is unsent filled in, in `arena` where there is something to fill;
 * NULL where it has none. What is filled in is good until the next note, forget or change.
 */
const struct tide_value *tide_archive_fill_values(struct tide_archive_fill *fill,
                                                  const struct tide_change *change,
                                                  struct tide_arena *arena, bool *ret_is_whole);

/** Remembers what the change has done; `values` as they were filled in, NULL where they are not
 * known. */
void tide_archive_fill_change(struct tide_archive_fill *fill, const struct tide_change *change,
                              const struct tide_value *values);
