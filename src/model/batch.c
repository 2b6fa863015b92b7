#include "model/batch.h"

#include "base/alloc.h"
#include "base/status.h"

#include <stdlib.h>

struct tide_batch *tide_batch_new(void)
{
    struct tide_batch *batch = tide_alloc(1, sizeof(*batch));
    batch->refs = 1;
    return batch;
}

struct tide_batch *tide_batch_ref(struct tide_batch *batch)
{
    (void)atomic_fetch_add_explicit(&batch->refs, 1, memory_order_relaxed);
    return batch;
}

void tide_batch_unref(struct tide_batch *batch)
{
    if (batch == NULL || atomic_fetch_sub_explicit(&batch->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    for (size_t i = 0; i < batch->relation_count; i++) {
        tide_relation_unref(batch->relations[i]);
    }
    free((void *)batch->relations);
    free(batch->changes);
    tide_arena_done(&batch->arena);
    struct tide_charge charge = batch->charge;
    free(batch);
    tide_charge_done(&charge); /* once the memory is free: somebody may wait for it */
}

void tide_batch_use_relation(struct tide_batch *batch, const struct tide_relation *relation)
{
    for (size_t i = batch->relation_count; i > 0; i--) {
        if (batch->relations[i - 1] == relation) {
            return;
        }
    }
    if (batch->relation_count == batch->relation_cap) {
        batch->relation_cap = batch->relation_cap == 0 ? 4 : batch->relation_cap * 2;
        batch->relations = tide_realloc((void *)batch->relations, batch->relation_cap,
                                        sizeof(const struct tide_relation *));
    }
    batch->relations[batch->relation_count++] = tide_relation_ref(relation);
}

size_t tide_batch_count_until(const struct tide_batch *batch, struct tide_place place)
{
    size_t low = 0;
    size_t high = batch->change_count;
    if (high == 0 || !place.known || tide_place_compare(batch->changes[0].place, place) > 0) {
        return 0; /* the usual case */
    }
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (tide_place_compare(batch->changes[mid].place, place) <= 0) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    return low;
}
