#include "sink/file/held_record.h"

#include "base/alloc.h"

#include <stdlib.h>
#include <string.h>

void tide_held_record_done(struct tide_held_record *record)
{
    tide_progress_done(&record->progress);
    free(record->files);
    tide_arena_done(&record->arena);
    *record = (struct tide_held_record){0};
}

struct tide_held_file *tide_held_record_add(struct tide_held_record *record,
                                            const struct tide_held_file *file)
{
    if (record->file_count == record->file_cap) {
        record->file_cap = record->file_cap == 0 ? 4 : record->file_cap * 2;
        record->files = tide_realloc(record->files, record->file_cap, sizeof(*file));
    }
    struct tide_held_file *added = &record->files[record->file_count++];
    *added = *file;
    added->name = tide_arena_str(&record->arena, file->name);
    added->store = tide_arena_str(&record->arena, file->store);
    return added;
}

static void put_number(struct tide_buf *buf, uint64_t value, size_t bytes)
{
    char *to = tide_buf_reserve(buf, bytes);
    for (size_t i = 0; i < bytes; i++) {
        to[i] = (char)(value >> (8 * i) & 0xff);
    }
    buf->len += bytes;
}

static void put_text(struct tide_buf *buf, tide_str text)
{
    TIDE_ASSERT(text.len <= UINT32_MAX);
    put_number(buf, text.len, 4);
    tide_buf_append_str(buf, text);
}

static void put_progress(struct tide_buf *buf, const struct tide_progress *progress)
{
    put_number(buf, progress->place.known ? 1 : 0, 1);
    put_number(buf, progress->place.position.hi, 8);
    put_number(buf, progress->place.position.lo, 8);
    put_number(buf, progress->place.index, 8);
    put_number(buf, progress->snapshot_count, 4);
    for (size_t i = 0; i < progress->snapshot_count; i++) {
        const struct tide_held_snapshot *snapshot = &progress->snapshots[i];
        tide_buf_append(buf, snapshot->id, TIDE_UUID_LEN);
        put_number(buf, snapshot->attempt, 4);
        put_number(buf, snapshot->next_seq, 8);
    }
}

void tide_held_record_encode(const struct tide_held_record *record,
                             const struct tide_progress *progress, struct tide_buf *buf)
{
    put_text(buf, record->pipeline);
    put_text(buf, record->identity);
    put_text(buf, record->position_kind);
    put_progress(buf, progress);
    put_number(buf, record->file_count, 4);
    for (size_t i = 0; i < record->file_count; i++) {
        const struct tide_held_file *file = &record->files[i];
        put_text(buf, file->name);
        put_text(buf, file->store);
        put_number(buf, file->inode, 8);
        put_number(buf, file->length, 8);
        put_number(buf, file->tail_hash, 8);
    }
}

/* What is left to decode; after a shortage it stays failed and gives zeros. */
struct input {
    tide_str left;
    bool failed;
};

static const char *take(struct input *in, size_t len)
{
    if (in->failed || len > in->left.len) {
        in->failed = true;
        return NULL;
    }
    const char *at = in->left.ptr;
    in->left = tide_str_of(at + len, in->left.len - len);
    return at;
}

static uint64_t take_number(struct input *in, size_t bytes)
{
    const char *at = take(in, bytes);
    uint64_t value = 0;
    for (size_t i = 0; at != NULL && i < bytes; i++) {
        value |= (uint64_t)(unsigned char)at[i] << (8 * i);
    }
    return value;
}

static tide_str take_text(struct input *in)
{
    size_t len = (size_t)take_number(in, 4);
    const char *at = take(in, len);
    return at == NULL ? (tide_str){0} : tide_str_of(at, len);
}

static void take_progress(struct input *in, struct tide_progress *progress)
{
    uint64_t known = take_number(in, 1);
    in->failed = in->failed || known > 1;
    progress->place.known = known == 1;
    progress->place.position.hi = take_number(in, 8);
    progress->place.position.lo = take_number(in, 8);
    progress->place.index = take_number(in, 8);
    uint64_t count = take_number(in, 4);
    for (uint64_t i = 0; i < count && !in->failed; i++) {
        struct tide_held_snapshot snapshot = {0};
        const char *id = take(in, TIDE_UUID_LEN);
        if (id != NULL) {
            memcpy(snapshot.id, id, TIDE_UUID_LEN);
        }
        snapshot.attempt = (uint32_t)take_number(in, 4);
        snapshot.next_seq = take_number(in, 8);
        if (!in->failed) {
            tide_progress_add(progress, &snapshot);
        }
    }
}

/* A name is used inside one directory and must not lead out of it. */
static bool is_plain_name(tide_str name)
{
    return name.len > 0 && name.len <= 255 && memchr(name.ptr, '/', name.len) == NULL &&
           memchr(name.ptr, '\0', name.len) == NULL && !tide_str_equal(name, TIDE_STR(".")) &&
           !tide_str_equal(name, TIDE_STR(".."));
}

static void take_files(struct input *in, struct tide_held_record *record)
{
    uint64_t count = take_number(in, 4);
    for (uint64_t i = 0; i < count && !in->failed; i++) {
        struct tide_held_file file = {.name = take_text(in), .store = take_text(in)};
        file.inode = take_number(in, 8);
        file.length = take_number(in, 8);
        file.tail_hash = take_number(in, 8);
        in->failed = in->failed || !is_plain_name(file.name) || file.length > INT64_MAX;
        if (!in->failed) {
            (void)tide_held_record_add(record, &file);
        }
    }
}

tide_status tide_held_record_decode(tide_str bytes, struct tide_held_record *ret_record,
                                    struct tide_error *err)
{
    struct input in = {.left = bytes};
    struct tide_held_record record = {0};
    record.pipeline = tide_arena_str(&record.arena, take_text(&in));
    record.identity = tide_arena_str(&record.arena, take_text(&in));
    record.position_kind = tide_arena_str(&record.arena, take_text(&in));
    take_progress(&in, &record.progress);
    take_files(&in, &record);
    if (in.failed || in.left.len > 0) {
        tide_held_record_done(&record);
        return tide_fail(err, TIDE_CORRUPT,
                         "the record of what is held does not follow its layout");
    }
    *ret_record = record;
    return TIDE_OK;
}
