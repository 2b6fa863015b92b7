"""tidemark archive cat, tables, export, verify, retain, compact and copy, on real copies."""

import bisect
import collections
import contextlib
import csv
import io
import json
import os
import pathlib
import random
import shutil
import sqlite3
import subprocess
import threading
import time

import pytest

from support import oracles, process
from support.process import soak

TABLES = ("t", "u")


class History:
    """A database of two tables, changed at random; every state it had is kept with its position."""

    def __init__(self, path, seed):
        self.random = random.Random(seed)
        self.path = path
        self.db = sqlite3.connect(path, isolation_level=None, timeout=30)
        self.db.execute("PRAGMA journal_mode = WAL")
        self.db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT, n REAL, m NUMERIC)")
        self.db.execute("CREATE TABLE u (k TEXT, l INTEGER, v TEXT, PRIMARY KEY (k, l))")
        self.positions = []  # of the log, rising
        self.states = []
        for _ in range(100):
            self._change_one()

    def _text(self):
        return self.random.choice(["", "x", "Zoë", "a\nb", 'q"q', "NULL", "李" * 5, None])

    def _number(self):
        return self.random.choice([None, 0, -1, 1 << 60, 0.1, 1e300, -2.5, 7])

    def _change_t(self):
        draw, rnd = self.random.random(), self.random
        key = rnd.randrange(60)
        if draw < 0.4:
            self.db.execute("INSERT OR REPLACE INTO t VALUES (?, ?, ?, ?)",
                            (key, self._text(), self._number(), self._number()))
        elif draw < 0.7:
            self.db.execute("UPDATE t SET a = ?, n = ? WHERE id = ?",
                            (self._text(), self._number(), key))
        elif draw < 0.85:  # a key moves, maybe onto another's
            self.db.execute("UPDATE OR REPLACE t SET id = ? WHERE id = ?", (rnd.randrange(60), key))
        elif draw < 0.98:
            self.db.execute("DELETE FROM t WHERE id = ?", (key,))
        else:
            self.db.execute("DELETE FROM t")

    def _change_u(self):
        draw, rnd = self.random.random(), self.random
        key = (rnd.choice("abcde"), rnd.randrange(8))
        if draw < 0.5:
            self.db.execute("INSERT OR REPLACE INTO u VALUES (?, ?, ?)", (*key, self._text()))
        elif draw < 0.7:
            self.db.execute("UPDATE OR REPLACE u SET k = ? WHERE k = ? AND l = ?",
                            (rnd.choice("abcde"), *key))
        elif draw < 0.99:
            self.db.execute("DELETE FROM u WHERE k = ? AND l = ?", key)
        else:
            self.db.execute("DELETE FROM u")

    def _change_one(self):
        if self.random.random() < 0.6:
            self._change_t()
        else:
            self._change_u()

    def state(self):
        return {table: rows_of(dict(zip([column[0] for column in found.description], row))
                               for row in found)
                for table in TABLES for found in [self.db.execute(f"SELECT * FROM {table}")]}

    def change(self):
        """One transaction of some changes."""
        self.db.execute("BEGIN IMMEDIATE")
        for _ in range(self.random.choice([1, 1, 2, 5])):
            self._change_one()
        newest = self.db.execute("SELECT max(id) FROM _tidemark_changes").fetchone()[0] \
            if self.has_log() else None
        state = self.state()
        self.db.execute("COMMIT")
        if newest and (not self.positions or newest > self.positions[-1]):
            self.positions.append(newest)
            self.states.append(state)

    def has_log(self):
        return self.db.execute("SELECT 1 FROM sqlite_schema WHERE name = '_tidemark_changes'")\
            .fetchone() is not None

    def at(self, position):
        """The state when all up to the position had happened; None before what was kept."""
        number = bisect.bisect_right(self.positions, position)
        return self.states[number - 1] if number else None


def rows_of(records):
    return sorted(json.dumps(record, sort_keys=True) for record in records)


def cat(run, archive, table, *args):
    out = run("archive", "cat", archive, "-t", table, *args).check().out
    return rows_of(json.loads(line) for line in out.splitlines())


def changes_of(run, archive, table):
    out = run("archive", "cat", archive, "-t", table, "--changes").check().out
    return [frame for frame in map(json.loads, out.splitlines()) if frame["kind"] == "change"]


COPY = ("copy", "sqlite:h.db", "archive:h.tide", "--follow", "--chunk-rows", "20")


def wait_for_state(copy, run, history, timeout=30):
    """Until the archive has caught up."""
    want = history.state()

    def is_there():
        if not (history.path.parent / "h.tide").exists():
            return False
        found = {table: run("archive", "cat", "h.tide", "-t", table) for table in TABLES}
        return all(found[table].code == 0 and
                   rows_of(map(json.loads, found[table].out.splitlines())) == want[table]
                   for table in TABLES)
    copy.wait_until(is_there, timeout, "the archive to have caught up")


def make_history(folder, command=COPY):
    """A history that was copied with kills and orderly ends, and its archive h.tide at rest."""
    history = History(folder / "h.db", seed=7)
    rnd = random.Random(8)

    def run(*args):
        return process.run(*args, cwd=folder)
    for stop in range(soak(6, 40)):
        with process.Process(*command, cwd=folder) as copy:
            until = time.monotonic() + 0.15 + rnd.random() * 0.5
            while time.monotonic() < until:
                history.change()
                time.sleep(rnd.choice([0, 0, 0.002, 0.01]))
            assert copy.running(), copy.err()
            if stop % 3 == 2:
                copy.interrupt()  # seals what is live
            else:
                copy.kill()
    with process.Process(*command, cwd=folder) as copy:
        history.change()
        wait_for_state(copy, run, history)
        copy.interrupt()
    return history


@pytest.fixture(scope="module", name="made")
def made_once(tmp_path_factory):
    return make_history(tmp_path_factory.mktemp("history"))


@pytest.fixture(name="history")
def history_with_a_copy_of_the_archive(made, tmp_path):
    shutil.copy(made.path.with_suffix(".tide"), tmp_path / "h.tide")
    return made


@pytest.fixture(name="followed")
def history_that_goes_on(tmp_path):
    return make_history(tmp_path)


def state_from(run):
    lines = run("archive", "tables", "h.tide", "--json").check().out.splitlines()
    return {table["table"].split(".")[1]: table for table in map(json.loads, lines)}


def moments_of(run, history):
    """Moments at which the log was read, as time and position, and what the state was: SQLite's log
    has no values, so in between there are those of the next reading."""
    read = {}
    for table in TABLES:
        for frame in changes_of(run, "h.tide", table):
            read.setdefault(frame["timestamp"], 0)
            read[frame["timestamp"]] = max(read[frame["timestamp"]], frame["position"])
    newest = 0
    for timestamp, position in sorted(read.items()):
        newest = max(newest, position)
        if newest in history.positions:  # not so before the first state that was kept
            yield timestamp[:-1] + "999Z", history.at(newest)
            yield str(newest), history.at(newest)


def test_states_are_those_that_were(run, history):
    """As of random times and positions, each table is what the database was then."""
    rnd = random.Random(9)
    run("archive", "verify", "--full", "h.tide").check()
    moments = list(moments_of(run, history))
    compared = collections.Counter()
    for moment, want in rnd.sample(moments, min(len(moments), soak(40, 400))):
        for table in TABLES:
            got = run("archive", "cat", "h.tide", "-t", table, "--as-of", moment)
            if got.code == 1:
                assert "complete copy of the table ended later" in got.err
                compared["refused"] += 1
                continue
            got.check()
            compared[table] += 1
            assert rows_of(map(json.loads, got.out.splitlines())) == want[table], (table, moment)
    assert min(compared[table] for table in TABLES) >= soak(30, 200), compared


def test_before_the_first_copy_a_state_is_refused_with_when_it_can_be_had(run, history):
    del history
    for table, seen in state_from(run).items():
        early = run("archive", "cat", "h.tide", "-t", table, "--as-of", "2020-01-01").check(1)
        said = early.err.split("as of ")[1].split(" ")[0]
        assert said[:23] >= seen["state_from"][:23] and early.out == ""
        cat(run, "h.tide", table, "--as-of", said)
        early = run("archive", "cat", "h.tide", "-t", table, "--as-of", "0").check(1)
        said = early.err.split("position ")[1].split(" ")[0]
        cat(run, "h.tide", table, "--as-of", said)


def test_changes_are_frames_that_verify_knows(run, history):
    frames = run("archive", "cat", "h.tide", "--changes").check().out
    said = run("verify", "-", stdin=frames).check().out
    assert said.count("complete") == 2
    newest = history.positions[len(history.positions) // 2]
    some = [json.loads(line) for line in
            run("archive", "cat", "h.tide", "-t", "t", "--changes", "--from", newest, "--to",
                newest + 20).check().out.splitlines()]
    want = [f for f in changes_of(run, "h.tide", "t") if newest <= f["position"] <= newest + 20]
    assert [f for f in some if f["kind"] == "change"] == want and want != []
    table = run("archive", "cat", "h.tide", "-t", "t", "--changes", "--format", "table").check().out
    assert table.split("\n")[0].split()[:3] == ["_time", "_op", "_position"]
    assert len(table.splitlines()) - 1 == sum(json.loads(f)["store"] == "h.t"
                                              for f in frames.splitlines())


@pytest.mark.parametrize("beside", [False, True], ids=["at rest", "while it is written"])
def test_retention_keeps_every_state_from_a_copy_on(run, start, followed, tmp_path, beside):
    before = state_from(run)
    old = followed.positions[-1]
    # Another copy of both tables, behind the first.
    (tmp_path / "h.yaml").write_text("name: second\nsource: sqlite:h.db\nsinks:\n  a:\n"
                                     "    place: archive:h.tide\n    existing: append\n")
    copy = start("run", "h.yaml")
    copy.wait_until(lambda: all(table["complete"] > before[name]["complete"]
                                for name, table in state_from(run).items()), what="a second copy")
    followed.change()
    wait_for_state(copy, run, followed)
    assert "is in use" in \
        run("archive", "retain", "h.tide", "--older-than", "0s", "--fold").check(3).err
    assert "would be kept from" in \
        run("archive", "retain", "h.tide", "--older-than", "0s", "--dry-run").check().out
    if beside:  # the pipeline that writes it goes on
        run("archive", "compact", "h.tide", "--rows", "50").check()
    else:
        copy.interrupt()
    assert run("archive", "retain", "h.tide", "--older-than", "3650d").check().out.count(
        "nothing is older") == 2
    said = run("archive", "retain", "h.tide", "--older-than", "0s").check().out
    assert said.count("kept from") == 2 and ": 0 segments" not in said
    with contextlib.closing(sqlite3.connect(tmp_path / "h.tide")) as db:
        assert beside or db.execute("PRAGMA freelist_count").fetchone() == (0,)
    if beside:
        followed.change()
        wait_for_state(copy, run, followed)
        assert "opened again" not in copy.err()
        copy.interrupt()
    run("archive", "verify", "--full", "h.tide").check()
    for table in TABLES:
        assert cat(run, "h.tide", table) == followed.state()[table]
        assert state_from(run)[table]["complete"] == 1
        run("archive", "cat", "h.tide", "-t", table, "--as-of", old - 50).check(1)
    run("archive", "compact", "h.tide").check()
    copy = start("run", "h.yaml")  # it goes on with what is left
    for _ in range(20):
        followed.change()
    wait_for_state(copy, run, followed)
    copy.interrupt()
    run("archive", "verify", "--full", "h.tide").check()


def test_retention_without_a_copy_that_is_old_enough_keeps_all(run, history):
    first = state_from(run)
    early = min(table["from"] for table in first.values())
    left = run("archive", "retain", "h.tide", "--older-than", early[:23] + "999Z").check(1)
    assert "no complete copy" in left.out and "tidemark backfill" in left.out
    assert state_from(run) == first
    del history


def test_compaction_changes_no_row(run, history, tmp_path):
    before = run("archive", "cat", "h.tide", "--changes").check().out
    segments = {name: table["segments"] for name, table in state_from(run).items()}
    assert min(segments.values()) > 1
    run("archive", "compact", "h.tide").check()
    assert all(table["segments"] == 1 for table in state_from(run).values())
    assert run("archive", "cat", "h.tide", "--changes").check().out == before
    run("archive", "verify", "--full", "h.tide").check()
    run("archive", "copy", "h.tide", "c.tide").check()
    assert run("archive", "cat", "c.tide", "--changes").check().out == before
    assert (tmp_path / "c.tide").stat().st_mode & 0o777 == 0o600
    assert "is there already" in run("archive", "copy", "h.tide", "c.tide").check(2).err
    del history


# Beside a writer

PAIRS = 20


def make_sums(path):
    """A table whose numbers have the same sum, 0, after every transaction."""
    db = sqlite3.connect(path, isolation_level=None, timeout=30)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("CREATE TABLE s (id INTEGER PRIMARY KEY, n INTEGER, note TEXT)")
    db.executemany("INSERT INTO s VALUES (?, 0, ?)", [(i, "x" * i) for i in range(2 * PAIRS)])
    db.close()


def write_sums(path, is_over):
    db = sqlite3.connect(path, isolation_level=None, timeout=30)
    rnd = random.Random(11)
    while not is_over.is_set():
        a, b = rnd.sample(range(2 * PAIRS), 2)
        db.execute("BEGIN IMMEDIATE")
        db.execute("UPDATE s SET n = n + 1 WHERE id = ?", (a,))
        db.execute("UPDATE s SET n = n - 1 WHERE id = ?", (b,))
        db.execute("COMMIT")
        time.sleep(0.001)
    db.close()


class Reader:
    """Runs `cat` again and again; looks at each result."""

    def __init__(self, folder, number):
        self.folder = folder
        self.is_frames = number % 2
        self.results = 0
        self.newest = 0
        self.start()

    def start(self):
        more = ["--changes"] if self.is_frames else []
        self.out = open(self.folder / f"out-{id(self)}", "w+b")
        self.child = subprocess.Popen(
            [process.program(), "archive", "cat", "s.tide", "-t", "s", *more],
            cwd=self.folder, stdout=self.out, stderr=subprocess.PIPE)

    def look(self, run):
        """Looks at what has come when it has ended, and starts the next."""
        if self.child.poll() is None:
            return
        error = self.child.stderr.read().decode()
        self.child.stderr.close()
        assert self.child.returncode == 0, error
        self.out.seek(0)
        text = self.out.read().decode()
        self.out.close()
        self.check(run, text)
        self.results += 1
        self.start()

    def check(self, run, text):
        lines = text.splitlines()
        if self.is_frames:
            run("verify", "-", stdin=text).check()
            assert len(lines) >= self.newest, "what had been there is gone"
            self.newest = len(lines)
        else:
            assert len(lines) == 2 * PAIRS
            assert sum(json.loads(line)["n"] for line in lines) == 0

    def close(self):
        self.child.kill()
        self.child.wait()
        self.child.stderr.close()
        self.out.close()


def test_readers_beside_a_writer_never_see_a_torn_state(run, start, tmp_path):
    make_sums(tmp_path / "s.db")
    (tmp_path / "s.yaml").write_text("name: s\nsource: sqlite:s.db\nsinks:\n  a:\n"
                                     "    place: archive:s.tide\n    seal_rows: 100\n")
    copy = start("run", "s.yaml")
    copy.wait_until(lambda: (tmp_path / "s.tide").exists() and
                    run("archive", "cat", "s.tide", "-t", "s").code == 0, what="the copy")
    readers = [Reader(tmp_path, number) for number in range(10)]
    is_over = threading.Event()
    writer = threading.Thread(target=write_sums, args=(tmp_path / "s.db", is_over))
    writer.start()
    try:
        until = time.monotonic() + soak(4, 60)
        while time.monotonic() < until:
            for reader in readers:
                reader.look(run)
            assert copy.running(), copy.err()
    finally:
        is_over.set()
        writer.join()
        for reader in readers:
            reader.close()
    copy.interrupt()
    assert all(reader.results > 0 for reader in readers)
    said = json.loads(run("archive", "tables", "s.tide", "--json").check().out)
    assert said["changes"] > 300 and said["segments"] > said["changes"] // 200, said
    assert len(cat(run, "s.tide", "s")) == 2 * PAIRS
    run("archive", "verify", "--full", "s.tide").check()
    assert not list(tmp_path.glob("s.tide-*"))  # also where readers were killed


# Export

TYPES = """CREATE TABLE types (id INTEGER PRIMARY KEY, flag BOOLEAN, price DECIMAL(10,2),
    ratio REAL, name TEXT, photo BLOB, born DATE, mixed INTEGER)"""
ROWS = [
    (1, 1, 12.5, 0.1, "Zoë", b"\xde\xad", "2026-11-29", 5),
    (2, 0, -3, 1e300, "", b"", None, "text in a column of integers"),
    (3, None, None, None, None, None, None, 1 << 62),
]


@pytest.fixture(name="types")
def archive_of_types(run, tmp_path):
    db = sqlite3.connect(tmp_path / "d.db")
    db.execute(TYPES)
    db.execute("CREATE TABLE empty (id INTEGER PRIMARY KEY, note TEXT)")
    db.executemany("INSERT INTO types VALUES (?, ?, ?, ?, ?, ?, ?, ?)", ROWS)
    db.commit()
    db.close()
    run("copy", "sqlite:d.db", "archive:d.tide").check()
    return tmp_path / "d.tide"


def test_export_is_files_of_the_tables_own_columns(run, types, tmp_path):
    duckdb, _ = oracles.load()
    run("archive", "export", types, "out").check()
    assert sorted(os.listdir(tmp_path / "out")) == ["d.empty.parquet", "d.types.parquet"]
    path = tmp_path / "out/d.types.parquet"
    described = dict(row[:2] for row in duckdb.sql(f"DESCRIBE SELECT * FROM '{path}'").fetchall())
    assert list(described) == ["id", "flag", "price", "ratio", "name", "photo", "born", "mixed",
                               "mixed#other"]
    assert described["id"] == described["mixed"] == "BIGINT" and described["ratio"] == "DOUBLE"
    assert described["name"] == described["mixed#other"] == "VARCHAR"
    assert described["photo"] == "BLOB"
    rows = duckdb.sql(f"SELECT id, ratio, name, photo, mixed, \"mixed#other\" FROM '{path}' "
                      "ORDER BY id").fetchall()
    assert rows == [(1, 0.1, "Zoë", b"\xde\xad", 5, None),
                    (2, 1e300, "", b"", None, "text:text in a column of integers"),
                    (3, None, None, None, 1 << 62, None)]
    empty = duckdb.sql(f"SELECT * FROM '{tmp_path / 'out/d.empty.parquet'}'")
    assert empty.columns == ["id", "note"] and empty.fetchall() == []


def test_export_of_changes_has_the_rows_of_segments(run, types, tmp_path):
    duckdb, _ = oracles.load()
    run("archive", "export", types, "out", "--changes", "-t", "types").check()
    path = tmp_path / "out/d.types.parquet"
    with sqlite3.connect(types) as db:
        (segment,), = db.execute("SELECT bytes FROM segments WHERE stream = 'd.types'").fetchall()
    (tmp_path / "segment.parquet").write_bytes(segment)
    for name in ("out/d.types.parquet", "segment.parquet"):
        found = duckdb.sql(f"SELECT _op, id FROM '{tmp_path / name}' ORDER BY _time").fetchall()
        assert found == [("begin", None), ("row", 1), ("row", 2), ("row", 3), ("end", None)]
    assert duckdb.sql(f"FROM '{path}' EXCEPT ALL FROM '{tmp_path / 'segment.parquet'}'"
                      ).fetchall() == []


def test_export_never_mixes_with_what_is_there(run, types, tmp_path):
    run("archive", "export", types, "out", "-t", "empty").check()
    assert "holds Parquet files already" in run("archive", "export", types, "out").check(2).err
    late = run("archive", "export", types, "late", "--as-of", "2020-01-01").check(1)
    assert "as of" in late.err and os.listdir(tmp_path / "late") == []


# What goes wrong

def test_tables_are_chosen_by_their_ends(run, types):
    assert "several tables that may be meant: d.empty, d.types" in \
        run("archive", "cat", types).check(2).err
    assert "has no table nothing; it has: d.empty, d.types" in \
        run("archive", "cat", types, "-t", "nothing").check(2).err
    assert len(cat(run, types, "d.types")) == len(cat(run, types, "types")) == 3
    assert "of that source" in run("archive", "cat", types, "-s", "7").check(2).err
    for moment in ("yesterday", "16/", "", "1:", "2026-13-01"):
        assert "wants a time" in run("archive", "cat", types, "--as-of", moment).check(2).err
    assert "are numbers" in run("archive", "cat", types, "-t", "types", "--as-of", "1/2").check(2).err


def test_formats_say_the_same(run, types):
    lines = run("archive", "cat", types, "-t", "types", "--format", "csv").check().out
    assert list(csv.reader(io.StringIO(lines)))[1:] == [
        ["1", "1", "12.5", "0.1", "Zoë", "3q0=", "2026-11-29", "5"],
        ["2", "0", "-3", "1e+300", "", "", "", "text in a column of integers"],
        ["3", "", "", "", "", "", "", str(1 << 62)]]
    assert '2,0,-3,1e+300,"","",,' in lines  # empty text and bytes are told from NULL
    table = run("archive", "cat", types, "-t", "types", "--format", "table").check().out
    assert table.splitlines()[0].split() == [
        "id", "flag", "price", "ratio", "name", "photo", "born", "mixed"]


def test_a_reader_that_leaves_and_a_full_disk(run, program, history, tmp_path):
    reader, writer = os.pipe()
    os.close(reader)
    result = subprocess.run([program, "archive", "cat", "h.tide", "--changes"], stdout=writer,
                            stderr=subprocess.PIPE, check=False, cwd=tmp_path)
    os.close(writer)
    assert (result.returncode, result.stderr) == (3, b"")
    with open("/dev/full", "wb") as full:
        result = subprocess.run([program, "archive", "cat", "h.tide", "--changes"], stdout=full,
                                stderr=subprocess.PIPE, check=False, cwd=tmp_path)
    assert result.returncode == 3 and result.stderr.count(b"\n") == 1
    assert b"standard output could not be written: No space left" in result.stderr
    limit = "ulimit -f 16; exec \"$@\""
    for args in (["copy", "h.tide", "c.tide"], ["export", "h.tide", "out", "--changes"]):
        result = subprocess.run(["sh", "-c", limit, "sh", program, "archive", *args],
                                stderr=subprocess.PIPE, check=False, cwd=tmp_path, text=True)
        assert result.returncode == 3, result.stderr
    assert not list(tmp_path.glob("**/c.tide*")) and not list(tmp_path.glob("**/.*.tmp"))
    del history, run


def test_a_change_that_is_missing_is_found_and_said(run, start, tmp_path):
    make_sums(tmp_path / "s.db")
    copy = start("copy", "sqlite:s.db", "archive:s.tide", "--follow")
    db = sqlite3.connect(tmp_path / "s.db", isolation_level=None, timeout=30)
    for number in range(5):
        copy.wait_until(lambda: (tmp_path / "s.tide").exists() and
                        f'"n":{number},' in run("archive", "cat", "s.tide", "-t", "s").out,
                        what=f"change {number}")
        db.execute("UPDATE s SET n = n + 1 WHERE id = 7")
    db.close()
    copy.kill()
    run("archive", "verify", "--full", "s.tide").check()
    changes = changes_of(run, "s.tide", "s")
    with sqlite3.connect(tmp_path / "s.tide") as db:
        times = [ts for ts, in db.execute("SELECT ts FROM wal ORDER BY ts")]
        db.execute("DELETE FROM wal WHERE ts = ?", (times[-2],))
    said = run("archive", "verify", "--full", "s.tide").check(1).out
    assert "problem: source 1, s.s: changes are missing between the changes at " in said
    state = run("archive", "cat", "s.tide", "-t", "s").check(1)
    assert "changes are missing" in state.err and len(state.out.splitlines()) == 2 * PAIRS
    run("archive", "cat", "s.tide", "-t", "s", "--as-of", changes[-3]["position"]).check()
    assert "changes are missing" in run("archive", "export", "s.tide", "out").check(1).err


def test_health_is_told_by_the_heart(run, start, tmp_path):
    tool = pathlib.Path(process.program()).resolve().parent / "tests/support/archive_tool"
    path = tmp_path / "a.tide"
    with process.Process("write", path, "pause_us=1000", argv0=str(tool)) as writer:
        writer.wait_until(lambda: "written" in writer.out(), what="rows")

        def health(*args):
            said = json.loads(run("archive", "info", "--json", path, *args).check().out)
            return [source["health"] for source in said["sources"]]
        assert health() == ["live"]
        assert health("--no-wait") == ["unknown"]
        writer.kill()
    assert health() == ["stopped"]  # the log is there: somebody may have it open
    run("archive", "copy", path, "b.tide").check()
    path = tmp_path / "b.tide"
    assert health("--no-wait") == ["stopped"]  # there is none: nobody has


def test_damage_is_named_and_no_crash(run, history, tmp_path):
    """Whatever a segment, a live row or its columns hold: a sentence, never a crash."""
    rnd = random.Random(12)
    whole = (tmp_path / "h.tide").read_bytes()
    broken = 0
    for _ in range(soak(25, 300)):
        (tmp_path / "h.tide").write_bytes(whole)
        db = sqlite3.connect(tmp_path / "h.tide")
        table, column = rnd.choice([("segments", "bytes"), ("wal", "row"), ("caller_rows", "blob")])
        found = db.execute(f"SELECT rowid, {column} FROM {table}").fetchall()
        if found:
            rowid, blob = rnd.choice(found)
            blob = bytearray(blob)
            for _ in range(rnd.choice([1, 1, 3, 20])):
                blob[rnd.randrange(len(blob))] = rnd.randrange(256)
            db.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (bytes(blob), rowid))
        db.commit()
        db.close()
        for args in (["verify", "--full", "h.tide"], ["cat", "h.tide", "--changes"],
                     ["cat", "h.tide", "-t", "t"], ["tables", "h.tide"]):
            result = run("archive", *args)
            assert result.code in (0, 1, 3), (args, result.code, result.err)
            assert result.code != 3 or "h.tide" in result.err or "h.t" in result.err, result.err
            broken += result.code != 0
    assert broken > 10
    del history


@pytest.mark.parametrize("ddl", ["DROP TABLE t", "ALTER TABLE t RENAME TO u"])
def test_table_that_goes_keeps_its_history_and_holds_up_no_other(run, start, tmp_path, ddl):
    database = tmp_path / "s.db"
    with sqlite3.connect(database) as db:
        db.executescript("CREATE TABLE t (id INTEGER PRIMARY KEY, v); INSERT INTO t VALUES (1,1),"
                         "(2,2),(3,3); CREATE TABLE z (id INTEGER PRIMARY KEY, v)")
    (tmp_path / "p.yaml").write_text("name: p\nsource: sqlite:s.db\nsinks:\n"
                                     "  a: {place: 'archive:a.tide', seal_rows: 3}\n")

    def cat(table, *more):
        return run("archive", "cat", "a.tide", "-t", table, *more)
    process = start("run", "p.yaml")
    process.wait_until(lambda: cat("t").code == 0 and cat("t").out.count("\n") == 3, 30, "the copy")
    with sqlite3.connect(database, timeout=20) as db:
        db.execute(ddl)
    process.wait_until(lambda: cat("t").code == 0 and cat("t").out == "", 30, "the end of t")
    for i in range(12):
        with sqlite3.connect(database, timeout=20) as db:
            db.execute("INSERT INTO z VALUES (?, 'after')", (i,))
    process.wait_until(lambda: cat("z").out.count("after") == 12, 30, "the other table")
    process.terminate().check()
    assert "opened again" not in process.err()
    run("archive", "verify", "--full", "a.tide").check()
    assert cat("t", "--changes").check().out.count('"truncate"') == 1


def test_export_gives_every_table_files_of_its_own(run, start, tmp_path):
    """A table's second file is not named as another table's first."""
    database = tmp_path / "s.db"
    with sqlite3.connect(database) as db:
        db.executescript("CREATE TABLE a (id INTEGER PRIMARY KEY, v); INSERT INTO a VALUES (1, 1);"
                         'CREATE TABLE "a-2" (id INTEGER PRIMARY KEY); INSERT INTO "a-2" VALUES (1)')
    (tmp_path / "p.yaml").write_text("name: p\nsource: sqlite:s.db\nsinks: {a: 'archive:a.tide'}\n")
    process = start("run", "p.yaml")

    def rows_of(table):
        return run("archive", "cat", "a.tide", "-t", table).out
    process.wait_until(lambda: rows_of("a") and rows_of("a-2"), 30, "the copies")
    with sqlite3.connect(database, timeout=20) as db:
        db.execute("ALTER TABLE a ADD COLUMN z INT DEFAULT 5")
    process.wait_until(lambda: '"z":5' in rows_of("a"), 30, "the new column")
    process.terminate().check()
    told = run("archive", "export", "a.tide", "x", "--changes").check().out
    files = sorted(path.name for path in (tmp_path / "x").iterdir())
    assert "s.a: " in told and "in 2 files" in told
    assert files == ["s.a-2.parquet", "s.a.parquet", "s.a~2.parquet"]


@pytest.mark.parametrize("lost, said", [
    ("seq IN (20, 21)", "problem: source 1, s.s: rows of copy {id} are missing: 2, from seq 20 on"),
    ("seq = 39", "problem: source 1, s.s: rows of copy {id} are missing: 1, from seq 39 on"),
    ("op = 'end'", "problem: source 1, s.s: the end of copy {id} is missing"),
    ("op = 'begin'", "note: source 1, s.s: the begin of copy {id} is not there"),
])
def test_rows_of_a_copy_that_are_missing_are_found_and_said(run, tmp_path, lost, said):
    """Rows that somebody has deleted from the file."""
    make_sums(tmp_path / "s.db")
    with process.Process("copy", "sqlite:s.db", "archive:s.tide", "--follow",
                         cwd=tmp_path) as service:
        service.wait_until(lambda: (tmp_path / "s.tide").exists() and
                           run("archive", "cat", "s.tide").code == 0, 60, "a copy")
        service.kill()
    run("archive", "verify", "--full", "s.tide").check()
    lines = run("archive", "cat", "s.tide", "--changes", "--format", "csv").check().out
    rows = list(csv.DictReader(io.StringIO(lines)))
    with contextlib.closing(sqlite3.connect(tmp_path / "s.tide")) as db:
        times = [ts for ts, in db.execute("SELECT ts FROM wal ORDER BY ts")]
        db.execute("CREATE TEMP TABLE found (ts, op, seq)")
        db.executemany("INSERT INTO found VALUES (?, ?, ?)",
                       [(ts, row["_op"], int(row["_seq"]) if row["_op"] == "row" else None)
                        for ts, row in zip(times, rows, strict=True)])
        db.execute(f"DELETE FROM wal WHERE ts IN (SELECT ts FROM found WHERE {lost})")
        db.commit()
    found = run("archive", "verify", "--full", "s.tide")
    assert said.format(id=rows[0]["_snapshot_id"]) in found.out, found.out
    assert found.code == (1 if said.startswith("problem") else 0)
    state = run("archive", "cat", "s.tide").check(1)
    assert state.out == "" and rows[0]["_snapshot_id"] in state.err or "end" in lost, state.err


def test_moments_past_what_is_held_are_told(run, history, tmp_path):
    """A position is refused, a time is answered with what is there and a note."""
    newest = max(frame["position"] for table in TABLES for frame in changes_of(run, "h.tide", table))
    for table in TABLES:  # also the one whose own last change is older
        now = run("archive", "cat", "h.tide", "-t", table).check()
        assert now.err == ""
        assert run("archive", "cat", "h.tide", "-t", table, "--as-of", newest).check().out == now.out
        late = run("archive", "cat", "h.tide", "-t", table, "--as-of", newest + 1).check(1)
        assert f"what it holds goes up to {newest}\n" in late.err and late.out == ""
        later = run("archive", "cat", "h.tide", "-t", table, "--as-of", "2999-01-01").check()
        assert "what the archive holds of that source goes up to 20" in later.err
        assert later.out == now.out
    out = run("archive", "export", "h.tide", "late", "--as-of", "2999-01-01").check()
    assert out.err.count("what the archive holds of that source") == 1
    refused = run("archive", "export", "h.tide", "refused", "--as-of", newest + 1).check(1)
    assert refused.err.count("goes up to") == 2 and os.listdir(tmp_path / "refused") == []


def test_names_that_are_long_or_ours_are_kept_apart(run, tmp_path):
    """A table of any name is copied; of its columns each has a name of its own in every format."""
    names = ["ä" * 3000, "ä" * 3000 + "b"]
    with contextlib.closing(sqlite3.connect(tmp_path / "n.db")) as db:
        for number, name in enumerate(names):
            db.execute(f'CREATE TABLE "{name}" (id INTEGER PRIMARY KEY, v)')
            db.execute(f'INSERT INTO "{name}" VALUES (1, {number})')
        db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, _op, _OP_, _Seq TEXT)")
        db.execute("INSERT INTO t VALUES (1, 'a', 'b', 'c')")
        db.commit()
    run("copy", "sqlite:n.db", "archive:n.tide").check()
    frames = [json.loads(line) for line in
              run("archive", "cat", "n.tide", "--changes").check().out.splitlines()]
    assert {frame["store"] for frame in frames} == {f"n.{name}" for name in [*names, "t"]}
    series = [json.loads(line)["table"] for line in
              run("archive", "tables", "n.tide", "--json").check().out.splitlines()]
    assert len(set(series)) == 3 and max(len(name.encode()) for name in series) <= 4096
    run("archive", "verify", "--full", "n.tide").check()
    rows = run("archive", "cat", "n.tide", "-t", "t", "--changes", "--format", "csv").check().out
    header = rows.splitlines()[0].split(",")
    assert len({name.lower() for name in header}) == len(header)
    assert header[-4:] == ["id", "_op__", "_OP_", "_Seq_"]
    duckdb, _ = oracles.load()
    run("archive", "export", "n.tide", "out", "-t", "t").check()
    found = duckdb.sql(f"FROM '{tmp_path / 'out/n.t.parquet'}'")
    assert found.columns == ["id", "_op", "_OP_", "_Seq"]
    assert found.fetchall() == [(1, "a", "b", "c")]


def test_rows_in_doubt_are_named(run, start, tmp_path):
    """A row that was too long is known by its key, or as it was before."""
    with contextlib.closing(sqlite3.connect(tmp_path / "l.db")) as db:
        db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT)")
        db.executemany("INSERT INTO t VALUES (?, ?)",
                       [(i, "x" * (9000 if i % 3 == 0 else 10)) for i in range(1, 60)])
        db.commit()
    (tmp_path / "l.yaml").write_text("name: l\nsource: sqlite:l.db\nsinks:\n  a: {place: "
                                     "'archive:l.tide', max_record_bytes: 4096, refused: skip}\n")
    service = start("run", "l.yaml")
    service.wait_until(lambda: (tmp_path / "l.tide").exists() and
                       run("archive", "cat", "l.tide").out.count("\n") == 59, 60, "the copy")
    service.interrupt()
    found = run("archive", "cat", "l.tide").check(1)
    assert found.out.count('"v"') == 40
    assert "19 rows were too long" in found.err
    assert 'alone: {"id":3}, {"id":6}, {"id":9}' in found.err and found.err.endswith("…\n")
    assert '{"id":3}, {"id":6}' in run("archive", "export", "l.tide", "out").check(1).err
    said = run("archive", "retain", "l.tide", "--older-than", "2099-01-01T00:00:00Z", "--dry-run")
    assert "; rows that were too long for that copy are known by their keys" in said.check().out
