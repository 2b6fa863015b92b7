#include "cmocka_prelude.h"

#include "base/buf.h"
#include "base/fsio.h"
#include "base/limits.h"
#include "pgoutput_kit.h"

#include <stdio.h>
#include <stdlib.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static tide_status decode_exact(tide_str bytes, struct tide_error *err)
{
    TIDE_CLEANUP(tide_arena_done) struct tide_arena arena = {0};
    struct tide_pgoutput message = {0};
    tide_str body = bytes_exact(bytes);
    tide_status status = tide_pgoutput_decode(body, &arena, &message, err);
    bytes_free(body);
    return status;
}

/* Golden messages. */

static void read_golden(const char *name, struct tide_buf *buf)
{
    char path[512];
    struct tide_error err = {0};
    (void)snprintf(path, sizeof(path), "%s/golden/pgoutput/%s", TIDE_TEST_ROOT, name);
    if (tide_file_read(path, 4 * TIDE_MIB, buf, &err) != TIDE_OK) {
        fail_msg("%s", err.message);
    }
}

/* The next line of the recording, without its line feed. */
static bool next_line(tide_str *rest, tide_str *ret_line)
{
    if (rest->len == 0) {
        return false;
    }
    const char *feed = memchr(rest->ptr, '\n', rest->len);
    assert_non_null(feed);
    *ret_line = tide_str_of(rest->ptr, (size_t)(feed - rest->ptr));
    *rest = tide_str_of(feed + 1, rest->len - ret_line->len - 1);
    return true;
}

/* Whether a line is of hex, not a statement (which may have several lines). */
static bool is_message(tide_str line)
{
    return line.len > 0 && strspn(line.ptr, "0123456789abcdef") >= line.len;
}

static void decode_recorded_messages_are_golden(void **state)
{
    (void)state;
    TIDE_CLEANUP(tide_buf_done) struct tide_buf recording = {0};
    TIDE_CLEANUP(tide_buf_done) struct tide_buf want = {0};
    TIDE_CLEANUP(tide_buf_done) struct tide_buf got = {0};
    TIDE_CLEANUP(tide_arena_done) struct tide_arena arena = {0};
    read_golden("messages.hex", &recording);
    read_golden("messages.txt", &want);
    tide_str rest = tide_buf_str(&recording);
    for (tide_str line; next_line(&rest, &line);) {
        if (!is_message(line)) {
            tide_buf_printf(&got, "%.*s\n", TIDE_STR_ARG(line));
            continue;
        }
        TIDE_CLEANUP(tide_buf_done) struct tide_buf body = {0};
        struct tide_pgoutput message = {0};
        struct tide_error err = {0};
        bytes_unhex(line, &body);
        if (tide_pgoutput_decode(tide_buf_str(&body), &arena, &message, &err) != TIDE_OK) {
            fail_msg("%.*s: %s", TIDE_STR_ARG(line), err.message);
        }
        pgoutput_print(&got, &message);
        tide_arena_reset(&arena);
    }
    if (!tide_str_equal(tide_buf_str(&got), tide_buf_str(&want))) {
        (void)fputs(tide_buf_cstr(&got), stderr);
        fail_msg("messages.txt differs from what was just written");
    }
}

static void expect_corrupt(tide_str bytes)
{
    struct tide_error err = {0};
    tide_status status = decode_exact(bytes, &err);
    if (status != TIDE_CORRUPT) {
        fail_msg("first %zu bytes of a message '%c' are %s", bytes.len,
                 bytes.len > 0 ? bytes.ptr[0] : ' ', tide_status_name(status));
    }
}

static void decode_every_truncation_and_a_byte_more_are_corrupt(void **state)
{
    (void)state;
    TIDE_CLEANUP(tide_buf_done) struct tide_buf recording = {0};
    read_golden("messages.hex", &recording);
    tide_str rest = tide_buf_str(&recording);
    size_t count = 0;
    for (tide_str line; next_line(&rest, &line);) {
        if (!is_message(line)) {
            continue;
        }
        TIDE_CLEANUP(tide_buf_done) struct tide_buf body = {0};
        bytes_unhex(line, &body);
        for (size_t len = 0; len < body.len; len++) {
            expect_corrupt(tide_str_of(body.ptr, len));
        }
        tide_buf_append_char(&body, '\0');
        expect_corrupt(tide_buf_str(&body));
        count++;
    }
    assert_true(count > 100);
}

/* Messages that no server sends. */

static void decode_wrong_messages_are_refused(void **state)
{
    (void)state;

    /* clang-format off */
    static const struct { const char *hex; tide_status want; } cases[] = {
        {"", TIDE_CORRUPT},
        {"00", TIDE_CORRUPT},
        {"7a", TIDE_CORRUPT}, /* unknown types, alone and with bytes behind */
        {"5a00000000", TIDE_CORRUPT},
        {"53000000010001", TIDE_UNSUPPORTED}, /* S: a streamed transaction */
        {"45", TIDE_UNSUPPORTED},
        {"63", TIDE_UNSUPPORTED},
        {"4100", TIDE_UNSUPPORTED},
        {"62", TIDE_UNSUPPORTED},
        {"50", TIDE_UNSUPPORTED},
        {"4b", TIDE_UNSUPPORTED},
        {"72", TIDE_UNSUPPORTED},
        {"70", TIDE_UNSUPPORTED},
        {"42" "0000000000000001" "7fffffffffffffff" "00000001", TIDE_CORRUPT}, /* the time overflows */
        {"42" "0000000000000001" "8000000000000000" "00000001", TIDE_OK},
        {"43" "01" "0000000000000001" "0000000000000002" "0000000000000000", TIDE_CORRUPT}, /* flags */
        {"43" "00" "0000000000000001" "0000000000000002" "7fffffffffffffff", TIDE_CORRUPT},
        {"52" "00000001" "00" "7400" "64" "0000", TIDE_OK}, /* pg_catalog.t without columns */
        {"52" "00000001" "00" "00" "64" "0000", TIDE_CORRUPT}, /* no name */
        {"52" "00000001" "00" "ff00" "64" "0000", TIDE_UNSUPPORTED}, /* not UTF-8 */
        {"52" "00000001" "ff00" "7400" "64" "0000", TIDE_UNSUPPORTED},
        {"52" "00000001" "00" "7400" "78" "0000", TIDE_CORRUPT}, /* identity x */
        {"52" "00000001" "00" "7400" "00" "0000", TIDE_CORRUPT},
        {"52" "00000001" "00" "7400" "64" "0001" "00" "6100" "00000017" "ffffffff", TIDE_OK},
        {"52" "00000001" "00" "7400" "64" "0001" "02" "6100" "00000017" "ffffffff", TIDE_CORRUPT},
        {"52" "00000001" "00" "7400" "64" "0001" "00" "ff00" "00000017" "ffffffff", TIDE_UNSUPPORTED},
        {"52" "00000001" "00" "7400" "64" "0001" "00" "00" "00000017" "ffffffff" "00", TIDE_CORRUPT},
        {"52" "00000001" "00" "7400" "64" "ffff" "00" "6100" "00000017" "ffffffff", TIDE_CORRUPT},
        {"59" "00000001" "00" "00", TIDE_CORRUPT},
        {"49" "00000001" "4e" "0001" "74" "00000000", TIDE_OK}, /* an empty text */
        {"49" "00000001" "4e" "0001" "62" "00000000", TIDE_UNSUPPORTED}, /* binary */
        {"49" "00000001" "4e" "0001" "78", TIDE_CORRUPT}, /* kind x */
        {"49" "00000001" "4e" "0001" "74" "ffffffff", TIDE_CORRUPT},
        {"49" "00000001" "4e" "0001" "74" "80000001" "61", TIDE_CORRUPT},
        {"49" "00000001" "4e" "ffff" "6e", TIDE_CORRUPT},
        {"49" "00000001" "4b" "0001" "6e", TIDE_CORRUPT}, /* an insert with a key */
        {"49" "00000001" "4b" "0001" "6e" "4e" "0001" "6e", TIDE_CORRUPT},
        {"49" "00000001" "58" "0001" "6e", TIDE_CORRUPT},
        {"55" "00000001" "4b" "0001" "6e", TIDE_CORRUPT}, /* an update without a new tuple */
        {"55" "00000001" "4b" "0001" "6e" "4b" "0001" "6e", TIDE_CORRUPT},
        {"55" "00000001" "4e" "0001" "6e" "4e" "0001" "6e", TIDE_CORRUPT},
        {"55" "00000001" "4f" "0001" "6e" "4e" "0002" "6e75", TIDE_OK}, /* counts are the caller's */
        {"44" "00000001" "4e" "0001" "6e", TIDE_CORRUPT}, /* a delete with a new tuple */
        {"44" "00000001" "4b" "0001" "6e" "4e" "0001" "6e", TIDE_CORRUPT},
        {"44" "00000001" "4f" "0001" "6e", TIDE_OK},
        {"54" "00000001" "04" "00000001", TIDE_CORRUPT}, /* options */
        {"54" "ffffffff" "00" "00000001", TIDE_CORRUPT},
        {"54" "00000002" "00" "00000001", TIDE_CORRUPT},
        {"4d" "02" "0000000000000001" "6100" "00000000", TIDE_CORRUPT},
        {"4d" "01" "0000000000000001" "6100" "ffffffff", TIDE_CORRUPT},
        {"4d" "00" "0000000000000001" "00" "00000001ff", TIDE_OK},
    };

    /* clang-format on */
    for (size_t i = 0; i < COUNT(cases); i++) {
        TIDE_CLEANUP(tide_buf_done) struct tide_buf body = {0};
        struct tide_error err = {0};
        bytes_unhex(tide_str_from(cases[i].hex), &body);
        tide_status status = decode_exact(tide_buf_str(&body), &err);
        if (status != cases[i].want) {
            fail_msg("%s is %s: %s", cases[i].hex, tide_status_name(status), err.message);
        }
        assert_true((status == TIDE_OK) == (err.message[0] == '\0'));
    }
}

static void decode_failure_leaves_the_output(void **state)
{
    (void)state;
    TIDE_CLEANUP(tide_arena_done) struct tide_arena arena = {0};
    struct tide_pgoutput message = {.type = TIDE_PGOUTPUT_TYPE, .type_name = {.oid = 77}};
    struct tide_error err = {0};
    tide_str body = TIDE_STR("T\0\0\0\1\0\0\0");
    assert_int_equal(tide_pgoutput_decode(body, &arena, &message, &err), TIDE_CORRUPT);
    assert_int_equal(message.type, TIDE_PGOUTPUT_TYPE);
    assert_int_equal(message.type_name.oid, 77);
}

/* Random messages there and back: an encoder for the test, and the printed forms compared. */

static uint64_t next_random(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return *seed >> 17 ^ *seed >> 40;
}

static void put_int(struct tide_buf *buf, uint64_t value, unsigned bytes)
{
    for (unsigned i = bytes; i > 0; i--) {
        tide_buf_append_char(buf, (char)(unsigned char)(value >> (8 * (i - 1)) & 0xff));
    }
}

/* Any bytes without NUL that are UTF-8. */
static void random_name(struct tide_buf *wire, tide_str *ret_name, struct tide_arena *arena,
                        uint64_t *seed)
{
    static const char *const names[] = {"a", "public", "Ж", "quo\"te", "we ird", "\x01", "𝄞"};
    *ret_name = tide_arena_str(arena, tide_str_from(names[next_random(seed) % COUNT(names)]));
    tide_buf_append_str(wire, *ret_name);
    tide_buf_append_char(wire, '\0');
}

static void random_tuple(struct tide_buf *wire, struct tide_pgoutput_tuple *ret_tuple,
                         struct tide_arena *arena, uint64_t *seed)
{
    size_t count = next_random(seed) % 9;
    struct tide_pg_field *fields = tide_arena_alloc(arena, count, sizeof(*fields));
    put_int(wire, count, 2);
    for (size_t i = 0; i < count; i++) {
        static const char letters[] = "nut";
        fields[i] = (struct tide_pg_field){.kind = (uint8_t)(next_random(seed) % 3)};
        tide_buf_append_char(wire, letters[fields[i].kind]);
        if (fields[i].kind == TIDE_PG_FIELD_TEXT) {
            fields[i].len = (uint32_t)(next_random(seed) % 40);
            char *text = tide_arena_bytes(arena, fields[i].len);
            for (uint32_t at = 0; at < fields[i].len; at++) {
                text[at] = (char)('0' + next_random(seed) % 75);
            }
            fields[i].ptr = text;
            put_int(wire, fields[i].len, 4);
            tide_buf_append(wire, text, fields[i].len);
        }
    }
    *ret_tuple = (struct tide_pgoutput_tuple){count, fields};
}

static int64_t random_time(struct tide_buf *wire, uint64_t *seed)
{
    int64_t since_2000 = (int64_t)(next_random(seed) % (UINT64_C(1) << 60)) - (INT64_C(1) << 59);
    put_int(wire, (uint64_t)since_2000, 8);
    return since_2000 + INT64_C(946684800000000);
}

static uint64_t random_int(struct tide_buf *wire, unsigned bytes, uint64_t *seed)
{
    uint64_t value = next_random(seed) * 0x9e3779b97f4a7c15u >> (64 - 8 * bytes);
    put_int(wire, value, bytes);
    return value;
}

static void random_relation(struct tide_buf *wire, struct tide_pgoutput_relation *relation,
                            struct tide_arena *arena, uint64_t *seed)
{
    relation->oid = (uint32_t)random_int(wire, 4, seed);
    random_name(wire, &relation->schema, arena, seed);
    random_name(wire, &relation->name, arena, seed);
    relation->identity = "dnfi"[next_random(seed) % 4];
    tide_buf_append_char(wire, relation->identity);
    relation->column_count = next_random(seed) % 20;
    put_int(wire, relation->column_count, 2);
    struct tide_pgoutput_column *columns =
        tide_arena_alloc(arena, relation->column_count, sizeof(*columns));
    for (size_t i = 0; i < relation->column_count; i++) {
        columns[i].is_key = next_random(seed) % 2 == 1;
        put_int(wire, columns[i].is_key, 1);
        random_name(wire, &columns[i].name, arena, seed);
        columns[i].type_oid = (uint32_t)random_int(wire, 4, seed);
        columns[i].type_modifier = (int32_t)random_int(wire, 4, seed);
    }
    relation->columns = columns;
}

static void random_change(struct tide_buf *wire, struct tide_pgoutput *message,
                          struct tide_arena *arena, uint64_t *seed)
{
    struct tide_pgoutput_change *change = &message->change;
    bool is_delete = message->type == TIDE_PGOUTPUT_DELETE;
    change->relation_oid = (uint32_t)random_int(wire, 4, seed);
    if (is_delete || (message->type == TIDE_PGOUTPUT_UPDATE && next_random(seed) % 2 == 1)) {
        bool is_key = next_random(seed) % 2 == 1;
        change->old_kind = is_key ? TIDE_PGOUTPUT_OLD_KEY : TIDE_PGOUTPUT_OLD_ROW;
        tide_buf_append_char(wire, (char)change->old_kind);
        random_tuple(wire, &change->old_tuple, arena, seed);
    }
    if (!is_delete) {
        tide_buf_append_char(wire, 'N');
        random_tuple(wire, &change->new_tuple, arena, seed);
    }
}

static void random_truncate(struct tide_buf *wire, struct tide_pgoutput_truncate *truncate,
                            struct tide_arena *arena, uint64_t *seed)
{
    truncate->count = next_random(seed) % 6;
    put_int(wire, truncate->count, 4);
    unsigned options = (unsigned)next_random(seed) % 4;
    put_int(wire, options, 1);
    truncate->is_cascade = (options & 1) != 0;
    truncate->restarts_identity = (options & 2) != 0;
    uint32_t *oids = tide_arena_alloc(arena, truncate->count, sizeof(*oids));
    for (size_t i = 0; i < truncate->count; i++) {
        oids[i] = (uint32_t)random_int(wire, 4, seed);
    }
    truncate->relation_oids = oids;
}

static void random_logical(struct tide_buf *wire, struct tide_pgoutput_logical_message *message,
                           struct tide_arena *arena, uint64_t *seed)
{
    message->is_transactional = next_random(seed) % 2 == 1;
    put_int(wire, message->is_transactional, 1);
    message->lsn = random_int(wire, 8, seed);
    random_name(wire, &message->prefix, arena, seed);
    tide_str content = {"\0\xff any", next_random(seed) % 6};
    put_int(wire, content.len, 4);
    tide_buf_append_str(wire, content);
    message->content = content;
}

static void random_body(struct tide_buf *wire, struct tide_pgoutput *message,
                        struct tide_arena *arena, uint64_t *seed)
{
    switch (message->type) {
    case TIDE_PGOUTPUT_BEGIN:
        message->begin.final_lsn = random_int(wire, 8, seed);
        message->begin.commit_us = random_time(wire, seed);
        message->begin.xid = (uint32_t)random_int(wire, 4, seed);
        break;
    case TIDE_PGOUTPUT_COMMIT:
        put_int(wire, 0, 1);
        message->commit.commit_lsn = random_int(wire, 8, seed);
        message->commit.end_lsn = random_int(wire, 8, seed);
        message->commit.commit_us = random_time(wire, seed);
        break;
    case TIDE_PGOUTPUT_ORIGIN:
        message->origin.commit_lsn = random_int(wire, 8, seed);
        random_name(wire, &message->origin.name, arena, seed);
        break;
    case TIDE_PGOUTPUT_RELATION:
        random_relation(wire, &message->relation, arena, seed);
        break;
    case TIDE_PGOUTPUT_TYPE:
        message->type_name.oid = (uint32_t)random_int(wire, 4, seed);
        random_name(wire, &message->type_name.schema, arena, seed);
        random_name(wire, &message->type_name.name, arena, seed);
        break;
    case TIDE_PGOUTPUT_INSERT:
    case TIDE_PGOUTPUT_UPDATE:
    case TIDE_PGOUTPUT_DELETE:
        random_change(wire, message, arena, seed);
        break;
    case TIDE_PGOUTPUT_TRUNCATE:
        random_truncate(wire, &message->truncate, arena, seed);
        break;
    case TIDE_PGOUTPUT_MESSAGE:
        random_logical(wire, &message->message, arena, seed);
        break;
    }
}

static void check_round_trip(uint64_t *seed)
{
    static const char types[] = "BCORYIUDTM";
    TIDE_CLEANUP(tide_arena_done) struct tide_arena arena = {0};
    TIDE_CLEANUP(tide_buf_done) struct tide_buf wire = {0};
    TIDE_CLEANUP(tide_buf_done) struct tide_buf want = {0};
    TIDE_CLEANUP(tide_buf_done) struct tide_buf got = {0};
    struct tide_pgoutput sent = {0};
    struct tide_pgoutput received = {0};
    struct tide_error err = {0};
    sent.type = (enum tide_pgoutput_type)types[next_random(seed) % (COUNT(types) - 1)];
    tide_buf_append_char(&wire, (char)sent.type);
    random_body(&wire, &sent, &arena, seed);
    tide_str body = bytes_exact(tide_buf_str(&wire));
    if (tide_pgoutput_decode(body, &arena, &received, &err) != TIDE_OK) {
        fail_msg("message '%c': %s", (char)sent.type, err.message);
    }
    pgoutput_print(&want, &sent);
    pgoutput_print(&got, &received);
    assert_string_equal(tide_buf_cstr(&got), tide_buf_cstr(&want));
    size_t cut = next_random(seed) % wire.len;
    expect_corrupt(tide_str_of(wire.ptr, cut));
    bytes_free(body);
}

static void decode_random_messages_round_trip(void **state)
{
    (void)state;
    uint64_t seed = 11;
    for (int i = 0; i < 20000; i++) {
        check_round_trip(&seed);
    }
}

/* Relations that are kept. */

static void relation_copy_outlives_its_message(void **state)
{
    (void)state;
    TIDE_CLEANUP(tide_arena_done) struct tide_arena message_arena = {0};
    TIDE_CLEANUP(tide_arena_done) struct tide_arena arena = {0};
    TIDE_CLEANUP(tide_buf_done) struct tide_buf wire = {0};
    struct tide_pgoutput message = {.type = TIDE_PGOUTPUT_RELATION};
    uint64_t seed = 5;
    do {
        random_relation(&wire, &message.relation, &message_arena, &seed);
    } while (message.relation.column_count < 3);
    struct tide_pgoutput_relation *copy = tide_pgoutput_relation_copy(&arena, &message.relation);
    assert_true(tide_pgoutput_relation_equal(copy, &message.relation));
    TIDE_CLEANUP(tide_buf_done) struct tide_buf want = {0};
    TIDE_CLEANUP(tide_buf_done) struct tide_buf got = {0};
    pgoutput_print(&want, &message);
    tide_arena_done(&message_arena);
    message.relation = *copy;
    pgoutput_print(&got, &message);
    assert_string_equal(tide_buf_cstr(&got), tide_buf_cstr(&want));
}

static void relation_equal_sees_every_difference(void **state)
{
    (void)state;
    static const struct tide_pgoutput_column columns[] = {{{"a", 1}, 23, -1, true}};
    static const struct tide_pgoutput_column others[][1] = {{{{"b", 1}, 23, -1, true}},
                                                            {{{"a", 1}, 20, -1, true}},
                                                            {{{"a", 1}, 23, 8, true}},
                                                            {{{"a", 1}, 23, -1, false}}};
    const struct tide_pgoutput_relation base = {1, 'd', {"s", 1}, {"t", 1}, 1, columns};
    const struct tide_pgoutput_relation wrong[] = {{2, 'd', {"s", 1}, {"t", 1}, 1, columns},
                                                   {1, 'd', {"x", 1}, {"t", 1}, 1, columns},
                                                   {1, 'd', {"s", 1}, {"x", 1}, 1, columns},
                                                   {1, 'f', {"s", 1}, {"t", 1}, 1, columns},
                                                   {1, 'd', {"s", 1}, {"t", 1}, 0, columns}};
    assert_true(tide_pgoutput_relation_equal(&base, &base));
    for (size_t i = 0; i < COUNT(wrong); i++) {
        assert_false(tide_pgoutput_relation_equal(&base, &wrong[i]));
    }
    for (size_t i = 0; i < COUNT(others); i++) {
        struct tide_pgoutput_relation other = base;
        other.columns = others[i];
        assert_false(tide_pgoutput_relation_equal(&base, &other));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decode_recorded_messages_are_golden),
        cmocka_unit_test(decode_every_truncation_and_a_byte_more_are_corrupt),
        cmocka_unit_test(decode_wrong_messages_are_refused),
        cmocka_unit_test(decode_failure_leaves_the_output),
        cmocka_unit_test(decode_random_messages_round_trip),
        cmocka_unit_test(relation_copy_outlives_its_message),
        cmocka_unit_test(relation_equal_sees_every_difference),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
