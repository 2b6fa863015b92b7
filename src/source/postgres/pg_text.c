#include "source/postgres/pg_conn.h"

#include <stdlib.h>
#include <string.h>

struct sqlstate_rule {
    const char *prefix; /* the first that fits holds */
    tide_status status;
    bool is_retriable;
};

/* PostgreSQL manual, appendix A. */
static const struct sqlstate_rule sqlstate_rules[] = {
    {"08P01", TIDE_REMOTE, false},      /* protocol violation */
    {"08", TIDE_IO, true},              /* connection exception */
    {"57P04", TIDE_INVALID, false},     /* database dropped */
    {"57P", TIDE_IO, true},             /* shutting down, crashed, starting up */
    {"57014", TIDE_CANCELLED, false},   /* query cancelled */
    {"53400", TIDE_INVALID, false},     /* a limit of the configuration: no slot left */
    {"53", TIDE_IO, true},              /* out of connections, memory, disk */
    {"55006", TIDE_IO, true},           /* in use: a slot whose last reader is not yet gone */
    {"55P03", TIDE_TIMEOUT, true},      /* lock not available */
    {"40", TIDE_TIMEOUT, true},         /* serialization, deadlock, recovery conflict */
    {"25P03", TIDE_IO, true},           /* idle in a transaction for too long: cut off */
    {"25P04", TIDE_IO, true},           /* transaction_timeout: cut off */
    {"42501", TIDE_INVALID, false},     /* no right */
    {"28", TIDE_INVALID, false},        /* no such role, wrong password, pg_hba.conf */
    {"3D", TIDE_INVALID, false},        /* no such database */
    {"42P01", TIDE_UNSUPPORTED, false}, /* no such table */
    {"42703", TIDE_UNSUPPORTED, false}, /* no such column */
    {"3F000", TIDE_UNSUPPORTED, false}, /* no such schema */
    {"", TIDE_REMOTE, false},
};

tide_status tide_pg_sqlstate_status(const char *sqlstate, bool *ret_is_retriable)
{
    if (sqlstate == NULL || sqlstate[0] == '\0') {
        *ret_is_retriable = true;
        return TIDE_IO;
    }
    const struct sqlstate_rule *rule = sqlstate_rules;
    while (strncmp(sqlstate, rule->prefix, strlen(rule->prefix)) != 0) {
        rule++;
    }
    *ret_is_retriable = rule->is_retriable;
    return rule->status;
}

tide_str tide_pg_result_str(const PGresult *result, int row, int column)
{
    if (PQgetisnull(result, row, column)) {
        return (tide_str){0};
    }
    return tide_str_of(PQgetvalue(result, row, column), (size_t)PQgetlength(result, row, column));
}

int64_t tide_pg_result_i64(const PGresult *result, int row, int column)
{
    int64_t value = 0;
    return tide_str_to_i64(tide_pg_result_str(result, row, column), &value) ? value : 0;
}

uint64_t tide_pg_result_u64(const PGresult *result, int row, int column)
{
    uint64_t value = 0;
    return tide_str_to_u64(tide_pg_result_str(result, row, column), &value) ? value : 0;
}

bool tide_pg_result_bool(const PGresult *result, int row, int column)
{
    return tide_str_equal(tide_pg_result_str(result, row, column), TIDE_STR("t"));
}

static void append_doubled(struct tide_buf *buf, tide_str text, char quote, bool with_backslash)
{
    tide_buf_append_char(buf, quote);
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (c == quote || (with_backslash && c == '\\')) {
            tide_buf_append_char(buf, c);
        }
        tide_buf_append_char(buf, c);
    }
    tide_buf_append_char(buf, quote);
}

void tide_pg_append_name(struct tide_buf *buf, tide_str name)
{
    append_doubled(buf, name, '"', false);
}

void tide_pg_append_table(struct tide_buf *buf, tide_str schema, tide_str name)
{
    tide_pg_append_name(buf, schema);
    tide_buf_append_char(buf, '.');
    tide_pg_append_name(buf, name);
}

void tide_pg_append_text(struct tide_buf *buf, tide_str text)
{
    bool has_backslash = text.len > 0 && memchr(text.ptr, '\\', text.len) != NULL;
    if (has_backslash) {
        /* The space keeps the E from joining a word before it. */
        tide_buf_append_str(buf, TIDE_STR(" E"));
    }
    append_doubled(buf, text, '\'', has_backslash);
}
