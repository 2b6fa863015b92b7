/*
 * Reading a table's series row by row, each with the columns that it is of: segments, then the live
 * tail, all of one moment. A scan holds a snapshot of the archive from open to close.
 */
#pragma once

#include "archive/change_row.h"
#include "archive/change_schema.h"
#include "archive/scan.h"
#include "base/status.h"
#include "model/relation.h"

/* A table's columns. One struct for the same columns, as long as the scan. */
struct tide_change_columns {
    tide_str json; /* change_schema.h */
    struct tide_change_schema schema;
    struct tide_relation relation;                  /* the same; not counted, never unref'd */
    const struct tide_position_kind *position_kind; /* NULL: one that is not known here */
};

/* A row; valid until the next one. */
struct tide_change_seen {
    int64_t ts;
    bool is_live; /* not sealed yet */
    const struct tide_change_columns *columns;
    struct tide_change_row row;
};

/** The relation of such columns, its arrays in `arena`; not counted, never unref'd. */
struct tide_relation tide_change_relation_of(const struct tide_change_schema *schema,
                                             struct tide_arena *arena);

struct tide_change_scan;

/** Errors: as tide_archive_scan_open; TIDE_UNSUPPORTED the rows are of another encoder. `range` is
 * copied, but for its name. */
tide_status tide_change_scan_open(struct tide_archive *archive,
                                  const struct tide_archive_range *range,
                                  struct tide_change_scan **ret_scan, struct tide_error *err);

/** Before the first row: sealed ones come as tide_change_reader_want_heads has them, faster. */
void tide_change_scan_want_heads(struct tide_change_scan *scan);

/**
 * The next row, by rising time. TIDE_END after the last.
 * Errors: TIDE_CORRUPT, naming the segment or row: it is not what the catalogue says, or its
 * columns are not known.
 */
tide_status tide_change_scan_next(struct tide_change_scan *scan, struct tide_change_seen *ret_seen,
                                  struct tide_error *err);

/** NULL is fine. */
void tide_change_scan_close(struct tide_change_scan *scan);
void tide_change_scan_close_ptr(struct tide_change_scan **scan);
