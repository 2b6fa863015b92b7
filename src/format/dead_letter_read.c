#include "format/dead_letter.h"

#include <xxhash.h>

#include "base/limits.h"
#include "format/json_reader.h"
#include "format/json_shape.h"

enum field {
    FIELD_ID,
    FIELD_TIMESTAMP,
    FIELD_SINK,
    FIELD_STORE,
    FIELD_DESTINATION,
    FIELD_REASON,
    FIELD_SNAPSHOT_ID,
    FIELD_ATTEMPT,
    FIELD_SEQ,
    FIELD_ROW_KEY,
    FIELD_POSITION,
    FIELD_INDEX,
    FIELD_INCARNATION,
    FIELD_KEY,
    FIELD_BYTES,
    FIELD_RECORD,
    FIELD_RECORD_BASE64,
    FIELD_COUNT,
};

static const struct tide_shape_field fields[FIELD_COUNT] = {
    [FIELD_ID] = {.name = "id", .is_optional = true},
    [FIELD_TIMESTAMP] = {.name = "timestamp"},
    [FIELD_SINK] = {.name = "sink", .is_optional = true},
    [FIELD_STORE] = {.name = "store"},
    [FIELD_DESTINATION] = {.name = "destination"},
    [FIELD_REASON] = {.name = "reason"},
    [FIELD_SNAPSHOT_ID] = {.name = "snapshot_id", .is_optional = true},
    [FIELD_ATTEMPT] = {.name = "attempt", .is_optional = true},
    [FIELD_SEQ] = {.name = "seq", .is_optional = true},
    [FIELD_ROW_KEY] = {.name = "row_key", .is_optional = true},
    [FIELD_POSITION] = {.name = "position", .is_optional = true},
    [FIELD_INDEX] = {.name = "index", .is_optional = true},
    [FIELD_INCARNATION] = {.name = "incarnation", .is_optional = true},
    [FIELD_KEY] = {.name = "key", .is_optional = true},
    [FIELD_BYTES] = {.name = "bytes"},
    [FIELD_RECORD] = {.name = "record", .is_optional = true},
    [FIELD_RECORD_BASE64] = {.name = "record_base64", .is_optional = true},
};

static const struct tide_shape_form form = {.fields = fields, .count = FIELD_COUNT};

static tide_status read_string(const struct tide_shape *shape, const tide_str *values,
                               enum field field, tide_str *ret_text, struct tide_error *err)
{
    return values[field].ptr == NULL ? TIDE_OK
                                     : tide_shape_string(shape, values[field], ret_text, err);
}

static tide_status read_number(const struct tide_shape *shape, const tide_str *values,
                               enum field field, uint64_t *ret_number, struct tide_error *err)
{
    return values[field].ptr == NULL
               ? TIDE_OK
               : tide_shape_u64(shape, values[field], UINT64_MAX, ret_number, err);
}

/* Of letters that have no id one is made: the same each time the line is read. */
static tide_status read_id(const struct tide_shape *shape, tide_str line, const tide_str *values,
                           struct tide_dead_letter_id *ret_id, struct tide_error *err)
{
    if (values[FIELD_ID].ptr == NULL) {
        XXH128_hash_t hash = XXH3_128bits(line.ptr, line.len);
        *ret_id = (struct tide_dead_letter_id){.hi = hash.high64, .lo = hash.low64};
        return TIDE_OK;
    }
    tide_str text;
    TIDE_TRY(tide_shape_string(shape, values[FIELD_ID], &text, err));
    return tide_dead_letter_id_parse(text, ret_id)
               ? TIDE_OK
               : tide_shape_fail(shape, values[FIELD_ID], "id is not 32 hexadecimal digits", err);
}

static tide_status read_texts(const struct tide_shape *shape, const tide_str *values,
                              struct tide_dead_letter_read *letter, struct tide_error *err)
{
    TIDE_TRY(read_string(shape, values, FIELD_TIMESTAMP, &letter->timestamp, err));
    TIDE_TRY(read_string(shape, values, FIELD_SINK, &letter->sink, err));
    TIDE_TRY(read_string(shape, values, FIELD_STORE, &letter->store, err));
    TIDE_TRY(read_string(shape, values, FIELD_DESTINATION, &letter->destination, err));
    return read_string(shape, values, FIELD_REASON, &letter->reason, err);
}

/* A row has a seq, a change a position; neither is of versions that knew no place yet. */
static tide_status read_place(const struct tide_shape *shape, const tide_str *values,
                              struct tide_dead_letter_read *letter, struct tide_error *err)
{
    bool is_row = values[FIELD_SNAPSHOT_ID].ptr != NULL;
    TIDE_TRY(read_string(shape, values, FIELD_SNAPSHOT_ID, &letter->snapshot_id, err));
    TIDE_TRY(read_number(shape, values, FIELD_ATTEMPT, &letter->attempt, err));
    TIDE_TRY(read_number(shape, values, FIELD_SEQ, &letter->seq, err));
    TIDE_TRY(read_number(shape, values, FIELD_INDEX, &letter->index, err));
    TIDE_TRY(read_number(shape, values, FIELD_INCARNATION, &letter->incarnation, err));
    letter->position_json = values[FIELD_POSITION];
    if (is_row) {
        return read_string(shape, values, FIELD_ROW_KEY, &letter->key_json, err);
    }
    letter->key_json = values[FIELD_KEY];
    return TIDE_OK;
}

static int base64_digit(char c)
{
    if (c >= 'A' && c <= 'Z') {
        return c - 'A';
    }
    if (c >= 'a' && c <= 'z') {
        return c - 'a' + 26;
    }
    if (c >= '0' && c <= '9') {
        return c - '0' + 52;
    }
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* RFC 4648, padded. False when it is not that. */
static bool decode_base64(tide_str text, char *to, size_t *ret_len)
{
    size_t padding = text.len >= 2 && text.ptr[text.len - 2] == '='   ? 2
                     : text.len >= 1 && text.ptr[text.len - 1] == '=' ? 1
                                                                      : 0;
    size_t len = 0;
    uint32_t bits = 0;
    if (text.len % 4 != 0) {
        return false;
    }
    for (size_t i = 0; i < text.len; i++) {
        int digit = i < text.len - padding ? base64_digit(text.ptr[i]) : 0;
        if (digit < 0) {
            return false;
        }
        bits = bits << 6 | (uint32_t)digit;
        if (i % 4 == 3) {
            to[len++] = (char)(bits >> 16 & 0xff);
            to[len++] = (char)(bits >> 8 & 0xff);
            to[len++] = (char)(bits & 0xff);
        }
    }
    *ret_len = len - padding;
    return true;
}

static tide_status read_record(const struct tide_shape *shape, const tide_str *values,
                               struct tide_dead_letter_read *letter, struct tide_error *err)
{
    tide_str base64 = {0};
    if (values[FIELD_RECORD].ptr != NULL) {
        return read_string(shape, values, FIELD_RECORD, &letter->record, err);
    }
    TIDE_TRY(read_string(shape, values, FIELD_RECORD_BASE64, &base64, err));
    if (base64.ptr == NULL) {
        return tide_fail(err, TIDE_CORRUPT, "it has neither record nor record_base64");
    }
    char *to = tide_arena_bytes(shape->arena, base64.len);
    if (!decode_base64(base64, to, &letter->record.len)) {
        return tide_shape_fail(shape, values[FIELD_RECORD_BASE64], "record_base64 is no base64",
                               err);
    }
    letter->record.ptr = to;
    return TIDE_OK;
}

tide_status tide_dead_letter_decode(tide_str line, struct tide_arena *arena,
                                    struct tide_dead_letter_read *ret_letter,
                                    struct tide_error *err)
{
    struct tide_shape shape = {.document = line.ptr, .arena = arena};
    struct tide_dead_letter_read letter = {0};
    tide_str values[FIELD_COUNT];
    TIDE_TRY(tide_json_check(line, TIDE_JSON_DEPTH_MAX, err));
    TIDE_TRY(tide_shape_fields(&shape, line, &form, values, err));
    TIDE_TRY(read_id(&shape, line, values, &letter.id, err));
    TIDE_TRY(read_texts(&shape, values, &letter, err));
    TIDE_TRY(read_place(&shape, values, &letter, err));
    TIDE_TRY(read_number(&shape, values, FIELD_BYTES, &letter.bytes, err));
    TIDE_TRY(read_record(&shape, values, &letter, err));
    *ret_letter = letter;
    return TIDE_OK;
}
