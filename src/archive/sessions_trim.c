#include "archive/sessions_trim.h"

#include "base/limits.h"
#include "format/json_reader.h"

#include <string.h>

#define DEPTH        16
#define EVENT_PREFIX "writer_session:"

/* The items of an array as they are written, and the array in the text that it stands in. */
struct items {
    tide_str array;
    tide_str *raw;
    bool *is_dropped;
    size_t count;
};

static tide_status read_items(tide_str array, struct tide_arena *arena, struct items *items,
                              struct tide_error *err)
{
    struct tide_json_reader reader;
    struct tide_json_token token = {0};
    *items = (struct items){.array = array};
    tide_json_reader_init(&reader, array, DEPTH);
    TIDE_TRY(tide_json_expect(&reader, TIDE_JSON_ARRAY_BEGIN, &token, err));
    for (;; items->count++) {
        TIDE_TRY(tide_json_next(&reader, &token, err));
        if (token.type == TIDE_JSON_ARRAY_END) {
            break;
        }
        items->raw = tide_arena_grow(arena, items->raw, items->count, sizeof(*items->raw));
        TIDE_TRY(tide_json_skip_rest(&reader, &token, &items->raw[items->count], err));
    }
    items->is_dropped = tide_arena_alloc(arena, items->count + 1, sizeof(*items->is_dropped));
    memset(items->is_dropped, 0, items->count + 1);
    return tide_json_expect(&reader, TIDE_JSON_END, &token, err);
}

/* The whole of `json`, which the array is a part of, without what was dropped. */
static void write_items(tide_str json, const struct items *items, struct tide_buf *buf)
{
    size_t before = (size_t)(items->array.ptr - json.ptr);
    size_t behind = before + items->array.len;
    bool is_first = true;
    tide_buf_append(buf, json.ptr, before);
    tide_buf_append_char(buf, '[');
    for (size_t i = 0; i < items->count; i++) {
        if (!items->is_dropped[i]) {
            tide_buf_append_str(buf, is_first ? TIDE_STR("") : TIDE_STR(","));
            tide_buf_append_str(buf, items->raw[i]);
            is_first = false;
        }
    }
    tide_buf_append_char(buf, ']');
    tide_buf_append(buf, json.ptr + behind, json.len - behind);
}

/* The program's name, before the version. */
static tide_str program_of(tide_str writer)
{
    const char *space = writer.len == 0 ? NULL : memchr(writer.ptr, ' ', writer.len);
    return space == NULL ? writer : tide_str_of(writer.ptr, (size_t)(space - writer.ptr));
}

static bool is_ours(const struct tide_archive_session *session,
                    const struct tide_archive_session *next)
{
    return tide_str_equal(program_of(session->writer), program_of(next->writer));
}

/* Nothing was written by it. */
static bool is_idle(const struct tide_archive_session *session,
                    const struct tide_archive_session *next)
{
    return session->is_resumed && next->is_resumed && is_ours(session, next) &&
           session->has_resumed_after == next->has_resumed_after &&
           session->resumed_after_ts == next->resumed_after_ts;
}

static void drop(struct items *items, size_t i, const struct tide_archive_session *sessions,
                 struct tide_arena *arena, struct tide_archive_gone *gone)
{
    items->is_dropped[i] = true;
    gone->sessions = tide_arena_grow(arena, gone->sessions, gone->count, sizeof(*gone->sessions));
    gone->sessions[gone->count++] = sessions[i].session;
}

tide_status tide_archive_sessions_trim(tide_str json, const struct tide_archive_session *next,
                                       struct tide_arena *arena, struct tide_archive_gone *ret_gone,
                                       struct tide_buf *buf, struct tide_error *err)
{
    struct tide_archive_gone gone = {0};
    struct tide_archive_session *sessions = NULL;
    struct items items;
    size_t count = 0;
    TIDE_TRY(tide_archive_sessions_read(json, arena, &sessions, &count, err));
    TIDE_TRY(read_items(json, arena, &items, err));
    TIDE_ASSERT(items.count == count);
    if (count > 0 && is_idle(&sessions[count - 1], next)) {
        drop(&items, count - 1, sessions, arena, &gone);
    }
    for (size_t i = 1; i + 1 < count && count - gone.count >= TIDE_ARCHIVE_SESSIONS_MAX; i++) {
        if (is_ours(&sessions[i], next)) {
            drop(&items, i, sessions, arena, &gone);
        }
    }
    write_items(json, &items, buf);
    *ret_gone = gone;
    return TIDE_OK;
}

/* The array under "events"; ptr NULL without one. */
static tide_status find_events(tide_str json, tide_str *ret_array, struct tide_error *err)
{
    struct tide_json_reader reader;
    struct tide_json_token token = {0};
    tide_json_reader_init(&reader, json, DEPTH);
    TIDE_TRY(tide_json_expect(&reader, TIDE_JSON_OBJECT_BEGIN, &token, err));
    TIDE_TRY(tide_json_next(&reader, &token, err));
    while (token.type == TIDE_JSON_KEY) {
        tide_str value = {0};
        bool is_it = !token.has_escapes && tide_str_equal(token.text, TIDE_STR("events"));
        TIDE_TRY(tide_json_skip(&reader, &value, err));
        *ret_array = is_it ? value : *ret_array;
        TIDE_TRY(tide_json_next(&reader, &token, err));
    }
    return tide_json_expect(&reader, TIDE_JSON_END, &token, err);
}

/* The event's id, as it is written; empty where it has none that is plain. */
static tide_str id_of(tide_str event)
{
    struct tide_json_reader reader;
    struct tide_json_token token = {0};
    struct tide_error ignored;
    tide_json_reader_init(&reader, event, DEPTH);
    tide_status status = tide_json_expect(&reader, TIDE_JSON_OBJECT_BEGIN, &token, &ignored);
    while (status == TIDE_OK && tide_json_next(&reader, &token, &ignored) == TIDE_OK &&
           token.type == TIDE_JSON_KEY) {
        tide_str value = {0};
        bool is_id = tide_str_equal(token.text, TIDE_STR("id"));
        status = tide_json_skip(&reader, &value, &ignored);
        if (status == TIDE_OK && is_id && value.len > 1 && value.ptr[0] == '"') {
            return tide_str_of(value.ptr + 1, value.len - 2);
        }
    }
    return TIDE_STR("");
}

static bool is_gone(tide_str id, const struct tide_archive_gone *gone)
{
    if (!tide_str_starts_with(id, TIDE_STR(EVENT_PREFIX))) {
        return false;
    }
    size_t lead = sizeof(EVENT_PREFIX) - 1;
    tide_str session = tide_str_of(id.ptr + lead, id.len - lead);
    for (size_t i = 0; i < gone->count; i++) {
        if (tide_str_equal(gone->sessions[i], session)) {
            return true;
        }
    }
    return false;
}

tide_status tide_archive_events_trim(tide_str json, const struct tide_archive_gone *gone,
                                     struct tide_arena *arena, struct tide_buf *buf,
                                     struct tide_error *err)
{
    tide_str array = {NULL, 0};
    struct items items;
    TIDE_TRY(find_events(json, &array, err));
    if (array.ptr == NULL) {
        tide_buf_append_str(buf, json);
        return TIDE_OK;
    }
    TIDE_TRY(read_items(array, arena, &items, err));
    for (size_t i = 0; i < items.count; i++) {
        items.is_dropped[i] = is_gone(id_of(items.raw[i]), gone);
    }
    write_items(json, &items, buf);
    return TIDE_OK;
}
