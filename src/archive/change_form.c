#include "archive/change_form.h"

#include "model/value.h"

/* Of a decimal that says nothing of its digits. */
#define NUMBER_SCALE 9

static struct tide_parquet_column parquet_column(enum tide_change_form form, unsigned precision,
                                                 unsigned scale)
{
    static const enum tide_parquet_type types[] = {
        [TIDE_FORM_STRING] = TIDE_PARQUET_STRING,
        [TIDE_FORM_JSON] = TIDE_PARQUET_JSON,
        [TIDE_FORM_BOOL] = TIDE_PARQUET_BOOL,
        [TIDE_FORM_I64] = TIDE_PARQUET_INT64,
        [TIDE_FORM_DOUBLE] = TIDE_PARQUET_DOUBLE,
        [TIDE_FORM_DOUBLE_PG] = TIDE_PARQUET_DOUBLE,
        [TIDE_FORM_FLOAT_PG] = TIDE_PARQUET_DOUBLE,
        [TIDE_FORM_DECIMAL] = TIDE_PARQUET_DECIMAL,
        [TIDE_FORM_NUMBER] = TIDE_PARQUET_DECIMAL,
        [TIDE_FORM_DATE] = TIDE_PARQUET_DATE,
        [TIDE_FORM_TIME] = TIDE_PARQUET_TIME,
        [TIDE_FORM_TIMESTAMP] = TIDE_PARQUET_TIMESTAMP,
        [TIDE_FORM_TIMESTAMP_UTC] = TIDE_PARQUET_TIMESTAMP,
        [TIDE_FORM_UUID] = TIDE_PARQUET_UUID,
        [TIDE_FORM_BINARY] = TIDE_PARQUET_BINARY,
    };

    return (struct tide_parquet_column){
        .type = types[form],
        .is_utc = form == TIDE_FORM_TIMESTAMP_UTC,
        .precision = (uint8_t)precision,
        .scale = (uint8_t)scale,
        .is_nullable = true,
    };
}

static char lower(char c)
{
    return (char)(c >= 'A' && c <= 'Z' ? c | 0x20 : c);
}

/* Whether `word`, in small letters, is anywhere in the text, in any letters. */
static bool has_word(tide_str text, const char *word)
{
    size_t len = strlen(word);
    for (size_t at = 0; at + len <= text.len; at++) {
        size_t same = 0;
        while (same < len && lower(text.ptr[at + same]) == word[same]) {
            same++;
        }
        if (same == len) {
            return true;
        }
    }
    return false;
}

static tide_str trim(tide_str text)
{
    while (text.len > 0 && text.ptr[0] == ' ') {
        text.ptr++;
        text.len--;
    }
    while (text.len > 0 && text.ptr[text.len - 1] == ' ') {
        text.len--;
    }
    return text;
}

/* `(p)` or `(p,s)` at the text's end, such as a decimal may have. */
static bool digits_of(tide_str type, unsigned *ret_precision, unsigned *ret_scale)
{
    const char *open = type.len == 0 ? NULL : memchr(type.ptr, '(', type.len);
    if (open == NULL || type.ptr[type.len - 1] != ')') {
        return false;
    }
    tide_str inside = tide_str_of(open + 1, type.len - (size_t)(open - type.ptr) - 2);
    const char *comma = inside.len == 0 ? NULL : memchr(inside.ptr, ',', inside.len);
    tide_str first = inside;
    uint64_t precision = 0;
    uint64_t scale = 0;
    if (comma != NULL) {
        first.len = (size_t)(comma - inside.ptr);
        tide_str second = trim(tide_str_of(comma + 1, inside.len - first.len - 1));
        if (!tide_str_to_u64(second, &scale)) {
            return false;
        }
    }
    if (!tide_str_to_u64(trim(first), &precision) || precision == 0 ||
        precision > TIDE_PARQUET_DECIMAL_DIGITS_MAX || scale > precision) {
        return false;
    }
    *ret_precision = (unsigned)precision;
    *ret_scale = (unsigned)scale;
    return true;
}

static struct tide_parquet_column set(struct tide_change_column *column, enum tide_change_form form)
{
    column->form = form;
    column->natural = TIDE_VALUE_TEXT;
    return parquet_column(form, 0, 0);
}

static struct tide_parquet_column set_decimal(struct tide_change_column *column,
                                              enum tide_change_form form, unsigned precision,
                                              unsigned scale)
{
    column->form = form;
    column->scale = (uint8_t)scale;
    return parquet_column(form, precision, scale);
}

/* SQLite's rules for affinity ("Datatypes In SQLite", 3.1), and a few words of our own. */
static struct tide_parquet_column of_sqlite(tide_str type, struct tide_change_column *column)
{
    unsigned precision = TIDE_PARQUET_DECIMAL_DIGITS_MAX;
    unsigned scale = NUMBER_SCALE;
    if (has_word(type, "int")) {
        return set(column, TIDE_FORM_I64);
    }
    if (has_word(type, "char") || has_word(type, "clob") || has_word(type, "text")) {
        return set(column, TIDE_FORM_STRING);
    }
    if (has_word(type, "blob")) {
        return set(column, TIDE_FORM_BINARY);
    }
    if (has_word(type, "real") || has_word(type, "floa") || has_word(type, "doub")) {
        return set(column, TIDE_FORM_DOUBLE);
    }
    if (has_word(type, "bool")) {
        return set(column, TIDE_FORM_I64);
    }
    if (has_word(type, "num") || has_word(type, "dec") || has_word(type, "money")) {
        (void)digits_of(trim(type), &precision, &scale);
        return set_decimal(column, TIDE_FORM_NUMBER, precision, scale);
    }
    return set(column, TIDE_FORM_STRING);
}

/* A name of PostgreSQL's, as format_type has it, without a modifier in it. */
struct pg_name {
    const char *name;
    enum tide_change_form form;
};

static const struct pg_name pg_names[] = {
    {"boolean", TIDE_FORM_BOOL},
    {"smallint", TIDE_FORM_I64},
    {"integer", TIDE_FORM_I64},
    {"bigint", TIDE_FORM_I64},
    {"oid", TIDE_FORM_I64},
    {"real", TIDE_FORM_FLOAT_PG},
    {"double precision", TIDE_FORM_DOUBLE_PG},
    {"date", TIDE_FORM_DATE},
    {"time without time zone", TIDE_FORM_TIME},
    {"timestamp without time zone", TIDE_FORM_TIMESTAMP},
    {"timestamp with time zone", TIDE_FORM_TIMESTAMP_UTC},
    {"uuid", TIDE_FORM_UUID},
    {"json", TIDE_FORM_JSON},
    {"jsonb", TIDE_FORM_JSON},
    {"bytea", TIDE_FORM_BINARY},
};

/* Whether `type` is `name`, but for a modifier within: `timestamp(3) with time zone`. */
static bool is_pg_name(tide_str type, const char *name)
{
    const char *open = type.len == 0 ? NULL : memchr(type.ptr, '(', type.len);
    const char *close = type.len == 0 ? NULL : memchr(type.ptr, ')', type.len);
    size_t head = open == NULL || close < open ? type.len : (size_t)(open - type.ptr);
    size_t tail = head == type.len ? 0 : type.len - (size_t)(close + 1 - type.ptr);
    return strlen(name) == head + tail && memcmp(type.ptr, name, head) == 0 &&
           memcmp(type.ptr + type.len - tail, name + head, tail) == 0;
}

static struct tide_parquet_column of_numeric(tide_str type, struct tide_change_column *column)
{
    unsigned precision = 0;
    unsigned scale = 0;
    if (digits_of(type, &precision, &scale)) {
        return set_decimal(column, TIDE_FORM_DECIMAL, precision, scale);
    }
    struct tide_parquet_column parquet = set(column, TIDE_FORM_STRING);
    column->natural = TIDE_VALUE_DECIMAL;
    return parquet;
}

/* In a key, arrays and JSON are the server's text. */
static struct tide_parquet_column of_pg(tide_str type, struct tide_change_column *column)
{
    bool is_key = column->key_place > 0;
    if (tide_str_ends_with(type, TIDE_STR("[]"))) {
        return set(column, is_key ? TIDE_FORM_STRING : TIDE_FORM_JSON);
    }
    if (is_pg_name(type, "numeric")) {
        return of_numeric(type, column);
    }
    for (size_t i = 0; i < sizeof(pg_names) / sizeof(pg_names[0]); i++) {
        if (is_pg_name(type, pg_names[i].name)) {
            bool is_text = is_key && pg_names[i].form == TIDE_FORM_JSON;
            return set(column, is_text ? TIDE_FORM_STRING : pg_names[i].form);
        }
    }
    return set(column, TIDE_FORM_STRING);
}

struct tide_parquet_column tide_change_form_of(const struct tide_change_schema *schema,
                                               size_t index, struct tide_change_column *column)
{
    tide_str type = schema->columns[index].type;
    bool is_pg = tide_str_equal(schema->position_kind, TIDE_STR("lsn"));
    return is_pg ? of_pg(type, column) : of_sqlite(type, column);
}
