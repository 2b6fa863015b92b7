"""`tidemark check FILE`: what the next run would refuse, found without changing anything."""

import os
import pathlib
import re
import sqlite3
import time

import pytest


@pytest.fixture
def database(tmp_path):
    path = tmp_path / "shop.db"
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, note TEXT)")
        db.executemany("INSERT INTO orders VALUES (?, ?)", [(n, f"note {n}") for n in range(50)])
    db.close()
    return path


def snapshot(folder):
    """Every file below with its bytes; SQLite's own side files come and go."""
    return {path: path.is_file() and path.read_bytes() for path in sorted(folder.rglob("*"))
            if not re.search(r"-(wal|shm)$", path.name)}


@pytest.fixture
def check(run, database, tmp_path):
    """check(sinks, code, more) gives the problems it tells of; nothing may have changed."""
    def call(sinks, code=None, more=""):
        lines = "".join(f"  {name}: {sink}\n" for name, sink in sinks.items())
        (tmp_path / "shop.yaml").write_text(f"name: shop\nsource: sqlite:shop.db\n{more}"
                                            f"sinks:\n{lines}")
        before = snapshot(tmp_path)
        result = run("check", "shop.yaml")
        assert snapshot(tmp_path) == before
        problems = re.findall(r"^problem: (.*)$", result.out, re.M)
        result.check((1 if problems else 0) if code is None else code)
        return problems
    return call


def follow(start, tmp_path, path):
    """Runs the configuration until its copy is held in `path`, then stops it."""
    process = start("run", "shop.yaml")
    process.wait_until(lambda: (tmp_path / path).exists() and
                       b'"kind":"end"' in (tmp_path / path).read_bytes(), what="the end")
    time.sleep(0.2)
    return process


def test_fresh_places_are_fine(check):
    assert check({"one": "file:one.ndjson", "dir": "file:a/b/c/", "none": '"null:"',
                  "out": '"-"'}) == []


@pytest.mark.parametrize("sink, problem", [
    ("file:shop.db", "would be written, but is the source's own file"),
    ("file:shop.db-wal", "would be written, but is the source's own file"),
    ("file:shop.db/", "sink one: |would be written"),
    ("file:none/one.ndjson", "sink one: cannot write one.ndjson: there is no directory none"),
    ("file:mine.txt", "sink one: mine.txt is there, and no record says that it is a copy of ours"),
    ("file:pipe", "sink one: ./pipe is not a regular file"),
    ("file:mine.txt/", "sink one: mine.txt is there, but is no directory|cannot open directory"),
    ("file:mine.txt/below/", "sink one: (mine.txt is there, but is no directory|cannot look at)"),
    ("file:mine/", "sink one: mine/a.ndjson is there"),
    (f"file:{'n' * 241}", "sink one: the file name .* is longer than 240 bytes"),
])
def test_what_run_would_refuse_is_told(check, run, tmp_path, sink, problem):
    (tmp_path / "mine.txt").write_text("mine\n")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/a.ndjson").write_text("mine\n")
    os.mkfifo(tmp_path / "pipe")
    found = check({"one": sink}, 1)
    assert re.search(problem, found[0]), found
    assert run("run", "shop.yaml").code in (2, 3)


def test_existing_settles_what_is_there(check, tmp_path):
    (tmp_path / "mine.ndjson").write_text("mine\n")
    for existing in ("append", "overwrite"):
        assert check({"one": f"{{place: file:mine.ndjson, existing: {existing}}}"}) == []


def test_state_that_cannot_be_kept_is_told(check, tmp_path):
    (tmp_path / "mine.txt").write_text("mine\n")
    for state in ("mine.txt", "mine.txt/below", "shop.db"):
        assert state.split("/")[0] in check({"one": "file:one.ndjson"}, 1,
                                            f"state: {state}\n")[0]
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "checkpoint_snapshot_progress_2026-11-29T13:40:55.567381+00:00.json") \
        .write_text("{")
    assert "checkpoint_" in check({"one": "file:one.ndjson"}, 1, "state: broken\n")[0]


def test_a_pipeline_that_runs_or_goes_on_is_fine(check, start, run, tmp_path):
    sinks = {"one": "file:one.ndjson", "dir": "file:dir/"}
    assert check(sinks) == []
    process = follow(start, tmp_path, "one.ndjson")
    assert "problem" not in run("check", "shop.yaml").check().out
    process.interrupt().check()
    assert check(sinks) == []
    assert "sink two: one.ndjson holds an earlier copy of this pipeline" in \
        check({"two": "file:one.ndjson"})[0]


def test_what_was_done_to_the_copy_of_a_pipeline_is_told(check, start, tmp_path):
    sinks = {"one": "file:one.ndjson", "dir": "file:dir/"}
    check(sinks)
    follow(start, tmp_path, "one.ndjson").interrupt().check()
    table = tmp_path / "dir/shop.orders.ndjson"
    table.rename(tmp_path / "kept")
    assert "sink dir: dir/shop.orders.ndjson cannot be read" in check(sinks)[0]
    table.write_bytes((tmp_path / "kept").read_bytes())
    assert "sink dir: dir/shop.orders.ndjson is not the file that was written" in check(sinks)[0]
    (tmp_path / "kept").rename(table)
    assert check(sinks) == []
    (tmp_path / ".one.ndjson.tidemark").unlink()
    assert "sink one: this pipeline goes on from a checkpoint, but one.ndjson has no record" in \
        check(sinks)[0]


def test_after_detach_the_ways_on_are_named_by_all_commands(check, start, run, tmp_path):
    sinks = {"one": "file:one.ndjson", "none": '"null:"'}
    check(sinks)
    follow(start, tmp_path, "one.ndjson").interrupt().check()
    result = run("detach", "shop.yaml").check()
    assert "note: what was copied stays, to one\n" in result.out
    ways = ("existing: append", "existing: overwrite", "another place")
    refused = run("run", "shop.yaml").check(2).err
    assert "the copy before with this state has ended (complete, or detached), so this one " \
        "starts anew: one.ndjson holds an earlier copy, of the pipeline \"shop-" in refused
    for said in (result.out, refused, check(sinks)[0]):
        assert all(way in said for way in ways), said
    for existing, copies in (("append", 2), ("overwrite", 1)):
        assert check({"one": f"{{place: file:one.ndjson, existing: {existing}}}"}) == []
        process = start("run", "shop.yaml")
        process.wait_until(lambda count=copies: (tmp_path / "one.ndjson").read_bytes()
                           .count(b'"kind":"end"') == count, what="another end")
        process.interrupt().check()
        run("verify", "--all", "one.ndjson").check()
        run("detach", "shop.yaml").check()


def test_a_source_that_cannot_be_opened_hides_nothing_of_the_sinks(run, tmp_path):
    (tmp_path / "mine.txt").write_text("mine\n")
    (tmp_path / "shop.yaml").write_text("name: shop\nsource: sqlite:none.db\n"
                                        "sinks: {one: file:mine.txt}\n")
    result = run("check", "shop.yaml")
    assert result.code in (2, 3) and "none.db" in result.err
    assert "problem: sink one: mine.txt is there" in result.out
    assert not pathlib.Path(tmp_path / ".tidemark").exists()


def replace(database, other):
    for suffix in ("-wal", "-shm"):
        pathlib.Path(f"{database}{suffix}").unlink(missing_ok=True)
    os.replace(other, database)


def back_up(database, to):
    with sqlite3.connect(database) as source, sqlite3.connect(to) as target:
        source.backup(target)
    source.close()
    target.close()


def agree(check, run, sinks, message, more=""):
    """check tells of one problem, with which run ends."""
    problems = check(sinks, 1, more)
    assert len(problems) == 1 and message in problems[0], problems
    assert message in run("run", "shop.yaml").check(3).err


def test_a_source_that_was_restored_is_told(check, start, run, database, tmp_path):
    sinks = {"none": '"null:"', "one": "file:one.ndjson"}
    check(sinks)
    follow(start, tmp_path, "one.ndjson").interrupt().check()
    back_up(database, tmp_path / "saved.db")
    with sqlite3.connect(database) as db:
        db.execute("UPDATE orders SET note = 'later'")
    db.close()
    process = start("run", "shop.yaml")
    process.wait_until(lambda: (tmp_path / "one.ndjson").read_bytes().count(b"later") >= 50,
                       what="the change")
    process.interrupt().check()
    assert check(sinks) == []
    replace(database, tmp_path / "saved.db")
    agree(check, run, sinks, "the log in the database ends at 1, before what this copy has read")


def test_another_source_is_told(check, start, run, database, tmp_path):
    sinks = {"one": "file:one.ndjson"}
    check(sinks)
    follow(start, tmp_path, "one.ndjson").interrupt().check()
    with sqlite3.connect(tmp_path / "new.db") as db:
        db.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, note TEXT)")
    db.close()
    replace(database, tmp_path / "new.db")
    agree(check, run, sinks, "is not the source that the state in .tidemark/shop belongs to")
    run("detach", "shop.yaml")
    assert check({"one": "{place: file:one.ndjson, existing: append}"}, more="state: new\n") == []


def test_a_source_that_is_followed_meanwhile_is_fine(check, start, run, database, tmp_path):
    check({"one": "file:one.ndjson"})
    process = follow(start, tmp_path, "one.ndjson")
    for n in range(20):
        with sqlite3.connect(database, timeout=10) as db:
            db.execute("INSERT INTO orders VALUES (?, 'more')", [1000 + n])
        db.close()
        assert "problem" not in run("check", "shop.yaml").check().out
    process.interrupt().check()
