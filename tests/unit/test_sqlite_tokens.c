#include "cmocka_prelude.h"

#include "base/buf.h"
#include "source/sqlite/sqlite_tokens.h"

#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void expect_str(tide_str got, const char *want)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf text = {0};
    tide_buf_append_str(&text, got);
    assert_string_equal(tide_buf_cstr(&text), want);
}

static void token_next_splits_as_sqlite_does(void **state)
{
    (void)state;

    /* clang-format off */
    static const struct { const char *sql; const char *want; } cases[] = {
        {"", ""},
        {" \t\r\n", ""},
        {"a+b", "word a|op +|word b|"},
        {"x'61' 1.5e3 .5", "word x|string '61'|word 1.5e3|op .|word 5|"},
        {"t.a", "word t|op .|word a|"},
        {"'it''s' \"a \"\"b\" `c``d` [e]]", "string 'it''s'|name \"a \"\"b\"|name `c``d`|name [e]|op ]|"},
        {"a -- b\nc --", "word a|word c|"},
        {"a /* b ' */ c /* d", "word a|word c|"},
        {"a-b/c", "word a|op -|word b|op /|word c|"},
        {"naïve_$1", "word naïve_$1|"},
        {"'open", "string 'open|"},
        {"\"open\"\"", "name \"open\"\"|"},
        {"[open", "name [open|"},
        {"/", "op /|"},
        {"-", "op -|"},
    };

    /* clang-format on */
    static const char *const kinds[] = {"string", "name", "word", "op"};
    for (size_t i = 0; i < COUNT(cases); i++) {
        TIDE_CLEANUP(tide_buf_done) struct tide_buf got = {0};
        struct tide_sqlite_token token;
        for (size_t at = 0; tide_sqlite_token_next(tide_str_from(cases[i].sql), &at, &token);) {
            tide_buf_printf(&got, "%s %.*s|", kinds[token.kind], TIDE_STR_ARG(token.text));
        }
        assert_string_equal(tide_buf_cstr(&got), cases[i].want);
    }
}

static void token_unquote_doubled_quotes_become_single(void **state)
{
    (void)state;

    /* clang-format off */
    static const struct { const char *sql; const char *want; } cases[] = {
        {"\"a \"\"b\"", "a \"b"}, {"`c``d`", "c`d"}, {"[e\"f]", "e\"f"}, {"'g''h'", "g'h"},
        {"plain", "plain"}, {"\"\"", ""}, {"\"\"\"\"", "\""},
    };
    /* clang-format on */
    TIDE_CLEANUP(tide_arena_done) struct tide_arena arena = {0};
    for (size_t i = 0; i < COUNT(cases); i++) {
        size_t at = 0;
        struct tide_sqlite_token token;
        assert_true(tide_sqlite_token_next(tide_str_from(cases[i].sql), &at, &token));
        expect_str(tide_sqlite_token_unquote(&arena, &token), cases[i].want);
    }
}

static void index_text_slices_terms_and_where(void **state)
{
    (void)state;

    /* clang-format off */
    static const struct { const char *sql; const char *want; } cases[] = {
        {"CREATE UNIQUE INDEX i ON t(a)", "a;"},
        {"CREATE UNIQUE INDEX i ON t (a, b DESC, \"c \"\"q\" asc)", "a;b;\"c \"\"q\";"},
        {"CREATE UNIQUE INDEX \"x(y\" ON \"t,(\" (a || ',' || b) -- c (", "a || ',' || b;"},
        {"CREATE UNIQUE INDEX i ON t(f(a, (b)), g(DESC) DESC)", "f(a, (b));g(DESC);"},
        {"CREATE UNIQUE INDEX i ON t(a COLLATE NOCASE DESC)", "a COLLATE NOCASE;"},
        {"CREATE UNIQUE INDEX i ON t(a = b COLLATE NOCASE)", "a = b COLLATE NOCASE;"},
        {"CREATE UNIQUE INDEX i ON t([b]) -- remark\n", "[b];"},
        {"CREATE UNIQUE INDEX i ON t(a)WHERE b>0 /* z */", "a;where b>0"},
        {"CREATE UNIQUE INDEX i ON t(a /* , */ + 1) where c is not null", "a /* , */ + 1;where c is not null"},
    };
    /* clang-format on */
    TIDE_CLEANUP(tide_arena_done) struct tide_arena arena = {0};
    for (size_t i = 0; i < COUNT(cases); i++) {
        TIDE_CLEANUP(tide_buf_done) struct tide_buf got = {0};
        struct tide_sqlite_index_text text = {0};
        struct tide_error err;
        assert_int_equal(tide_sqlite_index_text(tide_str_from(cases[i].sql), &arena, &text, &err),
                         TIDE_OK);
        for (size_t j = 0; j < text.term_count; j++) {
            tide_buf_printf(&got, "%.*s;", TIDE_STR_ARG(text.terms[j]));
        }
        if (text.where.ptr != NULL) {
            tide_buf_printf(&got, "where %.*s", TIDE_STR_ARG(text.where));
        }
        assert_string_equal(tide_buf_cstr(&got), cases[i].want);
    }
}

/* Every text that ends before the closing parenthesis is none, and none is read past. */
static void index_text_truncated_is_corrupt(void **state)
{
    (void)state;
    static const char sql[] = "CREATE UNIQUE INDEX i ON t(a||'x''y', \"b\" /* c */ DESC, f((d)))";
    for (size_t len = 0; len < sizeof(sql) - 1; len++) {
        TIDE_CLEANUP(tide_arena_done) struct tide_arena arena = {0};
        char *exact = test_malloc(len + 1); /* so that a sanitizer sees a byte too much */
        memcpy(exact, sql, len);
        struct tide_sqlite_index_text text = {0};
        struct tide_error err;
        assert_int_equal(tide_sqlite_index_text((tide_str){exact, len}, &arena, &text, &err),
                         TIDE_CORRUPT);
        assert_int_equal(text.term_count, 0);
        test_free(exact);
    }
    TIDE_CLEANUP(tide_arena_done) struct tide_arena arena = {0};
    struct tide_sqlite_index_text text = {0};
    struct tide_error err;
    assert_int_equal(
        tide_sqlite_index_text(TIDE_STR("CREATE INDEX i ON t(,a)"), &arena, &text, &err),
        TIDE_CORRUPT);
}

static void expression_text_means_the_same_in_a_trigger(void **state)
{
    (void)state;

    /* clang-format off */
    static const struct { const char *text; const char *want; } cases[] = {
        {"a > 0", "a > 0"},
        {"t.a > 1.5 AND \"t\".\"b\" < .5", "a > 1.5 AND \"b\" < .5"},
        {"main . t . a IS NULL", "  a IS NULL"},
        {"a || \"x'y\"", "a || 'x''y'"},
        {"\"A\" || \"rowid\"", "\"A\" || \"rowid\""},
        {"a COLLATE \"nocase\"", "a COLLATE \"nocase\""},
        {"CAST(a AS \"text\")", "CAST(a AS \"text\")"},
        {"\"lower\"(a)", "\"lower\"(a)"},
        {"a /* \"x\" */ -- t.a\n+ 1", "a /* \"x\" */ -- t.a\n+ 1"},
        {"[x] || `x`", "[x] || `x`"},
    };

    /* clang-format on */
    static const tide_str columns[] = {{"a", 1}, {"b", 1}};
    TIDE_CLEANUP(tide_arena_done) struct tide_arena arena = {0};
    for (size_t i = 0; i < COUNT(cases); i++) {
        expect_str(tide_sqlite_expression_text(tide_str_from(cases[i].text), columns, 2, &arena),
                   cases[i].want);
    }
}

static void default_text_bare_words_are_strings(void **state)
{
    (void)state;

    /* clang-format off */
    static const struct { const char *text; const char *want; } cases[] = {
        {"abc", "'abc'"}, {"\"it's\"", "'it''s'"}, {"[x y]", "'x y'"}, {"`z`", "'z'"},
        {"'s'", "'s'"}, {"1", "1"}, {"1.5e3", "1.5e3"}, {"-5", "-5"}, {"+ 5", "+ 5"},
        {"x'61'", "x'61'"}, {"0x1F", "0x1F"}, {"1+2", "1+2"}, {"TRUE", "1"}, {"false", "0"},
        {"current_timestamp", "current_timestamp"}, {"CURRENT_DATE", "CURRENT_DATE"},
        {"\"a\"||\"b\"", "'a'||'b'"}, {"lower('X')", "lower('X')"},
    };
    /* clang-format on */
    TIDE_CLEANUP(tide_arena_done) struct tide_arena arena = {0};
    for (size_t i = 0; i < COUNT(cases); i++) {
        expect_str(tide_sqlite_default_text(tide_str_from(cases[i].text), &arena), cases[i].want);
    }
    assert_null(tide_sqlite_default_text((tide_str){NULL, 0}, &arena).ptr);
    assert_null(tide_sqlite_default_text(TIDE_STR("null"), &arena).ptr);
    assert_null(tide_sqlite_default_text(TIDE_STR(" /* none */ "), &arena).ptr);
}

static void is_after_insert_reads_the_head_of_a_trigger(void **state)
{
    (void)state;

    /* clang-format off */
    static const struct { const char *sql; bool want; } cases[] = {
        {"CREATE TRIGGER x AFTER INSERT ON t BEGIN SELECT 1; END", true},
        {"CREATE TRIGGER \"after\" after /* c */ insert on t BEGIN SELECT 1; END", true},
        {"CREATE TRIGGER after AFTER INSERT ON t BEGIN SELECT 1; END", true},
        {"CREATE TRIGGER x BEFORE INSERT ON t BEGIN SELECT 1; END", false},
        {"CREATE TRIGGER x INSERT ON t BEGIN SELECT 1; END", false},
        {"CREATE TRIGGER x AFTER UPDATE ON t BEGIN INSERT INTO t VALUES (1); END", false},
        {"CREATE TRIGGER x AFTER", false},
    };

    /* clang-format on */
    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_int_equal(tide_sqlite_is_after_insert(tide_str_from(cases[i].sql)), cases[i].want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(token_next_splits_as_sqlite_does),
        cmocka_unit_test(token_unquote_doubled_quotes_become_single),
        cmocka_unit_test(index_text_slices_terms_and_where),
        cmocka_unit_test(index_text_truncated_is_corrupt),
        cmocka_unit_test(expression_text_means_the_same_in_a_trigger),
        cmocka_unit_test(default_text_bare_words_are_strings),
        cmocka_unit_test(is_after_insert_reads_the_head_of_a_trigger),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
