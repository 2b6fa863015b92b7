/* Which sinks take part, and on which lanes: they come, are paused, and are let go while it runs.
 */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "engine/ingest_state.h"

#include <stdlib.h>

#define SAY_HOLDS_US INT64_C(60000000)

struct tide_ingest_sink *tide_ingest_sink_of(const struct tide_ingest *ingest, unsigned lane)
{
    for (size_t i = 0; i < ingest->sink_count; i++) {
        if (ingest->sinks[i].is_attached && ingest->sinks[i].lane == lane) {
            return &ingest->sinks[i];
        }
    }
    return NULL;
}

struct tide_ingest_sink *tide_ingest_sink_named(const struct tide_ingest *ingest, tide_str name)
{
    for (size_t i = 0; i < ingest->sink_count; i++) {
        if (tide_str_equal(tide_str_from(ingest->sinks[i].name), name)) {
            return &ingest->sinks[i];
        }
    }
    return NULL;
}

static struct tide_ingest_sink *new_sink(struct tide_ingest *ingest, tide_str name)
{
    ingest->sinks = tide_realloc(ingest->sinks, ingest->sink_count + 1, sizeof(*ingest->sinks));
    struct tide_ingest_sink *sink = &ingest->sinks[ingest->sink_count++];
    *sink = (struct tide_ingest_sink){.name = tide_strndup(name.ptr, name.len)};
    return sink;
}

void tide_ingest_add_sink(struct tide_ingest *ingest, tide_str name, unsigned lane)
{
    TIDE_ASSERT(lane < TIDE_LANES_MAX && tide_ingest_sink_of(ingest, lane) == NULL);
    struct tide_ingest_sink *sink = tide_ingest_sink_named(ingest, name);
    if (sink == NULL) {
        sink = new_sink(ingest, name);
    }
    TIDE_ASSERT(!sink->is_attached);
    TIDE_ASSERT((ingest->dropped & (tide_lane_set)1 << lane) == 0);
    sink->is_attached = true;
    sink->is_detached = false;
    sink->lane = lane;
    ingest->lanes |= (tide_lane_set)1 << lane;
    /* On an idle source the new lane would hold the watermark back until the next change. */
    ingest->build.has_new_position = ingest->is_started;
}

void tide_ingest_let_detach(struct tide_ingest *ingest, unsigned lane)
{
    tide_ingest_sink_of(ingest, lane)->may_detach = true;
}

void tide_ingest_start_anew(struct tide_ingest *ingest, unsigned lane)
{
    tide_ingest_sink_of(ingest, lane)->is_seeded = false;
    tide_ingest_forget_lane(ingest, lane);
}

/* Posts: what other threads want. */

uint64_t tide_ingest_post(struct tide_ingest *ingest, const struct tide_ingest_post *post)
{
    struct tide_ingest_posts *posts = &ingest->posts;
    struct tide_ingest_post *kept = tide_alloc(1, sizeof(*kept));
    *kept = *post;
    kept->newer = NULL;
    kept->name = (tide_str){tide_strndup(post->name.ptr, post->name.len), post->name.len};
    tide_mutex_lock(&posts->mutex);
    if (posts->newest == NULL) {
        posts->oldest = kept;
    } else {
        posts->newest->newer = kept;
    }
    posts->newest = kept;
    uint64_t number = ++posts->given;
    tide_mutex_unlock(&posts->mutex);
    tide_waker_wake(&ingest->waker);
    return number;
}

static void free_post(struct tide_ingest_post *post)
{
    free((void *)(uintptr_t)post->name.ptr);
    free(post);
}

void tide_ingest_free_posts(struct tide_ingest *ingest)
{
    while (ingest->posts.oldest != NULL) {
        struct tide_ingest_post *newer = ingest->posts.oldest->newer;
        free_post(ingest->posts.oldest);
        ingest->posts.oldest = newer;
    }
    ingest->posts.newest = NULL;
}

/* The oldest post, if it can be done now: a lane must not begin within a transaction. */
static struct tide_ingest_post *next_post(struct tide_ingest *ingest)
{
    struct tide_ingest_posts *posts = &ingest->posts;
    tide_mutex_lock(&posts->mutex);
    struct tide_ingest_post *post = posts->oldest;
    bool must_wait = post != NULL && post->kind == TIDE_POST_ATTACH &&
                     (ingest->build.in_transaction || ingest->dropped != 0);
    if (post == NULL || must_wait) {
        post = NULL;
    } else {
        posts->oldest = post->newer;
        posts->newest = post->newer == NULL ? NULL : posts->newest;
    }
    tide_mutex_unlock(&posts->mutex);
    return post;
}

bool tide_ingest_has_posts(struct tide_ingest *ingest)
{
    tide_mutex_lock(&ingest->posts.mutex);
    bool has_posts = ingest->posts.oldest != NULL;
    tide_mutex_unlock(&ingest->posts.mutex);
    return has_posts;
}

/* Lanes that are let go. */

static void detach(struct tide_ingest *ingest, struct tide_ingest_sink *sink)
{
    struct tide_error ignored;
    struct tide_stream *stream = ingest->options.stream;
    sink->is_attached = false;
    sink->is_detached = true;
    sink->is_seeded = false;
    ingest->lanes &= ~((tide_lane_set)1 << sink->lane);
    ingest->dropped |= (tide_lane_set)1 << sink->lane;
    ingest->must_save = true;
    atomic_fetch_add(&ingest->stats.detached, 1);
    (void)stream->ops->drop_lane(stream, sink->lane, &ignored); /* a cancelled stream has none */
}

static void do_post(struct tide_ingest *ingest, const struct tide_ingest_post *post)
{
    struct tide_ingest_sink *sink = tide_ingest_sink_named(ingest, post->name);
    switch (post->kind) {
    case TIDE_POST_ATTACH:
        tide_ingest_add_sink(ingest, post->name, post->lane);
        break;
    case TIDE_POST_DETACH:
        if (sink != NULL && sink->is_attached) {
            detach(ingest, sink);
        }
        break;
    case TIDE_POST_PAUSE:
    case TIDE_POST_RESUME:
        if (sink != NULL) {
            sink->is_paused = post->kind == TIDE_POST_PAUSE;
        }
        break;
    }
}

tide_status tide_ingest_take_posts(struct tide_ingest *ingest, struct tide_error *err)
{
    uint64_t done = 0;
    for (struct tide_ingest_post *post; (post = next_post(ingest)) != NULL; done++) {
        do_post(ingest, post);
        free_post(post);
    }
    if (done == 0) {
        return TIDE_OK;
    }
    TIDE_TRY(tide_ingest_save(ingest, false, err));
    atomic_fetch_add(&ingest->stats.posts_done, done);
    return TIDE_OK;
}

tide_status tide_ingest_serve(struct tide_ingest *ingest, struct tide_error *err)
{
    tide_ingest_serve_report(ingest);
    return tide_ingest_take_posts(ingest, err);
}

/* Its policy is to wait: the disk of the source fills meanwhile. */
static void say_it_holds(struct tide_ingest_sink *sink, uint64_t retained)
{
    int64_t now_us = tide_clock_monotonic_us();
    if (now_us >= sink->say_holds_us) {
        sink->say_holds_us = now_us + SAY_HOLDS_US;
        tide_log(TIDE_LOG_WARN, "sink %s is behind: the source keeps %llu bytes of log for it",
                 sink->name, (unsigned long long)retained);
    }
}

tide_status tide_ingest_detach_full(struct tide_ingest *ingest, tide_lane_set full,
                                    struct tide_error *err)
{
    const struct tide_source_ops *ops = ingest->options.source_ops;
    uint64_t limit = ingest->options.max_retained_bytes;
    if (limit == 0 || ops->retained_bytes == NULL) {
        return TIDE_OK;
    }
    uint64_t retained = ops->retained_bytes(ingest->options.source);
    if (retained <= limit) {
        return TIDE_OK;
    }
    tide_lane_set before = ingest->dropped;
    for (tide_lane_set rest = full & ingest->lanes; rest != 0; rest &= rest - 1) {
        struct tide_ingest_sink *sink =
            tide_ingest_sink_of(ingest, (unsigned)__builtin_ctzll(rest));
        if (sink != NULL && sink->may_detach) {
            detach(ingest, sink);
            tide_log(TIDE_LOG_WARN,
                     "sink %s is detached: its lane is full and the source keeps %llu bytes of "
                     "log; it is copied anew when it takes part again",
                     sink->name, (unsigned long long)retained);
        } else if (sink != NULL) {
            say_it_holds(sink, retained);
        }
    }
    return before == ingest->dropped ? TIDE_OK : tide_ingest_save(ingest, false, err);
}

static void drop_requests(struct tide_ingest *ingest, unsigned lane)
{
    struct tide_ingest_request **link = &ingest->requests;
    while (*link != NULL) {
        struct tide_ingest_request *request = *link;
        if (request->lane == lane) {
            *link = request->next;
            tide_ingest_free_request(request);
        } else {
            link = &request->next;
        }
    }
}

void tide_ingest_forget_lane(struct tide_ingest *ingest, unsigned lane)
{
    drop_requests(ingest, lane);
    for (struct tide_ingest_copy *item = ingest->copies, *next; item != NULL; item = next) {
        next = item->next;
        tide_copy_remove_lane(item->copy, lane);
        if (item->copy->share_count == 0) {
            tide_ingest_remove_copy(ingest, item->copy);
        }
    }
    ingest->must_save = true;
}

void tide_ingest_forget_dropped(struct tide_ingest *ingest)
{
    for (; ingest->dropped != 0; ingest->dropped &= ingest->dropped - 1) {
        tide_ingest_forget_lane(ingest, (unsigned)__builtin_ctzll(ingest->dropped));
    }
}
