/*
 * Puts capture into a database and takes it away.
 *
 *   _tidemark_changes   (id INTEGER PRIMARY KEY, t, op, r, k1 … kN)   the log; never empty
 *   _tidemark_tables    (t INTEGER PRIMARY KEY, name, spec)           tables that have triggers
 *   _tidemark_state     (k PRIMARY KEY, v)           source_id, format_version, schema_version
 *   _tidemark_pipelines (name PRIMARY KEY, confirmed, nonce, tables)
 *   _tidemark_canary    (v)                           one row at rowid 7, which VACUUM moves to 1
 *
 * One log serves all pipelines of a file, so a pipeline's reader meets marks of tables that are
 * not its own and passes over them. `tables` holds the numbers of the pipeline's tables as ",1,4,":
 * triggers that no pipeline wants any more go with the pipeline that wanted them last, the tables
 * with the last pipeline. A table's number is never given to another one while any pipeline is
 * left; a row of _tidemark_tables without a name only keeps its number from being given again.
 *
 * The connection must be writable and outside a transaction unless said otherwise. How long a call
 * waits for the write lock is the connection's busy_timeout.
 */
#pragma once

#include "base/arena.h"
#include "base/status.h"
#include "port/source.h"
#include "source/sqlite/sqlite_schema.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

/* The value of `format_version` in _tidemark_state. */
#define TIDE_SQLITE_FORMAT_VERSION 2

/* A row of _tidemark_pipelines. */
struct tide_sqlite_pipeline {
    tide_str name;
    int64_t confirmed;                   /* ids at or below are not needed by it */
    char nonce[TIDE_SQLITE_HEX_LEN + 1]; /* fresh at every confirm */
    tide_str tables;                     /* numbers of its tables: ",1,4," */
};

/* What an installation is, as it was read or made. */
struct tide_sqlite_installed {
    char source_id[TIDE_SQLITE_HEX_LEN + 1]; /* random, made with the first installation */
    char nonce[TIDE_SQLITE_HEX_LEN + 1];
    int64_t confirmed; /* right after install: the log's last id, where the stream starts */
    int64_t width;     /* the log has k1 … k<width> */
};

/* Whose tables, and which. Borrowed. */
struct tide_sqlite_choice {
    tide_str pipeline;
    tide_str connection; /* first part of the relations' store names */
    const tide_str *globs;
    size_t glob_count;
};

/**
 * Installs for the pipeline in one BEGIN IMMEDIATE: makes what is missing, mends triggers (see
 * sqlite_mend.h) that are not what their tables need, writes the pipeline's row anew. Tables that
 * cannot be followed are left out.
 *
 * `source_id` is the id that the source is known by already: a first installation writes it, and
 * so does one that finds the log empty. NULL: a random one, or whatever is there.
 *
 * Errors: TIDE_IO (retriable, with the source opened anew) what is there has another id, as two
 *         pipelines were first at the same time;
 *         TIDE_INVALID a glob matches nothing or nothing can be followed, or
 *         another format version is there; TIDE_TIMEOUT the write lock was not to be had in time
 *         (retriable); others from SQLite. Nothing is changed on failure.
 */
tide_status tide_sqlite_install(sqlite3 *db, const struct tide_sqlite_choice *choice,
                                const char *source_id, struct tide_sqlite_installed *ret_installed,
                                struct tide_error *err);

/**
 * Reads what is installed for `pipeline`, without changing anything; for going on from a
 * checkpoint, inside the caller's read transaction. `position` is the last id that the checkpoint
 * has. TIDE_STALE with what happened and the way on: the pipeline is not there, what is ours is
 * damaged, the log ends before `position`.
 */
tide_status tide_sqlite_installed_load(sqlite3 *db, tide_str pipeline, int64_t position,
                                       struct tide_sqlite_installed *ret_installed,
                                       struct tide_error *err);

/** True when the database has a _tidemark_pipelines table (some installation is or was there). */
tide_status tide_sqlite_is_installed(sqlite3 *db, bool *ret_is, struct tide_error *err);

/** The pipelines in the database, by name, in `arena`; none when nothing is installed. */
tide_status tide_sqlite_pipelines_read(sqlite3 *db, struct tide_arena *arena,
                                       struct tide_sqlite_pipeline **ret_pipelines,
                                       size_t *ret_count, struct tide_error *err);

/**
 * Removes the pipeline's row, and with the last row every trigger and table of ours; with an empty
 * name all at once. Works when some of our things are missing or half made. Adds to `findings` what
 * it removed and what it left; that a named pipeline was not there is a problem. Nothing of ours
 * there is fine.
 */
tide_status tide_sqlite_uninstall(sqlite3 *db, tide_str pipeline, struct tide_findings *findings,
                                  struct tide_error *err);
