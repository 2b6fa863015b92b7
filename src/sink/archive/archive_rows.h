/*
 * Batches as rows of an archive, gathered until they are written together: a series for each
 * table, rows of change_row.h, and before the first row of a table, and wherever its columns
 * change, its columns as a caller row. One sink thread uses it; counts may be read by others.
 */
#pragma once

#include "archive/writer.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/map.h"
#include "port/progress.h"
#include "port/refusals.h"
#include "port/sink.h"
#include "sink/archive/archive_fill.h"
#include "sink/archive/archive_tables.h"
#include "sink/archive/archive_target.h"

#include <stdatomic.h>

/* A longer record is refused, whatever the option says: a row and a segment have to hold it. */
#define TIDE_ARCHIVE_RECORD_BYTES_MAX (256 * TIDE_MIB)

/* A caller row that waits. */
struct tide_archive_pending_note {
    struct tide_archive_table *table;
    size_t row; /* which it stands before */
    size_t size;
    bool is_changed;
};

struct tide_archive_rows {
    const char *path; /* of the archive; borrowed */
    struct tide_archive_writer *writer;
    int64_t source;
    const struct tide_position_kind *position_kind;
    uint32_t incarnation;
    size_t record_bytes_max;
    struct tide_refusals refusals;
    bool fills; /* what was not sent */
    struct tide_archive_fill fill;
    /* tables */
    struct tide_map by_store;
    struct tide_archive_table **tables;
    size_t table_count;
    struct tide_archive_table *last; /* changes come in runs */
    /* what waits: rows whose bytes follow one another in `bytes`, notes likewise */
    struct tide_archive_row *rows;
    size_t row_count;
    size_t row_cap;
    struct tide_buf bytes;
    struct tide_archive_pending_note *notes;
    struct tide_archive_note *notes_out;
    size_t note_count;
    size_t note_cap;
    struct tide_buf note_bytes;
    struct tide_buf record;    /* of a long row under way */
    struct tide_arena scratch; /* of a row under way */
    _Atomic uint64_t row_total;
    _Atomic uint64_t stub_total;
    _Atomic uint64_t change_total;
    _Atomic uint64_t byte_total;
    _Atomic uint64_t unfilled_total;
};

/** Takes what it needs of `options`; the target and `destination`, as a user writes it, must stay.
 */
void tide_archive_rows_init(struct tide_archive_rows *rows,
                            const struct tide_archive_target *target,
                            const struct tide_sink_options *options, tide_str destination);
void tide_archive_rows_done(struct tide_archive_rows *rows);

/** Gathers changes from number `first` on. Errors: those of port/refusals.h, of opening a series.
 */
tide_status tide_archive_rows_add_changes(struct tide_archive_rows *rows,
                                          const struct tide_batch *batch, size_t first,
                                          struct tide_error *err);

/**
 * Gathers a part of a snapshot, but for what `progress` says is there already: of a part that comes
 * again although it was held, nothing is written twice.
 */
tide_status tide_archive_rows_add_part(struct tide_archive_rows *rows,
                                       const struct tide_snapshot_part *part,
                                       const struct tide_progress *progress,
                                       struct tide_error *err);

/** Gives the rows their times and fills the tick, which borrows until forget. */
tide_status tide_archive_rows_tick(struct tide_archive_rows *rows,
                                   struct tide_archive_tick *ret_tick, struct tide_error *err);

/** They have been written. */
void tide_archive_rows_forget(struct tide_archive_rows *rows);

/** Any thread. */
void tide_archive_rows_counts(const struct tide_archive_rows *rows,
                              struct tide_sink_counts *ret_counts);
