"""Files of a followed database that are replaced or removed beside it: the copy ends, and nothing of
what is there then is written over."""

import os
import shutil
import signal
import sqlite3

import pytest
from support.sqlite_copies import connect, execute, wait_equal

COPY = ["copy", "sqlite:shop.db", "file:out.ndjson", "--state", "state", "--follow", "--quiet"]


@pytest.fixture
def database(tmp_path):
    path = tmp_path / "shop.db"
    execute(path, "PRAGMA journal_mode = WAL; CREATE TABLE t (id INTEGER PRIMARY KEY, v);"
            "INSERT INTO t VALUES (1, 1), (2, 2)")
    return path


def remove(database, *suffixes):
    for suffix in suffixes:
        os.remove(f"{database}{suffix}")


def save(database):
    """A copy that is in WAL mode too."""
    source, target = connect(database), sqlite3.connect(database.with_name("saved.db"))
    source.backup(target)
    source.close()
    target.close()


def copy_over(database):
    shutil.copyfile(database.with_name("saved.db"), database)


REPLACED = {
    "rm of -wal and -shm, then cp": lambda database: (remove(database, "-wal", "-shm"),
                                                      copy_over(database)),
    "cp, then rm of -wal and -shm": lambda database: (copy_over(database),
                                                      remove(database, "-wal", "-shm")),
    "rm of -wal and -shm": lambda database: remove(database, "-wal", "-shm"),
    "rm of -shm": lambda database: remove(database, "-shm"),
}


def follow_and_replace(start, database, how):
    """Restores behind the back of a process that is held, so that it meets the new files at once."""
    process = start(*COPY)
    wait_equal(process, database, database.with_name("out.ndjson"))
    save(database)
    execute(database, "INSERT INTO t VALUES (3, 3); DELETE FROM t WHERE id = 1")
    wait_equal(process, database, database.with_name("out.ndjson"))
    os.kill(process.pid, signal.SIGSTOP)
    REPLACED[how](database)
    for row in range(100, 108):
        execute(database, f"INSERT INTO t VALUES ({row}, 'new')")
    return process


def assert_all_new_rows_are_there(database):
    db = connect(database)
    assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert db.execute("SELECT count(*) FROM t WHERE id >= 100").fetchone() == (8,)
    db.close()


@pytest.mark.parametrize("how", REPLACED)
def test_files_replaced_beside_a_copy_end_it_with_the_way_on(start, database, how):
    process = follow_and_replace(start, database, how)
    os.kill(process.pid, signal.SIGCONT)
    result = process.wait()
    assert result.code == 3, result.err
    assert "was replaced or removed while it was open" in result.err, result.err
    assert "start again, which looks" in result.err, result.err
    assert_all_new_rows_are_there(database)


@pytest.mark.parametrize("how", REPLACED)
def test_stopping_over_replaced_files_writes_nothing_into_them(start, database, how):
    process = follow_and_replace(start, database, how)
    process.signal(signal.SIGINT)
    os.kill(process.pid, signal.SIGCONT)
    process.wait()
    assert_all_new_rows_are_there(database)
