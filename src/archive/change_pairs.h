/* What a segment says of itself in its key-value metadata. Pure. */
#pragma once

#include "base/str.h"
#include "format/parquet/metadata.h"

#define TIDE_CHANGE_ENCODER_VERSION "tidemark-changes-1"

#define TIDE_CHANGE_PAIR_ENCODER "tidemark.encoder" /* TIDE_CHANGE_ENCODER_VERSION */
#define TIDE_CHANGE_PAIR_SERIES  "tidemark.series"
#define TIDE_CHANGE_PAIR_SCHEMA  "tidemark.columns" /* change_schema.h */

/** The value under a key; ptr NULL without one. */
tide_str tide_change_pair(const struct tide_parquet_metadata *metadata, const char *key);
