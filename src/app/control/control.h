/*
 * Control of a running pipeline: what comes in over its socket is done here, in the main thread,
 * which owns the pipeline. A pipeline whose socket cannot be made runs all the same.
 */
#pragma once

#include "app/control/control_server.h"
#include "engine/pipeline.h"

/* What the pipeline does now, as far as requests are concerned. */
enum tide_control_phase {
    TIDE_CONTROL_STARTING, /* the main thread is busy: requests are told to come again */
    TIDE_CONTROL_RUNNING,
    TIDE_CONTROL_DRAINING, /* status alone is answered */
    TIDE_CONTROL_STOPPING, /* as STARTING */
};

struct tide_control {
    struct tide_control_server *server; /* NULL: it could not be made */
    struct tide_pipeline *pipeline;
    const struct tide_pipeline_options *options;
    enum tide_control_phase phase;
};

/** Makes the socket, STARTING; says on standard error when that fails. `waker` is woken when there
 * is something to serve. Everything outlives the control. */
void tide_control_init(struct tide_control *control, struct tide_pipeline *pipeline,
                       const struct tide_pipeline_options *options, struct tide_waker *waker);

/** Removes the socket. */
void tide_control_done(struct tide_control *control);

/** What requests get from now on. In STARTING and STOPPING they are answered without the main
 * thread.
 */
void tide_control_set_phase(struct tide_control *control, enum tide_control_phase phase);

/** Does and answers everything that has come. RUNNING or DRAINING. */
void tide_control_serve(struct tide_control *control);
