/*
 * What is to be done so that the triggers in the database are again those that its tables need, and
 * so that every pipeline learns of it: found by comparing _tidemark_tables and the triggers with
 * the schema. Only reads. Empty when nothing has happened that matters.
 */
#pragma once

#include "base/arena.h"
#include "base/status.h"
#include "source/sqlite/sqlite_install.h"
#include "source/sqlite/sqlite_installed.h"
#include "source/sqlite/sqlite_schema.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>

enum tide_sqlite_step_kind {
    TIDE_SQLITE_STEP_REMAKE, /* other triggers; the log tells all about the table */
    TIDE_SQLITE_STEP_COPY,   /* new triggers and a new number: marks so far do not count any more */
    TIDE_SQLITE_STEP_NEW,    /* the first triggers of a table that our globs choose */
    TIDE_SQLITE_STEP_JOIN,   /* it has triggers already, for other pipelines */
    TIDE_SQLITE_STEP_LEAVE,  /* our globs do not choose it any more */
    TIDE_SQLITE_STEP_GONE,   /* dropped, renamed, or of a shape that cannot be followed */
};

struct tide_sqlite_step {
    enum tide_sqlite_step_kind kind;
    int64_t number;                  /* until now; 0: none */
    tide_str name;                   /* of the table that it is about */
    struct tide_sqlite_table *table; /* as it is now, in the plan's `all`; NULL: LEAVE, GONE */
    bool is_emptied;                 /* no row of before is there any more */
    tide_str reason;                 /* part of a sentence: "it was made anew" */
};

struct tide_sqlite_plan {
    struct tide_arena arena;
    const struct tide_sqlite_choice *choice;
    struct tide_sqlite_tables all; /* of the database */
    struct tide_sqlite_present present;
    struct tide_sqlite_pipeline row; /* ours */
    int64_t canary;
    bool is_only_vacuum; /* nothing else has happened to the schema since it was known */
    struct tide_sqlite_step *steps;
    size_t count;
    size_t cap;
};

/** Makes the plan for the pipeline of `choice`, whose row is there, and for all others' tables.
 * Inside a transaction. `choice` must outlive the plan. Free with tide_sqlite_plan_done. */
tide_status tide_sqlite_plan_make(sqlite3 *db, const struct tide_sqlite_choice *choice,
                                  struct tide_sqlite_plan *ret_plan, struct tide_error *err);
void tide_sqlite_plan_done(struct tide_sqlite_plan *plan);

/** Nothing is to be done. */
bool tide_sqlite_plan_is_empty(const struct tide_sqlite_plan *plan);

/** Whether our pipeline wants the table. */
bool tide_sqlite_plan_wants(const struct tide_sqlite_plan *plan,
                            const struct tide_sqlite_table *table);
