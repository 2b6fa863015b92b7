/*
 * Parquet files from lines of text and back, for tests that compare them with other programs.
 *
 *     parquet_tool write TEXT FILE [CODEC [PAGE_BYTES [DICTIONARY_BYTES [ROW_GROUP_ROWS]]]]
 *     parquet_tool read FILE
 *
 *     pair KEY VALUE                                   in hexadecimal, as all bytes here
 *     column NAME TYPE UNIT UTC PRECISION SCALE NULLABLE LIST ELEMENT_NULLABLE
 *     group ROWS                                       then each column's rows, column by column:
 *     n | v VALUE | l COUNT and its elements           floats as their bits, decimals as text
 *
 * A column that is not read is shown as `refused NAME MESSAGE`. Exit 1 and a message on standard
 * error when the whole file is not.
 */
#include "base/alloc.h"
#include "format/parquet/decimal.h"
#include "format/parquet/reader.h"
#include "format/parquet/writer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const type_names[] = {"bool",   "int8",    "int16",  "int32",  "int64",
                                         "uint8",  "uint16",  "uint32", "uint64", "float",
                                         "double", "decimal", "date",   "time",   "timestamp",
                                         "string", "binary",  "uuid",   "json"};
static const char *const unit_names[] = {"us", "ms", "ns"};
static const char *const codec_names[] = {"none", "zstd", "lz4"};

static const enum tide_parquet_codec codecs[] = {TIDE_PARQUET_UNCOMPRESSED, TIDE_PARQUET_ZSTD,
                                                 TIDE_PARQUET_LZ4_RAW};

static void die(const char *message)
{
    (void)fprintf(stderr, "%s\n", message);
    exit(1);
}

static void must(tide_status status, const struct tide_error *err)
{
    if (status != TIDE_OK) {
        die(err->message);
    }
}

static size_t find(const char *const *names, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(names[i], name) == 0) {
            return i;
        }
    }
    die(name);
    return 0;
}

static tide_str unhex(struct tide_arena *arena, const char *text)
{
    size_t len = strlen(text) / 2;
    char *bytes = tide_arena_bytes(arena, len);
    for (size_t i = 0; i < len; i++) {
        char pair[3] = {text[2 * i], text[2 * i + 1], '\0'};
        bytes[i] = (char)strtoul(pair, NULL, 16);
    }
    return tide_str_of(bytes, len);
}

static void print_hex(tide_str bytes)
{
    for (size_t i = 0; i < bytes.len; i++) {
        (void)printf("%02x", (unsigned char)bytes.ptr[i]);
    }
}

static struct tide_buf read_file(const char *path)
{
    struct tide_buf buf = {0};
    FILE *file = fopen(path, "rb");
    size_t got = 0;
    if (file == NULL) {
        die(path);
    }
    do {
        got = fread(tide_buf_reserve(&buf, 1 << 16), 1, 1 << 16, file);
        buf.len += got;
    } while (got > 0);
    (void)fclose(file);
    return buf;
}

struct input {
    struct tide_arena arena;
    struct tide_parquet_column columns[256];
    size_t column_count;
    struct tide_parquet_pair pairs[16];
    size_t pair_count;
    char *save; /* of strtok_r over lines */
};

static void take_column(struct input *input, char *line)
{
    char name[512];
    char type[32];
    char unit[8];
    int utc;
    int precision;
    int scale;
    int nullable;
    int list;
    int element_nullable;
    if (input->column_count == 256 ||
        sscanf(line, "column %511s %31s %7s %d %d %d %d %d %d", name, type, unit, &utc, &precision,
               &scale, &nullable, &list, &element_nullable) != 9) {
        die(line);
    }
    input->columns[input->column_count++] = (struct tide_parquet_column){
        .name = unhex(&input->arena, name),
        .type = (enum tide_parquet_type)find(type_names, 19, type),
        .unit = (enum tide_parquet_unit)find(unit_names, 3, unit),
        .is_utc = utc,
        .precision = (uint8_t)precision,
        .scale = (uint8_t)scale,
        .is_nullable = nullable,
        .is_list = list,
        .is_element_nullable = element_nullable,
    };
}

static void take_pair(struct input *input, char *line)
{
    char key[512] = "";
    char value[512] = "";
    if (input->pair_count == 16 || sscanf(line, "pair %511s %511s", key, value) < 1) {
        die(line);
    }
    input->pairs[input->pair_count++] =
        (struct tide_parquet_pair){unhex(&input->arena, key), unhex(&input->arena, value)};
}

static void add_value(struct input *input, struct tide_parquet_writer *writer, size_t column,
                      const char *text)
{
    const struct tide_parquet_column *to = &input->columns[column];
    tide_int128 decimal = 0;
    switch (tide_parquet_storage_of(to)) {
    case TIDE_PARQUET_AS_BOOL:
        tide_parquet_add_bool(writer, column, text[0] == '1');
        break;
    case TIDE_PARQUET_AS_I32:
        tide_parquet_add_i32(writer, column, (int32_t)strtoll(text, NULL, 10));
        break;
    case TIDE_PARQUET_AS_I64:
        tide_parquet_add_i64(writer, column,
                             text[0] == '-' ? strtoll(text, NULL, 10)
                                            : (int64_t)strtoull(text, NULL, 10));
        break;
    case TIDE_PARQUET_AS_FLOAT: {
        uint32_t bits = (uint32_t)strtoul(text, NULL, 16);
        float value;
        memcpy(&value, &bits, sizeof(value));
        tide_parquet_add_float(writer, column, value);
        break;
    }
    case TIDE_PARQUET_AS_DOUBLE: {
        uint64_t bits = strtoull(text, NULL, 16);
        double value;
        memcpy(&value, &bits, sizeof(value));
        tide_parquet_add_double(writer, column, value);
        break;
    }
    case TIDE_PARQUET_AS_I128:
        if (!tide_parquet_decimal_from_text(tide_str_from(text), to->scale, &decimal)) {
            die(text);
        }
        tide_parquet_add_i128(writer, column, decimal);
        break;
    case TIDE_PARQUET_AS_BYTES:
        tide_parquet_add_bytes(writer, column, unhex(&input->arena, text));
        break;
    }
}

static char *next_line(struct input *input)
{
    char *line = strtok_r(NULL, "\n", &input->save);
    if (line == NULL) {
        die("the text ends early");
    }
    return line;
}

static void add_row(struct input *input, struct tide_parquet_writer *writer, size_t column)
{
    size_t more = 1;
    while (more > 0) {
        char *line = next_line(input);
        more--;
        if (line[0] == 'n') {
            tide_parquet_add_null(writer, column);
        } else if (line[0] == 'l') {
            size_t count = strtoul(line + 2, NULL, 10);
            tide_parquet_add_list(writer, column, count);
            more += count;
        } else {
            add_value(input, writer, column, line[1] == '\0' ? "" : line + 2);
        }
    }
}

static void add_group(struct input *input, struct tide_parquet_writer *writer, size_t rows)
{
    struct tide_error err = {0};
    for (size_t column = 0; column < input->column_count; column++) {
        for (size_t row = 0; row < rows; row++) {
            add_row(input, writer, column);
        }
    }
    must(tide_parquet_writer_end_rows(writer, rows, &err), &err);
}

static void write_file(const char *path, tide_str bytes)
{
    FILE *file = fopen(path, "wb");
    if (file == NULL || fwrite(bytes.ptr, 1, bytes.len, file) != bytes.len || fclose(file) != 0) {
        die(path);
    }
}

static void write_all(int argc, char **argv)
{
    struct tide_error err = {0};
    struct input input = {0};
    struct tide_parquet_options options = tide_parquet_options_default();
    options.codec = argc > 4 ? codecs[find(codec_names, 3, argv[4])] : options.codec;
    options.page_bytes = argc > 5 ? strtoul(argv[5], NULL, 10) : options.page_bytes;
    options.dictionary_bytes_max =
        argc > 6 ? strtoul(argv[6], NULL, 10) : options.dictionary_bytes_max;
    options.row_group_rows = argc > 7 ? strtoul(argv[7], NULL, 10) : options.row_group_rows;
    struct tide_buf text = read_file(argv[2]);
    (void)tide_buf_cstr(&text);
    struct tide_parquet_writer *writer = NULL;
    tide_str bytes;
    for (char *line = strtok_r(text.ptr, "\n", &input.save); line != NULL;
         line = strtok_r(NULL, "\n", &input.save)) {
        if (strncmp(line, "column ", 7) == 0) {
            take_column(&input, line);
        } else if (strncmp(line, "pair ", 5) == 0) {
            take_pair(&input, line);
        } else {
            if (writer == NULL) {
                must(tide_parquet_writer_new(input.columns, input.column_count, &options, &writer,
                                             &err),
                     &err);
            }
            add_group(&input, writer, strtoul(line + 6, NULL, 10));
        }
    }
    must(tide_parquet_writer_finish(writer, input.pairs, input.pair_count, &bytes, &err), &err);
    write_file(argv[3], bytes);
    tide_parquet_writer_free(writer);
    tide_arena_done(&input.arena);
    tide_buf_done(&text);
}

static void print_value(const struct tide_parquet_column *column,
                        const struct tide_parquet_values *values, size_t slot)
{
    bool is_u64 = column->type == TIDE_PARQUET_UINT64;
    uint32_t narrow = 0;
    uint64_t wide = 0;
    struct tide_buf text = {0};
    (void)printf("v ");
    switch (values->storage) {
    case TIDE_PARQUET_AS_BOOL:
        (void)printf("%d", values->bools[slot]);
        break;
    case TIDE_PARQUET_AS_I32:
        (void)printf(column->type == TIDE_PARQUET_UINT32 ? "%" PRIu32 : "%" PRId32,
                     values->i32[slot]);
        break;
    case TIDE_PARQUET_AS_I64:
        (void)printf(is_u64 ? "%" PRIu64 : "%" PRId64, values->i64[slot]);
        break;
    case TIDE_PARQUET_AS_FLOAT:
        memcpy(&narrow, &values->floats[slot], sizeof(narrow));
        (void)printf("%08" PRIx32, narrow);
        break;
    case TIDE_PARQUET_AS_DOUBLE:
        memcpy(&wide, &values->doubles[slot], sizeof(wide));
        (void)printf("%016" PRIx64, wide);
        break;
    case TIDE_PARQUET_AS_I128:
        tide_parquet_decimal_append(&text, values->i128[slot], column->scale);
        (void)printf("%.*s", TIDE_STR_ARG(tide_buf_str(&text)));
        tide_buf_done(&text);
        break;
    case TIDE_PARQUET_AS_BYTES:
        print_hex(values->bytes[slot]);
        break;
    }
    (void)putchar('\n');
}

static void print_slot(const struct tide_parquet_column *column,
                       const struct tide_parquet_values *values, size_t slot)
{
    if (values->is_null != NULL && values->is_null[slot]) {
        (void)puts("n");
    } else {
        print_value(column, values, slot);
    }
}

static void print_row(const struct tide_parquet_column *column,
                      const struct tide_parquet_values *values, size_t row)
{
    if (!column->is_list) {
        print_slot(column, values, row);
    } else if (values->is_list_null != NULL && values->is_list_null[row]) {
        (void)puts("n");
    } else {
        uint32_t start = values->list_starts[row];
        uint32_t end = values->list_starts[row + 1];
        (void)printf("l %" PRIu32 "\n", end - start);
        for (uint32_t slot = start; slot < end; slot++) {
            print_slot(column, values, slot);
        }
    }
}

static void print_head(const struct tide_parquet_metadata *metadata)
{
    for (size_t i = 0; i < metadata->pair_count; i++) {
        (void)printf("pair ");
        print_hex(metadata->pairs[i].key);
        (void)putchar(' ');
        print_hex(metadata->pairs[i].value);
        (void)putchar('\n');
    }
    for (size_t i = 0; i < metadata->column_count; i++) {
        const struct tide_parquet_column *column = &metadata->columns[i];
        (void)printf("column ");
        print_hex(column->name);
        (void)printf(" %s %s %d %d %d %d %d %d\n", type_names[column->type],
                     unit_names[column->unit], column->is_utc, column->precision, column->scale,
                     column->is_nullable, column->is_list, column->is_element_nullable);
    }
}

static void print_column(struct tide_parquet_reader *reader, size_t group, size_t at)
{
    const struct tide_parquet_column *column = &tide_parquet_reader_metadata(reader)->columns[at];
    struct tide_parquet_values values = {0};
    struct tide_error err = {0};
    if (tide_parquet_reader_read(reader, group, at, &values, &err) != TIDE_OK) {
        (void)printf("refused ");
        print_hex(column->name);
        (void)printf(" %s\n", err.message);
    }
    for (size_t row = 0; row < values.row_count; row++) {
        print_row(column, &values, row);
    }
    tide_parquet_values_done(&values);
}

static void read_all(const char *path)
{
    struct tide_error err = {0};
    struct tide_buf file = read_file(path);
    struct tide_parquet_limits limits = tide_parquet_limits_default();
    struct tide_parquet_reader *reader = NULL;
    must(tide_parquet_reader_new(tide_buf_str(&file), &limits, &reader, &err), &err);
    const struct tide_parquet_metadata *metadata = tide_parquet_reader_metadata(reader);
    print_head(metadata);
    for (size_t group = 0; group < metadata->group_count; group++) {
        (void)printf("group %" PRId64 "\n", metadata->groups[group].row_count);
        for (size_t column = 0; column < metadata->column_count; column++) {
            print_column(reader, group, column);
        }
    }
    tide_parquet_reader_free(reader);
    tide_buf_done(&file);
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "read") == 0) {
        read_all(argv[2]);
    } else if (argc >= 4 && strcmp(argv[1], "write") == 0) {
        write_all(argc, argv);
    } else {
        return 2;
    }
    return 0;
}
