/* Log lines on standard error: "2026-11-29T13:40:55.567Z info  message". Lines are written by
 * engine/ and app/ only. */
#pragma once

#include "base/attr.h"

#include <stddef.h>

enum tide_log_level {
    TIDE_LOG_ERROR,
    TIDE_LOG_WARN,
    TIDE_LOG_INFO,
    TIDE_LOG_DEBUG
};

/** Lines above this level are dropped; the default is TIDE_LOG_INFO. The only global state. */
void tide_log_set_level(enum tide_log_level level);

/** Writes one line with one write(2). Any thread. A message over 2 KiB is cut; control bytes, a
 * line end too, become `?`. */
void tide_log(enum tide_log_level level, const char *fmt, ...) TIDE_PRINTF(2, 3);

/** Makes text that may come from outside fit for a line of a terminal, in place: control bytes, and
 * what is no UTF-8, become `?`. */
void tide_log_make_safe(char *text, size_t len);
