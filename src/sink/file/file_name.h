/* The name of a table's file: safe on any file system, whatever the table is called. Pure. */
#pragma once

#include "base/buf.h"
#include "base/str.h"

/* A longer name is cut and gets a hash of the whole. */
#define TIDE_FILE_NAME_MAX ((size_t)200)

/**
 * Appends the name of `store`'s file: every byte but letters, digits, `.`, `_`, `-` and a dot at
 * the beginning as %XX, then ".ndjson". Different stores have different names, but for two long
 * ones whose hashes collide: the caller compares.
 */
void tide_file_name_append(struct tide_buf *buf, tide_str store);
