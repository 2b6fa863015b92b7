#include "cmocka_prelude.h"

#include "base/buf.h"
#include "source/postgres/pg_copy_text.h"

#include <stdio.h>
#include <stdlib.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define FIELDS_MAX   40

/* Splits a copy of the line in memory of just its size, so that a sanitizer sees a byte read too
 * far. Fields without escapes must lie in the line. */
struct split {
    struct tide_arena arena;
    char *line;
    struct tide_pg_field fields[FIELDS_MAX];
    struct tide_error err;
    tide_status status;
};

static void split_line(struct split *split, tide_str line, size_t count)
{
    *split = (struct split){.line = malloc(line.len > 0 ? line.len : 1)};
    assert_non_null(split->line);
    if (line.len > 0) {
        memcpy(split->line, line.ptr, line.len);
    }
    split->status = tide_pg_copy_line(tide_str_of(split->line, line.len), count, &split->arena,
                                      split->fields, &split->err);
}

static void split_done(struct split *split)
{
    tide_arena_done(&split->arena);
    free(split->line);
}

/* `a|b`, `~` for NULL; bytes below 32 as <hex>. */
static void print_fields(struct tide_buf *out, const struct tide_pg_field *fields, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        tide_buf_append_str(out, i == 0 ? TIDE_STR("") : TIDE_STR("|"));
        if (fields[i].kind == TIDE_PG_FIELD_NULL) {
            tide_buf_append_char(out, '~');
            continue;
        }
        assert_int_equal(fields[i].kind, TIDE_PG_FIELD_TEXT);
        assert_non_null(fields[i].ptr);
        for (size_t at = 0; at < fields[i].len; at++) {
            unsigned char byte = (unsigned char)fields[i].ptr[at];
            tide_buf_printf(out, byte < 32 || byte == 0xff ? "<%02x>" : "%c", byte);
        }
    }
}

static void line_known_lines_split(void **state)
{
    (void)state;

    /* clang-format off */
    static const struct { const char *line; size_t count; const char *want; } cases[] = {
        {"", 1, ""},
        {"\n", 1, ""},
        {"a", 1, "a"},
        {"a\n", 1, "a"},
        {"\t", 2, "|"},
        {"a\tb\tc\n", 3, "a|b|c"},
        {"\\N", 1, "~"},
        {"\\N\t\\N\n", 2, "~|~"},
        {"\\N\t\t\\N\tNULL\tN", 5, "~||~|NULL|N"},
        {"\\\\N", 1, "\\N"},
        {"\\Nx\tx\\N", 2, "Nx|xN"}, /* NULL is the whole field */
        {"\\b\\f\\n\\r\\t\\v\\\\", 1, "<08><0c><0a><0d><09><0b>\\"},
        {"a\\tb\tc\\nd\n", 2, "a<09>b|c<0a>d"},
        {"\\\\.", 1, "\\."},
        {"\\.x", 1, ".x"},
        {"\\q\\'", 1, "q'"},
        {"\\101\\60\\7\\0078", 1, "A0<07><07>8"},
        {"\\777\\400", 1, "<ff><00>"},
        {"\\8", 1, "8"},
        {"\\x41\\x4a\\x4A\\x7\\x079", 1, "AJJ<07><07>9"},
        {"\\xg\\x\tb", 2, "xgx|b"},
        {"\\x4\\b", 1, "<04><08>"},
        {"0123456789abcdef0123456789abcde\tf\\\\", 2, "0123456789abcdef0123456789abcde|f\\"},
        {"\r", 1, "<0d>"},
    };

    /* clang-format on */
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct split split;
        TIDE_CLEANUP(tide_buf_done) struct tide_buf got = {0};
        split_line(&split, tide_str_from(cases[i].line), cases[i].count);
        if (split.status != TIDE_OK) {
            fail_msg("case %zu: %s", i, split.err.message);
        }
        print_fields(&got, split.fields, cases[i].count);
        assert_string_equal(tide_buf_cstr(&got), cases[i].want);
        split_done(&split);
    }
}

static void line_wrong_lines_are_corrupt(void **state)
{
    (void)state;

    /* clang-format off */
    static const struct { const char *line; size_t count; const char *says; } cases[] = {
        {"", 2, "1 columns instead of 2"},
        {"a\n", 2, "1 columns instead of 2"},
        {"a\tb", 1, "more than 1 columns"},
        {"a\t", 1, "more than 1 columns"},
        {"a\tb\tc", 2, "more than 2 columns"},
        {"a\tb", 3, "2 columns instead of 3"},
        {"\\N\t\\N", 1, "more than 1 columns"},
        {"a\\", 1, "lone backslash"},
        {"\\", 1, "lone backslash"},
        {"a\\\n", 1, "lone backslash"},
        {"a\\\tb", 2, "lone backslash"},
        {"\\.", 1, "end mark"},
        {"\\.\n", 1, "end mark"},
        {"a\nb", 1, "line feed"},
        {"a\n\n", 1, "line feed"},
        {"\\\\\nb", 1, "line feed"},
        {"\\\\\n\tb", 2, "line feed"},
    };

    /* clang-format on */
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct split split;
        split_line(&split, tide_str_from(cases[i].line), cases[i].count);
        assert_int_equal(split.status, TIDE_CORRUPT);
        if (strstr(split.err.message, cases[i].says) == NULL) {
            fail_msg("case %zu says: %s", i, split.err.message);
        }
        split_done(&split);
    }
}

static void line_plain_fields_are_slices(void **state)
{
    (void)state;
    struct split split;
    split_line(&split, TIDE_STR("plain\t\\N\tesc\\\\aped\tlast\n"), 4);
    assert_int_equal(split.status, TIDE_OK);
    assert_ptr_equal(split.fields[0].ptr, split.line);
    assert_ptr_equal(split.fields[3].ptr, split.line + 19);
    assert_true(split.fields[2].ptr < split.line || split.fields[2].ptr > split.line + 24);
    assert_null(split.fields[1].ptr);
    split_done(&split);
}

/* Random rows, written as the server does. */

static uint64_t next_random(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return *seed >> 33;
}

static void escape(struct tide_buf *line, tide_str text)
{
    static const char letters[256] = {['\b'] = 'b', ['\f'] = 'f', ['\n'] = 'n', ['\r'] = 'r',
                                      ['\t'] = 't', ['\v'] = 'v', ['\\'] = '\\'};
    for (size_t i = 0; i < text.len; i++) {
        char letter = letters[(unsigned char)text.ptr[i]];
        if (letter != '\0') {
            tide_buf_append_char(line, '\\');
        }
        tide_buf_append_char(line, letter != '\0' ? letter : text.ptr[i]);
    }
}

/* Rows of few escapes and rows of little else. */
static char random_byte(uint64_t *seed, bool is_wild)
{
    static const char wild[] = "\b\f\n\r\t\v\\N.x0";
    if (is_wild || next_random(seed) % 50 == 0) {
        return wild[next_random(seed) % (sizeof(wild) - 1)];
    }
    return (char)(unsigned char)(next_random(seed) % 256);
}

static void make_row(struct tide_buf *line, struct tide_pg_field *fields, size_t count,
                     struct tide_arena *arena, uint64_t *seed)
{
    bool is_wild = next_random(seed) % 2 == 0;
    for (size_t i = 0; i < count; i++) {
        tide_buf_append_str(line, i == 0 ? TIDE_STR("") : TIDE_STR("\t"));
        if (next_random(seed) % 5 == 0) {
            fields[i] = (struct tide_pg_field){.kind = TIDE_PG_FIELD_NULL};
            tide_buf_append_str(line, TIDE_STR("\\N"));
            continue;
        }
        uint32_t len = (uint32_t)(next_random(seed) % 50);
        char *text = tide_arena_bytes(arena, len);
        for (uint32_t at = 0; at < len; at++) {
            text[at] = random_byte(seed, is_wild);
        }
        fields[i] = (struct tide_pg_field){text, len, TIDE_PG_FIELD_TEXT};
        escape(line, tide_str_of(text, len));
    }
}

static void check_row(uint64_t *seed)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf line = {0};
    TIDE_CLEANUP(tide_arena_done) struct tide_arena arena = {0};
    struct tide_pg_field want[FIELDS_MAX];
    struct split split;
    size_t count = 1 + next_random(seed) % (FIELDS_MAX - 1);
    make_row(&line, want, count, &arena, seed);
    if (next_random(seed) % 2 == 0) {
        tide_buf_append_char(&line, '\n');
    }
    split_line(&split, tide_buf_str(&line), count);
    if (split.status != TIDE_OK) {
        fail_msg("%s", split.err.message);
    }
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(split.fields[i].kind, want[i].kind);
        assert_true(tide_str_equal(tide_pg_field_str(split.fields[i]), tide_pg_field_str(want[i])));
    }
    split_done(&split);
    split_line(&split, tide_buf_str(&line), count + 1);
    assert_int_equal(split.status, TIDE_CORRUPT);
    split_done(&split);
}

static void line_random_rows_round_trip(void **state)
{
    (void)state;
    uint64_t seed = 3;
    for (int i = 0; i < 20000; i++) {
        check_row(&seed);
    }
}

/* Any bytes: no read past the end, and what splits has the columns that were asked for. */
static void line_random_bytes_are_safe(void **state)
{
    (void)state;
    static const char letters[] = "\\\t\nNx47a";
    uint64_t seed = 8;
    for (int i = 0; i < 50000; i++) {
        char line[48];
        size_t len = next_random(&seed) % sizeof(line);
        size_t tabs = 0;
        for (size_t at = 0; at < len; at++) {
            line[at] = letters[next_random(&seed) % (sizeof(letters) - 1)];
            tabs += line[at] == '\t';
        }
        size_t count = 1 + next_random(&seed) % 6;
        struct split split;
        split_line(&split, tide_str_of(line, len), count);
        assert_true(split.status == TIDE_CORRUPT || tabs + 1 == count);
        split_done(&split);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(line_known_lines_split),
        cmocka_unit_test(line_wrong_lines_are_corrupt),
        cmocka_unit_test(line_plain_fields_are_slices),
        cmocka_unit_test(line_random_rows_round_trip),
        cmocka_unit_test(line_random_bytes_are_safe),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
