#include "archive/sessions.h"

#include "format/json_reader.h"
#include "format/json_writer.h"

#define DEPTH 16

static tide_status read_resumed_after(struct tide_json_reader *reader,
                                      struct tide_archive_session *session, struct tide_error *err)
{
    struct tide_json_token token = {0};
    TIDE_TRY(tide_json_next(reader, &token, err));
    session->is_resumed = true;
    session->has_resumed_after = token.type != TIDE_JSON_NULL;
    if (session->has_resumed_after && (token.type != TIDE_JSON_NUMBER ||
                                       !tide_str_to_i64(token.text, &session->resumed_after_ts))) {
        return tide_fail(err, TIDE_CORRUPT,
                         "resumed_after_ts is neither a 64-bit integer nor null");
    }
    return TIDE_OK;
}

static tide_status read_field(struct tide_json_reader *reader, tide_str key,
                              struct tide_arena *arena, struct tide_archive_session *session,
                              struct tide_error *err)
{
    tide_str ignored = {0};
    if (tide_str_equal(key, TIDE_STR("session"))) {
        return tide_json_expect_string(reader, arena, &session->session, err);
    }
    if (tide_str_equal(key, TIDE_STR("dendro"))) {
        return tide_json_expect_string(reader, arena, &session->writer, err);
    }
    if (tide_str_equal(key, TIDE_STR("clock_anchor_wall_ns"))) {
        return tide_json_expect_i64(reader, &session->clock_anchor_wall_ns, err);
    }
    if (tide_str_equal(key, TIDE_STR("resumed_after_ts"))) {
        return read_resumed_after(reader, session, err);
    }
    return tide_json_skip(reader, &ignored, err);
}

/* Behind the `{`. */
static tide_status read_session(struct tide_json_reader *reader, struct tide_arena *arena,
                                struct tide_archive_session *session, struct tide_error *err)
{
    struct tide_json_token token = {0};
    *session = (struct tide_archive_session){0};
    for (;;) {
        TIDE_TRY(tide_json_next(reader, &token, err));
        if (token.type == TIDE_JSON_OBJECT_END) {
            return TIDE_OK;
        }
        TIDE_TRY(read_field(reader, tide_json_unescape(&token, arena), arena, session, err));
    }
}

static tide_status fail_form(const char *what, const char *wanted, struct tide_error *err)
{
    return tide_fail(err, TIDE_CORRUPT, "%s is not %s", what, wanted);
}

tide_status tide_archive_sessions_read(tide_str json, struct tide_arena *arena,
                                       struct tide_archive_session **ret_sessions,
                                       size_t *ret_count, struct tide_error *err)
{
    struct tide_json_reader reader;
    struct tide_json_token token = {0};
    struct tide_archive_session *sessions = NULL;
    size_t count = 0;
    tide_json_reader_init(&reader, json, DEPTH);
    TIDE_TRY(tide_json_expect(&reader, TIDE_JSON_ARRAY_BEGIN, &token, err));
    for (;; count++) {
        TIDE_TRY(tide_json_next(&reader, &token, err));
        if (token.type == TIDE_JSON_ARRAY_END) {
            break;
        }
        if (token.type != TIDE_JSON_OBJECT_BEGIN) {
            return fail_form("writer_sessions", "an array of objects", err);
        }
        sessions = tide_arena_grow(arena, sessions, count, sizeof(*sessions));
        TIDE_TRY(read_session(&reader, arena, &sessions[count], err));
    }
    TIDE_TRY(tide_json_expect(&reader, TIDE_JSON_END, &token, err));
    *ret_sessions = sessions;
    *ret_count = count;
    return TIDE_OK;
}

/*
 * Finds where an array ends: `ret_end` is the place of its `]` in `json`. `key` NULL: the array is
 * the whole; else it stands under that key of the whole, an object. Without one it is SIZE_MAX.
 */
static tide_status find_array_end(tide_str json, const char *key, size_t *ret_end,
                                  bool *ret_is_empty, struct tide_error *err)
{
    struct tide_json_reader reader;
    struct tide_json_token token = {0};
    tide_str raw = json;
    tide_json_reader_init(&reader, json, DEPTH);
    *ret_end = SIZE_MAX;
    if (key != NULL) {
        raw = (tide_str){NULL, 0};
        TIDE_TRY(tide_json_expect(&reader, TIDE_JSON_OBJECT_BEGIN, &token, err));
        TIDE_TRY(tide_json_next(&reader, &token, err));
        while (token.type == TIDE_JSON_KEY) {
            tide_str value = {0};
            bool is_it = !token.has_escapes && tide_str_equal(token.text, tide_str_from(key));
            TIDE_TRY(tide_json_skip(&reader, &value, err));
            raw = is_it ? value : raw;
            TIDE_TRY(tide_json_next(&reader, &token, err));
        }
        TIDE_TRY(tide_json_expect(&reader, TIDE_JSON_END, &token, err));
    }
    if (raw.ptr == NULL) {
        return TIDE_OK;
    }
    TIDE_TRY(tide_json_check(raw, DEPTH, err));
    tide_json_reader_init(&reader, raw, DEPTH);
    TIDE_TRY(tide_json_expect(&reader, TIDE_JSON_ARRAY_BEGIN, &token, err));
    TIDE_TRY(tide_json_next(&reader, &token, err));
    *ret_is_empty = token.type == TIDE_JSON_ARRAY_END;
    for (; raw.ptr[raw.len - 1] != ']'; raw.len--) { /* white space may follow it */
    }
    *ret_end = (size_t)(raw.ptr - json.ptr) + raw.len - 1;
    return TIDE_OK;
}

static void append_session(const struct tide_archive_session *session, struct tide_buf *buf)
{
    tide_buf_append_str(buf, TIDE_STR("{\"clock_anchor_wall_ns\":"));
    tide_buf_append_i64(buf, session->clock_anchor_wall_ns);
    tide_buf_append_str(buf, TIDE_STR(",\"dendro\":"));
    tide_json_append_string(buf, session->writer);
    if (session->is_resumed) {
        tide_buf_append_str(buf, TIDE_STR(",\"resumed_after_ts\":"));
        if (session->has_resumed_after) {
            tide_buf_append_i64(buf, session->resumed_after_ts);
        } else {
            tide_buf_append_str(buf, TIDE_STR("null"));
        }
    }
    tide_buf_append_str(buf, TIDE_STR(",\"session\":"));
    tide_json_append_string(buf, session->session);
    tide_buf_append_char(buf, '}');
}

tide_status tide_archive_sessions_append(tide_str json, const struct tide_archive_session *session,
                                         struct tide_buf *buf, struct tide_error *err)
{
    bool is_empty = true;
    size_t end = 1;
    json = json.ptr == NULL ? TIDE_STR("[]") : json;
    TIDE_TRY(find_array_end(json, NULL, &end, &is_empty, err));
    tide_buf_append(buf, json.ptr, end);
    if (!is_empty) {
        tide_buf_append_char(buf, ',');
    }
    append_session(session, buf);
    tide_buf_append(buf, json.ptr + end, json.len - end);
    return TIDE_OK;
}

static void append_event(const struct tide_archive_event *event, struct tide_buf *buf)
{
    tide_buf_append_str(buf, TIDE_STR("{\"description\":"));
    tide_json_append_string(buf, event->description);
    tide_buf_append_str(buf, TIDE_STR(",\"id\":"));
    tide_json_append_string(buf, event->id);
    tide_buf_append_str(buf, TIDE_STR(",\"kind\":"));
    tide_json_append_string(buf, event->kind);
    tide_buf_append_str(buf, TIDE_STR(",\"timestamp\":"));
    tide_buf_append_i64(buf, event->timestamp);
    tide_buf_append_char(buf, '}');
}

tide_status tide_archive_events_append(tide_str json, const struct tide_archive_event *event,
                                       struct tide_buf *buf, struct tide_error *err)
{
    bool is_empty = true;
    size_t end = 0;
    json = json.ptr == NULL ? TIDE_STR("{\"events\":[]}") : json;
    TIDE_TRY(find_array_end(json, "events", &end, &is_empty, err));
    if (end == SIZE_MAX) {
        return fail_form("events", "an object with an array of that name", err);
    }
    tide_buf_append(buf, json.ptr, end);
    if (!is_empty) {
        tide_buf_append_char(buf, ',');
    }
    append_event(event, buf);
    tide_buf_append(buf, json.ptr + end, json.len - end);
    return TIDE_OK;
}
