#include "engine/sink_counts.h"

void tide_sink_counts_add(struct tide_sink_counts *sum, const struct tide_sink_counts *more)
{
    sum->rows += more->rows;
    sum->stubs += more->stubs;
    sum->changes += more->changes;
    sum->bytes += more->bytes;
    sum->dead_letters += more->dead_letters;
    sum->skipped += more->skipped;
    sum->unfilled += more->unfilled;
}

void tide_sink_counts_take_held(struct tide_sink_counts *sum, const struct tide_sink_counts *held,
                                const struct tide_sink_counts *written)
{
    struct tide_sink_counts taken = *held;
    taken.dead_letters = written->dead_letters;
    taken.skipped = written->skipped;
    tide_sink_counts_add(sum, &taken);
}
