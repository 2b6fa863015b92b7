/*
 * The wire grammar (PostgreSQL manual, "Message Formats" of the streaming replication protocol and
 * of logical replication). Integers have their most significant byte first, strings end with NUL,
 * times are microseconds since 2000-01-01 UTC.
 *
 *     frame     = 'w' start:u64 end:u64 sent:i64 message
 *               | 'k' end:u64 sent:i64 reply:bool
 *     status    = 'r' written:u64 flushed:u64 applied:u64 now:i64 reply:bool          (ours)
 *
 *     message   = 'B' final:u64 commit_time:i64 xid:u32
 *               | 'C' flags:u8=0 commit:u64 end:u64 commit_time:i64
 *               | 'O' commit:u64 name:str
 *               | 'R' oid:u32 schema:str name:str identity:u8 count:u16 column{count}
 *               | 'Y' oid:u32 schema:str name:str
 *               | 'I' oid:u32 'N' tuple
 *               | 'U' oid:u32 [('K' | 'O') tuple] 'N' tuple
 *               | 'D' oid:u32 ('K' | 'O') tuple
 *               | 'T' count:u32 options:u8 oid:u32{count}
 *               | 'M' flags:u8 lsn:u64 prefix:str len:u32 byte{len}
 *     column    = flags:u8 name:str type:u32 modifier:i32
 *     tuple     = count:u16 field{count}
 *     field     = 'n' | 'u' | 't' len:u32 byte{len} | 'b' len:u32 byte{len}
 *
 * Later protocol versions add 'S' 'E' 'c' 'A' (streamed transactions) and 'b' 'P' 'K' 'r' 'p' (two
 * phases), and an xid in front of others' bodies; version 1 has none of these.
 */
#include "source/postgres/pgoutput.h"

#include "base/limits.h"
#include "base/reader.h"

#include <inttypes.h>

/* From 1970-01-01 to 2000-01-01. */
#define EPOCH_SHIFT_US INT64_C(946684800000000)

/* The least bytes that each element of a count takes. */
#define COLUMN_SIZE_MIN 11 /* flags, a name of one letter, NUL, type, modifier */
#define FIELD_SIZE_MIN  1

#define TRUNCATE_CASCADE          1
#define TRUNCATE_RESTART_IDENTITY 2
#define MESSAGE_TRANSACTIONAL     1
#define COLUMN_IS_KEY             1

static tide_status fail_short(const char *what, size_t len, struct tide_error *err)
{
    return tide_fail(err, TIDE_CORRUPT,
                     "%s of %zu bytes from PostgreSQL does not end where it should: the "
                     "connection is not in step with the server",
                     what, len);
}

static tide_status to_unix_us(int64_t postgres_us, int64_t *ret_us, struct tide_error *err)
{
    if (__builtin_add_overflow(postgres_us, EPOCH_SHIFT_US, ret_us)) {
        return tide_fail(err, TIDE_CORRUPT,
                         "time %" PRId64 " in a message from PostgreSQL is out of range",
                         postgres_us);
    }
    return TIDE_OK;
}

/* Frames. */

static bool read_bool(struct tide_reader *reader)
{
    uint8_t value = tide_reader_u8(reader);
    reader->failed = reader->failed || value > 1;
    return value == 1;
}

tide_status tide_pg_frame_decode(tide_str packet, struct tide_pg_frame *ret_frame,
                                 struct tide_error *err)
{
    struct tide_reader reader = tide_reader_of(packet);
    struct tide_pg_frame frame = {0};
    uint8_t type = tide_reader_u8(&reader);
    if (packet.len > 0 && type != TIDE_PG_FRAME_DATA && type != TIDE_PG_FRAME_KEEPALIVE) {
        return tide_fail(err, TIDE_CORRUPT, "replication frame of unknown type 0x%02x", type);
    }
    frame.type = (enum tide_pg_frame_type)type;
    if (frame.type == TIDE_PG_FRAME_DATA) {
        frame.start_lsn = tide_reader_u64be(&reader);
    }
    frame.end_lsn = tide_reader_u64be(&reader);
    int64_t sent = tide_reader_i64be(&reader);
    if (frame.type == TIDE_PG_FRAME_DATA) {
        frame.body = tide_reader_take(&reader, tide_reader_left(&reader));
    } else {
        frame.reply_requested = read_bool(&reader);
    }
    if (!tide_reader_is_done(&reader)) {
        return fail_short("a replication frame", packet.len, err);
    }
    TIDE_TRY(to_unix_us(sent, &frame.sent_us, err));
    *ret_frame = frame;
    return TIDE_OK;
}

static char *put_u64be(char *to, uint64_t value)
{
    value = __builtin_bswap64(value);
    memcpy(to, &value, sizeof(value));
    return to + sizeof(value);
}

void tide_pg_status_encode(const struct tide_pg_status *status,
                           char ret_packet[TIDE_PG_STATUS_SIZE])
{
    TIDE_ASSERT(status->now_us >= INT64_MIN + EPOCH_SHIFT_US);
    char *to = ret_packet;
    *to++ = 'r';
    to = put_u64be(to, status->written_lsn);
    to = put_u64be(to, status->flushed_lsn);
    to = put_u64be(to, status->applied_lsn);
    to = put_u64be(to, (uint64_t)(status->now_us - EPOCH_SHIFT_US));
    *to++ = status->reply_requested ? 1 : 0;
    TIDE_ASSERT(to == ret_packet + TIDE_PG_STATUS_SIZE);
}

tide_status tide_pg_status_decode(tide_str packet, struct tide_pg_status *ret_status,
                                  struct tide_error *err)
{
    struct tide_reader reader = tide_reader_of(packet);
    struct tide_pg_status status = {0};
    uint8_t type = tide_reader_u8(&reader);
    if (packet.len > 0 && type != 'r') {
        return tide_fail(err, TIDE_CORRUPT, "status update of unknown type 0x%02x", type);
    }
    status.written_lsn = tide_reader_u64be(&reader);
    status.flushed_lsn = tide_reader_u64be(&reader);
    status.applied_lsn = tide_reader_u64be(&reader);
    int64_t now = tide_reader_i64be(&reader);
    status.reply_requested = read_bool(&reader);
    if (!tide_reader_is_done(&reader)) {
        return fail_short("a status update", packet.len, err);
    }
    TIDE_TRY(to_unix_us(now, &status.now_us, err));
    *ret_status = status;
    return TIDE_OK;
}

/* Messages. Each reader below takes what follows the type; the end is checked once, by decode. */

static tide_status read_begin(struct tide_reader *reader, struct tide_pgoutput *message,
                              struct tide_error *err)
{
    message->begin.final_lsn = tide_reader_u64be(reader);
    TIDE_TRY(to_unix_us(tide_reader_i64be(reader), &message->begin.commit_us, err));
    message->begin.xid = tide_reader_u32be(reader);
    return TIDE_OK;
}

static tide_status read_commit(struct tide_reader *reader, struct tide_pgoutput *message,
                               struct tide_error *err)
{
    uint8_t flags = tide_reader_u8(reader);
    if (flags != 0) {
        return tide_fail(err, TIDE_CORRUPT, "Commit message with unknown flags 0x%02x", flags);
    }
    message->commit.commit_lsn = tide_reader_u64be(reader);
    message->commit.end_lsn = tide_reader_u64be(reader);
    return to_unix_us(tide_reader_i64be(reader), &message->commit.commit_us, err);
}

/* Names become keys and strings of JSON. */
static tide_status check_name(tide_str name, struct tide_error *err)
{
    if (!tide_str_is_utf8(name)) {
        return tide_fail(err, TIDE_UNSUPPORTED,
                         "a schema, table, column or type has a name that is not UTF-8: rename it");
    }
    return TIDE_OK;
}

static tide_status read_names(struct tide_reader *reader, tide_str *schema, tide_str *name,
                              struct tide_error *err)
{
    *schema = tide_reader_cstr(reader);
    *name = tide_reader_cstr(reader);
    if (schema->len == 0) {
        *schema = TIDE_STR("pg_catalog");
    }
    TIDE_TRY(check_name(*schema, err));
    TIDE_TRY(check_name(*name, err));
    reader->failed = reader->failed || name->len == 0;
    return TIDE_OK;
}

static tide_status read_columns(struct tide_reader *reader, size_t count,
                                struct tide_pgoutput_column *columns, struct tide_error *err)
{
    for (size_t i = 0; i < count; i++) {
        uint8_t flags = tide_reader_u8(reader);
        columns[i].name = tide_reader_cstr(reader);
        columns[i].type_oid = tide_reader_u32be(reader);
        columns[i].type_modifier = tide_reader_i32be(reader);
        columns[i].is_key = flags == COLUMN_IS_KEY;
        if (flags > COLUMN_IS_KEY) {
            return tide_fail(err, TIDE_CORRUPT,
                             "column %zu of a Relation message has unknown flags 0x%02x", i, flags);
        }
        reader->failed = reader->failed || columns[i].name.len == 0;
        TIDE_TRY(check_name(columns[i].name, err));
    }
    return TIDE_OK;
}

/* A count from the wire, refused before memory is taken when its elements cannot all be there. */
static tide_status check_count(const struct tide_reader *reader, size_t count, size_t size_min,
                               size_t count_max, struct tide_error *err)
{
    if (reader->failed || count > count_max || count > tide_reader_left(reader) / size_min) {
        return tide_fail(err, TIDE_CORRUPT,
                         "message from PostgreSQL announces %zu elements in %zu bytes", count,
                         tide_reader_left(reader));
    }
    return TIDE_OK;
}

static tide_status read_relation(struct tide_reader *reader, struct tide_arena *arena,
                                 struct tide_pgoutput *message, struct tide_error *err)
{
    struct tide_pgoutput_relation *relation = &message->relation;
    relation->oid = tide_reader_u32be(reader);
    TIDE_TRY(read_names(reader, &relation->schema, &relation->name, err));
    relation->identity = (char)tide_reader_u8(reader);
    relation->column_count = tide_reader_u16be(reader);
    TIDE_TRY(check_count(reader, relation->column_count, COLUMN_SIZE_MIN, TIDE_COLUMNS_MAX, err));
    if (relation->identity == '\0' || strchr("dnfi", relation->identity) == NULL) {
        return tide_fail(err, TIDE_CORRUPT, "table with an unknown replica identity 0x%02x",
                         (unsigned char)relation->identity);
    }
    struct tide_pgoutput_column *columns =
        tide_arena_alloc(arena, relation->column_count, sizeof(*columns));
    relation->columns = columns;
    return read_columns(reader, relation->column_count, columns, err);
}

static tide_status read_type_name(struct tide_reader *reader, struct tide_pgoutput *message,
                                  struct tide_error *err)
{
    message->type_name.oid = tide_reader_u32be(reader);
    return read_names(reader, &message->type_name.schema, &message->type_name.name, err);
}

static tide_status fail_field(uint8_t kind, size_t index, struct tide_error *err)
{
    if (kind == 'b') {
        return tide_fail(err, TIDE_UNSUPPORTED,
                         "column %zu came in binary, which was not asked for: start replication "
                         "with binary off",
                         index);
    }
    return tide_fail(err, TIDE_CORRUPT, "column %zu is of unknown kind 0x%02x", index, kind);
}

/* A text: its length and as many bytes. */
static inline struct tide_pg_field read_text(struct tide_reader *reader)
{
    uint32_t len = tide_reader_u32be(reader);
    tide_str text = tide_reader_take(reader, len);
    return (struct tide_pg_field){text.ptr, (uint32_t)text.len, TIDE_PG_FIELD_TEXT};
}

static tide_status read_tuple(struct tide_reader *reader, struct tide_arena *arena,
                              struct tide_pgoutput_tuple *ret_tuple, struct tide_error *err)
{
    size_t count = tide_reader_u16be(reader);
    TIDE_TRY(check_count(reader, count, FIELD_SIZE_MIN, TIDE_COLUMNS_MAX, err));
    struct tide_pg_field *fields = tide_arena_alloc(arena, count, sizeof(*fields));
    for (size_t i = 0; i < count; i++) {
        uint8_t kind = tide_reader_u8(reader);
        if (TIDE_LIKELY(kind == 't')) {
            fields[i] = read_text(reader);
        } else if (kind == 'n') {
            fields[i] = (struct tide_pg_field){.kind = TIDE_PG_FIELD_NULL};
        } else if (kind == 'u') {
            fields[i] = (struct tide_pg_field){.kind = TIDE_PG_FIELD_UNCHANGED};
        } else if (!reader->failed) {
            return fail_field(kind, i, err);
        }
    }
    *ret_tuple = (struct tide_pgoutput_tuple){count, fields};
    return TIDE_OK;
}

/* The part that is marked by `kind`: an old or a new tuple. */
static tide_status read_part(struct tide_reader *reader, struct tide_arena *arena, uint8_t kind,
                             struct tide_pgoutput_change *change, struct tide_error *err)
{
    if (kind == 'N') {
        return read_tuple(reader, arena, &change->new_tuple, err);
    }
    if (kind == TIDE_PGOUTPUT_OLD_KEY || kind == TIDE_PGOUTPUT_OLD_ROW) {
        change->old_kind = (enum tide_pgoutput_old)kind;
        return read_tuple(reader, arena, &change->old_tuple, err);
    }
    return tide_fail(err, TIDE_CORRUPT, "change of table %" PRIu32 " with a tuple of kind 0x%02x",
                     change->relation_oid, kind);
}

static tide_status read_change(struct tide_reader *reader, struct tide_arena *arena,
                               struct tide_pgoutput *message, struct tide_error *err)
{
    struct tide_pgoutput_change *change = &message->change;
    change->relation_oid = tide_reader_u32be(reader);
    uint8_t kind = tide_reader_u8(reader);
    TIDE_TRY(read_part(reader, arena, kind, change, err));
    bool has_old = change->old_kind != TIDE_PGOUTPUT_OLD_NONE;
    if (has_old && message->type == TIDE_PGOUTPUT_UPDATE) {
        kind = tide_reader_u8(reader);
        if (kind != 'N') {
            return tide_fail(err, TIDE_CORRUPT, "update of table %" PRIu32 " without a new tuple",
                             change->relation_oid);
        }
        return read_part(reader, arena, kind, change, err);
    }
    if (has_old ? message->type == TIDE_PGOUTPUT_INSERT : message->type == TIDE_PGOUTPUT_DELETE) {
        return tide_fail(err, TIDE_CORRUPT, "%s of table %" PRIu32 " with a tuple of kind '%c'",
                         has_old ? "insert" : "delete", change->relation_oid, kind);
    }
    return TIDE_OK;
}

static tide_status read_truncate(struct tide_reader *reader, struct tide_arena *arena,
                                 struct tide_pgoutput *message, struct tide_error *err)
{
    struct tide_pgoutput_truncate *truncate = &message->truncate;
    truncate->count = tide_reader_u32be(reader);
    uint8_t options = tide_reader_u8(reader);
    truncate->is_cascade = (options & TRUNCATE_CASCADE) != 0;
    truncate->restarts_identity = (options & TRUNCATE_RESTART_IDENTITY) != 0;
    if ((options & ~(TRUNCATE_CASCADE | TRUNCATE_RESTART_IDENTITY)) != 0) {
        return tide_fail(err, TIDE_CORRUPT, "truncate with unknown options 0x%02x", options);
    }
    TIDE_TRY(
        check_count(reader, truncate->count, sizeof(uint32_t), TIDE_PG_TRUNCATE_TABLES_MAX, err));
    uint32_t *oids = tide_arena_alloc(arena, truncate->count, sizeof(*oids));
    for (size_t i = 0; i < truncate->count; i++) {
        oids[i] = tide_reader_u32be(reader);
    }
    truncate->relation_oids = oids;
    return TIDE_OK;
}

static tide_status read_logical_message(struct tide_reader *reader, struct tide_pgoutput *message,
                                        struct tide_error *err)
{
    uint8_t flags = tide_reader_u8(reader);
    if (flags > MESSAGE_TRANSACTIONAL) {
        return tide_fail(err, TIDE_CORRUPT, "logical message with unknown flags 0x%02x", flags);
    }
    message->message.is_transactional = flags == MESSAGE_TRANSACTIONAL;
    message->message.lsn = tide_reader_u64be(reader);
    message->message.prefix = tide_reader_cstr(reader);
    message->message.content = tide_reader_take(reader, tide_reader_u32be(reader));
    return TIDE_OK;
}

static tide_status fail_type(uint8_t type, struct tide_error *err)
{
    if (type != '\0' && strchr("SEcAbPKrp", type) != NULL) {
        return tide_fail(err, TIDE_UNSUPPORTED,
                         "pgoutput message '%c' of a protocol version that was not asked for: "
                         "start replication with proto_version 1",
                         type);
    }
    return tide_fail(err, TIDE_CORRUPT, "pgoutput message of unknown type 0x%02x", type);
}

static tide_status read_message(struct tide_reader *reader, struct tide_arena *arena,
                                struct tide_pgoutput *message, struct tide_error *err)
{
    switch (message->type) {
    case TIDE_PGOUTPUT_BEGIN:
        return read_begin(reader, message, err);
    case TIDE_PGOUTPUT_COMMIT:
        return read_commit(reader, message, err);
    case TIDE_PGOUTPUT_ORIGIN:
        message->origin.commit_lsn = tide_reader_u64be(reader);
        message->origin.name = tide_reader_cstr(reader);
        return TIDE_OK;
    case TIDE_PGOUTPUT_RELATION:
        return read_relation(reader, arena, message, err);
    case TIDE_PGOUTPUT_TYPE:
        return read_type_name(reader, message, err);
    case TIDE_PGOUTPUT_INSERT:
    case TIDE_PGOUTPUT_UPDATE:
    case TIDE_PGOUTPUT_DELETE:
        return read_change(reader, arena, message, err);
    case TIDE_PGOUTPUT_TRUNCATE:
        return read_truncate(reader, arena, message, err);
    case TIDE_PGOUTPUT_MESSAGE:
        return read_logical_message(reader, message, err);
    default:
        return fail_type((uint8_t)message->type, err);
    }
}

tide_status tide_pgoutput_decode(tide_str body, struct tide_arena *arena,
                                 struct tide_pgoutput *ret_message, struct tide_error *err)
{
    if (body.len == 0 || body.len > TIDE_PG_MESSAGE_BYTES_MAX) {
        return tide_fail(err, TIDE_CORRUPT, "pgoutput message of %zu bytes", body.len);
    }
    struct tide_reader reader = tide_reader_of(body);
    struct tide_pgoutput message = {.type = (enum tide_pgoutput_type)tide_reader_u8(&reader)};
    TIDE_TRY(read_message(&reader, arena, &message, err));
    if (TIDE_UNLIKELY(!tide_reader_is_done(&reader))) {
        char what[] = "a pgoutput message 'X'";
        what[sizeof(what) - 3] = (char)message.type;
        return fail_short(what, body.len, err);
    }
    *ret_message = message;
    return TIDE_OK;
}

/* Relation messages that are kept. */

struct tide_pgoutput_relation *
tide_pgoutput_relation_copy(struct tide_arena *arena, const struct tide_pgoutput_relation *relation)
{
    struct tide_pgoutput_relation *copy = tide_arena_alloc(arena, 1, sizeof(*copy));
    struct tide_pgoutput_column *columns =
        tide_arena_alloc(arena, relation->column_count, sizeof(*columns));
    for (size_t i = 0; i < relation->column_count; i++) {
        columns[i] = relation->columns[i];
        columns[i].name = tide_arena_str(arena, columns[i].name);
    }
    *copy = *relation;
    copy->schema = tide_arena_str(arena, relation->schema);
    copy->name = tide_arena_str(arena, relation->name);
    copy->columns = columns;
    return copy;
}

static bool column_equal(const struct tide_pgoutput_column *a, const struct tide_pgoutput_column *b)
{
    return tide_str_equal(a->name, b->name) && a->type_oid == b->type_oid &&
           a->type_modifier == b->type_modifier && a->is_key == b->is_key;
}

bool tide_pgoutput_relation_equal(const struct tide_pgoutput_relation *a,
                                  const struct tide_pgoutput_relation *b)
{
    bool is_equal = a->oid == b->oid && a->identity == b->identity &&
                    a->column_count == b->column_count && tide_str_equal(a->schema, b->schema) &&
                    tide_str_equal(a->name, b->name);
    for (size_t i = 0; is_equal && i < a->column_count; i++) {
        is_equal = column_equal(&a->columns[i], &b->columns[i]);
    }
    return is_equal;
}
