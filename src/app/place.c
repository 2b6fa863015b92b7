#include "app/place.h"

#define MASK TIDE_STR("***")

/* The pieces of scheme://user:password@host/path?query; each may be empty. */
struct url {
    tide_str head; /* up to and with "://" */
    tide_str user;
    tide_str password;
    bool has_password;
    tide_str rest; /* from "@", or from the host where there is no user */
    tide_str path; /* without its first "/" */
    tide_str query;
};

static size_t find(tide_str s, char c)
{
    const char *at = s.len > 0 ? memchr(s.ptr, c, s.len) : NULL;
    return at == NULL ? s.len : (size_t)(at - s.ptr);
}

static tide_str from(tide_str s, size_t at)
{
    return at >= s.len ? tide_str_of(s.ptr + s.len, 0) : tide_str_of(s.ptr + at, s.len - at);
}

/* Behind these names stands a path, whatever it begins with. */
static bool is_of_files(tide_str scheme)
{
    return tide_str_equal(scheme, TIDE_STR("sqlite")) || tide_str_equal(scheme, TIDE_STR("file")) ||
           tide_str_equal(scheme, TIDE_STR("archive"));
}

static bool is_url(tide_str place, size_t *ret_head)
{
    size_t colon = find(place, ':');
    *ret_head = colon + 3;
    return tide_str_starts_with(from(place, colon), TIDE_STR("://")) &&
           !is_of_files(tide_str_of(place.ptr, colon));
}

static bool is_port(tide_str s)
{
    size_t len = s.len < find(s, '/') ? s.len : find(s, '/');
    for (size_t i = 0; i < len; i++) {
        if ((s.ptr[i] < '0' || s.ptr[i] > '9') && s.ptr[i] != ',') {
            return false;
        }
    }
    return true;
}

/* Where the user's part ends: at the last "@" before the path. A password may hold a "/" that
 * should have been encoded: then at the last "@" before the query, unless a port stands there. */
static bool find_at(tide_str s, size_t *ret_at)
{
    size_t colon = find(s, ':');
    size_t end = find(s, '/');
    bool may_be_port = colon < end && is_port(from(s, colon + 1));
    if (colon < end && !may_be_port) {
        end = s.len;
    }
    while (end > 0) {
        if (s.ptr[--end] == '@') {
            *ret_at = end;
            return true;
        }
    }
    return false;
}

static struct url split(tide_str place, size_t head_len)
{
    struct url url = {.head = tide_str_of(place.ptr, head_len)};
    tide_str s = from(place, head_len);
    size_t question = find(s, '?');
    url.query = from(s, question);
    s = tide_str_of(s.ptr, question);
    size_t at = 0;
    if (find_at(s, &at)) {
        tide_str user = tide_str_of(s.ptr, at);
        size_t colon = find(user, ':');
        url.has_password = colon < user.len;
        url.user = tide_str_of(user.ptr, colon);
        url.password = from(user, colon + 1);
        s = from(s, at);
    }
    url.rest = s;
    url.path = from(s, find(s, '/') + 1);
    return url;
}

/* The next `name=value` of a query that begins with "?" or "&". */
static bool next_parameter(tide_str *query, char *ret_separator, tide_str *ret_name,
                           tide_str *ret_value)
{
    if (query->len == 0) {
        return false;
    }
    *ret_separator = query->ptr[0];
    tide_str rest = from(*query, 1);
    size_t end = find(rest, '&');
    tide_str one = tide_str_of(rest.ptr, end);
    size_t equals = find(one, '=');
    *ret_name = tide_str_of(one.ptr, equals);
    *ret_value = from(one, equals + 1);
    *query = from(rest, end);
    return true;
}

static void append_query(struct tide_buf *buf, tide_str query)
{
    char separator = 0;
    tide_str name;
    tide_str value;
    while (next_parameter(&query, &separator, &name, &value)) {
        tide_buf_append_char(buf, separator);
        tide_buf_append_str(buf, name);
        if (value.ptr > name.ptr + name.len) {
            tide_buf_append_char(buf, '=');
        }
        tide_buf_append_str(buf, tide_str_ends_with(name, TIDE_STR("password")) ? MASK : value);
    }
}

void tide_place_append_shown(struct tide_buf *buf, tide_str place)
{
    size_t head = 0;
    if (!is_url(place, &head)) {
        tide_buf_append_str(buf, place);
        return;
    }
    struct url url = split(place, head);
    tide_buf_append_str(buf, url.head);
    tide_buf_append_str(buf, url.user);
    if (url.has_password) {
        tide_buf_append_char(buf, ':');
        tide_buf_append_str(buf, MASK);
    }
    tide_buf_append_str(buf, url.rest);
    append_query(buf, url.query);
}

tide_str tide_place_url_database(tide_str place)
{
    size_t head = 0;
    if (!is_url(place, &head)) {
        return TIDE_STR("");
    }
    struct url url = split(place, head);
    char separator = 0;
    tide_str name;
    tide_str value;
    tide_str query = url.query;
    while (url.path.len == 0 && next_parameter(&query, &separator, &name, &value)) {
        if (tide_str_equal(name, TIDE_STR("dbname"))) {
            url.path = value;
        }
    }
    return url.path.len > 0 ? url.path : url.user.len > 0 ? url.user : TIDE_STR("postgres");
}
