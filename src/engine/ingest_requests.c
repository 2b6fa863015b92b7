#include "base/alloc.h"
#include "engine/ingest_state.h"

#include <stdlib.h>

void tide_ingest_free_request(struct tide_ingest_request *request)
{
    for (size_t i = 0; i < request->table_count; i++) {
        free((void *)(uintptr_t)request->tables[i].ptr);
    }
    free(request->tables);
    free(request->is_table_done);
    free(request->is_table_failed);
    free(request);
}

void tide_ingest_free_requests(struct tide_ingest *ingest)
{
    while (ingest->requests != NULL) {
        struct tide_ingest_request *next = ingest->requests->next;
        tide_ingest_free_request(ingest->requests);
        ingest->requests = next;
    }
}

void tide_ingest_use_request_id(struct tide_ingest *ingest, uint64_t id)
{
    if (id >= ingest->next_request_id) {
        ingest->next_request_id = id + 1;
    }
}

struct tide_ingest_request *tide_ingest_add_request(struct tide_ingest *ingest, uint64_t id,
                                                    uint64_t stream_id, unsigned lane,
                                                    const tide_str *tables, size_t table_count)
{
    struct tide_ingest_request *request = tide_alloc(1, sizeof(*request));
    request->id = id;
    request->stream_id = stream_id;
    request->lane = lane;
    request->table_count = table_count;
    request->tables = tide_alloc(table_count, sizeof(*request->tables));
    request->is_table_done = tide_alloc(table_count, sizeof(bool));
    request->is_table_failed = tide_alloc(table_count, sizeof(bool));
    for (size_t i = 0; i < table_count; i++) {
        request->tables[i] = (tide_str){tide_strndup(tables[i].ptr, tables[i].len), tables[i].len};
    }
    tide_ingest_use_request_id(ingest, id);
    struct tide_ingest_request **link = &ingest->requests;
    while (*link != NULL) {
        link = &(*link)->next;
    }
    *link = request;
    return request;
}

tide_status tide_ingest_find_table(struct tide_ingest *ingest, tide_str store,
                                   const struct tide_relation **ret_relation,
                                   struct tide_error *err)
{
    const struct tide_relation *const *tables = NULL;
    size_t count = 0;
    TIDE_TRY(ingest->options.source_ops->tables(ingest->options.source, &tables, &count, err));
    *ret_relation = NULL;
    for (size_t i = 0; i < count; i++) {
        if (tide_str_equal(tables[i]->store, store)) {
            *ret_relation = tables[i];
        }
    }
    return TIDE_OK;
}

struct tide_copy *tide_ingest_add_copy(struct tide_ingest *ingest,
                                       const struct tide_relation *relation)
{
    struct tide_ingest_copy *item = tide_alloc(1, sizeof(*item));
    item->copy = tide_copy_new(relation, &ingest->options.copy);
    struct tide_ingest_copy **link = &ingest->copies;
    while (*link != NULL) {
        link = &(*link)->next;
    }
    *link = item;
    atomic_fetch_add(&ingest->stats.copies_total, 1);
    return item->copy;
}

static bool has_share(const struct tide_copy *copy, uint64_t request_id)
{
    for (size_t i = 0; i < copy->share_count; i++) {
        if (copy->shares[i].request_id == request_id) {
            return true;
        }
    }
    return false;
}

/* The request's copy of a store; with `joinable`, one that it may still join. */
static struct tide_copy *find_copy(struct tide_ingest *ingest, tide_str store,
                                   const struct tide_ingest_request *request, bool joinable)
{
    tide_lane_set lane = (tide_lane_set)1 << request->lane;
    for (struct tide_ingest_copy *item = ingest->copies; item != NULL; item = item->next) {
        struct tide_copy *copy = item->copy;
        if (!tide_str_equal(copy->relation->store, store)) {
            continue;
        }
        bool fits = joinable ? tide_copy_can_be_joined(copy) && (tide_copy_lanes(copy) & lane) == 0
                             : has_share(copy, request->id);
        if (fits) {
            return copy;
        }
    }
    return NULL;
}

tide_status tide_ingest_queue_copies(struct tide_ingest *ingest,
                                     struct tide_ingest_request *request, struct tide_error *err)
{
    for (size_t i = 0; i < request->table_count; i++) {
        tide_str store = request->tables[i];
        if (find_copy(ingest, store, request, false) != NULL) {
            continue;
        }
        struct tide_copy *copy = find_copy(ingest, store, request, true);
        if (copy == NULL) {
            const struct tide_relation *relation = NULL;
            TIDE_TRY(tide_ingest_find_table(ingest, store, &relation, err));
            if (relation == NULL) {
                request->is_table_failed[i] = true; /* the marker says so */
                continue;
            }
            copy = tide_ingest_add_copy(ingest, relation);
        }
        tide_copy_add_share(copy, request->lane, request->id);
    }
    return TIDE_OK;
}

/* One that names no table is for all that there are. */
static tide_status keep_received(struct tide_ingest *ingest, const struct tide_request *received,
                                 struct tide_error *err)
{
    struct tide_arena arena TIDE_CLEANUP(tide_arena_done) = {0};
    const tide_str *names = received->tables;
    size_t count = received->table_count;
    if (count == 0) {
        const struct tide_relation *const *tables = NULL;
        TIDE_TRY(ingest->options.source_ops->tables(ingest->options.source, &tables, &count, err));
        tide_str *all = tide_arena_alloc(&arena, count, sizeof(*all));
        for (size_t i = 0; i < count; i++) {
            all[i] = tables[i]->store;
        }
        names = all;
    }
    struct tide_ingest_request *request = tide_ingest_add_request(
        ingest, ingest->next_request_id, received->id, received->lane, names, count);
    TIDE_TRY(tide_ingest_queue_copies(ingest, request, err));
    TIDE_TRY(tide_ingest_save(ingest, false, err));
    atomic_store(&ingest->stats.requests_saved, received->id);
    return TIDE_OK;
}

tide_status tide_ingest_receive_requests(struct tide_ingest *ingest, struct tide_error *err)
{
    struct tide_stream *stream = ingest->options.stream;
    while (!tide_ingest_has_posts(ingest)) {
        struct tide_request *received = NULL;
        tide_status status = stream->ops->receive_request(stream, 0, &received, err);
        if (status == TIDE_TIMEOUT) {
            return TIDE_OK;
        }
        TIDE_TRY(status);
        status = keep_received(ingest, received, err);
        tide_request_free(received);
        TIDE_TRY(status);
    }
    return TIDE_OK;
}

static bool is_under_way(const struct tide_ingest *ingest, uint64_t request_id)
{
    for (const struct tide_ingest_copy *item = ingest->copies; item != NULL; item = item->next) {
        bool is_unfinished =
            item->copy->state == TIDE_COPY_QUEUED || item->copy->state == TIDE_COPY_RUNNING;
        if (is_unfinished && has_share(item->copy, request_id)) {
            return true;
        }
    }
    return false;
}

/* True when each table of the request has been published to its end, or has failed. */
static bool update_tables(struct tide_ingest *ingest, struct tide_ingest_request *request)
{
    size_t finished = 0;
    for (size_t i = 0; i < request->table_count; i++) {
        const struct tide_copy *copy = find_copy(ingest, request->tables[i], request, false);
        if (copy != NULL) {
            request->is_table_done[i] =
                copy->state == TIDE_COPY_ENDED || copy->state == TIDE_COPY_DONE;
            request->is_table_failed[i] = copy->state == TIDE_COPY_FAILED;
        }
        finished += request->is_table_done[i] || request->is_table_failed[i];
    }
    return finished == request->table_count;
}

static size_t choose(const struct tide_ingest_request *request, const bool *chosen,
                     tide_str *ret_tables)
{
    size_t count = 0;
    for (size_t i = 0; i < request->table_count; i++) {
        if (chosen[i]) {
            ret_tables[count++] = request->tables[i];
        }
    }
    return count;
}

static tide_status publish_marker(struct tide_ingest *ingest, struct tide_ingest_request *request,
                                  struct tide_error *err)
{
    struct tide_arena arena TIDE_CLEANUP(tide_arena_done) = {0};
    tide_str *done = tide_arena_alloc(&arena, request->table_count, sizeof(*done));
    tide_str *failed = tide_arena_alloc(&arena, request->table_count, sizeof(*failed));
    size_t done_count = choose(request, request->is_table_done, done);
    size_t failed_count = choose(request, request->is_table_failed, failed);
    struct tide_marker *marker =
        tide_marker_new(request->id, done, done_count, failed, failed_count);
    return tide_ingest_publish_marker(ingest, marker, request->lane, &request->marker_build, err);
}

/* All markers are published before any request is acknowledged. */
static tide_status publish_markers(struct tide_ingest *ingest, struct tide_error *err)
{
    for (struct tide_ingest_request *r = ingest->requests; r != NULL; r = r->next) {
        if (r->marker_build == 0 && !is_under_way(ingest, r->id) && update_tables(ingest, r)) {
            TIDE_TRY(publish_marker(ingest, r, err));
        }
    }
    for (struct tide_ingest_request *r = ingest->requests; r != NULL; r = r->next) {
        if (r->marker_build != 0 && r->stream_id != 0) {
            TIDE_TRY(ingest->options.stream->ops->acknowledge_request(ingest->options.stream,
                                                                      r->stream_id, err));
            r->stream_id = 0;
        }
    }
    return TIDE_OK;
}

void tide_ingest_drop_held_requests(struct tide_ingest *ingest)
{
    struct tide_stream *stream = ingest->options.stream;
    struct tide_ingest_request **link = &ingest->requests;
    while (*link != NULL) {
        struct tide_ingest_request *request = *link;
        if (request->marker_build == 0 ||
            stream->ops->held(stream, request->lane) < request->marker_build) {
            link = &request->next;
            continue;
        }
        tide_ingest_sink_of(ingest, request->lane)->is_seeded = true;
        ingest->must_save = true;
        *link = request->next;
        tide_ingest_free_request(request);
    }
}

tide_status tide_ingest_finish_requests(struct tide_ingest *ingest, struct tide_error *err)
{
    TIDE_TRY(publish_markers(ingest, err));
    tide_ingest_drop_held_requests(ingest);
    return TIDE_OK;
}
