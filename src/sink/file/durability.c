#include "sink/file/durability.h"

#include "base/fsio.h"
#include "base/limits.h"
#include "port/file_error.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#define MAGIC        "TIDEHELD"
#define VERSION      1u
#define HEADER_BYTES ((size_t)40)
#define HASHED_BYTES ((size_t)32) /* of the header */
#define SLOT_STEP    ((size_t)4096)

struct slot_header {
    uint32_t version;
    uint32_t slot_size;
    uint64_t sequence;
    uint32_t payload_len;
};

void tide_durability_init(struct tide_durability *durability, int dir_fd, const char *dir,
                          const char *name)
{
    *durability = (struct tide_durability){.dir_fd = dir_fd, .dir = dir, .name = name, .fd = -1};
}

void tide_durability_done(struct tide_durability *durability)
{
    tide_fd_close(&durability->fd);
    tide_buf_done(&durability->scratch);
}

static tide_status fail_errno(const struct tide_durability *durability, const char *what,
                              struct tide_error *err)
{
    int error = errno;
    TIDE_CLEANUP(tide_buf_done) struct tide_buf path = {0};
    tide_buf_printf(&path, "%s/%s", durability->dir, durability->name);
    return tide_file_fail(err, error, what, tide_buf_cstr(&path));
}

static void put_le(char *to, uint64_t value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        to[i] = (char)(value >> (8 * i) & 0xff);
    }
}

static uint64_t get_le(const char *from, size_t bytes)
{
    uint64_t value = 0;
    for (size_t i = 0; i < bytes; i++) {
        value |= (uint64_t)(unsigned char)from[i] << (8 * i);
    }
    return value;
}

static uint64_t slot_hash(const char *slot, size_t payload_len)
{
    XXH3_state_t hash;
    (void)XXH3_64bits_reset(&hash);
    (void)XXH3_64bits_update(&hash, slot, HASHED_BYTES);
    (void)XXH3_64bits_update(&hash, slot + HEADER_BYTES, payload_len);
    return XXH3_64bits_digest(&hash);
}

static void encode_slot(struct tide_buf *buf, size_t slot_size, uint64_t sequence, tide_str payload)
{
    char *slot = tide_buf_reserve(buf, HEADER_BYTES + payload.len);
    memcpy(slot, MAGIC, 8);
    put_le(slot + 8, VERSION, 4);
    put_le(slot + 12, slot_size, 4);
    put_le(slot + 16, sequence, 8);
    put_le(slot + 24, payload.len, 4);
    put_le(slot + 28, 0, 4);
    memcpy(slot + HEADER_BYTES, payload.ptr, payload.len);
    put_le(slot + HASHED_BYTES, slot_hash(slot, payload.len), 8);
    buf->len += HEADER_BYTES + payload.len;
}

/* False: the slot was never written, was cut short, or is of another file. */
static bool decode_slot(tide_str slot, struct slot_header *ret_header)
{
    struct slot_header header = {
        .version = (uint32_t)get_le(slot.ptr + 8, 4),
        .slot_size = (uint32_t)get_le(slot.ptr + 12, 4),
        .sequence = get_le(slot.ptr + 16, 8),
        .payload_len = (uint32_t)get_le(slot.ptr + 24, 4),
    };
    if (memcmp(slot.ptr, MAGIC, 8) != 0 || header.slot_size != slot.len ||
        header.payload_len > slot.len - HEADER_BYTES ||
        get_le(slot.ptr + HASHED_BYTES, 8) != slot_hash(slot.ptr, header.payload_len)) {
        return false;
    }
    *ret_header = header;
    return true;
}

static tide_status read_file(struct tide_durability *durability, struct tide_buf *ret_bytes,
                             struct tide_error *err)
{
    struct stat st;
    if (fstat(durability->fd, &st) != 0) {
        return fail_errno(durability, "look at", err);
    }
    if (!S_ISREG(st.st_mode) || st.st_size > (off_t)TIDE_CHECKPOINT_BYTES_MAX ||
        st.st_size < (off_t)(2 * SLOT_STEP) || (size_t)st.st_size % (2 * SLOT_STEP) != 0) {
        return tide_fail(err, TIDE_CORRUPT, "%s/%s is damaged: it has not the length of two slots",
                         durability->dir, durability->name);
    }
    size_t size = (size_t)st.st_size;
    char *to = tide_buf_reserve(ret_bytes, size);
    ssize_t got = pread(durability->fd, to, size, 0);
    if (got < 0) {
        return fail_errno(durability, "read", err);
    }
    if ((size_t)got != size) {
        return tide_fail(err, TIDE_CORRUPT, "%s/%s became shorter while it was read",
                         durability->dir, durability->name);
    }
    ret_bytes->len += size;
    return TIDE_OK;
}

static tide_status open_file(struct tide_durability *durability, struct tide_error *err)
{
    tide_fd_close(&durability->fd);
    durability->fd = openat(durability->dir_fd, durability->name, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (durability->fd < 0 && errno != ENOENT) {
        return fail_errno(durability, "open", err);
    }
    return TIDE_OK;
}

/* The newer of the slots that are whole. */
static tide_status choose_slot(struct tide_durability *durability, tide_str file,
                               struct tide_buf *ret_payload, struct tide_error *err)
{
    size_t slot_size = file.len / 2;
    struct slot_header newest = {0};
    const char *chosen = NULL;
    for (size_t i = 0; i < 2; i++) {
        const char *slot = file.ptr + i * slot_size;
        struct slot_header header;
        if (decode_slot(tide_str_of(slot, slot_size), &header) && header.sequence % 2 == i &&
            (chosen == NULL || header.sequence > newest.sequence)) {
            newest = header;
            chosen = slot;
        }
    }
    if (chosen == NULL) {
        return tide_fail(err, TIDE_CORRUPT, "%s/%s is damaged: neither of its slots is whole",
                         durability->dir, durability->name);
    }
    if (newest.version != VERSION) {
        return tide_fail(err, TIDE_UNSUPPORTED,
                         "%s/%s has format version %u, this program knows %u; use a newer one",
                         durability->dir, durability->name, newest.version, VERSION);
    }
    durability->slot_size = slot_size;
    durability->sequence = newest.sequence;
    tide_buf_append(ret_payload, chosen + HEADER_BYTES, newest.payload_len);
    return TIDE_OK;
}

tide_status tide_durability_load(struct tide_durability *durability, bool *ret_found,
                                 struct tide_buf *ret_payload, struct tide_error *err)
{
    TIDE_TRY(open_file(durability, err));
    if (durability->fd < 0) {
        *ret_found = false;
        return TIDE_OK;
    }
    struct tide_buf *file = &durability->scratch;
    tide_buf_reset(file);
    TIDE_TRY(read_file(durability, file, err));
    TIDE_TRY(choose_slot(durability, tide_buf_str(file), ret_payload, err));
    *ret_found = true;
    return TIDE_OK;
}

/* A new file whose slots have room for twice the payload; only its slot of `sequence` is filled. */
static tide_status replace_file(struct tide_durability *durability, uint64_t sequence,
                                tide_str payload, struct tide_error *err)
{
    size_t slot_size = SLOT_STEP;
    while (slot_size < 2 * (HEADER_BYTES + payload.len)) {
        slot_size *= 2;
    }
    if (2 * slot_size > TIDE_CHECKPOINT_BYTES_MAX) {
        return tide_fail(err, TIDE_UNSUPPORTED,
                         "what is held does not fit into %s/%s; copy fewer tables to one place",
                         durability->dir, durability->name);
    }
    struct tide_buf *file = &durability->scratch;
    tide_buf_reset(file);
    memset(tide_buf_reserve(file, 2 * slot_size), 0, 2 * slot_size);
    file->len = sequence % 2 * slot_size;
    encode_slot(file, slot_size, sequence, payload);
    tide_status status = tide_file_replace_at(durability->dir_fd, durability->dir, durability->name,
                                              tide_str_of(file->ptr, 2 * slot_size), err);
    if (status == TIDE_IO) {
        tide_file_judge(err, errno);
    }
    TIDE_TRY(status);
    durability->slot_size = slot_size;
    durability->sequence = sequence;
    TIDE_TRY(open_file(durability, err));
    return durability->fd >= 0 ? TIDE_OK : fail_errno(durability, "open", err);
}

static tide_status write_slot(struct tide_durability *durability, off_t at, struct tide_error *err)
{
    tide_str slot = tide_buf_str(&durability->scratch);
    while (slot.len > 0) {
        ssize_t put = pwrite(durability->fd, slot.ptr, slot.len, at);
        if (put < 0 && errno == EINTR) {
            continue;
        }
        if (put < 0) {
            return fail_errno(durability, "write", err);
        }
        slot = tide_str_of(slot.ptr + put, slot.len - (size_t)put);
        at += put;
    }
    return fdatasync(durability->fd) == 0 ? TIDE_OK : fail_errno(durability, "sync", err);
}

tide_status tide_durability_store(struct tide_durability *durability, tide_str payload,
                                  struct tide_error *err)
{
    uint64_t sequence = durability->sequence + 1;
    if (durability->fd < 0 || HEADER_BYTES + payload.len > durability->slot_size) {
        return replace_file(durability, sequence, payload, err);
    }
    tide_buf_reset(&durability->scratch);
    encode_slot(&durability->scratch, durability->slot_size, sequence, payload);
    TIDE_TRY(write_slot(durability, (off_t)(sequence % 2 * durability->slot_size), err));
    durability->sequence = sequence;
    return TIDE_OK;
}
