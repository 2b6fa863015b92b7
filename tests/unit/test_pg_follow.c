#include "cmocka_prelude.h"

#include "base/arena.h"
#include "base/buf.h"
#include "source/postgres/pg_follow.h"
#include "source/postgres/pg_position.h"

#include <stdlib.h>

#define NULL_FIELD "\x01null"
#define UNSENT     "\x01unsent"
#define INT4       23
#define TEXT       25
#define NUMERIC    1700
#define ORDERS     16384u
#define ITEMS      16390u

/* Messages as the server writes them (manual, "Logical Replication Message Formats"). */

static void put_u8(struct tide_buf *buf, unsigned value)
{
    tide_buf_append_char(buf, (char)value);
}

static void put_u32(struct tide_buf *buf, uint32_t value)
{
    for (int shift = 24; shift >= 0; shift -= 8) {
        put_u8(buf, (value >> shift) & 0xff);
    }
}

static void put_u16(struct tide_buf *buf, unsigned value)
{
    put_u8(buf, value >> 8);
    put_u8(buf, value & 0xff);
}

static void put_u64(struct tide_buf *buf, uint64_t value)
{
    put_u32(buf, (uint32_t)(value >> 32));
    put_u32(buf, (uint32_t)value);
}

static void put_cstr(struct tide_buf *buf, const char *text)
{
    tide_buf_append(buf, text, strlen(text) + 1);
}

/* Fields separated by "|". */
static void put_tuple(struct tide_buf *buf, char kind, const char *fields)
{
    unsigned count = 1;
    for (const char *c = fields; *c != '\0'; c++) {
        count += *c == '|';
    }
    put_u8(buf, (unsigned char)kind);
    put_u16(buf, count);
    for (unsigned i = 0; i < count; i++) {
        size_t len = strcspn(fields, "|");
        tide_str field = tide_str_of(fields, len);
        if (tide_str_equal(field, TIDE_STR(NULL_FIELD))) {
            put_u8(buf, 'n');
        } else if (tide_str_equal(field, TIDE_STR(UNSENT))) {
            put_u8(buf, 'u');
        } else {
            put_u8(buf, 't');
            put_u32(buf, (uint32_t)len);
            tide_buf_append_str(buf, field);
        }
        fields += len + 1;
    }
}

/* A follower of two tables: public.orders (id, name, note; key id) and public.items (a, b; key
 * b, a). */
struct bed {
    struct tide_pg_relations *relations;
    struct tide_pg_follow follow;
    struct tide_arena arena;
    struct tide_buf message;
    struct tide_event event;
    bool has_event;
    struct tide_error err;
    int lookups;
};

static tide_status look_up(void *context, uint32_t oid, int32_t modifier, struct tide_arena *arena,
                           struct tide_pg_type *ret_type, struct tide_error *err)
{
    (void)arena;
    struct bed *bed = context;
    bed->lookups++;
    if (oid != NUMERIC) {
        return tide_fail(err, TIDE_UNSUPPORTED, "no such type");
    }
    *ret_type = (struct tide_pg_type){
        .oid = oid, .modifier = modifier, .name = TIDE_STR("numeric(10,2)"), .value_oid = oid};
    return TIDE_OK;
}

static struct tide_pg_table *make_table(uint32_t oid, const char *name,
                                        struct tide_pg_column *columns, size_t count,
                                        const uint32_t *key, size_t key_count)
{
    struct tide_column model[8];
    struct tide_pg_table *table = calloc(1, sizeof(*table));
    for (size_t i = 0; i < count; i++) {
        model[i] = (struct tide_column){.name = columns[i].name, .type = columns[i].type.name};
    }
    table->oid = oid;
    table->columns = columns;
    table->column_count = count;
    table->relation = tide_relation_new(&(struct tide_relation_spec){
        .id = oid,
        .connection = TIDE_STR("shop"),
        .schema = TIDE_STR("public"),
        .name = tide_str_from(name),
        .columns = model,
        .column_count = count,
        .key_columns = key,
        .key_count = key_count,
    });
    return table;
}

static struct tide_pg_column column(const char *name, uint32_t oid, const char *type)
{
    return (struct tide_pg_column){
        .name = tide_str_from(name),
        .type = {.oid = oid, .modifier = -1, .name = tide_str_from(type), .value_oid = oid}};
}

static int bed_init(void **state)
{
    static const uint32_t orders_key[] = {0};
    static const uint32_t items_key[] = {1, 0};
    struct bed *bed = calloc(1, sizeof(*bed));
    struct tide_pg_column orders[] = {column("id", INT4, "integer"), column("name", TEXT, "text"),
                                      column("note", TEXT, "text")};
    struct tide_pg_column items[] = {column("a", INT4, "integer"), column("b", TEXT, "text")};
    struct tide_pg_table *items_of[] = {
        make_table(ITEMS, "items", items, 2, items_key, 2),
        make_table(ORDERS, "orders", orders, 3, orders_key, 1),
    };
    struct tide_pg_tables tables = {.items = items_of, .count = 2};
    bed->relations = tide_pg_relations_new(
        TIDE_STR("shop"), &tables, (struct tide_pg_type_lookup){.look = look_up, .context = bed});
    for (size_t i = 0; i < 2; i++) {
        tide_relation_unref(items_of[i]->relation);
        free(items_of[i]);
    }
    tide_pg_follow_start(&bed->follow, bed->relations, (struct tide_position){.lo = 100}, 7000);
    *state = bed;
    return 0;
}

static int bed_done(void **state)
{
    struct bed *bed = *state;
    tide_pg_follow_done(&bed->follow);
    tide_pg_relations_free(bed->relations);
    tide_arena_done(&bed->arena);
    tide_buf_done(&bed->message);
    free(bed);
    return 0;
}

/* Takes the message that was put together; it is overwritten then, as libpq's buffer is. */
static tide_status take(struct bed *bed)
{
    tide_status status = tide_pg_follow_take(&bed->follow, tide_buf_str(&bed->message), &bed->arena,
                                             &bed->event, &bed->has_event, &bed->err);
    if (bed->message.len > 0) {
        memset(bed->message.ptr, 'x', bed->message.len);
    }
    tide_buf_reset(&bed->message);
    return status;
}

static void begin(struct bed *bed, uint64_t lsn, uint32_t xid)
{
    put_u8(&bed->message, 'B');
    put_u64(&bed->message, lsn);
    put_u64(&bed->message, 0);
    put_u32(&bed->message, xid);
    assert_int_equal(take(bed), TIDE_OK);
    assert_false(bed->has_event);
}

static tide_status commit(struct bed *bed, uint64_t lsn)
{
    put_u8(&bed->message, 'C');
    put_u8(&bed->message, 0);
    put_u64(&bed->message, lsn);
    put_u64(&bed->message, lsn + 48);
    put_u64(&bed->message, 0);
    return take(bed);
}

struct described {
    const char *name;
    uint32_t type;
    bool is_key;
};

static tide_status describe(struct bed *bed, uint32_t oid, const char *name, char identity,
                            const struct described *columns, unsigned count)
{
    put_u8(&bed->message, 'R');
    put_u32(&bed->message, oid);
    put_cstr(&bed->message, "public");
    put_cstr(&bed->message, name);
    put_u8(&bed->message, (unsigned char)identity);
    put_u16(&bed->message, count);
    for (unsigned i = 0; i < count; i++) {
        put_u8(&bed->message, columns[i].is_key);
        put_cstr(&bed->message, columns[i].name);
        put_u32(&bed->message, columns[i].type);
        put_u32(&bed->message, UINT32_MAX);
    }
    return take(bed);
}

static void describe_orders(struct bed *bed, char identity)
{
    bool is_full = identity == 'f';
    const struct described columns[] = {
        {"id", INT4, true}, {"name", TEXT, is_full}, {"note", TEXT, is_full}};
    assert_int_equal(describe(bed, ORDERS, "orders", identity, columns, 3), TIDE_OK);
    assert_false(bed->has_event);
}

/* `old_kind` 0: none; `fields` NULL: none (a delete). */
static tide_status change(struct bed *bed, char type, uint32_t oid, char old_kind, const char *old,
                          const char *fields)
{
    put_u8(&bed->message, (unsigned char)type);
    put_u32(&bed->message, oid);
    if (old_kind != 0) {
        put_tuple(&bed->message, old_kind, old);
    }
    if (fields != NULL) {
        put_tuple(&bed->message, 'N', fields);
    }
    return take(bed);
}

static void truncate_tables(struct bed *bed, const uint32_t *oids, uint32_t count)
{
    put_u8(&bed->message, 'T');
    put_u32(&bed->message, count);
    put_u8(&bed->message, 0);
    for (uint32_t i = 0; i < count; i++) {
        put_u32(&bed->message, oids[i]);
    }
    assert_int_equal(take(bed), TIDE_OK);
}

static void assert_text(struct tide_value value, const char *text)
{
    assert_true(tide_str_equal(tide_value_str(value), tide_str_from(text)));
}

/* Transactions and positions */

static void take_transaction_gives_changes_then_commit(void **state)
{
    struct bed *bed = *state;
    begin(bed, 1000, 7001);
    describe_orders(bed, 'd');
    assert_int_equal(change(bed, 'I', ORDERS, 0, NULL, "1|Ann|" NULL_FIELD), TIDE_OK);
    assert_true(bed->has_event);
    const struct tide_change *made = &bed->event.change;
    assert_int_equal(bed->event.kind, TIDE_EVENT_CHANGE);
    assert_int_equal(made->op, TIDE_OP_INSERT);
    assert_int_equal(made->place.position.lo, 1000);
    assert_int_equal(made->place.index, 0);
    assert_true(made->place.known);
    assert_int_equal(made->tx_id, 7001);
    assert_true(tide_str_equal(made->tx, TIDE_STR("7001")));
    assert_int_equal(made->commit_us, INT64_C(946684800000000)); /* 2000-01-01 */
    assert_text(made->values[0], "1");
    assert_int_equal(made->values[0].kind, TIDE_VALUE_INTEGER);
    assert_text(made->values[1], "Ann");
    assert_int_equal(made->values[2].kind, TIDE_VALUE_NULL);
    assert_text(made->key[0], "1");
    assert_null(made->moved_from);
    assert_null(made->before);
    assert_false(made->is_partial);
    assert_int_equal(commit(bed, 1000), TIDE_OK);
    assert_true(bed->has_event);
    assert_int_equal(bed->event.kind, TIDE_EVENT_COMMIT);
    assert_int_equal(bed->event.position.lo, 1000);
}

static void take_commit_of_empty_transaction_is_reached(void **state)
{
    struct bed *bed = *state;
    begin(bed, 1000, 7001);
    assert_int_equal(commit(bed, 1000), TIDE_OK);
    assert_true(bed->has_event);
    assert_int_equal(bed->event.kind, TIDE_EVENT_REACHED);
    assert_int_equal(bed->event.position.lo, 1000);
}

static void take_transaction_at_the_start_is_passed_over(void **state)
{
    struct bed *bed = *state;
    begin(bed, 100, 7001);
    describe_orders(bed, 'd');
    assert_int_equal(change(bed, 'I', ORDERS, 0, NULL, "1|a|b"), TIDE_OK);
    assert_false(bed->has_event);
    uint32_t oid = ORDERS;
    truncate_tables(bed, &oid, 1);
    assert_false(bed->has_event);
    assert_int_equal(commit(bed, 100), TIDE_OK);
    assert_false(bed->has_event);
    begin(bed, 101, 7002);
    assert_int_equal(change(bed, 'I', ORDERS, 0, NULL, "1|a|b"), TIDE_OK);
    assert_true(bed->has_event);
}

static void take_index_counts_passed_over_tables_too(void **state)
{
    struct bed *bed = *state;
    const uint32_t oids[] = {99, ORDERS, 98, ITEMS};
    begin(bed, 1000, 7001);
    describe_orders(bed, 'd');
    assert_int_equal(change(bed, 'I', 99, 0, NULL, "1|a"), TIDE_OK);
    assert_false(bed->has_event);
    assert_int_equal(change(bed, 'I', ORDERS, 0, NULL, "1|a|b"), TIDE_OK);
    assert_int_equal(bed->event.change.place.index, 1);
    truncate_tables(bed, oids, 4);
    assert_true(bed->has_event);
    assert_int_equal(bed->event.change.op, TIDE_OP_TRUNCATE);
    assert_int_equal(bed->event.change.place.index, 3);
    assert_int_equal(bed->event.change.relation->id, ORDERS);
    assert_null(bed->event.change.key);
    assert_true(tide_pg_follow_take_pending(&bed->follow, &bed->arena, &bed->event));
    assert_int_equal(bed->event.change.place.index, 5);
    assert_int_equal(bed->event.change.relation->id, ITEMS);
    assert_false(tide_pg_follow_take_pending(&bed->follow, &bed->arena, &bed->event));
    assert_int_equal(change(bed, 'D', ORDERS, 'K', "1|" NULL_FIELD "|" NULL_FIELD, NULL), TIDE_OK);
    assert_int_equal(bed->event.change.place.index, 6);
}

/* The next commit record may begin exactly where a keep-alive says that all is dealt with. */
static void keepalive_does_not_cover_a_commit_that_starts_there(void **state)
{
    struct bed *bed = *state;
    assert_true(tide_pg_follow_keepalive(&bed->follow, 1000, &bed->event));
    assert_int_equal(bed->event.kind, TIDE_EVENT_REACHED);
    struct tide_position reached = bed->event.position;
    assert_int_equal(tide_pg_position_next(reached), 1000);
    assert_false(tide_pg_follow_keepalive(&bed->follow, 1000, &bed->event));
    tide_pg_follow_start(&bed->follow, bed->relations, reached, 7000);
    begin(bed, 1000, 7001);
    describe_orders(bed, 'd');
    assert_int_equal(change(bed, 'I', ORDERS, 0, NULL, "1|a|b"), TIDE_OK);
    assert_true(bed->has_event);
    assert_true(tide_position_compare(bed->event.change.place.position, reached) > 0);
    assert_int_equal(commit(bed, 1000), TIDE_OK);
    assert_true(bed->has_event);
}

static void keepalive_inside_a_transaction_says_nothing(void **state)
{
    struct bed *bed = *state;
    begin(bed, 1000, 7001);
    assert_false(tide_pg_follow_keepalive(&bed->follow, 5000, &bed->event));
    assert_int_equal(commit(bed, 1000), TIDE_OK);
    assert_false(tide_pg_follow_keepalive(&bed->follow, 1001, &bed->event));
    assert_true(tide_pg_follow_keepalive(&bed->follow, 5000, &bed->event));
    assert_false(tide_pg_follow_keepalive(&bed->follow, 4000, &bed->event));
}

static void take_order_that_cannot_be_is_corrupt(void **state)
{
    struct bed *bed = *state;
    assert_int_equal(commit(bed, 1000), TIDE_CORRUPT);
    assert_int_equal(change(bed, 'I', ORDERS, 0, NULL, "1|a|b"), TIDE_CORRUPT);
    begin(bed, 1000, 7001);
    assert_int_equal(commit(bed, 1001), TIDE_CORRUPT);
    assert_int_equal(change(bed, 'I', ORDERS, 0, NULL, "1|a|b"), TIDE_CORRUPT); /* not described */
    put_u8(&bed->message, 'B');
    put_u64(&bed->message, 2000);
    put_u64(&bed->message, 0);
    put_u32(&bed->message, 7002);
    assert_int_equal(take(bed), TIDE_CORRUPT);
}

static void start_anew_wants_tables_described_again(void **state)
{
    struct bed *bed = *state;
    begin(bed, 1000, 7001);
    describe_orders(bed, 'd');
    assert_int_equal(change(bed, 'I', ORDERS, 0, NULL, "1|a|b"), TIDE_OK);
    const struct tide_relation *before = bed->event.change.relation;
    tide_pg_follow_start(&bed->follow, bed->relations, (struct tide_position){.lo = 100}, 7000);
    begin(bed, 1000, 7001);
    assert_int_equal(change(bed, 'I', ORDERS, 0, NULL, "1|a|b"), TIDE_CORRUPT);
    describe_orders(bed, 'd');
    assert_int_equal(change(bed, 'I', ORDERS, 0, NULL, "1|a|b"), TIDE_OK);
    assert_ptr_equal(bed->event.change.relation, before);
}

static void extend_tx_id_takes_the_nearest(void **state)
{
    static const struct {
        uint32_t xid;
        uint64_t near_id;
        uint64_t want;
    } cases[] = {
        {5, 3, 5},
        {3, 5, 3},
        {0xfffffff0u, 5, 0xfffffff0u}, /* there is nothing below */
        {5, 0xfffffff0u, UINT64_C(0x100000005)},
        {0xfffffff0u, UINT64_C(0x100000005), 0xfffffff0u},
        {7, UINT64_C(0x500000003), UINT64_C(0x500000007)},
        {0x80000003u, UINT64_C(0x500000003), UINT64_C(0x580000003)},
        {0x80000004u, UINT64_C(0x500000003), UINT64_C(0x480000004)},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(tide_pg_extend_tx_id(cases[i].xid, cases[i].near_id), cases[i].want);
    }
}

/* Rows */

static void take_update_keeps_what_was_not_sent(void **state)
{
    struct bed *bed = *state;
    begin(bed, 1000, 7001);
    describe_orders(bed, 'd');
    assert_int_equal(change(bed, 'U', ORDERS, 0, NULL, "1|b|" UNSENT), TIDE_OK);
    const struct tide_change *made = &bed->event.change;
    assert_int_equal(made->op, TIDE_OP_UPDATE);
    assert_true(made->is_partial);
    assert_int_equal(made->values[2].kind, TIDE_VALUE_UNCHANGED);
    assert_null(made->moved_from);
    assert_null(made->before);
}

static void take_update_with_another_key_is_moved(void **state)
{
    struct bed *bed = *state;
    begin(bed, 1000, 7001);
    describe_orders(bed, 'd');
    assert_int_equal(change(bed, 'U', ORDERS, 'K', "1|" NULL_FIELD "|" NULL_FIELD, "2|b|" UNSENT),
                     TIDE_OK);
    const struct tide_change *made = &bed->event.change;
    assert_text(made->key[0], "2");
    assert_text(made->moved_from[0], "1");
    assert_true(made->is_partial);
    assert_null(made->before);
}

/* `K` alone does not say that the key changed. */
static void take_update_with_the_same_old_key_is_not_moved(void **state)
{
    struct bed *bed = *state;
    begin(bed, 1000, 7001);
    describe_orders(bed, 'd');
    assert_int_equal(change(bed, 'U', ORDERS, 'K', "1|" NULL_FIELD "|" NULL_FIELD, "1|b|c"),
                     TIDE_OK);
    assert_null(bed->event.change.moved_from);
}

/* A key that is kept out of line comes as K with the new key unsent. */
static void take_update_takes_an_unsent_key_from_the_old_one(void **state)
{
    struct bed *bed = *state;
    static const struct described columns[] = {{"a", INT4, true}, {"b", TEXT, true}};
    begin(bed, 1000, 7001);
    assert_int_equal(describe(bed, ITEMS, "items", 'd', columns, 2), TIDE_OK);
    assert_int_equal(change(bed, 'U', ITEMS, 'K', "1|long", "2|" UNSENT), TIDE_OK);
    const struct tide_change *made = &bed->event.change;
    assert_false(made->is_partial);
    assert_text(made->values[1], "long");
    assert_text(made->key[0], "long"); /* in key order: b, a */
    assert_text(made->key[1], "2");
    assert_text(made->moved_from[0], "long");
    assert_text(made->moved_from[1], "1");
}

static void take_update_with_full_identity_fills_from_the_old_row(void **state)
{
    struct bed *bed = *state;
    begin(bed, 1000, 7001);
    describe_orders(bed, 'f');
    assert_int_equal(change(bed, 'U', ORDERS, 'O', "1|a|long", "1|b|" UNSENT), TIDE_OK);
    const struct tide_change *made = &bed->event.change;
    assert_false(made->is_partial);
    assert_text(made->values[2], "long");
    assert_text(made->before[1], "a");
    assert_text(made->before[2], "long");
    assert_null(made->moved_from);
    assert_int_equal(change(bed, 'D', ORDERS, 'O', "1|b|" NULL_FIELD, NULL), TIDE_OK);
    assert_text(bed->event.change.key[0], "1");
    assert_int_equal(bed->event.change.before[2].kind, TIDE_VALUE_NULL);
    assert_null(bed->event.change.values);
}

static void take_delete_has_a_key_alone(void **state)
{
    struct bed *bed = *state;
    begin(bed, 1000, 7001);
    describe_orders(bed, 'd');
    assert_int_equal(change(bed, 'D', ORDERS, 'K', "7|" NULL_FIELD "|" NULL_FIELD, NULL), TIDE_OK);
    assert_text(bed->event.change.key[0], "7");
    assert_null(bed->event.change.values);
    assert_null(bed->event.change.before);
}

static void take_bad_row_is_corrupt_and_names_the_column(void **state)
{
    struct bed *bed = *state;
    begin(bed, 1000, 7001);
    describe_orders(bed, 'd');
    assert_int_equal(change(bed, 'I', ORDERS, 0, NULL, "x|a|b"), TIDE_CORRUPT);
    assert_non_null(strstr(bed->err.message, "shop.public.orders"));
    assert_non_null(strstr(bed->err.message, "column id"));
    assert_int_equal(change(bed, 'I', ORDERS, 0, NULL, "1|a"), TIDE_CORRUPT);
    assert_int_equal(change(bed, 'U', ORDERS, 'K', "1|a", "1|a|b"), TIDE_CORRUPT);
    assert_int_equal(change(bed, 'I', ORDERS, 0, NULL, NULL_FIELD "|a|b"), TIDE_CORRUPT);
    assert_int_equal(change(bed, 'U', ORDERS, 0, NULL, UNSENT "|a|b"), TIDE_CORRUPT);
}

/* Relations */

static void describe_another_shape_makes_a_new_relation(void **state)
{
    struct bed *bed = *state;
    static const struct described columns[] = {
        {"note", TEXT, false}, {"id", INT4, true}, {"total", NUMERIC, false}};
    begin(bed, 1000, 7001);
    describe_orders(bed, 'd');
    assert_int_equal(change(bed, 'I', ORDERS, 0, NULL, "1|a|b"), TIDE_OK);
    const struct tide_relation *before = bed->event.change.relation;
    assert_int_equal(describe(bed, ORDERS, "orders", 'd', columns, 3), TIDE_OK);
    assert_int_equal(bed->lookups, 1);
    assert_int_equal(change(bed, 'I', ORDERS, 0, NULL, "n|7|1.50"), TIDE_OK);
    const struct tide_change *made = &bed->event.change;
    assert_ptr_not_equal(made->relation, before);
    assert_true(tide_str_equal(made->relation->columns[2].type, TIDE_STR("numeric(10,2)")));
    assert_int_equal(made->values[2].kind, TIDE_VALUE_DECIMAL);
    assert_text(made->key[0], "7");
    assert_true(tide_str_equal(before->columns[1].name, TIDE_STR("name"))); /* lives on */
    assert_int_equal(before->id, made->relation->id);
}

static void describe_type_that_is_gone_gives_text(void **state)
{
    struct bed *bed = *state;
    static const struct described columns[] = {{"id", INT4, true}, {"mood", 77777, false}};
    begin(bed, 1000, 7001);
    assert_int_equal(describe(bed, ORDERS, "orders", 'd', columns, 2), TIDE_OK);
    assert_int_equal(change(bed, 'I', ORDERS, 0, NULL, "1|glad"), TIDE_OK);
    assert_int_equal(bed->event.change.values[1].kind, TIDE_VALUE_TEXT);
}

static void describe_another_key_is_unsupported(void **state)
{
    struct bed *bed = *state;
    static const struct described other[] = {{"id", INT4, false}, {"name", TEXT, true}};
    static const struct described more[] = {{"id", INT4, true}, {"name", TEXT, true}};
    static const struct described renamed[] = {{"nr", INT4, true}, {"name", TEXT, false}};
    static const struct described none[] = {{"id", INT4, false}, {"name", TEXT, false}};
    begin(bed, 1000, 7001);
    assert_int_equal(describe(bed, ORDERS, "orders", 'd', other, 2), TIDE_UNSUPPORTED);
    assert_int_equal(describe(bed, ORDERS, "orders", 'd', more, 2), TIDE_UNSUPPORTED);
    assert_int_equal(describe(bed, ORDERS, "orders", 'd', renamed, 2), TIDE_UNSUPPORTED);
    assert_non_null(strstr(bed->err.message, "primary key"));
    assert_int_equal(describe(bed, ORDERS, "orders", 'i', other, 2), TIDE_UNSUPPORTED);
    assert_non_null(strstr(bed->err.message, "REPLICA IDENTITY DEFAULT"));
    assert_int_equal(describe(bed, ORDERS, "orders", 'n', none, 2), TIDE_UNSUPPORTED);
    assert_int_equal(describe(bed, 99, "others", 'n', none, 2), TIDE_OK); /* not ours */
}

int main(void)
{
#define WITH_BED(test) cmocka_unit_test_setup_teardown(test, bed_init, bed_done)
    const struct CMUnitTest tests[] = {
        WITH_BED(take_transaction_gives_changes_then_commit),
        WITH_BED(take_commit_of_empty_transaction_is_reached),
        WITH_BED(take_transaction_at_the_start_is_passed_over),
        WITH_BED(take_index_counts_passed_over_tables_too),
        WITH_BED(keepalive_does_not_cover_a_commit_that_starts_there),
        WITH_BED(keepalive_inside_a_transaction_says_nothing),
        WITH_BED(take_order_that_cannot_be_is_corrupt),
        WITH_BED(start_anew_wants_tables_described_again),
        cmocka_unit_test(extend_tx_id_takes_the_nearest),
        WITH_BED(take_update_keeps_what_was_not_sent),
        WITH_BED(take_update_with_another_key_is_moved),
        WITH_BED(take_update_with_the_same_old_key_is_not_moved),
        WITH_BED(take_update_takes_an_unsent_key_from_the_old_one),
        WITH_BED(take_update_with_full_identity_fills_from_the_old_row),
        WITH_BED(take_delete_has_a_key_alone),
        WITH_BED(take_bad_row_is_corrupt_and_names_the_column),
        WITH_BED(describe_another_shape_makes_a_new_relation),
        WITH_BED(describe_type_that_is_gone_gives_text),
        WITH_BED(describe_another_key_is_unsupported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
