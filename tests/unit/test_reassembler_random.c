/*
 * Random histories against a plain model: a writer that is interrupted now and then, whose frames
 * are lost, repeated and shuffled.
 */
#include "cmocka_prelude.h"

#include "format/reassembler.h"
#include "frame_history.h"
#include "soak.h"

#include <stdio.h>

enum {
    UNKNOWN = TIDE_SNAPSHOT_UNKNOWN,
    OPEN = TIDE_SNAPSHOT_OPEN,
    COMPLETE = TIDE_SNAPSHOT_COMPLETE,
    TRUNCATED = TIDE_SNAPSHOT_TRUNCATED,
};

static uint64_t seed = 11;

static size_t next_random(size_t below)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (size_t)(seed >> 33) % below;
}

#define MODEL_MAX 256

struct model_frame {
    enum tide_frame_kind kind;
    uint64_t seq; /* row count of an end, position of a change */
    unsigned attempt;
    unsigned place; /* changes_from, changes_to, prev; 0: null */
};

struct model {
    struct model_frame frames[MODEL_MAX];
    size_t count;
    unsigned starts[8]; /* of the attempts of this history; starts[0] is 0 */
};

struct model_verdict {
    int status;
    uint64_t rows;
    uint64_t missing;
};

static void model_add(struct model *model, enum tide_frame_kind kind, uint64_t seq,
                      unsigned attempt, unsigned place)
{
    if (model->count < MODEL_MAX) {
        model->frames[model->count++] = (struct model_frame){kind, seq, attempt, place};
    }
}

/* A complete history: rows and changes mixed, attempts that take back some of the rows. */
static void model_write(struct model *model)
{
    unsigned change = (unsigned)next_random(3);
    unsigned attempt = 0;
    unsigned seq = 0;
    *model = (struct model){0};
    model_add(model, TIDE_FRAME_BEGIN, 0, 0, change);
    for (size_t steps = 5 + next_random(60); steps > 0; steps--) {
        size_t what = next_random(20);
        if (what < 12) {
            model_add(model, next_random(8) == 0 ? TIDE_FRAME_OVERSIZE : TIDE_FRAME_ROW, seq++,
                      attempt, 0);
        } else if (what < 18) {
            unsigned next = change + 1 + (unsigned)next_random(2);
            model_add(model, TIDE_FRAME_CHANGE, next, 0, change);
            change = next;
        } else if (what == 18 && attempt < 4) {
            seq -= seq > 0 ? (unsigned)next_random(seq < 4 ? seq + 1 : 5) : 0;
            model->starts[++attempt] = seq;
            model_add(model, TIDE_FRAME_RESUME, seq, attempt, change);
        } else if (what == 19 && next_random(4) == 0) {
            model_add(model, TIDE_FRAME_END, seq, attempt, change);
            return;
        }
    }
    model_add(model, TIDE_FRAME_END, seq, attempt, change);
}

static void model_disturb(struct model *model)
{
    struct model_frame swap;
    for (size_t i = next_random(4); i > 0 && model->count > 1; i--) {
        model->frames[next_random(model->count)] = model->frames[model->count - 1];
        model->count--;
    }
    for (size_t i = next_random(10); i > 0; i--) {
        struct model_frame again = model->frames[next_random(model->count)];
        model_add(model, again.kind, again.seq, again.attempt, again.place);
    }
    for (size_t i = next_random(3) * 40; i > 0; i--) {
        size_t a = next_random(model->count);
        size_t b = next_random(model->count);
        swap = model->frames[a];
        model->frames[a] = model->frames[b];
        model->frames[b] = swap;
    }
}

static bool is_seq_frame(const struct model_frame *frame)
{
    return frame->kind == TIDE_FRAME_ROW || frame->kind == TIDE_FRAME_OVERSIZE;
}

/* The highest attempt of which `kind` frames came; any snapshot frame for CHANGE. -1: none. */
static int highest_attempt(const struct model *model, enum tide_frame_kind kind)
{
    int highest = -1;
    for (size_t i = 0; i < model->count; i++) {
        const struct model_frame *frame = &model->frames[i];
        bool fits =
            kind == TIDE_FRAME_CHANGE ? frame->kind != TIDE_FRAME_CHANGE : frame->kind == kind;
        if (fits && (int)frame->attempt > highest) {
            highest = (int)frame->attempt;
        }
    }
    return highest;
}

static unsigned lowest_seq(const struct model *model, unsigned attempt)
{
    unsigned lowest = UINT32_MAX;
    for (size_t i = 0; i < model->count; i++) {
        const struct model_frame *frame = &model->frames[i];
        if (is_seq_frame(frame) && frame->attempt == attempt && frame->seq < lowest) {
            lowest = (unsigned)frame->seq;
        }
    }
    return lowest;
}

static bool model_is_void(const struct model *model, const struct model_frame *frame)
{
    int highest = highest_attempt(model, TIDE_FRAME_CHANGE);
    int end = highest_attempt(model, TIDE_FRAME_END);
    int resume = highest_attempt(model, TIDE_FRAME_RESUME);
    int known = end > resume ? end : resume;
    for (int later = (int)frame->attempt + 1; later <= highest; later++) {
        unsigned start = later <= known ? model->starts[later] : lowest_seq(model, (unsigned)later);
        if (frame->seq >= start) {
            return true;
        }
    }
    return false;
}

/* Where the changes are proven from: the earliest opening, if nothing that counts came before it.
 */
static unsigned model_changes_from(const struct model *model)
{
    int end = highest_attempt(model, TIDE_FRAME_END);
    int resume = highest_attempt(model, TIDE_FRAME_RESUME);
    int first = end > resume ? end : resume;
    while (first > 0 && model->starts[first] > 0) {
        first--;
    }
    const struct model_frame *opening = NULL;
    for (size_t i = 0; i < model->count; i++) {
        const struct model_frame *frame = &model->frames[i];
        bool opens = frame->kind == TIDE_FRAME_BEGIN || frame->kind == TIDE_FRAME_RESUME;
        if (opens && (opening == NULL || frame->attempt < opening->attempt)) {
            opening = frame;
        }
    }
    return opening != NULL && (int)opening->attempt <= first ? opening->place : 0;
}

static bool model_changes_are_whole(const struct model *model, unsigned to)
{
    unsigned covered = model_changes_from(model);
    for (bool moved = true; moved;) {
        moved = false;
        for (size_t i = 0; i < model->count; i++) {
            const struct model_frame *frame = &model->frames[i];
            if (frame->kind == TIDE_FRAME_CHANGE && frame->place <= covered &&
                frame->seq > covered) {
                covered = (unsigned)frame->seq;
                moved = true;
            }
        }
    }
    return covered >= to;
}

static struct model_verdict model_judge(const struct model *model)
{
    struct model_verdict verdict = {.status = OPEN};
    bool seen[MODEL_MAX] = {false};
    int highest = highest_attempt(model, TIDE_FRAME_CHANGE);
    const struct model_frame *end = NULL;
    for (size_t i = 0; i < model->count; i++) {
        const struct model_frame *frame = &model->frames[i];
        if (frame->kind == TIDE_FRAME_END && (int)frame->attempt == highest) {
            end = frame;
        }
        if (is_seq_frame(frame) && !model_is_void(model, frame) && !seen[frame->seq]) {
            seen[frame->seq] = true;
            verdict.rows++;
        }
    }
    if (highest < 0) {
        verdict.status = UNKNOWN;
    } else if (end != NULL) {
        for (size_t seq = 0; seq < end->seq; seq++) {
            verdict.missing += !seen[seq];
        }
        bool is_whole = verdict.missing == 0 && model_changes_are_whole(model, end->place);
        verdict.status = is_whole ? COMPLETE : TRUNCATED;
    }
    return verdict;
}

static void model_token(const struct model *model, const struct model_frame *frame, char *token)
{
    static const char *const kinds[] = {"begin", "row", "stub", "end", "resume", "change"};
    static const char *const places[] = {"from", "", "", "to", "from", "prev"};
    int len = snprintf(token, 128, "%s=%llu", kinds[frame->kind], (unsigned long long)frame->seq);
    if (places[frame->kind][0] != '\0' && frame->place == 0) {
        len += snprintf(token + len, 32, ",%s=null", places[frame->kind]);
    } else if (places[frame->kind][0] != '\0') {
        len += snprintf(token + len, 32, ",%s=%u", places[frame->kind], frame->place);
    }
    if (frame->kind == TIDE_FRAME_CHANGE || frame->attempt == 0) {
        return;
    }
    len += snprintf(token + len, 32, ",attempt=%u", frame->attempt);
    for (unsigned i = 1; !is_seq_frame(frame) && i <= frame->attempt; i++) {
        len += snprintf(token + len, 32, "%s%u", i == 1 ? ",starts=" : ":", model->starts[i]);
    }
}

static void judge_random_histories_agrees_with_a_plain_model(void **state)
{
    (void)state;
    static struct model model;
    size_t statuses[5] = {0};
    long rounds = soak_rounds(4000, 400000);
    for (long round = 0; round < rounds; round++) {
        model_write(&model);
        model_disturb(&model);
        struct tide_reassembler *reassembler = tide_reassembler_new();
        char token[128] = "";
        for (size_t i = 0; i < model.count; i++) {
            model_token(&model, &model.frames[i], token);
            history_feed(reassembler, token);
        }
        struct model_verdict want = model_judge(&model);
        struct tide_snapshot_report got = tide_reassembler_judge(reassembler, TIDE_STR("A"));
        if ((int)got.status != want.status || got.rows + got.stubs != want.rows ||
            got.missing != want.missing) {
            for (size_t i = 0; i < model.count; i++) {
                model_token(&model, &model.frames[i], token);
                print_message("%s ", token);
            }
            fail_msg("round %ld: status %d, not %d; %llu rows, not %llu; %llu missing, not %llu",
                     round, (int)got.status, want.status,
                     (unsigned long long)(got.rows + got.stubs), (unsigned long long)want.rows,
                     (unsigned long long)got.missing, (unsigned long long)want.missing);
        }
        statuses[got.status]++;
        tide_reassembler_free(reassembler);
    }
    assert_true(statuses[OPEN] > 0 && statuses[COMPLETE] > 0 && statuses[TRUNCATED] > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(judge_random_histories_agrees_with_a_plain_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
