/* The one table that names the adapters: which source or sink a place's scheme stands for. */
#pragma once

#include "format/checkpoint.h"
#include "port/sink.h"
#include "port/source.h"

/* A place as a user writes it: `sqlite:shop.db`, `postgres://…`, `file:out.ndjson`, `-`, `null:`.
 */
struct tide_place_text {
    tide_str scheme;
    tide_str rest; /* behind the colon */
};

/** The adapter for a place. TIDE_INVALID naming the known schemes. `ret_rest` borrows from `place`;
 * of a URL (`scheme://…`) that names a source it is the whole. */
tide_status tide_find_source(const char *place, const struct tide_source_ops **ret_ops,
                             tide_str *ret_rest, struct tide_error *err);
tide_status tide_find_sink(const char *place, const struct tide_sink_ops **ret_ops,
                           tide_str *ret_rest, struct tide_error *err);

/** Reads our own checkpoint whose source is not known, places of stores included: kinds of
 * positions tell themselves apart. Errors: as tide_checkpoint_decode. */
tide_status tide_decode_checkpoint(tide_str json, struct tide_arena *arena,
                                   struct tide_checkpoint *ret_checkpoint,
                                   const struct tide_position_kind **ret_kind,
                                   struct tide_error *err);

/** First part of a source's store names: of a URL the database, else the place's last
 * component without its extension. */
tide_str tide_connection_name(tide_str rest);
