#include "archive/change_sink_held.h"

#include "archive/archive_db.h"

#include <inttypes.h>

tide_status tide_change_sink_held_decode(tide_str bytes, struct tide_arena *arena,
                                         struct tide_owner *ret_owner,
                                         struct tide_progress *ret_progress, struct tide_error *err)
{
    struct tide_reader reader = tide_reader_of(bytes);
    tide_owner_take(&reader, arena, ret_owner, ret_progress);
    return tide_reader_is_done(&reader)
               ? TIDE_OK
               : tide_fail(err, TIDE_CORRUPT,
                           "the record of what is held does not follow its layout");
}

tide_status tide_change_sink_held_read(struct tide_archive *archive, int64_t source,
                                       struct tide_arena *arena, bool *ret_is_any,
                                       struct tide_owner *ret_owner,
                                       struct tide_progress *ret_progress, struct tide_error *err)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf bytes = {0};
    TIDE_TRY(tide_archive_held_read(archive, source, TIDE_ARCHIVE_HELD_BY_SINK, ret_is_any, &bytes,
                                    err));
    if (*ret_is_any && tide_change_sink_held_decode(tide_buf_str(&bytes), arena, ret_owner,
                                                    ret_progress, err) != TIDE_OK) {
        return tide_fail_context(err, "%s: source %" PRId64, archive->path, source);
    }
    return TIDE_OK;
}
