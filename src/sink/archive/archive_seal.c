#include "sink/archive/archive_seal.h"

#include "base/clock.h"

#define AGAIN_US INT64_C(10000000)

void tide_archive_sealer_init(struct tide_archive_sealer *sealer,
                              const struct tide_sink_segments *segments)
{
    *sealer = (struct tide_archive_sealer){.policy = tide_archive_seal_policy_default};
    if (segments->rows_max > 0) {
        sealer->policy.rows_max = (int64_t)segments->rows_max;
    }
    if (segments->bytes_max > 0) {
        sealer->policy.bytes_max = (int64_t)segments->bytes_max;
    }
}

/*
 * Columns stand where each segment begins, so that forgetting what is older takes none that are
 * needed. What is left in the tail gets them at once, unless some of it has other columns: those
 * stand before it already.
 */
static tide_status note_rest(struct tide_archive_rows *rows, struct tide_archive_table *table,
                             struct tide_error *err)
{
    struct tide_archive_series_state state;
    tide_archive_series_state(table->series, &state);
    table->needs_note = state.live_rows == 0;
    if (state.live_rows == 0 || !table->is_noted || table->is_changed ||
        state.oldest_live_ts <= table->columns_from) {
        return TIDE_OK;
    }
    const struct tide_archive_note note = {
        .series = table->series,
        .ts = state.oldest_live_ts,
        .bytes = tide_buf_str(&table->columns),
    };
    return tide_archive_write(rows->writer,
                              &(struct tide_archive_tick){.notes = &note, .note_count = 1}, err);
}

static bool is_due(const struct tide_archive_table *table,
                   const struct tide_archive_seal_policy *policy, bool is_all)
{
    struct tide_archive_series_state state;
    tide_archive_series_state(table->series, &state);
    return is_all ? state.live_rows > 0
                  : tide_archive_series_is_due(table->series, policy, state.newest_ts);
}

static tide_status seal_table(struct tide_archive_sealer *sealer, struct tide_archive_rows *rows,
                              struct tide_archive_table *table, bool is_all, struct tide_error *err)
{
    struct tide_archive_seal_counts counts = {.segments = 1};
    while (counts.segments > 0 && is_due(table, &sealer->policy, is_all)) {
        TIDE_TRY(tide_archive_seal(rows->writer, &table->series, 1, &sealer->policy, &counts, err));
        TIDE_TRY(note_rest(rows, table, err));
    }
    table->is_touched = false;
    return TIDE_OK;
}

tide_status tide_archive_seal_tables(struct tide_archive_sealer *sealer,
                                     struct tide_archive_rows *rows, bool is_all,
                                     struct tide_error *err)
{
    if (!is_all && tide_clock_monotonic_us() < sealer->wait_until_us) {
        return TIDE_OK;
    }
    for (size_t i = 0; i < rows->table_count; i++) {
        struct tide_archive_table *table = rows->tables[i];
        if (!is_all && !table->is_touched) {
            continue;
        }
        tide_status status = seal_table(sealer, rows, table, is_all, err);
        if (status != TIDE_OK && (err->retriable || status == TIDE_TIMEOUT)) {
            sealer->wait_until_us = tide_clock_deadline_us(AGAIN_US);
            return TIDE_OK;
        }
        TIDE_TRY(status);
    }
    return TIDE_OK;
}
