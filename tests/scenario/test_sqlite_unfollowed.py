"""Tables that cannot be followed: they are named and left out, their programs' writes go on, and so
do the other tables."""

import pytest
from support.sqlite_copies import connect, execute, wait_equal

COPY = ["copy", "sqlite:shop.db", "file:out.ndjson", "--state", "state", "--follow", "--quiet"]
TOO_WIDE = 1100     # columns of an index that a trigger cannot compare in one expression


def as_application(database):
    """A connection with what only the application registers."""
    db = connect(database)
    db.create_function("mine", 1, lambda value: value, deterministic=True)
    db.create_collation("mine", lambda a, b: (a > b) - (a < b))
    return db


@pytest.fixture
def database(tmp_path):
    path = tmp_path / "shop.db"
    execute(path, "PRAGMA journal_mode = WAL; CREATE TABLE t (id INTEGER PRIMARY KEY, v UNIQUE);"
            "INSERT INTO t VALUES (1, 1)")
    return path


# Each is a UNIQUE index of u (id, a, b) that other programs could not write, beside columns that they could.
APPLICATIONS = {
    "function in an expression": "CREATE UNIQUE INDEX i ON u (mine(a))",
    "function in a condition": "CREATE UNIQUE INDEX i ON u (a) WHERE mine(a) > 0",
    "collation of an expression": "CREATE UNIQUE INDEX i ON u ((a || '') COLLATE mine)",
    "function in a default": "CREATE UNIQUE INDEX i ON u (a || c)",
}


@pytest.mark.parametrize("index", APPLICATIONS)
def test_other_programs_go_on_writing_beside_an_index_of_the_applications_own(start, run, database,
                                                                             index):
    db = as_application(database)
    db.executescript("CREATE TABLE u (id INTEGER PRIMARY KEY, a, b, c NOT NULL DEFAULT (mine(1)));"
                     f"{APPLICATIONS[index]}; INSERT INTO u VALUES (1, 1, 1, 1)")
    db.close()
    found = run("check", "sqlite:shop.db").out
    assert "table u cannot be followed: a UNIQUE index of it cannot be computed outside" in found
    assert "no such function: mine" in found or "no such collation sequence: mine" in found
    process = start(*COPY)
    process.wait_until((database.with_name("out.ndjson")).exists, what="the file")
    execute(database, "UPDATE u SET b = 5; INSERT INTO t VALUES (2, 2)")
    process.wait_until(lambda: '"id":2' in database.with_name("out.ndjson").read_text(),
                       what="the change of the other table")
    process.interrupt().check()


def test_an_index_of_plain_columns_with_the_applications_collation_is_followed(start, database):
    db = as_application(database)
    db.executescript("CREATE TABLE u (id INTEGER PRIMARY KEY, a TEXT, b);"
                     "CREATE UNIQUE INDEX i ON u (a COLLATE mine); INSERT INTO u VALUES (1, 'a', 1)")
    process = start(*COPY)
    process.wait_until(database.with_name("out.ndjson").exists, what="the file")
    execute(database, "UPDATE u SET b = 5")
    db.execute("REPLACE INTO u VALUES (2, 'a', 2)")
    wait_equal(process, database, database.with_name("out.ndjson"))
    process.interrupt().check()
    db.close()


def make_wide(database):
    columns = ", ".join(f"c{i}" for i in range(TOO_WIDE))
    execute(database, f"CREATE TABLE wide (id INTEGER PRIMARY KEY, {columns});"
            f"CREATE UNIQUE INDEX i ON wide ({columns}); INSERT INTO wide (id) VALUES (1)")


def test_a_table_whose_triggers_cannot_be_made_is_left_out_and_named(start, run, database):
    make_wide(database)
    assert ("table wide cannot be followed: its triggers cannot be made: Expression tree is too large"
            in run("check", "sqlite:shop.db").out)
    process = start(*COPY)
    process.wait_until(database.with_name("out.ndjson").exists, what="the file")
    execute(database, "INSERT INTO t VALUES (2, 2)")
    process.wait_until(lambda: '"id":2' in database.with_name("out.ndjson").read_text(),
                       what="the change")
    process.interrupt().check()


def test_tables_that_come_while_it_is_followed_and_cannot_be_are_named_once(start, database):
    process = start(*COPY)
    process.wait_until(database.with_name("out.ndjson").exists, what="the file")
    wait_equal(process, database, database.with_name("out.ndjson"))
    make_wide(database)
    process.wait_for_line(r"table shop\.wide: it cannot be followed, and is left out: "
                          r"its triggers cannot be made")
    execute(database, "CREATE TABLE rowids (rowid, _rowid_, oid); CREATE VIRTUAL TABLE f USING fts5 (x);"
            "INSERT INTO t VALUES (2, 2)")
    process.wait_for_line(r"table shop\.rowids: it cannot be followed")
    process.wait_for_line(r"table shop\.f: it cannot be followed, .* virtual table")
    process.wait_until(lambda: '"id":2' in database.with_name("out.ndjson").read_text(),
                       what="the change of the other table")
    execute(database, "DROP TABLE t; CREATE TABLE t (rowid, _rowid_, oid)")
    process.wait_for_line(r"table shop\.t: it cannot be followed any more")
    process.interrupt().check()
    said = [line for line in process.err().splitlines() if "it cannot be followed" in line]
    assert len(said) == 4, said
