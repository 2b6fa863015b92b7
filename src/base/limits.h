/* Every limit on input and memory, in one place. Lengths from outside are checked against these
 * before memory is reserved; where users may need another value, an option overrides the default.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define TIDE_KIB ((size_t)1024)
#define TIDE_MIB (1024 * TIDE_KIB)

/* JSON */
#define TIDE_JSON_DEPTH_MAX  256
#define TIDE_FRAME_BYTES_MAX (64 * TIDE_MIB) /* one frame as a line */
#define TIDE_ATTEMPTS_MAX    65536u          /* of one snapshot */

/* zstd data that are read */
#define TIDE_ZSTD_WINDOW_LOG_MAX 27 /* 128 MiB: every level of zstd but --long=28 and above */

/* records */
#define TIDE_RECORD_BYTES_DEFAULT      ((size_t)921600)
#define TIDE_DEAD_LETTER_BYTES_DEFAULT (64 * TIDE_KIB)
#define TIDE_DEAD_LETTER_BYTES_MAX     (32 * TIDE_MIB) /* what an option may ask for */
#define TIDE_DEAD_LETTER_KEY_BYTES_MAX (64 * TIDE_KIB)
#define TIDE_DEAD_LETTER_LINE_MAX      (256 * TIDE_MIB) /* each byte may become six */
#define TIDE_COLUMNS_MAX               32767 /* SQLite's hard limit; PostgreSQL has 1600 */

/* lanes and batches */
#define TIDE_LANE_ITEMS_DEFAULT ((size_t)1024)
#define TIDE_LANE_BYTES_DEFAULT (16 * TIDE_MIB)
#define TIDE_LANE_ITEMS_MAX     ((size_t)1 << 20) /* what an option may ask for */
#define TIDE_BATCH_CHANGES_MAX  ((size_t)1000)
#define TIDE_BATCH_BYTES_MAX    (1 * TIDE_MIB)
#define TIDE_SINK_GROUP_ITEMS   ((size_t)64) /* written before a flush */
#define TIDE_SINK_GROUP_BYTES   (8 * TIDE_MIB)

/* snapshots */
#define TIDE_CHUNK_ROWS_DEFAULT  ((size_t)25000)
#define TIDE_CHUNK_BYTES_DEFAULT (4 * TIDE_MIB)
#define TIDE_CHUNKS_AHEAD        2

/* all of a pipeline together: lanes, batches, chunks, what copies remember */
#define TIDE_MEMORY_BYTES_DEFAULT (48 * TIDE_MIB)

/* state */
#define TIDE_CHECKPOINT_INTERVAL_US ((int64_t)1000000) /* while following */
#define TIDE_CHECKPOINT_BYTES_MAX   (64 * TIDE_MIB)

#define TIDE_CONTROL_WAIT_US  ((int64_t)4000000)  /* for a wish to be in a checkpoint */
#define TIDE_STALLED_AFTER_US ((int64_t)30000000) /* without progress */

/* Waits between attempts double, from the one to the other. */
#define TIDE_RETRY_FIRST_US ((int64_t)1000000)
#define TIDE_RETRY_MAX_US   ((int64_t)60000000)

/* dead letters */
#define TIDE_DEAD_LETTER_FILE_BYTES_DEFAULT (64 * TIDE_MIB)
#define TIDE_DEAD_LETTER_FILE_BYTES_MIN     (64 * TIDE_KIB) /* what options may ask for */
#define TIDE_DEAD_LETTER_FILE_BYTES_MAX     (1024 * 1024 * TIDE_MIB)
#define TIDE_DEAD_LETTER_FILES_DEFAULT      ((size_t)8)
#define TIDE_DEAD_LETTER_FILES_MIN          ((size_t)2)
#define TIDE_DEAD_LETTER_FILES_MAX          ((size_t)10000)
#define TIDE_DEAD_LETTER_IDS_MAX            ((size_t)1 << 16) /* remembered, of the newest */
#define TIDE_DEAD_LETTER_RECALL_BYTES       (256 * TIDE_MIB)  /* of them read for that at a start */

/* PostgreSQL */
#define TIDE_PG_MESSAGE_BYTES_MAX   (1024 * TIDE_MIB) /* what the server can build at most */
#define TIDE_PG_TRUNCATE_TABLES_MAX ((size_t)1 << 20)

/* Parquet */
#define TIDE_PARQUET_COLUMNS_MAX      131071 /* two for each of a table, and some of ours */
#define TIDE_PARQUET_FOOTER_BYTES_MAX (64 * TIDE_MIB)
#define TIDE_PARQUET_PAGE_BYTES_MAX   (1024 * TIDE_MIB) /* before compression; one row fits */
#define TIDE_PARQUET_CHUNK_BYTES_MAX  (4096 * TIDE_MIB) /* a column's in a row group, likewise */
#define TIDE_PARQUET_GROUP_VALUES_MAX ((size_t)1 << 24) /* of a column in a row group */

/* configuration */
#define TIDE_CONFIG_BYTES_MAX    (1 * TIDE_MIB)
#define TIDE_SECRET_BYTES_MAX    (64 * TIDE_KIB) /* what ${NAME} or ${file:PATH} may stand for */
#define TIDE_YAML_DEPTH_MAX      32              /* aliases expanded */
#define TIDE_YAML_NODES_MAX      ((size_t)10000) /* aliases expanded */
#define TIDE_YAML_ANCHORS_MAX    256
#define TIDE_RECORD_BYTES_MAX    ((size_t)1 << 31) /* what an option may ask for, as those below */
#define TIDE_RECORD_BYTES_MIN    TIDE_KIB
#define TIDE_CHUNK_ROWS_MAX      ((size_t)10000000)
#define TIDE_MEMORY_BYTES_MIN    (8 * TIDE_MIB)
#define TIDE_MEMORY_BYTES_MAX    (1024 * 1024 * TIDE_MIB)
#define TIDE_LANE_BYTES_MIN      (64 * TIDE_KIB)
#define TIDE_LANE_BYTES_MAX      (1024 * 1024 * TIDE_MIB)
#define TIDE_RETAINED_BYTES_MAX  ((uint64_t)1 << 60)
#define TIDE_STALLED_AFTER_S_MAX 86400
#define TIDE_RETRY_MAX_S_MAX     3600

/* archives */
#define TIDE_ARCHIVE_BLOB_BYTES_MAX   1000000000 /* one segment or row; SQLite's own limit */
#define TIDE_ARCHIVE_SERIES_BYTES_MAX ((size_t)4096)
#define TIDE_ARCHIVE_SERIES_MAX       ((size_t)65536)           /* that one program has open */
#define TIDE_ARCHIVE_META_BYTES_MAX   (16 * TIDE_MIB)           /* labels, metadata of one source */
#define TIDE_ARCHIVE_RETAIN_BYTES     ((int64_t)(4 * TIDE_MIB)) /* forgotten at a time */
#define TIDE_ARCHIVE_SESSIONS_MAX     ((size_t)200)             /* of a source that are told of */
#define TIDE_ARCHIVE_SEAL_ROWS        ((int64_t)65536)
#define TIDE_ARCHIVE_SEAL_BYTES       ((int64_t)(8 * TIDE_MIB))
#define TIDE_ARCHIVE_SEAL_ROWS_MAX    ((uint64_t)1 << 22) /* what an option may ask for */
#define TIDE_ARCHIVE_SEAL_BYTES_MIN   (64 * TIDE_KIB)
/* A segment has to go into one frame of the replication wire. */
#define TIDE_ARCHIVE_SEAL_BYTES_MAX   (48 * TIDE_MIB)
#define TIDE_ARCHIVE_MERGE_BYTES_MAX  (48 * TIDE_MIB)  /* of segments that become one */
#define TIDE_ARCHIVE_OPENED_BYTES_MAX (512 * TIDE_MIB) /* rows of a segment, to be compared */

/* the replication wire */
#define TIDE_WIRE_FRAME_BYTES_MAX (64 * TIDE_MIB) /* behind its length; part of the protocol */
#define TIDE_WIRE_PAIRS_BYTES_MAX TIDE_ARCHIVE_META_BYTES_MAX /* read into an array */
#define TIDE_WIRE_SOURCES_MAX     ((size_t)65536)             /* of one stream */
#define TIDE_WIRE_HELLO_BYTES_MAX (4 * TIDE_MIB)

/* connections that the replication wire goes over */
#define TIDE_ADDRESS_BYTES_MAX   ((size_t)1024) /* as a text */
#define TIDE_TOKEN_BYTES_MIN     ((size_t)16)   /* of a secret that a follower names */
#define TIDE_TOKEN_BYTES_MAX     ((size_t)1024)
#define TIDE_REFUSAL_BYTES_MAX   ((size_t)400)
#define TIDE_FOLLOWERS_DEFAULT   ((size_t)32)
#define TIDE_FOLLOWERS_MAX       ((size_t)1000)   /* what an option may ask for */
#define TIDE_STRANGERS_MAX       ((size_t)64)     /* connections whose stream has not begun */
#define TIDE_STRANGERS_BYTES_MAX (16 * TIDE_MIB)  /* that they have sent, together */
#define TIDE_PIECE_BYTES         (256 * TIDE_KIB) /* of a stream, sent or read at a time */
#define TIDE_NET_SECONDS_MAX     86400            /* what options may ask for */
