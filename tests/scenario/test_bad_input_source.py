"""SQLite databases that are none, that are damaged, locked, read-only, or gone."""

import contextlib
import os
import shutil
import sqlite3
import time

import pytest
from support.process import soak
from support.trouble import (check_equal, damage, ends, execute, locked, make_numbers, one_sentence,
                             read_only)

MEND = "PRAGMA integrity_check"


@pytest.fixture
def database(tmp_path):
    make_numbers(tmp_path / "a.db")
    return tmp_path / "a.db"


NO_DATABASE = {
    "text": (b"hello, this is no database, but long enough to be one" * 50, 3, "not an SQLite database"),
    "random": (bytes(range(256)) * 400, 3, "not an SQLite database"),
    "header_alone": (b"SQLite format 3\0", 3, "not an SQLite database"),
    "header_and_zeros": (b"SQLite format 3\0" + bytes(4080), 3, "not an SQLite database"),
    "empty": (b"", 2, "there is none"),
}


@pytest.mark.parametrize("what", NO_DATABASE)
def test_file_that_is_no_database_is_named_and_not_touched(run, tmp_path, what):
    content, code, words = NO_DATABASE[what]
    (tmp_path / "no.db").write_bytes(content)
    one_sentence(run("copy", "sqlite:no.db", "file:out.ndjson"), code, words)
    assert (tmp_path / "no.db").read_bytes() == content
    if content:
        one_sentence(run("check", "sqlite:no.db"), 3, "no.db", words)
        one_sentence(run("detach", "sqlite:no.db"), 3, "no.db", words)
    assert not (tmp_path / "out.ndjson").exists() or not (tmp_path / "out.ndjson").read_bytes()


def test_empty_database_is_copied_once_it_has_tables(run, tmp_path):
    (tmp_path / "no.db").touch()
    run("copy", "sqlite:no.db", "file:out.ndjson").check(2)
    execute(tmp_path / "no.db", "CREATE TABLE t (id INTEGER PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    run("copy", "sqlite:no.db", "file:out.ndjson").check()
    check_equal(tmp_path / "no.db", tmp_path / "out.ndjson")


@pytest.mark.parametrize("kind", ["directory", "fifo", "device"])
def test_database_that_is_no_file_is_refused(run, tmp_path, kind):
    path = "/dev/zero" if kind == "device" else "odd"
    if kind != "device":
        (os.mkdir if kind == "directory" else os.mkfifo)(tmp_path / "odd")
    one_sentence(run("copy", f"sqlite:{path}", "null:", timeout=10), 2, path, "is not a file")


def test_database_that_is_not_there_is_failed_and_made_by_nobody(run, tmp_path):
    for command in (["copy", "sqlite:no.db", "null:"], ["check", "sqlite:no.db"],
                    ["detach", "sqlite:no.db"], ["copy", "sqlite:no/such.db", "null:"]):
        one_sentence(run(*command), 3, "cannot open the SQLite database no", "No such file")
    assert not (tmp_path / "no.db").exists()


def test_database_that_came_back_is_followed_on(run, start, database, tmp_path):
    """It vanishes while it is followed, is written to under another name, and comes back."""
    arguments = ["copy", "sqlite:a.db", "file:out.ndjson", "--follow"]
    process = start(*arguments)
    process.wait_until(lambda: ends(tmp_path / "out.ndjson") == 1)
    away = {path: path.with_name("away" + path.name[1:]) for path in tmp_path.glob("a.db*")}
    for path, to in away.items():
        path.rename(to)
    execute(tmp_path / "away.db", "UPDATE t SET v = 'written while away' WHERE id = 7")
    one_sentence(process.wait(), 3, "a.db is not there any more")
    for path, to in {p: t for p, t in away.items() if t.exists()}.items():
        to.rename(path)
    run("copy", "sqlite:a.db", "file:out.ndjson").check()
    check_equal(database, tmp_path / "out.ndjson")


def test_database_replaced_by_an_older_copy_of_itself_is_not_followed(run, start, database, tmp_path):
    """The next start looks whether it is the same; here it is, and has nothing that was not copied."""
    process = start("copy", "sqlite:a.db", "file:out.ndjson", "--follow")
    process.wait_until(lambda: ends(tmp_path / "out.ndjson") == 1)
    with contextlib.closing(sqlite3.connect(database)) as db:
        db.execute("VACUUM INTO ?", (str(tmp_path / "older.db"),))
    for left in ("-wal", "-shm"):
        os.unlink(f"{database}{left}")
    os.replace(tmp_path / "older.db", database)
    one_sentence(process.wait(), 3, "a.db is another file", "start again")
    again = run("copy", "sqlite:a.db", "file:out.ndjson")
    assert again.code == 0 or "--overwrite" in again.err, again.err
    if again.code == 0:
        check_equal(database, tmp_path / "out.ndjson")


@pytest.fixture
def both(tmp_path):
    """A database in each journal mode."""
    for journal in ("wal", "delete"):
        make_numbers(tmp_path / f"{journal}.db", journal=journal)
    return [tmp_path / "wal.db", tmp_path / "delete.db"]


def test_locked_database_is_waited_for(start, both, tmp_path):
    with contextlib.ExitStack() as stack:
        for path in both:
            stack.enter_context(locked(path))
        started = [start("copy", f"sqlite:{path.name}", f"file:{path.stem}.ndjson") for path in both]
        time.sleep(1)
        assert all(process.running() for process in started)
    for path, process in zip(both, started):
        process.wait(30).check()
        check_equal(path, tmp_path / f"{path.stem}.ndjson")


@pytest.mark.soak_only
def test_database_locked_for_ever_is_named_and_copied_once_it_is_free(run, start, both, tmp_path):
    """It takes as long as the program's patience, 20 seconds."""
    with contextlib.ExitStack() as stack:
        started = []
        for path in both:
            stack.enter_context(locked(path))
            started.append(start("copy", f"sqlite:{path.name}", f"file:{path.stem}.ndjson"))
        for path, process in zip(both, started):
            one_sentence(process.wait(60), 3, path.name, "another process kept the database locked",
                         "end its transaction and try again")
    for path in both:
        run("copy", f"sqlite:{path.name}", f"file:{path.stem}.ndjson").check()
        check_equal(path, tmp_path / f"{path.stem}.ndjson")


def test_database_locked_while_it_is_followed_is_waited_for(start, both, tmp_path):
    outs = [tmp_path / f"{path.stem}.ndjson" for path in both]
    started = [start("copy", f"sqlite:{path.name}", f"file:{out.name}", "--follow")
               for path, out in zip(both, outs)]
    with contextlib.ExitStack() as stack:
        writers = []
        for path, out, process in zip(both, outs, started):
            process.wait_until(lambda out=out: ends(out) == 1)
            writers.append(stack.enter_context(contextlib.closing(
                sqlite3.connect(path, isolation_level=None, timeout=30))))
            writers[-1].execute("BEGIN EXCLUSIVE")
            writers[-1].execute("UPDATE t SET v = 'while locked' WHERE id = 3")
        time.sleep(soak(2, 20))
        assert all(process.running() for process in started)
        for writer in writers:
            writer.execute("COMMIT")
    for path, out, process in zip(both, outs, started):
        process.wait_until(lambda out=out: b"while locked" in out.read_bytes(), 30, "the change")
        process.interrupt().check()
        check_equal(path, out)


def test_stop_while_the_database_is_locked_takes_no_longer_than_seconds(start, database, tmp_path):
    process = start("copy", "sqlite:a.db", "file:out.ndjson", "--follow")
    process.wait_until(lambda: ends(tmp_path / "out.ndjson") == 1)
    with contextlib.closing(sqlite3.connect(database, isolation_level=None, timeout=30)) as db:
        db.execute("BEGIN EXCLUSIVE")
        process.interrupt(timeout=20)
        assert process.code in (0, 3)


@pytest.mark.parametrize("what", ["file", "folder"])
def test_read_only_database_says_so_and_is_copied_once_it_is_writable(run, tmp_path, what):
    folder = tmp_path / "data"
    folder.mkdir()
    make_numbers(folder / "a.db")
    arguments = ["copy", "sqlite:data/a.db", "file:out.ndjson"]
    with read_only(folder / "a.db" if what == "file" else folder):
        one_sentence(run(*arguments), 3, "a.db", "cannot be written", "write access")
        assert "can be copied" in run("check", "sqlite:data/a.db").out
    run(*arguments).check()
    check_equal(folder / "a.db", tmp_path / "out.ndjson")


def test_damaged_page_is_never_taken_for_the_end(run, database, tmp_path):
    """The copy ends with where and why, is told from a complete one, and goes on when mended."""
    execute(database)
    arguments = ["copy", "sqlite:a.db", "file:out.ndjson", "--chunk-rows", "100"]
    with contextlib.closing(sqlite3.connect(database)) as db:
        db.execute("PRAGMA journal_mode = DELETE")
    mend = damage(database)
    one_sentence(run(*arguments), 3, "a.db", "damaged", MEND)
    verdict = run("verify", "out.ndjson").check(1)
    assert "open" in verdict.out
    mend()
    result = run(*arguments).check()
    assert "going on" in result.err
    check_equal(database, tmp_path / "out.ndjson")


def test_database_cut_short_is_failed(run, database, tmp_path):
    with contextlib.closing(sqlite3.connect(database)) as db:
        db.execute("PRAGMA journal_mode = DELETE")
    shutil.copy(database, tmp_path / "whole.db")
    os.truncate(database, database.stat().st_size // 2)
    for command in (["copy", "sqlite:a.db", "file:out.ndjson"], ["check", "sqlite:a.db"]):
        one_sentence(run(*command), 3, "a.db", "damaged", MEND)
    shutil.copyfile(tmp_path / "whole.db", database)
    run("copy", "sqlite:a.db", "file:out.ndjson").check()


def test_damaged_log_of_ours_ends_the_copy(run, start, database, tmp_path):
    """The application's pages are whole; ours are not: nothing is guessed."""
    arguments = ["copy", "sqlite:a.db", "file:out.ndjson", "--follow"]
    process = start(*arguments)
    process.wait_until(lambda: ends(tmp_path / "out.ndjson") == 1)
    process.kill()
    execute(database, "UPDATE t SET v = v || '!'")
    with contextlib.closing(sqlite3.connect(database)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        root, = db.execute("SELECT rootpage FROM sqlite_schema WHERE name = '_tidemark_changes'"
                           ).fetchone()
        db.execute("PRAGMA journal_mode = DELETE")
    mend = damage(database, root - 1, 1)
    one_sentence(run("copy", "sqlite:a.db", "file:out.ndjson"), 3, "a.db", "damaged", MEND)
    mend()
    run("copy", "sqlite:a.db", "file:out.ndjson").check()
    check_equal(database, tmp_path / "out.ndjson")


@pytest.mark.parametrize("glob", ["zzz*", "zzz", "T", "t.v", "main.t ", "[t]"])
def test_tables_that_match_nothing_are_wrong_usage(run, database, tmp_path, glob):
    before = database.read_bytes()
    one_sentence(run("copy", "sqlite:a.db", "file:out.ndjson", "--tables", glob), 2,
                 "no table of the database matches", glob)
    assert database.read_bytes() == before
    assert not (tmp_path / "out.ndjson").exists()
