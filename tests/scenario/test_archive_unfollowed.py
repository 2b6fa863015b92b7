"""States of moments at which nobody followed a table, or one of its sinks was away: in doubt there,
and nowhere else. Of SQLite and PostgreSQL."""

import json
import time

import pytest
from support.trouble import execute

from test_archive_gaps import IN_GAP, now

SINK = "  arc: {place: 'archive:g.tide', existing: append}\n"
DETACHED = "  arc: {place: 'archive:g.tide', existing: append, when_behind: detach}\n"
OTHER = "  out: file:out.ndjson\n"
SQLITE_ALONE = pytest.mark.parametrize("source", ["sqlite"], indirect=True)
TABLES = ["CREATE TABLE t (id int PRIMARY KEY, v text)", "CREATE TABLE u (id int PRIMARY KEY)",
          "INSERT INTO t VALUES (1, 'a')"]


class Sqlite:
    url = "sqlite:g.db"

    def __init__(self, folder):
        self.path = folder / "g.db"

    def execute(self, *statements):
        execute(self.path, *statements)


class Postgres:
    def __init__(self, pg):
        self.url = pg.url()
        self.query = pg.query

    def execute(self, *statements):
        self.query(";".join(statements))


@pytest.fixture(params=["sqlite", "postgres"])
def source(request, tmp_path):
    made = Sqlite(tmp_path) if request.param == "sqlite" else Postgres(request.getfixturevalue("pg"))
    made.execute(*TABLES)
    return made


class Pipeline:
    """Into g.tide, run by run."""

    def __init__(self, source, run, start, folder):
        self.source, self._run, self._start, self._folder = source, run, start, folder

    def configure(self, tables="t, u", sinks=SINK, more=""):
        (self._folder / "g.yaml").write_text(f"name: g\nsource: {self.source.url}\n"
                                             f"tables: [{tables}]\nsinks:\n{sinks}{more}")

    def begin(self):
        process = self._start("run", "g.yaml")
        process.wait_for_line("going on|starting")
        return process

    def run(self, *statements, table="t", ids, copies):
        """Until the archive has these rows of the table, and so many ends of copies."""
        process = self.begin()
        self.source.execute(*statements)
        process.wait_until(lambda: self.copies(table) >= copies and self.ids(table) == ids, 60,
                           f"rows {ids}, {copies} copies of {table}")
        process.terminate().check()

    def cat(self, table, *more):
        return self._run("archive", "cat", "g.tide", "-t", table, *more)

    def copies(self, table):
        return self.cat(table, "--changes").out.count('"kind":"end"')

    def ids(self, table="t"):
        return [json.loads(line)["id"] for line in self.cat(table).out.splitlines()]

    def at(self, moment, table="t"):
        """The rows as of it, and whether they are in doubt."""
        state = self.cat(table, "--as-of", moment)
        assert state.code == (1 if IN_GAP in state.err else 0), state.err
        return [json.loads(line)["id"] for line in state.out.splitlines()], state.code == 1

    def check(self):
        """Nothing is wrong with the archive, and the copies are whole."""
        self._run("archive", "verify", "--full", "g.tide").check()
        for table in "tu":
            self._run("verify", "-", stdin=self.cat(table, "--changes").out).check()


@pytest.fixture
def pipeline(source, run, start, tmp_path):
    made = Pipeline(source, run, start, tmp_path)
    made.configure()
    return made


def before(pipeline):
    """Two runs; the time of the last change that they saw."""
    pipeline.run(ids=[1], copies=1)
    pipeline.run("INSERT INTO t VALUES (2, 'b')", ids=[1, 2], copies=1)
    return json.loads(pipeline.cat("t", "--changes").out.splitlines()[-1])["timestamp"]


def test_table_that_was_left_out_for_a_while(pipeline, source, run):
    seen = before(pipeline)
    pipeline.configure(tables="u")
    pipeline.run("INSERT INTO t VALUES (3, 'c')", "DELETE FROM t WHERE id = 1",
                 "INSERT INTO u VALUES (1)", table="u", ids=[1], copies=1)
    left_out = now()
    source.execute("INSERT INTO t VALUES (4, 'd')")
    pipeline.configure()
    pipeline.run("INSERT INTO t VALUES (5, 'e')", ids=[2, 3, 4, 5], copies=2)
    again = now()
    pipeline.run("INSERT INTO t VALUES (6, 'f')", ids=[2, 3, 4, 5, 6], copies=2)
    assert pipeline.at(seen) == ([1, 2], False)
    assert pipeline.at(left_out) == ([1, 2], True)
    assert pipeline.at(again) == ([2, 3, 4, 5], False)
    assert pipeline.at(left_out, "u") == ([1], False)
    pipeline.check()
    assert "the table was not followed, or made anew: changes may be missing between the changes " in \
        run("archive", "verify", "--full", "g.tide").out


@pytest.mark.parametrize("anew", [
    ["DROP TABLE t", TABLES[0], "INSERT INTO t VALUES (4, 'd')"],
    ["ALTER TABLE t RENAME TO old", TABLES[0], "INSERT INTO t SELECT * FROM old WHERE id > 1",
     "DROP TABLE old", "INSERT INTO t VALUES (4, 'd')"],
], ids=["dropped", "rebuilt"])
def test_table_that_was_made_anew_while_nobody_followed(pipeline, source, anew):
    seen = before(pipeline)
    source.execute("INSERT INTO t VALUES (3, 'c')", "DELETE FROM t WHERE id = 1")
    changed = now()
    source.execute(*anew)
    made_anew = now()
    ids = [4] if anew[0].startswith("DROP") else [2, 3, 4]
    pipeline.run(ids=ids, copies=2)
    again = now()
    assert pipeline.at(seen) == ([1, 2], False)
    assert pipeline.at(changed) == ([1, 2], True)
    assert pipeline.at(made_anew) == ([1, 2], True)
    assert pipeline.at(again) == (ids, False)
    pipeline.check()


def test_gap_is_seen_in_an_archive_that_was_put_back_from_before_it(pipeline, source, tmp_path):
    """Though its own rows of the time behind the gap are gone too."""
    seen = before(pipeline)
    backup = (tmp_path / "g.tide").read_bytes()
    pipeline.configure(tables="u")
    pipeline.run("INSERT INTO t VALUES (3, 'c')", "INSERT INTO u VALUES (1)", table="u", ids=[1],
                 copies=1)
    left_out = now()
    pipeline.configure()
    pipeline.run(ids=[1, 2, 3], copies=2)
    (tmp_path / "g.tide").write_bytes(backup)
    pipeline.run(ids=[1, 2, 3], copies=2)
    assert pipeline.at(seen) == ([1, 2], False)
    assert pipeline.at(left_out) == ([1, 2], True)
    assert pipeline.at(now()) == ([1, 2, 3], False)


def test_table_that_was_followed_all_the_time_and_is_copied_anew(pipeline, run):
    before(pipeline)
    quiet = [now()]
    run("backfill", "g.yaml", "--table", "t").check()
    pipeline.run(ids=[1, 2], copies=2)
    quiet.append(now())
    run("backfill", "g.yaml", "--table", "t").check()
    pipeline.run("INSERT INTO t VALUES (3, 'c')", ids=[1, 2, 3], copies=3)
    quiet.append(now())
    assert [pipeline.at(moment) for moment in quiet] == [([1, 2], False)] * 2 + [([1, 2, 3], False)]
    pipeline.check()


@SQLITE_ALONE
def test_sink_that_was_let_go_of_and_comes_back(pipeline, source, run, tmp_path):
    """What did not change meanwhile is certain throughout, and what did is not."""
    pipeline.configure(sinks=DETACHED + OTHER, more="stream: {lane_bytes: 65536, "
                       "lane_items: 16, max_retained_bytes: 65536}\n")
    seen = before(pipeline)
    process = pipeline.begin()
    run("pause", "g.yaml", "--sink", "arc").check()
    deadline = time.monotonic() + 60
    for number in range(3, 10000):
        source.execute(f"INSERT INTO t VALUES ({number}, '{'x' * 100000}')")
        if "sink arc is detached" in process.err():
            break
        assert time.monotonic() < deadline
    process.wait_until(lambda: f'"id":{number},'.encode() in (tmp_path / "out.ndjson").read_bytes(),
                       60, "the last row in the other sink")
    process.terminate().check()
    away = now()
    source.execute("DELETE FROM t WHERE id > 3")
    run("resume", "g.yaml", "--sink", "arc").check()
    pipeline.run(ids=[1, 2, 3], copies=2)
    assert pipeline.at(seen) == ([1, 2], False)
    assert pipeline.at(away)[1]
    assert pipeline.at(away, "u") == ([], False)
    assert pipeline.at(now()) == ([1, 2, 3], False)


def test_table_that_was_left_out_while_the_sink_was_not_there(pipeline, source, tmp_path):
    seen = before(pipeline)
    pipeline.configure(tables="u", sinks=OTHER)
    process = pipeline.begin()
    source.execute("INSERT INTO t VALUES (3, 'c')", "INSERT INTO u VALUES (1)")
    process.wait_until(lambda: b'"id":1}' in (tmp_path / "out.ndjson").read_bytes(), 60, "a row of u")
    process.terminate().check()
    left_out = now()
    pipeline.configure(sinks=OTHER)
    process = pipeline.begin()
    process.wait_for_line("table .*t: it .*; it is copied anew", 60)
    process.terminate().check()
    pipeline.configure()
    pipeline.run(ids=[1, 2, 3], copies=2)
    assert pipeline.at(seen) == ([1, 2], False)
    assert pipeline.at(left_out) == ([1, 2], True)
    assert pipeline.at(now()) == ([1, 2, 3], False)
    pipeline.check()


def test_gap_is_remembered_over_a_kill_before_the_copy(pipeline, source):
    """Also where the source tells of the table only once."""
    seen = before(pipeline)
    source.execute("INSERT INTO t VALUES (3, 'c')")
    changed = now()
    source.execute("DROP TABLE t", TABLES[0], "INSERT INTO t VALUES (4, 'd')")
    process = pipeline.begin()
    process.wait_for_line("table .*t: it .*; it is copied anew", 60)
    process.kill()
    pipeline.run("INSERT INTO t VALUES (5, 'e')", ids=[4, 5], copies=2)
    assert pipeline.at(seen) == ([1, 2], False)
    assert pipeline.at(changed) == ([1, 2], True)
    assert pipeline.at(now()) == ([4, 5], False)


def test_gap_lies_behind_what_the_archive_has_past_the_checkpoint(pipeline, source, run):
    pipeline.configure(sinks=SINK + OTHER)
    before(pipeline)
    process = pipeline.begin()
    run("pause", "g.yaml", "--sink", "out").check()
    source.execute("INSERT INTO t VALUES (3, 'c')")
    process.wait_until(lambda: pipeline.ids() == [1, 2, 3], 60, "the change in the archive")
    process.kill()
    seen = json.loads(pipeline.cat("t", "--changes").out.splitlines()[-1])["timestamp"]
    source.execute("DELETE FROM t WHERE id = 1")
    changed = now()
    source.execute("DROP TABLE t", TABLES[0], "INSERT INTO t VALUES (4, 'd')")
    run("resume", "g.yaml", "--sink", "out").check()
    pipeline.run("INSERT INTO t VALUES (5, 'e')", ids=[4, 5], copies=2)
    assert pipeline.at(seen) == ([1, 2, 3], False)
    assert pipeline.at(changed) == ([1, 2, 3], True)
    assert pipeline.at(now()) == ([4, 5], False)


@SQLITE_ALONE
@pytest.mark.parametrize("has_changed", [True, False])
def test_table_that_another_pipeline_followed_meanwhile(pipeline, source, start, tmp_path,
                                                        has_changed):
    """The log has changes of the time before it is let in again, though not all."""
    (tmp_path / "other.yaml").write_text(f"name: other\nsource: {source.url}\ntables: [t]\n"
                                         "sinks: {nothing: 'null:'}\n")
    other = start("run", "other.yaml")
    other.wait_for_line("starting")
    if has_changed:
        assert pipeline.at(before(pipeline)) == ([1, 2], False)
    else:
        source.execute("INSERT INTO t VALUES (2, 'b')")
        pipeline.run(ids=[1, 2], copies=1)
    pipeline.configure(tables="u")
    pipeline.run("INSERT INTO t VALUES (3, 'c')", "INSERT INTO u VALUES (1)", table="u", ids=[1],
                 copies=1)
    left_out = now()
    source.execute("INSERT INTO t VALUES (4, 'd')")
    pipeline.configure()
    pipeline.run(ids=[1, 2, 3, 4], copies=2)
    assert other.running()
    assert pipeline.at(left_out) == ([1, 2], True)
    assert pipeline.at(now()) == ([1, 2, 3, 4], False)
    pipeline.check()


@SQLITE_ALONE
def test_table_that_is_dropped_while_nobody_follows(pipeline, source):
    """The run that goes on tells that it is gone: from then on it is certainly empty."""
    pipeline.configure(tables='"*"')
    seen = before(pipeline)
    source.execute("INSERT INTO t VALUES (3, 'c')", "DROP TABLE t")
    dropped = now()
    pipeline.run(ids=[], copies=1)
    assert pipeline.at(seen) == ([1, 2], False)
    assert pipeline.at(dropped) == ([1, 2], True)
    assert pipeline.at(now()) == ([], False)


@SQLITE_ALONE
@pytest.mark.parametrize("is_stopped", [False, True], ids=["in one run", "in two"])
def test_table_that_could_not_be_followed_for_a_while(pipeline, source, is_stopped):
    pipeline.configure(tables='"*"')
    seen = before(pipeline)
    process = pipeline.begin()
    source.execute("BEGIN", "DROP TABLE t", "CREATE TABLE t (rowid, _rowid_, oid)", "COMMIT")
    process.wait_for_line("table g.t: it cannot be followed any more", 60)
    left_out = now()
    if is_stopped:
        process.terminate().check()
        process = pipeline.begin()
    source.execute("BEGIN", "DROP TABLE t", TABLES[0], "INSERT INTO t VALUES (7, 'g')", "COMMIT")
    process.wait_until(lambda: pipeline.ids() == [7], 60, "the new copy")
    process.terminate().check()
    assert pipeline.at(seen) == ([1, 2], False)
    assert pipeline.at(left_out) == ([1, 2], True)
    assert pipeline.at(now()) == ([7], False)


@SQLITE_ALONE
def test_table_that_is_made_anew_while_it_is_followed(pipeline):
    """Its copy, which has the rows, says that they are missing from the truncation on."""
    before(pipeline)
    pipeline.run("BEGIN", "DROP TABLE t", TABLES[0], "INSERT INTO t VALUES (7, 'g')", "COMMIT",
                 ids=[7], copies=2)
    frames = [json.loads(line) for line in pipeline.cat("t", "--changes").out.splitlines()]
    [emptied] = [frame for frame in frames if frame.get("op") == "truncate"]
    end = [frame for frame in frames if frame["kind"] == "end"][-1]
    assert end["changes_to"] == [emptied["position"], 9007199254740991]
    assert pipeline.at(emptied["position"] - 2) == ([1, 2], False)
    pipeline.check()
