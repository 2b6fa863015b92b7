/*
 * The JSON reader over any bytes. What must hold:
 *   - reading token by token and passing over the whole accept the same input, with the same
 * message;
 *   - passing over an object or array ends where reading it token by token ends;
 *   - a string with its escapes resolved is UTF-8, and reads back the same once written.
 */
#include "base/buf.h"
#include "format/json_reader.h"
#include "format/json_writer.h"

#define DEPTH 16

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct walk {
    struct tide_arena arena;
    struct tide_buf buf;
    size_t ends[DEPTH + 1]; /* where each open level ends according to skip; SIZE_MAX: nowhere */
    bool some_skip_failed;
};

static void check_string(struct walk *walk, const struct tide_json_token *token)
{
    struct tide_json_reader reader;
    struct tide_error err = {0};
    tide_str back = {0};
    tide_str text = tide_json_unescape(token, &walk->arena);
    TIDE_ASSERT(tide_str_is_utf8(text));
    TIDE_ASSERT(text.len <= token->text.len);
    tide_buf_reset(&walk->buf);
    tide_json_append_string(&walk->buf, text);
    tide_json_reader_init(&reader, tide_buf_str(&walk->buf), 0);
    tide_status status = tide_json_expect_string(&reader, &walk->arena, &back, &err);
    TIDE_ASSERT(status == TIDE_OK);
    TIDE_ASSERT(tide_str_equal(text, back));
}

static void check_opened(struct walk *walk, const struct tide_json_reader *reader,
                         const struct tide_json_token *token)
{
    struct tide_json_reader ahead = *reader;
    struct tide_error err = {0};
    tide_str raw = {0};
    tide_status status = tide_json_skip_rest(&ahead, token, &raw, &err);
    walk->ends[reader->depth] = status == TIDE_OK ? ahead.pos : SIZE_MAX;
    walk->some_skip_failed = walk->some_skip_failed || status != TIDE_OK;
    if (status == TIDE_OK) {
        TIDE_ASSERT(raw.ptr == token->text.ptr);
        TIDE_ASSERT(tide_json_check(raw, DEPTH, &err) == TIDE_OK);
    }
}

static void check_token(struct walk *walk, const struct tide_json_reader *reader,
                        const struct tide_json_token *token)
{
    if (token->type == TIDE_JSON_KEY || token->type == TIDE_JSON_STRING) {
        check_string(walk, token);
    } else if (token->type == TIDE_JSON_OBJECT_BEGIN || token->type == TIDE_JSON_ARRAY_BEGIN) {
        check_opened(walk, reader, token);
    } else if (token->type == TIDE_JSON_OBJECT_END || token->type == TIDE_JSON_ARRAY_END) {
        TIDE_ASSERT(walk->ends[reader->depth + 1] == reader->pos);
    }
}

static tide_status walk_all(struct walk *walk, tide_str input, struct tide_error *err)
{
    struct tide_json_reader reader;
    struct tide_json_token token = {0};
    tide_json_reader_init(&reader, input, DEPTH);
    do {
        TIDE_TRY(tide_json_next(&reader, &token, err));
        check_token(walk, &reader, &token);
    } while (token.type != TIDE_JSON_END);
    TIDE_ASSERT(reader.pos == input.len || input.len == 0);
    return TIDE_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct walk walk = {0};
    struct tide_error next_err = {0};
    struct tide_error skip_err = {0};
    tide_str input = tide_str_of(data, size);
    tide_status status = walk_all(&walk, input, &next_err);
    TIDE_ASSERT(tide_json_check(input, DEPTH, &skip_err) == status);
    TIDE_ASSERT(strcmp(next_err.message, skip_err.message) == 0);
    TIDE_ASSERT(status != TIDE_OK || !walk.some_skip_failed);
    tide_arena_done(&walk.arena);
    tide_buf_done(&walk.buf);
    return 0;
}
