#include "base/thread.h"

#include "base/clock.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

void tide_cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t attr;
    TIDE_ASSERT(pthread_condattr_init(&attr) == 0);
    TIDE_ASSERT(pthread_condattr_setclock(&attr, CLOCK_MONOTONIC) == 0);
    TIDE_ASSERT(pthread_cond_init(cond, &attr) == 0);
    TIDE_ASSERT(pthread_condattr_destroy(&attr) == 0);
}

bool tide_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *mutex, int64_t deadline_us)
{
    if (deadline_us == TIDE_NO_DEADLINE) {
        TIDE_ASSERT(pthread_cond_wait(cond, mutex) == 0);
        return true;
    }
    struct timespec at = {.tv_sec = deadline_us / 1000000, .tv_nsec = deadline_us % 1000000 * 1000};
    int rc = pthread_cond_timedwait(cond, mutex, &at);
    TIDE_ASSERT(rc == 0 || rc == ETIMEDOUT);
    return rc == 0;
}

void tide_thread_start(pthread_t *ret_thread, void *(*run)(void *), void *arg)
{
    sigset_t all;
    sigset_t before;
    (void)sigfillset(&all);
    TIDE_ASSERT(pthread_sigmask(SIG_SETMASK, &all, &before) == 0);
    int rc = pthread_create(ret_thread, NULL, run, arg);
    if (rc != 0) {
        tide_none_left("threads", rc, "raise the limit (ulimit -u, pids.max)");
    }
    TIDE_ASSERT(pthread_sigmask(SIG_SETMASK, &before, NULL) == 0);
}

void tide_mutex_lock(pthread_mutex_t *mutex)
{
    int rc = pthread_mutex_lock(mutex);
    TIDE_ASSERT(rc == 0);
}

void tide_mutex_unlock(pthread_mutex_t *mutex)
{
    int rc = pthread_mutex_unlock(mutex);
    TIDE_ASSERT(rc == 0);
}

void tide_waker_init(struct tide_waker *waker)
{
    waker->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (waker->fd < 0) {
        tide_none_left("file descriptors", errno, "raise the limit (ulimit -n)");
    }
}

void tide_waker_done(struct tide_waker *waker)
{
    if (waker->fd >= 0) {
        (void)close(waker->fd);
    }
    waker->fd = -1;
}

void tide_waker_wake(struct tide_waker *waker)
{
    int saved = errno;
    uint64_t one = 1;
    ssize_t written = write(waker->fd, &one, sizeof(one)); /* full counter: it is awake already */
    (void)written;
    errno = saved;
}

bool tide_waker_look(const struct tide_waker *waker, int64_t deadline_us)
{
    struct pollfd pfd = {.fd = waker->fd, .events = POLLIN};
    return poll(&pfd, 1, tide_clock_timeout_ms(deadline_us)) > 0;
}

bool tide_waker_wait(struct tide_waker *waker, int64_t deadline_us)
{
    for (;;) {
        struct pollfd pfd = {.fd = waker->fd, .events = POLLIN};
        int rc = poll(&pfd, 1, tide_clock_timeout_ms(deadline_us));
        TIDE_ASSERT(rc >= 0 || errno == EINTR);
        uint64_t count = 0;
        if (rc > 0 && read(waker->fd, &count, sizeof(count)) == (ssize_t)sizeof(count)) {
            return true;
        }
        if (tide_clock_monotonic_us() >= deadline_us) {
            return false;
        }
    }
}
