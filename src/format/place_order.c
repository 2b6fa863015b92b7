#include "format/place_order.h"

#include "format/json_reader.h"

#include <inttypes.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

/* Negative integers come first: hi tells them apart. */
static bool read_integer(tide_str json, struct tide_ordered_place *place)
{
    int64_t negative = 0;
    if (tide_str_to_u64(json, &place->lo)) {
        place->hi = 1;
    } else if (tide_str_to_i64(json, &negative)) {
        place->hi = 0;
        place->lo = (uint64_t)negative;
    } else {
        return false;
    }
    place->form = TIDE_PLACE_INTEGER;
    return true;
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                  : -1;
}

/* One to eight hex digits from *at on. */
static bool read_hex(tide_str text, size_t *at, uint64_t *ret_value)
{
    size_t start = *at;
    uint64_t value = 0;
    while (*at < text.len && *at - start < 9 && hex_digit(text.ptr[*at]) >= 0) {
        value = value << 4 | (uint64_t)hex_digit(text.ptr[(*at)++]);
    }
    *ret_value = value;
    return *at > start && *at - start <= 8;
}

/* "H/H" with its quotes. */
static bool read_lsn(tide_str json, struct tide_ordered_place *place)
{
    size_t at = 1;
    uint64_t high = 0;
    uint64_t low = 0;
    if (json.len < 5 || json.ptr[0] != '"' || !read_hex(json, &at, &high) || json.ptr[at] != '/') {
        return false;
    }
    at++;
    if (!read_hex(json, &at, &low) || at + 1 != json.len) {
        return false;
    }
    place->lo = high << 32 | low;
    place->form = TIDE_PLACE_LSN;
    return true;
}

/* "name.000123": the number after the last dot, which has at least one digit. */
static bool read_file_name(tide_str name, struct tide_ordered_place *place)
{
    size_t at = name.len;
    while (at > 0 && (unsigned char)(name.ptr[at - 1] - '0') < 10) {
        at--;
    }
    if (at == name.len || at == 0 || name.ptr[at - 1] != '.') {
        return false;
    }
    place->family = (uint32_t)XXH3_64bits(name.ptr, at);
    while (at + 1 < name.len && name.ptr[at] == '0') {
        at++;
    }
    return tide_str_to_u64(tide_str_of(name.ptr + at, name.len - at), &place->hi);
}

static tide_status read_file_members(struct tide_json_reader *reader,
                                     struct tide_ordered_place *place, unsigned *ret_seen,
                                     struct tide_error *err)
{
    struct tide_json_token token;
    for (;;) {
        TIDE_TRY(tide_json_next(reader, &token, err));
        if (token.type == TIDE_JSON_OBJECT_END) {
            return TIDE_OK;
        }
        if (tide_str_equal(token.text, TIDE_STR("file")) && (*ret_seen & 1) == 0) {
            TIDE_TRY(tide_json_expect(reader, TIDE_JSON_STRING, &token, err));
            *ret_seen |= read_file_name(token.text, place) ? 1 : 4;
        } else if (tide_str_equal(token.text, TIDE_STR("pos")) && (*ret_seen & 2) == 0) {
            TIDE_TRY(tide_json_expect_u64(reader, &place->lo, err));
            *ret_seen |= 2;
        } else {
            return tide_fail(err, TIDE_CORRUPT, "not a file and a place");
        }
    }
}

static bool read_file(tide_str json, struct tide_ordered_place *place)
{
    struct tide_json_reader reader;
    struct tide_json_token token;
    struct tide_error ignored;
    unsigned seen = 0;
    tide_json_reader_init(&reader, json, TIDE_JSON_DEPTH_MAX);
    if (tide_json_expect(&reader, TIDE_JSON_OBJECT_BEGIN, &token, &ignored) != TIDE_OK ||
        read_file_members(&reader, place, &seen, &ignored) != TIDE_OK || seen != 3) {
        return false;
    }
    place->form = TIDE_PLACE_FILE;
    return true;
}

struct tide_ordered_place tide_ordered_place_of(tide_str position, uint64_t index,
                                                uint32_t incarnation)
{
    struct tide_ordered_place place = {.index = index, .incarnation = incarnation};
    TIDE_ASSERT(position.len > 0);
    char first = position.ptr[0];
    bool is_known = first == '"'   ? read_lsn(position, &place)
                    : first == '{' ? read_file(position, &place)
                                   : read_integer(position, &place);
    if (!is_known) {
        XXH128_hash_t hash = XXH3_128bits(position.ptr, position.len);
        place.hi = hash.high64;
        place.lo = hash.low64;
        place.family = 0;
        place.form = TIDE_PLACE_OPAQUE;
    }
    return place;
}

struct tide_ordered_place tide_ordered_place_from(const struct tide_frame_place *place,
                                                  uint32_t incarnation)
{
    if (!place->is_known) {
        return (struct tide_ordered_place){.incarnation = incarnation};
    }
    return tide_ordered_place_of(place->position, place->index, incarnation);
}

static int compare_u64(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int compare_numbers(const struct tide_ordered_place *a, const struct tide_ordered_place *b)
{
    int order = compare_u64(a->hi, b->hi);
    order = order != 0 ? order : compare_u64(a->lo, b->lo);
    return order != 0 ? order : compare_u64(a->index, b->index);
}

enum tide_place_order tide_ordered_place_compare(const struct tide_ordered_place *a,
                                                 const struct tide_ordered_place *b)
{
    int order = compare_u64(a->incarnation, b->incarnation);
    if (order == 0 && (a->form == TIDE_PLACE_NONE || b->form == TIDE_PLACE_NONE)) {
        order = (a->form != TIDE_PLACE_NONE) - (b->form != TIDE_PLACE_NONE);
    } else if (order == 0) {
        order = compare_numbers(a, b);
        bool is_ordered = a->form == b->form && a->family == b->family &&
                          (a->form != TIDE_PLACE_OPAQUE || order == 0);
        if (!is_ordered) {
            return TIDE_PLACE_UNORDERED;
        }
    }
    return order < 0 ? TIDE_PLACE_BEFORE : order > 0 ? TIDE_PLACE_AFTER : TIDE_PLACE_SAME;
}

int tide_ordered_place_sort(const struct tide_ordered_place *a, const struct tide_ordered_place *b)
{
    int order = compare_u64(a->incarnation, b->incarnation);
    order = order != 0 ? order : (a->form > b->form) - (a->form < b->form);
    order = order != 0 ? order : compare_u64(a->family, b->family);
    return order != 0 ? order : compare_numbers(a, b);
}

static void append_position(struct tide_buf *buf, const struct tide_ordered_place *place)
{
    switch (place->form) {
    case TIDE_PLACE_INTEGER:
        if (place->hi == 0) {
            tide_buf_append_i64(buf, (int64_t)place->lo);
        } else {
            tide_buf_append_u64(buf, place->lo);
        }
        break;
    case TIDE_PLACE_LSN:
        tide_buf_printf(buf, "\"%" PRIX64 "/%" PRIX64 "\"", place->lo >> 32,
                        place->lo & UINT32_MAX);
        break;
    case TIDE_PLACE_FILE:
        tide_buf_printf(buf, "{\"file\":\"*.%06" PRIu64 "\",\"pos\":%" PRIu64 "}", place->hi,
                        place->lo);
        break;
    case TIDE_PLACE_OPAQUE:
        tide_buf_printf(buf, "\"hash %016" PRIx64 "%016" PRIx64 "\"", place->hi, place->lo);
        break;
    case TIDE_PLACE_NONE:
        break;
    }
}

void tide_ordered_place_append(struct tide_buf *buf, const struct tide_ordered_place *place)
{
    if (place->form == TIDE_PLACE_NONE) {
        tide_buf_append_str(buf, TIDE_STR("null"));
        return;
    }
    tide_buf_append_char(buf, '[');
    append_position(buf, place);
    tide_buf_append_char(buf, ',');
    tide_buf_append_u64(buf, place->index);
    tide_buf_append_char(buf, ']');
}
