/*
 * The source port: what a database must be able to do to be followed and copied.
 *
 * One source object belongs to the ingest thread. A chunk reader made from it belongs to one
 * other thread and shares nothing that changes with the source. Every call that may block has a
 * deadline or is bounded by an option; `next` can also be woken.
 *
 * Life: open → (check | detach | prepare → stream → next… confirm… → detach?) → close.
 */
#pragma once

#include "base/buf.h"
#include "base/status.h"
#include "base/thread.h"
#include "model/change.h"
#include "model/chunk.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tide_source;
struct tide_chunk_reader;

struct tide_source_options {
    tide_str place;      /* the URL without its scheme, e.g. a path */
    tide_str connection; /* first part of every store name */
    tide_str pipeline;   /* unique name under which our things in the source are kept; may be empty
                            for check and detach */
    const tide_str *globs; /* table globs (`*`, `?`), any match; none: all tables */
    size_t glob_count;
    void (*say)(const char *what); /* tells the user what prepare waits for; may be NULL */
    struct tide_waker *waker; /* woken when nobody wants what open and prepare wait for any more:
                                 they then return TIDE_CANCELLED soon; may be NULL */
};

/* What `next` brings. Pointers live in the arena that was given. */
enum tide_event_kind {
    TIDE_EVENT_CHANGE,  /* one change; its transaction ends with a later COMMIT */
    TIDE_EVENT_COMMIT,  /* all changes of all transactions up to `position` have been brought */
    TIDE_EVENT_REACHED, /* as COMMIT, but no change came since the last one: an idle log moved on */
    TIDE_EVENT_TABLE,   /* from here on changes alone do not tell a table's rows: it is copied anew,
                           or is gone, or is new. `tables` lists it as it is now. Comes at the latest
                           after the next `prepare` with a state that does not know of it; again, or
                           not, when the log is read again from before it */
};

struct tide_event {
    enum tide_event_kind kind;
    struct tide_change change;
    struct tide_position position;
    tide_str store;                       /* of a TABLE event */
    const struct tide_relation *relation; /* of a TABLE event; NULL: it is not followed any more */
    tide_str reason;                      /* of a TABLE event, for people: "it was made anew" */
    bool was_unfollowed; /* of a TABLE event: its changes did not come up to now, in this run */
};

/* One thing that `check` found or `detach` did, and the way out. Strings live in the list's arena.
 */
struct tide_finding {
    bool is_problem;  /* the copy would fail or miss something; else a remark */
    bool is_left_out; /* a table that is not named is left out of the copy */
    tide_str what;
    tide_str remedy; /* SQL or a command; may be empty */
};

struct tide_findings {
    struct tide_arena arena;
    struct tide_finding *items; /* in the arena */
    size_t count;
    size_t cap;
};

/** Adds a finding; both strings are copied. */
void tide_findings_add(struct tide_findings *findings, bool is_problem, tide_str what,
                       tide_str remedy);

/** Marks the finding added last: a table is left out. */
void tide_findings_mark_left_out(struct tide_findings *findings);
void tide_findings_done(struct tide_findings *findings);

struct tide_source_ops {
    const char *scheme; /* "sqlite" */
    const struct tide_position_kind *position_kind;

    /** Whether a place can name a source: TIDE_INVALID, with what is wrong. Pure.
     * NULL: anything can. */
    tide_status (*valid)(tide_str place, struct tide_error *err);

    /**
     * Connects and looks who the source is; changes nothing in it. `options` is copied.
     * Errors: TIDE_IO cannot be reached or read; TIDE_INVALID no such place; TIDE_CORRUPT damaged.
     */
    tide_status (*open)(const struct tide_source_options *options, struct tide_source **ret_source,
                        struct tide_error *err);
    /** NULL is fine. Leaves what prepare made in the source. */
    void (*close)(struct tide_source *source);

    /** Appends the JSON string or object that names the source; equal for the same source only. */
    void (*identity)(const struct tide_source *source, struct tide_buf *buf);

    /** Appends where the source is, without secrets; it stays when what made us a name for the
     * source was taken out of it, and a copy that begins anew finds another. NULL: the name stays.
     */
    void (*location)(const struct tide_source *source, struct tide_buf *buf);

    /** The tables that the globs choose and that can be followed, as they are now. The array and
     * references are the source's, valid until the next call. A glob that matches nothing is
     * TIDE_INVALID. */
    tide_status (*tables)(struct tide_source *source,
                          const struct tide_relation *const **ret_tables, size_t *ret_count,
                          struct tide_error *err);

    /** Rows that the chosen tables have, roughly and quickly, for progress; 0: it cannot tell. NULL
     * allowed. */
    uint64_t (*estimate_rows)(struct tide_source *source);

    /** Appends what would keep a copy from working, and remarks. Reads only. */
    tide_status (*check)(struct tide_source *source, struct tide_findings *findings,
                         struct tide_error *err);

    /**
     * Makes what following needs (slot, publication, triggers) for this pipeline. With
     * `saved_state` NULL: anew, after removing what an earlier half-made attempt left; then
     * `ret_start` is where the stream starts. With the state of a checkpoint: checks that what is
     * there is what the checkpoint belongs to, at `position` (TIDE_STALE with what differs and the
     * ways on when it is not). `ret_start` is then `position`.
     */
    tide_status (*prepare)(struct tide_source *source, const tide_str *saved_state,
                           struct tide_position position, struct tide_position *ret_start,
                           struct tide_error *err);

    /** What prepare would say of a checkpoint's state: TIDE_STALE with what differs and the ways
     * on. Reads only, also while another process follows. */
    tide_status (*check_saved)(struct tide_source *source, tide_str saved_state,
                               struct tide_position position, struct tide_error *err);

    /** Starts following after `position`. prepare has succeeded. Again after a retriable error of
     * `next`, `tick` or `confirm`: then anew, whatever was there before. */
    tide_status (*stream)(struct tide_source *source, struct tide_position position,
                          struct tide_error *err);

    /**
     * The next event in log order; its values are copied into `arena`. A relation that the change
     * points to stays valid as long as the source or a reference to it.
     * Errors: TIDE_TIMEOUT nothing came before `deadline_us` (0: only what is at hand; retriable:
     * or not all of that could be read now) or `waker` was woken; other retriable ones, after which
     * `stream` is called again; others stop.
     */
    tide_status (*next)(struct tide_source *source, struct tide_arena *arena,
                        struct tide_waker *waker, int64_t deadline_us, struct tide_event *ret_event,
                        struct tide_error *err);

    /**
     * A position that the stream comes to although nobody writes any more, at or past every
     * transaction that has committed by now. Ingest thread, the stream is open. NULL: what `next`
     * has at hand is everything. Errors as of `next`.
     */
    tide_status (*log_end)(struct tide_source *source, struct tide_position *ret_position,
                           struct tide_error *err);

    /** Appends the JSON value that the next checkpoint must hold for `prepare` after a restart. */
    void (*state)(struct tide_source *source, struct tide_buf *buf);

    /**
     * Lets the source free its log up to `position`. A checkpoint that holds the state() of just
     * before and a position at or past this one is durable. May put the work off (TIDE_TIMEOUT:
     * call again later), never fails a writer.
     */
    tide_status (*confirm)(struct tide_source *source, struct tide_position position,
                           struct tide_error *err);

    /**
     * Called by the ingest thread at least every 200 ms, also while lanes are full: sends feedback
     * that is due. Never blocks. NULL: nothing is ever due.
     */
    tide_status (*tick)(struct tide_source *source, struct tide_error *err);

    /** Number of the server that the stream is of; a chunk of another one counts for nothing. NULL:
     * always 0. */
    uint64_t (*epoch)(const struct tide_source *source);

    /** Bytes of log kept for us and not yet confirmed; 0 when unknown. */
    uint64_t (*retained_bytes)(struct tide_source *source);

    /** Removes what prepare made: of this pipeline, or with an empty pipeline of all; says what it
     * did. */
    tide_status (*detach)(struct tide_source *source, struct tide_findings *findings,
                          struct tide_error *err);

    /** A reader with a connection of its own. Called by its future thread or before that starts. */
    tide_status (*reader_open)(struct tide_source *source, struct tide_chunk_reader **ret_reader,
                               struct tide_error *err);
    void (*reader_close)(struct tide_chunk_reader *reader);

    /** Takes the horizon for `is_trusted`. The stream is open and remembering is on. */
    tide_status (*reader_remember)(struct tide_chunk_reader *reader,
                                   const struct tide_relation *relation, struct tide_error *err);

    /**
     * Reads a chunk into the empty `ret_chunk`. Errors: TIDE_UNSUPPORTED the table is gone or has
     * another shape (of a source that tells of tables: retriable, the event comes);
     * TIDE_CANCELLED after reader_cancel; retriable: read again.
     */
    tide_status (*reader_read)(struct tide_chunk_reader *reader,
                               const struct tide_chunk_request *request,
                               struct tide_chunk *ret_chunk, struct tide_error *err);

    /** Makes a running reader_read return soon. Any thread. */
    void (*reader_cancel)(struct tide_chunk_reader *reader);
};
