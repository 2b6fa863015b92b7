/*
 * What every adapter of the stream port must do, as tests: written against struct tide_stream
 * alone. An adapter's test program runs them with its own factory.
 */
#pragma once

#include "port/stream.h"

struct stream_factory {
    /* A fresh stream without lanes, of that capacity a lane (0: the defaults). Fails the test when
     * it cannot. */
    struct tide_stream *(*make)(size_t lane_items, size_t lane_bytes);
    unsigned random_runs; /* how many seeds */
};

/** Runs the whole suite; the number of failed tests. */
int stream_conformance_run(const struct stream_factory *factory);

/* The parts of the suite; each returns its failed tests. */
int stream_conformance_lanes(void);
int stream_conformance_wait(void);
int stream_conformance_closed(void);
int stream_conformance_requests(void);
int stream_conformance_model(void);
int stream_conformance_threads(void);
