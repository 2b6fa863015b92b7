"""A copy that is put behind an earlier one whose log has started over."""

import contextlib
import sqlite3

import pytest
from support import frames


@pytest.fixture
def database(tmp_path):
    path = tmp_path / "shop.db"
    with sqlite3.connect(path) as db:
        db.executescript("PRAGMA journal_mode = WAL; CREATE TABLE t (id INTEGER PRIMARY KEY, v);"
                         "INSERT INTO t SELECT value, 'old' FROM json_each('[1,2,3,4,5]')")
    return path


def change(database, *statements):
    with sqlite3.connect(database, timeout=20) as db:
        for statement in statements:
            db.execute(statement)


def check_equal(run, database, *paths):
    with sqlite3.connect(database) as db:
        tables = frames.rebuild(paths, frames.sqlite_keys(db, "shop"))
        assert frames.differences(tables, db, "shop") == []
    run("verify", *paths).check()


def run_once(start, tmp_path, what):
    process = start("run", "shop.yaml")
    process.wait_until(lambda: (tmp_path / "out.ndjson").exists()
                       and what in (tmp_path / "out.ndjson").read_bytes(), 30, f"{what}")
    process.wait_until(lambda: (tmp_path / "out.ndjson").read_bytes().count(b'"kind":"end"') > 0, 30)
    process.terminate().check()


def configure(tmp_path, existing):
    (tmp_path / "shop.yaml").write_text(
        "name: shop\nsource: sqlite:shop.db\nsinks:\n"
        f"  out: {{place: file:out.ndjson, existing: {existing}}}\n")


def test_append_after_detach_wins_over_what_is_there(run, start, database, tmp_path):
    configure(tmp_path, "refuse")
    process = start("run", "shop.yaml")
    process.wait_until(lambda: (tmp_path / "out.ndjson").exists()
                       and b'"kind":"end"' in (tmp_path / "out.ndjson").read_bytes(), 30, "the end")
    change(database, *[f"UPDATE t SET v = 'w{i}'" for i in range(6)])
    process.wait_until(lambda: b'"w5"' in (tmp_path / "out.ndjson").read_bytes(), 30, "w5")
    process.terminate().check()
    run("detach", "shop.yaml").check()
    change(database, "UPDATE t SET v = 'new'", "DELETE FROM t WHERE id = 4")
    configure(tmp_path, "append")
    run_once(start, tmp_path, b'"v":"new"')
    change(database, "UPDATE t SET v = 'newest' WHERE id = 2")
    run_once(start, tmp_path, b'"v":"newest"')
    check_equal(run, database, tmp_path / "out.ndjson")


def test_copy_appended_with_another_state_wins_over_what_is_there(run, database, tmp_path):
    run("copy", "sqlite:shop.db", "file:out.ndjson", "--state", "one").check()
    change(database, "UPDATE t SET v = 'between'")
    run("copy", "sqlite:shop.db", "file:out.ndjson", "--state", "two", "--append").check()
    change(database, "UPDATE t SET v = 'last'", "DELETE FROM t WHERE id = 1")
    run("copy", "sqlite:shop.db", "file:out.ndjson", "--state", "two", "--append").check()
    check_equal(run, database, tmp_path / "out.ndjson")


def test_append_to_an_archive_goes_on_under_one_source_though_it_was_detached(run, database,
                                                                              tmp_path):
    for number in range(3):
        change(database, f"UPDATE t SET v = 'copy {number}'")
        run("copy", "sqlite:shop.db", "archive:shop.tide", *(["--append"] if number else [])).check()
    with contextlib.closing(sqlite3.connect(tmp_path / "shop.tide")) as db:
        assert db.execute("SELECT COUNT(*) FROM sources").fetchone() == (1,)
    told = run("archive", "retain", "shop.tide", "--older-than", "0s").check().out
    assert ": 2 segments and 0 live rows forgotten" in told
    state = run("archive", "cat", "shop.tide").check().out
    assert state.count('"v":"copy 2"') == state.count("\n") == 5
    run("archive", "verify", "--full", "shop.tide").check()
    # Another database of that name is another source.
    (tmp_path / "other").mkdir()
    other = tmp_path / "other/shop.db"
    change(other, "CREATE TABLE t (id INTEGER PRIMARY KEY, v)")
    run("copy", f"sqlite:{other}", "archive:shop.tide", "--append").check()
    assert "source 2" in run("archive", "info", "shop.tide").check().out
