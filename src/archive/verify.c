#include "archive/verify.h"

#include <inttypes.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>

#include "archive/archive_db.h"
#include "archive/catalogue.h"

#define TEXT_SIZE 512 /* of a finding; what is longer is cut */

struct verification {
    struct tide_archive *archive;
    struct tide_arena *arena;
    struct tide_archive_findings found;
};

static void add_text(struct tide_archive_findings *found, struct tide_arena *arena,
                     bool is_harmless, const char *text)
{
    if (found->items == NULL) {
        found->items = tide_arena_alloc(arena, TIDE_ARCHIVE_FINDINGS_MAX, sizeof(*found->items));
    }
    if (found->count < TIDE_ARCHIVE_FINDINGS_MAX) {
        found->items[found->count] =
            (struct tide_archive_finding){is_harmless, tide_arena_str(arena, tide_str_from(text))};
    }
    found->count++;
    found->harmful += !is_harmless;
}

void tide_archive_findings_add(struct tide_archive_findings *findings, struct tide_arena *arena,
                               bool is_harmless, const char *fmt, ...)
{
    char text[TEXT_SIZE];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    add_text(findings, arena, is_harmless, text);
}

static void add(struct verification *verification, bool is_harmless, const char *fmt, ...)
    TIDE_PRINTF(3, 4);

static void add(struct verification *verification, bool is_harmless, const char *fmt, ...)
{
    char text[TEXT_SIZE];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    add_text(&verification->found, verification->arena, is_harmless, text);
}

/* A table of rules that no row may break: source, stream, seq, and numbers for the message. */
struct rule {
    const char *text;
    const char *sql;
    bool is_harmless;
};

#define NOT_INTEGER(column) "typeof(" column ") <> 'integer'"

static const struct rule rules[] = {
    {"a segment begins after its end",
     "SELECT source_id, stream, seq FROM segments WHERE first_ts > last_ts", false},
    {"a segment has no rows", "SELECT source_id, stream, seq FROM segments WHERE rows <= 0", false},
    {"a segment has something else where a number or bytes must be",
     "SELECT source_id, stream, seq FROM segments WHERE " NOT_INTEGER("rows") " OR " NOT_INTEGER(
         "first_ts") " OR " NOT_INTEGER("last_ts") " OR " NOT_INTEGER("seq") " OR "
                                                                             "typeof(stream) <> "
                                                                             "'text'",
     false},
    {"a live row has something else where a number must be",
     "SELECT source_id, stream, ts FROM wal WHERE " NOT_INTEGER("ts") " OR " NOT_INTEGER(
         "wall_offset") " OR typeof(stream) <> 'text'",
     false},
    {"a segment begins before the end of the one before it",
     "SELECT source_id, stream, seq FROM (SELECT source_id, stream, seq, first_ts, LAG(last_ts) "
     "OVER (PARTITION BY source_id, stream ORDER BY seq) AS before FROM segments) "
     "WHERE first_ts <= before",
     false},
    {"rows are still stored behind their segment; the next writer removes them",
     "SELECT source_id, stream, COUNT(*) FROM wal WHERE EXISTS (SELECT 1 FROM segments WHERE "
     "segments.source_id = wal.source_id AND segments.stream = wal.stream AND "
     "segments.last_ts >= wal.ts) GROUP BY source_id, stream",
     true},
};

static tide_status check_rule(struct verification *verification, const struct rule *rule,
                              struct tide_error *err)
{
    struct tide_archive *archive = verification->archive;
    TIDE_CLEANUP(tide_archive_stmt_done) struct sqlite3_stmt *stmt = NULL;
    TIDE_TRY(tide_archive_query(archive, &stmt, err, rule->sql, ""));
    for (;;) {
        bool is_row = false;
        TIDE_TRY(tide_archive_step(archive, stmt, &is_row, err));
        if (!is_row) {
            return TIDE_OK;
        }
        tide_str stream = tide_archive_column_bytes(stmt, 1);
        stream.len = stream.len < 200 ? stream.len : 200;
        add(verification, rule->is_harmless, "%s: source %" PRId64 ", series %.*s, %" PRId64,
            rule->text, (int64_t)sqlite3_column_int64(stmt, 0), TIDE_STR_ARG(stream),
            (int64_t)sqlite3_column_int64(stmt, 2));
    }
}

static tide_status check_rules(struct verification *verification, bool is_full,
                               struct tide_error *err)
{
    (void)is_full;
    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
        TIDE_TRY(check_rule(verification, &rules[i], err));
    }
    return TIDE_OK;
}

static tide_status check_pages(struct verification *verification, bool is_full,
                               struct tide_error *err)
{
    TIDE_CLEANUP(tide_archive_stmt_done) struct sqlite3_stmt *stmt = NULL;
    TIDE_TRY(tide_archive_query(verification->archive, &stmt, err,
                                is_full ? "PRAGMA integrity_check" : "PRAGMA quick_check", ""));
    for (;;) {
        bool is_row = false;
        TIDE_TRY(tide_archive_step(verification->archive, stmt, &is_row, err));
        if (!is_row) {
            return TIDE_OK;
        }
        tide_str text = tide_archive_column_bytes(stmt, 0);
        if (!tide_str_equal(text, TIDE_STR("ok"))) {
            text.len = text.len < 400 ? text.len : 400;
            add(verification, false, "the file is damaged: %.*s", TIDE_STR_ARG(text));
        }
    }
}

static tide_status check_keys(struct verification *verification, bool is_full,
                              struct tide_error *err)
{
    TIDE_CLEANUP(tide_archive_stmt_done) struct sqlite3_stmt *stmt = NULL;
    (void)is_full;
    TIDE_TRY(tide_archive_query(verification->archive, &stmt, err, "PRAGMA foreign_key_check", ""));
    for (;;) {
        bool is_row = false;
        TIDE_TRY(tide_archive_step(verification->archive, stmt, &is_row, err));
        if (!is_row) {
            return TIDE_OK;
        }
        tide_str table = tide_archive_column_bytes(stmt, 0);
        table.len = table.len < 100 ? table.len : 100;
        add(verification, false, "row %" PRId64 " of %.*s belongs to no source",
            (int64_t)sqlite3_column_int64(stmt, 1), TIDE_STR_ARG(table));
    }
}

static tide_status check_catalogue(struct verification *verification, bool is_full,
                                   struct tide_error *err)
{
    TIDE_CLEANUP(tide_arena_done) struct tide_arena arena = {0};
    struct tide_archive_catalogue ignored;
    (void)is_full;
    return tide_archive_catalogue_read(verification->archive, &arena, &ignored, err);
}

tide_status tide_archive_verify(struct tide_archive *archive, bool is_full,
                                struct tide_arena *arena,
                                struct tide_archive_findings *ret_findings, struct tide_error *err)
{
    static tide_status (*const checks[])(struct verification *, bool, struct tide_error *) = {
        check_pages, check_keys, check_rules, check_catalogue};
    struct verification verification = {.archive = archive, .arena = arena};
    archive->doing = "verifying";
    TIDE_TRY(tide_archive_snapshot_begin(archive, err));
    TIDE_CLEANUP(tide_archive_snapshot_end_ptr) struct tide_archive *held = archive;
    for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
        held->doing = "verifying";
        tide_status status = checks[i](&verification, is_full, err);
        if (status == TIDE_CORRUPT) {
            add(&verification, false, "%s", err->message);
        } else if (status != TIDE_OK) {
            return status;
        }
    }
    *ret_findings = verification.found;
    return TIDE_OK;
}
