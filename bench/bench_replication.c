/*
 * An archive that is followed, by way of memory: catching up on segments against copying as many
 * bytes and syncing them, rows one by one, and what publishers take that have nothing to do.
 *
 *     bench_replication [MIB [ROWS]]     of segments, and live rows of 200 bytes; 256, 300000
 */
#include "archive/container.h"
#include "archive/follow.h"
#include "base/clock.h"
#include "base/limits.h"
#include "replication/publisher.h"
#include "replication/subscriber.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SEGMENT_BYTES   (4 * TIDE_MIB)
#define ROW_BYTES       200
#define PIECE_BYTES     ((size_t)(256 * TIDE_KIB))
#define PUBLISHER_COUNT 20
#define POLL_COUNT      200000

static void must(tide_status status, const struct tide_error *err)
{
    if (status != TIDE_OK) {
        (void)fprintf(stderr, "%s\n", err->message);
        exit(1);
    }
}

static void path_in(const char *folder, const char *name, char ret_path[128])
{
    (void)snprintf(ret_path, 128, "%s/%s", folder, name);
}

static void add_segments(struct tide_archive_series *series, int64_t count, const char *bytes)
{
    struct tide_error err;
    for (int64_t i = 0; i < count; i++) {
        const struct tide_archive_segment segment = {
            .rows = 1000,
            .first_ts = i * 1000,
            .last_ts = i * 1000 + 999,
            .bytes = tide_str_of(bytes, SEGMENT_BYTES),
        };
        struct tide_archive_adopted adopted;
        must(tide_archive_adopt(series, &segment, &adopted, &err), &err);
    }
}

static void add_rows(struct tide_archive_series *series, int64_t count, const char *bytes)
{
    struct tide_error err;
    for (int64_t i = 0; i < count; i++) {
        const struct tide_archive_live_row row = {INT64_C(1) << 40 | i, 0,
                                                  tide_str_of(bytes + i % 1000, ROW_BYTES)};
        bool is_held = false;
        must(tide_archive_copy_row(series, &row, &is_held, &err), &err);
    }
}

/* An archive with so much in it. */
static void make(const char *path, int64_t segments, int64_t rows, const char *bytes)
{
    struct tide_error err;
    const struct tide_archive_writer_options options = {.is_copy = true};
    const struct tide_archive_copied_source source = {
        .uuid = TIDE_STR("3f2b1c4d-0000-4000-8000-00000000abcd")};
    struct tide_archive_writer *writer = NULL;
    struct tide_archive_series *series = NULL;
    int64_t id = 0;
    must(tide_archive_create(path, &err), &err);
    must(tide_archive_writer_open(path, &options, &writer, &err), &err);
    must(tide_archive_group_begin(writer, &err), &err);
    must(tide_archive_copy_source(writer, &source, &id, &err), &err);
    must(tide_archive_series_open(writer, id, TIDE_STR("shop.orders"), &series, &err), &err);
    add_segments(series, segments, bytes);
    must(tide_archive_group_begin(writer, &err), &err);
    add_rows(series, rows, bytes);
    must(tide_archive_group_commit(writer, &err), &err);
    tide_archive_writer_close(writer);
}

static double seconds_since(int64_t start_us)
{
    return (double)(tide_clock_monotonic_us() - start_us) / 1e6;
}

/* Follows until it has caught up; bytes of the stream. */
static uint64_t follow(const char *from, const char *to)
{
    struct tide_error err;
    struct tide_publisher *publisher = NULL;
    struct tide_subscriber *subscriber = NULL;
    struct tide_buf out = {0};
    uint64_t bytes = 0;
    const struct tide_wire_hello hello = {0}; /* it has nothing, and is sent segments */
    const struct tide_publisher_options options = {.hello = &hello};
    const struct tide_subscriber_options plain = {0};
    must(tide_publisher_open(from, &options, &publisher, &err), &err);
    must(tide_subscriber_open(to, &plain, &subscriber, &err), &err);
    must(tide_subscriber_hello(subscriber, &out, &err), &err);
    for (bool is_caught_up = false; !is_caught_up;) {
        tide_buf_reset(&out);
        must(tide_publisher_next(publisher, &out, PIECE_BYTES, &is_caught_up, &err), &err);
        memcpy(tide_subscriber_room(subscriber, out.len), out.ptr, out.len);
        must(tide_subscriber_came(subscriber, out.len, &err), &err);
        bytes += out.len;
    }
    must(tide_subscriber_sync(subscriber, &err), &err);
    tide_subscriber_close(subscriber);
    tide_publisher_close(publisher);
    tide_buf_done(&out);
    return bytes;
}

/* As `cp` and a sync. */
static void copy(const char *from, const char *to)
{
    static char piece[PIECE_BYTES];
    int in = open(from, O_RDONLY);
    int out = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    for (ssize_t len = 1; len > 0;) {
        len = read(in, piece, sizeof(piece));
        if (len > 0 && write(out, piece, (size_t)len) != len) {
            exit(1);
        }
    }
    if (fsync(out) != 0) {
        exit(1);
    }
    (void)close(in);
    (void)close(out);
}

static void measure_catching_up(const char *folder, int64_t mib, const char *bytes)
{
    char from[128];
    char to[128];
    double best_copy = 1e9;
    double best_follow = 1e9;
    double processor = 1e9; /* that following takes, both sides together */
    path_in(folder, "from.tide", from);
    make(from, mib * (int64_t)TIDE_MIB / (int64_t)SEGMENT_BYTES, 0, bytes);
    for (int round = 0; round < 3; round++) {
        int64_t start_us = tide_clock_monotonic_us();
        path_in(folder, "copied", to);
        copy(from, to);
        double took = seconds_since(start_us);
        best_copy = took < best_copy ? took : best_copy;
        (void)unlink(to);
        start_us = tide_clock_monotonic_us();
        path_in(folder, "to.tide", to);
        clock_t before = clock();
        (void)follow(from, to);
        double used = (double)(clock() - before) / CLOCKS_PER_SEC;
        processor = used < processor ? used : processor;
        took = seconds_since(start_us);
        best_follow = took < best_follow ? took : best_follow;
        (void)unlink(to);
    }
    (void)printf("catching_up %.0f MiB/s, cp and fsync %.0f MiB/s, ratio %.2f; %.2f s of the "
                 "processor for %lld MiB\n",
                 (double)mib / best_follow, (double)mib / best_copy, best_copy / best_follow,
                 processor, (long long)mib);
    (void)unlink(from);
}

static void measure_rows(const char *folder, int64_t rows, const char *bytes)
{
    char from[128];
    char to[128];
    path_in(folder, "rows.tide", from);
    path_in(folder, "to.tide", to);
    make(from, 0, rows, bytes);
    int64_t start_us = tide_clock_monotonic_us();
    clock_t before = clock();
    uint64_t size = follow(from, to);
    double took = seconds_since(start_us);
    (void)printf("rows %.0f thousand/s, %.0f MiB/s; %.2f us of the processor for a row\n",
                 (double)rows / took / 1e3, (double)size / took / (double)TIDE_MIB,
                 (double)(clock() - before) * 1e6 / CLOCKS_PER_SEC / (double)rows);
    (void)unlink(from);
    (void)unlink(to);
}

static long resident_kib(const char *field)
{
    char line[128];
    long kib = 0;
    FILE *status = fopen("/proc/self/status", "r");
    while (status != NULL && fgets(line, sizeof(line), status) != NULL) {
        if (strncmp(line, field, strlen(field)) == 0) {
            kib = strtol(line + strlen(field) + 1, NULL, 10);
        }
    }
    (void)fclose(status);
    return kib;
}

/* What publishers take that have sent all, and what it costs to ask each of them. */
static void measure_publishers(const char *folder, int64_t mib, int64_t rows, const char *bytes)
{
    char from[128];
    struct tide_error err;
    struct tide_publisher *publishers[PUBLISHER_COUNT];
    struct tide_buf out = {0};
    const struct tide_publisher_options options = {0};
    path_in(folder, "many.tide", from);
    make(from, mib * (int64_t)TIDE_MIB / (int64_t)SEGMENT_BYTES, rows, bytes);
    long before = resident_kib("VmRSS:");
    for (int i = 0; i < PUBLISHER_COUNT; i++) {
        bool is_caught_up = false;
        must(tide_publisher_open(from, &options, &publishers[i], &err), &err);
        while (!is_caught_up) {
            tide_buf_reset(&out);
            must(tide_publisher_next(publishers[i], &out, PIECE_BYTES, &is_caught_up, &err), &err);
        }
    }
    long after = resident_kib("VmRSS:");
    int64_t start_us = tide_clock_monotonic_us();
    for (int i = 0; i < POLL_COUNT; i++) {
        bool is_caught_up = false;
        must(tide_publisher_next(publishers[i % PUBLISHER_COUNT], &out, PIECE_BYTES, &is_caught_up,
                                 &err),
             &err);
    }
    double took = seconds_since(start_us);
    (void)printf("publishers %d take %.1f MiB, the process %.1f MiB; a poll without news %.2f us\n",
                 PUBLISHER_COUNT, (double)(after - before) / 1024, (double)after / 1024,
                 took * 1e6 / POLL_COUNT);
    for (int i = 0; i < PUBLISHER_COUNT; i++) {
        tide_publisher_close(publishers[i]);
    }
    tide_buf_done(&out);
    (void)unlink(from);
}

int main(int argc, char **argv)
{
    int64_t mib = argc > 1 ? strtol(argv[1], NULL, 10) : 256;
    int64_t rows = argc > 2 ? strtol(argv[2], NULL, 10) : 300000;
    char folder[] = "bench_replication_XXXXXX"; /* on the disk that it is run on */
    char *bytes = malloc(SEGMENT_BYTES);
    if (bytes == NULL || mkdtemp(folder) == NULL) {
        return 1;
    }
    uint64_t state = 1;
    for (size_t i = 0; i < SEGMENT_BYTES; i++) {
        state = state * 6364136223846793005u + 1;
        bytes[i] = (char)(state >> 56);
    }
    measure_publishers(folder, 16, 100000, bytes); /* first: memory that was had stays */
    measure_catching_up(folder, mib, bytes);
    measure_rows(folder, rows, bytes);
    (void)rmdir(folder);
    free(bytes);
    return 0;
}
