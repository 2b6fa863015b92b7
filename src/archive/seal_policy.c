#include "archive/seal_policy.h"

#include "base/limits.h"

const struct tide_archive_seal_policy tide_archive_seal_policy_default = {
    .rows_max = TIDE_ARCHIVE_SEAL_ROWS,
    .bytes_max = TIDE_ARCHIVE_SEAL_BYTES,
};

#define STAGGER_BUCKETS 64
#define STAGGER_PARTS   128

static uint64_t absorb(uint64_t hash, unsigned char byte)
{
    static const uint64_t prime = UINT64_C(0x100000001b3);
    hash = (hash ^ byte) * prime;
    return (hash ^ (unsigned char)(byte >> 6)) * prime;
}

static uint64_t absorb_all(uint64_t hash, tide_str bytes)
{
    for (size_t i = 0; i < bytes.len; i++) {
        hash = absorb(hash, (unsigned char)bytes.ptr[i]);
    }
    return hash;
}

unsigned tide_archive_stagger(tide_str series, tide_str label)
{
    uint64_t hash = absorb_all(UINT64_C(0xcbf29ce484222325), series);
    hash = absorb(hash, 0xff);
    return (unsigned)(absorb_all(hash, label) % STAGGER_BUCKETS);
}

static int64_t cap_of(int64_t cap, const struct tide_archive_tail *tail)
{
    if (!tail->is_first) {
        return cap;
    }
    int64_t reduced = cap - cap / STAGGER_PARTS * tide_archive_stagger(tail->name, tail->label);
    return reduced < 1 ? 1 : reduced;
}

/* Rounds down, also below 0. */
static int64_t span_of(int64_t ts, int64_t align)
{
    int64_t span = ts / align;
    return ts % align < 0 ? span - 1 : span;
}

static int64_t age_of(const struct tide_archive_tail *tail, int64_t now_ts)
{
    int64_t age = 0;
    if (now_ts <= tail->oldest_ts) {
        return 0;
    }
    return __builtin_sub_overflow(now_ts, tail->oldest_ts, &age) ? INT64_MAX : age;
}

bool tide_archive_seal_is_due(const struct tide_archive_seal_policy *policy,
                              const struct tide_archive_tail *tail, int64_t now_ts)
{
    if (tail->rows <= 0) {
        return false;
    }
    if (tail->bytes >= cap_of(policy->bytes_max, tail) ||
        tail->rows >= cap_of(policy->rows_max, tail)) {
        return true;
    }
    if (policy->age_ns_max > 0 && age_of(tail, now_ts) >= cap_of(policy->age_ns_max, tail)) {
        return true;
    }
    return policy->align_ns > 0 &&
           span_of(tail->oldest_ts, policy->align_ns) != span_of(tail->newest_ts, policy->align_ns);
}
