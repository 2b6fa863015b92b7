/* tidemark archive tables: what an archive has of each table. */
#include "app/archive/archive_commands.h"
#include "app/archive/archive_tables.h"
#include "app/pipeline/progress.h"
#include "app/text_table.h"
#include "archive/change_series.h"
#include "base/clock.h"
#include "format/json_writer.h"

#include <inttypes.h>
#include <stdio.h>

static const struct argp_option argp_options[] = {
    TIDE_ARCHIVE_CHOICE_OPTIONS,
    TIDE_ARCHIVE_JSON_OPTION("Print a JSON object a table"),
    {0},
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    return tide_archive_arguments_take(state->input, key, arg, state);
}

static const struct argp argp = {
    .options = argp_options,
    .parser = parse_option,
    .args_doc = "ARCHIVE",
    .doc = "Lists the tables of an archive: rows of copies, changes, copies and how many of them "
           "are complete, and the time from which on any state can be rebuilt. Reads every row; "
           "also while the archive is written.\v"
           "Exit status: 0 done, 2 wrong usage or no such table, 3 it could not be read.",
};

static const char *const names[] = {"SOURCE",   "TABLE", "ROWS", "CHANGES",   "COPIES",
                                    "COMPLETE", "FROM",  "TO",   "STATE FROM"};

#define NAME_COUNT (sizeof(names) / sizeof(names[0]))

static void add_number(struct tide_text_table *table, int64_t number)
{
    char text[32];
    tide_format_count(text, (uint64_t)number);
    tide_text_table_add(table, tide_str_from(text));
}

static void add_time(struct tide_text_table *table, bool is_any, int64_t utc_us)
{
    char text[TIDE_RFC3339_MS_LEN + 1];
    tide_rfc3339_ms(utc_us, text);
    tide_text_table_add(table, is_any ? tide_str_from(text) : TIDE_STR("never"));
}

static void add_line(struct tide_text_table *table, const struct tide_archive_series_info *series,
                     const struct tide_change_summary *summary)
{
    add_number(table, series->source);
    tide_text_table_add(table, series->name);
    add_number(table, summary->rows);
    add_number(table, summary->changes);
    add_number(table, (int64_t)summary->snapshots);
    add_number(table, (int64_t)summary->complete);
    add_time(table, true, summary->first_ts / 1000);
    add_time(table, true, summary->last_ts / 1000);
    /* Cut to milliseconds it would be too early. */
    add_time(table, summary->has_state, summary->state_from_us + 999);
}

static void json_number(struct tide_buf *buf, const char *key, int64_t number)
{
    tide_buf_append_char(buf, ',');
    tide_json_append_key(buf, tide_str_from(key));
    tide_buf_append_i64(buf, number);
}

static void json_time(struct tide_buf *buf, const char *key, bool is_any, int64_t utc_us)
{
    char text[40];
    tide_buf_append_char(buf, ',');
    tide_json_append_key(buf, tide_str_from(key));
    if (is_any) {
        tide_rfc3339_us(utc_us, "Z", text);
        tide_json_append_string(buf, tide_str_from(text));
    } else {
        tide_buf_append_str(buf, TIDE_STR("null"));
    }
}

static void append_json(struct tide_buf *buf, const struct tide_archive_series_info *series,
                        const struct tide_change_summary *summary)
{
    tide_str name = series->name;
    name.len = tide_str_utf8_valid_prefix(name);
    tide_buf_printf(buf, "{\"source\":%" PRId64 ",\"table\":", series->source);
    tide_json_append_string(buf, name);
    json_number(buf, "rows", summary->rows);
    json_number(buf, "changes", summary->changes);
    json_number(buf, "copies", (int64_t)summary->snapshots);
    json_number(buf, "complete", (int64_t)summary->complete);
    json_number(buf, "segments", series->segments);
    json_number(buf, "sealed_rows", series->sealed_rows);
    json_number(buf, "sealed_bytes", series->sealed_bytes);
    json_number(buf, "live_rows", series->live_rows);
    json_time(buf, "from", true, summary->first_ts / 1000);
    json_time(buf, "to", true, summary->last_ts / 1000);
    json_time(buf, "state_from", summary->has_state, summary->state_from_us);
    tide_buf_append_str(buf, TIDE_STR("}\n"));
}

static tide_status list(const struct tide_archive_arguments *arguments,
                        struct tide_archive *archive, struct tide_text_table *table,
                        struct tide_buf *out, struct tide_error *err)
{
    TIDE_CLEANUP(tide_arena_done) struct tide_arena arena = {0};
    struct tide_archive_catalogue catalogue;
    TIDE_TRY(tide_archive_catalogue_read(archive, &arena, &catalogue, err));
    if (arguments->choice.table != NULL || arguments->choice.has_source) {
        TIDE_TRY(tide_archive_choice_check(&arguments->choice, arguments->path, &catalogue, err));
    }
    for (size_t i = 0; i < catalogue.series_count; i++) {
        struct tide_change_summary summary;
        if (!tide_archive_choice_has(&arguments->choice, &catalogue.series[i])) {
            continue;
        }
        TIDE_TRY(tide_change_series_look(archive, &catalogue.series[i], &summary, NULL, err));
        if (arguments->is_json) {
            append_json(out, &catalogue.series[i], &summary);
        } else {
            add_line(table, &catalogue.series[i], &summary);
        }
    }
    return TIDE_OK;
}

static tide_status run(const struct tide_archive_arguments *arguments, struct tide_error *err)
{
    TIDE_CLEANUP(tide_archive_close_ptr) struct tide_archive *archive = NULL;
    TIDE_CLEANUP(tide_buf_done) struct tide_buf out = {0};
    TIDE_CLEANUP(tide_text_table_done)
    struct tide_text_table table = {.column_count = NAME_COUNT};
    for (size_t i = 0; i < NAME_COUNT && !arguments->is_json; i++) {
        tide_text_table_add(&table, tide_str_from(names[i]));
    }
    TIDE_TRY(tide_archive_open(arguments->path, TIDE_ARCHIVE_READ, &archive, err));
    TIDE_TRY(tide_archive_snapshot_begin(archive, err));
    TIDE_CLEANUP(tide_archive_snapshot_end_ptr) struct tide_archive *held = archive;
    TIDE_TRY(list(arguments, held, &table, &out, err));
    tide_text_table_print(&table, &out);
    (void)fwrite(out.ptr, 1, out.len, stdout); /* a failure shows when the program ends */
    return TIDE_OK;
}

int tide_archive_command_tables(int argc, char **argv)
{
    struct tide_archive_arguments arguments = {0};
    struct tide_error err = {0};
    (void)argp_parse(&argp, argc, argv, 0, NULL, &arguments);
    return tide_command_end("archive tables", run(&arguments, &err), &err);
}
