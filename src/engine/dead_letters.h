/*
 * The dead letters of a pipeline: records that a sink could not take as they are, one JSON object
 * a line (format/dead_letter.h) in files of the state directory (0600, engine/dead_letter_files.h).
 * The first file appears with the first letter. A letter is on disk when putting it returns, and
 * one that is there already is not put again, however often its record is delivered.
 *
 *     put ─▶ known? ─▶ file full? rename it, sync the directory ─▶ write, sync ─▶ a new file:
 *                                                                       sync the directory
 *
 * A crash between any two of these loses no letter that was said to be held and doubles none.
 */
#pragma once

#include "model/position.h"
#include "port/sink.h"

#include <stddef.h>
#include <stdint.h>

struct tide_dead_letter_file;

/* What to do with one more letter when there are as many files as may be. */
enum tide_dead_letters_full {
    TIDE_DEAD_LETTERS_STOP,        /* it cannot be put; somebody has to look at them first */
    TIDE_DEAD_LETTERS_DROP_OLDEST, /* the oldest file goes; its letters are counted */
};

struct tide_dead_letter_limits {
    uint64_t record_bytes; /* kept of each record */
    uint64_t file_bytes;   /* of a file before it is full; a longer letter gets one of its own */
    uint64_t files;        /* all of them together; two or more */
    enum tide_dead_letters_full when_full;
};

/** What holds unless a user says something else. */
struct tide_dead_letter_limits tide_dead_letter_limits_default(void);

/**
 * Reads the ids of the newest letters; what a crash left of a half-written last line is cut away.
 * `dir` is the state directory, locked by the caller.
 * Errors: TIDE_IO.
 */
tide_status tide_dead_letter_file_open(const char *dir,
                                       const struct tide_dead_letter_limits *limits,
                                       const struct tide_position_kind *position_kind,
                                       struct tide_dead_letter_file **ret_letters,
                                       struct tide_error *err);

/** NULL is fine. No sink uses it any more. */
void tide_dead_letter_file_close(struct tide_dead_letter_file *letters);

/**
 * For the options of a sink, valid until close. `put` and `note_skipped` may be called by any
 * thread. The errors of `put` leave the files as they were: TIDE_IO, retriable; TIDE_INVALID, not
 * retriable: they are full, and that is to be a reason to stop.
 */
struct tide_dead_letters tide_dead_letter_file_target(struct tide_dead_letter_file *letters);

/** New letters since it was opened. Any thread. */
uint64_t tide_dead_letter_file_count(const struct tide_dead_letter_file *letters);
