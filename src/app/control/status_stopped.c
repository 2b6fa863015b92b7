#include "app/control/status_stopped.h"

#include "app/safe_text.h"
#include "app/text_table.h"
#include "base/clock.h"
#include "base/map.h"

/* Past so many tables those that are done are counted, not listed. */
#define TABLES_LISTED_MAX 40

enum part {
    PART_NONE,
    PART_DONE,
    PART_RUNNING,
    PART_QUEUED,
};

/* A table's newest copies, one for each sink of the checkpoint. */
struct row {
    tide_str store;
    enum part *parts;
};

struct rows {
    const struct tide_checkpoint *checkpoint;
    struct tide_arena *arena;
    struct tide_map places; /* store, to its row */
    struct row *items;
    size_t count;
};

static void note(struct rows *rows, tide_str store, tide_str sink, enum part part)
{
    const struct tide_checkpoint *checkpoint = rows->checkpoint;
    bool is_new = false;
    union tide_map_value *place = tide_map_put(&rows->places, store, &is_new);
    if (is_new) {
        place->number = rows->count;
        rows->items[rows->count++] = (struct row){
            .store = store,
            .parts = tide_arena_alloc(rows->arena, checkpoint->sink_count + 1, sizeof(enum part))};
        memset(rows->items[place->number].parts, 0,
               (checkpoint->sink_count + 1) * sizeof(enum part));
    }
    for (size_t i = 0; i < checkpoint->sink_count; i++) {
        if (tide_str_equal(checkpoint->sinks[i].name, sink)) {
            rows->items[place->number].parts[i] = part;
        }
    }
}

static bool has_copies(const struct tide_checkpoint *checkpoint, uint64_t request_id)
{
    for (size_t i = 0; i < checkpoint->copy_count; i++) {
        if (checkpoint->copies[i].request_id == request_id) {
            return true;
        }
    }
    return false;
}

/* The newer copy of a table is the later one; what was only asked for comes after them all. */
static void collect(struct rows *rows)
{
    const struct tide_checkpoint *checkpoint = rows->checkpoint;
    size_t most = checkpoint->copy_count;
    for (size_t i = 0; i < checkpoint->request_count; i++) {
        most += checkpoint->requests[i].table_count;
    }
    rows->items = tide_arena_alloc(rows->arena, most, sizeof(*rows->items));
    for (size_t i = 0; i < checkpoint->copy_count; i++) {
        const struct tide_checkpoint_copy *copy = &checkpoint->copies[i];
        enum part part = copy->is_done ? PART_DONE : copy->is_begun ? PART_RUNNING : PART_QUEUED;
        for (size_t j = 0; j < copy->sink_count; j++) {
            note(rows, copy->store, copy->sinks[j], part);
        }
    }
    for (size_t i = 0; i < checkpoint->request_count; i++) {
        const struct tide_checkpoint_request *request = &checkpoint->requests[i];
        size_t count = has_copies(checkpoint, request->id) ? 0 : request->table_count;
        for (size_t j = 0; j < count; j++) {
            note(rows, request->tables[j], request->sink, PART_QUEUED);
        }
    }
}

static void begin_line(struct tide_buf *buf, const char *name)
{
    tide_buf_printf(buf, "%-12s", name);
}

static void print_head(struct tide_buf *buf, const struct tide_checkpoint_shown *shown)
{
    const struct tide_checkpoint *checkpoint = shown->checkpoint;
    char time[40];
    tide_rfc3339_us(shown->created_us, "Z", time);
    begin_line(buf, "pipeline");
    tide_append_safe(buf, checkpoint->pipeline);
    tide_buf_append_str(buf, checkpoint->is_creating ? TIDE_STR(": being made")
                             : checkpoint->is_closed
                                 ? TIDE_STR(": closed, the next run starts anew")
                                 : TIDE_STR(""));
    tide_buf_append_char(buf, '\n');
    begin_line(buf, "position");
    tide_append_safe(buf, checkpoint->position_json);
    tide_buf_append_char(buf, '\n');
    begin_line(buf, "checkpoint");
    tide_buf_printf(buf, "%llu, saved at %s\n", (unsigned long long)checkpoint->sequence, time);
}

static void append_tables(struct tide_buf *buf, const struct tide_checkpoint_request *request)
{
    for (size_t i = 0; i < request->table_count && i < TABLES_LISTED_MAX; i++) {
        tide_buf_append_str(buf, i == 0 ? TIDE_STR("") : TIDE_STR(", "));
        tide_append_safe(buf, request->tables[i]);
    }
    if (request->table_count > TABLES_LISTED_MAX) {
        tide_buf_printf(buf, " and %zu more", request->table_count - TABLES_LISTED_MAX);
    }
}

static void print_requests(struct tide_buf *buf, const struct tide_checkpoint *checkpoint)
{
    for (size_t i = 0; i < checkpoint->request_count; i++) {
        const struct tide_checkpoint_request *request = &checkpoint->requests[i];
        begin_line(buf, i == 0 ? "asked for" : "");
        append_tables(buf, request);
        tide_buf_append_str(buf, TIDE_STR(" for "));
        tide_append_safe(buf, request->sink);
        tide_buf_append_char(buf, '\n');
    }
}

static void print_sinks(struct tide_buf *buf, const struct tide_checkpoint *checkpoint)
{
    for (size_t i = 0; i < checkpoint->sink_count; i++) {
        const struct tide_checkpoint_sink *sink = &checkpoint->sinks[i];
        begin_line(buf, i == 0 ? "sinks" : "");
        tide_append_safe(buf, sink->name);
        tide_buf_append_str(buf, sink->is_detached ? TIDE_STR(": detached")
                                 : sink->is_seeded ? TIDE_STR(": has its first copies")
                                                   : TIDE_STR(": first copies not complete"));
        tide_buf_append_str(buf, sink->is_paused ? TIDE_STR(", paused") : TIDE_STR(""));
        for (size_t j = 0; j < sink->failed_count; j++) {
            tide_buf_append_str(buf, j == 0 ? TIDE_STR("; could not be copied: ") : TIDE_STR(", "));
            tide_append_safe(buf, sink->failed_tables[j]);
        }
        tide_buf_append_char(buf, '\n');
    }
}

/* "done" of one sink of the table after the other: those alike together. */
static void append_parts(struct tide_buf *cell, const struct rows *rows, const struct row *row)
{
    static const char *const names[] = {"", "done", "not complete", "queued"};
    for (enum part part = PART_DONE; part <= PART_QUEUED; part++) {
        bool is_first = true;
        for (size_t i = 0; i < rows->checkpoint->sink_count; i++) {
            if (row->parts[i] == part) {
                const char *lead = is_first && cell->len > 0 ? "; " : "";
                tide_buf_printf(cell, "%s%s%s%.*s", lead, is_first ? names[part] : "",
                                is_first ? ": " : ", ",
                                TIDE_STR_ARG(rows->checkpoint->sinks[i].name));
                is_first = false;
            }
        }
    }
}

static bool is_done(const struct rows *rows, const struct row *row)
{
    for (size_t i = 0; i < rows->checkpoint->sink_count; i++) {
        if (row->parts[i] > PART_DONE) {
            return false;
        }
    }
    return true;
}

static void print_tables(struct tide_buf *buf, const struct rows *rows)
{
    struct tide_buf cell TIDE_CLEANUP(tide_buf_done) = {0};
    struct tide_text_table table TIDE_CLEANUP(tide_text_table_done) = {.column_count = 2};
    size_t passed = 0;
    tide_text_table_add(&table, TIDE_STR("TABLE"));
    tide_text_table_add(&table, TIDE_STR("COPIES"));
    for (size_t i = 0; i < rows->count; i++) {
        if (rows->count > TABLES_LISTED_MAX && is_done(rows, &rows->items[i])) {
            passed++;
            continue;
        }
        tide_buf_reset(&cell);
        append_parts(&cell, rows, &rows->items[i]);
        tide_text_table_add(&table, rows->items[i].store);
        tide_text_table_add(&table, tide_buf_str(&cell));
    }
    tide_buf_append_char(buf, '\n');
    if (rows->count > passed) {
        tide_text_table_print(&table, buf);
    }
    if (passed > 0) {
        tide_buf_printf(buf, "%zu %stables are done\n", passed,
                        passed < rows->count ? "more " : "");
    }
}

void tide_status_print_stopped(struct tide_buf *buf, const struct tide_checkpoint_shown *shown,
                               struct tide_arena *arena)
{
    const struct tide_checkpoint *checkpoint = shown->checkpoint;
    struct rows rows = {.checkpoint = checkpoint, .arena = arena};
    if (!checkpoint->has_tidemark) { /* of another program */
        tide_checkpoint_print(buf, shown, arena);
        return;
    }
    print_head(buf, shown);
    print_requests(buf, checkpoint);
    print_sinks(buf, checkpoint);
    collect(&rows);
    if (rows.count > 0) {
        print_tables(buf, &rows);
    }
    tide_map_done(&rows.places);
}
