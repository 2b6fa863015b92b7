/* Random tables, and rows of archives' series of them: the same for the same seed. */
#pragma once

#include "archive/change_row.h"
#include "archive/change_schema.h"

struct change_maker {
    uint64_t state; /* the seed */
    struct tide_arena arena;
};

void change_maker_done(struct change_maker *maker);

/** 0 to `limit` - 1. */
uint64_t change_maker_below(struct change_maker *maker, uint64_t limit);

/** A table with names that collide, types of both sources and no sense, keys of any columns. */
struct tide_change_schema change_maker_schema(struct change_maker *maker);

/** Appends the schema's JSON. */
void change_maker_json(const struct tide_change_schema *schema, struct tide_buf *buf);

/** A value of any kind, often one that suits the type. */
struct tide_value change_maker_value(struct change_maker *maker, tide_str type);

/** A row of any kind, with all that such a row may have. */
struct tide_change_row change_maker_row(struct change_maker *maker,
                                        const struct tide_change_schema *schema);
