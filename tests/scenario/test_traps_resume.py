"""Known traps of going on after a crash, each as the test that falls into it.

What cannot happen here, and why: a snapshot that dies with the session that exported it (no chunk
needs a snapshot of before; a server that restarts half way is tested); a broker that has not
confirmed (the core of it, a sink that takes bytes and then fails, is tested with a full disk).
"""

import json
import time

import pytest
from support import pg_tables
from support.process import soak
from support.trouble import (MIB, Tmpfs, check_equal, count, ends, execute, frames_of, make_numbers)

FOLLOW = ["copy", "sqlite:a.db", "file:out.ndjson", "--follow"]


def numbers(pg, table="t", rows=2000):
    pg.query(f"CREATE TABLE {table} (id int PRIMARY KEY, v text);"
             f"INSERT INTO {table} SELECT i, repeat('x', 300) FROM generate_series(1, {rows}) i")


# -- B1: what is not acknowledged is not copied

@pytest.mark.parametrize("leave", [100_000, 600_000, 1_000_000])
def test_trap_b1_sink_that_stalls_at_the_end_of_a_copy_and_a_kill(start, run, pg, tmp_path, leave):
    """The source is kept where the copy began until its rows are held (redpanda PR 4584)."""
    numbers(pg)
    with Tmpfs(2 * MIB) as small:
        small.fill(leave=leave)
        arguments = ["copy", pg.url(), f"file:{small.path}/out.ndjson", "--chunk-rows", "100"]
        process = start(*arguments)
        process.wait_until(lambda: "No space left" in process.err() or not process.running())
        time.sleep(0.3)
        process.kill()
        pg.query("UPDATE t SET v = 'while down' WHERE id % 100 = 0; DELETE FROM t WHERE id % 7 = 0")
        small.empty()
        run(*arguments, timeout=60).check()
        pg_tables.check(pg, small.path / "out.ndjson")
        run("verify", small.path / "out.ndjson").check()


# -- B2: a server that restarts while tables are copied

@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_trap_b2_server_that_restarts_in_the_middle_of_a_snapshot(start, pg, tmp_path, proxy_to, mode):
    """No snapshot identifier has to outlive its session (PeerDB#2408)."""
    out = tmp_path / "out.ndjson"
    numbers(pg, rows=4000)
    proxy = proxy_to(pg.server)
    proxy.slow(800000)
    process = start("copy", pg.url(port=proxy.port), "file:out.ndjson", "--chunk-rows", "200")
    process.wait_until(lambda: count(out, b'"kind":"row"') > 200)
    pg.server.restart(mode)
    pg.query("UPDATE t SET v = 'after the restart' WHERE id % 50 = 0")
    proxy.slow(None)
    process.wait(60).check()
    pg_tables.check(pg, out)
    assert len(frames_of(out, "end")) == 1


# -- B3: one table of five

def test_trap_b3_one_table_that_fails_keeps_no_other_from_its_end(start, run, pg, tmp_path):
    """A failure is the table's own (PeerDB#3973)."""
    out = tmp_path / "out.ndjson"
    for table in "abcde":
        numbers(pg, table, 20000 if table == "a" else 200)
    process = start("copy", pg.url(), "file:out.ndjson", "--chunk-rows", "100", "--state", "state")
    process.wait_until(lambda: count(out, b'"kind":"begin"') > 0)
    pg.query("DROP TABLE c")
    result = process.wait(60).check(1)
    assert "public.c was not copied" in result.err
    stores = {frame["store"] for frame in frames_of(out, "end")}
    assert stores == {f"{pg.name}.public.{table}" for table in "abde"}
    assert f"failed tables: {pg.name}.public.c\n" in run("checkpoint", "show", "state").check().out


# -- B7: a transaction of many batches (PostgreSQL: trap_b7 in test_postgres_copy.py)

def test_trap_b7_transaction_of_many_batches_and_kills_within_it(start, run, tmp_path, rng):
    """What one number stands for is whole or comes again (redpanda PR 4396)."""
    database, out = tmp_path / "a.db", tmp_path / "out.ndjson"
    make_numbers(database, rows=10)
    process = start(*FOLLOW)
    process.wait_until(lambda: ends(out) == 1)
    rows = soak(50000, 1000000)
    execute(database, "WITH RECURSIVE i (n) AS (SELECT 100 UNION ALL SELECT n + 1 FROM i WHERE n <"
            f" {rows}) INSERT INTO t SELECT n, hex(zeroblob(50)) FROM i", "DELETE FROM t WHERE id = 3")
    for _ in range(soak(4, 40)):
        time.sleep(rng.uniform(0.01, 0.15))
        process.kill()
        process = start(*FOLLOW)
    process.kill()
    run(*FOLLOW[:-1], timeout=60).check()
    check_equal(database, out)


# -- B8: kills at random (PostgreSQL: trap_b8 in test_postgres_copy.py)

def test_trap_b8_killed_at_100_random_points(start, run, tmp_path, rng):
    """Every end of it, the start and the taking away too (dimitri/pgcopydb#471)."""
    database, out = tmp_path / "a.db", tmp_path / "out.ndjson"
    make_numbers(database, rows=1500)
    for n in range(soak(15, 100)):
        process = start(*FOLLOW[:-1], "--chunk-rows", "50")
        time.sleep(rng.uniform(0, 0.12))
        process.kill()
        if ends(out):
            result = run(*FOLLOW[:-1])  # complete it was, or nearly
            assert result.code == 0 or "has ended (complete" in result.err, result.err
            break
        execute(database, f"INSERT INTO t VALUES ({10000 + n}, 'kill')", f"DELETE FROM t WHERE id = {n}",
                f"UPDATE t SET v = 'kill {n}' WHERE id % 15 = {n % 15}")
    else:
        run(*FOLLOW[:-1]).check()
    check_equal(database, out)
    run("verify", "out.ndjson").check()


# -- B9, B10: requests

def configure(tmp_path):
    (tmp_path / "a.yaml").write_text("name: a\nsource: sqlite:a.db\nsnapshot: {chunk_rows: 100}\n"
                                     "sinks: {x: file:out.ndjson}\n")


def test_trap_b9_backfill_killed_half_way_goes_on_and_ends(start, run, tmp_path, rng):
    """It is gone on with, neither begun anew nor forgotten (dbz#2055)."""
    database, out = tmp_path / "a.db", tmp_path / "out.ndjson"
    make_numbers(database, rows=5000)
    configure(tmp_path)
    process = start("run", "a.yaml")
    process.wait_until(lambda: ends(out) == 1)
    run("backfill", "a.yaml").check()
    for n in range(soak(5, 50)):
        time.sleep(rng.uniform(0.01, 0.15))
        process.kill()
        execute(database, f"UPDATE t SET v = 'kill {n}' WHERE id % 100 = {n}")
        process = start("run", "a.yaml")
    execute(database, "INSERT INTO t VALUES (-1, 'last')")
    process.wait_until(lambda: ends(out) >= 2 and count(out, b'"last"') > 0
                       and run("verify", "--all", "out.ndjson").code == 0)
    process.terminate().check()
    check_equal(database, out)
    run("verify", "--all", "out.ndjson").check()


def test_trap_b10_requests_that_are_done_are_not_done_again(start, run, tmp_path):
    """Neither by a restart in order nor by one after a kill (DBZ-8780)."""
    database, out = tmp_path / "a.db", tmp_path / "out.ndjson"
    make_numbers(database, rows=200)
    configure(tmp_path)
    process = start("run", "a.yaml")
    process.wait_until(lambda: ends(out) == 1)
    run("backfill", "a.yaml").check()
    process.wait_until(lambda: ends(out) == 2)
    execute(database, "INSERT INTO t VALUES (-1, 'settled')")
    process.wait_until(lambda: count(out, b'"settled"') == 1)
    process.terminate().check()
    for n in range(3):
        process = start("run", "a.yaml")
        execute(database, f"INSERT INTO t VALUES ({-2 - n}, 'run {n}')")
        process.wait_until(lambda n=n: count(out, b'"run %d"' % n) >= 1)
        time.sleep(0.3)
        process.kill()
    assert ends(out) == 2 and count(out, b'"kind":"begin"') == 2
    check_equal(database, out)


# -- B11: a copy that was nearly done

def test_trap_b11_copy_killed_at_its_end_does_not_start_from_zero(start, run, pg, tmp_path, proxy_to):
    out = tmp_path / "out.ndjson"
    numbers(pg, rows=4000)
    proxy = proxy_to(pg.server)
    proxy.slow(700000)
    arguments = ["copy", pg.url(port=proxy.port), "file:out.ndjson", "--state", "state",
                 "--chunk-rows", "100"]
    process = start(*arguments)
    process.wait_until(lambda: count(out, b'"kind":"row"') > 3500)
    copies = json.loads(run("checkpoint", "show", "--json", "state").check().out)["tidemark"]["copies"]
    process.kill()
    proxy.slow(None)
    run(*arguments).check()
    pg_tables.check(pg, out)
    resumed, = frames_of(out, "resume")
    assert resumed["seq"] >= copies[0]["next_seq"] > 2000


# -- B13: a sink that takes and then fails

def test_trap_b13_sink_that_takes_bytes_and_then_fails_is_told_them_again(start, run, tmp_path):
    """Nothing is confirmed to the source that is not flushed (DBZ-8307)."""
    database = tmp_path / "a.db"
    make_numbers(database, rows=100)
    with Tmpfs(soak(3, 16) * MIB) as small:
        out = small.path / "out.ndjson"
        arguments = ["copy", "sqlite:a.db", f"file:{out}"]
        process = start(*arguments, "--follow")
        process.wait_until(lambda: ends(out) == 1)
        for n in range(soak(2, 20)):
            small.fill(leave=100000)
            failed = process.err().count("No space left")
            first = 1000 + 3000 * n
            execute(database, "WITH RECURSIVE i (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM i WHERE n <"
                    f" 1000) INSERT INTO t SELECT {first} + n, hex(zeroblob(50)) FROM i")
            process.wait_until(lambda failed=failed:
                               process.err().count("No space left") > failed)
            if n % 2 == 0:
                process.kill()
                small.empty()
                process = start(*arguments, "--follow")
            else:
                small.empty()
            process.wait_until(lambda first=first: count(out, b'"id":%d' % (first + 1000)) > 0)
        process.interrupt().check()
        run(*arguments).check()
        check_equal(database, out)
