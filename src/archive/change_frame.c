#include "archive/change_frame.h"

static bool has_unchanged(const struct tide_change_seen *seen)
{
    size_t count = seen->row.values == NULL ? 0 : seen->columns->schema.column_count;
    for (size_t i = 0; i < count; i++) {
        if (seen->row.values[i].kind == TIDE_VALUE_UNCHANGED) {
            return true;
        }
    }
    return false;
}

static void append_change(const struct tide_envelope_options *options,
                          const struct tide_change_seen *seen, struct tide_buf *buf)
{
    static const struct tide_value no_key;
    const struct tide_change_row *row = &seen->row;
    bool has_no_key = row->key == NULL && row->op != TIDE_OP_TRUNCATE; /* then the key is empty */
    struct tide_change change = {
        .op = row->op,
        .is_partial = has_unchanged(seen),
        .relation = &seen->columns->relation,
        .place = row->place,
        .prev = row->prev,
        .commit_us = row->commit_us,
        .tx = row->tx,
        .key = has_no_key ? &no_key : row->key,
        .moved_from = row->moved_from,
        .values = row->values,
    };
    size_t oversize = 0;
    if (row->bytes > 0) {
        tide_envelope_append_oversize_change(buf, options, &change, row->bytes);
    } else {
        tide_envelope_append_change(buf, options, &change, &oversize, NULL);
    }
}

/* The milliseconds that a UUIDv7 begins with, in microseconds; 0 of another UUID. */
static int64_t instant_of(const char *id)
{
    static const char digits[] = "0123456789abcdef";
    uint64_t ms = 0;
    for (size_t i = 0; i < 13; i++) {
        const char *digit = id[i] == '\0' ? NULL : strchr(digits, id[i]);
        if (digit == NULL && i != 8) {
            return 0;
        }
        ms = i == 8 ? ms : ms << 4 | (uint64_t)(digit - digits); /* passing over the hyphen */
    }
    return id[14] == '7' ? (int64_t)ms * 1000 : 0;
}

static void remember(struct tide_change_framer *framer, const struct tide_change_row *row)
{
    bool is_opening = row->kind == TIDE_ROW_BEGIN || row->kind == TIDE_ROW_RESUME;
    if (is_opening || strcmp(framer->snapshot_id, row->snapshot_id) != 0) {
        memcpy(framer->snapshot_id, row->snapshot_id, sizeof(framer->snapshot_id));
        framer->at_us = is_opening ? row->commit_us : instant_of(row->snapshot_id);
    }
}

static struct tide_snapshot_part part_of(const struct tide_change_framer *framer,
                                         const struct tide_change_seen *seen)
{
    const struct tide_change_row *row = &seen->row;
    struct tide_snapshot_part part = {
        .relation = &seen->columns->relation,
        .head = {.at_us = framer->at_us,
                 .attempt = row->attempt,
                 .starts = row->starts,
                 .incarnation = row->incarnation},
        .changes_from = row->place,
        .first_seq = row->seq,
        .row_position = row->place.position,
        .completed_us = row->commit_us,
        .changes_to = row->place,
    };
    memcpy(part.head.id, row->snapshot_id, sizeof(part.head.id));
    return part;
}

static void append_row(const struct tide_envelope_options *options,
                       const struct tide_snapshot_part *part, const struct tide_value *values,
                       struct tide_buf *buf)
{
    TIDE_CLEANUP(tide_envelope_rows_done) struct tide_envelope_rows rows = {0};
    struct tide_snapshot_part of_one = *part;
    size_t oversize = 0;
    of_one.rows = &values;
    of_one.row_count = 1;
    tide_envelope_rows_init(&rows, options, &of_one);
    tide_envelope_rows_append(buf, &rows, 0, &oversize, NULL);
}

static tide_status append_snapshot(struct tide_change_framer *framer,
                                   const struct tide_envelope_options *options,
                                   const struct tide_change_seen *seen, struct tide_buf *buf,
                                   struct tide_error *err)
{
    const struct tide_change_row *row = &seen->row;
    remember(framer, row);
    struct tide_snapshot_part part = part_of(framer, seen);
    switch (row->kind) {
    case TIDE_ROW_SNAPSHOT:
        append_row(options, &part, row->values, buf);
        return TIDE_OK;
    case TIDE_ROW_STUB:
        tide_envelope_append_stub(buf, &part, row->seq, row->bytes, row->key);
        return TIDE_OK;
    case TIDE_ROW_BEGIN:
    case TIDE_ROW_RESUME:
        if ((row->kind == TIDE_ROW_RESUME) != (row->attempt > 0)) {
            return tide_fail(err, TIDE_CORRUPT, "a begin or resume is of a wrong attempt");
        }
        part.opening = row->attempt > 0 ? TIDE_OPENING_RESUME : TIDE_OPENING_BEGIN;
        tide_envelope_append_opening(buf, options, &part);
        return TIDE_OK;
    case TIDE_ROW_CHANGE:
    case TIDE_ROW_END:
    default:
        break;
    }
    if (row->commit_us < framer->at_us) {
        return tide_fail(err, TIDE_CORRUPT, "a snapshot ends before it begins");
    }
    tide_envelope_append_end(buf, options, &part);
    return TIDE_OK;
}

tide_status tide_change_frame_append(struct tide_change_framer *framer,
                                     const struct tide_change_seen *seen, struct tide_buf *buf,
                                     struct tide_error *err)
{
    const struct tide_envelope_options options = {
        .position_kind = seen->columns->position_kind,
        .record_bytes_max = SIZE_MAX,
        .incarnation = seen->row.incarnation,
    };
    if (options.position_kind == NULL) {
        return tide_fail(err, TIDE_UNSUPPORTED,
                         "positions of kind \"%.*s\" are not known to this program",
                         TIDE_STR_ARG(seen->columns->schema.position_kind));
    }
    if (seen->row.kind == TIDE_ROW_CHANGE) {
        append_change(&options, seen, buf);
        return TIDE_OK;
    }
    return append_snapshot(framer, &options, seen, buf, err);
}
