"""A table is copied anew after a pause: what its old form left behind in the copies goes.

A sink holds changes that are not confirmed, since another one is paused. The rows that they made
are deleted while nobody follows, and those changes do not come again, as the table is another one.
"""

import json

import pytest
from support import frames, pg_tables
from support.trouble import check_equal, count, ends, execute, frames_of

CONFIGURATION = "name: a\nsource: {}\nsinks: {{one: 'file:one.ndjson', two: 'file:two.ndjson'}}\n"
# What is done to t (id, v), beside deleting a row, by which it is copied anew.
SQLITE_CHANGES = {
    "a column more": ["ALTER TABLE t ADD COLUMN w"],
    "a unique index": ["CREATE UNIQUE INDEX i ON t (v)"],
    "our trigger dropped": ["DROP TRIGGER _tidemark_1_ad"],
    "a unique index less and our trigger dropped": ["DROP INDEX v", "DROP TRIGGER _tidemark_1_ai",
                                                    "INSERT INTO t VALUES (7, 'unseen')"],
}
POSTGRES_CHANGES = {
    "made anew": "DROP TABLE t; CREATE TABLE t (id int PRIMARY KEY, v text);"
                 "INSERT INTO t VALUES (1, 'again')",
    "set aside": "ALTER TABLE t RENAME TO old; CREATE TABLE t (id int PRIMARY KEY, v text)",
}


def play(start, run, tmp_path, write):
    """Runs with one of two sinks paused, writes through `write`, stops; gives the file of the other."""
    out = tmp_path / "one.ndjson"
    process = start("run", "a.yaml")
    process.wait_until(lambda: ends(out) == 1 and ends(tmp_path / "two.ndjson") == 1)
    run("pause", "a.yaml", "--sink", "two").check()
    write()
    process.wait_until(lambda: count(out, b'"id":100,') > 0, what="the change in the other sink")
    process.terminate().check()
    return out


def finish(start, run, tmp_path, store):
    process = start("run", "a.yaml")
    process.wait_for_line("going on")
    run("resume", "a.yaml", "--sink", "two").check()
    for name in ("one.ndjson", "two.ndjson"):
        process.wait_until(lambda name=name: ends(tmp_path / name) == 2, what=f"a copy in {name}")
    process.terminate().check()
    for name in ("one.ndjson", "two.ndjson"):
        verdicts = run("verify", "--json", name).check().out.splitlines()
        assert [json.loads(line)["store"] for line in verdicts] == [store]


@pytest.mark.parametrize("change", SQLITE_CHANGES)
def test_rows_of_a_sqlite_table_s_old_form_go(start, run, tmp_path, change):
    database = tmp_path / "a.db"
    execute(database, "CREATE TABLE t (id INTEGER PRIMARY KEY, v)", "CREATE UNIQUE INDEX v ON t (v)",
            "INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    (tmp_path / "a.yaml").write_text(CONFIGURATION.format("sqlite:a.db"))
    play(start, run, tmp_path, lambda: execute(database, "INSERT INTO t VALUES (100, 'gone')"))
    execute(database, "DELETE FROM t WHERE id = 100", *SQLITE_CHANGES[change])
    finish(start, run, tmp_path, "a.t")
    check_equal(database, tmp_path / "one.ndjson")
    check_equal(database, tmp_path / "two.ndjson")


def test_rows_of_a_table_that_was_left_out_for_a_while_go(start, run, tmp_path):
    database = tmp_path / "a.db"
    execute(database, "CREATE TABLE t (id INTEGER PRIMARY KEY, v)", "INSERT INTO t VALUES (1, 'a')",
            "CREATE TABLE u (id INTEGER PRIMARY KEY)")
    text = CONFIGURATION.format("sqlite:a.db")
    (tmp_path / "a.yaml").write_text(text + "tables: [t]\n")
    play(start, run, tmp_path, lambda: execute(database, "INSERT INTO t VALUES (100, 'gone')"))
    (tmp_path / "a.yaml").write_text(text + "tables: [u]\n")
    process = start("run", "a.yaml")
    process.wait_until(lambda: count(tmp_path / "one.ndjson", b'"store":"a.u"') > 0)
    process.terminate().check()
    execute(database, "DELETE FROM t WHERE id = 100")
    (tmp_path / "a.yaml").write_text(text + "tables: [t]\n")
    process = start("run", "a.yaml")
    run("resume", "a.yaml", "--sink", "two").check()
    for name in ("one.ndjson", "two.ndjson"):
        process.wait_until(lambda name=name: of_t(tmp_path / name) == 2, what=f"a copy in {name}")
    process.terminate().check()
    for name in ("one.ndjson", "two.ndjson"):
        tables = frames.rebuild([tmp_path / name], {"a.t": ["id"]})
        assert [key for key, _ in tables.rows("a.t")] == ['{"id":1}']


def of_t(path):
    """How many copies of t have ended."""
    return len(frames_of(path, "end", "a.t"))


@pytest.mark.parametrize("change", POSTGRES_CHANGES)
def test_rows_of_a_postgresql_table_s_old_form_go(start, run, pg, tmp_path, change):
    pg.query("CREATE TABLE t (id int PRIMARY KEY, v text); INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    (tmp_path / "a.yaml").write_text(CONFIGURATION.format(pg.url()) + "tables: [t]\n")
    play(start, run, tmp_path, lambda: pg.query("INSERT INTO t VALUES (100, 'gone')"))
    pg.query("DELETE FROM t WHERE id = 100;" + POSTGRES_CHANGES[change])
    finish(start, run, tmp_path, f"{pg.name}.public.t")
    for name in ("one.ndjson", "two.ndjson"):
        pg_tables.check(pg, tmp_path / name, only=[("public", "t")], complete=False)
