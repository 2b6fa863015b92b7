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

void tide_held_record_encode(const struct tide_held_record *record,
                             const struct tide_progress *progress, struct tide_buf *buf)
{
    tide_owner_encode(&record->owner, progress, buf);
    tide_held_put_number(buf, record->file_count, 4);
    for (size_t i = 0; i < record->file_count; i++) {
        const struct tide_held_file *file = &record->files[i];
        tide_held_put_text(buf, file->name);
        tide_held_put_text(buf, file->store);
        tide_held_put_number(buf, file->inode, 8);
        tide_held_put_number(buf, file->length, 8);
        tide_held_put_number(buf, file->tail_hash, 8);
    }
}

/* A name is used inside one directory and must not lead out of it. */
static bool is_plain_name(tide_str name)
{
    return name.len > 0 && name.len <= 255 && memchr(name.ptr, '/', name.len) == NULL &&
           memchr(name.ptr, '\0', name.len) == NULL && !tide_str_equal(name, TIDE_STR(".")) &&
           !tide_str_equal(name, TIDE_STR(".."));
}

static void take_files(struct tide_reader *in, struct tide_held_record *record)
{
    uint64_t count = tide_held_take_number(in, 4);
    for (uint64_t i = 0; i < count && !in->failed; i++) {
        struct tide_held_file file = {.name = tide_held_take_text(in),
                                      .store = tide_held_take_text(in)};
        file.inode = tide_held_take_number(in, 8);
        file.length = tide_held_take_number(in, 8);
        file.tail_hash = tide_held_take_number(in, 8);
        in->failed = in->failed || !is_plain_name(file.name) || file.length > INT64_MAX;
        if (!in->failed) {
            (void)tide_held_record_add(record, &file);
        }
    }
}

tide_status tide_held_record_decode(tide_str bytes, struct tide_held_record *ret_record,
                                    struct tide_error *err)
{
    struct tide_reader in = tide_reader_of(bytes);
    struct tide_held_record record = {0};
    tide_owner_take(&in, &record.arena, &record.owner, &record.progress);
    take_files(&in, &record);
    if (!tide_reader_is_done(&in)) {
        tide_held_record_done(&record);
        return tide_fail(err, TIDE_CORRUPT,
                         "the record of what is held does not follow its layout");
    }
    *ret_record = record;
    return TIDE_OK;
}
