#include "source/sqlite/sqlite_nonces.h"

#include "base/arena.h"
#include "base/uuid.h"
#include "format/json_reader.h"
#include "format/json_writer.h"

#include <string.h>

void tide_sqlite_nonce_make(char text[TIDE_SQLITE_HEX_LEN + 1])
{
    static const char digits[] = "0123456789abcdef";
    unsigned char bytes[TIDE_SQLITE_HEX_LEN / 2];
    tide_random_bytes(bytes, sizeof(bytes));
    for (size_t i = 0; i < sizeof(bytes); i++) {
        text[2 * i] = digits[bytes[i] >> 4];
        text[2 * i + 1] = digits[bytes[i] & 15];
    }
    text[TIDE_SQLITE_HEX_LEN] = '\0';
}

static void set_nonce(struct tide_sqlite_nonces *nonces, size_t index, tide_str text)
{
    TIDE_ASSERT(text.len <= TIDE_SQLITE_HEX_LEN);
    memcpy(nonces->text[index], text.ptr, text.len);
    nonces->text[index][text.len] = '\0';
}

void tide_sqlite_nonces_init(struct tide_sqlite_nonces *nonces, const char *now)
{
    set_nonce(nonces, 0, tide_str_from(now));
    for (size_t i = 1; i < TIDE_SQLITE_NONCES; i++) {
        tide_sqlite_nonce_make(nonces->text[i]);
    }
    nonces->is_next_saved = false;
}

void tide_sqlite_nonces_step(struct tide_sqlite_nonces *nonces)
{
    memmove(nonces->text[0], nonces->text[1], sizeof(nonces->text) - sizeof(nonces->text[0]));
    tide_sqlite_nonce_make(nonces->text[TIDE_SQLITE_NONCES - 1]);
    nonces->is_next_saved = false;
}

void tide_sqlite_nonces_save(struct tide_sqlite_nonces *nonces,
                             const struct tide_sqlite_trail *trail, const char *source_id,
                             struct tide_buf *buf)
{
    tide_buf_append_str(buf, TIDE_STR("{\"source\":"));
    tide_json_append_string(buf, tide_str_from(source_id));
    tide_buf_append_str(buf, TIDE_STR(",\"nonces\":"));
    for (size_t i = 0; i < TIDE_SQLITE_NONCES; i++) {
        tide_buf_append_char(buf, i == 0 ? '[' : ',');
        tide_json_append_string(buf, tide_str_from(nonces->text[i]));
    }
    tide_buf_append_str(buf, TIDE_STR("],\"trail\":\""));
    tide_sqlite_trail_save(trail, buf);
    tide_buf_append_str(buf, TIDE_STR("\"}"));
    nonces->is_next_saved = true;
}

/* A state as it was read; the strings are in the arena. */
struct state {
    tide_str source_id;
    tide_str nonces[TIDE_SQLITE_NONCES];
    size_t nonce_count;
    tide_str trail;
};

static tide_status read_nonces(struct tide_json_reader *reader, struct tide_arena *arena,
                               struct state *state, struct tide_error *err)
{
    struct tide_json_token token;
    TIDE_TRY(tide_json_expect(reader, TIDE_JSON_ARRAY_BEGIN, &token, err));
    for (;;) {
        TIDE_TRY(tide_json_next(reader, &token, err));
        if (token.type == TIDE_JSON_ARRAY_END) {
            return TIDE_OK;
        }
        if (token.type != TIDE_JSON_STRING || state->nonce_count == TIDE_SQLITE_NONCES ||
            token.text.len > TIDE_SQLITE_HEX_LEN) {
            return tide_fail(err, TIDE_CORRUPT, "unexpected nonce");
        }
        state->nonces[state->nonce_count++] = tide_json_unescape(&token, arena);
    }
}

static tide_status read_state(tide_str text, struct tide_arena *arena, struct state *ret_state,
                              struct tide_error *err)
{
    struct tide_json_reader reader;
    struct tide_json_token token;
    tide_json_reader_init(&reader, text, 8);
    TIDE_TRY(tide_json_expect(&reader, TIDE_JSON_OBJECT_BEGIN, &token, err));
    for (;;) {
        TIDE_TRY(tide_json_next(&reader, &token, err));
        if (token.type == TIDE_JSON_OBJECT_END) {
            return TIDE_OK;
        }
        tide_str raw;
        if (tide_str_equal(token.text, TIDE_STR("source"))) {
            TIDE_TRY(tide_json_expect_string(&reader, arena, &ret_state->source_id, err));
        } else if (tide_str_equal(token.text, TIDE_STR("nonces"))) {
            TIDE_TRY(read_nonces(&reader, arena, ret_state, err));
        } else if (tide_str_equal(token.text, TIDE_STR("trail"))) {
            TIDE_TRY(tide_json_expect_string(&reader, arena, &ret_state->trail, err));
        } else {
            TIDE_TRY(tide_json_skip(&reader, &raw, err));
        }
    }
}

static tide_status take_up(struct tide_sqlite_nonces *nonces, const struct state *state,
                           const char *source_id, const char *now, struct tide_error *err)
{
    if (!tide_str_equal(state->source_id, tide_str_from(source_id))) {
        return tide_fail(err, TIDE_STALE,
                         "the checkpoint belongs to the database %.*s, this one is %s; give the "
                         "right database, or " TIDE_SQLITE_ANEW,
                         TIDE_STR_ARG(state->source_id), source_id);
    }
    size_t at = 0;
    while (at < state->nonce_count && !tide_str_equal(state->nonces[at], tide_str_from(now))) {
        at++;
    }
    if (at == state->nonce_count) {
        return tide_fail(err, TIDE_STALE,
                         "the database is not as this pipeline left it: it was restored from a "
                         "backup or copied, or the checkpoint is an old one; restore the right "
                         "database, or " TIDE_SQLITE_ANEW);
    }
    tide_sqlite_nonces_init(nonces, now);
    for (size_t i = at + 1; i < state->nonce_count; i++) {
        set_nonce(nonces, i - at, state->nonces[i]);
    }
    return TIDE_OK;
}

tide_status tide_sqlite_nonces_load(struct tide_sqlite_nonces *nonces, tide_str state,
                                    const char *source_id, const char *now,
                                    struct tide_sqlite_trail *ret_trail, struct tide_error *err)
{
    TIDE_CLEANUP(tide_arena_done) struct tide_arena arena = {0};
    struct state read = {0};
    if (read_state(state, &arena, &read, err) != TIDE_OK) {
        return tide_fail_context(err, "the source's state in the checkpoint");
    }
    struct tide_sqlite_trail trail;
    if (!tide_sqlite_trail_load(&trail, read.trail)) {
        return tide_fail(err, TIDE_CORRUPT, "the source's state in the checkpoint has no trail");
    }
    TIDE_TRY(take_up(nonces, &read, source_id, now, err));
    *ret_trail = trail;
    return TIDE_OK;
}
