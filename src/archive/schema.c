#include "archive/schema.h"

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "archive/archive_db.h"

static const char tables_sql[] =
    "CREATE TABLE sources ("
    "id INTEGER PRIMARY KEY, labels TEXT NOT NULL, metadata TEXT NOT NULL, "
    "complete INTEGER NOT NULL DEFAULT 0, clock_anchor_wall_ns INTEGER NOT NULL, uuid TEXT, "
    "heartbeat INTEGER, heartbeat_interval_ns INTEGER);"
    "CREATE TABLE segments ("
    "source_id INTEGER NOT NULL REFERENCES sources(id), stream TEXT NOT NULL, "
    "seq INTEGER NOT NULL, rows INTEGER NOT NULL, first_ts INTEGER NOT NULL, "
    "last_ts INTEGER NOT NULL, bytes BLOB NOT NULL, caller_index BLOB, "
    "PRIMARY KEY (source_id, stream, seq));"
    "CREATE INDEX segments_by_time ON segments (source_id, stream, last_ts);"
    "CREATE TABLE wal ("
    "source_id INTEGER NOT NULL REFERENCES sources(id), stream TEXT NOT NULL, "
    "ts INTEGER NOT NULL, wall_offset INTEGER NOT NULL, row BLOB NOT NULL, "
    "PRIMARY KEY (source_id, stream, ts));"
    "CREATE TABLE clock_offsets ("
    "source_id INTEGER NOT NULL REFERENCES sources(id), ts INTEGER NOT NULL, "
    "offset_ns INTEGER NOT NULL, PRIMARY KEY (source_id, ts));"
    "CREATE TABLE caller_rows ("
    "source_id INTEGER NOT NULL REFERENCES sources(id), stream TEXT NOT NULL, "
    "ts INTEGER NOT NULL, blob BLOB NOT NULL);"
    "CREATE INDEX caller_rows_by_time ON caller_rows (source_id, stream, ts);"
    "PRAGMA application_id = 0x64656e64;"
    "PRAGMA user_version = 4";

tide_status tide_archive_schema_create(struct tide_archive *archive, struct tide_error *err)
{
    int rc = sqlite3_exec(archive->db, tables_sql, NULL, NULL, NULL);
    return rc == SQLITE_OK ? TIDE_OK : tide_archive_fail(archive, rc, err);
}

struct optional {
    const char *table;
    const char *column;
    const char *add_sql;
    size_t flag; /* its place in struct tide_archive */
};

static const struct optional optionals[] = {
    {"sources", "uuid", "ALTER TABLE sources ADD COLUMN uuid TEXT",
     offsetof(struct tide_archive, has_uuid)},
    {"sources", "heartbeat", "ALTER TABLE sources ADD COLUMN heartbeat INTEGER",
     offsetof(struct tide_archive, has_heartbeat)},
    {"sources", "heartbeat_interval_ns",
     "ALTER TABLE sources ADD COLUMN heartbeat_interval_ns INTEGER",
     offsetof(struct tide_archive, has_heartbeat_interval)},
    {"segments", "caller_index", "ALTER TABLE segments ADD COLUMN caller_index BLOB",
     offsetof(struct tide_archive, has_caller_index)},
};
#define OPTIONALS (sizeof(optionals) / sizeof(optionals[0]))

static bool *flag_of(struct tide_archive *archive, const struct optional *optional)
{
    return (bool *)((char *)archive + optional->flag);
}

/* Every table with the columns that it must have. */
static const char *const needed[][9] = {
    {"sources", "id", "labels", "metadata", "complete", "clock_anchor_wall_ns"},
    {"segments", "source_id", "stream", "seq", "rows", "first_ts", "last_ts", "bytes"},
    {"wal", "source_id", "stream", "ts", "wall_offset", "row"},
    {"clock_offsets", "source_id", "ts", "offset_ns"},
    {"caller_rows", "source_id", "stream", "ts", "blob"},
};

static tide_status has_column(struct tide_archive *archive, const char *table, const char *column,
                              bool *ret_has, struct tide_error *err)
{
    bool is_any = false;
    int64_t ignored = 0;
    TIDE_TRY(tide_archive_ask(archive, err, &is_any, &ignored,
                              "SELECT 1 FROM pragma_table_info(?1) WHERE name = ?2", "tt",
                              tide_str_from(table), tide_str_from(column)));
    *ret_has = is_any;
    return TIDE_OK;
}

static tide_status require_column(struct tide_archive *archive, const char *table,
                                  const char *column, struct tide_error *err)
{
    bool has = false;
    TIDE_TRY(has_column(archive, table, column, &has, err));
    if (has) {
        return TIDE_OK;
    }
    char what[128];
    (void)snprintf(what, sizeof(what), "its table %s has no column %s, which every archive has",
                   table, column);
    return tide_archive_corrupt(archive, what, err);
}

tide_status tide_archive_schema_probe(struct tide_archive *archive, struct tide_error *err)
{
    for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++) {
        for (size_t at = 1; needed[i][at] != NULL; at++) {
            TIDE_TRY(require_column(archive, needed[i][0], needed[i][at], err));
        }
    }
    for (size_t i = 0; i < OPTIONALS; i++) {
        TIDE_TRY(has_column(archive, optionals[i].table, optionals[i].column,
                            flag_of(archive, &optionals[i]), err));
    }
    return TIDE_OK;
}

tide_status tide_archive_schema_complete(struct tide_archive *archive, struct tide_error *err)
{
    bool is_complete = true;
    for (size_t i = 0; i < OPTIONALS; i++) {
        is_complete = is_complete && *flag_of(archive, &optionals[i]);
    }
    if (is_complete) {
        return TIDE_OK;
    }
    TIDE_CLEANUP(tide_archive_rollback) struct tide_archive *open = archive;
    TIDE_TRY(tide_archive_begin(archive, err));
    for (size_t i = 0; i < OPTIONALS; i++) {
        if (!*flag_of(archive, &optionals[i])) {
            TIDE_TRY(tide_archive_run(archive, err, optionals[i].add_sql, ""));
        }
    }
    TIDE_TRY(tide_archive_commit(open, err));
    return tide_archive_schema_probe(archive, err);
}
