#include "app/row_lines.h"

#include "format/record.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define WRITE_BYTES ((size_t)65536)
#define CELL_SHOWN  ((size_t)60) /* of a table for people */

bool tide_row_format_parse(const char *name, enum tide_row_format *ret_format)
{
    static const char *const names[] = {"ndjson", "csv", "table"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(name, names[i]) == 0) {
            *ret_format = (enum tide_row_format)i;
            return true;
        }
    }
    return false;
}

void tide_row_lines_init(struct tide_row_lines *lines, enum tide_row_format format,
                         size_t column_count)
{
    *lines = (struct tide_row_lines){.format = format, .column_count = column_count};
    lines->table.column_count = column_count;
}

void tide_row_lines_done(struct tide_row_lines *lines)
{
    tide_buf_done(&lines->buf);
    tide_buf_done(&lines->cell);
    tide_buf_done(&lines->shown);
    tide_text_table_done(&lines->table);
}

static bool needs_quotes(tide_str text)
{
    static const bool is_special[256] = {
        [','] = true, ['"'] = true, ['\r'] = true, ['\n'] = true, ['\0'] = true};
    for (size_t i = 0; i < text.len; i++) {
        if (is_special[(unsigned char)text.ptr[i]]) {
            return true;
        }
    }
    return text.len == 0 || text.ptr[0] == ' ' || text.ptr[text.len - 1] == ' ';
}

static void append_quoted(struct tide_buf *buf, tide_str text)
{
    tide_buf_append_char(buf, '"');
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] == '"') {
            tide_buf_append_char(buf, '"');
        }
        tide_buf_append_char(buf, text.ptr[i]);
    }
    tide_buf_append_char(buf, '"');
}

/* What is longer is cut between characters. */
static tide_str shorten(struct tide_buf *shown, tide_str text)
{
    size_t len = CELL_SHOWN;
    if (text.len <= len) {
        return text;
    }
    while (len > 0 && ((unsigned char)text.ptr[len] & 0xc0) == 0x80) {
        len--;
    }
    tide_buf_reset(shown);
    tide_buf_append(shown, text.ptr, len);
    tide_buf_append_str(shown, TIDE_STR("…"));
    return tide_buf_str(shown);
}

static void end_cell(struct tide_row_lines *lines)
{
    lines->column = lines->column + 1 == lines->column_count ? 0 : lines->column + 1;
    if (lines->format == TIDE_ROWS_CSV) {
        tide_buf_append_char(&lines->buf, lines->column == 0 ? '\n' : ',');
    }
}

void tide_row_lines_add(struct tide_row_lines *lines, tide_str text)
{
    if (lines->format == TIDE_ROWS_TABLE) {
        tide_text_table_add(&lines->table, shorten(&lines->shown, text));
    } else if (needs_quotes(text)) {
        append_quoted(&lines->buf, text);
    } else {
        tide_buf_append_str(&lines->buf, text);
    }
    end_cell(lines);
}

void tide_row_lines_add_none(struct tide_row_lines *lines)
{
    if (lines->format == TIDE_ROWS_TABLE) {
        tide_text_table_add(&lines->table, TIDE_STR("-"));
    }
    end_cell(lines);
}

void tide_row_lines_add_value(struct tide_row_lines *lines, struct tide_value value)
{
    tide_str text = tide_value_str(value);
    if (value.kind <= TIDE_VALUE_ABSENT) {
        tide_row_lines_add_none(lines);
        return;
    }
    if (value.kind == TIDE_VALUE_RAW_TEXT || value.kind == TIDE_VALUE_BYTES) {
        tide_buf_reset(&lines->cell);
        tide_record_append_value(&lines->cell, value);
        text = tide_buf_str(&lines->cell);
    }
    if (value.kind == TIDE_VALUE_BYTES) { /* without its quotes */
        text = tide_str_of(text.ptr + 1, text.len - 2);
    }
    tide_row_lines_add(lines, text);
}

static tide_status fail_write(struct tide_error *err)
{
    int error = errno;
    clearerr(stdout); /* it is told here, not when the program ends */
    return tide_fail(err, error == EPIPE ? TIDE_CLOSED : TIDE_IO,
                     "standard output could not be written: %s", strerror(error));
}

tide_status tide_row_lines_write(struct tide_row_lines *lines, bool is_end, struct tide_error *err)
{
    if (is_end) {
        tide_text_table_print(&lines->table, &lines->buf);
    }
    if (lines->buf.len > 0 && (is_end || lines->buf.len >= WRITE_BYTES)) {
        if (fwrite(lines->buf.ptr, 1, lines->buf.len, stdout) != lines->buf.len ||
            (is_end && fflush(stdout) != 0)) {
            return fail_write(err);
        }
        tide_buf_reset(&lines->buf);
    }
    return TIDE_OK;
}
