/*
 * Segments that are kept, of version "tidemark-changes-1": what is in archives must be read for
 * ever. Each NAME.parquet has its rows in NAME.rows, as `change_segment print` wrote them.
 */
#include "cmocka_prelude.h"

#include "archive/change_encoder.h"
#include "base/attr.h"

#include <stdio.h>
#include <stdlib.h>

#define FOLDER TIDE_TEST_ROOT "/golden/change_segment"

static void read_file(const char *name, const char *suffix, struct tide_buf *buf)
{
    char path[512];
    char part[4096];
    size_t got = 0;
    (void)snprintf(path, sizeof(path), "%s/%s.%s", FOLDER, name, suffix);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    while ((got = fread(part, 1, sizeof(part), file)) > 0) {
        tide_buf_append(buf, part, got);
    }
    (void)fclose(file);
}

static tide_status append_row(void *context, int64_t ts, tide_str bytes, struct tide_error *err)
{
    struct tide_buf *buf = context;
    (void)err;
    tide_buf_printf(buf, "%lld ", (long long)ts);
    for (size_t i = 0; i < bytes.len; i++) {
        tide_buf_printf(buf, "%02x", (unsigned char)bytes.ptr[i]);
    }
    tide_buf_append_char(buf, '\n');
    return TIDE_OK;
}

static void kept_segments_give_the_rows_they_were_made_of(void **state)
{
    static const char *const names[] = {"shop", "random_5", "random_6", "random_8"};
    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct tide_buf file TIDE_CLEANUP(tide_buf_done) = {0};
        struct tide_buf want TIDE_CLEANUP(tide_buf_done) = {0};
        struct tide_buf got TIDE_CLEANUP(tide_buf_done) = {0};
        struct tide_error err = {0};
        read_file(names[i], "parquet", &file);
        read_file(names[i], "rows", &want);
        const struct tide_archive_segment segment = {.bytes = tide_buf_str(&file)};
        const struct tide_archive_row_taker taker = {append_row, &got};
        assert_int_equal(tide_change_encoder.decode(NULL, TIDE_STR("t"), &segment, &taker, &err),
                         TIDE_OK);
        assert_true(want.len > 0);
        assert_string_equal(tide_buf_cstr(&got), tide_buf_cstr(&want));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kept_segments_give_the_rows_they_were_made_of),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
