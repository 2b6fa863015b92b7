/*
 * Ways of doing the same that are measured in turn, round by round: what else the machine does
 * falls on all of them alike, so that the ratios within a round say most, and their median.
 */
#pragma once

#include "base/clock.h"
#include "base/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define PAIRED_ROUNDS 9

/* What each round took; processor time is that of all threads. */
struct paired {
    double wall[PAIRED_ROUNDS];
    double processor[PAIRED_ROUNDS];
    size_t count;
    int64_t start_us;
    double start_processor;
};

static inline double paired_processor(void)
{
    struct timespec at;
    TIDE_ASSERT(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &at) == 0);
    return (double)at.tv_sec + (double)at.tv_nsec / 1e9;
}

static inline void paired_start(struct paired *paired)
{
    paired->start_processor = paired_processor();
    paired->start_us = tide_clock_monotonic_us();
}

static inline void paired_stop(struct paired *paired)
{
    TIDE_ASSERT(paired->count < PAIRED_ROUNDS);
    paired->wall[paired->count] = (double)(tide_clock_monotonic_us() - paired->start_us) / 1e6;
    paired->processor[paired->count++] = paired_processor() - paired->start_processor;
}

static inline int paired_compare(const void *a, const void *b)
{
    const double *first = a;
    const double *second = b;
    return (*first > *second) - (*first < *second);
}

/* The median of the rounds' ratios: how many times as fast as `of`. */
static inline double paired_ratio(const double *ours, const double *of, size_t count)
{
    double ratios[PAIRED_ROUNDS];
    for (size_t i = 0; i < count; i++) {
        ratios[i] = of[i] / ours[i];
    }
    qsort(ratios, count, sizeof(ratios[0]), paired_compare);
    return ratios[count / 2];
}

static inline double paired_least(const double *took, size_t count)
{
    double least = took[0];
    for (size_t i = 1; i < count; i++) {
        least = took[i] < least ? took[i] : least;
    }
    return least;
}

/* A line: rows a second by wall in the best round, microseconds of processor a row in the least;
 * and the rate as a share of `of`, unless NULL. */
static inline void paired_print(const char *name, const struct paired *paired,
                                const struct paired *of, double rows)
{
    printf("%-30s %8.0f rows/s, %.2f us of processor a row", name,
           rows / paired_least(paired->wall, paired->count),
           paired_least(paired->processor, paired->count) * 1e6 / rows);
    if (of != NULL) {
        printf("; %.2f of the rate by wall, %.2f by processor",
               paired_ratio(paired->wall, of->wall, paired->count),
               paired_ratio(paired->processor, of->processor, paired->count));
    }
    printf("\n");
}
