#include "sink/archive/archive_rows.h"

#include "archive/change_row.h"
#include "base/alloc.h"
#include "base/limits.h"
#include "format/record.h"
#include "sink/archive/archive_tables.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Times beyond these (years 1823 and 2225) are taken for these: behind them there must be room for
 * rows to come. */
#define TIME_MIN_US (-(INT64_C(1) << 62) / 1000)
#define TIME_MAX_US ((INT64_MAX - (INT64_C(1) << 60)) / 1000)

void tide_archive_rows_init(struct tide_archive_rows *rows,
                            const struct tide_archive_target *target,
                            const struct tide_sink_options *options, tide_str destination)
{
    *rows = (struct tide_archive_rows){
        .path = target->place.path,
        .writer = target->writer,
        .source = target->source,
        .position_kind = options->position_kind,
        .incarnation = options->incarnation,
        .record_bytes_max = options->record_bytes_max < TIDE_ARCHIVE_RECORD_BYTES_MAX
                                ? options->record_bytes_max
                                : TIDE_ARCHIVE_RECORD_BYTES_MAX,
    };
    tide_refusals_init(&rows->refusals, options, destination);
    rows->fills = options->segments.fills_unchanged;
    tide_archive_fill_init(&rows->fill, TIDE_ARCHIVE_FILL_BYTES_MAX);
}

void tide_archive_rows_done(struct tide_archive_rows *rows)
{
    for (size_t i = 0; i < rows->table_count; i++) {
        tide_archive_table_free(rows->tables[i]);
    }
    free(rows->tables);
    tide_archive_fill_done(&rows->fill);
    tide_map_done(&rows->by_store);
    free(rows->rows);
    tide_buf_done(&rows->bytes);
    free(rows->notes);
    free(rows->notes_out);
    tide_buf_done(&rows->note_bytes);
    tide_buf_done(&rows->record);
    tide_arena_done(&rows->scratch);
}

/* Rows */

static void grow(struct tide_archive_rows *rows)
{
    if (rows->row_count == rows->row_cap) {
        rows->row_cap = rows->row_cap == 0 ? 256 : rows->row_cap * 2;
        rows->rows = tide_realloc(rows->rows, rows->row_cap, sizeof(*rows->rows));
    }
    if (rows->note_count == rows->note_cap) {
        rows->note_cap = rows->note_cap == 0 ? 16 : rows->note_cap * 2;
        rows->notes = tide_realloc(rows->notes, rows->note_cap, sizeof(*rows->notes));
        rows->notes_out = tide_realloc(rows->notes_out, rows->note_cap, sizeof(*rows->notes_out));
    }
}

static void note_columns(struct tide_archive_rows *rows, struct tide_archive_table *table)
{
    if (!table->needs_note || table->columns.len == 0) {
        return; /* nor of a table that was gone before this session: what is noted stays in force */
    }
    tide_buf_append_str(&rows->note_bytes, tide_buf_str(&table->columns));
    rows->notes[rows->note_count++] = (struct tide_archive_pending_note){
        .table = table,
        .row = rows->row_count,
        .size = table->columns.len,
        .is_changed = table->is_changed,
    };
    table->needs_note = false;
    table->is_changed = false;
}

static int64_t time_ns(int64_t us)
{
    us = us < TIME_MIN_US ? TIME_MIN_US : us;
    us = us > TIME_MAX_US ? TIME_MAX_US : us;
    return us * 1000;
}

/* Only the sink's thread adds: no locked instruction is needed. */
static void count(_Atomic uint64_t *counter, uint64_t n)
{
    uint64_t before = atomic_load_explicit(counter, memory_order_relaxed);
    atomic_store_explicit(counter, before + n, memory_order_relaxed);
}

/* Where the bytes are is set once all of them are there. */
static void add_row(struct tide_archive_rows *rows, struct tide_archive_table *table, int64_t at_us,
                    const struct tide_change_row *row)
{
    const struct tide_relation *relation = table->relation;
    size_t before = rows->bytes.len;
    if (tide_archive_table_is_unheard_of(table)) {
        return;
    }
    grow(rows);
    note_columns(rows, table);
    tide_change_row_encode(row, relation->column_count, relation->key_count, &rows->bytes);
    rows->rows[rows->row_count++] = (struct tide_archive_row){
        .series = table->series,
        .ts = time_ns(at_us),
        .bytes = {.len = rows->bytes.len - before},
    };
    table->is_touched = true;
    count(&rows->byte_total, rows->bytes.len - before);
}

/* The length of its record where it is too long, else 0; the record is in `record` then. Each byte
 * of a value may become six. */
static size_t measure(struct tide_archive_rows *rows, const struct tide_archive_table *table,
                      const struct tide_value *values)
{
    const struct tide_relation *relation = table->relation;
    size_t bound = table->names_size;
    for (size_t i = 0; i < relation->column_count; i++) {
        if (values[i].kind > TIDE_VALUE_ABSENT) {
            bound += (size_t)6 * values[i].len;
        }
    }
    if (TIDE_LIKELY(bound <= rows->record_bytes_max)) {
        return 0;
    }
    tide_buf_reset(&rows->record);
    tide_record_append(&rows->record, relation, values);
    return rows->record.len > rows->record_bytes_max ? rows->record.len : 0;
}

/* Why a record is refused. */
struct reason {
    char text[80];
    struct tide_refused_record record;
};

static void reason_init(struct reason *reason, const struct tide_archive_rows *rows, size_t size)
{
    int len = snprintf(reason->text, sizeof(reason->text), "%zu bytes, limit %zu", size,
                       rows->record_bytes_max);
    reason->record = (struct tide_refused_record){.bytes = tide_buf_str(&rows->record),
                                                  .reason = {reason->text, (size_t)len}};
}

/* Filling in */

static const struct tide_value *fill_in(struct tide_archive_rows *rows,
                                        const struct tide_change *change)
{
    bool is_whole = true;
    if (!rows->fills) {
        return change->values;
    }
    tide_arena_reset(&rows->scratch);
    const struct tide_value *values =
        tide_archive_fill_values(&rows->fill, change, &rows->scratch, &is_whole);
    count(&rows->unfilled_total, is_whole ? 0 : 1);
    return values;
}

/* `values` NULL: the row is too long to be known. */
static void remember_row(struct tide_archive_rows *rows, const struct tide_relation *relation,
                         const struct tide_value *key, const struct tide_value *values)
{
    if (rows->fills && key != NULL && values != NULL) {
        tide_archive_fill_note(&rows->fill, relation, key, values);
    } else if (rows->fills && key != NULL) {
        tide_archive_fill_forget(&rows->fill, relation, key);
    }
}

/* Changes */

static struct tide_change_row row_of_change(const struct tide_archive_rows *rows,
                                            const struct tide_change *change)
{
    bool has_key = change->op != TIDE_OP_TRUNCATE && change->relation->key_count > 0;
    bool may_move = has_key && change->op != TIDE_OP_DELETE;
    return (struct tide_change_row){
        .kind = TIDE_ROW_CHANGE,
        .op = change->op,
        .place = change->place,
        .prev = change->prev,
        .tx = change->tx,
        .commit_us = change->commit_us,
        .incarnation = rows->incarnation,
        .key = has_key ? change->key : NULL,
        .moved_from = may_move ? change->moved_from : NULL,
        .values = change->values,
    };
}

static tide_status add_change(struct tide_archive_rows *rows, const struct tide_change *change,
                              struct tide_error *err)
{
    struct tide_archive_table *table = NULL;
    struct tide_change_row row = row_of_change(rows, change);
    TIDE_TRY(tide_archive_rows_table(rows, change->relation, &table, err));
    row.values = fill_in(rows, change);
    size_t oversize = row.values == NULL ? 0 : measure(rows, table, row.values);
    if (TIDE_UNLIKELY(oversize > 0)) {
        struct reason reason;
        reason_init(&reason, rows, oversize);
        TIDE_TRY(tide_refusals_take_change(&rows->refusals, change, &reason.record, err));
        tide_buf_done(&rows->record); /* rare and large: not worth keeping */
        row.values = NULL;
        row.bytes = oversize;
    }
    add_row(rows, table, change->commit_us, &row);
    if (rows->fills) {
        tide_archive_fill_change(&rows->fill, change, row.values);
    }
    count(&rows->change_total, 1);
    return TIDE_OK;
}

tide_status tide_archive_rows_add_changes(struct tide_archive_rows *rows,
                                          const struct tide_batch *batch, size_t first,
                                          struct tide_error *err)
{
    for (size_t i = first; i < batch->change_count; i++) {
        TIDE_TRY(add_change(rows, &batch->changes[i], err));
    }
    return TIDE_OK;
}

/* Snapshots */

static struct tide_change_row row_of_part(const struct tide_snapshot_part *part,
                                          enum tide_change_row_kind kind)
{
    struct tide_change_row row = {
        .kind = kind,
        .attempt = part->head.attempt,
        .incarnation = part->head.incarnation,
    };
    memcpy(row.snapshot_id, part->head.id, sizeof(row.snapshot_id));
    return row;
}

static void add_opening(struct tide_archive_rows *rows, struct tide_archive_table *table,
                        const struct tide_snapshot_part *part)
{
    bool is_begin = part->opening == TIDE_OPENING_BEGIN;
    struct tide_change_row row = row_of_part(part, is_begin ? TIDE_ROW_BEGIN : TIDE_ROW_RESUME);
    row.commit_us = part->head.at_us;
    row.place = part->changes_from;
    row.seq = is_begin ? 0 : part->first_seq;
    row.starts = is_begin ? NULL : part->head.starts;
    add_row(rows, table, part->head.at_us, &row);
}

static void add_end(struct tide_archive_rows *rows, struct tide_archive_table *table,
                    const struct tide_snapshot_part *part)
{
    struct tide_change_row row = row_of_part(part, TIDE_ROW_END);
    row.commit_us = part->completed_us;
    row.place = part->changes_to;
    row.seq = part->first_seq + part->row_count;
    row.starts = part->head.starts;
    add_row(rows, table, part->completed_us, &row);
}

/* In the arena of the row under way. */
static const struct tide_value *key_of(struct tide_archive_rows *rows,
                                       const struct tide_relation *relation,
                                       const struct tide_value *values)
{
    if (relation->key_count == 0) {
        return NULL;
    }
    tide_arena_reset(&rows->scratch);
    struct tide_value *key = tide_arena_alloc(&rows->scratch, relation->key_count, sizeof(*key));
    tide_relation_key_of(relation, values, key);
    return key;
}

static tide_status add_snapshot_row(struct tide_archive_rows *rows,
                                    struct tide_archive_table *table,
                                    const struct tide_snapshot_part *part, size_t index,
                                    struct tide_error *err)
{
    const struct tide_value *values = part->rows[index];
    size_t oversize = measure(rows, table, values);
    struct tide_change_row row = row_of_part(part, TIDE_ROW_SNAPSHOT);
    row.seq = part->first_seq + index;
    row.place = (struct tide_place){
        .position = part->row_position, .index = TIDE_INDEX_AFTER_ALL, .known = true};
    row.values = values;
    const struct tide_value *key =
        oversize > 0 || rows->fills ? key_of(rows, part->relation, values) : NULL;
    if (TIDE_UNLIKELY(oversize > 0)) {
        struct reason reason;
        reason_init(&reason, rows, oversize);
        TIDE_TRY(tide_refusals_take_row(&rows->refusals, part, index, &reason.record, err));
        tide_buf_done(&rows->record);
        row.kind = TIDE_ROW_STUB;
        row.values = NULL;
        row.bytes = oversize;
        row.key = key;
    }
    add_row(rows, table, part->head.at_us, &row);
    remember_row(rows, part->relation, key, row.values);
    count(oversize > 0 ? &rows->stub_total : &rows->row_total, 1);
    return TIDE_OK;
}

/* What of a part is there already; NULL: nothing. */
static const struct tide_held_snapshot *find_held(const struct tide_progress *progress,
                                                  const struct tide_snapshot_part *part)
{
    for (size_t i = 0; i < progress->snapshot_count; i++) {
        const struct tide_held_snapshot *held = &progress->snapshots[i];
        if (held->attempt == part->head.attempt && strcmp(held->id, part->head.id) == 0) {
            return held;
        }
    }
    return NULL;
}

tide_status tide_archive_rows_add_part(struct tide_archive_rows *rows,
                                       const struct tide_snapshot_part *part,
                                       const struct tide_progress *progress, struct tide_error *err)
{
    struct tide_archive_table *table = NULL;
    const struct tide_held_snapshot *held = find_held(progress, part);
    size_t first = 0;
    if (held != NULL && held->next_seq == TIDE_SEQ_ENDED) {
        return TIDE_OK;
    }
    if (held != NULL && held->next_seq > part->first_seq) {
        uint64_t there = held->next_seq - part->first_seq;
        first = there < part->row_count ? (size_t)there : part->row_count;
    }
    TIDE_TRY(tide_archive_rows_table(rows, part->relation, &table, err));
    if (part->opening != TIDE_OPENING_NONE && held == NULL) {
        add_opening(rows, table, part);
    }
    for (size_t i = first; i < part->row_count; i++) {
        TIDE_TRY(add_snapshot_row(rows, table, part, i, err));
    }
    if (part->is_end) {
        add_end(rows, table, part);
    }
    return TIDE_OK;
}

/* Writing */

static void place_bytes(struct tide_archive_rows *rows)
{
    const char *at = rows->bytes.ptr;
    for (size_t i = 0; i < rows->row_count; i++) {
        rows->rows[i].bytes.ptr = at;
        at += rows->rows[i].bytes.len;
    }
    at = rows->note_bytes.ptr;
    for (size_t i = 0; i < rows->note_count; i++) {
        const struct tide_archive_pending_note *note = &rows->notes[i];
        rows->notes_out[i] = (struct tide_archive_note){
            .series = note->table->series,
            .ts = rows->rows[note->row].ts,
            .bytes = {at, note->size},
        };
        at += note->size;
    }
}

tide_status tide_archive_rows_tick(struct tide_archive_rows *rows,
                                   struct tide_archive_tick *ret_tick, struct tide_error *err)
{
    TIDE_TRY(tide_archive_row_times(rows->rows, rows->row_count, err));
    place_bytes(rows);
    *ret_tick = (struct tide_archive_tick){
        .rows = rows->rows,
        .row_count = rows->row_count,
        .notes = rows->notes_out,
        .note_count = rows->note_count,
    };
    return TIDE_OK;
}

void tide_archive_rows_forget(struct tide_archive_rows *rows)
{
    for (size_t i = 0; i < rows->note_count; i++) {
        struct tide_archive_table *table = rows->notes[i].table;
        if (rows->notes[i].is_changed || !table->is_noted) {
            table->is_noted = true;
            table->columns_from = rows->notes_out[i].ts;
        }
    }
    rows->row_count = 0;
    rows->note_count = 0;
    tide_buf_reset(&rows->bytes);
    tide_buf_reset(&rows->note_bytes);
}

void tide_archive_rows_counts(const struct tide_archive_rows *rows,
                              struct tide_sink_counts *ret_counts)
{
    *ret_counts = (struct tide_sink_counts){
        .rows = atomic_load_explicit(&rows->row_total, memory_order_relaxed),
        .stubs = atomic_load_explicit(&rows->stub_total, memory_order_relaxed),
        .changes = atomic_load_explicit(&rows->change_total, memory_order_relaxed),
        .bytes = atomic_load_explicit(&rows->byte_total, memory_order_relaxed),
        .unfilled = atomic_load_explicit(&rows->unfilled_total, memory_order_relaxed),
    };
    tide_refusals_counts(&rows->refusals, ret_counts);
}
