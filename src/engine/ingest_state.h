/* What the files of the ingest engine share. Nobody else includes this. */
#pragma once

#include "engine/ingest.h"
#include "engine/ingest_report.h"

#include <pthread.h>

/* A backfill of some tables for one lane, until its marker is held. */
struct tide_ingest_request {
    struct tide_ingest_request *next;
    uint64_t id; /* unique over restarts */
    uint64_t
        stream_id; /* what the stream's request lane calls it; 0: it came from the checkpoint */
    unsigned lane;
    tide_str *tables; /* store names; owned */
    bool *is_table_done;
    bool *is_table_failed;
    size_t table_count;
    uint64_t marker_build; /* 0: not published yet */
};

/* A sink by name; its lane comes and goes. */
struct tide_ingest_sink {
    char *name;
    bool is_attached; /* `lane` is its */
    unsigned lane;
    bool is_seeded;
    bool is_detached; /* its lane was dropped, so that the source could go on */
    bool is_paused;
    bool may_detach;
    uint64_t floor; /* what of its lane was held when that moved last */
    int64_t floor_moved_us;
    int64_t say_holds_us; /* not before */
};

struct tide_ingest_copy {
    struct tide_ingest_copy *next;
    struct tide_copy *copy;
};

/* What other threads want of ingest. */
struct tide_ingest_posts {
    pthread_mutex_t mutex; /* of what follows */
    struct tide_ingest_post *oldest;
    struct tide_ingest_post *newest;
    uint64_t given; /* number of the newest */
};

#define TIDE_REPORT_MARKS 64

struct tide_report_mark {
    struct tide_position position;
    int64_t at_us; /* UTC */
};

/* What reports are drawn from; the mutex is of `report` and `number` alone. */
struct tide_ingest_reporting {
    pthread_mutex_t mutex;
    pthread_cond_t drawn;
    struct tide_ingest_report report;
    uint64_t number;
    atomic_bool is_wanted;
    bool has_moved; /* since the last look */
    int64_t moved_at_us;
    int64_t looked_at_us;
    struct tide_report_mark marks[TIDE_REPORT_MARKS]; /* published, in order */
    size_t mark_count;
    int64_t open_at_us; /* UTC; when the transaction of which a part is published was committed; 0:
                           there is none */
    char reason[256];   /* what it waits for */
};

struct tide_ingest {
    struct tide_ingest_options options;
    char *pipeline;
    struct tide_waker waker;
    atomic_bool is_stopping;
    struct tide_ingest_stats stats;

    struct tide_ingest_sink *sinks;
    size_t sink_count;
    tide_lane_set lanes;
    tide_lane_set dropped; /* lanes that are gone: what is left of them goes with the next work */
    struct tide_ingest_posts posts;
    struct tide_ingest_reporting reporting;
    struct tide_build build;
    struct tide_charge reading; /* for the chunk that is being read */
    struct tide_ingest_request *requests;
    struct tide_ingest_copy *copies; /* in the order they were asked for */
    struct tide_copy *current;       /* RUNNING; NULL: none */
    const struct tide_store *current_store;
    unsigned names;   /* of copies, in the last checkpoint that was saved for them */
    int64_t named_us; /* when; monotonic */
    uint64_t next_request_id;
    bool is_behind;   /* of where the log ended when this run, not the first, began */
    bool has_log_end; /* `log_end` is known */
    struct tide_position log_end;
    struct tide_place caught_up; /* where it was behind no more; unknown in a first run */
    int64_t read_not_before_us;  /* after an untrusted chunk */
    int64_t say_untrusted_us;    /* when to say so next; 0: the last chunk was trusted */
    struct tide_error lost; /* what a tick or a confirm met; `pull` returns it. TIDE_OK: nothing */

    /* checkpoints */
    bool is_loaded;
    bool is_creating;
    bool is_prepared; /* the source is: it has a state to save */
    bool is_started;
    struct tide_position start;    /* where the stream starts in this run */
    struct tide_position held;     /* the watermark, or start */
    struct tide_position saved[2]; /* of the newest two checkpoints, newest first */
    unsigned saved_count;
    struct tide_position confirmed;
    uint64_t sequence;
    int64_t saved_at_us; /* monotonic */
    int64_t save_took_us;
    bool must_save;             /* something other than the position changed */
    struct tide_buf state_json; /* the source's, as loaded */
    struct tide_buf encoded;
};

/* ingest_publish.c */

/** Publishes to the lanes, through full ones; meanwhile keeps confirming. Takes over `batch` or
 * `marker`. */
tide_status tide_ingest_publish_batch(struct tide_ingest *ingest, struct tide_batch *batch,
                                      tide_lane_set lanes, uint64_t *ret_build,
                                      struct tide_error *err);
tide_status tide_ingest_publish_marker(struct tide_ingest *ingest, struct tide_marker *marker,
                                       unsigned lane, uint64_t *ret_build, struct tide_error *err);
/** Publishes the open live batch, if there is something to. */
tide_status tide_ingest_publish_open(struct tide_ingest *ingest, struct tide_error *err);

/* ingest_copies.c */

/** All that was committed before this run has been published, or will never be: new copies may
 * begin. */
void tide_ingest_note_caught_up(struct tide_ingest *ingest);
/** The table that is being copied fails, and no other. */
void tide_ingest_fail_current(struct tide_ingest *ingest, const char *why);
/** Publishes the chunks that are ready, and begins the next copy when none runs. */
tide_status tide_ingest_advance_copies(struct tide_ingest *ingest, struct tide_error *err);

/* ingest_sinks.c */

/** The sink on the lane; NULL: the lane was dropped. */
struct tide_ingest_sink *tide_ingest_sink_of(const struct tide_ingest *ingest, unsigned lane);
struct tide_ingest_sink *tide_ingest_sink_named(const struct tide_ingest *ingest, tide_str name);

/** Does what other threads posted, and makes it durable. What must wait for the end of a
 * transaction does. */
tide_status tide_ingest_take_posts(struct tide_ingest *ingest, struct tide_error *err);
/** Something posted still waits: a request that comes after it does too. */
bool tide_ingest_has_posts(struct tide_ingest *ingest);

/** While `full` lanes hold up everything: drops those that may be detached, when the source keeps
 * too much log for them. */
tide_status tide_ingest_detach_full(struct tide_ingest *ingest, tide_lane_set full,
                                    struct tide_error *err);

/** Forgets what was under way for lanes that are gone. Not while a batch is being published. */
void tide_ingest_forget_dropped(struct tide_ingest *ingest);
void tide_ingest_forget_lane(struct tide_ingest *ingest, unsigned lane);
void tide_ingest_free_posts(struct tide_ingest *ingest);

/* ingest_tables.c */

/** Changes of the tables that are not followed any more may be missing up to here. */
void tide_ingest_note_left(struct tide_ingest *ingest);

/** The source is prepared: notes which tables it follows, and which it has left. */
tide_status tide_ingest_note_tables(struct tide_ingest *ingest, struct tide_error *err);

/** A TABLE event: unfinished copies of the store start anew, finished ones are done again for
 * their lanes; without a relation they fail. */
tide_status tide_ingest_table_changed(struct tide_ingest *ingest, const struct tide_event *event,
                                      struct tide_error *err);

/** `done` has just become so: lets go of finished copies of its table that it replaces. */
void tide_ingest_drop_replaced(struct tide_ingest *ingest, const struct tide_copy *done);

/** A request of our own: a new copy of the store for the lane. */
tide_status tide_ingest_ask(struct tide_ingest *ingest, tide_str store, unsigned lane,
                            struct tide_error *err);

/** Begins the copy anew, as another, when its table has another shape than it was begun with. */
tide_status tide_ingest_begin_fresh(struct tide_ingest *ingest, struct tide_copy *copy,
                                    bool *ret_has_begun, struct tide_error *err);

/** Takes the copy out of the list and frees it. */
void tide_ingest_remove_copy(struct tide_ingest *ingest, struct tide_copy *copy);

/* ingest_report.c */

/** Once, before anything is noted. */
void tide_ingest_reporting_init(struct tide_ingest_reporting *reporting);
/** Frees the last picture. */
void tide_ingest_reporting_done(struct tide_ingest_reporting *reporting);
/** A batch with a position is on the lanes. */
void tide_ingest_note_published(struct tide_ingest *ingest, const struct tide_batch *batch);
/** Looks whether the lanes move. */
void tide_ingest_look(struct tide_ingest *ingest);
/** Draws a picture if one is asked for. */
void tide_ingest_serve_report(struct tide_ingest *ingest);

/* ingest_requests.c */

/** A request of the stream, or (stream_id 0) of the checkpoint. Tables are copied. */
struct tide_ingest_request *tide_ingest_add_request(struct tide_ingest *ingest, uint64_t id,
                                                    uint64_t stream_id, unsigned lane,
                                                    const tide_str *tables, size_t table_count);
/** The id is in use, or was: new requests get higher ones. */
void tide_ingest_use_request_id(struct tide_ingest *ingest, uint64_t id);
void tide_ingest_free_requests(struct tide_ingest *ingest);
void tide_ingest_free_request(struct tide_ingest_request *request);

/** Makes or joins the copies of a request's tables that have none. */
tide_status tide_ingest_queue_copies(struct tide_ingest *ingest,
                                     struct tide_ingest_request *request, struct tide_error *err);
tide_status tide_ingest_receive_requests(struct tide_ingest *ingest, struct tide_error *err);
/** Drops requests whose marker is held. */
void tide_ingest_drop_held_requests(struct tide_ingest *ingest);
/** Publishes markers of finished requests and drops requests whose marker is held. */
tide_status tide_ingest_finish_requests(struct tide_ingest *ingest, struct tide_error *err);

/** Looks a table up among the source's, by store name; NULL: none. */
tide_status tide_ingest_find_table(struct tide_ingest *ingest, tide_str store,
                                   const struct tide_relation **ret_relation,
                                   struct tide_error *err);
struct tide_copy *tide_ingest_add_copy(struct tide_ingest *ingest,
                                       const struct tide_relation *relation);

/* ingest_checkpoint.c */

/** Takes in what became held; saves and confirms when it is due. */
tide_status tide_ingest_keep(struct tide_ingest *ingest, struct tide_error *err);
