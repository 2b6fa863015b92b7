#include "app/text_table.h"

#include "app/safe_text.h"
#include "base/alloc.h"
#include "base/status.h"

#include <stdlib.h>

void tide_text_table_done(struct tide_text_table *table)
{
    tide_buf_done(&table->cells);
    free(table->widths);
    *table = (struct tide_text_table){0};
}

/* Characters of UTF-8, as if each had one column. */
static size_t width_of(const char *text)
{
    size_t width = 0;
    for (; *text != '\0'; text++) {
        width += ((unsigned char)*text & 0xc0) != 0x80;
    }
    return width;
}

void tide_text_table_add(struct tide_text_table *table, tide_str cell)
{
    TIDE_ASSERT(table->column_count > 0);
    if (table->widths == NULL) {
        table->widths = tide_alloc(table->column_count, sizeof(*table->widths));
    }
    size_t column = table->cell_count % table->column_count;
    size_t start = table->cells.len;
    tide_append_safe(&table->cells, cell);
    tide_buf_append_char(&table->cells, '\0');
    size_t width = width_of(table->cells.ptr + start);
    if (width > table->widths[column]) {
        table->widths[column] = width;
    }
    table->cell_count++;
}

static void trim(struct tide_buf *buf)
{
    while (buf->len > 0 && buf->ptr[buf->len - 1] == ' ') {
        buf->len--;
    }
}

void tide_text_table_print(const struct tide_text_table *table, struct tide_buf *buf)
{
    const char *cell = table->cells.ptr;
    for (size_t i = 0; i < table->cell_count; i++) {
        size_t column = i % table->column_count;
        size_t len = strlen(cell);
        tide_buf_append(buf, cell, len);
        for (size_t pad = width_of(cell); pad < table->widths[column] + 2; pad++) {
            tide_buf_append_char(buf, ' ');
        }
        if (column + 1 == table->column_count) {
            trim(buf);
            tide_buf_append_char(buf, '\n');
        }
        cell += len + 1;
    }
}
