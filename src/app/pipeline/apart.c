#include "app/pipeline/apart.h"

#include "app/state/claim.h"
#include "base/alloc.h"

#include <stdlib.h>

struct apart {
    struct tide_claim source;
    struct tide_claim configuration;
    struct tide_claim state;
    struct tide_claim *sinks; /* those that were looked at so far */
    size_t sink_count;
};

static void apart_init(struct apart *apart, const struct tide_pipeline_options *options,
                       const char *configuration)
{
    *apart = (struct apart){0};
    apart->sinks = tide_alloc(options->sink_count, sizeof(*apart->sinks));
    tide_claim_source(&apart->source, options);
    tide_claim_configuration(&apart->configuration, configuration);
    tide_claim_state(&apart->state, options->state_dir);
}

static void apart_done(struct apart *apart)
{
    for (size_t i = 0; i < apart->sink_count; i++) {
        tide_claim_done(&apart->sinks[i]);
    }
    free(apart->sinks);
    tide_claim_done(&apart->source);
    tide_claim_done(&apart->configuration);
    tide_claim_done(&apart->state);
}

static const char *path_of(const struct tide_claim_spot *spot)
{
    return spot->path.ptr; /* with its NUL, as tide_buf_cstr left it */
}

static tide_status check_source(const struct apart *apart, const struct tide_claim *writer,
                                struct tide_error *err)
{
    const struct tide_claim_spot *owned = NULL;
    const struct tide_claim_spot *found = tide_claim_meet(writer, &apart->source, &owned);
    return found == NULL
               ? TIDE_OK
               : tide_fail(err, TIDE_INVALID,
                           "%.160s would be written, but is the source's own file %.160s: that "
                           "would destroy the database; choose another place",
                           path_of(found), path_of(owned));
}

static tide_status check_configuration(const struct apart *apart, const struct tide_claim *writer,
                                       struct tide_error *err)
{
    const struct tide_claim_spot *owned = NULL;
    const struct tide_claim_spot *found = tide_claim_meet(writer, &apart->configuration, &owned);
    return found == NULL ? TIDE_OK
                         : tide_fail(err, TIDE_INVALID,
                                     "%.160s would be written, but is the configuration %.160s "
                                     "itself; choose another place",
                                     path_of(found), path_of(owned));
}

static tide_status check_state(const struct apart *apart, const struct tide_claim *sink,
                               struct tide_error *err)
{
    const struct tide_claim_spot *owned = NULL;
    const struct tide_claim_spot *found = tide_claim_meet(sink, &apart->state, &owned);
    return found == NULL ? TIDE_OK
                         : tide_fail(err, TIDE_INVALID,
                                     "%.160s would be written, but belongs to the pipeline's own "
                                     "state directory %.160s; choose another place",
                                     path_of(found), path_of(&apart->state.spots[0]));
}

/* From the sinks before it. */
static tide_status check_sinks(const struct apart *apart, const struct tide_claim *sink,
                               struct tide_error *err)
{
    for (size_t i = 0; i < apart->sink_count; i++) {
        const struct tide_claim *other = &apart->sinks[i];
        const struct tide_claim_spot *owned = NULL;
        const struct tide_claim_spot *found = tide_claim_meet(sink, other, &owned);
        if (found != NULL) {
            return tide_fail(err, TIDE_INVALID,
                             "sink %.*s would write %.160s, where sink %.*s writes too; give each "
                             "its own place",
                             TIDE_STR_ARG(sink->sink), path_of(found), TIDE_STR_ARG(other->sink));
        }
    }
    return TIDE_OK;
}

static tide_status check_sink(struct apart *apart, const struct tide_pipeline_sink *sink,
                              struct tide_error *err)
{
    struct tide_claim claim = {0};
    tide_status status = tide_claim_sink(&claim, sink, err);
    if (status == TIDE_OK) {
        status = check_source(apart, &claim, err);
    }
    if (status == TIDE_OK) {
        status = check_configuration(apart, &claim, err);
    }
    if (status == TIDE_OK) {
        status = check_state(apart, &claim, err);
    }
    if (status == TIDE_OK) {
        status = check_sinks(apart, &claim, err);
    }
    apart->sinks[apart->sink_count++] = claim;
    return status;
}

static tide_status check_all(struct apart *apart, const struct tide_pipeline_options *options,
                             struct tide_error *err)
{
    for (size_t i = 0; i < options->sink_count; i++) {
        TIDE_TRY(check_sink(apart, &options->sinks[i], err));
    }
    return check_source(apart, &apart->state, err);
}

tide_status tide_check_apart(const struct tide_pipeline_options *options, const char *configuration,
                             struct tide_error *err)
{
    struct apart apart;
    apart_init(&apart, options, configuration);
    tide_status status = check_all(&apart, options, err);
    apart_done(&apart);
    return status;
}

static void add_problem(struct tide_findings *findings, const struct tide_error *err)
{
    tide_findings_add(findings, true, tide_str_from(err->message), TIDE_STR(""));
}

void tide_check_each_apart(const struct tide_pipeline_options *options, const char *configuration,
                           struct tide_findings *findings, bool *ret_is_refused)
{
    struct apart apart;
    struct tide_error err = {0};
    apart_init(&apart, options, configuration);
    for (size_t i = 0; i < options->sink_count; i++) {
        ret_is_refused[i] = check_sink(&apart, &options->sinks[i], &err) != TIDE_OK;
        if (ret_is_refused[i]) {
            add_problem(findings, &err);
        }
    }
    if (check_source(&apart, &apart.state, &err) != TIDE_OK) {
        add_problem(findings, &err);
    }
    apart_done(&apart);
}
