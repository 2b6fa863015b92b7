#include "stream/lane.h"

#include "base/alloc.h"

#include <stdlib.h>
#include <string.h>

#define ENTRIES_MIN 16

static struct tide_lane_entry *entry_at(const struct tide_lane *lane, uint64_t number)
{
    return &lane->entries[number & (lane->cap - 1)];
}

static void bytes_sub(struct tide_lane *lane, const struct tide_lane_entry *entry)
{
    TIDE_ASSERT(lane->bytes >= entry->size);
    lane->bytes -= entry->size;
}

struct tide_lane *tide_lane_new(tide_str name, uint64_t born, uint64_t build_born)
{
    struct tide_lane *lane = tide_alloc(1, sizeof(*lane));
    lane->name = tide_strndup(name.ptr, name.len);
    lane->name_len = name.len;
    lane->born = born;
    lane->generation = born;
    lane->build_born = build_born;
    tide_cond_init(&lane->readable);
    return lane;
}

void tide_lane_free(struct tide_lane *lane)
{
    if (lane == NULL) {
        return;
    }
    TIDE_ASSERT(lane->waiters == 0);
    for (uint64_t i = lane->head; i < lane->tail; i++) {
        tide_item_unref(entry_at(lane, i)->item);
    }
    (void)pthread_cond_destroy(&lane->readable);
    free(lane->entries);
    free(lane->name);
    free(lane);
}

static size_t names_size(const tide_str *names, size_t count)
{
    size_t size = count * sizeof(*names);
    for (size_t i = 0; i < count; i++) {
        size += names[i].len;
    }
    return size;
}

size_t tide_item_size(const struct tide_item *item)
{
    if (item->kind == TIDE_ITEM_BATCH) {
        return item->batch->size;
    }
    const struct tide_marker *marker = item->marker;
    return sizeof(*marker) + names_size(marker->tables, marker->table_count) +
           names_size(marker->failed, marker->failed_count);
}

bool tide_lane_has_room(const struct tide_lane *lane, size_t size, size_t items_max,
                        size_t bytes_max)
{
    size_t count = tide_lane_items(lane);
    if (count == 0) {
        return true;
    }
    return count < items_max && lane->bytes <= bytes_max && size <= bytes_max - lane->bytes;
}

static void grow(struct tide_lane *lane)
{
    size_t cap = lane->cap == 0 ? ENTRIES_MIN : lane->cap * 2;
    struct tide_lane_entry *entries = tide_alloc(cap, sizeof(*entries));
    for (uint64_t i = lane->head; i < lane->tail; i++) {
        entries[i & (cap - 1)] = *entry_at(lane, i);
    }
    free(lane->entries);
    lane->entries = entries;
    lane->cap = cap;
}

void tide_lane_push(struct tide_lane *lane, const struct tide_item *item, uint64_t build,
                    size_t size)
{
    TIDE_ASSERT(build > lane->build_last);
    if (tide_lane_items(lane) == lane->cap) {
        grow(lane);
    }
    *entry_at(lane, lane->tail) =
        (struct tide_lane_entry){.item = tide_item_ref(*item), .build = build, .size = size};
    lane->tail++;
    lane->bytes += size;
    lane->build_last = build;
}

struct tide_lane_entry *tide_lane_take(struct tide_lane *lane)
{
    return lane->next == lane->tail ? NULL : entry_at(lane, lane->next++);
}

/* The number in the ring of a delivered item; `next` when there is none. Build numbers ascend. */
static uint64_t find_delivered(const struct tide_lane *lane, uint64_t build)
{
    uint64_t low = lane->head;
    uint64_t high = lane->next;
    if (low < high && entry_at(lane, low)->build == build) {
        return low; /* acknowledged in order: the usual case */
    }
    while (low < high) {
        uint64_t mid = low + (high - low) / 2;
        if (entry_at(lane, mid)->build < build) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return low < lane->next && entry_at(lane, low)->build == build ? low : lane->next;
}

bool tide_lane_acknowledge(struct tide_lane *lane, uint64_t build)
{
    uint64_t at = find_delivered(lane, build);
    if (at == lane->next || entry_at(lane, at)->is_acknowledged) {
        return false;
    }
    entry_at(lane, at)->is_acknowledged = true;
    return true;
}

static void release_item(struct tide_release *release, struct tide_item item)
{
    if (release->count == TIDE_RELEASE_MAX) {
        tide_item_unref(item);
        return;
    }
    release->items[release->count++] = item;
}

bool tide_lane_advance(struct tide_lane *lane, struct tide_release *release)
{
    uint64_t before = lane->head;
    while (lane->head < lane->next && entry_at(lane, lane->head)->is_acknowledged) {
        const struct tide_lane_entry *entry = entry_at(lane, lane->head);
        lane->build_floor = entry->build;
        if (entry->item.kind == TIDE_ITEM_BATCH && entry->item.batch->has_position) {
            lane->build_position = entry->build;
            lane->position = entry->item.batch->position;
        }
        bytes_sub(lane, entry);
        release_item(release, entry->item);
        lane->head++;
    }
    return lane->head != before;
}

/* An item that was acknowledged behind `to` must come again too: the rows of `to` will be applied
 * after its rows and would undo them. */
static void go_back(struct tide_lane *lane, uint64_t to)
{
    for (uint64_t i = to; i < lane->next; i++) {
        entry_at(lane, i)->is_acknowledged = false;
    }
    lane->next = to;
}

bool tide_lane_give_back(struct tide_lane *lane, uint64_t build)
{
    uint64_t at = find_delivered(lane, build);
    if (at == lane->next || entry_at(lane, at)->is_acknowledged) {
        return false;
    }
    go_back(lane, at);
    return true;
}

void tide_lane_rewind(struct tide_lane *lane)
{
    go_back(lane, lane->head);
}

void tide_lane_cut(struct tide_lane *lane)
{
    while (lane->tail > lane->next) {
        lane->tail--;
        bytes_sub(lane, entry_at(lane, lane->tail));
        tide_item_unref(entry_at(lane, lane->tail)->item);
    }
}

void tide_release_done(struct tide_release *release)
{
    for (size_t i = 0; i < release->count; i++) {
        tide_item_unref(release->items[i]);
    }
    release->count = 0;
}
