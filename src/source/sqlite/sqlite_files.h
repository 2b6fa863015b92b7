/*
 * Holds a connection to the files that it was opened on.
 *
 * SQLite neither removes nor replaces `-wal` and `-shm` while a connection has them open. Who does
 * so all the same (a restore with rm and cp) leaves us with deleted files: what we then read is a
 * mixture, what we then write nobody sees, and the checkpoint that SQLite makes when the last
 * connection is closed would write pages of the deleted log over the new database. So the files
 * that the path names are compared with those that were there at first: by each transaction of
 * ours that writes, before its commit, before each checkpoint, before closing, and by the callers
 * around what they read.
 *
 * Only a database in WAL mode has such files. One thread, that of the connection.
 */
#pragma once

#include "base/status.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <sys/stat.h>

/* A file beside the database; not compared until it is known. */
struct tide_sqlite_beside {
    bool is_known;
    dev_t device;
    ino_t inode;
};

struct tide_sqlite_files {
    sqlite3 *db; /* borrowed until _close */
    bool is_wal; /* what is beside has been looked at */
    struct tide_sqlite_beside wal;
    struct tide_sqlite_beside shm;
};

/** Right after *db was opened and has read; `files` must stay where it is until _close. From here
 * on a commit over files that are others fails with TIDE_STALE (see tide_sqlite_db_fail). */
void tide_sqlite_files_open(struct tide_sqlite_files *files, sqlite3 *db);

/** TIDE_STALE with what has happened and the way on: the files are not those that were opened. */
tide_status tide_sqlite_files_check(struct tide_sqlite_files *files, struct tide_error *err);

/** Closes the connection, without a checkpoint where the files are others. All zero is fine. */
void tide_sqlite_files_close(struct tide_sqlite_files *files);
