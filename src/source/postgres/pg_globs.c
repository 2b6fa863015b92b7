#include "base/buf.h"
#include "base/glob.h"
#include "source/postgres/pg_catalogue.h"

bool tide_pg_globs_choose(const tide_str *globs, size_t glob_count, tide_str schema, tide_str name,
                          bool *ret_is_named)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf full = {0};
    tide_buf_append_str(&full, schema);
    tide_buf_append_char(&full, '.');
    tide_buf_append_str(&full, name);
    bool is_chosen = glob_count == 0;
    bool is_named = false;
    for (size_t i = 0; i < glob_count; i++) {
        bool matches =
            tide_glob_matches(globs[i], name) || tide_glob_matches(globs[i], tide_buf_str(&full));
        is_chosen = is_chosen || matches;
        is_named = is_named || (matches && (globs[i].len > 0 && !tide_glob_is_pattern(globs[i])));
    }
    if (ret_is_named != NULL) {
        *ret_is_named = is_named;
    }
    return is_chosen;
}
