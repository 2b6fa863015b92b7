"""What is put into an SQLite database, shared by pipelines, and taken away again."""

import os
import pathlib
import shutil
import sqlite3
import subprocess
import tempfile
import time

import pytest

from support import process, sqlite_ddl
from support.sqlite_log_reader import LOG

OURS = "SELECT count(*) FROM sqlite_schema WHERE name GLOB '*_tidemark_*'"


def connect(path):
    return sqlite3.connect(path, isolation_level=None)


@pytest.fixture
def path(tmp_path):
    path = str(tmp_path / "shop.db")
    with connect(path) as app:
        app.executescript("CREATE TABLE a (id INTEGER PRIMARY KEY, v);"
                          "CREATE TABLE b (x, y, z, PRIMARY KEY (x, y, z)) WITHOUT ROWID;"
                          "CREATE TABLE c (v)")
    return path


def query(path, sql):
    connection = connect(path)
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


def triggers(path):
    return [row[0] for row in query(path, "SELECT name FROM sqlite_schema WHERE type = 'trigger'")]


def test_install_uninstall_leaves_the_schema_as_it_was(path):
    before = query(path, "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY rowid")
    sqlite_ddl.install(path, "p")
    assert query(path, OURS) != [(0,)]
    assert query(path, f"SELECT id, t, op FROM {LOG}") == [(1, 0, 0)]
    assert query(path, "SELECT rowid FROM _tidemark_canary") == [(7,)]
    said = sqlite_ddl.uninstall(path, "p")
    assert any("nothing of ours is left" in line for line in said)
    assert query(path, "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY rowid") == before
    assert query(path, "PRAGMA integrity_check") == [("ok",)]


def test_pipelines_share_one_log(path):
    sqlite_ddl.install(path, "p", "a")
    assert query(path, f"SELECT count(*) FROM pragma_table_info('{LOG[1:-1]}')") == [(5,)]
    with connect(path) as app:
        app.execute("INSERT INTO a VALUES (1, 1)")
    watch = sqlite_ddl.Watch(path, "p", "a")
    b, = sqlite_ddl.install(path, "q", "b")
    assert watch.look() == "moved"              # the log grew wider; that is nothing to p
    watch.close()
    assert b.number == 2
    assert query(path, "SELECT name, confirmed, tables FROM _tidemark_pipelines ORDER BY 1") == [
        ("p", 1, ",1,"), ("q", 3, ",2,")]
    with connect(path) as app:
        app.execute("INSERT INTO b VALUES (1, 2, 3)")
    assert query(path, f"SELECT t, op, k1, k2, k3 FROM {LOG} WHERE id > 1") == [
        (1, 1, 1, None, None), (2, 6, "b", None, None), (2, 1, 1, 2, 3)]
    said = sqlite_ddl.uninstall(path, "q")
    assert any("in place for pipeline p" in line for line in said)
    assert not [name for name in triggers(path) if "_2_" in name]     # nobody wants b any more
    assert sqlite_ddl.load(path, "p", 2, "a")
    sqlite_ddl.uninstall(path, "p")
    assert query(path, OURS) == [(0,)]


def test_install_again_keeps_numbers_and_triggers(path):
    first = sqlite_ddl.install(path, "p")
    version = query(path, "PRAGMA schema_version")
    assert sqlite_ddl.install(path, "p") == first
    assert sqlite_ddl.install(path, "q", "a", "c") == [first[0], first[2]]
    assert query(path, "PRAGMA schema_version") == version
    assert query(path, f"SELECT id, op FROM {LOG}") == [(1, 0)]


def noted(path):
    return query(path, f"SELECT op, t, k1 FROM {LOG} WHERE op > 4 ORDER BY id")


def test_install_remakes_what_has_changed_and_others_are_told(path):
    sqlite_ddl.install(path, "p")
    with connect(path) as app:
        app.execute("INSERT INTO a VALUES (1, 1)")
        app.execute("CREATE UNIQUE INDEX u ON a (v)")
    assert sqlite_ddl.install(path, "q", "a")[0].number == 4
    assert "_tidemark_4_bi" in triggers(path)
    assert noted(path) == [(6, 4, "a")]
    assert [table.number for table in sqlite_ddl.load(path, "p", 1)] == [4, 2, 3]
    assert query(path, "SELECT confirmed, tables FROM _tidemark_pipelines ORDER BY name") == [
        (1, ",2,3,4,"), (3, ",4,")]


def test_install_makes_its_insert_trigger_the_newest(path):
    sqlite_ddl.install(path, "p")
    with connect(path) as app:
        app.execute("CREATE TRIGGER u AFTER INSERT ON a BEGIN SELECT RAISE(IGNORE); END")
        app.execute("INSERT INTO a VALUES (1, 1)")
        assert query(path, f"SELECT count(*) FROM {LOG} WHERE t = 1") == [(0,)]
        number = sqlite_ddl.install(path, "p")[0].number
        app.execute("INSERT INTO a VALUES (2, 1)")
    assert query(path, f"SELECT op, k1 FROM {LOG} WHERE t = {number}") == [(1, 2)]


def test_install_after_a_rename_gives_a_new_number(path):
    sqlite_ddl.install(path, "p")
    with connect(path) as app:
        app.execute("ALTER TABLE a RENAME TO aa")
    tables = {table.name: table.number for table in sqlite_ddl.install(path, "p")}
    assert tables == {"aa": 4, "b": 2, "c": 3}
    assert not [name for name in triggers(path) if "_1_" in name]
    assert len([name for name in triggers(path) if "_4_" in name]) == 3
    assert query(path, "SELECT t FROM _tidemark_tables ORDER BY t") == [(2,), (3,), (4,)]


def test_install_after_a_rebuild_takes_the_new_table(path):
    sqlite_ddl.install(path, "p")
    with connect(path) as app:
        app.executescript("ALTER TABLE a RENAME TO old; CREATE TABLE a (id INTEGER PRIMARY KEY, v)")
        tables = {table.name: table.number for table in sqlite_ddl.install(path, "p", "a", "b", "c")}
        app.execute("INSERT INTO old VALUES (1, 1)")
        app.execute("INSERT INTO a VALUES (2, 2)")
    assert tables == {"a": 4, "b": 2, "c": 3}
    assert query(path, f"SELECT t, op, k1 FROM {LOG} WHERE t > 0") == [(4, 1, 2)]


def test_install_after_vacuum_sets_the_canary_and_others_are_told(path):
    sqlite_ddl.install(path, "p")
    with connect(path) as app:
        app.execute("INSERT INTO a VALUES (1, 1)")
        app.execute("VACUUM")
    sqlite_ddl.install(path, "q", "a")
    assert query(path, "SELECT rowid FROM _tidemark_canary") == [(7,)]
    assert noted(path) == [(6, 4, "c")]
    assert [table.number for table in sqlite_ddl.load(path, "p", 1)] == [1, 2, 4]


def test_install_after_the_log_was_emptied_is_another_source(path):
    sqlite_ddl.install(path, "p")
    before = query(path, "SELECT v FROM _tidemark_state WHERE k = 'source_id'")
    with connect(path) as app:
        app.execute(f"DELETE FROM {LOG}")
    sqlite_ddl.install(path, "q")
    assert query(path, "SELECT v FROM _tidemark_state WHERE k = 'source_id'") != before


def test_install_leaves_tables_that_cannot_be_followed(path):
    with connect(path) as app:
        app.create_collation("mine", lambda a, b: 0)
        app.executescript("CREATE TABLE d (k TEXT COLLATE mine PRIMARY KEY);"
                          "CREATE VIRTUAL TABLE f USING fts5 (x)")
    assert [table.name for table in sqlite_ddl.install(path, "p")] == ["a", "b", "c"]
    with pytest.raises(sqlite_ddl.Failed, match="no such collation sequence: mine"):
        sqlite_ddl.install(path, "q", "d")


def test_new_tables_are_captured_with_the_next_load(path):
    sqlite_ddl.install(path, "p")
    with connect(path) as app:
        app.execute("CREATE TABLE d (v)")
    assert [table.name for table in sqlite_ddl.load(path, "p", 1)] == ["a", "b", "c", "d"]
    assert noted(path) == [(6, 4, "d")]


@pytest.mark.parametrize("missing", [
    "DROP TABLE _tidemark_changes", "DROP TABLE _tidemark_tables", "DROP TABLE _tidemark_state",
    "DROP TABLE _tidemark_pipelines", "DROP TABLE _tidemark_canary", "DROP TRIGGER _tidemark_1_ad",
    "DELETE FROM _tidemark_tables", "DELETE FROM _tidemark_pipelines", "DROP TABLE a"])
@pytest.mark.parametrize("pipeline", ["p", ""])
def test_uninstall_works_on_what_is_left(path, missing, pipeline):
    sqlite_ddl.install(path, "p")
    with connect(path) as app:
        app.execute(missing)
    sqlite_ddl.uninstall(path, pipeline)
    assert query(path, OURS) == [(0,)]
    assert any("nothing of ours is in" in line for line in sqlite_ddl.uninstall(path, "p"))


@pytest.mark.parametrize("missing", [
    "DROP TABLE _tidemark_changes", "DROP TABLE _tidemark_tables", "DROP TABLE _tidemark_state",
    "DROP TABLE _tidemark_pipelines", "DROP TABLE _tidemark_canary", "DROP TRIGGER _tidemark_1_ad"])
def test_install_mends_what_is_left(path, missing):
    sqlite_ddl.install(path, "p")
    with connect(path) as app:
        app.execute(missing)
    tables = sqlite_ddl.install(path, "p")
    with connect(path) as app:
        app.executescript("INSERT INTO a VALUES (1, 1); DELETE FROM a")
    number = tables[0].number
    assert query(path, f"SELECT t, op, k1 FROM {LOG} WHERE t > 0") == [(number, 1, 1), (number, 3, 1)]
    assert sqlite_ddl.load(path, "p", 1) == tables
    assert not [name for name in triggers(path) if not name.startswith(
        tuple(f"_tidemark_{table.number}_" for table in tables))]


def test_removal_by_hand_works_as_documented(path):
    page = (process.ROOT / "docs" / "sqlite.md").read_text().split("## Taking it away by hand")[1]
    sql = "\n".join(line[4:] for line in page.splitlines() if line.startswith("    "))
    first, rest = sql.split("-- run what that printed, and then")
    sqlite_ddl.install(path, "p")
    with connect(path) as app:
        for drop, in app.execute(first).fetchall():
            app.execute(drop)
        app.executescript(rest)
    assert query(path, OURS) == [(0,)]


def test_uninstall_of_another_name_leaves_all(path):
    sqlite_ddl.install(path, "p")
    before = query(path, OURS)
    said = sqlite_ddl.uninstall(path, "q")
    assert said == ["pipeline q was not there",
                    "left triggers and log in place for pipeline p, which has confirmed 1"]
    assert query(path, OURS) == before


def test_install_behind_a_lock_says_how_long_it_waited(path):
    with connect(path) as app:
        app.execute("BEGIN IMMEDIATE")
        started = time.monotonic()
        with pytest.raises(sqlite_ddl.Failed, match=r"for longer than \d+\.\d s") as failed:
            sqlite_ddl.install(path, "p")
        assert time.monotonic() - started < 20
        app.execute("ROLLBACK")
    assert failed.value.status == "timeout"
    assert query(path, OURS) == [(0,)]


def test_install_into_a_read_only_file_says_so(path, tmp_path):
    with connect(path) as app:
        app.execute("PRAGMA journal_mode = wal")
    os.chmod(path, 0o444)
    if os.access(path, os.W_OK):
        pytest.skip("this user may write everything")
    with pytest.raises(sqlite_ddl.Failed, match="write access") as failed:
        sqlite_ddl.install(path, "p")
    assert failed.value.status == "io"


NOBODY = 65534


@pytest.fixture
def open_folder():
    """One that any user may write."""
    with tempfile.TemporaryDirectory(prefix="tidemark_test_") as folder:
        os.chmod(folder, 0o777)
        yield pathlib.Path(folder)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_copy_that_may_not_write_the_file_leaves_nothing_in_the_way(open_folder, program):
    def as_nobody(*args):
        return subprocess.run([program, *args], cwd=open_folder, user=NOBODY, group=NOBODY,
                              extra_groups=[], capture_output=True, text=True, timeout=30)
    path = open_folder / "shop.db"
    app = connect(path)
    app.executescript("PRAGMA journal_mode = wal; CREATE TABLE a (id INTEGER PRIMARY KEY)")
    app.close()
    os.chmod(path, 0o444)
    try:
        refused = as_nobody("copy", "sqlite:shop.db", "file:out.ndjson")
    except PermissionError:
        pytest.skip("the program is where only root may run it")
    assert refused.returncode != 0 and "write access" in refused.stderr
    assert as_nobody("check", "sqlite:shop.db").returncode == 1
    assert not list(open_folder.glob("shop.db-*"))
    os.chmod(path, 0o666)
    again = as_nobody("copy", "sqlite:shop.db", "file:out.ndjson")
    assert again.returncode == 0, again.stderr


@pytest.mark.parametrize("command", [["detach", "sqlite:empty.db"], ["check", "sqlite:empty.db"],
                                     ["copy", "sqlite:empty.db", "file:out.ndjson"]])
def test_an_empty_file_stays_empty(run, tmp_path, command):
    (tmp_path / "empty.db").touch()
    run(*command)
    assert (tmp_path / "empty.db").stat().st_size == 0


def test_check_tells_of_locks_in_wal_mode(path):
    with connect(path) as app:
        app.execute("PRAGMA journal_mode = wal")
    remarks = [what for is_problem, what, _ in sqlite_ddl.check(path) if not is_problem]
    assert any("journal_mode is wal" in what and "busy_timeout" in what for what in remarks)


@pytest.mark.parametrize("table, is_told", [
    ("k (k PRIMARY KEY, v)", True), ("k (k BLOB PRIMARY KEY, v)", True),
    ("k (v, k NOT NULL UNIQUE)", True), ("k (k ANY PRIMARY KEY) STRICT", True),
    ("k (k BLOB PRIMARY KEY) STRICT", False), ("k (k TEXT PRIMARY KEY, v)", False),
    ("k (k INTEGER PRIMARY KEY, v)", False), ("k (v)", False)])
def test_check_tells_of_keys_that_take_any_type(path, table, is_told):
    with connect(path) as app:
        app.execute(f"CREATE TABLE {table}")
    found = [what for _, what, _ in sqlite_ddl.check(path, "k") if "key of table k takes" in what]
    assert len(found) == is_told


def test_check_finds_what_keeps_a_copy_from_working(path):
    with connect(path) as app:
        app.executescript("CREATE TABLE d (_rowid_, rowid, oid); CREATE TABLE e (k TEXT PRIMARY KEY);"
                          "CREATE VIRTUAL TABLE f USING fts5 (x);"
                          "CREATE TRIGGER u AFTER INSERT ON a BEGIN SELECT RAISE(IGNORE); END")
    problems = [what for is_problem, what, _ in sqlite_ddl.check(path) if is_problem]
    remarks = " / ".join(what for is_problem, what, _ in sqlite_ddl.check(path) if not is_problem)
    assert len(problems) == 1 and "table d cannot be followed" in problems[0]
    for word in ("journal_mode is delete", "table c has no key and no index", "key of table e may",
                 "table f cannot be followed", "AFTER INSERT trigger u on table a"):
        assert word in remarks
    assert "f_data" not in remarks
    assert [what for is_problem, what, _ in sqlite_ddl.check(path, "f", "x*") if is_problem] == [
        'no table of the database matches "x*"; names are matched with upper and lower case, * and ?']
    assert any(is_problem and "table f " in what for is_problem, what, _ in
               sqlite_ddl.check(path, "f"))


def test_check_changes_nothing_and_tells_of_pipelines(path):
    sqlite_ddl.install(path, "p")
    with open(path, "rb") as file:
        before = file.read()
    assert any("pipeline p is installed" in what for _, what, _ in sqlite_ddl.check(path))
    with open(path, "rb") as file:
        assert file.read() == before
    with connect(path) as app:
        app.execute("DROP TABLE _tidemark_canary")
    assert any(is_problem and "_tidemark_canary" in what and remedy == "tidemark detach"
               for is_problem, what, remedy in sqlite_ddl.check(path))


def test_a_copy_made_by_vacuum_into_carries_the_same_source(path, tmp_path):
    sqlite_ddl.install(path, "p")
    with connect(path) as app:
        app.execute("VACUUM INTO ?", (str(tmp_path / "copy.db"),))
    state = "SELECT v FROM _tidemark_state WHERE k = 'source_id'"
    assert query(tmp_path / "copy.db", state) == query(path, state)
    shutil.copy(tmp_path / "copy.db", tmp_path / "more.db")
    sqlite_ddl.uninstall(tmp_path / "more.db")
    assert query(tmp_path / "more.db", OURS) == [(0,)]


def test_detach_of_a_pipeline_that_is_not_there_says_no(path, run):
    sqlite_ddl.install(path, "p")
    for _ in range(2):      # the second time nothing of ours is left at all
        missed = run("detach", f"sqlite:{path}", "--pipeline", "typo").check(1)
        assert "problem: pipeline typo was not there" in missed.out
        run("detach", f"sqlite:{path}").check()
    assert query(path, OURS) == [(0,)]
