/* What the tests of sinks share: batches made by hand, a directory to write into, dead letters
 * that are kept in memory. */
#pragma once

#include "cmocka_prelude.h"

#include "base/buf.h"
#include "port/sink.h"

#include <stdbool.h>

/* A table of three columns: id (key), name, note (JSON). */
const struct tide_relation *kit_relation(const char *name);

/* A batch of `count` changes to rows of `relation`, places (position, 0…), ends a transaction. */
struct tide_batch *kit_changes(const struct tide_relation *relation, uint64_t position,
                               size_t count);

/* A row or change has this name instead of the usual one when it is not NULL: for long records. */
struct tide_batch *kit_change_named(const struct tide_relation *relation, uint64_t position,
                                    const char *name);

struct kit_part {
    const struct tide_relation *relation;
    unsigned snapshot; /* makes its id */
    uint32_t attempt;
    enum tide_snapshot_opening opening;
    uint64_t first_seq;
    size_t rows;
    bool is_end;
    const char *name; /* of each row; NULL: the usual one */
    const char *note; /* JSON; NULL: none */
};

struct tide_batch *kit_rows(struct kit_part spec);

/* The id that snapshot number `n` has. */
void kit_snapshot_id(unsigned n, char ret_id[TIDE_UUID_LEN + 1]);

/* An empty directory of its own for each test; entered, so that paths may be relative. */
int kit_setup(void **state);
int kit_teardown(void **state);

/* Options for a fresh copy of pipeline "p" of source "s". */
struct tide_sink_options kit_options(const char *place);

struct tide_sink *kit_open(const struct tide_sink_ops *ops,
                           const struct tide_sink_options *options);

/* Writes the batch whole and lets go of it. */
void kit_write(const struct tide_sink_ops *ops, struct tide_sink *sink, struct tide_batch *batch);
void kit_flush(const struct tide_sink_ops *ops, struct tide_sink *sink);

/* The whole file; NULL when it is not there. The caller frees. */
char *kit_read(const char *path, size_t *ret_len);
void kit_put(const char *path, const void *bytes, size_t len);
void kit_assert_file(const char *path, const char *text);
void kit_assert_golden(const char *path, const char *golden);
bool kit_exists(const char *path);

/* Removes a file or a whole directory; fine when it is not there. */
void kit_remove(const char *path);

/* Dead letters in memory, as text: "store|destination|reason|size|seq or position\n". */
struct kit_letters {
    struct tide_buf text;
    bool fails;
    bool knows_all; /* every one was there before */
};

struct tide_dead_letters kit_letters_target(struct kit_letters *letters);
