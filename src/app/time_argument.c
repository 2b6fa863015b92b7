#include "app/time_argument.h"

#include "base/buf.h"
#include "base/clock.h"

#define DATE_LEN   10 /* 2026-11-29 */
#define MINUTE_LEN 16 /* 2026-11-29 13:40 */
#define TEXT_MAX   64

bool tide_age_parse(tide_str text, int64_t *ret_age_us)
{
    static const struct {
        char letter;
        int64_t seconds;
    } units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}, {'w', 604800}};

    uint64_t number = 0;
    if (text.len < 2 || !tide_str_to_u64(tide_str_of(text.ptr, text.len - 1), &number)) {
        return false;
    }
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        int64_t unit_us = units[i].seconds * 1000000;
        if (units[i].letter == text.ptr[text.len - 1] &&
            number <= (uint64_t)(INT64_MAX / unit_us)) {
            *ret_age_us = (int64_t)number * unit_us;
            return true;
        }
    }
    return false;
}

static bool parse_whole(struct tide_buf *buf, const char *end, int64_t *ret_utc_us)
{
    struct tide_error ignored;
    size_t len = buf->len;
    tide_buf_append_str(buf, tide_str_from(end));
    bool is_time = tide_rfc3339_parse(tide_buf_str(buf), ret_utc_us, &ignored) == TIDE_OK;
    buf->len = len;
    return is_time;
}

bool tide_time_argument_parse(tide_str text, int64_t now_us, int64_t *ret_utc_us)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf buf = {0};
    int64_t age = 0;
    if (tide_age_parse(text, &age)) {
        *ret_utc_us = now_us - age;
        return true;
    }
    if (text.len < DATE_LEN || text.len > TEXT_MAX) {
        return false;
    }
    tide_buf_append_str(&buf, text);
    if (buf.len > DATE_LEN && buf.ptr[DATE_LEN] == ' ') {
        buf.ptr[DATE_LEN] = 'T';
    }
    return parse_whole(&buf, "", ret_utc_us) || parse_whole(&buf,
                                                            buf.len == DATE_LEN     ? "T00:00:00Z"
                                                            : buf.len == MINUTE_LEN ? ":00Z"
                                                                                    : "Z",
                                                            ret_utc_us);
}
