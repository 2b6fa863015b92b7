#include "app/config/yaml.h"

#include "base/limits.h"

#include <yaml.h>

struct anchor {
    tide_str name;
    const struct tide_yaml_node *node;
    struct anchor *next;
};

/* A list or map whose end has not come. */
struct open_node {
    struct tide_yaml_node *node;
    const struct tide_yaml_node *key; /* of a map, its value is next */
    tide_str anchor;
};

struct parse {
    yaml_parser_t parser;
    tide_str bytes;
    struct tide_arena *arena;
    struct open_node open[TIDE_YAML_DEPTH_MAX];
    unsigned depth;
    size_t node_count;
    struct anchor *anchors; /* newest first */
    size_t anchor_count;
    size_t document_count;
    const struct tide_yaml_node *root;
    struct tide_yaml_mark at; /* of what is being looked at, for failures */
};

static struct tide_yaml_mark mark_of(yaml_mark_t mark)
{
    return (struct tide_yaml_mark){.line = mark.line + 1, .column = mark.column + 1};
}

/* Where byte number `offset` stands. */
static struct tide_yaml_mark mark_at(tide_str bytes, size_t offset)
{
    struct tide_yaml_mark mark = {1, 1};
    for (size_t i = 0; i < offset && i < bytes.len; i++) {
        if (bytes.ptr[i] == '\n') {
            mark.line++;
            mark.column = 1;
        } else if (((unsigned char)bytes.ptr[i] & 0xc0u) != 0x80u) {
            mark.column++;
        }
    }
    return mark;
}

/* Whether character number `index`, counted from 0, is a tab. */
static bool is_tab_at(tide_str bytes, size_t index)
{
    size_t at = 0;
    for (size_t i = 0; i < bytes.len; i++) {
        bool is_start = ((unsigned char)bytes.ptr[i] & 0xc0u) != 0x80u;
        if (is_start && at++ == index) {
            return bytes.ptr[i] == '\t';
        }
    }
    return false;
}

static tide_status fail_not_yaml(struct parse *parse, struct tide_error *err)
{
    const yaml_parser_t *parser = &parse->parser;
    if (parser->error == YAML_READER_ERROR) {
        parse->at = mark_at(parse->bytes, parser->problem_offset);
        return tide_fail(err, TIDE_INVALID, "not YAML: %s", parser->problem);
    }
    parse->at = mark_of(parser->problem_mark);
    bool is_tab = is_tab_at(parse->bytes, parser->problem_mark.index);
    return tide_fail(
        err, TIDE_INVALID, "not YAML: %s%s%s%s%s",
        parser->problem == NULL ? "it cannot be read" : parser->problem,
        parser->context == NULL ? "" : " (", parser->context == NULL ? "" : parser->context,
        parser->context == NULL ? "" : ")", is_tab ? "; indent with spaces, not with tabs" : "");
}

static tide_status new_node(struct parse *parse, enum tide_yaml_kind kind,
                            struct tide_yaml_node **ret_node, struct tide_error *err)
{
    if (parse->node_count == TIDE_YAML_NODES_MAX) {
        return tide_fail(err, TIDE_INVALID, "more than %zu values", TIDE_YAML_NODES_MAX);
    }
    parse->node_count++;
    *ret_node = tide_arena_alloc(parse->arena, 1, sizeof(**ret_node));
    **ret_node = (struct tide_yaml_node){.kind = kind, .mark = parse->at, .size = 1, .height = 1};
    return TIDE_OK;
}

static tide_status append(struct parse *parse, struct tide_yaml_node *parent,
                          const struct tide_yaml_node *key, const struct tide_yaml_node *value,
                          struct tide_error *err)
{
    struct tide_yaml_item *item = tide_arena_alloc(parse->arena, 1, sizeof(*item));
    *item = (struct tide_yaml_item){.key = key, .value = value};
    *(parent->first == NULL ? &parent->first : &parent->last->next) = item;
    parent->last = item;
    parent->count++;
    parent->size += value->size + (key != NULL);
    if (parent->size > TIDE_YAML_NODES_MAX) {
        return tide_fail(err, TIDE_INVALID, "its aliases stand for more than %zu values",
                         TIDE_YAML_NODES_MAX);
    }
    parent->height = parent->height > value->height ? parent->height : value->height + 1;
    return TIDE_OK;
}

/* Puts a finished node where it belongs. */
static tide_status add(struct parse *parse, const struct tide_yaml_node *node,
                       struct tide_error *err)
{
    if (parse->depth == 0) {
        parse->root = node;
        return TIDE_OK;
    }
    struct open_node *open = &parse->open[parse->depth - 1];
    if (open->node->kind == TIDE_YAML_MAP && open->key == NULL) {
        if (node->kind != TIDE_YAML_TEXT) {
            parse->at = node->mark;
            return tide_fail(err, TIDE_INVALID, "a key is a word, not %s",
                             tide_yaml_kind_name(node));
        }
        open->key = node;
        return TIDE_OK;
    }
    const struct tide_yaml_node *key = open->key;
    open->key = NULL;
    return append(parse, open->node, key, node, err);
}

static tide_str keep(struct parse *parse, const yaml_char_t *name)
{
    return name == NULL ? (tide_str){0}
                        : tide_arena_str(parse->arena, tide_str_from((const char *)name));
}

static tide_status note_anchor(struct parse *parse, tide_str name,
                               const struct tide_yaml_node *node, struct tide_error *err)
{
    if (name.len == 0) {
        return TIDE_OK;
    }
    if (parse->anchor_count == TIDE_YAML_ANCHORS_MAX) {
        return tide_fail(err, TIDE_INVALID, "more than %d anchors", TIDE_YAML_ANCHORS_MAX);
    }
    parse->anchor_count++;
    struct anchor *anchor = tide_arena_alloc(parse->arena, 1, sizeof(*anchor));
    *anchor = (struct anchor){.name = name, .node = node, .next = parse->anchors};
    parse->anchors = anchor;
    return TIDE_OK;
}

static tide_status refuse_tag(const yaml_char_t *tag, struct tide_error *err)
{
    return tag == NULL ? TIDE_OK
                       : tide_fail(err, TIDE_INVALID, "a tag means nothing here; leave it out");
}

static tide_status take_text(struct parse *parse, const yaml_event_t *event, struct tide_error *err)
{
    struct tide_yaml_node *node = NULL;
    tide_str text = tide_str_of(event->data.scalar.value, event->data.scalar.length);
    TIDE_TRY(refuse_tag(event->data.scalar.tag, err));
    if (memchr(text.ptr, '\0', text.len) != NULL) {
        return tide_fail(err, TIDE_INVALID, "a text with a NUL character in it");
    }
    TIDE_TRY(new_node(parse, TIDE_YAML_TEXT, &node, err));
    TIDE_ASSERT(node != NULL);
    node->text = tide_str_of(tide_arena_cstr(parse->arena, text), text.len);
    node->is_quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    TIDE_TRY(note_anchor(parse, keep(parse, event->data.scalar.anchor), node, err));
    return add(parse, node, err);
}

static tide_status take_start(struct parse *parse, enum tide_yaml_kind kind,
                              const yaml_char_t *anchor, const yaml_char_t *tag,
                              struct tide_error *err)
{
    struct open_node open = {0};
    TIDE_TRY(refuse_tag(tag, err));
    if (parse->depth == TIDE_YAML_DEPTH_MAX) {
        return tide_fail(err, TIDE_INVALID, "nested deeper than %d levels", TIDE_YAML_DEPTH_MAX);
    }
    TIDE_TRY(new_node(parse, kind, &open.node, err));
    open.anchor = keep(parse, anchor);
    parse->open[parse->depth++] = open;
    return TIDE_OK;
}

static tide_status take_end(struct parse *parse, struct tide_error *err)
{
    TIDE_ASSERT(parse->depth > 0);
    const struct open_node *open = &parse->open[--parse->depth];
    TIDE_TRY(note_anchor(parse, open->anchor, open->node, err));
    return add(parse, open->node, err);
}

/* An anchor is known from its node's end on, so that no node can contain itself. */
static tide_status take_alias(struct parse *parse, const yaml_event_t *event,
                              struct tide_error *err)
{
    const char *name = (const char *)event->data.alias.anchor;
    const struct anchor *anchor = parse->anchors;
    while (anchor != NULL && !tide_str_equal(anchor->name, tide_str_from(name))) {
        anchor = anchor->next;
    }
    if (anchor == NULL) {
        return tide_fail(err, TIDE_INVALID, "*%.60s stands for nothing that ends before it", name);
    }
    if (parse->depth + anchor->node->height > TIDE_YAML_DEPTH_MAX) {
        return tide_fail(err, TIDE_INVALID, "nested deeper than %d levels", TIDE_YAML_DEPTH_MAX);
    }
    return add(parse, anchor->node, err);
}

static tide_status take(struct parse *parse, const yaml_event_t *event, struct tide_error *err)
{
    switch (event->type) {
    case YAML_SCALAR_EVENT:
        return take_text(parse, event, err);
    case YAML_ALIAS_EVENT:
        return take_alias(parse, event, err);
    case YAML_SEQUENCE_START_EVENT:
        return take_start(parse, TIDE_YAML_LIST, event->data.sequence_start.anchor,
                          event->data.sequence_start.tag, err);
    case YAML_MAPPING_START_EVENT:
        return take_start(parse, TIDE_YAML_MAP, event->data.mapping_start.anchor,
                          event->data.mapping_start.tag, err);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        return take_end(parse, err);
    case YAML_DOCUMENT_START_EVENT:
        if (parse->document_count++ > 0) {
            return tide_fail(err, TIDE_INVALID, "a second document; a file holds one");
        }
        return TIDE_OK;
    case YAML_NO_EVENT:
    case YAML_STREAM_START_EVENT:
    case YAML_STREAM_END_EVENT:
    case YAML_DOCUMENT_END_EVENT:
    default:
        return TIDE_OK;
    }
}

static tide_status parse_events(struct parse *parse, struct tide_error *err)
{
    for (bool is_over = false; !is_over;) {
        yaml_event_t event;
        if (yaml_parser_parse(&parse->parser, &event) == 0) {
            return fail_not_yaml(parse, err);
        }
        parse->at = mark_of(event.start_mark);
        is_over = event.type == YAML_STREAM_END_EVENT;
        tide_status status = take(parse, &event, err);
        yaml_event_delete(&event);
        TIDE_TRY(status);
    }
    return parse->root == NULL ? tide_fail(err, TIDE_INVALID, "the file is empty") : TIDE_OK;
}

static tide_status check_bytes(struct parse *parse, struct tide_error *err)
{
    size_t valid = tide_str_utf8_valid_prefix(parse->bytes);
    if (parse->bytes.len > TIDE_CONFIG_BYTES_MAX) {
        return tide_fail(err, TIDE_INVALID, "longer than %zu bytes", TIDE_CONFIG_BYTES_MAX);
    }
    if (valid < parse->bytes.len) {
        parse->at = mark_at(parse->bytes, valid);
        return tide_fail(err, TIDE_INVALID, "not UTF-8: byte 0x%02x",
                         (unsigned)(unsigned char)parse->bytes.ptr[valid]);
    }
    return TIDE_OK;
}

static tide_status parse_bytes(struct parse *parse, struct tide_error *err)
{
    TIDE_TRY(check_bytes(parse, err));
    int is_made = yaml_parser_initialize(&parse->parser);
    TIDE_ASSERT(is_made == 1); /* else memory ran out */
    yaml_parser_set_encoding(&parse->parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&parse->parser, (const unsigned char *)parse->bytes.ptr,
                                 parse->bytes.len);
    tide_status status = parse_events(parse, err);
    yaml_parser_delete(&parse->parser);
    return status;
}

tide_status tide_yaml_parse(tide_str bytes, struct tide_arena *arena,
                            const struct tide_yaml_node **ret_root, struct tide_yaml_mark *ret_mark,
                            struct tide_error *err)
{
    tide_str bom = TIDE_STR("\xef\xbb\xbf");
    size_t skipped = tide_str_starts_with(bytes, bom) ? bom.len : 0;
    struct parse parse = {.arena = arena, .at = {1, 1}};
    parse.bytes = tide_str_of(bytes.ptr + skipped, bytes.len - skipped);
    tide_status status = parse_bytes(&parse, err);
    if (status != TIDE_OK) {
        *ret_mark = parse.at;
        return status;
    }
    *ret_root = parse.root;
    return TIDE_OK;
}

bool tide_yaml_is_nothing(const struct tide_yaml_node *node)
{
    return node->kind == TIDE_YAML_TEXT && !node->is_quoted &&
           (node->text.len == 0 || tide_str_equal(node->text, TIDE_STR("~")) ||
            tide_str_equal(node->text, TIDE_STR("null")));
}

const char *tide_yaml_kind_name(const struct tide_yaml_node *node)
{
    switch (node->kind) {
    case TIDE_YAML_LIST:
        return "a list";
    case TIDE_YAML_MAP:
        return "keys";
    case TIDE_YAML_TEXT:
    default:
        return tide_yaml_is_nothing(node) ? "nothing" : NULL;
    }
}
