/*
 * Private to this folder: the rows of one sealed segment, in memory, for rows of a copy that come
 * at or before what it is sealed to: again, or late. One that is late makes the segment another,
 * which takes its place when it is put back.
 */
#pragma once

#include "archive/encoder.h"
#include "base/status.h"

struct tide_archive_series;
struct tide_archive_writer;

/**
 * The row of a time that is sealed, or NULL. Valid until the next call.
 * Errors: TIDE_UNSUPPORTED the segment's rows are too many; those of decoding, of putting back.
 */
tide_status tide_archive_opened_find(struct tide_archive_series *series, int64_t ts,
                                     const struct tide_archive_live_row **ret_row,
                                     struct tide_error *err);

/** Adds a row that was looked for, and not found. */
void tide_archive_opened_add(struct tide_archive_writer *writer,
                             const struct tide_archive_live_row *row);

/** Puts the segment back, where rows were added to it. Within a transaction. */
tide_status tide_archive_opened_put_back(struct tide_archive_writer *writer,
                                         struct tide_error *err);

/** Forgets the rows. */
void tide_archive_opened_free(struct tide_archive_writer *writer);
