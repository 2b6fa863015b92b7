#include "base/log.h"

#include "base/clock.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

static _Atomic int level_max = TIDE_LOG_INFO;

void tide_log_set_level(enum tide_log_level level)
{
    atomic_store(&level_max, (int)level);
}

void tide_log(enum tide_log_level level, const char *fmt, ...)
{
    static const char *const names[] = {"error", "warn ", "info ", "debug"};
    if ((int)level > atomic_load(&level_max)) {
        return;
    }
    char line[2048];
    char now[TIDE_RFC3339_MS_LEN + 1];
    tide_rfc3339_ms(tide_clock_utc_us(), now);
    int used = snprintf(line, sizeof(line), "%s %s ", now, names[level]);
    va_list args;
    va_start(args, fmt);
    int more = vsnprintf(line + used, sizeof(line) - (size_t)used - 1, fmt, args);
    va_end(args);
    size_t len = (size_t)used + (more < 0 ? 0 : (size_t)more);
    if (len > sizeof(line) - 2) {
        len = sizeof(line) - 2;
    }
    line[len++] = '\n';
    ssize_t written = write(STDERR_FILENO, line, len); /* nowhere left to report a failure */
    (void)written;
}
