#include "source/postgres/pg_state.h"

#include "base/arena.h"
#include "format/json_reader.h"
#include "format/json_shape.h"
#include "format/json_writer.h"
#include "model/position.h"

#include <stdio.h>

#define DEPTH 3

enum field {
    FIELD_SYSTEM,
    FIELD_TIMELINE,
    FIELD_SLOT,
    FIELD_PUBLICATION,
    FIELD_POINT,
    FIELD_TABLES,
    FIELD_COUNT
};

static const struct tide_shape_field fields[FIELD_COUNT] = {
    [FIELD_SYSTEM] = {.name = "system_identifier"},
    [FIELD_TIMELINE] = {.name = "timeline"},
    [FIELD_SLOT] = {.name = "slot"},
    [FIELD_PUBLICATION] = {.name = "publication"},
    [FIELD_POINT] = {.name = "consistent_point"},
    [FIELD_TABLES] = {.name = "tables", .is_optional = true},
};

static void append_tables(const struct tide_pg_state *state, struct tide_buf *buf)
{
    tide_buf_append_str(buf, TIDE_STR(",\"tables\":["));
    for (size_t i = 0; i < state->table_count; i++) {
        tide_buf_printf(buf, "%s[%u,", i == 0 ? "" : ",", state->tables[i].oid);
        tide_json_append_string(buf, state->tables[i].store);
        tide_buf_append_char(buf, ']');
    }
    tide_buf_append_char(buf, ']');
}

/* Names of ours are [a-z0-9_]: nothing in them needs an escape. */
void tide_pg_state_write(const struct tide_pg_state *state, struct tide_buf *buf)
{
    tide_buf_printf(buf, "{\"system_identifier\":\"%llu\",\"timeline\":%u,\"slot\":\"%s\",",
                    (unsigned long long)state->system_identifier, state->timeline, state->slot);
    tide_buf_printf(buf, "\"publication\":\"%s\",\"consistent_point\":\"", state->publication);
    tide_lsn_append(buf, state->consistent_lsn);
    tide_buf_append_char(buf, '"');
    if (state->has_tables) {
        append_tables(state, buf);
    }
    tide_buf_append_char(buf, '}');
}

static tide_status read_string(tide_str raw, struct tide_arena *arena, tide_str *ret_text,
                               struct tide_error *err)
{
    struct tide_json_reader reader;
    tide_json_reader_init(&reader, raw, DEPTH);
    return tide_json_expect_string(&reader, arena, ret_text, err);
}

static tide_status read_name(tide_str raw, struct tide_arena *arena,
                             char ret_name[TIDE_PG_NAME_SIZE], struct tide_error *err)
{
    tide_str text;
    TIDE_TRY(read_string(raw, arena, &text, err));
    if (text.len == 0 || text.len >= TIDE_PG_NAME_SIZE || memchr(text.ptr, 0, text.len) != NULL) {
        return tide_fail(err, TIDE_CORRUPT, "a name of %zu bytes", text.len);
    }
    (void)snprintf(ret_name, TIDE_PG_NAME_SIZE, "%.*s", TIDE_STR_ARG(text));
    return TIDE_OK;
}

static tide_status read_numbers(const tide_str *raw, struct tide_arena *arena,
                                struct tide_pg_state *state, struct tide_error *err)
{
    uint64_t timeline = 0;
    tide_str system;
    tide_str point;
    TIDE_TRY(read_string(raw[FIELD_SYSTEM], arena, &system, err));
    TIDE_TRY(read_string(raw[FIELD_POINT], arena, &point, err));
    if (!tide_str_to_u64(system, &state->system_identifier) ||
        !tide_str_to_u64(raw[FIELD_TIMELINE], &timeline) || timeline > UINT32_MAX ||
        !tide_lsn_parse(point, &state->consistent_lsn)) {
        return tide_fail(err, TIDE_CORRUPT,
                         "a system identifier, timeline or consistent point "
                         "that is none");
    }
    state->timeline = (uint32_t)timeline;
    return TIDE_OK;
}

static tide_status read_told(const struct tide_shape *shape, tide_str raw,
                             struct tide_pg_told *ret_told, struct tide_error *err)
{
    tide_str *items = NULL;
    size_t count = 0;
    uint64_t oid = 0;
    TIDE_TRY(tide_shape_items(shape, raw, &items, &count, err));
    if (count != 2) {
        return tide_shape_fail(shape, raw, "an object id and a name", err);
    }
    TIDE_TRY(tide_shape_u64(shape, items[0], UINT32_MAX, &oid, err));
    TIDE_TRY(tide_shape_string(shape, items[1], &ret_told->store, err));
    ret_told->oid = (uint32_t)oid;
    return TIDE_OK;
}

static tide_status read_tables(const struct tide_shape *shape, tide_str raw,
                               struct tide_pg_state *state, struct tide_error *err)
{
    tide_str *items = NULL;
    if (raw.ptr == NULL) {
        return TIDE_OK;
    }
    TIDE_TRY(tide_shape_items(shape, raw, &items, &state->table_count, err));
    struct tide_pg_told *tables =
        tide_arena_alloc(shape->arena, state->table_count, sizeof(*tables));
    for (size_t i = 0; i < state->table_count; i++) {
        TIDE_TRY(read_told(shape, items[i], &tables[i], err));
    }
    state->tables = tables;
    state->has_tables = true;
    return TIDE_OK;
}

static tide_status read_all(tide_str json, struct tide_arena *arena, struct tide_pg_state *state,
                            struct tide_error *err)
{
    struct tide_shape shape = {.document = json.ptr, .arena = arena};
    struct tide_shape_form form = {.fields = fields, .count = FIELD_COUNT};
    tide_str raw[FIELD_COUNT];
    TIDE_TRY(tide_json_check(json, TIDE_JSON_DEPTH_MAX, err));
    TIDE_TRY(tide_shape_fields(&shape, json, &form, raw, err));
    TIDE_TRY(read_numbers(raw, arena, state, err));
    TIDE_TRY(read_name(raw[FIELD_SLOT], arena, state->slot, err));
    TIDE_TRY(read_name(raw[FIELD_PUBLICATION], arena, state->publication, err));
    return read_tables(&shape, raw[FIELD_TABLES], state, err);
}

tide_status tide_pg_state_read(tide_str json, struct tide_arena *arena,
                               struct tide_pg_state *ret_state, struct tide_error *err)
{
    struct tide_pg_state state = {0};
    if (read_all(json, arena, &state, err) != TIDE_OK) {
        return tide_fail_context(err, "state of the PostgreSQL source");
    }
    *ret_state = state;
    return TIDE_OK;
}
