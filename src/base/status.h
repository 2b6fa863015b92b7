/*
 * The one way to fail: a status to decide on and a sentence for people.
 *
 * Every function that can fail returns tide_status (the compiler refuses to let it be ignored) and
 * takes a `struct tide_error *err` last, never NULL. Outputs are untouched on failure. Running out
 * of memory, threads or descriptors ends the program, and so do broken invariants: it is crash-only
 * and resumes from its checkpoint.
 */
#pragma once

#include "base/attr.h"

#include <stdbool.h>
#include <stddef.h>

typedef enum TIDE_NODISCARD tide_status {
    TIDE_OK = 0,
    TIDE_END,         /* stream or input finished normally */
    TIDE_CANCELLED,   /* stop was asked for */
    TIDE_INVALID,     /* caller, option or configuration is wrong */
    TIDE_CORRUPT,     /* bytes do not follow the format */
    TIDE_UNSUPPORTED, /* valid, but not handled */
    TIDE_IO,          /* system call or network */
    TIDE_REMOTE,      /* the peer reported an error */
    TIDE_CLOSED,      /* the stream or peer has ended the exchange */
    TIDE_TIMEOUT,     /* the deadline passed; nothing happened */
    TIDE_STALE,       /* a handle of an earlier owner */
} tide_status;

struct tide_error {
    tide_status status;
    bool retriable;    /* may reconnect and go on from the checkpoint */
    bool is_final;     /* the user wants it to end here: nobody is to try again */
    char message[512]; /* one sentence, outermost context first; always NUL-terminated */
};

/** Fills `err` (not retriable) and returns `status`. A message that does not fit is cut. */
tide_status tide_fail(struct tide_error *err, tide_status status, const char *fmt, ...)
    TIDE_PRINTF(3, 4);

/** As tide_fail, and says that going on from the checkpoint may help. */
tide_status tide_fail_retriable(struct tide_error *err, tide_status status, const char *fmt, ...)
    TIDE_PRINTF(3, 4);

/** As tide_fail, and says that it is to end here, also where errors are tried again. */
tide_status tide_fail_finally(struct tide_error *err, tide_status status, const char *fmt, ...)
    TIDE_PRINTF(3, 4);

/** Puts "context: " before the message that `err` holds and returns its status. */
tide_status tide_fail_context(struct tide_error *err, const char *fmt, ...) TIDE_PRINTF(2, 3);

#if defined(__clang_analyzer__) || defined(TIDE_ANALYZER)
/* Tells the analyzers, which read one file at a time, that these never return TIDE_OK. */
static inline tide_status tide_failed(tide_status status)
{
    return status == TIDE_OK ? TIDE_INVALID : status;
}

#define tide_fail(...)           tide_failed((tide_fail)(__VA_ARGS__))
#define tide_fail_retriable(...) tide_failed((tide_fail_retriable)(__VA_ARGS__))
#define tide_fail_finally(...)   tide_failed((tide_fail_finally)(__VA_ARGS__))
#define tide_fail_context(...)   tide_failed((tide_fail_context)(__VA_ARGS__))
#endif

/** The lower-case name of a status, for logs and tests. */
const char *tide_status_name(tide_status status);

/* The only macro with control flow: returns a failed status to the caller. */
#define TIDE_TRY(expr)                                                                             \
    do {                                                                                           \
        tide_status tide_try_status = (expr);                                                      \
        if (TIDE_UNLIKELY(tide_try_status != TIDE_OK)) {                                           \
            return tide_try_status;                                                                \
        }                                                                                          \
    } while (0)

/** Prints "file:line: condition" and aborts. Called by TIDE_ASSERT. */
void tide_assert_failed(const char *file, int line, const char *condition) TIDE_NORETURN;

/**
 * Ends the program with status 3 where the system gives no more of `what`: "no more <what>:
 * <error>; <way_out>". For what nobody could go on without, and no input can ask too much of.
 */
void tide_none_left(const char *what, int error, const char *way_out) TIDE_NORETURN;

/* Compiled in always, also in release builds. */
#define TIDE_ASSERT(condition)                                                                     \
    (TIDE_LIKELY(condition) ? (void)0 : tide_assert_failed(__FILE__, __LINE__, #condition))
