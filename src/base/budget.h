/*
 * One bound on the memory that the parts of a pipeline hold together. Each part is a user with a
 * small floor of its own, which nobody else can take; above the floors all take from what is in
 * common, until the limit.
 *
 *     | floor | floor | floor | floor |        in common        |
 *       build   lanes   chunks  memory                          limit
 *
 * Nothing waits in here. Who gets nothing goes on with less, or waits where others give back; a
 * row that is larger than everything is taken all the same, by whoever has nothing else. So what is
 * used may pass the limit, by one such row or chunk for each user.
 *
 * What is taken is kept in charges: a charge belongs to one thing (a batch, a chunk) and is changed
 * once for it, never for each row. A charge without a budget costs nothing and always succeeds.
 *
 * Threads: any. A charge belongs to one thread at a time.
 */
#pragma once

#include "base/thread.h"

#include <stdbool.h>
#include <stddef.h>

enum tide_budget_user {
    TIDE_BUDGET_BUILD,  /* the batch of changes that is being filled */
    TIDE_BUDGET_LANES,  /* batches from when they are published until the last sink lets go */
    TIDE_BUDGET_CHUNKS, /* read, or being read, and not published */
    TIDE_BUDGET_MEMORY, /* changes that a running copy remembers, and its keys to read again */
};

#define TIDE_BUDGET_USERS 4

struct tide_budget;

/** At most `bytes` for all; `floors` of each user, together at most the half of `bytes`. */
struct tide_budget *tide_budget_new(size_t bytes, const size_t floors[TIDE_BUDGET_USERS]);
/** NULL is fine. No charge is left. */
void tide_budget_free(struct tide_budget *budget);

/** Bytes that all may take together; 0 without a budget. */
size_t tide_budget_limit(const struct tide_budget *budget);
/** Bytes taken by all, or by one user, as of now. Any thread, without a lock. */
size_t tide_budget_used(const struct tide_budget *budget);
size_t tide_budget_used_by(const struct tide_budget *budget, enum tide_budget_user user);

/** Little is left in common (an eighth of the limit): take less where there is a choice. */
bool tide_budget_is_short(const struct tide_budget *budget);

/** Somebody waits for what others give back. Any thread. */
bool tide_budget_is_awaited(const struct tide_budget *budget);

/**
 * The waker that is woken once, when something is given back, after an attempt that failed. It
 * belongs to the one thread that waits so; NULL: nobody does.
 */
void tide_budget_set_waker(struct tide_budget *budget, struct tide_waker *waker);

/* What one thing has taken. `{0}` has taken nothing, of no budget. */
struct tide_charge {
    struct tide_budget *budget;
    enum tide_budget_user user;
    size_t bytes;
};

/** Gives back all; the charge stays of its user. */
void tide_charge_done(struct tide_charge *charge);

/** The thing now costs `bytes`, more or less than before, whatever is left. */
void tide_charge_set(struct tide_charge *charge, size_t bytes);

/** As that; false, and nothing has changed, when it is more and not so much is left. */
bool tide_charge_try_set(struct tide_charge *charge, size_t bytes);

/** As try_set, but also false while it would leave the budget short. */
bool tide_charge_try_ahead(struct tide_charge *charge, size_t bytes);

/**
 * What the thing has taken becomes `user`'s. False, and nothing has changed, when the user has
 * something already and not so much is left for it.
 */
bool tide_charge_try_move(struct tide_charge *charge, enum tide_budget_user user);
