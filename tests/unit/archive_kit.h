/* What tests of archives share: a folder, a file in it, a writer with a source, rows by number. */
#pragma once

#include "cmocka_prelude.h"

#include "archive/writer.h"
#include "plain_encoder.h"

#define KIT_PATH_MAX 256

struct archive_kit {
    char root[64];
    char path[KIT_PATH_MAX]; /* of the archive */
    struct plain_encoder_fault fault;
    struct tide_archive_encoder encoder;
    struct tide_archive_writer *writer;
    int64_t source;
    struct tide_error err;
};

/* The one that most tests use, made and removed around each of them. */
extern struct archive_kit kit;
int kit_setup_test(void **state);
int kit_teardown_test(void **state);

/** Makes the folder and, in it, an archive with an open writer and one source. */
void kit_setup(struct archive_kit *one);
void kit_teardown(struct archive_kit *one);

/** Fails the test, with the message, unless a call was OK. */
void kit_ok(struct archive_kit *one, tide_status status);

/** Fails the test unless a call on `kit` gave that status, with `why` in its message. */
void kit_fails(tide_status got, tide_status want, const char *why);

/** Closes the writer and opens another, which goes on with the source. */
void kit_reopen(struct archive_kit *one);

struct tide_archive_series *kit_series(struct archive_kit *one, const char *name);

/** Writes rows with the times `first` to `last`, each with its time as text. */
tide_status kit_write(struct archive_kit *one, const char *series, int64_t first, int64_t last);

/** Seals all of a series. */
tide_status kit_seal(struct archive_kit *one, const char *series);

/** Joins adjacent segments of a series up to so many rows, as is done beside a writer: found and
 * joined by a handle that reads. `ret_merged`: how many have become part of another. */
tide_status kit_compact(struct archive_kit *one, const char *series, int64_t rows_max,
                        int64_t *ret_merged);

/** The times of all rows of a series as "1-3 5", through a reader of its own; in a static buffer.
 */
const char *kit_times(struct archive_kit *one, const char *series);

/** One number out of the file, by plain SQLite. */
int64_t kit_number(struct archive_kit *one, const char *sql);

/** One text out of the file, by plain SQLite; in a static buffer. */
const char *kit_text(struct archive_kit *one, const char *sql);

/** Changes the file by plain SQLite. */
void kit_change(struct archive_kit *one, const char *sql);

/** The harmful findings of a full verification. */
size_t kit_verify(struct archive_kit *one);

/** Closes the writer and leaves rows as a kill between sealing and pruning does: in a segment of
 * the rows 1 to 3, and live too. */
void kit_shadow_rows(void);
