/*
 * What is said around a stream where it goes over a socket: before it, how a follower of ours
 * begins, and in its place, why it is refused. Ours, and no part of dendro's protocol. Pure.
 *
 *     opening = "tidemark-go" NUL | u16 version, 1 | u32 length of what follows
 *               | boolean ends | opt<bytes> token
 *     refusal = "tidemark-no" NUL | u16 version, 1 | u32 length of what follows
 *               | boolean may be tried again | text reason
 *
 * An opening that ends wants what there is now, and no more. Behind an opening stands a hello.
 */
#pragma once

#include "base/buf.h"
#include "base/status.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>

#define TIDE_WIRE_OPENING_VERSION   1
#define TIDE_WIRE_OPENING_HEAD_SIZE 18 /* as that of a hello */

struct tide_wire_opening {
    bool ends;
    bool has_token;
    tide_str token; /* a secret; TIDE_TOKEN_BYTES_MAX at most */
};

struct tide_wire_refusal {
    bool is_retriable;
    tide_str reason; /* UTF-8; cut to TIDE_REFUSAL_BYTES_MAX where it is sent */
};

/** Whether bytes begin as an opening or a refusal does, as far as they go. */
bool tide_wire_opening_may_be(tide_str have);
bool tide_wire_refusal_may_be(tide_str have);

/** Appends one. */
void tide_wire_opening_append(const struct tide_wire_opening *opening, struct tide_buf *out);
void tide_wire_refusal_append(const struct tide_wire_refusal *refusal, struct tide_buf *out);

/**
 * How many bytes the opening, or refusal, has that begins with `have`; 0:
 * TIDE_WIRE_OPENING_HEAD_SIZE bytes are needed to tell.
 * Errors: TIDE_CORRUPT it is none, or too large; TIDE_UNSUPPORTED another version.
 */
tide_status tide_wire_opening_size(tide_str have, size_t *ret_size, struct tide_error *err);
tide_status tide_wire_refusal_size(tide_str have, size_t *ret_size, struct tide_error *err);

/** Decodes a whole one, which it borrows from. Errors as above. */
tide_status tide_wire_opening_decode(tide_str bytes, struct tide_wire_opening *ret_opening,
                                     struct tide_error *err);
tide_status tide_wire_refusal_decode(tide_str bytes, struct tide_wire_refusal *ret_refusal,
                                     struct tide_error *err);
