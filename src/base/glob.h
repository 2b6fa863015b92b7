/* Patterns that choose names: `*` any run of bytes, also none, `?` one UTF-8 character. */
#pragma once

#include "base/str.h"

#include <stdbool.h>

/** The whole text matches. Linear in each `*`, without recursion. Pure. */
bool tide_glob_matches(tide_str glob, tide_str text);

/** Whether it has a `*` or a `?`: else it names one thing. */
bool tide_glob_is_pattern(tide_str glob);

/**
 * Whether the glob chooses a table, by its store's name `<connection>.<table>` or
 * `<connection>.<schema>.<table>`: it matches what follows the connection, or the table alone, or
 * the whole. Names with dots in them match too in each of these ways.
 */
bool tide_glob_matches_store(tide_str glob, tide_str store);
