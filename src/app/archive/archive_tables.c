#include "app/archive/archive_tables.h"

#include "app/safe_text.h"

#include <inttypes.h>

#define NAMES_SHOWN 8

/* All of the name, or what is behind one of its points. */
static bool is_named(tide_str name, tide_str wanted)
{
    if (tide_str_equal(name, wanted)) {
        return true;
    }
    return name.len > wanted.len && tide_str_ends_with(name, wanted) &&
           name.ptr[name.len - wanted.len - 1] == '.';
}

bool tide_archive_choice_has(const struct tide_archive_choice *choice,
                             const struct tide_archive_series_info *series)
{
    return (!choice->has_source || choice->source == series->source) &&
           (choice->table == NULL || is_named(series->name, tide_str_from(choice->table)));
}

/* Names of the tables that are chosen, or of all. */
static const char *list_names(const struct tide_archive_choice *choice,
                              const struct tide_archive_catalogue *catalogue, struct tide_buf *buf)
{
    size_t count = 0;
    for (size_t i = 0; i < catalogue->series_count; i++) {
        const struct tide_archive_series_info *series = &catalogue->series[i];
        if (!tide_archive_choice_has(choice, series) || ++count > NAMES_SHOWN) {
            continue;
        }
        tide_buf_append_str(buf, count == 1 ? TIDE_STR("") : TIDE_STR(", "));
        tide_append_safe(buf, series->name);
        if (catalogue->source_count > 1) {
            tide_buf_printf(buf, " (source %" PRId64 ")", series->source);
        }
    }
    if (count > NAMES_SHOWN) {
        tide_buf_printf(buf, " and %zu more", count - NAMES_SHOWN);
    }
    return count == 0 ? "none" : tide_buf_cstr(buf);
}

static tide_status fail_none(const struct tide_archive_choice *choice, const char *path,
                             const struct tide_archive_catalogue *catalogue, struct tide_error *err)
{
    static const struct tide_archive_choice all;
    TIDE_CLEANUP(tide_buf_done) struct tide_buf names = {0};
    if (choice->table == NULL && !choice->has_source) {
        return tide_fail(err, TIDE_INVALID, "%s holds no tables yet", path);
    }
    return tide_fail(err, TIDE_INVALID, "%s has no table %s%s; it has: %s", path,
                     choice->table == NULL ? "" : choice->table,
                     choice->has_source ? " of that source" : "",
                     list_names(&all, catalogue, &names));
}

tide_status tide_archive_choice_check(const struct tide_archive_choice *choice, const char *path,
                                      const struct tide_archive_catalogue *catalogue,
                                      struct tide_error *err)
{
    for (size_t i = 0; i < catalogue->series_count; i++) {
        if (tide_archive_choice_has(choice, &catalogue->series[i])) {
            return TIDE_OK;
        }
    }
    return fail_none(choice, path, catalogue, err);
}

tide_status tide_archive_choice_find(const struct tide_archive_choice *choice, const char *path,
                                     const struct tide_archive_catalogue *catalogue,
                                     const struct tide_archive_series_info **ret_series,
                                     struct tide_error *err)
{
    const struct tide_archive_series_info *found = NULL;
    size_t count = 0;
    size_t exact = 0;
    for (size_t i = 0; i < catalogue->series_count; i++) {
        const struct tide_archive_series_info *series = &catalogue->series[i];
        if (!tide_archive_choice_has(choice, series)) {
            continue;
        }
        count++;
        bool is_exact =
            choice->table != NULL && tide_str_equal(series->name, tide_str_from(choice->table));
        found = is_exact || exact == 0 ? series : found;
        exact += is_exact;
    }
    if (count == 0) {
        return fail_none(choice, path, catalogue, err);
    }
    if (count > 1 && exact != 1) {
        TIDE_CLEANUP(tide_buf_done) struct tide_buf names = {0};
        return tide_fail(err, TIDE_INVALID,
                         "%s has several tables that may be meant: %s; say which with --table, or "
                         "of which source with --source",
                         path, list_names(choice, catalogue, &names));
    }
    *ret_series = found;
    return TIDE_OK;
}
