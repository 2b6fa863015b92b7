"""States of moments at which an archive has a gap: in doubt there, and nowhere else."""

import datetime
import json
import shutil
import sqlite3

CONFIGURATION = 'name: g\nsource: sqlite:g.db\nsinks:\n  arc: "archive:g.tide"\n'
IN_GAP = "that moment is in a gap of the archive"


def execute(path, *statements):
    db = sqlite3.connect(path, isolation_level=None, timeout=60)
    for statement in statements:
        db.execute(statement)
    db.close()


def now():
    """A moment behind all that was, and before all that will be, also in milliseconds."""
    moment = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(milliseconds=2)
    while datetime.datetime.now(datetime.timezone.utc) <= moment + datetime.timedelta(milliseconds=2):
        pass
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def ids_of(run, moment, code=0):
    """Of the rows at that moment; `code` 1: it is said to be in a gap."""
    state = run("archive", "cat", "g.tide", "--as-of", moment).check(code)
    assert (IN_GAP in state.err) == (code == 1), state.err
    return [json.loads(line)["id"] for line in state.out.splitlines()]


def follow(start, run, *statements, count, path):
    """Runs the pipeline until the archive has so many rows more than before, and stops it."""
    process = start("run", "g.yaml")
    process.wait_for_line("going on|starting")
    execute(path, *statements)
    process.wait_until(lambda: (path.parent / "g.tide").exists() and
                       len(run("archive", "cat", "g.tide", "--changes").out.splitlines()) >= count,
                       what=f"{count} frames in the archive")
    process.terminate().check()


def test_moments_between_two_copies_are_in_doubt(run, tmp_path):
    execute(tmp_path / "g.db", "CREATE TABLE t (id INTEGER PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    before = now()
    run("copy", "sqlite:g.db", "archive:g.tide").check()
    execute(tmp_path / "g.db", "INSERT INTO t VALUES (2)", "DELETE FROM t WHERE id = 1")
    between = now()
    execute(tmp_path / "g.db", "INSERT INTO t VALUES (3)")
    run("copy", "sqlite:g.db", "archive:g.tide", "--append").check()
    refused = run("archive", "cat", "g.tide", "--as-of", before).check(1)
    first = refused.err.split("rebuilt as of ")[1].split(" ")[0]
    assert ids_of(run, first) == [1]
    assert ids_of(run, between, code=1) == [1]
    assert ids_of(run, now()) == [2, 3]
    exported = run("archive", "export", "g.tide", "out", "--as-of", between).check(1)
    assert IN_GAP in exported.err
    run("archive", "export", "g.tide", "again", "--as-of", first).check()


def test_place_that_a_refusal_names_can_be_given_back(run, tmp_path):
    """Also where the log has started over since."""
    execute(tmp_path / "g.db", "CREATE TABLE t (id INTEGER PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    run("copy", "sqlite:g.db", "archive:g.tide").check()
    execute(tmp_path / "g.db", "INSERT INTO t VALUES (2)")
    run("copy", "sqlite:g.db", "archive:g.tide", "--append").check()
    refused = run("archive", "cat", "g.tide", "--as-of", "0:0").check(1)
    place = refused.err.split("rebuilt as of position ")[1].split(" ")[0]
    assert ids_of(run, place) == [1]
    assert "position 0:1, until" in run("archive", "cat", "g.tide", "--as-of", "0:2").check(1).err


def test_moments_that_a_restored_archive_lacks_are_in_doubt(run, start, tmp_path):
    (tmp_path / "g.yaml").write_text(CONFIGURATION)
    execute(tmp_path / "g.db", "CREATE TABLE t (id INTEGER PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    follow(start, run, count=3, path=tmp_path / "g.db")
    follow(start, run, "INSERT INTO t VALUES (2)", count=4, path=tmp_path / "g.db")
    shutil.copy(tmp_path / "g.tide", tmp_path / "backup.tide")
    follow(start, run, "INSERT INTO t VALUES (3)", "DELETE FROM t WHERE id = 1", count=6,
           path=tmp_path / "g.db")
    lost = now()
    assert ids_of(run, lost) == [2, 3]
    shutil.copy(tmp_path / "backup.tide", tmp_path / "g.tide")
    follow(start, run, count=8, path=tmp_path / "g.db")
    assert ids_of(run, 2) == [1, 2]
    assert ids_of(run, 3, code=1) == [1, 2]
    assert ids_of(run, lost, code=1) == [1, 2]
    assert ids_of(run, now()) == [2, 3]


def test_moments_at_which_nothing_happened_are_no_gap(run, start, tmp_path):
    """A run that goes on and copies anew: changes since, and the copy's end, lead on."""
    (tmp_path / "g.yaml").write_text(CONFIGURATION)
    execute(tmp_path / "g.db", "CREATE TABLE t (id INTEGER PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    follow(start, run, count=3, path=tmp_path / "g.db")
    quiet = [now()]
    follow(start, run, "INSERT INTO t VALUES (2)", count=4, path=tmp_path / "g.db")
    quiet.append(now())
    run("backfill", "g.yaml", "--table", "t").check()
    follow(start, run, count=8, path=tmp_path / "g.db")
    assert [ids_of(run, moment) for moment in quiet] == [[1], [1, 2]]
    quiet.append(now())
    follow(start, run, "INSERT INTO t VALUES (3)", count=9, path=tmp_path / "g.db")
    assert [ids_of(run, moment) for moment in quiet] == [[1], [1, 2], [1, 2]]


def test_moments_at_which_an_altered_table_was_not_followed_are_in_doubt(run, start, tmp_path):
    """A run that goes on copies it anew: changes of its old form do not come any more."""
    (tmp_path / "g.yaml").write_text(CONFIGURATION)
    execute(tmp_path / "g.db", "CREATE TABLE t (id INTEGER PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    follow(start, run, count=3, path=tmp_path / "g.db")
    execute(tmp_path / "g.db", "INSERT INTO t VALUES (2)", "DELETE FROM t WHERE id = 1")
    altered = now()
    execute(tmp_path / "g.db", "ALTER TABLE t ADD COLUMN v DEFAULT 'x'")
    follow(start, run, count=6, path=tmp_path / "g.db")
    frames = run("archive", "cat", "g.tide", "--changes").check().out
    assert frames.count('"kind":"begin"') == 2 and '"kind":"change"' not in frames
    assert ids_of(run, now()) == [2]
    assert ids_of(run, altered, code=1) == [1]


def test_times_that_are_printed_include_their_changes(run, start, tmp_path):
    (tmp_path / "g.yaml").write_text(CONFIGURATION)
    execute(tmp_path / "g.db", "CREATE TABLE t (id INTEGER PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    follow(start, run, count=3, path=tmp_path / "g.db")
    follow(start, run, "INSERT INTO t VALUES (2)", count=4, path=tmp_path / "g.db")
    frames = run("archive", "cat", "g.tide", "--changes").check().out.splitlines()
    time = json.loads(frames[-1])["timestamp"]
    assert 2 in ids_of(run, time)
    found = run("archive", "cat", "g.tide", "--changes", "--from", time, "--to", time).check()
    assert frames[-1] in found.out.splitlines() and found.err == ""
    place = json.loads(frames[-1])["position"]
    for more in (["--from", place + 1], ["--from", "2999-01-01", "--format", "csv"]):
        empty = run("archive", "cat", "g.tide", "--changes", *more).check()
        assert len(empty.out.splitlines()) == more.count("csv")
        assert "what it holds goes up to 20" in empty.err and f", position {place}\n" in empty.err
    wrong = run("archive", "cat", "g.tide", "--changes", "--from", place, "--to", place - 1).check(2)
    assert "--from is later than --to" in wrong.err
