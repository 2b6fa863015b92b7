#include "format/wire/opening.h"

#include "base/limits.h"
#include "format/wire/pieces.h"

#define MAGIC_SIZE 12
#define LENGTH_AT  14

/* What the two have in common: all before their fields. */
struct form {
    const char *magic; /* with its NUL */
    const char *name;
    size_t body_max;
};

static const struct form opening_form = {
    .magic = "tidemark-go",
    .name = "opening",
    .body_max = 1 + 1 + sizeof(uint32_t) + TIDE_TOKEN_BYTES_MAX,
};

static const struct form refusal_form = {
    .magic = "tidemark-no",
    .name = "refusal",
    .body_max = 1 + sizeof(uint32_t) + TIDE_REFUSAL_BYTES_MAX,
};

static bool may_be(const struct form *form, tide_str have)
{
    size_t len = have.len < MAGIC_SIZE ? have.len : MAGIC_SIZE;
    return len == 0 || memcmp(have.ptr, form->magic, len) == 0;
}

static char *put_head(const struct form *form, size_t body, struct tide_buf *out)
{
    char *at = tide_buf_reserve(out, TIDE_WIRE_OPENING_HEAD_SIZE + body);
    out->len += TIDE_WIRE_OPENING_HEAD_SIZE + body;
    at = tide_wire_put_raw(at, tide_str_of(form->magic, MAGIC_SIZE));
    at = tide_wire_put_u8(at, TIDE_WIRE_OPENING_VERSION & 0xff);
    at = tide_wire_put_u8(at, TIDE_WIRE_OPENING_VERSION >> 8);
    return tide_wire_put_u32(at, (uint32_t)body);
}

static tide_status size_of(const struct form *form, tide_str have, size_t *ret_size,
                           struct tide_error *err)
{
    uint32_t body = 0;
    if (!may_be(form, have)) {
        return tide_fail(err, TIDE_CORRUPT, "this is no %s of tidemark", form->name);
    }
    if (have.len < TIDE_WIRE_OPENING_HEAD_SIZE) {
        *ret_size = 0;
        return TIDE_OK;
    }
    unsigned version = (unsigned char)have.ptr[MAGIC_SIZE] |
                       ((unsigned)(unsigned char)have.ptr[MAGIC_SIZE + 1] << 8);
    if (version != TIDE_WIRE_OPENING_VERSION) {
        return tide_fail(err, TIDE_UNSUPPORTED,
                         "the %s has version %u, this program knows %d: use the same version on "
                         "both sides",
                         form->name, version, TIDE_WIRE_OPENING_VERSION);
    }
    memcpy(&body, have.ptr + LENGTH_AT, sizeof(body));
    if (body > form->body_max) {
        return tide_fail(err, TIDE_CORRUPT, "the %s claims %u bytes; the limit is %zu", form->name,
                         body, form->body_max);
    }
    *ret_size = TIDE_WIRE_OPENING_HEAD_SIZE + body;
    return TIDE_OK;
}

static tide_status take_head(const struct form *form, tide_str bytes, struct tide_wire_take *take,
                             struct tide_error *err)
{
    size_t size = 0;
    TIDE_TRY(size_of(form, bytes, &size, err));
    if (size == 0 || size != bytes.len) {
        return tide_fail(err, TIDE_CORRUPT, "malformed %s: it has %zu bytes, not %zu", form->name,
                         bytes.len, size == 0 ? (size_t)TIDE_WIRE_OPENING_HEAD_SIZE : size);
    }
    *take = (struct tide_wire_take){.reader = tide_reader_of(bytes)};
    (void)tide_reader_take(&take->reader, TIDE_WIRE_OPENING_HEAD_SIZE);
    return TIDE_OK;
}

/* The opening. */

bool tide_wire_opening_may_be(tide_str have)
{
    return may_be(&opening_form, have);
}

tide_status tide_wire_opening_size(tide_str have, size_t *ret_size, struct tide_error *err)
{
    return size_of(&opening_form, have, ret_size, err);
}

void tide_wire_opening_append(const struct tide_wire_opening *opening, struct tide_buf *out)
{
    size_t token_size = opening->has_token ? tide_wire_bytes_size(opening->token) : 0;
    TIDE_ASSERT(token_size <= sizeof(uint32_t) + TIDE_TOKEN_BYTES_MAX);
    char *at = put_head(&opening_form, 1 + 1 + token_size, out);
    at = tide_wire_put_u8(at, opening->ends);
    at = tide_wire_put_u8(at, opening->has_token);
    if (opening->has_token) {
        (void)tide_wire_put_bytes(at, opening->token);
    }
}

tide_status tide_wire_opening_decode(tide_str bytes, struct tide_wire_opening *ret_opening,
                                     struct tide_error *err)
{
    struct tide_wire_take take;
    struct tide_wire_opening opening = {0};
    TIDE_TRY(take_head(&opening_form, bytes, &take, err));
    opening.ends = tide_wire_take_bool(&take);
    opening.has_token = tide_wire_take_bool(&take);
    if (opening.has_token) {
        opening.token = tide_wire_take_bytes(&take);
    }
    TIDE_TRY(tide_wire_take_done(&take, opening_form.name, err));
    *ret_opening = opening;
    return TIDE_OK;
}

/* The refusal. */

bool tide_wire_refusal_may_be(tide_str have)
{
    return may_be(&refusal_form, have);
}

tide_status tide_wire_refusal_size(tide_str have, size_t *ret_size, struct tide_error *err)
{
    return size_of(&refusal_form, have, ret_size, err);
}

void tide_wire_refusal_append(const struct tide_wire_refusal *refusal, struct tide_buf *out)
{
    tide_str reason = refusal->reason;
    if (reason.len > TIDE_REFUSAL_BYTES_MAX) {
        reason.len = TIDE_REFUSAL_BYTES_MAX;
        reason.len = tide_str_utf8_valid_prefix(reason);
    }
    char *at = put_head(&refusal_form, 1 + tide_wire_bytes_size(reason), out);
    (void)tide_wire_put_bytes(tide_wire_put_u8(at, refusal->is_retriable), reason);
}

tide_status tide_wire_refusal_decode(tide_str bytes, struct tide_wire_refusal *ret_refusal,
                                     struct tide_error *err)
{
    struct tide_wire_take take;
    struct tide_wire_refusal refusal = {0};
    TIDE_TRY(take_head(&refusal_form, bytes, &take, err));
    refusal.is_retriable = tide_wire_take_bool(&take);
    refusal.reason = tide_wire_take_text(&take);
    TIDE_TRY(tide_wire_take_done(&take, refusal_form.name, err));
    *ret_refusal = refusal;
    return TIDE_OK;
}
