/*
 * What every sink does with a record that it cannot take as it is: stops, keeps it as a dead
 * letter, or skips it, as the user has chosen for its table. It decides before anything of the
 * record is written:
 *
 *     TIDE_TRY(tide_refusals_take_row(&refusals, part, index, &refused, err));
 *     … write the stub …
 *
 * One sink thread uses it; only tide_refusals_counts may be called by others.
 */
#pragma once

#include "base/status.h"
#include "port/sink.h"

#include <stdatomic.h>

struct tide_refusals {
    tide_str sink; /* its name; borrowed, as all that follows */
    tide_str destination;
    struct tide_refused_policy policy;
    struct tide_dead_letters dead_letters;
    const struct tide_position_kind *position_kind;
    uint32_t incarnation;
    /* private */
    _Atomic uint64_t letters;
    _Atomic uint64_t skipped;
};

/* The record, and why it is refused: "921700 bytes, limit 921600". */
struct tide_refused_record {
    tide_str bytes;
    tide_str reason;
};

/** Takes what it needs of `options`; `destination` is as a user writes it, and must stay. */
void tide_refusals_init(struct tide_refusals *refusals, const struct tide_sink_options *options,
                        tide_str destination);

/**
 * TIDE_OK: the row's stub, or the change without its record, may be written.
 * Errors: TIDE_INVALID, final: the user wants to stop here; the same, not final: there are no dead
 * letters;
 * those of the dead letters.
 */
tide_status tide_refusals_take_row(struct tide_refusals *refusals,
                                   const struct tide_snapshot_part *part, size_t index,
                                   const struct tide_refused_record *record,
                                   struct tide_error *err);
tide_status tide_refusals_take_change(struct tide_refusals *refusals,
                                      const struct tide_change *change,
                                      const struct tide_refused_record *record,
                                      struct tide_error *err);

/** Sets dead_letters and skipped, nothing else. Any thread. */
void tide_refusals_counts(const struct tide_refusals *refusals,
                          struct tide_sink_counts *ret_counts);

/** As users write it: "dead_letter", "stop" or "skip". */
const char *tide_refused_name(enum tide_refused action);

/** The rule that counts for a table; NULL: none matches it. */
const struct tide_refused_rule *tide_refused_rule_of(const struct tide_refused_policy *policy,
                                                     const struct tide_relation *relation);
