#include "app/archive/archive_health.h"

#include "base/alloc.h"
#include "base/clock.h"

#include <poll.h>
#include <sys/stat.h>

#define LOOK_EVERY_MS 100

bool tide_archive_may_be_open(const char *path)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf wal = {0};
    struct stat st;
    tide_buf_printf(&wal, "%s-wal", path);
    return stat(tide_buf_cstr(&wal), &st) == 0 && st.st_size > 0; /* readers leave an empty one */
}

const char *tide_archive_life_name(enum tide_archive_life life)
{
    switch (life) {
    case TIDE_ARCHIVE_LIVE:
        return "live";
    case TIDE_ARCHIVE_STOPPED:
        return "stopped";
    case TIDE_ARCHIVE_COMPLETE:
        return "complete";
    case TIDE_ARCHIVE_UNKNOWN:
    default:
        return "unknown";
    }
}

/* A heartbeat that has moved since the first look: live. One that stood still: stopped. Else it is
 * not known yet. */
static tide_status look(struct tide_archive *archive, const struct tide_archive_source *first,
                        struct tide_archive_pulse *pulse, enum tide_archive_life *life,
                        struct tide_error *err)
{
    TIDE_CLEANUP(tide_arena_done) struct tide_arena arena = {0};
    struct tide_archive_source now;
    TIDE_TRY(tide_archive_source_read(archive, first->id, &arena, &now, err));
    enum tide_archive_life seen = tide_archive_pulse_look(pulse, &now, tide_clock_monotonic_us());
    bool is_moving = !first->has_heartbeat || now.heartbeat != first->heartbeat;
    *life = seen != TIDE_ARCHIVE_LIVE || is_moving ? seen : TIDE_ARCHIVE_UNKNOWN;
    return TIDE_OK;
}

/* A source of which the answer may still change. */
static bool is_waited_for(const struct tide_archive_source *source, enum tide_archive_life life)
{
    return life == TIDE_ARCHIVE_UNKNOWN && source->has_heartbeat &&
           source->heartbeat_interval_ns > 0;
}

static tide_status look_at_all(struct tide_archive *archive,
                               const struct tide_archive_catalogue *catalogue,
                               struct tide_archive_pulse *pulses, enum tide_archive_life *lives,
                               bool *ret_is_waiting, struct tide_error *err)
{
    *ret_is_waiting = false;
    for (size_t i = 0; i < catalogue->source_count; i++) {
        const struct tide_archive_source *source = &catalogue->sources[i];
        if (lives[i] == TIDE_ARCHIVE_UNKNOWN) {
            TIDE_TRY(look(archive, source, &pulses[i], &lives[i], err));
            *ret_is_waiting = *ret_is_waiting || is_waited_for(source, lives[i]);
        }
    }
    return TIDE_OK;
}

tide_status tide_archive_health(struct tide_archive *archive,
                                const struct tide_archive_catalogue *catalogue, bool is_open,
                                int64_t wait_us, enum tide_archive_life *ret_lives,
                                struct tide_error *err)
{
    TIDE_CLEANUP(tide_free_ptr)
    struct tide_archive_pulse *pulses = tide_alloc(catalogue->source_count, sizeof(*pulses));
    int64_t deadline = tide_clock_deadline_us(wait_us);
    for (size_t i = 0; i < catalogue->source_count; i++) {
        const struct tide_archive_source *source = &catalogue->sources[i];
        ret_lives[i] = source->is_complete                 ? TIDE_ARCHIVE_COMPLETE
                       : !is_open && source->has_heartbeat ? TIDE_ARCHIVE_STOPPED
                                                           : TIDE_ARCHIVE_UNKNOWN;
    }
    for (;;) {
        bool is_waiting = false;
        TIDE_TRY(look_at_all(archive, catalogue, pulses, ret_lives, &is_waiting, err));
        if (!is_waiting || tide_clock_monotonic_us() >= deadline) {
            return TIDE_OK;
        }
        (void)poll(NULL, 0, LOOK_EVERY_MS);
    }
}
