/*
 * A stream of frames: written by appending, read from a slice that holds all of it, or decoded as
 * its bytes come, in any cuts. Both readers give the same frames and fail alike.
 *
 *     stream   = preamble frame*
 *     preamble = "dendro-repl" NUL | u16 protocol version, 1
 *
 * It has no mark at its end: one that ends between two frames is whole, one that ends within a
 * frame, within a length, or within the preamble has been cut. Frames of unknown kinds are passed
 * over and counted; nothing but their kind is looked at.
 *
 * Errors of both, after which every call fails with the same:
 *     TIDE_CORRUPT      it is no such stream, a length is 0 or over TIDE_WIRE_FRAME_BYTES_MAX, or a
 *                       frame is malformed
 *     TIDE_UNSUPPORTED  another protocol version
 *     TIDE_CLOSED       it has been cut: retriable
 * Frames in the wrong order are no errors here: see order.h.
 */
#pragma once

#include "base/buf.h"
#include "base/status.h"
#include "base/str.h"
#include "format/wire/wire.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TIDE_WIRE_VERSION       1
#define TIDE_WIRE_PREAMBLE_SIZE 14

/** Begins a stream; once, before its frames (tide_wire_encode, tide_wire_rows_begin). */
void tide_wire_preamble_append(struct tide_buf *out);

/* How far a stream has been read. */
struct tide_wire_progress {
    uint64_t bytes;   /* of the stream: the preamble and whole frames */
    uint64_t frames;  /* handed out */
    uint64_t skipped; /* of unknown kinds */
};

/* Reads a stream that lies in memory. */
struct tide_wire_reader {
    tide_str stream;
    size_t pos;
    struct tide_wire_progress progress;
    struct tide_error failure; /* status TIDE_OK: none */
};

/** A reader of `stream`, which must stay as long as its frames are in use. */
struct tide_wire_reader tide_wire_reader_of(tide_str stream);

/** The next frame; it borrows from the stream. TIDE_END behind the last one. */
tide_status tide_wire_reader_next(struct tide_wire_reader *reader,
                                  struct tide_wire_frame *ret_frame, struct tide_error *err);

/*
 * Decodes a stream as it comes. `{0}` is ready for the first byte.
 *
 *     buf:  | taken | bytes that came and were not taken | room |
 *                  pos                                  len    cap
 *
 * Memory doubles with the bytes that come: a length reserves nothing, so it is twice what one frame
 * and the bytes that came with its end have, at most, where frames are taken until there is none
 * before more is fed. Whoever lets them wait bounds them. The memory is kept for the frames to
 * come, until the end.
 */
struct tide_wire_decoder {
    struct tide_buf buf;
    size_t pos;
    size_t skip_size; /* of a frame that is being passed over; 0: none is */
    size_t skip_left;
    bool is_begun; /* the preamble has come */
    struct tide_wire_progress progress;
    struct tide_error failure; /* status TIDE_OK: none */
};

/** Frees the memory; the decoder is as new. For TIDE_CLEANUP too. */
void tide_wire_decoder_done(struct tide_wire_decoder *decoder);

/** Ready for another stream; keeps the memory. */
void tide_wire_decoder_reset(struct tide_wire_decoder *decoder);

/** Room for `size` more bytes, to be read into without a copy; then say how many came. Frames that
 * were handed out before are void. */
char *tide_wire_decoder_room(struct tide_wire_decoder *decoder, size_t size);
void tide_wire_decoder_came(struct tide_wire_decoder *decoder, size_t size);

/** Feeds a copy of `bytes`. Frames that were handed out before are void. */
void tide_wire_decoder_feed(struct tide_wire_decoder *decoder, tide_str bytes);

/** The next frame that is there whole (`ret_is_frame`); it borrows from the decoder until that is
 * fed. */
tide_status tide_wire_decoder_next(struct tide_wire_decoder *decoder,
                                   struct tide_wire_frame *ret_frame, bool *ret_is_frame,
                                   struct tide_error *err);

/** Says that no more bytes will come, and all frames were taken. TIDE_OK: the stream is whole. */
tide_status tide_wire_decoder_end(struct tide_wire_decoder *decoder, struct tide_error *err);
