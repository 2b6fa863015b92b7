#include "sink/archive/archive_target.h"

#include "archive/change_encoder.h"
#include "archive/change_sink_held.h"
#include "archive/container.h"
#include "base/clock.h"

#include <inttypes.h>

/* What an archive says of copies in it. */
struct found {
    struct tide_arena arena;
    struct tide_archive_catalogue catalogue;
    bool has_rows;       /* of any source */
    bool is_followed;    /* a follower has made it, of another archive */
    bool has_source;     /* one of our database, */
    bool is_by_identity; /* or else of one that was at its place */
    int64_t source;
    bool has_held; /* a record: ours, else the newest there is */
    bool is_ours;
    int64_t held_source;
    struct tide_owner owner;
    struct tide_progress progress;
};

static void found_done(struct found *found)
{
    tide_arena_done(&found->arena);
    tide_progress_done(&found->progress);
}

static bool may_pass(const struct tide_error *err)
{
    return err->status == TIDE_IO || err->status == TIDE_TIMEOUT;
}

static bool is_pair(const struct tide_archive_pairs *pairs, const char *key, tide_str value)
{
    tide_str found = tide_archive_pairs_get(pairs, tide_str_from(key));
    return found.ptr != NULL && value.len > 0 && tide_str_equal(found, value);
}

/* The database's identity changes when all that we put into it was taken out between two copies:
 * then its place says that it is the same. */
static void look_at_source(const struct tide_archive_source *source,
                           const struct tide_sink_options *options, struct found *found)
{
    tide_str identity = TIDE_STR(TIDE_ARCHIVE_META_IDENTITY);
    found->is_followed = found->is_followed || tide_archive_is_copied(source);
    bool is_by_identity =
        tide_archive_pairs_get(&source->metadata, identity).ptr != NULL
            ? is_pair(&source->metadata, TIDE_ARCHIVE_META_IDENTITY, options->identity)
            : is_pair(&source->labels, TIDE_ARCHIVE_LABEL_SOURCE, options->identity);
    bool is_by_place = is_pair(&source->metadata, TIDE_ARCHIVE_META_LOCATION, options->location);
    if (!is_pair(&source->labels, TIDE_ARCHIVE_LABEL_PROGRAM, TIDE_STR("tidemark")) ||
        (!is_by_identity && (!is_by_place || found->is_by_identity))) {
        return;
    }
    found->has_source = true;
    found->is_by_identity = is_by_identity;
    found->source = source->id;
}

/* Who is asked: a handle that changes nothing, or else the writer's own. */
struct asked {
    struct tide_archive *archive;
    struct tide_archive_writer *writer;
};

static tide_status ask_held(struct asked asked, int64_t source, bool *ret_is_any,
                            struct tide_buf *ret_bytes, struct tide_error *err)
{
    return asked.archive != NULL
               ? tide_archive_held_read(asked.archive, source, TIDE_ARCHIVE_HELD_BY_SINK,
                                        ret_is_any, ret_bytes, err)
               : tide_archive_writer_held(asked.writer, source, TIDE_ARCHIVE_HELD_BY_SINK,
                                          ret_is_any, ret_bytes, err);
}

/* Takes in the source's record, unless ours has been found already. */
static tide_status read_held(struct asked asked, const char *path, int64_t source,
                             const struct tide_sink_options *options, struct found *found,
                             struct tide_error *err)
{
    TIDE_CLEANUP(tide_progress_done) struct tide_progress progress = {0};
    TIDE_CLEANUP(tide_buf_done) struct tide_buf bytes = {0};
    struct tide_owner owner;
    struct tide_error ignored;
    bool is_any = false;
    TIDE_TRY(ask_held(asked, source, &is_any, &bytes, err));
    if (!is_any) {
        return TIDE_OK;
    }
    if (tide_change_sink_held_decode(tide_buf_str(&bytes), &found->arena, &owner, &progress, err) !=
        TIDE_OK) {
        return tide_fail_context(err, "%s: source %" PRId64, path, source);
    }
    bool is_ours = tide_owner_check(&owner, path, options, &ignored) == TIDE_OK;
    if (found->has_held && found->is_ours && !is_ours) {
        return TIDE_OK;
    }
    found->has_held = true;
    found->is_ours = is_ours;
    found->held_source = source;
    found->owner = owner;
    tide_progress_copy(&found->progress, &progress);
    return TIDE_OK;
}

static tide_status take_sources(struct asked asked, const char *path,
                                const struct tide_sink_options *options, struct found *found,
                                struct tide_error *err)
{
    found->has_rows = found->catalogue.series_count > 0;
    for (size_t i = 0; i < found->catalogue.source_count; i++) {
        const struct tide_archive_source *source = &found->catalogue.sources[i];
        look_at_source(source, options, found);
        TIDE_TRY(read_held(asked, path, source->id, options, found, err));
    }
    return TIDE_OK;
}

/* By a handle that changes nothing. */
static tide_status look_beside(const char *path, const struct tide_sink_options *options,
                               struct found *found, struct tide_error *err)
{
    TIDE_CLEANUP(tide_archive_close_ptr) struct tide_archive *archive = NULL;
    TIDE_TRY(tide_archive_open(path, TIDE_ARCHIVE_READ, &archive, err));
    TIDE_CLEANUP(tide_archive_snapshot_end_ptr) struct tide_archive *snapshot = NULL;
    TIDE_TRY(tide_archive_snapshot_begin(archive, err));
    snapshot = archive;
    TIDE_TRY(tide_archive_catalogue_read(archive, &found->arena, &found->catalogue, err));
    return take_sources((struct asked){.archive = archive}, path, options, found, err);
}

/*
 * What is not ours is refused before anything is opened for writing. Once the writer is open, what
 * counts is what it sees: after a kill it may bring in a last transaction out of the log that a
 * reader did not see, whose index of the log had not come so far.
 */
static tide_status look(const struct tide_archive_target *target,
                        const struct tide_sink_options *options, struct found *found,
                        struct tide_error *err)
{
    const char *path = target->place.path;
    found_done(found);
    *found = (struct found){0};
    if (target->writer == NULL) {
        return look_beside(path, options, found, err);
    }
    TIDE_TRY(tide_archive_writer_catalogue(target->writer, &found->arena, &found->catalogue, err));
    return take_sources((struct asked){.writer = target->writer}, path, options, found, err);
}

static int64_t now_ns(void)
{
    return tide_clock_utc_us() * 1000;
}

static tide_status open_writer(struct tide_archive_target *target, struct tide_error *err)
{
    const struct tide_archive_writer_options options = {
        .encoder = &tide_change_encoder,
        .has_keeper = true,
        .allows_edits = true,
    };
    return tide_archive_writer_open(target->place.path, &options, &target->writer, err);
}

/* In a new session, at a time that is behind every row, wherever our clock stands. */
static tide_status go_on_with(struct tide_archive_target *target, int64_t source,
                              struct tide_error *err)
{
    int64_t anchor = 0;
    TIDE_TRY(tide_archive_resume_anchor(target->writer, source, now_ns(), &anchor, err));
    TIDE_TRY(tide_archive_resume_source(target->writer, source, anchor, err));
    target->source = source;
    return TIDE_OK;
}

static tide_status add_source(struct tide_archive_target *target,
                              const struct tide_sink_options *options, struct tide_error *err)
{
    struct tide_archive_pair labels[] = {
        {TIDE_STR(TIDE_ARCHIVE_LABEL_PROGRAM), TIDE_STR("tidemark")},
        {TIDE_STR(TIDE_ARCHIVE_LABEL_SOURCE), options->identity},
    };
    const struct tide_archive_new_source source = {
        .labels = {.items = labels, .count = sizeof(labels) / sizeof(labels[0])},
        .clock_anchor_wall_ns = now_ns(),
    };
    return tide_archive_add_source(target->writer, &source, &target->source, err);
}

/* Says from now on that this pipeline's copy is here; nothing of it is held yet. */
static tide_status take_over(struct tide_archive_target *target,
                             const struct tide_sink_options *options, struct tide_error *err)
{
    struct tide_archive_pair pairs[] = {
        {TIDE_STR(TIDE_ARCHIVE_META_PIPELINE), options->pipeline},
        {TIDE_STR(TIDE_ARCHIVE_META_IDENTITY), options->identity},
        {TIDE_STR(TIDE_ARCHIVE_META_LOCATION), options->location},
    };
    const struct tide_archive_pairs metadata = {.items = pairs,
                                                .count = options->location.len > 0 ? 3 : 2};
    struct tide_owner owner = tide_owner_of(options);
    struct tide_progress none = {0};
    struct tide_archive_tick tick = {0};
    target->owner = tide_owner_copy(&owner, &target->arena);
    TIDE_TRY(tide_archive_set_metadata(target->writer, target->source, &metadata, err));
    return tide_archive_target_write(target, &tick, &none, err);
}

/* There are rows that are not to be replaced or added to: whose they are, and what can be done. */
static tide_status refuse(const struct tide_archive_target *target, const struct found *found,
                          const struct tide_sink_options *options, struct tide_error *err)
{
    const char *path = target->place.path;
    if (found->has_held) {
        (void)tide_owner_refuse(&found->owner, path, options, err);
    } else {
        (void)tide_fail(err, TIDE_INVALID, "%s is there, with rows that are no copy of ours", path);
    }
    return tide_owner_add_ways(err, false);
}

static tide_status find_begun(const struct tide_archive_target *target,
                              enum tide_archive_thing there,
                              const struct tide_sink_options *options, struct found *found,
                              struct tide_error *err)
{
    if (there == TIDE_ARCHIVE_NOTHING || options->existing == TIDE_EXISTING_OVERWRITE) {
        return TIDE_OK;
    }
    if (look(target, options, found, err) != TIDE_OK) {
        return may_pass(err) ? err->status : tide_owner_add_ways_but_append(err);
    }
    if (found->is_followed && options->existing == TIDE_EXISTING_APPEND) {
        return tide_fail(
            err, TIDE_INVALID,
            "%s is what \"archive subscribe\" made of another archive, and could not "
            "be gone on with if a pipeline wrote it too; name another file, or replace "
            "it with --overwrite",
            target->place.path);
    }
    return found->has_rows && options->existing == TIDE_EXISTING_REFUSE
               ? refuse(target, found, options, err)
               : TIDE_OK;
}

static tide_status begin(struct tide_archive_target *target, enum tide_archive_thing there,
                         const struct tide_sink_options *options, struct found *found,
                         struct tide_error *err)
{
    TIDE_TRY(find_begun(target, there, options, found, err));
    if (there == TIDE_ARCHIVE_NOTHING || options->existing == TIDE_EXISTING_OVERWRITE) {
        TIDE_TRY(tide_archive_place_make(&target->place, there, err));
    }
    TIDE_TRY(open_writer(target, err));
    TIDE_TRY(find_begun(target, there, options, found, err));
    TIDE_TRY(found->has_source ? go_on_with(target, found->source, err)
                               : add_source(target, options, err));
    return take_over(target, options, err);
}

static tide_status find_held_here(const struct tide_archive_target *target,
                                  enum tide_archive_thing there,
                                  const struct tide_sink_options *options, struct found *found,
                                  struct tide_error *err)
{
    const char *path = target->place.path;
    if (there == TIDE_ARCHIVE_NOTHING) {
        return tide_fail(err, TIDE_STALE,
                         "this pipeline goes on from a checkpoint, but %s is not there", path);
    }
    TIDE_TRY(look(target, options, found, err));
    if (!found->has_held) {
        return tide_fail(err, TIDE_STALE,
                         "this pipeline goes on from a checkpoint, but %s has no record of what "
                         "it holds",
                         path);
    }
    return tide_owner_check(&found->owner, path, options, err);
}

static tide_status find_held(const struct tide_archive_target *target,
                             enum tide_archive_thing there, const struct tide_sink_options *options,
                             struct found *found, struct tide_error *err)
{
    tide_status status = find_held_here(target, there, options, found, err);
    return status == TIDE_OK || may_pass(err) ? status : tide_owner_add_ways(err, true);
}

/* The pipeline goes on from a checkpoint: what it holds here must be here. */
static tide_status go_on(struct tide_archive_target *target, enum tide_archive_thing there,
                         const struct tide_sink_options *options, struct found *found,
                         struct tide_error *err)
{
    TIDE_TRY(find_held(target, there, options, found, err));
    TIDE_TRY(open_writer(target, err));
    TIDE_TRY(find_held(target, there, options, found, err));
    TIDE_TRY(go_on_with(target, found->held_source, err));
    target->owner = tide_owner_copy(&found->owner, &target->arena);
    tide_progress_copy(&target->held, &found->progress);
    return TIDE_OK;
}

tide_status tide_archive_target_open(struct tide_archive_target *target,
                                     const struct tide_sink_options *options,
                                     struct tide_error *err)
{
    TIDE_CLEANUP(found_done) struct found found = {0};
    enum tide_archive_thing there = TIDE_ARCHIVE_NOTHING;
    TIDE_TRY(tide_archive_place_name(options->place, &target->place, err));
    TIDE_TRY(tide_archive_place_lock(&target->place, err));
    TIDE_TRY(tide_archive_place_look(&target->place, &there, err));
    TIDE_TRY(options->is_resumed ? go_on(target, there, options, &found, err)
                                 : begin(target, there, options, &found, err));
    return tide_archive_place_remember(&target->place, err);
}

void tide_archive_target_close(struct tide_archive_target *target)
{
    tide_archive_writer_close(target->writer);
    tide_archive_place_done(&target->place); /* unlocked last */
    tide_progress_done(&target->held);
    tide_arena_done(&target->arena);
    tide_buf_done(&target->scratch);
    *target = (struct tide_archive_target){.place = {.lock_fd = -1}};
}

tide_status tide_archive_target_write(struct tide_archive_target *target,
                                      struct tide_archive_tick *tick,
                                      const struct tide_progress *progress, struct tide_error *err)
{
    TIDE_TRY(tide_archive_place_check(&target->place, err));
    tide_buf_reset(&target->scratch);
    tide_owner_encode(&target->owner, progress, &target->scratch);
    const struct tide_archive_held held = {
        .source = target->source,
        .name = TIDE_ARCHIVE_HELD_BY_SINK,
        .bytes = tide_buf_str(&target->scratch),
    };
    tick->held = &held;
    tick->held_count = 1;
    tide_status status = tide_archive_write(target->writer, tick, err);
    tick->held = NULL;
    tick->held_count = 0;
    TIDE_TRY(status);
    tide_progress_copy(&target->held, progress);
    return TIDE_OK;
}
