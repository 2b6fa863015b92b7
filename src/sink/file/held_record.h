/*
 * What is held of a copy in files, as bytes: whose copy it is, how far it has come, and how long
 * each file is. Pure codec.
 *
 *     whose it is and how far (port/owner.h)
 *     u32 files, each: text name   text store   u64 inode   u64 length   u64 tail hash
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/status.h"
#include "port/owner.h"
#include "port/progress.h"

#include <stddef.h>
#include <stdint.h>

/* One file as it was at the last flush. The tail is its last bytes, up to TIDE_TAIL_BYTES. */
struct tide_held_file {
    tide_str name;  /* inside the copy's directory */
    tide_str store; /* empty: all stores */
    uint64_t inode;
    uint64_t length;
    uint64_t tail_hash; /* XXH3 */
};

#define TIDE_TAIL_BYTES ((size_t)4096)

struct tide_held_record {
    struct tide_arena arena; /* names and texts live here */
    struct tide_owner owner;
    struct tide_progress progress;
    struct tide_held_file *files;
    size_t file_count;
    size_t file_cap;
};

/** Frees what it holds; `{0}` is an empty record. For TIDE_CLEANUP too. */
void tide_held_record_done(struct tide_held_record *record);

/** Adds a file; its texts are copied. The pointer is good until the next add. */
struct tide_held_file *tide_held_record_add(struct tide_held_record *record,
                                            const struct tide_held_file *file);

/** Appends `record`, with `progress` in place of its own. */
void tide_held_record_encode(const struct tide_held_record *record,
                             const struct tide_progress *progress, struct tide_buf *buf);

/** Fills the empty `ret_record`; nothing borrows from `bytes`. TIDE_CORRUPT. */
tide_status tide_held_record_decode(tide_str bytes, struct tide_held_record *ret_record,
                                    struct tide_error *err);
