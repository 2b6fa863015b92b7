"""Capture by triggers: copies built from the log equal the tables, whatever applications do."""

import os
import sqlite3
import tempfile

import pytest

from support import process, sqlite_ddl
from support.sqlite_histories import History
from support.sqlite_log_reader import LogReader

ROUNDS = 25
GROUPS = 10                                     # so that a failure names a part of the seeds
FIRST_SEED = int(os.environ.get("TIDEMARK_SEED") or 0)


class Copy:
    """What a consumer has: rows by key, fed with frames, also with such as come twice."""

    def __init__(self, history, reader):
        self.history = history
        self.reader = reader
        _, self.position, self.rows = reader.frames(reader.last(), 1)
        self.confirmed = self.position
        self.delivered = {}     # (table, key, log id) → row: a redelivery must be the same
        self.count = 0

    def read(self):
        rng = self.history.rng
        start = self.confirmed if rng.random() < .2 else self.position      # as after a crash
        frames, self.position, full = self.reader.frames(start, rng.choice([2**31, 2**31, 1, 3]))
        latest = {}
        for number, key, _, row, log_id in frames:
            if row is None:
                self.rows[number].pop(key, None)
            else:
                self.rows[number][key] = row
            latest[number, key] = (log_id, row)
        for (number, key), (log_id, row) in latest.items():
            before = self.delivered.setdefault((number, key, log_id), (row,))
            assert before == (row,), f"{key} of {number} at {log_id} came as {before}, then {row}"
        self.count += len(frames)
        for number, rows in full.items():
            copy = self.rows[number]
            assert copy == rows, (
                f"table {number}: only in the copy {dict(copy.items() - rows.items())},"
                f" only in the table {dict(rows.items() - copy.items())}")

    def confirm(self):
        self.confirmed = self.position
        self.reader.prune(self.history.writers[0].connection, self.confirmed)


def play(seed, path):
    """One history; gives the number of frames. A failure carries all that was executed."""
    history = History(seed, path)
    tables = []
    history.install(lambda names: tables.extend(sqlite_ddl.install(path, "histories", *names)))
    reader = LogReader(path, tables)
    copy = Copy(history, reader)
    try:
        for _ in range(ROUNDS):
            history.play()
            copy.read()
            if history.rng.random() < .3:
                copy.confirm()
    except AssertionError as error:
        said = ";\n".join(history.said)
        raise AssertionError(f"seed {seed}: {error}\n{said}") from None
    finally:
        reader.close()
        history.close()
    return copy.count


def memory_folder():
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


@pytest.mark.parametrize("group", range(GROUPS))
def test_random_histories_copy_equals_table(group):
    count = process.soak(15, 400)
    frames = 0
    with tempfile.TemporaryDirectory(dir=memory_folder()) as folder:
        for seed in range(FIRST_SEED + group * count, FIRST_SEED + (group + 1) * count):
            frames += play(seed, os.path.join(folder, "history.db"))
    assert frames > count * ROUNDS


# What the histories meet seldom: (schema with rows of t, the statement).
CASES = {
    "an index expression compares a text with a number": (
        "CREATE TABLE t (k INTEGER PRIMARY KEY, a TEXT, b INT, p);"
        "CREATE UNIQUE INDEX u ON t (a = b, p); INSERT INTO t VALUES (1, 'x', 'x', 1)",
        "REPLACE INTO t VALUES (2, '0', 0, 1)"),
    "an index expression compares a number with a literal": (
        "CREATE TABLE t (k INTEGER PRIMARY KEY, gone INT, mail TEXT);"
        "CREATE UNIQUE INDEX u ON t (CASE WHEN gone = '0' THEN mail END);"
        "INSERT INTO t VALUES (1, 0, 'a')", "REPLACE INTO t VALUES (2, 0, 'a')"),
    "a default takes its column's affinity": (
        "CREATE TABLE t (k INTEGER PRIMARY KEY, b REAL NOT NULL DEFAULT 2);"
        "CREATE UNIQUE INDEX u ON t (b || ''); INSERT INTO t VALUES (1, 2)",
        "REPLACE INTO t VALUES (2, NULL)"),
    "a default takes its column's collation": (
        "CREATE TABLE t (k INTEGER PRIMARY KEY, b TEXT COLLATE NOCASE NOT NULL DEFAULT 'X', p);"
        "CREATE UNIQUE INDEX u ON t (b = 'x', p); INSERT INTO t VALUES (1, 'x', 1)",
        "REPLACE INTO t VALUES (2, NULL, 1)"),
    "a bare word as default": (
        "CREATE TABLE t (k INTEGER PRIMARY KEY, b NOT NULL DEFAULT abc UNIQUE);"
        "INSERT INTO t VALUES (1, 'abc')", "REPLACE INTO t VALUES (2, NULL)"),
    "COLLATE at the end of an expression": (
        "CREATE TABLE t (k INTEGER PRIMARY KEY, a, b, p);"
        "CREATE UNIQUE INDEX u ON t (a = b COLLATE NOCASE, p);"
        "INSERT INTO t VALUES (1, 'x', 'x', 1)", "REPLACE INTO t VALUES (2, 'y', 'Y', 1)"),
    "a generated column in an update": (
        "CREATE TABLE t (k INTEGER PRIMARY KEY, a, b, g AS (a || b) STORED UNIQUE);"
        "INSERT INTO t VALUES (1, 1, 1), (2, 1, 2)", "UPDATE OR REPLACE t SET b = 1 WHERE k = 2"),
    "an expression over a generated column in an update": (
        "CREATE TABLE t (k INTEGER PRIMARY KEY, a, b, g AS (a || b));"
        "CREATE UNIQUE INDEX u ON t (lower(g)); INSERT INTO t VALUES (1, 1, 'x'), (2, 1, 'y')",
        "UPDATE OR REPLACE t SET b = 'X' WHERE k = 2"),
    "the rowid of a table with another key": (
        "CREATE TABLE t (k TEXT NOT NULL PRIMARY KEY); INSERT INTO t VALUES ('a')",
        "INSERT OR REPLACE INTO t (_rowid_, k) VALUES (1, 'b')"),
    "a new rowid of a table with another key": (
        "CREATE TABLE t (k TEXT NOT NULL PRIMARY KEY); INSERT INTO t VALUES ('a'), ('b')",
        "UPDATE OR REPLACE t SET _rowid_ = 1 WHERE k = 'b'"),
    "a default filled into the key": (
        "CREATE TABLE t (k TEXT NOT NULL DEFAULT 'd' PRIMARY KEY, v);"
        "INSERT INTO t VALUES ('a', 1), ('d', 2)", "UPDATE OR REPLACE t SET k = NULL WHERE v = 1"),
    "a younger AFTER UPDATE trigger that fails and keeps the change": (
        "CREATE TABLE t (k INTEGER PRIMARY KEY, v); INSERT INTO t VALUES (1, 1)",
        "CREATE TRIGGER y AFTER UPDATE ON t BEGIN SELECT RAISE(FAIL, 'no'); END;"
        "UPDATE t SET v = 2"),
    "a younger AFTER DELETE trigger that ignores": (
        "CREATE TABLE t (k INTEGER PRIMARY KEY, v); INSERT INTO t VALUES (1, 1)",
        "CREATE TRIGGER y AFTER DELETE ON t BEGIN SELECT RAISE(IGNORE); END; DELETE FROM t"),
    "a key that changes its type alone": (
        "CREATE TABLE t (k NOT NULL PRIMARY KEY); INSERT INTO t VALUES (1)",
        "UPDATE t SET k = 1.0"),
    "a key that changes its case alone": (
        "CREATE TABLE t (k TEXT COLLATE NOCASE PRIMARY KEY) WITHOUT ROWID;"
        "INSERT INTO t VALUES ('a')", "UPDATE t SET k = 'A'"),
    "a key that REPLACE finds by its collation": (
        "CREATE TABLE t (k TEXT COLLATE NOCASE PRIMARY KEY) WITHOUT ROWID;"
        "INSERT INTO t VALUES ('a')", "REPLACE INTO t VALUES ('A')"),
    "a key set to NULL": (
        "CREATE TABLE t (k TEXT PRIMARY KEY, v); INSERT INTO t VALUES ('a', 1), (NULL, 2)",
        "UPDATE t SET k = NULL"),
    "a rowid that is given to another row": (
        "CREATE TABLE t (v); INSERT INTO t VALUES (1), (2)",
        "DELETE FROM t WHERE v = 2; INSERT INTO t VALUES (3)"),
    "quoted strings in a partial index": (
        "CREATE TABLE t (k INTEGER PRIMARY KEY, a, b);"
        "CREATE UNIQUE INDEX u ON t (a) WHERE \"t\".b = \"yes\";"
        "INSERT INTO t VALUES (1, 1, 'yes')", "REPLACE INTO t VALUES (2, 1, 'yes')"),
    "names that need quotes": (
        "CREATE TABLE \"t\" (\"k \"\"1\" INT NOT NULL, \"o\" UNIQUE, \"NEW\", \"a'b\" UNIQUE,"
        " PRIMARY KEY (\"k \"\"1\", \"NEW\")) WITHOUT ROWID;"
        "INSERT INTO t VALUES (1, 1, 1, 1)", "REPLACE INTO t VALUES (2, 1, 1, 1)"),
}


@pytest.mark.parametrize("case", CASES)
def test_case_copy_equals_table(case, tmp_path):
    schema, statement = CASES[case]
    path = str(tmp_path / "case.db")
    app = sqlite3.connect(path, isolation_level=None)
    app.executescript(schema)
    tables = sqlite_ddl.install(path, "case", "t")
    reader = LogReader(path, tables)
    _, position, copy = reader.frames(reader.last(), 1)
    try:
        app.executescript(statement)
    except sqlite3.Error as error:
        assert "no" in str(error)
    frames, _, full = reader.frames(position, 2**31)
    rows = copy[tables[0].number]
    before = dict(rows)
    for _, key, _, row, _ in frames:
        if row is None:
            rows.pop(key, None)
        else:
            rows[key] = row
    reader.close()
    app.close()
    assert rows == full[tables[0].number]
    assert rows != before, "the statement has changed nothing: this case shows nothing"
