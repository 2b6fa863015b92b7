/* Lines in columns for people: every cell as wide as its column's widest. */
#pragma once

#include "base/buf.h"

#include <stddef.h>

struct tide_text_table {
    size_t column_count;
    struct tide_buf cells; /* each ended by a NUL, row by row */
    size_t cell_count;
    size_t *widths; /* column_count; made with the first cell */
};

/** Frees it; `{.column_count = n}` is an empty table. For TIDE_CLEANUP too. */
void tide_text_table_done(struct tide_text_table *table);

/** Adds the next cell; control bytes are escaped. */
void tide_text_table_add(struct tide_text_table *table, tide_str cell);

/** Appends the rows as lines, without blanks at their ends. */
void tide_text_table_print(const struct tide_text_table *table, struct tide_buf *buf);
