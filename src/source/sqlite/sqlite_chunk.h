/*
 * Chunk readers: rows of a table in the order of its key, each chunk in one short read transaction
 * that also tells how far the change log goes in it. A reader has a connection of its own and
 * belongs to one thread; only cancel may come from another.
 *
 * A table whose key may hold NULL is read in two phases: first the rows with a NULL in the key, by
 * rowid, which no comparison of keys would bring; then the others by key. Their last_key has a NULL
 * and the rowid, so it says by itself which phase comes next.
 */
#pragma once

#include "port/source.h"

/** See port/source.h. `path` and `connection` are copied. */
tide_status tide_sqlite_chunk_reader_open(const char *path, tide_str connection,
                                          struct tide_chunk_reader **ret_reader,
                                          struct tide_error *err);
void tide_sqlite_chunk_reader_close(struct tide_chunk_reader *reader);
tide_status tide_sqlite_chunk_read(struct tide_chunk_reader *reader,
                                   const struct tide_chunk_request *request,
                                   struct tide_chunk *ret_chunk, struct tide_error *err);
void tide_sqlite_chunk_cancel(struct tide_chunk_reader *reader);
