/*
 * An encoder for tests: a segment is the text "plain" and its rows, each its time and length as
 * eight and four bytes, big endian, and its bytes. Its index is the number of rows as text.
 */
#pragma once

#include "archive/encoder.h"

/* What it is told to do otherwise than well. */
struct plain_encoder_fault {
    int64_t rows_max;      /* 0: all that are given; else those behind stay live */
    bool does_skip_first;  /* makes a segment without its first row */
    bool does_skip_middle; /* without its second */
    bool does_overstate;   /* says one row too many */
    bool does_misdate;     /* says it begins later than it does */
    bool does_fail;
    bool does_take_none;
};

/** The encoder, of version "plain-1"; `fault` may be NULL and must outlive it. */
struct tide_archive_encoder plain_encoder(struct plain_encoder_fault *fault);
