#include "app/config/config_map.h"

#include "app/config/nearest.h"
#include "app/config/secrets.h"
#include "app/place.h"

#include <stdio.h>

#define KEYS_MAX 16

void tide_config_quote(struct tide_buf *buf, tide_str text)
{
    struct tide_buf shown TIDE_CLEANUP(tide_buf_done) = {0};
    const char *at = text.len == 0 ? NULL : memrchr(text.ptr, '@', text.len);
    if (at == NULL || memmem(text.ptr, text.len, "://", 3) != NULL) {
        tide_place_append_shown(&shown, text);
    } else {
        tide_buf_append_str(&shown, TIDE_STR("***"));
        tide_buf_append(&shown, at, (size_t)(text.ptr + text.len - at));
    }
    tide_mistake_quote(buf, tide_buf_str(&shown));
}

void tide_config_wrong(struct tide_config_reader *reader, const char *key, const char *takes,
                       const struct tide_yaml_node *node)
{
    struct tide_buf is TIDE_CLEANUP(tide_buf_done) = {0};
    const char *kind = tide_yaml_kind_name(node);
    if (kind != NULL) {
        tide_buf_append_str(&is, tide_str_from(kind));
    } else {
        tide_config_quote(&is, node->text);
    }
    tide_mistakes_add(reader->mistakes, node->mark, "%s takes %s, not %s", key, takes,
                      tide_buf_cstr(&is));
}

const char *tide_config_text(struct tide_config_reader *reader, const char *key, const char *takes,
                             const struct tide_yaml_node *node)
{
    struct tide_error err = {0};
    struct tide_buf buf TIDE_CLEANUP(tide_buf_done) = {0};
    if (tide_yaml_kind_name(node) != NULL || node->text.len == 0) {
        tide_config_wrong(reader, key, takes, node);
        return NULL;
    }
    if (tide_secrets_expand(node->text, reader->config->dir, &buf, &err) != TIDE_OK) {
        tide_mistakes_add(reader->mistakes, node->mark, "%s: %s", key, err.message);
        return NULL;
    }
    if (buf.len == 0) {
        tide_mistakes_add(reader->mistakes, node->mark, "%s: what it names is empty", key);
        return NULL;
    }
    return tide_arena_cstr(&reader->config->arena, tide_buf_str(&buf));
}

void tide_config_read_number(struct tide_config_reader *reader, const struct tide_config_key *key,
                             const struct tide_yaml_node *value, void *target)
{
    char takes[96];
    uint64_t number = 0;
    uint64_t *number_target = target;
    (void)snprintf(takes, sizeof(takes), "a number from %llu to %llu", (unsigned long long)key->min,
                   (unsigned long long)key->max);
    const char *text = tide_config_text(reader, key->name, takes, value);
    if (text == NULL) {
        return;
    }
    if (!tide_str_to_u64(tide_str_from(text), &number) || number < key->min || number > key->max) {
        tide_config_wrong(reader, key->name, takes, value);
        return;
    }
    *number_target = number;
}

void tide_config_read_section(struct tide_config_reader *reader, const struct tide_config_key *key,
                              const struct tide_yaml_node *value, void *target)
{
    tide_config_read_map(reader, key->name, value, key->keys, key->key_count, target);
}

bool tide_config_word(struct tide_config_reader *reader, const char *key,
                      const struct tide_yaml_node *node, const char *const *words, size_t count,
                      size_t *ret_index)
{
    struct tide_buf takes TIDE_CLEANUP(tide_buf_done) = {0};
    for (size_t i = 0; i < count; i++) {
        const char *between = i == 0 ? "" : i + 1 < count ? ", " : " or ";
        tide_buf_printf(&takes, "%s%s", between, words[i]);
        if (node->kind == TIDE_YAML_TEXT && strcmp(node->text.ptr, words[i]) == 0) {
            *ret_index = i;
            return true;
        }
    }
    tide_config_wrong(reader, key, tide_buf_cstr(&takes), node);
    return false;
}

static void note_unknown(struct tide_config_reader *reader, const char *what,
                         const struct tide_yaml_node *key, const struct tide_config_key *keys,
                         size_t key_count)
{
    const char *names[KEYS_MAX];
    struct tide_buf shown TIDE_CLEANUP(tide_buf_done) = {0};
    struct tide_buf all TIDE_CLEANUP(tide_buf_done) = {0};
    for (size_t i = 0; i < key_count; i++) {
        names[i] = keys[i].name;
        tide_buf_printf(&all, "%s%s", i == 0 ? "" : ", ", keys[i].name);
    }
    tide_config_quote(&shown, key->text);
    const char *nearest = tide_nearest(key->text.ptr, names, key_count);
    if (nearest != NULL) {
        tide_mistakes_add(reader->mistakes, key->mark, "%s has no key %s; did you mean %s?", what,
                          tide_buf_cstr(&shown), nearest);
    } else {
        tide_mistakes_add(reader->mistakes, key->mark, "%s has no key %s; it has %s", what,
                          tide_buf_cstr(&shown), tide_buf_cstr(&all));
    }
}

static size_t find_key(tide_str name, const struct tide_config_key *keys, size_t key_count)
{
    size_t i = 0;
    while (i < key_count && !tide_str_equal(tide_str_from(keys[i].name), name)) {
        i++;
    }
    return i;
}

static void note_missing(struct tide_config_reader *reader, const struct tide_yaml_node *node,
                         const struct tide_config_key *keys, size_t key_count, const size_t *lines)
{
    for (size_t i = 0; i < key_count; i++) {
        if (lines[i] == 0 && keys[i].missing != NULL) {
            tide_mistakes_add(reader->mistakes, node->mark, "%s", keys[i].missing);
        }
    }
}

void tide_config_read_map(struct tide_config_reader *reader, const char *what,
                          const struct tide_yaml_node *node, const struct tide_config_key *keys,
                          size_t key_count, void *target)
{
    size_t lines[KEYS_MAX] = {0}; /* where each key was first */
    TIDE_ASSERT(key_count <= KEYS_MAX);
    if (node->kind != TIDE_YAML_MAP) {
        struct tide_buf takes TIDE_CLEANUP(tide_buf_done) = {0};
        tide_buf_append_str(&takes, TIDE_STR("keys ("));
        for (size_t i = 0; i < key_count; i++) {
            tide_buf_printf(&takes, "%s%s", i == 0 ? "" : ", ", keys[i].name);
        }
        tide_buf_append_char(&takes, ')');
        tide_config_wrong(reader, what, tide_buf_cstr(&takes), node);
        return;
    }
    for (const struct tide_yaml_item *item = node->first; item != NULL; item = item->next) {
        size_t i = find_key(item->key->text, keys, key_count);
        if (i == key_count) {
            note_unknown(reader, what, item->key, keys, key_count);
        } else if (lines[i] != 0) {
            tide_mistakes_add(reader->mistakes, item->key->mark,
                              "%s is there twice; line %zu has it too", keys[i].name, lines[i]);
        } else {
            lines[i] = item->key->mark.line;
            keys[i].read(reader, &keys[i], item->value, (char *)target + keys[i].offset);
        }
    }
    note_missing(reader, node, keys, key_count, lines);
}

const struct tide_yaml_item *tide_config_find_twin(const struct tide_yaml_node *map,
                                                   const struct tide_yaml_item *item)
{
    const struct tide_yaml_item *twin = map->first;
    while (twin != item && !tide_str_equal(twin->key->text, item->key->text)) {
        twin = twin->next;
    }
    return twin == item ? NULL : twin;
}
