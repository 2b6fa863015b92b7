/*
 * What threads meet at: mutex with condition on the monotonic clock, and a waker that interrupts
 * poll(). Plain pthread otherwise.
 */
#pragma once

#include "base/status.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* An eventfd: one side waits in poll(), any thread wakes it. */
struct tide_waker {
    int fd;
};

/** Initialises a condition that tide_cond_wait_until measures on CLOCK_MONOTONIC. */
void tide_cond_init(pthread_cond_t *cond);

/** Waits until signalled or `deadline_us` (monotonic; TIDE_NO_DEADLINE: for ever); false: it
 * passed. */
bool tide_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *mutex, int64_t deadline_us);

/** Starts a joinable thread with all signals blocked; aborts when the system has no more threads.
 */
void tide_thread_start(pthread_t *ret_thread, void *(*run)(void *), void *arg);

/** As pthread's; misuse aborts. */
void tide_mutex_lock(pthread_mutex_t *mutex);
void tide_mutex_unlock(pthread_mutex_t *mutex);

/** Opens and closes what the waker waits on; aborts when the process has no file left. */
void tide_waker_init(struct tide_waker *waker);
void tide_waker_done(struct tide_waker *waker);

/** Wakes the waiter now, or its next wait. Any thread; safe in a signal handler. */
void tide_waker_wake(struct tide_waker *waker);

/** Waits for a wake until `deadline_us`, and leaves it for a wait to take. */
bool tide_waker_look(const struct tide_waker *waker, int64_t deadline_us);

/** Waits for a wake until `deadline_us`, takes it, and says whether there was one. */
bool tide_waker_wait(struct tide_waker *waker, int64_t deadline_us);
