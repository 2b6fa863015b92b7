/*
 * The request lane of the channel: an array in the order of asking. Private to src/stream. It never
 * fills: a request that asks for what a waiting one asks for becomes that one. No locks here.
 */
#pragma once

#include "port/stream.h"

struct tide_request_entry {
    struct tide_request *request;
    bool is_orphaned; /* received, and then its lane was dropped */
};

struct tide_requests {
    struct tide_request_entry *entries;
    size_t count;
    size_t cap;
    size_t received; /* entries before this one are all received */
    uint64_t next_id;
};

/** Frees what it holds. */
void tide_requests_done(struct tide_requests *requests);

/** Adds a request, or finds the waiting one for the same lane and set of tables; its id. */
uint64_t tide_requests_add(struct tide_requests *requests, unsigned lane, const tide_str *tables,
                           size_t table_count);

/** A copy of the next one that waits, now received; NULL: none waits. */
struct tide_request *tide_requests_take(struct tide_requests *requests);

/** Removes the received request; false: it is not there, or waits. */
bool tide_requests_acknowledge(struct tide_requests *requests, uint64_t id);

/** What was received and not acknowledged waits again. */
void tide_requests_rewind(struct tide_requests *requests);

/** The lane is gone: its waiting requests go, received ones will not wait again. */
void tide_requests_drop_lane(struct tide_requests *requests, unsigned lane);
