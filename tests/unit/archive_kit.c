#include "archive_kit.h"

#include "archive/container.h"
#include "archive/scan.h"
#include "archive/verify.h"

#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct archive_kit kit;

int kit_setup_test(void **state)
{
    (void)state;
    kit_setup(&kit);
    return 0;
}

int kit_teardown_test(void **state)
{
    (void)state;
    kit_teardown(&kit);
    return 0;
}

void kit_fails(tide_status got, tide_status want, const char *why)
{
    assert_int_equal(got, want);
    if (strstr(kit.err.message, why) == NULL) {
        fail_msg("wanted %s in: %s", why, kit.err.message);
    }
}

void kit_ok(struct archive_kit *one, tide_status status)
{
    if (status != TIDE_OK) {
        fail_msg("%s: %s", tide_status_name(status), one->err.message);
    }
}

static void open_writer(struct archive_kit *one)
{
    struct tide_archive_writer_options options = {.encoder = &one->encoder};
    kit_ok(one, tide_archive_writer_open(one->path, &options, &one->writer, &one->err));
}

void kit_setup(struct archive_kit *one)
{
    *one = (struct archive_kit){0};
    /* In memory where that can be: each step syncs. */
    (void)snprintf(one->root, sizeof(one->root), "%s/tide_archive_XXXXXX",
                   access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    assert_non_null(mkdtemp(one->root));
    (void)snprintf(one->path, sizeof(one->path), "%s/a.tide", one->root);
    one->encoder = plain_encoder(&one->fault);
    kit_ok(one, tide_archive_create(one->path, &one->err));
    open_writer(one);
    struct tide_archive_pair labels[] = {{TIDE_STR("table"), TIDE_STR("orders")},
                                         {TIDE_STR("db"), TIDE_STR("shop")}};
    struct tide_archive_new_source source = {.labels = {labels, 2}, .clock_anchor_wall_ns = -1000};
    kit_ok(one, tide_archive_add_source(one->writer, &source, &one->source, &one->err));
}

void kit_teardown(struct archive_kit *one)
{
    char command[128];
    tide_archive_writer_close(one->writer);
    (void)snprintf(command, sizeof(command), "rm -rf '%s'", one->root);
    assert_int_equal(system(command), 0);
}

void kit_reopen(struct archive_kit *one)
{
    int64_t anchor = 0;
    tide_archive_writer_close(one->writer);
    one->writer = NULL;
    open_writer(one);
    kit_ok(one, tide_archive_resume_anchor(one->writer, one->source, 0, &anchor, &one->err));
    kit_ok(one, tide_archive_resume_source(one->writer, one->source, anchor, &one->err));
}

struct tide_archive_series *kit_series(struct archive_kit *one, const char *name)
{
    struct tide_archive_series *series = NULL;
    kit_ok(one, tide_archive_series_open(one->writer, one->source, tide_str_from(name), &series,
                                         &one->err));
    return series;
}

tide_status kit_write(struct archive_kit *one, const char *series, int64_t first, int64_t last)
{
    size_t count = (size_t)(last - first + 1);
    struct tide_archive_row *rows = calloc(count, sizeof(*rows));
    char(*texts)[24] = calloc(count, sizeof(*texts));
    assert_true(rows != NULL && texts != NULL);
    for (size_t i = 0; i < count; i++) {
        int64_t ts = first + (int64_t)i;
        (void)snprintf(texts[i], sizeof(texts[i]), "%" PRId64, ts);
        rows[i] = (struct tide_archive_row){kit_series(one, series), ts, 1000 + ts % 7,
                                            tide_str_from(texts[i])};
    }
    struct tide_archive_tick tick = {.rows = rows, .row_count = count};
    tide_status status = tide_archive_write(one->writer, &tick, &one->err);
    free(rows);
    free(texts);
    return status;
}

tide_status kit_seal(struct archive_kit *one, const char *series)
{
    struct tide_archive_series *sealed = kit_series(one, series);
    struct tide_archive_seal_counts counts;
    return tide_archive_seal(one->writer, &sealed, 1, NULL, &counts, &one->err);
}

tide_status kit_compact(struct archive_kit *one, const char *series, int64_t rows_max,
                        int64_t *ret_merged)
{
    const struct tide_archive_merge_policy policy = {rows_max, INT64_MAX, INT64_MAX, INT64_MAX, 2};
    TIDE_CLEANUP(tide_archive_close_ptr) struct tide_archive *archive = NULL;
    TIDE_CLEANUP(tide_archive_merge_done) struct tide_archive_merge merge = {0};
    tide_status status = TIDE_OK;
    int64_t from = INT64_MIN;
    *ret_merged = 0;
    TIDE_TRY(tide_archive_open(one->path, TIDE_ARCHIVE_READ, &archive, &one->err));
    while ((status = tide_archive_merge_next(archive, &one->encoder, &policy, one->source,
                                             tide_str_from(series), &from, &merge, &one->err)) ==
           TIDE_OK) {
        bool is_put = false;
        TIDE_TRY(tide_archive_writer_put_merge(one->writer, one->source, tide_str_from(series),
                                               &merge, &is_put, &one->err));
        *ret_merged += is_put ? (int64_t)merge.count : 0;
    }
    return status == TIDE_END ? TIDE_OK : status;
}

struct listing {
    char text[4096];
    size_t len;
    bool has_last;
    int64_t first;
    int64_t last;
};

static void end_span(struct listing *listing)
{
    char span[64];
    if (!listing->has_last) {
        return;
    }
    if (listing->first == listing->last) {
        (void)snprintf(span, sizeof(span), "%" PRId64, listing->first);
    } else {
        (void)snprintf(span, sizeof(span), "%" PRId64 "-%" PRId64, listing->first, listing->last);
    }
    listing->len +=
        (size_t)snprintf(listing->text + listing->len, sizeof(listing->text) - listing->len, "%s%s",
                         listing->len == 0 ? "" : " ", span);
}

static tide_status list_row(void *context, int64_t ts, tide_str bytes, struct tide_error *err)
{
    struct listing *listing = context;
    int64_t said = 0;
    if (!tide_str_to_i64(bytes, &said) || said != ts || listing->len > 4000) {
        return tide_fail(err, TIDE_CORRUPT, "row %" PRId64 " says %.*s", ts, TIDE_STR_ARG(bytes));
    }
    if (!listing->has_last || ts != listing->last + 1) {
        end_span(listing);
        listing->first = ts;
    }
    listing->has_last = true;
    listing->last = ts;
    return TIDE_OK;
}

const char *kit_times(struct archive_kit *one, const char *series)
{
    static struct listing listing;
    struct tide_archive *archive = NULL;
    struct tide_archive_range range = {one->source, tide_str_from(series), INT64_MIN, INT64_MAX};
    struct tide_archive_row_taker taker = {list_row, &listing};
    listing = (struct listing){0};
    kit_ok(one, tide_archive_open(one->path, TIDE_ARCHIVE_READ, &archive, &one->err));
    kit_ok(one, tide_archive_rows_read(archive, &range, &one->encoder, &taker, &one->err));
    tide_archive_close(archive);
    end_span(&listing);
    return listing.text;
}

static sqlite3 *plain_open(struct archive_kit *one)
{
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open_v2(one->path, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
    (void)sqlite3_busy_timeout(db, 2000);
    return db;
}

const char *kit_text(struct archive_kit *one, const char *sql)
{
    static char text[4096];
    sqlite3 *db = plain_open(one);
    sqlite3_stmt *stmt = NULL;
    if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) != SQLITE_OK) {
        fail_msg("%s: %s", sql, sqlite3_errmsg(db));
    }
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    const char *found = (const char *)sqlite3_column_text(stmt, 0);
    (void)snprintf(text, sizeof(text), "%s", found == NULL ? "NULL" : found);
    assert_int_equal(sqlite3_finalize(stmt), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    return text;
}

int64_t kit_number(struct archive_kit *one, const char *sql)
{
    return strtoll(kit_text(one, sql), NULL, 10);
}

void kit_change(struct archive_kit *one, const char *sql)
{
    char *message = NULL;
    sqlite3 *db = plain_open(one);
    if (sqlite3_exec(db, sql, NULL, NULL, &message) != SQLITE_OK) {
        fail_msg("%s: %s", sql, message);
    }
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

size_t kit_verify(struct archive_kit *one)
{
    struct tide_arena arena = {0};
    struct tide_archive *archive = NULL;
    struct tide_archive_findings findings;
    kit_ok(one, tide_archive_open(one->path, TIDE_ARCHIVE_READ, &archive, &one->err));
    kit_ok(one, tide_archive_verify(archive, true, &arena, &findings, &one->err));
    for (size_t i = 0; i < findings.count && i < TIDE_ARCHIVE_FINDINGS_MAX; i++) {
        print_message("%.*s\n", TIDE_STR_ARG(findings.items[i].text));
    }
    tide_archive_close(archive);
    tide_arena_done(&arena);
    return findings.harmful;
}

void kit_shadow_rows(void)
{
    tide_archive_writer_close(kit.writer);
    kit.writer = NULL;
    kit_change(&kit, "INSERT INTO wal SELECT source_id, stream, 2, 0, x'ff' FROM segments;"
                     "INSERT INTO wal SELECT source_id, stream, 3, 0, x'ff' FROM segments");
}
