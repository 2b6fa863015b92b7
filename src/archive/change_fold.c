#include "archive/change_fold.h"

#include "archive/change_order.h"
#include "archive/change_reach.h"
#include "archive/change_state.h"
#include "base/alloc.h"
#include "base/attr.h"
#include "base/buf.h"

#include <stdlib.h>

struct tide_change_fold {
    struct tide_change_moment moment;
    const struct tide_change_snapshot *base;
    struct tide_arena arena; /* versions */
    struct tide_change_version *versions;
    size_t version_count;
    size_t next_version; /* of the rows that are given */
    size_t row_version;  /* of the last one that was, with is_begun */
    bool is_begun;
    size_t version; /* of the newest row that counted */
    bool has_version;
    struct tide_change_rows rows;
    struct tide_change_place truncated;
    bool has_ended;
    struct tide_change_reach reach;
    struct tide_arena row_arena; /* of a key that is put together */
    struct tide_buf key;
    struct tide_buf old_key;
    struct tide_buf values; /* struct tide_value, of one row; likewise */
    struct tide_buf older;
    struct tide_buf key_values;
    uint32_t *sorted; /* numbers of the rows that are the state */
    size_t sorted_count;
    size_t next;
};

tide_status tide_change_fold_new(const struct tide_change_history *history,
                                 const struct tide_change_moment *moment,
                                 struct tide_change_fold **ret_fold, struct tide_error *err)
{
    const struct tide_change_snapshot *base = NULL;
    TIDE_TRY(tide_change_history_base(history, moment, &base, err));
    struct tide_change_fold *fold = tide_alloc(1, sizeof(*fold));
    fold->moment = *moment;
    fold->moment.place.place.known = true;
    fold->moment.place.place.index = TIDE_INDEX_AFTER_ALL;
    fold->base = base;
    fold->reach.moment = fold->moment;
    fold->reach.base = base;
    fold->reach.doubts.has_keyless_stub = base->has_keyless_stub;
    *ret_fold = fold;
    return TIDE_OK;
}

void tide_change_fold_free(struct tide_change_fold *fold)
{
    if (fold == NULL) {
        return;
    }
    tide_change_rows_done(&fold->rows);
    tide_arena_done(&fold->arena);
    tide_arena_done(&fold->row_arena);
    tide_buf_done(&fold->key);
    tide_buf_done(&fold->old_key);
    tide_buf_done(&fold->values);
    tide_buf_done(&fold->older);
    tide_buf_done(&fold->key_values);
    free(fold->versions);
    free(fold->sorted);
    free(fold);
}

void tide_change_fold_free_ptr(struct tide_change_fold **fold)
{
    tide_change_fold_free(*fold);
    *fold = NULL;
}

int64_t tide_change_fold_start(const struct tide_change_fold *fold)
{
    return fold->base->begin_ts;
}

tide_status tide_change_fold_set_schema(struct tide_change_fold *fold, tide_str json,
                                        struct tide_error *err)
{
    struct tide_change_version version = {0};
    for (size_t i = 0; i < fold->version_count; i++) {
        if (tide_str_equal(fold->versions[i].json, json)) {
            fold->next_version = i;
            return TIDE_OK;
        }
    }
    version.json = tide_arena_str(&fold->arena, json);
    TIDE_TRY(tide_change_schema_decode(version.json, &fold->arena, &version.schema, err));
    if (version.schema.key_count == 0) {
        return tide_fail(err, TIDE_UNSUPPORTED,
                         "table %.*s has no key to match its rows by: only its rows and changes "
                         "can be read, not a state of it",
                         TIDE_STR_ARG(version.schema.store));
    }
    tide_change_version_mark_key(&version, &fold->arena);
    fold->versions = tide_realloc(fold->versions, fold->version_count + 1, sizeof(*fold->versions));
    fold->versions[fold->version_count] = version;
    fold->next_version = fold->version_count++;
    return TIDE_OK;
}

static tide_str key_name(const struct tide_change_schema *schema, size_t i)
{
    return schema->columns[schema->key_columns[i]].name;
}

static bool has_same_key(const struct tide_change_schema *a, const struct tide_change_schema *b)
{
    if (a->key_count != b->key_count) {
        return false;
    }
    for (size_t i = 0; i < a->key_count; i++) {
        if (!tide_str_equal(key_name(a, i), key_name(b, i))) {
            return false;
        }
    }
    return true;
}

/* The columns of a row that counts become those of the state. */
static tide_status take_version(struct tide_change_fold *fold, struct tide_error *err)
{
    TIDE_ASSERT(fold->version_count > 0 && fold->sorted == NULL);
    const struct tide_change_version *newest = &fold->versions[fold->next_version];
    if (fold->has_version && fold->version == fold->next_version) {
        return TIDE_OK;
    }
    if (fold->has_version &&
        !has_same_key(&fold->versions[fold->version].schema, &newest->schema)) {
        return tide_fail(err, TIDE_UNSUPPORTED,
                         "the key of table %.*s has changed since its last complete copy: its "
                         "state can be rebuilt as of moments before that, or after the next copy",
                         TIDE_STR_ARG(newest->schema.store));
    }
    fold->version = fold->next_version;
    fold->has_version = true;
    for (size_t i = 0; i < fold->version_count; i++) {
        tide_change_version_place(&fold->versions[i], newest, &fold->arena);
    }
    return TIDE_OK;
}

static const struct tide_change_schema *schema_of(const struct tide_change_fold *fold)
{
    return &fold->versions[fold->version].schema;
}

/* Valid until a row is held. */
static struct tide_change_held *held_of(struct tide_change_fold *fold, tide_str key)
{
    size_t number = tide_change_rows_find(&fold->rows, key);
    return number == TIDE_CHANGE_NO_ROW ? NULL : &fold->rows.items[number];
}

static bool is_live(const struct tide_change_fold *fold, const struct tide_change_held *held)
{
    return held != NULL && !held->is_deleted &&
           tide_change_place_compare(held->place, fold->truncated) > 0;
}

/* Whether a row or change of that place counts for the key. */
static bool is_past(const struct tide_change_fold *fold, const struct tide_change_held *held,
                    struct tide_change_place place)
{
    return tide_change_place_compare(place, fold->truncated) > 0 &&
           (held == NULL || tide_change_place_compare(place, held->place) > 0);
}

static struct tide_change_place place_of(const struct tide_change_row *row)
{
    return (struct tide_change_place){row->incarnation, row->place};
}

static tide_str encode_key(struct tide_buf *buf, const struct tide_value *key, size_t count)
{
    tide_buf_reset(buf);
    tide_values_encode(buf, key, count);
    return tide_buf_str(buf);
}

/* Puts what is to be held in place of what was. */
static struct tide_change_held *hold(struct tide_change_fold *fold, tide_str key,
                                     const struct tide_value *values,
                                     const struct tide_change_row *row)
{
    const struct tide_change_version *version = &fold->versions[fold->version];
    size_t number = tide_change_rows_put(&fold->rows, key, version, values);
    struct tide_change_held *held = &fold->rows.items[number];
    held->place = place_of(row);
    held->bytes = 0;
    held->version = (uint32_t)fold->version;
    held->is_change = row->kind == TIDE_ROW_CHANGE;
    held->is_deleted = held->is_stale = false;
    held->is_seen = held->is_seen || !held->is_change;
    return held;
}

static void hold_deleted(struct tide_change_fold *fold, tide_str encoded,
                         const struct tide_change_row *row)
{
    hold(fold, encoded, NULL, row)->is_deleted = true;
}

static struct tide_value *room_for(struct tide_buf *buf, size_t count)
{
    tide_buf_reset(buf);
    return (struct tide_value *)(void *)tide_buf_reserve(buf, count * sizeof(struct tide_value));
}

/* The values of a row in the newest columns, those of its key replaced; NULL when there are none.
 */
static const struct tide_value *old_values(struct tide_change_fold *fold,
                                           const struct tide_change_held *held,
                                           const struct tide_value *key)
{
    const struct tide_change_schema *schema = schema_of(fold);
    if (held == NULL || !held->has_values) {
        return NULL;
    }
    const struct tide_change_version *version = &fold->versions[held->version];
    struct tide_value *values = room_for(&fold->values, schema->column_count);
    if (version->is_newest) {
        tide_change_held_read(held, version, values);
    } else {
        struct tide_value *older = room_for(&fold->older, version->schema.column_count);
        tide_change_held_read(held, version, older);
        for (size_t i = 0; i < schema->column_count; i++) {
            uint32_t at = version->places[i];
            bool is_there = at != TIDE_CHANGE_NO_PLACE && !version->is_key[at];
            values[i] = is_there ? older[at] : (struct tide_value){.kind = TIDE_VALUE_ABSENT};
        }
    }
    for (size_t i = 0; i < schema->key_count; i++) {
        values[schema->key_columns[i]] = key[i];
    }
    return values;
}

static bool has_unsent(const struct tide_change_row *row, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (row->values[i].kind == TIDE_VALUE_UNCHANGED) {
            return true;
        }
    }
    return false;
}

/* The row's values, those that were not sent from the row that is held. */
static const struct tide_value *new_values(struct tide_change_fold *fold,
                                           const struct tide_change_held *held,
                                           const struct tide_value *key,
                                           const struct tide_change_row *row)
{
    size_t count = schema_of(fold)->column_count;
    const struct tide_value *old = has_unsent(row, count) ? old_values(fold, held, key) : NULL;
    if (old == NULL) {
        return row->values;
    }
    struct tide_value *values = (struct tide_value *)(void *)fold->values.ptr;
    for (size_t i = 0; i < count; i++) {
        if (row->values[i].kind != TIDE_VALUE_UNCHANGED) {
            values[i] = row->values[i];
        }
    }
    return values;
}

/* Holds the new row; `from` is the row that it was, or NULL. */
static void upsert(struct tide_change_fold *fold, tide_str encoded, const struct tide_value *key,
                   const struct tide_change_held *from, const struct tide_change_row *row)
{
    bool is_too_long = row->values == NULL;
    bool is_stale = is_too_long;
    uint64_t bytes = row->bytes;
    if (!is_too_long && from != NULL && from->is_stale &&
        has_unsent(row, schema_of(fold)->column_count)) {
        is_stale = true; /* what was not sent may be older */
        bytes = from->bytes;
    }
    const struct tide_value *values =
        is_too_long ? old_values(fold, from, key) : new_values(fold, from, key, row);
    struct tide_change_held *held = hold(fold, encoded, values, row);
    held->is_stale = is_stale;
    held->bytes = bytes;
}

static void take_upsert(struct tide_change_fold *fold, const struct tide_change_row *row)
{
    size_t key_count = schema_of(fold)->key_count;
    tide_str key = encode_key(&fold->key, row->key, key_count);
    const struct tide_change_held *held = held_of(fold, key);
    const struct tide_change_held *from = held;
    tide_str old_key = key;
    bool is_moved = false;
    if (row->moved_from != NULL) {
        old_key = encode_key(&fold->old_key, row->moved_from, key_count);
        is_moved = !tide_str_equal(key, old_key);
        from = held_of(fold, old_key);
    }
    bool is_from_older = is_past(fold, from, place_of(row));
    if (is_past(fold, held, place_of(row))) {
        upsert(fold, key, row->key, is_live(fold, from) && is_from_older ? from : NULL, row);
    }
    if (is_moved && is_from_older) {
        hold_deleted(fold, old_key, row);
    }
}

static void take_delete(struct tide_change_fold *fold, const struct tide_change_row *row)
{
    tide_str key = encode_key(&fold->key, row->key, schema_of(fold)->key_count);
    if (is_past(fold, held_of(fold, key), place_of(row))) {
        hold_deleted(fold, key, row);
    }
}

static bool is_by_moment(const struct tide_change_fold *fold, const struct tide_change_row *row)
{
    return fold->moment.is_position
               ? tide_change_place_compare(place_of(row), fold->moment.place) <= 0
               : row->commit_us <= fold->moment.utc_us;
}

static tide_status take_change(struct tide_change_fold *fold, const struct tide_change_row *row,
                               struct tide_error *err)
{
    TIDE_TRY(take_version(fold, err));
    if (row->op == TIDE_OP_TRUNCATE) {
        if (tide_change_place_compare(place_of(row), fold->truncated) > 0) {
            fold->truncated = place_of(row);
        }
    } else if (row->op == TIDE_OP_DELETE) {
        take_delete(fold, row);
    } else {
        take_upsert(fold, row);
    }
    return TIDE_OK;
}

/* A row or stub of the snapshot. */
static void take_row(struct tide_change_fold *fold, const struct tide_change_row *row)
{
    const struct tide_change_schema *schema = schema_of(fold);
    const struct tide_value *key = row->key;
    if (row->kind == TIDE_ROW_SNAPSHOT) {
        struct tide_value *values =
            tide_arena_alloc(&fold->row_arena, schema->key_count, sizeof(*values));
        for (size_t i = 0; i < schema->key_count; i++) {
            values[i] = row->values[schema->key_columns[i]];
        }
        key = values;
    }
    if (key == NULL) {
        return;
    }
    tide_str encoded = encode_key(&fold->key, key, schema->key_count);
    struct tide_change_held *held = held_of(fold, encoded);
    if (held != NULL) {
        held->is_seen = true;
    }
    if (is_past(fold, held, place_of(row))) {
        upsert(fold, encoded, key, is_live(fold, held) ? held : NULL, row);
    }
}

/* Removes what the table no longer had and no change has brought since. */
static void take_end(struct tide_change_fold *fold)
{
    if (fold->has_ended || fold->base->has_keyless_stub) {
        return;
    }
    fold->has_ended = true;
    for (size_t i = 0; i < fold->rows.count; i++) {
        struct tide_change_held *held = &fold->rows.items[i];
        bool is_newer =
            held->is_change && tide_change_place_compare(held->place, fold->base->changes_from) > 0;
        held->is_deleted = held->is_deleted || (!held->is_seen && !is_newer);
    }
}

tide_status tide_change_fold_add(struct tide_change_fold *fold, const struct tide_change_row *row,
                                 struct tide_error *err)
{
    bool is_change = row->kind == TIDE_ROW_CHANGE;
    bool counts = is_change && is_by_moment(fold, row);
    bool is_reformed = fold->is_begun && fold->row_version != fold->next_version;
    tide_change_reach_take(&fold->reach, row, counts, is_reformed);
    fold->row_version = fold->next_version;
    fold->is_begun = true;
    if (is_change) {
        return counts ? take_change(fold, row, err) : TIDE_OK;
    }
    if (strcmp(row->snapshot_id, fold->base->id) != 0) {
        return TIDE_OK;
    }
    bool is_row = row->kind == TIDE_ROW_SNAPSHOT || row->kind == TIDE_ROW_STUB;
    if (is_row && !tide_change_snapshot_voids(fold->base, row)) {
        TIDE_TRY(take_version(fold, err));
        tide_arena_reset(&fold->row_arena);
        take_row(fold, row);
    } else if (row->kind == TIDE_ROW_END && row->attempt == fold->base->attempt) {
        take_end(fold);
    }
    return TIDE_OK;
}

static void sort(struct tide_change_fold *fold)
{
    fold->sorted = tide_alloc(fold->rows.count + 1, sizeof(*fold->sorted));
    for (size_t i = 0; i < fold->rows.count; i++) {
        if (is_live(fold, &fold->rows.items[i])) {
            fold->sorted[fold->sorted_count++] = (uint32_t)i;
        }
    }
    tide_change_order(&fold->rows, fold->sorted, fold->sorted_count);
}

bool tide_change_fold_next(struct tide_change_fold *fold, struct tide_change_state *ret_row)
{
    if (fold->sorted == NULL) {
        sort(fold);
    }
    if (fold->next == fold->sorted_count) {
        return false;
    }
    const struct tide_change_held *held = &fold->rows.items[fold->sorted[fold->next++]];
    size_t key_count = schema_of(fold)->key_count;
    struct tide_value *key = room_for(&fold->key_values, key_count);
    tide_change_held_read_key(held, key, key_count);
    *ret_row = (struct tide_change_state){
        .key = key,
        .values = old_values(fold, held, key),
        .is_stale = held->is_stale,
        .bytes = held->bytes,
        .place = held->place,
    };
    return true;
}

void tide_change_fold_rewind(struct tide_change_fold *fold)
{
    fold->next = 0;
}

const struct tide_change_schema *tide_change_fold_schema(const struct tide_change_fold *fold)
{
    return fold->has_version ? schema_of(fold) : NULL;
}

struct tide_change_doubts tide_change_fold_doubts(const struct tide_change_fold *fold)
{
    return tide_change_reach_doubts(&fold->reach);
}
