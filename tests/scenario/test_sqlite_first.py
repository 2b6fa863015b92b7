"""SQLite: beginning a copy, beginning it beside another, and beginning anew."""

import sqlite3

import pytest


@pytest.fixture
def database(tmp_path):
    path = tmp_path / "shop.db"
    with sqlite3.connect(path) as db:
        db.executescript("CREATE TABLE t (id INTEGER PRIMARY KEY, a);"
                         "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500)"
                         " INSERT INTO t SELECT i, 'row' FROM n")
    db.close()
    return path


def ours(path):
    db = sqlite3.connect(path)
    try:
        return db.execute("SELECT name FROM sqlite_schema WHERE name GLOB '*_tidemark_*'").fetchall()
    finally:
        db.close()


def test_two_first_copies_at_once_both_end_complete(run, start, database):
    """The second to install may be told to run again: then nothing of its was left, and it works."""
    for number in range(6):
        names = [f"a{number}.ndjson", f"b{number}.ndjson"]
        both = [start("copy", "sqlite:shop.db", f"file:{name}") for name in names]
        for name, process in zip(names, both):
            result = process.wait()
            if result.code != 0:
                assert "another copy has just been set up on this database" in result.err
                run("copy", "sqlite:shop.db", f"file:{name}").check()
            assert "complete" in run("verify", name).check().out
        assert ours(database) == []


def test_a_copy_goes_on_after_a_schema_change(run, database):
    copy = ["copy", "sqlite:shop.db", "file:out.ndjson"]
    run(*copy, "--keep").check()
    with sqlite3.connect(database) as db:
        db.execute("ALTER TABLE t ADD COLUMN b")
    db.close()
    run(*copy).check()
    out = (database.parent / "out.ndjson").read_text()
    assert '"record":{"id":500,"a":"row","b":null}' in out
    assert "complete" in run("verify", "out.ndjson").check().out
    assert ours(database) == []
