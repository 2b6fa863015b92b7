/* How much of a random test to do: few rounds in `make test`, many in `make soak AREA=…`. */
#pragma once

#include <stdlib.h>

/** `in_test` rounds, or `in_soak` when TIDEMARK_SOAK is set to something but 0. */
static inline long soak_rounds(long in_test, long in_soak)
{
    const char *text = getenv("TIDEMARK_SOAK");
    return text != NULL && text[0] != '\0' && text[0] != '0' ? in_soak : in_test;
}
