#include "base/arena.h"

#include "base/alloc.h"
#include "base/status.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__)
#define TIDE_ARENA_POISON 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TIDE_ARENA_POISON 1
#endif
#endif
#ifdef TIDE_ARENA_POISON
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(ptr, len)   ((void)(ptr), (void)(len))
#define ASAN_UNPOISON_MEMORY_REGION(ptr, len) ((void)(ptr), (void)(len))
#endif

#define BLOCK_MIN 4096
#define BLOCK_MAX (1024 * 1024)

struct tide_arena_block {
    struct tide_arena_block *older;
    size_t size; /* of `bytes` */
    char bytes[];
};

void tide_arena_done(struct tide_arena *arena)
{
    struct tide_arena_block *block = arena->block;
    while (block != NULL) {
        struct tide_arena_block *older = block->older;
        ASAN_UNPOISON_MEMORY_REGION(block->bytes, block->size);
        free(block);
        block = older;
    }
    *arena = (struct tide_arena){0};
}

void tide_arena_reset(struct tide_arena *arena)
{
    struct tide_arena_block *kept = arena->block;
    if (kept == NULL) {
        return;
    }
    struct tide_arena rest = {.block = kept->older};
    tide_arena_done(&rest);
    kept->older = NULL;
    arena->pos = kept->bytes;
    arena->end = kept->bytes + kept->size;
    arena->size = kept->size;
    ASAN_POISON_MEMORY_REGION(kept->bytes, kept->size);
}

static void add_block(struct tide_arena *arena, size_t need)
{
    size_t size = arena->block == NULL ? BLOCK_MIN : arena->block->size * 2;
    if (size > BLOCK_MAX) {
        size = BLOCK_MAX;
    }
    if (size < need) {
        size = need;
    }
    TIDE_ASSERT(size <= SIZE_MAX - sizeof(struct tide_arena_block));
    struct tide_arena_block *block = tide_realloc(NULL, sizeof(*block) + size, 1);
    block->older = arena->block;
    block->size = size;
    arena->block = block;
    arena->pos = block->bytes;
    arena->end = block->bytes + size;
    arena->size += size;
    ASAN_POISON_MEMORY_REGION(block->bytes, size);
}

char *tide_arena_bytes(struct tide_arena *arena, size_t len)
{
    if (TIDE_UNLIKELY((size_t)(arena->end - arena->pos) < len || arena->pos == NULL)) {
        add_block(arena, len);
    }
    char *piece = arena->pos;
    arena->pos += len;
    ASAN_UNPOISON_MEMORY_REGION(piece, len);
    return piece;
}

void tide_arena_give_back(struct tide_arena *arena, size_t unused)
{
    TIDE_ASSERT(arena->block != NULL && (size_t)(arena->pos - arena->block->bytes) >= unused);
    arena->pos -= unused;
    ASAN_POISON_MEMORY_REGION(arena->pos, unused);
}

void *tide_arena_alloc(struct tide_arena *arena, size_t count, size_t size)
{
    TIDE_ASSERT(size == 0 || count <= (SIZE_MAX - 16) / size);
    size_t bytes = (count * size + 7) & ~(size_t)7;
    size_t pad = (8 - ((uintptr_t)arena->pos & 7)) & 7;
    if ((size_t)(arena->end - arena->pos) < bytes + pad || arena->pos == NULL) {
        add_block(arena, bytes); /* a fresh block is aligned */
        pad = 0;
    }
    char *piece = tide_arena_bytes(arena, bytes + pad);
    return piece + pad;
}

tide_str tide_arena_str(struct tide_arena *arena, tide_str s)
{
    char *copy = tide_arena_bytes(arena, s.len);
    if (s.len > 0) {
        memcpy(copy, s.ptr, s.len);
    }
    return (tide_str){copy, s.len};
}

const char *tide_arena_cstr(struct tide_arena *arena, tide_str s)
{
    char *copy = tide_arena_bytes(arena, s.len + 1);
    if (s.len > 0) {
        memcpy(copy, s.ptr, s.len);
    }
    copy[s.len] = '\0';
    return copy;
}

void *tide_arena_grow(struct tide_arena *arena, void *items, size_t count, size_t size)
{
    if ((count & (count - 1)) != 0) {
        return items;
    }
    void *more = tide_arena_alloc(arena, count == 0 ? 1 : count * 2, size);
    if (count > 0) {
        memcpy(more, items, count * size);
    }
    return more;
}

void tide_arena_adopt(struct tide_arena *into, struct tide_arena *from)
{
    if (from->block == NULL) {
        return;
    }
    if (into->block == NULL) {
        *into = *from;
    } else {
        struct tide_arena_block *oldest = from->block;
        while (oldest->older != NULL) {
            oldest = oldest->older;
        }
        /* behind the newest block of `into`, which stays the one that is filled */
        oldest->older = into->block->older;
        into->block->older = from->block;
        into->size += from->size;
    }
    *from = (struct tide_arena){0};
}
