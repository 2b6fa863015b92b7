/*
 * The values of the table's columns in some rows of a segment, made column by column. Pure. Private
 * to change_read.c.
 */
#pragma once

#include "archive/change_group.h"
#include "base/arena.h"
#include "base/buf.h"
#include "model/value.h"

/* `{0}` is empty. */
struct tide_change_block {
    size_t start; /* rows of the group, from start to before end */
    size_t end;
    /* Values are of their kinds by the way they were made; else that is to be checked. */
    bool is_sound;
    /* private */
    size_t column_count;
    struct tide_buf values; /* struct tide_value, row after row */
    struct tide_arena arena;
    struct tide_buf text; /* of one value, on its way into the arena */
};

/** Frees the memory. */
void tide_change_block_done(struct tide_change_block *block);

/**
 * Reads rows from `start` on, as many as a block takes of those that the group has.
 *
 * Shape:  NULL or ABSENT stands for what was not sent, too.
 * Owns:   values live in the block until it is read again, or borrow from the group.
 * Errors: TIDE_CORRUPT.
 */
tide_status tide_change_block_read(struct tide_change_block *block,
                                   const struct tide_change_group *group, size_t start,
                                   struct tide_error *err);

/** The values of a row of the block, one a column of the table. */
static inline struct tide_value *tide_change_block_row(const struct tide_change_block *block,
                                                       size_t row)
{
    return (struct tide_value *)(void *)block->values.ptr +
           (row - block->start) * block->column_count;
}
