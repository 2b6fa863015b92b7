#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void set_message(struct tide_error *err, const char *fmt, va_list args)
{
    (void)vsnprintf(err->message, sizeof(err->message), fmt, args);
}

/* Here the functions themselves are meant, not what the analyzer is told about them. */
#undef tide_fail
#undef tide_fail_retriable
#undef tide_fail_finally
#undef tide_fail_context

tide_status tide_fail(struct tide_error *err, tide_status status, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    err->status = status;
    err->retriable = false;
    err->is_final = false;
    set_message(err, fmt, args);
    va_end(args);
    return status;
}

tide_status tide_fail_retriable(struct tide_error *err, tide_status status, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    err->status = status;
    err->retriable = true;
    err->is_final = false;
    set_message(err, fmt, args);
    va_end(args);
    return status;
}

tide_status tide_fail_finally(struct tide_error *err, tide_status status, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    err->status = status;
    err->retriable = false;
    err->is_final = true;
    set_message(err, fmt, args);
    va_end(args);
    return status;
}

tide_status tide_fail_context(struct tide_error *err, const char *fmt, ...)
{
    char inner[sizeof(err->message)];
    memcpy(inner, err->message, sizeof(inner));
    va_list args;
    va_start(args, fmt);
    set_message(err, fmt, args);
    va_end(args);
    size_t used = strlen(err->message);
    (void)snprintf(err->message + used, sizeof(err->message) - used, ": %s", inner);
    return err->status;
}

const char *tide_status_name(tide_status status)
{
    static const char *const names[] = {
        [TIDE_OK] = "ok",           [TIDE_END] = "end",         [TIDE_CANCELLED] = "cancelled",
        [TIDE_INVALID] = "invalid", [TIDE_CORRUPT] = "corrupt", [TIDE_UNSUPPORTED] = "unsupported",
        [TIDE_IO] = "io",           [TIDE_REMOTE] = "remote",   [TIDE_CLOSED] = "closed",
        [TIDE_TIMEOUT] = "timeout", [TIDE_STALE] = "stale",
    };
    TIDE_ASSERT((size_t)status < sizeof(names) / sizeof(names[0]));
    return names[status];
}

void tide_none_left(const char *what, int error, const char *way_out)
{
    (void)fprintf(stderr, "tidemark: the system gives no more %s: %s; %s\n", what, strerror(error),
                  way_out);
    _exit(3); /* in whatever thread: what is not held yet comes again */
}

void tide_assert_failed(const char *file, int line, const char *condition)
{
    (void)fprintf(stderr, "tidemark: %s:%d: assertion failed: %s\n", file, line, condition);
    abort();
}
