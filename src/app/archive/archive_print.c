#include "app/archive/archive_print.h"

#include "app/archive/archive_health.h"
#include "app/pipeline/progress.h"
#include "app/safe_text.h"
#include "base/clock.h"
#include "format/json_writer.h"

#include <inttypes.h>

static void append_time(struct tide_buf *buf, int64_t ns)
{
    char text[TIDE_RFC3339_MS_LEN + 1];
    tide_rfc3339_ms(ns / 1000, text);
    tide_buf_append_str(buf, tide_str_from(text));
}

static void append_size(struct tide_buf *buf, uint64_t bytes)
{
    char text[32];
    tide_format_bytes(text, bytes);
    tide_buf_append_str(buf, tide_str_from(text));
}

static void append_count(struct tide_buf *buf, int64_t count)
{
    char text[32];
    tide_format_count(text, (uint64_t)count);
    tide_buf_append_str(buf, tide_str_from(text));
}

static const char *plural(int64_t count)
{
    return count == 1 ? "" : "s";
}

static tide_str encoder_of(const struct tide_archive_source *source)
{
    return tide_archive_pairs_get(&source->metadata, TIDE_STR(TIDE_ARCHIVE_KEY_ENCODER));
}

static void print_source(struct tide_buf *buf, const struct tide_archive_source *source,
                         enum tide_archive_life life)
{
    tide_buf_printf(buf, "source %" PRId64 " %-8s %s", source->id, tide_archive_life_name(life),
                    source->uuid[0] == '\0' ? "(no UUID)" : source->uuid);
    for (size_t i = 0; i < source->labels.count; i++) {
        tide_buf_append_char(buf, ' ');
        tide_append_safe(buf, source->labels.items[i].key);
        tide_buf_append_char(buf, '=');
        tide_append_safe(buf, source->labels.items[i].value);
    }
    if (encoder_of(source).len > 0) {
        tide_buf_append_str(buf, TIDE_STR("; encoder "));
        tide_append_safe(buf, encoder_of(source));
    }
    tide_buf_append_char(buf, '\n');
}

static void print_series(struct tide_buf *buf, const struct tide_archive_series_info *info)
{
    tide_buf_append_str(buf, TIDE_STR("    "));
    tide_append_safe(buf, info->name);
    tide_buf_append_char(buf, ':');
    if (info->segments > 0) {
        tide_buf_append_char(buf, ' ');
        append_count(buf, info->sealed_rows);
        tide_buf_printf(buf, " row%s in ", plural(info->sealed_rows));
        append_count(buf, info->segments);
        tide_buf_printf(buf, " segment%s, ", plural(info->segments));
        append_size(buf, (uint64_t)info->sealed_bytes);
        tide_buf_append_str(buf, info->live_rows > 0 ? TIDE_STR(";") : TIDE_STR(""));
    }
    if (info->live_rows > 0) {
        tide_buf_append_char(buf, ' ');
        append_count(buf, info->live_rows);
        tide_buf_printf(buf, " live row%s", plural(info->live_rows));
    }
    tide_buf_append_str(buf, TIDE_STR("; "));
    append_time(buf, info->segments > 0 ? info->sealed_from : info->live_from);
    tide_buf_append_str(buf, TIDE_STR(" to "));
    append_time(buf, info->live_rows > 0 ? info->live_to : info->sealed_to);
    tide_buf_append_char(buf, '\n');
}

void tide_archive_print_info(struct tide_buf *buf, const struct tide_archive_about *about)
{
    const struct tide_archive_catalogue *catalogue = about->catalogue;
    tide_append_safe(buf, tide_str_from(about->path));
    tide_buf_append_str(buf, TIDE_STR(": "));
    append_size(buf, about->file_bytes);
    if (about->log_bytes > 0) {
        tide_buf_append_str(buf, TIDE_STR(" and a log of "));
        append_size(buf, about->log_bytes);
    }
    tide_buf_printf(buf, ", %zu source%s, %zu series\n", catalogue->source_count,
                    plural((int64_t)catalogue->source_count), catalogue->series_count);
    size_t at = 0;
    for (size_t i = 0; i < catalogue->source_count; i++) {
        print_source(buf, &catalogue->sources[i], about->lives[i]);
        for (; at < catalogue->series_count &&
               catalogue->series[at].source <= catalogue->sources[i].id;
             at++) {
            print_series(buf, &catalogue->series[at]);
        }
    }
}

static void json_key(struct tide_buf *buf, const char *separator, const char *key)
{
    tide_buf_append_str(buf, tide_str_from(separator));
    tide_json_append_key(buf, tide_str_from(key));
}

static void json_number(struct tide_buf *buf, const char *key, int64_t value)
{
    json_key(buf, ",", key);
    tide_buf_append_i64(buf, value);
}

/* JSON's numbers are doubles to many readers: where that would round, it is a string. */
static void json_time(struct tide_buf *buf, const char *key, bool is_any, int64_t ns)
{
    static const int64_t exact = INT64_C(1) << 53;
    json_key(buf, ",", key);
    if (!is_any) {
        tide_buf_append_str(buf, TIDE_STR("null"));
    } else if (ns >= -exact && ns <= exact) {
        tide_buf_append_i64(buf, ns);
    } else {
        tide_buf_printf(buf, "\"%" PRId64 "\"", ns);
    }
}

/* What is no UTF-8 in a file that breaks the rules is shown as far as it is. */
static void json_text(struct tide_buf *buf, tide_str text)
{
    tide_json_append_string(buf, tide_str_of(text.ptr, tide_str_utf8_valid_prefix(text)));
}

static void json_source(struct tide_buf *buf, const struct tide_archive_source *source,
                        enum tide_archive_life life)
{
    struct tide_archive_pairs labels = source->labels; /* written sorted, as they were read */
    tide_buf_printf(buf, "{\"id\":%" PRId64, source->id);
    json_key(buf, ",", "uuid");
    if (source->uuid[0] == '\0') {
        tide_buf_append_str(buf, TIDE_STR("null"));
    } else {
        json_text(buf, tide_str_from(source->uuid));
    }
    json_key(buf, ",", "complete");
    tide_buf_append_str(buf, source->is_complete ? TIDE_STR("true") : TIDE_STR("false"));
    json_key(buf, ",", "health");
    json_text(buf, tide_str_from(tide_archive_life_name(life)));
    json_key(buf, ",", "encoder");
    if (encoder_of(source).ptr == NULL) {
        tide_buf_append_str(buf, TIDE_STR("null"));
    } else {
        json_text(buf, encoder_of(source));
    }
    json_key(buf, ",", "labels");
    tide_archive_pairs_write(&labels, buf);
    tide_buf_append_char(buf, '}');
}

static void json_series(struct tide_buf *buf, const struct tide_archive_series_info *info)
{
    tide_buf_printf(buf, "{\"source\":%" PRId64 ",\"name\":", info->source);
    json_text(buf, info->name);
    json_number(buf, "segments", info->segments);
    json_number(buf, "sealed_rows", info->sealed_rows);
    json_number(buf, "sealed_bytes", info->sealed_bytes);
    json_time(buf, "sealed_from", info->segments > 0, info->sealed_from);
    json_time(buf, "sealed_to", info->segments > 0, info->sealed_to);
    json_number(buf, "live_rows", info->live_rows);
    json_time(buf, "live_from", info->live_rows > 0, info->live_from);
    json_time(buf, "live_to", info->live_rows > 0, info->live_to);
    tide_buf_append_char(buf, '}');
}

static void json_path(struct tide_buf *buf, const char *path)
{
    json_key(buf, "{", "path");
    json_text(buf, tide_str_from(path));
}

void tide_archive_print_info_json(struct tide_buf *buf, const struct tide_archive_about *about)
{
    const struct tide_archive_catalogue *catalogue = about->catalogue;
    json_path(buf, about->path);
    json_number(buf, "bytes", (int64_t)about->file_bytes);
    json_number(buf, "log_bytes", (int64_t)about->log_bytes);
    json_key(buf, ",", "sources");
    tide_buf_append_char(buf, '[');
    for (size_t i = 0; i < catalogue->source_count; i++) {
        tide_buf_append_str(buf, i > 0 ? TIDE_STR(",") : TIDE_STR(""));
        json_source(buf, &catalogue->sources[i], about->lives[i]);
    }
    tide_buf_append_char(buf, ']');
    json_key(buf, ",", "series");
    tide_buf_append_char(buf, '[');
    for (size_t i = 0; i < catalogue->series_count; i++) {
        tide_buf_append_str(buf, i > 0 ? TIDE_STR(",") : TIDE_STR(""));
        json_series(buf, &catalogue->series[i]);
    }
    tide_buf_append_str(buf, TIDE_STR("]}\n"));
}

static size_t shown(const struct tide_archive_findings *findings)
{
    return findings->count < TIDE_ARCHIVE_FINDINGS_MAX ? findings->count
                                                       : TIDE_ARCHIVE_FINDINGS_MAX;
}

void tide_archive_print_findings(struct tide_buf *buf, const char *path,
                                 const struct tide_archive_findings *findings)
{
    for (size_t i = 0; i < shown(findings); i++) {
        tide_buf_append_str(buf, findings->items[i].is_harmless ? TIDE_STR("note: ")
                                                                : TIDE_STR("problem: "));
        tide_append_safe(buf, findings->items[i].text);
        tide_buf_append_char(buf, '\n');
    }
    if (findings->count > shown(findings)) {
        tide_buf_printf(buf, "and %zu more\n", findings->count - shown(findings));
    }
    tide_append_safe(buf, tide_str_from(path));
    if (findings->harmful == 0) {
        tide_buf_append_str(buf, TIDE_STR(": sound\n"));
    } else {
        tide_buf_printf(buf, ": %zu problem%s\n", findings->harmful,
                        plural((int64_t)findings->harmful));
    }
}

void tide_archive_print_findings_json(struct tide_buf *buf, const char *path,
                                      const struct tide_archive_findings *findings)
{
    json_path(buf, path);
    json_key(buf, ",", "sound");
    tide_buf_append_str(buf, findings->harmful == 0 ? TIDE_STR("true") : TIDE_STR("false"));
    json_number(buf, "problems", (int64_t)findings->harmful);
    json_key(buf, ",", "findings");
    tide_buf_append_char(buf, '[');
    for (size_t i = 0; i < shown(findings); i++) {
        const struct tide_archive_finding *finding = &findings->items[i];
        tide_buf_append_str(buf, i > 0 ? TIDE_STR(",{") : TIDE_STR("{"));
        json_key(buf, "", "harmless");
        tide_buf_append_str(buf, finding->is_harmless ? TIDE_STR("true") : TIDE_STR("false"));
        json_key(buf, ",", "text");
        json_text(buf, finding->text);
        tide_buf_append_char(buf, '}');
    }
    tide_buf_append_str(buf, TIDE_STR("]}\n"));
}
