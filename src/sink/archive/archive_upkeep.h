/*
 * Keeps an archive in order beside the sink that writes it: what is older than it is to keep is
 * forgotten, many small segments are joined, and room is given back. It reads through a handle of
 * its own and asks the writer for short transactions alone, so whoever writes waits for one of them
 * at most. Only the source that the sink writes is looked at.
 *
 * Of each table all is kept from the begin of its newest complete copy that ended before the
 * cutoff; a table without one keeps everything.
 */
#pragma once

#include "port/sink.h"
#include "sink/archive/archive_target.h"

struct tide_archive_upkeep;

/** `target` and what `options` point to must stay. */
struct tide_archive_upkeep *tide_archive_upkeep_new(const struct tide_archive_target *target,
                                                    const struct tide_sink_options *options);

/** Starts a thread that looks again and again; nothing where the options ask for nothing. */
void tide_archive_upkeep_start(struct tide_archive_upkeep *upkeep);

/**
 * One look, as the thread does it; without a thread, or by it.
 * Errors: TIDE_CANCELLED it is being freed; the first that a table had, the others were looked at.
 */
tide_status tide_archive_upkeep_look(struct tide_archive_upkeep *upkeep, int64_t now_ns,
                                     struct tide_error *err);

/** Ends the thread first. NULL is fine. */
void tide_archive_upkeep_free(struct tide_archive_upkeep *upkeep);
