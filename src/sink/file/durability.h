/*
 * The small file beside a copy that says what is held of it: two slots, overwritten in turn, so
 * that a write cut short at any byte leaves the other one. The newest valid slot counts.
 *
 *     | slot 0 | slot 1 |     each `slot_size` bytes, a multiple of 4096; the file is just both
 *     slot:  0 "TIDEHELD"   8 u32 version   12 u32 slot_size   16 u64 sequence
 *           24 u32 payload length   28 u32 zero   32 u64 XXH3 of bytes 0..31 and the payload
 *           40 payload
 *
 * A payload that outgrows the slots makes a new file of larger ones, which replaces the old one
 * atomically. One sink thread uses it.
 */
#pragma once

#include "base/buf.h"
#include "base/status.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tide_durability {
    int dir_fd;       /* borrowed */
    const char *dir;  /* for messages; borrowed */
    const char *name; /* borrowed */
    int fd;           /* -1: there is no file yet */
    size_t slot_size;
    uint64_t sequence; /* of the newest slot; it lies in slot `sequence` % 2 */
    struct tide_buf scratch;
};

/** Does not look at the disk yet. */
void tide_durability_init(struct tide_durability *durability, int dir_fd, const char *dir,
                          const char *name);
void tide_durability_done(struct tide_durability *durability);

/**
 * Appends the newest payload to `ret_payload`; `ret_found` false: there is no such file.
 * Errors: TIDE_CORRUPT neither slot is whole, or the file has another length; TIDE_UNSUPPORTED a
 * newer version wrote it; TIDE_IO. A later store replaces what could not be read.
 */
tide_status tide_durability_load(struct tide_durability *durability, bool *ret_found,
                                 struct tide_buf *ret_payload, struct tide_error *err);

/** Makes `payload` the newest one, durably. The data it speaks of is durable already. TIDE_IO,
 * retriable unless it lasts. */
tide_status tide_durability_store(struct tide_durability *durability, tide_str payload,
                                  struct tide_error *err);
