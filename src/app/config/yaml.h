/*
 * A YAML document as a small tree of nodes that know where they stand in the file. What files may
 * cost is bounded before it is paid: bytes, nodes, depth, and all of these with aliases expanded.
 * Tags and a second document are refused; what a text means (number, nothing) its reader decides.
 */
#pragma once

#include "base/arena.h"
#include "base/status.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>

enum tide_yaml_kind {
    TIDE_YAML_TEXT,
    TIDE_YAML_LIST,
    TIDE_YAML_MAP,
};

/* Both count from 1, the column in characters. */
struct tide_yaml_mark {
    size_t line;
    size_t column;
};

struct tide_yaml_node;

struct tide_yaml_item {
    const struct tide_yaml_node *key; /* TEXT; NULL in a list */
    const struct tide_yaml_node *value;
    struct tide_yaml_item *next;
};

/* An alias is the node that it stands for, which then has several parents. */
struct tide_yaml_node {
    enum tide_yaml_kind kind;
    struct tide_yaml_mark mark;
    tide_str text; /* TEXT: without NUL, and with one behind it */
    bool is_quoted;
    size_t count; /* of items */
    struct tide_yaml_item *first;
    struct tide_yaml_item *last;
    size_t size;     /* nodes, this one included, aliases expanded */
    unsigned height; /* 1: nothing beneath */
};

/**
 * Parses a file's one document.
 *
 * Input:   at most TIDE_CONFIG_BYTES_MAX bytes of UTF-8.
 * Owns:    nodes and texts live in `arena`.
 * Errors:  TIDE_INVALID; where it went wrong is in `ret_mark`. Nothing else sets `ret_mark`.
 */
tide_status tide_yaml_parse(tide_str bytes, struct tide_arena *arena,
                            const struct tide_yaml_node **ret_root, struct tide_yaml_mark *ret_mark,
                            struct tide_error *err);

/** Whether it is what an empty value gives: `key:`, `key: ~` or `key: null`. */
bool tide_yaml_is_nothing(const struct tide_yaml_node *node);

/** What a node is in a message: `a list`, `keys`, `nothing`, or NULL for a text. */
const char *tide_yaml_kind_name(const struct tide_yaml_node *node);
