#include "cmocka_prelude.h"

#include "base/arena.h"

#include <string.h>

static void alloc_many_pieces_stay_apart_and_aligned(void **state)
{
    (void)state;
    struct tide_arena arena = {0};

    enum {
        PIECES = 2000
    };

    static unsigned char *pieces[PIECES];
    for (size_t i = 0; i < PIECES; i++) {
        pieces[i] = tide_arena_alloc(&arena, i % 97 + 1, 3);
        assert_int_equal((uintptr_t)pieces[i] % 8, 0);
        memset(pieces[i], (int)(i % 251), (i % 97 + 1) * 3);
        if (i % 5 == 0) {
            (void)tide_arena_bytes(&arena, 1); /* puts the next piece off its alignment */
        }
    }
    for (size_t i = 0; i < PIECES; i++) {
        for (size_t k = 0; k < (i % 97 + 1) * 3; k++) {
            assert_int_equal(pieces[i][k], i % 251);
        }
    }
    tide_arena_done(&arena);
    assert_null(arena.block);
    assert_int_equal(arena.size, 0);
}

static void alloc_nothing_is_not_null(void **state)
{
    (void)state;
    struct tide_arena arena = {0};
    assert_non_null(tide_arena_alloc(&arena, 0, 8));
    assert_non_null(tide_arena_bytes(&arena, 0));
    assert_int_equal(tide_arena_str(&arena, (tide_str){NULL, 0}).len, 0);
    assert_string_equal(tide_arena_cstr(&arena, (tide_str){NULL, 0}), "");
    tide_arena_done(&arena);
}

static void alloc_larger_than_a_block_fits(void **state)
{
    (void)state;
    struct tide_arena arena = {0};
    char *big = tide_arena_bytes(&arena, 5000000);
    memset(big, 1, 5000000);
    char *small = tide_arena_alloc(&arena, 1, 8);
    memset(small, 2, 8);
    assert_int_equal(big[4999999], 1);
    assert_true(arena.size >= 5000008);
    tide_arena_done(&arena);
}

static void reset_keeps_one_block_and_reuses_it(void **state)
{
    (void)state;
    struct tide_arena arena = {0};
    tide_arena_reset(&arena);
    for (unsigned i = 0; i < 100; i++) {
        memset(tide_arena_alloc(&arena, 1000, 1), 7, 1000);
    }
    tide_arena_reset(&arena);
    size_t size = arena.size;
    assert_true(size > 0);
    char *first = tide_arena_alloc(&arena, 100, 1);
    tide_arena_reset(&arena);
    assert_ptr_equal(tide_arena_alloc(&arena, 100, 1), first);
    assert_int_equal(arena.size, size);
    tide_arena_done(&arena);
}

static void give_back_makes_room_again(void **state)
{
    (void)state;
    struct tide_arena arena = {0};
    char *piece = tide_arena_bytes(&arena, 100);
    memcpy(piece, "abcd", 4);
    tide_arena_give_back(&arena, 96);
    assert_ptr_equal(tide_arena_bytes(&arena, 10), piece + 4);
    assert_memory_equal(piece, "abcd", 4);
    tide_arena_done(&arena);
}

static void str_and_cstr_are_copies(void **state)
{
    (void)state;
    struct tide_arena arena = {0};
    char text[] = "a\0b";
    tide_str copy = tide_arena_str(&arena, tide_str_of(text, 3));
    const char *cstr = tide_arena_cstr(&arena, TIDE_STR("hello"));
    text[0] = 'x';
    assert_memory_equal(copy.ptr, "a\0b", 3);
    assert_string_equal(cstr, "hello");
    tide_arena_done(&arena);
}

static void grow_keeps_what_is_there(void **state)
{
    (void)state;
    struct tide_arena arena = {0};
    uint32_t *items = NULL;
    for (size_t count = 0; count < 1000; count++) {
        items = tide_arena_grow(&arena, items, count, sizeof(*items));
        items[count] = (uint32_t)count * 7;
        (void)tide_arena_bytes(&arena, 3); /* something else lies behind it */
    }
    for (size_t i = 0; i < 1000; i++) {
        assert_int_equal(items[i], i * 7);
    }
    tide_arena_done(&arena);
}

static void adopt_keeps_addresses_and_empties_the_other(void **state)
{
    (void)state;
    struct tide_arena into = {0};
    for (unsigned round = 0; round < 4; round++) {
        struct tide_arena from = {0};
        const char *texts[300];
        for (unsigned i = 0; i < 300; i++) {
            texts[i] = tide_arena_cstr(&from, TIDE_STR("some text to be kept for longer"));
        }
        size_t sizes = into.size + from.size;
        tide_arena_adopt(&into, &from);
        assert_null(from.block);
        assert_int_equal(into.size, sizes);
        (void)tide_arena_alloc(&into, 10, 10);
        for (unsigned i = 0; i < 300; i++) {
            assert_string_equal(texts[i], "some text to be kept for longer");
        }
        tide_arena_adopt(&into, &from);
        assert_true(into.size >= sizes);
    }
    tide_arena_done(&into);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alloc_many_pieces_stay_apart_and_aligned),
        cmocka_unit_test(alloc_nothing_is_not_null),
        cmocka_unit_test(alloc_larger_than_a_block_fits),
        cmocka_unit_test(reset_keeps_one_block_and_reuses_it),
        cmocka_unit_test(give_back_makes_room_again),
        cmocka_unit_test(str_and_cstr_are_copies),
        cmocka_unit_test(grow_keeps_what_is_there),
        cmocka_unit_test(adopt_keeps_addresses_and_empties_the_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
