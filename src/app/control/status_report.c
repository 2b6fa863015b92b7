#include "app/control/status_report.h"

#include "format/json_shape.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define DEPTH_MAX    64

enum field_kind {
    FIELD_TEXT,
    FIELD_RAW, /* of numbers with a fraction, and of positions */
    FIELD_U64,
    FIELD_BOOL,
    FIELD_OTHER, /* read by whoever knows more */
};

/* Where a key's value goes in a struct. */
struct field {
    const char *name;
    enum field_kind kind;
    size_t offset;
};

#define FIELDS_MAX 24

#define REPORT(key, kind, member)                                                                  \
    {                                                                                              \
        key, kind, offsetof(struct tide_status_report, member)                                     \
    }
#define SINK(key, kind, member)                                                                    \
    {                                                                                              \
        key, kind, offsetof(struct tide_status_sink, member)                                       \
    }
#define SNAPSHOT(key, kind, member)                                                                \
    {                                                                                              \
        key, kind, offsetof(struct tide_status_snapshot, member)                                   \
    }

/* The first ones are FIELD_OTHER. */
enum {
    REPORT_CHECKPOINT,
    REPORT_MEMORY,
    REPORT_SINKS,
    REPORT_SNAPSHOTS,
    REPORT_LAG_BYTES
};

static const struct field report_fields[] = {
    {"checkpoint", FIELD_OTHER, 0},
    {"memory", FIELD_OTHER, 0},
    {"sinks", FIELD_OTHER, 0},
    {"snapshots", FIELD_OTHER, 0},
    REPORT("lag_bytes", FIELD_U64, lag_bytes),
    REPORT("pipeline", FIELD_TEXT, pipeline),
    REPORT("source", FIELD_TEXT, source),
    REPORT("state", FIELD_TEXT, state),
    REPORT("started_at", FIELD_TEXT, started_at),
    REPORT("position", FIELD_RAW, position),
    REPORT("held", FIELD_RAW, held),
    REPORT("confirmed", FIELD_RAW, confirmed),
    REPORT("lag_seconds", FIELD_RAW, lag_seconds),
    REPORT("stalled_seconds", FIELD_RAW, stalled_seconds),
    REPORT("reason", FIELD_TEXT, reason),
    REPORT("changes", FIELD_U64, changes),
    REPORT("rows", FIELD_U64, rows),
    REPORT("dead_letters", FIELD_U64, dead_letters),
};
_Static_assert(COUNT(report_fields) <= FIELDS_MAX, "room for every key");

static const struct field checkpoint_fields[] = {
    REPORT("sequence", FIELD_U64, checkpoint_sequence),
    REPORT("seconds_ago", FIELD_RAW, checkpoint_seconds_ago),
};

static const struct field memory_fields[] = {
    REPORT("used", FIELD_U64, memory_used),
    REPORT("limit", FIELD_U64, memory_limit),
};

static const struct field sink_fields[] = {
    SINK("name", FIELD_TEXT, name),
    SINK("state", FIELD_TEXT, state),
    SINK("seeded", FIELD_BOOL, is_seeded),
    SINK("lane_items", FIELD_U64, lane_items),
    SINK("lane_bytes", FIELD_U64, lane_bytes),
    SINK("rows", FIELD_U64, rows),
    SINK("stubs", FIELD_U64, stubs),
    SINK("changes", FIELD_U64, changes),
    SINK("bytes", FIELD_U64, bytes),
    SINK("dead_letters", FIELD_U64, dead_letters),
    SINK("skipped", FIELD_U64, skipped),
    SINK("max_record_bytes", FIELD_U64, max_record_bytes),
    SINK("restarts", FIELD_U64, restarts),
    SINK("error", FIELD_TEXT, error),
    SINK("retry_seconds", FIELD_RAW, retry_seconds),
};

enum {
    SNAPSHOT_SINKS
};

static const struct field snapshot_fields[] = {
    {"sinks", FIELD_OTHER, 0},
    SNAPSHOT("store", FIELD_TEXT, store),
    SNAPSHOT("state", FIELD_TEXT, state),
    SNAPSHOT("snapshot_id", FIELD_TEXT, snapshot_id),
    SNAPSHOT("attempt", FIELD_U64, attempt),
    SNAPSHOT("rows", FIELD_U64, rows),
    SNAPSHOT("reason", FIELD_TEXT, reason),
};

static tide_status read_value(const struct tide_shape *shape, const struct field *field,
                              tide_str raw, void *target, struct tide_error *err)
{
    char *at = (char *)target + field->offset;
    switch (field->kind) {
    case FIELD_TEXT:
        return tide_shape_string(shape, raw, (tide_str *)(void *)at, err);
    case FIELD_RAW:
        *(tide_str *)(void *)at = raw;
        return TIDE_OK;
    case FIELD_U64:
        return tide_shape_u64(shape, raw, UINT64_MAX, (uint64_t *)(void *)at, err);
    case FIELD_BOOL:
        return tide_shape_bool(shape, raw, (bool *)(void *)at, err);
    case FIELD_OTHER:
        break;
    }
    return TIDE_OK;
}

/* Every key may be missing or null: then it stays as it was. */
static tide_status read_fields(const struct tide_shape *shape, tide_str raw,
                               const struct field *fields, size_t count, void *target,
                               tide_str *ret_values, struct tide_error *err)
{
    struct tide_shape_field names[FIELDS_MAX] = {0};
    const struct tide_shape_form form = {.fields = names, .count = count};
    for (size_t i = 0; i < count; i++) {
        names[i] = (struct tide_shape_field){.name = fields[i].name, .is_optional = true};
    }
    TIDE_TRY(tide_shape_fields(shape, raw, &form, ret_values, err));
    for (size_t i = 0; i < count; i++) {
        if (ret_values[i].ptr != NULL && tide_shape_is_null(ret_values[i])) {
            ret_values[i] = (tide_str){0};
        }
        if (ret_values[i].ptr != NULL) {
            TIDE_TRY(read_value(shape, &fields[i], ret_values[i], target, err));
        }
    }
    return TIDE_OK;
}

static tide_status read_sinks(const struct tide_shape *shape, tide_str raw,
                              struct tide_status_report *report, struct tide_error *err)
{
    tide_str *items = NULL;
    tide_str values[FIELDS_MAX];
    TIDE_TRY(tide_shape_items(shape, raw, &items, &report->sink_count, err));
    report->sinks = tide_arena_alloc(shape->arena, report->sink_count, sizeof(*report->sinks));
    for (size_t i = 0; i < report->sink_count; i++) {
        report->sinks[i] = (struct tide_status_sink){0};
        TIDE_TRY(read_fields(shape, items[i], sink_fields, COUNT(sink_fields), &report->sinks[i],
                             values, err));
    }
    return TIDE_OK;
}

static tide_status read_snapshots(const struct tide_shape *shape, tide_str raw,
                                  struct tide_status_report *report, struct tide_error *err)
{
    tide_str *items = NULL;
    tide_str values[FIELDS_MAX];
    TIDE_TRY(tide_shape_items(shape, raw, &items, &report->snapshot_count, err));
    report->snapshots =
        tide_arena_alloc(shape->arena, report->snapshot_count, sizeof(*report->snapshots));
    for (size_t i = 0; i < report->snapshot_count; i++) {
        struct tide_status_snapshot *snapshot = &report->snapshots[i];
        *snapshot = (struct tide_status_snapshot){0};
        TIDE_TRY(read_fields(shape, items[i], snapshot_fields, COUNT(snapshot_fields), snapshot,
                             values, err));
        if (values[SNAPSHOT_SINKS].ptr != NULL) {
            TIDE_TRY(tide_shape_strings(shape, values[SNAPSHOT_SINKS], &snapshot->sinks,
                                        &snapshot->sink_count, err));
        }
    }
    return TIDE_OK;
}

static tide_status read_parts(const struct tide_shape *shape, const tide_str *values,
                              struct tide_status_report *report, struct tide_error *err)
{
    tide_str ignored[FIELDS_MAX];
    report->has_lag_bytes = values[REPORT_LAG_BYTES].ptr != NULL;
    report->has_memory = values[REPORT_MEMORY].ptr != NULL;
    if (values[REPORT_CHECKPOINT].ptr != NULL) {
        TIDE_TRY(read_fields(shape, values[REPORT_CHECKPOINT], checkpoint_fields,
                             COUNT(checkpoint_fields), report, ignored, err));
    }
    if (report->has_memory) {
        TIDE_TRY(read_fields(shape, values[REPORT_MEMORY], memory_fields, COUNT(memory_fields),
                             report, ignored, err));
    }
    if (values[REPORT_SINKS].ptr != NULL) {
        TIDE_TRY(read_sinks(shape, values[REPORT_SINKS], report, err));
    }
    return values[REPORT_SNAPSHOTS].ptr == NULL
               ? TIDE_OK
               : read_snapshots(shape, values[REPORT_SNAPSHOTS], report, err);
}

tide_status tide_status_report_read(tide_str json, struct tide_arena *arena,
                                    struct tide_status_report *ret_report, struct tide_error *err)
{
    const struct tide_shape shape = {.document = json.ptr, .arena = arena};
    struct tide_status_report report = {0};
    tide_str values[FIELDS_MAX];
    TIDE_TRY(tide_json_check(json, DEPTH_MAX, err));
    TIDE_TRY(read_fields(&shape, json, report_fields, COUNT(report_fields), &report, values, err));
    TIDE_TRY(read_parts(&shape, values, &report, err));
    *ret_report = report;
    return TIDE_OK;
}

static bool is(tide_str text, const char *word)
{
    return tide_str_equal(text, tide_str_from(word));
}

static bool has_sink(const struct tide_status_snapshot *snapshot, tide_str name)
{
    for (size_t i = 0; i < snapshot->sink_count; i++) {
        if (tide_str_equal(snapshot->sinks[i], name)) {
            return true;
        }
    }
    return false;
}

/* A later copy of the same table goes to each of its sinks. */
static bool is_made_good(const struct tide_status_report *report, size_t index)
{
    const struct tide_status_snapshot *failed = &report->snapshots[index];
    size_t covered = 0;
    for (size_t i = 0; i < failed->sink_count; i++) {
        bool is_covered = false;
        for (size_t j = index + 1; j < report->snapshot_count; j++) {
            const struct tide_status_snapshot *later = &report->snapshots[j];
            is_covered =
                is_covered || (tide_str_equal(later->store, failed->store) &&
                               !is(later->state, "failed") && has_sink(later, failed->sinks[i]));
        }
        covered += is_covered;
    }
    return failed->sink_count > 0 && covered == failed->sink_count;
}

bool tide_status_report_is_fine(const struct tide_status_report *report)
{
    if (is(report->state, "stalled")) {
        return false;
    }
    for (size_t i = 0; i < report->sink_count; i++) {
        const struct tide_status_sink *sink = &report->sinks[i];
        if (is(sink->state, "failed") || is(sink->state, "detached") ||
            (is(sink->state, "waiting") && sink->error.len > 0)) {
            return false;
        }
    }
    for (size_t i = 0; i < report->snapshot_count; i++) {
        if (is(report->snapshots[i].state, "failed") && !is_made_good(report, i)) {
            return false;
        }
    }
    return true;
}
