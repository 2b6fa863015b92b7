/*
 * What the server is, and what following needs in it: a publication and a logical slot, both
 * called tidemark_<pipeline>. All calls take a normal connection.
 */
#pragma once

#include "source/postgres/pg_catalogue.h"
#include "source/postgres/pg_conn.h"

/* Bytes of a name in PostgreSQL, with NUL. */
#define TIDE_PG_NAME_SIZE 64

#define TIDE_PG_PREFIX "tidemark_"

struct tide_pg_server {
    int version; /* 150018 for 15.18 */
    uint64_t system_identifier;
    uint32_t timeline;
    uint32_t database_oid;
    char database[TIDE_PG_NAME_SIZE];
    char user[TIDE_PG_NAME_SIZE];
    int64_t started_us; /* pg_postmaster_start_time, microseconds since 1970 */
    bool is_in_recovery;
    char wal_level[16];
    uint32_t slots_max;
    uint32_t slots_used;
    uint32_t senders_max;
    uint32_t senders_used;
    bool is_superuser;
    bool may_replicate; /* REPLICATION or superuser */
    bool may_create;    /* CREATE on the database */
};

struct tide_pg_slot {
    bool exists;
    bool is_ours; /* logical, pgoutput, permanent, of this database */
    bool is_lost; /* invalidated: its log is gone */
    bool is_active;
    int32_t active_pid;
    uint64_t confirmed_lsn;
    uint64_t restart_lsn;
    uint64_t retained_bytes; /* from restart_lsn to the log's end */
    char wal_status[16];     /* reserved, extended, unreserved, lost */
};

/* A publication or slot whose name starts with TIDE_PG_PREFIX. */
struct tide_pg_leftover {
    char name[TIDE_PG_NAME_SIZE];
    bool is_slot;
    struct tide_pg_slot slot; /* when it is one */
};

/**
 * tidemark_<pipeline>, with every byte outside [a-z0-9_] replaced by `_` (capitals become small
 * first); where that changed or cut anything, an 8-digit hash of the whole follows. Pure.
 */
void tide_pg_ours_name(tide_str pipeline, char ret_name[TIDE_PG_NAME_SIZE]);

/** What the server and our role are. */
tide_status tide_pg_server_read(struct tide_pg_conn *conn, struct tide_pg_wait wait,
                                struct tide_pg_server *ret_server, struct tide_error *err);

/** The slot as it is; `exists` false when there is none. */
tide_status tide_pg_slot_look(struct tide_pg_conn *conn, const char *name, struct tide_pg_wait wait,
                              struct tide_pg_slot *ret_slot, struct tide_error *err);

/**
 * Creates the logical slot and gives its consistent point: the stream starts there. Waits for the
 * transactions that write at this moment to end; a wait that ends before leaves no slot.
 */
tide_status tide_pg_slot_create(struct tide_pg_conn *conn, const char *name,
                                struct tide_pg_wait wait, uint64_t *ret_lsn,
                                struct tide_error *err);

/** Drops the slot; none is fine. TIDE_INVALID one that is in use, naming the server process, and
 * one that is of another database or not for pgoutput. */
tide_status tide_pg_slot_drop(struct tide_pg_conn *conn, const char *name, struct tide_pg_wait wait,
                              bool *ret_was_there, struct tide_error *err);

/** Creates the publication of exactly the tables without a problem. */
tide_status tide_pg_publication_create(struct tide_pg_conn *conn, const char *name,
                                       const struct tide_pg_tables *tables,
                                       struct tide_pg_wait wait, struct tide_error *err);

/**
 * Adds a table. Its writers are locked out for that moment, and those that have written are waited
 * for, at most `lock_ms`: what a transaction writes on both sides of the change would else be lost
 * in part. TIDE_TIMEOUT, retriable: one did not end.
 */
tide_status tide_pg_publication_add(struct tide_pg_conn *conn, const char *name,
                                    const struct tide_pg_table *table, unsigned lock_ms,
                                    struct tide_pg_wait wait, struct tide_error *err);

/** The oids of its tables in ascending order, in `arena`; `ret_exists` false when there is none. */
tide_status tide_pg_publication_look(struct tide_pg_conn *conn, const char *name,
                                     struct tide_pg_wait wait, struct tide_arena *arena,
                                     bool *ret_exists, uint32_t **ret_oids, size_t *ret_count,
                                     struct tide_error *err);

/** Whether somebody altered it so that rows, columns or kinds of change are left out. */
tide_status tide_pg_publication_is_narrowed(struct tide_pg_conn *conn, const char *name,
                                            struct tide_pg_wait wait, bool *ret_is_narrowed,
                                            struct tide_error *err);

/** Whether the object id is among those. Pure. */
bool tide_pg_has_oid(const uint32_t *oids, size_t count, uint32_t oid);

/** Drops the publication; none is fine. */
tide_status tide_pg_publication_drop(struct tide_pg_conn *conn, const char *name,
                                     struct tide_pg_wait wait, bool *ret_was_there,
                                     struct tide_error *err);

/** All of ours in this database, publications before slots, by name; the array is in `arena`. */
tide_status tide_pg_leftovers_read(struct tide_pg_conn *conn, struct tide_pg_wait wait,
                                   struct tide_arena *arena, struct tide_pg_leftover **ret_items,
                                   size_t *ret_count, struct tide_error *err);

/** The end of the log that is written so far: pg_current_wal_insert_lsn(). */
tide_status tide_pg_log_end(struct tide_pg_conn *conn, struct tide_pg_wait wait, uint64_t *ret_lsn,
                            struct tide_error *err);
