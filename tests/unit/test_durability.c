#include "cmocka_prelude.h"

#include "base/fsio.h"
#include "sink/file/durability.h"
#include "sink/file/held_record.h"
#include "sink_kit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static uint64_t seed = 11;

static uint64_t random_number(void)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return seed >> (seed >> 58); /* of all sizes */
}

static tide_str random_text(char to[32])
{
    size_t len = 1 + random_number() % 31;
    for (size_t i = 0; i < len; i++) {
        to[i] = (char)('a' + random_number() % 26);
    }
    return tide_str_of(to, len);
}

static void make_random(struct tide_held_record *record)
{
    char text[32];
    char other[32];
    record->owner.pipeline = tide_arena_str(&record->arena, random_text(text));
    record->owner.identity = tide_arena_str(&record->arena, random_text(text));
    record->owner.position_kind = tide_arena_str(&record->arena, random_text(text));
    record->progress.place.known = random_number() % 4 != 0;
    record->progress.place.index = random_number();
    record->progress.place.position.hi = random_number();
    record->progress.place.position.lo = random_number();
    for (uint64_t i = random_number() % 6; i > 0; i--) {
        struct tide_held_snapshot snapshot = {.attempt = (uint32_t)random_number(),
                                              .next_seq = random_number()};
        kit_snapshot_id((unsigned)i, snapshot.id);
        tide_progress_add(&record->progress, &snapshot);
    }
    for (uint64_t i = random_number() % 6; i > 0; i--) {
        struct tide_held_file file = {.name = random_text(text),
                                      .store = random_text(other),
                                      .inode = random_number(),
                                      .length = random_number() & INT64_MAX,
                                      .tail_hash = random_number()};
        (void)tide_held_record_add(record, &file);
    }
}

static void encode_record_any_reads_back(void **state)
{
    (void)state;
    for (int round = 0; round < 500; round++) {
        struct tide_error err;
        struct tide_held_record record = {0};
        struct tide_held_record back = {0};
        struct tide_buf bytes = {0};
        struct tide_buf again = {0};
        make_random(&record);
        tide_held_record_encode(&record, &record.progress, &bytes);
        assert_int_equal(tide_held_record_decode(tide_buf_str(&bytes), &back, &err), TIDE_OK);
        assert_true(tide_str_equal(back.owner.pipeline, record.owner.pipeline));
        assert_true(tide_str_equal(back.owner.identity, record.owner.identity));
        assert_true(tide_str_equal(back.owner.position_kind, record.owner.position_kind));
        assert_true(tide_progress_equal(&back.progress, &record.progress));
        assert_int_equal(back.file_count, record.file_count);
        for (size_t i = 0; i < back.file_count; i++) {
            assert_true(tide_str_equal(back.files[i].name, record.files[i].name));
            assert_true(tide_str_equal(back.files[i].store, record.files[i].store));
            assert_int_equal(back.files[i].inode, record.files[i].inode);
            assert_int_equal(back.files[i].length, record.files[i].length);
            assert_int_equal(back.files[i].tail_hash, record.files[i].tail_hash);
        }
        tide_held_record_encode(&back, &back.progress, &again);
        assert_true(tide_str_equal(tide_buf_str(&again), tide_buf_str(&bytes)));
        tide_held_record_done(&record);
        tide_held_record_done(&back);
        tide_buf_done(&bytes);
        tide_buf_done(&again);
    }
}

static void decode_record_every_truncation_is_corrupt(void **state)
{
    (void)state;
    struct tide_error err;
    struct tide_held_record record = {0};
    struct tide_held_record back = {0};
    struct tide_buf bytes = {0};
    while (record.file_count < 2 || record.progress.snapshot_count < 2) {
        tide_held_record_done(&record);
        make_random(&record);
    }
    tide_held_record_encode(&record, &record.progress, &bytes);
    for (size_t len = 0; len < bytes.len; len++) {
        char *exact = malloc(len + 1); /* so that a sanitizer sees a read behind it */
        memcpy(exact, bytes.ptr, len);
        assert_int_equal(tide_held_record_decode(tide_str_of(exact, len), &back, &err),
                         TIDE_CORRUPT);
        assert_null(back.files);
        free(exact);
    }
    tide_buf_append_char(&bytes, 'x');
    assert_int_equal(tide_held_record_decode(tide_buf_str(&bytes), &back, &err), TIDE_CORRUPT);
    tide_held_record_done(&record);
    tide_buf_done(&bytes);
}

static void decode_record_name_that_leads_out_is_corrupt(void **state)
{
    (void)state;
    static const tide_str names[] = {
        TIDE_STR(""), TIDE_STR("."), TIDE_STR(".."), TIDE_STR("a/b"), TIDE_STR("a\0b"),
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct tide_error err;
        struct tide_held_record record = {0};
        struct tide_held_record back = {0};
        struct tide_buf bytes = {0};
        struct tide_held_file file = {.name = names[i]};
        (void)tide_held_record_add(&record, &file);
        tide_held_record_encode(&record, &record.progress, &bytes);
        assert_int_equal(tide_held_record_decode(tide_buf_str(&bytes), &back, &err), TIDE_CORRUPT);
        tide_held_record_done(&record);
        tide_buf_done(&bytes);
    }
}

/* The slots, in a file "record" of the current directory. */
struct slots {
    int dir_fd;
    struct tide_durability durability;
};

static void slots_open(struct slots *slots)
{
    struct tide_error err;
    slots->dir_fd = -1;
    assert_int_equal(tide_dir_open(".", &slots->dir_fd, &err), TIDE_OK);
    tide_durability_init(&slots->durability, slots->dir_fd, ".", "record");
}

static void slots_close(struct slots *slots)
{
    tide_durability_done(&slots->durability);
    tide_fd_close(&slots->dir_fd);
}

static void slots_store(struct slots *slots, tide_str payload)
{
    struct tide_error err;
    if (tide_durability_store(&slots->durability, payload, &err) != TIDE_OK) {
        fail_msg("%s", err.message);
    }
}

/* Loads anew; the payload as a string to free, NULL when that failed. */
static char *load_text(tide_status *ret_status, struct tide_error *err)
{
    struct slots slots;
    struct tide_buf payload = {0};
    bool found = false;
    slots_open(&slots);
    *ret_status = tide_durability_load(&slots.durability, &found, &payload, err);
    slots_close(&slots);
    if (*ret_status != TIDE_OK || !found) {
        tide_buf_done(&payload);
        return NULL;
    }
    (void)tide_buf_cstr(&payload);
    return payload.ptr;
}

static void expect_payload(const char *want)
{
    struct tide_error err = {0};
    tide_status status;
    char *text = load_text(&status, &err);
    if (text == NULL) {
        fail_msg("%s", err.message);
        return;
    }
    assert_string_equal(text, want);
    free(text);
}

static void load_without_file_finds_nothing(void **state)
{
    (void)state;
    struct tide_error err;
    tide_status status;
    assert_null(load_text(&status, &err));
    assert_int_equal(status, TIDE_OK);
}

static void store_many_loads_the_newest(void **state)
{
    (void)state;
    char text[64];
    struct slots slots;
    slots_open(&slots);
    for (int i = 0; i < 10; i++) {
        (void)snprintf(text, sizeof(text), "payload %d", i);
        slots_store(&slots, tide_str_from(text));
        expect_payload(text);
    }
    slots_close(&slots);
    size_t len = 0;
    free(kit_read("record", &len));
    assert_int_equal(len, 2 * 4096);
}

/* A slot that is being overwritten, torn at every byte: the old or the new one, never another. */
static void load_after_a_torn_write_is_old_or_new(void **state)
{
    (void)state;
    struct slots slots;
    size_t len = 0;
    slots_open(&slots);
    slots_store(&slots, TIDE_STR("the first one, which is a little longer"));
    slots_store(&slots, TIDE_STR("the one before"));
    char *before = kit_read("record", &len);
    slots_store(&slots, TIDE_STR("the newest one"));
    char *after = kit_read("record", &len);
    slots_close(&slots);
    assert_non_null(before);
    assert_non_null(after);
    char *torn = malloc(len);
    unsigned old = 0;
    size_t slot = 4096; /* sequence 3 lies in slot 1 */
    for (size_t cut = 0; cut <= 128; cut++) {
        memcpy(torn, before, len);
        memcpy(torn + slot, after + slot, cut);
        kit_put("record", torn, len);
        bool is_whole = memcmp(torn, after, len) == 0;
        expect_payload(is_whole ? "the newest one" : "the one before");
        old += !is_whole;
    }
    assert_in_range(old, 40, 60); /* both outcomes were seen */
    free(before);
    free(after);
    free(torn);
}

/* A record that lost its end is no crash of ours: it might be the newest slot that went. */
static void load_every_truncation_is_corrupt(void **state)
{
    (void)state;
    struct slots slots;
    size_t len = 0;
    char *big = malloc(3000);
    memset(big, 'x', 3000);
    slots_open(&slots);
    slots_store(&slots, tide_str_of(big, 3000)); /* slots of 8192 bytes */
    slots_store(&slots, tide_str_of(big, 2000));
    slots_close(&slots);
    char *bytes = kit_read("record", &len);
    assert_non_null(bytes);
    assert_int_equal(len, 2 * 8192);
    for (size_t cut = 0; cut < len; cut += cut % 4096 < 60 || cut % 4096 > 4090 ? 1 : 97) {
        struct tide_error err;
        tide_status status;
        kit_put("record", bytes, cut);
        assert_null(load_text(&status, &err));
        assert_int_equal(status, TIDE_CORRUPT);
        assert_non_null(strstr(err.message, "./record is damaged: "));
    }
    free(bytes);
    free(big);
}

static void load_one_bit_wrong_falls_back_to_the_other_slot(void **state)
{
    (void)state;
    struct slots slots;
    size_t len = 0;
    slots_open(&slots);
    slots_store(&slots, TIDE_STR("old"));
    slots_store(&slots, TIDE_STR("new")); /* sequence 2, slot 0 */
    slots_close(&slots);
    char *bytes = kit_read("record", &len);
    assert_non_null(bytes);
    for (size_t bit = 0; bit < (40 + 3) * (size_t)8; bit++) {
        bytes[bit / 8] ^= (char)(1 << bit % 8);
        kit_put("record", bytes, len);
        expect_payload("old");
        bytes[bit / 8] ^= (char)(1 << bit % 8);
    }
    bytes[0] ^= 1;
    bytes[4096] ^= 1;
    kit_put("record", bytes, len);
    struct tide_error err;
    tide_status status;
    assert_null(load_text(&status, &err));
    assert_int_equal(status, TIDE_CORRUPT);
    assert_string_equal(err.message, "./record is damaged: neither of its slots is whole");
    slots_open(&slots); /* and it can be made anew */
    struct tide_buf payload = {0};
    bool found = false;
    assert_int_equal(tide_durability_load(&slots.durability, &found, &payload, &err), TIDE_CORRUPT);
    slots_store(&slots, TIDE_STR("anew"));
    expect_payload("anew");
    slots_close(&slots);
    tide_buf_done(&payload);
    free(bytes);
}

static void store_growing_payloads_grows_the_slots(void **state)
{
    (void)state;
    struct slots slots;
    char *text = malloc(200001);
    slots_open(&slots);
    for (size_t len = 1; len <= 200000; len = len * 3 + 1) {
        memset(text, 'a' + (int)(len % 26), len);
        text[len] = '\0';
        slots_store(&slots, tide_str_of(text, len));
        expect_payload(text);
        slots_store(&slots, TIDE_STR("short"));
        expect_payload("short");
    }
    slots_close(&slots);
    assert_false(kit_exists("..record.tmp"));
    free(text);
}

static void store_more_than_a_record_may_have_is_unsupported(void **state)
{
    (void)state;
    struct tide_error err;
    struct slots slots;
    slots_open(&slots);
    size_t len = (size_t)40 << 20;
    char *text = calloc(len, 1);
    assert_int_equal(tide_durability_store(&slots.durability, tide_str_of(text, len), &err),
                     TIDE_UNSUPPORTED);
    assert_false(kit_exists("record"));
    slots_close(&slots);
    free(text);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, kit_setup, kit_teardown)
    const struct CMUnitTest tests[] = {
        TEST(encode_record_any_reads_back),
        TEST(decode_record_every_truncation_is_corrupt),
        TEST(decode_record_name_that_leads_out_is_corrupt),
        TEST(load_without_file_finds_nothing),
        TEST(store_many_loads_the_newest),
        TEST(load_after_a_torn_write_is_old_or_new),
        TEST(load_every_truncation_is_corrupt),
        TEST(load_one_bit_wrong_falls_back_to_the_other_slot),
        TEST(store_growing_payloads_grows_the_slots),
        TEST(store_more_than_a_record_may_have_is_unsupported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
