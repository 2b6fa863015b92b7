/* Our own key of a checkpoint, read: checkpoint_ours.c has its layout. */
#include "base/clock.h"
#include "format/checkpoint_private.h"

#include <string.h>

/* No copy is shorter: checked before an array of the much larger structs is reserved. */
#define COPY_BYTES_MIN 64

static tide_status read_u32(const struct tide_shape *shape, tide_str raw, uint32_t *ret_value,
                            struct tide_error *err)
{
    uint64_t value = 0;
    TIDE_TRY(tide_shape_u64(shape, raw, UINT32_MAX, &value, err));
    *ret_value = (uint32_t)value;
    return TIDE_OK;
}

static tide_status read_place(const struct tide_shape *shape, tide_str position, tide_str index,
                              const struct tide_position_kind *kind, struct tide_place *ret_place,
                              struct tide_error *err)
{
    struct tide_place place = {.known = true};
    if (tide_shape_is_null(position)) {
        return TIDE_OK;
    }
    if (index.ptr == NULL) {
        return tide_shape_fail(shape, position, "missing key `index` beside the position", err);
    }
    TIDE_TRY(tide_shape_u64(shape, index, UINT64_MAX, &place.index, err));
    if (kind == NULL) {
        return TIDE_OK;
    }
    if (kind->parse(tide_shape_compact(shape->arena, position), &place.position, err) != TIDE_OK) {
        return tide_fail_context(err, "at byte %zu", (size_t)(position.ptr - shape->document));
    }
    *ret_place = place;
    return TIDE_OK;
}

static tide_status read_stores(const struct tide_shape *shape, tide_str raw,
                               const struct tide_position_kind *kind,
                               struct tide_checkpoint *checkpoint, struct tide_error *err)
{
    static const struct tide_shape_field fields[] = {
        {.name = "store"}, {.name = "position"}, {.name = "index", .is_optional = true}};
    static const struct tide_shape_form form = {.fields = fields, .count = 3};
    tide_str *items = NULL;
    size_t count = 0;
    TIDE_TRY(tide_shape_items(shape, raw, &items, &count, err));
    struct tide_checkpoint_store *stores = tide_arena_alloc(shape->arena, count, sizeof(*stores));
    for (size_t i = 0; i < count; i++) {
        tide_str values[3];
        stores[i] = (struct tide_checkpoint_store){0};
        TIDE_TRY(tide_shape_fields(shape, items[i], &form, values, err));
        TIDE_TRY(tide_shape_string(shape, values[0], &stores[i].store, err));
        TIDE_TRY(read_place(shape, values[1], values[2], kind, &stores[i].place, err));
    }
    checkpoint->stores = stores;
    checkpoint->store_count = count;
    return TIDE_OK;
}

static tide_status read_sinks(const struct tide_shape *shape, tide_str raw,
                              struct tide_checkpoint *checkpoint, struct tide_error *err)
{
    static const struct tide_shape_field fields[] = {{.name = "name"},
                                                     {.name = "seeded"},
                                                     {.name = "detached"},
                                                     {.name = "failed"},
                                                     {.name = "paused", .is_optional = true}};
    static const struct tide_shape_form form = {.fields = fields, .count = 5};
    tide_str *items = NULL;
    size_t count = 0;
    TIDE_TRY(tide_shape_items(shape, raw, &items, &count, err));
    struct tide_checkpoint_sink *sinks = tide_arena_alloc(shape->arena, count, sizeof(*sinks));
    for (size_t i = 0; i < count; i++) {
        tide_str values[5];
        struct tide_checkpoint_sink *sink = &sinks[i];
        *sink = (struct tide_checkpoint_sink){0};
        TIDE_TRY(tide_shape_fields(shape, items[i], &form, values, err));
        TIDE_TRY(tide_shape_string(shape, values[0], &sink->name, err));
        TIDE_TRY(tide_shape_bool(shape, values[1], &sink->is_seeded, err));
        TIDE_TRY(tide_shape_bool(shape, values[2], &sink->is_detached, err));
        TIDE_TRY(
            tide_shape_strings(shape, values[3], &sink->failed_tables, &sink->failed_count, err));
        if (values[4].ptr != NULL) {
            TIDE_TRY(tide_shape_bool(shape, values[4], &sink->is_paused, err));
        }
    }
    checkpoint->sinks = sinks;
    checkpoint->sink_count = count;
    return TIDE_OK;
}

/* The fields of a copy; from COPY_SNAPSHOT_ID on only once it has begun. */
enum {
    COPY_REQUEST,
    COPY_SINKS,
    COPY_TABLE,
    COPY_STORE,
    COPY_KEY,
    COPY_BEGUN,
    COPY_DONE,
    COPY_SNAPSHOT_ID,
    COPY_SNAPSHOT_AT,
    COPY_ATTEMPT,
    COPY_STARTS,
    COPY_NEXT_SEQ,
    COPY_LAST_PK,
    COPY_READ_AGAIN,
    COPY_FIELDS
};

static const struct tide_shape_field copy_fields[COPY_FIELDS] = {
    [COPY_REQUEST] = {.name = "request"},
    [COPY_SINKS] = {.name = "sinks"},
    [COPY_TABLE] = {.name = "table"},
    [COPY_STORE] = {.name = "store"},
    [COPY_KEY] = {.name = "key"},
    [COPY_BEGUN] = {.name = "begun"},
    [COPY_DONE] = {.name = "done"},
    [COPY_SNAPSHOT_ID] = {.name = "snapshot_id", .is_optional = true},
    [COPY_SNAPSHOT_AT] = {.name = "snapshot_at", .is_optional = true},
    [COPY_ATTEMPT] = {.name = "attempt", .is_optional = true},
    [COPY_STARTS] = {.name = "starts", .is_optional = true},
    [COPY_NEXT_SEQ] = {.name = "next_seq", .is_optional = true},
    [COPY_LAST_PK] = {.name = "last_pk", .is_optional = true},
    [COPY_READ_AGAIN] = {.name = "read_again", .is_optional = true},
};

static tide_status read_snapshot_head(const struct tide_shape *shape, const tide_str *values,
                                      struct tide_checkpoint_copy *copy, struct tide_error *err)
{
    tide_str id = {0};
    tide_str at = {0};
    char again[40];
    TIDE_TRY(tide_shape_string(shape, values[COPY_SNAPSHOT_ID], &id, err));
    if (id.len != TIDE_UUID_LEN || memchr(id.ptr, '\0', id.len) != NULL) {
        return tide_shape_fail(shape, values[COPY_SNAPSHOT_ID], "no snapshot id", err);
    }
    TIDE_TRY(tide_shape_string(shape, values[COPY_SNAPSHOT_AT], &at, err));
    TIDE_TRY(tide_rfc3339_parse(at, &copy->snapshot_at_us, err));
    tide_rfc3339_us(copy->snapshot_at_us, "Z", again);
    if (!tide_str_equal(at, tide_str_from(again))) { /* frames say it again to the microsecond */
        return tide_shape_fail(shape, values[COPY_SNAPSHOT_AT], "time in another form", err);
    }
    memcpy(copy->snapshot_id, id.ptr, TIDE_UUID_LEN);
    return TIDE_OK;
}

static tide_status read_starts(const struct tide_shape *shape, const tide_str *values,
                               struct tide_checkpoint_copy *copy, struct tide_error *err)
{
    tide_str *items = NULL;
    size_t count = 0;
    TIDE_TRY(read_u32(shape, values[COPY_ATTEMPT], &copy->attempt, err));
    TIDE_TRY(tide_shape_items(shape, values[COPY_STARTS], &items, &count, err));
    if (count != copy->attempt) {
        return tide_shape_fail(shape, values[COPY_STARTS], "not one start for each attempt", err);
    }
    uint64_t *starts = tide_arena_alloc(shape->arena, count, sizeof(*starts));
    for (size_t i = 0; i < count; i++) {
        TIDE_TRY(tide_shape_u64(shape, items[i], UINT64_MAX, &starts[i], err));
    }
    copy->starts = starts;
    return TIDE_OK;
}

static tide_status read_snapshot(const struct tide_shape *shape, const tide_str *values,
                                 struct tide_checkpoint_copy *copy, struct tide_error *err)
{
    tide_str *items = NULL;
    TIDE_TRY(read_snapshot_head(shape, values, copy, err));
    TIDE_TRY(read_starts(shape, values, copy, err));
    TIDE_TRY(tide_shape_u64(shape, values[COPY_NEXT_SEQ], UINT64_MAX, &copy->next_seq, err));
    TIDE_TRY(tide_checkpoint_key_read(shape, values[COPY_LAST_PK], true, &copy->last_pk, err));
    TIDE_TRY(
        tide_shape_items(shape, values[COPY_READ_AGAIN], &items, &copy->read_again_count, err));
    copy->read_again =
        tide_arena_alloc(shape->arena, copy->read_again_count, sizeof(*copy->read_again));
    for (size_t i = 0; i < copy->read_again_count; i++) {
        TIDE_TRY(tide_checkpoint_key_read(shape, items[i], true, &copy->read_again[i], err));
    }
    return TIDE_OK;
}

static tide_status read_copy(const struct tide_shape *shape, tide_str raw,
                             struct tide_checkpoint_copy *copy, struct tide_error *err)
{
    static const struct tide_shape_form form = {.fields = copy_fields, .count = COPY_FIELDS};
    tide_str values[COPY_FIELDS];
    TIDE_TRY(tide_shape_fields(shape, raw, &form, values, err));
    TIDE_TRY(tide_shape_u64(shape, values[COPY_REQUEST], UINT64_MAX, &copy->request_id, err));
    TIDE_TRY(tide_shape_strings(shape, values[COPY_SINKS], &copy->sinks, &copy->sink_count, err));
    TIDE_TRY(tide_shape_string(shape, values[COPY_TABLE], &copy->table, err));
    TIDE_TRY(tide_shape_string(shape, values[COPY_STORE], &copy->store, err));
    TIDE_TRY(tide_shape_strings(shape, values[COPY_KEY], &copy->key_columns,
                                &copy->key_column_count, err));
    TIDE_TRY(tide_shape_bool(shape, values[COPY_BEGUN], &copy->is_begun, err));
    TIDE_TRY(tide_shape_bool(shape, values[COPY_DONE], &copy->is_done, err));
    if (!copy->is_begun) {
        return TIDE_OK;
    }
    for (size_t i = COPY_SNAPSHOT_ID; i < COPY_FIELDS; i++) {
        if (values[i].ptr == NULL) {
            return tide_fail(err, TIDE_CORRUPT, "missing key `%s` in the copy at byte %zu",
                             copy_fields[i].name, (size_t)(raw.ptr - shape->document));
        }
    }
    return read_snapshot(shape, values, copy, err);
}

static tide_status read_copies(const struct tide_shape *shape, tide_str raw,
                               struct tide_checkpoint *checkpoint, struct tide_error *err)
{
    tide_str *items = NULL;
    size_t count = 0;
    TIDE_TRY(tide_shape_items(shape, raw, &items, &count, err));
    if (count > raw.len / COPY_BYTES_MIN) {
        return tide_shape_fail(shape, raw, "copies without their keys", err);
    }
    struct tide_checkpoint_copy *copies = tide_arena_alloc(shape->arena, count, sizeof(*copies));
    for (size_t i = 0; i < count; i++) {
        copies[i] = (struct tide_checkpoint_copy){0};
        TIDE_TRY(read_copy(shape, items[i], &copies[i], err));
    }
    checkpoint->copies = copies;
    checkpoint->copy_count = count;
    return TIDE_OK;
}

static tide_status read_requests(const struct tide_shape *shape, tide_str raw,
                                 struct tide_checkpoint *checkpoint, struct tide_error *err)
{
    static const struct tide_shape_field fields[] = {
        {.name = "id"}, {.name = "sink"}, {.name = "tables"}};
    static const struct tide_shape_form form = {.fields = fields, .count = 3};
    tide_str *items = NULL;
    size_t count = 0;
    TIDE_TRY(tide_shape_items(shape, raw, &items, &count, err));
    struct tide_checkpoint_request *requests =
        tide_arena_alloc(shape->arena, count, sizeof(*requests));
    for (size_t i = 0; i < count; i++) {
        tide_str values[3];
        requests[i] = (struct tide_checkpoint_request){0};
        TIDE_TRY(tide_shape_fields(shape, items[i], &form, values, err));
        TIDE_TRY(tide_shape_u64(shape, values[0], UINT64_MAX, &requests[i].id, err));
        TIDE_TRY(tide_shape_string(shape, values[1], &requests[i].sink, err));
        TIDE_TRY(tide_shape_strings(shape, values[2], &requests[i].tables, &requests[i].table_count,
                                    err));
    }
    checkpoint->requests = requests;
    checkpoint->request_count = count;
    return TIDE_OK;
}

/* The fields of the key. */
enum {
    OURS_VERSION,
    OURS_SEQUENCE,
    OURS_PIPELINE,
    OURS_SOURCE,
    OURS_SOURCE_STATE,
    OURS_INCARNATION,
    OURS_CREATING,
    OURS_CLOSED,
    OURS_STORES,
    OURS_SINKS,
    OURS_COPIES,
    OURS_REQUESTS,
    OURS_FIELDS
};

static const struct tide_shape_field ours_fields[OURS_FIELDS] = {
    [OURS_VERSION] = {.name = "version"},
    [OURS_SEQUENCE] = {.name = "sequence"},
    [OURS_PIPELINE] = {.name = "pipeline"},
    [OURS_SOURCE] = {.name = "source"},
    [OURS_SOURCE_STATE] = {.name = "source_state"},
    [OURS_INCARNATION] = {.name = "incarnation"},
    [OURS_CREATING] = {.name = "creating"},
    [OURS_CLOSED] = {.name = "closed"},
    [OURS_STORES] = {.name = "stores"},
    [OURS_SINKS] = {.name = "sinks"},
    [OURS_COPIES] = {.name = "copies"},
    [OURS_REQUESTS] = {.name = "requests"},
};

static tide_status read_head(const struct tide_shape *shape, const tide_str *values,
                             struct tide_checkpoint *checkpoint, struct tide_error *err)
{
    uint64_t version = 0;
    TIDE_TRY(tide_shape_u64(shape, values[OURS_VERSION], UINT64_MAX, &version, err));
    if (version != TIDE_CHECKPOINT_VERSION) {
        return tide_fail(err, TIDE_UNSUPPORTED,
                         "checkpoint is of version %llu, this program reads version %d: use the "
                         "program that wrote it, or a newer one",
                         (unsigned long long)version, TIDE_CHECKPOINT_VERSION);
    }
    TIDE_TRY(tide_shape_u64(shape, values[OURS_SEQUENCE], INT64_MAX, &checkpoint->sequence, err));
    TIDE_TRY(tide_shape_string(shape, values[OURS_PIPELINE], &checkpoint->pipeline, err));
    checkpoint->identity_json = tide_shape_compact(shape->arena, values[OURS_SOURCE]);
    checkpoint->source_state_json = tide_shape_compact(shape->arena, values[OURS_SOURCE_STATE]);
    TIDE_TRY(read_u32(shape, values[OURS_INCARNATION], &checkpoint->incarnation, err));
    TIDE_TRY(tide_shape_bool(shape, values[OURS_CREATING], &checkpoint->is_creating, err));
    return tide_shape_bool(shape, values[OURS_CLOSED], &checkpoint->is_closed, err);
}

tide_status tide_checkpoint_ours_read(const struct tide_shape *shape, tide_str raw,
                                      const struct tide_position_kind *kind,
                                      struct tide_checkpoint *checkpoint, struct tide_error *err)
{
    static const struct tide_shape_form form = {.fields = ours_fields, .count = OURS_FIELDS};
    tide_str values[OURS_FIELDS];
    TIDE_TRY(tide_shape_fields(shape, raw, &form, values, err));
    TIDE_TRY(read_head(shape, values, checkpoint, err));
    TIDE_TRY(read_stores(shape, values[OURS_STORES], kind, checkpoint, err));
    TIDE_TRY(read_sinks(shape, values[OURS_SINKS], checkpoint, err));
    TIDE_TRY(read_copies(shape, values[OURS_COPIES], checkpoint, err));
    return read_requests(shape, values[OURS_REQUESTS], checkpoint, err);
}
