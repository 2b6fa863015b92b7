#include "format/parquet/statistics.h"

#include <math.h>

struct bounds {
    tide_str min;
    tide_str max;
};

/* A value of up to 8 bytes as a number that is ordered as its type is, -0 before 0. */
static int64_t order_of(const struct tide_parquet_column *column, enum tide_parquet_storage storage,
                        const char *value)
{
    int64_t wide = 0;
    int32_t narrow = 0;
    bool is_wide = storage == TIDE_PARQUET_AS_I64 || storage == TIDE_PARQUET_AS_DOUBLE;
    if (storage == TIDE_PARQUET_AS_BOOL) {
        return *value;
    }
    if (is_wide) {
        memcpy(&wide, value, sizeof(wide));
    } else {
        memcpy(&narrow, value, sizeof(narrow));
    }
    if (storage == TIDE_PARQUET_AS_FLOAT) {
        return narrow ^ (narrow < 0 ? INT32_MAX : 0);
    }
    if (storage == TIDE_PARQUET_AS_DOUBLE) {
        return wide ^ (wide < 0 ? INT64_MAX : 0);
    }
    if (storage == TIDE_PARQUET_AS_I64) {
        return column->type == TIDE_PARQUET_UINT64 ? wide ^ INT64_MIN : wide;
    }
    return column->type == TIDE_PARQUET_UINT32 ? (int64_t)(uint32_t)narrow : narrow;
}

static struct bounds bounds_numbers(const struct tide_parquet_column *column,
                                    enum tide_parquet_storage storage, const char *values,
                                    size_t count)
{
    size_t width = tide_parquet_storage_size(storage);
    struct bounds bounds = {{values, width}, {values, width}};
    int64_t min = order_of(column, storage, values);
    int64_t max = min;
    for (size_t i = 1; i < count; i++) {
        const char *value = values + i * width;
        int64_t order = order_of(column, storage, value);
        if (order < min) {
            min = order;
            bounds.min.ptr = value;
        } else if (order > max) {
            max = order;
            bounds.max.ptr = value;
        }
    }
    return bounds;
}

/* Bytes of one length, unsigned; or big-endian integers, of which the first byte has the sign. */
static struct bounds bounds_bytes(const char *values, size_t count, size_t width, bool is_signed)
{
    unsigned char flip = is_signed ? 0x80 : 0;
    struct bounds bounds = {{values, width}, {values, width}};
    for (size_t i = 1; i < count; i++) {
        const char *value = values + i * width;
        int first = (unsigned char)*value ^ flip;
        int min = first - ((unsigned char)*bounds.min.ptr ^ flip);
        int max = first - ((unsigned char)*bounds.max.ptr ^ flip);
        if (min < 0 || (min == 0 && memcmp(value, bounds.min.ptr, width) < 0)) {
            bounds.min.ptr = value;
        } else if (max > 0 || (max == 0 && memcmp(value, bounds.max.ptr, width) > 0)) {
            bounds.max.ptr = value;
        }
    }
    return bounds;
}

static struct bounds bounds_strings(const char *values, size_t count)
{
    struct bounds bounds = {0};
    for (size_t i = 0; i < count; i++) {
        uint32_t len = 0;
        memcpy(&len, values, sizeof(len));
        tide_str value = {values + sizeof(len), len};
        values += sizeof(len) + len;
        if (i == 0) {
            bounds = (struct bounds){value, value};
        } else if (tide_str_compare(value, bounds.min) < 0) {
            bounds.min = value;
        } else if (tide_str_compare(value, bounds.max) > 0) {
            bounds.max = value;
        }
    }
    return bounds;
}

static struct bounds bounds_of(const struct tide_parquet_column *column,
                               const struct tide_parquet_leaf *leaf, tide_str plain, size_t count)
{
    enum tide_parquet_storage storage = tide_parquet_storage_of(column);
    if (storage == TIDE_PARQUET_AS_BYTES && leaf->width == 0) {
        return bounds_strings(plain.ptr, count);
    }
    if (storage == TIDE_PARQUET_AS_BYTES || storage == TIDE_PARQUET_AS_I128) {
        return bounds_bytes(plain.ptr, count, leaf->width, storage == TIDE_PARQUET_AS_I128);
    }
    return bounds_numbers(column, storage, plain.ptr, count);
}

static bool has_nan(enum tide_parquet_storage storage, tide_str plain, size_t count)
{
    bool found = false;
    for (size_t i = 0; i < count && storage == TIDE_PARQUET_AS_FLOAT; i++) {
        float value;
        memcpy(&value, plain.ptr + i * sizeof(value), sizeof(value));
        found |= isnan(value);
    }
    for (size_t i = 0; i < count && storage == TIDE_PARQUET_AS_DOUBLE; i++) {
        double value;
        memcpy(&value, plain.ptr + i * sizeof(value), sizeof(value));
        found |= isnan(value);
    }
    return found;
}

/* A zero may stand for the other one: the bounds must hold whichever of the two a reader asks for.
 */
static tide_str bound_zero(tide_str bound, bool is_max, struct tide_arena *arena)
{
    char *copy = tide_arena_bytes(arena, bound.len);
    memcpy(copy, bound.ptr, bound.len);
    char *top = copy + bound.len - 1;
    bool is_zero = (*top & 0x7f) == 0;
    for (size_t i = 0; i + 1 < bound.len; i++) {
        is_zero &= copy[i] == 0;
    }
    if (is_zero) {
        *top = (char)(is_max ? 0 : 0x80);
    }
    return tide_str_of(copy, bound.len);
}

/* At most TIDE_PARQUET_BOUND_BYTES of a longer string; of text whole characters. */
static size_t cut_len(tide_str s, bool is_text)
{
    size_t len = TIDE_PARQUET_BOUND_BYTES;
    while (is_text && len > 0 && (s.ptr[len] & 0xc0) == 0x80) {
        len--;
    }
    return len;
}

/* Makes the cut string greater than all that begin with it. In text the last byte of a character
 * grows where it stays one; false when no byte can. */
static bool raise(char *bytes, size_t *len, bool is_text)
{
    while (*len > 0) {
        unsigned char last = (unsigned char)bytes[*len - 1];
        if (is_text ? last < 0x7f || (last >= 0x80 && last < 0xbf) : last < 0xff) {
            bytes[*len - 1] = (char)(last + 1);
            return true;
        }
        do {
            (*len)--;
        } while (is_text && *len > 0 && ((unsigned char)bytes[*len] & 0xc0) == 0x80);
    }
    return false;
}

static void set_strings(const struct bounds *bounds, bool is_text, struct tide_arena *arena,
                        struct tide_parquet_statistics *statistics)
{
    if (bounds->min.len > TIDE_PARQUET_BOUND_BYTES) {
        size_t len = cut_len(bounds->min, is_text);
        statistics->min = tide_arena_str(arena, tide_str_of(bounds->min.ptr, len));
        statistics->is_min_exact = false;
    }
    if (bounds->max.len > TIDE_PARQUET_BOUND_BYTES) {
        size_t len = cut_len(bounds->max, is_text);
        char *copy = tide_arena_bytes(arena, len);
        memcpy(copy, bounds->max.ptr, len);
        statistics->has_max = raise(copy, &len, is_text);
        statistics->max = tide_str_of(copy, len);
        statistics->is_max_exact = false;
    }
}

void tide_parquet_statistics_of(const struct tide_parquet_column *column,
                                const struct tide_parquet_leaf *leaf, tide_str plain, size_t count,
                                struct tide_arena *arena,
                                struct tide_parquet_statistics *statistics)
{
    enum tide_parquet_storage storage = tide_parquet_storage_of(column);
    if (count == 0 || has_nan(storage, plain, count)) {
        return;
    }
    struct bounds bounds = bounds_of(column, leaf, plain, count);
    statistics->has_min = statistics->has_max = true;
    statistics->is_min_exact = statistics->is_max_exact = true;
    statistics->min = tide_arena_str(arena, bounds.min);
    statistics->max = tide_arena_str(arena, bounds.max);
    if (storage == TIDE_PARQUET_AS_FLOAT || storage == TIDE_PARQUET_AS_DOUBLE) {
        statistics->min = bound_zero(bounds.min, false, arena);
        statistics->max = bound_zero(bounds.max, true, arena);
    } else if (storage == TIDE_PARQUET_AS_BYTES && leaf->width == 0) {
        set_strings(&bounds, column->type != TIDE_PARQUET_BINARY, arena, statistics);
    }
}
