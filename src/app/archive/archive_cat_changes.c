#include "app/archive/archive_cat.h"
#include "archive/change_frame.h"
#include "archive/change_history.h"
#include "archive/change_op.h"
#include "archive/change_position.h"
#include "archive/change_scan.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/map.h"
#include "format/record.h"

#include <inttypes.h>
#include <strings.h>

/* Columns before those of the table, where rows are cells. */
static const char *const meta_names[] = {"_time",        "_op",    "_position",    "_index",
                                         "_incarnation", "_tx",    "_snapshot_id", "_seq",
                                         "_attempt",     "_bytes", "_moved_from"};

#define META_COUNT (sizeof(meta_names) / sizeof(meta_names[0]))

/* The columns of a table over time: those of its newest form, then those it had before. */
struct union_columns {
    struct tide_arena arena;
    struct tide_map numbers; /* name to place */
    tide_str *names;
    size_t count;
};

/* What there was to be printed. */
struct extent {
    bool is_any_wanted;
    bool is_any;
    struct tide_change_place newest; /* of all rows, with their kind, */
    const struct tide_position_kind *kind;
    int64_t newest_us;
};

static void union_done(struct union_columns *columns)
{
    tide_map_done(&columns->numbers);
    tide_arena_done(&columns->arena);
}

static int64_t time_of(const struct tide_change_seen *seen)
{
    return seen->row.kind == TIDE_ROW_CHANGE ? seen->row.commit_us : seen->ts / 1000;
}

static bool is_before(const struct tide_archive_moment *moment, const struct tide_change_seen *seen)
{
    const struct tide_change_row *row = &seen->row;
    if (!moment->is_position) {
        return time_of(seen) < moment->utc_us;
    }
    if (moment->has_incarnation && moment->incarnation != row->incarnation) {
        return row->incarnation < moment->incarnation;
    }
    return !row->place.known || tide_position_compare(row->place.position, moment->position) < 0;
}

/* From the one on, and up to the other, which is included. */
static bool is_between(const struct tide_archive_cat *cat, const struct tide_change_seen *seen)
{
    if (cat->from.is_given && is_before(&cat->from, seen)) {
        return false;
    }
    struct tide_archive_moment end = cat->to;
    end.utc_us = end.end_us + (end.end_us < INT64_MAX);
    end.position.lo += end.position.lo < UINT64_MAX;
    return !end.is_given || is_before(&end, seen);
}

static bool is_wanted(const struct tide_archive_cat *cat, const struct tide_change_seen *seen,
                      struct extent *extent)
{
    struct tide_change_place place = {seen->row.incarnation, seen->row.place};
    bool is_wanted = is_between(cat, seen);
    extent->is_any_wanted = extent->is_any_wanted || is_wanted;
    if (!extent->is_any || tide_change_place_compare(place, extent->newest) > 0) {
        extent->newest = place;
        extent->kind = seen->columns->position_kind;
    }
    if (!extent->is_any || time_of(seen) > extent->newest_us) {
        extent->newest_us = time_of(seen);
    }
    extent->is_any = true;
    return is_wanted;
}

/* An empty answer may also come of a moment that is still to come. */
static void note_nothing(const struct extent *extent)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf text = {0};
    char time[TIDE_RFC3339_MS_LEN + 1];
    if (extent->is_any_wanted || !extent->is_any) {
        return;
    }
    tide_rfc3339_ms(extent->newest_us, time);
    if (extent->newest.place.known) {
        tide_buf_append_str(&text, TIDE_STR(", position "));
        tide_change_position_show(&text, extent->kind, extent->newest.place.position);
    }
    tide_log(TIDE_LOG_INFO,
             "nothing that the archive holds is between these moments: what it holds goes up to "
             "%s%s",
             time, tide_buf_cstr(&text));
}

static tide_status check_moments(const struct tide_archive_cat *cat,
                                 const struct tide_change_seen *seen, struct tide_error *err)
{
    tide_str kind = seen->columns->schema.position_kind;
    TIDE_TRY(tide_archive_moment_check(&cat->from, kind, err));
    return tide_archive_moment_check(&cat->to, kind, err);
}

static tide_status open_scan(struct tide_archive *archive,
                             const struct tide_archive_series_info *series,
                             struct tide_change_scan **ret_scan, struct tide_error *err)
{
    const struct tide_archive_range range = {
        .source = series->source, .series = series->name, INT64_MIN, INT64_MAX};
    return tide_change_scan_open(archive, &range, ret_scan, err);
}

/* Frames */

static tide_status print_frames(struct tide_archive *archive, const struct tide_archive_cat *cat,
                                const struct tide_archive_series_info *series,
                                struct tide_row_lines *lines, struct extent *extent,
                                struct tide_error *err)
{
    TIDE_CLEANUP(tide_change_scan_close_ptr) struct tide_change_scan *scan = NULL;
    struct tide_change_framer framer = {0};
    struct tide_change_seen seen;
    tide_status status = TIDE_OK;
    TIDE_TRY(open_scan(archive, series, &scan, err));
    while ((status = tide_change_scan_next(scan, &seen, err)) == TIDE_OK) {
        TIDE_TRY(check_moments(cat, &seen, err));
        size_t start = lines->buf.len;
        TIDE_TRY(tide_change_frame_append(&framer, &seen, &lines->buf, err));
        if (!is_wanted(cat, &seen, extent)) {
            lines->buf.len = start; /* what it says of its snapshot has been noted */
            continue;
        }
        tide_buf_append_char(&lines->buf, '\n');
        TIDE_TRY(tide_row_lines_write(lines, false, err));
    }
    return status == TIDE_END ? TIDE_OK : status;
}

static tide_status print_all_frames(struct tide_archive *archive,
                                    const struct tide_archive_cat *cat,
                                    const struct tide_archive_catalogue *catalogue,
                                    struct extent *extent, struct tide_error *err)
{
    TIDE_CLEANUP(tide_row_lines_done) struct tide_row_lines lines = {0};
    tide_row_lines_init(&lines, TIDE_ROWS_NDJSON, 0);
    TIDE_TRY(tide_archive_choice_check(&cat->choice, cat->path, catalogue, err));
    for (size_t i = 0; i < catalogue->series_count; i++) {
        if (tide_archive_choice_has(&cat->choice, &catalogue->series[i])) {
            TIDE_TRY(print_frames(archive, cat, &catalogue->series[i], &lines, extent, err));
        }
    }
    return tide_row_lines_write(&lines, true, err);
}

/* Cells */

static void union_add(struct union_columns *columns, const struct tide_change_schema *schema)
{
    size_t room = columns->count + schema->column_count;
    tide_str *names = tide_arena_alloc(&columns->arena, room, sizeof(*names));
    size_t count = 0;
    struct tide_map numbers = {0};
    for (size_t i = 0; i < room; i++) { /* those of this form first */
        bool is_new = false;
        tide_str name = i < schema->column_count ? schema->columns[i].name
                                                 : columns->names[i - schema->column_count];
        union tide_map_value *number = tide_map_put(&numbers, name, &is_new);
        if (is_new) {
            number->number = count;
            names[count++] = tide_arena_str(&columns->arena, name);
        }
    }
    tide_map_done(&columns->numbers);
    columns->numbers = numbers;
    columns->names = names;
    columns->count = count;
}

static tide_status read_union(struct tide_archive *archive,
                              const struct tide_archive_series_info *series,
                              struct union_columns *columns, struct tide_error *err)
{
    TIDE_CLEANUP(tide_change_scan_close_ptr) struct tide_change_scan *scan = NULL;
    const struct tide_change_columns *last = NULL;
    struct tide_change_seen seen;
    tide_status status = TIDE_OK;
    TIDE_TRY(open_scan(archive, series, &scan, err));
    while ((status = tide_change_scan_next(scan, &seen, err)) == TIDE_OK) {
        if (seen.columns != last) {
            last = seen.columns;
            union_add(columns, &last->schema);
        }
    }
    return status == TIDE_END ? TIDE_OK : status;
}

static void add_number(struct tide_row_lines *lines, struct tide_buf *text, bool is_any,
                       uint64_t number)
{
    tide_buf_reset(text);
    tide_buf_append_u64(text, number);
    if (is_any) {
        tide_row_lines_add(lines, tide_buf_str(text));
    } else {
        tide_row_lines_add_none(lines);
    }
}

static void add_text(struct tide_row_lines *lines, tide_str text)
{
    if (text.len > 0) {
        tide_row_lines_add(lines, text);
    } else {
        tide_row_lines_add_none(lines);
    }
}

/* A position as it is given to --as-of. */
static void add_place(struct tide_row_lines *lines, struct tide_buf *text,
                      const struct tide_change_columns *columns, const struct tide_place *place)
{
    tide_buf_reset(text);
    if (place->known) {
        tide_change_position_show(text, columns->position_kind, place->position);
    }
    add_text(lines, tide_buf_str(text));
    add_number(lines, text, place->known && place->index != TIDE_INDEX_AFTER_ALL, place->index);
}

static void add_moved_from(struct tide_row_lines *lines, struct tide_buf *text,
                           const struct tide_change_seen *seen)
{
    tide_buf_reset(text);
    if (seen->row.moved_from != NULL) {
        tide_record_append_key(text, &seen->columns->relation, seen->row.moved_from);
    }
    add_text(lines, tide_buf_str(text));
}

static void add_meta(struct tide_row_lines *lines, struct tide_buf *text,
                     const struct tide_change_seen *seen)
{
    const struct tide_change_row *row = &seen->row;
    bool is_change = row->kind == TIDE_ROW_CHANGE;
    char time[40];
    tide_rfc3339_us(row->commit_us != 0 ? row->commit_us : seen->ts / 1000, "Z", time);
    tide_row_lines_add(lines, tide_str_from(time));
    tide_row_lines_add(lines, tide_change_op_name(row->kind, row->op));
    add_place(lines, text, seen->columns, &row->place);
    add_number(lines, text, row->incarnation > 0, row->incarnation);
    add_text(lines, row->tx);
    add_text(lines, tide_str_from(row->snapshot_id));
    add_number(lines, text, !is_change, row->seq);
    add_number(lines, text, !is_change, row->attempt);
    add_number(lines, text, row->bytes > 0, row->bytes);
    add_moved_from(lines, text, seen);
}

/* The row's values at their places in the union; where there are none, those of its key. */
static void place_values(const struct union_columns *columns, const struct tide_change_seen *seen,
                         struct tide_value *cells)
{
    const struct tide_change_schema *schema = &seen->columns->schema;
    const struct tide_change_row *row = &seen->row;
    for (size_t i = 0; i < columns->count; i++) {
        cells[i] = (struct tide_value){.kind = TIDE_VALUE_ABSENT};
    }
    for (size_t i = 0; row->values != NULL && i < schema->column_count; i++) {
        cells[tide_map_get(&columns->numbers, schema->columns[i].name)->number] = row->values[i];
    }
    for (size_t i = 0; row->values == NULL && row->key != NULL && i < schema->key_count; i++) {
        tide_str name = schema->columns[schema->key_columns[i]].name;
        cells[tide_map_get(&columns->numbers, name)->number] = row->key[i];
    }
}

/* In whatever letters. */
static bool is_alike(tide_str a, tide_str b)
{
    return a.len == b.len && strncasecmp(a.ptr, b.ptr, a.len) == 0;
}

static bool is_meta(tide_str name)
{
    for (size_t i = 0; i < META_COUNT; i++) {
        if (is_alike(name, tide_str_from(meta_names[i]))) {
            return true;
        }
    }
    return false;
}

static bool is_column(const struct union_columns *columns, tide_str name)
{
    for (size_t i = 0; i < columns->count; i++) {
        if (is_alike(name, columns->names[i])) {
            return true;
        }
    }
    return false;
}

/* A column that is named as one of ours gets `_` behind its name, more if need be. */
static void add_name(struct tide_row_lines *lines, const struct union_columns *columns,
                     tide_str name)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf free_name = {0};
    tide_buf_append_str(&free_name, name);
    if (is_meta(name)) {
        do {
            tide_buf_append_char(&free_name, '_');
        } while (is_meta(tide_buf_str(&free_name)) || is_column(columns, tide_buf_str(&free_name)));
    }
    tide_row_lines_add(lines, tide_buf_str(&free_name));
}

static void add_header(struct tide_row_lines *lines, const struct union_columns *columns)
{
    for (size_t i = 0; i < META_COUNT; i++) {
        tide_row_lines_add(lines, tide_str_from(meta_names[i]));
    }
    for (size_t i = 0; i < columns->count; i++) {
        add_name(lines, columns, columns->names[i]);
    }
}

static tide_status print_rows(const struct tide_archive_cat *cat, struct tide_change_scan *scan,
                              struct union_columns *columns, struct tide_row_lines *lines,
                              struct extent *extent, struct tide_error *err)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf text = {0};
    struct tide_value *cells = tide_arena_alloc(&columns->arena, columns->count, sizeof(*cells));
    struct tide_change_seen seen;
    tide_status status = TIDE_OK;
    while ((status = tide_change_scan_next(scan, &seen, err)) == TIDE_OK) {
        TIDE_TRY(check_moments(cat, &seen, err));
        if (!is_wanted(cat, &seen, extent)) {
            continue;
        }
        add_meta(lines, &text, &seen);
        place_values(columns, &seen, cells);
        for (size_t i = 0; i < columns->count; i++) {
            tide_row_lines_add_value(lines, cells[i]);
        }
        TIDE_TRY(tide_row_lines_write(lines, false, err));
    }
    return status == TIDE_END ? TIDE_OK : status;
}

static tide_status print_cells(struct tide_archive *archive, const struct tide_archive_cat *cat,
                               const struct tide_archive_catalogue *catalogue,
                               struct extent *extent, struct tide_error *err)
{
    TIDE_CLEANUP(tide_row_lines_done) struct tide_row_lines lines = {0};
    TIDE_CLEANUP(union_done) struct union_columns columns = {0};
    TIDE_CLEANUP(tide_change_scan_close_ptr) struct tide_change_scan *scan = NULL;
    const struct tide_archive_series_info *series = NULL;
    TIDE_TRY(tide_archive_choice_find(&cat->choice, cat->path, catalogue, &series, err));
    TIDE_TRY(read_union(archive, series, &columns, err));
    tide_row_lines_init(&lines, cat->format, META_COUNT + columns.count);
    add_header(&lines, &columns);
    TIDE_TRY(open_scan(archive, series, &scan, err));
    TIDE_TRY(print_rows(cat, scan, &columns, &lines, extent, err));
    return tide_row_lines_write(&lines, true, err);
}

tide_status tide_archive_cat_changes(struct tide_archive *archive,
                                     const struct tide_archive_cat *cat, struct tide_error *err)
{
    TIDE_CLEANUP(tide_arena_done) struct tide_arena arena = {0};
    struct tide_archive_catalogue catalogue;
    TIDE_TRY(tide_archive_snapshot_begin(archive, err));
    TIDE_CLEANUP(tide_archive_snapshot_end_ptr) struct tide_archive *held = archive;
    TIDE_TRY(tide_archive_catalogue_read(held, &arena, &catalogue, err));
    struct extent extent = {0};
    TIDE_TRY(cat->format == TIDE_ROWS_NDJSON ? print_all_frames(held, cat, &catalogue, &extent, err)
                                             : print_cells(held, cat, &catalogue, &extent, err));
    note_nothing(&extent);
    return TIDE_OK;
}
