/*
 * The forms around a checkpoint. On disk, two spaces a level:
 *
 *     {
 *       "checkpoint_data": "{\"reconciliation_pos\":…}",
 *       "database_type": "interleaved_snapshot",
 *       "phase": "snapshot_progress",
 *       "created_at": "2024-01-02T03:04:05.123456Z"
 *     }
 *
 * In transport: {"database_type":…,"checkpoint":{…},"phase":…,"created_at":…}. On a command line:
 * the compact checkpoint alone.
 */
#include "base/clock.h"
#include "format/checkpoint_private.h"
#include "format/json_writer.h"

#include <string.h>

#define DATABASE_TYPE "interleaved_snapshot"

void tide_checkpoint_file_encode(tide_str compact_json, enum tide_checkpoint_phase phase,
                                 int64_t created_us, struct tide_buf *buf)
{
    char created[40];
    tide_rfc3339_us(created_us, "Z", created);
    tide_buf_append_str(buf, TIDE_STR("{\n  \"checkpoint_data\": "));
    tide_json_append_string(buf, compact_json);
    tide_buf_append_str(buf, TIDE_STR(",\n  \"database_type\": \"" DATABASE_TYPE "\",\n"));
    tide_buf_printf(buf, "  \"phase\": \"%s\",\n  \"created_at\": \"%s\"\n}",
                    tide_checkpoint_phase_name(phase), created);
}

/* The four things that both forms say. */
struct wrapping {
    tide_str database_type;
    tide_str phase;
    tide_str created_at;
};

static tide_status read_created(const struct tide_shape *shape, tide_str raw,
                                int64_t *ret_created_us, struct tide_error *err)
{
    tide_str text = {0};
    TIDE_TRY(tide_shape_string(shape, raw, &text, err));
    char *copy = tide_arena_bytes(shape->arena, text.len);
    for (size_t i = 0; i < text.len; i++) {
        copy[i] = i == 10 && text.ptr[i] == ' ' ? 'T' : text.ptr[i]; /* chrono reads a space */
    }
    if (tide_rfc3339_parse(tide_str_of(copy, text.len), ret_created_us, err) != TIDE_OK) {
        return tide_fail_context(err, "created_at at byte %zu",
                                 (size_t)(raw.ptr - shape->document));
    }
    return TIDE_OK;
}

static tide_status read_wrapping(const struct tide_shape *shape, const struct wrapping *wrapping,
                                 enum tide_checkpoint_phase *ret_phase, int64_t *ret_created_us,
                                 struct tide_error *err)
{
    tide_str type = {0};
    tide_str name = {0};
    TIDE_TRY(tide_shape_string(shape, wrapping->database_type, &type, err));
    if (!tide_str_equal(type, TIDE_STR(DATABASE_TYPE))) {
        return tide_fail(err, TIDE_CORRUPT,
                         "checkpoint is of the type \"%.*s\", not \"" DATABASE_TYPE "\"",
                         type.len < 64 ? (int)type.len : 64, type.ptr);
    }
    TIDE_TRY(tide_shape_string(shape, wrapping->phase, &name, err));
    if (!tide_checkpoint_phase_find(name, ret_phase)) {
        return tide_shape_fail(shape, wrapping->phase, "unknown phase", err);
    }
    return read_created(shape, wrapping->created_at, ret_created_us, err);
}

static tide_status read_file(const struct tide_shape *shape, tide_str raw, tide_str *ret_json,
                             struct wrapping *ret_wrapping, struct tide_error *err)
{
    static const struct tide_shape_field fields[] = {{.name = "checkpoint_data"},
                                                     {.name = "database_type"},
                                                     {.name = "phase"},
                                                     {.name = "created_at"}};
    static const struct tide_shape_form form = {.fields = fields, .count = 4, .sequence_count = 4};
    tide_str values[4];
    struct tide_shape inner = {0};
    tide_str json = {0};
    TIDE_TRY(tide_shape_fields(shape, raw, &form, values, err));
    TIDE_TRY(tide_shape_string(shape, values[0], &json, err));
    if (tide_checkpoint_document_begin(json, shape->arena, &inner, ret_json, err) != TIDE_OK) {
        return tide_fail_context(err, "inside checkpoint_data");
    }
    *ret_wrapping = (struct wrapping){values[1], values[2], values[3]};
    return TIDE_OK;
}

static tide_status read_transport(const struct tide_shape *shape, tide_str raw, tide_str *ret_json,
                                  struct wrapping *ret_wrapping, struct tide_error *err)
{
    static const struct tide_shape_field fields[] = {{.name = "database_type"},
                                                     {.name = "checkpoint"},
                                                     {.name = "phase"},
                                                     {.name = "created_at"}};
    static const struct tide_shape_form form = {.fields = fields, .count = 4, .sequence_count = 4};
    tide_str values[4];
    TIDE_TRY(tide_shape_fields(shape, raw, &form, values, err));
    *ret_json = values[1];
    *ret_wrapping = (struct wrapping){values[0], values[2], values[3]};
    return TIDE_OK;
}

enum form {
    FORM_FILE,
    FORM_TRANSPORT,
    FORM_BARE,
};

/* Told apart by the keys; arrays in their place by their length and first element. */
static tide_status find_form(const struct tide_shape *shape, tide_str raw, enum form *ret_form,
                             struct tide_error *err)
{
    static const struct tide_shape_field fields[] = {
        {.name = "checkpoint_data", .is_optional = true},
        {.name = "checkpoint", .is_optional = true},
        {.name = "database_type", .is_optional = true}};
    static const struct tide_shape_form form = {.fields = fields, .count = 3};
    tide_str values[3];
    if (raw.ptr[0] == '[') {
        tide_str *items = NULL;
        size_t count = 0;
        TIDE_TRY(tide_shape_items(shape, raw, &items, &count, err));
        bool is_transport =
            count == 4 && tide_str_equal(items[0], TIDE_STR("\"" DATABASE_TYPE "\""));
        *ret_form = count != 4 ? FORM_BARE : is_transport ? FORM_TRANSPORT : FORM_FILE;
        return TIDE_OK;
    }
    TIDE_TRY(tide_shape_fields(shape, raw, &form, values, err));
    *ret_form = values[2].ptr == NULL   ? FORM_BARE
                : values[0].ptr != NULL ? FORM_FILE
                : values[1].ptr != NULL ? FORM_TRANSPORT
                                        : FORM_BARE;
    return TIDE_OK;
}

/* A checkpoint alone says neither phase nor time: the phase is made of what is done. */
static tide_status read_bare(tide_str json, struct tide_arena *arena,
                             enum tide_checkpoint_phase *ret_phase, struct tide_error *err)
{
    struct tide_checkpoint checkpoint = {0};
    TIDE_TRY(tide_checkpoint_decode(json, NULL, arena, &checkpoint, err));
    *ret_phase = tide_checkpoint_all_done(&checkpoint) ? TIDE_PHASE_FULL_SYNC_END
                                                       : TIDE_PHASE_SNAPSHOT_PROGRESS;
    return TIDE_OK;
}

tide_status tide_checkpoint_file_decode(tide_str file, struct tide_arena *arena,
                                        tide_str *ret_compact_json,
                                        enum tide_checkpoint_phase *ret_phase,
                                        int64_t *ret_created_us, struct tide_error *err)
{
    struct tide_shape shape = {0};
    struct wrapping wrapping = {0};
    tide_str raw = {0};
    tide_str json = {0};
    enum form form = FORM_BARE;
    enum tide_checkpoint_phase phase = TIDE_PHASE_FULL_SYNC_START;
    int64_t created_us = 0;
    TIDE_TRY(tide_checkpoint_document_begin(file, arena, &shape, &raw, err));
    TIDE_TRY(find_form(&shape, raw, &form, err));
    if (form == FORM_BARE) {
        TIDE_TRY(read_bare(raw, arena, &phase, err));
        json = raw;
    } else {
        TIDE_TRY(form == FORM_FILE ? read_file(&shape, raw, &json, &wrapping, err)
                                   : read_transport(&shape, raw, &json, &wrapping, err));
        TIDE_TRY(read_wrapping(&shape, &wrapping, &phase, &created_us, err));
    }
    *ret_compact_json = tide_shape_compact(arena, json);
    *ret_phase = phase;
    *ret_created_us = created_us;
    return TIDE_OK;
}
