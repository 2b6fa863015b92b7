#include "app/state/checkpoint_print.h"

#include "app/safe_text.h"
#include "base/clock.h"
#include "format/json_writer.h"

#include <inttypes.h>

static void append_bytes(struct tide_buf *buf, tide_str bytes)
{
    tide_buf_append_str(buf, TIDE_STR("x'"));
    for (size_t i = 0; i < bytes.len; i++) {
        tide_buf_printf(buf, "%02x", (unsigned char)bytes.ptr[i]);
    }
    tide_buf_append_char(buf, '\'');
}

static void append_quoted(struct tide_buf *buf, tide_str text)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf quoted = {0};
    tide_json_append_string(&quoted, text);
    tide_append_safe(buf, tide_buf_str(&quoted));
}

static void append_value(struct tide_buf *buf, struct tide_value value)
{
    tide_str text = tide_value_str(value);
    switch ((enum tide_value_kind)value.kind) {
    case TIDE_VALUE_TEXT:
        append_quoted(buf, text);
        break;
    case TIDE_VALUE_BYTES:
    case TIDE_VALUE_RAW_TEXT:
        append_bytes(buf, text);
        break;
    case TIDE_VALUE_NULL:
    case TIDE_VALUE_UNCHANGED:
    case TIDE_VALUE_ABSENT:
        tide_buf_append_str(buf, TIDE_STR("null"));
        break;
    case TIDE_VALUE_BOOL:
    case TIDE_VALUE_INTEGER:
    case TIDE_VALUE_DECIMAL:
    case TIDE_VALUE_REAL:
    case TIDE_VALUE_JSON:
        tide_append_safe(buf, text);
        break;
    }
}

static void append_key(struct tide_buf *buf, const struct tide_checkpoint_key *key)
{
    for (size_t i = 0; i < key->count; i++) {
        tide_buf_append_str(buf, i == 0 ? TIDE_STR("(") : TIDE_STR(", "));
        append_value(buf, key->values[i]);
    }
    tide_buf_append_char(buf, ')');
}

static void append_list(struct tide_buf *buf, const tide_str *texts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        tide_buf_append_str(buf, i == 0 ? TIDE_STR("") : TIDE_STR(", "));
        tide_append_safe(buf, texts[i]);
    }
}

static void append_time(struct tide_buf *buf, int64_t utc_us)
{
    char time[40];
    tide_rfc3339_us(utc_us, "Z", time);
    tide_buf_append_str(buf, tide_str_from(time));
}

static void line(struct tide_buf *buf, const char *name, tide_str text)
{
    tide_buf_printf(buf, "%-12s ", name);
    tide_append_safe(buf, text);
    tide_buf_append_char(buf, '\n');
}

static void append_head(struct tide_buf *buf, const struct tide_checkpoint_shown *shown)
{
    const struct tide_checkpoint *checkpoint = shown->checkpoint;
    line(buf, "checkpoint", shown->file);
    line(buf, "position", checkpoint->position_json);
    line(buf, "phase", tide_str_from(tide_checkpoint_phase_name(shown->phase)));
    tide_buf_printf(buf, "%-12s ", "created");
    if (shown->created_us == 0) {
        tide_buf_append_str(buf, TIDE_STR("not said"));
    } else {
        append_time(buf, shown->created_us);
    }
    tide_buf_append_char(buf, '\n');
}

static void append_ours(struct tide_buf *buf, const struct tide_checkpoint *checkpoint)
{
    tide_buf_printf(buf, "%-12s %" PRIu64 "\n", "sequence", checkpoint->sequence);
    line(buf, "pipeline", checkpoint->pipeline);
    line(buf, "source", checkpoint->identity_json);
    if (checkpoint->incarnation > 0) {
        tide_buf_printf(buf, "%-12s %" PRIu32 "\n", "incarnation", checkpoint->incarnation);
    }
    if (checkpoint->is_creating) {
        line(buf, "state",
             TIDE_STR("being made: what belongs to it in the source may be half made"));
    } else if (checkpoint->is_closed) {
        line(buf, "state", TIDE_STR("closed: the next run starts anew"));
    }
}

/* The last key as others read it; what is no key is shown as it is. */
static void append_last_key(struct tide_buf *buf, tide_str last_pk, struct tide_arena *arena)
{
    struct tide_error ignored;
    struct tide_checkpoint_key key = {0};
    if (tide_str_equal(last_pk, TIDE_STR("null"))) {
        tide_buf_append_str(buf, TIDE_STR("nothing copied yet"));
        return;
    }
    tide_buf_append_str(buf, TIDE_STR("copied up to "));
    if (tide_checkpoint_key_decode(last_pk, arena, &key, &ignored) == TIDE_OK && key.count > 0) {
        append_key(buf, &key);
    } else {
        tide_append_safe(buf, last_pk);
    }
}

static void append_tables(struct tide_buf *buf, const struct tide_checkpoint *checkpoint,
                          struct tide_arena *arena)
{
    size_t done = 0;
    for (size_t i = 0; i < checkpoint->table_count; i++) {
        done += checkpoint->tables[i].done;
    }
    tide_buf_printf(buf, "%-12s %zu, %zu done\n", "tables", checkpoint->table_count, done);
    for (size_t i = 0; i < checkpoint->table_count; i++) {
        const struct tide_checkpoint_table *table = &checkpoint->tables[i];
        tide_buf_append_str(buf, TIDE_STR("  "));
        tide_append_safe(buf, table->name);
        tide_buf_append_str(buf, TIDE_STR(": "));
        if (table->done) {
            tide_buf_append_str(buf, TIDE_STR("done"));
        } else {
            append_last_key(buf, table->last_pk, arena);
        }
        tide_buf_append_char(buf, '\n');
    }
}

static void append_copy(struct tide_buf *buf, const struct tide_checkpoint_copy *copy)
{
    tide_buf_append_str(buf, TIDE_STR("  "));
    tide_append_safe(buf, copy->table);
    tide_buf_append_str(buf, TIDE_STR(" for "));
    append_list(buf, copy->sinks, copy->sink_count);
    tide_buf_printf(buf, ": request %" PRIu64, copy->request_id);
    if (!copy->is_begun) {
        tide_buf_append_str(buf, TIDE_STR(", not begun\n"));
        return;
    }
    tide_buf_printf(buf, ", snapshot %s of ", copy->snapshot_id);
    append_time(buf, copy->snapshot_at_us);
    tide_buf_printf(buf, ", attempt %" PRIu32 ", %" PRIu64 " rows", copy->attempt, copy->next_seq);
    if (copy->is_done) {
        tide_buf_append_str(buf, TIDE_STR(", done"));
    } else if (copy->last_pk.count > 0) {
        tide_buf_append_str(buf, TIDE_STR(", last key "));
        append_key(buf, &copy->last_pk);
    }
    if (copy->read_again_count > 0) {
        tide_buf_printf(buf, ", %zu keys to read again", copy->read_again_count);
    }
    tide_buf_append_char(buf, '\n');
}

static void append_copies(struct tide_buf *buf, const struct tide_checkpoint *checkpoint)
{
    tide_buf_printf(buf, "%-12s %zu\n", "copies", checkpoint->copy_count);
    for (size_t i = 0; i < checkpoint->copy_count; i++) {
        append_copy(buf, &checkpoint->copies[i]);
    }
}

static void append_sinks(struct tide_buf *buf, const struct tide_checkpoint *checkpoint)
{
    tide_buf_printf(buf, "%-12s %zu\n", "sinks", checkpoint->sink_count);
    for (size_t i = 0; i < checkpoint->sink_count; i++) {
        const struct tide_checkpoint_sink *sink = &checkpoint->sinks[i];
        tide_buf_append_str(buf, TIDE_STR("  "));
        tide_append_safe(buf, sink->name);
        tide_buf_append_str(buf, sink->is_seeded ? TIDE_STR(": seeded") : TIDE_STR(": not seeded"));
        tide_buf_append_str(buf, sink->is_detached ? TIDE_STR(", detached") : TIDE_STR(""));
        tide_buf_append_str(buf, sink->is_paused ? TIDE_STR(", paused") : TIDE_STR(""));
        if (sink->failed_count > 0) {
            tide_buf_append_str(buf, TIDE_STR(", failed tables: "));
            append_list(buf, sink->failed_tables, sink->failed_count);
        }
        tide_buf_append_char(buf, '\n');
    }
}

static void append_requests(struct tide_buf *buf, const struct tide_checkpoint *checkpoint)
{
    if (checkpoint->request_count == 0) {
        return;
    }
    tide_buf_printf(buf, "%-12s %zu open\n", "requests", checkpoint->request_count);
    for (size_t i = 0; i < checkpoint->request_count; i++) {
        const struct tide_checkpoint_request *request = &checkpoint->requests[i];
        tide_buf_printf(buf, "  %" PRIu64 " for ", request->id);
        tide_append_safe(buf, request->sink);
        tide_buf_append_str(buf, TIDE_STR(": "));
        append_list(buf, request->tables, request->table_count);
        tide_buf_append_char(buf, '\n');
    }
}

void tide_checkpoint_print(struct tide_buf *buf, const struct tide_checkpoint_shown *shown,
                           struct tide_arena *arena)
{
    append_head(buf, shown);
    if (shown->checkpoint->has_tidemark) {
        append_ours(buf, shown->checkpoint);
    }
    append_tables(buf, shown->checkpoint, arena);
    if (shown->checkpoint->has_tidemark) {
        append_copies(buf, shown->checkpoint);
        append_sinks(buf, shown->checkpoint);
        append_requests(buf, shown->checkpoint);
    }
}
