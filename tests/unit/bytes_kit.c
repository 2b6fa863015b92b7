#include "bytes_kit.h"

#include "cmocka_prelude.h"

#include <stdlib.h>
#include <string.h>

static unsigned hex_digit(char c)
{
    return (unsigned)(c <= '9' ? c - '0' : c - 'a' + 10);
}

void bytes_unhex(tide_str hex, struct tide_buf *buf)
{
    assert_int_equal(hex.len % 2, 0);
    for (size_t i = 0; i < hex.len; i += 2) {
        tide_buf_append_char(buf, (char)(hex_digit(hex.ptr[i]) << 4 | hex_digit(hex.ptr[i + 1])));
    }
}

tide_str bytes_exact(tide_str bytes)
{
    char *copy = malloc(bytes.len > 0 ? bytes.len : 1);
    assert_non_null(copy);
    if (bytes.len > 0) {
        memcpy(copy, bytes.ptr, bytes.len);
    }
    return tide_str_of(copy, bytes.len);
}

void bytes_free(tide_str bytes)
{
    free((char *)(uintptr_t)bytes.ptr);
}
