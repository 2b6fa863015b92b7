#include "base/glob.h"

#include <stdint.h>
#include <string.h>

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

bool tide_glob_matches(tide_str glob, tide_str text)
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

bool tide_glob_is_pattern(tide_str glob)
{
    return glob.len > 0 &&
           (memchr(glob.ptr, '*', glob.len) != NULL || memchr(glob.ptr, '?', glob.len) != NULL);
}

bool tide_glob_matches_store(tide_str glob, tide_str store)
{
    if (tide_glob_matches(glob, store)) {
        return true;
    }
    for (size_t i = 0; i < store.len; i++) {
        if (store.ptr[i] == '.' &&
            tide_glob_matches(glob, tide_str_of(store.ptr + i + 1, store.len - i - 1))) {
            return true;
        }
    }
    return false;
}
