#include "faulty_vfs.h"

#include "base/status.h"

#include <signal.h>
#include <sqlite3.h>
#include <string.h>
#include <unistd.h>

struct faulty_vfs faulty_vfs;

static sqlite3_vfs *under;
static sqlite3_vfs over;

struct file {
    sqlite3_file base;
    sqlite3_file *real; /* behind this struct */
};

static sqlite3_file *real_of(sqlite3_file *file)
{
    return ((struct file *)(void *)file)->real;
}

static bool is_hit(void)
{
    faulty_vfs.calls++;
    bool hit = faulty_vfs.fault != FAULTY_VFS_NONE && faulty_vfs.fault != FAULTY_VFS_KILL_AT_SYNC &&
               (faulty_vfs.for_ever ? faulty_vfs.calls >= faulty_vfs.at
                                    : faulty_vfs.calls == faulty_vfs.at);
    faulty_vfs.hits += hit;
    return hit;
}

static void die(void)
{
    (void)kill(getpid(), SIGKILL);
    for (;;) {
        (void)pause();
    }
}

static int on_write(sqlite3_file *file, const void *bytes, int len, sqlite3_int64 at)
{
    if (!is_hit()) {
        return real_of(file)->pMethods->xWrite(real_of(file), bytes, len, at);
    }
    if (faulty_vfs.fault != FAULTY_VFS_ERROR && len > 1) {
        (void)real_of(file)->pMethods->xWrite(real_of(file), bytes, len / 2, at);
    }
    if (faulty_vfs.fault == FAULTY_VFS_KILL) {
        die();
    }
    return faulty_vfs.fault == FAULTY_VFS_FULL ? SQLITE_FULL : SQLITE_IOERR_WRITE;
}

static int on_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    bool hit = is_hit();
    if (hit && faulty_vfs.fault == FAULTY_VFS_KILL) {
        die();
    }
    return hit && faulty_vfs.fault == FAULTY_VFS_ERROR
               ? SQLITE_IOERR_TRUNCATE
               : real_of(file)->pMethods->xTruncate(real_of(file), size);
}

static int on_sync(sqlite3_file *file, int flags)
{
    bool hit = is_hit();
    if ((hit && faulty_vfs.fault == FAULTY_VFS_KILL) ||
        faulty_vfs.fault == FAULTY_VFS_KILL_AT_SYNC) {
        die();
    }
    return hit && faulty_vfs.fault == FAULTY_VFS_ERROR
               ? SQLITE_IOERR_FSYNC
               : real_of(file)->pMethods->xSync(real_of(file), flags);
}

static int on_close(sqlite3_file *file)
{
    return real_of(file)->pMethods->xClose(real_of(file));
}

static int on_read(sqlite3_file *file, void *bytes, int len, sqlite3_int64 at)
{
    return real_of(file)->pMethods->xRead(real_of(file), bytes, len, at);
}

static int on_file_size(sqlite3_file *file, sqlite3_int64 *ret_size)
{
    return real_of(file)->pMethods->xFileSize(real_of(file), ret_size);
}

static int on_lock(sqlite3_file *file, int level)
{
    return real_of(file)->pMethods->xLock(real_of(file), level);
}

static int on_unlock(sqlite3_file *file, int level)
{
    return real_of(file)->pMethods->xUnlock(real_of(file), level);
}

static int on_check_reserved_lock(sqlite3_file *file, int *ret_is_held)
{
    return real_of(file)->pMethods->xCheckReservedLock(real_of(file), ret_is_held);
}

static int on_file_control(sqlite3_file *file, int what, void *arg)
{
    return real_of(file)->pMethods->xFileControl(real_of(file), what, arg);
}

static int on_sector_size(sqlite3_file *file)
{
    return real_of(file)->pMethods->xSectorSize(real_of(file));
}

static int on_device(sqlite3_file *file)
{
    return real_of(file)->pMethods->xDeviceCharacteristics(real_of(file));
}

static int on_shm_map(sqlite3_file *file, int page, int size, int extend, void volatile **ret_map)
{
    return real_of(file)->pMethods->xShmMap(real_of(file), page, size, extend, ret_map);
}

static int on_shm_lock(sqlite3_file *file, int at, int count, int flags)
{
    return real_of(file)->pMethods->xShmLock(real_of(file), at, count, flags);
}

static void on_shm_barrier(sqlite3_file *file)
{
    real_of(file)->pMethods->xShmBarrier(real_of(file));
}

static int on_shm_unmap(sqlite3_file *file, int does_delete)
{
    return real_of(file)->pMethods->xShmUnmap(real_of(file), does_delete);
}

static const sqlite3_io_methods methods = {
    .iVersion = 2,
    .xClose = on_close,
    .xRead = on_read,
    .xWrite = on_write,
    .xTruncate = on_truncate,
    .xSync = on_sync,
    .xFileSize = on_file_size,
    .xLock = on_lock,
    .xUnlock = on_unlock,
    .xCheckReservedLock = on_check_reserved_lock,
    .xFileControl = on_file_control,
    .xSectorSize = on_sector_size,
    .xDeviceCharacteristics = on_device,
    .xShmMap = on_shm_map,
    .xShmLock = on_shm_lock,
    .xShmBarrier = on_shm_barrier,
    .xShmUnmap = on_shm_unmap,
};

static int on_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags,
                   int *ret_flags)
{
    struct file *ours = (struct file *)(void *)file;
    (void)vfs;
    ours->real = (sqlite3_file *)(void *)(ours + 1);
    ours->base.pMethods = NULL;
    bool is_writer = (flags & SQLITE_OPEN_MAIN_DB) != 0 && (flags & SQLITE_OPEN_READWRITE) != 0;
    if (is_writer && faulty_vfs.on_writer != NULL) {
        faulty_vfs.on_writer();
    }
    int rc = under->xOpen(under, name, ours->real, flags, ret_flags);
    if (ours->real->pMethods != NULL) {
        ours->base.pMethods = &methods;
    }
    return rc;
}

void faulty_vfs_install(void)
{
    under = sqlite3_vfs_find(NULL);
    TIDE_ASSERT(under != NULL);
    over = *under;
    over.zName = "faulty";
    over.pNext = NULL;
    over.szOsFile += (int)sizeof(struct file);
    over.xOpen = on_open;
    int rc = sqlite3_vfs_register(&over, 1);
    TIDE_ASSERT(rc == SQLITE_OK);
}
