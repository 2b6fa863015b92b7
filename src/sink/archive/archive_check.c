#include "sink/archive/archive_target.h"

#include "archive/container.h"
#include "base/alloc.h"
#include "base/fsio.h"
#include "port/source.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static tide_status check_folder(const char *path, struct tide_error *err)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf folder = {0};
    const char *slash = strrchr(path, '/');
    tide_buf_append_str(&folder, slash == NULL ? TIDE_STR(".")
                                               : tide_str_of(path, (size_t)(slash - path) + 1));
    if (access(tide_buf_cstr(&folder), F_OK) != 0) {
        return tide_fail(err, TIDE_INVALID,
                         "cannot write %s: there is no such directory; make it first", path);
    }
    return tide_dir_may_make(tide_buf_cstr(&folder), err);
}

static tide_status check_there(const struct tide_archive_place *place,
                               const struct tide_sink_options *options, struct tide_error *err)
{
    struct tide_archive_stamp stamp;
    if (access(place->path, R_OK | W_OK) != 0) {
        return tide_fail(err, TIDE_IO, "cannot write %s: %s", place->path, strerror(errno));
    }
    if (!options->is_resumed && options->existing == TIDE_EXISTING_OVERWRITE) {
        return TIDE_OK;
    }
    TIDE_TRY(tide_archive_sniff(place->path, &stamp, err));
    if (!stamp.is_archive || stamp.version != TIDE_ARCHIVE_VERSION) {
        (void)tide_fail(err, TIDE_INVALID, "%s is there and is not an archive that we can write",
                        place->path);
        return options->is_resumed ? tide_owner_add_ways(err, true)
                                   : tide_owner_add_ways_but_append(err);
    }
    if (!options->is_resumed && options->existing == TIDE_EXISTING_REFUSE) {
        (void)tide_fail(err, TIDE_INVALID, "%s is an archive that is there already", place->path);
        return tide_owner_add_ways(err, false);
    }
    return TIDE_OK;
}

/* The header alone is read: to read more, files beside it would have to be made. */
static tide_status look(struct tide_archive_place *place, const struct tide_sink_options *options,
                        struct tide_error *err)
{
    enum tide_archive_thing there = TIDE_ARCHIVE_NOTHING;
    TIDE_TRY(tide_archive_place_name(options->place, place, err));
    TIDE_TRY(check_folder(place->path, err));
    TIDE_TRY(tide_archive_place_look(place, &there, err));
    if (there == TIDE_ARCHIVE_FILE) {
        return check_there(place, options, err);
    }
    if (options->is_resumed) {
        (void)tide_fail(err, TIDE_STALE,
                        "this pipeline goes on from a checkpoint, but %s is not there",
                        place->path);
        return tide_owner_add_ways(err, true);
    }
    return TIDE_OK;
}

tide_status tide_archive_sink_check(const struct tide_sink_options *options,
                                    struct tide_findings *findings, struct tide_error *err)
{
    TIDE_CLEANUP(tide_archive_place_done) struct tide_archive_place place = {.lock_fd = -1};
    if (look(&place, options, err) != TIDE_OK) {
        tide_findings_add(findings, true, tide_str_from(err->message), TIDE_STR(""));
    }
    return TIDE_OK;
}
