#include "sink/file/file_check.h"

#include "base/fsio.h"
#include "port/source.h"
#include "sink/file/file_open.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_there(const char *dir)
{
    struct stat st;
    return stat(dir, &st) == 0;
}

/* What is at the place of a single file can be written to, or nothing is there. */
static tide_status check_kind(const struct tide_file_place *place, struct tide_error *err)
{
    struct stat st;
    if (place->file_name == NULL || fstatat(place->dir.fd, place->file_name, &st, 0) != 0) {
        return TIDE_OK;
    }
    if (!S_ISREG(st.st_mode)) {
        return tide_fail(err, TIDE_INVALID,
                         "%s/%s is not a regular file; name one, or use - for a pipe",
                         place->dir_path, place->file_name);
    }
    if (faccessat(place->dir.fd, place->file_name, R_OK | W_OK, 0) != 0) {
        return tide_fail(err, TIDE_IO, "cannot write %s/%s: %s", place->dir_path, place->file_name,
                         strerror(errno));
    }
    return TIDE_OK;
}

static tide_status look(struct tide_file_set *set, const struct tide_sink_options *options,
                        struct tide_error *err)
{
    struct tide_file_place *place = &set->place;
    TIDE_TRY(tide_file_place_name(options->place, place, err));
    bool is_missing = place->file_name == NULL && !is_there(place->dir_path);
    if (is_missing && !options->is_resumed) {
        return tide_dir_may_make(place->dir_path, err);
    }
    TIDE_TRY(tide_file_place_look(place, err));
    TIDE_TRY(check_kind(place, err));
    tide_file_set_begin(set);
    TIDE_TRY(tide_file_set_look(set, options, err));
    return tide_dir_may_make(place->dir_path, err);
}

/* Whatever is wrong with it is what is to be found. */
tide_status tide_file_check(const struct tide_sink_options *options, struct tide_findings *findings,
                            struct tide_error *err)
{
    struct tide_file_set set = {.place = {.dir = {.fd = -1}}, .durability = {.fd = -1}};
    if (look(&set, options, err) != TIDE_OK) {
        tide_findings_add(findings, true, tide_str_from(err->message), TIDE_STR(""));
    }
    tide_file_set_done(&set);
    return TIDE_OK;
}
