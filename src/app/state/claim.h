/*
 * What one part of a pipeline has for itself on disk, and where two parts meet. Files are compared
 * by device and inode, by way of their names' folders where they are not there yet.
 */
#pragma once

#include "engine/pipeline.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

/* A path, by the nearest folder above it that is there and what follows in it. */
struct tide_claim_place {
    bool is_there;
    struct stat st;
    bool has_above;
    struct stat above;
    struct tide_buf rest;
};

struct tide_claim_spot {
    struct tide_buf path; /* for messages */
    struct tide_buf name; /* its last part, links followed */
    struct tide_claim_place self;
    struct tide_claim_place folder; /* that it is in */
    bool is_folder;
};

enum tide_claim_kind {
    TIDE_CLAIM_SOURCE,
    TIDE_CLAIM_CONFIGURATION,
    TIDE_CLAIM_STATE,
    TIDE_CLAIM_SINK,
};

struct tide_claim {
    enum tide_claim_kind kind;
    tide_str sink; /* its name; borrowed */
    struct tide_claim_spot *spots;
    size_t count;
    size_t cap;
    struct tide_claim_place folder; /* where it makes files whose names come later */
    bool has_folder;
};

/** Frees what it holds; `{0}` holds nothing. For TIDE_CLEANUP too. */
void tide_claim_done(struct tide_claim *claim);

/** Claims of their kinds. Nothing is opened for writing or made. `claim` is `{0}`. */
void tide_claim_source(struct tide_claim *claim, const struct tide_pipeline_options *options);
void tide_claim_configuration(struct tide_claim *claim, const char *path);
void tide_claim_state(struct tide_claim *claim, const char *state_dir);

/** Errors: TIDE_INVALID the place is no path. */
tide_status tide_claim_sink(struct tide_claim *claim, const struct tide_pipeline_sink *sink,
                            struct tide_error *err);

/** The spot of `writer` that `owner` has too, or would have; NULL: they are apart. `ret_owned`:
 * which of the owner's, NULL for a name in its folder. */
const struct tide_claim_spot *tide_claim_meet(const struct tide_claim *writer,
                                              const struct tide_claim *owner,
                                              const struct tide_claim_spot **ret_owned);
