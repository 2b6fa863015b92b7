/* The keys of a configuration: which there are, what they take, where it goes. */
#include "app/adapters.h"
#include "app/config/config_map.h"
#include "app/place.h"
#include "app/time_argument.h"
#include "base/limits.h"

#include <stddef.h>

#define COUNT(array)   (sizeof(array) / sizeof((array)[0]))
#define NAME_BYTES_MAX 63

#define SOURCE_TAKES "a place, e.g. sqlite:shop.db, or keys (place, tables)"
#define SINK_TAKES                                                                                 \
    "a place, e.g. file:out.ndjson, or keys (place, existing, max_record_bytes, refused)"
#define NAME_TAKES                                                                                 \
    "at most 63 letters, digits, \"_\", \"-\" and \".\", the first of them no \"-\" or \".\""

/* A sink while it is read. */
struct sink_draft {
    const struct tide_yaml_node *place_node;
    const char *place;
    enum tide_sink_existing existing;
    uint64_t record_bytes;
    bool may_detach;
    struct tide_refused_policy refused;
    struct tide_sink_segments segments;
    const struct tide_yaml_item *segments_item; /* the first that is of them */
};

/* A name goes into file names, names in the source and messages. */
static bool is_name(tide_str name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];
        bool is_word =
            (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
        if (!is_word && (i == 0 || (c != '-' && c != '.'))) {
            return false;
        }
    }
    return name.len > 0 && name.len <= NAME_BYTES_MAX;
}

static void read_name(struct tide_config_reader *reader, const struct tide_config_key *key,
                      const struct tide_yaml_node *value, void *target)
{
    tide_str *name = target;
    const char *text = tide_config_text(reader, key->name, NAME_TAKES, value);
    if (text != NULL && !is_name(tide_str_from(text))) {
        tide_config_wrong(reader, key->name, NAME_TAKES, value);
    } else if (text != NULL) {
        *name = tide_str_from(text);
    }
}

static void read_state(struct tide_config_reader *reader, const struct tide_config_key *key,
                       const struct tide_yaml_node *value, void *target)
{
    const char **state = target;
    const char *text = tide_config_text(reader, key->name, "a directory", value);
    if (text != NULL) {
        *state = text;
    }
}

static void add_glob(struct tide_config_reader *reader, const char *key,
                     const struct tide_yaml_node *node)
{
    struct tide_config *config = reader->config;
    const char *text = tide_config_text(reader, key, "globs of tables, e.g. [orders, log_*]", node);
    if (text != NULL && config->glob_count < TIDE_CONFIG_GLOBS_MAX) {
        config->globs[config->glob_count++] = tide_str_from(text);
    } else if (text != NULL) {
        tide_mistakes_add(reader->mistakes, node->mark, "more than %d globs; use * and ? in fewer",
                          TIDE_CONFIG_GLOBS_MAX);
    }
}

/* `tables` may stand beside `source` or in it. */
static void read_tables(struct tide_config_reader *reader, const struct tide_config_key *key,
                        const struct tide_yaml_node *value, void *target)
{
    struct tide_config *config = target;
    if (config->globs != NULL) {
        tide_mistakes_add(reader->mistakes, value->mark,
                          "%s is there twice, in source and beside it; keep one of them",
                          key->name);
        return;
    }
    config->globs = tide_arena_alloc(&config->arena, TIDE_CONFIG_GLOBS_MAX, sizeof(*config->globs));
    if (value->kind != TIDE_YAML_LIST) {
        add_glob(reader, key->name, value);
        return;
    }
    for (const struct tide_yaml_item *item = value->first; item != NULL; item = item->next) {
        add_glob(reader, key->name, item->value);
    }
    if (value->count == 0) {
        tide_mistakes_add(reader->mistakes, value->mark,
                          "%s is empty; leave it out to copy all tables", key->name);
    }
}

/* Shows the text as the file has it, never what it stands for. */
static void note_place(struct tide_config_reader *reader, const char *key, const char *takes,
                       const struct tide_yaml_node *node)
{
    struct tide_buf shown TIDE_CLEANUP(tide_buf_done) = {0};
    tide_config_quote(&shown, node->text);
    tide_mistakes_add(reader->mistakes, node->mark, "%s: %s names no %s", key,
                      tide_buf_cstr(&shown), takes);
}

static void read_source_place(struct tide_config_reader *reader, const struct tide_config_key *key,
                              const struct tide_yaml_node *value, void *target)
{
    struct tide_config *config = target;
    struct tide_error err = {0};
    const char *place = tide_config_text(reader, key->name, SOURCE_TAKES, value);
    if (place == NULL) {
        return;
    }
    if (tide_find_source(place, &config->source_ops, &config->source_place, &err) != TIDE_OK) {
        note_place(reader, key->name, "source; write sqlite:PATH or postgres://USER@HOST/DATABASE",
                   value);
        return;
    }
    if (config->source_ops->valid != NULL &&
        config->source_ops->valid(config->source_place, &err) != TIDE_OK) {
        tide_mistakes_add(reader->mistakes, value->mark, "%s: %s", key->name, err.message);
    }
    struct tide_buf shown TIDE_CLEANUP(tide_buf_done) = {0};
    tide_place_append_shown(&shown, value->text);
    config->source_shown = tide_str_from(tide_arena_cstr(&config->arena, tide_buf_str(&shown)));
}

static const struct tide_config_key source_keys[] = {
    {"place", read_source_place, .missing = "source has no place; add e.g. place: sqlite:shop.db"},
    {"tables", read_tables},
};

static void read_source(struct tide_config_reader *reader, const struct tide_config_key *key,
                        const struct tide_yaml_node *value, void *target)
{
    if (value->kind == TIDE_YAML_MAP) {
        tide_config_read_map(reader, key->name, value, source_keys, COUNT(source_keys), target);
    } else {
        read_source_place(reader, key, value, target);
    }
}

static void read_sink_place(struct tide_config_reader *reader, const struct tide_config_key *key,
                            const struct tide_yaml_node *value, void *target)
{
    struct sink_draft *draft = target;
    draft->place_node = value;
    draft->place = tide_config_text(reader, key->name, SINK_TAKES, value);
}

static void read_existing(struct tide_config_reader *reader, const struct tide_config_key *key,
                          const struct tide_yaml_node *value, void *target)
{
    static const char *const words[] = {
        [TIDE_EXISTING_REFUSE] = "refuse",
        [TIDE_EXISTING_APPEND] = "append",
        [TIDE_EXISTING_OVERWRITE] = "overwrite",
    };
    struct sink_draft *draft = target;
    size_t index = 0;
    if (tide_config_word(reader, key->name, value, words, COUNT(words), &index)) {
        draft->existing = (enum tide_sink_existing)index;
    }
}

static void read_flag(struct tide_config_reader *reader, const struct tide_config_key *key,
                      const struct tide_yaml_node *value, void *target)
{
    static const char *const words[] = {"false", "true"};
    bool *flag = target;
    size_t index = 0;
    if (tide_config_word(reader, key->name, value, words, COUNT(words), &index)) {
        *flag = index == 1;
    }
}

static void read_compact(struct tide_config_reader *reader, const struct tide_config_key *key,
                         const struct tide_yaml_node *value, void *target)
{
    bool compacts = true;
    read_flag(reader, key, value, &compacts);
    *(bool *)target = !compacts;
}

static void read_age(struct tide_config_reader *reader, const struct tide_config_key *key,
                     const struct tide_yaml_node *value, void *target)
{
    static const char takes[] = "an age, e.g. 12h, 30d or 8w";
    int64_t age_us = 0;
    int64_t *age_target = target;
    const char *text = tide_config_text(reader, key->name, takes, value);
    if (text == NULL) {
        return;
    }
    if (!tide_age_parse(tide_str_from(text), &age_us) || age_us == 0) {
        tide_config_wrong(reader, key->name, takes, value);
        return;
    }
    *age_target = age_us;
}

static void read_when_behind(struct tide_config_reader *reader, const struct tide_config_key *key,
                             const struct tide_yaml_node *value, void *target)
{
    static const char *const words[] = {"wait", "detach"};
    struct sink_draft *draft = target;
    size_t index = 0;
    if (tide_config_word(reader, key->name, value, words, COUNT(words), &index) && index == 1) {
        draft->may_detach = true;
        if (reader->config->detach_node == NULL) {
            reader->config->detach_node = value;
        }
    }
}

static const struct tide_config_key sink_keys[] = {
    {"place", read_sink_place, .missing = "a sink has no place; add e.g. place: file:out.ndjson"},
    {"existing", read_existing},
    {"when_behind", read_when_behind},
    {"max_record_bytes", tide_config_read_number, offsetof(struct sink_draft, record_bytes),
     .min = TIDE_RECORD_BYTES_MIN, .max = TIDE_RECORD_BYTES_MAX},
    {"refused", tide_config_read_refused, offsetof(struct sink_draft, refused)},
    {"seal_rows", tide_config_read_number, offsetof(struct sink_draft, segments.rows_max), .min = 1,
     .max = TIDE_ARCHIVE_SEAL_ROWS_MAX},
    {"seal_bytes", tide_config_read_number, offsetof(struct sink_draft, segments.bytes_max),
     .min = TIDE_ARCHIVE_SEAL_BYTES_MIN, .max = TIDE_ARCHIVE_SEAL_BYTES_MAX},
    {"fill_unchanged", read_flag, offsetof(struct sink_draft, segments.fills_unchanged)},
    {"retain", read_age, offsetof(struct sink_draft, segments.retain_us)},
    {"compact", read_compact, offsetof(struct sink_draft, segments.leaves_small)},
};

/* Of a sink without segments it would do nothing. */
static void check_segments(struct tide_config_reader *reader, const struct tide_pipeline_sink *sink,
                           const struct tide_yaml_item *item)
{
    if (item != NULL && !sink->ops->has_segments) {
        tide_mistakes_add(reader->mistakes, item->key->mark,
                          "%.*s is for archives (archive:PATH) alone; leave it out",
                          TIDE_STR_ARG(item->key->text));
    }
}

static bool is_of_segments(tide_str key)
{
    static const char *const names[] = {"seal_rows", "seal_bytes", "fill_unchanged", "retain",
                                        "compact"};
    for (size_t i = 0; i < COUNT(names); i++) {
        if (tide_str_equal(key, tide_str_from(names[i]))) {
            return true;
        }
    }
    return false;
}

static const struct tide_yaml_item *find_segments_item(const struct tide_yaml_node *map)
{
    const struct tide_yaml_item *item = map->kind == TIDE_YAML_MAP ? map->first : NULL;
    while (item != NULL && !is_of_segments(item->key->text)) {
        item = item->next;
    }
    return item;
}

/* Two sinks that write to one place would spoil each other's. What `null:` gets is nowhere. */
static bool is_taken(const struct tide_config *config, const char *place, size_t *ret_index)
{
    for (size_t i = 0; i < config->sink_count; i++) {
        if (tide_str_equal(config->sink_places[i], tide_str_from(place)) &&
            strcmp(place, "null:") != 0) {
            *ret_index = i;
            return true;
        }
    }
    return false;
}

static void add_sink(struct tide_config_reader *reader, tide_str name,
                     const struct sink_draft *draft)
{
    struct tide_config *config = reader->config;
    struct tide_error err = {0};
    size_t other = 0;
    struct tide_pipeline_sink sink = {
        .name = name,
        .existing = draft->existing,
        .record_bytes_max = draft->record_bytes,
        .may_detach = draft->may_detach,
        .refused = draft->refused,
        .segments = draft->segments,
    };
    if (draft->place == NULL) {
        return;
    }
    if (tide_find_sink(draft->place, &sink.ops, &sink.place, &err) != TIDE_OK) {
        note_place(reader, name.ptr, "sink; write file:PATH, file:DIR/, archive:PATH, null: or -",
                   draft->place_node);
        return;
    }
    if (sink.ops->valid != NULL && sink.ops->valid(sink.place, &err) != TIDE_OK) {
        tide_mistakes_add(reader->mistakes, draft->place_node->mark, "%s: %s", name.ptr,
                          err.message);
        return;
    }
    check_segments(reader, &sink, draft->segments_item);
    if (is_taken(config, draft->place, &other)) {
        tide_mistakes_add(reader->mistakes, draft->place_node->mark,
                          "sink %s writes to the same place as sink %.*s; give each its own",
                          name.ptr, TIDE_STR_ARG(config->sinks[other].name));
        return;
    }
    config->writes_standard_output |= strcmp(draft->place, "-") == 0;
    config->sink_places[config->sink_count] = tide_str_from(draft->place);
    config->sinks[config->sink_count++] = sink;
}

static void read_sink(struct tide_config_reader *reader, const struct tide_yaml_node *key,
                      const struct tide_yaml_node *value)
{
    struct sink_draft draft = {0};
    tide_str name = tide_str_from(tide_arena_cstr(&reader->config->arena, key->text));
    if (!is_name(name)) {
        tide_config_wrong(reader, "a sink's name", NAME_TAKES, key);
        return;
    }
    draft.segments_item = find_segments_item(value);
    if (value->kind == TIDE_YAML_MAP) {
        tide_config_read_map(reader, name.ptr, value, sink_keys, COUNT(sink_keys), &draft);
    } else {
        read_sink_place(reader, &(struct tide_config_key){.name = name.ptr}, value, &draft);
    }
    add_sink(reader, name, &draft);
}

static void read_sinks(struct tide_config_reader *reader, const struct tide_config_key *key,
                       const struct tide_yaml_node *value, void *target)
{
    struct tide_config *config = target;
    if (value->kind != TIDE_YAML_MAP || value->count == 0) {
        tide_mistakes_add(reader->mistakes, value->mark,
                          "%s has no sink; name at least one, e.g. copy: file:out.ndjson",
                          key->name);
        return;
    }
    if (value->count > TIDE_LANES_MAX) {
        tide_mistakes_add(reader->mistakes, value->mark, "%zu sinks; a pipeline has at most %d",
                          value->count, TIDE_LANES_MAX);
        return;
    }
    config->sinks = tide_arena_alloc(&config->arena, value->count, sizeof(*config->sinks));
    config->sink_places =
        tide_arena_alloc(&config->arena, value->count, sizeof(*config->sink_places));
    for (const struct tide_yaml_item *item = value->first; item != NULL; item = item->next) {
        const struct tide_yaml_item *twin = tide_config_find_twin(value, item);
        if (twin != NULL) {
            struct tide_buf shown TIDE_CLEANUP(tide_buf_done) = {0};
            tide_config_quote(&shown, item->key->text);
            tide_mistakes_add(reader->mistakes, item->key->mark,
                              "two sinks are called %s; line %zu has the other",
                              tide_buf_cstr(&shown), twin->key->mark.line);
        } else {
            read_sink(reader, item->key, item->value);
        }
    }
}

#define NUMBER(key_name, field, low, high)                                                         \
    {                                                                                              \
        .name = (key_name), .read = tide_config_read_number,                                       \
        .offset = offsetof(struct tide_config, field), .min = (low), .max = (high)                 \
    }
#define SECTION(key_name, table)                                                                   \
    {                                                                                              \
        .name = (key_name), .read = tide_config_read_section, .keys = (table),                     \
        .key_count = COUNT(table)                                                                  \
    }

static const struct tide_config_key snapshot_keys[] = {
    NUMBER("chunk_rows", chunk_rows, 1, TIDE_CHUNK_ROWS_MAX),
};

static const struct tide_config_key stream_keys[] = {
    NUMBER("lane_items", lane_items, 1, TIDE_LANE_ITEMS_MAX),
    NUMBER("lane_bytes", lane_bytes, TIDE_LANE_BYTES_MIN, TIDE_LANE_BYTES_MAX),
    NUMBER("max_retained_bytes", max_retained_bytes, TIDE_LANE_BYTES_MIN, TIDE_RETAINED_BYTES_MAX),
    NUMBER("stalled_after_seconds", stalled_after_s, 1, TIDE_STALLED_AFTER_S_MAX),
    NUMBER("retry_max_seconds", retry_max_s, 1, TIDE_RETRY_MAX_S_MAX),
};

static const struct tide_config_key limits_keys[] = {
    NUMBER("record_bytes", record_bytes, TIDE_RECORD_BYTES_MIN, TIDE_RECORD_BYTES_MAX),
    NUMBER("memory_bytes", memory_bytes, TIDE_MEMORY_BYTES_MIN, TIDE_MEMORY_BYTES_MAX),
};

static const struct tide_config_key dead_letters_keys[] = {
    NUMBER("record_bytes", dead_letters.record_bytes, 1, TIDE_DEAD_LETTER_BYTES_MAX),
    NUMBER("file_bytes", dead_letters.file_bytes, TIDE_DEAD_LETTER_FILE_BYTES_MIN,
           TIDE_DEAD_LETTER_FILE_BYTES_MAX),
    NUMBER("files", dead_letters.files, TIDE_DEAD_LETTER_FILES_MIN, TIDE_DEAD_LETTER_FILES_MAX),
    {"when_full", tide_config_read_when_full, offsetof(struct tide_config, dead_letters.when_full)},
};

static const struct tide_config_key root_keys[] = {
    {"name", read_name, offsetof(struct tide_config, name),
     .missing = "name is missing; say what the pipeline is called, e.g. name: shop"},
    {"source", read_source,
     .missing = "source is missing; say what is copied, e.g. source: sqlite:shop.db"},
    {"tables", read_tables},
    {"sinks", read_sinks,
     .missing = "sinks is missing; name at least one, e.g. copy: file:out.ndjson"},
    SECTION("snapshot", snapshot_keys),
    SECTION("stream", stream_keys),
    SECTION("limits", limits_keys),
    {"state", read_state, offsetof(struct tide_config, state_dir)},
    SECTION("dead_letters", dead_letters_keys),
};

void tide_config_read_tree(struct tide_config_reader *reader, const struct tide_yaml_node *root)
{
    struct tide_config *config = reader->config;
    tide_config_read_map(reader, "a configuration", root, root_keys, COUNT(root_keys), config);
    if (config->detach_node != NULL && config->max_retained_bytes == 0) {
        tide_mistakes_add(reader->mistakes, config->detach_node->mark,
                          "when_behind: detach needs max_retained_bytes in stream: how much log "
                          "the source may keep before");
    }
    config->detach_node = NULL;
}

static const struct tide_config_key state_keys[] = {
    {"name", read_name, offsetof(struct tide_config, name),
     .missing = "name is missing; say what the pipeline is called, e.g. name: shop"},
    {"state", read_state, offsetof(struct tide_config, state_dir)},
};

static bool is_state_key(const struct tide_yaml_node *key)
{
    return tide_str_equal(key->text, TIDE_STR("name")) ||
           tide_str_equal(key->text, TIDE_STR("state"));
}

void tide_config_read_state_keys(struct tide_config_reader *reader,
                                 const struct tide_yaml_node *root)
{
    struct tide_yaml_node kept = *root;
    struct tide_yaml_item **link = &kept.first;
    for (const struct tide_yaml_item *item = root->first; item != NULL; item = item->next) {
        if (root->kind == TIDE_YAML_MAP && is_state_key(item->key)) {
            struct tide_yaml_item *copy =
                tide_arena_alloc(&reader->config->arena, 1, sizeof(*copy));
            *copy = *item;
            *link = copy;
            link = &copy->next;
        }
    }
    *link = NULL;
    tide_config_read_map(reader, "a configuration", &kept, state_keys, COUNT(state_keys),
                         reader->config);
}
