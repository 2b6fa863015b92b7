/* What a writer does by the clock: hearts beat, the log is folded into the file. */
#include <sqlite3.h>
#include <stdio.h>

#include "archive/writer_state.h"
#include "base/clock.h"

static tide_status beat(struct tide_archive_writer *writer, struct tide_error *err)
{
    TIDE_CLEANUP(tide_archive_rollback) struct tide_archive *open = writer->archive;
    bool is_any = false;
    for (size_t i = 0; i < writer->source_count; i++) {
        if (writer->sources[i]->is_finalized || writer->options.is_copy) {
            continue;
        }
        if (!is_any) {
            TIDE_TRY(tide_archive_begin(open, err));
            is_any = true;
        }
        TIDE_TRY(tide_archive_run(
            writer->archive, err,
            "UPDATE sources SET heartbeat = COALESCE(heartbeat, 0) + 1 WHERE id = ?1", "i",
            writer->sources[i]->id));
    }
    return is_any ? tide_archive_commit(writer->archive, err) : TIDE_OK;
}

/* What a reader's snapshot keeps from being folded in is folded in later. */
static tide_status checkpoint(struct tide_archive_writer *writer, struct tide_error *err)
{
    TIDE_TRY(tide_archive_require_uncut(writer->archive, err));
    int rc = sqlite3_wal_checkpoint_v2(writer->archive->db, "main", SQLITE_CHECKPOINT_PASSIVE, NULL,
                                       NULL);
    return rc == SQLITE_OK || (rc & 0xff) == SQLITE_BUSY
               ? TIDE_OK
               : tide_archive_fail(writer->archive, rc, err);
}

static tide_status tend(struct tide_archive_writer *writer, int64_t *ret_next_us,
                        struct tide_error *err)
{
    int64_t now_us = tide_clock_monotonic_us();
    if (now_us >= writer->next_beat_us) {
        writer->next_beat_us = now_us + writer->options.heartbeat_us;
        TIDE_TRY(beat(writer, err));
    }
    if (now_us >= writer->next_checkpoint_us) {
        writer->next_checkpoint_us = now_us + writer->options.checkpoint_us;
        TIDE_TRY(checkpoint(writer, err));
    }
    *ret_next_us = writer->next_beat_us < writer->next_checkpoint_us ? writer->next_beat_us
                                                                     : writer->next_checkpoint_us;
    return TIDE_OK;
}

tide_status tide_archive_tend(struct tide_archive_writer *writer, int64_t *ret_next_us,
                              struct tide_error *err)
{
    TIDE_TRY(tide_archive_enter(writer, "tending", err));
    return tide_archive_leave(writer, tend(writer, ret_next_us, err), err);
}

static tide_status give_back(struct tide_archive *archive, int pages, bool *ret_is_more,
                             struct tide_error *err)
{
    bool is_any = false;
    int64_t free_pages = 0;
    int64_t all = 0;
    char sql[64];
    (void)snprintf(sql, sizeof(sql), "PRAGMA incremental_vacuum(%d)", pages);
    TIDE_TRY(tide_archive_ask(archive, err, &is_any, &free_pages, "PRAGMA freelist_count", ""));
    TIDE_TRY(tide_archive_ask(archive, err, &is_any, &all, "PRAGMA page_count", ""));
    *ret_is_more = free_pages * 10 > all;
    if (!*ret_is_more) {
        return TIDE_OK;
    }
    TIDE_TRY(tide_archive_run(archive, err, sql, ""));
    return tide_archive_note_given_back(archive, err);
}

tide_status tide_archive_writer_give_back(struct tide_archive_writer *writer, int pages,
                                          bool *ret_is_more, struct tide_error *err)
{
    TIDE_TRY(tide_archive_enter(writer, "giving room back", err));
    return tide_archive_leave(writer, give_back(writer->archive, pages, ret_is_more, err), err);
}

/* What fails here fails the next write too, which has somebody to tell. */
static void *keep(void *context)
{
    struct tide_archive_writer *writer = context;
    int64_t next_us = tide_clock_monotonic_us();
    while (!writer->is_closing) {
        (void)tide_waker_wait(&writer->waker, next_us);
        struct tide_error ignored;
        if (tide_archive_tend(writer, &next_us, &ignored) != TIDE_OK) {
            next_us = tide_clock_deadline_us(writer->options.heartbeat_us);
        }
    }
    return NULL;
}

void tide_archive_keeper_start(struct tide_archive_writer *writer)
{
    tide_waker_init(&writer->waker);
    writer->has_keeper = true;
    tide_thread_start(&writer->keeper, keep, writer);
}

void tide_archive_keeper_stop(struct tide_archive_writer *writer)
{
    if (!writer->has_keeper) {
        return;
    }
    writer->is_closing = true;
    tide_waker_wake(&writer->waker);
    TIDE_ASSERT(pthread_join(writer->keeper, NULL) == 0);
    tide_waker_done(&writer->waker);
    writer->has_keeper = false;
}
