/* What the files of the PostgreSQL source share. Nobody else includes this. */
#pragma once

#include "port/source.h"
#include "source/postgres/pg_follow.h"
#include "source/postgres/pg_known.h"
#include "source/postgres/pg_prepare.h"
#include "source/postgres/pg_relations.h"
#include "source/postgres/pg_stream.h"

struct tide_source {
    struct tide_arena arena; /* of the options' copy */
    struct tide_source_options options;
    struct tide_pg_conn *conn; /* normal; NULL: lost */
    struct tide_pg_server server;
    char name[TIDE_PG_NAME_SIZE]; /* of slot and publication */
    struct tide_pg_tables tables; /* as prepare found them; before: the last tables() */
    struct tide_pg_tables looked; /* as they are now; empty: as prepare found them */
    int64_t looked_at_us;
    const struct tide_relation **relations; /* what tables() returned */

    bool is_prepared;
    struct tide_pg_state state;
    struct tide_pg_known known;
    struct tide_pg_relations *in_force;
    struct tide_pg_follow follow;
    struct tide_pg_stream *stream;
    uint64_t epoch;
    struct tide_position confirmed;
    uint64_t log_end;        /* as the stream has told */
    int64_t session_look_us; /* when to look at the idle connection next */
};

/** The normal connection, made again when it was lost. */
tide_status tide_pg_source_connect(struct tide_source *source, struct tide_error *err);

/* postgres_tables.c */

/** Reads what the patterns choose, for prepare and before it. */
tide_status tide_pg_source_read_tables(struct tide_source *source, struct tide_error *err);

/** As `tables` of the port: once prepared, the tables of then, in the shape they have now. */
tide_status tide_pg_source_tables(struct tide_source *source,
                                  const struct tide_relation *const **ret_tables, size_t *ret_count,
                                  struct tide_error *err);
