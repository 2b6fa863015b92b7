/*
 * Shares out a pipeline's memory. At the default of 48 MiB:
 *
 *     floors    2 MiB the open batch, 6 lanes, 5 chunks, 4 remembered changes
 *     in common 31 MiB: lanes as their cap lets them, a chunk read ahead, remembered changes
 *
 * With less, chunks, batches and what a sink writes at once become smaller in proportion.
 */
#include "base/limits.h"
#include "engine/pipeline_state.h"

static size_t part_of(const struct tide_pipeline *pipeline, size_t part, size_t most)
{
    size_t bytes = tide_budget_limit(pipeline->budget) / part;
    return bytes < most ? bytes : most;
}

size_t tide_pipeline_batch_bytes(const struct tide_pipeline *pipeline)
{
    return part_of(pipeline, 48, TIDE_BATCH_BYTES_MAX);
}

size_t tide_pipeline_group_bytes(const struct tide_pipeline *pipeline)
{
    return part_of(pipeline, 6, TIDE_SINK_GROUP_BYTES);
}

void tide_pipeline_make_budget(struct tide_pipeline *pipeline)
{
    size_t bytes = pipeline->options.memory_bytes;
    bytes = bytes == 0 ? TIDE_MEMORY_BYTES_DEFAULT : bytes;
    const size_t floors[TIDE_BUDGET_USERS] = {
        [TIDE_BUDGET_BUILD] = bytes / 24,
        [TIDE_BUDGET_LANES] = bytes / 8,
        [TIDE_BUDGET_CHUNKS] = bytes / 48 * 5,
        [TIDE_BUDGET_MEMORY] = bytes / 12,
    };
    pipeline->budget = tide_budget_new(bytes, floors);
    pipeline->options.copy.budget = pipeline->budget;
    pipeline->options.copy.chunk_bytes_max = part_of(pipeline, 12, TIDE_CHUNK_BYTES_DEFAULT);
}
