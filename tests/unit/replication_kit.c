#include "replication_kit.h"

#include "archive/catalogue.h"
#include "archive/scan.h"
#include "format/wire/hello.h"

#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

static void warned(void *context, const char *message)
{
    struct follow *follow = context;
    (void)snprintf(follow->warning, sizeof(follow->warning), "%s", message);
}

static void must(struct follow *follow, tide_status status)
{
    if (status != TIDE_OK) {
        fail_msg("%s: %s", tide_status_name(status), follow->err.message);
    }
}

void follow_open(struct follow *follow, struct archive_kit *one, const char *name)
{
    const struct tide_subscriber_options options = {.encoder = &one->encoder,
                                                    .policy = follow->policy,
                                                    .group_bytes = follow->group_bytes,
                                                    .warn = warned,
                                                    .context = follow};
    follow->kit = one;
    (void)snprintf(follow->path, sizeof(follow->path), "%s/%s", one->root, name);
    must(follow, tide_subscriber_open(follow->path, &options, &follow->subscriber, &follow->err));
}

void follow_close(struct follow *follow)
{
    tide_publisher_close_ptr(&follow->publisher);
    tide_subscriber_close_ptr(&follow->subscriber);
}

void follow_connect(struct follow *follow)
{
    TIDE_CLEANUP(tide_arena_done) struct tide_arena arena = {0};
    TIDE_CLEANUP(tide_buf_done) struct tide_buf bytes = {0};
    struct tide_wire_hello hello = {0};
    struct tide_publisher_options options = follow->from;
    if (!follow->is_quiet) {
        must(follow, tide_subscriber_hello(follow->subscriber, &bytes, &follow->err));
        must(follow, tide_wire_hello_decode(tide_buf_str(&bytes), &arena, &hello, &follow->err));
        options.hello = &hello;
    }
    must(follow,
         tide_publisher_open(follow->kit->path, &options, &follow->publisher, &follow->err));
}

tide_status follow_feed(struct follow *follow, tide_str bytes)
{
    if (bytes.len == 0) {
        return TIDE_OK;
    }
    memcpy(tide_subscriber_room(follow->subscriber, bytes.len), bytes.ptr, bytes.len);
    return tide_subscriber_came(follow->subscriber, bytes.len, &follow->err);
}

void follow_cut(struct follow *follow)
{
    struct tide_error ignored;
    tide_publisher_close_ptr(&follow->publisher);
    (void)tide_subscriber_end(follow->subscriber, &ignored);
    must(follow, tide_subscriber_restart(follow->subscriber, &follow->err));
}

void follow_end(struct follow *follow)
{
    tide_publisher_close_ptr(&follow->publisher);
    must(follow, tide_subscriber_end(follow->subscriber, &follow->err));
    must(follow, tide_subscriber_restart(follow->subscriber, &follow->err));
}

tide_status follow_pump(struct follow *follow)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf out = {0};
    size_t piece_max = follow->piece_max == 0 ? 65536 : follow->piece_max;
    if (follow->publisher == NULL) {
        follow_connect(follow);
    }
    for (bool is_caught_up = false; !is_caught_up;) {
        tide_buf_reset(&out);
        TIDE_TRY(
            tide_publisher_next(follow->publisher, &out, piece_max, &is_caught_up, &follow->err));
        if (follow->is_cut && out.len >= follow->bytes_left) {
            TIDE_TRY(follow_feed(follow, tide_str_of(out.ptr, follow->bytes_left)));
            follow->is_cut = false;
            follow_cut(follow);
            return TIDE_OK;
        }
        follow->bytes_left -= follow->is_cut ? out.len : 0;
        TIDE_TRY(follow_feed(follow, tide_buf_str(&out)));
    }
    return tide_subscriber_sync(follow->subscriber, &follow->err);
}

void kit_join(struct archive_kit *one, int64_t source, const char *series)
{
    int64_t from = INT64_MIN;
    const struct tide_archive_merge_policy policy = {.rows_max = 1000,
                                                     .bytes_max = 1 << 20,
                                                     .small_rows_max = 1000,
                                                     .small_bytes_max = 1 << 20,
                                                     .count_min = 2};
    TIDE_CLEANUP(tide_archive_close_ptr) struct tide_archive *reader = NULL;
    kit_ok(one, tide_archive_open(one->path, TIDE_ARCHIVE_READ, &reader, &one->err));
    for (;;) {
        TIDE_CLEANUP(tide_archive_merge_done) struct tide_archive_merge merge = {0};
        bool is_put = false;
        tide_status status =
            tide_archive_merge_next(reader, &one->encoder, &policy, source, tide_str_from(series),
                                    &from, &merge, &one->err);
        if (status == TIDE_END) {
            return;
        }
        kit_ok(one, status);
        kit_ok(one, tide_archive_writer_put_merge(one->writer, source, tide_str_from(series),
                                                  &merge, &is_put, &one->err));
    }
}

void stream_of(const char *path, const struct tide_publisher_options *options, struct tide_buf *out)
{
    struct tide_publisher *publisher = NULL;
    struct tide_error err = {0};
    tide_status status = tide_publisher_open(path, options, &publisher, &err);
    for (bool is_caught_up = false; status == TIDE_OK && !is_caught_up;) {
        status = tide_publisher_next(publisher, out, 1000, &is_caught_up, &err);
    }
    tide_publisher_close(publisher);
    if (status != TIDE_OK) {
        fail_msg("%s", err.message);
    }
}

/* Comparing */

#define FIRST_OF_REST 2

static const char *const tables[] = {
    "SELECT 'segment', uuid, stream, rows, first_ts, last_ts, bytes, caller_index FROM segments "
    "JOIN sources ON id = source_id ORDER BY uuid, stream, last_ts",
    "SELECT 'live row', uuid, stream, ts, wall_offset, row FROM wal "
    "JOIN sources ON id = source_id WHERE NOT EXISTS (SELECT 1 FROM segments s WHERE "
    "s.source_id = wal.source_id AND s.stream = wal.stream AND s.last_ts >= ts) "
    "ORDER BY uuid, stream, ts",
    "SELECT 'source', uuid, labels, metadata, complete, clock_anchor_wall_ns FROM sources "
    "ORDER BY uuid",
    "SELECT 'clock offset', uuid, ts, offset_ns FROM clock_offsets "
    "JOIN sources ON id = source_id ORDER BY uuid, ts",
    "SELECT 'caller row', uuid, stream, ts, blob FROM caller_rows "
    "JOIN sources ON id = source_id ORDER BY uuid, stream, ts, caller_rows.rowid",
};

static sqlite3 *open_plainly(const char *path)
{
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    return db;
}

static void append_row(struct tide_buf *text, sqlite3_stmt *stmt, int rc)
{
    if (rc != SQLITE_ROW) {
        assert_int_equal(rc, SQLITE_DONE);
        tide_buf_append_str(text, TIDE_STR("nothing"));
        return;
    }
    for (int i = 0; i < sqlite3_column_count(stmt); i++) {
        const char *bytes = sqlite3_column_blob(stmt, i);
        int size = sqlite3_column_bytes(stmt, i);
        bool is_null = sqlite3_column_type(stmt, i) == SQLITE_NULL;
        tide_buf_append_char(text, i == 0 ? ' ' : '|');
        tide_buf_append_str(text, is_null ? TIDE_STR("NULL") : tide_str_of(bytes, (size_t)size));
    }
}

static const char *table_differs(sqlite3 *a, sqlite3 *b, const char *sql)
{
    static struct tide_buf found;
    TIDE_CLEANUP(tide_buf_done) struct tide_buf one = {0};
    TIDE_CLEANUP(tide_buf_done) struct tide_buf other = {0};
    sqlite3_stmt *x = NULL;
    sqlite3_stmt *y = NULL;
    assert_int_equal(sqlite3_prepare_v2(a, sql, -1, &x, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(b, sql, -1, &y, NULL), SQLITE_OK);
    const char *differ = NULL;
    for (int rx = SQLITE_ROW, ry = SQLITE_ROW; differ == NULL && rx == SQLITE_ROW;) {
        rx = sqlite3_step(x);
        ry = sqlite3_step(y);
        tide_buf_reset(&one);
        tide_buf_reset(&other);
        append_row(&one, x, rx);
        append_row(&other, y, ry);
        if (!tide_str_equal(tide_buf_str(&one), tide_buf_str(&other))) {
            tide_buf_reset(&found);
            tide_buf_printf(&found, "%s <> %s", tide_buf_cstr(&one), tide_buf_cstr(&other));
            differ = tide_buf_cstr(&found);
        }
    }
    (void)sqlite3_finalize(x);
    (void)sqlite3_finalize(y);
    return differ;
}

static const char *tables_differ(const char *a, const char *b, size_t first)
{
    sqlite3 *x = open_plainly(a);
    sqlite3 *y = open_plainly(b);
    const char *differ = NULL;
    for (size_t i = first; differ == NULL && i < sizeof(tables) / sizeof(tables[0]); i++) {
        differ = table_differs(x, y, tables[i]);
    }
    (void)sqlite3_close(x);
    (void)sqlite3_close(y);
    return differ;
}

const char *archives_differ(const char *a, const char *b)
{
    return tables_differ(a, b, 0);
}

const char *rest_differs(const char *a, const char *b)
{
    return tables_differ(a, b, FIRST_OF_REST);
}

static tide_status list_row(void *context, int64_t ts, tide_str bytes, struct tide_error *err)
{
    struct tide_buf *text = context;
    (void)err;
    tide_buf_printf(text, "%" PRId64 "=%.*s\n", ts, TIDE_STR_ARG(bytes));
    return TIDE_OK;
}

static void list_series(struct tide_archive *archive, const struct tide_archive_encoder *encoder,
                        const struct tide_archive_series_info *info, struct tide_buf *text)
{
    const struct tide_archive_row_taker taker = {list_row, text};
    const struct tide_archive_range range = {info->source, info->name, INT64_MIN, INT64_MAX};
    struct tide_error err = {0};
    tide_buf_printf(text, "series %.*s\n", TIDE_STR_ARG(info->name));
    if (tide_archive_rows_read(archive, &range, encoder, &taker, &err) != TIDE_OK) {
        fail_msg("%s", err.message);
    }
}

/* All rows, by source in the order of their uuids. */
static void list_rows(struct archive_kit *one, const char *path, struct tide_buf *text)
{
    TIDE_CLEANUP(tide_arena_done) struct tide_arena arena = {0};
    TIDE_CLEANUP(tide_archive_close_ptr) struct tide_archive *archive = NULL;
    struct tide_archive_catalogue catalogue = {0};
    kit_ok(one, tide_archive_open(path, TIDE_ARCHIVE_READ, &archive, &one->err));
    kit_ok(one, tide_archive_catalogue_read(archive, &arena, &catalogue, &one->err));
    const char *last = "";
    for (size_t round = 0; round < catalogue.source_count; round++) {
        const struct tide_archive_source *next = NULL;
        for (size_t i = 0; i < catalogue.source_count; i++) {
            const struct tide_archive_source *source = &catalogue.sources[i];
            if (strcmp(source->uuid, last) > 0 &&
                (next == NULL || strcmp(source->uuid, next->uuid) < 0)) {
                next = source;
            }
        }
        if (next == NULL) {
            fail_msg("two sources have one uuid");
            return;
        }
        tide_buf_printf(text, "source %s\n", next->uuid);
        for (size_t i = 0; i < catalogue.series_count; i++) {
            if (catalogue.series[i].source == next->id) {
                list_series(archive, &one->encoder, &catalogue.series[i], text);
            }
        }
        last = next->uuid;
    }
}

const char *rows_differ(struct archive_kit *one, const char *a, const char *b)
{
    static char found[400];
    TIDE_CLEANUP(tide_buf_done) struct tide_buf x = {0};
    TIDE_CLEANUP(tide_buf_done) struct tide_buf y = {0};
    list_rows(one, a, &x);
    list_rows(one, b, &y);
    size_t at = 0;
    while (at < x.len && at < y.len && x.ptr[at] == y.ptr[at]) {
        at++;
    }
    if (at == x.len && at == y.len) {
        return NULL;
    }
    at = at < 60 ? 0 : at - 60;
    (void)snprintf(found, sizeof(found), "…%.120s <> …%.120s",
                   at < x.len ? tide_buf_cstr(&x) + at : "",
                   at < y.len ? tide_buf_cstr(&y) + at : "");
    return found;
}

static const char *caller_row_missing(const char *a, const char *b)
{
    static const char sql[] = "SELECT uuid || ' ' || stream || ' ' || ts || ' ' || blob FROM "
                              "caller_rows JOIN sources ON id = source_id ORDER BY 1";
    static char found[100];
    sqlite3 *x = open_plainly(a);
    sqlite3 *y = open_plainly(b);
    sqlite3_stmt *want = NULL;
    sqlite3_stmt *have = NULL;
    const char *missing = NULL;
    assert_int_equal(sqlite3_prepare_v2(x, sql, -1, &want, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(y, sql, -1, &have, NULL), SQLITE_OK);
    while (missing == NULL && sqlite3_step(want) == SQLITE_ROW) {
        const char *text = (const char *)sqlite3_column_text(want, 0);
        bool is_there = false;
        while (!is_there && sqlite3_step(have) == SQLITE_ROW) {
            is_there = strcmp((const char *)sqlite3_column_text(have, 0), text) == 0;
        }
        (void)snprintf(found, sizeof(found), "%s", text);
        missing = is_there ? NULL : found;
    }
    (void)sqlite3_finalize(want);
    (void)sqlite3_finalize(have);
    (void)sqlite3_close(x);
    (void)sqlite3_close(y);
    return missing;
}

static tide_str next_line(tide_str *text)
{
    size_t len = (size_t)((const char *)memchr(text->ptr, '\n', text->len) - text->ptr) + 1;
    tide_str line = {text->ptr, len};
    *text = (tide_str){text->ptr + len, text->len - len};
    return line;
}

const char *row_missing(struct archive_kit *one, const char *a, const char *b)
{
    static char found[100];
    TIDE_CLEANUP(tide_buf_done) struct tide_buf x = {0};
    TIDE_CLEANUP(tide_buf_done) struct tide_buf y = {0};
    list_rows(one, a, &x);
    list_rows(one, b, &y);
    tide_str have = tide_buf_str(&y);
    for (tide_str want = tide_buf_str(&x); want.len > 0;) {
        tide_str line = next_line(&want);
        bool is_there = false;
        while (have.len > 0 && !is_there) {
            is_there = tide_str_equal(next_line(&have), line);
        }
        if (!is_there) {
            (void)snprintf(found, sizeof(found), "%.*s", TIDE_STR_ARG(line));
            return found;
        }
    }
    return caller_row_missing(a, b);
}

void follow_is_equal(const struct follow *follow)
{
    const char *differ = archives_differ(follow->kit->path, follow->path);
    if (differ != NULL) {
        fail_msg("%s", differ);
    }
}

void follow_has_same_rows(const struct follow *follow)
{
    const char *differ = rows_differ(follow->kit, follow->kit->path, follow->path);
    if (differ != NULL) {
        fail_msg("%s", differ);
    }
}
