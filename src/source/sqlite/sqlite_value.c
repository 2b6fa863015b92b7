#include "source/sqlite/sqlite_value.h"

#include "base/status.h"
#include "format/real_text.h"

#include <errno.h>
#include <stdlib.h>

#define INTEGER_LEN_MAX 20 /* "-9223372036854775808" */

/* Writes the digits from the end of `room` and returns where they begin. */
static char *write_integer(int64_t number, char room[INTEGER_LEN_MAX])
{
    uint64_t rest = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
    char *pos = room + INTEGER_LEN_MAX;
    do {
        *--pos = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest != 0);
    if (number < 0) {
        *--pos = '-';
    }
    return pos;
}

struct tide_value tide_sqlite_integer_value(int64_t number, struct tide_arena *arena)
{
    char room[INTEGER_LEN_MAX];
    const char *digits = write_integer(number, room);
    size_t len = (size_t)(room + INTEGER_LEN_MAX - digits);
    char *copy = tide_arena_bytes(arena, len);
    memcpy(copy, digits, len);
    return (struct tide_value){copy, (uint32_t)len, TIDE_VALUE_INTEGER};
}

struct tide_value tide_sqlite_real_value(double number, struct tide_arena *arena)
{
    char *text = tide_arena_bytes(arena, TIDE_REAL_TEXT_SIZE);
    size_t len = tide_real_to_text(number, text);
    tide_arena_give_back(arena, TIDE_REAL_TEXT_SIZE - len);
    return (struct tide_value){text, (uint32_t)len, TIDE_VALUE_REAL};
}

struct tide_value tide_sqlite_text_value(tide_str text, struct tide_arena *arena)
{
    tide_str copy = tide_arena_str(arena, text);
    enum tide_value_kind kind = tide_str_is_utf8(copy) ? TIDE_VALUE_TEXT : TIDE_VALUE_RAW_TEXT;
    return (struct tide_value){copy.ptr, (uint32_t)copy.len, (uint8_t)kind};
}

struct tide_value tide_sqlite_blob_value(tide_str bytes, struct tide_arena *arena)
{
    tide_str copy = tide_arena_str(arena, bytes);
    return (struct tide_value){copy.ptr, (uint32_t)copy.len, TIDE_VALUE_BYTES};
}

struct tide_value tide_sqlite_column_value(sqlite3_stmt *stmt, int column, struct tide_arena *arena)
{
    switch (sqlite3_column_type(stmt, column)) {
    case SQLITE_INTEGER:
        return tide_sqlite_integer_value(sqlite3_column_int64(stmt, column), arena);
    case SQLITE_FLOAT:
        return tide_sqlite_real_value(sqlite3_column_double(stmt, column), arena);
    case SQLITE_TEXT: {
        const void *text = sqlite3_column_text(stmt, column); /* before its length */
        TIDE_ASSERT(text != NULL);                            /* else out of memory */
        tide_str slice = tide_str_of(text, (size_t)sqlite3_column_bytes(stmt, column));
        return tide_sqlite_text_value(slice, arena);
    }
    case SQLITE_BLOB: {
        const void *blob = sqlite3_column_blob(stmt, column);
        tide_str slice = tide_str_of(blob, (size_t)sqlite3_column_bytes(stmt, column));
        TIDE_ASSERT(blob != NULL || slice.len == 0);
        return tide_sqlite_blob_value(slice, arena);
    }
    default:
        return (struct tide_value){0};
    }
}

static bool bind_integer(sqlite3_stmt *stmt, int place, tide_str digits)
{
    int64_t number = 0;
    return tide_str_to_i64(digits, &number) && sqlite3_bind_int64(stmt, place, number) == SQLITE_OK;
}

static bool bind_real(sqlite3_stmt *stmt, int place, tide_str text)
{
    char room[64];
    if (text.len == 0 || text.len >= sizeof(room)) {
        return false;
    }
    memcpy(room, text.ptr, text.len);
    room[text.len] = '\0';
    char *end = NULL;
    double number = strtod(room, &end);
    return end == room + text.len && sqlite3_bind_double(stmt, place, number) == SQLITE_OK;
}

bool tide_sqlite_bind_value(sqlite3_stmt *stmt, int place, struct tide_value value)
{
    const char *bytes = value.len == 0 ? "" : value.ptr; /* a NULL pointer would bind NULL */
    switch ((enum tide_value_kind)value.kind) {
    case TIDE_VALUE_NULL:
        return sqlite3_bind_null(stmt, place) == SQLITE_OK;
    case TIDE_VALUE_INTEGER:
        return bind_integer(stmt, place, tide_value_str(value));
    case TIDE_VALUE_DECIMAL:
    case TIDE_VALUE_REAL:
        return bind_real(stmt, place, tide_value_str(value));
    case TIDE_VALUE_TEXT:
    case TIDE_VALUE_RAW_TEXT:
        return sqlite3_bind_text64(stmt, place, bytes, value.len, SQLITE_STATIC, SQLITE_UTF8) ==
               SQLITE_OK;
    case TIDE_VALUE_BYTES:
        return sqlite3_bind_blob64(stmt, place, bytes, value.len, SQLITE_STATIC) == SQLITE_OK;
    case TIDE_VALUE_UNCHANGED:
    case TIDE_VALUE_ABSENT:
    case TIDE_VALUE_BOOL:
    case TIDE_VALUE_JSON:
    default:
        return false;
    }
}

static void drop_sign_of_zero(struct tide_value *value)
{
    if (value->kind == TIDE_VALUE_REAL &&
        (tide_str_equal(tide_value_str(*value), TIDE_STR("-0.0")) ||
         tide_str_equal(tide_value_str(*value), TIDE_STR("-0")))) {
        value->ptr++;
        value->len--;
    }
}

size_t tide_sqlite_row_values(sqlite3_stmt *stmt, const struct tide_sqlite_table *table,
                              struct tide_arena *arena, struct tide_value *ret_values)
{
    const struct tide_relation *relation = table->relation;
    size_t size = 0;
    for (size_t i = 0; i < relation->column_count; i++) {
        ret_values[i] = tide_sqlite_column_value(stmt, (int)i, arena);
        size += ret_values[i].len;
    }
    bool has_null = false;
    for (size_t i = 0; i < table->key_count; i++) {
        struct tide_value *value = &ret_values[table->key_columns[i]];
        has_null = has_null || value->kind == TIDE_VALUE_NULL;
        drop_sign_of_zero(value);
    }
    if (table->is_nullable && !has_null) {
        ret_values[relation->column_count - 1] = (struct tide_value){.kind = TIDE_VALUE_ABSENT};
    }
    return size;
}

bool tide_sqlite_key_has_null(const struct tide_sqlite_table *table, const struct tide_value *key)
{
    for (size_t i = 0; i < table->key_count; i++) {
        if (key[i].kind == TIDE_VALUE_NULL) {
            return true;
        }
    }
    return false;
}
