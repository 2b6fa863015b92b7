#include "app/state/state_dir.h"

#include "app/adapters.h"
#include "app/place.h"

#include <stdlib.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#define WORD_MAX 40

/* The letters of a name that make no trouble in a path. */
static void append_word(struct tide_buf *buf, tide_str name)
{
    for (size_t i = 0; i < name.len && i < WORD_MAX; i++) {
        char c = name.ptr[i];
        bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                        (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
        tide_buf_append_char(buf, is_plain ? c : '_');
    }
}

static tide_str last_part(const char *place)
{
    tide_str s = tide_str_from(place);
    while (s.len > 1 && s.ptr[s.len - 1] == '/') {
        s.len--;
    }
    size_t start = s.len;
    while (start > 0 && s.ptr[start - 1] != '/' && s.ptr[start - 1] != ':') {
        start--;
    }
    return tide_str_of(s.ptr + start, s.len - start);
}

static tide_str sink_word(const char *sink)
{
    if (strcmp(sink, "-") == 0) {
        return TIDE_STR("stdout");
    }
    tide_str part = last_part(sink);
    return part.len > 0 ? part : tide_str_from(sink);
}

void tide_state_dir_default(struct tide_buf *buf, const char *source, const char *sink)
{
    struct tide_buf both TIDE_CLEANUP(tide_buf_done) = {0};
    tide_place_append_shown(&both, tide_str_from(source)); /* another password: the same state */
    tide_buf_append_char(&both, '\n');
    tide_buf_append_str(&both, tide_str_from(sink));
    uint64_t hash = XXH3_64bits(both.ptr, both.len);
    tide_buf_append_str(buf, TIDE_STR(".tidemark/"));
    tide_str database = tide_place_url_database(tide_str_from(source));
    append_word(buf, database.len > 0 ? database : tide_connection_name(last_part(source)));
    tide_buf_append_str(buf, TIDE_STR("-to-"));
    append_word(buf, sink_word(sink));
    tide_buf_printf(buf, "-%08x", (unsigned)(hash & 0xffffffffu));
}
