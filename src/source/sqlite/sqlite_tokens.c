#include "source/sqlite/sqlite_tokens.h"

#include "base/buf.h"
#include "source/sqlite/sqlite_db.h"

#include <strings.h>

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Bytes over 127 are parts of names. */
static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_' ||
           c == '$' || ((unsigned char)c & 0x80) != 0;
}

/* Behind the blank or comment at `at`, or `at` when there is neither. */
static size_t skip_one(tide_str sql, size_t at)
{
    if (is_blank(sql.ptr[at])) {
        return at + 1;
    }
    tide_str rest = {sql.ptr + at, sql.len - at};
    if (tide_str_starts_with(rest, TIDE_STR("--"))) {
        const char *end = memchr(rest.ptr, '\n', rest.len);
        return end == NULL ? sql.len : (size_t)(end - sql.ptr) + 1;
    }
    if (tide_str_starts_with(rest, TIDE_STR("/*"))) {
        const char *end = memmem(rest.ptr + 2, rest.len - 2, "*/", 2);
        return end == NULL ? sql.len : (size_t)(end - sql.ptr) + 2;
    }
    return at;
}

/* Behind the closing quote; a doubled quote does not close. */
static size_t quoted_end(tide_str sql, size_t at, char quote)
{
    for (size_t i = at + 1; i < sql.len; i++) {
        if (sql.ptr[i] != quote) {
            continue;
        }
        if (quote != ']' && i + 1 < sql.len && sql.ptr[i + 1] == quote) {
            i++;
            continue;
        }
        return i + 1;
    }
    return sql.len;
}

static size_t word_end(tide_str sql, size_t at)
{
    bool is_number = is_digit(sql.ptr[at]);
    while (at < sql.len && (is_word(sql.ptr[at]) || (is_number && sql.ptr[at] == '.'))) {
        at++;
    }
    return at;
}

bool tide_sqlite_token_next(tide_str sql, size_t *at, struct tide_sqlite_token *ret_token)
{
    size_t start = *at;
    for (size_t next = start; start < sql.len; start = next) {
        next = skip_one(sql, start);
        if (next == start) {
            break;
        }
    }
    if (start >= sql.len) {
        *at = sql.len;
        return false;
    }
    char c = sql.ptr[start];
    size_t end = start + 1;
    enum tide_sqlite_token_kind kind = TIDE_SQLITE_TOKEN_OPERATOR;
    if (c == '\'' || c == '"' || c == '`' || c == '[') {
        kind = c == '\'' ? TIDE_SQLITE_TOKEN_STRING : TIDE_SQLITE_TOKEN_NAME;
        end = quoted_end(sql, start, (char)(c == '[' ? ']' : c));
    } else if (is_word(c)) {
        kind = TIDE_SQLITE_TOKEN_WORD;
        end = word_end(sql, start);
    }
    *ret_token = (struct tide_sqlite_token){kind, {sql.ptr + start, end - start}};
    *at = end;
    return true;
}

bool tide_sqlite_names_equal(tide_str a, tide_str b)
{
    /* strncasecmp follows the locale; the program never sets one, so letters are ASCII. */
    return a.len == b.len && (a.len == 0 || strncasecmp(a.ptr, b.ptr, a.len) == 0);
}

bool tide_sqlite_token_is(const struct tide_sqlite_token *token, const char *word)
{
    return (token->kind == TIDE_SQLITE_TOKEN_WORD || token->kind == TIDE_SQLITE_TOKEN_OPERATOR) &&
           tide_sqlite_names_equal(token->text, tide_str_from(word));
}

tide_str tide_sqlite_token_unquote(struct tide_arena *arena, const struct tide_sqlite_token *token)
{
    tide_str text = token->text;
    bool is_quoted =
        token->kind == TIDE_SQLITE_TOKEN_STRING || token->kind == TIDE_SQLITE_TOKEN_NAME;
    if (!is_quoted || text.len < 2) {
        return text;
    }
    tide_str inner = {text.ptr + 1, text.len - 2};
    char quote = text.ptr[0];
    if (quote == '[' || memchr(inner.ptr, quote, inner.len) == NULL) {
        return inner;
    }
    char *out = tide_arena_bytes(arena, inner.len);
    size_t len = 0;
    for (size_t i = 0; i < inner.len; i++) {
        out[len++] = inner.ptr[i];
        i += inner.ptr[i] == quote; /* the second of a pair */
    }
    return (tide_str){out, len};
}

/* A slice that grows from its first to its last token. */
struct span {
    const char *start;
    const char *end;
};

static void span_add(struct span *span, const struct tide_sqlite_token *token)
{
    if (span->start == NULL) {
        span->start = token->text.ptr;
    }
    span->end = token->text.ptr + token->text.len;
}

static tide_str span_str(struct span span)
{
    return (tide_str){span.start, (size_t)(span.end - span.start)};
}

static size_t count_terms_max(tide_str sql)
{
    size_t count = 1;
    for (size_t i = 0; i < sql.len; i++) {
        count += sql.ptr[i] == ',';
    }
    return count;
}

static bool find_open(tide_str sql, size_t *at)
{
    struct tide_sqlite_token token;
    while (tide_sqlite_token_next(sql, at, &token)) {
        if (tide_sqlite_token_is(&token, "(")) {
            return true;
        }
    }
    return false;
}

/* Reads one term up to its comma or the closing parenthesis, which `ret_is_last` tells apart. */
static bool read_term(tide_str sql, size_t *at, tide_str *ret_term, bool *ret_is_last)
{
    struct span span = {0};
    size_t depth = 0;
    struct tide_sqlite_token token;
    while (tide_sqlite_token_next(sql, at, &token)) {
        bool is_close = tide_sqlite_token_is(&token, ")");
        if (depth == 0 && (is_close || tide_sqlite_token_is(&token, ","))) {
            *ret_term = span_str(span);
            *ret_is_last = is_close;
            return span.start != NULL;
        }
        depth += tide_sqlite_token_is(&token, "(");
        depth -= is_close;
        bool is_order = tide_sqlite_token_is(&token, "ASC") || tide_sqlite_token_is(&token, "DESC");
        if (depth > 0 || !is_order) {
            span_add(&span, &token);
        }
    }
    return false;
}

static tide_str read_where(tide_str sql, size_t at)
{
    struct tide_sqlite_token token;
    if (!tide_sqlite_token_next(sql, &at, &token) || !tide_sqlite_token_is(&token, "WHERE")) {
        return (tide_str){NULL, 0};
    }
    struct span span = {0};
    while (tide_sqlite_token_next(sql, &at, &token)) {
        span_add(&span, &token);
    }
    return span_str(span);
}

tide_status tide_sqlite_index_text(tide_str sql, struct tide_arena *arena,
                                   struct tide_sqlite_index_text *ret_text, struct tide_error *err)
{
    size_t at = 0;
    struct tide_sqlite_index_text text = {0};
    bool is_last = !find_open(sql, &at);
    bool is_good = !is_last;
    text.terms = tide_arena_alloc(arena, count_terms_max(sql), sizeof(*text.terms));
    while (is_good && !is_last) {
        is_good = read_term(sql, &at, &text.terms[text.term_count], &is_last);
        text.term_count++;
    }
    if (!is_good) {
        return tide_fail(err, TIDE_CORRUPT,
                         "the schema holds an index that is no CREATE INDEX: %.*s",
                         (int)(sql.len < 200 ? sql.len : 200), sql.ptr);
    }
    text.where = read_where(sql, at);
    *ret_text = text;
    return TIDE_OK;
}

static bool is_one_of(tide_str name, const tide_str *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (tide_sqlite_names_equal(name, names[i])) {
            return true;
        }
    }
    return false;
}

static bool is_rowid_name(tide_str name)
{
    static const tide_str names[] = {{"_rowid_", 7}, {"rowid", 5}, {"oid", 3}};
    return is_one_of(name, names, 3);
}

/* Where a "…" is a string: not a column, and nothing beside it makes it another kind of name. */
static bool is_string_by_misspelling(const struct tide_sqlite_token *before,
                                     const struct tide_sqlite_token *token, tide_str rest,
                                     tide_str name, const tide_str *names, size_t name_count)
{
    if (token->kind != TIDE_SQLITE_TOKEN_NAME || token->text.ptr[0] != '"' ||
        tide_sqlite_token_is(before, "COLLATE") || tide_sqlite_token_is(before, "AS")) {
        return false;
    }
    struct tide_sqlite_token after;
    size_t at = 0;
    if (tide_sqlite_token_next(rest, &at, &after) && tide_sqlite_token_is(&after, "(")) {
        return false;
    }
    return !is_rowid_name(name) && !is_one_of(name, names, name_count);
}

static bool is_qualifier(const struct tide_sqlite_token *token, tide_str rest)
{
    struct tide_sqlite_token after;
    size_t at = 0;
    return (token->kind == TIDE_SQLITE_TOKEN_NAME || token->kind == TIDE_SQLITE_TOKEN_WORD) &&
           tide_sqlite_token_next(rest, &at, &after) && tide_sqlite_token_is(&after, ".");
}

tide_str tide_sqlite_expression_text(tide_str text, const tide_str *names, size_t name_count,
                                     struct tide_arena *arena)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf out = {0};
    struct tide_sqlite_token before = {TIDE_SQLITE_TOKEN_OPERATOR, TIDE_STR("")};
    struct tide_sqlite_token token;
    size_t copied = 0; /* what lies before it is in `out`, or left out */
    for (size_t at = 0; tide_sqlite_token_next(text, &at, &token); before = token) {
        tide_str rest = {text.ptr + at, text.len - at};
        size_t start = at - token.text.len;
        tide_str name = tide_sqlite_token_unquote(arena, &token);
        if (is_qualifier(&token, rest)) {
            tide_buf_append(&out, text.ptr + copied, start - copied);
            (void)tide_sqlite_token_next(text, &at, &token); /* the dot */
            copied = at;
        } else if (is_string_by_misspelling(&before, &token, rest, name, names, name_count)) {
            tide_buf_append(&out, text.ptr + copied, start - copied);
            tide_sqlite_append_text(&out, name);
            copied = at;
        }
    }
    tide_buf_append(&out, text.ptr + copied, text.len - copied);
    return tide_arena_str(arena, tide_buf_str(&out));
}

static tide_str quoted(tide_str name, struct tide_arena *arena)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf buf = {0};
    tide_sqlite_append_text(&buf, name);
    return tide_arena_str(arena, tide_buf_str(&buf));
}

/* A default that is one word. */
static tide_str word_default(const struct tide_sqlite_token *token, struct tide_arena *arena)
{
    static const char *const kept[] = {"CURRENT_TIME", "CURRENT_DATE", "CURRENT_TIMESTAMP"};
    for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
        if (tide_sqlite_token_is(token, kept[i])) {
            return tide_arena_str(arena, token->text);
        }
    }
    if (tide_sqlite_token_is(token, "NULL")) {
        return (tide_str){NULL, 0};
    }
    if (tide_sqlite_token_is(token, "TRUE") || tide_sqlite_token_is(token, "FALSE")) {
        return tide_sqlite_token_is(token, "TRUE") ? TIDE_STR("1") : TIDE_STR("0");
    }
    bool is_number = is_digit(token->text.ptr[0]);
    return is_number ? tide_arena_str(arena, token->text) : quoted(token->text, arena);
}

tide_str tide_sqlite_default_text(tide_str text, struct tide_arena *arena)
{
    struct tide_sqlite_token token;
    struct tide_sqlite_token second;
    size_t at = 0;
    if (text.ptr == NULL || !tide_sqlite_token_next(text, &at, &token)) {
        return (tide_str){NULL, 0};
    }
    if (tide_sqlite_token_next(text, &at, &second) || token.kind == TIDE_SQLITE_TOKEN_OPERATOR) {
        return tide_sqlite_expression_text(text, NULL, 0, arena);
    }
    if (token.kind == TIDE_SQLITE_TOKEN_NAME) {
        return quoted(tide_sqlite_token_unquote(arena, &token), arena);
    }
    if (token.kind == TIDE_SQLITE_TOKEN_WORD) {
        return word_default(&token, arena);
    }
    return tide_arena_str(arena, token.text);
}

bool tide_sqlite_is_after_insert(tide_str sql)
{
    /* CREATE TRIGGER name AFTER INSERT; the stored text has neither schema nor IF NOT EXISTS. */
    struct tide_sqlite_token tokens[5];
    size_t at = 0;
    for (size_t i = 0; i < 5; i++) {
        if (!tide_sqlite_token_next(sql, &at, &tokens[i])) {
            return false;
        }
    }
    return tide_sqlite_token_is(&tokens[3], "AFTER") && tide_sqlite_token_is(&tokens[4], "INSERT");
}
