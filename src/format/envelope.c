/*
 * Every frame of a snapshot:
 *
 *     {"kind":K,"snapshot_id":ID,"snapshot_at":T,"timestamp":T,"store":S,"seq":N<tail>}
 *      |------------------------- head -------------------------------|
 *
 * Keys stand in a fixed order; what does not apply is left out, never null.
 */
#include "format/envelope.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/status.h"
#include "format/json_writer.h"
#include "format/record.h"

#include <stdlib.h>

static void append_literal(struct tide_buf *buf, const char *text)
{
    tide_buf_append_str(buf, tide_str_from(text));
}

/* `lead` is all that stands before the number: comma, key, colon. */
static void append_number(struct tide_buf *buf, const char *lead, uint64_t value)
{
    append_literal(buf, lead);
    tide_buf_append_u64(buf, value);
}

static void append_number_unless_zero(struct tide_buf *buf, const char *lead, uint64_t value)
{
    if (value > 0) {
        append_number(buf, lead, value);
    }
}

static void append_time(struct tide_buf *buf, const char *lead, int64_t utc_us)
{
    append_literal(buf, lead);
    char *to = tide_buf_reserve(buf, TIDE_RFC3339_MS_LEN + 3);
    to[0] = '"';
    tide_rfc3339_ms(utc_us, to + 1);
    to[TIDE_RFC3339_MS_LEN + 1] = '"';
    buf->len += TIDE_RFC3339_MS_LEN + 2;
}

/* `[position,index]`, or null when there was no change yet. */
static void append_place(struct tide_buf *buf, const char *lead,
                         const struct tide_position_kind *kind, struct tide_place place)
{
    append_literal(buf, lead);
    if (!place.known) {
        append_literal(buf, "null");
        return;
    }
    tide_buf_append_char(buf, '[');
    kind->write(place.position, buf);
    append_number(buf, ",", place.index);
    tide_buf_append_char(buf, ']');
}

/* Up to and with `"seq":`. */
static void append_head(struct tide_buf *buf, const char *kind,
                        const struct tide_snapshot_part *part)
{
    append_literal(buf, "{\"kind\":\"");
    append_literal(buf, kind);
    append_literal(buf, "\",\"snapshot_id\":\"");
    tide_buf_append(buf, part->head.id, TIDE_UUID_LEN);
    append_time(buf, "\",\"snapshot_at\":", part->head.at_us);
    append_time(buf, ",\"timestamp\":", part->head.at_us);
    append_literal(buf, ",\"store\":");
    tide_json_append_string(buf, part->relation->store);
    append_literal(buf, ",\"seq\":");
}

static void append_starts(struct tide_buf *buf, const struct tide_snapshot_head *head)
{
    append_literal(buf, ",\"starts\":[");
    for (uint32_t i = 0; i < head->attempt; i++) {
        append_number(buf, i == 0 ? "" : ",", head->starts[i]);
    }
    tide_buf_append_char(buf, ']');
}

void tide_envelope_append_opening(struct tide_buf *buf, const struct tide_envelope_options *options,
                                  const struct tide_snapshot_part *part)
{
    bool is_resume = part->opening == TIDE_OPENING_RESUME;
    TIDE_ASSERT(part->opening != TIDE_OPENING_NONE);
    TIDE_ASSERT(is_resume == (part->head.attempt > 0));
    append_head(buf, is_resume ? "resume" : "begin", part);
    tide_buf_append_u64(buf, is_resume ? part->first_seq : 0);
    append_place(buf, ",\"changes_from\":", options->position_kind, part->changes_from);
    if (is_resume) {
        append_starts(buf, &part->head);
    }
    append_number_unless_zero(buf, ",\"incarnation\":", part->head.incarnation);
    append_number_unless_zero(buf, ",\"attempt\":", part->head.attempt);
    tide_buf_append_char(buf, '}');
}

void tide_envelope_append_end(struct tide_buf *buf, const struct tide_envelope_options *options,
                              const struct tide_snapshot_part *part)
{
    uint64_t row_count = part->first_seq + part->row_count;
    TIDE_ASSERT(part->completed_us >= part->head.at_us);
    append_head(buf, "end", part);
    tide_buf_append_u64(buf, row_count);
    append_number(buf, ",\"row_count\":", row_count);
    append_time(buf, ",\"completed_at\":", part->completed_us);
    append_place(buf, ",\"changes_to\":", options->position_kind, part->changes_to);
    if (part->head.attempt > 0) {
        append_starts(buf, &part->head);
    }
    append_number_unless_zero(buf, ",\"attempt\":", part->head.attempt);
    tide_buf_append_char(buf, '}');
}

void tide_envelope_rows_init(struct tide_envelope_rows *rows,
                             const struct tide_envelope_options *options,
                             const struct tide_snapshot_part *part)
{
    *rows = (struct tide_envelope_rows){.options = options, .part = part};
    append_head(&rows->text, "row", part);
    rows->head_len = rows->text.len;
    append_literal(&rows->text, ",\"position\":");
    options->position_kind->write(part->row_position, &rows->text);
    append_number_unless_zero(&rows->text, ",\"incarnation\":", part->head.incarnation);
    append_number_unless_zero(&rows->text, ",\"attempt\":", part->head.attempt);
    tide_buf_append_char(&rows->text, '}');
}

void tide_envelope_rows_done(struct tide_envelope_rows *rows)
{
    tide_buf_done(&rows->text);
    *rows = (struct tide_envelope_rows){0};
}

/* `[…]`; nothing when no key column has a value. */
static void append_key_array(struct tide_buf *buf, const struct tide_relation *relation,
                             const struct tide_value *key)
{
    size_t start = buf->len;
    tide_record_append_row_key(buf, relation, key);
    if (buf->len == start + 2) { /* "[]" */
        buf->len = start;
    }
}

/* Stubs are rare: this may allocate. */
static struct tide_value *key_of(const struct tide_relation *relation, const struct tide_value *row)
{
    struct tide_value *key = tide_alloc(relation->key_count, sizeof(*key));
    tide_relation_key_of(relation, row, key);
    return key;
}

void tide_envelope_append_row_key(struct tide_buf *buf, const struct tide_relation *relation,
                                  const struct tide_value *row)
{
    TIDE_CLEANUP(tide_free_ptr) struct tide_value *key = key_of(relation, row);
    append_key_array(buf, relation, key);
}

void tide_envelope_append_stub(struct tide_buf *buf, const struct tide_snapshot_part *part,
                               uint64_t seq, uint64_t bytes, const struct tide_value *key)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf array = {0};
    append_head(buf, "oversize", part);
    tide_buf_append_u64(buf, seq);
    append_number(buf, ",\"bytes\":", bytes);
    if (key != NULL) {
        append_key_array(&array, part->relation, key);
    }
    if (array.len > 0) {
        append_literal(buf, ",\"row_key\":");
        tide_json_append_string(buf, tide_buf_str(&array)); /* a string that holds the array */
    }
    append_number_unless_zero(buf, ",\"attempt\":", part->head.attempt);
    tide_buf_append_char(buf, '}');
}

static void append_stub_of_row(struct tide_buf *buf, const struct tide_snapshot_part *part,
                               size_t index, size_t record_len)
{
    TIDE_CLEANUP(tide_free_ptr)
    struct tide_value *key = key_of(part->relation, part->rows[index]);
    tide_envelope_append_stub(buf, part, part->first_seq + index, record_len, key);
}

/*
 * Whether what was written from `record_start` on is over the limit: then it is copied for the dead
 * letter and the buffer is cut back to `keep`.
 */
static bool take_back_oversize(struct tide_buf *buf, const struct tide_envelope_options *options,
                               size_t record_start, size_t keep, size_t *ret_oversize,
                               struct tide_buf *record_copy)
{
    size_t len = buf->len - record_start;
    *ret_oversize = 0;
    if (TIDE_LIKELY(len <= options->record_bytes_max)) {
        return false;
    }
    *ret_oversize = len;
    if (record_copy != NULL) {
        tide_buf_append(record_copy, buf->ptr + record_start, len);
    }
    buf->len = keep;
    return true;
}

void tide_envelope_rows_append(struct tide_buf *buf, const struct tide_envelope_rows *rows,
                               size_t index, size_t *ret_oversize, struct tide_buf *record_copy)
{
    const struct tide_snapshot_part *part = rows->part;
    TIDE_ASSERT(index < part->row_count);
    TIDE_ASSERT(buf != record_copy);
    size_t frame_start = buf->len;
    tide_buf_append(buf, rows->text.ptr, rows->head_len);
    tide_buf_append_u64(buf, part->first_seq + index);
    tide_buf_append_str(buf, TIDE_STR(",\"record\":"));
    size_t record_start = buf->len;
    tide_record_append(buf, part->relation, part->rows[index]);
    if (take_back_oversize(buf, rows->options, record_start, frame_start, ret_oversize,
                           record_copy)) {
        append_stub_of_row(buf, part, index, *ret_oversize);
        return;
    }
    tide_buf_append(buf, rows->text.ptr + rows->head_len, rows->text.len - rows->head_len);
}

/* Up to and with `prev` and `tx`. */
static void append_change_head(struct tide_buf *buf, const struct tide_position_kind *kind,
                               const struct tide_change *change)
{
    append_literal(buf, "{\"kind\":\"change\",\"op\":\"");
    append_literal(buf, tide_op_name(change->op));
    append_time(buf, "\",\"timestamp\":", change->commit_us);
    append_literal(buf, ",\"store\":");
    tide_json_append_string(buf, change->relation->store);
    append_literal(buf, ",\"position\":");
    kind->write(change->place.position, buf);
    append_number(buf, ",\"index\":", change->place.index);
    append_place(buf, ",\"prev\":", kind, change->prev);
    if (change->tx.len > 0) {
        append_literal(buf, ",\"tx\":");
        tide_json_append_string(buf, change->tx);
    }
}

static void append_key_as(struct tide_buf *buf, const char *lead, const struct tide_change *change,
                          const struct tide_value *key)
{
    if (key != NULL) {
        append_literal(buf, lead);
        tide_record_append_key(buf, change->relation, key);
    }
}

static void append_change_record(struct tide_buf *buf, const struct tide_envelope_options *options,
                                 const struct tide_change *change, size_t *ret_oversize,
                                 struct tide_buf *record_copy)
{
    size_t keep = buf->len;
    append_literal(buf, ",\"record\":");
    size_t record_start = buf->len;
    tide_record_append(buf, change->relation, change->values);
    if (take_back_oversize(buf, options, record_start, keep, ret_oversize, record_copy)) {
        append_number(buf, ",\"oversize\":", *ret_oversize);
    }
}

static void append_before(struct tide_buf *buf, const struct tide_envelope_options *options,
                          const struct tide_change *change)
{
    size_t keep = buf->len;
    append_literal(buf, ",\"before\":");
    size_t record_start = buf->len;
    tide_record_append(buf, change->relation, change->before);
    if (buf->len - record_start > options->record_bytes_max) {
        buf->len = keep;
    }
}

/* The names of the columns whose value the source did not send. */
static void append_unchanged(struct tide_buf *buf, const struct tide_change *change)
{
    const char *lead = ",\"unchanged\":[";
    for (size_t i = 0; i < change->relation->column_count; i++) {
        if (change->values[i].kind == TIDE_VALUE_UNCHANGED) {
            append_literal(buf, lead);
            tide_json_append_string(buf, change->relation->columns[i].name);
            lead = ",";
        }
    }
    if (lead[1] == '\0') {
        tide_buf_append_char(buf, ']');
    }
}

static void append_change_end(struct tide_buf *buf, const struct tide_envelope_options *options)
{
    append_number_unless_zero(buf, ",\"incarnation\":", options->incarnation);
    tide_buf_append_char(buf, '}');
}

static void append_change_start(struct tide_buf *buf, const struct tide_envelope_options *options,
                                const struct tide_change *change)
{
    append_change_head(buf, options->position_kind, change);
    append_key_as(buf, ",\"key\":", change, change->key);
    append_key_as(buf, ",\"moved_from\":", change, change->moved_from);
}

void tide_envelope_append_oversize_change(struct tide_buf *buf,
                                          const struct tide_envelope_options *options,
                                          const struct tide_change *change, uint64_t bytes)
{
    TIDE_ASSERT(change->place.known && change->values == NULL);
    append_change_start(buf, options, change);
    append_number(buf, ",\"oversize\":", bytes);
    append_change_end(buf, options);
}

void tide_envelope_append_change(struct tide_buf *buf, const struct tide_envelope_options *options,
                                 const struct tide_change *change, size_t *ret_oversize,
                                 struct tide_buf *record_copy)
{
    bool is_gone = change->op == TIDE_OP_DELETE || change->op == TIDE_OP_TRUNCATE;
    TIDE_ASSERT(change->place.known);
    TIDE_ASSERT(is_gone == (change->values == NULL));
    TIDE_ASSERT(change->op != TIDE_OP_TRUNCATE || change->key == NULL);
    TIDE_ASSERT(buf != record_copy);
    *ret_oversize = 0;
    append_change_start(buf, options, change);
    if (change->values != NULL) {
        append_change_record(buf, options, change, ret_oversize, record_copy);
    }
    if (change->before != NULL) {
        append_before(buf, options, change);
    }
    if (change->values != NULL && change->is_partial) {
        append_unchanged(buf, change);
    }
    append_change_end(buf, options);
}
