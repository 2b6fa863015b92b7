#include "app/dead_letters/dead_letters_names.h"

#include "app/safe_text.h"
#include "base/map.h"

#define SHOWN_BYTES_MAX 300 /* of a list */

struct names {
    struct tide_map sinks;
    struct tide_map stores;
};

static tide_status take(void *context, const struct tide_dead_letter_found *found, bool is_replayed,
                        struct tide_error *err)
{
    struct names *names = context;
    (void)is_replayed;
    (void)err;
    if (found->letter->sink.len > 0) {
        (void)tide_map_put(&names->sinks, found->letter->sink, NULL);
    }
    (void)tide_map_put(&names->stores, found->letter->store, NULL);
    return TIDE_OK;
}

static void append_names(struct tide_buf *buf, const struct tide_map *names)
{
    size_t start = buf->len;
    size_t at = 0;
    for (const struct tide_map_entry *entry; (entry = tide_map_next(names, &at)) != NULL;) {
        tide_buf_append_str(buf, buf->len == start ? TIDE_STR("") : TIDE_STR(", "));
        if (buf->len - start > SHOWN_BYTES_MAX) {
            tide_buf_append_str(buf, TIDE_STR("…"));
            return;
        }
        tide_append_safe(buf, entry->key);
    }
}

static void append_asked(struct tide_buf *buf, const struct tide_dead_letters_view *view)
{
    tide_buf_append_str(buf, TIDE_STR("there is no letter"));
    if (view->sink != NULL) {
        tide_buf_append_str(buf, TIDE_STR(" of sink "));
        tide_append_safe(buf, tide_str_from(view->sink));
    }
    for (size_t i = 0; i < view->globs->count; i++) {
        tide_buf_append_str(buf, i == 0 ? TIDE_STR(" of a table that matches ") : TIDE_STR(", "));
        tide_append_safe(buf, view->globs->globs[i]);
    }
}

tide_status tide_dead_letters_say_none(const char *dir, const struct tide_dead_letters_view *view,
                                       struct tide_buf *buf, struct tide_error *err)
{
    static const struct tide_table_globs no_globs = {0};
    const struct tide_dead_letters_view all = {.globs = &no_globs,
                                               .has_replayed = view->has_replayed};
    struct names names = {0};
    uint64_t bad_lines = 0;
    tide_status status = tide_dead_letters_view(dir, &all, take, &names, &bad_lines, err);
    if (status == TIDE_OK) {
        append_asked(buf, view);
        tide_buf_append_str(buf, names.stores.count == 0 ? TIDE_STR(", nor any other")
                                                         : TIDE_STR("; there are some of sinks "));
    }
    if (status == TIDE_OK && names.stores.count > 0) {
        append_names(buf, &names.sinks);
        tide_buf_append_str(buf, TIDE_STR(" and of tables "));
        append_names(buf, &names.stores);
    }
    tide_map_done(&names.sinks);
    tide_map_done(&names.stores);
    return status;
}
