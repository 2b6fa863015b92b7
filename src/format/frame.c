/*
 * Two ways through a line. The quick one takes frames as writers make them: no space between
 * tokens, known keys, and for a row whose head is byte for byte that of the row before, nothing
 * but a comparison up to the seq. Whatever it does not like it leaves to the careful one, which
 * reads any JSON and is the only one to fail. Both check every value with the JSON reader.
 */
#include "format/frame.h"

#include "base/arena.h"
#include "format/json_reader.h"

#include <string.h>

enum form {
    FORM_KIND,
    FORM_TEXT,
    FORM_STORE,
    FORM_U64,
    FORM_U32,
    FORM_PLACE,
    FORM_JSON,
};

struct key {
    tide_str name;
    enum form form;
    size_t at; /* of the field in struct tide_frame */
};

#define KEY(name, form, field)                                                                     \
    {                                                                                              \
        {name, sizeof(name) - 1}, form, offsetof(struct tide_frame, field)                         \
    }

/* In the order in which frames have them, because the search goes on where the last one ended. */
enum {
    KEY_KIND,
    KEY_SNAPSHOT_ID,
    KEY_SNAPSHOT_AT,
    KEY_OP,
    KEY_TIMESTAMP,
    KEY_STORE,
    KEY_SEQ,
    KEY_TOTAL,
    KEY_CHANGES_FROM,
    KEY_RECORD_OF_ROW,
    KEY_POSITION,
    KEY_INDEX,
    KEY_PREV,
    KEY_TX,
    KEY_KEY,
    KEY_MOVED_FROM,
    KEY_BEFORE,
    KEY_OVERSIZE,
    KEY_UNCHANGED,
    KEY_BYTES,
    KEY_ROW_KEY,
    KEY_ROW_COUNT,
    KEY_COMPLETED_AT,
    KEY_CHANGES_TO,
    KEY_STARTS,
    KEY_INCARNATION,
    KEY_ATTEMPT,
    KEY_RECEIVED,
    KEY_COUNT,
};

static const struct key keys[KEY_COUNT] = {
    [KEY_KIND] = KEY("kind", FORM_KIND, kind),
    [KEY_SNAPSHOT_ID] = KEY("snapshot_id", FORM_TEXT, snapshot_id),
    [KEY_SNAPSHOT_AT] = KEY("snapshot_at", FORM_TEXT, snapshot_at),
    [KEY_OP] = KEY("op", FORM_TEXT, op),
    [KEY_TIMESTAMP] = KEY("timestamp", FORM_TEXT, timestamp),
    [KEY_STORE] = KEY("store", FORM_STORE, store),
    [KEY_SEQ] = KEY("seq", FORM_U64, seq),
    [KEY_TOTAL] = KEY("total", FORM_U64, total),
    [KEY_CHANGES_FROM] = KEY("changes_from", FORM_PLACE, changes_from),
    [KEY_RECORD_OF_ROW] = KEY("record", FORM_JSON, record),
    [KEY_POSITION] = KEY("position", FORM_JSON, position),
    [KEY_INDEX] = KEY("index", FORM_U64, index),
    [KEY_PREV] = KEY("prev", FORM_PLACE, prev),
    [KEY_TX] = KEY("tx", FORM_JSON, tx),
    [KEY_KEY] = KEY("key", FORM_JSON, key),
    [KEY_MOVED_FROM] = KEY("moved_from", FORM_JSON, moved_from),
    [KEY_BEFORE] = KEY("before", FORM_JSON, before),
    [KEY_OVERSIZE] = KEY("oversize", FORM_U64, oversize),
    [KEY_UNCHANGED] = KEY("unchanged", FORM_JSON, unchanged),
    [KEY_BYTES] = KEY("bytes", FORM_U64, bytes),
    [KEY_ROW_KEY] = KEY("row_key", FORM_JSON, row_key),
    [KEY_ROW_COUNT] = KEY("row_count", FORM_U64, row_count),
    [KEY_COMPLETED_AT] = KEY("completed_at", FORM_TEXT, completed_at),
    [KEY_CHANGES_TO] = KEY("changes_to", FORM_PLACE, changes_to),
    [KEY_STARTS] = KEY("starts", FORM_JSON, starts),
    [KEY_INCARNATION] = KEY("incarnation", FORM_U32, incarnation),
    [KEY_ATTEMPT] = KEY("attempt", FORM_U32, attempt),
    [KEY_RECEIVED] = KEY("_timestamp_received", FORM_JSON, received),
};

#define BIT(key) (UINT64_C(1) << (key))

#define HEAD_KEYS                                                                                  \
    (BIT(KEY_KIND) | BIT(KEY_SNAPSHOT_ID) | BIT(KEY_SNAPSHOT_AT) | BIT(KEY_TIMESTAMP) |            \
     BIT(KEY_STORE) | BIT(KEY_SEQ))
#define CHANGE_KEYS                                                                                \
    (BIT(KEY_KIND) | BIT(KEY_OP) | BIT(KEY_TIMESTAMP) | BIT(KEY_STORE) | BIT(KEY_POSITION) |       \
     BIT(KEY_INDEX) | BIT(KEY_PREV))

static const struct {
    tide_str name;
    uint64_t needed;
} kinds[] = {
    [TIDE_FRAME_BEGIN] = {{"begin", 5}, HEAD_KEYS},
    [TIDE_FRAME_ROW] = {{"row", 3}, HEAD_KEYS | BIT(KEY_RECORD_OF_ROW)},
    [TIDE_FRAME_OVERSIZE] = {{"oversize", 8}, HEAD_KEYS | BIT(KEY_BYTES)},
    [TIDE_FRAME_END] = {{"end", 3}, HEAD_KEYS | BIT(KEY_ROW_COUNT)},
    [TIDE_FRAME_RESUME] = {{"resume", 6}, HEAD_KEYS | BIT(KEY_STARTS) | BIT(KEY_ATTEMPT)},
    [TIDE_FRAME_CHANGE] = {{"change", 6}, CHANGE_KEYS},
};

/* A frame in the making. */
struct decoding {
    struct tide_frame frame;
    uint64_t seen;   /* keys, as bits */
    size_t next_key; /* where the search for the next name starts */
};

/* The key of this name, or KEY_COUNT. */
static size_t find_key(struct decoding *decoding, tide_str name)
{
    size_t at = decoding->next_key;
    for (size_t i = 0; i < KEY_COUNT; i++, at++) {
        at = at >= KEY_COUNT ? 0 : at;
        if (keys[at].name.len == name.len && memcmp(keys[at].name.ptr, name.ptr, name.len) == 0) {
            decoding->next_key = at + 1;
            return at;
        }
    }
    return KEY_COUNT;
}

/* The inside of a JSON string, or NULL. */
static tide_str inside_quotes(tide_str json)
{
    if (json.len < 2 || json.ptr[0] != '"') {
        return (tide_str){0};
    }
    return tide_str_of(json.ptr + 1, json.len - 2);
}

static bool has_backslash(tide_str s)
{
    return s.len > 0 && memchr(s.ptr, '\\', s.len) != NULL;
}

static bool convert_kind(tide_str json, enum tide_frame_kind *ret_kind)
{
    tide_str text = inside_quotes(json);
    for (size_t i = 0; text.ptr != NULL && i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (tide_str_equal(text, kinds[i].name)) {
            *ret_kind = (enum tide_frame_kind)i;
            return true;
        }
    }
    return false;
}

/* Ids and times are compared as they are written, so they must not be written in two ways. */
static bool convert_text(tide_str json, tide_str *ret_text)
{
    *ret_text = inside_quotes(json);
    return ret_text->ptr != NULL && ret_text->len > 0 && !has_backslash(*ret_text);
}

static bool convert_store(tide_str json, struct tide_frame *frame)
{
    frame->store = inside_quotes(json);
    frame->store_has_escapes = has_backslash(frame->store);
    return frame->store.ptr != NULL && frame->store.len > 0;
}

static bool convert_u32(tide_str json, uint32_t *ret_value)
{
    uint64_t value = 0;
    bool fits = tide_str_to_u64(json, &value) && value <= UINT32_MAX;
    *ret_value = fits ? (uint32_t)value : 0;
    return fits;
}

static tide_status read_place(tide_str json, struct tide_frame_place *place, struct tide_error *err)
{
    struct tide_json_reader reader;
    struct tide_json_token token;
    tide_json_reader_init(&reader, json, TIDE_JSON_DEPTH_MAX);
    TIDE_TRY(tide_json_expect(&reader, TIDE_JSON_ARRAY_BEGIN, &token, err));
    TIDE_TRY(tide_json_skip(&reader, &place->position, err));
    TIDE_TRY(tide_json_expect_u64(&reader, &place->index, err));
    return tide_json_expect(&reader, TIDE_JSON_ARRAY_END, &token, err);
}

static bool convert_place(tide_str json, struct tide_frame_place *place)
{
    struct tide_error ignored;
    place->is_given = true;
    place->is_known = !tide_str_equal(json, TIDE_STR("null"));
    return !place->is_known || read_place(json, place, &ignored) == TIDE_OK;
}

/* Puts a value, which is valid JSON, where it belongs; false when it is of another type. */
static bool convert(struct tide_frame *frame, size_t key, tide_str json)
{
    void *field = (char *)frame + keys[key].at;
    switch (keys[key].form) {
    case FORM_KIND:
        return convert_kind(json, field);
    case FORM_TEXT:
        return convert_text(json, field);
    case FORM_STORE:
        return convert_store(json, frame);
    case FORM_U64:
        return tide_str_to_u64(json, field);
    case FORM_U32:
        return convert_u32(json, field);
    case FORM_PLACE:
        return convert_place(json, field);
    case FORM_JSON:
        *(tide_str *)field = json;
        return true;
    }
    return false;
}

static const char *wanted(size_t key)
{
    switch (keys[key].form) {
    case FORM_KIND:
        return "begin, row, oversize, end, resume or change";
    case FORM_TEXT:
        return "a string that is not empty and has no escapes";
    case FORM_STORE:
        return "a string that is not empty";
    case FORM_U64:
        return "an integer within 0 and 2^64-1";
    case FORM_U32:
        return "an integer within 0 and 2^32-1";
    case FORM_PLACE:
        return "[position, index] or null";
    case FORM_JSON:
        break;
    }
    return "a value";
}

static size_t offset_in(tide_str line, const char *at)
{
    return (size_t)(at - line.ptr);
}

/* The careful way: one member of the object. */
static tide_status take_member(struct decoding *decoding, tide_str line,
                               const struct tide_json_token *name, tide_str json,
                               struct tide_error *err)
{
    struct tide_arena arena TIDE_CLEANUP(tide_arena_done) = {0};
    tide_str text = name->has_escapes ? tide_json_unescape(name, &arena) : name->text;
    size_t key = find_key(decoding, text);
    if (key == KEY_COUNT) {
        return TIDE_OK;
    }
    if ((decoding->seen & BIT(key)) != 0) {
        return tide_fail(err, TIDE_CORRUPT, "at byte %zu: the key \"%s\" comes twice",
                         offset_in(line, name->text.ptr) - 1, keys[key].name.ptr);
    }
    decoding->seen |= BIT(key);
    if (!convert(&decoding->frame, key, json)) {
        return tide_fail(err, TIDE_CORRUPT, "at byte %zu: \"%s\" wants %s",
                         offset_in(line, json.ptr), keys[key].name.ptr, wanted(key));
    }
    return TIDE_OK;
}

static tide_status read_carefully(struct decoding *decoding, tide_str line, struct tide_error *err)
{
    struct tide_json_reader reader;
    struct tide_json_token token;
    *decoding = (struct decoding){0};
    tide_json_reader_init(&reader, line, TIDE_JSON_DEPTH_MAX);
    TIDE_TRY(tide_json_expect(&reader, TIDE_JSON_OBJECT_BEGIN, &token, err));
    for (;;) {
        tide_str json;
        TIDE_TRY(tide_json_next(&reader, &token, err));
        if (token.type == TIDE_JSON_OBJECT_END) {
            break;
        }
        struct tide_json_token name = token;
        TIDE_TRY(tide_json_skip(&reader, &json, err));
        TIDE_TRY(take_member(decoding, line, &name, json, err));
    }
    return tide_json_next(&reader, &token, err); /* nothing may follow */
}

/* The quick way: a member at `p`, which is after `{` or `,`. The place after it, or NULL. */
static const char *take_quickly(struct decoding *decoding, const char *p, const char *end)
{
    if (end - p < 4 || *p != '"') {
        return NULL;
    }
    const char *quote = memchr(p + 1, '"', (size_t)(end - p) - 1);
    if (quote == NULL || end - quote < 3 || quote[1] != ':') {
        return NULL;
    }
    size_t key = find_key(decoding, tide_str_of(p + 1, (size_t)(quote - p) - 1));
    if (key == KEY_COUNT || (decoding->seen & BIT(key)) != 0) {
        return NULL;
    }
    struct tide_json_reader reader;
    struct tide_error ignored;
    tide_str json;
    tide_json_reader_init(&reader, tide_str_of(quote + 2, (size_t)(end - quote) - 2),
                          TIDE_JSON_DEPTH_MAX - 1);
    if (tide_json_skip(&reader, &json, &ignored) != TIDE_OK ||
        !convert(&decoding->frame, key, json)) {
        return NULL;
    }
    decoding->seen |= BIT(key);
    return json.ptr + json.len;
}

/* Keeps the bytes up to the seq when the head is in its usual order. */
static void remember_head(struct tide_frame_decoder *decoder, const struct decoding *decoding,
                          tide_str line, const char *seq)
{
    size_t len = offset_in(line, seq);
    if (decoding->seen != HEAD_KEYS || decoding->frame.kind != TIDE_FRAME_ROW ||
        len > sizeof(decoder->head_bytes)) {
        return;
    }
    struct tide_frame *head = &decoder->head;
    memcpy(decoder->head_bytes, line.ptr, len);
    decoder->head_len = len;
    *head = decoding->frame;
    tide_str *const texts[] = {&head->snapshot_id, &head->snapshot_at, &head->timestamp,
                               &head->store};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        texts[i]->ptr = decoder->head_bytes + offset_in(line, texts[i]->ptr);
    }
}

/* The place after the seq of a row that begins like the one before, or NULL. */
static const char *take_known_head(const struct tide_frame_decoder *decoder,
                                   struct decoding *decoding, tide_str line)
{
    size_t len = decoder->head_len;
    if (len == 0 || line.len <= len || memcmp(line.ptr, decoder->head_bytes, len) != 0) {
        return NULL;
    }
    size_t digits_end = len;
    while (digits_end < line.len && (unsigned char)(line.ptr[digits_end] - '0') < 10) {
        digits_end++;
    }
    decoding->frame = decoder->head;
    decoding->seen = HEAD_KEYS;
    decoding->next_key = KEY_RECORD_OF_ROW;
    tide_str digits = tide_str_of(line.ptr + len, digits_end - len);
    return tide_str_to_u64(digits, &decoding->frame.seq) ? line.ptr + digits_end : NULL;
}

static bool read_quickly(struct tide_frame_decoder *decoder, struct decoding *decoding,
                         tide_str line)
{
    const char *end = line.ptr + line.len;
    if (line.len == 0 || *line.ptr != '{') {
        return false;
    }
    const char *p = take_known_head(decoder, decoding, line);
    if (p == NULL) {
        *decoding = (struct decoding){0};
        p = take_quickly(decoding, line.ptr + 1, end);
    }
    while (p != NULL && p < end && *p == ',') {
        const char *member = p + 1;
        p = take_quickly(decoding, member, end);
        if (p != NULL && decoding->next_key == KEY_SEQ + 1) {
            remember_head(decoder, decoding, line, member + sizeof("\"seq\":") - 1);
        }
    }
    return p != NULL && p + 1 == end && *p == '}';
}

/* Counts the elements of `starts`, each of which must be an unsigned integer. */
static tide_status count_starts(struct tide_frame *frame, struct tide_error *err)
{
    struct tide_json_reader reader;
    struct tide_json_token token;
    uint64_t start;
    tide_json_reader_init(&reader, frame->starts, TIDE_JSON_DEPTH_MAX);
    TIDE_TRY(tide_json_expect(&reader, TIDE_JSON_ARRAY_BEGIN, &token, err));
    for (;;) {
        TIDE_TRY(tide_json_next(&reader, &token, err));
        if (token.type == TIDE_JSON_ARRAY_END) {
            return TIDE_OK;
        }
        if (token.type != TIDE_JSON_NUMBER || !tide_str_to_u64(token.text, &start)) {
            return tide_fail(err, TIDE_CORRUPT, "not an integer within 0 and 2^64-1");
        }
        frame->starts_count++;
    }
}

static tide_status check_starts(struct tide_frame *frame, tide_str line, struct tide_error *err)
{
    if (frame->starts.ptr != NULL && count_starts(frame, err) != TIDE_OK) {
        return tide_fail(err, TIDE_CORRUPT, "at byte %zu: \"starts\" wants an array of integers",
                         offset_in(line, frame->starts.ptr));
    }
    if (frame->starts_count != frame->attempt) {
        return tide_fail(err, TIDE_CORRUPT,
                         "at byte %zu: %u starts in a frame of attempt %u; want one for each "
                         "attempt from 1 on",
                         line.len - 1, frame->starts_count, frame->attempt);
    }
    return TIDE_OK;
}

static tide_status check_fields(struct decoding *decoding, tide_str line, struct tide_error *err)
{
    if ((decoding->seen & BIT(KEY_KIND)) == 0) {
        return tide_fail(err, TIDE_CORRUPT, "at byte %zu: not a frame, it has no \"kind\"",
                         line.len - 1);
    }
    struct tide_frame *frame = &decoding->frame;
    uint64_t missing = kinds[frame->kind].needed & ~decoding->seen;
    if (missing != 0) {
        return tide_fail(err, TIDE_CORRUPT, "at byte %zu: %s frame without \"%s\"", line.len - 1,
                         kinds[frame->kind].name.ptr, keys[__builtin_ctzll(missing)].name.ptr);
    }
    if (frame->attempt > TIDE_ATTEMPTS_MAX) {
        return tide_fail(err, TIDE_CORRUPT, "at byte %zu: attempt %u is over the limit of %u",
                         line.len - 1, frame->attempt, TIDE_ATTEMPTS_MAX);
    }
    frame->has_total = (decoding->seen & BIT(KEY_TOTAL)) != 0;
    bool has_starts = frame->kind == TIDE_FRAME_END || frame->kind == TIDE_FRAME_RESUME;
    return has_starts ? check_starts(frame, line, err) : TIDE_OK;
}

tide_status tide_frame_decode(struct tide_frame_decoder *decoder, tide_str line,
                              struct tide_frame *ret_frame, struct tide_error *err)
{
    struct decoding decoding;
    if (!read_quickly(decoder, &decoding, line)) {
        TIDE_TRY(read_carefully(&decoding, line, err));
    }
    TIDE_TRY(check_fields(&decoding, line, err));
    *ret_frame = decoding.frame;
    return TIDE_OK;
}

void tide_frame_read_starts(const struct tide_frame *frame, uint64_t *ret_starts)
{
    struct tide_json_reader reader;
    struct tide_json_token token;
    struct tide_error err;
    if (frame->starts_count == 0) {
        return;
    }
    tide_json_reader_init(&reader, frame->starts, TIDE_JSON_DEPTH_MAX);
    tide_status status = tide_json_next(&reader, &token, &err);
    for (uint32_t i = 0; i < frame->starts_count && status == TIDE_OK; i++) {
        status = tide_json_expect_u64(&reader, &ret_starts[i], &err);
    }
    TIDE_ASSERT(status == TIDE_OK); /* decoding has checked it */
}

bool tide_frame_is_cut_off(tide_str line)
{
    size_t depth = 0;
    bool in_string = false;
    for (size_t i = 0; i < line.len; i++) {
        char c = line.ptr[i];
        if (in_string) {
            i += c == '\\';
            in_string = c != '"';
        } else if (c == '"') {
            in_string = true;
        } else if (c == '{' || c == '[') {
            depth++;
        } else if ((c == '}' || c == ']') && depth > 0 && --depth == 0) {
            return false;
        }
    }
    return depth > 0 && line.ptr[0] == '{';
}
