#include "source/postgres/pg_snapshot.h"

#include <string.h>

/* The number before the next `end` (or up to the end of the text), which is passed over. */
static bool take_number(tide_str *text, char end, uint64_t *ret_number)
{
    const char *at = text->len == 0 ? NULL : memchr(text->ptr, end, text->len);
    size_t len = at == NULL ? text->len : (size_t)(at - text->ptr);
    if (!tide_str_to_u64(tide_str_of(text->ptr, len), ret_number)) {
        return false;
    }
    size_t passed = at == NULL ? len : len + 1;
    *text = tide_str_of(text->ptr + passed, text->len - passed);
    return true;
}

static size_t count_numbers(tide_str list)
{
    size_t count = list.len == 0 ? 0 : 1;
    for (size_t i = 0; i < list.len; i++) {
        count += list.ptr[i] == ',' ? 1 : 0;
    }
    return count;
}

static bool take_list(tide_str list, const struct tide_visibility *bounds, uint64_t *ret_numbers,
                      size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t low = i == 0 ? bounds->xmin : ret_numbers[i - 1] + 1;
        if (!take_number(&list, ',', &ret_numbers[i]) || ret_numbers[i] < low ||
            ret_numbers[i] >= bounds->xmax) {
            return false;
        }
    }
    return list.len == 0;
}

static bool take_bounds(tide_str *text, struct tide_visibility *ret_bounds)
{
    if (text->len == 0 || memchr(text->ptr, ':', text->len) == NULL ||
        !take_number(text, ':', &ret_bounds->xmin)) {
        return false;
    }
    return text->len > 0 && memchr(text->ptr, ':', text->len) != NULL &&
           take_number(text, ':', &ret_bounds->xmax) && ret_bounds->xmin <= ret_bounds->xmax;
}

tide_status tide_pg_snapshot_parse(tide_str text, struct tide_arena *arena,
                                   struct tide_visibility *ret_visibility, struct tide_error *err)
{
    struct tide_visibility read = {0};
    tide_str rest = text;
    size_t count = 0;
    uint64_t *numbers = NULL;
    bool is_good = take_bounds(&rest, &read);
    if (is_good) {
        count = count_numbers(rest);
        numbers = tide_arena_alloc(arena, count, sizeof(*numbers));
        is_good = take_list(rest, &read, numbers, count);
    }
    if (!is_good) {
        return tide_fail(err, TIDE_CORRUPT, "\"%.*s\" is no snapshot of a PostgreSQL server",
                         (int)(text.len < 200 ? text.len : 200), text.ptr);
    }
    read.in_progress = numbers;
    read.in_progress_count = count;
    *ret_visibility = read;
    return TIDE_OK;
}
