#include "sink/archive/archive_recall.h"

#include "archive/caller_rows.h"
#include "archive/change_encoder.h"
#include "archive/change_row.h"
#include "archive/scan.h"
#include "archive/tail.h"

#define CACHE_KIB 4096

struct recall {
    struct tide_archive_fill *fill;
    const struct tide_relation *relation;
    tide_str columns;
    struct tide_arena arena; /* caller rows */
    struct tide_arena row;
    struct tide_archive_caller_row *notes;
    size_t note_count;
    size_t note;  /* the next one */
    bool is_same; /* the columns in force are the relation's */
};

static void recall_done(struct recall *recall)
{
    tide_arena_done(&recall->arena);
    tide_arena_done(&recall->row);
}

static void take_snapshot_row(struct recall *recall, const struct tide_change_row *row)
{
    const struct tide_relation *relation = recall->relation;
    struct tide_value *key = tide_arena_alloc(&recall->row, relation->key_count, sizeof(*key));
    tide_relation_key_of(relation, row->values, key);
    tide_archive_fill_note(recall->fill, relation, key, row->values);
}

static void take_change(struct recall *recall, const struct tide_change_row *row)
{
    bool is_whole = true;
    const struct tide_change change = {
        .op = row->op,
        .is_partial = true,
        .relation = recall->relation,
        .key = row->key,
        .moved_from = row->moved_from,
        .values = row->values,
    };
    const struct tide_value *values =
        tide_archive_fill_values(recall->fill, &change, &recall->row, &is_whole);
    tide_archive_fill_change(recall->fill, &change, values);
}

static tide_status take(void *context, int64_t ts, tide_str bytes, struct tide_error *err)
{
    struct recall *recall = context;
    struct tide_change_row row;
    for (; recall->note < recall->note_count && recall->notes[recall->note].ts <= ts;
         recall->note++) {
        recall->is_same = tide_str_equal(recall->notes[recall->note].bytes, recall->columns);
    }
    if (!recall->is_same) {
        tide_archive_fill_forget_table(recall->fill, recall->relation);
        return TIDE_OK;
    }
    tide_arena_reset(&recall->row);
    TIDE_TRY(tide_change_row_decode(bytes, recall->relation->column_count,
                                    recall->relation->key_count, &recall->row, &row, err));
    if (row.kind == TIDE_ROW_SNAPSHOT) {
        take_snapshot_row(recall, &row);
    } else if (row.kind == TIDE_ROW_CHANGE) {
        take_change(recall, &row);
    } else if (row.kind == TIDE_ROW_STUB && row.key != NULL) {
        tide_archive_fill_forget(recall->fill, recall->relation, row.key);
    }
    return TIDE_OK;
}

tide_status tide_archive_recall(const char *path, int64_t source, tide_str series,
                                const struct tide_relation *relation, tide_str columns,
                                struct tide_archive_fill *fill, struct tide_error *err)
{
    TIDE_CLEANUP(tide_archive_close_ptr) struct tide_archive *archive = NULL;
    TIDE_CLEANUP(recall_done)
    struct recall recall = {.fill = fill, .relation = relation, .columns = columns};
    const struct tide_archive_range range = {
        .source = source, .series = series, .start_ts = INT64_MIN, .end_ts = INT64_MAX};
    const struct tide_archive_row_taker taker = {.take = take, .context = &recall};
    if (relation->key_count == 0) {
        return TIDE_OK;
    }
    TIDE_TRY(tide_archive_open(path, TIDE_ARCHIVE_READ, &archive, err));
    TIDE_TRY(tide_archive_set_cache(archive, CACHE_KIB, err)); /* each page is read once */
    TIDE_TRY(tide_archive_caller_rows_read(archive, source, series, INT64_MIN, INT64_MAX,
                                           &recall.arena, &recall.notes, &recall.note_count, err));
    return tide_archive_rows_read(archive, &range, &tide_change_encoder, &taker, err);
}
