/* The stop signals (INT, TERM, and HUP unless that is ignored) as something to wait for, together
 * with a waker. */
#pragma once

#include "base/thread.h"

#include <pthread.h>
#include <stdbool.h>

struct tide_signals {
    int fd;
};

/** Blocks the stop signals in the calling thread and all it starts later. Before any thread starts.
 */
void tide_signals_init(struct tide_signals *signals);
void tide_signals_done(struct tide_signals *signals);

/* A thread that wakes somebody at a stop signal while the main thread is busy. */
struct tide_signals_relay {
    struct tide_signals *signals;
    struct tide_waker *to;
    struct tide_waker ending;
    pthread_t thread;
};

/** From now on the first stop signal also wakes `to`; it is still there to be waited for. */
void tide_signals_relay_init(struct tide_signals_relay *relay, struct tide_signals *signals,
                             struct tide_waker *to);
void tide_signals_relay_done(struct tide_signals_relay *relay);

/** Waits for a stop signal or a wake until the deadline. True: a signal came, its number is in
 * `ret_signal`. */
bool tide_signals_wait(struct tide_signals *signals, struct tide_waker *waker, int64_t deadline_us,
                       int *ret_signal);
