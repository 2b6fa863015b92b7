#include "stream/requests.h"

#include "base/alloc.h"

#include <stdlib.h>

void tide_requests_done(struct tide_requests *requests)
{
    for (size_t i = 0; i < requests->count; i++) {
        tide_request_free(requests->entries[i].request);
    }
    free(requests->entries);
    *requests = (struct tide_requests){0};
}

static bool names_contain(const tide_str *names, size_t count, tide_str name)
{
    for (size_t i = 0; i < count; i++) {
        if (tide_str_equal(names[i], name)) {
            return true;
        }
    }
    return false;
}

static bool names_within(const tide_str *some, size_t some_count, const tide_str *all,
                         size_t all_count)
{
    for (size_t i = 0; i < some_count; i++) {
        if (!names_contain(all, all_count, some[i])) {
            return false;
        }
    }
    return true;
}

static bool asks_for(const struct tide_request *request, unsigned lane, const tide_str *tables,
                     size_t table_count)
{
    return request->lane == lane &&
           names_within(tables, table_count, request->tables, request->table_count) &&
           names_within(request->tables, request->table_count, tables, table_count);
}

uint64_t tide_requests_add(struct tide_requests *requests, unsigned lane, const tide_str *tables,
                           size_t table_count)
{
    for (size_t i = requests->received; i < requests->count; i++) {
        if (asks_for(requests->entries[i].request, lane, tables, table_count)) {
            return requests->entries[i].request->id;
        }
    }
    if (requests->count == requests->cap) {
        requests->cap = requests->cap == 0 ? 8 : requests->cap * 2;
        requests->entries =
            tide_realloc(requests->entries, requests->cap, sizeof(*requests->entries));
    }
    uint64_t id = requests->next_id++;
    requests->entries[requests->count++] = (struct tide_request_entry){
        .request = tide_request_new(id, lane, tables, table_count),
    };
    return id;
}

struct tide_request *tide_requests_take(struct tide_requests *requests)
{
    if (requests->received == requests->count) {
        return NULL;
    }
    const struct tide_request *request = requests->entries[requests->received++].request;
    return tide_request_new(request->id, request->lane, request->tables, request->table_count);
}

static void remove_at(struct tide_requests *requests, size_t at)
{
    tide_request_free(requests->entries[at].request);
    for (size_t i = at + 1; i < requests->count; i++) {
        requests->entries[i - 1] = requests->entries[i];
    }
    requests->count--;
    if (at < requests->received) {
        requests->received--;
    }
}

bool tide_requests_acknowledge(struct tide_requests *requests, uint64_t id)
{
    for (size_t i = 0; i < requests->received; i++) {
        if (requests->entries[i].request->id == id) {
            remove_at(requests, i);
            return true;
        }
    }
    return false;
}

void tide_requests_rewind(struct tide_requests *requests)
{
    for (size_t i = requests->received; i > 0; i--) {
        if (requests->entries[i - 1].is_orphaned) {
            remove_at(requests, i - 1);
        }
    }
    requests->received = 0;
}

void tide_requests_drop_lane(struct tide_requests *requests, unsigned lane)
{
    for (size_t i = requests->count; i > 0; i--) {
        struct tide_request_entry *entry = &requests->entries[i - 1];
        if (entry->request->lane != lane || entry->is_orphaned) {
            continue;
        }
        if (i - 1 < requests->received) {
            entry->is_orphaned = true;
        } else {
            remove_at(requests, i - 1);
        }
    }
}
