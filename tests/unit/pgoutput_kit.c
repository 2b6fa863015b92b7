#include "pgoutput_kit.h"

#include "cmocka_prelude.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static void print_lsn(struct tide_buf *out, const char *name, uint64_t lsn)
{
    tide_buf_printf(out, " %s=%" PRIX32 "/%" PRIX32, name, (uint32_t)(lsn >> 32), (uint32_t)lsn);
}

static void print_field(struct tide_buf *out, struct tide_pg_field field)
{
    if (field.kind == TIDE_PG_FIELD_NULL) {
        tide_buf_append_str(out, TIDE_STR("null"));
    } else if (field.kind == TIDE_PG_FIELD_UNCHANGED) {
        tide_buf_append_str(out, TIDE_STR("unchanged"));
    } else if (field.len > 100) {
        tide_buf_printf(out, "'%.8s…'(%" PRIu32 ")", field.ptr, field.len);
    } else {
        tide_buf_printf(out, "'%.*s'", (int)field.len, field.ptr);
    }
}

static void print_tuple(struct tide_buf *out, const char *name, struct tide_pgoutput_tuple tuple)
{
    tide_buf_printf(out, " %s=(", name);
    for (size_t i = 0; i < tuple.count; i++) {
        tide_buf_append_str(out, i == 0 ? TIDE_STR("") : TIDE_STR(", "));
        print_field(out, tuple.fields[i]);
    }
    tide_buf_append_char(out, ')');
}

static void print_change(struct tide_buf *out, const struct tide_pgoutput *message)
{
    const struct tide_pgoutput_change *change = &message->change;
    tide_buf_printf(out, " of=%" PRIu32, change->relation_oid);
    if (change->old_kind != TIDE_PGOUTPUT_OLD_NONE) {
        bool is_key = change->old_kind == TIDE_PGOUTPUT_OLD_KEY;
        print_tuple(out, is_key ? "key" : "old", change->old_tuple);
    }
    if (message->type != TIDE_PGOUTPUT_DELETE) {
        print_tuple(out, "new", change->new_tuple);
    }
}

static void print_relation(struct tide_buf *out, const struct tide_pgoutput_relation *relation)
{
    tide_buf_printf(out, " oid=%" PRIu32 " %.*s.%.*s identity=%c (", relation->oid,
                    TIDE_STR_ARG(relation->schema), TIDE_STR_ARG(relation->name),
                    relation->identity);
    for (size_t i = 0; i < relation->column_count; i++) {
        const struct tide_pgoutput_column *column = &relation->columns[i];
        tide_buf_printf(out, "%s%.*s %" PRIu32 ":%" PRId32 "%s", i == 0 ? "" : ", ",
                        TIDE_STR_ARG(column->name), column->type_oid, column->type_modifier,
                        column->is_key ? " key" : "");
    }
    tide_buf_append_char(out, ')');
}

static void print_truncate(struct tide_buf *out, const struct tide_pgoutput_truncate *truncate)
{
    tide_buf_printf(out, "%s%s", truncate->is_cascade ? " cascade" : "",
                    truncate->restarts_identity ? " restart" : "");
    for (size_t i = 0; i < truncate->count; i++) {
        tide_buf_printf(out, " %" PRIu32, truncate->relation_oids[i]);
    }
}

static void print_logical(struct tide_buf *out, const struct tide_pgoutput_logical_message *message)
{
    tide_buf_append_str(out, message->is_transactional ? TIDE_STR(" transactional") : TIDE_STR(""));
    print_lsn(out, "lsn", message->lsn);
    tide_buf_printf(out, " prefix=%.*s content=", TIDE_STR_ARG(message->prefix));
    for (size_t i = 0; i < message->content.len; i++) {
        tide_buf_printf(out, "%02x", (unsigned char)message->content.ptr[i]);
    }
}

static void print_transaction(struct tide_buf *out, const struct tide_pgoutput *message)
{
    if (message->type == TIDE_PGOUTPUT_BEGIN) {
        print_lsn(out, "final", message->begin.final_lsn);
        tide_buf_printf(out, " at=%" PRId64 " xid=%" PRIu32, message->begin.commit_us,
                        message->begin.xid);
    } else {
        print_lsn(out, "commit", message->commit.commit_lsn);
        print_lsn(out, "end", message->commit.end_lsn);
        tide_buf_printf(out, " at=%" PRId64, message->commit.commit_us);
    }
}

void pgoutput_print(struct tide_buf *out, const struct tide_pgoutput *message)
{
    tide_buf_append_char(out, (char)message->type);
    switch (message->type) {
    case TIDE_PGOUTPUT_BEGIN:
    case TIDE_PGOUTPUT_COMMIT:
        print_transaction(out, message);
        break;
    case TIDE_PGOUTPUT_ORIGIN:
        print_lsn(out, "commit", message->origin.commit_lsn);
        tide_buf_printf(out, " %.*s", TIDE_STR_ARG(message->origin.name));
        break;
    case TIDE_PGOUTPUT_RELATION:
        print_relation(out, &message->relation);
        break;
    case TIDE_PGOUTPUT_TYPE:
        tide_buf_printf(out, " oid=%" PRIu32 " %.*s.%.*s", message->type_name.oid,
                        TIDE_STR_ARG(message->type_name.schema),
                        TIDE_STR_ARG(message->type_name.name));
        break;
    case TIDE_PGOUTPUT_INSERT:
    case TIDE_PGOUTPUT_UPDATE:
    case TIDE_PGOUTPUT_DELETE:
        print_change(out, message);
        break;
    case TIDE_PGOUTPUT_TRUNCATE:
        print_truncate(out, &message->truncate);
        break;
    case TIDE_PGOUTPUT_MESSAGE:
        print_logical(out, &message->message);
        break;
    }
    tide_buf_append_char(out, '\n');
}
