#include "archive/change_schema.h"

#include "base/limits.h"
#include "base/map.h"
#include "format/json_reader.h"
#include "format/json_shape.h"
#include "format/json_writer.h"

#include <inttypes.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#define DEPTH 3

/* With "~" and the hash it is longer than any name that is not cut, and one that a series may have.
 */
#define NAME_BYTES_MAX ((size_t)4000)

void tide_change_series_name_append(struct tide_buf *buf, tide_str store)
{
    tide_str cut = store;
    if (store.len > NAME_BYTES_MAX) {
        cut.len = NAME_BYTES_MAX;
        cut.len = tide_str_utf8_valid_prefix(cut);
    }
    tide_buf_append_str(buf, cut);
    if (store.len > NAME_BYTES_MAX) {
        tide_buf_printf(buf, "~%016" PRIx64, (uint64_t)XXH3_64bits(store.ptr, store.len));
    }
}

static void append_text(struct tide_buf *buf, const char *key, tide_str text)
{
    tide_json_append_key(buf, tide_str_from(key));
    tide_json_append_string(buf, text);
}

void tide_change_schema_encode(const struct tide_relation *relation, tide_str position_kind,
                               struct tide_buf *buf)
{
    tide_buf_append_str(buf, TIDE_STR("{\"version\":1,"));
    append_text(buf, "store", relation->store);
    tide_buf_append_char(buf, ',');
    append_text(buf, "schema", relation->schema);
    tide_buf_append_char(buf, ',');
    append_text(buf, "table", relation->name);
    tide_buf_append_char(buf, ',');
    append_text(buf, "position_kind", position_kind);
    tide_buf_append_str(buf, TIDE_STR(",\"columns\":["));
    for (size_t i = 0; i < relation->column_count; i++) {
        const struct tide_column *column = &relation->columns[i];
        tide_buf_append_str(buf, i == 0 ? TIDE_STR("{") : TIDE_STR(",{"));
        append_text(buf, "name", column->name);
        tide_buf_append_char(buf, ',');
        append_text(buf, "type", column->type);
        tide_buf_printf(buf, ",\"hidden\":%s}", column->is_hidden ? "true" : "false");
    }
    tide_buf_append_str(buf, TIDE_STR("],\"key\":["));
    for (size_t i = 0; i < relation->key_count; i++) {
        tide_buf_append_str(buf, i == 0 ? TIDE_STR("") : TIDE_STR(","));
        tide_json_append_string(buf, relation->columns[relation->key_columns[i]].name);
    }
    tide_buf_append_str(buf, TIDE_STR("]}"));
}

static tide_status read_columns(const struct tide_shape *shape, tide_str raw,
                                struct tide_change_schema *schema, struct tide_error *err)
{
    static const struct tide_shape_field fields[] = {
        {.name = "name"}, {.name = "type"}, {.name = "hidden"}};
    static const struct tide_shape_form form = {.fields = fields, .count = 3};
    tide_str *items = NULL;
    size_t count = 0;
    TIDE_TRY(tide_shape_items(shape, raw, &items, &count, err));
    if (count == 0 || count > TIDE_COLUMNS_MAX) {
        return tide_shape_fail(shape, raw, "columns, not too many", err);
    }
    struct tide_column *columns = tide_arena_alloc(shape->arena, count, sizeof(*columns));
    for (size_t i = 0; i < count; i++) {
        tide_str values[3];
        TIDE_TRY(tide_shape_fields(shape, items[i], &form, values, err));
        TIDE_TRY(tide_shape_string(shape, values[0], &columns[i].name, err));
        TIDE_TRY(tide_shape_string(shape, values[1], &columns[i].type, err));
        TIDE_TRY(tide_shape_bool(shape, values[2], &columns[i].is_hidden, err));
    }
    schema->columns = columns;
    schema->column_count = count;
    return TIDE_OK;
}

/* Each name once, with the column's number. */
static tide_status map_names(const struct tide_shape *shape, tide_str raw,
                             const struct tide_change_schema *schema, struct tide_map *names,
                             struct tide_error *err)
{
    for (size_t i = 0; i < schema->column_count; i++) {
        bool is_new = false;
        tide_map_put(names, schema->columns[i].name, &is_new)->number = i;
        if (!is_new) {
            return tide_shape_fail(shape, raw, "columns of different names", err);
        }
    }
    return TIDE_OK;
}

static tide_status find_columns(const struct tide_shape *shape, tide_str raw,
                                struct tide_map *names, const tide_str *wanted,
                                struct tide_change_schema *schema, struct tide_error *err)
{
    uint32_t *columns = tide_arena_alloc(shape->arena, schema->key_count, sizeof(*columns));
    for (size_t i = 0; i < schema->key_count; i++) {
        const union tide_map_value *column = tide_map_get(names, wanted[i]);
        if (column == NULL) {
            return tide_shape_fail(shape, raw, "a key of columns, each of them once", err);
        }
        columns[i] = (uint32_t)column->number;
        (void)tide_map_remove(names, wanted[i]);
    }
    schema->key_columns = columns;
    return TIDE_OK;
}

static tide_status read_key(const struct tide_shape *shape, tide_str columns, tide_str key,
                            struct tide_change_schema *schema, struct tide_error *err)
{
    struct tide_map names TIDE_CLEANUP(tide_map_done) = {0};
    const tide_str *wanted = NULL;
    TIDE_TRY(map_names(shape, columns, schema, &names, err));
    TIDE_TRY(tide_shape_strings(shape, key, &wanted, &schema->key_count, err));
    if (schema->key_count > schema->column_count) {
        return tide_shape_fail(shape, key, "a key of columns, each of them once", err);
    }
    return find_columns(shape, key, &names, wanted, schema, err);
}

tide_status tide_change_schema_decode(tide_str json, struct tide_arena *arena,
                                      struct tide_change_schema *ret_schema, struct tide_error *err)
{
    static const struct tide_shape_field fields[] = {
        {.name = "version"},       {.name = "store"},   {.name = "schema"}, {.name = "table"},
        {.name = "position_kind"}, {.name = "columns"}, {.name = "key"}};
    static const struct tide_shape_form form = {.fields = fields, .count = 7};
    const struct tide_shape shape = {.document = json.ptr, .arena = arena};
    struct tide_change_schema schema = {0};
    tide_str values[7];
    uint64_t version = 0;
    TIDE_TRY(tide_json_check(json, DEPTH, err));
    TIDE_TRY(tide_shape_fields(&shape, json, &form, values, err));
    TIDE_TRY(tide_shape_u64(&shape, values[0], INT64_MAX, &version, err));
    if (version != 1) {
        return tide_fail(err, TIDE_UNSUPPORTED, "columns of version %llu, this program reads 1",
                         (unsigned long long)version);
    }
    TIDE_TRY(tide_shape_string(&shape, values[1], &schema.store, err));
    TIDE_TRY(tide_shape_string(&shape, values[2], &schema.schema, err));
    TIDE_TRY(tide_shape_string(&shape, values[3], &schema.table, err));
    TIDE_TRY(tide_shape_string(&shape, values[4], &schema.position_kind, err));
    TIDE_TRY(read_columns(&shape, values[5], &schema, err));
    TIDE_TRY(read_key(&shape, values[5], values[6], &schema, err));
    *ret_schema = schema;
    return TIDE_OK;
}
