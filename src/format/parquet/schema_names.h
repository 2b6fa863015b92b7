/* Thrift's field numbers and enums of a schema's elements. Private to schema_elements*.c. */
#pragma once

enum element_field {
    ELEMENT_TYPE = 1,
    ELEMENT_TYPE_LENGTH = 2,
    ELEMENT_REPETITION = 3,
    ELEMENT_NAME = 4,
    ELEMENT_CHILDREN = 5,
    ELEMENT_CONVERTED = 6,
    ELEMENT_SCALE = 7,
    ELEMENT_PRECISION = 8,
    ELEMENT_LOGICAL = 10,
};

enum repetition {
    REQUIRED = 0,
    OPTIONAL = 1,
    REPEATED = 2,
};

enum logical {
    LOGICAL_NONE = 0,
    LOGICAL_STRING = 1,
    LOGICAL_MAP = 2,
    LOGICAL_LIST = 3,
    LOGICAL_ENUM = 4,
    LOGICAL_DECIMAL = 5,
    LOGICAL_DATE = 6,
    LOGICAL_TIME = 7,
    LOGICAL_TIMESTAMP = 8,
    LOGICAL_INTEGER = 10,
    LOGICAL_JSON = 12,
    LOGICAL_UUID = 14,
};

#define NO_CONVERTED (-1)

enum converted {
    CONVERTED_UTF8 = 0,
    CONVERTED_LIST = 3,
    CONVERTED_DECIMAL = 5,
    CONVERTED_DATE = 6,
    CONVERTED_TIME_MILLIS = 7,
    CONVERTED_TIME_MICROS = 8,
    CONVERTED_TIMESTAMP_MILLIS = 9,
    CONVERTED_TIMESTAMP_MICROS = 10,
    CONVERTED_UINT_8 = 11,
    CONVERTED_INT_8 = 15,
    CONVERTED_JSON = 19,
};
