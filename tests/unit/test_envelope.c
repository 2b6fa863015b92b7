#include "cmocka_prelude.h"

#include "base/fsio.h"
#include "base/limits.h"
#include "format/envelope.h"
#include "format/json_reader.h"
#include "format/record.h"

#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define VALUE(kind_name, literal)                                                                  \
    {                                                                                              \
        (literal), sizeof(literal) - 1, TIDE_VALUE_##kind_name                                     \
    }
#define UNSENT                                                                                     \
    {                                                                                              \
        NULL, 0, TIDE_VALUE_UNCHANGED                                                              \
    }

/* 2026-11-29T13:40:55.567Z and some microseconds that are cut; T13:41:00Z. */
#define SNAPSHOT_US  INT64_C(1795959655567891)
#define COMPLETED_US INT64_C(1795959660000000)
#define RECORD_LEN   48 /* of first_row as JSON */

static struct tide_column columns[] = {
    {.name = {"id", 2}}, {.name = {"note", 4}}, {.name = {"price", 5}}};
static uint32_t id_key[] = {0};
static uint32_t text_key[] = {1, 0};
static struct tide_relation orders = {
    .store = {"shop.or\"ders", 12},
    .column_count = 3,
    .columns = columns,
    .key_count = 1,
    .key_columns = id_key,
};

static const struct tide_value first_row[] = {VALUE(INTEGER, "1"), VALUE(TEXT, "a \"first\" note"),
                                              VALUE(DECIMAL, "19.90")};
static const struct tide_value second_row[] = {
    VALUE(INTEGER, "2"), {NULL, 0, TIDE_VALUE_NULL}, VALUE(REAL, "NaN")};
static const struct tide_value price_only[] = {VALUE(INTEGER, "1"), UNSENT,
                                               VALUE(DECIMAL, "19.90")};
static const struct tide_value id_only[] = {VALUE(INTEGER, "1"), UNSENT, UNSENT};
static const struct tide_value key_one[] = {VALUE(INTEGER, "1")};
static const struct tide_value key_nine[] = {VALUE(INTEGER, "9")};
static const struct tide_value *const rows[] = {first_row, second_row};
static const uint64_t starts[] = {4, 7};

static struct tide_place place_of(uint64_t position, uint64_t index)
{
    return (struct tide_place){.position = {.lo = position}, .index = index, .known = true};
}

static struct tide_envelope_options plain_options(void)
{
    return (struct tide_envelope_options){.position_kind = &tide_position_integer,
                                          .record_bytes_max = RECORD_LEN};
}

static struct tide_snapshot_part plain_part(void)
{
    return (struct tide_snapshot_part){
        .relation = &orders,
        .head = {.id = "01a22789-8c8f-7abc-8def-0123456789ab", .at_us = SNAPSHOT_US},
        .opening = TIDE_OPENING_BEGIN,
        .rows = rows,
        .row_count = 2,
        .row_position = {.lo = 42},
        .is_end = true,
        .completed_us = COMPLETED_US,
        .changes_to = place_of(44, 0),
    };
}

/* The same after two interruptions. */
static struct tide_snapshot_part resumed_part(void)
{
    struct tide_snapshot_part part = plain_part();
    part.opening = TIDE_OPENING_RESUME;
    part.head.attempt = 2;
    part.head.starts = starts;
    part.first_seq = 7;
    part.changes_from = place_of(41, 3);
    return part;
}

static struct tide_change plain_change(enum tide_op op)
{
    return (struct tide_change){
        .op = op,
        .relation = &orders,
        .place = place_of(44, 1),
        .prev = place_of(44, 0),
        .commit_us = COMPLETED_US,
        .key = key_one,
        .values = first_row,
    };
}

/* `buf` is the golden file's line, and every shorter text is no JSON. */
static void check(struct tide_buf *buf, const char *name)
{
    char path[512];
    struct tide_buf want = {0};
    struct tide_error err = {0};
    (void)snprintf(path, sizeof(path), "%s/golden/envelope/%s.json", TIDE_TEST_ROOT, name);
    if (tide_file_read(path, 64 * TIDE_KIB, &want, &err) != TIDE_OK) {
        fail_msg("%s", err.message);
    }
    tide_buf_append_char(buf, '\n');
    if (!tide_str_equal(tide_buf_str(buf), tide_buf_str(&want))) {
        fail_msg("%s: got %s", name, tide_buf_cstr(buf));
    }
    assert_int_equal(tide_json_check(tide_buf_str(buf), 8, &err), TIDE_OK);
    for (size_t len = 0; len + 1 < buf->len; len++) {
        assert_int_equal(tide_json_check(tide_str_of(buf->ptr, len), 8, &err), TIDE_CORRUPT);
    }
    tide_buf_done(&want);
    tide_buf_done(buf);
}

static void check_opening(const struct tide_snapshot_part *part, const char *name)
{
    struct tide_envelope_options options = plain_options();
    struct tide_buf buf = {0};
    tide_envelope_append_opening(&buf, &options, part);
    check(&buf, name);
}

static void append_opening_is_golden(void **state)
{
    (void)state;
    struct tide_snapshot_part part = plain_part();
    check_opening(&part, "begin");
    part.changes_from = place_of(41, 3);
    part.head.incarnation = 2;
    check_opening(&part, "begin_incarnation");
    part = resumed_part();
    check_opening(&part, "resume");
    part.head.incarnation = 2;
    check_opening(&part, "resume_incarnation");
}

static void check_end(const struct tide_snapshot_part *part, const char *name)
{
    struct tide_envelope_options options = plain_options();
    struct tide_buf buf = {0};
    tide_envelope_append_end(&buf, &options, part);
    check(&buf, name);
}

static void append_end_is_golden(void **state)
{
    (void)state;
    struct tide_snapshot_part part = plain_part();
    check_end(&part, "end");
    part.row_count = 0;
    part.completed_us = SNAPSHOT_US;
    part.changes_to.known = false;
    check_end(&part, "end_empty");
    part = resumed_part();
    part.head.incarnation = 2;
    check_end(&part, "end_attempt");
}

/* Row number `index` of the part, as a sink writes it. */
static void append_row(struct tide_buf *buf, const struct tide_envelope_options *options,
                       const struct tide_snapshot_part *part, size_t index, size_t *ret_oversize,
                       struct tide_buf *record_copy)
{
    struct tide_envelope_rows prepared;
    tide_envelope_rows_init(&prepared, options, part);
    tide_envelope_rows_append(buf, &prepared, index, ret_oversize, record_copy);
    tide_envelope_rows_done(&prepared);
}

static void check_row(const struct tide_snapshot_part *part, size_t index, size_t limit,
                      size_t want_oversize, const char *name)
{
    struct tide_envelope_options options = plain_options();
    options.record_bytes_max = limit;
    struct tide_buf buf = {0};
    size_t oversize = 99;
    append_row(&buf, &options, part, index, &oversize, NULL);
    assert_int_equal(oversize, want_oversize);
    check(&buf, name);
}

static void rows_append_is_golden(void **state)
{
    (void)state;
    struct tide_snapshot_part part = plain_part();
    check_row(&part, 0, RECORD_LEN, 0, "row");
    part = resumed_part();
    part.head.incarnation = 2;
    check_row(&part, 1, RECORD_LEN, 0, "row_attempt");
}

static void rows_append_one_byte_over_the_limit_is_a_stub(void **state)
{
    (void)state;
    struct tide_snapshot_part part = plain_part();
    check_row(&part, 0, RECORD_LEN, 0, "row");
    check_row(&part, 0, RECORD_LEN - 1, RECORD_LEN, "oversize");
    part = resumed_part();
    part.head.incarnation = 2;
    check_row(&part, 0, RECORD_LEN - 1, RECORD_LEN, "oversize_attempt");
}

static void rows_append_stub_says_the_key_where_there_is_one(void **state)
{
    (void)state;
    struct tide_relation relation = orders;
    struct tide_snapshot_part part = plain_part();
    part.relation = &relation;
    relation.key_count = 2;
    relation.key_columns = text_key;
    check_row(&part, 0, 0, RECORD_LEN, "oversize_text_key");
    relation.key_count = 0;
    check_row(&part, 0, 0, RECORD_LEN, "oversize_no_key");
}

static void rows_append_oversize_copies_the_record(void **state)
{
    (void)state;
    struct tide_envelope_options options = plain_options();
    struct tide_snapshot_part part = plain_part();
    struct tide_buf buf = {0};
    struct tide_buf copy = {0};
    size_t oversize = 0;
    tide_buf_append_str(&copy, TIDE_STR("before "));
    append_row(&buf, &options, &part, 0, &oversize, &copy);
    assert_string_equal(tide_buf_cstr(&copy), "before ");
    options.record_bytes_max--;
    append_row(&buf, &options, &part, 0, &oversize, &copy);
    assert_string_equal(tide_buf_cstr(&copy),
                        "before {\"id\":1,\"note\":\"a \\\"first\\\" note\",\"price\":19.90}");
    tide_buf_done(&buf);
    tide_buf_done(&copy);
}

static void check_change(const struct tide_change *change, struct tide_envelope_options options,
                         size_t want_oversize, const char *name)
{
    struct tide_buf buf = {0};
    size_t oversize = 99;
    tide_envelope_append_change(&buf, &options, change, &oversize, NULL);
    assert_int_equal(oversize, want_oversize);
    check(&buf, name);
}

static void append_change_is_golden(void **state)
{
    (void)state;
    struct tide_envelope_options options = plain_options();
    struct tide_change change = plain_change(TIDE_OP_INSERT);
    change.prev.known = false;
    check_change(&change, options, 0, "change_insert");

    change = plain_change(TIDE_OP_DELETE);
    change.values = NULL;
    change.before = second_row;
    check_change(&change, options, 0, "change_delete");

    change = plain_change(TIDE_OP_TRUNCATE);
    change.values = NULL;
    change.key = NULL;
    check_change(&change, options, 0, "change_truncate");

    change = plain_change(TIDE_OP_UPDATE);
    change.tx = TIDE_STR("7\"31");
    change.moved_from = key_nine;
    change.values = price_only;
    change.is_partial = true;
    change.before = second_row;
    options.incarnation = 2;
    check_change(&change, options, 0, "change_update");

    change = plain_change(TIDE_OP_UPDATE);
    change.values = id_only;
    change.is_partial = true;
    options.incarnation = 0;
    check_change(&change, options, 0, "change_two_unchanged");
}

static void append_change_one_byte_over_the_limit_says_oversize(void **state)
{
    (void)state;
    struct tide_envelope_options options = plain_options();
    struct tide_change change = plain_change(TIDE_OP_INSERT);
    change.prev.known = false;
    check_change(&change, options, 0, "change_insert");

    change = plain_change(TIDE_OP_UPDATE);
    change.before = first_row; /* over the limit too: left out */
    options.record_bytes_max = RECORD_LEN - 1;
    check_change(&change, options, RECORD_LEN, "change_oversize");

    struct tide_buf buf = {0};
    struct tide_buf copy = {0};
    size_t oversize = 0;
    tide_envelope_append_change(&buf, &options, &change, &oversize, &copy);
    assert_int_equal(copy.len, RECORD_LEN);
    tide_buf_done(&buf);
    tide_buf_done(&copy);
}

/* An end that is earlier than its snapshot is the caller's error: it must not be written. */
static void append_end_before_the_snapshot_aborts(void **state)
{
    (void)state;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct rlimit no_core = {0};
        struct tide_envelope_options options = plain_options();
        struct tide_snapshot_part part = plain_part();
        struct tide_buf buf = {0};
        (void)setrlimit(RLIMIT_CORE, &no_core);
        (void)signal(SIGABRT, SIG_DFL);
        (void)close(STDERR_FILENO);
        part.completed_us = SNAPSHOT_US - 1;
        tide_envelope_append_end(&buf, &options, &part);
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

static uint64_t next_random(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return *seed >> 33;
}

/* The raw value under the next key, which must be `key`. */
static tide_str take(struct tide_json_reader *reader, const char *key)
{
    struct tide_json_token token = {0};
    struct tide_error err = {0};
    tide_str raw = {0};
    assert_int_equal(tide_json_expect(reader, TIDE_JSON_KEY, &token, &err), TIDE_OK);
    assert_true(tide_str_equal(token.text, tide_str_from(key)));
    assert_int_equal(tide_json_skip(reader, &raw, &err), TIDE_OK);
    return raw;
}

static void check_random_frame(tide_str frame, tide_str record, size_t limit, uint64_t seq)
{
    struct tide_json_reader reader;
    struct tide_json_token token = {0};
    struct tide_error err = {0};
    bool fits = record.len <= limit;
    uint64_t number = 0;
    tide_json_reader_init(&reader, frame, 8);
    assert_int_equal(tide_json_next(&reader, &token, &err), TIDE_OK);
    tide_str kind = take(&reader, "kind");
    assert_true(tide_str_equal(kind, fits ? TIDE_STR("\"row\"") : TIDE_STR("\"oversize\"")));
    (void)take(&reader, "snapshot_id");
    (void)take(&reader, "snapshot_at");
    (void)take(&reader, "timestamp");
    (void)take(&reader, "store");
    assert_true(tide_str_to_u64(take(&reader, "seq"), &number) && number == seq);
    if (fits) {
        assert_true(tide_str_equal(take(&reader, "record"), record));
        assert_true(tide_str_equal(take(&reader, "position"), TIDE_STR("42")));
    } else {
        assert_true(tide_str_to_u64(take(&reader, "bytes"), &number) && number == record.len);
        (void)take(&reader, "row_key");
    }
    assert_int_equal(tide_json_expect(&reader, TIDE_JSON_OBJECT_END, &token, &err), TIDE_OK);
    assert_int_equal(tide_json_expect(&reader, TIDE_JSON_END, &token, &err), TIDE_OK);
}

/* Random rows under random limits, many frames into one buffer. */
static void rows_append_random_rows_read_back_equal(void **state)
{
    (void)state;
    struct tide_envelope_options options = plain_options();
    struct tide_snapshot_part part = plain_part();
    struct tide_buf buf = {0};
    struct tide_buf record = {0};
    struct tide_buf copy = {0};
    uint64_t seed = 13;
    size_t stubs = 0;
    for (int round = 0; round < 20000; round++) {
        char text[80];
        size_t len = next_random(&seed) % sizeof(text);
        for (size_t i = 0; i < len; i++) {
            text[i] = (char)(next_random(&seed) % 128);
        }
        struct tide_value row[] = {
            VALUE(INTEGER, "12"), {text, (uint32_t)len, TIDE_VALUE_TEXT}, VALUE(BOOL, "true")};
        const struct tide_value *one_row[] = {row};
        part.rows = one_row;
        part.row_count = 1;
        part.first_seq = next_random(&seed);
        options.record_bytes_max = next_random(&seed) % 160;
        tide_buf_reset(&record);
        tide_buf_reset(&copy);
        tide_record_append(&record, &orders, row);

        size_t oversize = 0;
        size_t start = buf.len > 10000 ? 0 : buf.len;
        buf.len = start;
        append_row(&buf, &options, &part, 0, &oversize, &copy);
        check_random_frame(tide_str_of(buf.ptr + start, buf.len - start), tide_buf_str(&record),
                           options.record_bytes_max, part.first_seq);
        assert_true(oversize == 0 || tide_str_equal(tide_buf_str(&copy), tide_buf_str(&record)));
        stubs += oversize > 0;
    }
    assert_true(stubs > 1000 && stubs < 19000);
    tide_buf_done(&buf);
    tide_buf_done(&record);
    tide_buf_done(&copy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(append_opening_is_golden),
        cmocka_unit_test(append_end_is_golden),
        cmocka_unit_test(rows_append_is_golden),
        cmocka_unit_test(rows_append_one_byte_over_the_limit_is_a_stub),
        cmocka_unit_test(rows_append_stub_says_the_key_where_there_is_one),
        cmocka_unit_test(rows_append_oversize_copies_the_record),
        cmocka_unit_test(append_change_is_golden),
        cmocka_unit_test(append_change_one_byte_over_the_limit_says_oversize),
        cmocka_unit_test(append_end_before_the_snapshot_aborts),
        cmocka_unit_test(rows_append_random_rows_read_back_equal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
