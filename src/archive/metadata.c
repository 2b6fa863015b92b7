#include "archive/metadata.h"

#include <stdlib.h>

#include "format/json_reader.h"
#include "format/json_writer.h"

static int compare_keys(const void *a, const void *b)
{
    return tide_str_compare(((const struct tide_archive_pair *)a)->key,
                            ((const struct tide_archive_pair *)b)->key);
}

static void sort(struct tide_archive_pairs *pairs)
{
    if (pairs->count > 1) {
        qsort(pairs->items, pairs->count, sizeof(*pairs->items), compare_keys);
    }
}

static struct tide_archive_pair *add(struct tide_archive_pairs *pairs, struct tide_arena *arena)
{
    pairs->items = tide_arena_grow(arena, pairs->items, pairs->count, sizeof(*pairs->items));
    return &pairs->items[pairs->count++];
}

static tide_status read_pairs(struct tide_json_reader *reader, struct tide_arena *arena,
                              struct tide_archive_pairs *pairs, struct tide_error *err)
{
    struct tide_json_token token = {0};
    TIDE_TRY(tide_json_expect(reader, TIDE_JSON_OBJECT_BEGIN, &token, err));
    for (;;) {
        TIDE_TRY(tide_json_next(reader, &token, err));
        if (token.type == TIDE_JSON_OBJECT_END) {
            break;
        }
        struct tide_archive_pair *pair = add(pairs, arena);
        pair->key = tide_json_unescape(&token, arena);
        TIDE_TRY(tide_json_expect_string(reader, arena, &pair->value, err));
    }
    return tide_json_expect(reader, TIDE_JSON_END, &token, err);
}

tide_status tide_archive_pairs_read(tide_str json, struct tide_arena *arena,
                                    struct tide_archive_pairs *ret_pairs, struct tide_error *err)
{
    struct tide_json_reader reader;
    struct tide_archive_pairs pairs = {0};
    tide_json_reader_init(&reader, json, 1);
    TIDE_TRY(read_pairs(&reader, arena, &pairs, err));
    sort(&pairs);
    for (size_t i = 1; i < pairs.count; i++) {
        if (tide_str_equal(pairs.items[i - 1].key, pairs.items[i].key)) {
            return tide_fail(err, TIDE_CORRUPT, "the key \"%.*s\" stands twice",
                             (int)(pairs.items[i].key.len < 100 ? pairs.items[i].key.len : 100),
                             pairs.items[i].key.ptr);
        }
    }
    *ret_pairs = pairs;
    return TIDE_OK;
}

void tide_archive_pairs_write(struct tide_archive_pairs *pairs, struct tide_buf *buf)
{
    sort(pairs);
    tide_buf_append_char(buf, '{');
    for (size_t i = 0; i < pairs->count; i++) {
        if (i > 0) {
            tide_buf_append_char(buf, ',');
        }
        tide_json_append_string(buf, pairs->items[i].key);
        tide_buf_append_char(buf, ':');
        tide_json_append_string(buf, pairs->items[i].value);
    }
    tide_buf_append_char(buf, '}');
}

tide_str tide_archive_pairs_get(const struct tide_archive_pairs *pairs, tide_str key)
{
    for (size_t i = 0; i < pairs->count; i++) {
        if (tide_str_equal(pairs->items[i].key, key)) {
            return pairs->items[i].value;
        }
    }
    return (tide_str){NULL, 0};
}

void tide_archive_pairs_set(struct tide_archive_pairs *pairs, struct tide_arena *arena,
                            tide_str key, tide_str value)
{
    for (size_t i = 0; i < pairs->count; i++) {
        if (tide_str_equal(pairs->items[i].key, key)) {
            pairs->items[i].value = value;
            return;
        }
    }
    *add(pairs, arena) = (struct tide_archive_pair){key, value};
}
