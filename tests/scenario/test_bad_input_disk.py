"""Disks that are full or read-only, for each of the files that are written, and then are not."""

import contextlib
import signal
import sqlite3

import pytest
from support.trouble import (MIB, Tmpfs, check_equal, ends, execute, last_words, make_numbers,
                             read_only, wait_for)


@pytest.fixture
def small():
    with Tmpfs(3 * MIB) as made:
        yield made


# -- the sink's

@pytest.mark.parametrize("target", ["out.ndjson", "out/"])
def test_sink_on_a_full_disk_goes_on_once_there_is_room(start, run, tmp_path, small, target):
    make_numbers(tmp_path / "a.db", rows=6000)
    small.fill(leave=MIB)
    process = start("copy", "sqlite:a.db", f"file:{small.path}/{target}")
    process.wait_for_line("No space left on device")
    assert process.running()
    small.empty()
    result = process.wait(30)
    assert "No space left" in result.err and str(small.path) in result.err
    paths = [small.path / target] if target.endswith("json") else [small.path / "out/a.t.ndjson"]
    result.check()
    check_equal(tmp_path / "a.db", *paths)
    run("verify", *paths).check()


def test_sink_on_a_disk_that_stays_full_is_stopped_and_gone_on_with(start, run, tmp_path, small):
    make_numbers(tmp_path / "a.db", rows=4000)
    small.fill(leave=300000)
    arguments = ["copy", "sqlite:a.db", f"file:{small.path}/out.ndjson"]
    process = start(*arguments)
    process.wait_for_line("No space left on device")
    process.signal(signal.SIGINT)
    process.wait_for_line("again to stop at once")
    result = process.interrupt(timeout=20)
    assert result.code in (1, 3) and "run the same command again" in result.err
    small.empty()
    assert "going on" in run(*arguments).check().err
    check_equal(tmp_path / "a.db", small.path / "out.ndjson")


def test_sink_that_becomes_read_only_says_so_and_goes_on_once_it_is_writable(start, run, tmp_path):
    make_numbers(tmp_path / "a.db")
    folder = tmp_path / "frames"
    folder.mkdir()
    arguments = ["copy", "sqlite:a.db", "file:frames/out/"]
    with read_only(folder):
        result = run(*arguments, timeout=30).check(3)
        assert "Read-only file system" in last_words(result) and "frames/out" in last_words(result)
    run(*arguments).check()
    check_equal(tmp_path / "a.db", folder / "out/a.t.ndjson")
    with read_only(folder):
        result = run("copy", "sqlite:a.db", "file:frames/out/", "--overwrite", timeout=30).check(3)
        assert "Read-only file system" in last_words(result)
    check_equal(tmp_path / "a.db", folder / "out/a.t.ndjson")


# -- the state's

def test_state_on_a_full_disk_ends_the_copy_which_goes_on_once_there_is_room(run, start, tmp_path,
                                                                          small):
    make_numbers(tmp_path / "a.db", rows=5000)
    arguments = ["copy", "sqlite:a.db", "file:out.ndjson", "--state", small.path / "state",
                 "--chunk-rows", "200"]
    process = start(*arguments, "--follow")
    process.wait_until(lambda: ends(tmp_path / "out.ndjson") == 1)
    small.fill()
    execute(tmp_path / "a.db", "UPDATE t SET v = 'later'")
    result = process.wait().check(3)
    assert "No space left on device" in last_words(result), result.err
    assert str(small.path / "state") in last_words(result)
    result = run(*arguments).check(3)
    assert "No space left on device" in last_words(result)
    small.empty()
    run(*arguments).check()
    check_equal(tmp_path / "a.db", tmp_path / "out.ndjson")


def test_state_without_room_for_anything_is_said_before_the_database_is_touched(run, tmp_path, small):
    make_numbers(tmp_path / "a.db", rows=50)
    small.fill()
    before = (tmp_path / "a.db").read_bytes()
    arguments = ["copy", "sqlite:a.db", "file:out.ndjson", "--state", small.path / "state"]
    result = run(*arguments).check(3)
    assert "No space left on device" in last_words(result)
    assert (tmp_path / "a.db").read_bytes() == before
    small.empty()
    run(*arguments).check()
    check_equal(tmp_path / "a.db", tmp_path / "out.ndjson")


def test_dead_letters_on_a_full_disk_leave_no_stub_without_its_letter(start, run, tmp_path, small):
    """The stub of a record whose letter could not be kept is not written."""
    make_numbers(tmp_path / "a.db", rows=300, text="y" * 3000)
    small.fill(leave=500000)
    arguments = ["copy", "sqlite:a.db", "file:out.ndjson", "--state", small.path / "state",
                 "--max-record-bytes", "1024"]
    process = start(*arguments)
    process.wait_for_line("dead_letters.ndjson: No space left on device")
    letters = small.path / "state" / "dead_letters.ndjson"
    out = tmp_path / "out.ndjson"
    stubs = out.read_bytes().count(b'"kind":"oversize"') if out.exists() else 0
    assert stubs <= letters.read_bytes().count(b"\n") < 300
    process.kill()
    (small.path / "filler").unlink()
    run(*arguments).check()
    assert out.read_bytes().count(b'"kind":"oversize"') == 300
    assert letters.read_bytes().count(b"\n") >= 300
    assert "300 stubs" in run("verify", "out.ndjson").check().out


# -- the database's

@pytest.mark.parametrize("journal", ["WAL", "DELETE"])
def test_database_on_a_full_disk_is_followed_and_pruned_once_there_is_room(start, run, tmp_path,
                                                                           small, journal):
    database = small.path / "a.db"
    make_numbers(database, rows=500, journal=journal)
    process = start("copy", f"sqlite:{database}", "file:out.ndjson", "--follow")
    out = tmp_path / "out.ndjson"
    process.wait_until(lambda: ends(out) == 1)
    execute(database, "UPDATE t SET v = v || ' before' WHERE id < 400")
    small.fill()
    process.wait_for_line("a.db.* database or disk is full; make room there; trying again")
    small.empty()
    execute(database, "UPDATE t SET v = v || ' after' WHERE id > 400")
    process.wait_until(lambda: out.read_bytes().count(b" after") == 99, 60, "the changes")
    with contextlib.closing(sqlite3.connect(database)) as db:
        wait_for(lambda: db.execute("SELECT count(*) FROM _tidemark_changes").fetchone()[0] <= 2,
                 what="the log to be pruned")
    process.interrupt().check()
    check_equal(database, out)


def test_database_without_room_for_triggers_is_left_as_it_was(run, tmp_path, small):
    database = small.path / "a.db"
    make_numbers(database, rows=500, journal="DELETE")
    small.fill()
    before = database.read_bytes()
    arguments = ["copy", f"sqlite:{database}", "file:out.ndjson"]
    result = run(*arguments, timeout=60).check(3)
    assert "a.db" in last_words(result) and "full" in last_words(result), result.err
    assert database.read_bytes() == before
    small.empty()
    run(*arguments).check()
    check_equal(database, tmp_path / "out.ndjson")


@pytest.mark.parametrize("journal", ["WAL", "DELETE"])
def test_database_that_becomes_read_only_is_followed_on_once_it_is_writable(start, run, tmp_path,
                                                                            small, journal):
    database = small.path / "a.db"
    make_numbers(database, rows=500, journal=journal)
    arguments = ["copy", f"sqlite:{database}", "file:out.ndjson"]
    process = start(*arguments, "--follow")
    out = tmp_path / "out.ndjson"
    process.wait_until(lambda: ends(out) == 1)
    process.kill()
    execute(database, "UPDATE t SET v = v || ' meanwhile' WHERE id < 100")
    assert small.read_only() is None
    result = run(*arguments).check(3)
    assert "a.db" in last_words(result) and "write" in last_words(result), result.err
    small.writable()
    run(*arguments).check()
    check_equal(database, out)
