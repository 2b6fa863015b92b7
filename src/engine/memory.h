/*
 * What a copy remembers of the changes to its table: all that some chunk, already read or still to
 * be read, may not see. In log order. Belongs to the ingest thread.
 *
 *     segment ──▶ segment ──▶ segment      each: an arena and up to 256 entries;
 *     [x x . x]   [. x x x]   [x x]        freed whole once every entry of it is forgotten
 */
#pragma once

#include "base/budget.h"
#include "base/buf.h"
#include "base/map.h"
#include "model/change.h"
#include "model/chunk.h"

#include <stdbool.h>
#include <stddef.h>

struct tide_memory_segment;

struct tide_memory {
    struct tide_memory_segment *oldest;
    struct tide_memory_segment *newest;
    size_t size;               /* bytes, with what reconcile needs to look its entries up */
    struct tide_charge charge; /* for them; its budget is set by the owner */
    /* scratch of tide_memory_reconcile */
    struct tide_map rows_by_key;
    struct tide_buf key;
};

/* Called for a key of the chunk's read-again list that has to be read once more. */
typedef void tide_memory_retry(void *context, const struct tide_value *key, size_t count);

/** `{0}` is an empty memory. */
void tide_memory_done(struct tide_memory *memory);

/** Forgets everything. */
void tide_memory_reset(struct tide_memory *memory);

/**
 * Remembers the change; what is needed of it is copied. False: there is no room for so much, and
 * the caller resets the memory.
 */
bool tide_memory_add(struct tide_memory *memory, const struct tide_change *change);

/** Forgets the changes that each of the `count` chunks sees. */
void tide_memory_forget(struct tide_memory *memory, const struct tide_chunk *const *chunks,
                        size_t count);

/**
 * Makes the chunk's rows fit to go out: a row whose key an unseen change brings, deletes or moves
 * away becomes NULL in `chunk->rows`; one whose unseen changes lack columns gets them applied.
 * `again` are the keys that the chunk was asked to read again: `retry` is called for those that an
 * unseen change without all columns has touched.
 */
void tide_memory_reconcile(struct tide_memory *memory, struct tide_chunk *chunk,
                           const struct tide_relation *relation,
                           const struct tide_value *const *again, size_t again_count,
                           tide_memory_retry *retry, void *context);
