/* Feeding a reassembler from files, each read once or, where seqs came twice, again. */
#pragma once

#include "app/verify/verify_input.h"
#include "format/reassembler.h"

#include <stddef.h>

/**
 * Reads all inputs, and the regular ones again to compare what came more than once. An input that
 * cannot be read to its end is reported on standard error; the others are read all the same.
 * Returns how many could not. Marks given to the reassembler are the inputs' indexes.
 */
size_t tide_verify_read(struct tide_reassembler *reassembler, struct tide_inputs *inputs,
                        size_t frame_bytes_max);
