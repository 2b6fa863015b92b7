#include "archive/change_state.h"

#include "base/alloc.h"
#include "base/attr.h"
#include "base/map.h"
#include "base/status.h"

#include <stdlib.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#define BLOCK_BYTES ((size_t)256 * 1024)
#define OWN_BYTES   (BLOCK_BYTES / 4) /* a record of more has a block of its own */
#define SLOTS_FIRST ((size_t)1024)
#define LONG_TEXT   255

#define PLACED_AT_ONCE ((size_t)32)

struct tide_change_slot {
    uint32_t hash;
    uint32_t number; /* from 1; 0: free */
};

/* Begins a record. */
struct head {
    uint64_t size; /* of all of it */
    uint64_t key_size;
    uint64_t number;
};

/* A block. */
struct tide_change_records {
    char *bytes; /* NULL: its number is free */
    size_t cap;
    size_t size;
    size_t gone;      /* of the size, records that were replaced */
    size_t next_free; /* from 1 */
};

void tide_change_rows_done(struct tide_change_rows *rows)
{
    for (size_t i = 0; i < rows->block_count; i++) {
        free(rows->blocks[i].bytes);
    }
    free(rows->blocks);
    free(rows->slots);
    free(rows->items);
    *rows = (struct tide_change_rows){0};
}

/* Versions */

void tide_change_version_mark_key(struct tide_change_version *version, struct tide_arena *arena)
{
    const struct tide_change_schema *schema = &version->schema;
    version->is_key = tide_arena_alloc(arena, schema->column_count, sizeof(*version->is_key));
    memset(version->is_key, 0, schema->column_count * sizeof(*version->is_key));
    for (size_t i = 0; i < schema->key_count; i++) {
        version->is_key[schema->key_columns[i]] = true;
    }
}

void tide_change_version_place(struct tide_change_version *of, const struct tide_change_version *to,
                               struct tide_arena *arena)
{
    struct tide_map names TIDE_CLEANUP(tide_map_done) = {0};
    for (size_t i = 0; i < of->schema.column_count; i++) {
        tide_map_put(&names, of->schema.columns[i].name, NULL)->number = i;
    }
    of->is_newest = of == to;
    of->places = tide_arena_alloc(arena, to->schema.column_count, sizeof(*of->places));
    for (size_t i = 0; i < to->schema.column_count; i++) {
        const union tide_map_value *at = tide_map_get(&names, to->schema.columns[i].name);
        of->places[i] = at == NULL ? TIDE_CHANGE_NO_PLACE : (uint32_t)at->number;
    }
}

/* Blocks */

static size_t new_block(struct tide_change_rows *rows, size_t cap)
{
    size_t number = rows->free_block;
    if (number == 0) {
        size_t count = rows->block_count;
        TIDE_ASSERT(count < UINT32_MAX / 2);
        if ((count & (count - 1)) == 0) { /* room for twice as many */
            rows->blocks =
                tide_realloc(rows->blocks, count == 0 ? 1 : count * 2, sizeof(*rows->blocks));
        }
        number = ++rows->block_count;
    } else {
        rows->free_block = rows->blocks[number - 1].next_free;
    }
    rows->blocks[number - 1] =
        (struct tide_change_records){.bytes = tide_realloc(NULL, cap, 1), .cap = cap};
    return number;
}

/* The block, from 1, that has room for so many bytes. */
static size_t find_block(struct tide_change_rows *rows, size_t size)
{
    if (size > OWN_BYTES) {
        return new_block(rows, size);
    }
    if (rows->filled == 0 ||
        rows->blocks[rows->filled - 1].cap - rows->blocks[rows->filled - 1].size < size) {
        rows->filled = new_block(rows, BLOCK_BYTES);
    }
    return rows->filled;
}

static char *take_room(struct tide_change_rows *rows, size_t size, uint32_t *ret_block)
{
    size_t number = find_block(rows, size);
    struct tide_change_records *block = &rows->blocks[number - 1];
    char *to = block->bytes + block->size;
    block->size += size;
    *ret_block = (uint32_t)number;
    return to;
}

static struct head head_of(const char *record)
{
    struct head head;
    memcpy(&head, record, sizeof(head));
    return head;
}

/* Moves those of a block's records that items have, and frees it. */
static void clear_block(struct tide_change_rows *rows, size_t number)
{
    struct tide_change_records block = rows->blocks[number - 1];
    rows->filled = rows->filled == number ? 0 : rows->filled;
    for (size_t at = 0; at < block.size;) {
        struct head head = head_of(block.bytes + at);
        struct tide_change_held *held = &rows->items[head.number];
        if (held->record == block.bytes + at) {
            held->record = take_room(rows, head.size, &held->block);
            memcpy(held->record, block.bytes + at, head.size);
        }
        at += head.size;
    }
    free(block.bytes);
    rows->blocks[number - 1] = (struct tide_change_records){.next_free = rows->free_block};
    rows->free_block = number;
}

/* An item's record has been replaced. A block that is still filled may be mostly gone until it is
 * half full. */
static void let_go(struct tide_change_rows *rows, size_t number, size_t size)
{
    struct tide_change_records *block = &rows->blocks[number - 1];
    block->gone += size;
    if (block->gone > block->size / 2 && block->size > block->cap / 2) {
        clear_block(rows, number);
    }
}

/* Slots */

static uint64_t hash_of(tide_str key)
{
    return XXH3_64bits(key.ptr, key.len);
}

static size_t slot_of(const struct tide_change_rows *rows, tide_str key)
{
    uint64_t hash = hash_of(key);
    size_t mask = rows->slot_count - 1;
    size_t at = hash & mask;
    uint32_t short_hash = (uint32_t)(hash >> 32);
    for (; rows->slots[at].number != 0; at = (at + 1) & mask) {
        if (rows->slots[at].hash == short_hash) {
            const struct tide_change_held *held = &rows->items[rows->slots[at].number - 1];
            if (tide_str_equal(tide_change_held_key(held), key)) {
                break;
            }
        }
    }
    return at;
}

/* An item that has no slot yet, as no other one has its key. */
static void place_item(struct tide_change_rows *rows, size_t number)
{
    uint64_t hash = rows->items[number].hash;
    size_t mask = rows->slot_count - 1;
    size_t at = hash & mask;
    while (rows->slots[at].number != 0) {
        at = (at + 1) & mask;
    }
    rows->slots[at] = (struct tide_change_slot){(uint32_t)(hash >> 32), (uint32_t)number + 1};
}

static void grow_slots(struct tide_change_rows *rows)
{
    size_t count = rows->slot_count == 0 ? SLOTS_FIRST : rows->slot_count;
    while (rows->count * 2 > count) {
        count *= 2;
    }
    if (count > rows->slot_count) {
        free(rows->slots);
        rows->slots = tide_alloc(count, sizeof(*rows->slots));
        rows->slot_count = count;
        for (size_t i = 0; i < rows->placed; i++) {
            place_item(rows, i);
        }
    }
}

/* Places those that wait: the slots of some are asked of memory, then they are filled. */
static void place_items(struct tide_change_rows *rows)
{
    grow_slots(rows);
    while (rows->placed < rows->count) {
        size_t left = rows->count - rows->placed;
        size_t end = rows->placed + (left < PLACED_AT_ONCE ? left : PLACED_AT_ONCE);
        for (size_t i = rows->placed; i < end; i++) {
            struct tide_change_held *held = &rows->items[i];
            held->hash = hash_of(tide_change_held_key(held));
            __builtin_prefetch(&rows->slots[held->hash & (rows->slot_count - 1)], 1);
        }
        for (; rows->placed < end; rows->placed++) {
            place_item(rows, rows->placed);
        }
    }
}

static bool is_greatest(const struct tide_change_rows *rows, tide_str key)
{
    return rows->count == 0 ||
           tide_str_compare(key, tide_change_held_key(&rows->items[rows->greatest])) > 0;
}

size_t tide_change_rows_find(struct tide_change_rows *rows, tide_str key)
{
    if (is_greatest(rows, key)) {
        return TIDE_CHANGE_NO_ROW;
    }
    place_items(rows);
    uint32_t number = rows->slots[slot_of(rows, key)].number;
    return number == 0 ? TIDE_CHANGE_NO_ROW : number - 1;
}

static size_t add_item(struct tide_change_rows *rows)
{
    if (rows->count == rows->cap) {
        TIDE_ASSERT(rows->count < UINT32_MAX / 2);
        rows->cap = rows->cap == 0 ? SLOTS_FIRST : rows->cap * 2;
        rows->items = tide_realloc(rows->items, rows->cap, sizeof(*rows->items));
    }
    rows->items[rows->count] = (struct tide_change_held){0};
    return rows->count++;
}

/* The number of the key's item, which is made where there is none. */
static size_t item_of(struct tide_change_rows *rows, tide_str key)
{
    if (is_greatest(rows, key)) {
        rows->greatest = add_item(rows);
        return rows->greatest;
    }
    size_t number = tide_change_rows_find(rows, key);
    return number != TIDE_CHANGE_NO_ROW ? number : add_item(rows);
}

/* Records */

static size_t value_size(struct tide_value value)
{
    if (value.kind <= TIDE_VALUE_ABSENT) {
        return 1;
    }
    return 2 + (value.len < LONG_TEXT ? 0 : sizeof(value.len)) + value.len;
}

static size_t values_size(const struct tide_change_version *version,
                          const struct tide_value *values)
{
    size_t size = 0;
    for (size_t i = 0; values != NULL && i < version->schema.column_count; i++) {
        size += version->is_key[i] ? 0 : value_size(values[i]);
    }
    return size;
}

static char *write_value(char *to, struct tide_value value)
{
    *to++ = (char)value.kind;
    if (value.kind <= TIDE_VALUE_ABSENT) {
        return to;
    }
    if (value.len < LONG_TEXT) {
        *to++ = (char)value.len;
    } else {
        *to++ = (char)LONG_TEXT;
        memcpy(to, &value.len, sizeof(value.len));
        to += sizeof(value.len);
    }
    if (value.len > 0) {
        memcpy(to, value.ptr, value.len);
    }
    return to + value.len;
}

static const char *read_value(const char *from, struct tide_value *ret_value)
{
    struct tide_value value = {.kind = (uint8_t)*from++};
    if (value.kind > TIDE_VALUE_ABSENT) {
        value.len = (uint8_t)*from++;
        if (value.len == LONG_TEXT) {
            memcpy(&value.len, from, sizeof(value.len));
            from += sizeof(value.len);
        }
        value.ptr = from;
        from += value.len;
    }
    *ret_value = value;
    return from;
}

size_t tide_change_rows_put(struct tide_change_rows *rows, tide_str key,
                            const struct tide_change_version *version,
                            const struct tide_value *values)
{
    uint32_t block = 0;
    size_t number = item_of(rows, key);
    struct head head = {.size = sizeof(head) + key.len + values_size(version, values),
                        .key_size = key.len,
                        .number = number};
    char *record = take_room(rows, head.size, &block);
    memcpy(record, &head, sizeof(head));
    memcpy(record + sizeof(head), key.ptr, key.len);
    char *to = record + sizeof(head) + key.len;
    for (size_t i = 0; values != NULL && i < version->schema.column_count; i++) {
        to = version->is_key[i] ? to : write_value(to, values[i]);
    }
    struct tide_change_held *held = &rows->items[number];
    struct tide_change_held before = *held;
    held->record = record;
    held->block = block;
    held->has_values = values != NULL;
    if (before.record != NULL) {
        let_go(rows, before.block, head_of(before.record).size);
    }
    return number;
}

tide_str tide_change_held_key(const struct tide_change_held *held)
{
    return tide_str_of(held->record + sizeof(struct head), head_of(held->record).key_size);
}

void tide_change_held_read_key(const struct tide_change_held *held, struct tide_value *ret_key,
                               size_t count)
{
    const char *from = held->record + sizeof(struct head);
    for (size_t i = 0; i < count; i++) {
        struct tide_value *value = &ret_key[i];
        value->kind = (uint8_t)*from++;
        memcpy(&value->len, from, sizeof(value->len));
        value->ptr = from + sizeof(value->len);
        from = value->ptr + value->len;
    }
}

void tide_change_held_read(const struct tide_change_held *held,
                           const struct tide_change_version *version, struct tide_value *ret_values)
{
    const char *from = held->record + sizeof(struct head) + head_of(held->record).key_size;
    for (size_t i = 0; i < version->schema.column_count; i++) {
        from = version->is_key[i] ? from : read_value(from, &ret_values[i]);
    }
}
