#include "archive_kit.h"

#include "archive/archive_db.h"
#include "archive/container.h"
#include "base/fsio.h"

#include <dirent.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *in_root(const char *name)
{
    static char paths[4][KIT_PATH_MAX];
    static unsigned at;
    char *path = paths[at++ % 4];
    (void)snprintf(path, KIT_PATH_MAX, "%s/%s", kit.root, name);
    return path;
}

static unsigned files_in_root(void)
{
    unsigned count = 0;
    DIR *dir = opendir(kit.root);
    assert_non_null(dir);
    while (readdir(dir) != NULL) {
        count++;
    }
    (void)closedir(dir);
    return count - 2;
}

static void write_file(const char *path, const void *bytes, size_t len)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, len), len);
    assert_int_equal(close(fd), 0);
}

static void plain_exec(const char *path, const char *sql)
{
    sqlite3 *db = NULL;
    char *message = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, &message) != SQLITE_OK) {
        fail_msg("%s: %s", sql, message);
    }
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void assert_header(const char *path, unsigned char mode)
{
    struct tide_buf bytes = {0};
    kit_ok(&kit, tide_file_read(path, 64 << 20, &bytes, &kit.err));
    const unsigned char *header = (const unsigned char *)bytes.ptr;
    assert_true(bytes.len >= 4096);
    assert_memory_equal(header, "SQLite format 3", 16);
    assert_int_equal(header[16] << 8 | header[17], 4096);
    assert_int_equal(header[18], mode);
    assert_int_equal(header[19], mode);
    assert_memory_equal(header + 60, "\0\0\0\4", 4);
    assert_memory_equal(header + 64, "\0\0\0\1", 4); /* incremental vacuum */
    assert_memory_not_equal(header + 52, "\0\0\0\0", 4);
    assert_memory_equal(header + 68, "dend", 4);
    tide_buf_done(&bytes);
}

static void create_gives_a_stamped_file_that_is_whole_at_once(void **state)
{
    (void)state;
    struct stat st;
    kit_ok(&kit, tide_archive_create(in_root("new.tide"), &kit.err));
    assert_header(in_root("new.tide"), 2);
    assert_int_equal(stat(in_root("new.tide"), &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_int_not_equal(access(in_root("new.tide-wal"), F_OK), 0);
    assert_int_equal(files_in_root(), 4); /* a.tide, its two files, new.tide */
}

static void create_where_something_is_changes_nothing(void **state)
{
    (void)state;
    write_file(in_root("taken"), "mine", 4);
    assert_int_equal(tide_archive_create(in_root("taken"), &kit.err), TIDE_INVALID);
    assert_non_null(strstr(kit.err.message, "is there already"));
    struct tide_buf bytes = {0};
    kit_ok(&kit, tide_file_read(in_root("taken"), 100, &bytes, &kit.err));
    assert_string_equal(tide_buf_cstr(&bytes), "mine");
    tide_buf_done(&bytes);
    assert_int_equal(files_in_root(), 4);
}

static void create_beside_a_log_of_another_is_refused(void **state)
{
    (void)state;
    write_file(in_root("gone.tide-wal"), "x", 1);
    assert_int_equal(tide_archive_create(in_root("gone.tide"), &kit.err), TIDE_INVALID);
    assert_int_not_equal(access(in_root("gone.tide"), F_OK), 0);
}

static void create_in_no_folder_is_an_error(void **state)
{
    (void)state;
    assert_int_equal(tide_archive_create(in_root("none/a.tide"), &kit.err), TIDE_IO);
}

static void sniff_looks_at_the_header_alone(void **state)
{
    (void)state;
    struct tide_archive_stamp stamp = {0};
    kit_ok(&kit, tide_archive_sniff(kit.path, &stamp, &kit.err));
    assert_true(stamp.is_archive);
    assert_int_equal(stamp.version, 4);

    static const struct {
        const char *bytes;
        size_t len;
    } others[] = {{"", 0}, {"SQLite format 3", 16}, {"text", 4}};

    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        write_file(in_root("other"), others[i].bytes, others[i].len);
        kit_ok(&kit, tide_archive_sniff(in_root("other"), &stamp, &kit.err));
        assert_false(stamp.is_archive);
    }
    unsigned char header[100] = "SQLite format 3";
    memcpy(header + 68, "dend", 4);
    header[63] = 9; /* sniffing does not judge the version */
    for (size_t len = 0; len <= sizeof(header); len++) {
        write_file(in_root("other"), header, len);
        kit_ok(&kit, tide_archive_sniff(in_root("other"), &stamp, &kit.err));
        assert_int_equal(stamp.is_archive, len == sizeof(header));
    }
    assert_int_equal(stamp.version, 9);
    assert_int_equal(tide_archive_sniff(in_root("none"), &stamp, &kit.err), TIDE_INVALID);
    assert_int_equal(tide_archive_sniff(kit.root, &stamp, &kit.err), TIDE_INVALID);
}

static void sniff_beside_open_connections_takes_no_lock_away(void **state)
{
    (void)state;
    struct tide_archive_stamp stamp;
    struct tide_archive *archive = NULL;
    kit_ok(&kit, tide_archive_sniff(kit.path, &stamp, &kit.err));
    /* Were the locks of this process gone, this one would think itself alone. */
    char command[512];
    (void)snprintf(command, sizeof(command),
                   "/usr/bin/python3 -c 'import sqlite3; d = sqlite3.connect(\"%s\");"
                   "d.execute(\"select count(*) from sources\").fetchall(); d.close()'",
                   kit.path);
    assert_int_equal(system(command), 0);
    assert_int_equal(access(in_root("a.tide-wal"), F_OK), 0);
    kit_ok(&kit, kit_write(&kit, "s", 1, 3));
    kit_ok(&kit, tide_archive_open(kit.path, TIDE_ARCHIVE_READ, &archive, &kit.err));
    tide_archive_close(archive);
    assert_string_equal(kit_times(&kit, "s"), "1-3");
}

/* Opens in each way; a foreign file keeps every byte, and nothing appears beside it. */
static void assert_refused(const char *path, tide_status status, const char *why)
{
    struct tide_buf before = {0};
    struct tide_buf after = {0};
    kit_ok(&kit, tide_file_read(path, 1 << 20, &before, &kit.err));
    unsigned files = files_in_root();
    for (int access = TIDE_ARCHIVE_READ; access <= TIDE_ARCHIVE_WRITE; access++) {
        struct tide_archive *archive = NULL;
        assert_int_equal(
            tide_archive_open(path, (enum tide_archive_access)access, &archive, &kit.err), status);
        assert_null(archive);
        if (strstr(kit.err.message, why) == NULL) {
            fail_msg("wanted %s in: %s", why, kit.err.message);
        }
    }
    kit_ok(&kit, tide_file_read(path, 1 << 20, &after, &kit.err));
    assert_true(tide_str_equal(tide_buf_str(&before), tide_buf_str(&after)));
    assert_int_equal(files_in_root(), files);
    tide_buf_done(&before);
    tide_buf_done(&after);
}

static void open_of_a_foreign_file_leaves_it_as_it_was(void **state)
{
    (void)state;
    write_file(in_root("text"), "some text, long enough for no header at all", 40);
    assert_refused(in_root("text"), TIDE_INVALID, "not an archive");
    write_file(in_root("empty"), "", 0);
    assert_refused(in_root("empty"), TIDE_INVALID, "not an archive");
    plain_exec(in_root("plain.db"), "CREATE TABLE t (a)");
    assert_refused(in_root("plain.db"), TIDE_INVALID, "not an archive");
    plain_exec(in_root("other.db"), "PRAGMA application_id = 7; CREATE TABLE t (a)");
    assert_refused(in_root("other.db"), TIDE_INVALID, "not an archive");
    struct tide_archive *archive = NULL;
    assert_int_equal(tide_archive_open(in_root("none"), TIDE_ARCHIVE_WRITE, &archive, &kit.err),
                     TIDE_INVALID);
    assert_int_equal(tide_archive_open(kit.root, TIDE_ARCHIVE_READ, &archive, &kit.err),
                     TIDE_INVALID);
}

static void open_of_a_foreign_database_with_a_log_does_not_fold_it_in(void **state)
{
    (void)state;
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(in_root("live.db"), &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db,
                                  "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0;"
                                  "CREATE TABLE t (a)",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    struct stat before;
    struct stat after;
    assert_int_equal(stat(in_root("live.db"), &before), 0);
    for (int access = TIDE_ARCHIVE_READ; access <= TIDE_ARCHIVE_WRITE; access++) {
        struct tide_archive *archive = NULL;
        assert_int_equal(tide_archive_open(in_root("live.db"), (enum tide_archive_access)access,
                                           &archive, &kit.err),
                         TIDE_INVALID);
    }
    assert_int_equal(stat(in_root("live.db"), &after), 0);
    assert_int_equal(before.st_size, after.st_size);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void open_of_another_version_says_which(void **state)
{
    (void)state;
    static const char *const versions[] = {"3", "5", "0"};
    for (size_t i = 0; i < 3; i++) {
        char sql[64];
        (void)snprintf(sql, sizeof(sql), "PRAGMA user_version = %s", versions[i]);
        kit_ok(&kit, tide_archive_create(in_root("v.tide"), &kit.err));
        plain_exec(in_root("v.tide"), "PRAGMA journal_mode = DELETE");
        plain_exec(in_root("v.tide"), sql);
        (void)snprintf(sql, sizeof(sql), "version %s", versions[i]);
        assert_refused(in_root("v.tide"), TIDE_UNSUPPORTED, sql);
        assert_int_equal(unlink(in_root("v.tide")), 0);
    }
}

static void open_without_a_table_or_column_is_corrupt(void **state)
{
    (void)state;
    static const char *const damages[][2] = {
        {"DROP TABLE wal", "wal"},
        {"ALTER TABLE segments RENAME COLUMN first_ts TO other", "first_ts"},
        {"DROP TABLE caller_rows; CREATE TABLE caller_rows (a)", "caller_rows"},
    };
    for (size_t i = 0; i < 3; i++) {
        kit_ok(&kit, tide_archive_create(in_root("d.tide"), &kit.err));
        plain_exec(in_root("d.tide"), "PRAGMA journal_mode = DELETE");
        plain_exec(in_root("d.tide"), damages[i][0]);
        assert_refused(in_root("d.tide"), TIDE_CORRUPT, damages[i][1]);
        assert_int_equal(unlink(in_root("d.tide")), 0);
    }
}

static void open_does_not_run_triggers_and_views_of_the_file(void **state)
{
    (void)state;
    struct tide_archive *archive = NULL;
    kit_ok(&kit, kit_write(&kit, "s", 1, 3));
    kit_ok(&kit, tide_archive_finalize_source(kit.writer, kit.source, 9, 0, &kit.err));
    tide_archive_writer_close(kit.writer);
    kit.writer = NULL;
    kit_change(&kit, "CREATE TRIGGER t BEFORE INSERT ON wal BEGIN SELECT RAISE(IGNORE); END");
    kit_reopen(&kit);
    kit_ok(&kit, kit_write(&kit, "s", 4, 6));
    assert_string_equal(kit_times(&kit, "s"), "1-6");
    tide_archive_writer_close(kit.writer);
    kit.writer = NULL;
    kit_change(&kit, "ALTER TABLE wal RENAME TO w; CREATE VIEW wal AS SELECT * FROM w");
    tide_status status = tide_archive_open(kit.path, TIDE_ARCHIVE_READ, &archive, &kit.err);
    if (status == TIDE_OK) {
        struct tide_arena arena = {0};
        struct tide_archive_catalogue catalogue;
        status = tide_archive_catalogue_read(archive, &arena, &catalogue, &kit.err);
        tide_arena_done(&arena);
        tide_archive_close(archive);
    }
    assert_int_equal(status, TIDE_CORRUPT);
}

static void edit_keeps_everybody_else_out(void **state)
{
    (void)state;
    struct tide_archive *edit = NULL;
    struct tide_archive *other = NULL;
    assert_int_equal(tide_archive_open(kit.path, TIDE_ARCHIVE_EDIT, &edit, &kit.err), TIDE_TIMEOUT);
    assert_true(kit.err.retriable);
    assert_non_null(strstr(kit.err.message, "in use"));
    tide_archive_writer_close(kit.writer);
    kit.writer = NULL;
    kit_ok(&kit, tide_archive_open(kit.path, TIDE_ARCHIVE_EDIT, &edit, &kit.err));
    assert_int_equal(tide_archive_open(kit.path, TIDE_ARCHIVE_EDIT, &other, &kit.err),
                     TIDE_TIMEOUT);
    tide_archive_close(edit);
    kit_reopen(&kit);
}

static void reader_cannot_write(void **state)
{
    (void)state;
    struct tide_archive *archive = NULL;
    struct tide_archive_retention retention = {.source = kit.source, .cutoff_ts = 100};
    struct tide_archive_retained retained;
    kit_ok(&kit, kit_write(&kit, "s", 1, 3));
    kit_ok(&kit, tide_archive_open(kit.path, TIDE_ARCHIVE_READ, &archive, &kit.err));
    assert_int_equal(tide_archive_retain_in(archive, &retention, &retained, &kit.err),
                     TIDE_INVALID);
    tide_archive_close(archive);
    assert_string_equal(kit_times(&kit, "s"), "1-3");
}

static int64_t rows_of(struct tide_archive *archive)
{
    struct tide_archive_series_info info;
    kit_ok(&kit, tide_archive_series_read(archive, kit.source, TIDE_STR("s"), &info, &kit.err));
    return info.sealed_rows + info.live_rows;
}

static void snapshot_is_of_one_moment_and_may_be_nested(void **state)
{
    (void)state;
    struct tide_archive *archive = NULL;
    kit_ok(&kit, kit_write(&kit, "s", 1, 10));
    kit_ok(&kit, tide_archive_open(kit.path, TIDE_ARCHIVE_READ, &archive, &kit.err));
    kit_ok(&kit, tide_archive_snapshot_begin(archive, &kit.err));
    kit_ok(&kit, kit_seal(&kit, "s"));
    kit_ok(&kit, kit_write(&kit, "s", 11, 12));
    kit_ok(&kit, tide_archive_snapshot_begin(archive, &kit.err));
    assert_int_equal(rows_of(archive), 10);
    tide_archive_snapshot_end(archive);
    assert_int_equal(rows_of(archive), 10);
    tide_archive_snapshot_end(archive);
    assert_int_equal(rows_of(archive), 12);
    tide_archive_close(archive);
}

static bool is_query_only(struct tide_archive *archive)
{
    bool is_any = false;
    int64_t value = 0;
    kit_ok(&kit, tide_archive_ask(archive, &kit.err, &is_any, &value, "PRAGMA query_only", ""));
    return value == 1;
}

static void copy_is_exact_and_the_reader_stays_one(void **state)
{
    (void)state;
    struct tide_archive *archive = NULL;
    struct tide_archive_retention retention = {.source = kit.source, .cutoff_ts = 100};
    struct tide_archive_retained retained;
    kit_ok(&kit, kit_write(&kit, "s", 1, 10));
    kit_ok(&kit, kit_seal(&kit, "s"));
    kit_ok(&kit, kit_write(&kit, "s", 11, 20));
    kit_ok(&kit, tide_archive_open(kit.path, TIDE_ARCHIVE_READ, &archive, &kit.err));
    assert_true(is_query_only(archive));
    kit_ok(&kit, tide_archive_copy_to(archive, in_root("copy.tide"), &kit.err));
    assert_true(is_query_only(archive)); /* lifted for that alone, also when it fails */
    assert_int_not_equal(tide_archive_copy_to(archive, in_root("none/copy.tide"), &kit.err),
                         TIDE_OK);
    assert_true(is_query_only(archive));
    assert_int_equal(tide_archive_copy_to(archive, in_root("copy.tide"), &kit.err), TIDE_INVALID);
    assert_int_equal(tide_archive_retain_in(archive, &retention, &retained, &kit.err),
                     TIDE_INVALID);
    tide_archive_close(archive);
    assert_header(in_root("copy.tide"), 1);

    tide_archive_writer_close(kit.writer);
    kit.writer = NULL;
    (void)snprintf(kit.path, sizeof(kit.path), "%s/copy.tide", kit.root);
    kit_reopen(&kit); /* a writer brings the write-ahead log back */
    kit_ok(&kit, kit_write(&kit, "s", 21, 22));
    assert_string_equal(kit_text(&kit, "PRAGMA journal_mode"), "wal");
    assert_string_equal(kit_times(&kit, "s"), "1-22");
    assert_int_equal(kit_verify(&kit), 0);
}

static void the_file_alone_is_at_most_a_checkpoint_behind(void **state)
{
    (void)state;
    char command[3 * KIT_PATH_MAX];
    int64_t next_us = 0;
    tide_archive_writer_close(kit.writer);
    struct tide_archive_writer_options options = {.encoder = &kit.encoder, .checkpoint_us = 1};
    kit_ok(&kit, tide_archive_writer_open(kit.path, &options, &kit.writer, &kit.err));
    kit_ok(&kit, tide_archive_resume_source(kit.writer, kit.source, 1, &kit.err));
    kit_ok(&kit, kit_write(&kit, "s", 1, 10));
    kit_ok(&kit, tide_archive_tend(kit.writer, &next_us, &kit.err));
    assert_int_equal(access(in_root("a.tide-wal"), F_OK), 0);
    (void)snprintf(command, sizeof(command), "cp '%s' '%s/cp.tide'", kit.path, kit.root);
    assert_int_equal(system(command), 0);
    struct archive_kit copy = kit;
    (void)snprintf(copy.path, sizeof(copy.path), "%s/cp.tide", kit.root);
    assert_string_equal(kit_times(&copy, "s"), "1-10");
}

static void close_of_the_last_leaves_one_file(void **state)
{
    (void)state;
    kit_ok(&kit, kit_write(&kit, "s", 1, 10));
    assert_int_equal(files_in_root(), 3);
    tide_archive_writer_close(kit.writer);
    kit.writer = NULL;
    assert_int_equal(files_in_root(), 1);
}

static bool has_beside(const char *suffix)
{
    char path[KIT_PATH_MAX + 8];
    (void)snprintf(path, sizeof(path), "%s%s", kit.path, suffix);
    return access(path, F_OK) == 0;
}

static void reader_that_is_the_last_leaves_nothing_beside_the_file(void **state)
{
    (void)state;
    struct tide_archive *one = NULL;
    struct tide_archive *other = NULL;
    kit_ok(&kit, kit_write(&kit, "s", 1, 3));
    assert_string_equal(kit_times(&kit, "s"), "1-3"); /* a reader beside the writer */
    assert_true(has_beside("-wal"));
    kit_ok(&kit, tide_archive_open(kit.path, TIDE_ARCHIVE_READ, &one, &kit.err));
    tide_archive_writer_close(kit.writer);
    kit.writer = NULL;
    assert_true(has_beside("-wal")); /* somebody reads */
    kit_ok(&kit, tide_archive_open(kit.path, TIDE_ARCHIVE_READ, &other, &kit.err));
    tide_archive_close(one);
    kit_ok(&kit, tide_archive_snapshot_begin(other, &kit.err));
    tide_archive_snapshot_end(other);
    tide_archive_close(other);
    assert_false(has_beside("-wal") || has_beside("-shm"));
    assert_string_equal(kit_times(&kit, "s"), "1-3");
    assert_false(has_beside("-wal") || has_beside("-shm"));
}

/* As a kill leaves an archive that is being filled: half written, with what undoes it. */
static void open_takes_back_what_was_half_written(void **state)
{
    (void)state;
    static const char half[] =
        "PRAGMA journal_mode = DELETE; PRAGMA cache_size = 2; BEGIN;"
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50) "
        "INSERT INTO wal SELECT 1, 'a', 100 + i, 0, zeroblob(9000) FROM n";
    char command[3 * KIT_PATH_MAX];
    sqlite3 *db = NULL;
    struct tide_archive *archive = NULL;
    kit_ok(&kit, kit_write(&kit, "a", 1, 5));
    tide_archive_writer_close(kit.writer);
    kit.writer = NULL;
    assert_int_equal(sqlite3_open(kit.path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, half, NULL, NULL, NULL), SQLITE_OK);
    (void)snprintf(command, sizeof(command),
                   "cp '%s' '%s/b.tide' && cp '%s-journal' "
                   "'%s/b.tide-journal'",
                   kit.path, kit.root, kit.path, kit.root);
    assert_int_equal(system(command), 0);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    kit_ok(&kit, tide_archive_open(in_root("b.tide"), TIDE_ARCHIVE_READ, &archive, &kit.err));
    tide_archive_close(archive);
    (void)snprintf(kit.path, sizeof(kit.path), "%s", in_root("b.tide"));
    assert_string_equal(kit_times(&kit, "a"), "1-5");
    assert_int_equal(kit_verify(&kit), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(create_gives_a_stamped_file_that_is_whole_at_once,
                                        kit_setup_test, kit_teardown_test),
        cmocka_unit_test_setup_teardown(create_where_something_is_changes_nothing, kit_setup_test,
                                        kit_teardown_test),
        cmocka_unit_test_setup_teardown(create_beside_a_log_of_another_is_refused, kit_setup_test,
                                        kit_teardown_test),
        cmocka_unit_test_setup_teardown(create_in_no_folder_is_an_error, kit_setup_test,
                                        kit_teardown_test),
        cmocka_unit_test_setup_teardown(sniff_looks_at_the_header_alone, kit_setup_test,
                                        kit_teardown_test),
        cmocka_unit_test_setup_teardown(sniff_beside_open_connections_takes_no_lock_away,
                                        kit_setup_test, kit_teardown_test),
        cmocka_unit_test_setup_teardown(open_of_a_foreign_file_leaves_it_as_it_was, kit_setup_test,
                                        kit_teardown_test),
        cmocka_unit_test_setup_teardown(open_of_a_foreign_database_with_a_log_does_not_fold_it_in,
                                        kit_setup_test, kit_teardown_test),
        cmocka_unit_test_setup_teardown(open_of_another_version_says_which, kit_setup_test,
                                        kit_teardown_test),
        cmocka_unit_test_setup_teardown(open_without_a_table_or_column_is_corrupt, kit_setup_test,
                                        kit_teardown_test),
        cmocka_unit_test_setup_teardown(open_does_not_run_triggers_and_views_of_the_file,
                                        kit_setup_test, kit_teardown_test),
        cmocka_unit_test_setup_teardown(edit_keeps_everybody_else_out, kit_setup_test,
                                        kit_teardown_test),
        cmocka_unit_test_setup_teardown(reader_cannot_write, kit_setup_test, kit_teardown_test),
        cmocka_unit_test_setup_teardown(snapshot_is_of_one_moment_and_may_be_nested, kit_setup_test,
                                        kit_teardown_test),
        cmocka_unit_test_setup_teardown(copy_is_exact_and_the_reader_stays_one, kit_setup_test,
                                        kit_teardown_test),
        cmocka_unit_test_setup_teardown(the_file_alone_is_at_most_a_checkpoint_behind,
                                        kit_setup_test, kit_teardown_test),
        cmocka_unit_test_setup_teardown(open_takes_back_what_was_half_written, kit_setup_test,
                                        kit_teardown_test),
        cmocka_unit_test_setup_teardown(close_of_the_last_leaves_one_file, kit_setup_test,
                                        kit_teardown_test),
        cmocka_unit_test_setup_teardown(reader_that_is_the_last_leaves_nothing_beside_the_file,
                                        kit_setup_test, kit_teardown_test),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
