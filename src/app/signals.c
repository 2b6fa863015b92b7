#include "app/signals.h"

#include "base/clock.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

/* The starter wants it to stay when the terminal goes away, as nohup does. */
static bool is_hangup_ignored(void)
{
    struct sigaction was;
    return sigaction(SIGHUP, NULL, &was) == 0 && was.sa_handler == SIG_IGN;
}

void tide_signals_init(struct tide_signals *signals)
{
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGTERM);
    if (!is_hangup_ignored()) { /* blocked, it would come in spite of that */
        (void)sigaddset(&set, SIGHUP);
    }
    int rc = pthread_sigmask(SIG_BLOCK, &set, NULL);
    TIDE_ASSERT(rc == 0);
    signals->fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (signals->fd < 0) {
        tide_none_left("file descriptors", errno, "raise the limit (ulimit -n)");
    }
}

void tide_signals_done(struct tide_signals *signals)
{
    (void)close(signals->fd);
}

static bool take_signal(struct tide_signals *signals, int *ret_signal)
{
    struct signalfd_siginfo info;
    if (read(signals->fd, &info, sizeof(info)) != (ssize_t)sizeof(info)) {
        return false;
    }
    *ret_signal = (int)info.ssi_signo;
    return true;
}

bool tide_signals_wait(struct tide_signals *signals, struct tide_waker *waker, int64_t deadline_us,
                       int *ret_signal)
{
    struct pollfd fds[] = {{.fd = signals->fd, .events = POLLIN},
                           {.fd = waker->fd, .events = POLLIN}};
    (void)poll(fds, 2, tide_clock_timeout_ms(deadline_us));
    (void)tide_waker_wait(waker, 0);
    return take_signal(signals, ret_signal);
}

static void *run_relay(void *arg)
{
    struct tide_signals_relay *relay = arg;
    struct pollfd fds[] = {{.fd = relay->signals->fd, .events = POLLIN},
                           {.fd = relay->ending.fd, .events = POLLIN}};
    while (poll(fds, 2, -1) <= 0) {
    }
    if (fds[0].revents != 0) {
        tide_waker_wake(relay->to);
    }
    return NULL;
}

void tide_signals_relay_init(struct tide_signals_relay *relay, struct tide_signals *signals,
                             struct tide_waker *to)
{
    relay->signals = signals;
    relay->to = to;
    tide_waker_init(&relay->ending);
    tide_thread_start(&relay->thread, run_relay, relay);
}

void tide_signals_relay_done(struct tide_signals_relay *relay)
{
    tide_waker_wake(&relay->ending);
    int rc = pthread_join(relay->thread, NULL);
    TIDE_ASSERT(rc == 0);
    tide_waker_done(&relay->ending);
}
