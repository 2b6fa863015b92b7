#include "sink/archive/archive_fill.h"

#include "base/alloc.h"

#include <stdlib.h>
#include <string.h>

/* PostgreSQL keeps nothing apart that is as short as what it would put in its place, or in a row
 * that is as short. */
#define VALUE_BYTES_MIN 24
#define ROW_BYTES_MIN   64

struct tide_archive_fill_entry {
    struct tide_archive_fill_entry *newer;
    struct tide_archive_fill_entry *older;
    const struct tide_relation *relation; /* counted */
    struct tide_value *values;            /* short ones as unsent */
    char *key;                            /* as the map has it */
    size_t key_len;
    size_t size;
};

void tide_archive_fill_init(struct tide_archive_fill *fill, size_t bytes_max)
{
    *fill = (struct tide_archive_fill){.bytes_max = bytes_max};
}

static void unlink_entry(struct tide_archive_fill *fill, struct tide_archive_fill_entry *entry)
{
    *(entry->newer != NULL ? &entry->newer->older : &fill->newest) = entry->older;
    *(entry->older != NULL ? &entry->older->newer : &fill->oldest) = entry->newer;
    fill->bytes -= entry->size;
}

static void free_entry(struct tide_archive_fill_entry *entry)
{
    tide_relation_unref(entry->relation);
    free(entry->values);
    free(entry->key);
    free(entry);
}

static void drop(struct tide_archive_fill *fill, struct tide_archive_fill_entry *entry)
{
    unlink_entry(fill, entry);
    (void)tide_map_remove(&fill->by_key, tide_str_of(entry->key, entry->key_len));
    free_entry(entry);
}

void tide_archive_fill_done(struct tide_archive_fill *fill)
{
    while (fill->oldest != NULL) {
        struct tide_archive_fill_entry *entry = fill->oldest;
        unlink_entry(fill, entry);
        free_entry(entry);
    }
    tide_map_done(&fill->by_key);
    tide_buf_done(&fill->key);
}

static struct tide_archive_fill_entry *find(struct tide_archive_fill *fill,
                                            const struct tide_relation *relation,
                                            const struct tide_value *key)
{
    const struct tide_value store = {
        .ptr = relation->store.ptr, .len = (uint32_t)relation->store.len, .kind = TIDE_VALUE_TEXT};
    tide_buf_reset(&fill->key);
    tide_values_encode(&fill->key, &store, 1);
    tide_values_encode(&fill->key, key, relation->key_count);
    const union tide_map_value *found = tide_map_get(&fill->by_key, tide_buf_str(&fill->key));
    return found == NULL ? NULL : found->ptr;
}

void tide_archive_fill_forget(struct tide_archive_fill *fill, const struct tide_relation *relation,
                              const struct tide_value *key)
{
    struct tide_archive_fill_entry *entry = find(fill, relation, key);
    if (entry != NULL) {
        drop(fill, entry);
    }
}

void tide_archive_fill_forget_table(struct tide_archive_fill *fill,
                                    const struct tide_relation *relation)
{
    struct tide_archive_fill_entry *older = NULL;
    for (struct tide_archive_fill_entry *entry = fill->newest; entry != NULL; entry = older) {
        older = entry->older;
        if (tide_str_equal(entry->relation->store, relation->store)) {
            drop(fill, entry);
        }
    }
}

/* A copy of what may be missing in a later version; NULL: nothing of it may. */
static struct tide_value *copy_long(const struct tide_relation *relation,
                                    const struct tide_value *values, size_t *ret_size)
{
    struct tide_value *kept = tide_alloc(relation->column_count, sizeof(*kept));
    struct tide_value *copy = NULL;
    size_t total = 0;
    for (size_t i = 0; i < relation->column_count; i++) {
        bool is_text = values[i].kind > TIDE_VALUE_ABSENT;
        total += is_text ? values[i].len : 0;
        kept[i] = is_text && values[i].len >= VALUE_BYTES_MIN
                      ? values[i]
                      : (struct tide_value){.kind = TIDE_VALUE_UNCHANGED};
    }
    if (total >= ROW_BYTES_MIN) {
        copy = tide_values_dup(kept, relation->column_count, ret_size);
    }
    free(kept);
    return copy;
}

static void push(struct tide_archive_fill *fill, struct tide_archive_fill_entry *entry)
{
    entry->older = fill->newest;
    entry->newer = NULL;
    *(fill->newest != NULL ? &fill->newest->newer : &fill->oldest) = entry;
    fill->newest = entry;
    fill->bytes += entry->size;
}

static void add(struct tide_archive_fill *fill, const struct tide_relation *relation,
                struct tide_value *values, size_t size)
{
    struct tide_archive_fill_entry *entry = tide_alloc(1, sizeof(*entry));
    union tide_map_value *place = tide_map_put(&fill->by_key, tide_buf_str(&fill->key), NULL);
    place->ptr = entry;
    entry->key = tide_strndup(fill->key.ptr, fill->key.len);
    entry->key_len = fill->key.len;
    entry->relation = tide_relation_ref(relation);
    entry->values = values;
    entry->size = sizeof(*entry) + size + 2 * entry->key_len + sizeof(struct tide_map_entry);
    push(fill, entry);
    while (fill->bytes > fill->bytes_max) {
        drop(fill, fill->oldest);
    }
}

void tide_archive_fill_note(struct tide_archive_fill *fill, const struct tide_relation *relation,
                            const struct tide_value *key, const struct tide_value *values)
{
    size_t size = 0;
    struct tide_value *copy = copy_long(relation, values, &size); /* they may be the entry's */
    tide_archive_fill_forget(fill, relation, key);
    if (copy != NULL) {
        add(fill, relation, copy, size); /* forget has set the key */
    }
}

bool tide_archive_fill_apply(struct tide_archive_fill *fill, const struct tide_relation *relation,
                             const struct tide_value *key, struct tide_value *values)
{
    const struct tide_archive_fill_entry *entry = find(fill, relation, key);
    bool is_whole = true;
    bool fits = entry != NULL && tide_relation_same_shape(entry->relation, relation);
    for (size_t i = 0; i < relation->column_count; i++) {
        if (values[i].kind == TIDE_VALUE_UNCHANGED && fits) {
            values[i] = entry->values[i];
        }
        is_whole = is_whole && values[i].kind != TIDE_VALUE_UNCHANGED;
    }
    return is_whole;
}

const struct tide_value *tide_archive_fill_values(struct tide_archive_fill *fill,
                                                  const struct tide_change *change,
                                                  struct tide_arena *arena, bool *ret_is_whole)
{
    const struct tide_relation *relation = change->relation;
    const struct tide_value *key = change->moved_from != NULL ? change->moved_from : change->key;
    *ret_is_whole = true;
    if (!change->is_partial || change->values == NULL || relation->key_count == 0) {
        return change->values;
    }
    struct tide_value *values = tide_arena_alloc(arena, relation->column_count, sizeof(*values));
    memcpy(values, change->values, relation->column_count * sizeof(*values));
    *ret_is_whole = tide_archive_fill_apply(fill, relation, key, values);
    return values;
}

void tide_archive_fill_change(struct tide_archive_fill *fill, const struct tide_change *change,
                              const struct tide_value *values)
{
    const struct tide_relation *relation = change->relation;
    if (change->op == TIDE_OP_TRUNCATE) {
        tide_archive_fill_forget_table(fill, relation);
        return;
    }
    if (relation->key_count == 0) {
        return;
    }
    if (values == NULL) {
        tide_archive_fill_forget(fill, relation, change->key);
    } else {
        tide_archive_fill_note(fill, relation, change->key, values); /* it copies at once */
    }
    if (change->moved_from != NULL) {
        tide_archive_fill_forget(fill, relation, change->moved_from);
    }
}
