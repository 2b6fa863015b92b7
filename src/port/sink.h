/*
 * The sink port. A sink object belongs to one sink thread. It gets whole batches in lane order and
 * says after a flush that all of them are held: they would survive a power cut.
 */
#pragma once

#include "base/buf.h"
#include "base/status.h"
#include "format/dead_letter.h"
#include "model/batch.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tide_findings; /* port/source.h */
struct tide_sink;

/* What becomes of a record that a sink cannot take as it is. In its place a stub is written, a
 * change without its record, so that counts and chains hold; but for STOP. */
enum tide_refused {
    TIDE_REFUSED_DEAD_LETTER, /* it is kept, then the stub is written */
    TIDE_REFUSED_STOP,        /* nothing of it is written, and the sink has failed */
    TIDE_REFUSED_SKIP,        /* it is counted */
};

struct tide_refused_rule {
    tide_str glob; /* of tables: `name` or `schema.name` */
    enum tide_refused action;
};

struct tide_refused_policy {
    const struct tide_refused_rule *rules; /* the first that matches counts */
    size_t rule_count;
    enum tide_refused otherwise;
};

/* Where a sink puts records that it could not take. Both may be called again with the same one, as
 * a batch may be delivered again: `ret_is_new` says whether it was the first time. */
struct tide_dead_letters {
    /** Returns once the letter is held; failing aborts the batch. */
    tide_status (*put)(void *context, const struct tide_dead_letter *letter, bool *ret_is_new,
                       struct tide_error *err);
    /** Keeps nothing of it. */
    void (*note_skipped)(void *context, const struct tide_dead_letter *letter, bool *ret_is_new);
    void *context;
};

enum tide_sink_existing {
    TIDE_EXISTING_REFUSE,    /* what is there and not ours to continue is refused */
    TIDE_EXISTING_APPEND,    /* keep it and go on behind it */
    TIDE_EXISTING_OVERWRITE, /* replace it */
};

/* Of sinks that keep rows in segments; others pass over it. */
struct tide_sink_segments {
    uint64_t rows_max; /* of a segment; 0: what is usual */
    uint64_t bytes_max;
    bool fills_unchanged; /* values that the source did not send, from the row's last version */
    int64_t retain_us;    /* rows that are older may be forgotten; 0: none is */
    bool leaves_small;    /* many small ones are not joined */
};

struct tide_sink_options {
    tide_str name;     /* the sink's in the pipeline */
    tide_str place;    /* the URL without its scheme */
    tide_str pipeline; /* whose copy it is */
    tide_str identity; /* JSON that names the source; what a sink holds of another one stops it */
    tide_str location; /* port/source.h; empty: none */
    const struct tide_position_kind *position_kind;
    enum tide_sink_existing existing;
    /* The pipeline goes on from a checkpoint, or the sink is opened again after an error: what is
     * there is ours to continue. */
    bool is_resumed;
    size_t record_bytes_max;
    uint32_t incarnation; /* how often the source's log started over; in change frames */
    struct tide_refused_policy refused;
    struct tide_dead_letters dead_letters;
    struct tide_sink_segments segments;
    /* Tells people what is no error; any thread. NULL: nobody listens. */
    void (*say)(tide_str name, const char *what);
};

/* next_seq of a snapshot whose end is held. */
#define TIDE_SEQ_ENDED UINT64_MAX

struct tide_held_snapshot {
    char id[TIDE_UUID_LEN + 1];
    uint32_t attempt;
    uint64_t next_seq;
};

/* What a sink that remembers holds at attach. Memory is the sink's, valid until the next call. */
struct tide_sink_held {
    bool is_known; /* false: it cannot tell; everything is sent again */
    struct tide_place place;
    const struct tide_held_snapshot *snapshots; /* open ones, and those that ended last */
    size_t snapshot_count;
    bool lists_all; /* none that ended has been forgotten */
};

/* What a sink has written since it was opened. */
struct tide_sink_counts {
    uint64_t rows;
    uint64_t stubs;
    uint64_t changes;
    uint64_t bytes;
    /* of records that were not taken, each once, however often it was delivered */
    uint64_t dead_letters;
    uint64_t skipped;
    uint64_t unfilled; /* changes with values that were to be filled in and could not be */
};

struct tide_sink_ops {
    const char *scheme; /* "file" */
    bool has_segments;  /* the options of segments are for it */

    /** Whether what stands behind the scheme can name a target: TIDE_INVALID, with what is wrong.
     * Pure. NULL: anything can. */
    tide_status (*valid)(tide_str place, struct tide_error *err);

    /**
     * Makes the target ready to be written to: what an interrupted run left beyond what it had
     * acknowledged is cut away. `options` is copied, but for what its name, identity, rules and
     * dead letters point to, which stays until close. Errors: TIDE_INVALID something is there that
     * is not ours; TIDE_IO; TIDE_STALE another source's. TIDE_IO is marked retriable, here and
     * below, when it may pass by itself: the sink is then opened again after a while; else it has
     * failed for good.
     */
    tide_status (*open)(const struct tide_sink_options *options, struct tide_sink **ret_sink,
                        struct tide_error *err);
    /**
     * Appends what would keep open from working. Looks only: nothing is made, locked or changed,
     * and another process may be writing there. Of a new pipeline `pipeline` and `identity` are
     * empty. NULL: there is nothing to look at.
     */
    tide_status (*check)(const struct tide_sink_options *options, struct tide_findings *findings,
                         struct tide_error *err);
    /** NULL is fine. Does not flush. */
    void (*close)(struct tide_sink *sink);

    void (*held)(struct tide_sink *sink, struct tide_sink_held *ret_held);

    /**
     * Takes a batch, of its changes only those from number `first_change` on (the others are held
     * already). May keep bytes in memory until flush. After an error the sink is closed and opened
     * again before anything else.
     */
    tide_status (*write_batch)(struct tide_sink *sink, const struct tide_batch *batch,
                               size_t first_change, struct tide_error *err);

    /** Makes all that was written held. `is_caught_up`: nothing waits behind it. */
    tide_status (*flush)(struct tide_sink *sink, bool is_caught_up, struct tide_error *err);

    /**
     * Nothing more will come, and all is held: the target may be brought into the form that it is
     * to rest in. Only close follows. Failing costs nothing that is held. NULL: nothing is done.
     */
    tide_status (*finish)(struct tide_sink *sink, struct tide_error *err);

    /** Any thread. */
    void (*counts)(const struct tide_sink *sink, struct tide_sink_counts *ret_counts);
};
