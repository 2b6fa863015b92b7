#include "app/safe_text.h"

void tide_append_safe(struct tide_buf *buf, tide_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        bool is_c1 = c == 0xc2 && i + 1 < text.len && (unsigned char)text.ptr[i + 1] < 0xa0;
        if (is_c1) {
            tide_buf_printf(buf, "\\x%02x", (unsigned char)text.ptr[++i]);
        } else if (c < 0x20 || c == 0x7f) {
            tide_buf_printf(buf, "\\x%02x", c);
        } else {
            tide_buf_append_char(buf, (char)c);
        }
    }
}
