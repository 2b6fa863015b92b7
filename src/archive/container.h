/*
 * The archive file: an SQLite database that holds, for each series of each source, sealed segments
 * and a live tail. docs/archive.md has its layout.
 *
 * A handle is one connection and belongs to one thread at a time. Several handles, in any number of
 * processes of one machine, may read while one writes.
 */
#pragma once

#include "base/status.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

struct tide_archive;

/* What stands in the header of every archive. */
#define TIDE_ARCHIVE_APPLICATION_ID 0x64656e64 /* "dend" */
#define TIDE_ARCHIVE_VERSION        4

enum tide_archive_access {
    TIDE_ARCHIVE_READ,  /* changes nothing; any number at once, also beside a writer */
    TIDE_ARCHIVE_EDIT,  /* alone: fails while anybody else has the archive open */
    TIDE_ARCHIVE_WRITE, /* one at a time, beside readers */
    /* Forgets and joins beside a writer that lets others do so; each transaction is to be short.
     * What it may not do, its first transaction says: TIDE_TIMEOUT. */
    TIDE_ARCHIVE_EDIT_BESIDE,
};

/* What the first 100 bytes of a file say. */
struct tide_archive_stamp {
    bool is_archive;
    uint32_t version; /* of an archive; whether we can read it is for tide_archive_open to say */
};

/** Looks into the header alone; changes nothing, takes no lock. TIDE_INVALID no such file. */
tide_status tide_archive_sniff(const char *path, struct tide_archive_stamp *ret_stamp,
                               struct tide_error *err);

/* What stands between an archive's name and six letters while it is made; a kill leaves that. */
#define TIDE_ARCHIVE_MADE_SUFFIX ".new-"

/**
 * Makes a new, empty archive (0600), durably. It appears under its name once it is whole.
 * Errors: TIDE_INVALID something has that name; TIDE_IO. Nothing is left behind.
 */
tide_status tide_archive_create(const char *path, struct tide_error *err);

/** TIDE_INVALID where a file that is to be written has more than one name (hard links): SQLite's
 * log and the locks lie beside the one it is opened by, and whoever opens another one knows nothing
 * of them. */
tide_status tide_archive_require_one_name(const char *path, uint64_t names, struct tide_error *err);

/**
 * Opens an archive. A file that is none is not touched.
 * Errors: TIDE_INVALID no such file, no archive, or not to be written by this name alone;
 * TIDE_UNSUPPORTED of another version; TIDE_TIMEOUT (retriable) in use; TIDE_CORRUPT damaged;
 * TIDE_IO.
 */
tide_status tide_archive_open(const char *path, enum tide_archive_access access,
                              struct tide_archive **ret_archive, struct tide_error *err);

/** NULL is fine. For TIDE_CLEANUP, with the address of the variable: tide_archive_close_ptr. */
void tide_archive_close(struct tide_archive *archive);
void tide_archive_close_ptr(struct tide_archive **archive);

/** Whether its name now names another file, or none. */
bool tide_archive_has_moved(const struct tide_archive *archive);

/**
 * Everything read between these two is of one moment. May be nested; every begin that succeeded has
 * its end. Held only for one answer: while it is, what a writer writes cannot be folded into the
 * file. On a handle that is writing, what is being written is seen.
 */
tide_status tide_archive_snapshot_begin(struct tide_archive *archive, struct tide_error *err);
void tide_archive_snapshot_end(struct tide_archive *archive);

/** For TIDE_CLEANUP on a second variable that is set once a snapshot has begun. */
void tide_archive_snapshot_end_ptr(struct tide_archive **archive);

/** Gives free pages back to the file system, as far as that can be done now: where it cannot, they
 * are used again. Beside a writer that one does it, and this nothing. */
void tide_archive_shrink(struct tide_archive *archive);

/** Writes an exact copy of what the archive holds now to `path`, which must not exist. Not inside a
 * snapshot. */
tide_status tide_archive_copy_to(struct tide_archive *archive, const char *path,
                                 struct tide_error *err);
