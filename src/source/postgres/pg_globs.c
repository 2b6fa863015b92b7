#include "base/buf.h"
#include "source/postgres/pg_catalogue.h"

/* The bytes of the character at `at`; broken UTF-8 counts as single bytes. */
static size_t character_len(tide_str text, size_t at)
{
    size_t len = 1;
    if (((unsigned char)text.ptr[at] & 0xC0u) != 0xC0u) {
        return len;
    }
    while (len < 4 && at + len < text.len && ((unsigned char)text.ptr[at + len] & 0xC0u) == 0x80u) {
        len++;
    }
    return len;
}

bool tide_pg_glob_matches(tide_str glob, tide_str text)
{
    size_t at = 0;
    size_t star = SIZE_MAX; /* behind the last `*` in the glob */
    size_t star_at = 0;     /* what that `*` has taken so far ends here */
    for (size_t i = 0; at < text.len || i < glob.len;) {
        if (i < glob.len && glob.ptr[i] == '*') {
            star = ++i;
            star_at = at;
        } else if (i < glob.len && at < text.len && glob.ptr[i] == '?') {
            at += character_len(text, at);
            i++;
        } else if (i < glob.len && at < text.len && glob.ptr[i] == text.ptr[at]) {
            at++;
            i++;
        } else if (star != SIZE_MAX && star_at < text.len) {
            star_at += character_len(text, star_at);
            at = star_at;
            i = star;
        } else {
            return false;
        }
    }
    return true;
}

static bool is_plain(tide_str glob)
{
    return glob.len > 0 && memchr(glob.ptr, '*', glob.len) == NULL &&
           memchr(glob.ptr, '?', glob.len) == NULL;
}

bool tide_pg_globs_choose(const tide_str *globs, size_t glob_count, tide_str schema, tide_str name,
                          bool *ret_is_named)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf full = {0};
    tide_buf_append_str(&full, schema);
    tide_buf_append_char(&full, '.');
    tide_buf_append_str(&full, name);
    bool is_chosen = glob_count == 0;
    bool is_named = false;
    for (size_t i = 0; i < glob_count; i++) {
        bool matches = tide_pg_glob_matches(globs[i], name) ||
                       tide_pg_glob_matches(globs[i], tide_buf_str(&full));
        is_chosen = is_chosen || matches;
        is_named = is_named || (matches && is_plain(globs[i]));
    }
    if (ret_is_named != NULL) {
        *ret_is_named = is_named;
    }
    return is_chosen;
}
