#include "archive_sink_kit.h"

#include "archive/caller_rows.h"
#include "archive/catalogue.h"
#include "archive/change_encoder.h"
#include "archive/change_row.h"
#include "archive/change_schema.h"
#include "archive/scan.h"
#include "archive/verify.h"
#include "sink/archive/archive_sink.h"
#include "sink_kit.h"

#include <sqlite3.h>

struct listing {
    struct tide_buf text;
    struct tide_arena arena;
    struct tide_archive_caller_row *columns; /* of the series under way */
    size_t column_count;
    int64_t last_ts;
};

static void listing_done(struct listing *listing)
{
    tide_buf_done(&listing->text);
    tide_arena_done(&listing->arena);
}

void ok(tide_status status, const struct tide_error *err)
{
    if (status != TIDE_OK) {
        fail_msg("%s", err->message);
    }
}

static void append_place(struct tide_buf *buf, const char *lead, struct tide_place place)
{
    if (place.known && place.index == TIDE_INDEX_AFTER_ALL) {
        tide_buf_printf(buf, "%s%llu", lead, (unsigned long long)place.position.lo);
    } else if (place.known) {
        tide_buf_printf(buf, "%s%llu.%llu", lead, (unsigned long long)place.position.lo,
                        (unsigned long long)place.index);
    }
}

static void append_values(struct tide_buf *buf, const char *lead, const struct tide_value *values,
                          size_t count)
{
    for (size_t i = 0; values != NULL && i < count; i++) {
        tide_str text = values[i].kind > TIDE_VALUE_ABSENT  ? tide_value_str(values[i])
                        : values[i].kind == TIDE_VALUE_NULL ? TIDE_STR("null")
                                                            : TIDE_STR("?");
        tide_buf_printf(buf, "%s%.*s", i == 0 ? lead : ",", TIDE_STR_ARG(text));
    }
}

/* "change 9.1 key 901 values 901,name 901,null" */
static tide_status list_row(void *context, int64_t ts, tide_str bytes, struct tide_error *err)
{
    static const char *const kinds[] = {"change", "row", "stub", "begin", "resume", "end"};
    struct listing *listing = context;
    struct tide_change_schema schema;
    struct tide_change_row row;
    size_t at = 0;
    assert_true(listing->last_ts < ts);
    listing->last_ts = ts;
    while (at + 1 < listing->column_count && listing->columns[at + 1].ts <= ts) {
        at++;
    }
    assert_true(at < listing->column_count && listing->columns[at].ts <= ts);
    ok(tide_change_schema_decode(listing->columns[at].bytes, &listing->arena, &schema, err), err);
    TIDE_TRY(tide_change_row_decode(bytes, schema.column_count, schema.key_count, &listing->arena,
                                    &row, err));
    tide_buf_append_str(&listing->text, tide_str_from(kinds[row.kind]));
    append_place(&listing->text, " at ", row.place);
    append_place(&listing->text, " prev ", row.prev);
    if (row.kind != TIDE_ROW_CHANGE) {
        tide_buf_printf(&listing->text, " seq %llu", (unsigned long long)row.seq);
    }
    if (row.attempt > 0) {
        tide_buf_printf(&listing->text, " attempt %u", row.attempt);
    }
    if (row.bytes > 0) {
        tide_buf_printf(&listing->text, " bytes %llu", (unsigned long long)row.bytes);
    }
    append_values(&listing->text, " key ", row.key, schema.key_count);
    append_values(&listing->text, " values ", row.values, schema.column_count);
    tide_buf_append_char(&listing->text, '\n');
    return TIDE_OK;
}

static void list_series(struct tide_archive *archive, const struct tide_archive_series_info *series,
                        struct listing *listing)
{
    struct tide_error err = {0};
    const struct tide_archive_range range = {.source = series->source,
                                             .series = series->name,
                                             .start_ts = INT64_MIN,
                                             .end_ts = INT64_MAX};
    const struct tide_archive_row_taker taker = {.take = list_row, .context = listing};
    ok(tide_archive_caller_rows_read(archive, series->source, series->name, INT64_MIN, INT64_MAX,
                                     &listing->arena, &listing->columns, &listing->column_count,
                                     &err),
       &err);
    listing->last_ts = INT64_MIN;
    tide_buf_printf(&listing->text, "%lld %.*s\n", (long long)series->source,
                    TIDE_STR_ARG(series->name));
    ok(tide_archive_rows_read(archive, &range, &tide_change_encoder, &taker, &err), &err);
}

static void list(const char *path, struct listing *listing)
{
    TIDE_CLEANUP(tide_archive_close_ptr) struct tide_archive *archive = NULL;
    struct tide_archive_catalogue catalogue;
    struct tide_archive_findings findings;
    struct tide_error err = {0};
    ok(tide_archive_open(path, TIDE_ARCHIVE_READ, &archive, &err), &err);
    ok(tide_archive_verify(archive, true, &listing->arena, &findings, &err), &err);
    assert_int_equal(findings.harmful, 0);
    ok(tide_archive_catalogue_read(archive, &listing->arena, &catalogue, &err), &err);
    for (size_t i = 0; i < catalogue.series_count; i++) {
        list_series(archive, &catalogue.series[i], listing);
    }
}

void list_rows(const char *path, struct tide_buf *text)
{
    TIDE_CLEANUP(listing_done) struct listing listing = {0};
    list(path, &listing);
    tide_buf_append_str(text, tide_buf_str(&listing.text));
}

void assert_rows(const char *path, const char *want)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf text = {0};
    list_rows(path, &text);
    assert_string_equal(tide_buf_cstr(&text), want);
}

int64_t number_of(const char *path, const char *sql)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *stmt = NULL;
    assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL), SQLITE_OK);
    int rc = sqlite3_step(stmt);
    int64_t value = rc == SQLITE_ROW ? sqlite3_column_int64(stmt, 0) : -1;
    assert_true(rc == SQLITE_ROW || rc == SQLITE_DONE);
    (void)sqlite3_finalize(stmt);
    (void)sqlite3_close(db);
    return value;
}

struct tide_sink *open_new(const char *path)
{
    struct tide_sink_options options = kit_options(path);
    return kit_open(&tide_archive_sink_ops, &options);
}

struct tide_sink *open_resumed(const char *path)
{
    struct tide_sink_options options = kit_options(path);
    options.is_resumed = true;
    return kit_open(&tide_archive_sink_ops, &options);
}
