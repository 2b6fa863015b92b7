#include "source/sqlite/sqlite_trail.h"

#include "source/sqlite/sqlite_db.h"
#include "source/sqlite/sqlite_table.h"

#include <inttypes.h>
#include <string.h>
#include <xxhash.h>

/* Columns that the log got later are NULL in older entries, and count as if they were not there. */
static uint64_t digest_of(sqlite3_stmt *stmt)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf text = {0};
    for (int i = 0; i < sqlite3_column_count(stmt); i++) {
        int type = sqlite3_column_type(stmt, i);
        if (type == SQLITE_NULL) {
            continue;
        }
        const void *bytes = sqlite3_column_blob(stmt, i);
        size_t len = (size_t)sqlite3_column_bytes(stmt, i);
        tide_buf_printf(&text, "%d,%d,%zu:", i, type, len);
        tide_buf_append(&text, bytes, len);
    }
    return XXH3_64bits(text.ptr, text.len);
}

tide_status tide_sqlite_entry_digest(sqlite3 *db, int64_t id, bool *ret_is_there,
                                     uint64_t *ret_digest, struct tide_error *err)
{
    TIDE_CLEANUP(tide_sqlite_stmt_done) sqlite3_stmt *stmt = NULL;
    TIDE_TRY(tide_sqlite_prepare(
        db, TIDE_STR("SELECT * FROM main.\"" TIDE_SQLITE_LOG "\" WHERE id = ?1"), &stmt, err));
    (void)sqlite3_bind_int64(stmt, 1, id);
    TIDE_TRY(tide_sqlite_step(stmt, ret_is_there, err));
    *ret_digest = *ret_is_there ? digest_of(stmt) : 0;
    return TIDE_OK;
}

/* Every second one of the older half goes. */
static void thin(struct tide_sqlite_trail *trail)
{
    size_t kept = 0;
    for (size_t i = 0; i < trail->count; i++) {
        if (i % 2 == 0 || i >= TIDE_SQLITE_TRAIL / 2) {
            trail->marks[kept++] = trail->marks[i];
        }
    }
    trail->count = kept;
}

void tide_sqlite_trail_add(struct tide_sqlite_trail *trail, int64_t id, uint64_t digest)
{
    while (trail->count > 0 && trail->marks[trail->count - 1].id >= id) {
        trail->count--;
    }
    if (trail->count == TIDE_SQLITE_TRAIL) {
        thin(trail);
    }
    trail->marks[trail->count++] = (struct tide_sqlite_step_mark){id, digest};
}

tide_status tide_sqlite_trail_check(const struct tide_sqlite_trail *trail, sqlite3 *db,
                                    int64_t position, struct tide_error *err)
{
    size_t count = trail->count;
    while (count > 0 && trail->marks[count - 1].id > position) {
        count--;
    }
    if (count == 0) {
        return TIDE_OK;
    }
    const struct tide_sqlite_step_mark *mark = &trail->marks[count - 1];
    bool is_there = false;
    uint64_t digest = 0;
    TIDE_TRY(tide_sqlite_entry_digest(db, mark->id, &is_there, &digest, err));
    if (is_there ? digest == mark->digest : mark->id <= trail->confirmed) {
        return TIDE_OK;
    }
    return tide_fail(err, TIDE_STALE,
                     "entry %" PRId64 " of the change log is not the one that was read: the "
                     "database was restored from a backup, or lost its last commits with the "
                     "power; restore the right database, or " TIDE_SQLITE_ANEW,
                     mark->id);
}

void tide_sqlite_trail_save(const struct tide_sqlite_trail *trail, struct tide_buf *buf)
{
    for (size_t i = 0; i < trail->count; i++) {
        tide_buf_printf(buf, "%s%" PRId64 ":%" PRIu64, i > 0 ? " " : "", trail->marks[i].id,
                        trail->marks[i].digest);
    }
}

bool tide_sqlite_trail_load(struct tide_sqlite_trail *trail, tide_str text)
{
    struct tide_sqlite_trail read = {0};
    while (text.len > 0) {
        const char *end = memchr(text.ptr, ' ', text.len);
        size_t len = end == NULL ? text.len : (size_t)(end - text.ptr);
        const char *colon = memchr(text.ptr, ':', len);
        struct tide_sqlite_step_mark *mark = &read.marks[read.count];
        if (read.count == TIDE_SQLITE_TRAIL || colon == NULL ||
            !tide_str_to_i64(tide_str_of(text.ptr, (size_t)(colon - text.ptr)), &mark->id) ||
            !tide_str_to_u64(tide_str_of(colon + 1, len - (size_t)(colon + 1 - text.ptr)),
                             &mark->digest)) {
            return false;
        }
        read.count++;
        text = tide_str_of(text.ptr + len, text.len - len);
        text = text.len > 0 ? tide_str_of(text.ptr + 1, text.len - 1) : text;
    }
    *trail = read;
    return true;
}
