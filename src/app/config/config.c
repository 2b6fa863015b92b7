#include "app/config/config.h"

#include "app/adapters.h"
#include "app/config/config_map.h"
#include "base/alloc.h"
#include "base/fsio.h"
#include "base/limits.h"
#include "stream/channel.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void tide_config_done(struct tide_config *config)
{
    tide_arena_done(&config->arena);
    *config = (struct tide_config){0};
}

bool tide_config_is_file(const char *argument)
{
    tide_str text = tide_str_from(argument);
    return tide_str_ends_with(text, TIDE_STR(".yaml")) ||
           tide_str_ends_with(text, TIDE_STR(".yml"));
}

static void set_file(struct tide_config *config, const char *file)
{
    const char *slash = strrchr(file, '/');
    size_t len = slash == NULL ? 0 : slash == file ? 1 : (size_t)(slash - file);
    config->file = tide_arena_cstr(&config->arena, tide_str_from(file));
    config->dir = slash == NULL ? "." : tide_arena_cstr(&config->arena, tide_str_of(file, len));
}

static void set_defaults(struct tide_config *config)
{
    config->chunk_rows = TIDE_CHUNK_ROWS_DEFAULT;
    config->lane_items = TIDE_LANE_ITEMS_DEFAULT;
    config->lane_bytes = TIDE_LANE_BYTES_DEFAULT;
    config->record_bytes = TIDE_RECORD_BYTES_DEFAULT;
    config->memory_bytes = TIDE_MEMORY_BYTES_DEFAULT;
    config->stalled_after_s = TIDE_STALLED_AFTER_US / 1000000;
    config->retry_max_s = TIDE_RETRY_MAX_US / 1000000;
    config->dead_letters = tide_dead_letter_limits_default();
}

/* The state stays where it is whatever directory the program goes to later. */
static void place_state(struct tide_config *config)
{
    struct tide_buf path TIDE_CLEANUP(tide_buf_done) = {0};
    bool is_absolute = config->state_dir != NULL && config->state_dir[0] == '/';
    if (!is_absolute && strcmp(config->dir, ".") != 0) {
        char *dir TIDE_CLEANUP(tide_free_ptr) = realpath(config->dir, NULL);
        tide_buf_printf(&path, "%s/", dir == NULL ? config->dir : dir);
    }
    if (config->state_dir != NULL) {
        tide_buf_append_str(&path, tide_str_from(config->state_dir));
    } else {
        tide_buf_printf(&path, ".tidemark/%.*s", TIDE_STR_ARG(config->name));
    }
    config->state_dir = tide_arena_cstr(&config->arena, tide_buf_str(&path));
}

static tide_status parse_keys(const char *file, tide_str bytes, struct tide_config *ret_config,
                              struct tide_mistakes *mistakes,
                              void (*read_keys)(struct tide_config_reader *reader,
                                                const struct tide_yaml_node *root),
                              struct tide_error *err)
{
    struct tide_arena arena TIDE_CLEANUP(tide_arena_done) = {0};
    const struct tide_yaml_node *root = NULL;
    struct tide_yaml_mark mark = {0};
    set_file(ret_config, file);
    set_defaults(ret_config);
    if (tide_yaml_parse(bytes, &arena, &root, &mark, err) != TIDE_OK) {
        tide_mistakes_add(mistakes, mark, "%s", err->message);
    } else {
        struct tide_config_reader reader = {.config = ret_config, .mistakes = mistakes};
        read_keys(&reader, root);
        place_state(ret_config);
    }
    if (mistakes->count > 0) {
        return tide_fail(err, TIDE_INVALID, "%s has %zu mistake%s", file, mistakes->count,
                         mistakes->count == 1 ? "" : "s");
    }
    return TIDE_OK;
}

tide_status tide_config_parse(const char *file, tide_str bytes, struct tide_config *ret_config,
                              struct tide_mistakes *mistakes, struct tide_error *err)
{
    return parse_keys(file, bytes, ret_config, mistakes, tide_config_read_tree, err);
}

static tide_status read_bytes(const char *file, struct tide_buf *bytes, struct tide_error *err)
{
    tide_status status = tide_file_read(file, TIDE_CONFIG_BYTES_MAX, bytes, err);
    return status == TIDE_CORRUPT
               ? tide_fail(err, TIDE_INVALID, "%s is longer than %zu bytes: no configuration", file,
                           TIDE_CONFIG_BYTES_MAX)
               : status;
}

tide_status tide_config_read(const char *file, struct tide_config *ret_config,
                             struct tide_mistakes *mistakes, struct tide_error *err)
{
    struct tide_buf bytes TIDE_CLEANUP(tide_buf_done) = {0};
    TIDE_TRY(read_bytes(file, &bytes, err));
    return tide_config_parse(file, tide_buf_str(&bytes), ret_config, mistakes, err);
}

static void say_mistakes(const struct tide_mistakes *mistakes, const char *file)
{
    struct tide_buf text TIDE_CLEANUP(tide_buf_done) = {0};
    tide_mistakes_print(mistakes, file, &text);
    (void)fputs(tide_buf_cstr(&text), stderr);
}

tide_status tide_config_state_dir(const char *file, struct tide_buf *dir, struct tide_error *err)
{
    struct tide_config config TIDE_CLEANUP(tide_config_done) = {0};
    struct tide_mistakes mistakes TIDE_CLEANUP(tide_mistakes_done) = {0};
    struct tide_buf bytes TIDE_CLEANUP(tide_buf_done) = {0};
    TIDE_TRY(read_bytes(file, &bytes, err));
    tide_status status = parse_keys(file, tide_buf_str(&bytes), &config, &mistakes,
                                    tide_config_read_state_keys, err);
    say_mistakes(&mistakes, file);
    TIDE_TRY(status);
    tide_buf_append_str(dir, tide_str_from(config.state_dir));
    return TIDE_OK;
}

tide_status tide_config_load(const char *file, struct tide_config *ret_config,
                             struct tide_error *err)
{
    struct tide_mistakes mistakes TIDE_CLEANUP(tide_mistakes_done) = {0};
    tide_status status = tide_config_read(file, ret_config, &mistakes, err);
    say_mistakes(&mistakes, file);
    TIDE_TRY(status);
    if (chdir(ret_config->dir) != 0) {
        return tide_fail(err, TIDE_IO, "cannot go to %s: %s", ret_config->dir, strerror(errno));
    }
    return TIDE_OK;
}

const char *tide_config_file_name(const struct tide_config *config)
{
    const char *slash = strrchr(config->file, '/');
    return slash == NULL ? config->file : slash + 1;
}

tide_status tide_config_pipeline(const struct tide_config *config,
                                 struct tide_pipeline_options *ret_options, struct tide_error *err)
{
    struct tide_channel_options lanes = {.lane_items = config->lane_items,
                                         .lane_bytes = config->lane_bytes};
    struct tide_stream *stream = NULL;
    TIDE_TRY(tide_channel_new(&lanes, &stream, err));
    *ret_options = (struct tide_pipeline_options){
        .source_ops = config->source_ops,
        .source_place = config->source_place,
        .source_shown = config->source_shown,
        .connection = tide_connection_name(config->source_place),
        .globs = config->globs,
        .glob_count = config->glob_count,
        .sinks = config->sinks,
        .sink_count = config->sink_count,
        .stream = stream,
        .state_dir = config->state_dir,
        .name = config->name,
        .copy = {.chunk_rows_max = config->chunk_rows},
        .memory_bytes = config->memory_bytes,
        .record_bytes_max = config->record_bytes,
        .is_service = true,
        .max_retained_bytes = config->max_retained_bytes,
        .stalled_after_us = (int64_t)config->stalled_after_s * 1000000,
        .retry_max_us = (int64_t)config->retry_max_s * 1000000,
        .dead_letters = config->dead_letters,
    };
    return TIDE_OK;
}
