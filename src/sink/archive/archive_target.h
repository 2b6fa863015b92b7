/*
 * The archive that a sink writes to, open: its place locked, its one writer, our source in it, and
 * what is held there. What it finds at its place it goes on with, begins beside or over it, or
 * refuses with the ways on.
 */
#pragma once

#include "archive/place.h"
#include "archive/writer.h"
#include "base/arena.h"
#include "port/owner.h"
#include "port/sink.h"

/* Labels of our sources. */
#define TIDE_ARCHIVE_LABEL_PROGRAM "program" /* "tidemark" */
#define TIDE_ARCHIVE_LABEL_SOURCE  "source"  /* the identity that the database had first */

/* Metadata of our sources, written anew by each copy that begins. */
#define TIDE_ARCHIVE_META_PIPELINE "pipeline"
#define TIDE_ARCHIVE_META_IDENTITY "identity" /* the one that the database has now */
#define TIDE_ARCHIVE_META_LOCATION "location" /* where it is, if its identity may change */

struct tide_archive_target {
    struct tide_archive_place place;
    struct tide_archive_writer *writer;
    int64_t source;
    struct tide_arena arena; /* the owner's texts */
    struct tide_owner owner;
    struct tide_progress held; /* as the file says */
    struct tide_buf scratch;
};

/**
 * Opens what `options` name. Nothing that was there has changed when it fails with TIDE_INVALID,
 * TIDE_STALE, TIDE_CORRUPT or TIDE_UNSUPPORTED. `{.place = {.lock_fd = -1}}` is a closed target.
 */
tide_status tide_archive_target_open(struct tide_archive_target *target,
                                     const struct tide_sink_options *options,
                                     struct tide_error *err);

/** For TIDE_CLEANUP too. */
void tide_archive_target_close(struct tide_archive_target *target);

/** Writes the tick's rows and notes, and with them that `progress` is held. */
tide_status tide_archive_target_write(struct tide_archive_target *target,
                                      struct tide_archive_tick *tick,
                                      const struct tide_progress *progress, struct tide_error *err);

/** Appends what would keep open from working; looks only. */
tide_status tide_archive_sink_check(const struct tide_sink_options *options,
                                    struct tide_findings *findings, struct tide_error *err);
