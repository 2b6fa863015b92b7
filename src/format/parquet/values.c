#include "format/parquet/values.h"

static tide_status fail_short(const struct tide_parquet_column *column, size_t count,
                              struct tide_error *err)
{
    return tide_fail(err, TIDE_CORRUPT, "column %.*s: a page ends before its %zu values",
                     TIDE_STR_ARG(column->name), count);
}

/* A big-endian integer of 1 to 16 bytes. */
static tide_int128 decimal_from_bytes(const char *bytes, size_t width)
{
    unsigned char padded[sizeof(tide_int128)];
    uint64_t halves[2];
    memset(padded, (signed char)*bytes < 0 ? 0xff : 0, sizeof(padded));
    memcpy(padded + (sizeof(padded) - width), bytes, width);
    memcpy(halves, padded, sizeof(halves));
    unsigned __int128 value = __builtin_bswap64(halves[0]);
    return (tide_int128)(value << 64 | __builtin_bswap64(halves[1]));
}

static void read_decimals(const struct tide_parquet_leaf *leaf, const char *bytes, size_t count,
                          tide_int128 *values)
{
    for (size_t i = 0; i < count; i++) {
        const char *from = bytes + i * leaf->width;
        if (leaf->physical == TIDE_PARQUET_FIXED_BYTES) {
            values[i] = decimal_from_bytes(from, leaf->width);
        } else if (leaf->width == sizeof(int32_t)) {
            int32_t value = 0;
            memcpy(&value, from, sizeof(value));
            values[i] = value;
        } else {
            int64_t value = 0;
            memcpy(&value, from, sizeof(value));
            values[i] = value;
        }
    }
}

static void read_bits(const char *bytes, size_t count, uint8_t *values)
{
    for (size_t i = 0; i < count; i++) {
        values[i] = (uint8_t)bytes[i / 8] >> (i % 8) & 1;
    }
}

static tide_status read_fixed(const struct tide_parquet_column *column,
                              const struct tide_parquet_leaf *leaf, tide_str bytes, size_t count,
                              void *ret_values, struct tide_error *err)
{
    enum tide_parquet_storage storage = tide_parquet_storage_of(column);
    bool is_bits = storage == TIDE_PARQUET_AS_BOOL;
    if (is_bits ? count > bytes.len * 8 : count > bytes.len / leaf->width) {
        return fail_short(column, count, err);
    }
    if (is_bits) {
        read_bits(bytes.ptr, count, ret_values);
    } else if (storage == TIDE_PARQUET_AS_I128) {
        read_decimals(leaf, bytes.ptr, count, ret_values);
    } else if (storage == TIDE_PARQUET_AS_BYTES) {
        tide_str *values = ret_values;
        for (size_t i = 0; i < count; i++) {
            values[i] = tide_str_of(bytes.ptr + i * leaf->width, leaf->width);
        }
    } else if (count > 0) {
        memcpy(ret_values, bytes.ptr, count * leaf->width);
    }
    return TIDE_OK;
}

/* Length and bytes of each. */
static tide_status read_strings(const struct tide_parquet_column *column, tide_str bytes,
                                size_t count, tide_str *values, struct tide_error *err)
{
    bool is_text = column->type != TIDE_PARQUET_BINARY;
    const char *pos = bytes.ptr;
    size_t left = bytes.len;
    for (size_t i = 0; i < count; i++) {
        uint32_t len = 0;
        if (left < sizeof(len)) {
            return fail_short(column, count, err);
        }
        memcpy(&len, pos, sizeof(len));
        pos += sizeof(len);
        left -= sizeof(len);
        if (left < len) {
            return fail_short(column, count, err);
        }
        values[i] = tide_str_of(pos, len);
        if (is_text && !tide_str_is_utf8(values[i])) {
            return tide_fail(err, TIDE_CORRUPT, "column %.*s holds text that is not UTF-8",
                             TIDE_STR_ARG(column->name));
        }
        pos += len;
        left -= len;
    }
    return TIDE_OK;
}

tide_status tide_parquet_plain_read(const struct tide_parquet_column *column,
                                    const struct tide_parquet_leaf *leaf, tide_str bytes,
                                    size_t count, void *ret_values, struct tide_error *err)
{
    if (leaf->width == 0) {
        return read_strings(column, bytes, count, ret_values, err);
    }
    return read_fixed(column, leaf, bytes, count, ret_values, err);
}

bool tide_parquet_gather(const void *known, size_t known_count, const uint32_t *numbers,
                         size_t count, size_t size, void *ret_values)
{
    uint32_t greatest = 0;
    for (size_t i = 0; i < count; i++) {
        greatest = numbers[i] > greatest ? numbers[i] : greatest;
    }
    if (count > 0 && greatest >= known_count) {
        return false;
    }
    if (size == sizeof(uint32_t)) {
        for (size_t i = 0; i < count; i++) {
            ((uint32_t *)ret_values)[i] = ((const uint32_t *)known)[numbers[i]];
        }
    } else if (size == sizeof(uint64_t)) {
        for (size_t i = 0; i < count; i++) {
            ((uint64_t *)ret_values)[i] = ((const uint64_t *)known)[numbers[i]];
        }
    } else {
        TIDE_ASSERT(size == sizeof(tide_str));
        for (size_t i = 0; i < count; i++) {
            ((tide_str *)ret_values)[i] = ((const tide_str *)known)[numbers[i]];
        }
    }
    return true;
}

void tide_parquet_spread(void *values, size_t size, const uint8_t *is_null, size_t count,
                         size_t value_count)
{
    char *bytes = values;
    size_t from = value_count;
    for (size_t to = count; to > from; to--) {
        if (is_null[to - 1]) {
            memset(bytes + (to - 1) * size, 0, size);
        } else {
            from--;
            memcpy(bytes + (to - 1) * size, bytes + from * size, size);
        }
    }
}
