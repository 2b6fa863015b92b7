/*
 * The file system that gathers writes: a file is what the usual one would have made of it, two
 * connections do not harm each other, and pages that follow one another are written at once.
 */
#include "cmocka_prelude.h"

#include "archive/gather_vfs.h"
#include "faulty_vfs.h"
#include "soak.h"

#include <signal.h>
#include <sqlite3.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define FILE_MAX 400000

static char path[64];

static void remove_files(void)
{
    static const char *const suffixes[] = {"", "-wal", "-shm", "-journal"};
    for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
        char name[96];
        (void)snprintf(name, sizeof(name), "%s%s", path, suffixes[i]);
        (void)unlink(name);
    }
}

static int set_up(void **state)
{
    (void)state;
    faulty_vfs = (struct faulty_vfs){0};
    (void)snprintf(path, sizeof(path), "/tmp/tide_gather_%d", (int)getpid());
    remove_files();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    remove_files();
    return 0;
}

static uint64_t below(uint64_t *random, uint64_t bound)
{
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    return *random % bound;
}

/* A file, and what it should hold. */
struct pair {
    const char *name;
    sqlite3_file *file;
    char *model;
    int64_t size;
    uint64_t random;
};

static void pair_open(struct pair *pair)
{
    sqlite3_vfs *vfs = sqlite3_vfs_find(tide_gather_vfs());
    int flags = SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    pair->name = sqlite3_create_filename(path, "", "", 0, NULL);
    pair->file = calloc(1, (size_t)vfs->szOsFile);
    pair->model = calloc(1, FILE_MAX);
    assert_non_null(pair->file);
    assert_non_null(pair->model);
    assert_int_equal(vfs->xOpen(vfs, pair->name, pair->file, flags, &flags), SQLITE_OK);
}

static void pair_close(struct pair *pair)
{
    assert_int_equal(pair->file->pMethods->xClose(pair->file), SQLITE_OK);
    sqlite3_free_filename((char *)(uintptr_t)pair->name);
    free(pair->file);
    free(pair->model);
}

/* Most often right behind the last one; without holes, as SQLite does. */
static void pair_write(struct pair *pair, int64_t *at)
{
    static const int sizes[] = {24, 512, 4096, 4120, 70000};
    char bytes[70000];
    int size = sizes[below(&pair->random, 20) == 0 ? 4 : below(&pair->random, 4)];
    if (below(&pair->random, 12) == 0 || *at > pair->size || *at + size > FILE_MAX) {
        *at = (int64_t)below(&pair->random, (uint64_t)pair->size + 1);
        *at = *at + size > FILE_MAX ? 0 : *at;
    }
    memset(bytes, (int)below(&pair->random, 256), (size_t)size);
    assert_int_equal(pair->file->pMethods->xWrite(pair->file, bytes, size, *at), SQLITE_OK);
    memcpy(pair->model + *at, bytes, (size_t)size);
    *at += size;
    pair->size = *at > pair->size ? *at : pair->size;
}

static void pair_read(struct pair *pair)
{
    char bytes[9000];
    sqlite3_int64 size = 0;
    assert_int_equal(pair->file->pMethods->xFileSize(pair->file, &size), SQLITE_OK);
    assert_int_equal(size, pair->size);
    if (size > (int64_t)sizeof(bytes)) {
        int64_t at = (int64_t)below(&pair->random, (uint64_t)size - sizeof(bytes));
        assert_int_equal(pair->file->pMethods->xRead(pair->file, bytes, sizeof(bytes), at),
                         SQLITE_OK);
        assert_memory_equal(bytes, pair->model + at, sizeof(bytes));
    }
}

static void pair_cut(struct pair *pair)
{
    int64_t size = pair->size - (int64_t)below(&pair->random, (uint64_t)pair->size + 1);
    assert_int_equal(pair->file->pMethods->xTruncate(pair->file, size), SQLITE_OK);
    memset(pair->model + size, 0, FILE_MAX - (size_t)size);
    pair->size = size;
}

/* Looks at the file by another way, once it is synced. */
static void pair_sync(struct pair *pair)
{
    char *bytes = malloc(FILE_MAX + 1);
    assert_non_null(bytes);
    assert_int_equal(pair->file->pMethods->xSync(pair->file, SQLITE_SYNC_NORMAL), SQLITE_OK);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fread(bytes, 1, FILE_MAX + 1, file), pair->size);
    assert_memory_equal(bytes, pair->model, (size_t)pair->size);
    (void)fclose(file);
    free(bytes);
}

static void file_is_what_was_written(void **state)
{
    (void)state;
    for (long round = soak_rounds(20, 2000); round > 0; round--) {
        struct pair pair = {.random = (uint64_t)round * 2654435761u + 1};
        int64_t at = 0;
        remove_files();
        pair_open(&pair);
        for (int i = 0; i < 300; i++) {
            uint64_t what = below(&pair.random, 40);
            if (what == 0) {
                pair_cut(&pair);
            } else if (what == 1) {
                pair_sync(&pair);
            } else if (what < 5) {
                pair_read(&pair);
            } else {
                pair_write(&pair, &at);
            }
        }
        pair_sync(&pair);
        pair_close(&pair);
    }
}

/* Databases */

static sqlite3 *db_open(const char *vfs)
{
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, vfs),
                     SQLITE_OK);
    return db;
}

static void run(sqlite3 *db, const char *sql)
{
    char *why = NULL;
    if (sqlite3_exec(db, sql, NULL, NULL, &why) != SQLITE_OK) {
        fail_msg("%s: %s", sql, why);
    }
}

static int keep_text(void *context, int count, char **values, char **names)
{
    (void)count;
    (void)names;
    (void)snprintf(context, 64, "%s", values[0]);
    return 0;
}

static void shows(sqlite3 *db, const char *sql, const char *want)
{
    char found[64] = "";
    assert_int_equal(sqlite3_exec(db, sql, keep_text, found, NULL), SQLITE_OK);
    assert_string_equal(found, want);
}

#define FILL(from, to)                                                                             \
    "WITH RECURSIVE n(i) AS (SELECT " #from " UNION ALL SELECT i + 1 FROM n WHERE i < " #to ")"    \
    " INSERT INTO t SELECT i, randomblob(3000) FROM n;"

static const char made[] = "PRAGMA journal_mode = WAL; PRAGMA cache_size = 20;"
                           "CREATE TABLE t (id INTEGER PRIMARY KEY, body BLOB);";

/* What was spilled and taken back does not come after what another one has committed since. */
static void taken_back_pages_do_not_come_later(void **state)
{
    (void)state;
    sqlite3 *ours = db_open(tide_gather_vfs());
    run(ours, made);
    sqlite3 *other = db_open(NULL);
    for (int i = 1; i <= 20; i++) {
        char sql[200];
        (void)snprintf(sql, sizeof(sql),
                       "BEGIN IMMEDIATE; UPDATE t SET body = randomblob(1);"
                       "INSERT INTO t VALUES (-1, randomblob(%d)); ROLLBACK",
                       90000 + i * 4096);
        run(ours, sql);
        run(other, "INSERT INTO t SELECT COALESCE(MAX(id), 0) + 1, randomblob(90000) FROM t");
        run(ours, "INSERT INTO t SELECT MAX(id) + 1, randomblob(9000) FROM t");
    }
    shows(other, "SELECT COUNT(*) || ' ' || MAX(id) FROM t", "40 40");
    shows(other, "PRAGMA integrity_check", "ok");
    assert_int_equal(sqlite3_close(ours), SQLITE_OK);
    shows(other, "PRAGMA integrity_check", "ok");
    shows(other, "SELECT COUNT(*) || ' ' || SUM(length(body)) FROM t", "40 1980000");
    assert_int_equal(sqlite3_close(other), SQLITE_OK);
}

/* What waits behind the old end of a file that cannot grow does not keep a transaction from being
 * taken back. */
static void file_that_cannot_grow_is_taken_back(void **state)
{
    (void)state;
    struct rlimit before;
    sqlite3 *db = db_open(tide_gather_vfs());
    run(db, made);
    run(db, "PRAGMA journal_mode = DELETE;" FILL(1, 50));
    (void)signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    const struct rlimit small = {.rlim_cur = 400000, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    assert_int_not_equal(sqlite3_exec(db, "BEGIN;" FILL(51, 500) "COMMIT", NULL, NULL, NULL),
                         SQLITE_OK);
    assert_int_equal(sqlite3_get_autocommit(db), 1);
    shows(db, "SELECT COUNT(*) || ' ' || SUM(length(body)) FROM t", "50 150000");
    shows(db, "PRAGMA integrity_check", "ok");
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

/* A full disk while pages wait: the transaction is taken back, wholly, in both kinds of journal. */
static void full_disk_takes_back_all(void **state)
{
    const char *mode = *state;
    for (int at = 1; at < 12; at++) {
        remove_files();
        sqlite3 *db = db_open(tide_gather_vfs());
        run(db, made);
        run(db, mode);
        run(db, FILL(1, 50));
        faulty_vfs = (struct faulty_vfs){.fault = FAULTY_VFS_FULL, .at = at, .for_ever = true};
        assert_int_equal(
            sqlite3_exec(db, "BEGIN; UPDATE t SET body = zeroblob(2000);" FILL(51, 500) "COMMIT",
                         NULL, NULL, NULL),
            SQLITE_FULL);
        (void)sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
        faulty_vfs = (struct faulty_vfs){0};
        shows(db, "SELECT COUNT(*) || ' ' || SUM(length(body)) FROM t", "50 150000");
        shows(db, "PRAGMA integrity_check", "ok");
        run(db, FILL(51, 60));
        assert_int_equal(sqlite3_close(db), SQLITE_OK);
        db = db_open(NULL);
        shows(db, "SELECT COUNT(*) || ' ' || SUM(length(body)) FROM t", "60 180000");
        shows(db, "PRAGMA integrity_check", "ok");
        assert_int_equal(sqlite3_close(db), SQLITE_OK);
    }
}

/* Of a log that a reader still needs the rest of, SQLite folds in a part without a sync: others are
 * told of no page that is not in the file. */
static void checkpoint_that_fails_beside_a_reader_harms_nothing(void **state)
{
    (void)state;
    for (int at = 1; at < 70; at++) {
        remove_files();
        sqlite3 *ours = db_open(tide_gather_vfs());
        run(ours, made);
        run(ours, "PRAGMA wal_autocheckpoint = 0; PRAGMA wal_checkpoint(TRUNCATE);" FILL(1, 60));
        sqlite3 *reader = db_open(NULL);
        run(reader, "BEGIN; SELECT COUNT(*) FROM t");
        run(ours, "INSERT INTO t SELECT id + 1000, body FROM t LIMIT 3");
        faulty_vfs = (struct faulty_vfs){.fault = FAULTY_VFS_FULL, .at = at, .for_ever = true};
        int rc = sqlite3_wal_checkpoint_v2(ours, "main", SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
        assert_int_equal(rc, faulty_vfs.hits > 0 ? SQLITE_FULL : SQLITE_OK);
        faulty_vfs = (struct faulty_vfs){0};
        sqlite3 *other = db_open(NULL);
        shows(other, "PRAGMA integrity_check", "ok");
        run(reader, "COMMIT");
        assert_int_equal(sqlite3_close(ours), SQLITE_OK);
        shows(other, "PRAGMA wal_checkpoint(TRUNCATE)", "0");
        shows(other, "PRAGMA integrity_check", "ok");
        shows(other, "SELECT COUNT(*) FROM t", "63");
        assert_int_equal(sqlite3_close(reader), SQLITE_OK);
        assert_int_equal(sqlite3_close(other), SQLITE_OK);
    }
}

static void copy_file(const char *suffix)
{
    char command[256];
    (void)snprintf(command, sizeof(command), "cp '%s%s' '%s.copy%s'", path, suffix, path, suffix);
    assert_int_equal(system(command), 0);
}

/* What recovery makes of the files as they are: all who had them open were killed. */
static void recovers(const char *want)
{
    sqlite3 *db = NULL;
    char name[96];
    (void)snprintf(name, sizeof(name), "%s.copy", path);
    copy_file("");
    copy_file("-wal");
    assert_int_equal(sqlite3_open(name, &db), SQLITE_OK);
    shows(db, "SELECT group_concat(id) FROM t", want);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    (void)unlink(name);
}

/* Where it could not be written once, it is not written later either. */
static void transaction_that_failed_does_not_come_back(void **state)
{
    (void)state;
    sqlite3 *db = db_open(tide_gather_vfs());
    run(db, made);
    run(db, "INSERT INTO t VALUES (1, 'a')");
    faulty_vfs = (struct faulty_vfs){.fault = FAULTY_VFS_FULL, .at = 1};
    assert_int_equal(
        sqlite3_exec(db, "INSERT INTO t VALUES (2, randomblob(9000))", NULL, NULL, NULL),
        SQLITE_FULL);
    shows(db, "SELECT group_concat(id) FROM t", "1");
    recovers("1");
    run(db, "INSERT INTO t VALUES (3, 'c')");
    recovers("1,3");
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

/* Not how it is meant to be used, but nobody is told of what is not there. */
static void commit_without_a_sync_is_seen(void **state)
{
    const char *mode = *state;
    sqlite3 *db = db_open(tide_gather_vfs());
    run(db, made);
    run(db, mode);
    run(db, "PRAGMA synchronous = OFF");
    sqlite3 *other = db_open(NULL);
    for (int i = 1; i <= 20; i++) {
        char want[16];
        (void)snprintf(want, sizeof(want), "%d", i);
        run(db, "INSERT INTO t (body) VALUES (randomblob(3000))");
        shows(other, "SELECT COUNT(*) FROM t", want);
    }
    shows(other, "PRAGMA integrity_check", "ok");
    assert_int_equal(sqlite3_close(other), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static int64_t calls_of(const char *vfs)
{
    remove_files();
    sqlite3 *db = db_open(vfs);
    run(db, made);
    faulty_vfs.calls = 0;
    run(db, FILL(1, 300));
    int64_t calls = faulty_vfs.calls;
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    return calls;
}

static void pages_are_written_at_once(void **state)
{
    (void)state;
    int64_t each = calls_of(NULL);
    int64_t gathered = calls_of(tide_gather_vfs());
    assert_true(each > 600);
    assert_in_range(gathered, 1, (uint64_t)each / 8);
}

static int install(void **state)
{
    (void)state;
    faulty_vfs_install(); /* below the other, which counts its calls */
    return 0;
}

int main(void)
{
    static char wal[] = "PRAGMA journal_mode = WAL";
    static char rollback[] = "PRAGMA journal_mode = DELETE";
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(file_is_what_was_written, set_up, tear_down),
        cmocka_unit_test_setup_teardown(taken_back_pages_do_not_come_later, set_up, tear_down),
        cmocka_unit_test_setup_teardown(file_that_cannot_grow_is_taken_back, set_up, tear_down),
        {"full_disk_takes_back_all_of_a_log", full_disk_takes_back_all, set_up, tear_down, wal},
        {"full_disk_takes_back_all_of_a_journal", full_disk_takes_back_all, set_up, tear_down,
         rollback},
        cmocka_unit_test_setup_teardown(checkpoint_that_fails_beside_a_reader_harms_nothing, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(transaction_that_failed_does_not_come_back, set_up,
                                        tear_down),
        {"commit_without_a_sync_is_seen_in_a_log", commit_without_a_sync_is_seen, set_up, tear_down,
         wal},
        {"commit_without_a_sync_is_seen_in_the_file", commit_without_a_sync_is_seen, set_up,
         tear_down, rollback},
        cmocka_unit_test_setup_teardown(pages_are_written_at_once, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, install, NULL);
}
