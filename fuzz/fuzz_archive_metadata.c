/*
 * The texts that an archive's sources carry, over any bytes. The first byte chooses: labels and
 * metadata, sessions, events. What must hold:
 *   - an object that is read is written in one form, which reads back as the same;
 *   - a list of sessions that one more can be put to reads as it did, with that one more;
 *   - sessions and events are JSON still when those that need not be told are left out;
 *   - events that one more can be put to are JSON still, and longer by just that one.
 */
#include "archive/metadata.h"
#include "archive/sessions_trim.h"
#include "format/json_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_pairs(tide_str json, struct tide_arena *arena)
{
    struct tide_error err;
    struct tide_archive_pairs pairs = {0};
    struct tide_archive_pairs again = {0};
    struct tide_buf once = {0};
    struct tide_buf twice = {0};
    if (tide_archive_pairs_read(json, arena, &pairs, &err) == TIDE_OK) {
        tide_archive_pairs_write(&pairs, &once);
        tide_status status = tide_archive_pairs_read(tide_buf_str(&once), arena, &again, &err);
        TIDE_ASSERT(status == TIDE_OK && again.count == pairs.count);
        tide_archive_pairs_write(&again, &twice);
        TIDE_ASSERT(tide_str_equal(tide_buf_str(&once), tide_buf_str(&twice)));
    }
    tide_buf_done(&once);
    tide_buf_done(&twice);
}

static void check_trim(tide_str json, const struct tide_archive_session *next,
                       struct tide_arena *arena, size_t before)
{
    struct tide_error err;
    struct tide_archive_gone gone = {0};
    struct tide_buf less = {0};
    struct tide_archive_session *found = NULL;
    size_t count = 0;
    tide_status status = tide_archive_sessions_trim(json, next, arena, &gone, &less, &err);
    TIDE_ASSERT(status == TIDE_OK && gone.count <= before);
    status = tide_archive_sessions_read(tide_buf_str(&less), arena, &found, &count, &err);
    TIDE_ASSERT(status == TIDE_OK && count == before - gone.count);
    tide_buf_done(&less);
}

static void check_sessions(tide_str json, struct tide_arena *arena)
{
    struct tide_error err;
    struct tide_buf more = {0};
    struct tide_archive_session *found = NULL;
    size_t count = 0;
    static const struct tide_archive_session session = {
        .session = {"s", 1}, .writer = {"w", 1}, .is_resumed = true};
    tide_status status = tide_archive_sessions_read(json, arena, &found, &count, &err);
    tide_status appended = tide_archive_sessions_append(json, &session, &more, &err);
    TIDE_ASSERT(status != TIDE_OK || appended == TIDE_OK);
    if (status == TIDE_OK) {
        size_t before = count;
        status = tide_archive_sessions_read(tide_buf_str(&more), arena, &found, &count, &err);
        TIDE_ASSERT(status == TIDE_OK && count == before + 1);
        TIDE_ASSERT(tide_str_equal(found[before].session, session.session));
        check_trim(json, &session, arena, before);
    }
    tide_buf_done(&more);
}

static void check_events(tide_str json)
{
    struct tide_error err;
    struct tide_buf more = {0};
    static const struct tide_archive_event event = {1, {"d", 1}, {"k", 1}, {"i", 1}};
    if (tide_archive_events_append(json, &event, &more, &err) == TIDE_OK) {
        TIDE_ASSERT(tide_json_check(tide_buf_str(&more), TIDE_JSON_DEPTH_MAX, &err) == TIDE_OK);
        TIDE_ASSERT(more.len > json.len);
    }
    const struct tide_archive_gone gone = {.sessions = (tide_str[]){{"u", 1}}, .count = 1};
    struct tide_arena arena = {0};
    tide_buf_reset(&more);
    if (tide_archive_events_trim(json, &gone, &arena, &more, &err) == TIDE_OK) {
        TIDE_ASSERT(tide_json_check(tide_buf_str(&more), TIDE_JSON_DEPTH_MAX, &err) == TIDE_OK);
        TIDE_ASSERT(more.len <= json.len);
    }
    tide_arena_done(&arena);
    tide_buf_done(&more);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tide_arena arena = {0};
    if (size > 0) {
        tide_str json = tide_str_of(data + 1, size - 1);
        switch (data[0] % 3) {
        case 0:
            check_pairs(json, &arena);
            break;
        case 1:
            check_sessions(json, &arena);
            break;
        default:
            check_events(json);
            break;
        }
    }
    tide_arena_done(&arena);
    return 0;
}
