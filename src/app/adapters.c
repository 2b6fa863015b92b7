#include "app/adapters.h"

#include "app/place.h"
#include "sink/archive/archive_sink.h"
#include "sink/file/file_sink.h"
#include "sink/file/stdout_sink.h"
#include "sink/null/null_sink.h"
#include "source/postgres/postgres_source.h"
#include "source/sqlite/sqlite_source.h"

static const struct tide_source_ops *const sources[] = {
    &tide_postgres_source_ops,
    &tide_sqlite_source_ops,
};

static const struct tide_sink_ops *const sinks[] = {
    &tide_file_sink_ops,
    &tide_archive_sink_ops,
    &tide_stdout_sink_ops,
    &tide_null_sink_ops,
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct tide_place_text split(const char *place)
{
    tide_str whole = tide_str_from(place);
    const char *colon = memchr(whole.ptr, ':', whole.len);
    if (colon == NULL) {
        return (struct tide_place_text){.scheme = whole, .rest = whole};
    }
    size_t len = (size_t)(colon - whole.ptr);
    return (struct tide_place_text){.scheme = tide_str_of(whole.ptr, len),
                                    .rest = tide_str_of(colon + 1, whole.len - len - 1)};
}

/* `postgresql` is libpq's other name for the same. */
static bool is_scheme(const struct tide_source_ops *ops, tide_str scheme)
{
    tide_str alias = tide_str_equal(scheme, TIDE_STR("postgresql")) ? TIDE_STR("postgres") : scheme;
    return tide_str_equal(alias, tide_str_from(ops->scheme));
}

tide_status tide_find_source(const char *place, const struct tide_source_ops **ret_ops,
                             tide_str *ret_rest, struct tide_error *err)
{
    struct tide_place_text text = split(place);
    for (size_t i = 0; i < COUNT(sources); i++) {
        if (is_scheme(sources[i], text.scheme)) {
            bool is_whole = tide_place_url_database(tide_str_from(place)).len > 0;
            *ret_ops = sources[i];
            *ret_rest = is_whole ? tide_str_from(place) : text.rest;
            return TIDE_OK;
        }
    }
    struct tide_buf shown TIDE_CLEANUP(tide_buf_done) = {0};
    tide_place_append_shown(&shown, tide_str_from(place));
    return tide_fail(err, TIDE_INVALID,
                     "\"%s\" names no source; write sqlite:PATH or postgres://USER@HOST/DATABASE",
                     tide_buf_cstr(&shown));
}

tide_status tide_find_sink(const char *place, const struct tide_sink_ops **ret_ops,
                           tide_str *ret_rest, struct tide_error *err)
{
    struct tide_place_text text = split(place);
    for (size_t i = 0; i < COUNT(sinks); i++) {
        if (tide_str_equal(text.scheme, tide_str_from(sinks[i]->scheme))) {
            *ret_ops = sinks[i];
            *ret_rest = text.rest;
            return TIDE_OK;
        }
    }
    struct tide_buf shown TIDE_CLEANUP(tide_buf_done) = {0};
    tide_place_append_shown(&shown, tide_str_from(place));
    return tide_fail(err, TIDE_INVALID,
                     "\"%s\" names no sink; write file:PATH, file:DIR/, archive:PATH, null: or -",
                     tide_buf_cstr(&shown));
}

static bool is_null(tide_str json)
{
    return tide_str_equal(json, TIDE_STR("null"));
}

tide_status tide_decode_checkpoint(tide_str json, struct tide_arena *arena,
                                   struct tide_checkpoint *ret_checkpoint,
                                   const struct tide_position_kind **ret_kind,
                                   struct tide_error *err)
{
    tide_status status = TIDE_OK;
    for (size_t i = 0; i < COUNT(sources); i++) {
        const struct tide_position_kind *kind = sources[i]->position_kind;
        struct tide_position position;
        status = tide_checkpoint_decode(json, kind, arena, ret_checkpoint, err);
        bool has_position = status == TIDE_OK && !is_null(ret_checkpoint->position_json);
        if (has_position) {
            status = kind->parse(ret_checkpoint->position_json, &position, err);
        }
        if (status == TIDE_OK) {
            *ret_kind = kind;
            return TIDE_OK;
        }
    }
    return status;
}

tide_str tide_connection_name(tide_str rest)
{
    tide_str database = tide_place_url_database(rest);
    if (database.len > 0) {
        return database;
    }
    size_t start = rest.len;
    while (start > 0 && rest.ptr[start - 1] != '/') {
        start--;
    }
    tide_str name = tide_str_of(rest.ptr + start, rest.len - start);
    for (size_t dot = name.len; dot > 1; dot--) {
        if (name.ptr[dot - 1] == '.') {
            return tide_str_of(name.ptr, dot - 1);
        }
    }
    return name;
}
