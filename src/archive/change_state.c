#include "archive/change_state.h"

#include "base/alloc.h"
#include "base/attr.h"
#include "base/map.h"

void tide_change_version_place(struct tide_change_version *of, const struct tide_change_version *to,
                               struct tide_arena *arena)
{
    struct tide_map names TIDE_CLEANUP(tide_map_done) = {0};
    for (size_t i = 0; i < of->schema.column_count; i++) {
        tide_map_put(&names, of->schema.columns[i].name, NULL)->number = i;
    }
    of->places = tide_arena_alloc(arena, to->schema.column_count, sizeof(*of->places));
    for (size_t i = 0; i < to->schema.column_count; i++) {
        const union tide_map_value *at = tide_map_get(&names, to->schema.columns[i].name);
        of->places[i] = at == NULL ? TIDE_CHANGE_NO_PLACE : (uint32_t)at->number;
    }
}

static size_t text_size(const struct tide_value *values, size_t count)
{
    size_t size = 0;
    for (size_t i = 0; values != NULL && i < count; i++) {
        size += values[i].len;
    }
    return size;
}

/* Copies the values to `to`, and their texts to `text`; returns where the next text goes. */
static char *copy_values(struct tide_value *to, char *text, const struct tide_value *values,
                         size_t count)
{
    for (size_t i = 0; i < count; i++) {
        to[i] = values[i];
        to[i].ptr = text;
        if (values[i].len > 0) {
            memcpy(text, values[i].ptr, values[i].len);
        }
        text += values[i].len;
    }
    return text;
}

struct tide_change_held *tide_change_held_new(const struct tide_value *key, size_t key_count,
                                              const struct tide_value *values, size_t count)
{
    size_t value_count = key_count + (values == NULL ? 0 : count);
    size_t head = sizeof(struct tide_change_held) + value_count * sizeof(struct tide_value);
    char *memory = tide_alloc(1, head + text_size(key, key_count) + text_size(values, count));
    struct tide_change_held *held = (struct tide_change_held *)(void *)memory;
    held->key = (struct tide_value *)(void *)(memory + sizeof(*held));
    char *text = copy_values(held->key, memory + head, key, key_count);
    if (values != NULL) {
        held->values = held->key + key_count;
        (void)copy_values(held->values, text, values, count);
    }
    return held;
}

struct tide_value tide_change_held_value(const struct tide_change_held *held,
                                         const struct tide_change_version *version, size_t i)
{
    uint32_t at = version->places[i];
    return at == TIDE_CHANGE_NO_PLACE ? (struct tide_value){.kind = TIDE_VALUE_ABSENT}
                                      : held->values[at];
}
