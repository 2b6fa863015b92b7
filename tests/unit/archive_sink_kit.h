/* What tests of the archive sink share: what an archive holds, as text. */
#pragma once

#include "cmocka_prelude.h"

#include "base/buf.h"
#include "base/status.h"

#include <stdint.h>

struct tide_sink;

/* Fails the test, with the message, unless a call was OK. */
void ok(tide_status status, const struct tide_error *err);

/* Appends all rows of all series: "SOURCE SERIES\n", then a line a row, and fails the test unless
 * the file is sound, times rise and each row has its columns:
 *
 *     change at 9.1 key 901 values 901,name 901,null
 */
void list_rows(const char *path, struct tide_buf *text);

void assert_rows(const char *path, const char *want);

/* One number out of the file, by plain SQLite, which may change it too; -1 without a row. */
int64_t number_of(const char *path, const char *sql);

/* A fresh copy at the path, and one that goes on. */
struct tide_sink *open_new(const char *path);
struct tide_sink *open_resumed(const char *path);
