/* Findings of a source as lines for people. */
#pragma once

#include "port/source.h"

#include <stdio.h>

/** One paragraph a finding: "problem: …" or "note: …", the remedy indented below. Returns the
 * number of problems. */
size_t tide_findings_print(FILE *to, const struct tide_findings *findings);

/** A name from outside, control bytes as \xNN so that no terminal obeys them. */
void tide_print_name(FILE *to, tide_str name);
