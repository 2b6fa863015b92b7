/*
 * Any bytes as frames, status updates and pgoutput messages. What must hold:
 *   - every slice of what was decoded lies within the input;
 *   - a message that decodes does not without its last byte, nor with one more;
 *   - a kept relation equals the one that it is a copy of.
 */
#include "base/status.h"
#include "source/postgres/pgoutput.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_within(tide_str body, tide_str slice)
{
    TIDE_ASSERT(slice.ptr >= body.ptr && slice.len <= body.len);
    TIDE_ASSERT(slice.ptr + slice.len <= body.ptr + body.len);
}

static void check_tuple(tide_str body, struct tide_pgoutput_tuple tuple)
{
    for (size_t i = 0; i < tuple.count; i++) {
        TIDE_ASSERT(tuple.fields[i].kind <= TIDE_PG_FIELD_TEXT);
        if (tuple.fields[i].kind == TIDE_PG_FIELD_TEXT) {
            check_within(body, tide_pg_field_str(tuple.fields[i]));
        }
    }
}

static void check_relation(tide_str body, const struct tide_pgoutput_relation *relation)
{
    TIDE_CLEANUP(tide_arena_done) struct tide_arena arena = {0};
    check_within(body, relation->name);
    TIDE_ASSERT(relation->schema.len > 0 && tide_str_is_utf8(relation->schema));
    for (size_t i = 0; i < relation->column_count; i++) {
        check_within(body, relation->columns[i].name);
        TIDE_ASSERT(tide_str_is_utf8(relation->columns[i].name));
    }
    TIDE_ASSERT(
        tide_pgoutput_relation_equal(relation, tide_pgoutput_relation_copy(&arena, relation)));
}

static void check_change(tide_str body, const struct tide_pgoutput *message)
{
    const struct tide_pgoutput_change *change = &message->change;
    bool has_old = change->old_kind != TIDE_PGOUTPUT_OLD_NONE;
    TIDE_ASSERT(has_old || message->type != TIDE_PGOUTPUT_DELETE);
    TIDE_ASSERT(!has_old || message->type != TIDE_PGOUTPUT_INSERT);
    TIDE_ASSERT(has_old || change->old_tuple.count == 0);
    check_tuple(body, change->old_tuple);
    check_tuple(body, change->new_tuple);
}

static void check_message(tide_str body, const struct tide_pgoutput *message)
{
    switch (message->type) {
    case TIDE_PGOUTPUT_RELATION:
        check_relation(body, &message->relation);
        break;
    case TIDE_PGOUTPUT_INSERT:
    case TIDE_PGOUTPUT_UPDATE:
    case TIDE_PGOUTPUT_DELETE:
        check_change(body, message);
        break;
    case TIDE_PGOUTPUT_TRUNCATE:
        TIDE_ASSERT(message->truncate.count <= body.len / sizeof(uint32_t));
        break;
    case TIDE_PGOUTPUT_MESSAGE:
        check_within(body, message->message.prefix);
        check_within(body, message->message.content);
        break;
    case TIDE_PGOUTPUT_BEGIN:
    case TIDE_PGOUTPUT_COMMIT:
    case TIDE_PGOUTPUT_ORIGIN:
    case TIDE_PGOUTPUT_TYPE:
        break;
    }
}

static tide_status decode(tide_str body)
{
    TIDE_CLEANUP(tide_arena_done) struct tide_arena arena = {0};
    struct tide_pgoutput message;
    struct tide_error err;
    tide_status status = tide_pgoutput_decode(body, &arena, &message, &err);
    TIDE_ASSERT(status == TIDE_OK || status == TIDE_CORRUPT || status == TIDE_UNSUPPORTED);
    if (status == TIDE_OK) {
        check_message(body, &message);
    }
    return status;
}

static void check_other_lengths(tide_str body)
{
    char *longer = malloc(body.len + 1);
    TIDE_ASSERT(longer != NULL);
    memcpy(longer, body.ptr, body.len);
    longer[body.len] = '\0';
    TIDE_ASSERT(decode(tide_str_of(longer, body.len + 1)) == TIDE_CORRUPT);
    TIDE_ASSERT(decode(tide_str_of(longer, body.len - 1)) == TIDE_CORRUPT);
    free(longer);
}

static void check_status(tide_str packet)
{
    struct tide_pg_status status;
    struct tide_error err;
    char again[TIDE_PG_STATUS_SIZE];
    if (tide_pg_status_decode(packet, &status, &err) == TIDE_OK) {
        tide_pg_status_encode(&status, again);
        TIDE_ASSERT(tide_str_equal(packet, tide_str_of(again, sizeof(again))));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tide_str body = tide_str_of(data, size);
    struct tide_pg_frame frame;
    struct tide_error err;
    if (decode(body) == TIDE_OK) {
        check_other_lengths(body);
    }
    check_status(body);
    if (tide_pg_frame_decode(body, &frame, &err) == TIDE_OK && frame.type == TIDE_PG_FRAME_DATA) {
        check_within(body, frame.body);
        (void)decode(frame.body);
    }
    return 0;
}
