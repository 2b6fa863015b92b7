/* Lines of files that are plain or compressed, and that change while they are read. */
#include "cmocka_prelude.h"

#include "app/verify/frame_lines.h"
#include "base/limits.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#define PATH "lines.ndjson"

static void put(const char *how, const void *bytes, size_t len)
{
    FILE *file = fopen(PATH, how);
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, len, file), len);
    assert_int_equal(fclose(file), 0);
}

static void put_lines(size_t count, size_t line_len)
{
    struct tide_buf text TIDE_CLEANUP(tide_buf_done) = {0};
    for (size_t i = 0; i < count; i++) {
        char *to = tide_buf_reserve(&text, line_len + 1);
        memset(to, 'a' + (int)(i % 26), line_len);
        to[line_len] = '\n';
        text.len += line_len + 1;
    }
    put("w", text.ptr, text.len);
}

static void open_lines(struct tide_lines *lines, size_t line_bytes_max, uint64_t wanted)
{
    struct tide_error err;
    assert_int_equal(tide_lines_open(lines, PATH, line_bytes_max, wanted, &err), TIDE_OK);
}

/* Reads to the end; how many lines there were. */
static size_t read_rest(struct tide_lines *lines, tide_status want, struct tide_error *err)
{
    tide_str line;
    uint64_t at = 0;
    bool is_ended = false;
    size_t count = 0;
    tide_status status;
    while ((status = tide_lines_next(lines, &line, &at, &is_ended, err)) == TIDE_OK) {
        assert_true(line.len == 0 || line.ptr[0] == line.ptr[line.len - 1]);
        count++;
    }
    assert_int_equal(status, want);
    return count;
}

static void next_gives_lines_of_every_length_around_the_block(void **state)
{
    (void)state;
    static const size_t lengths[] = {0, 1, 3, 4, 5, TIDE_MIB - 2, TIDE_MIB, 3 * TIDE_MIB + 1};
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        struct tide_lines lines TIDE_CLEANUP(tide_lines_close) = {.fd = -1};
        struct tide_error err;
        put_lines(5, lengths[i]);
        open_lines(&lines, 4 * TIDE_MIB, UINT64_MAX);
        assert_int_equal(read_rest(&lines, TIDE_END, &err), 5);
        assert_int_equal(lines.file_bytes, 5 * (lengths[i] + 1));
    }
}

static void next_at_the_limit_is_given_and_one_byte_more_refused(void **state)
{
    (void)state;
    for (size_t more = 0; more < 2; more++) {
        struct tide_lines lines TIDE_CLEANUP(tide_lines_close) = {.fd = -1};
        struct tide_error err;
        put_lines(2, 2 * TIDE_MIB + more);
        open_lines(&lines, 2 * TIDE_MIB, UINT64_MAX);
        assert_int_equal(read_rest(&lines, more == 0 ? TIDE_END : TIDE_CORRUPT, &err),
                         more == 0 ? 2 : 0);
        assert_true(lines.block.cap <= 8 * TIDE_MIB);
    }
}

/* A file of three long lines, the first of which was read; `is_limited`: no more than they are. */
static void begin_to_read(struct tide_lines *lines, bool is_limited)
{
    struct tide_error err;
    tide_str line;
    uint64_t at = 0;
    bool is_ended = false;
    put_lines(3, TIDE_MIB);
    open_lines(lines, 2 * TIDE_MIB, is_limited ? 3 * (TIDE_MIB + 1) : UINT64_MAX);
    assert_int_equal(tide_lines_next(lines, &line, &at, &is_ended, &err), TIDE_OK);
}

static void next_in_a_file_that_grows_reads_on_unless_less_is_wanted(void **state)
{
    (void)state;
    for (size_t more = 0; more < 2; more++) {
        struct tide_lines lines TIDE_CLEANUP(tide_lines_close) = {.fd = -1};
        struct tide_error err;
        begin_to_read(&lines, more == 0);
        put("a", "z\n", 2);
        assert_int_equal(read_rest(&lines, TIDE_END, &err), 2 + more);
        assert_int_equal(lines.file_bytes, 3 * (TIDE_MIB + 1) + 2 * more);
    }
}

static void next_in_a_file_that_became_shorter_is_an_error(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct tide_lines lines TIDE_CLEANUP(tide_lines_close) = {.fd = -1};
        struct tide_error err;
        begin_to_read(&lines, i == 1);
        assert_int_equal(truncate(PATH, i == 0 ? 10 : 2 * (TIDE_MIB + 1)), 0);
        (void)read_rest(&lines, TIDE_IO, &err);
        assert_non_null(strstr(err.message, PATH ": became shorter while it was read: "));
    }
}

static void next_of_zstd_data_gives_what_was_compressed(void **state)
{
    (void)state;
    static char packed[4 * TIDE_MIB];
    struct tide_lines lines TIDE_CLEANUP(tide_lines_close) = {.fd = -1};
    struct tide_error err;
    struct tide_buf text TIDE_CLEANUP(tide_buf_done) = {0};
    for (int i = 0; i < 300000; i++) {
        tide_buf_printf(&text, "1%d1\n", i % 1000 * 7919 % 104729);
    }
    size_t half = ZSTD_compress(packed, sizeof(packed), text.ptr, text.len, 1);
    size_t whole =
        half + ZSTD_compress(packed + half, sizeof(packed) - half, text.ptr, text.len, 19);
    put("w", packed, whole);
    open_lines(&lines, 100, whole);
    assert_int_equal(read_rest(&lines, TIDE_END, &err), 600000);
    assert_int_equal(lines.file_bytes, whole);
    assert_string_equal(lines.byte_word, "decompressed byte");
}

static int enter_folder(void **state)
{
    static char folder[] = "/tmp/test_frame_lines_XXXXXX";
    *state = mkdtemp(folder);
    return *state == NULL ? -1 : chdir(folder);
}

static int leave_folder(void **state)
{
    (void)unlink(PATH);
    return chdir("/") == 0 && rmdir(*state) == 0 ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(next_gives_lines_of_every_length_around_the_block),
        cmocka_unit_test(next_at_the_limit_is_given_and_one_byte_more_refused),
        cmocka_unit_test(next_in_a_file_that_grows_reads_on_unless_less_is_wanted),
        cmocka_unit_test(next_in_a_file_that_became_shorter_is_an_error),
        cmocka_unit_test(next_of_zstd_data_gives_what_was_compressed),
    };
    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
