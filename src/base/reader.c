#include "base/reader.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "bytes are swapped on every read");

tide_str tide_reader_cstr(struct tide_reader *reader)
{
    size_t left = tide_reader_left(reader);
    const char *nul = left == 0 ? NULL : memchr(reader->pos, '\0', left);
    if (nul == NULL) {
        reader->failed = true;
        return (tide_str){"", 0};
    }
    tide_str text = {reader->pos, (size_t)(nul - reader->pos)};
    reader->pos = nul + 1;
    return text;
}
