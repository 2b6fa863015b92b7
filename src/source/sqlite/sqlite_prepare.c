/* Makes what following needs, or takes it up again, and keeps in step with the schema. */
#include "source/sqlite/sqlite_db.h"
#include "source/sqlite/sqlite_mend.h"
#include "source/sqlite/sqlite_source_parts.h"

#include <string.h>

/* The log must still have all that comes after the checkpoint. */
static tide_status check_position(struct tide_source *source, int64_t confirmed, int64_t position,
                                  struct tide_error *err)
{
    int64_t end = 0;
    TIDE_TRY(tide_sqlite_int(source->db, "SELECT max(id) FROM main.\"" TIDE_SQLITE_LOG "\"", 0,
                             &end, err));
    if (end < position) {
        return tide_fail(err, TIDE_STALE,
                         "%s: the change log ends at %lld, the checkpoint is at %lld: the database "
                         "is an older one; restore the right database, or " TIDE_SQLITE_ANEW,
                         source->path, (long long)end, (long long)position);
    }
    if (confirmed > position) {
        return tide_fail(
            err, TIDE_STALE,
            "%s: changes up to %lld may be gone from the log, the checkpoint is at "
            "%lld: it is an old one; restore the right state directory, or " TIDE_SQLITE_ANEW,
            source->path, (long long)confirmed, (long long)position);
    }
    return TIDE_OK;
}

static tide_status load(struct tide_source *source, tide_str saved_state, int64_t position,
                        struct tide_sqlite_installed *ret_installed, struct tide_error *err)
{
    TIDE_TRY(tide_sqlite_installed_load(source->db, source->options.pipeline, position,
                                        ret_installed, err));
    tide_status status =
        tide_sqlite_nonces_load(&source->nonces, saved_state, ret_installed->source_id,
                                ret_installed->nonce, &source->trail, err);
    if (status != TIDE_OK) {
        return tide_fail_context(err, "%s", source->path);
    }
    source->trail.confirmed = ret_installed->confirmed;
    TIDE_TRY(check_position(source, ret_installed->confirmed, position, err));
    if (tide_sqlite_trail_check(&source->trail, source->db, position, err) != TIDE_OK) {
        return tide_fail_context(err, "%s", source->path);
    }
    return TIDE_OK;
}

static tide_status load_at_once(struct tide_source *source, tide_str saved_state, int64_t position,
                                struct tide_sqlite_installed *ret_installed, struct tide_error *err)
{
    TIDE_TRY(tide_sqlite_exec(source->db, "BEGIN", err));
    tide_status status = load(source, saved_state, position, ret_installed, err);
    tide_sqlite_end_read(source);
    return status;
}

static tide_status take_up(struct tide_source *source, const tide_str *saved_state,
                           int64_t position, struct tide_sqlite_installed *ret_installed,
                           struct tide_error *err)
{
    if (saved_state == NULL) {
        TIDE_TRY(tide_sqlite_install(source->db, &source->choice, source->source_id, ret_installed,
                                     err));
        tide_sqlite_nonces_init(&source->nonces, ret_installed->nonce);
        source->trail = (struct tide_sqlite_trail){.confirmed = ret_installed->confirmed};
        return TIDE_OK;
    }
    return load_at_once(source, *saved_state, position, ret_installed, err);
}

tide_status tide_sqlite_check_saved(struct tide_source *source, tide_str saved_state,
                                    struct tide_position position, struct tide_error *err)
{
    struct tide_sqlite_installed installed = {0};
    TIDE_ASSERT(!source->is_prepared);
    tide_sqlite_be_patient(source, TIDE_SQLITE_CHANGE_BUSY_MS);
    return load_at_once(source, saved_state, (int64_t)position.lo, &installed, err);
}

/* Pointers to a table's relation go on being good for whoever has one. */
static void keep_relations(struct tide_source *source, const struct tide_sqlite_tables *tables)
{
    for (size_t i = 0; i < tables->count; i++) {
        if (tables->items[i]->relation != NULL) {
            tide_sqlite_kept_add(&source->kept, tables->items[i]->relation);
        }
    }
}

/* A table that is as it was stays the same object, and so does its relation. */
static void keep_unchanged(struct tide_sqlite_tables *before, struct tide_sqlite_tables *now)
{
    for (size_t i = 0; i < now->count; i++) {
        struct tide_sqlite_table *table = now->items[i];
        for (size_t k = 0; k < before->count; k++) {
            struct tide_sqlite_table *old = before->items[k];
            if (old->number == table->number && tide_str_equal(old->name, table->name) &&
                tide_str_equal(old->spec, table->spec)) {
                now->items[i] = old;
                before->items[k] = table;
                break;
            }
        }
    }
}

static bool has_name(const struct tide_sqlite_tables *tables, tide_str name)
{
    for (size_t i = 0; i < tables->count; i++) {
        if (tide_str_equal(tables->items[i]->name, name)) {
            return true;
        }
    }
    return false;
}

/* Of those that were followed the log itself tells, at its place among their changes. */
static void tell_left(struct tide_source *source, const struct tide_sqlite_tables *before,
                      const struct tide_sqlite_tables *left)
{
    for (size_t i = 0; i < left->count; i++) {
        const struct tide_sqlite_table *table = left->items[i];
        if (!has_name(before, table->name) && !has_name(&source->left, table->name)) {
            tide_sqlite_log_tell_left(source->log, table);
        }
    }
}

tide_status tide_sqlite_mend_source(struct tide_source *source, struct tide_error *err)
{
    tide_str known[TIDE_SQLITE_NONCES_NOW];
    tide_sqlite_known_nonces(source, known);
    struct tide_sqlite_tables tables = {0};
    struct tide_sqlite_tables left = {0};
    TIDE_TRY(tide_sqlite_mend(source->db, &source->choice, source->watch, known,
                              TIDE_SQLITE_NONCES_NOW, &tables, &left, err));
    if (source->is_prepared) {
        keep_unchanged(&source->tables, &tables);
    }
    tide_status status = TIDE_OK;
    struct tide_sqlite_tables before = source->tables;
    source->tables = tables;
    if (source->log != NULL) {
        status = tide_sqlite_log_retable(source->log, err);
        tell_left(source, &before, &left);
    }
    tide_sqlite_tables_done(&source->left);
    source->left = left;
    keep_relations(source, &before);
    tide_sqlite_tables_done(&before);
    return status;
}

static tide_status prepare(struct tide_source *source, const tide_str *saved_state,
                           struct tide_position position, struct tide_position *ret_start,
                           struct tide_error *err)
{
    struct tide_sqlite_installed installed = {0};
    tide_sqlite_forget_installation(source);
    TIDE_TRY(tide_sqlite_require_writable(source->db, err));
    tide_sqlite_be_patient(source, TIDE_SQLITE_CHANGE_BUSY_MS);
    TIDE_TRY(take_up(source, saved_state, (int64_t)position.lo, &installed, err));
    TIDE_TRY(tide_sqlite_watch_new(source->db, source->path, source->options.pipeline, &installed,
                                   &source->watch, err));
    TIDE_TRY(tide_sqlite_mend_source(source, err));
    source->is_prepared = true;
    source->confirm = (struct tide_sqlite_confirm){.confirmed = installed.confirmed};
    memcpy(source->source_id, installed.source_id, sizeof(source->source_id));
    *ret_start = saved_state == NULL ? (struct tide_position){.lo = (uint64_t)installed.confirmed}
                                     : position;
    return TIDE_OK;
}

tide_status tide_sqlite_prepare_source(struct tide_source *source, const tide_str *saved_state,
                                       struct tide_position position,
                                       struct tide_position *ret_start, struct tide_error *err)
{
    tide_status status = prepare(source, saved_state, position, ret_start, err);
    return tide_sqlite_note_called_off(source, status, err);
}
