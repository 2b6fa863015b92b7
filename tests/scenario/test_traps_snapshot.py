"""Known traps of copying tables while they change, each as the test that falls into it.

What cannot happen here, and why: a hidden column that `SELECT *` leaves out and the log has (MySQL's
invisible columns; columns are named from the catalogue, and generated ones left out of both); a row
filter that the copy does not know (the publication is ours and has none; one that is given a filter
stops the copy, which is tested).
"""

import contextlib
import sqlite3
import threading
import time

import pytest
from support import pg_tables
from support.process import soak
from support.trouble import check_equal, count, ends, execute, frames_of, make_numbers

KEYS = ["e", "é", "E", "É", "z", "Z", "_", "-", "e ", "e  ", "ee", "é-", "_e", "-e", "ß", "ss", "Ω",
        "a", "A", "ä", "Ä", " ", "", "0", "10", "9", "😀", "\u0301", "e\u0301"]


def copy_in_small_chunks(run, url, out, rows=2):
    run("copy", url, f"file:{out.name}", "--chunk-rows", rows, timeout=60).check()
    return [frame["record"] for frame in frames_of(out, "row")]


# -- A1: rows of one commit

def test_trap_a1_rows_of_one_commit_are_not_skipped_after_a_kill(run, start, pg, tmp_path, rng):
    """Rows of a COPY share one commit position; a restart may not skip the rest (debezium/dbz#1554)."""
    out = tmp_path / "out.ndjson"
    pg.query("CREATE TABLE t (id int PRIMARY KEY, v text); INSERT INTO t VALUES (0, 'first')")
    arguments = ["copy", pg.url(), "file:out.ndjson", "--follow"]
    process = start(*arguments)
    process.wait_until(lambda: ends(out) == 1)
    for n in range(soak(3, 60)):
        first = 1000 * n + 1
        rows = "".join(f"{first + i}\t{'x' * 200}\n" for i in range(1000))
        pg.server.psql("-c", "COPY t FROM STDIN", database=pg.name, stdin=rows)
        process.wait_until(lambda n=n: count(out, b'"op":"insert"') > 1000 * n)
        time.sleep(rng.uniform(0, 0.01))
        process.kill()
        process = start(*arguments)
    process.kill()
    run(*arguments[:-1]).check()
    pg_tables.check(pg, out)


def test_trap_a1_rows_of_one_commit_of_sqlite_are_not_skipped_after_a_kill(run, start, tmp_path, rng):
    database, out = tmp_path / "a.db", tmp_path / "out.ndjson"
    make_numbers(database, rows=10)
    arguments = ["copy", "sqlite:a.db", "file:out.ndjson"]
    process = start(*arguments, "--follow")
    process.wait_until(lambda: ends(out) == 1)
    for n in range(soak(4, 60)):
        execute(database, "WITH RECURSIVE i (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM i WHERE n <"
                f" 1000) INSERT INTO t SELECT {100 + 1000 * n} + n, hex(zeroblob(100)) FROM i")
        process.wait_until(lambda n=n: count(out, b'"op":"insert"') > 1000 * n)
        time.sleep(rng.uniform(0, 0.01))
        process.kill()
        process = start(*arguments, "--follow")
    process.kill()
    run(*arguments).check()
    check_equal(database, out)


# -- A2: writes inside a chunk's window

def test_trap_a2_writes_within_the_window_of_a_chunk_win_over_its_rows(start, pg, tmp_path, proxy_to):
    """Rows are read slowly, and changed, deleted, added while their chunk is read and withheld."""
    out = tmp_path / "out.ndjson"
    pg.query("CREATE TABLE t (id int PRIMARY KEY, v text);"
             "INSERT INTO t SELECT i, repeat('x', 500) FROM generate_series(1, 2000) i")
    proxy = proxy_to(pg.server)
    process = start("copy", pg.url(port=proxy.port), "file:out.ndjson", "--chunk-rows", "500")
    process.wait_until(lambda: count(out, b'"kind":"begin"') == 1)
    proxy.slow(400000)
    for n in range(20):
        pg.query(f"UPDATE t SET v = 'window {n}' WHERE id % 20 = {n};"
                 f"DELETE FROM t WHERE id % 97 = {n}; INSERT INTO t VALUES ({3000 + n}, 'new');"
                 f"UPDATE t SET id = -id WHERE id % 101 = {n} AND id > 0")
        time.sleep(0.02)
    proxy.slow(None)
    process.wait(60).check()
    pg_tables.check(pg, out)
    assert count(out, b'"kind":"change"') > 0


# -- A3: what is cut is no end (see also trap_a3 in test_postgres_copy.py)

def test_trap_a3_statement_timeout_within_a_chunk_is_no_end(start, pg, tmp_path, proxy_to):
    """Ours have no time limit, whatever the role's is (estuary/connectors PR 1592)."""
    out = tmp_path / "out.ndjson"
    pg.query("CREATE TABLE t (id int PRIMARY KEY, v text);"
             "INSERT INTO t SELECT i, repeat('x', 500) FROM generate_series(1, 1500) i;"
             f"ALTER DATABASE \"{pg.name}\" SET statement_timeout = '100ms'")
    proxy = proxy_to(pg.server)
    proxy.slow(600000)
    process = start("copy", pg.url(port=proxy.port), "file:out.ndjson", "--chunk-rows", "1000")
    process.wait(60).check()
    pg_tables.check(pg, out)
    assert frames_of(out, "end")[0]["row_count"] == 1500


def test_trap_a3_backend_ended_within_a_chunk_is_no_end(start, pg, tmp_path, proxy_to):
    out = tmp_path / "out.ndjson"
    pg.query("CREATE TABLE t (id int PRIMARY KEY, v text);"
             "INSERT INTO t SELECT i, repeat('x', 500) FROM generate_series(1, 3000) i")
    proxy = proxy_to(pg.server)
    proxy.slow(500000)
    process = start("copy", pg.url(port=proxy.port), "file:out.ndjson", "--chunk-rows", "1000")
    process.wait_until(lambda: count(out, b'"kind":"begin"') == 1)
    for _ in range(3):
        pg.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query ILIKE 'COPY%'"
                 " AND datname = current_database() AND pid <> pg_backend_pid()")
        time.sleep(0.2)
    proxy.slow(None)
    process.wait(60).check()
    pg_tables.check(pg, out)
    assert frames_of(out, "end")[0]["row_count"] == 3000


# -- A5: the order of text keys is the server's

COLLATIONS = {
    "c": 'COLLATE "C"', "icu": 'COLLATE "en-x-icu"', "default": "",
    "ignoring_case": "COLLATE ignoring_case", "swedish": 'COLLATE "sv-x-icu"',
    "posix": 'COLLATE "POSIX"',
}


@pytest.mark.parametrize("rows", [1, 2, 5])
@pytest.mark.parametrize("name", COLLATIONS)
def test_trap_a5_text_keys_are_compared_by_the_server_alone(run, pg, tmp_path, name, rows):
    """A client's byte order gave gaps and endless chunks (estuary#1343)."""
    pg.query("CREATE COLLATION ignoring_case (provider = icu, locale = 'und-u-ks-level2',"
             " deterministic = false)")
    pg.query(f"CREATE TABLE t (k text {COLLATIONS[name]} PRIMARY KEY, n int)")
    with pg.server.session(pg.name) as session:
        for n, key in enumerate(KEYS):
            session.query(f"INSERT INTO t VALUES (E'{key}', {n}) ON CONFLICT DO NOTHING")
        want = [k for k, in session.query("SELECT k FROM t ORDER BY k")]
    out = tmp_path / "out.ndjson"
    assert [r["k"] for r in copy_in_small_chunks(run, pg.url(), out, rows)] == want
    pg_tables.check(pg, out)


@pytest.mark.parametrize("rows", [1, 2, 5])
@pytest.mark.parametrize("collation", ["BINARY", "NOCASE", "RTRIM"])
def test_trap_a5_text_keys_of_sqlite_under_each_collation(run, tmp_path, collation, rows):
    database, out = tmp_path / "a.db", tmp_path / "out.ndjson"
    with contextlib.closing(sqlite3.connect(database)) as db:
        db.execute(f"CREATE TABLE t (k TEXT COLLATE {collation} PRIMARY KEY, n INT) WITHOUT ROWID")
        db.executemany("INSERT OR IGNORE INTO t VALUES (?, ?)", [(k, n) for n, k in enumerate(KEYS)])
        db.commit()
        want = [k for k, in db.execute("SELECT k FROM t ORDER BY k")]
    assert [r["k"] for r in copy_in_small_chunks(run, "sqlite:a.db", out, rows)] == want
    check_equal(database, out)


def test_trap_a5_keys_equal_under_the_collation_are_followed_as_one(start, run, tmp_path):
    """'E' replaced by 'e' is one row; a copy may not hold both, nor none."""
    database, out = tmp_path / "a.db", tmp_path / "out.ndjson"
    execute(database, "CREATE TABLE t (k TEXT COLLATE NOCASE PRIMARY KEY, n INT)",
            "INSERT INTO t VALUES ('E', 1), ('f', 2)")
    process = start("copy", "sqlite:a.db", "file:out.ndjson", "--follow")
    process.wait_until(lambda: ends(out) == 1)
    execute(database, "REPLACE INTO t VALUES ('e', 3)")
    execute(database, "UPDATE t SET k = 'F' WHERE k = 'f'")
    execute(database, "INSERT INTO t VALUES ('last', 0)")
    process.wait_until(lambda: count(out, b'"last"') > 0)
    process.interrupt().check()
    check_equal(database, out)


# -- A6: keys of several columns

@pytest.mark.parametrize("rows", [1, 2, 3, 7, 36])
def test_trap_a6_keys_with_shared_prefixes_across_chunk_edges(run, pg, tmp_path, rows):
    """Predicates column by column skipped blocks of rows (DBZ-3860, DBZ-7617)."""
    pg.query("CREATE TABLE t (a text, b int, c timestamptz, v int, PRIMARY KEY (b, a, c));"
             "INSERT INTO t SELECT chr(97 + i % 3), i / 6 % 2, '2026-01-01'::timestamptz"
             " + (i % 36) * interval '1 ms', i FROM generate_series(0, 35) i")
    out = tmp_path / "out.ndjson"
    records = copy_in_small_chunks(run, pg.url(), out, rows)
    assert [r["v"] for r in records] == [
        int(v) for v, in pg.query("SELECT v FROM t ORDER BY b, a, c")]
    pg_tables.check(pg, out)


@pytest.mark.parametrize("rows", [1, 2, 3, 7, 36])
@pytest.mark.parametrize("tail", ["", " WITHOUT ROWID"])
@pytest.mark.parametrize("order", ["a, b, c", "b DESC, a, c DESC", "c, b DESC, a"])
def test_trap_a6_keys_of_sqlite_with_shared_prefixes(run, tmp_path, rows, tail, order):
    database, out = tmp_path / "a.db", tmp_path / "out.ndjson"
    with contextlib.closing(sqlite3.connect(database)) as db:
        db.execute("CREATE TABLE t (a TEXT NOT NULL, b INT NOT NULL, c REAL NOT NULL, v INT,"
                   f" PRIMARY KEY ({order})){tail}")
        db.executemany("INSERT INTO t VALUES (?, ?, ?, ?)",
                       [(chr(97 + i % 3), i // 6 % 2, i % 36 / 4, i) for i in range(36)])
        db.commit()
    records = copy_in_small_chunks(run, "sqlite:a.db", out, rows)
    assert sorted(r["v"] for r in records) == list(range(36))
    check_equal(database, out)


# -- A7: the same bytes in rows and changes (PostgreSQL: trap_a7 in test_postgres_types.py)

VALUES = ["NULL", "0", "-1", "9223372036854775807", "0.1", "1e300", "-1e-300", "2.0", "9e999", "-9e999",
          "9007199254740993", "''", "'é😀'", "'a' || char(10) || '\"\\'", "x''", "x'00ff80'",
          "cast(x'ff41' AS TEXT)", "char(0)", "'1'", "'1.50'", "123456789012345678901234567890"]
AFFINITIES = ["", "INTEGER", "REAL", "TEXT", "BLOB", "NUMERIC", "DECIMAL(10,2)", "BOOLEAN", "DATE",
              "JSON"]


def test_trap_a7_values_of_sqlite_have_the_same_bytes_in_rows_and_changes(start, tmp_path):
    """Decoders of their own for the two ways gave two values (sequinstream/sequin#2094)."""
    database, out = tmp_path / "a.db", tmp_path / "out.ndjson"
    columns = ", ".join(f"c{i} {kind}" for i, kind in enumerate(AFFINITIES))
    rows = [(i, ", ".join([value] * len(AFFINITIES))) for i, value in enumerate(VALUES)]
    execute(database, f"CREATE TABLE t (id INTEGER PRIMARY KEY, {columns})",
            *[f"INSERT INTO t VALUES ({i}, {values})" for i, values in rows])
    process = start("copy", "sqlite:a.db", "file:out.ndjson", "--follow")
    process.wait_until(lambda: ends(out) == 1)
    execute(database, *[f"INSERT INTO t VALUES ({1000 + i}, {values})" for i, values in rows])
    process.wait_until(lambda: count(out, b'"op":"insert"') == len(rows))
    process.interrupt().check()
    text = {"row": {}, "change": {}}
    for line in out.read_bytes().splitlines():
        for kind, found in text.items():
            if line.startswith(b'{"kind":"%s"' % kind.encode()):
                record = line.partition(b'"record":{"id":')[2]
                key, _, rest = record.partition(b",")
                found[int(key) % 1000] = rest.partition(b'},"position"')[0].rstrip(b"}")
    assert len(text["row"]) == len(rows) and text["row"] == text["change"]


# -- A10: a row filter

@pytest.mark.parametrize("narrowed", ["SET TABLE t WHERE (id > 10)", "SET TABLE t (id)",
                                      "SET (publish = 'insert, delete')"])
def test_trap_a10_publication_that_others_narrow_is_no_silent_loss(run, start, pg, tmp_path, narrowed):
    """A copy that ignores a filter that the stream obeys is no copy (supabase/etl PR 389)."""
    out = tmp_path / "out.ndjson"
    pg.query("CREATE TABLE t (id int PRIMARY KEY, v text);"
             "INSERT INTO t SELECT i, 'x' FROM generate_series(1, 20) i")
    arguments = ["copy", pg.url(), "file:out.ndjson"]
    process = start(*arguments, "--follow")
    process.wait_until(lambda: ends(out) == 1)
    process.interrupt().check()
    name, = pg.server.publications(pg.name)
    pg.query(f'ALTER PUBLICATION "{name}" {narrowed}')
    pg.query("UPDATE t SET v = 'seen by nobody' WHERE id < 5")
    result = run(*arguments).check(3)
    assert f"publication {name} was altered" in result.err and "another state directory (--state" in result.err
    assert b"seen by nobody" not in out.read_bytes()
    run(*arguments, "--state", "anew", "--overwrite").check()
    pg_tables.check(pg, out)


# -- A11: what is written while the copy starts

def test_trap_a11_nothing_written_while_a_copy_starts_is_lost(start, pg, tmp_path):
    """The slot first, then the snapshot at its place (Hornetlabs/synchdb#256)."""
    pg.query("CREATE TABLE t (id serial PRIMARY KEY, v int)")
    stopped = threading.Event()

    def write(own):
        with pg.server.session(pg.name) as session:
            while not stopped.is_set():
                session.query("INSERT INTO t (v) VALUES (1);"
                              f"UPDATE t SET v = v + 1 WHERE id % 7 = {own}")
    writers = [threading.Thread(target=write, args=[n]) for n in range(2)]
    for writer in writers:
        writer.start()
    try:
        processes = []
        for n in range(soak(3, 15)):
            processes.append(start("copy", pg.url(), f"file:{n}.ndjson", "--follow"))
            time.sleep(0.2)
        for n, process in enumerate(processes):
            process.wait_until(lambda n=n: ends(tmp_path / f"{n}.ndjson") == 1, 60)
    finally:
        stopped.set()
        for writer in writers:
            writer.join()
    pg.query("INSERT INTO t VALUES (-1, 0)")
    for n, process in enumerate(processes):
        out = tmp_path / f"{n}.ndjson"
        process.wait_until(lambda out=out: count(out, b'"key":{"id":-1}') == 1)
        process.interrupt().check()
        pg_tables.check(pg, out)


# -- A12: a request that fails

def test_trap_a12_request_that_fails_never_touches_the_position(run, start, tmp_path):
    """Nonsense asked for, a table that cannot be read: changes go on, before and after a restart."""
    database, out = tmp_path / "a.db", tmp_path / "out.ndjson"
    make_numbers(database, rows=100)
    (tmp_path / "a.yaml").write_text("name: a\nsource: sqlite:a.db\nsinks: {x: file:out.ndjson}\n")
    process = start("run", "a.yaml")
    process.wait_until(lambda: ends(out) == 1)
    for arguments in (["--tables", "nothing*"], ["--sink", "nobody"], ["--tables", "t'; DROP TABLE t"]):
        assert run("backfill", "a.yaml", *arguments).code == 2
    execute(database, "UPDATE t SET v = 'traffic' WHERE id = 1")
    process.wait_until(lambda: count(out, b'"traffic"') == 1)
    run("backfill", "a.yaml", "--tables", "t").check()
    process.wait_until(lambda: ends(out) == 2)
    process.kill()
    execute(database, "UPDATE t SET v = 'while down' WHERE id = 2")
    assert run("backfill", "a.yaml", "--tables", "nothing*").code == 2
    process = start("run", "a.yaml")
    process.wait_until(lambda: count(out, b'"while down"') >= 1
                       and run("verify", "--all", "out.ndjson").code == 0)
    process.terminate().check()
    check_equal(database, out)


# -- A13: rows that come before the place that is read

def test_trap_a13_rows_that_come_and_go_before_the_place_that_is_read(start, pg, tmp_path):
    """By OFFSET they would shift every page (quixio/quix-streams PR 955)."""
    out = tmp_path / "out.ndjson"
    pg.query("CREATE TABLE t (id int PRIMARY KEY, v text);"
             "INSERT INTO t SELECT i, 'x' FROM generate_series(10001, 14000) i")
    process = start("copy", pg.url(), "file:out.ndjson", "--chunk-rows", "40", "--follow")
    for n in range(60):
        pg.query(f"INSERT INTO t VALUES ({n}, 'before'); DELETE FROM t WHERE id = {10001 + 2 * n}")
    pg.query("INSERT INTO t VALUES (-1, 'last')")
    process.wait_until(lambda: ends(out) == 1 and count(out, b'"last"'), 60)
    process.interrupt().check()
    pg_tables.check(pg, out)
