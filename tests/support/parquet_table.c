#include "parquet_table.h"

#include "base/status.h"

uint64_t parquet_random_next(struct parquet_random *random)
{
    uint64_t value = 0;
    if (random->size > 0) {
        size_t len = random->size < sizeof(value) ? random->size : sizeof(value);
        memcpy(&value, random->data, len);
        random->data += len;
        random->size -= len;
        return value;
    }
    random->state += 0x9e3779b97f4a7c15U; /* splitmix64 */
    value = random->state;
    value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9U;
    value = (value ^ value >> 27) * 0x94d049bb133111ebU;
    return value ^ value >> 31;
}

size_t parquet_random_below(struct parquet_random *random, size_t limit)
{
    if (random->size > 0) {
        uint8_t byte = *random->data++;
        random->size--;
        return limit <= 256 ? byte % limit : byte * (limit / 256) % limit;
    }
    return (size_t)(parquet_random_next(random) % limit);
}

struct tide_parquet_column parquet_random_column(struct parquet_random *random,
                                                 enum tide_parquet_type type, tide_str name)
{
    struct tide_parquet_column column = {.name = name, .type = type};
    column.is_nullable = parquet_random_below(random, 2);
    column.is_list = parquet_random_below(random, 3) == 0;
    column.is_element_nullable = column.is_list && parquet_random_below(random, 2);
    if (type == TIDE_PARQUET_DECIMAL) {
        column.precision = (uint8_t)(1 + parquet_random_below(random, 38));
        column.scale = (uint8_t)parquet_random_below(random, column.precision + 1U);
    } else if (type == TIDE_PARQUET_TIME || type == TIDE_PARQUET_TIMESTAMP) {
        column.unit = (enum tide_parquet_unit)parquet_random_below(random, 3);
        column.is_utc = parquet_random_below(random, 2);
    }
    return column;
}

static tide_int128 any_decimal(struct parquet_random *random, unsigned precision)
{
    unsigned digits = 1 + (unsigned)parquet_random_below(random, precision);
    tide_int128 value = 0;
    for (unsigned i = 0; i < digits; i++) {
        value = value * 10 + (tide_int128)parquet_random_below(random, 10);
    }
    return parquet_random_below(random, 2) ? -value : value;
}

static tide_str any_bytes(struct parquet_random *random, struct tide_arena *arena,
                          enum tide_parquet_type type)
{
    static const char *const letters[] = {
        "a", "b", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\x7f", "zzzzzzzzzzzzzzzz"};
    char text[1024]; /* of 59 letters of 16 bytes */
    size_t len = 0;
    size_t count = parquet_random_below(random, parquet_random_below(random, 20) == 0 ? 60 : 8);
    if (type == TIDE_PARQUET_UUID) {
        count = len = 16;
        for (size_t i = 0; i < count; i++) {
            text[i] = (char)parquet_random_below(random, i < 2 ? 256 : 2);
        }
    }
    if (type == TIDE_PARQUET_JSON) {
        text[len++] = '"'; /* a string: others look whether it is JSON */
    }
    for (size_t i = type == TIDE_PARQUET_UUID ? count : 0; i < count; i++) {
        const char *letter = letters[parquet_random_below(random, 7)];
        size_t size = type == TIDE_PARQUET_BINARY ? 1 : strlen(letter);
        memcpy(text + len, letter, size);
        len += size;
    }
    if (type == TIDE_PARQUET_JSON) {
        text[len++] = '"';
    }
    return tide_arena_str(arena, tide_str_of(text, len));
}

/* Bits that the type can hold; few of them where `range` is small. */
static tide_int128 any_number(struct parquet_random *random,
                              const struct tide_parquet_column *column, size_t range)
{
    uint64_t bits = range == 0 ? parquet_random_next(random) : parquet_random_below(random, range);
    enum tide_parquet_type type = column->type;
    if (type == TIDE_PARQUET_DECIMAL) {
        return any_decimal(random, column->precision);
    }
    if (type == TIDE_PARQUET_BOOL) {
        return bits & 1;
    }
    if (type == TIDE_PARQUET_INT8 || type == TIDE_PARQUET_UINT8) {
        return type == TIDE_PARQUET_INT8 ? (int8_t)bits : (uint8_t)bits;
    }
    if (type == TIDE_PARQUET_INT16 || type == TIDE_PARQUET_UINT16) {
        return type == TIDE_PARQUET_INT16 ? (int16_t)bits : (uint16_t)bits;
    }
    bool is_narrow = tide_parquet_storage_of(column) == TIDE_PARQUET_AS_I32;
    return is_narrow ? (int32_t)bits : (int64_t)bits;
}

static struct parquet_slot any_slot(struct parquet_random *random, struct tide_arena *arena,
                                    const struct tide_parquet_column *column, size_t range,
                                    bool is_nullable)
{
    struct parquet_slot slot = {0};
    if (is_nullable && parquet_random_below(random, 4) == 0) {
        slot.is_null = true;
    } else if (tide_parquet_storage_of(column) == TIDE_PARQUET_AS_BYTES) {
        slot.bytes = any_bytes(random, arena, column->type);
    } else {
        slot.number = any_number(random, column, range);
        if (column->type == TIDE_PARQUET_FLOAT) {
            slot.number = (uint32_t)slot.number;
        }
    }
    return slot;
}

/* Runs of one value, a few values, or any. */
static void draw_slots(struct parquet_table *table, struct parquet_random *random, size_t column,
                       size_t count, bool is_nullable)
{
    static const size_t ranges[] = {0, 0, 1, 3, 200, 100000};
    struct parquet_cells *cells = &table->cells[column];
    size_t range = ranges[parquet_random_below(random, 6)];
    bool has_runs = parquet_random_below(random, 3) == 0;
    cells->slots = tide_arena_alloc(&table->arena, count + 1, sizeof(*cells->slots));
    cells->slot_count = count;
    for (size_t i = 0; i < count; i++) {
        cells->slots[i] =
            has_runs && i > 0 && parquet_random_below(random, 10) != 0
                ? cells->slots[i - 1]
                : any_slot(random, &table->arena, &table->columns[column], range, is_nullable);
    }
}

static void draw_lists(struct parquet_table *table, struct parquet_random *random, size_t column)
{
    struct parquet_cells *cells = &table->cells[column];
    size_t rows = table->row_count;
    size_t count = 0;
    cells->list_starts = tide_arena_alloc(&table->arena, rows + 1, sizeof(*cells->list_starts));
    cells->is_list_null = tide_arena_alloc(&table->arena, rows + 1, sizeof(*cells->is_list_null));
    for (size_t row = 0; row < rows; row++) {
        bool is_null = table->columns[column].is_nullable && parquet_random_below(random, 4) == 0;
        cells->list_starts[row] = count;
        cells->is_list_null[row] = is_null;
        count += is_null ? 0 : parquet_random_below(random, 5);
    }
    cells->list_starts[rows] = count;
    draw_slots(table, random, column, count, table->columns[column].is_element_nullable);
}

void parquet_table_make(struct parquet_table *table, struct parquet_random *random,
                        struct tide_parquet_column *columns, size_t column_count, size_t row_count)
{
    *table = (struct parquet_table){
        .columns = columns, .column_count = column_count, .row_count = row_count};
    table->cells = tide_arena_alloc(&table->arena, column_count, sizeof(*table->cells));
    for (size_t i = 0; i < column_count; i++) {
        table->cells[i] = (struct parquet_cells){0};
        if (columns[i].is_list) {
            draw_lists(table, random, i);
        } else {
            draw_slots(table, random, i, row_count, columns[i].is_nullable);
        }
    }
}

void parquet_table_done(struct parquet_table *table)
{
    tide_arena_done(&table->arena);
}

struct tide_parquet_options parquet_random_options(struct parquet_random *random)
{
    static const enum tide_parquet_codec codecs[] = {TIDE_PARQUET_UNCOMPRESSED, TIDE_PARQUET_ZSTD,
                                                     TIDE_PARQUET_LZ4_RAW};

    static const size_t page_bytes[] = {1, 7, 100, 1000, 1 << 20};
    static const size_t dictionary_bytes[] = {0, 1, 50, 2000, 1 << 20};
    static const size_t rows[] = {1, 3, 50, 1000, 1 << 20};
    struct tide_parquet_options options = tide_parquet_options_default();
    options.level = 1;
    options.codec = codecs[parquet_random_below(random, 3)];
    options.page_bytes = page_bytes[parquet_random_below(random, 5)];
    options.dictionary_bytes_max = dictionary_bytes[parquet_random_below(random, 5)];
    options.row_group_rows = rows[parquet_random_below(random, 5)];
    return options;
}

static void add_slot(struct tide_parquet_writer *writer, size_t column,
                     enum tide_parquet_storage storage, const struct parquet_slot *slot)
{
    float narrow;
    double wide;
    if (slot->is_null) {
        tide_parquet_add_null(writer, column);
        return;
    }
    switch (storage) {
    case TIDE_PARQUET_AS_BOOL:
        tide_parquet_add_bool(writer, column, slot->number != 0);
        break;
    case TIDE_PARQUET_AS_I32:
        tide_parquet_add_i32(writer, column, (int32_t)slot->number);
        break;
    case TIDE_PARQUET_AS_I64:
        tide_parquet_add_i64(writer, column, (int64_t)slot->number);
        break;
    case TIDE_PARQUET_AS_FLOAT:
        memcpy(&narrow, &slot->number, sizeof(narrow));
        tide_parquet_add_float(writer, column, narrow);
        break;
    case TIDE_PARQUET_AS_DOUBLE:
        memcpy(&wide, &slot->number, sizeof(wide));
        tide_parquet_add_double(writer, column, wide);
        break;
    case TIDE_PARQUET_AS_I128:
        tide_parquet_add_i128(writer, column, slot->number);
        break;
    case TIDE_PARQUET_AS_BYTES:
        tide_parquet_add_bytes(writer, column, slot->bytes);
        break;
    }
}

static void add_rows(const struct parquet_table *table, struct tide_parquet_writer *writer,
                     size_t column, size_t start, size_t end)
{
    const struct parquet_cells *cells = &table->cells[column];
    enum tide_parquet_storage storage = tide_parquet_storage_of(&table->columns[column]);
    for (size_t row = start; row < end; row++) {
        size_t slot = row;
        size_t slot_end = row + 1;
        if (cells->list_starts != NULL) {
            slot = cells->list_starts[row];
            slot_end = cells->list_starts[row + 1];
            if (cells->is_list_null[row]) {
                tide_parquet_add_null(writer, column);
            } else {
                tide_parquet_add_list(writer, column, slot_end - slot);
            }
        }
        for (; slot < slot_end; slot++) {
            add_slot(writer, column, storage, &cells->slots[slot]);
        }
    }
}

tide_status parquet_table_write(const struct parquet_table *table,
                                struct tide_parquet_writer *writer, size_t step,
                                struct tide_error *err)
{
    size_t row = 0;
    while (row < table->row_count) {
        size_t left = table->row_count - row;
        size_t count = step == 0 || step > left ? left : step;
        for (size_t column = 0; column < table->column_count; column++) {
            add_rows(table, writer, column, row, row + count);
        }
        TIDE_TRY(tide_parquet_writer_end_rows(writer, count, err));
        row += count;
    }
    return TIDE_OK;
}

static void check_slot(const struct parquet_slot *slot, const struct tide_parquet_values *values,
                       size_t at)
{
    static const tide_int128 zeros;
    size_t size = tide_parquet_storage_size(values->storage);
    const char *got = (const char *)values->bytes + at * size;
    TIDE_ASSERT((values->is_null != NULL && values->is_null[at]) == slot->is_null);
    if (slot->is_null) {
        TIDE_ASSERT(memcmp(got, &zeros, size) == 0);
    } else if (values->storage == TIDE_PARQUET_AS_BYTES) {
        TIDE_ASSERT(tide_str_equal(values->bytes[at], slot->bytes));
    } else {
        TIDE_ASSERT(memcmp(got, &slot->number, size) == 0);
    }
}

static void check_rows(const struct parquet_cells *cells, const struct tide_parquet_values *values,
                       size_t first_row)
{
    size_t first = first_row;
    if (cells->list_starts != NULL) {
        first = cells->list_starts[first_row];
        for (size_t row = 0; row < values->row_count; row++) {
            bool is_null = values->is_list_null != NULL && values->is_list_null[row];
            TIDE_ASSERT(values->list_starts[row] == cells->list_starts[first_row + row] - first);
            TIDE_ASSERT(is_null == cells->is_list_null[first_row + row]);
        }
        TIDE_ASSERT(values->list_starts[values->row_count] == values->slot_count);
        TIDE_ASSERT(cells->list_starts[first_row + values->row_count] - first ==
                    values->slot_count);
    }
    for (size_t i = 0; i < values->slot_count; i++) {
        check_slot(&cells->slots[first + i], values, i);
    }
}

/* Some write a UUID as fixed bytes and JSON as text. */
static bool are_bytes(const struct tide_parquet_column *got, const struct tide_parquet_column *want)
{
    return tide_parquet_storage_of(got) == TIDE_PARQUET_AS_BYTES &&
           tide_parquet_storage_of(want) == TIDE_PARQUET_AS_BYTES;
}

static void check_columns(const struct parquet_table *table,
                          const struct tide_parquet_metadata *metadata, bool is_ours)
{
    TIDE_ASSERT(metadata->column_count == table->column_count);
    TIDE_ASSERT(metadata->row_count == (int64_t)table->row_count);
    for (size_t i = 0; i < table->column_count; i++) {
        const struct tide_parquet_column *want = &table->columns[i];
        const struct tide_parquet_column *got = &metadata->columns[i];
        TIDE_ASSERT(got->refused == NULL && tide_str_equal(got->name, want->name));
        TIDE_ASSERT(got->type == want->type || (!is_ours && are_bytes(got, want)));
        TIDE_ASSERT(got->unit == want->unit);
        TIDE_ASSERT(got->is_utc == want->is_utc && got->precision == want->precision);
        TIDE_ASSERT(got->scale == want->scale);
        TIDE_ASSERT(got->is_list == want->is_list);
        TIDE_ASSERT(!is_ours || got->is_nullable == want->is_nullable);
        TIDE_ASSERT(!is_ours || got->is_element_nullable == want->is_element_nullable);
    }
}

void parquet_table_check(const struct parquet_table *table, tide_str bytes, bool is_ours)
{
    struct tide_parquet_limits limits = tide_parquet_limits_default();
    struct tide_parquet_reader *reader = NULL;
    struct tide_parquet_values values = {0};
    struct tide_error err = {0};
    TIDE_ASSERT(tide_parquet_reader_new(bytes, &limits, &reader, &err) == TIDE_OK);
    const struct tide_parquet_metadata *metadata = tide_parquet_reader_metadata(reader);
    check_columns(table, metadata, is_ours);
    size_t row = 0;
    for (size_t group = 0; group < metadata->group_count; group++) {
        for (size_t column = 0; column < table->column_count; column++) {
            tide_status status = tide_parquet_reader_read(reader, group, column, &values, &err);
            TIDE_ASSERT(status == TIDE_OK);
            check_rows(&table->cells[column], &values, row);
        }
        row += values.row_count;
    }
    TIDE_ASSERT(row == table->row_count);
    tide_parquet_values_done(&values);
    tide_parquet_reader_free(reader);
}
