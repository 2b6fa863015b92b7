#include "source/sqlite/sqlite_key.h"

#include "base/status.h"
#include "source/sqlite/sqlite_value.h"

#define TABLE_LEN 8

static void append_number(struct tide_buf *buf, int type, const void *number)
{
    char *to = tide_buf_reserve(buf, 9);
    to[0] = (char)type;
    memcpy(to + 1, number, 8);
    buf->len += 9;
}

static void append_bytes(struct tide_buf *buf, int type, const void *bytes, int len)
{
    uint32_t size = (uint32_t)len;
    tide_buf_append_char(buf, (char)type);
    tide_buf_append(buf, &size, sizeof(size));
    tide_buf_append(buf, len == 0 ? "" : bytes, size);
}

/* Returns whether the column is NULL. */
static bool append_column(struct tide_buf *buf, sqlite3_stmt *stmt, int column)
{
    int type = sqlite3_column_type(stmt, column);
    switch (type) {
    case SQLITE_INTEGER: {
        int64_t number = sqlite3_column_int64(stmt, column);
        append_number(buf, type, &number);
        return false;
    }
    case SQLITE_FLOAT: {
        double number = sqlite3_column_double(stmt, column) + 0.0; /* -0.0 becomes 0.0 */
        append_number(buf, type, &number);
        return false;
    }
    case SQLITE_TEXT: {
        const void *text = sqlite3_column_text(stmt, column);
        append_bytes(buf, type, text, sqlite3_column_bytes(stmt, column));
        return false;
    }
    case SQLITE_BLOB: {
        const void *blob = sqlite3_column_blob(stmt, column);
        append_bytes(buf, type, blob, sqlite3_column_bytes(stmt, column));
        return false;
    }
    default:
        tide_buf_append_char(buf, (char)SQLITE_NULL);
        return true;
    }
}

void tide_sqlite_key_append(struct tide_buf *buf, const struct tide_sqlite_table *table,
                            sqlite3_stmt *stmt, const int *columns, int rowid_column)
{
    tide_buf_append(buf, &table->number, TABLE_LEN);
    bool has_null = false;
    for (size_t i = 0; i < tide_sqlite_table_log_width(table); i++) {
        bool is_null = append_column(buf, stmt, columns[i]);
        has_null = has_null || is_null;
    }
    if (table->is_nullable && has_null) {
        (void)append_column(buf, stmt, rowid_column);
    }
}

/* One column of a key, as it lies in its bytes. */
struct part {
    int type;
    tide_str bytes; /* of TEXT, BLOB */
    int64_t integer;
    double real;
};

/* The bytes were made above: a shortage is a broken invariant. */
static struct part take_part(tide_str key, size_t *at)
{
    struct part part = {.type = key.ptr[*at]};
    *at += 1;
    if (part.type == SQLITE_INTEGER || part.type == SQLITE_FLOAT) {
        TIDE_ASSERT(key.len - *at >= 8);
        memcpy(part.type == SQLITE_INTEGER ? (void *)&part.integer : (void *)&part.real,
               key.ptr + *at, 8);
        *at += 8;
    } else if (part.type != SQLITE_NULL) {
        uint32_t size = 0;
        memcpy(&size, key.ptr + *at, sizeof(size));
        *at += sizeof(size);
        TIDE_ASSERT(key.len - *at >= size);
        part.bytes = tide_str_of(key.ptr + *at, size);
        *at += size;
    }
    return part;
}

static void bind_part(sqlite3_stmt *stmt, int place, const struct part *part)
{
    int rc = SQLITE_OK;
    switch (part->type) {
    case SQLITE_INTEGER:
        rc = sqlite3_bind_int64(stmt, place, part->integer);
        break;
    case SQLITE_FLOAT:
        rc = sqlite3_bind_double(stmt, place, part->real);
        break;
    case SQLITE_TEXT:
        rc = sqlite3_bind_text64(stmt, place, part->bytes.ptr, part->bytes.len, SQLITE_STATIC,
                                 SQLITE_UTF8);
        break;
    case SQLITE_BLOB:
        rc = sqlite3_bind_blob64(stmt, place, part->bytes.ptr, part->bytes.len, SQLITE_STATIC);
        break;
    default:
        rc = sqlite3_bind_null(stmt, place);
        break;
    }
    TIDE_ASSERT(rc == SQLITE_OK);
}

/* Where the rowid behind a key with NULL lies; 0: there is none. */
static size_t find_rowid(const struct tide_sqlite_table *table, tide_str key)
{
    if (!tide_sqlite_table_has_hidden_rowid(table)) {
        return 0;
    }
    size_t at = TABLE_LEN;
    if (table->identity == TIDE_SQLITE_ROWID) {
        return at;
    }
    for (size_t i = 0; i < table->key_count; i++) {
        (void)take_part(key, &at);
    }
    return at < key.len ? at : 0;
}

bool tide_sqlite_key_is_by_rowid(const struct tide_sqlite_table *table, tide_str key)
{
    return find_rowid(table, key) != 0;
}

void tide_sqlite_key_bind(const struct tide_sqlite_table *table, tide_str key, sqlite3_stmt *stmt)
{
    size_t at = find_rowid(table, key);
    size_t count = at != 0 ? 1 : table->key_count;
    at = at != 0 ? at : TABLE_LEN;
    for (size_t i = 0; i < count; i++) {
        struct part part = take_part(key, &at);
        bind_part(stmt, (int)i + 1, &part);
    }
}

static struct tide_value part_value(const struct part *part, struct tide_arena *arena)
{
    switch (part->type) {
    case SQLITE_INTEGER:
        return tide_sqlite_integer_value(part->integer, arena);
    case SQLITE_FLOAT:
        return tide_sqlite_real_value(part->real, arena);
    case SQLITE_TEXT:
        return tide_sqlite_text_value(part->bytes, arena);
    case SQLITE_BLOB:
        return tide_sqlite_blob_value(part->bytes, arena);
    default:
        return (struct tide_value){0};
    }
}

struct tide_value *tide_sqlite_key_values(const struct tide_sqlite_table *table, tide_str key,
                                          struct tide_arena *arena)
{
    size_t count = table->relation->key_count;
    struct tide_value *values = tide_arena_alloc(arena, count, sizeof(*values));
    size_t at = TABLE_LEN;
    for (size_t i = 0; i < count; i++) {
        if (at == key.len) {
            values[i] = (struct tide_value){.kind = TIDE_VALUE_ABSENT}; /* a rowid not needed */
            continue;
        }
        struct part part = take_part(key, &at);
        values[i] = part_value(&part, arena);
    }
    TIDE_ASSERT(at == key.len);
    return values;
}
