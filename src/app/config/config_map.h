/* Reading nodes of a configuration with every mistake noted: maps by a table of keys, texts,
 * numbers, words. Nobody but config*.c includes this. */
#pragma once

#include "app/config/config.h"

/* What is being read. */
struct tide_config_reader {
    struct tide_config *config;
    struct tide_mistakes *mistakes;
};

/* A key that a map may have. */
struct tide_config_key {
    const char *name;
    /* Notes what is wrong itself. `target` is what the map fills, at the key's offset. */
    void (*read)(struct tide_config_reader *reader, const struct tide_config_key *key,
                 const struct tide_yaml_node *value, void *target);
    size_t offset;
    const char *missing; /* not NULL: must be there; what is said when it is not */
    uint64_t min;        /* bounds of a number */
    uint64_t max;
    const struct tide_config_key *keys; /* of a section */
    size_t key_count;
};

/* Values of `read`: a number within the key's bounds, into a uint64_t; keys in a map of their own,
 * into the same target. */
void tide_config_read_number(struct tide_config_reader *reader, const struct tide_config_key *key,
                             const struct tide_yaml_node *value, void *target);
void tide_config_read_section(struct tide_config_reader *reader, const struct tide_config_key *key,
                              const struct tide_yaml_node *value, void *target);

/** Reads a map whose keys are known. `what` names it in messages. Unknown and repeated keys, and
 * missing ones, are noted. */
void tide_config_read_map(struct tide_config_reader *reader, const char *what,
                          const struct tide_yaml_node *node, const struct tide_config_key *keys,
                          size_t key_count, void *target);

/** A text with what it names expanded, in the arena; NULL when a mistake was noted. `takes` says
 * what the key takes: "a place, e.g. sqlite:shop.db". */
const char *tide_config_text(struct tide_config_reader *reader, const char *key, const char *takes,
                             const struct tide_yaml_node *node);

/** The index of the node's text among `words`; false when a mistake was noted. */
bool tide_config_word(struct tide_config_reader *reader, const char *key,
                      const struct tide_yaml_node *node, const char *const *words, size_t count,
                      size_t *ret_index);

/** Notes that `key` takes something else than what is there. */
void tide_config_wrong(struct tide_config_reader *reader, const char *key, const char *takes,
                       const struct tide_yaml_node *node);

/** Appends a text of the file in quotes, cut short, what may be a password masked: also that of a
 * URL with a typing error in its beginning. */
void tide_config_quote(struct tide_buf *buf, tide_str text);

/** The item of a map before `item` that has the same key; NULL: none has. */
const struct tide_yaml_item *tide_config_find_twin(const struct tide_yaml_node *map,
                                                   const struct tide_yaml_item *item);

/* Values of `read` of their own: into a struct tide_refused_policy, and what to do when the dead
 * letters are full, into an enum tide_dead_letters_full. */
void tide_config_read_refused(struct tide_config_reader *reader, const struct tide_config_key *key,
                              const struct tide_yaml_node *value, void *target);
void tide_config_read_when_full(struct tide_config_reader *reader,
                                const struct tide_config_key *key,
                                const struct tide_yaml_node *value, void *target);

/** Reads the whole tree into the reader's configuration. */
void tide_config_read_tree(struct tide_config_reader *reader, const struct tide_yaml_node *root);

/** Only what says where the state is; whatever stands in the other keys. */
void tide_config_read_state_keys(struct tide_config_reader *reader,
                                 const struct tide_yaml_node *root);
