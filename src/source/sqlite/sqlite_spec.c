#include "source/sqlite/sqlite_spec.h"

#include "base/buf.h"

#include <xxhash.h>

/* Another number makes every trigger anew, and has every table copied anew. */
#define TRIGGERS_VERSION 2

/* Lengths keep two shapes from reading the same. */
static void put(struct tide_buf *buf, tide_str text)
{
    if (text.ptr == NULL) {
        tide_buf_append_str(buf, TIDE_STR("-;"));
        return;
    }
    tide_buf_append_u64(buf, text.len);
    tide_buf_append_char(buf, ':');
    tide_buf_append_str(buf, text);
}

static void put_column(struct tide_buf *buf, const struct tide_sqlite_column *column)
{
    put(buf, column->name);
    put(buf, column->type);
    put(buf, column->collation);
    put(buf, column->default_text);
    tide_buf_printf(buf, "%d,%d,%u;", (int)column->generated, column->is_not_null,
                    column->primary_place);
}

static void put_index(struct tide_buf *buf, const struct tide_sqlite_index *index)
{
    put(buf, index->name);
    put(buf, index->where);
    tide_buf_printf(buf, "%d,%zu;", index->is_primary, index->part_count);
    for (size_t i = 0; i < index->part_count; i++) {
        tide_buf_printf(buf, "%d;", index->parts[i].column);
        put(buf, index->parts[i].collation);
        put(buf, index->parts[i].expression);
    }
}

static void put_key(struct tide_buf *buf, const struct tide_sqlite_table *table)
{
    tide_buf_printf(buf, "%d,%d,%d;", (int)table->identity, table->is_nullable, table->is_exact);
    put(buf, table->rowid_name);
    for (size_t i = 0; i < table->key_count; i++) {
        put_column(buf, &table->columns[table->key_columns[i]]);
        put(buf, table->key_collations[i]);
    }
}

/* Appends the digest of what `text` holds, and empties it. */
static void append_digest(struct tide_buf *buf, struct tide_buf *text)
{
    tide_buf_printf(buf, "%016llx", (unsigned long long)XXH3_64bits(text->ptr, text->len));
    tide_buf_reset(text);
}

void tide_sqlite_table_specify(struct tide_sqlite_table *table)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf buf = {0};
    TIDE_CLEANUP(tide_buf_done) struct tide_buf text = {0};
    tide_buf_printf(&buf, "%d:", TRIGGERS_VERSION);
    put_key(&text, table);
    append_digest(&buf, &text);
    put_key(&text, table);
    tide_buf_printf(&text, "%d,%d;", table->is_without_rowid, table->is_strict);
    put(&text, table->name);
    for (size_t i = 0; i < table->column_count; i++) {
        put_column(&text, &table->columns[i]);
    }
    tide_buf_append_char(&buf, ':');
    append_digest(&buf, &text);
    tide_buf_printf(&buf, ":%zu:", table->column_count);
    for (size_t i = 0; i < table->index_count; i++) {
        tide_buf_append_str(&buf, i > 0 ? TIDE_STR(",") : TIDE_STR(""));
        put_index(&text, &table->indexes[i]);
        append_digest(&buf, &text);
    }
    table->spec = tide_arena_str(&table->arena, tide_buf_str(&buf));
}

/* Takes the next part off, up to the separator or the end. */
static tide_str take_part(tide_str *rest, char separator)
{
    const char *end = rest->len == 0 ? NULL : memchr(rest->ptr, separator, rest->len);
    size_t len = end == NULL ? rest->len : (size_t)(end - rest->ptr);
    tide_str part = {rest->ptr, len};
    size_t gone = end == NULL ? len : len + 1;
    *rest = (tide_str){rest->ptr + gone, rest->len - gone};
    return part;
}

/* Whether each of `these` is among `those`. */
static bool holds_all(tide_str those, tide_str these)
{
    while (these.len > 0) {
        tide_str one = take_part(&these, ',');
        if (memmem(those.ptr, those.len, one.ptr, one.len) == NULL) {
            return false;
        }
    }
    return true;
}

static enum tide_sqlite_difference compare_columns(tide_str before, tide_str now)
{
    uint64_t count_before = 0;
    uint64_t count_now = 0;
    if (!tide_str_to_u64(before, &count_before) || !tide_str_to_u64(now, &count_now) ||
        count_before == count_now) {
        return TIDE_SQLITE_OTHER_SHAPE;
    }
    return count_now > count_before ? TIDE_SQLITE_MORE_COLUMNS : TIDE_SQLITE_FEWER_COLUMNS;
}

/* All but TRIGGERS, the sixth part. */
static tide_str take_shape(tide_str kept, tide_str *ret_triggers)
{
    tide_str rest = kept;
    for (int i = 0; i < 5; i++) {
        (void)take_part(&rest, ':');
    }
    *ret_triggers = rest;
    return rest.len == 0 ? kept : (tide_str){kept.ptr, kept.len - rest.len - 1};
}

enum tide_sqlite_difference tide_sqlite_spec_compare(tide_str kept, tide_str now,
                                                     tide_str *ret_triggers)
{
    tide_str before = take_shape(kept, ret_triggers);
    if (tide_str_equal(before, now)) {
        return TIDE_SQLITE_SAME;
    }
    if (!tide_str_equal(take_part(&before, ':'), take_part(&now, ':'))) {
        return TIDE_SQLITE_OTHER_VERSION;
    }
    if (!tide_str_equal(take_part(&before, ':'), take_part(&now, ':'))) {
        return TIDE_SQLITE_OTHER_KEY;
    }
    bool has_same_shape = tide_str_equal(take_part(&before, ':'), take_part(&now, ':'));
    tide_str columns_before = take_part(&before, ':');
    tide_str columns_now = take_part(&now, ':');
    if (!has_same_shape) {
        return compare_columns(columns_before, columns_now);
    }
    return holds_all(before, now) ? TIDE_SQLITE_FEWER_INDEXES : TIDE_SQLITE_MORE_INDEXES;
}
