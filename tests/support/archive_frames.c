/*
 * Prints what an archive holds of tables as the frames that a file sink would have written:
 *
 *     archive_frames PATH      all series of all sources, one after the other
 *
 * So all that judges frames judges archives too. Exit status: 0 done, 3 an error, which is printed.
 */
#include "archive/caller_rows.h"
#include "archive/catalogue.h"
#include "archive/change_encoder.h"
#include "archive/change_row.h"
#include "archive/change_schema.h"
#include "archive/scan.h"
#include "base/limits.h"
#include "format/envelope.h"

#include <stdio.h>
#include <string.h>

struct printer {
    struct tide_arena *arena; /* of the series */
    struct tide_archive_caller_row *columns;
    size_t column_count;
    size_t at; /* the columns in force */
    bool has_schema;
    struct tide_change_schema schema;
    struct tide_relation *relation;
    struct tide_arena scratch; /* of a row */
    struct tide_buf out;
};

static const struct tide_position_kind *kind_of(tide_str name)
{
    return tide_str_equal(name, TIDE_STR("lsn")) ? &tide_position_lsn : &tide_position_integer;
}

/* Of the connection nothing is known but how the store begins. */
static void use_schema(struct printer *printer)
{
    const struct tide_change_schema *schema = &printer->schema;
    size_t rest = schema->table.len + (schema->schema.len > 0 ? schema->schema.len + 1 : 0) + 1;
    const struct tide_relation_spec spec = {
        .connection = tide_str_of(schema->store.ptr, schema->store.len - rest),
        .schema = schema->schema,
        .name = schema->table,
        .columns = schema->columns,
        .column_count = schema->column_count,
        .key_columns = schema->key_columns,
        .key_count = schema->key_count,
    };
    tide_relation_unref(printer->relation);
    printer->relation = tide_relation_new(&spec);
}

static tide_status find_schema(struct printer *printer, int64_t ts, struct tide_error *err)
{
    while (printer->at < printer->column_count && printer->columns[printer->at].ts <= ts) {
        TIDE_TRY(tide_change_schema_decode(printer->columns[printer->at].bytes, printer->arena,
                                           &printer->schema, err));
        printer->at++;
        printer->has_schema = true;
        use_schema(printer);
    }
    return printer->has_schema ? TIDE_OK : tide_fail(err, TIDE_CORRUPT, "a row without columns");
}

static bool is_partial(const struct tide_change_row *row, size_t count)
{
    for (size_t i = 0; row->values != NULL && i < count; i++) {
        if (row->values[i].kind == TIDE_VALUE_UNCHANGED) {
            return true;
        }
    }
    return false;
}

static void print_change(struct printer *printer, const struct tide_change_row *row)
{
    const struct tide_envelope_options options = {
        .position_kind = kind_of(printer->schema.position_kind),
        .record_bytes_max = SIZE_MAX,
        .incarnation = row->incarnation,
    };
    const struct tide_change change = {
        .op = row->op,
        .is_partial = is_partial(row, printer->schema.column_count),
        .relation = printer->relation,
        .place = row->place,
        .prev = row->prev,
        .commit_us = row->commit_us,
        .tx = row->tx,
        .key = row->key,
        .moved_from = row->moved_from,
        .values = row->values,
    };
    size_t oversize = 0;
    if (row->bytes > 0) {
        tide_buf_printf(&printer->out, "{\"oversize_change\":%llu}",
                        (unsigned long long)row->bytes);
        return;
    }
    tide_envelope_append_change(&printer->out, &options, &change, &oversize, NULL);
}

static void print_part(struct printer *printer, const struct tide_change_row *row)
{
    const struct tide_envelope_options options = {
        .position_kind = kind_of(printer->schema.position_kind),
        .record_bytes_max = SIZE_MAX,
    };
    const struct tide_value *rows[] = {row->values};
    struct tide_snapshot_part part = {
        .relation = printer->relation,
        .head = {.attempt = row->attempt,
                 .starts = row->starts,
                 .incarnation = row->incarnation,
                 .at_us = row->commit_us},
        .opening = row->kind == TIDE_ROW_BEGIN ? TIDE_OPENING_BEGIN : TIDE_OPENING_RESUME,
        .first_seq = row->seq,
        .changes_from = row->place,
        .changes_to = row->place,
        .row_position = row->place.position,
        .completed_us = row->commit_us,
        .rows = rows,
        .row_count = row->kind == TIDE_ROW_SNAPSHOT,
    };
    memcpy(part.head.id, row->snapshot_id, sizeof(part.head.id));
    if (row->kind == TIDE_ROW_SNAPSHOT) {
        struct tide_envelope_rows TIDE_CLEANUP(tide_envelope_rows_done) frames = {0};
        size_t oversize = 0;
        tide_envelope_rows_init(&frames, &options, &part);
        tide_envelope_rows_append(&printer->out, &frames, 0, &oversize, NULL);
    } else if (row->kind == TIDE_ROW_END) {
        tide_envelope_append_end(&printer->out, &options, &part);
    } else {
        tide_envelope_append_opening(&printer->out, &options, &part);
    }
}

static tide_status print_row(void *context, int64_t ts, tide_str bytes, struct tide_error *err)
{
    struct printer *printer = context;
    struct tide_change_row row;
    TIDE_TRY(find_schema(printer, ts, err));
    tide_arena_reset(&printer->scratch);
    TIDE_TRY(tide_change_row_decode(bytes, printer->schema.column_count, printer->schema.key_count,
                                    &printer->scratch, &row, err));
    tide_buf_reset(&printer->out);
    if (row.kind == TIDE_ROW_CHANGE) {
        print_change(printer, &row);
    } else if (row.kind == TIDE_ROW_STUB) {
        tide_buf_printf(&printer->out, "{\"stub\":%llu}", (unsigned long long)row.seq);
    } else {
        print_part(printer, &row);
    }
    tide_buf_append_char(&printer->out, '\n');
    (void)fwrite(printer->out.ptr, 1, printer->out.len, stdout);
    return TIDE_OK;
}

static tide_status print_series(struct tide_archive *archive,
                                const struct tide_archive_series_info *series,
                                struct tide_error *err)
{
    TIDE_CLEANUP(tide_arena_done) struct tide_arena arena = {0};
    struct printer printer = {.arena = &arena};
    const struct tide_archive_range range = {.source = series->source,
                                             .series = series->name,
                                             .start_ts = INT64_MIN,
                                             .end_ts = INT64_MAX};
    const struct tide_archive_row_taker taker = {.take = print_row, .context = &printer};
    tide_status status =
        tide_archive_caller_rows_read(archive, series->source, series->name, INT64_MIN, INT64_MAX,
                                      &arena, &printer.columns, &printer.column_count, err);
    if (status == TIDE_OK) {
        status = tide_archive_rows_read(archive, &range, &tide_change_encoder, &taker, err);
    }
    tide_relation_unref(printer.relation);
    tide_arena_done(&printer.scratch);
    tide_buf_done(&printer.out);
    return status;
}

static tide_status print_archive(const char *path, struct tide_error *err)
{
    TIDE_CLEANUP(tide_arena_done) struct tide_arena arena = {0};
    TIDE_CLEANUP(tide_archive_close_ptr) struct tide_archive *archive = NULL;
    struct tide_archive_catalogue catalogue;
    TIDE_TRY(tide_archive_open(path, TIDE_ARCHIVE_READ, &archive, err));
    TIDE_CLEANUP(tide_archive_snapshot_end_ptr) struct tide_archive *snapshot = NULL;
    TIDE_TRY(tide_archive_snapshot_begin(archive, err));
    snapshot = archive;
    TIDE_TRY(tide_archive_catalogue_read(archive, &arena, &catalogue, err));
    for (size_t i = 0; i < catalogue.series_count; i++) {
        TIDE_TRY(print_series(archive, &catalogue.series[i], err));
    }
    return TIDE_OK;
}

int main(int argc, char **argv)
{
    struct tide_error err = {0};
    if (argc != 2) {
        (void)fprintf(stderr, "usage: archive_frames PATH\n");
        return 2;
    }
    if (print_archive(argv[1], &err) != TIDE_OK) {
        (void)fprintf(stderr, "archive_frames: %s\n", err.message);
        return 3;
    }
    return 0;
}
