/*
 * The rows that a fold holds, by their keys. Pure; for one thread at a time. Private to
 * change_fold.c.
 *
 *     items     one a key, in the order in which keys came; a deleted one stays, for its place
 *     slots     hash -> number of an item. While keys rise none is looked for, so that items are
 * put there when one is that does not: many at a time, which costs a fraction blocks    the items'
 * records, one behind the other. Those that were replaced stay until they are more than half of
 * their block: then its others are moved, and it is freed record    its size, number of the item,
 * size of the key; the encoded key (model/value.h); unless there are none, the values of columns
 * that are not of the key: u8 kind, and of texts u8 length, or 255 and u32 length, and the text
 *
 * So memory is that of the state, and of records at most as much again.
 */
#pragma once

#include "archive/change_history.h"
#include "archive/change_schema.h"
#include "model/value.h"

/* The columns that rows are of; a fold has few of them. */
struct tide_change_version {
    tide_str json;
    struct tide_change_schema schema;
    bool *is_key;     /* one a column */
    uint32_t *places; /* of the newest version's columns in this one; NO_PLACE: it has none */
    bool is_newest;   /* each column is in its own place */
};

#define TIDE_CHANGE_NO_PLACE UINT32_MAX

/** Sets which columns are of the key; in `arena`. */
void tide_change_version_mark_key(struct tide_change_version *version, struct tide_arena *arena);

/** Sets the places of `to`'s columns in `of`, by their names; in `arena`. */
void tide_change_version_place(struct tide_change_version *of, const struct tide_change_version *to,
                               struct tide_arena *arena);

/* A key of the table, and its row. */
struct tide_change_held {
    struct tide_change_place place;
    uint64_t bytes;
    uint32_t version;
    bool is_change;  /* the place is a change's */
    bool is_deleted; /* kept for its place */
    bool is_stale;
    bool is_seen; /* by the snapshot that the fold is based on */
    /* private, but whether there are values */
    bool has_values; /* else they are not known, or the row is deleted */
    uint32_t block;
    char *record;
    uint64_t hash;
};

struct tide_change_slot;
struct tide_change_records;

/* `{0}` is empty. */
struct tide_change_rows {
    struct tide_change_held *items;
    size_t count;
    /* private */
    size_t cap;
    struct tide_change_slot *slots;
    size_t slot_count;
    size_t placed;   /* items that are in slots: all before that number */
    size_t greatest; /* item; where count is 0, none */
    struct tide_change_records *blocks;
    size_t block_count;
    size_t filled;     /* block, from 1; 0: none */
    size_t free_block; /* number that can be taken again, likewise */
};

/** Frees the memory. */
void tide_change_rows_done(struct tide_change_rows *rows);

#define TIDE_CHANGE_NO_ROW SIZE_MAX

/** The number of a key's item, by its encoded key, or NO_ROW. */
size_t tide_change_rows_find(struct tide_change_rows *rows, tide_str key);

/**
 * Gives the key's item the values of a version's columns (NULL: none); where there is no item, a
 * new one that is zero otherwise. Returns its number.
 *
 * Input: `values` may borrow from records; those of the key are passed over.
 * Owns:  copies all. Nothing that borrows from records, and no pointer to an item, is valid after.
 */
size_t tide_change_rows_put(struct tide_change_rows *rows, tide_str key,
                            const struct tide_change_version *version,
                            const struct tide_value *values);

/** The encoded key of an item. It borrows from the record, as what follows. */
tide_str tide_change_held_key(const struct tide_change_held *held);

/** The values of its key, of so many columns. */
void tide_change_held_read_key(const struct tide_change_held *held, struct tide_value *ret_key,
                               size_t count);

/** The values that it has, in the columns of its version; those of the key are left as they are. */
void tide_change_held_read(const struct tide_change_held *held,
                           const struct tide_change_version *version,
                           struct tide_value *ret_values);
