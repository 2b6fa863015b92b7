/*
 * Histories of frames in a short notation, for tests of what consumes them:
 *
 *     begin,from=null row=0 stub=1 row=2,attempt=1 end=3,attempt=1,starts=2,to=5 change=5,prev=null
 *
 * A token is a kind and its seq (of an end: the row count; of a change: its position), then fields:
 * id, store, attempt, starts (3:5), from, to, prev (a position with index 0, or null), total, inc,
 * record, key, bytes.
 */
#pragma once

#include "base/buf.h"
#include "format/reassembler.h"

#include <stddef.h>

#define HISTORY_MAX 512

struct history {
    char tokens[HISTORY_MAX][64];
    size_t count;
};

/** Splits the notation into tokens. */
struct history *history_parse(const char *text);

/** The frame of a token as a line. */
void history_append_frame(struct tide_buf *line, const char *token);

/** Feeds (or rechecks) one token; it must be a good frame. */
void history_feed(struct tide_reassembler *reassembler, const char *token);
void history_recheck(struct tide_reassembler *reassembler, const char *token);
