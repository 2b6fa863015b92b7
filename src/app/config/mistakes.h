/* What is wrong in a configuration: everything of a file, a line each, in the order of the file. */
#pragma once

#include "app/config/yaml.h"
#include "base/buf.h"

#define TIDE_MISTAKES_MAX 50

struct tide_mistake {
    struct tide_yaml_mark mark;
    tide_str text;
};

struct tide_mistakes {
    struct tide_arena arena;
    struct tide_mistake list[TIDE_MISTAKES_MAX];
    size_t count; /* those past TIDE_MISTAKES_MAX are counted and not kept */
};

/** Frees what it holds; `{0}` holds nothing. For TIDE_CLEANUP too. */
void tide_mistakes_done(struct tide_mistakes *mistakes);

/** Adds one: what is wrong, and behind a semicolon what was meant or what mends it. Control
 * characters become question marks. */
void tide_mistakes_add(struct tide_mistakes *mistakes, struct tide_yaml_mark mark, const char *fmt,
                       ...) TIDE_PRINTF(3, 4);

/** Appends `file:line:column: text` lines. */
void tide_mistakes_print(const struct tide_mistakes *mistakes, const char *file,
                         struct tide_buf *buf);

/** Appends `"text"`, cut after some sixty bytes. */
void tide_mistake_quote(struct tide_buf *buf, tide_str text);
