#include "archive/gather_vfs.h"

#include <pthread.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"

#define VFS_NAME     "tidemark-gather"
#define GATHER_BYTES (64 * 1024) /* SQLite's own takes less than 128 KiB in a call */

/* The usual file follows it in memory. */
struct gather_file {
    sqlite3_file base;
    struct gather_file *log; /* of a database: what is open of its log; NULL: nothing */
    struct gather_file *of;  /* of a log: its database */
    char *bytes;             /* that wait; NULL: none ever did */
    size_t len;
    int64_t at; /* where they belong */
};

static struct gather_file *gather_of(sqlite3_file *file)
{
    return (struct gather_file *)file;
}

static sqlite3_file *usual_of(sqlite3_file *file)
{
    return (sqlite3_file *)(gather_of(file) + 1);
}

static const sqlite3_io_methods *usual_methods(sqlite3_file *file)
{
    return usual_of(file)->pMethods;
}

/* What cannot be written waits on: it was said to be written. SQLite takes back the transaction. */
static int write_out(sqlite3_file *file)
{
    struct gather_file *self = gather_of(file);
    if (self->len == 0) {
        return SQLITE_OK;
    }
    int rc = usual_methods(file)->xWrite(usual_of(file), self->bytes, (int)self->len, self->at);
    self->len = rc == SQLITE_OK ? 0 : self->len;
    return rc;
}

/* Others may write from here on: nothing of ours may come after that. */
static void drop(struct gather_file *self)
{
    if (self != NULL) {
        self->len = 0;
    }
}

static int file_close(sqlite3_file *file)
{
    struct gather_file *self = gather_of(file);
    int rc = usual_methods(file)->xClose(usual_of(file));
    if (self->of != NULL) {
        self->of->log = NULL;
    }
    free(self->bytes);
    self->bytes = NULL;
    return rc;
}

static int file_read(sqlite3_file *file, void *to, int size, sqlite3_int64 at)
{
    const struct gather_file *self = gather_of(file);
    if (self->len > 0 && at + size > self->at) {
        int rc = write_out(file);
        if (rc != SQLITE_OK) {
            return rc;
        }
    }
    return usual_methods(file)->xRead(usual_of(file), to, size, at);
}

/* Whether bytes for `at` belong right behind those that wait, within their block. */
static bool fits_behind(const struct gather_file *self, int64_t at)
{
    return self->len == 0 || (at == self->at + (int64_t)self->len && at % GATHER_BYTES != 0);
}

/* Takes as many as the block has room for. */
static size_t gather(struct gather_file *self, const char *from, size_t size, int64_t at)
{
    size_t room = GATHER_BYTES - (size_t)(at % GATHER_BYTES);
    size_t taken = size < room ? size : room;
    if (self->bytes == NULL) {
        self->bytes = tide_alloc(GATHER_BYTES, 1);
    }
    self->at = self->len == 0 ? at : self->at;
    memcpy(self->bytes + self->len, from, taken);
    self->len += taken;
    return taken;
}

static int write_gathered(sqlite3_file *file, const char *from, size_t size, int64_t at)
{
    struct gather_file *self = gather_of(file);
    for (size_t done = 0; done < size;) {
        int rc = fits_behind(self, at + (int64_t)done) ? SQLITE_OK : write_out(file);
        if (rc != SQLITE_OK) {
            return rc;
        }
        done += gather(self, from + done, size - done, at + (int64_t)done);
        rc = (at + (int64_t)done) % GATHER_BYTES == 0 ? write_out(file) : SQLITE_OK;
        if (rc != SQLITE_OK) {
            return rc;
        }
    }
    return SQLITE_OK;
}

/*
 * Beside a log, the database's pages come from that. SQLite tells all others that they are there
 * without a sync, where it does not fold in all of the log, so none of them may wait.
 */
static int file_write(sqlite3_file *file, const void *from, int size, sqlite3_int64 at)
{
    return gather_of(file)->log == NULL
               ? write_gathered(file, from, (size_t)size, at)
               : usual_methods(file)->xWrite(usual_of(file), from, size, at);
}

static int file_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    int rc = write_out(file);
    return rc == SQLITE_OK ? usual_methods(file)->xTruncate(usual_of(file), size) : rc;
}

static int file_sync(sqlite3_file *file, int flags)
{
    int rc = write_out(file);
    return rc == SQLITE_OK ? usual_methods(file)->xSync(usual_of(file), flags) : rc;
}

static int file_size(sqlite3_file *file, sqlite3_int64 *ret_size)
{
    const struct gather_file *self = gather_of(file);
    int rc = usual_methods(file)->xFileSize(usual_of(file), ret_size);
    int64_t end = self->at + (int64_t)self->len;
    if (rc == SQLITE_OK && self->len > 0 && end > *ret_size) {
        *ret_size = end;
    }
    return rc;
}

static int file_lock(sqlite3_file *file, int level)
{
    return usual_methods(file)->xLock(usual_of(file), level);
}

/* Of a database without a log: what a commit has not synced is to be there. Where it cannot be, its
 * journal is, which takes back all of it. */
static int file_unlock(sqlite3_file *file, int level)
{
    (void)write_out(file);
    drop(gather_of(file));
    return usual_methods(file)->xUnlock(usual_of(file), level);
}

static int file_check_reserved_lock(sqlite3_file *file, int *ret_is_locked)
{
    return usual_methods(file)->xCheckReservedLock(usual_of(file), ret_is_locked);
}

static int file_control(sqlite3_file *file, int op, void *arg)
{
    return usual_methods(file)->xFileControl(usual_of(file), op, arg);
}

static int file_sector_size(sqlite3_file *file)
{
    return usual_methods(file)->xSectorSize(usual_of(file));
}

/* Writes that the file system would make at once or not at all do not come as such. */
static int file_characteristics(sqlite3_file *file)
{
    return usual_methods(file)->xDeviceCharacteristics(usual_of(file)) & ~SQLITE_IOCAP_BATCH_ATOMIC;
}

static int file_shm_map(sqlite3_file *file, int page, int size, int extends, void volatile **ret_at)
{
    return usual_methods(file)->xShmMap(usual_of(file), page, size, extends, ret_at);
}

/* The first of the locks is that to write (WAL_WRITE_LOCK). What waits for the log then has not
 * been committed, or could not be: it must not come back after a crash. */
static int file_shm_lock(sqlite3_file *file, int offset, int count, int flags)
{
    if (offset == 0 && (flags & SQLITE_SHM_UNLOCK) != 0) {
        drop(gather_of(file)->log);
    }
    return usual_methods(file)->xShmLock(usual_of(file), offset, count, flags);
}

/* Stands before others are shown what the log has. Where a commit syncs, nothing waits by then. */
static void file_shm_barrier(sqlite3_file *file)
{
    if (gather_of(file)->log != NULL) {
        (void)write_out(&gather_of(file)->log->base);
    }
    usual_methods(file)->xShmBarrier(usual_of(file));
}

static int file_shm_unmap(sqlite3_file *file, int is_deleted)
{
    return usual_methods(file)->xShmUnmap(usual_of(file), is_deleted);
}

static const sqlite3_io_methods methods = {
    .iVersion = 2, /* of 3: nothing is mapped into memory */
    .xClose = file_close,
    .xRead = file_read,
    .xWrite = file_write,
    .xTruncate = file_truncate,
    .xSync = file_sync,
    .xFileSize = file_size,
    .xLock = file_lock,
    .xUnlock = file_unlock,
    .xCheckReservedLock = file_check_reserved_lock,
    .xFileControl = file_control,
    .xSectorSize = file_sector_size,
    .xDeviceCharacteristics = file_characteristics,
    .xShmMap = file_shm_map,
    .xShmLock = file_shm_lock,
    .xShmBarrier = file_shm_barrier,
    .xShmUnmap = file_shm_unmap,
};

static sqlite3_vfs gather_vfs;

/* Databases and their logs; other files are the usual ones. */
static int open_file(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags,
                     int *ret_flags)
{
    sqlite3_vfs *usual = vfs->pAppData;
    struct gather_file *self = gather_of(file);
    if ((flags & (SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_WAL)) == 0) {
        return usual->xOpen(usual, name, file, flags, ret_flags);
    }
    *self = (struct gather_file){0};
    int rc = usual->xOpen(usual, name, usual_of(file), flags, ret_flags);
    if (usual_methods(file) != NULL) {
        TIDE_ASSERT(usual_methods(file)->iVersion >= methods.iVersion);
        file->pMethods = &methods;
    }
    if (rc == SQLITE_OK && (flags & SQLITE_OPEN_WAL) != 0) {
        self->of = gather_of(sqlite3_database_file_object(name));
        self->of->log = self;
    }
    return rc;
}

static bool is_registered;

static void register_vfs(void)
{
    sqlite3_vfs *usual = sqlite3_vfs_find(NULL);
    if (usual == NULL) {
        return;
    }
    gather_vfs = *usual; /* its functions do not ask whose they are */
    gather_vfs.szOsFile += (int)sizeof(struct gather_file);
    gather_vfs.pNext = NULL;
    gather_vfs.zName = VFS_NAME;
    gather_vfs.pAppData = usual;
    gather_vfs.xOpen = open_file;
    is_registered = sqlite3_vfs_register(&gather_vfs, 0) == SQLITE_OK;
}

const char *tide_gather_vfs(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, register_vfs);
    return is_registered ? VFS_NAME : NULL;
}
