#include "app/config/mistakes.h"

#include <stdarg.h>
#include <stdio.h>

#define QUOTED_BYTES_MAX ((size_t)60)

void tide_mistakes_done(struct tide_mistakes *mistakes)
{
    tide_arena_done(&mistakes->arena);
    mistakes->count = 0;
}

/* Whole characters, none of them a control character: a terminal shows it. */
static tide_str made_plain(char *text)
{
    tide_str plain = tide_str_of(text, tide_str_utf8_valid_prefix(tide_str_from(text)));
    for (size_t i = 0; i < plain.len; i++) {
        unsigned char c = (unsigned char)text[i];
        bool is_c1 = c == 0xc2 && (unsigned char)text[i + 1] < 0xa0;
        if (c < 0x20 || c == 0x7f || is_c1) {
            text[i] = '?';
            text[i + is_c1] = '?'; /* U+0080 to U+009F have two bytes */
        }
    }
    return plain;
}

void tide_mistakes_add(struct tide_mistakes *mistakes, struct tide_yaml_mark mark, const char *fmt,
                       ...)
{
    char text[512] = {0};
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    if (mistakes->count++ < TIDE_MISTAKES_MAX) {
        mistakes->list[mistakes->count - 1] = (struct tide_mistake){
            .mark = mark, .text = tide_arena_str(&mistakes->arena, made_plain(text))};
    }
}

static bool is_before(const struct tide_mistake *a, const struct tide_mistake *b)
{
    return a->mark.line != b->mark.line ? a->mark.line < b->mark.line
                                        : a->mark.column < b->mark.column;
}

/* Sorted by insertion: few, mostly in order already, and equals stay as they came. */
static size_t sort(const struct tide_mistakes *mistakes,
                   const struct tide_mistake *ret_sorted[TIDE_MISTAKES_MAX])
{
    size_t count = mistakes->count < TIDE_MISTAKES_MAX ? mistakes->count : TIDE_MISTAKES_MAX;
    for (size_t i = 0; i < count; i++) {
        size_t at = i;
        for (; at > 0 && is_before(&mistakes->list[i], ret_sorted[at - 1]); at--) {
            ret_sorted[at] = ret_sorted[at - 1];
        }
        ret_sorted[at] = &mistakes->list[i];
    }
    return count;
}

void tide_mistakes_print(const struct tide_mistakes *mistakes, const char *file,
                         struct tide_buf *buf)
{
    const struct tide_mistake *sorted[TIDE_MISTAKES_MAX];
    size_t count = sort(mistakes, sorted);
    for (size_t i = 0; i < count; i++) {
        tide_buf_printf(buf, "%s:%zu:%zu: %.*s\n", file, sorted[i]->mark.line,
                        sorted[i]->mark.column, TIDE_STR_ARG(sorted[i]->text));
    }
    if (mistakes->count > count) {
        tide_buf_printf(buf, "%s: and %zu more\n", file, mistakes->count - count);
    }
}

void tide_mistake_quote(struct tide_buf *buf, tide_str text)
{
    tide_str shown = text;
    if (text.len > QUOTED_BYTES_MAX) {
        shown = tide_str_of(text.ptr, QUOTED_BYTES_MAX);
        shown.len = tide_str_utf8_valid_prefix(shown);
    }
    tide_buf_append_char(buf, '"');
    tide_buf_append_str(buf, shown);
    tide_buf_append_str(buf, shown.len < text.len ? TIDE_STR("…\"") : TIDE_STR("\""));
}
