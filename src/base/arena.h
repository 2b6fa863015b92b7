/*
 * A bump allocator: many small pieces, freed all at once. Blocks grow from 4 KiB to 1 MiB, larger
 * requests get a block of their own. Not for several threads at once; may be handed over.
 */
#pragma once

#include "base/str.h"

#include <stddef.h>

struct tide_arena_block;

struct tide_arena {
    struct tide_arena_block *block; /* newest first */
    char *pos;
    char *end;
    size_t size; /* bytes of all blocks: what the arena costs */
};

/** Frees every block. `{0}` is an empty arena. For TIDE_CLEANUP too. */
void tide_arena_done(struct tide_arena *arena);

/** Forgets all pieces, keeps the newest block for reuse. */
void tide_arena_reset(struct tide_arena *arena);

/** `count * size` bytes aligned to 8, not zeroed, never NULL. */
void *tide_arena_alloc(struct tide_arena *arena, size_t count, size_t size);

/** `len` bytes without alignment, for text that is written in place. */
char *tide_arena_bytes(struct tide_arena *arena, size_t len);

/** Gives back the last `unused` bytes of the piece that tide_arena_bytes returned last. */
void tide_arena_give_back(struct tide_arena *arena, size_t unused);

/** A copy of the bytes (not NUL-terminated). */
tide_str tide_arena_str(struct tide_arena *arena, tide_str s);

/** A NUL-terminated copy. */
const char *tide_arena_cstr(struct tide_arena *arena, tide_str s);

/**
 * Room for one more in an array of `count` items of `size` bytes: gives the array, which has moved
 * when the count was a power of two or 0. `items` may be NULL when there are none.
 */
void *tide_arena_grow(struct tide_arena *arena, void *items, size_t count, size_t size);

/** Moves all of `from`'s blocks into `into`; pieces keep their addresses, `from` becomes empty. */
void tide_arena_adopt(struct tide_arena *into, struct tide_arena *from);
