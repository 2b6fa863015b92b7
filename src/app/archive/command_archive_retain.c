/* tidemark archive retain: what is older than a moment is forgotten, but no living row. */
#include "app/archive/archive_commands.h"
#include "app/archive/archive_tables.h"
#include "app/safe_text.h"
#include "app/time_argument.h"
#include "archive/change_base.h"
#include "archive/change_retain.h"
#include "archive/change_series.h"
#include "base/clock.h"

#include <inttypes.h>
#include <stdio.h>

struct retain_command {
    struct tide_archive_arguments arguments;
    bool has_cutoff;
    int64_t cutoff_us;
    bool is_dry;
    bool is_folding;
};

enum {
    OPTION_OLDER_THAN = 256,
    OPTION_DRY_RUN,
    OPTION_FOLD,
};

static const struct argp_option argp_options[] = {
    TIDE_ARCHIVE_CHOICE_OPTIONS,
    {"older-than", OPTION_OLDER_THAN, "AGE|TIME", 0, "What may be forgotten (needed)", 0},
    {"fold", OPTION_FOLD, NULL, 0, "Put the state as of then in place of what led to it", 0},
    {"dry-run", OPTION_DRY_RUN, NULL, 0, "Say what would be kept, and forget nothing", 0},
    {0},
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct retain_command *command = state->input;
    switch (key) {
    case OPTION_OLDER_THAN:
        command->has_cutoff = true;
        if (!tide_time_argument_parse(tide_str_from(arg), tide_clock_utc_us(),
                                      &command->cutoff_us)) {
            argp_error(state, "--older-than wants " TIDE_TIME_ARGUMENT_HELP ", not \"%s\"", arg);
        }
        return 0;
    case OPTION_FOLD:
        command->is_folding = true;
        return 0;
    case OPTION_DRY_RUN:
        command->is_dry = true;
        return 0;
    case ARGP_KEY_SUCCESS:
        if (!command->has_cutoff) {
            argp_error(state, "--older-than is missing");
        }
        return 0;
    default:
        return tide_archive_arguments_take(&command->arguments, key, arg, state);
    }
}

static const struct argp argp = {
    .options = argp_options,
    .parser = parse_option,
    .args_doc = "ARCHIVE",
    .doc =
        "Forgets what is older than a moment, table by table.\vOf each table all is kept from the "
        "begin of its newest complete copy that ended before that moment on: so every row that "
        "lives, and every state since, can still be rebuilt. A table that has older rows but no "
        "such copy is left as it is, and named: copy it anew (tidemark backfill), and come again "
        "when that copy is older.\n\nWith --fold an old copy will do: what is sealed up to that "
        "moment is replaced by a copy that is made of it, the table as it was then. States since "
        "stay what they were. It takes memory for all rows of a table.\n\n"
        "TIME is " TIDE_TIME_ARGUMENT_HELP
        ". Segments are forgotten whole, and their room is given "
        "back where nobody else has the archive open. It may be written meanwhile by a "
        "pipeline, but with --fold by nobody.\n\nExit status: 0 done, "
        "1 a table was "
        "left for want of a copy or not folded, 2 wrong usage or no such table, 3 in use, or "
        "failed.",
};

/* Said of a copy that all before it is forgotten for. */
#define STUBS "; rows that were too long for that copy are known by their keys, until they change"

static void say(const struct tide_archive_series_info *series, const char *what, int64_t ns,
                const char *more)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf line = {0};
    char time[TIDE_RFC3339_MS_LEN + 1];
    tide_rfc3339_ms(ns / 1000, time);
    tide_append_safe(&line, series->name);
    tide_buf_printf(&line, ": %s %s%s\n", what, time, more);
    (void)fwrite(line.ptr, 1, line.len, stdout); /* a failure shows when the program ends */
}

static const char *plural(int64_t count)
{
    return count == 1 ? "" : "s";
}

static tide_status forget(struct tide_archive *archive,
                          const struct tide_archive_series_info *series,
                          const struct tide_change_snapshot *floor, struct tide_error *err)
{
    struct tide_archive_retained done;
    char more[256];
    TIDE_TRY(tide_change_forget(archive, series, floor->begin_ts, &done, err));
    (void)snprintf(more, sizeof(more),
                   ": %" PRId64 " segment%s and %" PRId64 " live row%s forgotten%s", done.segments,
                   plural(done.segments), done.live_rows, plural(done.live_rows),
                   floor->has_stub ? STUBS : "");
    say(series, "kept from", floor->begin_ts, more);
    return TIDE_OK;
}

static tide_status fold(const struct retain_command *command, struct tide_archive *archive,
                        const struct tide_archive_series_info *series, int64_t cutoff_ts,
                        bool *ret_is_left, struct tide_error *err)
{
    struct tide_change_base base;
    struct tide_error why;
    char more[sizeof(why.message) + 8];
    tide_status status =
        tide_change_base_write(archive, series, cutoff_ts, command->is_dry, &base, &why);
    if (status == TIDE_INVALID || status == TIDE_UNSUPPORTED) {
        (void)snprintf(more, sizeof(more), ": %s", why.message);
        say(series, "not folded to", cutoff_ts, more);
        *ret_is_left = true;
        return TIDE_OK;
    }
    if (status != TIDE_OK) {
        *err = why;
        return status;
    }
    if (base.why_not != NULL) {
        (void)snprintf(more, sizeof(more), ": %s", base.why_not);
        say(series, "not folded to", cutoff_ts, more);
        *ret_is_left = *ret_is_left || base.is_doubtful;
        return TIDE_OK;
    }
    (void)snprintf(
        more, sizeof(more),
        ": a copy of %" PRId64 " row%s in place of %" PRId64 " rows in %" PRId64 " segment%s",
        base.rows, plural(base.rows), base.rows_before, base.segments, plural(base.segments));
    say(series, command->is_dry ? "would be folded to" : "folded to", base.state_us * 1000, more);
    return TIDE_OK;
}

static tide_status retain_series(const struct retain_command *command, struct tide_archive *archive,
                                 const struct tide_archive_series_info *series, bool *ret_is_left,
                                 struct tide_error *err)
{
    TIDE_CLEANUP(tide_change_history_free_ptr) struct tide_change_history *history = NULL;
    struct tide_change_summary summary;
    int64_t cutoff_ts =
        command->cutoff_us > INT64_MAX / 1000 ? INT64_MAX : command->cutoff_us * 1000;
    if (command->is_folding) {
        TIDE_TRY(fold(command, archive, series, cutoff_ts, ret_is_left, err));
    }
    TIDE_TRY(tide_change_series_look(archive, series, &summary, &history, err));
    if (summary.first_ts >= cutoff_ts) {
        say(series, "nothing is older: all is kept from", summary.first_ts, "");
        return TIDE_OK;
    }
    const struct tide_change_snapshot *floor = tide_change_history_floor(history, cutoff_ts);
    if (floor == NULL) {
        say(series, "left as it is: no complete copy of it ended before", cutoff_ts,
            ", and without one rows would be lost that have not changed since; copy the table "
            "anew (tidemark backfill)");
        *ret_is_left = true;
        return TIDE_OK;
    }
    if (command->is_dry) {
        say(series, "would be kept from", floor->begin_ts, floor->has_stub ? STUBS : "");
        return TIDE_OK;
    }
    return forget(archive, series, floor, err);
}

static tide_status run(const struct retain_command *command, bool *ret_is_left,
                       struct tide_error *err)
{
    TIDE_CLEANUP(tide_archive_close_ptr) struct tide_archive *archive = NULL;
    TIDE_CLEANUP(tide_arena_done) struct tide_arena arena = {0};
    struct tide_archive_catalogue catalogue;
    TIDE_TRY(command->is_dry
                 ? tide_archive_open(command->arguments.path, TIDE_ARCHIVE_READ, &archive, err)
             : command->is_folding
                 ? tide_archive_open_alone(command->arguments.path, "retain --fold", &archive, err)
                 : tide_archive_open_to_edit(command->arguments.path, &archive, err));
    TIDE_TRY(tide_archive_catalogue_read(archive, &arena, &catalogue, err));
    TIDE_TRY(tide_archive_choice_check(&command->arguments.choice, command->arguments.path,
                                       &catalogue, err));
    for (size_t i = 0; i < catalogue.series_count; i++) {
        if (tide_archive_choice_has(&command->arguments.choice, &catalogue.series[i])) {
            TIDE_TRY(retain_series(command, archive, &catalogue.series[i], ret_is_left, err));
        }
    }
    if (!command->is_dry) {
        tide_archive_shrink(archive);
    }
    return TIDE_OK;
}

int tide_archive_command_retain(int argc, char **argv)
{
    struct retain_command command = {0};
    struct tide_error err = {0};
    bool is_left = false;
    (void)argp_parse(&argp, argc, argv, 0, NULL, &command);
    tide_status status = run(&command, &is_left, &err);
    return status == TIDE_OK && is_left ? TIDE_EXIT_NO
                                        : tide_command_end("archive retain", status, &err);
}
