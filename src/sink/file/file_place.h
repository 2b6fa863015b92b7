/* What the path of a file sink means: one file, or a directory with a file for each table. */
#pragma once

#include "base/status.h"
#include "base/str.h"
#include "sink/file/frames_file.h"

#include <stdbool.h>

struct tide_file_place {
    struct tide_frames_dir dir;
    char *dir_path;
    char *file_name;   /* NULL: a file for each table */
    char *record_name; /* of the record of what is held */
};

/** TIDE_INVALID no path. */
tide_status tide_file_place_valid(tide_str place, struct tide_error *err);

/**
 * What `place` names, looked up without opening or making anything: the directory stays closed.
 * TIDE_INVALID no path. To be closed like an open one.
 */
tide_status tide_file_place_name(tide_str place, struct tide_file_place *ret_place,
                                 struct tide_error *err);

/**
 * Opens the directory of `place`; with a slash at the end it is made when it is not there, but for
 * a copy that goes on (`is_resumed`): what it held is elsewhere then, and will be put back.
 * Errors: TIDE_INVALID no path, a name that is too long, no such directory, or (a directory of
 * tables) another process writes there; TIDE_STALE it is not there any more; TIDE_IO.
 */
tide_status tide_file_place_open(tide_str place, bool is_resumed, struct tide_file_place *ret_place,
                                 struct tide_error *err);

/**
 * Opens the directory of a place that was named, for looking: makes nothing, takes no lock. Errors:
 * TIDE_INVALID the name is too long or there is no such directory; TIDE_IO.
 */
tide_status tide_file_place_look(struct tide_file_place *place, struct tide_error *err);

/** `{.dir = {.fd = -1}}` is a place that is not open. */
void tide_file_place_close(struct tide_file_place *place);
