/*
 * When a live tail is long enough to be sealed. Advice alone: the archive never seals by itself.
 * The first segment of each series is sealed at a smaller size that differs from series to series,
 * so that many series which began together are not all due together. Pure.
 */
#pragma once

#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

struct tide_archive_seal_policy {
    int64_t rows_max;
    int64_t bytes_max;
    int64_t age_ns_max; /* <= 0: none */
    int64_t align_ns;   /* <= 0: none; else a tail that holds rows of two such spans is due */
};

/* 64 Ki rows or 8 MiB. */
extern const struct tide_archive_seal_policy tide_archive_seal_policy_default;

/* The live tail of a series. */
struct tide_archive_tail {
    int64_t rows;
    int64_t bytes;
    int64_t oldest_ts; /* with rows */
    int64_t newest_ts;
    bool is_first;  /* nothing of the series has been sealed */
    tide_str name;  /* of the series */
    tide_str label; /* of its source: labels by rising key, `k=v` joined by byte 1 */
};

/** Whether the tail should be sealed at the time `now_ts`. */
bool tide_archive_seal_is_due(const struct tide_archive_seal_policy *policy,
                              const struct tide_archive_tail *tail, int64_t now_ts);

/** A number from 0 to 63 that says by how much the caps of a first segment are reduced. */
unsigned tide_archive_stagger(tide_str series, tide_str label);
