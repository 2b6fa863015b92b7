"""What happens to a followed SQLite database beside its rows is noticed, with a way out."""

import os
import re
import shutil
import sqlite3

import pytest

from support import sqlite_ddl
from support.sqlite_log_reader import LOG

SCHEMA = """
    CREATE TABLE orders (id INTEGER PRIMARY KEY, item TEXT, count INT);
    CREATE UNIQUE INDEX orders_item ON orders (item);
    CREATE TABLE notes (note TEXT);
    CREATE TABLE lines (line TEXT);
    CREATE INDEX lines_line ON lines (line);
    CREATE TABLE parts (code TEXT COLLATE NOCASE PRIMARY KEY, name TEXT);
    CREATE TRIGGER audit AFTER INSERT ON orders BEGIN SELECT RAISE(IGNORE) WHERE NEW.count = 9; END;
    INSERT INTO notes VALUES ('a'), ('b'), ('c');
    DELETE FROM notes WHERE rowid = 2;
    INSERT INTO orders VALUES (1, 'pen', 2);
"""


@pytest.fixture
def path(tmp_path):
    path = str(tmp_path / "shop.db")
    with connect(path) as app:
        app.executescript(SCHEMA)
    return path


@pytest.fixture
def watched(path):
    """watched("glob", …) installs for the pipeline `shop` and gives a watch."""
    watches = []

    def call(*globs):
        sqlite_ddl.install(path, "shop", *globs)
        watches.append(sqlite_ddl.Watch(path, "shop", *globs))
        return watches[-1]
    yield call
    for watch in watches:
        watch.close()


def connect(path):
    return sqlite3.connect(path, isolation_level=None)


def marks(path):
    with connect(path) as app:
        return app.execute(f"SELECT t, op, k1 FROM {LOG} WHERE t > 0 ORDER BY id").fetchall()


NOTES = {5: "truncate", 6: "copy", 7: "join", 8: "gone"}


def notes(path):
    """What the log says of tables: "copy orders: why"."""
    with connect(path) as app:
        return [f"{NOTES[op]} {table}: {why}" for op, table, why in
                app.execute(f"SELECT op, k1, r FROM {LOG} WHERE op > 4 ORDER BY id")]


ANEW = "it was made anew, or all our triggers on it were dropped"
RENUMBERED = ("its rows have other rowids: VACUUM has run, or the database was dumped and loaded "
              "anew")

# (tables, what the application does, what is noted, or what the look says where the copy must end)
CHANGES = {
    "nothing": ("*", "", []),
    "rows": ("*", "INSERT INTO orders VALUES (2, 'ink', 1); DELETE FROM notes", []),
    "a plain index": ("orders", "CREATE INDEX i ON orders (count)", []),
    "another table altered": ("orders", "CREATE TABLE more (a, b); CREATE UNIQUE INDEX m ON more (a || b);"
                              "ALTER TABLE more RENAME TO less; ALTER TABLE less RENAME a TO c;"
                              "ALTER TABLE less ADD d; ALTER TABLE less DROP d", []),
    "a view": ("*", "CREATE VIEW v AS SELECT * FROM orders", []),
    "a table that is not followed": ("orders", "DROP TABLE notes", []),
    "analyze": ("*", "ANALYZE", []),
    "a new table": ("*", "CREATE TABLE more (a); CREATE UNIQUE INDEX more_a ON more (a)",
                    ["copy more: it is new"]),
    "a new table that nobody asked for": ("orders", "CREATE TABLE more (a)", []),
    "a new table that cannot be followed": ("*", "CREATE TABLE more (rowid, oid, _rowid_)", []),
    "a unique index": ("*", "CREATE UNIQUE INDEX u ON orders (count)",
                       ["copy orders: it has another UNIQUE index"]),
    "a unique index less": ("*", "DROP INDEX orders_item", []),
    "a unique index less, and our trigger": (
        "*", "DROP INDEX orders_item; DROP TRIGGER _tidemark_3_ai",
        ["copy orders: one of our triggers was dropped or changed"]),
    "a unique index less, and our trigger changed": (
        "*", "DROP INDEX orders_item; DROP TRIGGER _tidemark_3_ai; CREATE TRIGGER _tidemark_3_ai "
        "AFTER INSERT ON orders BEGIN SELECT 1; END",
        ["copy orders: one of our triggers was dropped or changed"]),
    "a unique index less, and a younger insert trigger": (
        "*", "DROP INDEX orders_item; CREATE TRIGGER y AFTER INSERT ON orders BEGIN "
        "SELECT RAISE(IGNORE); END", ["copy orders: its AFTER INSERT trigger y was made after ours"]),
    "another unique index": ("*", "DROP INDEX orders_item; CREATE UNIQUE INDEX orders_item "
                             "ON orders (item) WHERE count > 0",
                             ["copy orders: it has another UNIQUE index"]),
    "a column more": ("*", "ALTER TABLE parts ADD COLUMN weight", ["copy parts: it has more columns"]),
    "a column less": ("*", "ALTER TABLE parts DROP COLUMN name", ["copy parts: it has fewer columns"]),
    "a column renamed": ("*", "ALTER TABLE parts RENAME name TO title",
                         ["copy parts: its columns, types or defaults have changed"]),
    "a key column renamed": ("*", "ALTER TABLE parts RENAME code TO number",
                             ["copy parts: its key has changed", "truncate parts: "]),
    "a table renamed": ("*", "ALTER TABLE parts RENAME TO pieces",
                        ["gone parts: it was renamed to pieces", "truncate parts: ",
                         "copy pieces: it is new"]),
    "a table renamed to what nobody asked for": (
        "parts", "ALTER TABLE parts RENAME TO pieces",
        ["gone parts: it was renamed to pieces", "truncate parts: "]),
    "two tables exchanged": (
        "*", "ALTER TABLE notes RENAME TO x; ALTER TABLE lines RENAME TO notes;"
        "ALTER TABLE x RENAME TO lines",
        [f"copy lines: {ANEW}", "truncate lines: ", f"copy notes: {ANEW}",
         "truncate notes: "]),
    "a table dropped": ("*", "DROP TABLE parts", ["gone parts: it was dropped", "truncate parts: "]),
    "a table made anew": ("*", "DROP TABLE notes; CREATE TABLE notes (note TEXT)",
                          [f"copy notes: {ANEW}", "truncate notes: "]),
    "a table rebuilt": ("*", "CREATE TABLE x (code TEXT COLLATE NOCASE PRIMARY KEY, name TEXT);"
                        "INSERT INTO x SELECT * FROM parts; DROP TABLE parts;"
                        "ALTER TABLE x RENAME TO parts",
                        [f"copy parts: {ANEW}", "truncate parts: "]),
    "a table set aside": ("*", "ALTER TABLE notes RENAME TO old; CREATE TABLE notes (note TEXT)",
                          [f"copy notes: {ANEW}", "truncate notes: ", "copy old: it is new"]),
    "a table that can be followed no more": (
        "*", "ALTER TABLE notes ADD rowid; ALTER TABLE notes ADD oid; ALTER TABLE notes ADD _rowid_",
        ["gone notes: it cannot be followed any more: it has no key"]),
    "our trigger dropped": ("*", "DROP TRIGGER _tidemark_1_ad",
                            ["copy lines: our trigger _tidemark_1_ad was dropped or changed"]),
    "our trigger changed": ("*", "DROP TRIGGER _tidemark_1_ad; CREATE TRIGGER _tidemark_1_ad "
                            "BEFORE DELETE ON lines BEGIN SELECT 1; END",
                            ["copy lines: our trigger _tidemark_1_ad was dropped or changed"]),
    "a younger insert trigger": ("*", "CREATE TRIGGER y AFTER INSERT ON orders BEGIN "
                                 "SELECT RAISE(IGNORE); END",
                                 ["copy orders: its AFTER INSERT trigger y was made after ours"]),
    "a trigger made anew": ("*", "DROP TRIGGER audit; CREATE TRIGGER audit AFTER INSERT ON orders "
                            "BEGIN SELECT 1; END",
                            ["copy orders: its AFTER INSERT trigger audit was made after ours"]),
    "other younger triggers": ("*", "CREATE TRIGGER y BEFORE INSERT ON orders BEGIN SELECT 1; END;"
                               "CREATE TRIGGER z AFTER UPDATE ON orders BEGIN SELECT 1; END", []),
    "a younger trigger elsewhere": ("orders", "CREATE TRIGGER y AFTER INSERT ON notes "
                                    "BEGIN SELECT RAISE(IGNORE); END", []),
    "vacuum of rowid tables": ("*", "VACUUM", [f"copy notes: {RENUMBERED}"]),
    "vacuum of an indexed rowid table": ("lines", "VACUUM", []),
    "vacuum of keyed tables": ("orders", "VACUUM", []),
    "an index dropped and made again around vacuum": (
        "lines", "DROP INDEX lines_line; VACUUM; CREATE INDEX lines_line ON lines (line)",
        [f"copy lines: {RENUMBERED}"]),
    "an index dropped before vacuum": ("lines", "DROP INDEX lines_line; VACUUM",
                                       [f"copy lines: {RENUMBERED}"]),
    "our log dropped": ("*", "DROP TABLE _tidemark_changes", "our table _tidemark_changes"),
    "our log renamed": ("*", "ALTER TABLE _tidemark_changes RENAME TO x",
                        "our table _tidemark_changes"),
    "our tables dropped": ("orders", "DROP TABLE _tidemark_changes; DROP TABLE _tidemark_tables;"
                           "DROP TABLE _tidemark_state; DROP TABLE _tidemark_pipelines;"
                           "DROP TABLE _tidemark_canary", "nothing of ours is in the database"),
    "our row deleted": ("*", "DELETE FROM _tidemark_pipelines",
                        "pipeline shop was detached|pipeline shop is not installed"),
    "another source": ("*", "UPDATE _tidemark_state SET v = 'other' WHERE k = 'source_id'",
                       "another one than this copy began with"),
}


def change_schema(path, sql):
    app = connect(path)
    app.executescript(sql)
    app.close()


def expect_notes(path, expected):
    found = notes(path)
    assert len(found) == len(expected), found
    for note, beginning in zip(found, expected):
        assert note.startswith(beginning), found


@pytest.mark.parametrize("change", CHANGES)
def test_look_mends_what_matters(path, watched, change):
    globs, sql, expected = CHANGES[change]
    watch = watched(globs)
    assert watch.look() is None
    change_schema(path, sql)
    said = watch.look()
    if isinstance(expected, str):
        assert said and re.search(expected, said), said
        assert "start anew with another state directory (--state, or state: in the " \
            "configuration) and --overwrite (or existing: overwrite)" in said, said
        return
    assert said in (None, "moved")
    expect_notes(path, expected)
    assert watch.look() is None
    with connect(path) as app:
        assert app.execute("SELECT rowid FROM _tidemark_canary").fetchall() == [(7,)]


@pytest.mark.parametrize("change", CHANGES)
def test_load_after_a_pause_mends_the_same(path, watched, change):
    globs, sql, expected = CHANGES[change]
    watched(globs)
    change_schema(path, sql)
    if change == "another source":
        return      # whoever loads compares the source's id with the checkpoint's
    if isinstance(expected, str):
        with pytest.raises(sqlite_ddl.Failed) as failed:
            sqlite_ddl.load(path, "shop", 1, globs)
        assert failed.value.status == "stale"
        return
    sqlite_ddl.load(path, "shop", 1, globs)
    expect_notes(path, expected)


@pytest.mark.parametrize("name", ["x", 'odd "name\'s"'])
def test_check_prints_what_mends_a_renamed_log(path, watched, name):
    watch = watched("*")
    quoted = '"' + name.replace('"', '""') + '"'
    change_schema(path, f"ALTER TABLE _tidemark_changes RENAME TO {quoted};"
                  "INSERT INTO orders VALUES (9, 'cap', 1)")
    assert "our table _tidemark_changes" in watch.look()
    remedy, = [remedy for is_problem, what, remedy in sqlite_ddl.check(path) if is_problem]
    assert remedy == f'ALTER TABLE {quoted} RENAME TO "_tidemark_changes"'
    change_schema(path, remedy)
    sqlite_ddl.load(path, "shop", 1, "*")
    assert marks(path)[0][1:] == (1, 9)
    assert not [what for is_problem, what, _ in sqlite_ddl.check(path) if is_problem]


def test_check_says_what_the_next_run_will_do(path, watched):
    watched("*")
    change_schema(path, "ALTER TABLE parts ADD COLUMN weight; DROP INDEX orders_item; DROP TABLE lines;"
                  "DROP TRIGGER _tidemark_2_ad")
    said = [what for _, what, _ in sqlite_ddl.check(path) if "since its pipelines ran" in what]
    assert [re.search(r"table (\w+) has .*; the next run (.*)", what).groups() for what in said] == [
        ("lines", "leaves it out"), ("notes", "copies it anew"),
        ("orders", "makes its triggers anew"), ("parts", "copies it anew")]
    assert notes(path) == []


def test_migrations_that_meet_our_triggers(path, watched):
    """As documented: they fail, change nothing, and work once the triggers were made anew."""
    watch = watched("*")
    app = connect(path)
    app.execute("DROP INDEX orders_item")
    with pytest.raises(sqlite3.OperationalError, match="error in trigger _tidemark_"):
        app.execute("ALTER TABLE orders DROP COLUMN item")
    assert watch.look() == "moved"
    app.execute("ALTER TABLE orders DROP COLUMN item")
    app.execute("CREATE UNIQUE INDEX o ON orders (count)")
    assert watch.look() == "moved"
    app.execute("PRAGMA legacy_alter_table = ON")
    app.execute("ALTER TABLE orders RENAME TO bills")
    with pytest.raises(sqlite3.OperationalError, match="no such table: main.orders"):
        app.execute("INSERT INTO bills VALUES (7, 7)")
    assert watch.look() == "moved"
    app.execute("SELECT count(*) FROM sqlite_schema")      # reads the schema again
    app.execute("INSERT INTO bills VALUES (7, 7)")
    app.close()


def test_a_second_pipeline_learns_of_it_from_the_log(path, watched):
    """Whoever comes first mends for all; numbers of others move on with the table."""
    first, second = watched("*"), sqlite_ddl.install(path, "other", "parts", "orders")
    change_schema(path, "ALTER TABLE parts ADD COLUMN weight; CREATE TABLE orders2 (a)")
    assert first.look() == "moved"
    assert notes(path) == ["copy parts: it has more columns", "copy orders2: it is new"]
    tables = sqlite_ddl.load(path, "other", 1, "parts", "orders")
    assert {table.name for table in tables} == {"parts", "orders"}
    assert [table.number for table in tables] != [table.number for table in second]
    assert len(notes(path)) == 2
    assert first.look() is None


def test_a_pipeline_that_wants_more_tables_joins_the_others(path, watched):
    watched("*")
    sqlite_ddl.install(path, "other", "parts")
    sqlite_ddl.load(path, "other", 1, "parts", "notes")
    assert notes(path) == ["join notes: other"]
    sqlite_ddl.load(path, "other", 1, "parts", "notes")
    assert len(notes(path)) == 1


def test_a_restored_database_is_not_mended(path, watched, tmp_path):
    watch = watched("orders")
    shutil.copy(path, tmp_path / "backup.db")
    with connect(path) as app, connect(tmp_path / "backup.db") as backup:
        app.execute("UPDATE _tidemark_pipelines SET nonce = 'next'")    # as a confirm does
        backup.execute("ALTER TABLE orders ADD COLUMN more")
        backup.backup(app)
    assert "restored from a backup" in watch.look("next")
    assert notes(path) == []


def test_load_of_another_format_is_refused(path, watched):
    watched("orders")
    with connect(path) as app:
        app.execute("UPDATE _tidemark_state SET v = 99 WHERE k = 'format_version'")
    for call in (lambda: sqlite_ddl.load(path, "shop", 1), lambda: sqlite_ddl.install(path, "b")):
        with pytest.raises(sqlite_ddl.Failed, match="its format is 99") as failed:
            call()
        assert failed.value.status == "invalid"


def test_load_of_a_position_past_the_log_is_stale(path, watched):
    watched("orders")
    with pytest.raises(sqlite_ddl.Failed, match="restored from a backup"):
        sqlite_ddl.load(path, "shop", 1000, "orders")


def test_look_compares_nonces(path, watched):
    watch = watched("orders")
    with connect(path) as app:
        nonce = app.execute("SELECT nonce FROM _tidemark_pipelines").fetchone()[0]
        assert watch.look(nonce) is None
        app.execute("UPDATE _tidemark_pipelines SET nonce = lower(hex(randomblob(16)))")
    assert "restored from a backup" in watch.look(nonce)


def test_look_after_restore_over_the_live_file(path, watched, tmp_path):
    watch = watched("orders")
    shutil.copy(path, tmp_path / "backup.db")
    with connect(path) as app:
        app.execute("UPDATE _tidemark_pipelines SET nonce = 'next'")    # as a confirm does
        assert watch.look("next") is None
        with connect(tmp_path / "backup.db") as backup:
            backup.backup(app)
    assert "restored from a backup" in watch.look("next")


def test_look_after_the_file_was_replaced(path, watched, tmp_path):
    watch = watched("orders")
    shutil.copy(path, tmp_path / "backup.db")
    assert watch.look() is None
    os.replace(tmp_path / "backup.db", path)
    assert "another file" in watch.look()


def test_look_after_the_file_was_removed(path, watched):
    watch = watched("orders")
    os.rename(path, path + ".away")
    assert "not there any more" in watch.look()
    os.rename(path + ".away", path)
    assert watch.look() is None


def test_renames_do_not_break_the_application_nor_the_marks(path, watched):
    watched("parts")
    with connect(path) as app:
        app.execute("ALTER TABLE parts RENAME code TO number")
        app.execute("ALTER TABLE parts ADD COLUMN weight")
        app.execute("ALTER TABLE parts DROP COLUMN name")
        app.execute("ALTER TABLE parts RENAME TO pieces")
        app.execute("INSERT INTO pieces (number) VALUES ('x')")
        app.execute("UPDATE pieces SET weight = 2")
        app.execute("DELETE FROM pieces")
    assert [(op, key) for _, op, key in marks(path)] == [(1, "x"), (2, "x"), (3, "x")]


def test_renames_reach_into_index_expressions(path, watched):
    with connect(path) as app:
        app.executescript("CREATE UNIQUE INDEX p ON parts (lower(name)) WHERE parts.code > '';"
                          "INSERT INTO parts VALUES ('x', 'Bolt')")
    watched("parts")
    with connect(path) as app:
        app.execute("ALTER TABLE parts RENAME code TO number")
        app.execute("ALTER TABLE parts RENAME name TO title")
        app.execute("ALTER TABLE parts RENAME TO pieces")
        app.execute("REPLACE INTO pieces VALUES ('y', 'BOLT')")
    assert (4, "x") in [(op, key) for _, op, key in marks(path)]


def test_marks_under_attach_of_any_name(path, watched, tmp_path):
    watched("orders")
    with connect(tmp_path / "other.db") as app:
        app.execute("ATTACH ? AS anything", (path,))
        app.execute("CREATE TABLE _tidemark_changes (decoy)")
        app.execute("INSERT INTO anything.orders VALUES (5, 'cap', 1)")
        app.execute("REPLACE INTO anything.orders VALUES (6, 'cap', 1)")
    assert marks(path) == [(1, 1, 5), (1, 4, 5), (1, 1, 6)]


def test_changes_and_last_insert_rowid_stay_the_applications(path, watched):
    watched("orders")
    with connect(path) as app:
        app.execute("INSERT INTO orders VALUES (41, 'a', 1), (42, 'b', 1)")
        assert app.execute("SELECT changes(), last_insert_rowid()").fetchone() == (2, 42)


def test_what_no_trigger_can_see_is_not_marked(path, watched):
    """The limits that the documentation names: they must stay known."""
    watched("*")
    with connect(path) as app:
        with app.blobopen("notes", "note", 1) as blob:
            blob.write(b"z")
        assert marks(path) == []
        app.execute("CREATE TEMP TRIGGER t AFTER INSERT ON notes BEGIN SELECT RAISE(IGNORE); END")
        app.execute("INSERT INTO notes VALUES ('x')")
    assert marks(path) == []
