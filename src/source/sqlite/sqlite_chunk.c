#include "source/sqlite/sqlite_chunk.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "source/sqlite/sqlite_db.h"
#include "source/sqlite/sqlite_files.h"
#include "source/sqlite/sqlite_schema.h"
#include "source/sqlite/sqlite_select.h"
#include "source/sqlite/sqlite_value.h"

#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#define BUSY_US 5000000 /* waiting for a writer's lock */
/* With a rollback journal writers wait for our read: a chunk ends early after this. */
#define READ_US        20000
#define ROWS_PER_CLOCK 64
#define CHANGED_US     20000 /* until a changed table is looked at again */
#define REST_US        2000  /* between two such chunks the lock is free, so that writers get it */

struct tide_chunk_reader {
    sqlite3 *db; /* that of `files`, which closes it */
    struct tide_sqlite_files files;
    char *path;
    tide_str connection; /* owned */
    atomic_bool is_cancelled;
    bool is_wal; /* as of the last read */
    int64_t busy_until_us;
    int64_t rest_until_us; /* 0: none is due */
    sqlite3_stmt *schema_version;
    sqlite3_stmt *journal_mode;
    sqlite3_stmt *log_end;
    /* the table that is being read; statements are prepared when first needed */
    const struct tide_relation *relation;
    struct tide_sqlite_table *table;
    int64_t table_version; /* schema_version that `table` was read at */
    sqlite3_stmt *selects[TIDE_SQLITE_SELECTS];
};

/* One reader_read. */
struct reading {
    struct tide_chunk_reader *reader;
    const struct tide_sqlite_table *table;
    const struct tide_chunk_request *request;
    struct tide_chunk *chunk;
    size_t bytes;
    int64_t until_us;
    bool is_ended; /* early: the range goes on */
    /* among rows with a NULL in their key: the last row without one that was met, if any */
    bool has_marker;
    int64_t marker;
};

static int on_busy(void *context, int count)
{
    struct tide_chunk_reader *reader = context;
    if (count == 0) {
        reader->busy_until_us = tide_clock_deadline_us(BUSY_US);
    }
    if (atomic_load(&reader->is_cancelled) || tide_clock_monotonic_us() >= reader->busy_until_us) {
        return 0;
    }
    (void)usleep(1000);
    return 1;
}

static tide_status prepare_common(struct tide_chunk_reader *reader, struct tide_error *err)
{
    sqlite3 *db = reader->db;
    TIDE_TRY(tide_sqlite_prepare(db, TIDE_STR("PRAGMA main.schema_version"),
                                 &reader->schema_version, err));
    return tide_sqlite_prepare(db, TIDE_STR("PRAGMA main.journal_mode"), &reader->journal_mode,
                               err);
}

tide_status tide_sqlite_chunk_reader_open(const char *path, tide_str connection,
                                          struct tide_chunk_reader **ret_reader,
                                          struct tide_error *err)
{
    struct tide_chunk_reader *reader = tide_alloc(1, sizeof(*reader));
    reader->path = tide_strndup(path, strlen(path));
    reader->connection = (tide_str){tide_strndup(connection.ptr, connection.len), connection.len};
    tide_status status =
        tide_sqlite_db_open(path, TIDE_SQLITE_READ_ONLY, BUSY_US / 1000, &reader->db, err);
    if (status == TIDE_OK) {
        tide_sqlite_files_open(&reader->files, reader->db);
        status = prepare_common(reader, err);
    }
    if (status != TIDE_OK) {
        tide_sqlite_chunk_reader_close(reader);
        return status;
    }
    (void)sqlite3_busy_handler(reader->db, on_busy, reader);
    *ret_reader = reader;
    return TIDE_OK;
}

static void forget_table(struct tide_chunk_reader *reader)
{
    for (size_t i = 0; i < TIDE_SQLITE_SELECTS; i++) {
        tide_sqlite_stmt_done(&reader->selects[i]);
    }
    tide_sqlite_stmt_done(&reader->log_end);
    tide_sqlite_table_free(reader->table);
    tide_relation_unref(reader->relation);
    reader->table = NULL;
    reader->relation = NULL;
}

void tide_sqlite_chunk_reader_close(struct tide_chunk_reader *reader)
{
    if (reader == NULL) {
        return;
    }
    forget_table(reader);
    tide_sqlite_stmt_done(&reader->schema_version);
    tide_sqlite_stmt_done(&reader->journal_mode);
    tide_sqlite_files_close(&reader->files);
    free(reader->path);
    free((void *)(uintptr_t)reader->connection.ptr);
    free(reader);
}

void tide_sqlite_chunk_cancel(struct tide_chunk_reader *reader)
{
    atomic_store(&reader->is_cancelled, true);
    sqlite3_interrupt(reader->db);
}

/* The table of the relation, read anew when the schema has moved. */
static tide_status load_table(struct tide_chunk_reader *reader,
                              const struct tide_relation *relation, struct tide_error *err)
{
    bool has_row = false;
    TIDE_TRY(tide_sqlite_step(reader->schema_version, &has_row, err));
    int64_t version = has_row ? sqlite3_column_int64(reader->schema_version, 0) : 0;
    (void)sqlite3_reset(reader->schema_version);
    if (reader->table != NULL && reader->relation == relation && reader->table_version == version) {
        return TIDE_OK;
    }
    forget_table(reader);
    struct tide_sqlite_table *table = NULL;
    TIDE_TRY(tide_sqlite_table_read(reader->db, reader->connection, relation->name, &table, err));
    if (table == NULL || table->relation == NULL ||
        !tide_relation_same_shape(table->relation, relation)) {
        const char *what = table == NULL ? "is gone" : "has another shape";
        tide_sqlite_table_free(table);
        reader->rest_until_us = tide_clock_deadline_us(CHANGED_US);
        return tide_fail_retriable(err, TIDE_TIMEOUT,
                                   "%s: table %.*s %s: what becomes of its copy is told as soon as "
                                   "the change log has been read",
                                   reader->path, TIDE_STR_ARG(relation->name), what);
    }
    reader->table = table;
    reader->relation = tide_relation_ref(relation);
    reader->table_version = version;
    return tide_sqlite_prepare(reader->db,
                               TIDE_STR("SELECT max(id) FROM main.\"" TIDE_SQLITE_LOG "\""),
                               &reader->log_end, err);
}

/* How long the transaction may stay open. */
static tide_status read_limit(struct tide_chunk_reader *reader, int64_t *ret_until_us,
                              struct tide_error *err)
{
    bool has_row = false;
    TIDE_TRY(tide_sqlite_step(reader->journal_mode, &has_row, err));
    tide_str mode = has_row ? tide_sqlite_column_str(reader->journal_mode, 0) : TIDE_STR("");
    reader->is_wal = tide_str_equal(mode, TIDE_STR("wal"));
    (void)sqlite3_reset(reader->journal_mode);
    *ret_until_us = reader->is_wal ? TIDE_NO_DEADLINE : tide_clock_deadline_us(READ_US);
    return TIDE_OK;
}

static tide_status read_log_end(struct tide_chunk_reader *reader, struct tide_chunk *chunk,
                                struct tide_error *err)
{
    bool has_row = false;
    TIDE_TRY(tide_sqlite_step(reader->log_end, &has_row, err));
    uint64_t end = has_row ? (uint64_t)sqlite3_column_int64(reader->log_end, 0) : 0;
    (void)sqlite3_reset(reader->log_end);
    chunk->visibility = (struct tide_visibility){.xmin = end + 1, .xmax = end + 1};
    chunk->position = (struct tide_position){.lo = end};
    chunk->is_trusted = true;
    return TIDE_OK;
}

static tide_status select_of(struct reading *reading, enum tide_sqlite_select select,
                             sqlite3_stmt **ret_stmt, struct tide_error *err)
{
    sqlite3_stmt **stmt = &reading->reader->selects[select];
    if (*stmt == NULL) {
        TIDE_TRY(
            tide_sqlite_select_prepare(reading->reader->db, reading->table, select, stmt, err));
    }
    *ret_stmt = *stmt;
    return TIDE_OK;
}

static size_t add_row(struct reading *reading, sqlite3_stmt *stmt)
{
    struct tide_chunk *chunk = reading->chunk;
    size_t columns = reading->table->relation->column_count;
    struct tide_value *row = tide_chunk_add_row(chunk, columns);
    return columns * sizeof(*row) +
           tide_sqlite_row_values(stmt, reading->table, &chunk->arena, row);
}

static bool is_late(const struct reading *reading)
{
    return reading->until_us != TIDE_NO_DEADLINE && tide_clock_monotonic_us() >= reading->until_us;
}

static bool must_end(const struct reading *reading)
{
    return reading->bytes > reading->request->bytes_max ||
           (reading->chunk->row_count % ROWS_PER_CLOCK == 0 && is_late(reading));
}

/* A row that only shows how far the search for rows with a NULL in their key is. */
static bool is_marker(const struct reading *reading, sqlite3_stmt *stmt)
{
    const struct tide_sqlite_table *table = reading->table;
    if (stmt != reading->reader->selects[TIDE_SQLITE_NULLS]) {
        return false;
    }
    for (size_t i = 0; i < table->key_count; i++) {
        if (sqlite3_column_type(stmt, (int)table->key_columns[i]) == SQLITE_NULL) {
            return false;
        }
    }
    return true;
}

static void take_row(struct reading *reading, sqlite3_stmt *stmt)
{
    reading->has_marker = is_marker(reading, stmt);
    if (reading->has_marker) {
        reading->marker =
            sqlite3_column_int64(stmt, (int)reading->table->relation->column_count - 1);
        reading->is_ended = is_late(reading);
    } else {
        reading->bytes += add_row(reading, stmt);
        reading->is_ended = must_end(reading);
    }
}

/* The rows of one bound statement, of which the last parameter is the limit. `ret_is_done`: it had
 * fewer than asked for. */
static tide_status read_rows(struct reading *reading, sqlite3_stmt *stmt, bool *ret_is_done,
                             struct tide_error *err)
{
    size_t rows_max = reading->request->rows_max;
    size_t limit = rows_max - reading->chunk->row_count;
    bool has_markers = stmt == reading->reader->selects[TIDE_SQLITE_NULLS];
    (void)sqlite3_bind_int64(stmt, sqlite3_bind_parameter_count(stmt),
                             has_markers || limit > INT64_MAX ? -1 : (int64_t)limit);
    tide_status status = TIDE_OK;
    bool has_row = true;
    while (reading->chunk->row_count < rows_max && !reading->is_ended) {
        status = tide_sqlite_step(stmt, &has_row, err);
        if (status != TIDE_OK || !has_row) {
            break;
        }
        take_row(reading, stmt);
    }
    (void)sqlite3_reset(stmt);
    *ret_is_done = status == TIDE_OK && !has_row;
    return status;
}

static tide_status bad_key(const struct reading *reading, struct tide_error *err)
{
    return tide_fail(err, TIDE_CORRUPT,
                     "the key to read table %.*s after is not of its kind; " TIDE_SQLITE_ANEW,
                     TIDE_STR_ARG(reading->table->name));
}

/* Rows in the order of rowids, from behind `after` on; NULL: from the first. */
static tide_status read_by_rowid(struct reading *reading, enum tide_sqlite_select select,
                                 const struct tide_value *after, bool *ret_is_done,
                                 struct tide_error *err)
{
    int64_t first = INT64_MIN;
    if (after != NULL) {
        if (after->kind != TIDE_VALUE_INTEGER || !tide_str_to_i64(tide_value_str(*after), &first)) {
            return bad_key(reading, err);
        }
        if (first == INT64_MAX) {
            *ret_is_done = true;
            return TIDE_OK;
        }
        first++;
    }
    sqlite3_stmt *stmt = NULL;
    TIDE_TRY(select_of(reading, select, &stmt, err));
    (void)sqlite3_bind_int64(stmt, 1, first);
    return read_rows(reading, stmt, ret_is_done, err);
}

static tide_status read_by_key(struct reading *reading, const struct tide_value *after,
                               bool *ret_is_done, struct tide_error *err)
{
    sqlite3_stmt *stmt = NULL;
    if (after == NULL) {
        TIDE_TRY(select_of(reading, TIDE_SQLITE_FROM_START, &stmt, err));
        return read_rows(reading, stmt, ret_is_done, err);
    }
    TIDE_TRY(select_of(reading, TIDE_SQLITE_AFTER_KEY, &stmt, err));
    for (size_t i = 0; i < reading->table->key_count; i++) {
        if (!tide_sqlite_bind_value(stmt, (int)i + 1, after[i])) {
            return bad_key(reading, err);
        }
    }
    return read_rows(reading, stmt, ret_is_done, err);
}

/* The phase of rows with a NULL in their key, when it is not over, then the others. The first phase
 * may end early without any row: last_key is then one that no row has, behind what was looked at.
 */
static tide_status read_nullable(struct reading *reading, bool *ret_is_done, struct tide_error *err)
{
    const struct tide_sqlite_table *table = reading->table;
    const struct tide_value *after = reading->request->after_key;
    if (after != NULL && !tide_sqlite_key_has_null(table, after)) {
        return read_by_key(reading, after, ret_is_done, err);
    }
    const struct tide_value *rowid = after == NULL ? NULL : &after[table->key_count];
    bool is_done = false;
    TIDE_TRY(read_by_rowid(reading, TIDE_SQLITE_NULLS, rowid, &is_done, err));
    if (!is_done) {
        *ret_is_done = false;
        return TIDE_OK;
    }
    return read_by_key(reading, NULL, ret_is_done, err);
}

static tide_status read_range(struct reading *reading, struct tide_error *err)
{
    struct tide_chunk *chunk = reading->chunk;
    const struct tide_relation *relation = reading->table->relation;
    const struct tide_value *after = reading->request->after_key;
    if (reading->table->identity == TIDE_SQLITE_ROWID) {
        TIDE_TRY(read_by_rowid(reading, TIDE_SQLITE_FROM_ROWID, after, &chunk->is_last, err));
    } else if (reading->table->is_nullable) {
        TIDE_TRY(read_nullable(reading, &chunk->is_last, err));
    } else {
        TIDE_TRY(read_by_key(reading, after, &chunk->is_last, err));
    }
    struct tide_value *key = tide_arena_alloc(&chunk->arena, relation->key_count, sizeof(*key));
    if (reading->has_marker && reading->is_ended) {
        memset(key, 0, relation->key_count * sizeof(*key)); /* NULL, the rowid last */
        key[relation->key_count - 1] = tide_sqlite_integer_value(reading->marker, &chunk->arena);
        chunk->last_key = key;
    } else if (chunk->row_count > 0) {
        tide_relation_key_of(relation, chunk->rows[chunk->row_count - 1], key);
        chunk->last_key = key;
    }
    return TIDE_OK;
}

/* Whether the row has that very key, not one that SQL only holds equal. */
static bool has_key(struct reading *reading, const struct tide_value *row,
                    const struct tide_value *key)
{
    const struct tide_relation *relation = reading->table->relation;
    for (size_t i = 0; i < relation->key_count; i++) {
        if (!tide_value_equal(row[relation->key_columns[i]], key[i])) {
            return false;
        }
    }
    return true;
}

static tide_status read_again(struct reading *reading, const struct tide_value *key,
                              struct tide_error *err)
{
    const struct tide_sqlite_table *table = reading->table;
    bool by_rowid = table->identity == TIDE_SQLITE_ROWID ||
                    (table->is_nullable && tide_sqlite_key_has_null(table, key));
    size_t first = by_rowid ? table->relation->key_count - 1 : 0;
    size_t count = by_rowid ? 1 : table->key_count;
    sqlite3_stmt *stmt = NULL;
    TIDE_TRY(select_of(reading, by_rowid ? TIDE_SQLITE_BY_ROWID : TIDE_SQLITE_BY_KEY, &stmt, err));
    for (size_t i = 0; i < count; i++) {
        if (!tide_sqlite_bind_value(stmt, (int)i + 1, key[first + i])) {
            return bad_key(reading, err);
        }
    }
    bool has_row = false;
    tide_status status = tide_sqlite_step(stmt, &has_row, err);
    if (status == TIDE_OK && has_row) {
        struct tide_chunk *chunk = reading->chunk;
        (void)add_row(reading, stmt);
        if (!has_key(reading, chunk->rows[chunk->row_count - 1], key)) {
            chunk->row_count--;
        }
    }
    (void)sqlite3_reset(stmt);
    return status;
}

static tide_status read_chunk(struct tide_chunk_reader *reader,
                              const struct tide_chunk_request *request, struct tide_chunk *chunk,
                              struct tide_error *err)
{
    struct reading reading = {.reader = reader, .request = request, .chunk = chunk};
    TIDE_TRY(load_table(reader, request->relation, err));
    reading.table = reader->table;
    TIDE_TRY(read_limit(reader, &reading.until_us, err));
    TIDE_TRY(read_log_end(reader, chunk, err));
    if (request->range_is_done) {
        chunk->is_last = true;
    } else {
        TIDE_TRY(read_range(&reading, err));
    }
    for (size_t i = 0; i < request->again_count; i++) {
        TIDE_TRY(read_again(&reading, request->again[i], err));
    }
    return TIDE_OK;
}

/* An interrupt that comes late may hit this too: then once more. */
static void end_transaction(struct tide_chunk_reader *reader)
{
    for (int i = 0; i < 3 && sqlite3_get_autocommit(reader->db) == 0; i++) {
        (void)sqlite3_exec(reader->db, "ROLLBACK", NULL, NULL, NULL);
    }
    TIDE_ASSERT(sqlite3_get_autocommit(reader->db) != 0);
}

static void rest(struct tide_chunk_reader *reader)
{
    int64_t left_us = reader->rest_until_us - tide_clock_monotonic_us();
    if (left_us > 0) {
        (void)usleep((useconds_t)left_us);
    }
}

/* A mixture of new files and deleted ones may fail in any way: that they are others comes first. */
static tide_status read_ours(struct tide_chunk_reader *reader,
                             const struct tide_chunk_request *request, struct tide_chunk *chunk,
                             struct tide_error *err)
{
    struct tide_error read_err = {0};
    tide_status status = tide_sqlite_exec(reader->db, "BEGIN", &read_err);
    if (status == TIDE_OK) {
        status = read_chunk(reader, request, chunk, &read_err);
        end_transaction(reader);
        int64_t rest_until_us = reader->is_wal ? 0 : tide_clock_deadline_us(REST_US);
        reader->rest_until_us = status == TIDE_OK ? rest_until_us : reader->rest_until_us;
    }
    TIDE_TRY(tide_sqlite_files_check(&reader->files, err));
    *err = read_err;
    return status;
}

tide_status tide_sqlite_chunk_read(struct tide_chunk_reader *reader,
                                   const struct tide_chunk_request *request,
                                   struct tide_chunk *ret_chunk, struct tide_error *err)
{
    TIDE_ASSERT(request->rows_max > 0 && ret_chunk->row_count == 0);
    rest(reader);
    tide_status status = read_ours(reader, request, ret_chunk, err);
    /* A cancel that came between two statements stopped none of them. */
    if (atomic_exchange(&reader->is_cancelled, false)) {
        status = tide_fail(err, TIDE_CANCELLED, "%s: reading a chunk was cancelled", reader->path);
    }
    if (status != TIDE_OK) {
        tide_chunk_done(ret_chunk);
    }
    return status;
}
