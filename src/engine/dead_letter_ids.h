/*
 * The ids of the newest dead letters, so that one that comes again is known. Bounded: two sets of
 * which the older is forgotten when the newer is full, so at least the newest `max` are there.
 * One thread at a time.
 */
#pragma once

#include "format/dead_letter.h"

struct tide_dead_letter_id_set {
    struct tide_dead_letter_id *slots; /* open addressing; all zero: free */
    size_t cap;                        /* a power of two, or 0 */
    size_t count;
};

struct tide_dead_letter_ids {
    size_t max; /* of each set */
    struct tide_dead_letter_id_set newer;
    struct tide_dead_letter_id_set older;
};

/** `max`: ids of each set, one or more. */
void tide_dead_letter_ids_init(struct tide_dead_letter_ids *ids, size_t max);
/** Frees them; an empty one is left. */
void tide_dead_letter_ids_done(struct tide_dead_letter_ids *ids);

/** False may also be said of one that is long gone. */
bool tide_dead_letter_ids_has(const struct tide_dead_letter_ids *ids,
                              struct tide_dead_letter_id id);

/** Makes it the newest. Fine when it is there. */
void tide_dead_letter_ids_add(struct tide_dead_letter_ids *ids, struct tide_dead_letter_id id);
