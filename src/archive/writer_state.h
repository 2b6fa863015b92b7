/* Private to this folder: what the files of the writer share. */
#pragma once

#include "archive/archive_db.h"
#include "archive/writer.h"
#include "base/map.h"
#include "base/thread.h"

#include <pthread.h>

/* A source that this writer has added or resumed. */
struct tide_archive_open_source {
    int64_t id;
    char *label; /* for staggering: labels by rising key, `k=v` joined by byte 1 */
    bool has_floor;
    int64_t floor; /* rows up to here were there on resuming */
    bool is_finalized;
    bool has_encoder; /* of a copy: its metadata name one */
};

struct tide_archive_series {
    struct tide_archive_writer *writer;
    struct tide_archive_open_source *source;
    tide_str name;
    struct tide_archive_series_state state;
    bool is_prune_due; /* sealed rows are still in the live tail, shadowed */
    bool has_forgotten;
    int64_t forgotten_before; /* this writer has forgotten what was there before that time */
    /* Of tide_archive_row_times: times given in its present round. */
    uint64_t round;
    bool has_planned;
    int64_t planned;
};

struct tide_archive_opened;

/* Rows that one statement inserts: to run one for each would cost as much again as the rows. */
#define TIDE_ARCHIVE_ROWS_AT_ONCE ((size_t)32)

struct tide_archive_writer {
    pthread_mutex_t mutex;
    struct tide_archive *archive;
    struct tide_archive_writer_options options;
    struct sqlite3_stmt *insert_row;
    struct sqlite3_stmt *insert_rows;   /* TIDE_ARCHIVE_ROWS_AT_ONCE; NULL: not asked for yet */
    struct sqlite3_stmt *copy_row;      /* the same, of a copy: a row that is there stays */
    struct tide_archive_opened *opened; /* the rows of a segment, of a copy; NULL: of none */
    struct tide_archive_open_source **sources;
    size_t source_count;
    struct tide_map source_by_id; /* its bytes, to its index in `sources` */
    bool has_known;               /* of a copy: all sources of the file are in `known` */
    struct tide_map known;        /* what tells a source from others, to its id */
    struct tide_archive_series **series;
    size_t series_count;
    struct tide_map by_name; /* "<source id> <series>" to its handle */
    uint64_t round;
    bool has_held_table;
    bool has_failed; /* of a copy: what is remembered may be of what was undone */
    bool is_stopped; /* for good, with this error */
    struct tide_error stopped;
    int64_t next_beat_us;
    int64_t next_checkpoint_us;
    pthread_t keeper;
    bool has_keeper;
    _Atomic bool is_closing;
    struct tide_waker waker;
};

/** Locks. Fails, not locked, when the writer has stopped for good. */
tide_status tide_archive_enter(struct tide_archive_writer *writer, const char *doing,
                               struct tide_error *err);

/** Unlocks and returns `status`; one that cannot pass stops the writer for good. */
tide_status tide_archive_leave(struct tide_archive_writer *writer, tide_status status,
                               struct tide_error *err);

/** The open source of that id, or NULL. */
struct tide_archive_open_source *tide_archive_open_source(const struct tide_archive_writer *writer,
                                                          int64_t id);

/** Notes an open source, or what it is now; takes over its label. */
void tide_archive_remember_source(struct tide_archive_writer *writer,
                                  const struct tide_archive_open_source *source);

/** A source's label, of labels that are sorted; the caller's to free. */
char *tide_archive_label_of(const struct tide_archive_pairs *labels);

/** TIDE_INVALID for labels or metadata that no archive takes; with `is_metadata`, for keys that are
 * the archive's own. */
tide_status tide_archive_check_pairs(const struct tide_archive_pairs *pairs, bool is_metadata,
                                     struct tide_error *err);

/** Counts a row that has been written. */
void tide_archive_note_row(struct tide_archive_series *series, int64_t ts, size_t size);

/** Reads again all that is known of a series. */
tide_status tide_archive_series_reload(struct tide_archive_series *series, struct tide_error *err);

/** Inserts a segment behind those of its series, which stays as it is. */
tide_status tide_archive_insert_segment(const struct tide_archive_series *series,
                                        const struct tide_archive_segment *segment,
                                        struct tide_error *err);

/** For closing. */
void tide_archive_free_series(struct tide_archive_series *series);

/** Reads again what the live tail of a series holds; what was sealed and was newest stays. */
tide_status tide_archive_series_refresh(struct tide_archive_series *series, struct tide_error *err);

/** Starts and ends the thread that tends the writer. */
void tide_archive_keeper_start(struct tide_archive_writer *writer);
void tide_archive_keeper_stop(struct tide_archive_writer *writer);
