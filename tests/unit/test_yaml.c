#include "cmocka_prelude.h"

#include "app/config/yaml.h"
#include "base/buf.h"
#include "base/limits.h"

#include <stdio.h>

/* Parses; fails unless the message and its place are as wanted. */
static void expect_failure(tide_str bytes, const char *want)
{
    struct tide_arena arena TIDE_CLEANUP(tide_arena_done) = {0};
    const struct tide_yaml_node *root = NULL;
    struct tide_yaml_mark mark = {0};
    struct tide_error err = {0};
    char got[640];
    assert_int_equal(tide_yaml_parse(bytes, &arena, &root, &mark, &err), TIDE_INVALID);
    assert_null(root);
    (void)snprintf(got, sizeof(got), "%zu:%zu: %s", mark.line, mark.column, err.message);
    assert_string_equal(got, want);
}

static const struct tide_yaml_node *parse(tide_str bytes, struct tide_arena *arena)
{
    const struct tide_yaml_node *root = NULL;
    struct tide_yaml_mark mark = {0};
    struct tide_error err = {0};
    if (tide_yaml_parse(bytes, arena, &root, &mark, &err) != TIDE_OK) {
        fail_msg("%zu:%zu: %s", mark.line, mark.column, err.message);
    }
    return root;
}

/* `{a:[b c] d:nothing}`, each node with its place: a@1:1. */
static void write_tree(const struct tide_yaml_node *node, struct tide_buf *buf)
{
    if (node->kind == TIDE_YAML_TEXT) {
        tide_buf_printf(buf, "%s%.*s@%zu:%zu", node->is_quoted ? "'" : "", TIDE_STR_ARG(node->text),
                        node->mark.line, node->mark.column);
        return;
    }
    tide_buf_append_char(buf, node->kind == TIDE_YAML_MAP ? '{' : '[');
    for (const struct tide_yaml_item *item = node->first; item != NULL; item = item->next) {
        if (item->key != NULL) {
            write_tree(item->key, buf);
            tide_buf_append_char(buf, ':');
        }
        write_tree(item->value, buf);
        tide_buf_append_str(buf, item->next == NULL ? TIDE_STR("") : TIDE_STR(" "));
    }
    tide_buf_append_char(buf, node->kind == TIDE_YAML_MAP ? '}' : ']');
}

static void parse_gives_tree_with_places(void **state)
{
    (void)state;

    static const struct {
        const char *yaml;
        const char *want;
    } cases[] = {
        {"a: b", "{a@1:1:b@1:4}"},
        {"a: [b, 'c']\nd:\n", "{a@1:1:[b@1:5 'c@1:8] d@2:1:@2:3}"},
        {"- 1\n- x: {y: z}\n", "[1@1:3 {x@2:3:{y@2:7:z@2:10}}]"},
        {"\xef\xbb\xbf"
         "a: b",
         "{a@1:1:b@1:4}"},
        {"é: ü # columns are characters", "{é@1:1:ü@1:4}"},
        {"a: |\n  two\n  lines\n", "{a@1:1:'two\nlines\n@1:4}"},
        {"a: &x [1, 2]\nb: *x\n", "{a@1:1:[1@1:8 2@1:11] b@2:1:[1@1:8 2@1:11]}"},
        {"a: &x 1\nb: &x 2\nc: *x\n", "{a@1:1:1@1:4 b@2:1:2@2:4 c@3:1:2@2:4}"},
        {"word", "word@1:1"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tide_arena arena TIDE_CLEANUP(tide_arena_done) = {0};
        struct tide_buf buf TIDE_CLEANUP(tide_buf_done) = {0};
        write_tree(parse(tide_str_from(cases[i].yaml), &arena), &buf);
        assert_string_equal(tide_buf_cstr(&buf), cases[i].want);
    }
}

static void parse_bad_file_says_where(void **state)
{
    (void)state;

    static const struct {
        tide_str yaml;
        const char *want;
    } cases[] = {
        {TIDE_STR(""), "1:1: the file is empty"},
        {TIDE_STR("# only a remark\n"), "2:1: the file is empty"},
        {TIDE_STR("a:\n\tb: 1\n"),
         "2:1: not YAML: found character that cannot start any token (while scanning for the next "
         "token); indent with spaces, not with tabs"},
        {TIDE_STR("é: ü\nb:\n\tc: 1\n"),
         "3:1: not YAML: found character that cannot start any token (while scanning for the next "
         "token); indent with spaces, not with tabs"},
        {TIDE_STR("a: b: c"), "1:5: not YAML: mapping values are not allowed in this context"},
        {TIDE_STR("a: [b"), "2:1: not YAML: did not find expected ',' or ']' (while parsing a flow "
                            "sequence)"},
        {TIDE_STR("a: \"b"), "1:6: not YAML: found unexpected end of stream (while scanning a "
                             "quoted scalar)"},
        {TIDE_STR("a: b\nc: \xff"), "2:4: not UTF-8: byte 0xff"},
        {TIDE_STR("a: é\xc3"), "1:5: not UTF-8: byte 0xc3"},
        {TIDE_STR("\xff\xfe"
                  "a\0:\0"),
         "1:1: not UTF-8: byte 0xff"},
        {TIDE_STR("a: é\x01"), "1:5: not YAML: control characters are not allowed"},
        {TIDE_STR("a: b\0c"), "1:5: not YAML: control characters are not allowed"},
        {TIDE_STR("a: \"x\\0y\""), "1:4: a text with a NUL character in it"},
        {TIDE_STR("a: !!int 3"), "1:4: a tag means nothing here; leave it "
                                 "out"},
        {TIDE_STR("a: !x [3]"), "1:4: a tag means nothing here; leave it out"},
        {TIDE_STR("a: 1\n---\nb: 2\n"), "2:1: a second document; a file holds one"},
        {TIDE_STR("[a]: 1"), "1:1: a key is a word, not a list"},
        {TIDE_STR("a: *x"), "1:4: *x stands for nothing that ends before it"},
        {TIDE_STR("a: &x [*x]"), "1:8: *x stands for nothing that ends before it"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        expect_failure(cases[i].yaml, cases[i].want);
    }
}

static void parse_a_hundred_thousand_levels_is_refused(void **state)
{
    (void)state;
    static const char *const levels[] = {"[", "{", "- ", "? ", "{a: "};
    static const char *const wants[] = {
        "1:33: nested deeper than 32 levels", "1:33: nested deeper than 32 levels",
        "1:65: nested deeper than 32 levels", "1:65: nested deeper than 32 levels",
        "1:129: nested deeper than 32 levels"};
    for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
        struct tide_buf buf TIDE_CLEANUP(tide_buf_done) = {0};
        for (size_t level = 0; level < 100000; level++) {
            tide_buf_append_str(&buf, tide_str_from(levels[i]));
        }
        expect_failure(tide_buf_str(&buf), wants[i]);
    }
}

static void parse_deepest_level_is_taken(void **state)
{
    (void)state;
    struct tide_arena arena TIDE_CLEANUP(tide_arena_done) = {0};
    struct tide_buf buf TIDE_CLEANUP(tide_buf_done) = {0};
    for (size_t level = 0; level < TIDE_YAML_DEPTH_MAX; level++) {
        tide_buf_append_char(&buf, '[');
    }
    for (size_t level = 0; level < TIDE_YAML_DEPTH_MAX; level++) {
        tide_buf_append_char(&buf, ']');
    }
    assert_int_equal(parse(tide_buf_str(&buf), &arena)->height, TIDE_YAML_DEPTH_MAX);
}

/* Each line stands for nine times the line before: 9^10 texts. */
static void parse_a_billion_laughs_is_refused(void **state)
{
    (void)state;
    struct tide_buf buf TIDE_CLEANUP(tide_buf_done) = {0};
    tide_buf_append_str(&buf, TIDE_STR("l0: &l0 lol\n"));
    for (unsigned line = 1; line <= 10; line++) {
        tide_buf_printf(&buf, "l%u: &l%u [", line, line);
        for (unsigned i = 0; i < 9; i++) {
            tide_buf_printf(&buf, "%s*l%u", i > 0 ? "," : "", line - 1);
        }
        tide_buf_append_str(&buf, TIDE_STR("]\n"));
    }
    expect_failure(tide_buf_str(&buf), "6:14: its aliases stand for more than 10000 values");
}

/* Each line is the line before, once, in a list. */
static void parse_depth_by_aliases_is_refused(void **state)
{
    (void)state;
    struct tide_buf buf TIDE_CLEANUP(tide_buf_done) = {0};
    tide_buf_append_str(&buf, TIDE_STR("l0: &l0 lol\n"));
    for (unsigned line = 1; line <= 40; line++) {
        tide_buf_printf(&buf, "l%u: &l%u [*l%u]\n", line, line, line - 1);
    }
    expect_failure(tide_buf_str(&buf), "32:12: nested deeper than 32 levels");
}

static void repeat(struct tide_buf *buf, const char *text, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        tide_buf_append_str(buf, tide_str_from(text));
    }
}

static void parse_too_many_of_something_is_refused(void **state)
{
    (void)state;
    struct tide_buf buf TIDE_CLEANUP(tide_buf_done) = {0};
    repeat(&buf, "- a\n", TIDE_YAML_NODES_MAX);
    expect_failure(tide_buf_str(&buf), "10000:3: more than 10000 values");
    tide_buf_reset(&buf);
    repeat(&buf, "- &a a\n", TIDE_YAML_ANCHORS_MAX + 1);
    expect_failure(tide_buf_str(&buf), "257:3: more than 256 anchors");
    tide_buf_reset(&buf);
    repeat(&buf, "#", TIDE_CONFIG_BYTES_MAX + 1);
    expect_failure(tide_buf_str(&buf), "1:1: longer than 1048576 bytes");
}

static void parse_every_beginning_ends(void **state)
{
    (void)state;
    tide_str whole = TIDE_STR("a: &x [b, 'c', \"d\\n\"]\ne: {f: *x, g: |\n  h\n }\n- i");
    for (size_t len = 0; len <= whole.len; len++) {
        struct tide_arena arena TIDE_CLEANUP(tide_arena_done) = {0};
        const struct tide_yaml_node *root = NULL;
        struct tide_yaml_mark mark = {0};
        struct tide_error err = {0};
        tide_status status =
            tide_yaml_parse(tide_str_of(whole.ptr, len), &arena, &root, &mark, &err);
        assert_true(status == TIDE_OK ? root != NULL : root == NULL && mark.line > 0);
    }
}

static void is_nothing_is_an_unquoted_empty_text(void **state)
{
    (void)state;
    struct tide_arena arena TIDE_CLEANUP(tide_arena_done) = {0};
    const struct tide_yaml_node *root = parse(TIDE_STR("[~, null, '', 'null', nil, []]"), &arena);
    static const bool want[] = {true, true, false, false, false, false};
    size_t i = 0;
    for (const struct tide_yaml_item *item = root->first; item != NULL; item = item->next) {
        assert_int_equal(tide_yaml_is_nothing(item->value), want[i++]);
    }
    assert_int_equal(i, 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parse_gives_tree_with_places),
        cmocka_unit_test(parse_bad_file_says_where),
        cmocka_unit_test(parse_a_hundred_thousand_levels_is_refused),
        cmocka_unit_test(parse_deepest_level_is_taken),
        cmocka_unit_test(parse_a_billion_laughs_is_refused),
        cmocka_unit_test(parse_depth_by_aliases_is_refused),
        cmocka_unit_test(parse_too_many_of_something_is_refused),
        cmocka_unit_test(parse_every_beginning_ends),
        cmocka_unit_test(is_nothing_is_an_unquoted_empty_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
