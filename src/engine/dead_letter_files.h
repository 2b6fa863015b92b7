/*
 * The files of the dead letters in a state directory:
 *
 *     dead_letters.1.ndjson  dead_letters.2.ndjson …   full ones, the oldest first
 *     dead_letters.ndjson                              the one that is written to
 *     dead_letters.replayed                            see engine/dead_letter_marks.h
 *
 * A full file gets the next number and keeps it. Somebody may remove files at any time.
 */
#pragma once

#include "base/buf.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TIDE_DEAD_LETTERS_FILE     "dead_letters.ndjson"
#define TIDE_DEAD_LETTERS_MARKS    "dead_letters.replayed"
#define TIDE_DEAD_LETTERS_NAME_MAX 48 /* with its NUL */

/** `dead_letters.N.ndjson`; N from 1 on. */
void tide_dead_letters_name(uint64_t number, char ret_name[TIDE_DEAD_LETTERS_NAME_MAX]);

/** The number in a full file's name; false when it is none. */
bool tide_dead_letters_number(tide_str name, uint64_t *ret_number);

/** Whether it is one of these. */
bool tide_dead_letters_is_name(tide_str name);

/** The numbers of the full files that are there, in order; the caller frees. `dir` is for messages.
 * Errors: TIDE_IO. */
tide_status tide_dead_letters_list(int dir_fd, const char *dir, uint64_t **ret_numbers,
                                   size_t *ret_count, struct tide_error *err);

struct tide_dead_letters_line {
    tide_str text;   /* without its end */
    uint64_t start;  /* where it begins in the file */
    uint64_t number; /* from 1 on */
    bool is_cut;     /* `text` is not all of it */
};

typedef tide_status (*tide_dead_letters_each)(void *context,
                                              const struct tide_dead_letters_line *line,
                                              struct tide_error *err);

/**
 * Calls `each` with every whole line of what is in the file from its start to `end`; of what is
 * behind the last line end it takes nothing. `*ret_length`: the bytes of whole lines. Of a line of
 * more than `line_max` bytes only that many are given. `path` is for messages.
 * Errors: TIDE_IO; that of `each`, which ends the walk.
 */
tide_status tide_dead_letters_each_line(int fd, const char *path, uint64_t end, size_t line_max,
                                        tide_dead_letters_each each, void *context,
                                        uint64_t *ret_length, struct tide_error *err);
