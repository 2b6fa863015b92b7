/*
 * One file of frames, a line each: bytes are gathered in memory, written in large pieces, and made
 * durable by sync. It knows its tail, whose hash lets a later run recognise the file.
 *
 *     0            durable (held_file.length)      written (length)      written + buffered
 *     | acknowledged lines | lines since the last flush | lines in `buf` |
 *
 * Files are named inside an open directory; at most some are open at a time (the owner closes).
 * One sink thread uses it.
 */
#pragma once

#include "base/buf.h"
#include "base/status.h"
#include "sink/file/held_record.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where files live, for the calls and for messages. */
struct tide_frames_dir {
    int fd;
    const char *path; /* "." for the current one */
};

struct tide_frames_file {
    const struct tide_frames_dir *dir; /* borrowed */
    char *name;
    char *path; /* for messages */
    tide_str store;
    int fd; /* -1: closed for now */
    uint64_t inode;
    uint64_t length;     /* written */
    bool has_more;       /* it was longer than what was held when it was checked */
    bool needs_sync;     /* something was written since the last sync */
    uint64_t used;       /* when it was last written to, by the owner's count */
    struct tide_buf buf; /* not written yet */
    size_t tail_len;
    char tail[TIDE_TAIL_BYTES]; /* the last bytes written */
};

/** A file object without a file; `store` must stay. */
struct tide_frames_file *tide_frames_file_new(const struct tide_frames_dir *dir, tide_str name,
                                              tide_str store);
/** Closes without writing. NULL is fine. */
void tide_frames_file_free(struct tide_frames_file *file);

/**
 * Opens what is there, or makes it (0600). `ret_size` is what it has; nothing of it is changed.
 * Errors: TIDE_INVALID not a regular file, or another process writes to it; TIDE_IO.
 */
tide_status tide_frames_file_create(struct tide_frames_file *file, uint64_t *ret_size,
                                    struct tide_error *err);

/** Of one that is open, before bytes are put behind others: TIDE_INVALID it is an SQLite database,
 * such as an archive; TIDE_IO. */
tide_status tide_frames_file_check_kind(const struct tide_frames_file *file,
                                        struct tide_error *err);

/**
 * Opens the file that `held` speaks of and compares. Errors: TIDE_STALE it is gone, is another
 * one, is shorter, or its last held bytes differ: the message says which; TIDE_INVALID, TIDE_IO.
 */
tide_status tide_frames_file_check(struct tide_frames_file *file, const struct tide_held_file *held,
                                   struct tide_error *err);

/** Cuts the file, opening it again if it was closed, to `length`, its end from now on. */
tide_status tide_frames_file_cut(struct tide_frames_file *file, uint64_t length,
                                 struct tide_error *err);

/** Buffers a line end if the last line has none. */
void tide_frames_file_end_line(struct tide_frames_file *file);

/** Writes what is buffered, opening the file again if it was closed. TIDE_IO, retriable unless it
 * lasts. */
tide_status tide_frames_file_write_out(struct tide_frames_file *file, struct tide_error *err);

/** Syncs what was written. Errors: TIDE_IO, retriable; TIDE_STALE somebody moved or changed the
 * file meanwhile. */
tide_status tide_frames_file_sync(struct tide_frames_file *file, struct tide_error *err);

/** Closes the descriptor; the next write opens it again. Synced before. */
void tide_frames_file_close(struct tide_frames_file *file);

/** XXH3 of the tail. */
uint64_t tide_frames_file_tail_hash(const struct tide_frames_file *file);
