#include "app/dead_letters/dead_letters_print.h"

#include "app/pipeline/progress.h"
#include "app/safe_text.h"
#include "format/json_writer.h"

#define ID_SHOWN 12 /* digits: enough to tell many letters apart */

static void append_safe(struct tide_buf *buf, const char *lead, tide_str text)
{
    tide_buf_append_str(buf, tide_str_from(lead));
    tide_append_safe(buf, text);
}

static void append_number(struct tide_buf *buf, const char *lead, uint64_t number)
{
    tide_buf_append_str(buf, tide_str_from(lead));
    tide_buf_append_u64(buf, number);
}

static tide_str sink_of(const struct tide_dead_letter_read *letter)
{
    return letter->sink.ptr != NULL ? letter->sink : letter->destination;
}

/* "seq 17" of a row, "change at 44, 2" of a change. */
static void append_place(struct tide_buf *buf, const struct tide_dead_letter_read *letter)
{
    if (letter->snapshot_id.ptr != NULL) {
        append_number(buf, "seq ", letter->seq);
    } else if (letter->position_json.ptr != NULL) {
        append_safe(buf, "change at ", letter->position_json);
        append_number(buf, ", ", letter->index);
    } else {
        tide_buf_append_char(buf, '-');
    }
}

void tide_dead_letter_print_line(struct tide_buf *buf, const struct tide_dead_letter_read *letter,
                                 bool is_replayed)
{
    char size[32];
    size_t start = buf->len;
    tide_format_bytes(size, letter->bytes);
    tide_dead_letter_id_append(buf, letter->id);
    buf->len = start + ID_SHOWN;
    append_safe(buf, "  ", letter->timestamp);
    append_safe(buf, "  ", sink_of(letter));
    append_safe(buf, "  ", letter->store);
    tide_buf_append_str(buf, TIDE_STR("  "));
    append_place(buf, letter);
    tide_buf_printf(buf, "  %s", size);
    append_safe(buf, "  ", letter->reason);
    tide_buf_append_str(buf, is_replayed ? TIDE_STR("  (replayed)\n") : TIDE_STR("\n"));
}

static void json_text(struct tide_buf *buf, const char *lead, tide_str text)
{
    if (text.ptr != NULL) {
        tide_buf_append_str(buf, tide_str_from(lead));
        tide_json_append_string(buf, text);
    }
}

static void json_place(struct tide_buf *buf, const struct tide_dead_letter_read *letter)
{
    if (letter->snapshot_id.ptr != NULL) {
        json_text(buf, ",\"snapshot_id\":", letter->snapshot_id);
        append_number(buf, ",\"attempt\":", letter->attempt);
        append_number(buf, ",\"seq\":", letter->seq);
        json_text(buf, ",\"row_key\":", letter->key_json);
        return;
    }
    if (letter->position_json.ptr != NULL) {
        tide_buf_append_str(buf, TIDE_STR(",\"position\":"));
        tide_buf_append_str(buf, letter->position_json);
        append_number(buf, ",\"index\":", letter->index);
    }
    if (letter->key_json.ptr != NULL) {
        tide_buf_append_str(buf, TIDE_STR(",\"key\":"));
        tide_buf_append_str(buf, letter->key_json);
    }
}

void tide_dead_letter_print_json(struct tide_buf *buf, const struct tide_dead_letter_read *letter,
                                 bool is_replayed)
{
    tide_buf_append_str(buf, TIDE_STR("{\"id\":\""));
    tide_dead_letter_id_append(buf, letter->id);
    json_text(buf, "\",\"timestamp\":", letter->timestamp);
    json_text(buf, ",\"sink\":", letter->sink);
    json_text(buf, ",\"store\":", letter->store);
    json_text(buf, ",\"destination\":", letter->destination);
    json_text(buf, ",\"reason\":", letter->reason);
    json_place(buf, letter);
    append_number(buf, ",\"bytes\":", letter->bytes);
    append_number(buf, ",\"kept\":", letter->record.len);
    tide_buf_append_str(buf, is_replayed ? TIDE_STR(",\"replayed\":true}\n")
                                         : TIDE_STR(",\"replayed\":false}\n"));
}

static void line(struct tide_buf *buf, const char *name, tide_str text)
{
    if (text.ptr != NULL) {
        tide_buf_printf(buf, "%-12s ", name);
        tide_append_safe(buf, text);
        tide_buf_append_char(buf, '\n');
    }
}

static void place_line(struct tide_buf *buf, const struct tide_dead_letter_read *letter)
{
    tide_buf_printf(buf, "%-12s ", letter->snapshot_id.ptr != NULL ? "row" : "change");
    append_place(buf, letter);
    if (letter->snapshot_id.ptr != NULL) {
        append_safe(buf, " of snapshot ", letter->snapshot_id);
    }
    if (letter->attempt > 0) {
        append_number(buf, ", attempt ", letter->attempt);
    }
    if (letter->incarnation > 0) {
        append_number(buf, ", incarnation ", letter->incarnation);
    }
    tide_buf_append_char(buf, '\n');
}

void tide_dead_letter_print_whole(struct tide_buf *buf, const struct tide_dead_letter_read *letter,
                                  bool is_replayed)
{
    tide_buf_printf(buf, "%-12s ", "id");
    tide_dead_letter_id_append(buf, letter->id);
    tide_buf_append_char(buf, '\n');
    line(buf, "kept at", letter->timestamp);
    line(buf, "sink", letter->sink);
    line(buf, "destination", letter->destination);
    line(buf, "store", letter->store);
    place_line(buf, letter);
    line(buf, "key", letter->key_json);
    line(buf, "reason", letter->reason);
    tide_buf_printf(buf, "%-12s %s\n", "replayed", is_replayed ? "yes" : "no");
    tide_buf_printf(buf, "%-12s ", "record");
    append_number(buf, "", letter->bytes);
    append_number(buf, " bytes, of which these ", letter->record.len);
    tide_buf_append_str(buf, TIDE_STR(" were kept:\n\n"));
    tide_append_safe(buf, letter->record);
    tide_buf_append_char(buf, '\n');
}
