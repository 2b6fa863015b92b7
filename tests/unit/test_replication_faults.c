/*
 * A follower whose disk fails, or is full, at every call that changes its archive: it says so, may
 * go on, and has all in the end.
 */
#include "replication_kit.h"

#include "faulty_vfs.h"
#include "soak.h"

static const struct tide_archive_seal_policy small = {.rows_max = 15, .bytes_max = 1 << 30};

static int install(void **state)
{
    (void)state;
    faulty_vfs_install();
    return 0;
}

static void write_some(int round)
{
    int64_t from = round * 40;
    kit_ok(&kit, kit_write(&kit, "a", from + 1, from + 30));
    kit_ok(&kit, kit_write(&kit, "b", from + 1, from + 10));
    if (round % 2 == 1) {
        kit_ok(&kit, kit_seal(&kit, "a"));
        kit_ok(&kit, kit_write(&kit, "a", from + 31, from + 40));
    }
}

static bool may_pass(const struct follow *follow, tide_status status)
{
    if (status != TIDE_OK && (status != TIDE_IO || !follow->err.retriable)) {
        fail_msg("%s: %s", tide_status_name(status), follow->err.message);
    }
    return status == TIDE_OK;
}

/* As a connection's end and the next one's beginning do; whatever fails is tried again then. */
static void connect_again(struct follow *follow)
{
    struct tide_error ended = {0};
    tide_publisher_close_ptr(&follow->publisher);
    tide_status status = tide_subscriber_end(follow->subscriber, &ended);
    if (status != TIDE_CLOSED) {
        follow->err = ended;
        (void)may_pass(follow, status);
    }
    while (!may_pass(follow, tide_subscriber_restart(follow->subscriber, &follow->err))) {
        faulty_vfs.fault = FAULTY_VFS_NONE;
    }
}

static int64_t try_fault(enum faulty_vfs_fault fault, int64_t at, bool for_ever, bool is_quiet)
{
    struct follow follow = {.is_quiet = is_quiet,
                            .policy = &small,
                            .piece_max = 700,
                            .group_bytes = at % 2 == 0 ? 1000 : 0};
    faulty_vfs = (struct faulty_vfs){0};
    kit_setup(&kit);
    follow_open(&follow, &kit, "copy.tide");
    faulty_vfs.calls = 0;
    faulty_vfs.at = at;
    faulty_vfs.for_ever = for_ever;
    for (int round = 0; round < 4; round++) {
        int64_t calls = faulty_vfs.calls;
        write_some(round);
        faulty_vfs.calls = calls; /* of the follower alone */
        faulty_vfs.fault = faulty_vfs.hits == 0 ? fault : FAULTY_VFS_NONE;
        for (int tries = 0; !may_pass(&follow, follow_pump(&follow)); tries++) {
            faulty_vfs.fault = tries < 3 ? faulty_vfs.fault : FAULTY_VFS_NONE; /* there is room */
            connect_again(&follow);
        }
        faulty_vfs.fault = FAULTY_VFS_NONE;
        if (is_quiet) { /* nobody could be told what is sealed by the next round */
            connect_again(&follow);
        }
    }
    follow_has_same_rows(&follow);
    int64_t calls = faulty_vfs.calls;
    follow_close(&follow);
    kit_teardown(&kit);
    return calls;
}

static void try_all(enum faulty_vfs_fault fault, bool for_ever, bool is_quiet)
{
    long stride = soak_rounds(3, 1);
    int64_t calls = try_fault(FAULTY_VFS_NONE, 0, false, is_quiet);
    assert_true(calls > 20);
    for (int64_t at = 1; at <= calls; at += stride) {
        (void)try_fault(fault, at, for_ever, is_quiet);
    }
}

static void full_disk_is_gone_on_from(void **state)
{
    (void)state;
    try_all(FAULTY_VFS_FULL, true, false);
    try_all(FAULTY_VFS_FULL, false, true);
}

static void failing_disk_is_gone_on_from(void **state)
{
    (void)state;
    try_all(FAULTY_VFS_ERROR, true, true);
    try_all(FAULTY_VFS_ERROR, false, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(full_disk_is_gone_on_from),
        cmocka_unit_test(failing_disk_is_gone_on_from),
    };
    return cmocka_run_group_tests(tests, install, NULL);
}
