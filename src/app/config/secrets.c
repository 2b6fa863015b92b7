#include "app/config/secrets.h"

#include "base/fsio.h"
#include "base/limits.h"

#include <stdlib.h>

#define SHOWN_BYTES_MAX 100

static bool is_name(tide_str name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];
        bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
        if (!is_letter && (i == 0 || c < '0' || c > '9')) {
            return false;
        }
    }
    return name.len > 0 && name.len <= SHOWN_BYTES_MAX;
}

static tide_status append_variable(tide_str name, struct tide_buf *value, struct tide_error *err)
{
    char text[SHOWN_BYTES_MAX + 1] = {0};
    if (!is_name(name)) {
        return tide_fail(err, TIDE_INVALID,
                         "between \"${\" and \"}\" stands a name of the environment or file:PATH");
    }
    memcpy(text, name.ptr, name.len);
    const char *found = getenv(text);
    if (found == NULL) {
        return tide_fail(err, TIDE_INVALID,
                         "the environment has no %s; set it, or write "
                         "${file:PATH}",
                         text);
    }
    tide_str bytes = tide_str_from(found);
    if (bytes.len > TIDE_SECRET_BYTES_MAX) {
        return tide_fail(err, TIDE_INVALID, "%s is longer than %zu bytes", text,
                         TIDE_SECRET_BYTES_MAX);
    }
    tide_buf_append_str(value, bytes);
    return TIDE_OK;
}

static tide_str without_line_end(tide_str text)
{
    text.len -= tide_str_ends_with(text, TIDE_STR("\n"));
    text.len -= tide_str_ends_with(text, TIDE_STR("\r"));
    return text;
}

static tide_status append_file(tide_str path, const char *dir, struct tide_buf *value,
                               struct tide_error *err)
{
    struct tide_buf whole TIDE_CLEANUP(tide_buf_done) = {0};
    if (path.len == 0) {
        return tide_fail(err, TIDE_INVALID, "\"${file:\" needs a path");
    }
    if (path.ptr[0] != '/' && strcmp(dir, ".") != 0) {
        tide_buf_printf(&whole, "%s/", dir);
    }
    tide_buf_append_str(&whole, path);
    tide_status status = tide_file_read(tide_buf_cstr(&whole), TIDE_SECRET_BYTES_MAX, value, err);
    if (status != TIDE_OK) {
        struct tide_error why = *err;
        return tide_fail(err, TIDE_INVALID, "%s", why.message);
    }
    if (value->len > 0 && memchr(value->ptr, '\0', value->len) != NULL) {
        return tide_fail(err, TIDE_INVALID, "%s has a NUL byte in it", tide_buf_cstr(&whole));
    }
    value->len = without_line_end(tide_buf_str(value)).len;
    return TIDE_OK;
}

static void append_encoded(struct tide_buf *buf, tide_str value)
{
    for (size_t i = 0; i < value.len; i++) {
        unsigned char c = (unsigned char)value.ptr[i];
        bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                        (c >= '0' && c <= '9') || (c != '\0' && strchr("-._~", c) != NULL);
        if (is_plain) {
            tide_buf_append_char(buf, (char)c);
        } else {
            tide_buf_printf(buf, "%%%02X", c);
        }
    }
}

/* The first byte of `s` that is one of `bytes`, outside of `${…}`; 0: none. */
static char first_of(tide_str s, const char *bytes)
{
    bool is_inside = false;
    for (size_t i = 0; i < s.len; i++) {
        is_inside = is_inside ? s.ptr[i] != '}' : s.ptr[i] == '{' && i > 0 && s.ptr[i - 1] == '$';
        if (!is_inside && strchr(bytes, s.ptr[i]) != NULL) {
            return s.ptr[i];
        }
    }
    return '\0';
}

/* Between `://` and `@`, with no `/` or `?` in between. */
static bool is_in_user(tide_str before, tide_str behind)
{
    const char *head = before.len == 0 ? NULL : memmem(before.ptr, before.len, "://", 3);
    if (head == NULL) {
        return false;
    }
    tide_str between = tide_str_of(head + 3, (size_t)(before.ptr + before.len - head) - 3);
    return first_of(between, "/?@") == '\0' && first_of(behind, "/?@") == '@';
}

static tide_status expand_one(tide_str text, size_t start, size_t end, const char *dir,
                              struct tide_buf *buf, struct tide_error *err)
{
    struct tide_buf value TIDE_CLEANUP(tide_buf_done) = {0};
    tide_str name = tide_str_of(text.ptr + start + 2, end - start - 2);
    if (tide_str_starts_with(name, TIDE_STR("file:"))) {
        TIDE_TRY(append_file(tide_str_of(name.ptr + 5, name.len - 5), dir, &value, err));
    } else {
        TIDE_TRY(append_variable(name, &value, err));
    }
    tide_str before = tide_str_of(text.ptr, start);
    tide_str behind = tide_str_of(text.ptr + end + 1, text.len - end - 1);
    if (is_in_user(before, behind)) {
        append_encoded(buf, tide_buf_str(&value));
    } else {
        tide_buf_append_str(buf, tide_buf_str(&value));
    }
    return TIDE_OK;
}

tide_status tide_secrets_expand(tide_str text, const char *dir, struct tide_buf *buf,
                                struct tide_error *err)
{
    for (size_t at = 0; at < text.len;) {
        tide_str rest = tide_str_of(text.ptr + at, text.len - at);
        if (tide_str_starts_with(rest, TIDE_STR("$${"))) {
            tide_buf_append_str(buf, TIDE_STR("${"));
            at += 3;
        } else if (tide_str_starts_with(rest, TIDE_STR("${"))) {
            const char *end = memchr(rest.ptr, '}', rest.len);
            if (end == NULL) {
                return tide_fail(err, TIDE_INVALID,
                                 "\"${\" without its \"}\"; write $${ for the two characters");
            }
            TIDE_TRY(expand_one(text, at, (size_t)(end - text.ptr), dir, buf, err));
            at = (size_t)(end - text.ptr) + 1;
        } else {
            tide_buf_append_char(buf, text.ptr[at++]);
        }
    }
    return TIDE_OK;
}
