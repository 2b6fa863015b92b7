#include "port/owner.h"

#include <string.h>

#define WAYS_ON_RESUMED                                                                            \
    "give the sink another name in the configuration, which copies it anew, or bring it back as "  \
    "it was with its record (of tidemark copy: another --state, and --append or --overwrite)"
#define WAYS_ON_OTHER "replace it (--overwrite, or existing: overwrite) or choose another place"
#define WAYS_ON_NEW   "append to it (--append, or existing: append), " WAYS_ON_OTHER

struct tide_owner tide_owner_of(const struct tide_sink_options *options)
{
    return (struct tide_owner){
        .pipeline = options->pipeline,
        .identity = options->identity,
        .position_kind = tide_str_from(options->position_kind->name),
    };
}

struct tide_owner tide_owner_copy(const struct tide_owner *owner, struct tide_arena *arena)
{
    return (struct tide_owner){
        .pipeline = tide_arena_str(arena, owner->pipeline),
        .identity = tide_arena_str(arena, owner->identity),
        .position_kind = tide_arena_str(arena, owner->position_kind),
    };
}

/* Identities may be long; a message has room for a part. */
static tide_str shortened(tide_str text)
{
    return tide_str_of(text.ptr, text.len < 80 ? text.len : 80);
}

tide_status tide_owner_check(const struct tide_owner *owner, const char *shown,
                             const struct tide_sink_options *options, struct tide_error *err)
{
    if (!tide_str_equal(owner->pipeline, options->pipeline)) {
        return tide_fail(
            err, TIDE_INVALID, "%s holds a copy of the pipeline \"%.*s\", not of \"%.*s\"", shown,
            TIDE_STR_ARG(shortened(owner->pipeline)), TIDE_STR_ARG(shortened(options->pipeline)));
    }
    if (!tide_str_equal(owner->identity, options->identity) ||
        !tide_str_equal(owner->position_kind, tide_str_from(options->position_kind->name))) {
        return tide_fail(err, TIDE_STALE, "%s holds a copy of another source, %.*s, not of %.*s",
                         shown, TIDE_STR_ARG(shortened(owner->identity)),
                         TIDE_STR_ARG(shortened(options->identity)));
    }
    return TIDE_OK;
}

tide_status tide_owner_refuse(const struct tide_owner *owner, const char *shown,
                              const struct tide_sink_options *options, struct tide_error *err)
{
    if (!tide_str_equal(owner->pipeline, options->pipeline)) {
        return tide_fail(err, TIDE_INVALID, "%s holds an earlier copy, of the pipeline \"%.*s\"",
                         shown, TIDE_STR_ARG(shortened(owner->pipeline)));
    }
    TIDE_TRY(tide_owner_check(owner, shown, options, err));
    return tide_fail(err, TIDE_INVALID, "%s holds an earlier copy of this pipeline", shown);
}

static tide_status add(struct tide_error *err, const char *ways)
{
    struct tide_error plain = *err;
    tide_status status = tide_fail(err, plain.status, "%.300s; %s", plain.message, ways);
    err->retriable = plain.retriable;
    return status;
}

tide_status tide_owner_add_ways(struct tide_error *err, bool is_resumed)
{
    return add(err, is_resumed ? WAYS_ON_RESUMED : WAYS_ON_NEW);
}

tide_status tide_owner_add_ways_but_append(struct tide_error *err)
{
    return add(err, WAYS_ON_OTHER);
}

/* The bytes. */

void tide_held_put_number(struct tide_buf *buf, uint64_t value, size_t bytes)
{
    char *to = tide_buf_reserve(buf, bytes);
    for (size_t i = 0; i < bytes; i++) {
        to[i] = (char)(value >> (8 * i) & 0xff);
    }
    buf->len += bytes;
}

uint64_t tide_held_take_number(struct tide_reader *reader, size_t bytes)
{
    tide_str taken = tide_reader_take(reader, bytes);
    uint64_t value = 0;
    for (size_t i = 0; i < taken.len; i++) {
        value |= (uint64_t)(unsigned char)taken.ptr[i] << (8 * i);
    }
    return value;
}

void tide_held_put_text(struct tide_buf *buf, tide_str text)
{
    TIDE_ASSERT(text.len <= UINT32_MAX);
    tide_held_put_number(buf, text.len, 4);
    tide_buf_append_str(buf, text);
}

tide_str tide_held_take_text(struct tide_reader *reader)
{
    size_t len = (size_t)tide_held_take_number(reader, 4);
    return tide_reader_take(reader, len);
}

static void put_progress(struct tide_buf *buf, const struct tide_progress *progress)
{
    tide_held_put_number(buf, progress->place.known ? 1 : 0, 1);
    tide_held_put_number(buf, progress->place.position.hi, 8);
    tide_held_put_number(buf, progress->place.position.lo, 8);
    tide_held_put_number(buf, progress->place.index, 8);
    tide_held_put_number(buf, progress->snapshot_count, 4);
    for (size_t i = 0; i < progress->snapshot_count; i++) {
        const struct tide_held_snapshot *snapshot = &progress->snapshots[i];
        tide_buf_append(buf, snapshot->id, TIDE_UUID_LEN);
        tide_held_put_number(buf, snapshot->attempt, 4);
        tide_held_put_number(buf, snapshot->next_seq, 8);
    }
}

static void take_progress(struct tide_reader *reader, struct tide_progress *progress)
{
    uint64_t known = tide_held_take_number(reader, 1);
    reader->failed = reader->failed || known > 1;
    progress->place.known = known == 1;
    progress->place.position.hi = tide_held_take_number(reader, 8);
    progress->place.position.lo = tide_held_take_number(reader, 8);
    progress->place.index = tide_held_take_number(reader, 8);
    uint64_t count = tide_held_take_number(reader, 4);
    for (uint64_t i = 0; i < count && !reader->failed; i++) {
        struct tide_held_snapshot snapshot = {0};
        tide_str id = tide_reader_take(reader, TIDE_UUID_LEN);
        memcpy(snapshot.id, id.ptr, id.len);
        snapshot.attempt = (uint32_t)tide_held_take_number(reader, 4);
        snapshot.next_seq = tide_held_take_number(reader, 8);
        if (!reader->failed) {
            tide_progress_add(progress, &snapshot);
        }
    }
}

void tide_owner_encode(const struct tide_owner *owner, const struct tide_progress *progress,
                       struct tide_buf *buf)
{
    tide_held_put_text(buf, owner->pipeline);
    tide_held_put_text(buf, owner->identity);
    tide_held_put_text(buf, owner->position_kind);
    put_progress(buf, progress);
}

void tide_owner_take(struct tide_reader *reader, struct tide_arena *arena,
                     struct tide_owner *ret_owner, struct tide_progress *progress)
{
    ret_owner->pipeline = tide_arena_str(arena, tide_held_take_text(reader));
    ret_owner->identity = tide_arena_str(arena, tide_held_take_text(reader));
    ret_owner->position_kind = tide_arena_str(arena, tide_held_take_text(reader));
    take_progress(reader, progress);
}
