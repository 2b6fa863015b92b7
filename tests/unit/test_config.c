#include "cmocka_prelude.h"

#include "app/config/config.h"
#include "app/config/secrets.h"
#include "base/limits.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define OK "name: a\nsource: sqlite:a.db\nsinks: {s: file:o}\n"

static void must(tide_status status, const struct tide_mistakes *mistakes)
{
    if (status != TIDE_OK) {
        struct tide_buf text TIDE_CLEANUP(tide_buf_done) = {0};
        tide_mistakes_print(mistakes, "a.yaml", &text);
        fail_msg("%s", tide_buf_cstr(&text));
    }
}

static void expect_text(tide_str got, const char *want)
{
    assert_true(tide_str_equal(got, tide_str_from(want)));
}

static void parse_smallest_file_has_defaults(void **state)
{
    (void)state;
    struct tide_config config TIDE_CLEANUP(tide_config_done) = {0};
    struct tide_mistakes mistakes TIDE_CLEANUP(tide_mistakes_done) = {0};
    struct tide_error err = {0};
    must(tide_config_parse("a.yaml", TIDE_STR(OK), &config, &mistakes, &err), &mistakes);
    expect_text(config.name, "a");
    expect_text(config.source_place, "a.db");
    expect_text(config.source_shown, "sqlite:a.db");
    assert_string_equal(config.source_ops->scheme, "sqlite");
    assert_int_equal(config.glob_count, 0);
    assert_int_equal(config.sink_count, 1);
    expect_text(config.sinks[0].name, "s");
    expect_text(config.sinks[0].place, "o");
    assert_int_equal(config.sinks[0].existing, TIDE_EXISTING_REFUSE);
    assert_int_equal(config.sinks[0].record_bytes_max, 0);
    assert_string_equal(config.state_dir, ".tidemark/a");
    assert_int_equal(config.chunk_rows, TIDE_CHUNK_ROWS_DEFAULT);
    assert_int_equal(config.lane_items, TIDE_LANE_ITEMS_DEFAULT);
    assert_int_equal(config.lane_bytes, TIDE_LANE_BYTES_DEFAULT);
    assert_int_equal(config.record_bytes, TIDE_RECORD_BYTES_DEFAULT);
    assert_int_equal(config.memory_bytes, TIDE_MEMORY_BYTES_DEFAULT);
    assert_int_equal(config.dead_letters.record_bytes, TIDE_DEAD_LETTER_BYTES_DEFAULT);
    assert_int_equal(config.dead_letters.file_bytes, TIDE_DEAD_LETTER_FILE_BYTES_DEFAULT);
    assert_int_equal(config.dead_letters.files, TIDE_DEAD_LETTER_FILES_DEFAULT);
    assert_int_equal(config.dead_letters.when_full, TIDE_DEAD_LETTERS_STOP);
    assert_int_equal(config.sinks[0].refused.otherwise, TIDE_REFUSED_DEAD_LETTER);
    assert_int_equal(config.sinks[0].refused.rule_count, 0);
    assert_false(config.writes_standard_output);
}

static void parse_takes_every_key(void **state)
{
    (void)state;
    struct tide_config config TIDE_CLEANUP(tide_config_done) = {0};
    struct tide_mistakes mistakes TIDE_CLEANUP(tide_mistakes_done) = {0};
    struct tide_error err = {0};
    tide_str yaml = TIDE_STR("name: shop-1.eu\n"
                             "source:\n"
                             "  place: postgres://ann:pw@db/shop\n"
                             "  tables: [orders, log_*]\n"
                             "sinks:\n"
                             "  one: {place: file:d/, existing: append, max_record_bytes: 2048,\n"
                             "    refused: {default: skip, tables: {'o*': stop, log_*: "
                             "dead_letter}}}\n"
                             "  two: {place: file:e, existing: overwrite, refused: stop}\n"
                             "  three: '-'\n"
                             "  four: 'null:'\n"
                             "  five: {place: 'archive:a.tide', seal_rows: 9, seal_bytes: 65536,"
                             " fill_unchanged: true, retain: 30d, compact: false}\n"
                             "snapshot: {chunk_rows: 7}\n"
                             "stream: {lane_items: 3, lane_bytes: 65536}\n"
                             "limits: {record_bytes: 1024, memory_bytes: 8388608}\n"
                             "state: /var/lib/tidemark\n"
                             "dead_letters: {record_bytes: 10, file_bytes: 65536, files: 2, "
                             "when_full: drop_oldest}\n");
    must(tide_config_parse("a.yaml", yaml, &config, &mistakes, &err), &mistakes);
    expect_text(config.name, "shop-1.eu");
    expect_text(config.source_place, "postgres://ann:pw@db/shop");
    expect_text(config.source_shown, "postgres://ann:***@db/shop");
    assert_int_equal(config.glob_count, 2);
    expect_text(config.globs[1], "log_*");
    assert_int_equal(config.sink_count, 5);
    assert_int_equal(config.sinks[0].existing, TIDE_EXISTING_APPEND);
    assert_int_equal(config.sinks[0].record_bytes_max, 2048);
    assert_int_equal(config.sinks[1].existing, TIDE_EXISTING_OVERWRITE);
    assert_true(config.writes_standard_output);
    assert_string_equal(config.state_dir, "/var/lib/tidemark");

    struct tide_pipeline_options options = {0};
    assert_int_equal(tide_config_pipeline(&config, &options, &err), TIDE_OK);
    options.stream->ops->free(options.stream);
    assert_int_equal(options.copy.chunk_rows_max, 7);
    assert_int_equal(options.memory_bytes, 8388608);
    assert_int_equal(options.record_bytes_max, 1024);
    assert_int_equal(options.dead_letters.record_bytes, 10);
    assert_int_equal(options.dead_letters.file_bytes, 65536);
    assert_int_equal(options.dead_letters.files, 2);
    assert_int_equal(options.dead_letters.when_full, TIDE_DEAD_LETTERS_DROP_OLDEST);
    assert_int_equal(options.sinks[0].refused.otherwise, TIDE_REFUSED_SKIP);
    assert_int_equal(options.sinks[0].refused.rule_count, 2);
    expect_text(options.sinks[0].refused.rules[0].glob, "o*");
    assert_int_equal(options.sinks[0].refused.rules[0].action, TIDE_REFUSED_STOP);
    expect_text(options.sinks[0].refused.rules[1].glob, "log_*");
    assert_int_equal(options.sinks[0].refused.rules[1].action, TIDE_REFUSED_DEAD_LETTER);
    assert_int_equal(options.sinks[1].refused.otherwise, TIDE_REFUSED_STOP);
    assert_int_equal(options.sinks[4].segments.rows_max, 9);
    assert_int_equal(options.sinks[4].segments.bytes_max, 65536);
    assert_true(options.sinks[4].segments.fills_unchanged);
    assert_int_equal(options.sinks[4].segments.retain_us, INT64_C(30) * 86400 * 1000000);
    assert_true(options.sinks[4].segments.leaves_small);
    assert_int_equal(options.sinks[0].segments.retain_us, 0);
    assert_false(options.sinks[0].segments.leaves_small);
    assert_int_equal(options.sink_count, 5);
    assert_false(options.is_one_shot);
    expect_text(options.connection, "shop");
}

#define SINK "name: a\nsource: sqlite:a.db\nsinks:\n  s: "

/* Each file and all that is said of it. */
static const struct {
    const char *yaml;
    const char *want;
} bad[] = {
    {"", "a.yaml:1:1: the file is empty\n"},
    {"hello", "a.yaml:1:1: a configuration takes keys (name, source, tables, sinks, snapshot, "
              "stream, limits, state, dead_letters), not \"hello\"\n"},
    {"a:\n\tb: 1\n",
     "a.yaml:2:1: not YAML: found character that cannot start any token (while scanning for the "
     "next token); indent with spaces, not with tabs\n"},
    {"{}", "a.yaml:1:1: name is missing; say what the pipeline is called, e.g. name: shop\n"
           "a.yaml:1:1: source is missing; say what is copied, e.g. source: sqlite:shop.db\n"
           "a.yaml:1:1: sinks is missing; name at least one, e.g. copy: file:out.ndjson\n"},
    {OK "tabels: [a]\n",
     "a.yaml:4:1: a configuration has no key \"tabels\"; did you mean tables?\n"},
    {OK "colour: red\n",
     "a.yaml:4:1: a configuration has no key \"colour\"; it has name, source, tables, sinks, "
     "snapshot, stream, limits, state, dead_letters\n"},
    {OK "<<: {a: b}\n",
     "a.yaml:4:1: a configuration has no key \"<<\"; it has name, source, tables, sinks, "
     "snapshot, stream, limits, state, dead_letters\n"},
    {OK "state: x\nstate: y\n", "a.yaml:5:1: state is there twice; line 4 has it too\n"},
    {OK "state: [x]\n", "a.yaml:4:8: state takes a directory, not a list\n"},
    {OK "state: ''\n", "a.yaml:4:8: state takes a directory, not \"\"\n"},
    {OK "snapshot: {chunk_row: 5}\n",
     "a.yaml:4:12: snapshot has no key \"chunk_row\"; did you mean chunk_rows?\n"},
    {OK "snapshot: {chunk_rows: 0}\n",
     "a.yaml:4:24: chunk_rows takes a number from 1 to 10000000, not \"0\"\n"},
    {OK "snapshot: {chunk_rows: 10000001}\n",
     "a.yaml:4:24: chunk_rows takes a number from 1 to 10000000, not \"10000001\"\n"},
    {OK "snapshot: {chunk_rows: 1e3}\n",
     "a.yaml:4:24: chunk_rows takes a number from 1 to 10000000, not \"1e3\"\n"},
    {OK "snapshot: {chunk_rows: -1}\n",
     "a.yaml:4:24: chunk_rows takes a number from 1 to 10000000, not \"-1\"\n"},
    {OK "snapshot: {chunk_rows: 99999999999999999999}\n",
     "a.yaml:4:24: chunk_rows takes a number from 1 to 10000000, not \"99999999999999999999\"\n"},
    {OK "snapshot: {chunk_rows: {a: b}}\n",
     "a.yaml:4:24: chunk_rows takes a number from 1 to 10000000, not keys\n"},
    {OK "snapshot: {chunk_rows: }\n",
     "a.yaml:4:24: chunk_rows takes a number from 1 to 10000000, not nothing\n"},
    {OK "snapshot:\n", "a.yaml:4:10: snapshot takes keys (chunk_rows), not nothing\n"},
    {OK "snapshot: [chunk_rows]\n", "a.yaml:4:11: snapshot takes keys (chunk_rows), not a list\n"},
    {OK "stream: {lane_items: 2000000, lane_bytes: 9}\n",
     "a.yaml:4:22: lane_items takes a number from 1 to 1048576, not \"2000000\"\n"
     "a.yaml:4:43: lane_bytes takes a number from 65536 to 1099511627776, not \"9\"\n"},
    {OK "limits: {record_bytes: 1, memory_bytes: 1}\n",
     "a.yaml:4:24: record_bytes takes a number from 1024 to 2147483648, not \"1\"\n"
     "a.yaml:4:41: memory_bytes takes a number from 8388608 to 1099511627776, not \"1\"\n"},
    {OK "dead_letters: {record_bytes: 0, file_bytes: 9, files: 1, when_full: drop}\n",
     "a.yaml:4:30: record_bytes takes a number from 1 to 33554432, not \"0\"\n"
     "a.yaml:4:45: file_bytes takes a number from 65536 to 1099511627776, not \"9\"\n"
     "a.yaml:4:55: files takes a number from 2 to 10000, not \"1\"\n"
     "a.yaml:4:69: when_full takes stop or drop_oldest, not \"drop\"\n"},
    {SINK "{place: file:o, refused: never}\n",
     "a.yaml:4:31: refused takes dead_letter, stop or skip, not \"never\"\n"},
    {SINK "{place: file:o, refused: [stop]}\n",
     "a.yaml:4:31: refused takes dead_letter, stop or skip, not a list\n"},
    {SINK "{place: file:o, refused: {stop: orders}}\n",
     "a.yaml:4:32: refused has no key \"stop\"; it has default, tables\n"},
    {SINK "{place: file:o, refused: {default: drop, tables: [a]}}\n",
     "a.yaml:4:41: default takes dead_letter, stop or skip, not \"drop\"\n"
     "a.yaml:4:55: tables takes globs and what to do, e.g. {orders: stop, log_*: skip}, not a "
     "list\n"},
    {SINK "{place: file:o, refused: {tables: {}}}\n",
     "a.yaml:4:40: tables is empty; leave it out to treat all tables alike\n"},
    {SINK "{place: file:o, refused: {tables: {a: skip, '': skip, b: stap, a: stop}}}\n",
     "a.yaml:4:50: refused takes globs of tables, e.g. orders or log_*, not \"\"\n"
     "a.yaml:4:63: b takes dead_letter, stop or skip, not \"stap\"\n"
     "a.yaml:4:69: \"a\" is there twice; line 4 has it too\n"},
    {OK "tables: []\n", "a.yaml:4:9: tables is empty; leave it out to copy all tables\n"},
    {OK "tables: [{a: b}, c]\n",
     "a.yaml:4:10: tables takes globs of tables, e.g. [orders, log_*], not keys\n"},
    {"name: a/b\nsource: sqlite:a\nsinks: {s: file:o}\n",
     "a.yaml:1:7: name takes at most 63 letters, digits, \"_\", \"-\" and \".\", the first of them "
     "no "
     "\"-\" or \".\", not \"a/b\"\n"},
    {"name: ..\nsource: sqlite:a\nsinks: {s: file:o}\n",
     "a.yaml:1:7: name takes at most 63 letters, digits, \"_\", \"-\" and \".\", the first of them "
     "no "
     "\"-\" or \".\", not \"..\"\n"},
    {"name: a\nsource: {tables: [b]}\ntables: [c]\nsinks: {s: file:o}\n",
     "a.yaml:2:9: source has no place; add e.g. place: sqlite:shop.db\n"
     "a.yaml:3:9: tables is there twice, in source and beside it; keep one of them\n"},
    {"name: a\nsource: shop.db\nsinks: {s: file:o}\n",
     "a.yaml:2:9: source: \"shop.db\" names no source; write sqlite:PATH or "
     "postgres://USER@HOST/DATABASE\n"},
    {"name: a\nsource: postgre://ann:secret@h/d\nsinks: {s: file:o}\n",
     "a.yaml:2:9: source: \"postgre://ann:***@h/d\" names no source; write sqlite:PATH or "
     "postgres://USER@HOST/DATABASE\n"},
    {"name: a\nsource: postgres//ann:secret@h/d\nsinks: {s: file:o}\n",
     "a.yaml:2:9: source: \"***@h/d\" names no source; write sqlite:PATH or "
     "postgres://USER@HOST/DATABASE\n"},
    {"name: a\nsource: sqlite:a\nsinks: {}\n",
     "a.yaml:3:8: sinks has no sink; name at least one, e.g. copy: file:out.ndjson\n"},
    {"name: a\nsource: sqlite:a\nsinks:\n",
     "a.yaml:3:7: sinks has no sink; name at least one, e.g. copy: file:out.ndjson\n"},
    {"name: a\nsource: sqlite:a\nsinks: file:o\n",
     "a.yaml:3:8: sinks has no sink; name at least one, e.g. copy: file:out.ndjson\n"},
    {"name: a\nsource: sqlite:a\nsinks:\n  s: file:o\n  s: file:p\n",
     "a.yaml:5:3: two sinks are called \"s\"; line 4 has the other\n"},
    {"name: a\nsource: sqlite:a\nsinks:\n  s: file:o\n  t: file:o\n",
     "a.yaml:5:6: sink t writes to the same place as sink s; give each its own\n"},
    {"name: a\nsource: sqlite:a\nsinks:\n  s: {place: file:o, seal_rows: 5}\n",
     "a.yaml:4:22: seal_rows is for archives (archive:PATH) alone; leave it out\n"},
    {"name: a\nsource: sqlite:a\nsinks:\n"
     "  s: {place: 'archive:o', seal_rows: 0, seal_bytes: 1, fill_unchanged: yes}\n",
     "a.yaml:4:38: seal_rows takes a number from 1 to 4194304, not \"0\"\n"
     "a.yaml:4:53: seal_bytes takes a number from 65536 to 50331648, not \"1\"\n"
     "a.yaml:4:72: fill_unchanged takes false or true, not \"yes\"\n"},
    {"name: a\nsource: sqlite:a\nsinks:\n"
     "  s: {place: 'archive:o', retain: 30, compact: no}\n  t: {place: file:o, retain: 0d}\n",
     "a.yaml:4:35: retain takes an age, e.g. 12h, 30d or 8w, not \"30\"\n"
     "a.yaml:4:48: compact takes false or true, not \"no\"\n"
     "a.yaml:5:22: retain is for archives (archive:PATH) alone; leave it out\n"
     "a.yaml:5:30: retain takes an age, e.g. 12h, 30d or 8w, not \"0d\"\n"},
    {"name: a\nsource: 'postgres://u:s3cr3t@h:99999/d'\nsinks:\n  s: 'file:'\n  t: 'null:x'\n"
     "  u: 'archive:x/'\n",
     "a.yaml:2:9: source: the PostgreSQL URL is not well-formed (a port past 65535); write it as "
     "postgres://user@host:port/database, and special characters of a name or a password as %XX, "
     "e.g. %40 for @, %2F for / and %25 for %\n"
     "a.yaml:4:6: s: file: needs a path: file:out.ndjson for one file, file:out/ for a file for "
     "each table\n"
     "a.yaml:5:6: t: null: takes no path; write null: alone\n"
     "a.yaml:6:6: u: archive: needs the path of a file: archive:shop.tide\n"},
    {"name: a\nsource: sqlite:a\nsinks:\n  s t: file:o\n",
     "a.yaml:4:3: a sink's name takes at most 63 letters, digits, \"_\", \"-\" and \".\", the "
     "first "
     "of them no \"-\" or \".\", not \"s t\"\n"},
    {"name: a\nsource: sqlite:a\nsinks:\n  s: fiel:o\n  t:\n  u: [file:o]\n",
     "a.yaml:4:6: s: \"fiel:o\" names no sink; write file:PATH, file:DIR/, archive:PATH, null: or "
     "-\n"
     "a.yaml:5:5: t takes a place, e.g. file:out.ndjson, or keys (place, existing, "
     "max_record_bytes, refused), not nothing\n"
     "a.yaml:6:6: u takes a place, e.g. file:out.ndjson, or keys (place, existing, "
     "max_record_bytes, refused), not a list\n"},
    {"name: a\nsource: sqlite:a\nsinks:\n  s: {place: file:o, existing: appendd, bytes: 1}\n",
     "a.yaml:4:32: existing takes refuse, append or overwrite, not \"appendd\"\n"
     "a.yaml:4:41: s has no key \"bytes\"; it has place, existing, when_behind, "
     "max_record_bytes, refused, seal_rows, seal_bytes, fill_unchanged, retain, compact\n"},
    {"name: a\nsource: sqlite:a\nsinks:\n  s: {existing: append}\n",
     "a.yaml:4:6: a sink has no place; add e.g. place: file:out.ndjson\n"},
    {"name: a\nsource: ${TIDE_TEST_UNSET}\nsinks: {s: 'file:${'}\n",
     "a.yaml:2:9: source: the environment has no TIDE_TEST_UNSET; set it, or write ${file:PATH}\n"
     "a.yaml:3:12: s: \"${\" without its \"}\"; write $${ for the two characters\n"},
    {"name: a\nsource: 'x${TIDE_TEST_SECRET}'\nsinks: {s: '${TIDE_TEST_SECRET}', t: '${a b}'}\n",
     "a.yaml:2:9: source: \"x${TIDE_TEST_SECRET}\" names no source; write sqlite:PATH or "
     "postgres://USER@HOST/DATABASE\n"
     "a.yaml:3:12: s: \"${TIDE_TEST_SECRET}\" names no sink; write file:PATH, file:DIR/, "
     "archive:PATH, null: or -\n"
     "a.yaml:3:38: t: between \"${\" and \"}\" stands a name of the environment or file:PATH\n"},
    {OK "snapshot: {chunk_rows: '${TIDE_TEST_SECRET}'}\n",
     "a.yaml:4:24: chunk_rows takes a number from 1 to 10000000, not \"${TIDE_TEST_SECRET}\"\n"},
    {OK "state: '${file:/tide/is/not/there}'\n",
     "a.yaml:4:8: state: cannot open /tide/is/not/there: No such file or directory\n"},
    {OK "\"a\\u009b\\e[31m\": 1\n",
     "a.yaml:4:1: a configuration has no key \"a???[31m\"; it has name, source, tables, sinks, "
     "snapshot, stream, limits, state, dead_letters\n"},
};

static void parse_bad_file_says_all_that_is_wrong(void **state)
{
    (void)state;
    assert_int_equal(setenv("TIDE_TEST_SECRET", "hunter2", 1), 0);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct tide_config config TIDE_CLEANUP(tide_config_done) = {0};
        struct tide_mistakes mistakes TIDE_CLEANUP(tide_mistakes_done) = {0};
        struct tide_buf text TIDE_CLEANUP(tide_buf_done) = {0};
        struct tide_error err = {0};
        assert_int_equal(
            tide_config_parse("a.yaml", tide_str_from(bad[i].yaml), &config, &mistakes, &err),
            TIDE_INVALID);
        tide_mistakes_print(&mistakes, "a.yaml", &text);
        assert_string_equal(tide_buf_cstr(&text), bad[i].want);
        assert_null(strstr(err.message, "hunter2"));
    }
}

static void parse_counts_mistakes_past_the_last_that_is_kept(void **state)
{
    (void)state;
    struct tide_config config TIDE_CLEANUP(tide_config_done) = {0};
    struct tide_mistakes mistakes TIDE_CLEANUP(tide_mistakes_done) = {0};
    struct tide_buf yaml TIDE_CLEANUP(tide_buf_done) = {0};
    struct tide_buf text TIDE_CLEANUP(tide_buf_done) = {0};
    struct tide_error err = {0};
    tide_buf_append_str(&yaml, TIDE_STR(OK));
    for (unsigned i = 0; i < TIDE_MISTAKES_MAX + 7; i++) {
        tide_buf_printf(&yaml, "zzz%u: 1\n", i);
    }
    assert_int_equal(tide_config_parse("a.yaml", tide_buf_str(&yaml), &config, &mistakes, &err),
                     TIDE_INVALID);
    assert_string_equal(err.message, "a.yaml has 57 mistakes");
    tide_mistakes_print(&mistakes, "a.yaml", &text);
    assert_non_null(strstr(tide_buf_cstr(&text), "a.yaml:53:1: "));
    assert_non_null(strstr(tide_buf_cstr(&text), "\na.yaml: and 7 more\n"));
}

static void parse_more_sinks_than_lanes_is_refused(void **state)
{
    (void)state;
    struct tide_config config TIDE_CLEANUP(tide_config_done) = {0};
    struct tide_mistakes mistakes TIDE_CLEANUP(tide_mistakes_done) = {0};
    struct tide_buf yaml TIDE_CLEANUP(tide_buf_done) = {0};
    struct tide_buf text TIDE_CLEANUP(tide_buf_done) = {0};
    struct tide_error err = {0};
    tide_buf_append_str(&yaml, TIDE_STR("name: a\nsource: sqlite:a\nsinks:\n"));
    for (unsigned i = 0; i < TIDE_LANES_MAX + 1; i++) {
        tide_buf_printf(&yaml, "  s%u: 'null:'\n", i);
    }
    assert_int_equal(tide_config_parse("a.yaml", tide_buf_str(&yaml), &config, &mistakes, &err),
                     TIDE_INVALID);
    tide_mistakes_print(&mistakes, "a.yaml", &text);
    assert_string_equal(tide_buf_cstr(&text), "a.yaml:4:3: 65 sinks; a pipeline has at most 64\n");
}

static void read_missing_or_large_file_fails(void **state)
{
    (void)state;
    struct tide_mistakes mistakes TIDE_CLEANUP(tide_mistakes_done) = {0};
    struct tide_config config TIDE_CLEANUP(tide_config_done) = {0};
    struct tide_error err = {0};
    assert_int_equal(tide_config_read("/tide/no.yaml", &config, &mistakes, &err), TIDE_IO);
    assert_string_equal(err.message, "cannot open /tide/no.yaml: No such file or directory");
    assert_int_equal(tide_config_read("/dev/zero", &config, &mistakes, &err), TIDE_INVALID);
    assert_string_equal(err.message, "/dev/zero is longer than 1048576 bytes: no configuration");
}

static void parse_keeps_state_beside_a_file_elsewhere(void **state)
{
    (void)state;
    struct tide_config config TIDE_CLEANUP(tide_config_done) = {0};
    struct tide_mistakes mistakes TIDE_CLEANUP(tide_mistakes_done) = {0};
    struct tide_error err = {0};
    must(tide_config_parse("/usr/a.yaml", TIDE_STR(OK), &config, &mistakes, &err), &mistakes);
    assert_string_equal(config.dir, "/usr");
    assert_string_equal(config.state_dir, "/usr/.tidemark/a");
    tide_config_done(&config);
    must(tide_config_parse("/a.yaml", TIDE_STR(OK "state: s\n"), &config, &mistakes, &err),
         &mistakes);
    assert_string_equal(config.state_dir, "//s");
}

static void secrets_are_put_in_and_encoded_in_users_of_urls(void **state)
{
    (void)state;

    static const struct {
        const char *text;
        const char *want;
    } cases[] = {
        {"plain $ {x} $", "plain $ {x} $"},
        {"$${A}", "${A}"},
        {"${TIDE_TEST_PW}", "p/w@1"},
        {"${TIDE_TEST_PW}${TIDE_TEST_PW}", "p/w@1p/w@1"},
        {"postgres://ann:${TIDE_TEST_PW}@h/d", "postgres://ann:p%2Fw%401@h/d"},
        {"postgres://${TIDE_TEST_PW}:x${TIDE_TEST_PW}@h/d", "postgres://p%2Fw%401:xp%2Fw%401@h/d"},
        {"postgres://h/${TIDE_TEST_PW}", "postgres://h/p/w@1"},
        {"postgres://ann@${TIDE_TEST_PW}/@", "postgres://ann@p/w@1/@"},
        {"postgres://${TIDE_TEST_PW}/d?a=@", "postgres://p/w@1/d?a=@"},
        {"a ${file:secret} b", "a of a file b"},
    };

    char dir[] = "/tmp/tidemark-secrets-XXXXXX";
    char path[64];
    assert_non_null(mkdtemp(dir));
    (void)snprintf(path, sizeof(path), "%s/secret", dir);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs("of a file\r\n", file) >= 0 && fclose(file) == 0);
    assert_int_equal(setenv("TIDE_TEST_PW", "p/w@1", 1), 0);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tide_buf buf TIDE_CLEANUP(tide_buf_done) = {0};
        struct tide_error err = {0};
        assert_int_equal(tide_secrets_expand(tide_str_from(cases[i].text), dir, &buf, &err),
                         TIDE_OK);
        assert_string_equal(tide_buf_cstr(&buf), cases[i].want);
    }
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(dir), 0);
}

static void is_file_goes_by_the_ending(void **state)
{
    (void)state;
    assert_true(tide_config_is_file("shop.yaml"));
    assert_true(tide_config_is_file("/etc/shop.yml"));
    assert_false(tide_config_is_file("sqlite:shop.db"));
    assert_false(tide_config_is_file("yaml"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parse_smallest_file_has_defaults),
        cmocka_unit_test(parse_takes_every_key),
        cmocka_unit_test(parse_bad_file_says_all_that_is_wrong),
        cmocka_unit_test(parse_counts_mistakes_past_the_last_that_is_kept),
        cmocka_unit_test(parse_more_sinks_than_lanes_is_refused),
        cmocka_unit_test(read_missing_or_large_file_fails),
        cmocka_unit_test(parse_keeps_state_beside_a_file_elsewhere),
        cmocka_unit_test(secrets_are_put_in_and_encoded_in_users_of_urls),
        cmocka_unit_test(is_file_goes_by_the_ending),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
