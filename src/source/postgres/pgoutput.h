/*
 * The messages of logical replication: the frames that a walsender puts into CopyData, and the
 * pgoutput messages (protocol version 1, values as text) inside them. The grammar is drawn at the
 * top of pgoutput.c. Pure: bytes in, struct or error out; any thread.
 *
 * Every byte must be accounted for: what is short, too long or of no known type is refused, never
 * passed over.
 */
#pragma once

#include "base/arena.h"
#include "base/status.h"
#include "base/str.h"
#include "source/postgres/pg_field.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Frames: what one CopyData message of the replication connection holds. */
enum tide_pg_frame_type {
    TIDE_PG_FRAME_DATA = 'w', /* `body` is one pgoutput message */
    TIDE_PG_FRAME_KEEPALIVE = 'k',
};

struct tide_pg_frame {
    enum tide_pg_frame_type type;
    bool reply_requested; /* of KEEPALIVE: answer at once, or the server ends the connection */
    uint64_t start_lsn;   /* of DATA; header LSNs are not in order: never take them as reached */
    uint64_t end_lsn;     /* end of the server's log, as far as it is known to the sender */
    int64_t sent_us;      /* UTC, Unix epoch */
    tide_str body;        /* of DATA: slice of the packet; empty for KEEPALIVE */
};

/**
 * Decodes one CopyData payload.
 *
 * Errors: TIDE_CORRUPT short, trailing bytes, a type other than `w` and `k`.
 */
tide_status tide_pg_frame_decode(tide_str packet, struct tide_pg_frame *ret_frame,
                                 struct tide_error *err);

/* A standby status update: how far this side has written, flushed and applied the log. */
#define TIDE_PG_STATUS_SIZE 34

struct tide_pg_status {
    uint64_t written_lsn;
    uint64_t flushed_lsn; /* the server may forget everything before it */
    uint64_t applied_lsn;
    int64_t now_us;       /* UTC, Unix epoch */
    bool reply_requested; /* have the server answer with a keep-alive at once */
};

/** Writes the CopyData payload of a status update (`r`): all of `ret_packet`. */
void tide_pg_status_encode(const struct tide_pg_status *status,
                           char ret_packet[TIDE_PG_STATUS_SIZE]);

/** The inverse, for tests and stand-in servers. TIDE_CORRUPT as with tide_pg_frame_decode. */
tide_status tide_pg_status_decode(tide_str packet, struct tide_pg_status *ret_status,
                                  struct tide_error *err);

/* pgoutput messages. */
enum tide_pgoutput_type {
    TIDE_PGOUTPUT_BEGIN = 'B',
    TIDE_PGOUTPUT_COMMIT = 'C',
    TIDE_PGOUTPUT_ORIGIN = 'O',
    TIDE_PGOUTPUT_RELATION = 'R',
    TIDE_PGOUTPUT_TYPE = 'Y',
    TIDE_PGOUTPUT_INSERT = 'I',
    TIDE_PGOUTPUT_UPDATE = 'U',
    TIDE_PGOUTPUT_DELETE = 'D',
    TIDE_PGOUTPUT_TRUNCATE = 'T',
    TIDE_PGOUTPUT_MESSAGE = 'M',
};

struct tide_pgoutput_begin {
    uint64_t final_lsn; /* start of the commit record: equals the Commit's commit_lsn */
    int64_t commit_us;  /* UTC, Unix epoch */
    uint32_t xid;       /* of the top transaction, without its epoch */
};

struct tide_pgoutput_commit {
    uint64_t commit_lsn; /* start of the commit record */
    uint64_t end_lsn;    /* end of it */
    int64_t commit_us;   /* UTC, Unix epoch */
};

struct tide_pgoutput_origin {
    uint64_t commit_lsn; /* on the server that the transaction first came from */
    tide_str name;
};

struct tide_pgoutput_column {
    tide_str name;         /* valid UTF-8, not empty */
    uint32_t type_oid;     /* a domain's own oid where the column's type is a domain */
    int32_t type_modifier; /* atttypmod; -1: none */
    bool is_key;           /* part of the replica identity */
};

/* Sent before the first change to a table and again after the table may have changed. */
struct tide_pgoutput_relation {
    uint32_t oid;
    char identity;   /* `d` primary key, `n` nothing, `f` full, `i` index */
    tide_str schema; /* valid UTF-8; "pg_catalog" where the wire has the empty name */
    tide_str name;   /* valid UTF-8, not empty */
    size_t column_count;
    const struct tide_pgoutput_column *columns;
};

/* A column's type that is not built in; of a domain, its own oid with the name of its base type. */
struct tide_pgoutput_type_name {
    uint32_t oid;
    tide_str schema;
    tide_str name;
};

struct tide_pgoutput_tuple {
    size_t count; /* columns of the Relation message in force, in its order */
    const struct tide_pg_field *fields;
};

/* What the old tuple of an update or delete holds. */
enum tide_pgoutput_old {
    TIDE_PGOUTPUT_OLD_NONE = 0,
    TIDE_PGOUTPUT_OLD_KEY = 'K', /* identity columns; the others are NULL. Does not say that the key
                                    changed: compare */
    TIDE_PGOUTPUT_OLD_ROW = 'O', /* all columns, also those that are UNCHANGED in the new tuple */
};

struct tide_pgoutput_change {
    uint32_t relation_oid;
    enum tide_pgoutput_old old_kind; /* never NONE in a delete, always in an insert */
    struct tide_pgoutput_tuple old_tuple;
    struct tide_pgoutput_tuple new_tuple; /* count 0 in a delete */
};

struct tide_pgoutput_truncate {
    bool is_cascade;
    bool restarts_identity;
    size_t count;
    const uint32_t *relation_oids;
};

/* pg_logical_emit_message: ours and those of others. */
struct tide_pgoutput_logical_message {
    bool is_transactional; /* false: sent at once, outside every transaction, and never undone */
    uint64_t lsn;
    tide_str prefix;
    tide_str content; /* any bytes */
};

struct tide_pgoutput {
    enum tide_pgoutput_type type;

    union {
        struct tide_pgoutput_begin begin;
        struct tide_pgoutput_commit commit;
        struct tide_pgoutput_origin origin;
        struct tide_pgoutput_relation relation;
        struct tide_pgoutput_type_name type_name;
        struct tide_pgoutput_change change; /* INSERT, UPDATE, DELETE */
        struct tide_pgoutput_truncate truncate;
        struct tide_pgoutput_logical_message message;
    };
};

/**
 * Decodes one pgoutput message.
 *
 * Input:   `body` of a DATA frame, at most TIDE_PG_MESSAGE_BYTES_MAX bytes.
 * Owns:    slices and fields borrow from `body`; arrays (columns, fields, oids) live in `arena`,
 *          which may be reset once the message is dealt with: no slice points into it.
 * Shape:   whether a tuple has as many columns as its relation is for the caller to check.
 * Errors:  TIDE_CORRUPT short, trailing bytes, unknown type or flag; TIDE_UNSUPPORTED messages of
 *          later protocol versions, values in binary, names that are not UTF-8.
 */
tide_status tide_pgoutput_decode(tide_str body, struct tide_arena *arena,
                                 struct tide_pgoutput *ret_message, struct tide_error *err);

/** A copy of a Relation message whose names and columns live in `arena`. */
struct tide_pgoutput_relation *
tide_pgoutput_relation_copy(struct tide_arena *arena,
                            const struct tide_pgoutput_relation *relation);

/** Same oid, names, identity and columns: the table is as it was. */
bool tide_pgoutput_relation_equal(const struct tide_pgoutput_relation *a,
                                  const struct tide_pgoutput_relation *b);
