/*
 * Keeps what a source's metadata says of its writers short, however often one is opened: sessions
 * of ours that wrote nothing, and the oldest of very many, go. What other programs wrote stays.
 * Pure.
 */
#pragma once

#include "archive/sessions.h"

/* Sessions whose record has gone; in the arena that was given. */
struct tide_archive_gone {
    tide_str *sessions; /* their UUIDs */
    size_t count;
};

/**
 * Appends the array `json` without sessions of this program (`next.writer`, whatever its version)
 * that need not be told: the last, when `next` goes on behind the same row; and the oldest but the
 * first while there are more than TIDE_ARCHIVE_SESSIONS_MAX of all kinds. TIDE_CORRUPT.
 */
tide_status tide_archive_sessions_trim(tide_str json, const struct tide_archive_session *next,
                                       struct tide_arena *arena, struct tide_archive_gone *ret_gone,
                                       struct tide_buf *buf, struct tide_error *err);

/** Appends the object `json` without the events that tell of sessions that have gone.
 * TIDE_CORRUPT. */
tide_status tide_archive_events_trim(tide_str json, const struct tide_archive_gone *gone,
                                     struct tide_arena *arena, struct tide_buf *buf,
                                     struct tide_error *err);
