#include "source/sqlite/sqlite_log.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "source/sqlite/sqlite_db.h"
#include "source/sqlite/sqlite_fetch.h"
#include "source/sqlite/sqlite_key.h"
#include "source/sqlite/sqlite_value.h"
#include "source/sqlite/sqlite_window.h"

#include <stdlib.h>

#define ENTRY_BYTES 16 /* of an entry beside its key, about */

const struct tide_sqlite_log_limits tide_sqlite_log_limits = {
    .window_entries = TIDE_SQLITE_WINDOW_ENTRIES,
    .slice_bytes = 1024 * 1024,
    .slice_us = 20000,
    .range_entries = 1000000,
};

/* What waits between the changes of a slice. */
struct notice {
    size_t at; /* it comes before the change of this index */
    struct tide_event event;
};

struct tide_sqlite_log {
    sqlite3 *db;
    struct tide_sqlite_log_scope scope;
    const struct tide_sqlite_tables *tables; /* the scope's */
    struct tide_sqlite_log_limits limits;
    sqlite3_stmt *version; /* PRAGMA data_version */
    sqlite3_stmt *end;     /* last id of the log */
    sqlite3_stmt *entries;
    struct tide_sqlite_fetch fetch;

    int64_t position;    /* handed out */
    int64_t range_end;   /* what is being read is (position, range_end] */
    int64_t range_limit; /* how far the end may still move */
    int64_t log_end;     /* last entry that was there; past range_end once that has stopped */
    bool has_range;
    uint64_t end_digest;  /* of the entry range_end, once the range has been read */
    bool has_changes;     /* of this range something was handed out */
    bool has_version;     /* all was read at seen_version */
    int64_t seen_version; /* PRAGMA data_version before the last transaction */
    uint64_t entries_read;
    uint64_t entries_size;

    struct tide_sqlite_window window;
    struct tide_arena arena; /* of the slice */
    struct tide_change *changes;
    size_t change_count;
    size_t change_cap;
    size_t change_next;
    struct notice *notices;
    size_t notice_count;
    size_t notice_cap;
    size_t notice_next;
    size_t slice_size;
};

static void finalize(sqlite3_stmt *stmt)
{
    (void)sqlite3_finalize(stmt);
}

static tide_status prepare_entries(struct tide_sqlite_log *log, struct tide_error *err)
{
    sqlite3_stmt *entries = NULL;
    TIDE_TRY(
        tide_sqlite_window_prepare(log->db, tide_sqlite_window_width(log->tables), &entries, err));
    finalize(log->entries);
    log->entries = entries;
    return TIDE_OK;
}

tide_status tide_sqlite_log_new(sqlite3 *db, const struct tide_sqlite_log_scope *scope,
                                const struct tide_sqlite_log_limits *limits, int64_t position,
                                struct tide_sqlite_log **ret_log, struct tide_error *err)
{
    struct tide_sqlite_log *log = tide_alloc(1, sizeof(*log));
    *log = (struct tide_sqlite_log){.db = db,
                                    .scope = *scope,
                                    .tables = scope->tables,
                                    .limits = *limits,
                                    .position = position,
                                    .range_end = position,
                                    .log_end = position};
    tide_sqlite_window_init(&log->window, limits->window_entries);
    tide_sqlite_fetch_init(&log->fetch, db, log->tables);
    tide_status status =
        tide_sqlite_prepare(db, TIDE_STR("PRAGMA data_version"), &log->version, err);
    if (status == TIDE_OK) {
        status = tide_sqlite_prepare(
            db, TIDE_STR("SELECT max(id) FROM main.\"" TIDE_SQLITE_LOG "\""), &log->end, err);
    }
    if (status == TIDE_OK) {
        status = prepare_entries(log, err);
    }
    if (status != TIDE_OK) {
        tide_sqlite_log_free(log);
        return status;
    }
    *ret_log = log;
    return TIDE_OK;
}

void tide_sqlite_log_free(struct tide_sqlite_log *log)
{
    if (log == NULL) {
        return;
    }
    tide_sqlite_fetch_done(&log->fetch);
    finalize(log->version);
    finalize(log->end);
    finalize(log->entries);
    tide_sqlite_window_done(&log->window);
    tide_arena_done(&log->arena);
    free(log->changes);
    free(log->notices);
    free(log);
}

tide_status tide_sqlite_log_retable(struct tide_sqlite_log *log, struct tide_error *err)
{
    TIDE_ASSERT(log->change_next == log->change_count && log->notice_next == log->notice_count);
    tide_sqlite_window_retable(&log->window, log->tables);
    tide_sqlite_fetch_done(&log->fetch);
    tide_sqlite_fetch_init(&log->fetch, log->db, log->tables);
    return prepare_entries(log, err);
}

/* Room for a notice behind the last change; it counts when notice_count says so. */
static struct notice *add_place(struct tide_sqlite_log *log)
{
    if (log->notice_count == log->notice_cap) {
        log->notice_cap = log->notice_cap * 2 + 8;
        log->notices = tide_realloc(log->notices, log->notice_cap, sizeof(*log->notices));
    }
    struct notice *notice = &log->notices[log->notice_count];
    notice->at = log->change_count;
    return notice;
}

void tide_sqlite_log_tell_left(struct tide_sqlite_log *log, const struct tide_sqlite_table *table)
{
    struct notice *notice = add_place(log);
    log->notice_count++;
    tide_sqlite_left_event(table, log->scope.choice, log->position, &log->arena, &notice->event);
}

/* Handing out */

static void copy_change(const struct tide_change *change, struct tide_arena *arena,
                        struct tide_change *ret_change)
{
    *ret_change = *change;
    const struct tide_relation *relation = change->relation;
    if (change->values == NULL) {
        ret_change->key = tide_values_copy(arena, change->key, relation->key_count);
        return;
    }
    struct tide_value *values = tide_values_copy(arena, change->values, relation->column_count);
    struct tide_value *key = tide_arena_alloc(arena, relation->key_count, sizeof(*key));
    tide_relation_key_of(relation, values, key);
    ret_change->values = values;
    ret_change->key = key;
}

static bool is_range_read(const struct tide_sqlite_log *log)
{
    return log->window.next == log->window.count && log->window.last_id >= log->range_end;
}

/* An event that is no row's: what it holds is copied. */
static void take_notice(struct tide_sqlite_log *log, struct tide_arena *arena,
                        struct tide_event *ret_event)
{
    *ret_event = log->notices[log->notice_next++].event;
    if (ret_event->kind == TIDE_EVENT_TABLE) {
        ret_event->store = tide_arena_str(arena, ret_event->store);
        ret_event->reason = tide_arena_str(arena, ret_event->reason);
    }
    log->has_changes = true;
}

bool tide_sqlite_log_take(struct tide_sqlite_log *log, struct tide_arena *arena,
                          struct tide_event *ret_event)
{
    if (log->notice_next < log->notice_count &&
        log->notices[log->notice_next].at == log->change_next) {
        take_notice(log, arena, ret_event);
        return true;
    }
    if (log->change_next < log->change_count) {
        *ret_event = (struct tide_event){.kind = TIDE_EVENT_CHANGE};
        copy_change(&log->changes[log->change_next++], arena, &ret_event->change);
        ret_event->position = ret_event->change.place.position;
        log->has_changes = true;
        return true;
    }
    if (!log->has_range || !is_range_read(log)) {
        return false;
    }
    log->has_range = false;
    log->position = log->range_end;
    tide_sqlite_trail_add(log->scope.trail, log->range_end, log->end_digest);
    *ret_event = (struct tide_event){
        .kind = log->has_changes ? TIDE_EVENT_COMMIT : TIDE_EVENT_REACHED,
        .position = {.lo = (uint64_t)log->range_end},
    };
    log->has_changes = false;
    return true;
}

/* Reading */

static struct tide_change *add_change(struct tide_sqlite_log *log,
                                      const struct tide_sqlite_mark *mark)
{
    if (log->change_count == log->change_cap) {
        log->change_cap = log->change_cap == 0 ? 256 : log->change_cap * 2;
        log->changes = tide_realloc(log->changes, log->change_cap, sizeof(*log->changes));
    }
    struct tide_change *change = &log->changes[log->change_count++];
    *change = (struct tide_change){
        .relation = mark->table->relation,
        .place = {.position = {.lo = (uint64_t)mark->id}, .known = true},
        .tx_id = (uint64_t)mark->id,
    };
    return change;
}

static void add_delete(struct tide_sqlite_log *log, const struct tide_sqlite_mark *mark)
{
    struct tide_change *change = add_change(log, mark);
    change->op = TIDE_OP_DELETE;
    change->key = tide_sqlite_key_values(mark->table, mark->key, &log->arena);
    log->slice_size += mark->key.len;
}

static void add_row(struct tide_sqlite_log *log, const struct tide_sqlite_mark *mark,
                    sqlite3_stmt *stmt)
{
    if (mark->op == TIDE_SQLITE_OP_CANDIDATE) {
        return; /* it is still there, and nothing else happened to it */
    }
    struct tide_change *change = add_change(log, mark);
    const struct tide_relation *relation = mark->table->relation;
    struct tide_value *values =
        tide_arena_alloc(&log->arena, relation->column_count, sizeof(*values));
    log->slice_size += relation->column_count * sizeof(*values) +
                       tide_sqlite_row_values(stmt, mark->table, &log->arena, values);
    change->op = mark->op == TIDE_SQLITE_OP_INSERT ? TIDE_OP_INSERT : TIDE_OP_UPDATE;
    change->values = values;
}

static void add_notice(struct tide_sqlite_log *log, const struct tide_sqlite_mark *mark)
{
    struct notice *notice = add_place(log);
    log->notice_count += tide_sqlite_note_event(mark, log->scope.choice, log->tables,
                                                log->scope.kept, &log->arena, &notice->event);
}

static tide_status fetch(struct tide_sqlite_log *log, const struct tide_sqlite_mark *mark,
                         struct tide_error *err)
{
    sqlite3_stmt *stmt = NULL;
    bool is_there = false;
    TIDE_TRY(tide_sqlite_fetch_row(&log->fetch, mark->table, mark->key, &stmt, &is_there, err));
    if (is_there) {
        add_row(log, mark, stmt);
    } else {
        add_delete(log, mark);
    }
    (void)sqlite3_reset(stmt);
    return TIDE_OK;
}

static tide_status fetch_window(struct tide_sqlite_log *log, int64_t until_us, bool *ret_is_full,
                                struct tide_error *err)
{
    struct tide_sqlite_window *window = &log->window;
    while (window->next < window->count) {
        const struct tide_sqlite_mark *mark = &window->marks[window->next];
        if (tide_sqlite_mark_is_note(mark)) {
            add_notice(log, mark);
        } else if (!mark->is_superseded) {
            TIDE_TRY(fetch(log, mark, err));
        }
        window->next++;
        bool is_late = window->next % 32 == 0 && tide_clock_monotonic_us() >= until_us;
        if (is_late || log->slice_size >= log->limits.slice_bytes) {
            *ret_is_full = true;
            return TIDE_OK;
        }
    }
    *ret_is_full = tide_clock_monotonic_us() >= until_us;
    return TIDE_OK;
}

static tide_status load_window(struct tide_sqlite_log *log, struct tide_error *err)
{
    TIDE_TRY(tide_sqlite_window_load(&log->window, log->entries, log->tables, log->window.last_id,
                                     log->range_end, err));
    log->entries_read += log->window.entries;
    log->entries_size += log->window.entries * ENTRY_BYTES + log->window.bytes;
    return TIDE_OK;
}

/* Where the range ends, seen from this transaction. */
static void move_end(struct tide_sqlite_log *log, int64_t end)
{
    log->log_end = end;
    if (!log->has_range) {
        log->has_range = end > log->position;
        log->range_end = end;
        log->range_limit = end > INT64_MAX - log->limits.range_entries
                               ? INT64_MAX
                               : end + log->limits.range_entries;
        tide_sqlite_window_reset(&log->window);
        log->window.last_id = log->position;
    } else if (end <= log->range_limit) {
        log->range_end = end;
    }
}

static tide_status read_end(struct tide_sqlite_log *log, int64_t *ret_end, struct tide_error *err)
{
    bool has_row = false;
    TIDE_TRY(tide_sqlite_step(log->end, &has_row, err));
    int64_t end = has_row ? sqlite3_column_int64(log->end, 0) : 0;
    (void)sqlite3_reset(log->end);
    if (end < log->range_end) {
        return tide_fail(err, TIDE_STALE,
                         "the change log ends at %lld, before %lld, which has been read: the "
                         "database was restored, or the log emptied; restore the right database, "
                         "or " TIDE_SQLITE_ANEW,
                         (long long)end, (long long)log->range_end);
    }
    *ret_end = end;
    return TIDE_OK;
}

static tide_status read_slice(struct tide_sqlite_log *log, const tide_str *nonces,
                              size_t nonce_count, bool *ret_has_moved, struct tide_error *err)
{
    int64_t until_us = tide_clock_deadline_us(log->limits.slice_us);
    int64_t end = 0;
    TIDE_TRY(tide_sqlite_watch_look(log->scope.watch, nonces, nonce_count, ret_has_moved, err));
    if (*ret_has_moved) {
        return TIDE_OK;
    }
    TIDE_TRY(read_end(log, &end, err));
    TIDE_TRY(tide_sqlite_trail_check(log->scope.trail, log->db, INT64_MAX, err));
    move_end(log, end);
    bool is_full = !log->has_range;
    while (!is_full) {
        TIDE_TRY(fetch_window(log, until_us, &is_full, err));
        if (is_range_read(log)) {
            break;
        }
        if (!is_full) {
            TIDE_TRY(load_window(log, err));
        }
    }
    bool is_there = false;
    return log->has_range && is_range_read(log)
               ? tide_sqlite_entry_digest(log->db, log->range_end, &is_there, &log->end_digest, err)
               : TIDE_OK;
}

static tide_status read_version(struct tide_sqlite_log *log, int64_t *ret_version,
                                struct tide_error *err)
{
    bool has_row = false;
    TIDE_TRY(tide_sqlite_step(log->version, &has_row, err));
    *ret_version = has_row ? sqlite3_column_int64(log->version, 0) : 0;
    (void)sqlite3_reset(log->version);
    return TIDE_OK;
}

static void forget_slice(struct tide_sqlite_log *log)
{
    tide_arena_reset(&log->arena);
    log->change_count = 0;
    log->change_next = 0;
    log->notice_count = 0;
    log->notice_next = 0;
    log->slice_size = 0;
}

static void stamp(struct tide_sqlite_log *log)
{
    int64_t now_us = tide_clock_utc_us();
    for (size_t i = 0; i < log->change_count; i++) {
        log->changes[i].commit_us = now_us;
    }
    for (size_t i = 0; i < log->notice_count; i++) {
        log->notices[i].event.change.commit_us = now_us;
    }
}

tide_status tide_sqlite_log_read(struct tide_sqlite_log *log, const tide_str *nonces,
                                 size_t nonce_count, bool *ret_has_moved, struct tide_error *err)
{
    TIDE_ASSERT(log->change_next == log->change_count);
    int64_t version = 0;
    *ret_has_moved = false;
    TIDE_TRY(read_version(log, &version, err)); /* before the range: never too new */
    if (!log->has_range && log->has_version && version == log->seen_version) {
        return tide_fail(err, TIDE_TIMEOUT, "nothing new");
    }
    forget_slice(log);
    TIDE_TRY(tide_sqlite_exec(log->db, "BEGIN", err));
    tide_status status = read_slice(log, nonces, nonce_count, ret_has_moved, err);
    (void)sqlite3_exec(log->db, "COMMIT", NULL, NULL, NULL); /* of a read: cannot fail */
    if (status != TIDE_OK || *ret_has_moved) {
        return status;
    }
    stamp(log);
    bool is_all_read = !log->has_range || is_range_read(log);
    log->has_version = is_all_read && log->log_end == log->range_end;
    log->seen_version = version;
    return log->has_range ? TIDE_OK : tide_fail(err, TIDE_TIMEOUT, "nothing new");
}

size_t tide_sqlite_log_entry_size(const struct tide_sqlite_log *log)
{
    return log->entries_read == 0 ? 2 * ENTRY_BYTES
                                  : (size_t)(log->entries_size / log->entries_read);
}
