"""Commits that are in the log before other sessions see them.

While a synchronous standby makes a commit wait, its changes are in the stream and every snapshot
still reads the old rows; nothing says for how long. A copy must not let such an old row win.
"""

import json
import time

import pytest
from support import pg_tables

TABLES = [("public", "t")]
ROWS = 3000


@pytest.fixture
def waiting(server):
    """From here on commits wait for a standby that there is not, until `waiting()` is called."""
    server.setting("synchronous_standby_names", "nosuch")

    def release():
        server.setting("synchronous_standby_names", None)
    return release


@pytest.fixture
def pg(pg):
    pg.query("CREATE TABLE t (id int PRIMARY KEY, v text); CREATE TABLE other (i int PRIMARY KEY);"
             f"INSERT INTO t SELECT i, 'old ' || repeat('x', 190) FROM generate_series(1, {ROWS}) i")
    return pg


def hide(pg, sql):
    """A session whose transaction has its commit in the log and waits for the standby."""
    session = pg.session()
    session.send(sql)
    assert not session.answered(0.3), "the commit did not wait"
    return session


def lift(pg, count=5):
    """Finished transactions after the hidden one: it then lies below a snapshot's xmax."""
    with pg.server.session(pg.name, synchronous_commit="local") as session:
        for i in range(count):
            session.query(f"INSERT INTO other VALUES ({i + time.monotonic_ns() % 10**9})")


def frames_of(path, kind):
    if not path.exists():
        return []
    with open(path, "rb") as lines:
        return [json.loads(line) for line in lines
                if line.startswith(b'{"kind":"%s"' % kind.encode()) and line.endswith(b"\n")]


def rows_out(path):
    return path.read_bytes().count(b'{"kind":"row"') if path.exists() else 0


def copy_arguments(pg, port=None):
    return ["copy", pg.url(port=port), "file:out.ndjson", "--state", "state", "--tables", "t",
            "--chunk-rows", "100"]


def test_commit_hidden_before_the_copy_starts(start, server, pg, waiting, tmp_path):
    hidden = hide(pg, "UPDATE t SET v = 'new' WHERE id IN (1, 1500, 3000)")
    process = start(*copy_arguments(pg))
    time.sleep(1)
    assert process.running(), process.err()
    waiting()
    hidden.receive()
    process.wait(60).check()
    pg_tables.check(pg, tmp_path / "out.ndjson", only=TABLES)


def test_commit_hidden_while_the_slot_becomes_consistent(start, server, pg, waiting, tmp_path):
    """The commit is before the slot's start, so never streamed, and hidden from the first chunks."""
    def open_transaction():
        session = pg.session(synchronous_commit="local")
        session.query(f"BEGIN; INSERT INTO other VALUES ({time.monotonic_ns() % 10**9})")
        return session, session.value("SELECT pg_current_xact_id()")

    def slot_waits_for(xid):
        return pg.query(f"SELECT 1 FROM pg_locks WHERE NOT granted AND transactionid = '{xid}'")
    first, first_xid = open_transaction()
    process = start(*copy_arguments(pg))
    process.wait_until(lambda: slot_waits_for(first_xid), what="the slot to wait")
    second, second_xid = open_transaction()
    first.query("COMMIT")
    process.wait_until(lambda: slot_waits_for(second_xid), what="the slot to wait again")
    hidden = hide(pg, "UPDATE t SET v = 'new' WHERE id IN (1, 1500, 3000)")
    second.query("COMMIT")
    process.wait_until(lambda: server.query("SELECT 1 FROM pg_replication_slots WHERE"
                                            f" database = '{pg.name}' AND"
                                            " confirmed_flush_lsn IS NOT NULL"), what="the slot")
    time.sleep(1)
    assert process.running(), process.err()
    waiting()
    hidden.receive()
    process.wait(60).check()
    pg_tables.check(pg, tmp_path / "out.ndjson", only=TABLES)


@pytest.mark.parametrize("lifted", [False, True], ids=["at_xmax", "below_xmax"])
def test_commit_hidden_while_the_table_is_copied(start, server, pg, waiting, proxy_to, tmp_path,
                                                 lifted):
    """It stays hidden until the copy has ended; the stream has shown its changes."""
    proxy = proxy_to(server)
    proxy.slow(150000)
    out = tmp_path / "out.ndjson"
    process = start(*copy_arguments(pg, proxy.port))
    process.wait_until(lambda: rows_out(out) >= 100, what="first rows")
    proxy.stall()
    assert rows_out(out) < ROWS / 2, "the copy was too quick for this test"
    hidden = hide(pg, "BEGIN; UPDATE t SET v = 'new' WHERE id IN (2, 1500, 2999);"
                      "DELETE FROM t WHERE id = 3000; INSERT INTO t VALUES (4000, 'new'); COMMIT")
    if lifted:
        lift(pg)
    proxy.go_on()
    process.wait_until(lambda: len(frames_of(out, "change")) == 5, what="the changes")
    proxy.slow(None)
    process.wait(60).check()
    assert not hidden.answered()
    waiting()
    hidden.receive()
    pg_tables.check(pg, out, only=TABLES)


@pytest.mark.parametrize("lifted", [False, True], ids=["at_xmax", "below_xmax"])
def test_commit_hidden_while_tidemark_is_killed_and_started(start, run, server, pg, waiting,
                                                            proxy_to, tmp_path, lifted):
    """The checkpoint is past the hidden commit: the stream does not show it again."""
    proxy = proxy_to(server)
    proxy.slow(150000)
    out = tmp_path / "out.ndjson"
    process = start(*copy_arguments(pg, proxy.port))
    process.wait_until(lambda: rows_out(out) >= 100, what="first rows")
    proxy.stall()
    hidden = hide(pg, "UPDATE t SET v = 'new' WHERE id IN (2, 2000, 3000)")
    if lifted:
        lift(pg)
    proxy.slow(20000)
    proxy.go_on()
    process.wait_until(lambda: len(frames_of(out, "change")) == 3, what="the changes")
    changed_at = frames_of(out, "change")[-1]["position"]

    def checkpoint_is_past():
        shown = run("checkpoint", "show", "--json", "state")
        return shown.code == 0 and _lsn(json.loads(shown.out)) >= _number(changed_at)
    process.wait_until(checkpoint_is_past, what="a checkpoint past the change")
    process.kill()
    assert rows_out(out) < ROWS - 100, "the copy was too quick for this test"
    again = start(*copy_arguments(pg))
    time.sleep(1)
    waiting()
    hidden.receive()
    again.wait(60).check()
    pg_tables.check(pg, out, only=TABLES)


def _number(lsn):
    high, low = lsn.split("/")
    return int(high, 16) << 32 | int(low, 16)


def _lsn(checkpoint):
    return _number(checkpoint["reconciliation_pos"])


def test_nothing_of_ours_waits_for_the_standby(start, run, server, pg, waiting, tmp_path):
    """Set-up, the copy, following and removal while no standby ever answers."""
    process = start(*copy_arguments(pg), "--follow")
    out = tmp_path / "out.ndjson"
    process.wait_until(lambda: frames_of(out, "end"), what="the end of the copy")
    lift(pg)
    process.interrupt().check()
    run("detach", pg.url(), timeout=30).check()
    assert server.slots(pg.name) == [] and server.publications(pg.name) == []


def test_async_commit_lost_by_a_crash_does_not_stay_in_the_copy(start, server, pg, proxy_to,
                                                                tmp_path):
    """A chunk can read rows whose commit the crash then takes back; ids are handed out again."""
    proxy = proxy_to(server)
    proxy.slow(150000)
    out = tmp_path / "out.ndjson"
    process = start(*copy_arguments(pg, proxy.port), "--follow")
    for round_number in range(3):
        seen = rows_out(out)
        process.wait_until(lambda seen=seen: rows_out(out) > seen, what="more rows")
        lose_commits(server, pg, seen, round_number)
        pg.query(f"UPDATE t SET v = 'kept {round_number}' WHERE id = {ROWS - round_number}")
        if round_number == 1:
            process.kill()
            process = start(*copy_arguments(pg, proxy.port), "--follow")
    assert not frames_of(out, "end"), "the copy was too quick for this test"
    proxy.slow(None)
    process.wait_until(lambda: frames_of(out, "end"), what="the end")
    pg.query("INSERT INTO t VALUES (5000, 'the last')")
    process.wait_until(lambda: b"the last" in out.read_bytes(), what="the last change")
    process.interrupt().check()
    pg_tables.check(pg, out, only=TABLES)


def lose_commits(server, pg, seen, round_number):
    """Commits the rows that come next, in a way that a crash takes back, until it does."""
    with server.session(pg.name, synchronous_commit="off") as session:
        for i in range(300):
            session.query(f"UPDATE t SET v = 'lost {round_number}' WHERE id = {seen + i}")
        server.stop("immediate")
    server.start()
