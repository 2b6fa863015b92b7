/* Findings of a source as lines for people. */
#pragma once

#include "port/source.h"

#include <stdio.h>

/** One paragraph a finding: "problem: …" or "note: …", the remedy indented below. Returns the
 * number of problems. */
size_t tide_findings_print(FILE *to, const struct tide_findings *findings);
