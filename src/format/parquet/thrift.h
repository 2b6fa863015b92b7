/*
 * Thrift's compact protocol, as far as Parquet's headers and footer need it. Pure.
 *
 *     struct  = field* 0x00
 *     field   = (id - previous id) << 4 | type, or 0x0 << 4 | type and the id as a zigzag varint
 *     integer = zigzag varint       binary = length as a varint, bytes
 *     list    = count << 4 | type, or 0xf << 4 | type and the count as a varint; then the elements
 *     boolean = in its field's type; in a list a byte
 */
#pragma once

#include "base/buf.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

enum tide_thrift_type {
    TIDE_THRIFT_STOP = 0,
    TIDE_THRIFT_TRUE = 1,
    TIDE_THRIFT_FALSE = 2,
    TIDE_THRIFT_I8 = 3,
    TIDE_THRIFT_I16 = 4,
    TIDE_THRIFT_I32 = 5,
    TIDE_THRIFT_I64 = 6,
    TIDE_THRIFT_DOUBLE = 7,
    TIDE_THRIFT_BINARY = 8,
    TIDE_THRIFT_LIST = 9,
    TIDE_THRIFT_SET = 10,
    TIDE_THRIFT_MAP = 11,
    TIDE_THRIFT_STRUCT = 12,
};

/* Unknown fields may nest this deep. */
#define TIDE_THRIFT_DEPTH_MAX 32

struct tide_thrift_writer {
    struct tide_buf *out;
    int16_t last_field; /* of the struct that is being written */
};

/** Fields of the current struct; ids ascend. */
void tide_thrift_put_bool(struct tide_thrift_writer *writer, int16_t field, bool value);
void tide_thrift_put_i8(struct tide_thrift_writer *writer, int16_t field, int8_t value);
void tide_thrift_put_i32(struct tide_thrift_writer *writer, int16_t field, int32_t value);
void tide_thrift_put_i64(struct tide_thrift_writer *writer, int16_t field, int64_t value);
void tide_thrift_put_binary(struct tide_thrift_writer *writer, int16_t field, tide_str value);

/** A struct as a field (or, with field 0, as a list's element or alone). Returns what its end
 * takes. */
int16_t tide_thrift_begin_struct(struct tide_thrift_writer *writer, int16_t field);
void tide_thrift_end_struct(struct tide_thrift_writer *writer, int16_t outer);

/** A field without content: a union's member that says all by being there. */
void tide_thrift_put_empty(struct tide_thrift_writer *writer, int16_t field);

/** A list's head; `count` elements follow. */
void tide_thrift_begin_list(struct tide_thrift_writer *writer, int16_t field,
                            enum tide_thrift_type type, size_t count);

/** Elements of a list. */
void tide_thrift_add_i32(struct tide_thrift_writer *writer, int32_t value);
void tide_thrift_add_binary(struct tide_thrift_writer *writer, tide_str value);

/*
 * Reads without ever passing the end. As base/reader.h it fails once and stays failed; every later
 * read gives 0, an empty slice, no field.
 */
struct tide_thrift_reader {
    const char *pos;
    const char *end;
    bool failed;
    int16_t last_field; /* of the struct that is being read */
};

struct tide_thrift_field {
    int16_t id;
    uint8_t type; /* enum tide_thrift_type */
};

/** Reads `bytes`, which must stay as long as slices of it are in use. */
struct tide_thrift_reader tide_thrift_reader_of(tide_str bytes);

/** The next field of the current struct; false at its end and after a failure. */
bool tide_thrift_next(struct tide_thrift_reader *reader, struct tide_thrift_field *ret_field);

/** Enters a struct (a field's or an element's) and returns what leaving it takes. */
int16_t tide_thrift_enter(struct tide_thrift_reader *reader);
void tide_thrift_leave(struct tide_thrift_reader *reader, int16_t outer);

/** The content of a field or element of that type; fails when the type is another one. */
bool tide_thrift_bool(struct tide_thrift_reader *reader, uint8_t type);
int64_t tide_thrift_i64(struct tide_thrift_reader *reader, uint8_t type);
int32_t tide_thrift_i32(struct tide_thrift_reader *reader, uint8_t type);
tide_str tide_thrift_binary(struct tide_thrift_reader *reader, uint8_t type);
bool tide_thrift_is_struct(struct tide_thrift_reader *reader, uint8_t type);

/**
 * A list's head: returns the count and the elements' type. Fails when its elements are not of type
 * `wanted`. The count is at most the bytes that are left, as each element takes one or more.
 */
size_t tide_thrift_list(struct tide_thrift_reader *reader, uint8_t type,
                        enum tide_thrift_type wanted);

/** Passes over the content of a field of any type, at most TIDE_THRIFT_DEPTH_MAX deep. */
void tide_thrift_skip(struct tide_thrift_reader *reader, uint8_t type);
