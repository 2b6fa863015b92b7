/* Thrift's field numbers of the footer. Private to metadata*.c. */
#pragma once

enum file_field {
    FILE_VERSION = 1,
    FILE_SCHEMA = 2,
    FILE_ROWS = 3,
    FILE_GROUPS = 4,
    FILE_PAIRS = 5,
    FILE_CREATED_BY = 6,
    FILE_ORDERS = 7,
    FILE_ENCRYPTION = 8,
};

enum pair_field {
    PAIR_KEY = 1,
    PAIR_VALUE = 2,
};

enum group_field {
    GROUP_CHUNKS = 1,
    GROUP_PLAIN_SIZE = 2,
    GROUP_ROWS = 3,
    GROUP_AT = 5,
    GROUP_PACKED_SIZE = 6,
};

enum column_chunk_field {
    COLUMN_CHUNK_FILE = 1,
    COLUMN_CHUNK_AT = 2,
    COLUMN_CHUNK_METADATA = 3,
    COLUMN_CHUNK_CRYPTO = 8,
    COLUMN_CHUNK_ENCRYPTED = 9,
};

enum chunk_field {
    CHUNK_TYPE = 1,
    CHUNK_ENCODINGS = 2,
    CHUNK_PATH = 3,
    CHUNK_CODEC = 4,
    CHUNK_VALUES = 5,
    CHUNK_PLAIN_SIZE = 6,
    CHUNK_PACKED_SIZE = 7,
    CHUNK_DATA_AT = 9,
    CHUNK_DICTIONARY_AT = 11,
    CHUNK_STATISTICS = 12,
};

/* 1 and 2 are the maximum and minimum of old, whose order nobody defined. */
enum statistics_field {
    STATISTICS_NULL_COUNT = 3,
    STATISTICS_MAX_VALUE = 5,
    STATISTICS_MIN_VALUE = 6,
    STATISTICS_IS_MAX_EXACT = 7,
    STATISTICS_IS_MIN_EXACT = 8,
};
