#include "base/log.h"

#include "base/clock.h"
#include "base/str.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

static _Atomic int level_max = TIDE_LOG_INFO;

void tide_log_set_level(enum tide_log_level level)
{
    atomic_store(&level_max, (int)level);
}

/* How long the character is that begins there; 0: none does, or it is a control of C1. */
static size_t character(const char *text, size_t len)
{
    for (size_t size = 2; size <= 4 && size <= len; size++) {
        bool is_c1 = (unsigned char)text[0] == 0xc2 && (unsigned char)text[1] < 0xa0;
        if (!is_c1 && tide_str_is_utf8(tide_str_of(text, size))) {
            return size;
        }
    }
    return 0;
}

/* A name from outside must neither forge a line nor command a terminal. */
void tide_log_make_safe(char *text, size_t len)
{
    for (size_t i = 0; i < len;) {
        unsigned char byte = (unsigned char)text[i];
        size_t size =
            byte < 0x80 ? (size_t)(byte >= 0x20 && byte != 0x7f) : character(text + i, len - i);
        if (size == 0) {
            text[i++] = '?';
        }
        i += size;
    }
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
    tide_log_make_safe(line + used, len - (size_t)used);
    line[len++] = '\n';
    ssize_t written = write(STDERR_FILENO, line, len); /* nowhere left to report a failure */
    (void)written;
}
