/*
 * A schema as the footer has it: the tree's elements in depth-first order, the root first. Pure.
 * Private to this folder.
 *
 *     required group schema { optional int64 id (INTEGER(64, true)); optional group tags (LIST) {
 *         repeated group list { optional binary element (STRING); } } }
 */
#pragma once

#include "format/parquet/metadata.h"

/** Appends the field `field`: the list of elements. */
void tide_parquet_elements_append(struct tide_thrift_writer *writer, int16_t field,
                                  const struct tide_parquet_metadata *metadata);

/**
 * Reads the list into the metadata's columns, leaves and their counts (arrays in `arena`).
 * What cannot be read as a column becomes one that says why not.
 */
tide_status tide_parquet_elements_read(struct tide_thrift_reader *reader, uint8_t type,
                                       struct tide_arena *arena,
                                       struct tide_parquet_metadata *metadata,
                                       struct tide_error *err);
