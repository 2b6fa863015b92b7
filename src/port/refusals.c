#include "port/refusals.h"

#include "base/glob.h"
#include "format/envelope.h"
#include "format/record.h"

#define SHOWN_MAX ((size_t)80) /* bytes of a key or a name in a message */

void tide_refusals_init(struct tide_refusals *refusals, const struct tide_sink_options *options,
                        tide_str destination)
{
    *refusals = (struct tide_refusals){
        .sink = options->name,
        .destination = destination,
        .policy = options->refused,
        .dead_letters = options->dead_letters,
        .position_kind = options->position_kind,
        .incarnation = options->incarnation,
    };
}

const char *tide_refused_name(enum tide_refused action)
{
    static const char *const names[] = {
        [TIDE_REFUSED_DEAD_LETTER] = "dead_letter",
        [TIDE_REFUSED_STOP] = "stop",
        [TIDE_REFUSED_SKIP] = "skip",
    };
    TIDE_ASSERT((size_t)action < sizeof(names) / sizeof(names[0]));
    return names[action];
}

static bool glob_chooses(tide_str glob, const struct tide_relation *relation)
{
    if (tide_glob_matches(glob, relation->name)) {
        return true;
    }
    if (relation->schema.len == 0) {
        return false;
    }
    TIDE_CLEANUP(tide_buf_done) struct tide_buf full = {0};
    tide_buf_append_str(&full, relation->schema);
    tide_buf_append_char(&full, '.');
    tide_buf_append_str(&full, relation->name);
    return tide_glob_matches(glob, tide_buf_str(&full));
}

const struct tide_refused_rule *tide_refused_rule_of(const struct tide_refused_policy *policy,
                                                     const struct tide_relation *relation)
{
    for (size_t i = 0; i < policy->rule_count; i++) {
        if (glob_chooses(policy->rules[i].glob, relation)) {
            return &policy->rules[i];
        }
    }
    return NULL;
}

/* Cut to what a message has room for, without half a character. */
static void append_shown(struct tide_buf *buf, tide_str text)
{
    bool is_cut = text.len > SHOWN_MAX;
    text.len = is_cut ? SHOWN_MAX : text.len;
    text.len = is_cut ? tide_str_utf8_valid_prefix(text) : text.len;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        tide_buf_append_char(buf, (unsigned char)c < 0x20 || c == 0x7f ? '?' : c);
    }
    tide_buf_append_str(buf, is_cut ? TIDE_STR("...") : TIDE_STR(""));
}

/* "shop.t, key [1], seq 4 of snapshot ID": what somebody needs to find the record. */
static void append_which(struct tide_buf *buf, const struct tide_refusals *refusals,
                         const struct tide_dead_letter *letter)
{
    append_shown(buf, letter->store);
    if (letter->key_json.len > 0) {
        tide_buf_append_str(buf, TIDE_STR(", key "));
        append_shown(buf, letter->key_json);
    }
    if (letter->has_seq) {
        tide_buf_append_str(buf, TIDE_STR(", seq "));
        tide_buf_append_u64(buf, letter->seq);
        tide_buf_printf(buf, " of snapshot %s", letter->snapshot_id);
    } else {
        tide_buf_append_str(buf, TIDE_STR(", change at "));
        refusals->position_kind->write(letter->place.position, buf);
        tide_buf_append_str(buf, TIDE_STR(", index "));
        tide_buf_append_u64(buf, letter->place.index);
    }
}

static tide_status stop(const struct tide_refusals *refusals, const struct tide_dead_letter *letter,
                        struct tide_error *err)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf which = {0};
    append_which(&which, refusals, letter);
    return tide_fail_finally(
        err, TIDE_INVALID,
        "sink %.*s cannot take a record and `refused` says stop (%s: %.*s); raise its "
        "max_record_bytes, or set refused to dead_letter or skip for the table, then "
        "run again",
        TIDE_STR_ARG(refusals->sink), tide_buf_cstr(&which), TIDE_STR_ARG(letter->reason));
}

/* Only the sink's thread adds, so no locked instruction is needed; others may read meanwhile. */
static void count(_Atomic uint64_t *counter, bool is_new)
{
    uint64_t before = atomic_load_explicit(counter, memory_order_relaxed);
    atomic_store_explicit(counter, before + is_new, memory_order_relaxed);
}

static tide_status put(struct tide_refusals *refusals, const struct tide_dead_letter *letter,
                       struct tide_error *err)
{
    const struct tide_dead_letters *to = &refusals->dead_letters;
    bool is_new = false;
    if (to->put == NULL) {
        return tide_fail(err, TIDE_INVALID,
                         "a record of %.*s has %.*s, and there are no dead letters to keep it in",
                         TIDE_STR_ARG(letter->store), TIDE_STR_ARG(letter->reason));
    }
    TIDE_TRY(to->put(to->context, letter, &is_new, err));
    count(&refusals->letters, is_new);
    return TIDE_OK;
}

static void skip(struct tide_refusals *refusals, const struct tide_dead_letter *letter)
{
    const struct tide_dead_letters *to = &refusals->dead_letters;
    bool is_new = true;
    if (to->note_skipped != NULL) {
        to->note_skipped(to->context, letter, &is_new);
    }
    count(&refusals->skipped, is_new);
}

static tide_status take(struct tide_refusals *refusals, const struct tide_relation *relation,
                        const struct tide_dead_letter *letter, struct tide_error *err)
{
    const struct tide_refused_rule *rule = tide_refused_rule_of(&refusals->policy, relation);
    switch (rule != NULL ? rule->action : refusals->policy.otherwise) {
    case TIDE_REFUSED_STOP:
        return stop(refusals, letter, err);
    case TIDE_REFUSED_SKIP:
        skip(refusals, letter);
        return TIDE_OK;
    case TIDE_REFUSED_DEAD_LETTER:
    default:
        return put(refusals, letter, err);
    }
}

static struct tide_dead_letter letter_of(const struct tide_refusals *refusals,
                                         const struct tide_relation *relation,
                                         const struct tide_refused_record *record)
{
    return (struct tide_dead_letter){
        .sink = refusals->sink,
        .store = relation->store,
        .destination = refusals->destination,
        .reason = record->reason,
        .bytes = record->bytes,
    };
}

tide_status tide_refusals_take_row(struct tide_refusals *refusals,
                                   const struct tide_snapshot_part *part, size_t index,
                                   const struct tide_refused_record *record, struct tide_error *err)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf key = {0};
    struct tide_dead_letter letter = letter_of(refusals, part->relation, record);
    tide_envelope_append_row_key(&key, part->relation, part->rows[index]);
    letter.key_json = tide_buf_str(&key);
    letter.has_seq = true;
    letter.seq = part->first_seq + index;
    letter.attempt = part->head.attempt;
    memcpy(letter.snapshot_id, part->head.id, sizeof(letter.snapshot_id));
    return take(refusals, part->relation, &letter, err);
}

tide_status tide_refusals_take_change(struct tide_refusals *refusals,
                                      const struct tide_change *change,
                                      const struct tide_refused_record *record,
                                      struct tide_error *err)
{
    TIDE_CLEANUP(tide_buf_done) struct tide_buf key = {0};
    struct tide_dead_letter letter = letter_of(refusals, change->relation, record);
    if (change->key != NULL) {
        tide_record_append_key(&key, change->relation, change->key);
    }
    letter.key_json = tide_buf_str(&key);
    letter.place = change->place;
    letter.incarnation = refusals->incarnation;
    return take(refusals, change->relation, &letter, err);
}

void tide_refusals_counts(const struct tide_refusals *refusals, struct tide_sink_counts *ret_counts)
{
    ret_counts->dead_letters = atomic_load_explicit(&refusals->letters, memory_order_relaxed);
    ret_counts->skipped = atomic_load_explicit(&refusals->skipped, memory_order_relaxed);
}
