#include "model/chunk.h"

#include "base/status.h"

#include <string.h>

bool tide_visibility_sees(const struct tide_visibility *visibility, uint64_t tx_id)
{
    if (tx_id < visibility->xmin || tx_id >= visibility->xmax) {
        return tx_id < visibility->xmin;
    }
    size_t low = 0;
    size_t high = visibility->in_progress_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (visibility->in_progress[middle] < tx_id) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low == visibility->in_progress_count || visibility->in_progress[low] != tx_id;
}

void tide_chunk_done(struct tide_chunk *chunk)
{
    tide_arena_done(&chunk->arena);
    tide_charge_done(&chunk->charge);
    *chunk = (struct tide_chunk){0};
}

struct tide_value *tide_chunk_add_row(struct tide_chunk *chunk, size_t column_count)
{
    if (chunk->row_count == chunk->row_cap) {
        size_t cap = chunk->row_cap == 0 ? 64 : chunk->row_cap * 2;
        const struct tide_value **rows = tide_arena_alloc(&chunk->arena, cap, sizeof(*rows));
        if (chunk->row_count > 0) {
            memcpy((void *)rows, (const void *)chunk->rows, chunk->row_count * sizeof(*rows));
        }
        chunk->rows = rows;
        chunk->row_cap = cap;
    }
    struct tide_value *row = tide_arena_alloc(&chunk->arena, column_count, sizeof(*row));
    chunk->rows[chunk->row_count++] = row;
    return row;
}
