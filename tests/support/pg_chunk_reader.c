/*
 * Lets tests in Python drive a chunk reader of the PostgreSQL source by itself. Started with
 *
 *     pg_chunk_reader URL SCHEMA TABLE
 *
 * it looks at the table, then takes commands from standard input, a line each, fields parted by
 * tabs, and answers each with one line of JSON:
 *
 *     remember
 *     again HEX…             a key for the next read, one field a column: its text in hexadecimal
 *     read ROWS BYTES        the next chunk; the range goes on behind the last key that came
 *     read ROWS BYTES done   only the keys given by `again`
 *     cancel MS              cancels from another thread after so long; answered at once
 *     rewind                 the range starts over
 *
 * {"status":…,"retriable":…,"message":…} for a failure; else "status":"ok" with what came. A value
 * is null or [kind, text], of bytes in hexadecimal.
 */
#include "base/alloc.h"
#include "base/clock.h"
#include "format/json_writer.h"
#include "source/postgres/pg_catalogue.h"
#include "source/postgres/pg_chunk.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KEYS_MAX  5000
#define LINE_MAX_ 65536

struct driver {
    struct tide_pg_table *table;
    struct tide_chunk_reader *reader;
    struct tide_arena keys;
    const struct tide_value *after; /* in after_arena */
    struct tide_arena after_arena;
    const struct tide_value *again[KEYS_MAX]; /* in keys */
    size_t again_count;
    struct tide_buf out;
};

static void answer(struct driver *driver)
{
    tide_buf_append_char(&driver->out, '\n');
    (void)fwrite(driver->out.ptr, 1, driver->out.len, stdout);
    (void)fflush(stdout);
    tide_buf_reset(&driver->out);
}

static void answer_status(struct driver *driver, tide_status status, const struct tide_error *err)
{
    if (status == TIDE_OK) {
        tide_buf_printf(&driver->out, "{\"status\":\"ok\"}");
    } else {
        tide_buf_printf(&driver->out, "{\"status\":\"%s\",\"retriable\":%s,\"message\":",
                        tide_status_name(status), err->retriable ? "true" : "false");
        tide_json_append_string(&driver->out, tide_str_from(err->message));
        tide_buf_append_char(&driver->out, '}');
    }
    answer(driver);
}

static void add_value(struct tide_buf *out, struct tide_value value)
{
    if (value.kind == TIDE_VALUE_NULL) {
        tide_buf_printf(out, "null");
        return;
    }
    tide_buf_printf(out, "[%d,", value.kind);
    if (value.kind == TIDE_VALUE_BYTES || value.kind == TIDE_VALUE_RAW_TEXT) {
        tide_buf_append_char(out, '"');
        for (uint32_t i = 0; i < value.len; i++) {
            tide_buf_printf(out, "%02x", (unsigned char)value.ptr[i]);
        }
        tide_buf_append_char(out, '"');
    } else {
        tide_json_append_string(out, tide_value_str(value));
    }
    tide_buf_append_char(out, ']');
}

static void add_values(struct tide_buf *out, const struct tide_value *values, size_t count)
{
    tide_buf_append_char(out, '[');
    for (size_t i = 0; i < count; i++) {
        if (i > 0) {
            tide_buf_append_char(out, ',');
        }
        add_value(out, values[i]);
    }
    tide_buf_append_char(out, ']');
}

static void answer_chunk(struct driver *driver, const struct tide_chunk *chunk)
{
    const struct tide_relation *relation = driver->table->relation;
    struct tide_buf *out = &driver->out;
    tide_buf_printf(
        out,
        "{\"status\":\"ok\",\"trusted\":%s,\"last\":%s,\"epoch\":%" PRIu64 ",\"position\":%" PRIu64
        ",\"xmin\":%" PRIu64 ",\"xmax\":%" PRIu64 ",\"in_progress\":[",
        chunk->is_trusted ? "true" : "false", chunk->is_last ? "true" : "false", chunk->epoch,
        chunk->position.lo, chunk->visibility.xmin, chunk->visibility.xmax);
    for (size_t i = 0; i < chunk->visibility.in_progress_count; i++) {
        tide_buf_printf(out, "%s%" PRIu64, i == 0 ? "" : ",", chunk->visibility.in_progress[i]);
    }
    tide_buf_printf(out, "],\"rows\":[");
    for (size_t i = 0; i < chunk->row_count; i++) {
        tide_buf_printf(out, i == 0 ? "" : ",");
        add_values(out, chunk->rows[i], relation->column_count);
    }
    tide_buf_printf(out, "],\"last_key\":");
    if (chunk->last_key == NULL) {
        tide_buf_printf(out, "null");
    } else {
        add_values(out, chunk->last_key, relation->key_count);
    }
    tide_buf_append_char(out, '}');
    answer(driver);
}

static void keep_last_key(struct driver *driver, const struct tide_chunk *chunk)
{
    if (chunk->last_key != NULL) {
        tide_arena_reset(&driver->after_arena);
        driver->after = tide_values_copy(&driver->after_arena, chunk->last_key,
                                         driver->table->relation->key_count);
    }
}

static void read_chunk(struct driver *driver, char *fields)
{
    struct tide_error err = {0};
    struct tide_chunk chunk = {0};
    char *end = fields;
    struct tide_chunk_request request = {.relation = driver->table->relation,
                                         .after_key = driver->after,
                                         .again = driver->again,
                                         .again_count = driver->again_count};
    request.rows_max = (size_t)strtoull(fields, &end, 10);
    request.bytes_max = (size_t)strtoull(end, &end, 10);
    request.range_is_done = strstr(end, "done") != NULL;
    tide_status status = tide_pg_chunk_read(driver->reader, &request, &chunk, &err);
    if (status != TIDE_OK) {
        TIDE_ASSERT(chunk.row_count == 0 && chunk.arena.block == NULL);
        answer_status(driver, status, &err);
        return;
    }
    answer_chunk(driver, &chunk);
    keep_last_key(driver, &chunk);
    tide_chunk_done(&chunk);
    driver->again_count = 0;
    tide_arena_reset(&driver->keys);
}

static struct tide_value from_hex(struct tide_arena *arena, const char *hex, size_t digits)
{
    char *bytes = tide_arena_bytes(arena, digits / 2 + 1);
    for (size_t i = 0; i < digits / 2; i++) {
        char pair[] = {hex[2 * i], hex[2 * i + 1], '\0'};
        bytes[i] = (char)strtoul(pair, NULL, 16);
    }
    return (struct tide_value){bytes, (uint32_t)(digits / 2), TIDE_VALUE_TEXT};
}

static void add_again(struct driver *driver, const char *fields)
{
    size_t count = driver->table->relation->key_count;
    struct tide_value *key = tide_arena_alloc(&driver->keys, count, sizeof(*key));
    for (size_t i = 0; i < count; i++) {
        size_t digits = strcspn(fields, "\t\n");
        key[i] = from_hex(&driver->keys, fields, digits);
        fields += digits + (fields[digits] == '\t' ? 1 : 0);
    }
    TIDE_ASSERT(driver->again_count < KEYS_MAX);
    driver->again[driver->again_count++] = key;
    answer_status(driver, TIDE_OK, NULL);
}

struct cancel {
    struct tide_chunk_reader *reader;
    int64_t delay_us;
};

static void *run_cancel(void *arg)
{
    struct cancel *cancel = arg;
    (void)usleep((useconds_t)cancel->delay_us);
    tide_pg_chunk_cancel(cancel->reader);
    free(cancel);
    return NULL;
}

static void cancel_later(struct driver *driver, const char *fields)
{
    struct cancel *cancel = tide_alloc(1, sizeof(*cancel));
    cancel->reader = driver->reader;
    cancel->delay_us = strtoll(fields, NULL, 10) * 1000;
    pthread_t thread;
    tide_thread_start(&thread, run_cancel, cancel);
    (void)pthread_detach(thread);
    answer_status(driver, TIDE_OK, NULL);
}

static void obey(struct driver *driver, char *line)
{
    struct tide_error err = {0};
    char *fields = strpbrk(line, "\t\n");
    *fields++ = '\0';
    if (strcmp(line, "remember") == 0) {
        answer_status(driver, tide_pg_chunk_remember(driver->reader, driver->table->relation, &err),
                      &err);
    } else if (strcmp(line, "read") == 0) {
        read_chunk(driver, fields);
    } else if (strcmp(line, "again") == 0) {
        add_again(driver, fields);
    } else if (strcmp(line, "cancel") == 0) {
        cancel_later(driver, fields);
    } else {
        TIDE_ASSERT(strcmp(line, "rewind") == 0);
        driver->after = NULL;
        answer_status(driver, TIDE_OK, NULL);
    }
}

/* The table, through a connection that does not stay open. */
static tide_status look(struct driver *driver, const char *url, const char *schema,
                        const char *name, struct tide_error *err)
{
    struct tide_pg_conn *conn TIDE_CLEANUP(tide_pg_conn_done) = NULL;
    PGresult *result TIDE_CLEANUP(tide_pg_result_done) = NULL;
    const char *params[] = {schema, name};
    TIDE_TRY(
        tide_pg_open(tide_str_from(url), TIDE_PG_NORMAL, tide_pg_wait_for(10000000), &conn, err));
    TIDE_TRY(tide_pg_query_params(conn,
                                  "SELECT c.oid FROM pg_class c JOIN pg_namespace n"
                                  " ON n.oid = c.relnamespace"
                                  " WHERE n.nspname = $1 AND c.relname = $2",
                                  params, 2, "find the table", tide_pg_wait_for(10000000), &result,
                                  err));
    TIDE_ASSERT(PQntuples(result) == 1);
    TIDE_TRY(tide_pg_table_read(conn, TIDE_STR("c"), (uint32_t)tide_pg_result_u64(result, 0, 0),
                                tide_pg_wait_for(10000000), &driver->table, err));
    TIDE_ASSERT(driver->table->relation != NULL);
    return TIDE_OK;
}

int main(int argc, char **argv)
{
    TIDE_ASSERT(argc == 4);
    struct driver *driver = tide_alloc(1, sizeof(*driver));
    struct tide_error err = {0};
    tide_status status = look(driver, argv[1], argv[2], argv[3], &err);
    answer_status(driver, status, &err);
    if (status == TIDE_OK) {
        char *line = tide_alloc(1, LINE_MAX_);
        driver->reader = tide_pg_chunk_reader_new(tide_str_from(argv[1]), TIDE_STR("c"));
        while (fgets(line, LINE_MAX_, stdin) != NULL) {
            obey(driver, line);
        }
        free(line);
    }
    tide_pg_chunk_reader_free(driver->reader);
    tide_pg_table_free(driver->table);
    tide_arena_done(&driver->keys);
    tide_arena_done(&driver->after_arena);
    tide_buf_done(&driver->out);
    free(driver);
    return status == TIDE_OK ? 0 : 3;
}
