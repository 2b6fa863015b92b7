"""Known traps of large rows and transactions, of sinks and of SQLite's log, each as its test.

What cannot happen here, and why: a transaction that the server streams before it commits (it is not
asked to; what is rolled back is tested all the same); buffers and packets of other servers; a
partitioner, null values or heartbeats of a broker (there is none); a constraint of a target table
(frames have none: the one record that a sink cannot take is one that is too large).
"""

import contextlib
import json
import sqlite3

import pytest
from support import frames, pg_tables
from support.process import soak
from support.trouble import MIB, check_equal, count, ends, execute, frames_of, make_numbers

FOLLOW = ["copy", "sqlite:a.db", "file:out.ndjson", "--follow"]
SIZES = [900_000, 1_100_000, 50_000_000]


# -- I1: large transactions

def test_trap_i1_rows_that_grow_to_megabytes_in_one_transaction(start, pg, tmp_path):
    """Neither the transaction nor its rows are held in memory (pgcopydb#511)."""
    out = tmp_path / "out.ndjson"
    rows = soak(8000, 60000)
    pg.query("CREATE TABLE foo (id int PRIMARY KEY, v text)")
    process = start("copy", pg.url(), "file:out.ndjson", "--follow", memory=96 * MIB)
    process.wait_until(lambda: ends(out) == 1)
    pg.query(f"INSERT INTO foo SELECT x, repeat('a', x) FROM generate_series(1, {rows}) x;"
             "UPDATE foo SET v = v || 'b' WHERE id % 10 = 0; DELETE FROM foo WHERE id % 2 = 0",
             timeout=300)
    pg.query("INSERT INTO foo VALUES (0, 'last')")
    process.wait_until(lambda: count(out, b'"last"') == 1, 300)
    result = process.interrupt().check()
    assert result.peak_kib < 96 * 1024
    pg_tables.check(pg, out)
    out.unlink()


def test_trap_i1_rows_that_grow_in_one_transaction_of_sqlite(start, tmp_path):
    database, out = tmp_path / "a.db", tmp_path / "out.ndjson"
    make_numbers(database, rows=10)
    process = start(*FOLLOW, memory=96 * MIB)
    process.wait_until(lambda: ends(out) == 1)
    rows = soak(8000, 60000)
    execute(database, f"WITH RECURSIVE i (n) AS (SELECT 100 UNION ALL SELECT n + 1 FROM i WHERE n < {rows})"
            " INSERT INTO t SELECT n, hex(zeroblob(n / 2)) FROM i", "DELETE FROM t WHERE id % 2 = 0")
    execute(database, "INSERT INTO t VALUES (-1, 'last')")
    process.wait_until(lambda: count(out, b'"last"') == 1, 300)
    assert process.interrupt().check().peak_kib < 96 * 1024
    check_equal(database, out)
    out.unlink()


# -- I3: what is rolled back

def test_trap_i3_rolled_back_and_kept_parts_of_a_transaction_too_large_for_the_server(start, pg,
                                                                                     tmp_path):
    """With the least memory for decoding the server spills; nothing rolled back leaks, nothing kept
    is dropped."""
    out = tmp_path / "out.ndjson"
    pg.query("CREATE TABLE t (id int PRIMARY KEY, v text)")
    pg.server.setting("logical_decoding_work_mem", "64kB")
    process = start("copy", pg.url(), "file:out.ndjson", "--follow")
    process.wait_until(lambda: ends(out) == 1)
    series = "INSERT INTO t SELECT i, '{}' || repeat('x', 200) FROM generate_series({}, {}) i;"
    with pg.server.session(pg.name) as session:
        session.query("BEGIN;" + series.format("kept", 1, 2000) + "SAVEPOINT a;"
                      + series.format("gone", 2001, 6000) + "ROLLBACK TO a;"
                      + series.format("kept", 6001, 7000) + "SAVEPOINT b; RELEASE a; COMMIT")
        session.query("BEGIN;" + series.format("gone", 9001, 15000) + "ROLLBACK")
        session.query("INSERT INTO t VALUES (0, 'last')")
    process.wait_until(lambda: count(out, b'"last"') == 1, 60)
    process.interrupt().check()
    assert count(out, b'"gone') == 0 and count(out, b'"kept') == 3000
    pg_tables.check(pg, out)


# -- I5: rows that are too large

def check_sizes(out, run):
    """In rows and in changes: the small ones whole, the large ones stubs, in order, and counted."""
    rows = frames_of(out, "row") + frames_of(out, "oversize")
    assert sorted(frame["seq"] for frame in rows) == list(range(5))
    assert [frame["bytes"] > 10**6 for frame in frames_of(out, "oversize")
            if "seq" in frame] == [True, True]
    verdict = run("verify", "out.ndjson").check().out
    assert "3 rows, 2 stubs" in verdict


def test_trap_i5_rows_of_many_sizes_of_sqlite_are_in_order_and_counted(start, run, tmp_path):
    database, out = tmp_path / "a.db", tmp_path / "out.ndjson"
    execute(database, "CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT)")

    def insert(first):
        execute(database, f"INSERT INTO t VALUES ({first}, 'small')",
                *[f"INSERT INTO t VALUES ({first + i}, hex(zeroblob({size // 2})))"
                  for i, size in enumerate(SIZES, 1)], f"INSERT INTO t VALUES ({first + 4}, 'small')")
    insert(0)
    process = start(*FOLLOW)
    process.wait_until(lambda: ends(out) == 1)
    check_sizes(out, run)
    insert(10)
    execute(database, "INSERT INTO t VALUES (99, 'last')")
    process.wait_until(lambda: count(out, b'"last"') == 1)
    process.interrupt().check()
    kinds = [line.split(b'"', 4)[3] for line in out.read_bytes().splitlines()]
    assert kinds.count(b"change") + kinds.count(b"oversize") == 2 + 6
    assert count(out, b'"id":12') >= 1 and count(out, b'"id":13') >= 1
    letters = [json.loads(line) for path in tmp_path.glob(".tidemark/*/dead_letters*.ndjson")
               for line in path.read_text().splitlines()]
    assert len(letters) == 4


def test_trap_i5_rows_of_many_sizes_are_in_order_and_counted(start, run, pg, tmp_path):
    out = tmp_path / "out.ndjson"
    pg.query("CREATE TABLE t (id int PRIMARY KEY, v text);"
             "INSERT INTO t VALUES (0, 'small'), (4, 'small');"
             + "".join(f"INSERT INTO t VALUES ({i}, repeat('x', {size}));"
                       for i, size in enumerate(SIZES, 1)))
    process = start("copy", pg.url(), "file:out.ndjson", "--follow", memory=512 * MIB)
    process.wait_until(lambda: ends(out) == 1, 60)
    check_sizes(out, run)
    pg.query("INSERT INTO t SELECT id + 10, v FROM t ORDER BY id; INSERT INTO t VALUES (99, 'last')")
    process.wait_until(lambda: count(out, b'"last"') == 1, 60)
    process.interrupt().check()
    kinds = [line.split(b'"', 4)[3] for line in out.read_bytes().splitlines()]
    assert kinds.count(b"change") + kinds.count(b"oversize") == 2 + 6


# -- L1, L4: a record that fails

@pytest.mark.parametrize("refused", ["dead_letter", "stop"])
def test_trap_l1_record_that_fails_is_never_dropped_while_the_position_advances(start, run, tmp_path,
                                                                               refused):
    """It is a letter and a stub, or it stops the sink before anything of it is acknowledged."""
    database, out = tmp_path / "a.db", tmp_path / "out.ndjson"
    make_numbers(database, rows=100)
    text = ("name: a\nsource: sqlite:a.db\nsinks:\n"
            "  x: {{place: file:out.ndjson, refused: {}, max_record_bytes: {}}}\n")
    (tmp_path / "a.yaml").write_text(text.format(refused, 2000))
    process = start("run", "a.yaml")
    process.wait_until(lambda: ends(out) == 1)
    execute(database, "UPDATE t SET v = hex(zeroblob(1500)) WHERE id IN (30, 60)",
            "UPDATE t SET v = 'behind' WHERE id = 99")
    if refused == "dead_letter":
        process.wait_until(lambda: count(out, b'"behind"') == 1)
        process.terminate().check()
        stubs = [frame for frame in frames_of(out, "change") if "record" not in frame]
        assert [frame["key"]["id"] for frame in stubs] == [30, 60]
        letters, = tmp_path.glob(".tidemark/a/dead_letters*")
        assert letters.read_text().count("\n") == 2
        return
    process.wait_until(lambda: not process.running() or "2000" in process.err(), 20)
    process.kill()
    assert count(out, b'"behind"') == 0
    (tmp_path / "a.yaml").write_text(text.format(refused, 20000))
    process = start("run", "a.yaml")
    process.wait_until(lambda: count(out, b'"behind"') > 0
                       and run("verify", "out.ndjson").code == 0)
    process.terminate().check()
    check_equal(database, out)


def test_trap_l4_one_record_that_fails_keeps_no_other_from_coming(run, tmp_path):
    """The rows beside it in its batch are whole (dbz#984)."""
    database, out = tmp_path / "a.db", tmp_path / "out.ndjson"
    make_numbers(database, rows=1000)
    execute(database, "UPDATE t SET v = hex(zeroblob(1500)) WHERE id % 100 = 50")
    run(*FOLLOW[:-1], "--max-record-bytes", "2000").check()
    assert len(frames_of(out, "oversize")) == 10
    with contextlib.closing(sqlite3.connect(database)) as db:
        want = dict(db.execute("SELECT id, v FROM t WHERE id % 100 <> 50"))
    assert {f["record"]["id"]: f["record"]["v"] for f in frames_of(out, "row")} == want
    run("verify", "out.ndjson").check()


def test_trap_l5_every_kind_of_change_reaches_every_kind_of_sink(start, run, tmp_path):
    """A sink that knew no update or delete fell over it (DBZ-6691)."""
    database = tmp_path / "a.db"
    make_numbers(database, rows=10)
    (tmp_path / "a.yaml").write_text(
        "name: a\nsource: sqlite:a.db\nsinks: {x: file:x.ndjson, y: file:y/, z: 'null:', s: '-'}\n")
    process = start("run", "a.yaml")
    paths = [tmp_path / "x.ndjson", tmp_path / "y/a.t.ndjson"]
    process.wait_until(lambda: all(ends(path) == 1 for path in paths))
    execute(database, "INSERT INTO t VALUES (100, 'in')", "UPDATE t SET v = 'up' WHERE id = 1",
            "UPDATE t SET id = 200 WHERE id = 2", "DELETE FROM t WHERE id = 3",
            "REPLACE INTO t VALUES (4, 're')", "DELETE FROM t WHERE id = 100")
    execute(database, "INSERT INTO t VALUES (-1, 'last')")
    process.wait_until(lambda: all(count(path, b'"last"') for path in paths)
                       and '"last"' in process.out())
    result = process.terminate().check()
    (tmp_path / "s.ndjson").write_text(result.out)
    for path in [*paths, tmp_path / "s.ndjson"]:
        check_equal(database, path)


# -- M1: SQLite's own log

@pytest.mark.parametrize("how", ["TRUNCATE", "RESTART", "PASSIVE", "delete_mode", "vacuum"])
def test_trap_m1_checkpoint_of_the_wal_while_nobody_follows_leaves_no_gap(start, run, tmp_path, how):
    """The change log is rows of the database, not pages of its WAL (litestream#752)."""
    database, out = tmp_path / "a.db", tmp_path / "out.ndjson"
    make_numbers(database, rows=500)
    process = start(*FOLLOW)
    process.wait_until(lambda: ends(out) == 1)
    process.kill()
    for n in range(3):
        execute(database, f"UPDATE t SET v = 'round {n}' WHERE id % 10 = {n}",
                f"DELETE FROM t WHERE id = {100 + n}")
        with contextlib.closing(sqlite3.connect(database)) as db:
            if how == "delete_mode":
                db.execute("PRAGMA journal_mode = DELETE")
            elif how == "vacuum":
                db.execute("VACUUM")
            else:
                db.execute(f"PRAGMA wal_checkpoint({how})")
    run(*FOLLOW[:-1]).check()
    check_equal(database, out)
    with contextlib.closing(sqlite3.connect(database)) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_trap_m1_checkpoints_beside_a_follower_keep_nothing_from_coming(start, tmp_path):
    """A follower that held a read transaction would keep the WAL from being emptied."""
    database, out = tmp_path / "a.db", tmp_path / "out.ndjson"
    make_numbers(database, rows=500)
    process = start(*FOLLOW)
    process.wait_until(lambda: ends(out) == 1)
    emptied = 0
    with contextlib.closing(sqlite3.connect(database, timeout=10, isolation_level=None)) as db:
        for n in range(soak(40, 2000)):
            db.execute("UPDATE t SET v = ? WHERE id % 25 = ?", (f"round {n}", n % 25))
            busy, _, _ = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            emptied += not busy
        db.execute("INSERT INTO t VALUES (-1, 'last')")
    process.wait_until(lambda: count(out, b'"last"') == 1)
    process.interrupt().check()
    assert emptied > 0 and frames.rebuild([out], {"a.t": ["id"]}).torn == b""
    check_equal(database, out)
