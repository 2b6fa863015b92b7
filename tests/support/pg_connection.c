/*
 * Lets tests in Python drive one connection of the PostgreSQL source by itself. Started with
 *
 *     pg_connection URL [replication]
 *
 * it connects within five seconds and takes commands from standard input, a line each, fields
 * parted by tabs, and answers each with one line of JSON (the connecting too):
 *
 *     query MS SQL     runs statements; "rows" has the last result's
 *     copy MS SQL      takes all of a COPY; "count" has its rows, also when it fails
 *     abandon MS SQL   takes one row of a COPY and gives the rest up
 *     wake MS          wakes the waker after so long, once; answered at once
 *     cancel MS        cancels from another thread after so long; answered at once
 *
 * {"status":…,"retriable":…,"message":…,"alive":…,"sqlstate":…} with "ok" and "" when all is well.
 */
#include "base/alloc.h"
#include "base/clock.h"
#include "format/json_writer.h"
#include "source/postgres/pg_conn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct driver {
    struct tide_pg_conn *conn;
    struct tide_waker waker;
    struct tide_buf out; /* members of the answer, each with a comma behind it */
};

struct later {
    struct driver *driver;
    int64_t at_us;
    bool is_wake;
};

static void answer(struct driver *driver, tide_status status, const struct tide_error *err)
{
    struct tide_buf line = {0};
    bool has_failed = status != TIDE_OK;
    tide_buf_append_char(&line, '{');
    tide_buf_append_str(&line, tide_buf_str(&driver->out));
    tide_buf_printf(&line, "\"status\":\"%s\",\"retriable\":%s,\"alive\":%s,\"sqlstate\":\"%s\"",
                    tide_status_name(status), has_failed && err->retriable ? "true" : "false",
                    driver->conn != NULL && tide_pg_is_alive(driver->conn) ? "true" : "false",
                    driver->conn != NULL ? driver->conn->sqlstate : "");
    tide_buf_printf(&line, ",\"message\":");
    tide_json_append_string(&line, tide_str_from(has_failed ? err->message : ""));
    (void)printf("%s}\n", tide_buf_cstr(&line));
    (void)fflush(stdout);
    tide_buf_reset(&driver->out);
    tide_buf_done(&line);
}

static void add_rows(struct tide_buf *out, const PGresult *result)
{
    tide_buf_printf(out, "\"rows\":[");
    for (int row = 0; row < PQntuples(result); row++) {
        tide_buf_printf(out, row == 0 ? "[" : ",[");
        for (int column = 0; column < PQnfields(result); column++) {
            tide_str text = tide_pg_result_str(result, row, column);
            tide_buf_printf(out, column == 0 ? "" : ",");
            if (text.ptr == NULL) {
                tide_buf_printf(out, "null");
            } else {
                tide_json_append_string(out, text);
            }
        }
        tide_buf_append_char(out, ']');
    }
    tide_buf_printf(out, "],");
}

static void run_query(struct driver *driver, const char *sql, struct tide_pg_wait wait)
{
    struct tide_error err = {0};
    PGresult *result = NULL;
    tide_status status = tide_pg_query(driver->conn, sql, "ask", wait, &result, &err);
    if (status == TIDE_OK) {
        add_rows(&driver->out, result);
    }
    PQclear(result);
    answer(driver, status, &err);
}

static void run_copy(struct driver *driver, const char *sql, struct tide_pg_wait wait,
                     bool is_abandoned)
{
    struct tide_error err = {0};
    size_t count = 0;
    tide_status status = tide_pg_copy_start(driver->conn, sql, "copy", wait, &err);
    while (status == TIDE_OK && !(is_abandoned && count == 1)) {
        char *row = NULL;
        size_t len = 0;
        status = tide_pg_copy_next(driver->conn, "copy", wait, &row, &len, &err);
        count += status == TIDE_OK;
        PQfreemem(row);
    }
    if (status != TIDE_END) {
        tide_pg_copy_abandon(driver->conn, tide_pg_wait_for(3000000));
    }
    tide_buf_printf(&driver->out, "\"count\":%zu,", count);
    answer(driver, status == TIDE_END ? TIDE_OK : status, &err);
}

static void *run_later(void *arg)
{
    struct later *later = arg;
    int64_t left_us = later->at_us - tide_clock_monotonic_us();
    if (left_us > 0) {
        (void)usleep((useconds_t)left_us);
    }
    if (later->is_wake) {
        tide_waker_wake(&later->driver->waker);
    } else {
        tide_pg_cancel(later->driver->conn);
    }
    free(later);
    return NULL;
}

static void start_later(struct driver *driver, bool is_wake, int64_t delay_us)
{
    struct tide_error err = {0};
    struct later *later = tide_alloc(1, sizeof(*later));
    *later = (struct later){driver, tide_clock_deadline_us(delay_us), is_wake};
    pthread_t thread;
    tide_thread_start(&thread, run_later, later);
    TIDE_ASSERT(pthread_detach(thread) == 0);
    answer(driver, TIDE_OK, &err);
}

static void run_command(struct driver *driver, char *line)
{
    char *rest = line;
    const char *verb = strsep(&rest, "\t");
    const char *delay = strsep(&rest, "\t");
    TIDE_ASSERT(delay != NULL);
    int64_t delay_us = strtoll(delay, NULL, 10) * 1000;
    struct tide_pg_wait wait = tide_pg_wait_for(delay_us);
    wait.waker = &driver->waker;
    if (strcmp(verb, "query") == 0) {
        run_query(driver, rest, wait);
    } else if (strcmp(verb, "copy") == 0 || strcmp(verb, "abandon") == 0) {
        run_copy(driver, rest, wait, verb[0] == 'a');
    } else {
        TIDE_ASSERT(strcmp(verb, "wake") == 0 || strcmp(verb, "cancel") == 0);
        start_later(driver, verb[0] == 'w', delay_us);
    }
}

int main(int argc, char **argv)
{
    TIDE_ASSERT(argc == 2 || argc == 3);
    struct driver driver = {0};
    struct tide_error err = {0};
    tide_waker_init(&driver.waker);
    tide_status status =
        tide_pg_open(tide_str_from(argv[1]), argc == 3 ? TIDE_PG_REPLICATION : TIDE_PG_NORMAL,
                     tide_pg_wait_for(5000000), &driver.conn, &err);
    answer(&driver, status, &err);
    char *line = NULL;
    size_t size = 0;
    while (status == TIDE_OK && getline(&line, &size, stdin) > 0) {
        line[strcspn(line, "\n")] = '\0';
        run_command(&driver, line);
    }
    free(line);
    tide_pg_close(driver.conn);
    tide_waker_done(&driver.waker);
    tide_buf_done(&driver.out);
    return 0;
}
