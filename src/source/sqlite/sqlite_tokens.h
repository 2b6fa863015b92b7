/*
 * A small tokenizer for SQL as SQLite reads it, and what capture slices out of a schema's text:
 * the terms and the WHERE clause of an index, the default of a column. Pure: text in, slices out.
 *
 * The text comes from sqlite_schema or a PRAGMA, so it has been accepted by SQLite's own parser;
 * anything else ends in TIDE_CORRUPT or a slice that is too long, never in reading past the end.
 */
#pragma once

#include "base/arena.h"
#include "base/status.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>

enum tide_sqlite_token_kind {
    TIDE_SQLITE_TOKEN_STRING,   /* '…' */
    TIDE_SQLITE_TOKEN_NAME,     /* "…", `…` or […] */
    TIDE_SQLITE_TOKEN_WORD,     /* a keyword, bare name or number (which starts with a digit) */
    TIDE_SQLITE_TOKEN_OPERATOR, /* any other single byte */
};

struct tide_sqlite_token {
    enum tide_sqlite_token_kind kind;
    tide_str text; /* as written, with its quotes */
};

/** The next token at or after `*at`, which moves behind it; false at the end. Skips blanks and
 * comments. */
bool tide_sqlite_token_next(tide_str sql, size_t *at, struct tide_sqlite_token *ret_token);

/** True when the token is the bare word or operator `word`, letters in either case. */
bool tide_sqlite_token_is(const struct tide_sqlite_token *token, const char *word);

/** Equal as SQLite compares names: ASCII letters in either case. */
bool tide_sqlite_names_equal(tide_str a, tide_str b);

/** The name or string without its quotes, doubled ones single; words as they are. In `arena`, or a
 * slice. */
tide_str tide_sqlite_token_unquote(struct tide_arena *arena, const struct tide_sqlite_token *token);

struct tide_sqlite_index_text {
    tide_str *terms; /* source text of each term, without ASC and DESC; COLLATE is kept */
    size_t term_count;
    tide_str where; /* without the word WHERE; ptr NULL: none */
};

/**
 * Slices a CREATE INDEX statement. Errors: TIDE_CORRUPT it is none.
 * Owns: the array is `arena`'s, the slices borrow from `sql`.
 */
tide_status tide_sqlite_index_text(tide_str sql, struct tide_arena *arena,
                                   struct tide_sqlite_index_text *ret_text, struct tide_error *err);

/**
 * The expression so that it means the same in a trigger body: qualifiers ("t". in a partial
 * index's WHERE) are left out, and a "…" that is none of `names` (columns) becomes the string that
 * SQLite took it for. Everything else, comments too, is kept byte by byte. In `arena`.
 */
tide_str tide_sqlite_expression_text(tide_str text, const tide_str *names, size_t name_count,
                                     struct tide_arena *arena);

/**
 * The default of a column (dflt_value of PRAGMA table_xinfo) as an expression: a bare word and
 * "…" are strings there, TRUE and FALSE become 1 and 0, which old versions know. `ptr` NULL: NULL.
 * In `arena`.
 */
tide_str tide_sqlite_default_text(tide_str text, struct tide_arena *arena);

/** True when `sql`, a CREATE TRIGGER as sqlite_schema holds it, makes an AFTER INSERT trigger. */
bool tide_sqlite_is_after_insert(tide_str sql);
