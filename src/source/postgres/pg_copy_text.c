/*
 *     line   = field *( TAB field ) [ LF ]
 *     field  = '\' 'N'                                        NULL
 *            | *( plain | escape )
 *     escape = '\' ( 'b' | 'f' | 'n' | 'r' | 't' | 'v' )      control characters
 *            | '\' octal{1,3} | '\' 'x' hex{1,2}              a byte; the server writes none
 *            | '\' any                                        the character itself
 */
#include "source/postgres/pg_copy_text.h"

#include "base/limits.h"

#include <stdbool.h>

#if defined(__SSE2__) && !defined(TIDE_PG_NO_SIMD)
#include <emmintrin.h>
#define PG_SSE2 1
#endif

static inline bool is_mark(char c)
{
    return c == '\t' || c == '\n' || c == '\\';
}

/* The first tab, line feed or backslash from `p` on, or `end`. */
static inline const char *find_mark(const char *p, const char *end)
{
#ifdef PG_SSE2
    for (; end - p >= 16; p += 16) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)p);
        __m128i tab = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\t'));
        __m128i feed = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\n'));
        __m128i backslash = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\\'));
        __m128i any = _mm_or_si128(_mm_or_si128(tab, feed), backslash);
        unsigned mask = (unsigned)_mm_movemask_epi8(any);
        if (mask != 0) {
            return p + __builtin_ctz(mask);
        }
    }
#endif
    while (p < end && !is_mark(*p)) {
        p++;
    }
    return p;
}

/* The end of the field whose first backslash is at `p`: the next tab, or `end`. */
static const char *find_tab(const char *p, const char *end)
{
    const char *tab = memchr(p, '\t', (size_t)(end - p));
    return tab == NULL ? end : tab;
}

static int octal_digit(char c)
{
    return c >= '0' && c <= '7' ? c - '0' : -1;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Up to `digits_max` digits as one byte (more than 255 wraps, as in the server). */
static char read_number(const char **p, const char *end, int (*digit)(char), unsigned base,
                        unsigned digits_max)
{
    unsigned value = 0;
    for (unsigned i = 0; i < digits_max && *p < end && digit(**p) >= 0; i++, (*p)++) {
        value = value * base + (unsigned)digit(**p);
    }
    return (char)(unsigned char)(value & 0xff);
}

/* The byte that the escape at `*p`, just after its backslash, stands for. */
static char read_escape(const char **p, const char *end)
{
    static const char letters[256] = {
        ['b'] = '\b', ['f'] = '\f', ['n'] = '\n', ['r'] = '\r', ['t'] = '\t', ['v'] = '\v'};
    char c = **p;
    if (octal_digit(c) >= 0) {
        return read_number(p, end, octal_digit, 8, 3);
    }
    (*p)++;
    if (c == 'x' && *p < end && hex_digit(**p) >= 0) {
        return read_number(p, end, hex_digit, 16, 2);
    }
    char control = letters[(unsigned char)c];
    return control != '\0' ? control : c;
}

static tide_status fail_line(const char *what, struct tide_error *err)
{
    return tide_fail(err, TIDE_CORRUPT,
                     "line of a COPY %s: the connection is not in step with the server", what);
}

/* A field with at least one backslash, the first at `mark`. */
static tide_status unescape(tide_str field, const char *mark, struct tide_arena *arena,
                            struct tide_pg_field *ret_field, struct tide_error *err)
{
    const char *end = field.ptr + field.len;
    char *text = tide_arena_bytes(arena, field.len);
    size_t plain = (size_t)(mark - field.ptr);
    memcpy(text, field.ptr, plain);
    char *to = text + plain;
    for (const char *p = mark; p < end;) {
        if (*p == '\\') {
            p++;
            if (p == end) {
                return fail_line("ends a column with a lone backslash", err);
            }
            *to++ = read_escape(&p, end);
            continue;
        }
        const char *next = find_mark(p, end);
        if (next < end && *next == '\n') {
            return fail_line("has a line feed inside", err);
        }
        memcpy(to, p, (size_t)(next - p));
        to += next - p;
        p = next;
    }
    size_t len = (size_t)(to - text);
    tide_arena_give_back(arena, field.len - len);
    *ret_field = (struct tide_pg_field){text, (uint32_t)len, TIDE_PG_FIELD_TEXT};
    return TIDE_OK;
}

static tide_status read_escaped(tide_str field, const char *mark, struct tide_arena *arena,
                                struct tide_pg_field *ret_field, struct tide_error *err)
{
    if (tide_str_equal(field, TIDE_STR("\\N"))) {
        *ret_field = (struct tide_pg_field){.kind = TIDE_PG_FIELD_NULL};
        return TIDE_OK;
    }
    return unescape(field, mark, arena, ret_field, err);
}

/* The field that starts at `p`; `*ret_end` is the tab behind it, or `end`. */
static inline tide_status read_field(const char *p, const char *end, struct tide_arena *arena,
                                     const char **ret_end, struct tide_pg_field *ret_field,
                                     struct tide_error *err)
{
    const char *mark = find_mark(p, end);
    *ret_end = mark;
    if (TIDE_LIKELY(mark == end || *mark == '\t')) {
        *ret_field = (struct tide_pg_field){p, (uint32_t)(mark - p), TIDE_PG_FIELD_TEXT};
        return TIDE_OK;
    }
    if (*mark == '\n') {
        return fail_line("has a line feed inside", err);
    }
    *ret_end = find_tab(mark, end);
    return read_escaped(tide_str_of(p, (size_t)(*ret_end - p)), mark, arena, ret_field, err);
}

static tide_status fail_count(size_t found, bool has_more, size_t count, struct tide_error *err)
{
    return tide_fail(err, TIDE_CORRUPT, "line of a COPY has %s%zu columns instead of %zu",
                     has_more ? "more than " : "", found, count);
}

tide_status tide_pg_copy_line(tide_str line, size_t count, struct tide_arena *arena,
                              struct tide_pg_field *ret_fields, struct tide_error *err)
{
    TIDE_ASSERT(count > 0);
    if (line.len > TIDE_PG_MESSAGE_BYTES_MAX) {
        return tide_fail(err, TIDE_CORRUPT, "line of a COPY has %zu bytes", line.len);
    }
    if (line.len > 0 && line.ptr[line.len - 1] == '\n') {
        line.len--;
    }
    if (tide_str_equal(line, TIDE_STR("\\."))) {
        return fail_line("is the end mark of another protocol version", err);
    }
    const char *p = line.len == 0 ? "" : line.ptr; /* a field's pointer is never NULL */
    const char *end = p + line.len;
    for (size_t i = 0; i < count; i++) {
        const char *field_end = NULL;
        TIDE_TRY(read_field(p, end, arena, &field_end, &ret_fields[i], err));
        bool is_last = i + 1 == count;
        if (TIDE_UNLIKELY((field_end == end) != is_last)) {
            return fail_count(i + 1, is_last, count, err);
        }
        p = field_end + 1;
    }
    return TIDE_OK;
}
