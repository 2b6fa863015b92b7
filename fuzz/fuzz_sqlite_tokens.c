/* SQL text from a schema: slices stay within it. */
#include "base/arena.h"
#include "base/status.h"
#include "source/sqlite/sqlite_tokens.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void slice_index(tide_str sql, struct tide_arena *arena)
{
    struct tide_sqlite_index_text text = {0};
    struct tide_error err;
    if (tide_sqlite_index_text(sql, arena, &text, &err) != TIDE_OK) {
        return;
    }
    for (size_t i = 0; i < text.term_count; i++) {
        TIDE_ASSERT(text.terms[i].len > 0);
        TIDE_ASSERT(text.terms[i].ptr >= sql.ptr);
        TIDE_ASSERT(text.terms[i].ptr + text.terms[i].len <= sql.ptr + sql.len);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const tide_str columns[] = {{"a", 1}, {"b", 1}};
    TIDE_CLEANUP(tide_arena_done) struct tide_arena arena = {0};
    tide_str sql = tide_str_of(data, size);
    struct tide_sqlite_token token;
    for (size_t at = 0, before = 0; tide_sqlite_token_next(sql, &at, &token); before = at) {
        TIDE_ASSERT(token.text.len > 0);
        TIDE_ASSERT(token.text.ptr >= sql.ptr + before);
        TIDE_ASSERT(token.text.ptr + token.text.len == sql.ptr + at);
        (void)tide_sqlite_token_unquote(&arena, &token);
    }
    slice_index(sql, &arena);
    (void)tide_sqlite_expression_text(sql, columns, 2, &arena);
    (void)tide_sqlite_default_text(sql, &arena);
    (void)tide_sqlite_is_after_insert(sql);
    return 0;
}
