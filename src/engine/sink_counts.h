/* Sums of what sinks have written. */
#pragma once

#include "port/sink.h"

/** Adds each count of `more` to `sum`'s. */
void tide_sink_counts_add(struct tide_sink_counts *sum, const struct tide_sink_counts *more);

/**
 * Adds what stays of an opening that is over: what was flushed (`held`), since the rest is cut away
 * and comes again, and all that was not taken, which is never counted twice.
 */
void tide_sink_counts_take_held(struct tide_sink_counts *sum, const struct tide_sink_counts *held,
                                const struct tide_sink_counts *written);
