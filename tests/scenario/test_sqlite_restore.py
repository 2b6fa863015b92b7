"""A database that is restored, replaced or copied over under a copy ends it, with the ways on."""

import os
import re
import shutil
import sqlite3

import pytest
from support.sqlite_copies import connect, execute, wait_equal

COPY = ["copy", "sqlite:shop.db", "file:out.ndjson", "--state", "state", "--follow"]
WAYS_ON = re.compile(r"start anew with another state directory|start again, which looks|"
                     r"restore the right", re.S)


def backup(database, to):
    with connect(database) as source, sqlite3.connect(to) as target:
        source.backup(target)
    source.close()
    target.close()


def restore_by_api(saved, database):
    with sqlite3.connect(saved) as source, connect(database) as target:
        source.backup(target)
    source.close()
    target.close()


def restore_by_move(saved, database):
    for suffix in ("-wal", "-shm"):
        if os.path.exists(f"{database}{suffix}"):
            os.remove(f"{database}{suffix}")
    os.replace(shutil.copy(saved, f"{saved}.again"), database)


def restore_by_copy(saved, database):
    shutil.copyfile(saved, database)


RESTORES = {"the backup API": restore_by_api, "mv": restore_by_move, "cp": restore_by_copy}


# Nobody may copy over a file beside its WAL: what counts then is still the WAL.
JOURNALS = {"the backup API": "WAL", "mv": "DELETE", "cp": "DELETE"}


@pytest.fixture
def database(tmp_path, request):
    how = request.node.callspec.params.get("how") if hasattr(request.node, "callspec") else None
    path = tmp_path / "shop.db"
    execute(path, f"PRAGMA journal_mode = {JOURNALS.get(how, 'WAL')};"
            "CREATE TABLE t (id INTEGER PRIMARY KEY, v); INSERT INTO t VALUES (1, 1), (2, 2)")
    return path


def confirmed(database):
    db = connect(database)
    try:
        return db.execute("SELECT confirmed, nonce FROM _tidemark_pipelines").fetchone()
    finally:
        db.close()


def follow(start, database, tmp_path):
    out = tmp_path / "out.ndjson"
    process = start(*COPY)
    process.wait_until(out.exists, what="the file")
    wait_equal(process, database, out)
    return process


def expect_end(result):
    assert result.code == 3, result.err
    assert WAYS_ON.search(result.err), result.err


def fill(database, first):
    """More entries than were lost, of other rows."""
    execute(database, f"INSERT INTO t SELECT {first} + value, 9 FROM json_each('[1,2,3,4,5,6,7,8,9]')")


@pytest.mark.parametrize("how", RESTORES)
@pytest.mark.parametrize("is_old", [True, False], ids=["old backup", "backup of a moment ago"])
def test_restore_while_it_is_followed_ends_the_copy(start, database, tmp_path, how, is_old):
    process = follow(start, database, tmp_path)
    backup(database, tmp_path / "saved.db")
    if is_old:
        before = confirmed(database)
        execute(database, "INSERT INTO t VALUES (3, 3)")
        process.wait_until(lambda: confirmed(database)[1] != before[1], what="a confirm")
    execute(database, "INSERT INTO t VALUES (4, 4); DELETE FROM t WHERE id = 1")
    wait_equal(process, database, tmp_path / "out.ndjson")
    RESTORES[how](tmp_path / "saved.db", database)
    fill(database, 100)
    expect_end(process.wait())


@pytest.mark.parametrize("how", ["mv", "the backup API"])
@pytest.mark.parametrize("is_old", [True, False], ids=["old backup", "backup of a moment ago"])
@pytest.mark.parametrize("ends", ["killed", "stopped"])
def test_restore_while_nobody_follows_is_found_with_the_next_start(start, run, database, tmp_path,
                                                                  how, is_old, ends):
    process = follow(start, database, tmp_path)
    backup(database, tmp_path / "saved.db")
    if is_old:
        before = confirmed(database)
        execute(database, "INSERT INTO t VALUES (3, 3)")
        process.wait_until(lambda: confirmed(database)[1] != before[1], what="a confirm")
    execute(database, "INSERT INTO t VALUES (4, 4); DELETE FROM t WHERE id = 1")
    wait_equal(process, database, tmp_path / "out.ndjson")
    if ends == "killed":
        before = confirmed(database)
        process.wait_until(lambda: confirmed(database) != before, what="a confirm")
        process.kill()
    else:
        process.interrupt().check()
    RESTORES[how](tmp_path / "saved.db", database)
    fill(database, 100)
    expect_end(run(*COPY))


def test_a_backup_of_where_it_stands_may_be_restored(start, database, tmp_path):
    """Nothing is lost, so nothing needs to end."""
    process = follow(start, database, tmp_path)
    process.interrupt().check()
    backup(database, tmp_path / "saved.db")
    restore_by_move(tmp_path / "saved.db", database)
    fill(database, 100)
    process = start(*COPY)
    wait_equal(process, database, tmp_path / "out.ndjson")
    process.interrupt().check()


def test_a_copied_database_is_told_from_the_first_where_it_went_its_own_way(start, run, database,
                                                                            tmp_path):
    process = follow(start, database, tmp_path)
    process.interrupt().check()
    backup(database, tmp_path / "other.db")
    execute(database, "INSERT INTO t VALUES (3, 3)")
    process = start(*COPY)
    wait_equal(process, database, tmp_path / "out.ndjson")
    process.interrupt().check()
    fill(tmp_path / "other.db", 200)
    restore_by_move(tmp_path / "other.db", database)
    expect_end(run(*COPY))
    assert "nothing of ours is left" in run("detach", "sqlite:shop.db").check().out
