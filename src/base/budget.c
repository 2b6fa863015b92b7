#include "base/budget.h"

#include "base/alloc.h"
#include "base/status.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

#define SHORT_PART 8

struct tide_budget {
    size_t limit;
    size_t floors[TIDE_BUDGET_USERS];
    size_t common; /* the limit without the floors */
    pthread_mutex_t mutex;
    /* written under the mutex, read by anyone */
    _Atomic size_t taken[TIDE_BUDGET_USERS];
    _Atomic size_t used;    /* by all */
    _Atomic size_t used_up; /* of `common`; may be more than it */
    _Atomic bool is_awaited;
    struct tide_waker *waker; /* of the mutex */
};

struct tide_budget *tide_budget_new(size_t bytes, const size_t floors[TIDE_BUDGET_USERS])
{
    struct tide_budget *budget = tide_alloc(1, sizeof(*budget));
    budget->limit = bytes;
    budget->common = bytes;
    for (size_t i = 0; i < TIDE_BUDGET_USERS; i++) {
        TIDE_ASSERT(floors[i] <= budget->common);
        budget->floors[i] = floors[i];
        budget->common -= floors[i];
    }
    TIDE_ASSERT(budget->common >= bytes / 2);
    TIDE_ASSERT(pthread_mutex_init(&budget->mutex, NULL) == 0);
    return budget;
}

void tide_budget_free(struct tide_budget *budget)
{
    if (budget != NULL) {
        TIDE_ASSERT(atomic_load(&budget->used) == 0);
        (void)pthread_mutex_destroy(&budget->mutex);
        free(budget);
    }
}

size_t tide_budget_limit(const struct tide_budget *budget)
{
    return budget == NULL ? 0 : budget->limit;
}

size_t tide_budget_used(const struct tide_budget *budget)
{
    return budget == NULL ? 0 : atomic_load_explicit(&budget->used, memory_order_relaxed);
}

size_t tide_budget_used_by(const struct tide_budget *budget, enum tide_budget_user user)
{
    return budget == NULL ? 0 : atomic_load_explicit(&budget->taken[user], memory_order_relaxed);
}

static bool would_be_short(const struct tide_budget *budget, size_t used_up)
{
    return used_up > budget->common || budget->common - used_up < budget->limit / SHORT_PART;
}

bool tide_budget_is_short(const struct tide_budget *budget)
{
    return budget != NULL &&
           would_be_short(budget, atomic_load_explicit(&budget->used_up, memory_order_relaxed));
}

bool tide_budget_is_awaited(const struct tide_budget *budget)
{
    return budget != NULL && atomic_load(&budget->is_awaited);
}

void tide_budget_set_waker(struct tide_budget *budget, struct tide_waker *waker)
{
    if (budget != NULL) {
        tide_mutex_lock(&budget->mutex);
        budget->waker = waker;
        atomic_store(&budget->is_awaited, false);
        tide_mutex_unlock(&budget->mutex);
    }
}

/* What a user that holds `taken` has of the common part. */
static size_t above_floor(const struct tide_budget *budget, enum tide_budget_user user,
                          size_t taken)
{
    return taken > budget->floors[user] ? taken - budget->floors[user] : 0;
}

static void set_taken(struct tide_budget *budget, enum tide_budget_user user, size_t taken)
{
    size_t before = atomic_load_explicit(&budget->taken[user], memory_order_relaxed);
    size_t used = atomic_load_explicit(&budget->used, memory_order_relaxed);
    size_t used_up = atomic_load_explicit(&budget->used_up, memory_order_relaxed);
    used_up = used_up - above_floor(budget, user, before) + above_floor(budget, user, taken);
    atomic_store_explicit(&budget->taken[user], taken, memory_order_relaxed);
    atomic_store_explicit(&budget->used, used - before + taken, memory_order_relaxed);
    atomic_store_explicit(&budget->used_up, used_up, memory_order_relaxed);
}

static void add(struct tide_budget *budget, enum tide_budget_user user, size_t bytes)
{
    set_taken(budget, user, tide_budget_used_by(budget, user) + bytes);
}

static void give(struct tide_budget *budget, enum tide_budget_user user, size_t bytes)
{
    size_t taken = tide_budget_used_by(budget, user);
    TIDE_ASSERT(bytes <= taken);
    set_taken(budget, user, taken - bytes);
    if (atomic_load(&budget->is_awaited) && bytes > 0) {
        atomic_store(&budget->is_awaited, false);
        tide_waker_wake(budget->waker);
    }
}

/* What would be used of the common part if the user had `bytes` more. */
static size_t used_up_with(const struct tide_budget *budget, enum tide_budget_user user,
                           size_t bytes)
{
    size_t taken = tide_budget_used_by(budget, user);
    return atomic_load_explicit(&budget->used_up, memory_order_relaxed) -
           above_floor(budget, user, taken) + above_floor(budget, user, taken + bytes);
}

/* Whether the user may have `bytes` more: within its floor always. */
static bool fits(const struct tide_budget *budget, enum tide_budget_user user, size_t bytes)
{
    return above_floor(budget, user, tide_budget_used_by(budget, user) + bytes) == 0 ||
           used_up_with(budget, user, bytes) <= budget->common;
}

void tide_charge_set(struct tide_charge *charge, size_t bytes)
{
    struct tide_budget *budget = charge->budget;
    if (budget != NULL && bytes != charge->bytes) {
        tide_mutex_lock(&budget->mutex);
        if (bytes > charge->bytes) {
            add(budget, charge->user, bytes - charge->bytes);
        } else {
            give(budget, charge->user, charge->bytes - bytes);
        }
        tide_mutex_unlock(&budget->mutex);
    }
    charge->bytes = bytes;
}

void tide_charge_done(struct tide_charge *charge)
{
    tide_charge_set(charge, 0);
}

bool tide_charge_try_set(struct tide_charge *charge, size_t bytes)
{
    struct tide_budget *budget = charge->budget;
    if (budget == NULL || bytes <= charge->bytes) {
        tide_charge_set(charge, bytes);
        return true;
    }
    tide_mutex_lock(&budget->mutex);
    bool is_room = fits(budget, charge->user, bytes - charge->bytes);
    if (is_room) {
        add(budget, charge->user, bytes - charge->bytes);
        charge->bytes = bytes;
    }
    tide_mutex_unlock(&budget->mutex);
    return is_room;
}

bool tide_charge_try_ahead(struct tide_charge *charge, size_t bytes)
{
    struct tide_budget *budget = charge->budget;
    TIDE_ASSERT(bytes >= charge->bytes);
    if (budget == NULL) {
        charge->bytes = bytes;
        return true;
    }
    tide_mutex_lock(&budget->mutex);
    size_t more = bytes - charge->bytes;
    bool is_room = !would_be_short(budget, used_up_with(budget, charge->user, more));
    if (is_room) {
        add(budget, charge->user, more);
        charge->bytes = bytes;
    }
    tide_mutex_unlock(&budget->mutex);
    return is_room;
}

bool tide_charge_try_move(struct tide_charge *charge, enum tide_budget_user user)
{
    struct tide_budget *budget = charge->budget;
    if (budget == NULL || charge->user == user) {
        charge->user = user;
        return true;
    }
    tide_mutex_lock(&budget->mutex);
    set_taken(budget, charge->user, tide_budget_used_by(budget, charge->user) - charge->bytes);
    bool is_room = tide_budget_used_by(budget, user) == 0 || fits(budget, user, charge->bytes);
    if (!is_room) {
        atomic_store(&budget->is_awaited, budget->waker != NULL);
    }
    charge->user = is_room ? user : charge->user;
    add(budget, charge->user, charge->bytes);
    tide_mutex_unlock(&budget->mutex);
    return is_room;
}
