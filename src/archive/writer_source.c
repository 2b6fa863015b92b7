/* Sources as a writer adds them, goes on with them and ends them; and handles of their series. */
#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "archive/scan.h"
#include "archive/sessions_trim.h"
#include "archive/writer_state.h"
#include "base/alloc.h"
#include "base/limits.h"

#define WRITER "tidemark " TIDE_VERSION

struct tide_archive_open_source *tide_archive_open_source(const struct tide_archive_writer *writer,
                                                          int64_t id)
{
    const union tide_map_value *found =
        tide_map_get(&writer->source_by_id, tide_str_of(&id, sizeof(id)));
    return found == NULL ? NULL : writer->sources[found->number];
}

/* Of labels that are sorted. */
char *tide_archive_label_of(const struct tide_archive_pairs *labels)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf label = {0};
    for (size_t i = 0; i < labels->count; i++) {
        if (i > 0) {
            tide_buf_append_char(&label, '\1');
        }
        tide_buf_append_str(&label, labels->items[i].key);
        tide_buf_append_char(&label, '=');
        tide_buf_append_str(&label, labels->items[i].value);
    }
    return tide_strndup(tide_buf_cstr(&label), label.len);
}

void tide_archive_remember_source(struct tide_archive_writer *writer,
                                  const struct tide_archive_open_source *source)
{
    struct tide_archive_open_source *known = tide_archive_open_source(writer, source->id);
    if (known == NULL) {
        writer->sources =
            tide_realloc(writer->sources, writer->source_count + 1, sizeof(*writer->sources));
        known = tide_alloc(1, sizeof(*known));
        tide_map_put(&writer->source_by_id, tide_str_of(&source->id, sizeof(source->id)), NULL)
            ->number = writer->source_count;
        writer->sources[writer->source_count++] = known;
    }
    free(known->label);
    *known = *source;
}

static bool is_ours(tide_str key)
{
    return tide_str_equal(key, TIDE_STR(TIDE_ARCHIVE_KEY_SESSIONS)) ||
           tide_str_equal(key, TIDE_STR(TIDE_ARCHIVE_KEY_ENCODER)) ||
           tide_str_equal(key, TIDE_STR(TIDE_ARCHIVE_KEY_EVENTS));
}

static bool is_text(tide_str text)
{
    return tide_str_is_utf8(text) && (text.len == 0 || memchr(text.ptr, '\0', text.len) == NULL);
}

tide_status tide_archive_check_pairs(const struct tide_archive_pairs *pairs, bool is_metadata,
                                     struct tide_error *err)
{
    size_t size = 0;
    for (size_t i = 0; i < pairs->count; i++) {
        if (!is_text(pairs->items[i].key) || !is_text(pairs->items[i].value)) {
            return tide_fail(err, TIDE_INVALID,
                             "a label or metadata of a source is not UTF-8 text, or holds NUL");
        }
        if (is_metadata && is_ours(pairs->items[i].key)) {
            return tide_fail(err, TIDE_INVALID,
                             "the metadata key %.*s is kept by the archive itself; take another",
                             TIDE_STR_ARG(pairs->items[i].key));
        }
        size += pairs->items[i].key.len + pairs->items[i].value.len;
    }
    return size <= TIDE_ARCHIVE_META_BYTES_MAX / 8
               ? TIDE_OK
               : tide_fail(err, TIDE_INVALID, "labels or metadata of a source are over 2 MiB");
}

/* A session of this writer, with what it says of itself. */
struct opening {
    struct tide_archive_session session;
    char uuid[TIDE_UUID_LEN + 1];
    struct tide_arena arena;
    struct tide_buf sessions;
    struct tide_buf events;
    struct tide_buf trimmed_sessions; /* what was there, without what need not be told any more */
    struct tide_buf trimmed_events;
    struct tide_buf json;
};

static void opening_done(struct opening *opening)
{
    tide_arena_done(&opening->arena);
    tide_buf_done(&opening->sessions);
    tide_buf_done(&opening->events);
    tide_buf_done(&opening->trimmed_sessions);
    tide_buf_done(&opening->trimmed_events);
    tide_buf_done(&opening->json);
}

static void opening_init(struct opening *opening, int64_t anchor)
{
    *opening = (struct opening){0};
    tide_uuid_v4(opening->uuid);
    opening->session = (struct tide_archive_session){
        .session = tide_str_from(opening->uuid),
        .clock_anchor_wall_ns = anchor,
        .writer = TIDE_STR(WRITER),
    };
}

/* Adds the session and the encoder's version to a source's metadata; `json` is the whole then. */
static tide_status record_session(const struct tide_archive_writer *writer, struct opening *opening,
                                  struct tide_archive_pairs *metadata, struct tide_error *err)
{
    tide_str key = TIDE_STR(TIDE_ARCHIVE_KEY_SESSIONS);
    const struct tide_archive_encoder *encoder = writer->options.encoder;
    TIDE_TRY(tide_archive_sessions_append(tide_archive_pairs_get(metadata, key), &opening->session,
                                          &opening->sessions, err));
    tide_archive_pairs_set(metadata, &opening->arena, key, tide_buf_str(&opening->sessions));
    if (encoder != NULL && encoder->version != NULL) {
        tide_archive_pairs_set(metadata, &opening->arena, TIDE_STR(TIDE_ARCHIVE_KEY_ENCODER),
                               tide_str_from(encoder->version));
    }
    tide_archive_pairs_write(metadata, &opening->json);
    return TIDE_OK;
}

static struct tide_archive_pairs copy_pairs(const struct tide_archive_pairs *pairs,
                                            struct tide_arena *arena)
{
    struct tide_archive_pairs copy = {0};
    for (size_t i = 0; i < pairs->count; i++) {
        tide_archive_pairs_set(&copy, arena, pairs->items[i].key, pairs->items[i].value);
    }
    return copy;
}

/* All of it in one transaction: no source is ever without its session. */
static tide_status insert_source(struct tide_archive_writer *writer,
                                 const struct tide_archive_new_source *source, tide_str labels,
                                 tide_str metadata, int64_t *ret_id, struct tide_error *err)
{
    char uuid[TIDE_UUID_LEN + 1];
    struct tide_archive *archive = writer->archive;
    TIDE_CLEANUP(tide_archive_rollback) struct tide_archive *open = archive;
    tide_uuid_v4(uuid);
    TIDE_TRY(tide_archive_begin(open, err));
    TIDE_TRY(tide_archive_run(
        archive, err,
        "INSERT INTO sources (labels, metadata, complete, clock_anchor_wall_ns, uuid, heartbeat, "
        "heartbeat_interval_ns) VALUES (?1, ?2, 0, ?3, ?4, 1, ?5)",
        "ttiti", labels, metadata, source->clock_anchor_wall_ns, tide_str_from(uuid),
        writer->options.heartbeat_us * 1000));
    int64_t id = sqlite3_last_insert_rowid(archive->db);
    TIDE_TRY(tide_archive_commit(archive, err));
    *ret_id = id;
    return TIDE_OK;
}

static tide_status add_source(struct tide_archive_writer *writer,
                              const struct tide_archive_new_source *source, int64_t *ret_id,
                              struct tide_error *err)
{
    TIDE_CLEANUP(opening_done) struct opening opening;
    TIDE_CLEANUP(tide_buf_done) struct tide_buf labels_json = {0};
    opening_init(&opening, source->clock_anchor_wall_ns);
    struct tide_archive_pairs labels = copy_pairs(&source->labels, &opening.arena);
    struct tide_archive_pairs metadata = copy_pairs(&source->metadata, &opening.arena);
    int64_t id = 0;
    TIDE_TRY(tide_archive_check_pairs(&labels, false, err));
    TIDE_TRY(tide_archive_check_pairs(&metadata, true, err));
    tide_archive_pairs_write(&labels, &labels_json);
    TIDE_TRY(record_session(writer, &opening, &metadata, err));
    TIDE_TRY(insert_source(writer, source, tide_buf_str(&labels_json), tide_buf_str(&opening.json),
                           &id, err));
    tide_archive_remember_source(writer, &(struct tide_archive_open_source){
                                             .id = id, .label = tide_archive_label_of(&labels)});
    *ret_id = id;
    return TIDE_OK;
}

tide_status tide_archive_add_source(struct tide_archive_writer *writer,
                                    const struct tide_archive_new_source *source, int64_t *ret_id,
                                    struct tide_error *err)
{
    TIDE_TRY(tide_archive_enter(writer, "adding a source", err));
    return tide_archive_leave(writer, add_source(writer, source, ret_id, err), err);
}

static tide_status resume_anchor(struct tide_archive_writer *writer, int64_t id, int64_t now_ns,
                                 int64_t *ret_anchor_ns, struct tide_error *err)
{
    bool is_any = false;
    int64_t newest = 0;
    TIDE_TRY(tide_archive_newest_row(writer->archive, id, &is_any, &newest, err));
    if (is_any && newest == INT64_MAX) {
        return tide_fail(err, TIDE_INVALID,
                         "%s: source %" PRId64 " has a row at the end of time and cannot be gone "
                         "on with; add a source",
                         writer->archive->path, id);
    }
    *ret_anchor_ns = is_any && now_ns <= newest ? newest + 1 : now_ns;
    return TIDE_OK;
}

tide_status tide_archive_resume_anchor(struct tide_archive_writer *writer, int64_t id,
                                       int64_t now_ns, int64_t *ret_anchor_ns,
                                       struct tide_error *err)
{
    TIDE_TRY(tide_archive_enter(writer, "going on with a source", err));
    return tide_archive_leave(writer, resume_anchor(writer, id, now_ns, ret_anchor_ns, err), err);
}

static tide_status check_anchor(const struct tide_archive_writer *writer,
                                const struct tide_archive_open_source *source, int64_t anchor,
                                struct tide_error *err)
{
    if (!source->has_floor || anchor > source->floor) {
        return TIDE_OK;
    }
    return tide_fail(
        err, TIDE_INVALID,
        "%s: source %" PRId64 " has rows up to %" PRId64 " and cannot be gone on with at %" PRId64
        ": time would run backwards; look at the clock, or start behind its newest row",
        writer->archive->path, source->id, source->floor, anchor);
}

/* A writer may be opened every minute for years. What is of no known form is left as it is. */
static void trim(struct opening *opening, struct tide_archive_pairs *metadata)
{
    struct tide_error ignored;
    struct tide_archive_gone gone = {0};
    tide_str key = TIDE_STR(TIDE_ARCHIVE_KEY_SESSIONS);
    tide_str sessions = tide_archive_pairs_get(metadata, key);
    tide_str events = tide_archive_pairs_get(metadata, TIDE_STR(TIDE_ARCHIVE_KEY_EVENTS));
    if (sessions.ptr == NULL ||
        tide_archive_sessions_trim(sessions, &opening->session, &opening->arena, &gone,
                                   &opening->trimmed_sessions, &ignored) != TIDE_OK) {
        return;
    }
    tide_archive_pairs_set(metadata, &opening->arena, key,
                           tide_buf_str(&opening->trimmed_sessions));
    if (events.ptr != NULL &&
        tide_archive_events_trim(events, &gone, &opening->arena, &opening->trimmed_events,
                                 &ignored) == TIDE_OK) {
        tide_archive_pairs_set(metadata, &opening->arena, TIDE_STR(TIDE_ARCHIVE_KEY_EVENTS),
                               tide_buf_str(&opening->trimmed_events));
    }
}

static tide_status record_resume(const struct tide_archive_writer *writer, struct opening *opening,
                                 const struct tide_archive_open_source *source,
                                 struct tide_archive_pairs *metadata, struct tide_error *err)
{
    char id[sizeof("writer_session:") + TIDE_UUID_LEN];
    tide_str key = TIDE_STR(TIDE_ARCHIVE_KEY_EVENTS);
    (void)snprintf(id, sizeof(id), "writer_session:%s", opening->uuid);
    struct tide_archive_event event = {
        .timestamp = opening->session.clock_anchor_wall_ns,
        .description = TIDE_STR("a writer went on with this source"),
        .kind = TIDE_STR("writer_session"),
        .id = tide_str_from(id),
    };
    opening->session.is_resumed = true;
    opening->session.has_resumed_after = source->has_floor;
    opening->session.resumed_after_ts = source->floor;
    trim(opening, metadata);
    TIDE_TRY(tide_archive_events_append(tide_archive_pairs_get(metadata, key), &event,
                                        &opening->events, err));
    tide_archive_pairs_set(metadata, &opening->arena, key, tide_buf_str(&opening->events));
    return record_session(writer, opening, metadata, err);
}

/* The clock of a resumed source: where it began stays, the session has its own anchor. */
static tide_status update_resumed(struct tide_archive_writer *writer, int64_t id, tide_str metadata,
                                  struct tide_error *err)
{
    TIDE_CLEANUP(tide_archive_rollback) struct tide_archive *open = writer->archive;
    TIDE_TRY(tide_archive_begin(open, err));
    TIDE_TRY(tide_archive_run(
        writer->archive, err,
        "UPDATE sources SET complete = 0, metadata = ?2, heartbeat_interval_ns = ?3, "
        "heartbeat = COALESCE(heartbeat, 0) + 1 WHERE id = ?1",
        "iti", id, metadata, writer->options.heartbeat_us * 1000));
    return tide_archive_commit(writer->archive, err);
}

static tide_status resume_source(struct tide_archive_writer *writer, int64_t id, int64_t anchor,
                                 struct tide_error *err)
{
    TIDE_CLEANUP(opening_done) struct opening opening;
    opening_init(&opening, anchor);
    struct tide_archive_source found;
    struct tide_archive_open_source source = {.id = id};
    TIDE_TRY(tide_archive_source_read(writer->archive, id, &opening.arena, &found, err));
    TIDE_TRY(tide_archive_encoder_check(writer->archive, id, writer->options.encoder, err));
    TIDE_TRY(tide_archive_newest_row(writer->archive, id, &source.has_floor, &source.floor, err));
    TIDE_TRY(check_anchor(writer, &source, anchor, err));
    writer->archive->doing = "going on with a source";
    if (record_resume(writer, &opening, &source, &found.metadata, err) != TIDE_OK) {
        return tide_fail_context(err, "%s: metadata of source %" PRId64, writer->archive->path, id);
    }
    TIDE_TRY(update_resumed(writer, id, tide_buf_str(&opening.json), err));
    source.label = tide_archive_label_of(&found.labels);
    tide_archive_remember_source(writer, &source);
    return TIDE_OK;
}

tide_status tide_archive_resume_source(struct tide_archive_writer *writer, int64_t id,
                                       int64_t clock_anchor_wall_ns, struct tide_error *err)
{
    TIDE_TRY(tide_archive_enter(writer, "going on with a source", err));
    return tide_archive_leave(writer, resume_source(writer, id, clock_anchor_wall_ns, err), err);
}

static tide_status fail_not_open(const struct tide_archive_writer *writer, int64_t id,
                                 struct tide_error *err)
{
    return tide_fail(err, TIDE_INVALID,
                     "%s: %s: source %" PRId64 " is not open; add or resume it first",
                     writer->archive->path, writer->archive->doing, id);
}

static tide_status finalize(struct tide_archive_writer *writer, int64_t id, int64_t ts,
                            int64_t wall_offset, struct tide_error *err)
{
    struct tide_archive_open_source *source = tide_archive_open_source(writer, id);
    TIDE_CLEANUP(tide_archive_rollback) struct tide_archive *open = writer->archive;
    if (source == NULL) {
        return fail_not_open(writer, id, err);
    }
    TIDE_TRY(tide_archive_begin(open, err));
    TIDE_TRY(tide_archive_run(writer->archive, err,
                              "INSERT OR IGNORE INTO clock_offsets (source_id, ts, offset_ns) "
                              "VALUES (?1, ?2, ?3)",
                              "iii", id, ts, wall_offset));
    TIDE_TRY(tide_archive_run(writer->archive, err, "UPDATE sources SET complete = 1 WHERE id = ?1",
                              "i", id));
    TIDE_TRY(tide_archive_commit(writer->archive, err));
    source->is_finalized = true;
    return TIDE_OK;
}

tide_status tide_archive_finalize_source(struct tide_archive_writer *writer, int64_t id, int64_t ts,
                                         int64_t wall_offset, struct tide_error *err)
{
    TIDE_TRY(tide_archive_enter(writer, "finalizing a source", err));
    return tide_archive_leave(writer, finalize(writer, id, ts, wall_offset, err), err);
}

static tide_status set_metadata(struct tide_archive_writer *writer, int64_t id,
                                const struct tide_archive_pairs *pairs, struct tide_error *err)
{
    TIDE_CLEANUP(tide_arena_done) struct tide_arena arena = {0};
    TIDE_CLEANUP(tide_buf_done) struct tide_buf json = {0};
    struct tide_archive_source found;
    TIDE_TRY(tide_archive_check_pairs(pairs, true, err));
    TIDE_CLEANUP(tide_archive_rollback) struct tide_archive *open = writer->archive;
    TIDE_TRY(tide_archive_begin(open, err));
    TIDE_TRY(tide_archive_source_read(writer->archive, id, &arena, &found, err));
    for (size_t i = 0; i < pairs->count; i++) {
        tide_archive_pairs_set(&found.metadata, &arena, pairs->items[i].key, pairs->items[i].value);
    }
    tide_archive_pairs_write(&found.metadata, &json);
    TIDE_TRY(tide_archive_run(writer->archive, err,
                              "UPDATE sources SET metadata = ?2 WHERE id = ?1", "it", id,
                              tide_buf_str(&json)));
    return tide_archive_commit(writer->archive, err);
}

tide_status tide_archive_set_metadata(struct tide_archive_writer *writer, int64_t id,
                                      const struct tide_archive_pairs *pairs,
                                      struct tide_error *err)
{
    TIDE_TRY(tide_archive_enter(writer, "setting metadata", err));
    return tide_archive_leave(writer, set_metadata(writer, id, pairs, err), err);
}
