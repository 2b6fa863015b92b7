"""Tables that change, come and go while they are followed, or while nobody follows them."""

import pytest
from support import sqlite_copies
from support.sqlite_copies import connect, execute, wait_equal

COPY = ["copy", "sqlite:shop.db", "file:out.ndjson", "--state", "state", "--follow"]

# name: (tables and rows before, what is done, tables whose key is another one afterwards)
CASES = {
    "add": ("CREATE TABLE add1 (id INTEGER PRIMARY KEY, v); INSERT INTO add1 VALUES (1, 1), (2, 2)",
            "UPDATE add1 SET v = 5 WHERE id = 1; ALTER TABLE add1 ADD COLUMN w DEFAULT 'new';"
            "INSERT INTO add1 VALUES (3, 3, 'three'); DELETE FROM add1 WHERE id = 2", []),
    "drop column": ("CREATE TABLE dc (id INTEGER PRIMARY KEY, v, w); INSERT INTO dc VALUES (1, 1, 2)",
                    "DELETE FROM dc; INSERT INTO dc VALUES (4, 1, 2); ALTER TABLE dc DROP COLUMN v;"
                    "INSERT INTO dc VALUES (5, 6)", []),
    "rename column": ("CREATE TABLE rc (id INTEGER PRIMARY KEY, v UNIQUE); INSERT INTO rc VALUES (1, 1)",
                      "ALTER TABLE rc RENAME v TO w; REPLACE INTO rc (id, w) VALUES (2, 1)", []),
    "rename key": ("CREATE TABLE rk (code TEXT NOT NULL PRIMARY KEY, v); INSERT INTO rk VALUES ('a', 1)",
                   "ALTER TABLE rk RENAME code TO number; INSERT INTO rk VALUES ('b', 2)", ["rk"]),
    "rename table": ("CREATE TABLE rt (id INTEGER PRIMARY KEY, v); INSERT INTO rt VALUES (1, 1), (2, 2)",
                     "ALTER TABLE rt RENAME TO rt2; INSERT INTO rt2 VALUES (3, 3)", []),
    "swap": ("CREATE TABLE sa (id INTEGER PRIMARY KEY, v); CREATE TABLE sb (id INTEGER PRIMARY KEY, v);"
             "INSERT INTO sa VALUES (1, 'a'), (2, 'a'); INSERT INTO sb VALUES (2, 'b'), (3, 'b')",
             "ALTER TABLE sa RENAME TO sx; ALTER TABLE sb RENAME TO sa; ALTER TABLE sx RENAME TO sb;"
             "UPDATE sa SET v = v || 1; DELETE FROM sb WHERE id = 1", []),
    "drop": ("CREATE TABLE dt (id INTEGER PRIMARY KEY, v); INSERT INTO dt VALUES (1, 1)",
             "INSERT INTO dt VALUES (2, 2); DROP TABLE dt", []),
    "drop and make": ("CREATE TABLE dm (id INTEGER PRIMARY KEY, v); INSERT INTO dm VALUES (1, 1), (2, 2)",
                      "DROP TABLE dm; CREATE TABLE dm (code TEXT NOT NULL PRIMARY KEY, w);"
                      "INSERT INTO dm VALUES ('x', 1)", ["dm"]),
    "drop and make the same": (
        "CREATE TABLE ds (id INTEGER PRIMARY KEY, v); INSERT INTO ds VALUES (1, 1), (2, 2)",
        "DROP TABLE ds; CREATE TABLE ds (id INTEGER PRIMARY KEY, v); INSERT INTO ds VALUES (2, 9)", []),
    "rebuild": ("CREATE TABLE rb (id INTEGER PRIMARY KEY, v TEXT); INSERT INTO rb VALUES (1, 1), (2, 2)",
                "BEGIN; CREATE TABLE new_rb (id INTEGER PRIMARY KEY, v INT CHECK (v > 0));"
                "INSERT INTO new_rb SELECT * FROM rb; DROP TABLE rb; ALTER TABLE new_rb RENAME TO rb;"
                "COMMIT; UPDATE rb SET v = v + 1", []),
    "new": ("", "CREATE TABLE nt (a, b, PRIMARY KEY (a, b)) WITHOUT ROWID; INSERT INTO nt VALUES (1, 2)",
            []),
    "unique index": ("CREATE TABLE ui (id INTEGER PRIMARY KEY, v); INSERT INTO ui VALUES (1, 1), (2, 2)",
                     "CREATE UNIQUE INDEX ui_v ON ui (v); REPLACE INTO ui VALUES (3, 2)", []),
    "unique index less": (
        "CREATE TABLE ul (id INTEGER PRIMARY KEY, v); INSERT INTO ul VALUES (1, 1), (2, 2);"
        "CREATE UNIQUE INDEX ul_v ON ul (v)",
        "REPLACE INTO ul VALUES (3, 2); DROP INDEX ul_v; INSERT INTO ul VALUES (4, 2)", []),
    "younger trigger": (
        "CREATE TABLE yt (id INTEGER PRIMARY KEY, v); INSERT INTO yt VALUES (1, 1)",
        "CREATE TRIGGER yt_ignore AFTER INSERT ON yt BEGIN SELECT RAISE(IGNORE); END;"
        "INSERT INTO yt VALUES (2, 2), (3, 3)", []),
    "vacuum": ("CREATE TABLE va (v); INSERT INTO va VALUES (1), (2), (3), (4); DELETE FROM va WHERE v = 2;"
               "CREATE TABLE vn (k TEXT PRIMARY KEY, v); INSERT INTO vn VALUES (NULL, 1), (NULL, 2);"
               "DELETE FROM vn WHERE v = 1",
               "DELETE FROM va WHERE v = 1; VACUUM; INSERT INTO va VALUES (7)", []),
    "odd names": (
        'CREATE TABLE "a b.c""d\'e" ("select" INTEGER PRIMARY KEY, "x.y" TEXT UNIQUE, "ü ""q""" INT);'
        'CREATE TABLE "order" ("A" TEXT NOT NULL PRIMARY KEY, " a", "[a]"); CREATE TABLE "a_%" (x);'
        "INSERT INTO \"a b.c\"\"d'e\" VALUES (1, 'p', 1); INSERT INTO \"order\" VALUES ('x', 1, 2)",
        'ALTER TABLE "a b.c""d\'e" ADD COLUMN "group by"; ALTER TABLE "order" RENAME " a" TO "ä";'
        "REPLACE INTO \"a b.c\"\"d'e\" VALUES (2, 'p', 2, 3); INSERT INTO \"order\" VALUES ('X', 3, 4);"
        'CREATE TABLE "日本 語" ("キー" TEXT NOT NULL PRIMARY KEY, "\U0001f600"); INSERT INTO "日本 語" '
        "VALUES ('値', 1); INSERT INTO \"a_%\" VALUES (1); ALTER TABLE \"a_%\" RENAME TO \"b'%\"", []),
    "cascades": (
        "CREATE TABLE fp (id INTEGER PRIMARY KEY); CREATE TABLE fc (id INTEGER PRIMARY KEY, "
        "p REFERENCES fp ON DELETE CASCADE ON UPDATE CASCADE); INSERT INTO fp VALUES (1), (2);"
        "INSERT INTO fc VALUES (1, 1), (2, 2), (3, 2);"
        "CREATE TABLE audit (what, id); CREATE TRIGGER fc_audit AFTER DELETE ON fc BEGIN "
        "INSERT INTO audit VALUES ('gone', OLD.id); END",
        "PRAGMA foreign_keys = ON; DELETE FROM fp WHERE id = 1; UPDATE fp SET id = 7 WHERE id = 2;"
        "ALTER TABLE fp ADD COLUMN name; DELETE FROM fp", []),
    "our triggers": ("CREATE TABLE ot (id INTEGER PRIMARY KEY, v); INSERT INTO ot VALUES (1, 1)",
                     "", []),      # see drop_our_triggers
}


def drop_our_triggers(database):
    """Those of table ot, and a change that nobody notes."""
    db = connect(database)
    for name, in db.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = 'ot'"
                            ).fetchall():
        db.execute(f'DROP TRIGGER "{name}"')
    db.execute("DELETE FROM ot")
    db.execute("INSERT INTO ot VALUES (5, 5)")
    db.close()


@pytest.fixture
def database(tmp_path):
    path = tmp_path / "shop.db"
    execute(path, "PRAGMA journal_mode = WAL; CREATE TABLE calm (id INTEGER PRIMARY KEY);"
            "INSERT INTO calm VALUES (1);" + ";".join(before for before, _, _ in CASES.values()))
    return path


GONE = {"shop.dt": ["id"], "shop.rt": ["id"], "shop.sx": ["id"], "shop.new_rb": ["id"],
        "shop.a_%": ["_rowid_"]}
OTHER_KEYS = [table for _, _, tables in CASES.values() for table in tables]


def follow(start, database, out):
    process = start(*COPY)
    process.wait_until(lambda: out.exists(), what="the file")
    wait_equal(process, database, out)
    return process


def test_tables_change_while_they_are_followed(start, database, tmp_path, run):
    out = tmp_path / "out.ndjson"
    process = follow(start, database, out)
    for _, script, _ in CASES.values():
        execute(database, script)
    drop_our_triggers(database)
    wait_equal(process, database, out, OTHER_KEYS, GONE)
    execute(database, "INSERT INTO calm VALUES (2); UPDATE add1 SET w = 'later'; DELETE FROM rb")
    wait_equal(process, database, out, OTHER_KEYS, GONE)
    process.interrupt().check()
    calm = [kind for store, kind, _ in sqlite_copies.lines(out) if store == "shop.calm"]
    assert calm == ["begin", "row", "end", "change"], "a table that nobody touched was copied again"
    run("verify", "out.ndjson").check()


def test_tables_change_while_nobody_follows(start, database, tmp_path, run):
    out = tmp_path / "out.ndjson"
    follow(start, database, out).interrupt().check()
    for _, script, _ in CASES.values():
        execute(database, script)
    drop_our_triggers(database)
    process = start(*COPY)
    wait_equal(process, database, out, OTHER_KEYS, GONE)
    process.kill()                              # before anything of it was confirmed, perhaps
    execute(database, "INSERT INTO calm VALUES (2); UPDATE add1 SET w = 'later'; DELETE FROM rb")
    process = start(*COPY)
    wait_equal(process, database, out, OTHER_KEYS, GONE)
    process.wait_until(lambda: run("verify", "out.ndjson").code == 0, what="what was done over")
    process.interrupt().check()
    calm = [kind for store, kind, _ in sqlite_copies.lines(out) if store == "shop.calm"]
    assert calm == ["begin", "row", "end", "change"], "a table that nobody touched was copied again"
    run("verify", "out.ndjson").check()
    run("detach", "sqlite:shop.db").check()
    db = connect(database)
    assert db.execute("SELECT count(*) FROM sqlite_schema WHERE name GLOB '*_tidemark_*'"
                      ).fetchone() == (0,)
    db.close()


def test_a_table_dropped_in_the_middle_of_its_copy_ends_it(start, run, tmp_path):
    """Killed, dropped, started again: what the file has of it proves that nothing is missing."""
    database, out = tmp_path / "shop.db", tmp_path / "out.ndjson"
    execute(database, "PRAGMA journal_mode = WAL; CREATE TABLE big (id INTEGER PRIMARY KEY, v);"
            "CREATE TABLE small (id INTEGER PRIMARY KEY);"
            "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000)"
            "INSERT INTO big SELECT i, 'text' FROM n")
    copy = [*COPY, "--chunk-rows", "100"]
    process = start(*copy)
    process.wait_until(lambda: b'"kind":"row"' in (out.read_bytes() if out.exists() else b""),
                       what="a row")
    process.kill()
    assert b'"kind":"end","snapshot_id"' not in out.read_bytes()
    assert run("verify", "out.ndjson").code == 1
    execute(database, "DROP TABLE big")
    process = start(*copy)
    process.wait_until(lambda: b'"op":"truncate"' in out.read_bytes() and
                       b'"kind":"end"' in out.read_bytes(), what="the truncate")
    process.interrupt().check()
    told = run("verify", "--all", "out.ndjson").check().out
    assert "the table was emptied or dropped at" in told
