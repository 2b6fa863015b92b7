/*
 * Our own key of a checkpoint, written (checkpoint_ours_read.c reads it). Every key is there, in
 * this order; `snapshot_id` and what follows in a copy only once it has begun.
 *
 *     "tidemark":{"version":1,"sequence":7,"pipeline":"shop","source":<identity>,
 *      "source_state":<JSON>,"incarnation":0,"creating":false,"closed":false,
 *      "stores":[{"store":"shop.users","position":<JSON>,"index":0},{"store":…,"position":null}],
 *      "sinks":[{"name":"copy","seeded":true,"detached":false,"failed":["notes"]}],
 *      "copies":[{"request":1,"sinks":["copy"],"table":"users","store":"shop.users","key":["id"],
 *        "begun":true,"done":false,"snapshot_id":"…","snapshot_at":"…Z","attempt":1,"starts":[40],
 *        "next_seq":52,"last_pk":[…],"read_again":[[…],…]}],
 *      "requests":[{"id":1,"sink":"copy","tables":["users"]}]}
 */
#include "base/clock.h"
#include "format/checkpoint_private.h"
#include "format/json_writer.h"

static void append_strings(struct tide_buf *buf, const tide_str *texts, size_t count)
{
    tide_buf_append_char(buf, '[');
    for (size_t i = 0; i < count; i++) {
        if (i > 0) {
            tide_buf_append_char(buf, ',');
        }
        tide_json_append_string(buf, texts[i]);
    }
    tide_buf_append_char(buf, ']');
}

/* `,"name":` and the value; the comma is left out right behind a bracket. */
static void append_key(struct tide_buf *buf, const char *name)
{
    if (buf->len > 0 && buf->ptr[buf->len - 1] != '{' && buf->ptr[buf->len - 1] != '[') {
        tide_buf_append_char(buf, ',');
    }
    tide_json_append_key(buf, tide_str_from(name));
}

static void append_string(struct tide_buf *buf, const char *name, tide_str text)
{
    append_key(buf, name);
    tide_json_append_string(buf, text);
}

static void append_u64(struct tide_buf *buf, const char *name, uint64_t value)
{
    append_key(buf, name);
    tide_buf_append_u64(buf, value);
}

static void append_bool(struct tide_buf *buf, const char *name, bool value)
{
    append_key(buf, name);
    tide_buf_append_str(buf, value ? TIDE_STR("true") : TIDE_STR("false"));
}

static void append_json(struct tide_buf *buf, const char *name, tide_str json)
{
    append_key(buf, name);
    tide_buf_append_str(buf, json.len == 0 ? TIDE_STR("null") : json);
}

static void begin_object(struct tide_buf *buf, size_t index)
{
    tide_buf_append_str(buf, index == 0 ? TIDE_STR("{") : TIDE_STR(",{"));
}

static void append_stores(struct tide_buf *buf, const struct tide_checkpoint *checkpoint,
                          const struct tide_position_kind *kind)
{
    append_key(buf, "stores");
    tide_buf_append_char(buf, '[');
    for (size_t i = 0; i < checkpoint->store_count; i++) {
        const struct tide_checkpoint_store *store = &checkpoint->stores[i];
        begin_object(buf, i);
        append_string(buf, "store", store->store);
        append_key(buf, "position");
        if (store->place.known) {
            TIDE_ASSERT(kind != NULL);
            kind->write(store->place.position, buf);
            append_u64(buf, "index", store->place.index);
        } else {
            tide_buf_append_str(buf, TIDE_STR("null"));
        }
        tide_buf_append_char(buf, '}');
    }
    tide_buf_append_char(buf, ']');
}

static void append_sinks(struct tide_buf *buf, const struct tide_checkpoint *checkpoint)
{
    append_key(buf, "sinks");
    tide_buf_append_char(buf, '[');
    for (size_t i = 0; i < checkpoint->sink_count; i++) {
        const struct tide_checkpoint_sink *sink = &checkpoint->sinks[i];
        begin_object(buf, i);
        append_string(buf, "name", sink->name);
        append_bool(buf, "seeded", sink->is_seeded);
        append_bool(buf, "detached", sink->is_detached);
        if (sink->is_paused) {
            append_bool(buf, "paused", true);
        }
        append_key(buf, "failed");
        append_strings(buf, sink->failed_tables, sink->failed_count);
        tide_buf_append_char(buf, '}');
    }
    tide_buf_append_char(buf, ']');
}

static void append_snapshot(struct tide_buf *buf, const struct tide_checkpoint_copy *copy)
{
    char at[40];
    tide_rfc3339_us(copy->snapshot_at_us, "Z", at);
    append_string(buf, "snapshot_id", tide_str_from(copy->snapshot_id));
    append_string(buf, "snapshot_at", tide_str_from(at));
    append_u64(buf, "attempt", copy->attempt);
    append_key(buf, "starts");
    tide_buf_append_char(buf, '[');
    for (uint32_t i = 0; i < copy->attempt; i++) {
        if (i > 0) {
            tide_buf_append_char(buf, ',');
        }
        tide_buf_append_u64(buf, copy->starts[i]);
    }
    tide_buf_append_char(buf, ']');
    append_u64(buf, "next_seq", copy->next_seq);
    append_key(buf, "last_pk");
    tide_checkpoint_key_append(buf, &copy->last_pk, true);
    append_key(buf, "read_again");
    tide_buf_append_char(buf, '[');
    for (size_t i = 0; i < copy->read_again_count; i++) {
        if (i > 0) {
            tide_buf_append_char(buf, ',');
        }
        tide_checkpoint_key_append(buf, &copy->read_again[i], true);
    }
    tide_buf_append_char(buf, ']');
}

static void append_copies(struct tide_buf *buf, const struct tide_checkpoint *checkpoint)
{
    append_key(buf, "copies");
    tide_buf_append_char(buf, '[');
    for (size_t i = 0; i < checkpoint->copy_count; i++) {
        const struct tide_checkpoint_copy *copy = &checkpoint->copies[i];
        begin_object(buf, i);
        append_u64(buf, "request", copy->request_id);
        append_key(buf, "sinks");
        append_strings(buf, copy->sinks, copy->sink_count);
        append_string(buf, "table", copy->table);
        append_string(buf, "store", copy->store);
        append_key(buf, "key");
        append_strings(buf, copy->key_columns, copy->key_column_count);
        append_bool(buf, "begun", copy->is_begun);
        append_bool(buf, "done", copy->is_done);
        if (copy->is_begun) {
            append_snapshot(buf, copy);
        }
        tide_buf_append_char(buf, '}');
    }
    tide_buf_append_char(buf, ']');
}

static void append_requests(struct tide_buf *buf, const struct tide_checkpoint *checkpoint)
{
    append_key(buf, "requests");
    tide_buf_append_char(buf, '[');
    for (size_t i = 0; i < checkpoint->request_count; i++) {
        const struct tide_checkpoint_request *request = &checkpoint->requests[i];
        begin_object(buf, i);
        append_u64(buf, "id", request->id);
        append_string(buf, "sink", request->sink);
        append_key(buf, "tables");
        append_strings(buf, request->tables, request->table_count);
        tide_buf_append_char(buf, '}');
    }
    tide_buf_append_char(buf, ']');
}

void tide_checkpoint_ours_append(const struct tide_checkpoint *checkpoint,
                                 const struct tide_position_kind *kind, struct tide_buf *buf)
{
    tide_buf_append_str(buf, TIDE_STR("\"tidemark\":{"));
    append_u64(buf, "version", TIDE_CHECKPOINT_VERSION);
    append_u64(buf, "sequence", checkpoint->sequence);
    append_string(buf, "pipeline", checkpoint->pipeline);
    append_json(buf, "source", checkpoint->identity_json);
    append_json(buf, "source_state", checkpoint->source_state_json);
    append_u64(buf, "incarnation", checkpoint->incarnation);
    append_bool(buf, "creating", checkpoint->is_creating);
    append_bool(buf, "closed", checkpoint->is_closed);
    append_stores(buf, checkpoint, kind);
    append_sinks(buf, checkpoint);
    append_copies(buf, checkpoint);
    append_requests(buf, checkpoint);
    tide_buf_append_char(buf, '}');
}
