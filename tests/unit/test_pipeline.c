/* A whole pipeline with all its threads, beside a writer: dropped, stopped in order, and run to the
 * end. */
#include "cmocka_prelude.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/fsio.h"
#include "base/limits.h"
#include "base/log.h"
#include "engine/pipeline.h"
#include "format/reassembler.h"
#include "sink/file/file_sink.h"
#include "source/sqlite/sqlite_source.h"
#include "stream/channel.h"

#include <sqlite3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define ROWS 4000

struct bed {
    char dir[64];
    char database[96];
    char frames[96];
    char state[96];
    pthread_t writer;
    atomic_bool is_writing;
    struct tide_waker waker;
};

static void must(tide_status status, const struct tide_error *err)
{
    if (status != TIDE_OK) {
        fail_msg("%s: %s", tide_status_name(status), err->message);
    }
}

static void sql(sqlite3 *db, const char *text)
{
    char *message = NULL;
    if (sqlite3_exec(db, text, NULL, NULL, &message) != SQLITE_OK) {
        (void)fprintf(stderr, "%s: %s\n", text, message);
        abort();
    }
}

static sqlite3 *open_database(const struct bed *bed)
{
    sqlite3 *db = NULL;
    TIDE_ASSERT(sqlite3_open(bed->database, &db) == SQLITE_OK);
    (void)sqlite3_busy_timeout(db, 20000);
    return db;
}

static void *run_writer(void *arg)
{
    struct bed *bed = arg;
    sqlite3 *db = open_database(bed);
    char text[256];
    for (unsigned i = 1; atomic_load(&bed->is_writing); i++) {
        unsigned id = i * 2654435761u % (ROWS * 2);
        (void)snprintf(text, sizeof(text),
                       "BEGIN IMMEDIATE; INSERT OR REPLACE INTO a VALUES (%u, 'w%u'); DELETE FROM b"
                       " WHERE k = 'k%u'; UPDATE b SET v = %u WHERE k = 'k%u'; COMMIT",
                       id, i, id % ROWS, i, id * 7 % ROWS);
        sql(db, text);
        (void)usleep(2000);
    }
    (void)sqlite3_close(db);
    return NULL;
}

static int set_up(void **state)
{
    struct bed *bed = calloc(1, sizeof(*bed));
    (void)snprintf(bed->dir, sizeof(bed->dir), "/tmp/tidemark-pipeline-XXXXXX");
    assert_non_null(mkdtemp(bed->dir));
    (void)snprintf(bed->database, sizeof(bed->database), "%s/shop.db", bed->dir);
    (void)snprintf(bed->frames, sizeof(bed->frames), "%s/out.ndjson", bed->dir);
    (void)snprintf(bed->state, sizeof(bed->state), "%s/state", bed->dir);
    sqlite3 *db = open_database(bed);
    sql(db, "PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF;"
            "CREATE TABLE a (id INTEGER PRIMARY KEY, t TEXT);"
            "CREATE TABLE b (k TEXT PRIMARY KEY NOT NULL, v);"
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4000)"
            " INSERT INTO a SELECT i, 't' || i FROM n;"
            "INSERT INTO b SELECT 'k' || id, id * 0.5 FROM a");
    (void)sqlite3_close(db);
    tide_waker_init(&bed->waker);
    atomic_store(&bed->is_writing, true);
    tide_thread_start(&bed->writer, run_writer, bed);
    *state = bed;
    return 0;
}

static void stop_writer(struct bed *bed)
{
    if (atomic_exchange(&bed->is_writing, false)) {
        (void)pthread_join(bed->writer, NULL);
    }
}

static int tear_down(void **state)
{
    struct bed *bed = *state;
    char command[128];
    stop_writer(bed);
    tide_waker_done(&bed->waker);
    (void)snprintf(command, sizeof(command), "rm -rf %s", bed->dir);
    assert_int_equal(system(command), 0);
    free(bed);
    return 0;
}

static struct tide_pipeline *start(struct bed *bed, bool is_one_shot)
{
    struct tide_error err;
    struct tide_buf notes = {0};
    struct tide_pipeline *pipeline = NULL;
    struct tide_pipeline_sink sink = {
        .name = TIDE_STR("sink"), .ops = &tide_file_sink_ops, .place = tide_str_from(bed->frames)};
    struct tide_pipeline_options options = {
        .source_ops = &tide_sqlite_source_ops,
        .source_place = tide_str_from(bed->database),
        .source_shown = tide_str_from(bed->database),
        .connection = TIDE_STR("shop"),
        .sinks = &sink,
        .sink_count = 1,
        .state_dir = bed->state,
        .name = TIDE_STR("shop"),
        .copy = {.chunk_rows_max = 100},
        .record_bytes_max = TIDE_RECORD_BYTES_DEFAULT,
        .is_one_shot = is_one_shot,
    };
    must(tide_channel_new(NULL, &options.stream, &err), &err);
    must(tide_pipeline_open(&options, &bed->waker, &pipeline, &notes, &err), &err);
    must(tide_pipeline_start(pipeline, &err), &err);
    tide_buf_done(&notes);
    return pipeline;
}

static void finish(struct bed *bed, struct tide_pipeline *pipeline)
{
    struct tide_error err;
    tide_pipeline_halt(pipeline);
    while (!tide_pipeline_is_drained(pipeline)) {
        (void)tide_waker_wait(&bed->waker, tide_clock_deadline_us(10000));
    }
    must(tide_pipeline_finish(pipeline, &err), &err);
}

static void check_complete(const struct bed *bed)
{
    struct tide_error err;
    struct tide_buf bytes = {0};
    struct tide_frame_decoder decoder = {0};
    struct tide_reassembler *reassembler = tide_reassembler_new();
    must(tide_file_read(bed->frames, 256 * TIDE_MIB, &bytes, &err), &err);
    for (size_t at = 0; at < bytes.len;) {
        const char *end = memchr(bytes.ptr + at, '\n', bytes.len - at);
        assert_non_null(end);
        struct tide_frame frame;
        size_t len = (size_t)(end - bytes.ptr) - at;
        must(tide_frame_decode(&decoder, tide_str_of(bytes.ptr + at, len), &frame, &err), &err);
        tide_reassembler_feed(reassembler, &frame, 0);
        at += len + 1;
    }
    assert_int_equal(tide_reassembler_count(reassembler), 2);
    for (size_t i = 0; i < 2; i++) {
        struct tide_snapshot_report report =
            tide_reassembler_judge(reassembler, tide_reassembler_id(reassembler, i));
        assert_int_equal(report.status, TIDE_SNAPSHOT_COMPLETE);
    }
    tide_reassembler_free(reassembler);
    tide_buf_done(&bytes);
}

static void run_to_the_end(struct bed *bed)
{
    struct tide_error err;
    struct tide_pipeline *pipeline = start(bed, true);
    tide_status status = TIDE_OK;
    while ((status = tide_pipeline_poll(pipeline, &err)) == TIDE_OK) {
        (void)tide_waker_wait(&bed->waker, tide_clock_deadline_us(10000));
    }
    assert_int_equal(status, TIDE_END);
    stop_writer(bed);
    finish(bed, pipeline);
    struct tide_findings removed = {0};
    must(tide_pipeline_detach(pipeline, &removed, &err), &err);
    tide_findings_done(&removed);
    tide_pipeline_free(pipeline);
    check_complete(bed);
}

static void pipeline_dropped_stopped_and_resumed_ends_complete(void **state)
{
    struct bed *bed = *state;
    struct tide_error err;
    for (int turn = 0; turn < 6; turn++) {
        struct tide_pipeline *pipeline = start(bed, false);
        (void)usleep(30000);
        assert_int_equal(tide_pipeline_poll(pipeline, &err), TIDE_OK);
        if (turn % 2 == 0) {
            finish(bed, pipeline);
        }
        tide_pipeline_free(pipeline);
    }
    run_to_the_end(bed);
}

static void pipeline_one_shot_ends_complete(void **state)
{
    run_to_the_end(*state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(pipeline_one_shot_ends_complete, set_up, tear_down),
        cmocka_unit_test_setup_teardown(pipeline_dropped_stopped_and_resumed_ends_complete, set_up,
                                        tear_down),
    };
    tide_log_set_level(TIDE_LOG_ERROR);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
