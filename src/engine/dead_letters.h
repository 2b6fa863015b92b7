/*
 * The dead letters of a pipeline: records that a sink could not take as they are, one JSON object
 * a line in `dead_letters.ndjson` of the state directory (0600). The file appears with the first
 * letter. A letter is on disk when putting it returns.
 *
 *     {"timestamp":T,"store":S,"destination":D,"reason":R,
 *      "snapshot_id":ID,"seq":N            a snapshot's row
 *      "position":P,"index":I              a change
 *      ,"bytes":TOTAL,"record":"text"      its first bytes when they are valid UTF-8
 *                    ,"record_base64":"…"  else }
 */
#pragma once

#include "model/position.h"
#include "port/sink.h"

#include <stddef.h>
#include <stdint.h>

struct tide_dead_letter_file;

/**
 * Counts the letters that are there; what a crash left of a half-written last line is cut away.
 * `dir` is the state directory, locked by the caller. Of each record `record_bytes_max` bytes are
 * kept, of a text so many that no character is cut.
 * Errors: TIDE_IO.
 */
tide_status tide_dead_letter_file_open(const char *dir, size_t record_bytes_max,
                                       const struct tide_position_kind *position_kind,
                                       struct tide_dead_letter_file **ret_letters,
                                       struct tide_error *err);

/** NULL is fine. No sink uses it any more. */
void tide_dead_letter_file_close(struct tide_dead_letter_file *letters);

/** For the options of a sink, valid until close. `put` may be called by any thread; its errors are
 * TIDE_IO, retriable, and leave the file as it was. */
struct tide_dead_letters tide_dead_letter_file_target(struct tide_dead_letter_file *letters);

/** Letters in the file. Any thread. */
uint64_t tide_dead_letter_file_count(const struct tide_dead_letter_file *letters);
