/*
 * A file system for SQLite that fails, or kills this process, at a chosen call that changes a file.
 * It becomes the default, over the one that was. Not for several threads.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum faulty_vfs_fault {
    FAULTY_VFS_NONE,
    FAULTY_VFS_ERROR,        /* the call fails as by a broken disk */
    FAULTY_VFS_FULL,         /* writing fails as on a full disk, also half done */
    FAULTY_VFS_KILL,         /* the process is killed, a write half done */
    FAULTY_VFS_KILL_AT_SYNC, /* the process is killed at the next sync, before it */
};

struct faulty_vfs {
    enum faulty_vfs_fault fault;
    int64_t at;    /* the call that is hit, from 1 */
    bool for_ever; /* and all after it */
    int64_t calls; /* so far: writes, cuts and syncs */
    int64_t hits;
    void (*on_writer)(void); /* called before a database is opened for writing; NULL: nobody */
};

/* What to do; may be changed at any time. */
extern struct faulty_vfs faulty_vfs;

/** Makes it the default. Once a process. */
void faulty_vfs_install(void);
