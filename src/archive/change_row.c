#include "archive/change_row.h"

#include "base/limits.h"
#include "base/reader.h"

#include <string.h>

#define VERSION 1

/* Which of the optional parts follow, in this order. */
enum {
    HAS_PREV = 1,
    HAS_TX = 2,
    HAS_BYTES = 4,
    HAS_KEY = 8,
    HAS_MOVED_FROM = 16,
    HAS_VALUES = 32,
    HAS_PLACE = 64,
    HAS_INCARNATION = 128,
};

static bool is_printable(const char text[TIDE_UUID_LEN + 1])
{
    bool is_other = text[TIDE_UUID_LEN] != '\0';
    for (size_t i = 0; i < TIDE_UUID_LEN; i++) {
        is_other |= text[i] <= ' ' || text[i] >= 0x7f;
    }
    return !is_other;
}

static const char *mistake_of_change(const struct tide_change_row *row, size_t key_count)
{
    bool is_delete = row->op == TIDE_OP_DELETE;
    if (row->op == TIDE_OP_TRUNCATE) {
        bool is_bare = row->key == NULL && row->moved_from == NULL && row->values == NULL;
        return is_bare && row->bytes == 0 ? NULL : "a truncate has neither key nor values";
    }
    if ((row->key != NULL) != (key_count > 0)) {
        return "a change has a key where its table has one";
    }
    if (row->moved_from != NULL && (is_delete || key_count == 0)) {
        return "only a row with a key can move";
    }
    bool has_record = row->values != NULL || row->bytes > 0;
    bool has_both = row->values != NULL && row->bytes > 0;
    return has_record == is_delete || has_both ? "an insert or update has values or a size" : NULL;
}

static const char *mistake_of_snapshot(const struct tide_change_row *row, size_t key_count)
{
    bool is_stub = row->kind == TIDE_ROW_STUB;
    if (row->prev.known || row->tx.len > 0 || row->moved_from != NULL || row->op != 0) {
        return "only a change has these parts";
    }
    if ((row->values != NULL) != (row->kind == TIDE_ROW_SNAPSHOT)) {
        return "a row of a snapshot has values, others have not";
    }
    if ((row->bytes > 0) != is_stub || (row->key != NULL && (!is_stub || key_count == 0))) {
        return "a stub has a size, and maybe a key; others have neither";
    }
    return NULL;
}

const char *tide_change_row_head_mistake(const struct tide_change_row *row)
{
    bool has_place = row->kind <= TIDE_ROW_STUB;
    if (has_place && !row->place.known) {
        return "a change or row has a place";
    }
    if (row->kind == TIDE_ROW_CHANGE) {
        bool is_bare = row->snapshot_id[0] == '\0' && row->attempt == 0 && row->seq == 0;
        return is_bare ? NULL : "a change is of no snapshot";
    }
    if (!is_printable(row->snapshot_id)) {
        return "a snapshot's id is 36 printable characters";
    }
    return row->attempt > TIDE_ATTEMPTS_MAX ? "so many attempts cannot be" : NULL;
}

const char *tide_change_row_mistake(const struct tide_change_row *row, size_t key_count)
{
    const char *mistake = tide_change_row_head_mistake(row);
    if (mistake != NULL) {
        return mistake;
    }
    if (!tide_str_is_utf8(row->tx)) {
        return "a transaction's name is UTF-8";
    }
    return row->kind == TIDE_ROW_CHANGE ? mistake_of_change(row, key_count)
                                        : mistake_of_snapshot(row, key_count);
}

static void append_varint(struct tide_buf *buf, uint64_t value)
{
    while (value >= 0x80) {
        tide_buf_append_char(buf, (char)(value | 0x80));
        value >>= 7;
    }
    tide_buf_append_char(buf, (char)value);
}

static void append_signed(struct tide_buf *buf, int64_t value)
{
    append_varint(buf, ((uint64_t)value << 1) ^ (uint64_t)(value >> 63));
}

static void append_text(struct tide_buf *buf, tide_str text)
{
    append_varint(buf, text.len);
    tide_buf_append_str(buf, text);
}

static void append_place(struct tide_buf *buf, struct tide_place place)
{
    append_varint(buf, place.position.hi);
    append_varint(buf, place.position.lo);
    append_varint(buf, place.index);
}

static void append_values(struct tide_buf *buf, const struct tide_value *values, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        tide_buf_append_char(buf, (char)values[i].kind);
        if (values[i].kind > TIDE_VALUE_ABSENT) {
            append_text(buf, tide_value_str(values[i]));
        }
    }
}

static unsigned parts_of(const struct tide_change_row *row)
{
    return (row->prev.known ? HAS_PREV : 0u) | (row->tx.len > 0 ? HAS_TX : 0u) |
           (row->bytes > 0 ? HAS_BYTES : 0u) | (row->key != NULL ? HAS_KEY : 0u) |
           (row->moved_from != NULL ? HAS_MOVED_FROM : 0u) |
           (row->values != NULL ? HAS_VALUES : 0u) | (row->place.known ? HAS_PLACE : 0u) |
           (row->incarnation > 0 ? HAS_INCARNATION : 0u);
}

static void append_snapshot(struct tide_buf *buf, const struct tide_change_row *row)
{
    tide_buf_append(buf, row->snapshot_id, TIDE_UUID_LEN);
    append_varint(buf, row->seq);
    append_varint(buf, row->attempt);
    if (tide_change_row_has_starts(row->kind)) {
        for (uint32_t i = 0; i < row->attempt; i++) {
            append_varint(buf, row->starts[i]);
        }
    }
}

void tide_change_row_encode(const struct tide_change_row *row, size_t column_count,
                            size_t key_count, struct tide_buf *buf)
{
    unsigned parts = parts_of(row);
    TIDE_ASSERT(tide_change_row_mistake(row, key_count) == NULL);
    tide_buf_append_char(buf, VERSION);
    tide_buf_append_char(buf, (char)row->kind);
    tide_buf_append_char(buf, (char)row->op);
    tide_buf_append_char(buf, (char)parts);
    append_signed(buf, row->commit_us);
    if (row->kind != TIDE_ROW_CHANGE) {
        append_snapshot(buf, row);
    }
    if ((parts & HAS_PLACE) != 0) {
        append_place(buf, row->place);
    }
    if ((parts & HAS_PREV) != 0) {
        append_place(buf, row->prev);
    }
    if ((parts & HAS_TX) != 0) {
        append_text(buf, row->tx);
    }
    if ((parts & HAS_BYTES) != 0) {
        append_varint(buf, row->bytes);
    }
    if ((parts & HAS_KEY) != 0) {
        append_values(buf, row->key, key_count);
    }
    if ((parts & HAS_MOVED_FROM) != 0) {
        append_values(buf, row->moved_from, key_count);
    }
    if ((parts & HAS_VALUES) != 0) {
        append_values(buf, row->values, column_count);
    }
    if ((parts & HAS_INCARNATION) != 0) {
        append_varint(buf, row->incarnation);
    }
}

/* Reading. */

struct row_reader {
    struct tide_reader in;
    struct tide_arena *arena;
};

static uint64_t read_varint(struct row_reader *reader)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        uint8_t byte = tide_reader_u8(&reader->in);
        value |= (uint64_t)(byte & 0x7f) << shift;
        if ((byte & 0x80) == 0) {
            reader->in.failed |= (shift == 63 && byte > 1) || (shift > 0 && byte == 0);
            return reader->in.failed ? 0 : value;
        }
    }
    reader->in.failed = true;
    return 0;
}

static int64_t read_signed(struct row_reader *reader)
{
    uint64_t value = read_varint(reader);
    return (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
}

static tide_str read_text(struct row_reader *reader)
{
    uint64_t len = read_varint(reader);
    return tide_reader_take(&reader->in, len > SIZE_MAX ? SIZE_MAX : (size_t)len);
}

static struct tide_place read_place(struct row_reader *reader)
{
    struct tide_place place = {.known = true};
    place.position.hi = read_varint(reader);
    place.position.lo = read_varint(reader);
    place.index = read_varint(reader);
    return place;
}

static struct tide_value read_value(struct row_reader *reader)
{
    struct tide_value value = {.kind = tide_reader_u8(&reader->in)};
    if (value.kind > TIDE_VALUE_JSON) {
        reader->in.failed = true;
    } else if (value.kind > TIDE_VALUE_ABSENT) {
        tide_str text = read_text(reader);
        reader->in.failed |= text.len > UINT32_MAX;
        value.ptr = text.ptr;
        value.len = (uint32_t)text.len;
    }
    return value;
}

/* Each value takes a byte at least, so that no count of a table costs more than its row has. */
static const struct tide_value *read_values(struct row_reader *reader, size_t count)
{
    if (count > tide_reader_left(&reader->in)) {
        reader->in.failed = true;
        return NULL;
    }
    struct tide_value *values = tide_arena_alloc(reader->arena, count, sizeof(*values));
    for (size_t i = 0; i < count && !reader->in.failed; i++) {
        values[i] = read_value(reader);
    }
    return values;
}

static void read_starts(struct row_reader *reader, struct tide_change_row *row)
{
    if (row->attempt > tide_reader_left(&reader->in)) {
        reader->in.failed = true;
        return;
    }
    uint64_t *starts = tide_arena_alloc(reader->arena, row->attempt, sizeof(*starts));
    for (uint32_t i = 0; i < row->attempt; i++) {
        starts[i] = read_varint(reader);
    }
    row->starts = starts;
}

static void read_snapshot(struct row_reader *reader, struct tide_change_row *row)
{
    tide_str id = tide_reader_take(&reader->in, TIDE_UUID_LEN);
    if (reader->in.failed) {
        return;
    }
    memcpy(row->snapshot_id, id.ptr, TIDE_UUID_LEN);
    row->seq = read_varint(reader);
    uint64_t attempt = read_varint(reader);
    reader->in.failed |= attempt > TIDE_ATTEMPTS_MAX;
    row->attempt = reader->in.failed ? 0 : (uint32_t)attempt;
    if (tide_change_row_has_starts(row->kind)) {
        read_starts(reader, row);
    }
}

static void read_parts(struct row_reader *reader, unsigned parts, size_t column_count,
                       size_t key_count, struct tide_change_row *row)
{
    if ((parts & HAS_PLACE) != 0) {
        row->place = read_place(reader);
    }
    if ((parts & HAS_PREV) != 0) {
        row->prev = read_place(reader);
    }
    if ((parts & HAS_TX) != 0) {
        row->tx = read_text(reader);
    }
    if ((parts & HAS_BYTES) != 0) {
        row->bytes = read_varint(reader);
    }
    if ((parts & HAS_KEY) != 0) {
        row->key = read_values(reader, key_count);
    }
    if ((parts & HAS_MOVED_FROM) != 0) {
        row->moved_from = read_values(reader, key_count);
    }
    if ((parts & HAS_VALUES) != 0) {
        row->values = read_values(reader, column_count);
    }
    if ((parts & HAS_INCARNATION) != 0) {
        uint64_t incarnation = read_varint(reader);
        reader->in.failed |= incarnation > UINT32_MAX;
        row->incarnation = (uint32_t)incarnation;
    }
}

tide_status tide_change_row_decode(tide_str bytes, size_t column_count, size_t key_count,
                                   struct tide_arena *arena, struct tide_change_row *ret_row,
                                   struct tide_error *err)
{
    struct row_reader reader = {.in = tide_reader_of(bytes), .arena = arena};
    struct tide_change_row row = {0};
    uint8_t version = tide_reader_u8(&reader.in);
    uint8_t kind = tide_reader_u8(&reader.in);
    uint8_t op = tide_reader_u8(&reader.in);
    uint8_t parts = tide_reader_u8(&reader.in);
    if (reader.in.failed || version != VERSION || kind > TIDE_ROW_END || op > TIDE_OP_TRUNCATE) {
        return tide_fail(err, TIDE_CORRUPT, "a row of %zu bytes does not begin like one",
                         bytes.len);
    }
    row.kind = (enum tide_change_row_kind)kind;
    row.op = (enum tide_op)op;
    row.commit_us = read_signed(&reader);
    if (row.kind != TIDE_ROW_CHANGE) {
        read_snapshot(&reader, &row);
    }
    read_parts(&reader, parts, column_count, key_count, &row);
    if (!tide_reader_is_done(&reader.in)) {
        return tide_fail(err, TIDE_CORRUPT, "a row of %zu bytes is cut, or of other columns",
                         bytes.len);
    }
    const char *mistake = tide_change_row_mistake(&row, key_count);
    if (mistake != NULL || parts_of(&row) != parts) {
        return tide_fail(err, TIDE_CORRUPT, "a row of %zu bytes is none: %s", bytes.len,
                         mistake != NULL ? mistake : "a part of it is there and empty");
    }
    *ret_row = row;
    return TIDE_OK;
}
