/*
 * Where an archive is written: the file that its path leads to, and the lock that says that one
 * process of ours writes there. The lock is a file of its own beside the archive, which goes when
 * it is given back: a descriptor of ours on the database would take SQLite's locks with it.
 */
#pragma once

#include "base/status.h"
#include "base/str.h"

#include <stdbool.h>
#include <sys/types.h>

struct tide_archive_place {
    char *path; /* links followed */
    char *lock_path;
    int lock_fd;  /* -1: not locked */
    dev_t device; /* of the archive that is open, with `inode` */
    ino_t inode;
};

/** What is at a place. */
enum tide_archive_thing {
    TIDE_ARCHIVE_NOTHING, /* or a file without bytes */
    TIDE_ARCHIVE_FILE,
};

/** TIDE_INVALID no path, or one that names a directory. */
tide_status tide_archive_place_valid(tide_str text, struct tide_error *err);

/** Names the place, without touching it. Errors likewise. */
tide_status tide_archive_place_name(tide_str text, struct tide_archive_place *ret_place,
                                    struct tide_error *err);

/** Gives the lock back and frees. For TIDE_CLEANUP too; `{.lock_fd = -1}` is an empty place. */
void tide_archive_place_done(struct tide_archive_place *place);

/** Errors: TIDE_INVALID another process writes there, or there is no such directory; TIDE_IO. */
tide_status tide_archive_place_lock(struct tide_archive_place *place, struct tide_error *err);

/** Looks. TIDE_INVALID it is no file, or has other names (hard links); TIDE_IO. */
tide_status tide_archive_place_look(const struct tide_archive_place *place,
                                    enum tide_archive_thing *ret_thing, struct tide_error *err);

/**
 * Makes an empty archive, at once in the place of a file that is there.
 * Errors: those of tide_archive_create; TIDE_TIMEOUT the archive that is there is in use.
 */
tide_status tide_archive_place_make(const struct tide_archive_place *place,
                                    enum tide_archive_thing there, struct tide_error *err);

/** Remembers which file the archive is, which has been opened. TIDE_IO it cannot be looked at. */
tide_status tide_archive_place_remember(struct tide_archive_place *place, struct tide_error *err);

/** TIDE_STALE when the path does not lead to that file any more: it was moved, removed or replaced.
 */
tide_status tide_archive_place_check(const struct tide_archive_place *place,
                                     struct tide_error *err);
