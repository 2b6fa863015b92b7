/* The nearest known word to a mistyped one, for "did you mean". */
#pragma once

#include <stddef.h>

/**
 * The word of `known` that `word` was most likely meant to be, or NULL when none is near.
 *
 * Shape:   near is at most a third of the longer word's letters changed, added, left out or
 *          swapped with their neighbour, or `word` being the beginning (two letters or more) of
 *          exactly one of them. Words over 63 bytes are never near. The first of equals wins.
 */
const char *tide_nearest(const char *word, const char *const *known, size_t count);
