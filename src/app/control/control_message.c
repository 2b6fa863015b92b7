#include "app/control/control_message.h"

#include "format/json_shape.h"
#include "format/json_writer.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define DEPTH_MAX    64

static void append_text(struct tide_buf *buf, tide_str key, tide_str text)
{
    tide_json_append_key(buf, key);
    tide_json_append_string(buf, text);
}

static void append_texts(struct tide_buf *buf, tide_str key, const tide_str *texts, size_t count)
{
    tide_json_append_key(buf, key);
    for (size_t i = 0; i < count; i++) {
        tide_buf_append_char(buf, i == 0 ? '[' : ',');
        tide_json_append_string(buf, texts[i]);
    }
    tide_buf_append_str(buf, count == 0 ? TIDE_STR("[]") : TIDE_STR("]"));
}

static tide_status texts_of(const struct tide_shape *shape, tide_str raw,
                            const tide_str **ret_texts, size_t *ret_count, struct tide_error *err)
{
    return raw.ptr == NULL ? TIDE_OK : tide_shape_strings(shape, raw, ret_texts, ret_count, err);
}

static tide_status text_of(const struct tide_shape *shape, tide_str raw, tide_str *ret_text,
                           struct tide_error *err)
{
    return raw.ptr == NULL ? TIDE_OK : tide_shape_string(shape, raw, ret_text, err);
}

void tide_control_request_encode(const struct tide_control_request *request, struct tide_buf *buf)
{
    tide_buf_append_char(buf, '{');
    append_text(buf, TIDE_STR("command"), request->command);
    if (request->sink.len > 0) {
        tide_buf_append_char(buf, ',');
        append_text(buf, TIDE_STR("sink"), request->sink);
    }
    if (request->table_count > 0) {
        tide_buf_append_char(buf, ',');
        append_texts(buf, TIDE_STR("tables"), request->tables, request->table_count);
    }
    tide_buf_append_char(buf, '}');
}

tide_status tide_control_request_decode(tide_str line, struct tide_arena *arena,
                                        struct tide_control_request *ret_request,
                                        struct tide_error *err)
{
    enum {
        COMMAND,
        SINK,
        TABLES
    };
    static const struct tide_shape_field fields[] = {
        {.name = "command"},
        {.name = "sink", .is_optional = true},
        {.name = "tables", .is_optional = true},
    };
    const struct tide_shape_form form = {
        .fields = fields, .count = COUNT(fields), .refuse_unknown = true};
    const struct tide_shape shape = {.document = line.ptr, .arena = arena};
    struct tide_control_request request = {0};
    tide_str values[COUNT(fields)];
    TIDE_TRY(tide_json_check(line, DEPTH_MAX, err));
    TIDE_TRY(tide_shape_fields(&shape, line, &form, values, err));
    TIDE_TRY(tide_shape_string(&shape, values[COMMAND], &request.command, err));
    TIDE_TRY(text_of(&shape, values[SINK], &request.sink, err));
    TIDE_TRY(texts_of(&shape, values[TABLES], &request.tables, &request.table_count, err));
    *ret_request = request;
    return TIDE_OK;
}

void tide_control_answer_encode(const struct tide_control_answer *answer, struct tide_buf *buf)
{
    tide_buf_append_char(buf, '{');
    append_text(buf, TIDE_STR("status"), tide_str_from(tide_status_name(answer->status)));
    if (answer->message.len > 0) {
        tide_buf_append_char(buf, ',');
        append_text(buf, TIDE_STR("message"), answer->message);
    }
    if (answer->sink_count > 0) {
        tide_buf_append_char(buf, ',');
        append_texts(buf, TIDE_STR("sinks"), answer->sinks, answer->sink_count);
    }
    if (answer->table_count > 0) {
        tide_buf_append_char(buf, ',');
        append_texts(buf, TIDE_STR("tables"), answer->tables, answer->table_count);
    }
    if (answer->report.len > 0) {
        tide_buf_append_char(buf, ',');
        tide_json_append_key(buf, TIDE_STR("report"));
        tide_buf_append_str(buf, answer->report);
    }
    tide_buf_append_char(buf, '}');
}

static tide_status status_of(const struct tide_shape *shape, tide_str raw, tide_status *ret_status,
                             struct tide_error *err)
{
    tide_str name = {0};
    TIDE_TRY(tide_shape_string(shape, raw, &name, err));
    for (tide_status status = TIDE_OK; status <= TIDE_STALE; status++) {
        if (tide_str_equal(name, tide_str_from(tide_status_name(status)))) {
            *ret_status = status;
            return TIDE_OK;
        }
    }
    return tide_shape_fail(shape, raw, "unknown status", err);
}

tide_status tide_control_answer_decode(tide_str line, struct tide_arena *arena,
                                       struct tide_control_answer *ret_answer,
                                       struct tide_error *err)
{
    enum {
        STATUS,
        MESSAGE,
        SINKS,
        TABLES,
        REPORT
    };
    static const struct tide_shape_field fields[] = {
        {.name = "status"},
        {.name = "message", .is_optional = true},
        {.name = "sinks", .is_optional = true},
        {.name = "tables", .is_optional = true},
        {.name = "report", .is_optional = true},
    };
    const struct tide_shape_form form = {.fields = fields, .count = COUNT(fields)};
    const struct tide_shape shape = {.document = line.ptr, .arena = arena};
    struct tide_control_answer answer = {0};
    tide_str values[COUNT(fields)];
    TIDE_TRY(tide_json_check(line, DEPTH_MAX, err));
    TIDE_TRY(tide_shape_fields(&shape, line, &form, values, err));
    TIDE_TRY(status_of(&shape, values[STATUS], &answer.status, err));
    TIDE_TRY(text_of(&shape, values[MESSAGE], &answer.message, err));
    TIDE_TRY(texts_of(&shape, values[SINKS], &answer.sinks, &answer.sink_count, err));
    TIDE_TRY(texts_of(&shape, values[TABLES], &answer.tables, &answer.table_count, err));
    answer.report = values[REPORT];
    *ret_answer = answer;
    return TIDE_OK;
}
