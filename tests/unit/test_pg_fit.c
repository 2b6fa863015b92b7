#include "cmocka_prelude.h"

#include "source/postgres/pg_fit.h"

#include <string.h>

/* A table and facts with which it can be followed; cases spoil one thing each. */
struct given {
    struct tide_pg_table table;
    struct tide_pg_facts facts;
};

static struct given good(void)
{
    return (struct given){
        .table = {.schema = TIDE_STR("s"),
                  .name = TIDE_STR("t\"x"),
                  .identity = TIDE_PG_IDENTITY_KEY,
                  .has_key = true,
                  .kind = 'r'},
        .facts = {.has_primary = true,
                  .primary_name = TIDE_STR("t_pkey"),
                  .primary_columns = TIDE_STR("a, \"B\""),
                  .may_use_schema = true,
                  .may_read = true,
                  .may_publish = true,
                  .owner = TIDE_STR("boss"),
                  .user = TIDE_STR("me")},
    };
}

static void expect(struct given *given, const char *problem, const char *remedy, bool is_right)
{
    tide_pg_fit(&given->table, &given->facts);
    tide_str found = given->table.problem;
    if (problem == NULL) {
        assert_int_equal(found.len, 0);
    } else {
        assert_true(found.len > 0);
        assert_non_null(memmem(found.ptr, found.len, problem, strlen(problem)));
    }
    assert_true(tide_str_equal(given->table.remedy, tide_str_from(remedy)));
    assert_int_equal(given->table.is_right_missing, is_right);
    tide_arena_done(&given->table.arena);
}

static void fit_of_a_good_table_finds_nothing(void **state)
{
    (void)state;
    struct given given = good();
    expect(&given, NULL, "", false);
    given = good();
    given.table.identity = TIDE_PG_IDENTITY_FULL;
    expect(&given, NULL, "", false);
}

static void fit_of_another_kind_says_which(void **state)
{
    (void)state;

    static const struct {
        char kind;
        const char *problem;
    } cases[] = {{'p', "partitioned"}, {'v', "a view"}, {'m', "materialized"}, {'f', "foreign"}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct given given = good();
        given.table.kind = cases[i].kind;
        expect(&given, cases[i].problem, "", false);
    }
    struct given given = good();
    given.facts.is_unlogged = true;
    expect(&given, "unlogged", "ALTER TABLE \"s\".\"t\"\"x\" SET LOGGED;", false);
}

static void fit_without_a_usable_key_gives_the_statement(void **state)
{
    (void)state;
    struct given given = good();
    given.table.has_key = false;
    expect(&given, "deferrable",
           "ALTER TABLE \"s\".\"t\"\"x\" DROP CONSTRAINT \"t_pkey\", ADD CONSTRAINT \"t_pkey\" "
           "PRIMARY KEY (a, \"B\");",
           false);

    given = good();
    given.table.has_key = false;
    given.facts.has_primary = false;
    expect(&given, "no primary key", "ALTER TABLE \"s\".\"t\"\"x\" ADD PRIMARY KEY (...);", false);

    given = good();
    given.table.has_key = false;
    given.facts.has_primary = false;
    given.facts.candidate = TIDE_STR("u");
    expect(&given, "no primary key",
           "ALTER TABLE \"s\".\"t\"\"x\" ADD PRIMARY KEY USING INDEX \"u\";", false);

    given = good();
    given.facts.is_key_generated = true;
    expect(&given, "generated", "", false);
}

static void fit_with_another_identity_gives_the_statement(void **state)
{
    (void)state;

    static const enum tide_pg_identity cases[] = {TIDE_PG_IDENTITY_NOTHING, TIDE_PG_IDENTITY_INDEX};

    for (size_t i = 0; i < 2; i++) {
        struct given given = good();
        given.table.identity = cases[i];
        expect(&given, "REPLICA IDENTITY", "ALTER TABLE \"s\".\"t\"\"x\" REPLICA IDENTITY DEFAULT;",
               false);
    }
}

static void fit_without_rights_gives_all_statements(void **state)
{
    (void)state;
    struct given given = good();
    given.facts.may_read = false;
    expect(&given, "may not be read", "GRANT SELECT ON \"s\".\"t\"\"x\" TO \"me\";", true);

    given = good();
    given.facts.may_publish = false;
    expect(&given, "published", "GRANT \"boss\" TO \"me\";", true);

    given = good();
    given.facts.may_publish = false;
    given.facts.is_owner_superuser = true;
    expect(&given, "published", "ALTER TABLE \"s\".\"t\"\"x\" OWNER TO \"me\";", true);

    given = good();
    given.facts.may_use_schema = false;
    given.facts.may_read = false;
    given.facts.may_publish = false;
    expect(&given, "may not be read",
           "GRANT USAGE ON SCHEMA \"s\" TO \"me\"; GRANT SELECT ON \"s\".\"t\"\"x\" TO \"me\"; "
           "GRANT \"boss\" TO \"me\";",
           true);

    given = good();
    given.facts.has_policy = true;
    expect(&given, "row-level security", "ALTER ROLE \"me\" BYPASSRLS;", true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fit_of_a_good_table_finds_nothing),
        cmocka_unit_test(fit_of_another_kind_says_which),
        cmocka_unit_test(fit_without_a_usable_key_gives_the_statement),
        cmocka_unit_test(fit_with_another_identity_gives_the_statement),
        cmocka_unit_test(fit_without_rights_gives_all_statements),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
