#include "cmocka_prelude.h"

#include "base/glob.h"
#include "source/postgres/pg_catalogue.h"
#include "source/postgres/pg_setup.h"

#include <stdlib.h>
#include <string.h>

static void append_name_and_text_quote_what_is_hostile(void **state)
{
    (void)state;

    static const struct {
        const char *in;
        const char *name;
        const char *text;
    } cases[] = {
        {"", "\"\"", "''"},
        {"a", "\"a\"", "'a'"},
        {"A b", "\"A b\"", "'A b'"},
        {"it's", "\"it's\"", "'it''s'"},
        {"\"", "\"\"\"\"", "'\"'"},
        {"'; DROP TABLE t; --", "\"'; DROP TABLE t; --\"", "'''; DROP TABLE t; --'"},
        {"\\", "\"\\\"", " E'\\\\'"},
        {"\\'", "\"\\'\"", " E'\\\\'''"},
        {"a\\\"'", "\"a\\\"\"'\"", " E'a\\\\\"'''"},
        {"$1 %s \xc3\xa9", "\"$1 %s \xc3\xa9\"", "'$1 %s \xc3\xa9'"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tide_buf buf = {0};
        tide_pg_append_name(&buf, tide_str_from(cases[i].in));
        assert_string_equal(tide_buf_cstr(&buf), cases[i].name);
        tide_buf_reset(&buf);
        tide_pg_append_text(&buf, tide_str_from(cases[i].in));
        assert_string_equal(tide_buf_cstr(&buf), cases[i].text);
        tide_buf_done(&buf);
    }
}

static void append_table_qualifies(void **state)
{
    (void)state;
    struct tide_buf buf = {0};
    tide_pg_append_table(&buf, TIDE_STR("s.\"x"), TIDE_STR("t.y"));
    assert_string_equal(tide_buf_cstr(&buf), "\"s.\"\"x\".\"t.y\"");
    tide_buf_done(&buf);
}

static void sqlstate_status_follows_the_table(void **state)
{
    (void)state;

    static const struct {
        const char *sqlstate;
        tide_status status;
        bool is_retriable;
    } cases[] = {
        {NULL, TIDE_IO, true},
        {"", TIDE_IO, true},
        {"08006", TIDE_IO, true},
        {"08P01", TIDE_REMOTE, false},
        {"57P01", TIDE_IO, true},
        {"57P03", TIDE_IO, true},
        {"57P04", TIDE_INVALID, false},
        {"57014", TIDE_CANCELLED, false},
        {"53300", TIDE_IO, true},
        {"53400", TIDE_INVALID, false},
        {"53100", TIDE_IO, true},
        {"55006", TIDE_IO, true},
        {"55P03", TIDE_TIMEOUT, true},
        {"40001", TIDE_TIMEOUT, true},
        {"40P01", TIDE_TIMEOUT, true},
        {"25P03", TIDE_IO, true},
        {"42501", TIDE_INVALID, false},
        {"28P01", TIDE_INVALID, false},
        {"3D000", TIDE_INVALID, false},
        {"42P01", TIDE_UNSUPPORTED, false},
        {"42703", TIDE_UNSUPPORTED, false},
        {"42704", TIDE_REMOTE, false},
        {"55000", TIDE_REMOTE, false},
        {"XX000", TIDE_REMOTE, false},
        {"22012", TIDE_REMOTE, false},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        bool is_retriable = !cases[i].is_retriable;
        assert_int_equal(tide_pg_sqlstate_status(cases[i].sqlstate, &is_retriable),
                         cases[i].status);
        assert_int_equal(is_retriable, cases[i].is_retriable);
    }
}

static void glob_matches_as_written(void **state)
{
    (void)state;

    static const struct {
        const char *glob;
        const char *text;
        bool matches;
    } cases[] = {
        {"", "", true},
        {"", "a", false},
        {"a", "", false},
        {"*", "", true},
        {"*", "abc", true},
        {"**", "", true},
        {"?", "", false},
        {"?", "a", true},
        {"?", "ab", false},
        {"a", "A", false},
        {"ab*", "ab", true},
        {"ab*", "a", false},
        {"*ab", "aab", true},
        {"*ab", "aba", false},
        {"a*b*c", "a1b2c", true},
        {"a*b*c", "acb", false},
        {"*a*a*", "aa", true},
        {"*a*a*", "a", false},
        {"o?e*", "orders", false},
        {"o?d*", "old", true},
        {"a_b", "axb", false},
        {"a%", "ab", false},
        {"[a]", "a", false},
        {"[a]", "[a]", true},
        {"?", "\xc3\xa9", true},
        {"??", "\xc3\xa9", false},
        {"*\xc3\xa9", "a\xc3\xa9", true},
        {"?", "\xf0\x9f\x98\x80", true},
        {"?\x80", "\xc3\x80", false},
        {"\\*", "*", false},
        {"*?", "", false},
        {"*?", "a", true},
        {"*??*", "a", false},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        bool matches =
            tide_glob_matches(tide_str_from(cases[i].glob), tide_str_from(cases[i].text));
        if (matches != cases[i].matches) {
            fail_msg("glob \"%s\" on \"%s\"", cases[i].glob, cases[i].text);
        }
    }
}

/* The same by the definition, on short texts of two letters. */
static bool matches_by_definition(const char *glob, const char *text)
{
    if (*glob == '\0') {
        return *text == '\0';
    }
    if (*glob == '*') {
        return matches_by_definition(glob + 1, text) ||
               (*text != '\0' && matches_by_definition(glob, text + 1));
    }
    return *text != '\0' && (*glob == '?' || *glob == *text) &&
           matches_by_definition(glob + 1, text + 1);
}

static void fill_digits(char *text, size_t len, unsigned number, const char *letters)
{
    size_t base = strlen(letters);
    for (size_t i = 0; i < len; i++) {
        text[i] = letters[number % base];
        number /= (unsigned)base;
    }
    text[len] = '\0';
}

static void glob_matches_agrees_with_its_definition(void **state)
{
    (void)state;
    for (unsigned g = 0; g < 256; g++) {
        for (unsigned t = 0; t < 64; t++) {
            char glob[8];
            char text[8];
            fill_digits(glob, 4, g, "ab*?");
            fill_digits(text, t % 7, t, "ab");
            assert_int_equal(tide_glob_matches(tide_str_from(glob), tide_str_from(text)),
                             matches_by_definition(glob, text));
        }
    }
}

static void globs_choose_by_name_and_by_schema(void **state)
{
    (void)state;

    static const struct {
        const char *glob;
        bool is_chosen;
        bool is_named;
    } cases[] = {
        {"orders", true, true},    {"shop.orders", true, true},     {"shop.*", true, false},
        {"*.orders", true, false}, {"public.orders", false, false}, {"order", false, false},
        {"shop", false, false},    {"SHOP.orders", false, false},   {"o*", true, false},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        tide_str glob = tide_str_from(cases[i].glob);
        bool is_named = !cases[i].is_named;
        assert_int_equal(
            tide_pg_globs_choose(&glob, 1, TIDE_STR("shop"), TIDE_STR("orders"), &is_named),
            cases[i].is_chosen);
        assert_int_equal(is_named, cases[i].is_named);
    }
    assert_true(tide_pg_globs_choose(NULL, 0, TIDE_STR("s"), TIDE_STR("t"), NULL));
    tide_str two[] = {TIDE_STR("*"), TIDE_STR("t")};
    bool is_named = false;
    assert_true(tide_pg_globs_choose(two, 2, TIDE_STR("s"), TIDE_STR("t"), &is_named));
    assert_true(is_named);
}

static bool is_slot_name(const char *name)
{
    return name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_")] == '\0';
}

static void ours_name_keeps_what_a_slot_may_be_called(void **state)
{
    (void)state;
    char name[TIDE_PG_NAME_SIZE];
    tide_pg_ours_name(TIDE_STR("shop_1"), name);
    assert_string_equal(name, "tidemark_shop_1");

    char longest[55];
    memset(longest, 'x', 54);
    longest[54] = '\0';
    tide_pg_ours_name(tide_str_from(longest), name);
    assert_int_equal(strlen(name), 63);
    assert_string_equal(name + 9, longest);
}

static void ours_name_of_different_pipelines_is_different(void **state)
{
    (void)state;
    char longer[80];
    memset(longer, 'x', sizeof(longer));
    const tide_str pipelines[] = {
        TIDE_STR("a_b"),         TIDE_STR("a-b"),         TIDE_STR("a.b"),
        TIDE_STR("A_b"),         TIDE_STR("A-B"),         TIDE_STR(""),
        TIDE_STR("\xc3\xa9"),    TIDE_STR("\xc3\xa8"),    TIDE_STR("a b\n"),
        TIDE_STR("a'b\""),       tide_str_of(longer, 54), tide_str_of(longer, 55),
        tide_str_of(longer, 56), tide_str_of(longer, 45), tide_str_of(longer, 80),
    };

    enum {
        COUNT = sizeof(pipelines) / sizeof(pipelines[0])
    };

    char names[COUNT][TIDE_PG_NAME_SIZE];
    for (size_t i = 0; i < COUNT; i++) {
        tide_pg_ours_name(pipelines[i], names[i]);
        assert_true(is_slot_name(names[i]));
        assert_true(strlen(names[i]) < TIDE_PG_NAME_SIZE);
        assert_int_equal(strncmp(names[i], TIDE_PG_PREFIX, strlen(TIDE_PG_PREFIX)), 0);
        for (size_t j = 0; j < i; j++) {
            assert_string_not_equal(names[i], names[j]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(append_name_and_text_quote_what_is_hostile),
        cmocka_unit_test(append_table_qualifies),
        cmocka_unit_test(sqlstate_status_follows_the_table),
        cmocka_unit_test(glob_matches_as_written),
        cmocka_unit_test(glob_matches_agrees_with_its_definition),
        cmocka_unit_test(globs_choose_by_name_and_by_schema),
        cmocka_unit_test(ours_name_keeps_what_a_slot_may_be_called),
        cmocka_unit_test(ours_name_of_different_pipelines_is_different),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
