/*
 * Writing into an archive what another one has, as it has it: for a copy that follows. Everything
 * is written within a group, a transaction that the caller begins and commits; each step in it is
 * done wholly or, when it fails, leaves nothing once it is undone.
 *
 *     group_begin, {step_begin, …, step_end | adopt}…, group_commit
 *
 * Sources of a copy have no session of ours and no heartbeat: they are the other's. One thread.
 */
#pragma once

#include "archive/writer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Begins a group, unless one is open. Errors as of tide_archive_write. */
tide_status tide_archive_group_begin(struct tide_archive_writer *writer, struct tide_error *err);

/**
 * Commits and syncs the group, if one is open. On failure it is open still, or nothing of it is in
 * the file: the next call of it, or of group_begin, goes by what is there.
 */
tide_status tide_archive_group_commit(struct tide_archive_writer *writer, struct tide_error *err);

/** A step of the open group. One whose end fails has to be undone. */
tide_status tide_archive_step_begin(struct tide_archive_writer *writer, struct tide_error *err);
tide_status tide_archive_step_end(struct tide_archive_writer *writer, struct tide_error *err);

/** Undoes the step that has begun, and no other. */
tide_status tide_archive_step_undo(struct tide_archive_writer *writer, struct tide_error *err);

/**
 * Writes each page once, straight into the file, and no more into a log before: twice as fast for
 * large segments, but readers and the writer wait for each other. For an archive that is being
 * filled; `is_on` false goes back to the log. Where it is being read just now it stays as it is:
 * `ret_is_on`. Not within a group.
 */
tide_status tide_archive_set_filling(struct tide_archive_writer *writer, bool is_on,
                                     bool *ret_is_on, struct tide_error *err);

struct tide_archive_copied_source {
    tide_str uuid; /* empty: it has none, and is known by its labels and its anchor */
    struct tide_archive_pairs labels;
    struct tide_archive_pairs metadata; /* all of it */
    int64_t clock_anchor_wall_ns;
    bool is_complete; /* false: it is not, from now on; true is for tide_archive_set_complete */
};

/**
 * Finds the source, or adds it, and sets what is said of it. Its series can be opened then.
 * Errors: TIDE_UNSUPPORTED it is of another encoder than the writer, or than it was; TIDE_INVALID
 * texts that no archive takes.
 */
tide_status tide_archive_copy_source(struct tide_archive_writer *writer,
                                     const struct tide_archive_copied_source *source,
                                     int64_t *ret_id, struct tide_error *err);

/** Says whether a source that was copied is whole. */
tide_status tide_archive_set_complete(struct tide_archive_writer *writer, int64_t id,
                                      bool is_complete, struct tide_error *err);

/**
 * Writes a row, unless it is there, live or sealed: into the live tail, or, where it comes late and
 * the series is sealed past it, into the segment, which is encoded anew by the end of the step.
 * Errors: TIDE_INVALID the series has another row of that time.
 */
tide_status tide_archive_copy_row(struct tide_archive_series *series,
                                  const struct tide_archive_live_row *row, bool *ret_is_held,
                                  struct tide_error *err);

/** The number of the newest caller row: those behind it have been written since. */
tide_status tide_archive_caller_row_newest(struct tide_archive_writer *writer, int64_t *ret_number,
                                           struct tide_error *err);

/** How often a caller row is there, among those up to `number`. */
tide_status tide_archive_caller_row_count(struct tide_archive_writer *writer, int64_t source,
                                          tide_str series,
                                          const struct tide_archive_caller_row *row, int64_t number,
                                          int64_t *ret_count, struct tide_error *err);

/** Writes a caller row. */
tide_status tide_archive_copy_caller_row(struct tide_archive_writer *writer, int64_t source,
                                         tide_str series, const struct tide_archive_caller_row *row,
                                         struct tide_error *err);

/** Writes a clock offset, unless there is one of that time. */
tide_status tide_archive_copy_offset(struct tide_archive_writer *writer, int64_t source, int64_t ts,
                                     int64_t offset_ns, struct tide_error *err);

/* What became of a segment. */
enum tide_archive_adoption {
    TIDE_ARCHIVE_ADOPTED,
    TIDE_ARCHIVE_HELD,   /* all it spans has been sealed before */
    TIDE_ARCHIVE_OPENED, /* a part of that: its rows were written one by one */
};

struct tide_archive_adopted {
    enum tide_archive_adoption what;
    int64_t rows;      /* OPENED: that were written */
    int64_t rows_held; /* OPENED: that were there */
};

/**
 * Takes a segment over, as it is, in a step of its own. Live rows that it spans go, once it was
 * seen that each of them is one of its rows, with the same bytes; those before it are sealed first,
 * into segments of our own (which commits the group). `segment->seq` is not looked at. With rows to
 * compare, or where it reaches across what is sealed, it is opened with the writer's encoder.
 * Errors: TIDE_INVALID it cannot exist, or does not hold what it says, or not a live row that it
 * spans; what sealing fails with.
 */
tide_status tide_archive_adopt(struct tide_archive_series *series,
                               const struct tide_archive_segment *segment,
                               struct tide_archive_adopted *ret_adopted, struct tide_error *err);

/* The segments of a series that were made here, and not compared with those of the one who is
 * followed. */
struct tide_archive_sealed_here {
    bool is_any;
    int64_t from_ts; /* they begin there */
    bool has_before; /* there are segments before that */
    int64_t before_to;
};

/** Notes, durably, that all the series has live will be sealed here. Before that; not within a
 * group. */
tide_status tide_archive_sealed_here_note(struct tide_archive_series *series,
                                          struct tide_error *err);

/** Whether anything was noted, of any series. */
tide_status tide_archive_sealed_here_any(struct tide_archive_writer *writer, bool *ret_is_any,
                                         struct tide_error *err);

/** What was noted of a series, where anything was, and not forgotten since. */
tide_status tide_archive_sealed_here_read(struct tide_archive_writer *writer, int64_t source,
                                          tide_str series,
                                          struct tide_archive_sealed_here *ret_here,
                                          struct tide_error *err);

/** All of the source's have been compared. Within a group, where any was noted. */
tide_status tide_archive_sealed_here_forget(struct tide_archive_writer *writer, int64_t source,
                                            struct tide_error *err);

/** Whether anything says of the archive that a pipeline, or another program, writes it itself; the
 * reason, in `err`, as TIDE_INVALID. */
tide_status tide_archive_check_followable(struct tide_archive_writer *writer,
                                          struct tide_error *err);
