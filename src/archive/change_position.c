#include "archive/change_position.h"

const struct tide_position_kind *tide_change_position_kind(tide_str name)
{
    static const struct tide_position_kind *const kinds[] = {&tide_position_integer,
                                                             &tide_position_lsn};
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (tide_str_equal(name, tide_str_from(kinds[i]->name))) {
            return kinds[i];
        }
    }
    return NULL;
}

void tide_change_position_append(struct tide_buf *buf, const struct tide_position_kind *kind,
                                 struct tide_position position)
{
    /* All kinds there are write such positions so that they read back. */
    if (kind != NULL && position.hi == 0 && position.lo <= INT64_MAX) {
        kind->write(position, buf);
        return;
    }
    tide_buf_append_char(buf, '[');
    tide_buf_append_u64(buf, position.hi);
    tide_buf_append_char(buf, ',');
    tide_buf_append_u64(buf, position.lo);
    tide_buf_append_char(buf, ']');
}

void tide_change_position_show(struct tide_buf *buf, const struct tide_position_kind *kind,
                               struct tide_position position)
{
    if (kind == &tide_position_lsn) {
        tide_lsn_append(buf, position.lo);
    } else {
        tide_change_position_append(buf, kind, position);
    }
}

static tide_status parse_pair(tide_str text, struct tide_position *ret_position,
                              struct tide_error *err)
{
    const char *comma = memchr(text.ptr, ',', text.len);
    size_t at = comma == NULL ? 0 : (size_t)(comma - text.ptr);
    struct tide_position position = {0};
    if (comma == NULL || text.ptr[text.len - 1] != ']' ||
        !tide_str_to_u64(tide_str_of(text.ptr + 1, at - 1), &position.hi) ||
        !tide_str_to_u64(tide_str_of(comma + 1, text.len - at - 2), &position.lo)) {
        return tide_fail(err, TIDE_CORRUPT, "a position in a segment is not [number,number]");
    }
    *ret_position = position;
    return TIDE_OK;
}

tide_status tide_change_position_parse(tide_str text, const struct tide_position_kind *kind,
                                       struct tide_position *ret_position, struct tide_error *err)
{
    if (text.len > 0 && text.ptr[0] == '[') {
        return parse_pair(text, ret_position, err);
    }
    if (kind == NULL) {
        return tide_fail(err, TIDE_CORRUPT, "a position in a segment is of no known kind");
    }
    return kind->parse(text, ret_position, err);
}
