#include "format/dead_letter.h"

#include <xxhash.h>

#include "base/clock.h"
#include "base/limits.h"
#include "format/json_writer.h"

#define LINE_LEAD "{\"id\":\""

static void append_text(struct tide_buf *buf, const char *lead, tide_str text)
{
    tide_buf_append_str(buf, tide_str_from(lead));
    tide_json_append_string(buf, text);
}

static void append_number(struct tide_buf *buf, const char *lead, uint64_t number)
{
    tide_buf_append_str(buf, tide_str_from(lead));
    tide_buf_append_u64(buf, number);
}

/* NUL ends each part: names have none. */
static void append_part(struct tide_buf *buf, tide_str part)
{
    tide_buf_append_str(buf, part);
    tide_buf_append_char(buf, '\0');
}

static void append_row_identity(struct tide_buf *buf, const struct tide_dead_letter *letter)
{
    append_part(buf, tide_str_from(letter->snapshot_id));
    if (letter->key_json.len > 0) {
        append_part(buf, letter->key_json);
    } else {
        tide_buf_append_u64(buf, letter->seq);
    }
    append_number(buf, " ", XXH3_64bits(letter->bytes.ptr, letter->bytes.len));
}

static void append_change_identity(struct tide_buf *buf, const struct tide_dead_letter *letter)
{
    append_number(buf, "change ", letter->incarnation);
    append_number(buf, " ", letter->place.position.hi);
    append_number(buf, " ", letter->place.position.lo);
    append_number(buf, " ", letter->place.index);
}

struct tide_dead_letter_id tide_dead_letter_id(const struct tide_dead_letter *letter)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf identity = {0};
    append_part(&identity, letter->sink);
    append_part(&identity, letter->store);
    if (letter->has_seq) {
        append_row_identity(&identity, letter);
    } else {
        append_change_identity(&identity, letter);
    }
    XXH128_hash_t hash = XXH3_128bits(identity.ptr, identity.len);
    return (struct tide_dead_letter_id){.hi = hash.high64, .lo = hash.low64};
}

void tide_dead_letter_id_append(struct tide_buf *buf, struct tide_dead_letter_id id)
{
    tide_buf_printf(buf, "%016llx%016llx", (unsigned long long)id.hi, (unsigned long long)id.lo);
}

static bool parse_half(const char *digits, uint64_t *ret_half)
{
    uint64_t half = 0;
    for (size_t i = 0; i < TIDE_DEAD_LETTER_ID_LEN / 2; i++) {
        char c = digits[i];
        bool is_digit = c >= '0' && c <= '9';
        if (!is_digit && !(c >= 'a' && c <= 'f')) {
            return false;
        }
        half = half << 4 | (uint64_t)(is_digit ? c - '0' : c - 'a' + 10);
    }
    *ret_half = half;
    return true;
}

bool tide_dead_letter_id_parse(tide_str text, struct tide_dead_letter_id *ret_id)
{
    struct tide_dead_letter_id id;
    if (text.len != TIDE_DEAD_LETTER_ID_LEN || !parse_half(text.ptr, &id.hi) ||
        !parse_half(text.ptr + TIDE_DEAD_LETTER_ID_LEN / 2, &id.lo)) {
        return false;
    }
    *ret_id = id;
    return true;
}

bool tide_dead_letter_line_id(tide_str line, struct tide_dead_letter_id *ret_id)
{
    tide_str lead = TIDE_STR(LINE_LEAD);
    return line.len >= lead.len + TIDE_DEAD_LETTER_ID_LEN && tide_str_starts_with(line, lead) &&
           tide_dead_letter_id_parse(tide_str_of(line.ptr + lead.len, TIDE_DEAD_LETTER_ID_LEN),
                                     ret_id);
}

static bool has_key(const struct tide_dead_letter *letter)
{
    return letter->key_json.len > 0 && letter->key_json.len <= TIDE_DEAD_LETTER_KEY_BYTES_MAX;
}

static void append_row(struct tide_buf *buf, const struct tide_dead_letter *letter)
{
    append_text(buf, ",\"snapshot_id\":", tide_str_from(letter->snapshot_id));
    if (letter->attempt > 0) {
        append_number(buf, ",\"attempt\":", letter->attempt);
    }
    append_number(buf, ",\"seq\":", letter->seq);
    if (has_key(letter)) {
        append_text(buf, ",\"row_key\":", letter->key_json);
    }
}

static void append_change(struct tide_buf *buf, const struct tide_dead_letter *letter,
                          const struct tide_position_kind *kind)
{
    tide_buf_append_str(buf, TIDE_STR(",\"position\":"));
    kind->write(letter->place.position, buf);
    append_number(buf, ",\"index\":", letter->place.index);
    if (letter->incarnation > 0) {
        append_number(buf, ",\"incarnation\":", letter->incarnation);
    }
    if (has_key(letter)) {
        tide_buf_append_str(buf, TIDE_STR(",\"key\":"));
        tide_buf_append_str(buf, letter->key_json);
    }
}

/* The first bytes of the record: a text without half a character, or anything else. */
static void append_record(struct tide_buf *buf, tide_str record, size_t bytes_max)
{
    tide_str kept = record.len > bytes_max ? tide_str_of(record.ptr, bytes_max) : record;
    size_t valid = tide_str_utf8_valid_prefix(kept);
    if (valid == kept.len || tide_str_is_utf8(record)) {
        append_text(buf, ",\"record\":", tide_str_of(kept.ptr, valid));
        return;
    }
    tide_buf_append_str(buf, TIDE_STR(",\"record_base64\":"));
    tide_json_append_base64(buf, kept);
}

void tide_dead_letter_append(struct tide_buf *buf, const struct tide_dead_letter *letter,
                             struct tide_dead_letter_id id, int64_t utc_us, size_t record_bytes_max,
                             const struct tide_position_kind *kind)
{
    char time[TIDE_RFC3339_MS_LEN + 1];
    tide_rfc3339_ms(utc_us, time);
    tide_buf_append_str(buf, TIDE_STR(LINE_LEAD));
    tide_dead_letter_id_append(buf, id);
    append_text(buf, "\",\"timestamp\":", tide_str_from(time));
    append_text(buf, ",\"sink\":", letter->sink);
    append_text(buf, ",\"store\":", letter->store);
    append_text(buf, ",\"destination\":", letter->destination);
    append_text(buf, ",\"reason\":", letter->reason);
    if (letter->has_seq) {
        append_row(buf, letter);
    } else {
        append_change(buf, letter, kind);
    }
    append_number(buf, ",\"bytes\":", letter->bytes.len);
    append_record(buf, letter->bytes, record_bytes_max);
    tide_buf_append_str(buf, TIDE_STR("}\n"));
}
