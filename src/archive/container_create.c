/* Making an archive: whole, or not at all. */
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive/archive_db.h"
#include "archive/container.h"
#include "archive/schema.h"
#include "base/alloc.h"
#include "base/fsio.h"

/* Pragmas that count only before the first page is written. */
static tide_status start_file(struct tide_archive *archive, struct tide_error *err)
{
    TIDE_TRY(tide_archive_run(archive, err, "PRAGMA page_size = 4096", ""));
    TIDE_TRY(tide_archive_run(archive, err, "PRAGMA auto_vacuum = INCREMENTAL", ""));
    TIDE_TRY(tide_archive_run(archive, err, "PRAGMA journal_mode = WAL", ""));
    TIDE_CLEANUP(tide_archive_stmt_done) struct sqlite3_stmt *stmt = NULL;
    TIDE_TRY(tide_archive_query(archive, &stmt, err, "PRAGMA journal_mode", ""));
    bool is_row = false;
    TIDE_TRY(tide_archive_step(archive, stmt, &is_row, err));
    if (!tide_str_equal(tide_archive_column_bytes(stmt, 0), TIDE_STR("wal"))) {
        return tide_fail(err, TIDE_IO,
                         "%s: creating: its file system does not take a write-ahead log; keep "
                         "archives on a local file system",
                         archive->path);
    }
    return TIDE_OK;
}

/* Fills the empty file at `path`, and leaves it whole: closing folds the log into it. */
static tide_status fill(const char *path, struct tide_error *err)
{
    struct tide_archive archive = {.path = tide_strndup(path, strlen(path)), .doing = "creating"};
    TIDE_CLEANUP(tide_buf_done) struct tide_buf name = {0};
    tide_buf_printf(&name, "%s%s", path[0] == '/' ? "" : "./", path);
    int rc = sqlite3_open_v2(tide_buf_cstr(&name), &archive.db,
                             SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
    tide_status status = rc == SQLITE_OK ? TIDE_OK : tide_archive_fail(&archive, rc, err);
    status = status == TIDE_OK ? start_file(&archive, err) : status;
    status = status == TIDE_OK ? tide_archive_set_up_writing(&archive, 16384, err) : status;
    status = status == TIDE_OK ? tide_archive_schema_create(&archive, err) : status;
    /* The mark must stand in the file itself, where it is looked for. */
    status = status == TIDE_OK
                 ? tide_archive_run(&archive, err, "PRAGMA wal_checkpoint(TRUNCATE)", "")
                 : status;
    (void)sqlite3_close_v2(archive.db);
    free(archive.path);
    return status;
}

static void remove_files(const char *path)
{
    static const char *const suffixes[] = {"", "-wal", "-shm", "-journal"};
    for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
        TIDE_CLEANUP(tide_buf_done) struct tide_buf name = {0};
        tide_buf_printf(&name, "%s%s", path, suffixes[i]);
        (void)unlink(tide_buf_cstr(&name));
    }
}

static tide_status fail_name(const char *path, struct tide_error *err)
{
    int error = errno;
    if (error == EEXIST) {
        return tide_fail(err, TIDE_INVALID,
                         "%s is there already; open it, or give a name that is free", path);
    }
    return tide_fail(err, TIDE_IO, "cannot create the archive %s: %s", path, strerror(error));
}

/* An empty one says nothing. */
static tide_status check_sidecar(const char *path, const char *suffix, struct tide_error *err)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf name = {0};
    struct stat st;
    tide_buf_printf(&name, "%s%s", path, suffix);
    return stat(tide_buf_cstr(&name), &st) != 0 || st.st_size == 0
               ? TIDE_OK
               : tide_fail(err, TIDE_INVALID,
                           "%s%s is there already, of an archive that is gone; remove it, or give "
                           "another name",
                           path, suffix);
}

/* Under its name at once, whole, and only where nothing has that name. */
static tide_status give_name(const char *made, const char *path, struct tide_error *err)
{
    if (renameat2(AT_FDCWD, made, AT_FDCWD, path, RENAME_NOREPLACE) == 0) {
        return TIDE_OK;
    }
    /* Not every file system can: a second name is refused just so. */
    if (errno != EINVAL || link(made, path) != 0) {
        return fail_name(path, err);
    }
    return TIDE_OK; /* the first name is removed by the caller */
}

static tide_status sync_folder(const char *path, struct tide_error *err)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf folder = {0};
    const char *slash = strrchr(path, '/');
    tide_buf_append_str(&folder, slash == NULL ? TIDE_STR(".")
                                               : tide_str_of(path, (size_t)(slash - path) + 1));
    return tide_dir_sync(tide_buf_cstr(&folder), err);
}

tide_status tide_archive_create(const char *path, struct tide_error *err)
{
    if (access(path, F_OK) == 0) {
        errno = EEXIST;
        return fail_name(path, err);
    }
    TIDE_TRY(check_sidecar(path, "-wal", err)); /* SQLite would take it for this file's */
    TIDE_TRY(check_sidecar(path, "-journal", err));
    TIDE_CLEANUP(tide_buf_done) struct tide_buf made = {0};
    tide_buf_printf(&made, "%s" TIDE_ARCHIVE_MADE_SUFFIX "XXXXXX", path);
    (void)tide_buf_cstr(&made);
    int fd = mkostemp(made.ptr, O_CLOEXEC); /* 0600, and nobody else's */
    if (fd < 0) {
        return fail_name(path, err);
    }
    (void)close(fd);
    tide_status status = fill(tide_buf_cstr(&made), err);
    status = status == TIDE_OK ? give_name(tide_buf_cstr(&made), path, err) : status;
    remove_files(tide_buf_cstr(&made));
    return status == TIDE_OK ? sync_folder(path, err) : status;
}
