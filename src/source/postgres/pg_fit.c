#include "source/postgres/pg_fit.h"

#include "base/buf.h"
#include "source/postgres/pg_conn.h"

static void set(struct tide_pg_table *table, tide_str problem, tide_str remedy)
{
    table->problem = tide_arena_str(&table->arena, problem);
    table->remedy = tide_arena_str(&table->arena, remedy);
}

/* "ALTER TABLE s.t <rest>". */
static void set_altered(struct tide_pg_table *table, const char *problem, const char *rest)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf sql = {0};
    tide_buf_append_str(&sql, TIDE_STR("ALTER TABLE "));
    tide_pg_append_table(&sql, table->schema, table->name);
    tide_buf_printf(&sql, " %s;", rest);
    set(table, tide_str_from(problem), tide_buf_str(&sql));
}

static bool fit_kind(struct tide_pg_table *table, const struct tide_pg_facts *facts)
{
    switch (table->kind) {
    case 'r':
        if (facts->is_unlogged) {
            set_altered(table, "is unlogged: its changes are in no log", "SET LOGGED");
        }
        break;
    case 'p':
        set(table,
            TIDE_STR("is partitioned: its rows are in its partitions, which can be followed as "
                     "tables of their own when they are named"),
            TIDE_STR(""));
        break;
    case 'v':
        set(table, TIDE_STR("is a view: it has no log of its own"), TIDE_STR(""));
        break;
    case 'm':
        set(table, TIDE_STR("is a materialized view: its changes are in no log"), TIDE_STR(""));
        break;
    default:
        set(table, TIDE_STR("is a foreign table: its rows are elsewhere"), TIDE_STR(""));
        break;
    }
    return table->problem.len == 0;
}

static void fit_no_key(struct tide_pg_table *table, const struct tide_pg_facts *facts)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf rest = {0};
    if (facts->candidate.len == 0) {
        set_altered(table, "has no primary key: its rows cannot be told apart",
                    "ADD PRIMARY KEY (...)");
        return;
    }
    tide_buf_append_str(&rest, TIDE_STR("ADD PRIMARY KEY USING INDEX "));
    tide_pg_append_name(&rest, facts->candidate);
    set_altered(table, "has no primary key: its rows cannot be told apart", tide_buf_cstr(&rest));
}

/* ALTER CONSTRAINT does not change it for a key. */
static void fit_deferrable(struct tide_pg_table *table, const struct tide_pg_facts *facts)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf rest = {0};
    tide_buf_append_str(&rest, TIDE_STR("DROP CONSTRAINT "));
    tide_pg_append_name(&rest, facts->primary_name);
    tide_buf_append_str(&rest, TIDE_STR(", ADD CONSTRAINT "));
    tide_pg_append_name(&rest, facts->primary_name);
    tide_buf_append_str(&rest, TIDE_STR(" PRIMARY KEY ("));
    tide_buf_append_str(&rest, facts->primary_columns);
    tide_buf_append_char(&rest, ')');
    set_altered(table,
                "has a deferrable primary key: published, every UPDATE and DELETE of the "
                "application would fail",
                tide_buf_cstr(&rest));
}

static bool fit_key(struct tide_pg_table *table, const struct tide_pg_facts *facts)
{
    if (!facts->has_primary) {
        fit_no_key(table, facts);
    } else if (!table->has_key) {
        fit_deferrable(table, facts);
    } else if (facts->is_key_generated) {
        set(table, TIDE_STR("has a generated column in its primary key: the log leaves those out"),
            TIDE_STR(""));
    } else if (table->identity == TIDE_PG_IDENTITY_NOTHING) {
        set_altered(table,
                    "has REPLICA IDENTITY NOTHING: published, every UPDATE and DELETE of the "
                    "application would fail",
                    "REPLICA IDENTITY DEFAULT");
    } else if (table->identity == TIDE_PG_IDENTITY_INDEX) {
        set_altered(table,
                    "has REPLICA IDENTITY USING INDEX of another index than its primary key: a "
                    "change of the key would not tell the old one",
                    "REPLICA IDENTITY DEFAULT");
    }
    return table->problem.len == 0;
}

/* "GRANT <what> <object> TO <us>; ", after what is in `sql`. */
static void append_grant(struct tide_buf *sql, const struct tide_pg_facts *facts, const char *what,
                         tide_str object)
{
    tide_buf_printf(sql, "%sGRANT %s", sql->len == 0 ? "" : " ", what);
    tide_buf_append_str(sql, object);
    tide_buf_append_str(sql, TIDE_STR(" TO "));
    tide_pg_append_name(sql, facts->user);
    tide_buf_append_char(sql, ';');
}

static void append_read_rights(struct tide_buf *sql, const struct tide_pg_table *table,
                               const struct tide_pg_facts *facts)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf object = {0};
    if (!facts->may_use_schema) {
        tide_pg_append_name(&object, table->schema);
        append_grant(sql, facts, "USAGE ON SCHEMA ", tide_buf_str(&object));
    }
    tide_buf_reset(&object);
    if (!facts->may_read) {
        tide_pg_append_table(&object, table->schema, table->name);
        append_grant(sql, facts, "SELECT ON ", tide_buf_str(&object));
    }
}

static void append_publish_right(struct tide_buf *sql, const struct tide_pg_table *table,
                                 const struct tide_pg_facts *facts)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf owner = {0};
    if (!facts->is_owner_superuser) {
        tide_pg_append_name(&owner, facts->owner);
        append_grant(sql, facts, "", tide_buf_str(&owner));
        return;
    }
    tide_buf_printf(sql, "%sALTER TABLE ", sql->len == 0 ? "" : " ");
    tide_pg_append_table(sql, table->schema, table->name);
    tide_buf_append_str(sql, TIDE_STR(" OWNER TO "));
    tide_pg_append_name(sql, facts->user);
    tide_buf_append_char(sql, ';');
}

/* The problem is the first, the remedy mends all. */
static void fit_rights(struct tide_pg_table *table, const struct tide_pg_facts *facts)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf sql = {0};
    const char *problem = NULL;
    append_read_rights(&sql, table, facts);
    if (!facts->may_publish) {
        problem = "cannot be published by our role, which must be its owner or a member of that";
        append_publish_right(&sql, table, facts);
    }
    if (!facts->may_use_schema || !facts->may_read) {
        problem = "may not be read by our role";
    } else if (problem == NULL && facts->has_policy) {
        problem = "has row-level security, which hides rows from our role";
        tide_buf_append_str(&sql, TIDE_STR("ALTER ROLE "));
        tide_pg_append_name(&sql, facts->user);
        tide_buf_append_str(&sql, TIDE_STR(" BYPASSRLS;"));
    }
    if (problem != NULL) {
        set(table, tide_str_from(problem), tide_buf_str(&sql));
        table->is_right_missing = true;
    }
}

void tide_pg_fit(struct tide_pg_table *table, const struct tide_pg_facts *facts)
{
    table->problem = (tide_str){0};
    table->remedy = (tide_str){0};
    table->is_right_missing = false;
    if (fit_kind(table, facts) && fit_key(table, facts)) {
        fit_rights(table, facts);
    }
}
