#include "archive/change_pairs.h"

tide_str tide_change_pair(const struct tide_parquet_metadata *metadata, const char *key)
{
    for (size_t i = 0; i < metadata->pair_count; i++) {
        if (tide_str_equal(metadata->pairs[i].key, tide_str_from(key))) {
            return metadata->pairs[i].value;
        }
    }
    return (tide_str){0};
}
