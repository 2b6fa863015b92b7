/* The files that a command line names: files, directories with all below them, standard input. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One file to read, or one that could not be found. */
struct tide_input {
    char *path;        /* "-" is standard input */
    char *error;       /* why it cannot be read, a sentence; NULL: nothing is known against it */
    bool is_regular;   /* can be read again */
    int64_t mtime_us;  /* UTC; 0 when it is not a regular file */
    uint64_t bytes;    /* the reader's: how many there were when it was read first */
    bool is_abandoned; /* the reader's: it could not be read to its end */
};

struct tide_inputs {
    struct tide_input *items;
    size_t count;
    size_t cap;
};

/** Frees the list. For TIDE_CLEANUP too. */
void tide_inputs_done(struct tide_inputs *inputs);

/**
 * Adds what `path` names: a file, `-`, or every frame file (*.ndjson and *.json, also with .zst)
 * in a directory and in those below it, by name. Hidden ones are left out, Tidemark's own state is
 * too; links to directories are not followed; what is neither file nor directory is passed over
 * with a warning. What is not there becomes an input with an error.
 */
void tide_inputs_add(struct tide_inputs *inputs, const char *path);
