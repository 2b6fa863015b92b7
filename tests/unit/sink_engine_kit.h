/* A scripted sink, and an engine that runs it on a lane: what the tests of the sink engine share.
 */
#pragma once

#include "base/buf.h"
#include "base/clock.h"
#include "engine/sink_engine.h"

#include <pthread.h>

/*
 * A sink that does what its script says and keeps a log of what was asked of it, a word a call:
 *
 *     o, r         opened, opened as resumed; "!" behind it: failed
 *     w7:2         a batch whose position.lo is 7, from change 2 on; "!" behind it: failed
 *     f1@3         flushed with the caught-up hint when the lane's floor was 3; "!": failed
 *     e            finished (of rig_finishing_ops alone); "!" behind it: failed
 *     c            closed
 */
struct script {
    pthread_mutex_t mutex;
    struct tide_buf log;
    tide_status status; /* of the failures */
    bool is_retriable;
    int open_failures; /* of the next calls, so many fail */
    int write_failures;
    int write_failures_skip; /* but first so many succeed */
    int flush_failures;
    int finish_failures;
    int64_t write_us;       /* how long a write takes */
    struct tide_place held; /* known: the sink remembers */
    struct tide_stream *stream;
    unsigned lane;
    struct tide_sink_engine *engine; /* whose waits are noted at each opening, when not NULL */
    struct tide_buf waits;
};

/* A stream with one lane, an engine for it that is not started, and its script. */
struct rig {
    struct script script;
    struct tide_stream *stream;
    unsigned lane;
    struct tide_sink_engine *engine;
    struct tide_sink_engine_options options;
    struct tide_waker done;
};

/* For the engine's options: as the usual ones, with a finish. */
extern const struct tide_sink_ops rig_finishing_ops;

extern struct tide_error rig_err;

void rig_sleep_us(int64_t us);

void rig_engine(struct rig *rig);

void rig_stream(struct rig *rig);

void rig_open(struct rig *rig);

void rig_close(struct rig *rig);

void rig_publish_item(struct rig *rig, struct tide_item item);

/* A batch of one transaction with so many changes. */
struct tide_batch *rig_batch(uint64_t position, size_t change_count);

void rig_publish(struct rig *rig, uint64_t position);

void rig_publish_some(struct rig *rig, unsigned count);

struct tide_sink_engine_status rig_status(struct rig *rig);

/* Waits until the lane's floor is that; fails after some seconds. */
void rig_await_floor(struct rig *rig, uint64_t build);

void rig_await_state(struct rig *rig, enum tide_sink_engine_state state);

void rig_expect_log(struct rig *rig, const char *want);

void rig_close_and_join(struct rig *rig);

/* Where the failure happens: at open, write or flush. */
void script_set_failure(struct script *script, int where, int count);
