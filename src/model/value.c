#include "model/value.h"

#include "base/alloc.h"
#include "base/status.h"

#include <string.h>

bool tide_value_equal(struct tide_value a, struct tide_value b)
{
    return a.kind == b.kind && tide_str_equal(tide_value_str(a), tide_value_str(b));
}

struct tide_value *tide_values_copy(struct tide_arena *arena, const struct tide_value *values,
                                    size_t count)
{
    struct tide_value *copy = tide_arena_alloc(arena, count, sizeof(*copy));
    for (size_t i = 0; i < count; i++) {
        copy[i] = values[i];
        copy[i].ptr = tide_arena_str(arena, tide_value_str(values[i])).ptr;
    }
    return copy;
}

struct tide_value *tide_values_dup(const struct tide_value *values, size_t count, size_t *ret_size)
{
    size_t size = count * sizeof(*values);
    for (size_t i = 0; i < count; i++) {
        size += values[i].len;
    }
    struct tide_value *copy = tide_alloc(1, size == 0 ? 1 : size);
    char *to = (char *)(copy + count);
    for (size_t i = 0; i < count; i++) {
        copy[i] = values[i];
        copy[i].ptr = to;
        if (values[i].len > 0) {
            memcpy(to, values[i].ptr, values[i].len);
        }
        to += values[i].len;
    }
    *ret_size = size;
    return copy;
}

void tide_values_encode(struct tide_buf *buf, const struct tide_value *values, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        size_t room = 1 + sizeof(values[i].len) + values[i].len;
        char *to = tide_buf_reserve(buf, room);
        to[0] = (char)values[i].kind;
        memcpy(to + 1, &values[i].len, sizeof(values[i].len));
        if (values[i].len > 0) {
            memcpy(to + 1 + sizeof(values[i].len), values[i].ptr, values[i].len);
        }
        buf->len += room;
    }
}
