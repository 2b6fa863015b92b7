#include "cmocka_prelude.h"

#include "sqlite_kit.h"

#include "base/alloc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECK(status, err) kit_check(status, &(err), __FILE__, __LINE__)

static void kit_check(tide_status status, const struct tide_error *err, const char *file, int line)
{
    if (status != TIDE_OK) {
        print_error("%s: %s\n", tide_status_name(status), err->message);
        _fail(file, line);
    }
}

void kit_init(struct sqlite_kit *kit, const char *mode)
{
    *kit = (struct sqlite_kit){0};
    (void)snprintf(kit->dir, sizeof(kit->dir), "/tmp/tidemark_sqlite_XXXXXX");
    assert_non_null(mkdtemp(kit->dir));
    (void)snprintf(kit->path, sizeof(kit->path), "%s/shop.db", kit->dir);
    assert_int_equal(sqlite3_open(kit->path, &kit->app), SQLITE_OK);
    char sql[64];
    (void)snprintf(sql, sizeof(sql), "PRAGMA journal_mode = %s", mode);
    kit_sql(kit, sql);
    kit_sql(kit, "PRAGMA synchronous = OFF");
    (void)sqlite3_busy_timeout(kit->app, 5000);
}

void kit_done(struct sqlite_kit *kit)
{
    tide_sqlite_source_ops.close(kit->source);
    (void)sqlite3_close(kit->app);
    tide_arena_done(&kit->arena);
    static const char *const ends[] = {"", "-wal", "-shm", "-journal"};
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        char path[128];
        (void)snprintf(path, sizeof(path), "%s%s", kit->path, ends[i]);
        (void)unlink(path);
    }
    (void)rmdir(kit->dir);
}

void kit_sql(struct sqlite_kit *kit, const char *sql)
{
    char *message = NULL;
    if (sqlite3_exec(kit->app, sql, NULL, NULL, &message) != SQLITE_OK) {
        fail_msg("%s: %s", sql, message);
    }
}

char *kit_get(struct sqlite_kit *kit, const char *sql)
{
    sqlite3_stmt *stmt = NULL;
    assert_int_equal(sqlite3_prepare_v2(kit->app, sql, -1, &stmt, NULL), SQLITE_OK);
    char *text = NULL;
    if (sqlite3_step(stmt) == SQLITE_ROW && sqlite3_column_type(stmt, 0) != SQLITE_NULL) {
        text = strdup((const char *)sqlite3_column_text(stmt, 0));
    }
    (void)sqlite3_finalize(stmt);
    return text == NULL ? strdup("NULL") : text;
}

struct tide_source *kit_open_source(struct sqlite_kit *kit, const char *pipeline)
{
    struct tide_source_options options = {
        .place = tide_str_from(kit->path),
        .connection = TIDE_STR("db"),
        .pipeline = tide_str_from(pipeline),
    };
    struct tide_source *source = NULL;
    struct tide_error err;
    CHECK(tide_sqlite_source_ops.open(&options, &source, &err), err);
    return source;
}

void kit_follow(struct sqlite_kit *kit)
{
    struct tide_error err;
    kit->source = kit_open_source(kit, "p");
    CHECK(tide_sqlite_source_ops.prepare(kit->source, NULL, (struct tide_position){0}, &kit->start,
                                         &err),
          err);
    CHECK(tide_sqlite_source_ops.stream(kit->source, kit->start, &err), err);
}

tide_status kit_resume(struct sqlite_kit *kit, const char *state, struct tide_position position,
                       struct tide_error *err)
{
    tide_sqlite_source_ops.close(kit->source);
    kit->source = kit_open_source(kit, "p");
    tide_str saved = tide_str_from(state);
    TIDE_TRY(tide_sqlite_source_ops.prepare(kit->source, &saved, position, &kit->start, err));
    return tide_sqlite_source_ops.stream(kit->source, kit->start, err);
}

char *kit_state(struct sqlite_kit *kit)
{
    struct tide_buf state = {0};
    tide_sqlite_source_ops.state(kit->source, &state);
    (void)tide_buf_cstr(&state);
    return state.ptr;
}

static void append_hex(struct tide_buf *text, char kind, const void *bytes, size_t len)
{
    tide_buf_append_char(text, kind);
    for (size_t i = 0; i < len; i++) {
        tide_buf_printf(text, "%02x", ((const unsigned char *)bytes)[i]);
    }
}

static void append_real(struct tide_buf *text, double number)
{
    uint64_t bits = 0;
    memcpy(&bits, &number, sizeof(bits));
    tide_buf_printf(text, "r%016llx", (unsigned long long)bits);
}

static void append_text(struct tide_buf *text, tide_str s)
{
    if (!tide_str_is_utf8(s)) {
        append_hex(text, 'x', s.ptr, s.len);
        return;
    }
    tide_buf_append_str(text, TIDE_STR("t'"));
    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] == '\0') {
            tide_buf_append_str(text, TIDE_STR("\\0"));
        } else {
            tide_buf_append_char(text, s.ptr[i]);
        }
    }
    tide_buf_append_char(text, '\'');
}

static void append_value(struct tide_buf *text, struct tide_value value)
{
    char number[64];
    switch ((enum tide_value_kind)value.kind) {
    case TIDE_VALUE_NULL:
        tide_buf_append_char(text, 'n');
        return;
    case TIDE_VALUE_ABSENT:
        tide_buf_append_char(text, '-');
        return;
    case TIDE_VALUE_INTEGER:
        tide_buf_append_char(text, 'i');
        tide_buf_append_str(text, tide_value_str(value));
        return;
    case TIDE_VALUE_REAL:
        (void)snprintf(number, sizeof(number), "%.*s", (int)value.len, value.ptr);
        append_real(text, strtod(number, NULL));
        return;
    case TIDE_VALUE_TEXT:
        assert_true(tide_str_is_utf8(tide_value_str(value)));
        append_text(text, tide_value_str(value));
        return;
    case TIDE_VALUE_RAW_TEXT:
        append_hex(text, 'x', value.ptr, value.len);
        return;
    case TIDE_VALUE_BYTES:
        append_hex(text, 'b', value.ptr, value.len);
        return;
    case TIDE_VALUE_UNCHANGED:
    case TIDE_VALUE_BOOL:
    case TIDE_VALUE_DECIMAL:
    case TIDE_VALUE_JSON:
    default:
        fail_msg("value of kind %d", value.kind);
    }
}

void kit_append_column(struct tide_buf *text, sqlite3_stmt *stmt, int column)
{
    switch (sqlite3_column_type(stmt, column)) {
    case SQLITE_INTEGER:
        tide_buf_printf(text, "i%lld", (long long)sqlite3_column_int64(stmt, column));
        break;
    case SQLITE_FLOAT:
        append_real(text, sqlite3_column_double(stmt, column));
        break;
    case SQLITE_TEXT: {
        const void *bytes = sqlite3_column_text(stmt, column);
        append_text(text, tide_str_of(bytes, (size_t)sqlite3_column_bytes(stmt, column)));
        break;
    }
    case SQLITE_BLOB: {
        const void *bytes = sqlite3_column_blob(stmt, column);
        append_hex(text, 'b', bytes, (size_t)sqlite3_column_bytes(stmt, column));
        break;
    }
    default:
        tide_buf_append_char(text, 'n');
        break;
    }
}

void kit_append_values(struct tide_buf *text, const struct tide_value *values, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (i > 0) {
            tide_buf_append_char(text, '|');
        }
        append_value(text, values[i]);
    }
}

static void append_change(struct tide_buf *text, const struct tide_change *change, bool with_ids)
{
    const struct tide_relation *relation = change->relation;
    assert_true(change->place.known);
    assert_int_equal(change->place.index, 0);
    assert_int_equal(change->tx_id, change->place.position.lo);
    tide_buf_append_str(text, tide_str_from(tide_op_name(change->op)));
    tide_buf_append_char(text, ' ');
    tide_buf_append_str(text, relation->name);
    if (with_ids) {
        tide_buf_printf(text, "@%llu", (unsigned long long)change->place.position.lo);
    }
    tide_buf_append_str(text, TIDE_STR(": "));
    kit_append_values(text, change->key, relation->key_count);
    if (change->op != TIDE_OP_DELETE) {
        tide_buf_append_str(text, TIDE_STR(" = "));
        kit_append_values(text, change->values, relation->column_count);
    }
    tide_buf_append_char(text, '\n');
}

static void append_event(struct tide_buf *text, const struct tide_event *event, bool with_ids)
{
    if (event->kind == TIDE_EVENT_CHANGE) {
        append_change(text, &event->change, with_ids);
        return;
    }
    tide_buf_printf(text, "%s", event->kind == TIDE_EVENT_COMMIT ? "commit" : "reached");
    if (with_ids) {
        tide_buf_printf(text, " %llu", (unsigned long long)event->position.lo);
    }
    tide_buf_append_char(text, '\n');
}

char *kit_drain(struct sqlite_kit *kit, struct tide_source *source, bool with_ids)
{
    struct tide_buf text = {0};
    for (;;) {
        struct tide_event event;
        struct tide_error err;
        tide_arena_reset(&kit->arena);
        tide_status status =
            tide_sqlite_source_ops.next(source, &kit->arena, NULL, 0, &event, &err);
        if (status == TIDE_TIMEOUT) {
            break;
        }
        CHECK(status, err);
        append_event(&text, &event, with_ids);
    }
    (void)tide_buf_cstr(&text);
    return text.ptr;
}

void kit_expect(struct sqlite_kit *kit, const char *want)
{
    char *got = kit_drain(kit, kit->source, false);
    assert_string_equal(got, want);
    free(got);
}

const struct tide_relation *kit_relation(struct tide_source *source, const char *name)
{
    const struct tide_relation *const *tables = NULL;
    size_t count = 0;
    struct tide_error err;
    CHECK(tide_sqlite_source_ops.tables(source, &tables, &count, &err), err);
    for (size_t i = 0; i < count; i++) {
        if (tide_str_equal(tables[i]->name, tide_str_from(name))) {
            return tables[i];
        }
    }
    fail_msg("no table %s", name);
    return NULL;
}

static void read_chunk(struct kit_chunks *chunks, struct tide_chunk_reader *reader)
{
    struct tide_error err;
    struct tide_chunk *chunk = &chunks->chunk;
    struct tide_chunk_request request = {.relation = chunks->relation,
                                         .after_key = chunks->after,
                                         .rows_max = chunks->rows_max,
                                         .bytes_max = 1 << 20};
    CHECK(tide_sqlite_source_ops.reader_read(reader, &request, chunk, &err), err);
    assert_true(chunk->is_trusted);
    assert_int_equal(chunk->visibility.xmin, chunk->position.lo + 1);
    assert_int_equal(chunk->visibility.xmax, chunk->position.lo + 1);
    assert_true(chunk->is_last || chunk->last_key != NULL);
    if (chunk->last_key != NULL) {
        chunks->after =
            tide_values_copy(&chunks->arena, chunk->last_key, chunks->relation->key_count);
    }
    chunks->next_row = 0;
    chunks->read_count++;
}

const struct tide_value *kit_next_row(struct kit_chunks *chunks, struct tide_chunk_reader *reader)
{
    while (chunks->next_row == chunks->chunk.row_count) {
        bool is_last = chunks->chunk.is_last;
        tide_chunk_done(&chunks->chunk);
        if (is_last) {
            tide_arena_done(&chunks->arena);
            return NULL;
        }
        read_chunk(chunks, reader);
    }
    return chunks->chunk.rows[chunks->next_row++];
}

char *kit_read_chunks(struct sqlite_kit *kit, const char *table, size_t rows_max)
{
    struct tide_buf text = {0};
    struct tide_error err;
    struct tide_chunk_reader *reader = NULL;
    struct kit_chunks chunks = {.relation = kit_relation(kit->source, table), .rows_max = rows_max};
    CHECK(tide_sqlite_source_ops.reader_open(kit->source, &reader, &err), err);
    CHECK(tide_sqlite_source_ops.reader_remember(reader, chunks.relation, &err), err);
    size_t read_count = 1;
    for (const struct tide_value *row; (row = kit_next_row(&chunks, reader)) != NULL;) {
        for (; read_count < chunks.read_count; read_count++) {
            tide_buf_append_char(&text, ';');
        }
        kit_append_values(&text, row, chunks.relation->column_count);
        tide_buf_append_char(&text, '\n');
    }
    for (; read_count <= chunks.read_count; read_count++) {
        tide_buf_append_char(&text, ';');
    }
    tide_sqlite_source_ops.reader_close(reader);
    (void)tide_buf_cstr(&text);
    return text.ptr;
}

void kit_expect_chunks(struct sqlite_kit *kit, const char *table, size_t rows_max, const char *want)
{
    char *got = kit_read_chunks(kit, table, rows_max);
    assert_string_equal(got, want);
    free(got);
}

void kit_confirm(struct tide_source *source, uint64_t id)
{
    struct tide_error err;
    tide_status status = TIDE_TIMEOUT;
    for (int i = 0; i < 400 && status == TIDE_TIMEOUT; i++) {
        status = tide_sqlite_source_ops.confirm(source, (struct tide_position){.lo = id}, &err);
        (void)usleep(10000);
    }
    if (status != TIDE_OK) {
        fail_msg("%s", err.message);
    }
}

uint64_t kit_log_end(struct sqlite_kit *kit)
{
    char *id = kit_get(kit, "SELECT max(id) FROM _tidemark_changes");
    uint64_t end = strtoull(id, NULL, 10);
    free(id);
    return end;
}

void kit_follow_with_rows(struct sqlite_kit *kit, const char *mode, const char *rows)
{
    kit_init(kit, mode);
    kit_sql(kit, "CREATE TABLE t(id INTEGER PRIMARY KEY, a)");
    kit_follow(kit);
    kit_sql(kit, rows);
    free(kit_drain(kit, kit->source, false));
}
