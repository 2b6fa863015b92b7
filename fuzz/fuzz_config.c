/* A configuration: any bytes end in a configuration or in mistakes that have a place. */
#include "app/config/config.h"
#include "base/limits.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_config(const struct tide_config *config)
{
    TIDE_ASSERT(config->name.len > 0 && config->source_ops != NULL);
    TIDE_ASSERT(config->sink_count > 0 && config->sink_count <= TIDE_LANES_MAX);
    TIDE_ASSERT(config->glob_count <= TIDE_CONFIG_GLOBS_MAX);
    TIDE_ASSERT(config->chunk_rows > 0 && config->chunk_rows <= TIDE_CHUNK_ROWS_MAX);
    for (size_t i = 0; i < config->sink_count; i++) {
        TIDE_ASSERT(config->sinks[i].ops != NULL && config->sinks[i].name.len > 0);
        for (size_t j = 0; j < i; j++) {
            TIDE_ASSERT(!tide_str_equal(config->sinks[i].name, config->sinks[j].name));
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tide_config config TIDE_CLEANUP(tide_config_done) = {0};
    struct tide_mistakes mistakes TIDE_CLEANUP(tide_mistakes_done) = {0};
    struct tide_buf text TIDE_CLEANUP(tide_buf_done) = {0};
    struct tide_error err = {0};
    tide_status status =
        tide_config_parse("a.yaml", tide_str_of(data, size), &config, &mistakes, &err);
    TIDE_ASSERT((status == TIDE_OK) == (mistakes.count == 0));
    if (status == TIDE_OK) {
        check_config(&config);
    }
    for (size_t i = 0; i < mistakes.count && i < TIDE_MISTAKES_MAX; i++) {
        TIDE_ASSERT(mistakes.list[i].mark.line > 0 && mistakes.list[i].mark.column > 0);
    }
    tide_mistakes_print(&mistakes, "a.yaml", &text);
    TIDE_ASSERT(tide_str_is_utf8(tide_buf_str(&text)));
    return 0;
}
