#include "source/sqlite/sqlite_notes.h"

#include "base/alloc.h"
#include "base/buf.h"

#include <stdlib.h>

void tide_sqlite_kept_add(struct tide_sqlite_kept *kept, const struct tide_relation *relation)
{
    if (kept->count == kept->cap) {
        kept->cap = kept->cap * 2 + 8;
        kept->items = tide_realloc(kept->items, kept->cap, sizeof(struct tide_relation *));
    }
    kept->items[kept->count++] = tide_relation_ref(relation);
}

void tide_sqlite_kept_done(struct tide_sqlite_kept *kept)
{
    for (size_t i = 0; i < kept->count; i++) {
        tide_relation_unref(kept->items[i]);
    }
    free(kept->items);
    *kept = (struct tide_sqlite_kept){0};
}

/* Of a table that is there, its own; else one without columns, since nobody knows them any more. */
static const struct tide_relation *relation_of(const struct tide_sqlite_mark *note,
                                               const struct tide_sqlite_choice *choice,
                                               const struct tide_sqlite_tables *tables,
                                               struct tide_sqlite_kept *kept)
{
    const struct tide_sqlite_table *table = tide_sqlite_tables_by_name(tables, note->key);
    if (table != NULL) {
        return table->relation;
    }
    struct tide_relation_spec spec = {.connection = choice->connection, .name = note->key};
    struct tide_relation *relation = tide_relation_new(&spec);
    tide_sqlite_kept_add(kept, relation);
    tide_relation_unref(relation);
    return relation;
}

static void fill_truncate(const struct tide_sqlite_mark *note, const struct tide_relation *relation,
                          struct tide_event *ret_event)
{
    struct tide_position position = {.lo = (uint64_t)note->id};
    *ret_event = (struct tide_event){
        .kind = TIDE_EVENT_CHANGE,
        .position = position,
        .change =
            {
                .op = TIDE_OP_TRUNCATE,
                .relation = relation,
                .place = {.position = position, .known = true},
                .tx_id = (uint64_t)note->id,
            },
    };
}

static tide_str store_name(const struct tide_sqlite_choice *choice, tide_str name,
                           struct tide_arena *arena)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf store = {0};
    tide_buf_append_str(&store, choice->connection);
    tide_buf_append_char(&store, '.');
    tide_buf_append_str(&store, name);
    return tide_arena_str(arena, tide_buf_str(&store));
}

static bool is_for_us(const struct tide_sqlite_mark *note, const struct tide_sqlite_choice *choice,
                      const struct tide_sqlite_tables *tables)
{
    bool is_chosen = tide_sqlite_is_chosen(choice->globs, choice->glob_count, note->key);
    if (note->op == TIDE_SQLITE_OP_COPY) {
        return note->table != NULL;
    }
    if (note->op == TIDE_SQLITE_OP_JOIN) {
        return note->table != NULL && tide_str_equal(note->note, choice->pipeline);
    }
    if (note->op == TIDE_SQLITE_OP_GONE) {
        return is_chosen && tide_sqlite_tables_by_name(tables, note->key) == NULL;
    }
    return is_chosen;
}

void tide_sqlite_left_event(const struct tide_sqlite_table *table,
                            const struct tide_sqlite_choice *choice, int64_t position,
                            struct tide_arena *arena, struct tide_event *ret_event)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf reason = {0};
    tide_buf_printf(&reason, "it cannot be followed, and is left out: %.*s",
                    TIDE_STR_ARG(table->problem));
    *ret_event = (struct tide_event){
        .kind = TIDE_EVENT_TABLE,
        .position = {.lo = (uint64_t)position},
        .store = store_name(choice, table->name, arena),
        .reason = tide_arena_str(arena, tide_buf_str(&reason)),
    };
}

bool tide_sqlite_note_event(const struct tide_sqlite_mark *note,
                            const struct tide_sqlite_choice *choice,
                            const struct tide_sqlite_tables *tables, struct tide_sqlite_kept *kept,
                            struct tide_arena *arena, struct tide_event *ret_event)
{
    if (!is_for_us(note, choice, tables)) {
        return false;
    }
    if (note->op == TIDE_SQLITE_OP_TRUNCATE) {
        fill_truncate(note, relation_of(note, choice, tables, kept), ret_event);
        return true;
    }
    bool is_join = note->op == TIDE_SQLITE_OP_JOIN;
    *ret_event = (struct tide_event){
        .kind = TIDE_EVENT_TABLE,
        .position = {.lo = (uint64_t)note->id},
        .store = store_name(choice, note->key, arena),
        .relation = note->table == NULL ? NULL : note->table->relation,
        .reason = is_join ? TIDE_STR("it has not been followed before")
                          : tide_arena_str(arena, note->note),
        .was_unfollowed = is_join,
    };
    return true;
}
