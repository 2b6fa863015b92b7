#include "cmocka_prelude.h"

#include "frame_history.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct history *history_parse(const char *text)
{
    struct history *history = calloc(1, sizeof(*history));
    while (*text != '\0') {
        size_t len = strcspn(text, " ");
        if (len > 0) {
            assert_true(history->count < HISTORY_MAX && len < sizeof(history->tokens[0]));
            memcpy(history->tokens[history->count++], text, len);
        }
        text += len + (text[len] == ' ');
    }
    return history;
}

/* The value of a field, or `otherwise`. */
static const char *field(const char *token, const char *name, const char *otherwise)
{
    static char values[16][64];
    static size_t next;
    char wanted[32];
    (void)snprintf(wanted, sizeof(wanted), ",%s=", name);
    const char *at = strstr(token, wanted);
    if (at == NULL) {
        return otherwise;
    }
    at += strlen(wanted);
    char *value = values[next++ % 16];
    (void)snprintf(value, 64, "%.*s", (int)strcspn(at, ","), at);
    return value;
}

static void append_optional(struct tide_buf *line, const char *token, const char *name,
                            const char *key)
{
    const char *value = field(token, name, NULL);
    if (value != NULL) {
        tide_buf_printf(line, ",\"%s\":%s", key, value);
    }
}

static void append_place(struct tide_buf *line, const char *token, const char *name,
                         const char *key)
{
    const char *value = field(token, name, NULL);
    if (value != NULL && strcmp(value, "null") == 0) {
        tide_buf_printf(line, ",\"%s\":null", key);
    } else if (value != NULL) {
        tide_buf_printf(line, ",\"%s\":[%s,0]", key, value);
    }
}

static void append_starts(struct tide_buf *line, const char *token)
{
    const char *value = field(token, "starts", NULL);
    if (value == NULL) {
        return;
    }
    tide_buf_printf(line, ",\"starts\":[");
    for (; *value != '\0'; value++) {
        tide_buf_append_char(line, *value == ':' ? ',' : *value);
    }
    tide_buf_append_char(line, ']');
}

static void append_change(struct tide_buf *line, const char *token, const char *number)
{
    tide_buf_printf(line,
                    "{\"kind\":\"change\",\"op\":\"%s\",\"timestamp\":\"2026-11-29T13:41:00."
                    "000Z\",\"store\":\"%s\",\"position\":%s,\"index\":0",
                    field(token, "op", "insert"), field(token, "store", "shop.a"), number);
    append_place(line, token, "prev", "prev");
    if (strcmp(field(token, "op", "insert"), "truncate") != 0) {
        tide_buf_printf(line, ",\"key\":{\"id\":1},\"record\":{\"id\":1}");
    }
}

static void append_snapshot_frame(struct tide_buf *line, const char *token, const char *kind,
                                  const char *number)
{
    const char *at = "2026-11-29T13:40:55.567Z";
    tide_buf_printf(line,
                    "{\"kind\":\"%s\",\"snapshot_id\":\"%s\",\"snapshot_at\":\"%s\",\"timestamp\":"
                    "\"%s\",\"store\":\"%s\",\"seq\":%s",
                    kind, field(token, "id", "A"), at, at, field(token, "store", "shop.a"), number);
    append_optional(line, token, "total", "total");
    append_place(line, token, "from", "changes_from");
    if (strcmp(kind, "row") == 0) {
        tide_buf_printf(line, ",\"record\":{\"v\":%s}", field(token, "record", number));
        append_optional(line, token, "at", "position");
    } else if (strcmp(kind, "oversize") == 0) {
        tide_buf_printf(line, ",\"bytes\":%s,\"row_key\":\"%s\"", field(token, "bytes", "1000000"),
                        field(token, "key", number));
    } else if (strcmp(kind, "end") == 0) {
        tide_buf_printf(line, ",\"row_count\":%s,\"completed_at\":\"%s\"", number, at);
        append_place(line, token, "to", "changes_to");
    }
    append_starts(line, token);
}

void history_append_frame(struct tide_buf *line, const char *token)
{
    char kind[16] = "";
    char number[32] = "0";
    (void)snprintf(kind, sizeof(kind), "%.*s", (int)strcspn(token, "=,"), token);
    if (token[strlen(kind)] == '=') {
        const char *at = token + strlen(kind) + 1;
        (void)snprintf(number, sizeof(number), "%.*s", (int)strcspn(at, ","), at);
    }
    if (strcmp(kind, "change") == 0) {
        append_change(line, token, number);
    } else {
        append_snapshot_frame(line, token, strcmp(kind, "stub") == 0 ? "oversize" : kind, number);
    }
    append_optional(line, token, "inc", "incarnation");
    append_optional(line, token, "attempt", "attempt");
    tide_buf_append_char(line, '}');
}

static void with_frame(const char *token, struct tide_reassembler *reassembler,
                       void (*take)(struct tide_reassembler *, const struct tide_frame *))
{
    static struct tide_frame_decoder decoder;
    struct tide_buf line TIDE_CLEANUP(tide_buf_done) = {0};
    struct tide_frame frame;
    struct tide_error err = {0};
    history_append_frame(&line, token);
    if (tide_frame_decode(&decoder, tide_buf_str(&line), &frame, &err) != TIDE_OK) {
        fail_msg("%s: %s", tide_buf_cstr(&line), err.message);
    }
    take(reassembler, &frame);
}

static void feed(struct tide_reassembler *reassembler, const struct tide_frame *frame)
{
    tide_reassembler_feed(reassembler, frame, 0);
}

void history_feed(struct tide_reassembler *reassembler, const char *token)
{
    with_frame(token, reassembler, feed);
}

void history_recheck(struct tide_reassembler *reassembler, const char *token)
{
    with_frame(token, reassembler, tide_reassembler_recheck);
}
