/*
 * Reads chunks in a thread of its own, one at a time, so that reading overlaps with delivery.
 * All calls come from the ingest thread.
 */
#pragma once

#include "port/source.h"

struct tide_read_ahead;

/** Starts the thread; its reader is opened with the first request. `waker` is woken with every
 * answer. */
struct tide_read_ahead *tide_read_ahead_new(const struct tide_source_ops *ops,
                                            struct tide_source *source, struct tide_waker *waker);

/** Cancels what is being read, joins the thread, closes the reader. NULL is fine. */
void tide_read_ahead_free(struct tide_read_ahead *ahead);

/** Nothing is asked for and no answer waits. */
bool tide_read_ahead_is_idle(struct tide_read_ahead *ahead);

/** Asks for a chunk; the request is copied. Only when idle. */
void tide_read_ahead_ask(struct tide_read_ahead *ahead, const struct tide_chunk_request *request,
                         bool needs_horizon);

/** True when the answer is there: `ret_status` with the chunk or the error; idle again. */
bool tide_read_ahead_answer(struct tide_read_ahead *ahead, tide_status *ret_status,
                            struct tide_chunk *ret_chunk, struct tide_error *err);
