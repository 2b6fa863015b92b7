"""The change stream of PostgreSQL: every kind of change, transactions, lost and foreign things."""

import json
import os
import subprocess
import threading
import time

import pytest
from support import pg_tables
from support.process import MIB, soak


def frames_of(path, kind):
    if not path.exists():
        return []
    with open(path, "rb") as lines:
        return [json.loads(line) for line in lines
                if line.startswith(b'{"kind":"%s"' % kind.encode()) and line.endswith(b"\n")]


def changes(path):
    return frames_of(path, "change")


def has(path, text, times=1):
    """A condition: the text stands in the file so often."""
    return lambda: path.exists() and path.read_bytes().count(text) >= times


@pytest.fixture
def out(tmp_path):
    return tmp_path / "out.ndjson"


@pytest.fixture
def follow(start, pg, out):
    """follow() starts or goes on with a copy of `pg` that follows, its first copy ended."""
    def call(*more, url=None, **options):
        process = start("copy", url or pg.url(), "file:out.ndjson", "--state", "state", "--follow",
                        *more, **options)
        process.wait_for_line("state in ")
        process.wait_until(has(out, b'"kind":"end"'), what="the copy's end")
        return process
    return call


def plain_table(pg, rows=1):
    pg.query("CREATE TABLE t (id int PRIMARY KEY, v text);"
             f"INSERT INTO t SELECT i, 'first' FROM generate_series(1, {rows}) i")


def marked(process, pg, out, mark="mark"):
    """Waits until all that was written before has come."""
    pg.query(f"INSERT INTO t VALUES (-{marked.number}, '{mark}{marked.number}')")
    process.wait_until(has(out, b'"%s%d"' % (mark.encode(), marked.number)), what="the mark")
    marked.number += 1


marked.number = 1000


# -- transactions

def test_changes_of_a_transaction_have_its_place_and_their_numbers(follow, pg, out):
    plain_table(pg, 3)
    process = follow()
    session = pg.session()
    session.query("BEGIN")
    tx = session.value("SELECT pg_current_xact_id()")
    session.query("INSERT INTO t VALUES (4, 'in'); UPDATE t SET v = 'up' WHERE id = 1;"
                  "DELETE FROM t WHERE id = 2; UPDATE t SET id = 5 WHERE id = 3; COMMIT")
    process.wait_until(lambda: len(changes(out)) >= 4, what="four changes")
    process.interrupt().check()
    found = changes(out)
    assert [frame["op"] for frame in found] == ["insert", "update", "delete", "update"]
    assert [frame["index"] for frame in found] == [0, 1, 2, 3]
    assert len({frame["position"] for frame in found}) == 1
    assert {frame["tx"] for frame in found} == {tx}
    assert found[3]["moved_from"] == {"id": 3} and found[3]["key"] == {"id": 5}
    pg_tables.check(pg, out)


def test_trap_i3_what_is_rolled_back_never_comes(follow, pg, out):
    """Also what a savepoint takes back, and what is sent out of the server's memory early."""
    plain_table(pg)
    process = follow()
    session = pg.session()
    session.query("BEGIN; INSERT INTO t VALUES (10, 'gone'); ROLLBACK")
    session.query("BEGIN")
    tx = session.value("SELECT pg_current_xact_id()")
    session.query("INSERT INTO t VALUES (11, 'stays'); SAVEPOINT a;"
                  "INSERT INTO t SELECT i, 'gone' FROM generate_series(100, 5000) i;"
                  "ROLLBACK TO a; SAVEPOINT b; INSERT INTO t VALUES (12, 'stays'); RELEASE b;"
                  "INSERT INTO t VALUES (13, 'stays'); COMMIT")
    marked(process, pg, out)
    process.interrupt().check()
    assert b'"gone"' not in out.read_bytes()
    stays = [frame for frame in changes(out) if frame["record"]["v"] == "stays"]
    assert [frame["key"]["id"] for frame in stays] == [11, 12, 13]
    assert [frame["index"] for frame in stays] == [0, 1, 2]
    assert {frame["tx"] for frame in stays} == {tx}
    pg_tables.check(pg, out)


def test_prepared_transactions_come_when_they_are_committed(follow, pg, out):
    plain_table(pg)
    process = follow()
    session = pg.session()
    session.query("BEGIN")
    tx = session.value("SELECT pg_current_xact_id()")
    session.query(f"INSERT INTO t VALUES (20, 'prepared'); PREPARE TRANSACTION '{pg.name}-a'")
    session.query(f"BEGIN; INSERT INTO t VALUES (21, 'gone'); PREPARE TRANSACTION '{pg.name}-b'")
    marked(process, pg, out)
    assert not has(out, b'"prepared"')()
    process.interrupt().check()
    process = follow()
    session.query(f"ROLLBACK PREPARED '{pg.name}-b'")
    session.query(f"COMMIT PREPARED '{pg.name}-a'")
    marked(process, pg, out)
    process.interrupt().check()
    assert b'"gone"' not in out.read_bytes()
    frame, = [frame for frame in changes(out) if frame["key"] == {"id": 20}]
    assert frame["tx"] == tx
    pg_tables.check(pg, out)


def test_truncate_of_several_tables_is_a_change_of_each(follow, pg, out):
    plain_table(pg)
    pg.query("CREATE TABLE u (id int PRIMARY KEY REFERENCES t); INSERT INTO u VALUES (1);"
             "CREATE TABLE other (id int PRIMARY KEY)")
    process = follow("--tables", "t,u")
    process.wait_until(has(out, b'"kind":"end"', 2), what="both ends")
    pg.query(f"ALTER PUBLICATION {pg.server.publications(pg.name)[0]} ADD TABLE other")
    pg.query("BEGIN; TRUNCATE other, t, u; INSERT INTO t VALUES (1, 'again'); COMMIT")
    process.wait_until(has(out, b'"again"'), what="the row behind it")
    process.interrupt().check()
    found = changes(out)
    assert sorted(frame["store"] for frame in found if frame["op"] == "truncate") == \
        [f"{pg.name}.public.{table}" for table in "tu"]
    assert found[-1]["index"] == 3  # the table that is none of ours was counted
    pg_tables.check(pg, out, only=[("public", "t"), ("public", "u")])


def test_messages_origins_and_own_types_are_no_changes(follow, pg, out):
    pg.query("CREATE TYPE mood AS ENUM ('glad', 'sad'); CREATE DOMAIN small AS int CHECK (value < 9)")
    plain_table(pg)
    pg.query("CREATE TABLE typed (id small PRIMARY KEY, m mood, many mood[]);"
             "INSERT INTO typed VALUES (1, 'glad', '{sad,glad}')")
    process = follow()
    process.wait_until(has(out, b'"kind":"end"', 2), what="both ends")
    origin = f"from_{pg.name}"
    session = pg.session()
    session.query(f"SELECT pg_replication_origin_create('{origin}');"
                  f"SELECT pg_replication_origin_session_setup('{origin}')")
    try:
        session.query("BEGIN; SELECT pg_logical_emit_message(true, 'x', 'y');"
                      "UPDATE typed SET m = 'sad', many = NULL;"
                      "SELECT pg_logical_emit_message(false, 'x', 'z');"
                      "INSERT INTO typed VALUES (2, 'glad', '{}'); COMMIT")
        marked(process, pg, out)
        process.interrupt().check()
    finally:
        session.query("SELECT pg_replication_origin_session_reset();"
                      f"SELECT pg_replication_origin_drop('{origin}')")
    found = [frame for frame in changes(out) if frame["store"].endswith(".typed")]
    assert [frame["index"] for frame in found] == [0, 1]
    assert found[0]["record"] == {"id": 1, "m": "sad", "many": None}
    pg_tables.check(pg, out)


def test_what_was_written_while_nobody_followed_is_in_the_one_shot_copy(follow, run, pg, out):
    """The end of the log is asked for: that nothing is at hand yet does not mean that it is there."""
    plain_table(pg)
    for commit in ("on", "off"):
        follow().interrupt().check()
        pg.query(f"SET synchronous_commit = {commit};"
                 f"INSERT INTO t SELECT i, '{commit}' FROM generate_series(1, 30000) i"
                 " ON CONFLICT (id) DO UPDATE SET v = excluded.v")
        run("copy", pg.url(), "file:out.ndjson", "--state", "state", "--keep").check()
        pg_tables.check(pg, out)


# -- lost connections

def terminate_walsenders(pg):
    pg.query("SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots"
             " WHERE active_pid IS NOT NULL AND database = current_database()")


def test_walsender_terminated_is_followed_again(follow, pg, out):
    plain_table(pg)
    process = follow()
    for i in range(soak(2, 20)):
        terminate_walsenders(pg)
        pg.query(f"UPDATE t SET v = 'after {i}' WHERE id = 1")
        process.wait_until(has(out, b'"after %d"' % i), what="the change behind it")
    result = process.interrupt().check()
    assert result.err.count("following again") == soak(2, 20)
    pg_tables.check(pg, out)


def test_walsender_terminated_inside_a_transaction_sends_it_whole(follow, pg, out, proxy_to):
    plain_table(pg)
    proxy = proxy_to(pg.server)
    process = follow(url=pg.url(port=proxy.port))
    rows = 20000
    proxy.cut_after(1000000)
    pg.query(f"INSERT INTO t SELECT i, repeat('x', 100) FROM generate_series(2, {rows + 1}) i")
    marked(process, pg, out)
    process.interrupt().check()
    assert proxy.cuts == 1
    found = [frame for frame in changes(out) if frame["key"]["id"] > 0]
    assert {frame["index"] for frame in found} == set(range(rows))
    assert len(found) > rows  # begun anew from its beginning
    pg_tables.check(pg, out)


@pytest.mark.parametrize("mode", ["immediate", "fast"])
def test_server_restarted_is_followed_again(follow, pg, out, mode):
    plain_table(pg)
    process = follow()
    session = pg.session()
    session.query("SET synchronous_commit = off; UPDATE t SET v = 'maybe' WHERE id = 1")
    pg.server.restart(mode, down=1.5)
    assert process.running(), process.err()
    marked(process, pg, out)
    process.interrupt().check()
    pg_tables.check(pg, out)


def test_slot_dropped_while_following_stops_with_the_reason(follow, pg, out):
    plain_table(pg)
    process = follow()
    slot, = pg.server.slots(pg.name)
    drop_slot(pg, slot)
    pg.query("INSERT INTO t VALUES (2, 'lost')")
    result = process.wait(30).check(3)
    assert f"replication slot {slot} is gone" in result.err and "start anew" in result.err


def test_trap_b6_slot_made_anew_while_following_stops_with_the_reason(follow, pg, out):
    plain_table(pg)
    process = follow()
    slot, = pg.server.slots(pg.name)
    drop_slot(pg, slot)
    pg.query("INSERT INTO t VALUES (2, 'lost')")
    pg.query(f"SELECT pg_create_logical_replication_slot('{slot}', 'pgoutput')")
    result = process.wait(30).check(3)
    assert slot in result.err and "made anew" in result.err
    assert not has(out, b'"lost"')()


def drop_slot(pg, slot):
    deadline = time.monotonic() + 40
    while True:
        terminate_walsenders(pg)
        try:
            pg.query(f"SELECT pg_drop_replication_slot('{slot}')")
            return
        except Exception:
            assert time.monotonic() < deadline


def test_publication_dropped_stops_the_next_start(follow, run, pg):
    plain_table(pg)
    follow().interrupt().check()
    publication, = pg.server.publications(pg.name)
    pg.query(f"DROP PUBLICATION {publication}")
    result = run("copy", pg.url(), "file:out.ndjson", "--state", "state").check(3)
    assert f"publication {publication} is gone" in result.err


@pytest.fixture
def hold_slot(pg):
    """hold_slot() has pg_recvlogical use the slot; gives the process."""
    held = []

    def call():
        slot, = pg.server.slots(pg.name)
        held.append(subprocess.Popen(
            [pg.server.programs / "pg_recvlogical", "-h", "127.0.0.1", "-p", str(pg.server.port), "-U",
             "postgres", "-d", pg.name, "--slot", slot, "--start", "-f", "-", "-o", "proto_version=1",
             "-o", f"publication_names={slot}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        deadline = time.monotonic() + 40
        while not pg.query("SELECT 1 FROM pg_replication_slots WHERE active"):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        return held[-1]
    yield call
    for process in held:
        process.kill()
        process.wait()


def test_slot_in_use_is_waited_for(follow, run, pg, hold_slot):
    plain_table(pg)
    follow().interrupt().check()
    holder = hold_slot()
    threading.Timer(1, holder.kill).start()
    run("copy", pg.url(), "file:out.ndjson", "--state", "state").check()
    assert pg.server.slots(pg.name) == []


def test_slot_that_stays_in_use_is_said_by_whom(follow, run, pg, hold_slot):
    plain_table(pg)
    follow().interrupt().check()
    hold_slot()
    pid = pg.query("SELECT active_pid FROM pg_replication_slots WHERE active")[0][0]
    result = run("copy", pg.url(), "file:out.ndjson", "--state", "state").check(3)
    assert f"in use by server process {pid}" in result.err


# -- time

def test_sink_that_is_not_read_keeps_the_connection(program, server, pg, tmp_path):
    """Lanes are full for longer than the server waits for an answer."""
    plain_table(pg)
    server.setting("wal_sender_timeout", "1s")
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    with open(tmp_path / "err", "wb") as err:
        process = subprocess.Popen(
            f"exec {program} copy {pg.url()} - --follow > {fifo}", shell=True, cwd=tmp_path, stderr=err)
        with open(fifo, "rb") as pipe:
            lines = iter(pipe)
            for line in lines:
                if line.startswith(b'{"kind":"end"'):
                    break
            rows = 100000
            pg.query(f"INSERT INTO t SELECT i, repeat('x', 1000) FROM generate_series(2, {rows}) i")
            time.sleep(4)
            assert pg.query("SELECT active FROM pg_replication_slots"
                            " WHERE database = current_database()") == [("t",)], server.log()[-2000:]
            count = 0
            for line in lines:
                count += line.startswith(b'{"kind":"change"')
                if count == rows - 1:
                    break
            process.terminate()
            for _ in lines:
                pass
        assert process.wait(30) == 0
    assert "replication timeout" not in server.log()
    assert "trying again" not in (tmp_path / "err").read_text()


def test_server_stops_although_a_sink_stands_still(program, server, pg, tmp_path):
    """It would wait for ever until what it has sent is confirmed."""
    plain_table(pg)
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    process = subprocess.Popen(f"exec {program} copy {pg.url()} - --follow > {fifo} 2> err",
                               shell=True, cwd=tmp_path)
    try:
        with open(fifo, "rb") as pipe:
            lines = iter(pipe)
            for line in lines:
                if line.startswith(b'{"kind":"end"'):
                    break
            rows = 50000
            pg.query(f"INSERT INTO t SELECT i, repeat('x', 1000) FROM generate_series(2, {rows}) i")
            time.sleep(1)
            server.stop("fast", timeout=10)
            server.start()
            keys = set()
            for line in lines:
                keys.add(json.loads(line)["key"]["id"])
                if len(keys) == rows - 1:
                    break
            process.terminate()
            for _ in lines:
                pass
        assert process.wait(30) == 0
    finally:
        process.kill()
    assert "following again" in (tmp_path / "err").read_text()


def test_lone_change_comes_at_once(follow, pg, out):
    plain_table(pg)
    process = follow()
    session = pg.session()
    waits = []
    for i in range(30):
        began = time.monotonic()
        session.query(f"UPDATE t SET v = 'lone {i}' WHERE id = 1")
        process.wait_until(has(out, b'"lone %d"' % i), what="the change")
        waits.append(time.monotonic() - began)
        time.sleep(0.02)
    process.interrupt().check()
    waits.sort()
    print(f"median {waits[15] * 1000:.1f} ms, highest {waits[-1] * 1000:.1f} ms")
    assert waits[15] < 0.05


def test_idle_process_costs_next_to_nothing(follow, pg):
    plain_table(pg)
    process = follow()
    time.sleep(0.5)
    before = sum(os_times(process.pid))
    time.sleep(2)
    spent = sum(os_times(process.pid)) - before
    process.interrupt().check()
    assert spent <= 0.1, f"{spent} s of processor in 2 s"


def os_times(pid):
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return [int(value) / os.sysconf("SC_CLK_TCK") for value in fields[11:13]]


def test_trap_i1_a_million_rows_in_one_transaction_in_bounded_memory(follow, pg, out):
    plain_table(pg)
    process = follow(memory=96 * MIB)
    rows = soak(200000, 1000000)
    began = time.monotonic()
    pg.query(f"INSERT INTO t SELECT i, 'many' FROM generate_series(2, {rows}) i")
    written = time.monotonic()
    marked(process, pg, out)
    print(f"written in {written - began:.1f} s, all held {time.monotonic() - written:.1f} s later")
    result = process.interrupt().check()
    print(f"peak {result.peak_kib} KiB")
    assert [frame["index"] for frame in changes(out) if frame["key"]["id"] > 1] == list(range(rows - 1))
    out.unlink()


# -- changes of shape

def test_columns_changed_while_following(follow, pg, out):
    plain_table(pg)
    process = follow()
    pg.query("CREATE DOMAIN money_of AS numeric(12, 2); ALTER TABLE t ADD total money_of;"
             "INSERT INTO t VALUES (2, 'second', 1.5)")
    pg.query("ALTER TABLE t DROP v; ALTER TABLE t ADD v bytea; INSERT INTO t VALUES (3, 2, '\\x00ff')")
    pg.query("ALTER TABLE t RENAME total TO sum; INSERT INTO t VALUES (4, 3, 'end')")
    process.wait_until(has(out, b'"id":4'), what="the last change")
    process.interrupt().check()
    assert [frame["record"] for frame in changes(out)] == [
        {"id": 2, "v": "second", "total": 1.5}, {"id": 3, "total": 2.0, "v": "AP8="},
        {"id": 4, "sum": 3.0, "v": "ZW5k"}]


@pytest.mark.parametrize("statement, reason", [
    ("ALTER TABLE t DROP CONSTRAINT t_pkey, ADD PRIMARY KEY (other)", "primary key"),
    ("ALTER TABLE t RENAME id TO nr", "primary key"),
    ("ALTER TABLE t REPLICA IDENTITY USING INDEX t_other_key", "REPLICA IDENTITY DEFAULT"),
])
def test_other_key_while_following_stops_with_the_reason(follow, pg, out, statement, reason):
    pg.query("CREATE TABLE t (id int PRIMARY KEY, other int NOT NULL UNIQUE);"
             "INSERT INTO t VALUES (1, 10)")
    process = follow()
    pg.query(statement)
    pg.query("INSERT INTO t VALUES (2, 20)")
    result = process.wait(30).check(3)
    assert reason in result.err and "public.t" in result.err
    assert changes(out) == []


def test_type_is_waited_for_while_its_commit_waits_for_a_standby(follow, server, pg, out):
    """The stream shows a commit that no other session sees yet."""
    plain_table(pg)
    process = follow()
    server.setting("synchronous_standby_names", "nobody")
    try:
        session = pg.session()
        session.query("BEGIN; CREATE DOMAIN weight AS numeric(8, 3); ALTER TABLE t ADD kg weight;"
                      "INSERT INTO t VALUES (2, 'heavy', 1.5)")
        session.send("COMMIT")
        process.wait_for_line("may wait for a standby", timeout=10)
        assert not session.answered()
    finally:
        server.setting("synchronous_standby_names", None)
    session.receive()
    process.wait_until(has(out, b'"heavy"'), what="the change")
    process.interrupt().check()
    assert changes(out)[-1]["record"] == {"id": 2, "v": "heavy", "kg": 1.5}


def test_start_that_waits_for_an_old_transaction_can_be_stopped_and_says_which(start, run, pg, out):
    plain_table(pg)
    session = pg.session(application_name="old one")
    session.query("BEGIN; INSERT INTO t VALUES (2, 'open')")
    process = start("copy", pg.url(), "file:out.ndjson", "--state", "state")
    process.wait_until(lambda: pg.server.slots(pg.name), what="the slot")
    process.wait_for_line(rf"the oldest is the transaction of process {session.pid} ")
    result = process.interrupt(5).check(1)
    assert f"transaction of process {session.pid} (old one, idle in transaction)" in result.err
    assert pg.server.slots(pg.name) == []
    process = start("copy", pg.url(), "file:out.ndjson", "--state", "state")
    process.wait_until(lambda: pg.server.slots(pg.name), what="the slot")
    session.query("COMMIT")
    process.wait(30).check()
    pg_tables.check(pg, out)
    assert pg.server.slots(pg.name) == pg.server.publications(pg.name) == []


def test_stopped_while_it_connects_is_no_failure(start, pg, proxy_to):
    plain_table(pg)
    proxy = proxy_to(pg.server)
    proxy.stall()
    for more, code in ((["--follow"], 0), ([], 1)):
        process = start("copy", pg.url(port=proxy.port), "null:", *more)
        time.sleep(0.5)
        result = process.interrupt(5).check(code)
        assert "stopped while it began" in result.err


def test_detach_leaves_a_slot_in_use_alone_and_takes_the_rest(follow, run, pg, out):
    plain_table(pg)
    process = follow()
    slot, = pg.server.slots(pg.name)
    other = f"tidemark_left_{pg.name}"
    pg.query(f"CREATE PUBLICATION {other} FOR TABLE t")
    pg.query(f"SELECT pg_create_logical_replication_slot('{other}', 'pgoutput')")
    result = run("detach", pg.url())
    assert f"removed replication slot {other}" in result.out
    assert f"removed publication {other}" in result.out
    assert slot in result.out + result.err and pg.server.slots(pg.name) == [slot]
    assert pg.server.publications(pg.name) == [slot]
    marked(process, pg, out)
    process.interrupt().check()
