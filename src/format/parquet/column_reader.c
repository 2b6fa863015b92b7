/*
 * Pages to arrays. A data page's body is
 *
 *     version 1: compressed( [u32 size, repetition levels] [u32 size, definition levels] values )
 *     version 2: [repetition levels] [definition levels] compressed( values )
 *
 * with sizes of version 2 in its header. Levels are there only where the column has some.
 */
#include "format/parquet/column_reader.h"

#include "format/parquet/crc32.h"
#include "format/parquet/hybrid.h"
#include "format/parquet/values.h"

/* The parts of a page's body, out of compression. */
struct body {
    tide_str repetitions;
    tide_str definitions;
    tide_str values;
};

/* What a page's levels come to. */
struct entries {
    size_t count;       /* as the header says */
    size_t slot_count;  /* of them */
    size_t value_count; /* slots that are no nulls */
};

static tide_status fail_page(const struct tide_parquet_column_reader *reader, tide_status status,
                             const char *what, struct tide_error *err)
{
    return tide_fail(err, status, "column %.*s: %s", TIDE_STR_ARG(reader->column->name), what);
}

/* Takes `size` bytes off the front; false when there are fewer. */
static bool take(tide_str *bytes, size_t size, tide_str *ret_taken)
{
    if (size > bytes->len) {
        return false;
    }
    *ret_taken = tide_str_of(bytes->ptr, size);
    *bytes = tide_str_of(bytes->ptr + size, bytes->len - size);
    return true;
}

static bool take_sized(tide_str *bytes, tide_str *ret_taken)
{
    tide_str head;
    uint32_t size = 0;
    if (!take(bytes, sizeof(size), &head)) {
        return false;
    }
    memcpy(&size, head.ptr, sizeof(size));
    return take(bytes, size, ret_taken);
}

/* The bytes before compression. They stay with the values where slices will point into them. */
static tide_status unpack(struct tide_parquet_column_reader *reader, bool is_packed,
                          tide_str packed, size_t size, tide_str *ret_plain, struct tide_error *err)
{
    int32_t codec = is_packed ? reader->chunk->codec : TIDE_PARQUET_UNCOMPRESSED;
    if (size > reader->limits->page_bytes || size > reader->limits->chunk_bytes - reader->bytes) {
        return tide_fail(err, TIDE_UNSUPPORTED,
                         "column %.*s: pages of more bytes (%zu after %zu) than are read",
                         TIDE_STR_ARG(reader->column->name), size, reader->bytes);
    }
    reader->bytes += size;
    if (tide_parquet_unpack_check(codec, packed, size, err) != TIDE_OK) {
        return tide_fail_context(err, "column %.*s", TIDE_STR_ARG(reader->column->name));
    }
    if (codec == TIDE_PARQUET_UNCOMPRESSED || size == 0) {
        *ret_plain = tide_str_of(packed.ptr, size);
        return TIDE_OK;
    }
    struct tide_parquet_values *values = reader->values;
    bool stays = tide_parquet_storage_of(reader->column) == TIDE_PARQUET_AS_BYTES;
    tide_buf_reset(&values->page);
    char *to =
        stays ? tide_arena_bytes(&values->arena, size) : tide_buf_reserve(&values->page, size);
    if (tide_parquet_unpack(reader->unpacker, codec, packed, to, size, err) != TIDE_OK) {
        return tide_fail_context(err, "column %.*s", TIDE_STR_ARG(reader->column->name));
    }
    *ret_plain = tide_str_of(to, size);
    return TIDE_OK;
}

static tide_status read_dictionary(struct tide_parquet_column_reader *reader,
                                   const struct tide_parquet_page *page, tide_str packed,
                                   struct tide_error *err)
{
    tide_str plain;
    struct tide_buf *known = &reader->values->dictionary;
    size_t count = (size_t)page->value_count;
    size_t width = reader->leaf->width != 0 ? reader->leaf->width : sizeof(uint32_t);
    if (reader->has_dictionary || reader->column->type == TIDE_PARQUET_BOOL) {
        return fail_page(reader, TIDE_CORRUPT, "it has two dictionaries, or one of booleans", err);
    }
    if (page->encoding != TIDE_PARQUET_PLAIN && page->encoding != TIDE_PARQUET_PLAIN_DICTIONARY) {
        return tide_fail(
            err, TIDE_UNSUPPORTED, "column %.*s has a dictionary encoded %s, which is not read",
            TIDE_STR_ARG(reader->column->name), tide_parquet_encoding_name(page->encoding));
    }
    TIDE_TRY(unpack(reader, true, packed, (size_t)page->plain_size, &plain, err));
    if (count > plain.len / width) {
        return fail_page(reader, TIDE_CORRUPT, "its dictionary ends before its last value", err);
    }
    tide_buf_reset(known);
    char *to = tide_buf_reserve(known, count * reader->size);
    TIDE_TRY(tide_parquet_plain_read(reader->column, reader->leaf, plain, count, to, err));
    reader->has_dictionary = true;
    reader->dictionary_count = count;
    return TIDE_OK;
}

static tide_status take_body_v1(struct tide_parquet_column_reader *reader,
                                const struct tide_parquet_page *page, tide_str packed,
                                struct body *body, struct tide_error *err)
{
    bool has_repetitions = reader->leaf->max_repetition > 0;
    bool has_definitions = reader->leaf->max_definition > 0;
    if ((has_repetitions && page->repetition_encoding != TIDE_PARQUET_RLE) ||
        (has_definitions && page->definition_encoding != TIDE_PARQUET_RLE)) {
        return fail_page(reader, TIDE_UNSUPPORTED,
                         "its levels are encoded BIT_PACKED, which is not read", err);
    }
    TIDE_TRY(unpack(reader, true, packed, (size_t)page->plain_size, &body->values, err));
    if ((has_repetitions && !take_sized(&body->values, &body->repetitions)) ||
        (has_definitions && !take_sized(&body->values, &body->definitions))) {
        return fail_page(reader, TIDE_CORRUPT, "a page ends within its levels", err);
    }
    return TIDE_OK;
}

static tide_status take_body_v2(struct tide_parquet_column_reader *reader,
                                const struct tide_parquet_page *page, tide_str packed,
                                struct body *body, struct tide_error *err)
{
    size_t plain_size = (size_t)page->plain_size;
    if (page->repetition_size < 0 || page->definition_size < 0 ||
        !take(&packed, (size_t)page->repetition_size, &body->repetitions) ||
        !take(&packed, (size_t)page->definition_size, &body->definitions) ||
        plain_size < body->repetitions.len + body->definitions.len) {
        return fail_page(reader, TIDE_CORRUPT, "a page ends within its levels", err);
    }
    plain_size -= body->repetitions.len + body->definitions.len;
    return unpack(reader, page->is_packed, packed, plain_size, &body->values, err);
}

/* `count` levels, none above `highest`. */
static tide_status read_levels(struct tide_parquet_column_reader *reader, tide_str bytes,
                               unsigned highest, uint32_t *ret_levels, size_t count,
                               struct tide_error *err)
{
    struct tide_hybrid_reader hybrid = tide_hybrid_reader_of(bytes, tide_hybrid_width(highest));
    if (!tide_hybrid_read(&hybrid, ret_levels, count)) {
        return fail_page(reader, TIDE_CORRUPT, "a page has fewer levels than values", err);
    }
    for (size_t i = 0; i < count; i++) {
        if (ret_levels[i] > highest) {
            return fail_page(reader, TIDE_CORRUPT, "a page has a level above the schema's", err);
        }
    }
    return TIDE_OK;
}

/* Rows of a flat column: which are null. */
static tide_status read_flat_levels(struct tide_parquet_column_reader *reader,
                                    const struct body *body, struct entries *entries,
                                    struct tide_error *err)
{
    struct tide_buf *levels = &reader->values->levels;
    struct tide_buf *nulls = &reader->values->nulls;
    size_t count = entries->count;
    entries->slot_count = entries->value_count = count;
    if (reader->leaf->max_definition == 0) {
        return TIDE_OK;
    }
    uint8_t *is_null = (uint8_t *)tide_buf_reserve(nulls, count);
    struct tide_hybrid_reader hybrid = tide_hybrid_reader_of(body->definitions, 1);
    if (tide_hybrid_take_run(&hybrid, 1, count)) {
        memset(is_null, 0, count);
        nulls->len += count;
        return TIDE_OK;
    }
    tide_buf_reset(levels);
    uint32_t *definitions = (uint32_t *)(void *)tide_buf_reserve(levels, count * sizeof(uint32_t));
    TIDE_TRY(read_levels(reader, body->definitions, 1, definitions, count, err));
    size_t value_count = 0;
    for (size_t i = 0; i < count; i++) {
        is_null[i] = (uint8_t)(1 - definitions[i]);
        value_count += definitions[i];
    }
    nulls->len += count;
    entries->value_count = value_count;
    return TIDE_OK;
}

/* Whether the last list has an element before `slot`: null and empty ones do not go on. */
static bool has_element(const struct tide_parquet_values *values, uint32_t slot)
{
    uint32_t start = 0;
    if (values->starts.len == 0) {
        return false;
    }
    memcpy(&start, values->starts.ptr + (values->starts.len - sizeof(start)), sizeof(start));
    return start < slot;
}

/* One entry of a list column: a new list or a further element. False when it can be neither. */
static bool take_list_entry(struct tide_parquet_column_reader *reader, uint32_t repetition,
                            uint32_t definition, struct entries *entries)
{
    struct tide_parquet_values *values = reader->values;
    unsigned is_nullable = reader->column->is_nullable;
    bool is_slot = definition > is_nullable;
    uint32_t start = (uint32_t)(values->slots.len / reader->size + entries->slot_count);
    if (repetition == 0) {
        bool is_null = definition < is_nullable;
        tide_buf_append(&values->starts, &start, sizeof(start));
        tide_buf_append_char(&values->list_nulls, (char)is_null);
        reader->null_list_count += is_null;
    } else if (!is_slot || !has_element(values, start)) {
        return false;
    }
    if (is_slot) {
        bool is_value = definition == reader->leaf->max_definition;
        tide_buf_append_char(&values->nulls, (char)!is_value);
        entries->slot_count++;
        entries->value_count += is_value;
    }
    return true;
}

static tide_status read_list_levels(struct tide_parquet_column_reader *reader,
                                    const struct body *body, struct entries *entries,
                                    struct tide_error *err)
{
    struct tide_buf *levels = &reader->values->levels;
    size_t count = entries->count;
    tide_buf_reset(levels);
    uint32_t *repetitions =
        (uint32_t *)(void *)tide_buf_reserve(levels, 2 * count * sizeof(uint32_t));
    uint32_t *definitions = repetitions + count;
    TIDE_TRY(read_levels(reader, body->repetitions, 1, repetitions, count, err));
    TIDE_TRY(read_levels(reader, body->definitions, reader->leaf->max_definition, definitions,
                         count, err));
    for (size_t i = 0; i < count; i++) {
        if (!take_list_entry(reader, repetitions[i], definitions[i], entries)) {
            return fail_page(reader, TIDE_CORRUPT, "a list goes on that has not begun", err);
        }
    }
    return TIDE_OK;
}

/* Values by their numbers in the dictionary. */
static tide_status read_numbers(struct tide_parquet_column_reader *reader, tide_str bytes,
                                size_t count, char *to, struct tide_error *err)
{
    struct tide_buf *numbers = &reader->values->numbers;
    tide_str head;
    if (!reader->has_dictionary) {
        return fail_page(reader, TIDE_CORRUPT, "a page needs a dictionary that is not there", err);
    }
    if (count == 0) {
        return TIDE_OK;
    }
    if (!take(&bytes, 1, &head) || (uint8_t)*head.ptr > 32) {
        return fail_page(reader, TIDE_CORRUPT, "a page lacks the width of its numbers", err);
    }
    tide_buf_reset(numbers);
    uint32_t *list = (uint32_t *)(void *)tide_buf_reserve(numbers, count * sizeof(*list));
    struct tide_hybrid_reader hybrid = tide_hybrid_reader_of(bytes, (uint8_t)*head.ptr);
    if (!tide_hybrid_read(&hybrid, list, count) ||
        !tide_parquet_gather(reader->values->dictionary.ptr, reader->dictionary_count, list, count,
                             reader->size, to)) {
        return fail_page(reader, TIDE_CORRUPT,
                         "a page has too few numbers, or some that its dictionary has not", err);
    }
    return TIDE_OK;
}

/* Booleans as runs: in pages of version 2. */
static tide_status read_bool_runs(struct tide_parquet_column_reader *reader, tide_str bytes,
                                  size_t count, char *to, struct tide_error *err)
{
    struct tide_buf *numbers = &reader->values->numbers;
    tide_str runs = {"", 0};
    tide_buf_reset(numbers);
    uint32_t *list = (uint32_t *)(void *)tide_buf_reserve(numbers, count * sizeof(*list));
    bool is_there = count == 0 || take_sized(&bytes, &runs);
    struct tide_hybrid_reader hybrid = tide_hybrid_reader_of(runs, 1);
    if (!is_there || !tide_hybrid_read(&hybrid, list, count)) {
        return fail_page(reader, TIDE_CORRUPT, "a page ends before its last boolean", err);
    }
    for (size_t i = 0; i < count; i++) {
        to[i] = (char)list[i];
    }
    return TIDE_OK;
}

static tide_status read_values(struct tide_parquet_column_reader *reader, int32_t encoding,
                               tide_str bytes, const struct entries *entries,
                               struct tide_error *err)
{
    struct tide_parquet_values *values = reader->values;
    size_t count = entries->value_count;
    bool is_bool = reader->column->type == TIDE_PARQUET_BOOL;
    char *to = tide_buf_reserve(&values->slots, entries->slot_count * reader->size);
    if (encoding == TIDE_PARQUET_PLAIN) {
        TIDE_TRY(tide_parquet_plain_read(reader->column, reader->leaf, bytes, count, to, err));
    } else if (encoding == TIDE_PARQUET_RLE_DICTIONARY ||
               encoding == TIDE_PARQUET_PLAIN_DICTIONARY) {
        TIDE_TRY(read_numbers(reader, bytes, count, to, err));
    } else if (encoding == TIDE_PARQUET_RLE && is_bool) {
        TIDE_TRY(read_bool_runs(reader, bytes, count, to, err));
    } else {
        return tide_fail(err, TIDE_UNSUPPORTED, "column %.*s is encoded %s, which is not read",
                         TIDE_STR_ARG(reader->column->name), tide_parquet_encoding_name(encoding));
    }
    if (count < entries->slot_count) {
        const uint8_t *is_null =
            (const uint8_t *)values->nulls.ptr + values->slots.len / reader->size;
        tide_parquet_spread(to, reader->size, is_null, entries->slot_count, count);
        reader->null_count += entries->slot_count - count;
    }
    values->slots.len += entries->slot_count * reader->size;
    return TIDE_OK;
}

static tide_status read_data(struct tide_parquet_column_reader *reader,
                             const struct tide_parquet_page *page, tide_str packed,
                             struct tide_error *err)
{
    struct body body = {TIDE_STR(""), TIDE_STR(""), TIDE_STR("")};
    struct entries entries = {.count = (size_t)page->value_count};
    if (entries.count > reader->entries_left) {
        return fail_page(reader, TIDE_CORRUPT, "its pages have more values than it counts", err);
    }
    TIDE_TRY(page->type == TIDE_PARQUET_DATA_PAGE ? take_body_v1(reader, page, packed, &body, err)
                                                  : take_body_v2(reader, page, packed, &body, err));
    TIDE_TRY(reader->column->is_list ? read_list_levels(reader, &body, &entries, err)
                                     : read_flat_levels(reader, &body, &entries, err));
    TIDE_TRY(read_values(reader, page->encoding, body.values, &entries, err));
    reader->entries_left -= entries.count;
    return TIDE_OK;
}

static tide_status read_page(struct tide_parquet_column_reader *reader,
                             const struct tide_parquet_page *page, tide_str packed,
                             struct tide_error *err)
{
    switch (page->type) {
    case TIDE_PARQUET_DICTIONARY_PAGE:
        return read_dictionary(reader, page, packed, err);
    case TIDE_PARQUET_DATA_PAGE:
    case TIDE_PARQUET_DATA_PAGE_V2:
        return read_data(reader, page, packed, err);
    default:
        return TIDE_OK; /* the format asks to pass over pages of other types */
    }
}

tide_status tide_parquet_column_read(struct tide_parquet_column_reader *reader, tide_str bytes,
                                     struct tide_error *err)
{
    while (reader->entries_left > 0) {
        struct tide_parquet_page page;
        size_t head_size = 0;
        tide_str packed;
        if (tide_parquet_page_read(bytes, &page, &head_size, err) != TIDE_OK) {
            return tide_fail_context(err, "column %.*s", TIDE_STR_ARG(reader->column->name));
        }
        bytes = tide_str_of(bytes.ptr + head_size, bytes.len - head_size);
        if (!take(&bytes, (size_t)page.packed_size, &packed)) {
            return fail_page(reader, TIDE_CORRUPT, "its last page is cut off", err);
        }
        if (page.has_checksum && !reader->limits->takes_any_checksum &&
            tide_parquet_crc32(packed) != page.checksum) {
            return fail_page(reader, TIDE_CORRUPT, "a page is not what its checksum says", err);
        }
        TIDE_TRY(read_page(reader, &page, packed, err));
    }
    return TIDE_OK;
}
