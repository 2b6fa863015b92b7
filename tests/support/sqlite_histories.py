"""Random SQLite databases and what applications do to them, for tests of capture.

A History makes two tables with random keys, indexes, generated columns, foreign keys and triggers,
lets a caller install capture, and then plays rounds of random statements on two connections. What
a statement does is SQLite's affair: most fail or touch little, which is as it should be.

    history = History(seed, path)
    history.install(lambda names: …)      # capture comes between the older and the younger triggers
    while …: history.play()               # one round; look at the database in between
    history.close()
"""

import dataclasses
import os
import random
import sqlite3

# As SQL, since Python cannot bind all of them: every storage class, equal and nearly equal ones.
VALUES = (
    "NULL", "0", "1", "2", "3", "'1'", "'2'", "1.0", "0.5", "-0.0", "0.0", "9e999",
    "9223372036854775807", "-9223372036854775808", "''", "'a'", "'A'", "'b'", "'B'", "'é'",
    "x''", "x'61'", "CAST(x'610062' AS TEXT)", "CAST(x'ff' AS TEXT)", "'abc'",
)
INTEGERS = ("0", "1", "2", "3", "4", "-1", "9223372036854775807")
ON_CONFLICT = ("", " ON CONFLICT REPLACE", " ON CONFLICT IGNORE", " ON CONFLICT FAIL",
               " ON CONFLICT ROLLBACK")
STEPS_MAX = 300_000     # virtual machine steps a statement may take: triggers can loop


def name(text):
    return '"' + text.replace('"', '""') + '"'


@dataclasses.dataclass
class Table:
    """A table as the generator knows it; columns are those that statements set."""
    name: str
    columns: list
    key: list
    has_rowid: bool
    is_integer_key: bool
    ddl: list


# (columns of the key, table constraint, options, key): `@` is where ON CONFLICT may stand.
KEYS = {
    "integer": ("k INTEGER PRIMARY KEY@", "", "", ["k"]),
    "autoincrement": ("k INTEGER PRIMARY KEY@ AUTOINCREMENT", "", "", ["k"]),
    "integer-desc": ("k INTEGER PRIMARY KEY DESC@", "", "", ["k"]),
    "integer-strict": ("k INTEGER PRIMARY KEY@", "", "STRICT", ["k"]),
    "int": ("k INT PRIMARY KEY@", "", "", ["k"]),
    "text": ("k TEXT PRIMARY KEY@", "", "", ["k"]),
    "text-default": ("k TEXT NOT NULL DEFAULT 'dk' PRIMARY KEY@", "", "", ["k"]),
    "text-bare-default": ("k TEXT NOT NULL DEFAULT abc PRIMARY KEY@", "", "", ["k"]),
    "text-nocase": ("k TEXT COLLATE NOCASE PRIMARY KEY@", "", "", ["k"]),
    "typeless": ("k PRIMARY KEY@", "", "", ["k"]),
    "blob": ("k BLOB NOT NULL PRIMARY KEY@", "", "", ["k"]),
    "numeric": ("k NUMERIC PRIMARY KEY@", "", "", ["k"]),
    "real": ("k REAL PRIMARY KEY@", "", "", ["k"]),
    "pair": ("k INT, k2 TEXT", "PRIMARY KEY (k2, k)@", "", ["k", "k2"]),
    "pair-not-null": ("k INT NOT NULL, k2 TEXT NOT NULL", "PRIMARY KEY (k2, k)@", "", ["k", "k2"]),
    "pair-nocase": ("k INT NOT NULL, k2 TEXT NOT NULL",
                    "PRIMARY KEY (k2 COLLATE NOCASE, k)@", "", ["k", "k2"]),
    "pair-without-rowid": ("k INT, k2 TEXT", "PRIMARY KEY (k2, k)@", "WITHOUT ROWID", ["k", "k2"]),
    "text-without-rowid": ("k TEXT PRIMARY KEY@", "", "WITHOUT ROWID", ["k"]),
    "nocase-without-rowid": ("k TEXT COLLATE NOCASE PRIMARY KEY@", "", "WITHOUT ROWID", ["k"]),
    "typeless-without-rowid": ("k PRIMARY KEY@", "", "WITHOUT ROWID", ["k"]),
    "any-strict": ("k ANY PRIMARY KEY@", "", "STRICT", ["k"]),
    "unique": ("k NOT NULL UNIQUE@", "", "", ["k"]),
    "none": ("k", "", "", ["k"]),
    "named-rowid": ('"rowid" TEXT PRIMARY KEY@', "", "", ["rowid"]),
}


class TableMaker:
    """Puts one random table together."""

    def __init__(self, rng, table):
        self.rng = rng
        self.table = table
        self.kind = rng.choice([*KEYS, "integer"])
        key_columns, constraint, self.options, self.key = KEYS[self.kind]
        conflict = rng.choice(ON_CONFLICT)
        self.columns = [key_columns.replace("@", conflict)]
        self.constraints = [constraint.replace("@", conflict)] if constraint else []
        self.is_strict = self.options == "STRICT"
        self.unique_conflict = rng.choice(["", " ON CONFLICT REPLACE", " ON CONFLICT REPLACE",
                                           " ON CONFLICT IGNORE"])
        self.is_generated = rng.random() < .4

    def type(self, *others):
        return " ANY" if self.is_strict else self.rng.choice(["", *others])

    def maybe_unique(self):
        return self.rng.choice(["", "", " UNIQUE" + self.unique_conflict])

    def make(self):
        rng = self.rng
        default = rng.choice(["", "", " NOT NULL DEFAULT 1", " NOT NULL ON CONFLICT REPLACE DEFAULT 2",
                              " NOT NULL ON CONFLICT REPLACE DEFAULT abc"])
        self.columns += [
            "a" + self.type(" TEXT", " INT", " TEXT COLLATE NOCASE") + self.maybe_unique(),
            "b" + self.type(" TEXT", " INT", " REAL") + default + self.maybe_unique(),
            '"c ""q"' + self.type(" TEXT", " BLOB"),
        ]
        if self.is_generated:
            self.columns += [f"g{self.type()} AS (a) STORED", f"h{self.type()} AS (b||a)"]
        self.columns.append("p" + self.type() + self.reference())
        if rng.random() < .2:
            self.constraints.append("UNIQUE (a, p)" + self.unique_conflict)
        body = ", ".join(self.columns + self.constraints)
        ddl = [f"CREATE TABLE {self.table} ({body}) {self.options}".rstrip()]
        for number in range(rng.choice([0, 0, 1, 1, 2, 3])):
            ddl.append(f"CREATE UNIQUE INDEX {self.table}u{number} ON {self.table} "
                       + rng.choice(self.index_terms(bool(default))))
        return Table(self.table, self.key + ["a", "b", 'c "q', "p"], self.key,
                     self.options != "WITHOUT ROWID", self.kind in
                     ("integer", "autoincrement", "integer-strict"), ddl)

    def reference(self):
        if self.table != "t2" and self.rng.random() >= .3:
            return ""
        delete = self.rng.choice(["CASCADE", "SET NULL", "SET DEFAULT", "NO ACTION"])
        update = self.rng.choice(["CASCADE", "SET NULL"])
        deferred = self.rng.choice(["", " DEFERRABLE INITIALLY DEFERRED"])
        return f" REFERENCES t1 ON DELETE {delete} ON UPDATE {update}{deferred}"

    def index_terms(self, has_default):
        terms = ["(a)", "(a COLLATE NOCASE)", "(b, a)", "(b) WHERE a > 0", "(lower(a))", "(p)",
                 '(abs(b), a) WHERE "c ""q" IS NOT NULL', "(a||','||b)", "([b]) -- remark\n",
                 "(a COLLATE BINARY DESC)", "(a = b COLLATE NOCASE, p)", "(a = b, p)",
                 "(CASE WHEN b = '1' THEN a END)", "(a IN (1, 'a', b), p)", "(p < b, a)",
                 f"(a, p) WHERE {self.table}.b > 0 AND 1.5 > .5", "(a /* (, */ || 'x''y' DESC)"]
        if self.is_generated:
            terms += ["(g)", "(lower(g))"]
            # A default filled into the source of a generated key is what capture cannot see.
            terms += [] if has_default else ["(h)"]
        return terms


def random_trigger(rng, number, tables):
    """A trigger as applications write them, also such as fail on purpose."""
    on, other = rng.choice(tables), rng.choice(tables)
    event = rng.choice(["INSERT", "UPDATE", "DELETE", "UPDATE OF a"])
    row = "OLD" if event == "DELETE" else "NEW"
    key, other_key = name(on.key[0]), name(other.key[0])
    body = rng.choice([
        f"UPDATE {on.name} SET \"c \"\"q\" = 'touched' WHERE {key} IS {row}.{key}",
        f"UPDATE {on.name} SET a = 'b' WHERE {key} IS {row}.{key}",
        f"DELETE FROM {other.name} WHERE {other_key} IS {row}.{key}",
        f"INSERT OR REPLACE INTO {other.name} ({other_key}, a, b) VALUES ({row}.{key}, {row}.b, 2)",
        f"INSERT OR REPLACE INTO {other.name} (a, b) VALUES ({row}.a, {row}.p)",
        f"UPDATE OR REPLACE {other.name} SET a = {row}.a WHERE b = 1",
        f"UPDATE OR REPLACE {other.name} SET {other_key} = {row}.b WHERE {other_key} = 1",
        f"SELECT RAISE(IGNORE) WHERE {row}.b = 2",
        f"SELECT RAISE(ABORT, 'no') WHERE {row}.b = 3",
        f"SELECT RAISE(FAIL, 'no') WHERE {row}.a = 3",
    ])
    when = rng.choice(["BEFORE", "AFTER"])
    return f"CREATE TRIGGER user{number} {when} {event} ON {on.name} BEGIN {body}; END"


class StatementMaker:
    """Random INSERT, UPDATE and DELETE statements over the tables."""

    def __init__(self, rng, tables):
        self.rng = rng
        self.tables = tables

    def make(self):
        table = self.rng.choice(self.tables)
        chance = self.rng.random()
        if chance < .5:
            return self.insert(table)
        if chance < .85:
            return self.update(table)
        if chance < .86:
            return f"DELETE FROM {table.name}"
        return f"DELETE FROM {table.name} WHERE {self.condition(table)}"

    def value(self, table, column):
        if table.is_integer_key and column == "k" and self.rng.random() < .9:
            return self.rng.choice(INTEGERS)
        return self.rng.choice(VALUES)

    def conflict(self):
        return self.rng.choice(["", "", " OR REPLACE", " OR REPLACE", " OR REPLACE", " OR IGNORE",
                                " OR FAIL", " OR ROLLBACK", " OR ABORT"])

    def condition(self, table):
        key = table.key[0]
        return self.rng.choice([
            f"{name(key)} = {self.value(table, key)}", f"{name(key)} IS {self.value(table, key)}",
            f"a = {self.value(table, 'a')}", f"b = {self.value(table, 'b')}", "1"])

    def insert(self, table):
        rng = self.rng
        columns = [column for column in table.columns if rng.random() < .75] or ["a"]
        if table.has_rowid and rng.random() < .12:
            columns.append("_rowid_")
        rows = ", ".join("(" + ", ".join(
            rng.choice(INTEGERS) if column == "_rowid_" else self.value(table, column)
            for column in columns) + ")" for _ in range(rng.choice([1, 1, 1, 3])))
        conflict = self.conflict()
        upsert = "" if conflict or rng.random() > .2 else rng.choice([
            " ON CONFLICT DO NOTHING",
            f" ON CONFLICT ({', '.join(map(name, table.key))}) DO UPDATE SET a = excluded.a,"
            f" b = {self.value(table, 'b')}",
            f" ON CONFLICT DO UPDATE SET a = {self.value(table, 'a')},"
            f" {name(table.key[0])} = {self.value(table, table.key[0])}"])
        returning = " RETURNING *" if rng.random() < .1 else ""
        return (f"INSERT{conflict} INTO {table.name} ({', '.join(map(name, columns))})"
                f" VALUES {rows}{upsert}{returning}")

    def update(self, table):
        rng = self.rng
        columns = rng.sample(table.columns, rng.choice([1, 1, 2]))
        sets = ", ".join(f"{name(column)} = " + rng.choice(
            [self.value(table, column), self.value(table, column),
             rng.choice(["a", "b", "p", "a + 1", "b + 1"])]) for column in columns)
        if table.has_rowid and rng.random() < .06:
            sets = f"_rowid_ = {rng.choice(INTEGERS)}"
        source = " FROM (SELECT 1 AS one) AS s" if rng.random() < .1 else ""
        return f"UPDATE{self.conflict()} {table.name} SET {sets}{source} WHERE {self.condition(table)}"


class Writer:
    """A connection with random settings whose statements end, whatever triggers do."""

    def __init__(self, rng, path, said):
        self.said = said
        self.steps = 0
        self.connection = sqlite3.connect(path, isolation_level=None)
        self.set("synchronous", "off")
        self.set("recursive_triggers", rng.choice([0, 0, 1]))
        self.set("foreign_keys", rng.choice([0, 1, 1]))
        if rng.random() < .3:
            self.set("trusted_schema", "off")
        if rng.random() < .2:
            self.set("reverse_unordered_selects", 1)
        self.connection.set_progress_handler(self.progress, 1000)

    def set(self, pragma, value):
        self.connection.execute(f"PRAGMA {pragma} = {value}")

    def progress(self):
        self.steps += 1000
        return self.steps > STEPS_MAX

    def run(self, sql):
        self.steps = 0
        try:
            self.connection.execute(sql).fetchall()
            self.said.append(sql)
            return True
        except (sqlite3.Error, sqlite3.Warning) as error:
            self.said.append(f"{sql}  -- {error}")
            return False


class History:
    def __init__(self, seed, path):
        self.rng = random.Random(seed)
        self.path = path
        self.said = []      # everything that was executed, for the message of a failure
        for tail in ("", "-wal", "-shm", "-journal"):
            if os.path.exists(path + tail):
                os.remove(path + tail)
        connection = sqlite3.connect(path, isolation_level=None)
        connection.execute("PRAGMA journal_mode = " + self.rng.choice(["wal", "delete"]))
        connection.close()
        self.writers = [Writer(self.rng, path, self.said) for _ in range(2)]
        self.tables = []
        while not self.tables:
            self.make_tables()
        self.statements = StatementMaker(self.rng, self.tables)

    def make_tables(self):
        """Two tables, or none when SQLite refuses one of the random declarations."""
        tables = [TableMaker(self.rng, table).make() for table in ("t1", "t2")]
        if all(self.writers[0].run(sql) for table in tables for sql in table.ddl):
            self.tables = tables
            return
        for table in ("t2", "t1"):
            self.writers[0].run(f"DROP TABLE IF EXISTS {table}")

    def install(self, install):
        """Calls install([table names]) between older and younger triggers, on a database with rows.

        A younger AFTER INSERT trigger fires before capture's own: that is noticed, not captured.
        """
        younger = []
        for number in range(self.rng.choice([0, 0, 1, 2, 4])):
            sql = random_trigger(self.rng, number, self.tables)
            if "AFTER INSERT" in sql or self.rng.random() < .5:
                self.writers[0].run(sql)
            else:
                younger.append(sql)
        for _ in range(6):
            self.writers[0].run(self.statements.make())
        self.said.append("-- install")
        install([table.name for table in self.tables])
        for sql in younger:
            self.writers[0].run(sql)

    def play(self):
        """One round on one of the writers: a transaction with savepoints, or single statements."""
        rng = self.rng
        writer = rng.choice(self.writers)
        if rng.random() < .6:
            writer.run("BEGIN")
            if rng.random() < .2:
                writer.run("PRAGMA defer_foreign_keys = 1")
        for _ in range(rng.choice([1, 1, 2, 5, 9])):
            self.step(writer)
        if writer.connection.in_transaction and not (
                rng.random() < .85 and writer.run("COMMIT")):
            writer.run("ROLLBACK")

    def step(self, writer):
        has_savepoint = self.rng.random() < .15 and writer.connection.in_transaction
        if has_savepoint:
            writer.run("SAVEPOINT s")
        for _ in range(self.rng.choice([1, 1, 2])):
            writer.run(self.statements.make())
        if has_savepoint and writer.connection.in_transaction:
            if self.rng.random() < .5:
                writer.run("ROLLBACK TO s")
            writer.run("RELEASE s")

    def close(self):
        for writer in self.writers:
            writer.connection.close()
