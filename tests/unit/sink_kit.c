#include "sink_kit.h"

#include "base/fsio.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define RELATIONS_MAX 400
#define AT_US         INT64_C(1764423655567000) /* 2025-11-29T13:40:55.567Z */

/* Relations live until the program ends. */
static const struct tide_relation *relations[RELATIONS_MAX];
static size_t relation_count;

static void free_relations(void)
{
    for (size_t i = 0; i < relation_count; i++) {
        tide_relation_unref(relations[i]);
    }
}

const struct tide_relation *kit_relation(const char *name)
{
    static const uint32_t key[] = {0};
    const struct tide_column columns[] = {
        {.name = TIDE_STR("id"), .type = TIDE_STR("INTEGER")},
        {.name = TIDE_STR("name"), .type = TIDE_STR("TEXT")},
        {.name = TIDE_STR("note"), .type = TIDE_STR("JSON")},
    };
    for (size_t i = 0; i < relation_count; i++) {
        if (tide_str_equal(relations[i]->name, tide_str_from(name))) {
            return relations[i];
        }
    }
    assert_true(relation_count < RELATIONS_MAX);
    if (relation_count == 0) {
        assert_int_equal(atexit(free_relations), 0);
    }
    const struct tide_relation_spec spec = {
        .connection = TIDE_STR("shop"),
        .name = tide_str_from(name),
        .columns = columns,
        .column_count = 3,
        .key_columns = key,
        .key_count = 1,
    };
    relations[relation_count] = tide_relation_new(&spec);
    return relations[relation_count++];
}

static struct tide_value text_value(struct tide_arena *arena, enum tide_value_kind kind,
                                    const char *text)
{
    tide_str copy = tide_arena_str(arena, tide_str_from(text));
    return (struct tide_value){.ptr = copy.ptr, .len = (uint32_t)copy.len, .kind = (uint8_t)kind};
}

static struct tide_value *make_row(struct tide_arena *arena, uint64_t id, const char *name,
                                   const char *note)
{
    char text[64];
    struct tide_value *row = tide_arena_alloc(arena, 3, sizeof(*row));
    (void)snprintf(text, sizeof(text), "%llu", (unsigned long long)id);
    row[0] = text_value(arena, TIDE_VALUE_INTEGER, text);
    (void)snprintf(text, sizeof(text), "name %llu", (unsigned long long)id);
    row[1] = text_value(arena, TIDE_VALUE_TEXT, name == NULL ? text : name);
    row[2] = note == NULL ? (struct tide_value){0} : text_value(arena, TIDE_VALUE_JSON, note);
    return row;
}

static struct tide_batch *make_changes(const struct tide_relation *relation, uint64_t position,
                                       size_t count, const char *name)
{
    struct tide_batch *batch = tide_batch_new();
    batch->has_position = true;
    batch->position = (struct tide_position){.lo = position};
    batch->changes = calloc(count + 1, sizeof(*batch->changes)); /* freed with the batch */
    batch->change_count = count;
    tide_batch_use_relation(batch, relation);
    for (size_t i = 0; i < count; i++) {
        struct tide_value *row = make_row(&batch->arena, position * 100 + i, name, NULL);
        batch->changes[i] = (struct tide_change){
            .op = TIDE_OP_UPDATE,
            .relation = relation,
            .place = {.position = {.lo = position}, .index = i, .known = true},
            .commit_us = AT_US + (int64_t)position * 1000000,
            .key = row,
            .values = row,
        };
    }
    return batch;
}

struct tide_batch *kit_changes(const struct tide_relation *relation, uint64_t position,
                               size_t count)
{
    return make_changes(relation, position, count, NULL);
}

struct tide_batch *kit_change_named(const struct tide_relation *relation, uint64_t position,
                                    const char *name)
{
    return make_changes(relation, position, 1, name);
}

void kit_snapshot_id(unsigned n, char ret_id[TIDE_UUID_LEN + 1])
{
    (void)snprintf(ret_id, TIDE_UUID_LEN + 1, "019acfd5-0b4f-7000-8000-%012u", n % 1000000);
}

struct tide_batch *kit_rows(struct kit_part spec)
{
    struct tide_batch *batch = tide_batch_new();
    struct tide_arena *arena = &batch->arena;
    const struct tide_value **rows =
        tide_arena_alloc(arena, spec.rows + 1, sizeof(const struct tide_value *));
    uint64_t *starts = tide_arena_alloc(arena, spec.attempt + 1, sizeof(*starts));
    for (uint32_t i = 0; i < spec.attempt; i++) {
        starts[i] = spec.first_seq;
    }
    for (size_t i = 0; i < spec.rows; i++) {
        rows[i] = make_row(arena, spec.first_seq + i, spec.name, spec.note);
    }
    struct tide_snapshot_part *part = tide_arena_alloc(arena, 1, sizeof(*part));
    *part = (struct tide_snapshot_part){
        .relation = spec.relation,
        .head = {.at_us = AT_US, .attempt = spec.attempt, .starts = starts},
        .opening = spec.opening,
        .first_seq = spec.first_seq,
        .rows = rows,
        .row_count = spec.rows,
        .row_position = {.lo = 7},
        .is_end = spec.is_end,
        .completed_us = AT_US + 1000000,
    };
    kit_snapshot_id(spec.snapshot, part->head.id);
    batch->snapshot = part;
    tide_batch_use_relation(batch, spec.relation);
    return batch;
}

int kit_setup(void **state)
{
    /* in memory where there is such a place: some tests sync a few thousand times */
    char *dir = strdup(access("/dev/shm", W_OK) == 0 ? "/dev/shm/tidemark-sink-XXXXXX"
                                                     : "/tmp/tidemark-sink-XXXXXX");
    assert_non_null(mkdtemp(dir));
    assert_int_equal(chdir(dir), 0);
    *state = dir;
    return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

void kit_remove(const char *path)
{
    (void)nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    assert_false(kit_exists(path));
}

int kit_teardown(void **state)
{
    assert_int_equal(chdir("/"), 0);
    kit_remove(*state);
    free(*state);
    return 0;
}

struct tide_sink_options kit_options(const char *place)
{
    return (struct tide_sink_options){
        .place = tide_str_from(place),
        .pipeline = TIDE_STR("p"),
        .identity = TIDE_STR("\"s\""),
        .position_kind = &tide_position_integer,
        .record_bytes_max = 921600,
    };
}

struct tide_sink *kit_open(const struct tide_sink_ops *ops, const struct tide_sink_options *options)
{
    struct tide_error err = {0};
    struct tide_sink *sink = NULL;
    if (ops->open(options, &sink, &err) != TIDE_OK) {
        fail_msg("%s", err.message);
    }
    return sink;
}

void kit_write(const struct tide_sink_ops *ops, struct tide_sink *sink, struct tide_batch *batch)
{
    struct tide_error err = {0};
    if (ops->write_batch(sink, batch, 0, &err) != TIDE_OK) {
        fail_msg("%s", err.message);
    }
    tide_batch_unref(batch);
}

void kit_flush(const struct tide_sink_ops *ops, struct tide_sink *sink)
{
    struct tide_error err = {0};
    if (ops->flush(sink, true, &err) != TIDE_OK) {
        fail_msg("%s", err.message);
    }
}

char *kit_read(const char *path, size_t *ret_len)
{
    struct tide_error err;
    struct tide_buf bytes = {0};
    if (tide_file_read(path, (size_t)1 << 30, &bytes, &err) != TIDE_OK) {
        return NULL;
    }
    (void)tide_buf_cstr(&bytes);
    *ret_len = bytes.len;
    return bytes.ptr;
}

/* In place: the file keeps its inode when it is there. */
void kit_put(const char *path, const void *bytes, size_t len)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, len), (ssize_t)len);
    assert_int_equal(close(fd), 0);
}

void kit_assert_file(const char *path, const char *text)
{
    size_t len = 0;
    char *bytes = kit_read(path, &len);
    assert_non_null(bytes);
    assert_string_equal(bytes, text);
    assert_int_equal(len, strlen(text));
    free(bytes);
}

void kit_assert_golden(const char *path, const char *golden)
{
    char golden_path[512];
    (void)snprintf(golden_path, sizeof(golden_path), "%s/golden/%s", TIDE_TEST_ROOT, golden);
    size_t len = 0;
    char *want = kit_read(golden_path, &len);
    if (want == NULL) {
        fail_msg("there is no %s", golden_path);
        return;
    }
    kit_assert_file(path, want);
    free(want);
}

bool kit_exists(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0;
}

static tide_status put_letter(void *context, const struct tide_dead_letter *letter,
                              bool *ret_is_new, struct tide_error *err)
{
    struct kit_letters *letters = context;
    if (letters->fails) {
        return tide_fail(err, TIDE_IO, "the letters are full");
    }
    tide_buf_printf(
        &letters->text, "%.*s|%.*s|%.*s|%zu|%llu\n", TIDE_STR_ARG(letter->store),
        TIDE_STR_ARG(letter->destination), TIDE_STR_ARG(letter->reason), letter->bytes.len,
        (unsigned long long)(letter->has_seq ? letter->seq : letter->place.position.lo));
    *ret_is_new = !letters->knows_all;
    return TIDE_OK;
}

static void note_skipped(void *context, const struct tide_dead_letter *letter, bool *ret_is_new)
{
    const struct kit_letters *letters = context;
    (void)letter;
    *ret_is_new = !letters->knows_all;
}

struct tide_dead_letters kit_letters_target(struct kit_letters *letters)
{
    return (struct tide_dead_letters){
        .put = put_letter, .note_skipped = note_skipped, .context = letters};
}
