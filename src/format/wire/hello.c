#include "format/wire/hello.h"

#include "base/limits.h"
#include "format/wire/pieces.h"

#define MAGIC             "tidemark-hi" /* and its NUL */
#define MAGIC_SIZE        12
#define LENGTH_AT         14
#define SOURCE_SIZE_LEAST 8 /* two empty counts */
#define SERIES_SIZE_LEAST 6

_Static_assert(sizeof(MAGIC) == MAGIC_SIZE, "the NUL belongs to it");

/* What must hold of what is sent and of what has come. */

static const char *wrong_series(const struct tide_wire_hello_series *series)
{
    if (series->is_sealed && !(series->has_newest && series->sealed_to <= series->newest_ts)) {
        return "a series is sealed to behind its newest row";
    }
    return tide_str_is_utf8(series->name) ? NULL : "a text in it is not UTF-8";
}

static const char *wrong_source(const struct tide_wire_hello_source *source)
{
    const char *wrong = NULL;
    for (size_t i = 0; i < source->series_count && wrong == NULL; i++) {
        wrong = wrong_series(&source->series[i]);
        if (i > 0 && tide_str_compare(source->series[i - 1].name, source->series[i].name) >= 0) {
            wrong = "series do not rise by name";
        }
    }
    return wrong;
}

static const char *wrong_hello(const struct tide_wire_hello *hello)
{
    const char *wrong = NULL;
    for (size_t i = 0; i < hello->source_count && wrong == NULL; i++) {
        const struct tide_wire_hello_source *source = &hello->sources[i];
        wrong = wrong_source(source);
        if (source->uuid.len == 0 || !tide_str_is_utf8(source->uuid)) {
            wrong = "a source has no uuid, or one that is not UTF-8";
        } else if (i > 0 && tide_str_compare(source[-1].uuid, source->uuid) >= 0) {
            wrong = "sources do not rise by uuid";
        }
    }
    return wrong;
}

/* Optional times. */

static size_t time_size(bool is_there)
{
    return is_there ? 1 + sizeof(int64_t) : 1;
}

static char *put_time(char *at, bool is_there, int64_t ts)
{
    at = tide_wire_put_u8(at, is_there);
    return is_there ? tide_wire_put_i64(at, ts) : at;
}

static bool take_time(struct tide_wire_take *take, int64_t *ret_ts)
{
    bool is_there = tide_wire_take_bool(take);
    *ret_ts = is_there ? tide_reader_i64le(&take->reader) : 0;
    return is_there;
}

/* Series. */

static size_t series_size(const struct tide_wire_hello_series *series)
{
    return tide_wire_bytes_size(series->name) + time_size(series->has_newest) +
           time_size(series->is_sealed);
}

static char *put_series(char *at, const struct tide_wire_hello_series *series)
{
    at = tide_wire_put_bytes(at, series->name);
    at = put_time(at, series->has_newest, series->newest_ts);
    return put_time(at, series->is_sealed, series->sealed_to);
}

static void take_series(struct tide_wire_take *take, struct tide_wire_hello_series *ret_series)
{
    ret_series->name = tide_wire_take_text(take);
    ret_series->has_newest = take_time(take, &ret_series->newest_ts);
    ret_series->is_sealed = take_time(take, &ret_series->sealed_to);
}

/* Sources. */

static size_t source_size(const struct tide_wire_hello_source *source)
{
    size_t size = tide_wire_bytes_size(source->uuid) + sizeof(uint32_t);
    for (size_t i = 0; i < source->series_count; i++) {
        size += series_size(&source->series[i]);
    }
    return size;
}

static char *put_source(char *at, const struct tide_wire_hello_source *source)
{
    at = tide_wire_put_bytes(at, source->uuid);
    at = tide_wire_put_u32(at, (uint32_t)source->series_count);
    for (size_t i = 0; i < source->series_count; i++) {
        at = put_series(at, &source->series[i]);
    }
    return at;
}

/* A count of things that take so many bytes each, at least; 0 when they cannot all be there. */
static size_t take_count(struct tide_wire_take *take, size_t size_least)
{
    size_t count = tide_reader_u32le(&take->reader);
    if (count > tide_reader_left(&take->reader) / size_least) {
        take->wrong = "it counts more than it holds";
        return 0;
    }
    return count;
}

static void take_source(struct tide_wire_take *take, struct tide_arena *arena,
                        struct tide_wire_hello_source *ret_source)
{
    ret_source->uuid = tide_wire_take_text(take);
    size_t count = take_count(take, SERIES_SIZE_LEAST);
    ret_source->series = tide_arena_alloc(arena, count, sizeof(*ret_source->series));
    ret_source->series_count = count;
    for (size_t i = 0; i < count; i++) {
        take_series(take, &ret_source->series[i]);
    }
}

/* All of it. */

static size_t body_size(const struct tide_wire_hello *hello)
{
    size_t size = sizeof(uint32_t);
    for (size_t i = 0; i < hello->source_count; i++) {
        size += source_size(&hello->sources[i]);
    }
    return size;
}

static char *put_head(char *at, size_t body)
{
    at = tide_wire_put_raw(at, tide_str_of(MAGIC, MAGIC_SIZE));
    at = tide_wire_put_u8(at, TIDE_WIRE_HELLO_VERSION & 0xff);
    at = tide_wire_put_u8(at, TIDE_WIRE_HELLO_VERSION >> 8);
    return tide_wire_put_u32(at, (uint32_t)body);
}

tide_status tide_wire_hello_encode(const struct tide_wire_hello *hello, struct tide_buf *out,
                                   struct tide_error *err)
{
    size_t body = body_size(hello);
    const char *wrong = wrong_hello(hello);
    if (body > TIDE_WIRE_HELLO_BYTES_MAX || wrong != NULL) {
        return tide_fail(err, TIDE_INVALID, "what is held cannot be told a publisher: %s",
                         wrong != NULL ? wrong : "there are too many series");
    }
    char *at = tide_buf_reserve(out, TIDE_WIRE_HELLO_HEAD_SIZE + body);
    at = tide_wire_put_u32(put_head(at, body), (uint32_t)hello->source_count);
    for (size_t i = 0; i < hello->source_count; i++) {
        at = put_source(at, &hello->sources[i]);
    }
    out->len += TIDE_WIRE_HELLO_HEAD_SIZE + body;
    TIDE_ASSERT(at == out->ptr + out->len);
    return TIDE_OK;
}

tide_status tide_wire_hello_size(tide_str have, size_t *ret_size, struct tide_error *err)
{
    size_t len = have.len < MAGIC_SIZE ? have.len : MAGIC_SIZE;
    uint32_t body = 0;
    if (len > 0 && memcmp(have.ptr, MAGIC, len) != 0) {
        return tide_fail(err, TIDE_CORRUPT, "this is not a hello of a follower of tidemark");
    }
    if (have.len < TIDE_WIRE_HELLO_HEAD_SIZE) {
        *ret_size = 0;
        return TIDE_OK;
    }
    unsigned version = (unsigned char)have.ptr[MAGIC_SIZE] |
                       ((unsigned)(unsigned char)have.ptr[MAGIC_SIZE + 1] << 8);
    if (version != TIDE_WIRE_HELLO_VERSION) {
        return tide_fail(err, TIDE_UNSUPPORTED,
                         "the hello of a follower has version %u, this program knows %d: use the "
                         "same version on both sides",
                         version, TIDE_WIRE_HELLO_VERSION);
    }
    memcpy(&body, have.ptr + LENGTH_AT, sizeof(body));
    if (body > TIDE_WIRE_HELLO_BYTES_MAX) {
        return tide_fail(err, TIDE_CORRUPT, "the hello claims %u bytes; the limit is %zu", body,
                         TIDE_WIRE_HELLO_BYTES_MAX);
    }
    *ret_size = TIDE_WIRE_HELLO_HEAD_SIZE + body;
    return TIDE_OK;
}

static tide_status decode_body(struct tide_wire_take *take, struct tide_arena *arena,
                               struct tide_wire_hello *ret_hello, struct tide_error *err)
{
    struct tide_wire_hello hello = {0};
    hello.source_count = take_count(take, SOURCE_SIZE_LEAST);
    hello.sources = tide_arena_alloc(arena, hello.source_count, sizeof(*hello.sources));
    for (size_t i = 0; i < hello.source_count; i++) {
        take_source(take, arena, &hello.sources[i]);
    }
    TIDE_TRY(tide_wire_take_done(take, "hello", err));
    const char *wrong = wrong_hello(&hello);
    if (wrong != NULL) {
        return tide_fail(err, TIDE_CORRUPT, "malformed hello: %s", wrong);
    }
    *ret_hello = hello;
    return TIDE_OK;
}

tide_status tide_wire_hello_decode(tide_str bytes, struct tide_arena *arena,
                                   struct tide_wire_hello *ret_hello, struct tide_error *err)
{
    size_t size = 0;
    TIDE_TRY(tide_wire_hello_size(bytes, &size, err));
    if (size == 0 || size != bytes.len) {
        return tide_fail(err, TIDE_CORRUPT, "malformed hello: it has %zu bytes, not %zu", bytes.len,
                         size == 0 ? TIDE_WIRE_HELLO_HEAD_SIZE : size);
    }
    struct tide_wire_take take = {.reader = tide_reader_of(bytes)};
    (void)tide_reader_take(&take.reader, TIDE_WIRE_HELLO_HEAD_SIZE);
    return decode_body(&take, arena, ret_hello, err);
}
