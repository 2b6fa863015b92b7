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
    run("copy", f"sqlite:{DATABASE}", "file:./", "--state", "state").check()
    assert (tmp_path / "a.t.ndjson").exists()


def test_state_beside_the_database_is_taken(run, database, tmp_path):
    run("copy", f"sqlite:{DATABASE}", "file:out/", "--state", ".").check()
    assert (tmp_path / "out/a.t.ndjson").exists()


def files(folder):
    """The bytes of every file below but the database, whose log may be folded in by reading."""
    return {path: path.read_bytes() for path in sorted(folder.rglob("*"))
            if path.is_file() and not path.name.startswith(DATABASE)}


@pytest.fixture
def refuse(run, database, tmp_path):
    """refuse(sinks, message, more): check and run say the same, once, and change nothing."""
    def call(sinks, message, more=""):
        lines = "".join(f"  s{n}: {{place: \"{place}\", existing: overwrite}}\n"
                        for n, place in enumerate(sinks))
        (tmp_path / "a.yaml").write_text(f"name: a\nsource: sqlite:a.db\n{more}sinks:\n{lines}")
        before = files(tmp_path)
        checked = run("check", "a.yaml")
        checked.check(1)
        problems = [line for line in checked.out.splitlines() if line.startswith("problem:")]
        assert len(problems) == 1 and message in problems[0], checked.out
        ran = run("run", "a.yaml", timeout=20)
        ran.check(2)
        assert message in ran.err, ran.err
        assert files(tmp_path) == before
    return call


@pytest.mark.parametrize("first, second", [
    ("file:a.ndjson", "file:./a.ndjson"),
    ("file:a.ndjson", "file:soft.ndjson"),
    ("file:there.ndjson", "file:soft.ndjson"),
    ("file:there.ndjson", "file:hard.ndjson"),
    ("file:there.ndjson", "file:folder/there.ndjson"),
    ("file:new.ndjson", "file:folder/new.ndjson"),
    ("file:a.ndjson", "file:.a.ndjson.tidemark"),
    ("archive:a.tide", "archive:./a.tide"),
    ("archive:a.tide", "archive:folder/a.tide"),
    ("archive:a.tide", "file:a.tide-wal"),
    ("file:d/", "file:./d//"),
    ("file:d/e/f/", "file:./d/./e/f/"),
    ("file:d/", "file:folder/d/"),
    ("file:out/", "file:out/a.t.ndjson"),
    ("file:out/a.t.ndjson", "file:out/"),
    ("file:out/", "file:folder/out/a.t.ndjson"),
    ("file:out/", "file:linked.ndjson"),
    ("file:out/", "file:out/.tidemark-held"),
])
def test_sinks_at_one_place_are_refused(refuse, tmp_path, first, second):
    if "soft.ndjson" in second:
        (tmp_path / "a.ndjson").write_text("")
    (tmp_path / "there.ndjson").write_text("")
    os.symlink("a.ndjson" if first == "file:a.ndjson" else "there.ndjson", tmp_path / "soft.ndjson")
    os.link(tmp_path / "there.ndjson", tmp_path / "hard.ndjson")
    os.symlink(".", tmp_path / "folder")
    (tmp_path / "out").mkdir()
    (tmp_path / "linked.ndjson").write_text("")
    os.link(tmp_path / "linked.ndjson", tmp_path / "out/a.t.ndjson")
    refuse([first, second], "where sink s0 writes too")


STATE = "state: st\n"


@pytest.mark.parametrize("place", [
    "file:st/dead_letters.ndjson", "file:./st/new.ndjson", "file:soft.ndjson", "file:hard.ndjson",
    "file:st/", "file:st", "archive:st/a.tide", "archive:hard.ndjson", "file:folder/st/lock",
    "file:st/lock/", "file:tables/"])
def test_sink_in_the_state_is_refused(refuse, tmp_path, place):
    (tmp_path / "st").mkdir(mode=0o700)
    (tmp_path / "st/dead_letters.ndjson").write_text("mine\n")
    os.symlink("st/dead_letters.ndjson", tmp_path / "soft.ndjson")
    os.link(tmp_path / "st/dead_letters.ndjson", tmp_path / "hard.ndjson")
    os.symlink(".", tmp_path / "folder")
    (tmp_path / "tables").mkdir()
    os.symlink("../st/dead_letters.ndjson", tmp_path / "tables/a.t.ndjson")
    refuse([place], "state directory", STATE)


def test_sink_in_a_state_that_is_not_there_yet_is_refused(refuse, tmp_path):
    refuse(["file:.tidemark/a/out.ndjson"], "state directory")
    refuse(["file:./.tidemark//a/"], "state directory")
    assert not (tmp_path / ".tidemark").exists()


@pytest.mark.parametrize("place", ["file:a.yaml", "file:./a.yaml", "archive:a.yaml", "file:soft",
                                   "file:hard.ndjson", "archive:hard.ndjson"])
def test_sink_on_the_configuration_is_refused(refuse, tmp_path, place):
    (tmp_path / "a.yaml").write_text("")
    os.symlink("a.yaml", tmp_path / "soft")
    os.link(tmp_path / "a.yaml", tmp_path / "hard.ndjson")
    refuse([place], "is the configuration a.yaml itself")


def test_configuration_named_from_elsewhere_is_known(run, database, tmp_path):
    text = "name: a\nsource: sqlite:a.db\nsinks: {s: {place: \"file:a.yaml\", existing: overwrite}}\n"
    (tmp_path / "a.yaml").write_text(text)
    (tmp_path / "else").mkdir()
    result = run("run", "../a.yaml", cwd=tmp_path / "else")
    result.check(2)
    assert "the configuration" in result.err and (tmp_path / "a.yaml").read_text() == text


def test_sinks_beside_each_other_are_taken(run, database, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "a.yaml").write_text(
        "name: a\nsource: sqlite:a.db\nstate: out/state\nsinks:\n  dir: file:out/\n"
        "  archive: archive:out/a.tide\n  below: file:out/more/\n  other: file:a.t.ndjson\n"
        "  text: file:out/a.t.txt\n  one: 'null:'\n  two: 'null:'\n")
    run("check", "a.yaml").check()
