#include "format/wire/stream.h"

#include "format/wire/pieces.h"

#include <inttypes.h>

#define LENGTH_SIZE 4
#define MAGIC       "dendro-repl" /* and its NUL */
#define MAGIC_SIZE  12

_Static_assert(sizeof(MAGIC) == MAGIC_SIZE, "the NUL belongs to it");

void tide_wire_preamble_append(struct tide_buf *out)
{
    char *at = tide_buf_reserve(out, TIDE_WIRE_PREAMBLE_SIZE);
    at = tide_wire_put_raw(at, tide_str_of(MAGIC, MAGIC_SIZE));
    at = tide_wire_put_u8(at, TIDE_WIRE_VERSION & 0xff);
    (void)tide_wire_put_u8(at, TIDE_WIRE_VERSION >> 8);
    out->len += TIDE_WIRE_PREAMBLE_SIZE;
}

/* Looks at as much of the preamble as is there: the wrong place is known by its first bytes. */
static tide_status check_preamble(tide_str have, struct tide_error *err)
{
    size_t len = have.len < MAGIC_SIZE ? have.len : MAGIC_SIZE;
    if (len > 0 && memcmp(have.ptr, MAGIC, len) != 0) {
        return tide_fail(err, TIDE_CORRUPT,
                         "this is not a dendro replication stream: the magic does not match; is it "
                         "the right address?");
    }
    if (have.len < TIDE_WIRE_PREAMBLE_SIZE) {
        return TIDE_OK;
    }
    unsigned version = (unsigned char)have.ptr[MAGIC_SIZE] |
                       ((unsigned)(unsigned char)have.ptr[MAGIC_SIZE + 1] << 8);
    if (version != TIDE_WIRE_VERSION) {
        return tide_fail(err, TIDE_UNSUPPORTED,
                         "the stream has replication protocol version %u, this program speaks %d: "
                         "use versions of both sides that speak the same",
                         version, TIDE_WIRE_VERSION);
    }
    return TIDE_OK;
}

/* What stands at the start of some bytes. */
struct look {
    size_t size; /* of the frame, its length included; 0: more bytes are needed to know */
    bool is_known;
};

static tide_status look_at(tide_str have, struct look *ret_look, struct tide_error *err)
{
    uint32_t body = 0;
    *ret_look = (struct look){0};
    if (have.len < LENGTH_SIZE) {
        return TIDE_OK;
    }
    memcpy(&body, have.ptr, sizeof(body));
    if (body == 0) {
        return tide_fail(err, TIDE_CORRUPT, "malformed frame: it has a length of 0, and no kind");
    }
    if (memcmp(have.ptr, MAGIC, LENGTH_SIZE) == 0) { /* as a length it is above the limit, too */
        return tide_fail(err, TIDE_CORRUPT,
                         "another stream begins here: each is to be handed over by itself");
    }
    if (body > TIDE_WIRE_FRAME_BYTES_MAX) {
        return tide_fail(err, TIDE_CORRUPT, "the frame claims %" PRIu32 " bytes; the limit is %zu",
                         body, TIDE_WIRE_FRAME_BYTES_MAX);
    }
    if (have.len > LENGTH_SIZE) {
        ret_look->size = LENGTH_SIZE + body;
        ret_look->is_known = tide_wire_kind_is_known((unsigned char)have.ptr[LENGTH_SIZE]);
    }
    return TIDE_OK;
}

static tide_status decode_whole(tide_str frame, struct tide_wire_frame *ret_frame,
                                struct tide_error *err)
{
    return tide_wire_decode(tide_str_of(frame.ptr + LENGTH_SIZE, frame.len - LENGTH_SIZE),
                            ret_frame, err);
}

static tide_status fail_cut(const struct tide_wire_progress *progress, struct tide_error *err)
{
    return tide_fail_retriable(err, TIDE_CLOSED, "the stream was cut within %s",
                               progress->bytes == 0 ? "its beginning" : "a frame");
}

/* Says where, and keeps the error: a stream that has failed is at its end. */
static tide_status keep_failure(const struct tide_wire_progress *progress,
                                struct tide_error *failure, struct tide_error *err)
{
    (void)tide_fail_context(err,
                            "replication stream, at byte %" PRIu64 " (behind %" PRIu64 " frame%s)",
                            progress->bytes, progress->frames + progress->skipped,
                            progress->frames + progress->skipped == 1 ? "" : "s");
    *failure = *err;
    return err->status;
}

static tide_status fail_again(const struct tide_error *failure, struct tide_error *err)
{
    *err = *failure;
    return err->status;
}

/* From a slice. */

struct tide_wire_reader tide_wire_reader_of(tide_str stream)
{
    return (struct tide_wire_reader){.stream = stream};
}

static tide_str reader_rest(const struct tide_wire_reader *reader)
{
    return tide_str_of(reader->stream.ptr + reader->pos, reader->stream.len - reader->pos);
}

static void reader_pass(struct tide_wire_reader *reader, size_t size)
{
    reader->pos += size;
    reader->progress.bytes += size;
}

static tide_status reader_begin(struct tide_wire_reader *reader, struct tide_error *err)
{
    TIDE_TRY(check_preamble(reader->stream, err));
    if (reader->stream.len < TIDE_WIRE_PREAMBLE_SIZE) {
        return fail_cut(&reader->progress, err);
    }
    reader_pass(reader, TIDE_WIRE_PREAMBLE_SIZE);
    return TIDE_OK;
}

static tide_status reader_step(struct tide_wire_reader *reader, struct tide_wire_frame *ret_frame,
                               bool *ret_is_frame, struct tide_error *err)
{
    struct look look;
    tide_str rest = reader_rest(reader);
    TIDE_TRY(look_at(rest, &look, err));
    if (look.size == 0 || look.size > rest.len) {
        return fail_cut(&reader->progress, err);
    }
    if (look.is_known) {
        TIDE_TRY(decode_whole(tide_str_of(rest.ptr, look.size), ret_frame, err));
        reader->progress.frames++;
    } else {
        reader->progress.skipped++;
    }
    reader_pass(reader, look.size);
    *ret_is_frame = look.is_known;
    return TIDE_OK;
}

tide_status tide_wire_reader_next(struct tide_wire_reader *reader,
                                  struct tide_wire_frame *ret_frame, struct tide_error *err)
{
    bool is_frame = false;
    if (reader->failure.status != TIDE_OK) {
        return fail_again(&reader->failure, err);
    }
    if (reader->pos == 0 && reader_begin(reader, err) != TIDE_OK) {
        return keep_failure(&reader->progress, &reader->failure, err);
    }
    while (!is_frame && reader->pos < reader->stream.len) {
        if (reader_step(reader, ret_frame, &is_frame, err) != TIDE_OK) {
            return keep_failure(&reader->progress, &reader->failure, err);
        }
    }
    return is_frame ? TIDE_OK : TIDE_END;
}

/* As it comes. */

void tide_wire_decoder_done(struct tide_wire_decoder *decoder)
{
    tide_buf_done(&decoder->buf);
    *decoder = (struct tide_wire_decoder){0};
}

void tide_wire_decoder_reset(struct tide_wire_decoder *decoder)
{
    struct tide_buf buf = decoder->buf;
    tide_buf_reset(&buf);
    *decoder = (struct tide_wire_decoder){.buf = buf};
}

/* Bytes that were not taken move to the front: at most once for each frame, for its first part. */
char *tide_wire_decoder_room(struct tide_wire_decoder *decoder, size_t size)
{
    struct tide_buf *buf = &decoder->buf;
    if (decoder->pos > 0) {
        buf->len -= decoder->pos;
        memmove(buf->ptr, buf->ptr + decoder->pos, buf->len);
        decoder->pos = 0;
    }
    return tide_buf_reserve(buf, size);
}

void tide_wire_decoder_came(struct tide_wire_decoder *decoder, size_t size)
{
    TIDE_ASSERT(size <= decoder->buf.cap - decoder->buf.len);
    decoder->buf.len += size;
}

void tide_wire_decoder_feed(struct tide_wire_decoder *decoder, tide_str bytes)
{
    if (bytes.len > 0) {
        memcpy(tide_wire_decoder_room(decoder, bytes.len), bytes.ptr, bytes.len);
        tide_wire_decoder_came(decoder, bytes.len);
    }
}

static tide_str decoder_rest(const struct tide_wire_decoder *decoder)
{
    const struct tide_buf *buf = &decoder->buf;
    return buf->len == 0 ? TIDE_STR("")
                         : tide_str_of(buf->ptr + decoder->pos, buf->len - decoder->pos);
}

static void decoder_pass(struct tide_wire_decoder *decoder, size_t size)
{
    decoder->pos += size;
    decoder->progress.bytes += size;
}

/* Drops what has come of a frame that is passed over, so that it is never kept whole. */
static void decoder_skip(struct tide_wire_decoder *decoder)
{
    size_t have = decoder->buf.len - decoder->pos;
    size_t size = have < decoder->skip_left ? have : decoder->skip_left;
    decoder->pos += size;
    decoder->skip_left -= size;
    if (decoder->skip_left == 0) {
        decoder->progress.bytes += decoder->skip_size;
        decoder->progress.skipped++;
        decoder->skip_size = 0;
    }
}

static tide_status decoder_begin(struct tide_wire_decoder *decoder, struct tide_error *err)
{
    tide_str rest = decoder_rest(decoder);
    TIDE_TRY(check_preamble(rest, err));
    if (rest.len >= TIDE_WIRE_PREAMBLE_SIZE) {
        decoder_pass(decoder, TIDE_WIRE_PREAMBLE_SIZE);
        decoder->is_begun = true;
    }
    return TIDE_OK;
}

/* Takes one frame from the bytes, or begins to skip one. `ret_is_more`: it is worth another try. */
static tide_status decoder_step(struct tide_wire_decoder *decoder,
                                struct tide_wire_frame *ret_frame, bool *ret_is_frame,
                                bool *ret_is_more, struct tide_error *err)
{
    struct look look;
    tide_str rest = decoder_rest(decoder);
    TIDE_TRY(look_at(rest, &look, err));
    *ret_is_frame = look.is_known && look.size <= rest.len;
    *ret_is_more = look.size > 0 && !look.is_known;
    if (*ret_is_frame) {
        TIDE_TRY(decode_whole(tide_str_of(rest.ptr, look.size), ret_frame, err));
        decoder_pass(decoder, look.size);
        decoder->progress.frames++;
    } else if (*ret_is_more) {
        decoder->skip_size = look.size;
        decoder->skip_left = look.size;
    }
    return TIDE_OK;
}

static tide_status decoder_advance(struct tide_wire_decoder *decoder,
                                   struct tide_wire_frame *ret_frame, bool *ret_is_frame,
                                   struct tide_error *err)
{
    bool is_more = true;
    if (!decoder->is_begun) {
        TIDE_TRY(decoder_begin(decoder, err));
    }
    while (decoder->is_begun && is_more) {
        if (decoder->skip_size > 0) {
            decoder_skip(decoder);
            is_more = decoder->skip_size == 0;
        } else {
            TIDE_TRY(decoder_step(decoder, ret_frame, ret_is_frame, &is_more, err));
        }
    }
    return TIDE_OK;
}

tide_status tide_wire_decoder_next(struct tide_wire_decoder *decoder,
                                   struct tide_wire_frame *ret_frame, bool *ret_is_frame,
                                   struct tide_error *err)
{
    bool is_frame = false;
    if (decoder->failure.status != TIDE_OK) {
        return fail_again(&decoder->failure, err);
    }
    if (decoder_advance(decoder, ret_frame, &is_frame, err) != TIDE_OK) {
        return keep_failure(&decoder->progress, &decoder->failure, err);
    }
    *ret_is_frame = is_frame;
    return TIDE_OK;
}

tide_status tide_wire_decoder_end(struct tide_wire_decoder *decoder, struct tide_error *err)
{
    if (decoder->failure.status != TIDE_OK) {
        return fail_again(&decoder->failure, err);
    }
    if (!decoder->is_begun || decoder->skip_size > 0 || decoder->pos < decoder->buf.len) {
        (void)fail_cut(&decoder->progress, err);
        return keep_failure(&decoder->progress, &decoder->failure, err);
    }
    return TIDE_OK;
}
