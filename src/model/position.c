#include "model/position.h"

#include <inttypes.h>

int tide_position_compare(struct tide_position a, struct tide_position b)
{
    if (a.hi != b.hi) {
        return a.hi < b.hi ? -1 : 1;
    }
    return (a.lo > b.lo) - (a.lo < b.lo);
}

int tide_place_compare(struct tide_place a, struct tide_place b)
{
    if (!a.known || !b.known) {
        return (int)a.known - (int)b.known;
    }
    int order = tide_position_compare(a.position, b.position);
    return order != 0 ? order : (a.index > b.index) - (a.index < b.index);
}

static void write_integer(struct tide_position position, struct tide_buf *buf)
{
    tide_buf_append_u64(buf, position.lo);
}

static tide_status parse_integer(tide_str json, struct tide_position *ret_position,
                                 struct tide_error *err)
{
    uint64_t value = 0;
    if (!tide_str_to_u64(json, &value) || value > INT64_MAX) {
        return tide_fail(err, TIDE_CORRUPT, "position is not an integer within 0 and 2^63-1");
    }
    *ret_position = (struct tide_position){.lo = value};
    return TIDE_OK;
}

const struct tide_position_kind tide_position_integer = {
    .name = "integer",
    .write = write_integer,
    .parse = parse_integer,
};

static bool parse_hex32(tide_str text, uint64_t *ret_value)
{
    if (text.len == 0 || text.len > 8) {
        return false;
    }
    uint64_t value = 0;
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        unsigned digit = c - '0';
        if (digit > 9) {
            digit = (c | 0x20u) - 'a' + 10u;
            if (digit < 10 || digit > 15) {
                return false;
            }
        }
        value = value << 4 | digit;
    }
    *ret_value = value;
    return true;
}

bool tide_lsn_parse(tide_str text, uint64_t *ret_lsn)
{
    const char *slash = text.len == 0 ? NULL : memchr(text.ptr, '/', text.len);
    if (slash == NULL) {
        return false;
    }
    size_t at = (size_t)(slash - text.ptr);
    uint64_t high = 0;
    uint64_t low = 0;
    if (!parse_hex32(tide_str_of(text.ptr, at), &high) ||
        !parse_hex32(tide_str_of(slash + 1, text.len - at - 1), &low)) {
        return false;
    }
    *ret_lsn = high << 32 | low;
    return true;
}

void tide_lsn_append(struct tide_buf *buf, uint64_t lsn)
{
    tide_buf_printf(buf, "%" PRIX32 "/%" PRIX32, (uint32_t)(lsn >> 32), (uint32_t)lsn);
}

static void write_lsn(struct tide_position position, struct tide_buf *buf)
{
    tide_buf_append_char(buf, '"');
    tide_lsn_append(buf, position.lo);
    tide_buf_append_char(buf, '"');
}

static tide_status parse_lsn(tide_str json, struct tide_position *ret_position,
                             struct tide_error *err)
{
    uint64_t lsn = 0;
    if (json.len < 2 || json.ptr[0] != '"' || json.ptr[json.len - 1] != '"' ||
        !tide_lsn_parse(tide_str_of(json.ptr + 1, json.len - 2), &lsn)) {
        return tide_fail(err, TIDE_CORRUPT, "position is not an LSN like \"16/B374D848\"");
    }
    *ret_position = (struct tide_position){.lo = lsn};
    return TIDE_OK;
}

const struct tide_position_kind tide_position_lsn = {
    .name = "lsn",
    .write = write_lsn,
    .parse = parse_lsn,
};
