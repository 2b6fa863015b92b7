#include "base/alloc.h"
#include "base/map.h"
#include "source/postgres/pg_chunk_reader.h"

#include <stdlib.h>
#include <string.h>

/* The form by which keys are told apart: their texts alone, as a checkpoint may have brought them
 * back as another kind. */
static void encode_key(struct tide_value *key, size_t count, struct tide_buf *buf)
{
    for (size_t i = 0; i < count; i++) {
        key[i].kind = TIDE_VALUE_TEXT;
    }
    tide_buf_reset(buf);
    tide_values_encode(buf, key, count);
}

static void keep_listed(const struct tide_relation *relation, const struct tide_map *keys,
                        struct tide_value *values, struct tide_buf *key, struct tide_chunk *chunk)
{
    size_t kept = 0;
    for (size_t i = 0; i < chunk->row_count; i++) {
        tide_relation_key_of(relation, chunk->rows[i], values);
        encode_key(values, relation->key_count, key);
        if (tide_map_get(keys, tide_buf_str(key)) != NULL) {
            chunk->rows[kept++] = chunk->rows[i];
        }
    }
    chunk->row_count = kept;
}

void tide_pg_chunk_keep_exact(const struct tide_chunk_request *request, struct tide_chunk *chunk)
{
    if (chunk->row_count == 0) {
        return;
    }
    const struct tide_relation *relation = request->relation;
    struct tide_map keys TIDE_CLEANUP(tide_map_done) = {0};
    struct tide_buf key TIDE_CLEANUP(tide_buf_done) = {0};
    struct tide_value *values TIDE_CLEANUP(tide_free_ptr) =
        tide_alloc(relation->key_count, sizeof(*values));
    for (size_t i = 0; i < request->again_count; i++) {
        memcpy(values, request->again[i], relation->key_count * sizeof(*values));
        encode_key(values, relation->key_count, &key);
        (void)tide_map_put(&keys, tide_buf_str(&key), NULL);
    }
    keep_listed(relation, &keys, values, &key, chunk);
}
