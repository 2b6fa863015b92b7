/* What a sink's `refused` says: one action, or one for tables that globs choose and a default. */
#include "app/config/config_map.h"
#include "port/refusals.h"

#include <stddef.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define RULES_MAX    256

static bool read_action(struct tide_config_reader *reader, const char *key,
                        const struct tide_yaml_node *value, enum tide_refused *ret_action)
{
    const char *words[TIDE_REFUSED_SKIP + 1];
    size_t index = 0;
    for (size_t i = 0; i < COUNT(words); i++) {
        words[i] = tide_refused_name((enum tide_refused)i);
    }
    if (!tide_config_word(reader, key, value, words, COUNT(words), &index)) {
        return false;
    }
    *ret_action = (enum tide_refused)index;
    return true;
}

static void read_default(struct tide_config_reader *reader, const struct tide_config_key *key,
                         const struct tide_yaml_node *value, void *target)
{
    struct tide_refused_policy *policy = target;
    (void)read_action(reader, key->name, value, &policy->otherwise);
}

/* False when the glob is there twice: the second could never count. */
static bool check_twin(struct tide_config_reader *reader, const struct tide_yaml_node *map,
                       const struct tide_yaml_item *item)
{
    struct tide_buf shown TIDE_CLEANUP(tide_buf_done) = {0};
    const struct tide_yaml_item *twin = tide_config_find_twin(map, item);
    if (twin == NULL) {
        return true;
    }
    tide_config_quote(&shown, item->key->text);
    tide_mistakes_add(reader->mistakes, item->key->mark, "%s is there twice; line %zu has it too",
                      tide_buf_cstr(&shown), twin->key->mark.line);
    return false;
}

static void read_rule(struct tide_config_reader *reader, const struct tide_yaml_item *item,
                      struct tide_refused_rule *rules, size_t *count)
{
    enum tide_refused action = TIDE_REFUSED_DEAD_LETTER;
    const char *glob =
        tide_config_text(reader, "refused", "globs of tables, e.g. orders or log_*", item->key);
    if (glob != NULL && read_action(reader, glob, item->value, &action)) {
        rules[(*count)++] =
            (struct tide_refused_rule){.glob = tide_str_from(glob), .action = action};
    }
}

static void read_tables(struct tide_config_reader *reader, const struct tide_config_key *key,
                        const struct tide_yaml_node *value, void *target)
{
    struct tide_refused_policy *policy = target;
    if (value->kind == TIDE_YAML_MAP && value->count == 0) {
        tide_mistakes_add(reader->mistakes, value->mark,
                          "%s is empty; leave it out to treat all tables alike", key->name);
        return;
    }
    if (value->kind != TIDE_YAML_MAP) {
        tide_config_wrong(reader, key->name,
                          "globs and what to do, e.g. {orders: stop, log_*: skip}", value);
        return;
    }
    if (value->count > RULES_MAX) {
        tide_mistakes_add(reader->mistakes, value->mark, "more than %d globs; use * and ? in fewer",
                          RULES_MAX);
        return;
    }
    struct tide_refused_rule *rules =
        tide_arena_alloc(&reader->config->arena, value->count, sizeof(*rules));
    for (const struct tide_yaml_item *item = value->first; item != NULL; item = item->next) {
        if (check_twin(reader, value, item)) {
            read_rule(reader, item, rules, &policy->rule_count);
        }
    }
    policy->rules = rules;
}

static const struct tide_config_key refused_keys[] = {
    {"default", read_default},
    {"tables", read_tables},
};

void tide_config_read_refused(struct tide_config_reader *reader, const struct tide_config_key *key,
                              const struct tide_yaml_node *value, void *target)
{
    struct tide_refused_policy *policy = target;
    if (value->kind == TIDE_YAML_MAP) {
        tide_config_read_map(reader, key->name, value, refused_keys, COUNT(refused_keys), policy);
    } else {
        (void)read_action(reader, key->name, value, &policy->otherwise);
    }
}

void tide_config_read_when_full(struct tide_config_reader *reader,
                                const struct tide_config_key *key,
                                const struct tide_yaml_node *value, void *target)
{
    static const char *const words[] = {
        [TIDE_DEAD_LETTERS_STOP] = "stop",
        [TIDE_DEAD_LETTERS_DROP_OLDEST] = "drop_oldest",
    };
    enum tide_dead_letters_full *when_full = target;
    size_t index = 0;
    if (tide_config_word(reader, key->name, value, words, COUNT(words), &index)) {
        *when_full = (enum tide_dead_letters_full)index;
    }
}
