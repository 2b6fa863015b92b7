#include "format/parquet/thrift.h"

#include "base/status.h"
#include "format/parquet/varint.h"

static void put_zigzag(struct tide_buf *out, int64_t value)
{
    tide_varint_append(out, ((uint64_t)value << 1) ^ (uint64_t)(value >> 63));
}

static void put_field(struct tide_thrift_writer *writer, int16_t field, enum tide_thrift_type type)
{
    int delta = field - writer->last_field;
    TIDE_ASSERT(delta > 0);
    if (delta <= 15) {
        tide_buf_append_char(writer->out, (char)(delta << 4 | type));
    } else {
        tide_buf_append_char(writer->out, (char)type);
        put_zigzag(writer->out, field);
    }
    writer->last_field = field;
}

void tide_thrift_put_bool(struct tide_thrift_writer *writer, int16_t field, bool value)
{
    put_field(writer, field, value ? TIDE_THRIFT_TRUE : TIDE_THRIFT_FALSE);
}

void tide_thrift_put_i8(struct tide_thrift_writer *writer, int16_t field, int8_t value)
{
    put_field(writer, field, TIDE_THRIFT_I8);
    tide_buf_append_char(writer->out, (char)value);
}

void tide_thrift_put_i32(struct tide_thrift_writer *writer, int16_t field, int32_t value)
{
    put_field(writer, field, TIDE_THRIFT_I32);
    put_zigzag(writer->out, value);
}

void tide_thrift_put_i64(struct tide_thrift_writer *writer, int16_t field, int64_t value)
{
    put_field(writer, field, TIDE_THRIFT_I64);
    put_zigzag(writer->out, value);
}

void tide_thrift_put_binary(struct tide_thrift_writer *writer, int16_t field, tide_str value)
{
    put_field(writer, field, TIDE_THRIFT_BINARY);
    tide_thrift_add_binary(writer, value);
}

int16_t tide_thrift_begin_struct(struct tide_thrift_writer *writer, int16_t field)
{
    if (field != 0) {
        put_field(writer, field, TIDE_THRIFT_STRUCT);
    }
    int16_t outer = writer->last_field;
    writer->last_field = 0;
    return outer;
}

void tide_thrift_end_struct(struct tide_thrift_writer *writer, int16_t outer)
{
    tide_buf_append_char(writer->out, TIDE_THRIFT_STOP);
    writer->last_field = outer;
}

void tide_thrift_put_empty(struct tide_thrift_writer *writer, int16_t field)
{
    tide_thrift_end_struct(writer, tide_thrift_begin_struct(writer, field));
}

void tide_thrift_begin_list(struct tide_thrift_writer *writer, int16_t field,
                            enum tide_thrift_type type, size_t count)
{
    put_field(writer, field, TIDE_THRIFT_LIST);
    if (count < 15) {
        tide_buf_append_char(writer->out, (char)(count << 4 | type));
    } else {
        tide_buf_append_char(writer->out, (char)(0xf0 | type));
        tide_varint_append(writer->out, count);
    }
}

void tide_thrift_add_i32(struct tide_thrift_writer *writer, int32_t value)
{
    put_zigzag(writer->out, value);
}

void tide_thrift_add_binary(struct tide_thrift_writer *writer, tide_str value)
{
    tide_varint_append(writer->out, value.len);
    tide_buf_append_str(writer->out, value);
}

struct tide_thrift_reader tide_thrift_reader_of(tide_str bytes)
{
    const char *start = bytes.len == 0 ? "" : bytes.ptr;
    return (struct tide_thrift_reader){start, start + bytes.len, false, 0};
}

static size_t left(const struct tide_thrift_reader *reader)
{
    return reader->failed ? 0 : (size_t)(reader->end - reader->pos);
}

static uint8_t take_byte(struct tide_thrift_reader *reader)
{
    if (left(reader) == 0) {
        reader->failed = true;
        return 0;
    }
    return (uint8_t)*reader->pos++;
}

static uint64_t take_varint(struct tide_thrift_reader *reader)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        uint8_t byte = take_byte(reader);
        if (shift == 63 && byte > 1) {
            break;
        }
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            return reader->failed ? 0 : value;
        }
    }
    reader->failed = true;
    return 0;
}

static int64_t take_zigzag(struct tide_thrift_reader *reader)
{
    uint64_t value = take_varint(reader);
    return (int64_t)(value >> 1 ^ (0 - (value & 1)));
}

static void pass(struct tide_thrift_reader *reader, uint64_t count)
{
    if (count > left(reader)) {
        reader->failed = true;
    } else {
        reader->pos += count;
    }
}

/* A field's head; TIDE_THRIFT_STOP as its type at the struct's end. */
static struct tide_thrift_field take_field(struct tide_thrift_reader *reader)
{
    uint8_t head = take_byte(reader);
    struct tide_thrift_field field = {0, head & 0x0f};
    if (field.type == TIDE_THRIFT_STOP) {
        return field;
    }
    int64_t id = head >> 4 != 0 ? reader->last_field + (head >> 4) : take_zigzag(reader);
    if (id < INT16_MIN || id > INT16_MAX || field.type > TIDE_THRIFT_STRUCT) {
        reader->failed = true;
        return (struct tide_thrift_field){0};
    }
    field.id = (int16_t)id;
    return field;
}

bool tide_thrift_next(struct tide_thrift_reader *reader, struct tide_thrift_field *ret_field)
{
    struct tide_thrift_field field = take_field(reader);
    if (reader->failed || field.type == TIDE_THRIFT_STOP) {
        return false;
    }
    reader->last_field = field.id;
    *ret_field = field;
    return true;
}

int16_t tide_thrift_enter(struct tide_thrift_reader *reader)
{
    int16_t outer = reader->last_field;
    reader->last_field = 0;
    return outer;
}

void tide_thrift_leave(struct tide_thrift_reader *reader, int16_t outer)
{
    reader->last_field = outer;
}

bool tide_thrift_bool(struct tide_thrift_reader *reader, uint8_t type)
{
    if (type != TIDE_THRIFT_TRUE && type != TIDE_THRIFT_FALSE) {
        reader->failed = true;
    }
    return type == TIDE_THRIFT_TRUE;
}

int64_t tide_thrift_i64(struct tide_thrift_reader *reader, uint8_t type)
{
    if (type == TIDE_THRIFT_I8) {
        return (int8_t)take_byte(reader);
    }
    if (type < TIDE_THRIFT_I16 || type > TIDE_THRIFT_I64) {
        reader->failed = true;
        return 0;
    }
    return take_zigzag(reader);
}

int32_t tide_thrift_i32(struct tide_thrift_reader *reader, uint8_t type)
{
    int64_t value = tide_thrift_i64(reader, type);
    if (value < INT32_MIN || value > INT32_MAX) {
        reader->failed = true;
        return 0;
    }
    return (int32_t)value;
}

tide_str tide_thrift_binary(struct tide_thrift_reader *reader, uint8_t type)
{
    if (type != TIDE_THRIFT_BINARY) {
        reader->failed = true;
        return (tide_str){"", 0};
    }
    uint64_t len = take_varint(reader);
    const char *start = reader->pos;
    pass(reader, len);
    return reader->failed ? (tide_str){"", 0} : (tide_str){start, len};
}

bool tide_thrift_is_struct(struct tide_thrift_reader *reader, uint8_t type)
{
    if (type != TIDE_THRIFT_STRUCT) {
        reader->failed = true;
    }
    return !reader->failed;
}

/* A list's or a set's head. */
static uint64_t take_list_head(struct tide_thrift_reader *reader, uint8_t *ret_type)
{
    uint8_t head = take_byte(reader);
    uint64_t count = head >> 4;
    if (count == 15) {
        count = take_varint(reader);
    }
    if (count > left(reader)) {
        reader->failed = true;
        count = 0;
    }
    *ret_type = head & 0x0f;
    return count;
}

size_t tide_thrift_list(struct tide_thrift_reader *reader, uint8_t type,
                        enum tide_thrift_type wanted)
{
    if (type != TIDE_THRIFT_LIST) {
        reader->failed = true;
        return 0;
    }
    uint8_t element = 0;
    uint64_t count = take_list_head(reader, &element);
    if (count > 0 && element != wanted) {
        reader->failed = true;
        return 0;
    }
    return count;
}

/* What is still to be passed over: elements of one type, of two in turn (a map), or a struct. */
struct skip_level {
    uint64_t left; /* elements; keys and values count as one each */
    uint8_t types[2];
    bool is_struct;
};

static struct skip_level skip_map_head(struct tide_thrift_reader *reader)
{
    uint64_t count = take_varint(reader);
    uint8_t types = count == 0 ? 0 : take_byte(reader);
    if (count > left(reader)) {
        reader->failed = true;
        count = 0;
    }
    /* `left` is even before a key */
    return (struct skip_level){count * 2, {types >> 4, types & 0x0f}, false};
}

/* Passes over content without parts, and gives the level of content that has some. */
static bool skip_one(struct tide_thrift_reader *reader, uint8_t type, bool is_element,
                     struct skip_level *ret_level)
{
    switch (type) {
    case TIDE_THRIFT_TRUE:
    case TIDE_THRIFT_FALSE:
        pass(reader, is_element);
        return false;
    case TIDE_THRIFT_I8:
        pass(reader, 1);
        return false;
    case TIDE_THRIFT_I16:
    case TIDE_THRIFT_I32:
    case TIDE_THRIFT_I64:
        (void)take_varint(reader);
        return false;
    case TIDE_THRIFT_DOUBLE:
        pass(reader, 8);
        return false;
    case TIDE_THRIFT_BINARY:
        pass(reader, take_varint(reader));
        return false;
    case TIDE_THRIFT_LIST:
    case TIDE_THRIFT_SET: {
        uint8_t element = 0;
        uint64_t count = take_list_head(reader, &element);
        *ret_level = (struct skip_level){count, {element, element}, false};
        return true;
    }
    case TIDE_THRIFT_MAP:
        *ret_level = skip_map_head(reader);
        return true;
    case TIDE_THRIFT_STRUCT:
        *ret_level = (struct skip_level){0, {0}, true};
        return true;
    default:
        reader->failed = true;
        return false;
    }
}

/* The type of the next thing on a level, or TIDE_THRIFT_STOP at its end. */
static uint8_t skip_next_type(struct tide_thrift_reader *reader, struct skip_level *level)
{
    if (level->is_struct) {
        return take_field(reader).type;
    }
    if (level->left == 0) {
        return TIDE_THRIFT_STOP;
    }
    uint8_t type = level->types[level->left & 1];
    level->left--;
    if (type == TIDE_THRIFT_STOP) {
        reader->failed = true;
    }
    return type;
}

void tide_thrift_skip(struct tide_thrift_reader *reader, uint8_t type)
{
    struct skip_level levels[TIDE_THRIFT_DEPTH_MAX];
    size_t depth = 0;
    int16_t outer = tide_thrift_enter(reader);
    if (skip_one(reader, type, false, &levels[0])) {
        depth = 1;
    }
    while (depth > 0 && !reader->failed) {
        struct skip_level *level = &levels[depth - 1];
        uint8_t next = skip_next_type(reader, level);
        if (next == TIDE_THRIFT_STOP) {
            depth--;
            continue;
        }
        struct skip_level deeper = {0};
        if (!skip_one(reader, next, !level->is_struct, &deeper)) {
            continue;
        }
        if (depth == TIDE_THRIFT_DEPTH_MAX) {
            reader->failed = true;
            break;
        }
        levels[depth++] = deeper;
    }
    tide_thrift_leave(reader, outer);
}
