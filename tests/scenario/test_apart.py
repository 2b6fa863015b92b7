"""A copy is never written over the database that it is made of, however its place is written."""

import os
import sqlite3

import pytest

DATABASE = "a.db"
SHADOWS = ["a.db-wal", "a.db-shm", "a.db-journal"]


@pytest.fixture
def database(tmp_path):
    """A database with rows, its log and index beside it, and a reader that keeps them there."""
    with sqlite3.connect(tmp_path / DATABASE) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, text TEXT)")
        db.executemany("INSERT INTO t VALUES (?, ?)", [(i, "x" * 50) for i in range(500)])
        db.commit()
        yield tmp_path / DATABASE
    db.close()


def contents(folder):
    """The bytes of every file; what SQLite keeps in shared memory may change by reading."""
    return {path.name: path.read_bytes() for path in folder.iterdir()
            if path.is_file() and not path.name.endswith("-shm")}


def refused(run, folder, *arguments):
    before = contents(folder)
    names = sorted(os.listdir(folder))
    result = run(*arguments)
    result.check(2)
    assert "source's own file" in result.err, result.err
    assert sorted(os.listdir(folder)) == names
    assert contents(folder) == before


@pytest.mark.parametrize("way", ["--overwrite", "--append", None])
@pytest.mark.parametrize("name", [DATABASE, "./a.db", *SHADOWS])
def test_sink_that_is_the_database_is_refused(run, database, tmp_path, name, way):
    refused(run, tmp_path, "copy", f"sqlite:{DATABASE}", f"file:{name}", *([way] if way else []))


@pytest.mark.parametrize("way", ["--overwrite", "--append"])
@pytest.mark.parametrize("link", [os.symlink, os.link])
@pytest.mark.parametrize("name", ["out.ndjson", ".out.ndjson.tidemark", "..out.ndjson.tidemark.tmp"])
def test_link_to_the_database_is_refused(run, database, tmp_path, link, name, way):
    link(database, tmp_path / name)
    refused(run, tmp_path, "copy", f"sqlite:{DATABASE}", "file:out.ndjson", way)


def test_database_named_by_a_link_is_known_by_its_own_name(run, database, tmp_path):
    os.symlink(DATABASE, tmp_path / "link.db")
    for name in [DATABASE, "link.db", *SHADOWS]:
        refused(run, tmp_path, "copy", "sqlite:link.db", f"file:{name}", "--overwrite")


def test_log_that_is_not_there_yet_is_refused(run, tmp_path):
    with sqlite3.connect(tmp_path / DATABASE) as db:
        db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")
    db.close()
    for name in [*SHADOWS, "a.db-wal/"]:
        refused(run, tmp_path, "copy", f"sqlite:{DATABASE}", f"file:{name}")
        refused(run, tmp_path, "copy", f"sqlite:{DATABASE}", "null:", "--state", name)


def test_state_that_is_the_database_is_refused(run, database, tmp_path):
    for name in [DATABASE, "./a.db/", *SHADOWS]:
        refused(run, tmp_path, "copy", f"sqlite:{DATABASE}", "null:", "--state", name)
    (tmp_path / "state").mkdir()
    os.link(database, tmp_path / "state" / "dead_letters.ndjson")
    refused(run, tmp_path, "copy", f"sqlite:{DATABASE}", "null:", "--state", "state")


@pytest.mark.parametrize("link", [os.symlink, os.link])
@pytest.mark.parametrize("name", ["a.t.ndjson", ".tidemark-held"])
def test_folder_with_a_link_to_the_database_is_refused(run, database, tmp_path, link, name):
    (tmp_path / "out").mkdir()
    link(database, tmp_path / "out" / name)
    refused(run, tmp_path, "copy", f"sqlite:{DATABASE}", "file:out/", "--overwrite")


def test_standard_output_at_the_database_is_refused(program, database, tmp_path):
    before = contents(tmp_path)
    code = os.spawnlp(os.P_WAIT, "sh", "sh", "-c",
                      f'cd "{tmp_path}" && "{program}" copy sqlite:a.db - >>a.db 2>err')
    assert code == 2 and "source's own file" in (tmp_path / "err").read_text()
    (tmp_path / "err").unlink()
    assert contents(tmp_path) == before


def test_configured_sink_that_is_the_database_is_refused(run, database, tmp_path):
    (tmp_path / "a.yaml").write_text(
        "name: a\nsource: sqlite:a.db\nsinks:\n"
        "  files: {place: file:a.db, existing: overwrite}\n")
    refused(run, tmp_path, "run", "a.yaml")


def test_sink_beside_the_database_is_taken(run, database, tmp_path):
    run("copy", f"sqlite:{DATABASE}", "file:./", "--state", ".").check()
    assert (tmp_path / "a.t.ndjson").exists()
