/* The type that a column of a table gets in a segment, by what its source declares. Pure. */
#pragma once

#include "archive/change_plan.h"

/**
 * The parquet column, without a name, and the form of its values (form, natural and scale of
 * `column`, whose key_place is set).
 *
 * Input: with positions of kind "lsn" the types are PostgreSQL's, else SQLite's affinities.
 */
struct tide_parquet_column tide_change_form_of(const struct tide_change_schema *schema,
                                               size_t index, struct tide_change_column *column);
