/*
 * The compatible part, and the document as a whole:
 *
 *     {"reconciliation_pos":<any JSON>,
 *      "tables":[{"name":"users","last_pk":[…]|null,"done":false},…],
 *      "tidemark":{…}}
 */
#include "format/checkpoint.h"

#include "base/alloc.h"
#include "base/limits.h"
#include "base/map.h"
#include "format/checkpoint_private.h"
#include "format/json_writer.h"

static const char *const phase_names[] = {
    [TIDE_PHASE_FULL_SYNC_START] = "full_sync_start",
    [TIDE_PHASE_FULL_SYNC_END] = "full_sync_end",
    [TIDE_PHASE_SNAPSHOT_PROGRESS] = "snapshot_progress",
    [TIDE_PHASE_SNAPSHOT_HANDOFF] = "snapshot_handoff",
    [TIDE_PHASE_CATCH_UP_PROGRESS] = "catch_up_progress",
};

#define PHASES (sizeof(phase_names) / sizeof(phase_names[0]))

const char *tide_checkpoint_phase_name(enum tide_checkpoint_phase phase)
{
    TIDE_ASSERT((size_t)phase < PHASES);
    return phase_names[phase];
}

bool tide_checkpoint_phase_find(tide_str name, enum tide_checkpoint_phase *ret_phase)
{
    for (size_t i = 0; i < PHASES; i++) {
        if (tide_str_equal(name, tide_str_from(phase_names[i]))) {
            *ret_phase = (enum tide_checkpoint_phase)i;
            return true;
        }
    }
    return false;
}

bool tide_checkpoint_all_done(const struct tide_checkpoint *checkpoint)
{
    for (size_t i = 0; i < checkpoint->table_count; i++) {
        if (!checkpoint->tables[i].done) {
            return false;
        }
    }
    return true;
}

static void append_table_start(struct tide_buf *buf, bool is_first, tide_str name)
{
    tide_buf_append_str(buf, is_first ? TIDE_STR("{\"name\":") : TIDE_STR(",{\"name\":"));
    tide_json_append_string(buf, name);
    tide_buf_append_str(buf, TIDE_STR(",\"last_pk\":"));
}

static void append_table_end(struct tide_buf *buf, bool is_done)
{
    tide_buf_append_str(buf, is_done ? TIDE_STR(",\"done\":true}") : TIDE_STR(",\"done\":false}"));
}

static void append_foreign_tables(const struct tide_checkpoint *checkpoint, struct tide_buf *buf)
{
    for (size_t i = 0; i < checkpoint->table_count; i++) {
        const struct tide_checkpoint_table *table = &checkpoint->tables[i];
        append_table_start(buf, i == 0, table->name);
        tide_buf_append_str(buf, table->last_pk);
        append_table_end(buf, table->done);
    }
}

/* A table over all of its copies. */
struct table_state {
    tide_str name;
    const struct tide_checkpoint_copy *unfinished; /* one of them */
    size_t unfinished_count;
};

/* Gathers `states` (room for one a copy), in the order in which the tables come first. */
static size_t gather_tables(const struct tide_checkpoint *checkpoint, struct table_state *states)
{
    TIDE_CLEANUP(tide_map_done) struct tide_map seen = {0};
    size_t count = 0;
    for (size_t i = 0; i < checkpoint->copy_count; i++) {
        const struct tide_checkpoint_copy *copy = &checkpoint->copies[i];
        bool is_new = false;
        union tide_map_value *index = tide_map_put(&seen, copy->table, &is_new);
        if (is_new) {
            index->number = count;
            states[count++] = (struct table_state){.name = copy->table};
        }
        if (!copy->is_done) {
            states[index->number].unfinished = copy;
            states[index->number].unfinished_count++;
        }
    }
    return count;
}

/*
 * Where a table has several unfinished copies there is no saying which is behind (only the server
 * compares keys): it is then said to begin anew.
 */
static void append_copied_tables(const struct tide_checkpoint *checkpoint, struct tide_buf *buf)
{
    TIDE_CLEANUP(tide_free_ptr)
    struct table_state *states = tide_alloc(checkpoint->copy_count + 1, sizeof(*states));
    size_t count = gather_tables(checkpoint, states);
    for (size_t i = 0; i < count; i++) {
        const struct tide_checkpoint_key none = {0};
        bool has_key = states[i].unfinished_count == 1 && states[i].unfinished->is_begun;
        append_table_start(buf, i == 0, states[i].name);
        tide_checkpoint_key_append(buf, has_key ? &states[i].unfinished->last_pk : &none, false);
        append_table_end(buf, states[i].unfinished_count == 0);
    }
}

void tide_checkpoint_encode(const struct tide_checkpoint *checkpoint,
                            const struct tide_position_kind *kind, struct tide_buf *buf)
{
    bool is_foreign = checkpoint->copy_count == 0 && !checkpoint->has_tidemark;
    tide_buf_append_str(buf, TIDE_STR("{\"reconciliation_pos\":"));
    tide_buf_append_str(buf, checkpoint->position_json);
    tide_buf_append_str(buf, TIDE_STR(",\"tables\":["));
    if (is_foreign) {
        append_foreign_tables(checkpoint, buf);
    } else {
        append_copied_tables(checkpoint, buf);
    }
    tide_buf_append_char(buf, ']');
    if (checkpoint->has_tidemark) {
        tide_buf_append_char(buf, ',');
        tide_checkpoint_ours_append(checkpoint, kind, buf);
    }
    tide_buf_append_char(buf, '}');
}

static tide_status read_table(const struct tide_shape *shape, tide_str raw,
                              struct tide_checkpoint_table *ret_table, struct tide_error *err)
{
    static const struct tide_shape_field fields[] = {
        {.name = "name"}, {.name = "last_pk", .is_optional = true}, {.name = "done"}};
    static const struct tide_shape_form form = {.fields = fields, .count = 3, .sequence_count = 3};
    tide_str values[3];
    struct tide_checkpoint_table table = {.last_pk = TIDE_STR("null")};
    TIDE_TRY(tide_shape_fields(shape, raw, &form, values, err));
    TIDE_TRY(tide_shape_string(shape, values[0], &table.name, err));
    TIDE_TRY(tide_shape_bool(shape, values[2], &table.done, err));
    if (values[1].ptr != NULL) {
        table.last_pk = tide_shape_compact(shape->arena, values[1]);
    }
    *ret_table = table;
    return TIDE_OK;
}

static tide_status read_tables(const struct tide_shape *shape, tide_str raw,
                               struct tide_checkpoint *checkpoint, struct tide_error *err)
{
    tide_str *items = NULL;
    size_t count = 0;
    TIDE_TRY(tide_shape_items(shape, raw, &items, &count, err));
    struct tide_checkpoint_table *tables = tide_arena_alloc(shape->arena, count, sizeof(*tables));
    for (size_t i = 0; i < count; i++) {
        TIDE_TRY(read_table(shape, items[i], &tables[i], err));
    }
    checkpoint->tables = tables;
    checkpoint->table_count = count;
    return TIDE_OK;
}

static tide_status read_whole(const struct tide_shape *shape, tide_str raw,
                              const struct tide_position_kind *kind,
                              struct tide_checkpoint *ret_checkpoint, struct tide_error *err)
{
    static const struct tide_shape_field fields[] = {
        {.name = "reconciliation_pos", .alias = "stream_pos"},
        {.name = "tables"},
        {.name = "tidemark", .is_optional = true}};
    static const struct tide_shape_form form = {.fields = fields, .count = 3, .sequence_count = 2};
    tide_str values[3];
    struct tide_checkpoint checkpoint = {0};
    TIDE_TRY(tide_shape_fields(shape, raw, &form, values, err));
    TIDE_TRY(read_tables(shape, values[1], &checkpoint, err));
    checkpoint.position_json = tide_shape_compact(shape->arena, values[0]);
    if (values[2].ptr != NULL) {
        TIDE_TRY(tide_checkpoint_ours_read(shape, values[2], kind, &checkpoint, err));
        checkpoint.has_tidemark = true;
    }
    *ret_checkpoint = checkpoint;
    return TIDE_OK;
}

tide_status tide_checkpoint_document_begin(tide_str json, struct tide_arena *arena,
                                           struct tide_shape *ret_shape, tide_str *ret_raw,
                                           struct tide_error *err)
{
    struct tide_json_reader reader;
    struct tide_json_token end = {0};
    if (json.len > TIDE_CHECKPOINT_BYTES_MAX) {
        return tide_fail(err, TIDE_CORRUPT, "checkpoint is larger than %zu bytes",
                         TIDE_CHECKPOINT_BYTES_MAX);
    }
    tide_json_reader_init(&reader, json, TIDE_CHECKPOINT_DEPTH_MAX);
    TIDE_TRY(tide_json_skip(&reader, ret_raw, err));
    TIDE_TRY(tide_json_next(&reader, &end, err));
    *ret_shape = (struct tide_shape){.document = json.ptr, .arena = arena};
    return TIDE_OK;
}

tide_status tide_checkpoint_decode(tide_str json, const struct tide_position_kind *kind,
                                   struct tide_arena *arena, struct tide_checkpoint *ret_checkpoint,
                                   struct tide_error *err)
{
    struct tide_shape shape = {0};
    tide_str raw = {0};
    TIDE_TRY(tide_checkpoint_document_begin(json, arena, &shape, &raw, err));
    return read_whole(&shape, raw, kind, ret_checkpoint, err);
}
