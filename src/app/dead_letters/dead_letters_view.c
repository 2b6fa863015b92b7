#include "app/dead_letters/dead_letters_view.h"

#include "app/safe_text.h"
#include "base/glob.h"
#include "engine/dead_letter_marks.h"

#include <stdio.h>

struct viewing {
    const struct tide_dead_letters_view *view;
    tide_dead_letters_take take;
    void *context;
    struct tide_dead_letter_ids replayed;
    uint64_t bad_lines;
};

static bool is_of_tables(const struct tide_table_globs *globs, tide_str store)
{
    for (size_t i = 0; i < globs->count; i++) {
        if (tide_glob_matches_store(globs->globs[i], store)) {
            return true;
        }
    }
    return globs->count == 0;
}

static bool has_id(const struct tide_dead_letter_read *letter, const char *id)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf digits = {0};
    tide_dead_letter_id_append(&digits, letter->id);
    return tide_str_starts_with(tide_buf_str(&digits), tide_str_from(id));
}

static bool is_in_view(const struct tide_dead_letters_view *view,
                       const struct tide_dead_letter_read *letter)
{
    if (view->sink != NULL && !tide_str_equal(letter->sink, tide_str_from(view->sink))) {
        return false;
    }
    return is_of_tables(view->globs, letter->store) &&
           (view->id == NULL || has_id(letter, view->id));
}

static void say_bad_line(const struct tide_dead_letter_found *found)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf path = {0};
    tide_append_safe(&path, tide_str_from(found->path));
    (void)fflush(stdout);
    (void)fprintf(stderr, "%s:%llu: no dead letter: %s\n", tide_buf_cstr(&path),
                  (unsigned long long)found->line_number, found->why);
}

static tide_status take_line(void *context, const struct tide_dead_letter_found *found,
                             struct tide_error *err)
{
    struct viewing *viewing = context;
    if (found->letter == NULL) {
        viewing->bad_lines++;
        say_bad_line(found);
        return TIDE_OK;
    }
    bool is_replayed = tide_dead_letter_ids_has(&viewing->replayed, found->letter->id);
    if ((is_replayed && !viewing->view->has_replayed) ||
        !is_in_view(viewing->view, found->letter)) {
        return TIDE_OK;
    }
    return viewing->take(viewing->context, found, is_replayed, err);
}

tide_status tide_dead_letters_view(const char *dir, const struct tide_dead_letters_view *view,
                                   tide_dead_letters_take take, void *context,
                                   uint64_t *ret_bad_lines, struct tide_error *err)
{
    struct viewing viewing = {.view = view, .take = take, .context = context};
    tide_dead_letter_ids_init(&viewing.replayed, SIZE_MAX);
    tide_status status = tide_dead_letter_marks_read(dir, &viewing.replayed, err);
    if (status == TIDE_OK) {
        status = tide_dead_letter_walk(dir, take_line, &viewing, err);
    }
    tide_dead_letter_ids_done(&viewing.replayed);
    *ret_bad_lines = viewing.bad_lines;
    return status;
}
