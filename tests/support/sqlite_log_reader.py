"""A reader of capture's log in Python: slow, plain, and independent of the one under test.

Values are exact: (storage class, bytes or number), so that 1, 1.0, '1' and x'31' are four values.
A row's key is that of its key columns, and of the rowid too where one of them is NULL.
"""

import sqlite3
import struct

from support.sqlite_histories import name

INSERT, UPDATE, DELETE, CANDIDATE = 1, 2, 3, 4
LOG = '"_tidemark_changes"'


def typed(expressions):
    """SQL that gives two columns for each expression: storage class, and the value unharmed."""
    return ", ".join(f"typeof({e}), CASE typeof({e}) WHEN 'text' THEN CAST({e} AS BLOB) ELSE {e} END"
                     for e in expressions)


def exact(fields, is_key=False):
    """The values of typed() columns. In a key -0.0 is 0.0, as SQLite compares them."""
    values = []
    for kind, value in zip(fields[::2], fields[1::2]):
        if kind == "real":
            value = struct.pack(">d", value + 0.0 if is_key else value)
        values.append((kind, value))
    return tuple(values)


def bound(value):
    """A parameter that has the exact value again: (SQL, what to bind)."""
    kind, content = value
    if kind == "text":
        return "CAST(? AS TEXT)", content
    if kind == "real":
        return "CAST(? AS REAL)", struct.unpack(">d", content)[0]
    return "?", content


class TableReader:
    def __init__(self, connection, table):
        self.connection = connection
        self.table = table
        columns = [name(row[0]) for row in connection.execute(
            "SELECT name FROM pragma_table_xinfo(?) ORDER BY cid", (table.name,))]
        rowid = f", {name(table.rowid)}" if table.is_nullable else ""
        self.width = len(table.key)
        self.select = (f"SELECT {typed(map(name, table.key))}, {typed(columns)}{rowid}"
                       f" FROM {name(table.name)}")

    def key_of(self, values, rowid):
        """Adds the rowid where the key's columns do not tell rows apart."""
        if self.table.is_nullable and ("null", None) in values:
            return values + (("integer", rowid),)
        return values

    def split(self, row):
        rowid = row[-1] if self.table.is_nullable else None
        fields = row[:-1] if self.table.is_nullable else row
        key = exact(fields[:2 * self.width], is_key=True)
        return self.key_of(key, rowid), exact(fields[2 * self.width:])

    def all(self):
        rows = [self.split(row) for row in self.connection.execute(self.select)]
        copy = dict(rows)
        assert len(copy) == len(rows), f"two rows of {self.table.name} have one key"
        return copy

    def fetch(self, key):
        """The row that has this very key, or None."""
        if len(key) > self.width:
            found = self.connection.execute(
                f"{self.select} WHERE {name(self.table.rowid)} = ?", (key[-1][1],))
        else:
            parts = [(f"{name(column)} = {sql}", value) for column, (sql, value) in
                     zip(self.table.key, map(bound, key))]
            found = self.connection.execute(
                f"{self.select} WHERE {' AND '.join(sql for sql, _ in parts)}",
                [value for _, value in parts])
        return next((row for its_key, row in map(self.split, found) if its_key == key), None)


class LogReader:
    """frames(position, window) reads like a source; all in one transaction."""

    def __init__(self, path, tables):
        self.connection = sqlite3.connect(path, isolation_level=None)
        self.tables = {table.number: TableReader(self.connection, table) for table in tables}
        width = sum(row[1].startswith("k") for row in
                    self.connection.execute(f"PRAGMA table_info({LOG})"))
        self.keys = typed(f"k{i + 1}" for i in range(width))

    def last(self):
        return self.connection.execute(f"SELECT max(id) FROM {LOG}").fetchone()[0]

    def frames(self, position, window):
        """(frames, new position, tables as they are). A frame: number, key, op, row, log id."""
        self.connection.execute("BEGIN")
        last, frames = self.last(), []
        while position < last:
            entries = self.connection.execute(
                f"SELECT id, t, op, r, {self.keys} FROM {LOG} WHERE id > ? AND id <= ?"
                " ORDER BY id LIMIT ?", (position, last, window)).fetchall()
            frames += self.deliver(self.merge(entries))
            position = entries[-1][0]
        full = {number: reader.all() for number, reader in self.tables.items()}
        self.connection.execute("COMMIT")
        return frames, last, full

    def merge(self, entries):
        """The last mark of each key of a window; a candidate does not hide what came before."""
        marks = {}
        for log_id, number, op, rowid, *fields in entries:
            if number not in self.tables:
                continue    # another pipeline's, or the entry that keeps the log from being empty
            reader = self.tables[number]
            key = reader.key_of(exact(fields[:2 * reader.width], is_key=True), rowid)
            before = marks.pop((number, key), None)
            marks[number, key] = (before[0] if op == CANDIDATE and before else op, log_id)
        return marks

    def deliver(self, marks):
        for (number, key), (op, log_id) in marks.items():
            row = self.tables[number].fetch(key)
            if row is None:
                yield number, key, DELETE, None, log_id
            elif op != CANDIDATE:
                yield number, key, UPDATE if op == DELETE else op, row, log_id

    def prune(self, connection, confirmed):
        """Deletes what is confirmed, but never the last entry."""
        connection.execute(f"DELETE FROM {LOG} WHERE id <= ? AND id < (SELECT max(id) FROM {LOG})",
                           (confirmed,))

    def close(self):
        self.connection.close()
