#include "app/control/control.h"

#include "app/control/control_message.h"
#include "base/log.h"

static bool is_busy(enum tide_control_phase phase)
{
    return phase == TIDE_CONTROL_STARTING || phase == TIDE_CONTROL_STOPPING;
}

static void encode_excuse(enum tide_control_phase phase, struct tide_buf *buf)
{
    bool is_starting = phase == TIDE_CONTROL_STARTING;
    tide_control_answer_encode(&(struct tide_control_answer){.status = TIDE_CLOSED,
                                                             .message = is_starting
                                                                            ? TIDE_STR("starting")
                                                                            : TIDE_STR("stopping")},
                               buf);
}

void tide_control_set_phase(struct tide_control *control, enum tide_control_phase phase)
{
    struct tide_buf excuse TIDE_CLEANUP(tide_buf_done) = {0};
    control->phase = phase;
    if (is_busy(phase)) {
        encode_excuse(phase, &excuse);
    }
    if (control->server != NULL) {
        tide_control_server_excuse(control->server, tide_buf_str(&excuse));
    }
}

void tide_control_init(struct tide_control *control, struct tide_pipeline *pipeline,
                       const struct tide_pipeline_options *options, struct tide_waker *waker)
{
    struct tide_error err;
    *control = (struct tide_control){.pipeline = pipeline, .options = options};
    if (tide_control_server_start(options->state_dir, waker, 0, &control->server, &err) !=
        TIDE_OK) {
        tide_log(TIDE_LOG_WARN, "status, backfill, pause and resume cannot reach this run: %s",
                 err.message);
    }
    tide_control_set_phase(control, TIDE_CONTROL_STARTING);
}

void tide_control_done(struct tide_control *control)
{
    tide_control_server_stop(control->server);
    control->server = NULL;
}

/* What is needed while one request is done. */
struct work {
    struct tide_control *control;
    struct tide_arena arena;
    struct tide_control_request request;
    struct tide_control_answer answer;
};

static tide_status do_status(struct work *work, struct tide_error *err)
{
    struct tide_buf report TIDE_CLEANUP(tide_buf_done) = {0};
    (void)err;
    tide_pipeline_report(work->control->pipeline, &report);
    work->answer.report = tide_arena_str(&work->arena, tide_buf_str(&report));
    return TIDE_OK;
}

/* The lines of `text` as slices of it. */
static void cut_lines(struct work *work, tide_str text, const tide_str **ret_lines,
                      size_t *ret_count)
{
    size_t count = 0;
    tide_str *lines = tide_arena_alloc(&work->arena, text.len, sizeof(*lines));
    for (size_t at = 0; at < text.len;) {
        const char *stop = memchr(text.ptr + at, '\n', text.len - at);
        size_t len = stop == NULL ? text.len - at : (size_t)(stop - text.ptr) - at;
        lines[count++] = tide_str_of(text.ptr + at, len);
        at += len + 1;
    }
    *ret_lines = lines;
    *ret_count = count;
}

static void note_sinks(struct work *work)
{
    const struct tide_pipeline_options *options = work->control->options;
    tide_str *sinks = tide_arena_alloc(&work->arena, options->sink_count, sizeof(*sinks));
    size_t count = 0;
    for (size_t i = 0; i < options->sink_count; i++) {
        if (work->request.sink.len == 0 ||
            tide_str_equal(options->sinks[i].name, work->request.sink)) {
            sinks[count++] = options->sinks[i].name;
        }
    }
    work->answer.sinks = sinks;
    work->answer.sink_count = count;
}

static bool is_in(const tide_str *names, size_t count, tide_str name)
{
    for (size_t i = 0; i < count; i++) {
        if (tide_str_equal(names[i], name)) {
            return true;
        }
    }
    return false;
}

/* Of every sink, those that could not be asked. */
static void note_left_out(struct work *work)
{
    struct tide_buf note TIDE_CLEANUP(tide_buf_done) = {0};
    const struct tide_pipeline_options *options = work->control->options;
    struct tide_control_answer *answer = &work->answer;
    for (size_t i = 0; work->request.sink.len == 0 && i < options->sink_count; i++) {
        if (!is_in(answer->sinks, answer->sink_count, options->sinks[i].name)) {
            tide_buf_printf(&note, "%s%.*s",
                            note.len == 0 ? "detached, and copied anew anyway "
                                            "when it takes part again: "
                                          : ", ",
                            TIDE_STR_ARG(options->sinks[i].name));
        }
    }
    answer->message = tide_arena_str(&work->arena, tide_buf_str(&note));
}

static tide_status do_backfill(struct work *work, struct tide_error *err)
{
    struct tide_buf tables TIDE_CLEANUP(tide_buf_done) = {0};
    struct tide_buf sinks TIDE_CLEANUP(tide_buf_done) = {0};
    const struct tide_control_request *request = &work->request;
    TIDE_TRY(tide_pipeline_backfill(work->control->pipeline, request->sink, request->tables,
                                    request->table_count, &tables, &sinks, err));
    cut_lines(work, tide_arena_str(&work->arena, tide_buf_str(&sinks)), &work->answer.sinks,
              &work->answer.sink_count);
    cut_lines(work, tide_arena_str(&work->arena, tide_buf_str(&tables)), &work->answer.tables,
              &work->answer.table_count);
    note_left_out(work);
    return TIDE_OK;
}

static tide_status do_pause(struct work *work, struct tide_error *err)
{
    TIDE_TRY(tide_pipeline_pause(work->control->pipeline, work->request.sink, err));
    note_sinks(work);
    return TIDE_OK;
}

static tide_status do_resume(struct work *work, struct tide_error *err)
{
    TIDE_TRY(tide_pipeline_resume(work->control->pipeline, work->request.sink, err));
    note_sinks(work);
    return TIDE_OK;
}

static const struct {
    const char *command;
    tide_status (*run)(struct work *work, struct tide_error *err);
    bool while_draining;
} commands[] = {
    {"status", do_status, true},
    {"backfill", do_backfill, false},
    {"pause", do_pause, false},
    {"resume", do_resume, false},
};

static tide_status do_request(struct work *work, struct tide_error *err)
{
    tide_str command = work->request.command;
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        if (!tide_str_equal(command, tide_str_from(commands[i].command))) {
            continue;
        }
        if (work->control->phase != TIDE_CONTROL_RUNNING && !commands[i].while_draining) {
            return tide_fail(err, TIDE_CLOSED, "stopping");
        }
        return commands[i].run(work, err);
    }
    return tide_fail(err, TIDE_UNSUPPORTED, "there is no command \"%.*s\"", TIDE_STR_ARG(command));
}

static void serve_one(struct tide_control *control, tide_str line)
{
    struct work work = {.control = control};
    struct tide_buf answer TIDE_CLEANUP(tide_buf_done) = {0};
    struct tide_error err = {0};
    tide_status status = tide_control_request_decode(line, &work.arena, &work.request, &err);
    if (status == TIDE_OK) {
        status = do_request(&work, &err);
    }
    if (status != TIDE_OK) {
        tide_str message = tide_str_from(err.message);
        message.len = tide_str_utf8_valid_prefix(message); /* a long one may be cut anywhere */
        work.answer = (struct tide_control_answer){.status = status, .message = message};
    }
    tide_control_answer_encode(&work.answer, &answer);
    tide_control_server_answer(control->server, tide_buf_str(&answer));
    tide_arena_done(&work.arena);
}

void tide_control_serve(struct tide_control *control)
{
    tide_str line;
    while (control->server != NULL && tide_control_server_take(control->server, &line)) {
        serve_one(control, line);
    }
}
