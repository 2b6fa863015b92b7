#include "sink/file/file_name.h"

#include <inttypes.h>
#include <stdbool.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#define SUFFIX     ".ndjson"
#define HASH_BYTES ((size_t)17) /* "~" and 16 digits: no name that was not cut has a "~" */

static bool is_safe(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
}

void tide_file_name_append(struct tide_buf *buf, tide_str store)
{
    static const char digits[] = "0123456789ABCDEF";
    const size_t room = TIDE_FILE_NAME_MAX - (sizeof(SUFFIX) - 1);
    size_t start = buf->len;
    size_t cut = start; /* where a name that is too long ends: never inside a %XX */
    for (size_t i = 0; i < store.len && buf->len - start <= room; i++) {
        char c = store.ptr[i];
        if (is_safe(c) && !(c == '.' && i == 0)) {
            tide_buf_append_char(buf, c);
        } else {
            unsigned char byte = (unsigned char)c;
            const char escaped[3] = {'%', digits[byte >> 4], digits[byte & 15]};
            tide_buf_append(buf, escaped, 3);
        }
        if (buf->len - start <= room - HASH_BYTES) {
            cut = buf->len;
        }
    }
    if (buf->len - start > room) {
        buf->len = cut;
        tide_buf_printf(buf, "~%016" PRIx64, (uint64_t)XXH3_64bits(store.ptr, store.len));
    }
    tide_buf_append(buf, SUFFIX, sizeof(SUFFIX) - 1);
}
