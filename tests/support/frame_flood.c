/*
 * Runs a program that reads frames from its standard input, gives it the rows of complete
 * snapshots, made on the fly in an order of choice, and says on standard error how much memory it
 * took.
 *
 *     frame_flood ORDER ROWS PROGRAM [ARGUMENT…]
 *
 * in_order   0, 1, 2, …
 * reverse    …, 2, 1, 0
 * second     0, 2, 4, … and then 1, 3, 5, …
 * windows    shuffled within each 1009 rows
 * scattered  all over the snapshot
 * stores     of 97 stores in turn, each in order
 * scattered_stores  the same, each scattered
 *
 * Ends with the program's exit status. Memory is that of the program alone: this one is small, and
 * what a process had before it became the program counts too.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define WINDOW      1009u
#define STORES      97u
#define LINE_MAX    512
#define BLOCK_BYTES 65536
#define AT          "\"2026-11-29T13:40:55.567Z\""

enum order {
    IN_ORDER,
    REVERSE,
    SECOND,
    WINDOWS,
    SCATTERED,
};

struct flood {
    enum order order;
    uint64_t rows; /* a store */
    uint64_t stride;
    unsigned stores;
    int fd;
    size_t len;
    char block[BLOCK_BYTES];
};

static void fail(const char *what)
{
    perror(what);
    exit(99);
}

static void flush(struct flood *flood)
{
    for (size_t done = 0; done < flood->len;) {
        ssize_t put = write(flood->fd, flood->block + done, flood->len - done);
        if (put < 0) {
            exit(98); /* the program has left; its exit status says why */
        }
        done += (size_t)put;
    }
    flood->len = 0;
}

static void put_number(struct flood *flood, uint64_t number)
{
    char digits[20];
    size_t at = sizeof(digits);
    do {
        digits[--at] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    memcpy(flood->block + flood->len, digits + at, sizeof(digits) - at);
    flood->len += sizeof(digits) - at;
}

static void put_text(struct flood *flood, const char *text)
{
    size_t len = strlen(text);
    memcpy(flood->block + flood->len, text, len);
    flood->len += len;
}

static void put_head(struct flood *flood, const char *kind, unsigned store, uint64_t seq)
{
    char id[3] = {(char)('a' + store / 10), (char)('0' + store % 10), '\0'};
    if (flood->len > sizeof(flood->block) - LINE_MAX) {
        flush(flood);
    }
    put_text(flood, "{\"kind\":\"");
    put_text(flood, kind);
    put_text(flood, "\",\"snapshot_id\":\"01a22789-8c8f-7abc-8def-0123456789");
    put_text(flood, id);
    put_text(flood, "\",\"snapshot_at\":" AT ",\"timestamp\":" AT ",\"store\":\"shop.orders_");
    put_text(flood, id);
    put_text(flood, "\",\"seq\":");
    put_number(flood, seq);
}

static uint64_t seq_at(const struct flood *flood, uint64_t i)
{
    uint64_t evens = (flood->rows + 1) / 2;
    switch (flood->order) {
    case IN_ORDER:
        break;
    case REVERSE:
        return flood->rows - 1 - i;
    case SECOND:
        return i < evens ? i * 2 : (i - evens) * 2 + 1;
    case WINDOWS:
        return i / WINDOW < flood->rows / WINDOW ? i / WINDOW * WINDOW + i % WINDOW * 619 % WINDOW
                                                 : i;
    case SCATTERED:
        return i * flood->stride % flood->rows;
    }
    return i;
}

static uint64_t greatest_common(uint64_t a, uint64_t b)
{
    while (b > 0) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Steps of about 0.6 of the rows, that come by every row once. */
static void choose_stride(struct flood *flood)
{
    flood->stride = flood->rows * 618 / 1000 + 1;
    while (greatest_common(flood->stride, flood->rows) != 1) {
        flood->stride++;
    }
}

static void put_all(struct flood *flood)
{
    for (uint64_t i = 0; i < flood->rows; i++) {
        for (unsigned store = 0; store < flood->stores; store++) {
            uint64_t seq = seq_at(flood, i);
            put_head(flood, "row", store, seq);
            put_text(flood, ",\"record\":{\"id\":");
            put_number(flood, seq);
            put_text(flood, "}}\n");
        }
    }
    for (unsigned store = 0; store < flood->stores; store++) {
        put_head(flood, "end", store, flood->rows);
        put_text(flood, ",\"row_count\":");
        put_number(flood, flood->rows);
        put_text(flood, ",\"completed_at\":" AT "}\n");
    }
    flush(flood);
}

static void set_order(struct flood *flood, const char *name)
{
    static const char *const names[] = {"in_order", "reverse", "second", "windows", "scattered"};
    flood->stores = 1;
    if (strcmp(name, "stores") == 0 || strcmp(name, "scattered_stores") == 0) {
        flood->stores = STORES;
        name = name[1] == 't' ? names[IN_ORDER] : names[SCATTERED];
    }
    while (flood->order <= SCATTERED && strcmp(name, names[flood->order]) != 0) {
        flood->order++;
    }
    if (flood->order > SCATTERED) {
        (void)fprintf(stderr, "frame_flood: no order %s\n", name);
        exit(97);
    }
}

static pid_t start(char **command, int *ret_fd)
{
    int ends[2];
    if (pipe(ends) != 0) {
        fail("pipe");
    }
    pid_t pid = fork();
    if (pid < 0) {
        fail("fork");
    }
    if (pid == 0) {
        (void)dup2(ends[0], STDIN_FILENO);
        (void)close(ends[0]);
        (void)close(ends[1]);
        (void)signal(SIGPIPE, SIG_DFL);
        (void)execvp(command[0], command);
        fail(command[0]);
    }
    (void)close(ends[0]);
    *ret_fd = ends[1];
    return pid;
}

int main(int argc, char **argv)
{
    static struct flood flood;
    struct rusage usage;
    int status = 0;
    if (argc < 4) {
        (void)fprintf(stderr, "usage: frame_flood ORDER ROWS PROGRAM [ARGUMENT...]\n");
        return 97;
    }
    (void)signal(SIGPIPE, SIG_IGN);
    set_order(&flood, argv[1]);
    flood.rows = strtoull(argv[2], NULL, 10) / flood.stores;
    choose_stride(&flood);
    pid_t pid = start(argv + 3, &flood.fd);
    put_all(&flood);
    (void)close(flood.fd);
    if (wait4(pid, &status, 0, &usage) != pid) {
        fail("wait4");
    }
    (void)fprintf(stderr, "peak %ld KiB\n", usage.ru_maxrss);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 96;
}
