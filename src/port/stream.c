#include "port/stream.h"

#include "base/alloc.h"

#include <stdlib.h>

static tide_str *names_copy(const tide_str *names, size_t count)
{
    tide_str *copy = tide_alloc(count, sizeof(*copy));
    for (size_t i = 0; i < count; i++) {
        copy[i] = tide_str_of(tide_strndup(names[i].ptr, names[i].len), names[i].len);
    }
    return copy;
}

static void names_free(tide_str *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        tide_free_ptr(&names[i].ptr);
    }
    free(names);
}

struct tide_marker *tide_marker_new(uint64_t request_id, const tide_str *tables, size_t table_count,
                                    const tide_str *failed, size_t failed_count)
{
    struct tide_marker *marker = tide_alloc(1, sizeof(*marker));
    marker->refs = 1;
    marker->request_id = request_id;
    marker->tables = names_copy(tables, table_count);
    marker->table_count = table_count;
    marker->failed = names_copy(failed, failed_count);
    marker->failed_count = failed_count;
    return marker;
}

struct tide_marker *tide_marker_ref(struct tide_marker *marker)
{
    (void)atomic_fetch_add_explicit(&marker->refs, 1, memory_order_relaxed);
    return marker;
}

void tide_marker_unref(struct tide_marker *marker)
{
    if (marker == NULL || atomic_fetch_sub_explicit(&marker->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    names_free(marker->tables, marker->table_count);
    names_free(marker->failed, marker->failed_count);
    free(marker);
}

struct tide_item tide_item_ref(struct tide_item item)
{
    if (item.kind == TIDE_ITEM_BATCH) {
        (void)tide_batch_ref(item.batch);
    } else {
        (void)tide_marker_ref(item.marker);
    }
    return item;
}

void tide_item_unref(struct tide_item item)
{
    if (item.kind == TIDE_ITEM_BATCH) {
        tide_batch_unref(item.batch);
    } else {
        tide_marker_unref(item.marker);
    }
}

struct tide_request *tide_request_new(uint64_t id, unsigned lane, const tide_str *tables,
                                      size_t table_count)
{
    struct tide_request *request = tide_alloc(1, sizeof(*request));
    request->id = id;
    request->lane = lane;
    request->tables = names_copy(tables, table_count);
    request->table_count = table_count;
    return request;
}

void tide_request_free(struct tide_request *request)
{
    if (request != NULL) {
        names_free(request->tables, request->table_count);
        free(request);
    }
}
