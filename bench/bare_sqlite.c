/*
 * What a user could run instead, or runs beside us: plain SQLite loops, timed by bench_copy.py and
 * bench_triggers.py.
 *
 *     bare_sqlite read DATABASE TABLE          steps over all rows in key order, every column as
 * text bare_sqlite write DATABASE TABLE insert|update ROWS PER_TRANSACTION COLUMNS FULL|NORMAL
 *
 * Prints the seconds that the loop took.
 */
#include "base/clock.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void must(sqlite3 *db, int rc)
{
    if (rc != SQLITE_OK && rc != SQLITE_DONE && rc != SQLITE_ROW) {
        (void)fprintf(stderr, "bare_sqlite: %s\n", sqlite3_errmsg(db));
        exit(3);
    }
}

static void read_all(sqlite3 *db, const char *table)
{
    sqlite3_stmt *stmt = NULL;
    char *sql = sqlite3_mprintf("SELECT * FROM \"%w\" ORDER BY id", table);
    unsigned long long bytes = 0;
    must(db, sqlite3_prepare_v2(db, sql, -1, &stmt, NULL));
    while (sqlite3_step(stmt) == SQLITE_ROW) {
        for (int i = 0; i < sqlite3_column_count(stmt); i++) {
            const unsigned char *text = sqlite3_column_text(stmt, i);
            bytes += (unsigned)sqlite3_column_bytes(stmt, i) + (text != NULL);
        }
    }
    must(db, sqlite3_finalize(stmt));
    sqlite3_free(sql);
    (void)fprintf(stderr, "%llu bytes\n", bytes);
}

static sqlite3_stmt *write_statement(sqlite3 *db, const char *table, const char *op, int columns)
{
    sqlite3_str *sql = sqlite3_str_new(db);
    sqlite3_stmt *stmt = NULL;
    if (strcmp(op, "insert") == 0) {
        sqlite3_str_appendf(sql, "INSERT INTO \"%w\" VALUES (?1", table);
        for (int i = 1; i < columns; i++) {
            sqlite3_str_appendf(sql, ", ?2");
        }
        sqlite3_str_appendf(sql, ")");
    } else {
        sqlite3_str_appendf(sql, "UPDATE \"%w\" SET c1 = ?2 WHERE id = ?1", table);
    }
    char *text = sqlite3_str_finish(sql);
    must(db, sqlite3_prepare_v2(db, text, -1, &stmt, NULL));
    sqlite3_free(text);
    return stmt;
}

static void write_all(sqlite3 *db, char **argv)
{
    int rows = atoi(argv[5]);
    int per_transaction = atoi(argv[6]);
    must(db, sqlite3_exec(db,
                          strcmp(argv[8], "FULL") == 0 ? "PRAGMA synchronous = FULL"
                                                       : "PRAGMA synchronous = NORMAL",
                          NULL, NULL, NULL));
    sqlite3_stmt *stmt = write_statement(db, argv[3], argv[4], atoi(argv[7]));
    for (int i = 0; i < rows; i++) {
        if (i % per_transaction == 0) {
            must(db, sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL));
        }
        must(db, sqlite3_bind_int(stmt, 1, i + 1));
        must(db, sqlite3_bind_text(stmt, 2, i % 2 == 0 ? "some text" : "other text", -1,
                                   SQLITE_STATIC));
        must(db, sqlite3_step(stmt));
        must(db, sqlite3_reset(stmt));
        if (i % per_transaction == per_transaction - 1 || i == rows - 1) {
            must(db, sqlite3_exec(db, "COMMIT", NULL, NULL, NULL));
        }
    }
    must(db, sqlite3_finalize(stmt));
}

int main(int argc, char **argv)
{
    sqlite3 *db = NULL;
    if (argc != 4 && argc != 9) {
        return 2;
    }
    must(db, sqlite3_open(argv[2], &db));
    int64_t before_us = tide_clock_monotonic_us();
    if (strcmp(argv[1], "read") == 0) {
        read_all(db, argv[3]);
    } else {
        write_all(db, argv);
    }
    (void)printf("%.6f\n", (double)(tide_clock_monotonic_us() - before_us) / 1e6);
    must(db, sqlite3_close(db));
    return 0;
}
