/*
 * A type by its oid, a line feed, and any bytes as the server's text of it. What must hold:
 *   - what is taken gives a record of valid JSON, whatever the type;
 *   - a key column's value goes back to just the bytes it came from;
 *   - fields of a COPY line, cut where a decoder cuts them, hold no more than the line.
 */
#include "base/limits.h"
#include "format/json_reader.h"
#include "format/record.h"
#include "source/postgres/pg_copy_text.h"
#include "source/postgres/pg_value.h"

#include <strings.h>

#define FIELDS_MAX 8

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_record(struct tide_value value)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf record = {0};
    struct tide_error err;
    tide_record_append_value(&record, value);
    TIDE_ASSERT(tide_json_check(tide_buf_str(&record), TIDE_JSON_DEPTH_MAX - 2, &err) == TIDE_OK);
    TIDE_ASSERT(memchr(record.ptr, '\n', record.len) == NULL);
}

/* A timestamp's T stands for the server's space, which reads both. */
static void put_space_back(struct tide_buf *back, tide_str text)
{
    char *mark = back->len == text.len && back->len > 0 ? memchr(back->ptr, 'T', back->len) : NULL;
    while (mark != NULL && text.ptr[mark - back->ptr] != ' ') {
        size_t at = (size_t)(mark - back->ptr) + 1;
        mark = memchr(back->ptr + at, 'T', back->len - at);
    }
    if (mark != NULL) {
        *mark = ' ';
    }
}

static void check_way_back(uint32_t oid, struct tide_value value, tide_str text)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf back = {0};
    struct tide_error err;
    tide_status status = tide_pg_value_to_text(value, &back, &err);
    TIDE_ASSERT((status == TIDE_OK) == (value.kind != TIDE_VALUE_RAW_TEXT));
    if (status != TIDE_OK) {
        return;
    }
    if (value.kind == TIDE_VALUE_BYTES) { /* the server writes lower case, upper is read too */
        TIDE_ASSERT(back.len == text.len && strncasecmp(back.ptr, text.ptr, text.len) == 0);
    } else {
        if (oid == 1114 || oid == 1184) {
            put_space_back(&back, text);
        }
        TIDE_ASSERT(tide_str_equal(tide_buf_str(&back), text));
    }
}

static void check_value(uint32_t oid, bool is_key, tide_str text)
{
    TIDE_CLEANUP(tide_arena_done) struct tide_arena arena = {0};
    TIDE_CLEANUP(tide_pg_scratch_done) struct tide_pg_scratch scratch = {0};
    struct tide_value value;
    struct tide_error err;
    tide_status status =
        tide_pg_value(tide_pg_rule_of(oid, is_key), text, &arena, &scratch, &value, &err);
    TIDE_ASSERT(status == TIDE_OK || status == TIDE_CORRUPT);
    if (status != TIDE_OK) {
        return;
    }
    check_record(value);
    if (is_key) {
        check_way_back(oid, value, text);
    }
}

static void check_copy(tide_str line, size_t count)
{
    TIDE_CLEANUP(tide_arena_done) struct tide_arena arena = {0};
    struct tide_pg_field fields[FIELDS_MAX];
    struct tide_error err;
    if (tide_pg_copy_line(line, count, &arena, fields, &err) != TIDE_OK) {
        return;
    }
    size_t sum = count - 1;
    for (size_t i = 0; i < count; i++) {
        sum += fields[i].len;
        TIDE_ASSERT(fields[i].kind == TIDE_PG_FIELD_NULL || fields[i].ptr != NULL);
    }
    TIDE_ASSERT(sum <= line.len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *feed = size == 0 ? NULL : memchr(data, '\n', size);
    uint64_t oid = 0;
    if (feed == NULL || !tide_str_to_u64(tide_str_of(data, (size_t)(feed - data)), &oid)) {
        return 0;
    }
    tide_str text = tide_str_of(feed + 1, size - (size_t)(feed + 1 - data));
    check_value((uint32_t)oid, false, text);
    check_value((uint32_t)oid, true, text);
    check_copy(text, 1 + oid % FIELDS_MAX);
    return 0;
}
