"""One budget for all that a pipeline holds: large tables and transactions, slow sinks, many tables."""

import json
import resource
import sqlite3
import time

import pytest
from support import frames, pg_tables
from support.process import MIB, soak

LEAST = 8 * MIB   # of limits.memory_bytes
BESIDE = 28 * MIB  # what the program needs beside the budget, and some more for the unforeseen


def make_table(path, rows, table="big"):
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute(f"CREATE TABLE {table} (id INTEGER PRIMARY KEY, a TEXT, b INTEGER)")
        db.execute("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)"
                   f" INSERT INTO {table} SELECT i, 'row ' || i, i * 7 FROM n", (rows,))


def configure(tmp_path, source, memory=None):
    """Two file sinks."""
    lines = [f"name: two\nsource: {source}\nsinks: {{a: 'file:a.ndjson', b: 'file:b.ndjson'}}\n"]
    if memory is not None:
        lines.append(f"limits: {{memory_bytes: {memory}}}\n")
    (tmp_path / "two.yaml").write_text("".join(lines))


def size(path):
    return path.stat().st_size if path.exists() else 0


def tail(path):
    if not path.exists():
        return b""
    with open(path, "rb") as file:
        file.seek(max(0, size(path) - 4096))
        return file.read()


def wait_for_both(process, tmp_path, what, timeout=60):
    process.wait_until(lambda: all(what in tail(tmp_path / name) for name in ("a.ndjson", "b.ndjson")),
                       timeout, f"{what} in both files")


def stand_still(process, tmp_path):
    """Waits until the sink that goes on has got all that the other's full lane lets through."""
    def is_still():
        before = size(tmp_path / "a.ndjson")
        time.sleep(0.4)
        return before > 0 and size(tmp_path / "a.ndjson") == before
    process.wait_until(is_still, 60, "the lane to be full")


def test_large_table_with_a_sink_that_pauses(run, start, tmp_path):
    """Neither the table's size nor the sink that stands still shows in what is resident."""
    rows = soak(600000, 10000000)
    make_table(tmp_path / "big.db", rows)
    configure(tmp_path, "sqlite:big.db")
    process = start("run", "two.yaml")
    process.wait_until(lambda: size(tmp_path / "b.ndjson") > 0, what="the first rows")
    run("pause", "two.yaml", "--sink", "b").check()
    stand_still(process, tmp_path)
    run("resume", "two.yaml", "--sink", "b").check()
    wait_for_both(process, tmp_path, b'{"kind":"end"', soak(60, 600))
    result = process.interrupt().check()
    print(f"peak {result.peak_kib} KiB")
    assert result.peak_kib * 1024 < 64 * MIB
    for name in ("a.ndjson", "b.ndjson"):
        assert f": {rows} rows" in run("verify", name, timeout=300).check().out
        (tmp_path / name).unlink()


@pytest.mark.parametrize("memory", [None, LEAST])
def test_large_transaction_while_copying_and_a_sink_pauses(run, start, tmp_path, memory):
    """More changes than may be remembered, while the lanes are full and a chunk waits."""
    rows = soak(150000, 1000000)
    database = tmp_path / "big.db"
    make_table(database, rows)
    configure(tmp_path, "sqlite:big.db", memory)
    process = start("run", "two.yaml")
    process.wait_until(lambda: size(tmp_path / "b.ndjson") > 0, what="the first rows")
    run("pause", "two.yaml", "--sink", "b").check()
    with sqlite3.connect(database, timeout=60) as db:
        db.execute("UPDATE big SET a = a || '!'")
        db.execute("INSERT INTO big VALUES (?, 'the last', 0)", (rows + 1,))
    stand_still(process, tmp_path)
    run("resume", "two.yaml", "--sink", "b").check()
    wait_for_both(process, tmp_path, b"the last", soak(60, 600))
    result = process.interrupt().check()
    print(f"peak {result.peak_kib} KiB of {(memory or 48 * MIB) // 1024} KiB")
    assert result.peak_kib * 1024 < min((memory or 48 * MIB) + BESIDE, 64 * MIB)
    for name in ("a.ndjson", "b.ndjson"):
        run("verify", name, timeout=300).check()
    if rows <= 150000:
        with sqlite3.connect(database) as db:
            tables = frames.rebuild([tmp_path / "b.ndjson"], frames.sqlite_keys(db, "big"))
            assert frames.differences(tables, db, "big") == []


def test_large_transaction_of_postgres_while_copying(start, pg, tmp_path):
    rows = soak(100000, 1000000)
    pg.query(f"CREATE TABLE t (id int PRIMARY KEY, v text); INSERT INTO t SELECT i, repeat('x', 100)"
             f" FROM generate_series(1, {rows}) i")
    configure(tmp_path, pg.url())
    process = start("run", "two.yaml")
    process.wait_until(lambda: size(tmp_path / "b.ndjson") > 0, what="the first rows")
    pg.query(f"UPDATE t SET v = v || 'y'; INSERT INTO t VALUES ({rows + 1}, 'the last')")
    wait_for_both(process, tmp_path, b"the last", soak(90, 600))
    result = process.interrupt().check()
    print(f"peak {result.peak_kib} KiB")
    assert result.peak_kib * 1024 < 64 * MIB
    if rows <= 100000:
        pg_tables.check(pg, tmp_path / "a.ndjson")


def test_rows_larger_than_the_budget_pass(run, tmp_path):
    with sqlite3.connect(tmp_path / "large.db") as db:
        db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT)")
        db.executemany("INSERT INTO t VALUES (?, ?)",
                       [(i, "x" * (12 * MIB if i % 2 else 10)) for i in range(6)])
    run("copy", "sqlite:large.db", "file:out.ndjson", "--memory", LEAST, "--max-record-bytes",
        20 * MIB).check()
    records = [json.loads(line) for line in open(tmp_path / "out.ndjson", "rb")]
    assert [len(frame["record"]["v"]) for frame in records if frame["kind"] == "row"] == [
        10, 12 * MIB] * 3
    run("verify", "out.ndjson").check()


# -- many tables

def make_tables(path, count):
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA journal_mode = WAL")
        for i in range(count):
            db.execute(f"CREATE TABLE t{i:04} (id INTEGER PRIMARY KEY, a TEXT)")
            db.execute(f"INSERT INTO t{i:04} VALUES (1, 'one'), (2, 'two'), (3, 'three')")


def test_a_thousand_small_tables_share_checkpoints(run, tmp_path):
    """2 s of processor on any machine that is not busy; 8 s when each had one of its own."""
    make_tables(tmp_path / "many.db", 1000)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    result = run("copy", "sqlite:many.db", "file:out.ndjson", "--state", "state", timeout=120).check()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    shown = run("checkpoint", "show", "--json", "state").check().out
    saved = json.loads(shown)["tidemark"]["sequence"]
    print(f"{spent:.1f} s of processor in {result.seconds:.1f} s, {saved} checkpoints,"
          f" peak {result.peak_kib} KiB")
    assert result.out.startswith("complete: 1,000 tables, 3,000 rows")
    assert saved < 500
    assert spent < 6
    assert result.peak_kib * 1024 < 64 * MIB
    assert run("verify", "out.ndjson").check().out.count("complete") == 1000


def test_killed_among_small_tables_names_none_twice(run, start, tmp_path, rng):
    """Copies that were named and not begun when it died; each snapshot begins once, and ends."""
    make_tables(tmp_path / "many.db", 200)
    for _ in range(soak(3, 40)):
        process = start("copy", "sqlite:many.db", "file:out.ndjson", "--state", "state", "--keep")
        until = rng.randrange(1, 40000)
        process.wait_until(lambda until=until: size(tmp_path / "out.ndjson") >= until, 30, "frames")
        process.kill()
        if b'"kind":"end"' in tail(tmp_path / "out.ndjson") and rng.randrange(2):
            with sqlite3.connect(tmp_path / "many.db", timeout=30) as db:
                db.execute(f"UPDATE t{rng.randrange(200):04} SET a = a || '!'")
    run("copy", "sqlite:many.db", "file:out.ndjson", "--state", "state").check()
    assert run("verify", "out.ndjson").check().out.count("complete") == 200
    with sqlite3.connect(tmp_path / "many.db") as db:
        tables = frames.rebuild([tmp_path / "out.ndjson"], frames.sqlite_keys(db, "many"))
        assert frames.differences(tables, db, "many") == []
