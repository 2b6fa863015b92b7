"""A sample shop as an SQLite database, and a process that keeps writing to it.

    make_shop(path, orders=10000)              five tables; sizes follow from the orders
    with Writer(path, seed=1) as writer:       a process of its own
        ...
        done = writer.stop()                   how many transactions it has committed

Tables: customers, products (UNIQUE sku), orders, order_items (WITHOUT ROWID, composite key) and
sessions (TEXT key). As a program: python3 -m support.shop make|write DATABASE …
"""

import argparse
import json
import os
import pathlib
import random
import signal
import sqlite3
import subprocess
import sys
import time

TABLES = ("customers", "order_items", "orders", "products", "sessions")

SCHEMA = """
CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT NOT NULL, email TEXT, city TEXT,
                        credit NUMERIC, notes TEXT, created TEXT NOT NULL);
CREATE TABLE products (id INTEGER PRIMARY KEY, sku TEXT NOT NULL UNIQUE, title TEXT NOT NULL,
                       price REAL NOT NULL, stock INTEGER NOT NULL, picture BLOB);
CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER NOT NULL, status TEXT NOT NULL,
                     total REAL NOT NULL, placed TEXT NOT NULL, note TEXT);
CREATE TABLE order_items (order_id INTEGER NOT NULL, line INTEGER NOT NULL,
                          product_id INTEGER NOT NULL, quantity INTEGER NOT NULL,
                          price REAL NOT NULL, PRIMARY KEY (order_id, line)) WITHOUT ROWID;
CREATE TABLE sessions (token TEXT NOT NULL PRIMARY KEY, customer_id INTEGER, seen INTEGER NOT NULL,
                       data TEXT);
"""

# Every table is filled by one statement over a counting CTE: about a million rows in two seconds.
COUNT = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :n) "
DAY = "datetime('2026-01-01', '+' || (i % 300) || ' days', '+' || (i * 37 % 86400) || ' seconds')"
FILL = {
    "customers": "SELECT i, 'Customer ' || i || CASE i % 7 WHEN 0 THEN ' Zoë' WHEN 1 THEN ' \"Q\"'"
                 " WHEN 2 THEN ' 李' ELSE '' END, CASE i % 11 WHEN 0 THEN NULL ELSE 'c' || i ||"
                 " '@example.org' END, 'City ' || (i % 100), i * 0.25, NULL, " + DAY + " FROM n",
    "products": "SELECT i, 'SKU-' || i, 'Product ' || i, (i % 10000) / 100.0, i * 7 % 1000,"
                " CASE i % 5 WHEN 0 THEN randomblob(16) END FROM n",
    "orders": "SELECT i, i * 7919 % :customers + 1, CASE i % 4 WHEN 0 THEN 'paid' WHEN 1 THEN 'sent'"
              " ELSE 'open' END, (i * 31 % 100000) / 100.0, " + DAY + ","
              " CASE i % 9 WHEN 0 THEN 'first line' || char(10) || 'second \\ \"line\"' END FROM n",
    "order_items": "SELECT (i + 2) / 3, (i + 2) % 3 + 1, i * 104729 % :products + 1, i % 5 + 1,"
                   " (i % 10000) / 100.0 FROM n",
    "sessions": "SELECT hex(randomblob(12)) || '-' || i, i * 31 % :customers + 1, 1700000000 + i,"
                " '{\"cart\":[' || i || ',' || (i + 1) || ']}' FROM n",
}


def sizes(orders):
    """How many rows each table gets: about five for each order in all."""
    return {"customers": max(orders // 5, 1), "products": max(orders // 20, 1), "orders": orders,
            "order_items": orders * 3, "sessions": max(orders // 2, 1)}


def connect(path, **options):
    db = sqlite3.connect(path, timeout=30, isolation_level=None, **options)
    db.execute("PRAGMA busy_timeout = 30000")
    return db


def make_shop(path, orders=2000, journal="WAL"):
    """Makes the database and returns {table: rows}. What was there under the name is removed."""
    for suffix in ("", "-wal", "-shm", "-journal"):
        pathlib.Path(f"{path}{suffix}").unlink(missing_ok=True)
    counts = sizes(orders)
    db = connect(path)
    db.execute("PRAGMA synchronous = OFF")
    db.executescript(SCHEMA)
    db.execute("BEGIN")
    for table, select in FILL.items():
        db.execute(f"{COUNT}INSERT INTO {table} {select}", {"n": counts[table], **counts})
    db.execute("COMMIT")
    db.execute(f"PRAGMA journal_mode = {journal}")
    db.close()
    return counts


# -- the writer: each step is one statement on one of the five tables

class Steps:
    """Random changes; what a step hits may be gone already, which is as good a step."""

    def __init__(self, db, rng):
        self.db = db
        self.rng = rng
        self.top = {table: db.execute(f"SELECT coalesce(max({key}), 0) FROM {table}").fetchone()[0]
                    for table, key in (("customers", "id"), ("products", "id"), ("orders", "id"))}
        self.all = [self.add_order, self.add_order, self.change_order, self.change_order,
                    self.remove_order, self.change_customer, self.add_customer,
                    self.replace_product, self.change_stock, self.move_product, self.add_session,
                    self.change_session, self.move_session, self.remove_sessions, self.move_item,
                    self.move_customer, self.remove_customer]

    def any(self, table):
        """Mostly new rows, as in life; sometimes any."""
        top = max(self.top[table], 1)
        low = max(top - 1000, 1) if self.rng.random() < 0.3 else 1
        return self.rng.randint(low, top)

    def next(self, table):
        self.top[table] += 1
        return self.top[table]

    def word(self):
        return self.rng.choice(["plain", "zwölf", "a\nb", 'say "hi"', "back\\slash", "\u0001", "🙂",
                                "", "x" * 300]) + str(self.rng.randint(0, 999))

    def add_order(self):
        order = self.next("orders")
        self.db.execute("INSERT INTO orders VALUES (?, ?, 'open', ?, datetime('now'), ?)",
                        (order, self.any("customers"), self.rng.random() * 1000, self.word()))
        self.db.executemany("INSERT INTO order_items VALUES (?, ?, ?, ?, ?)",
                            [(order, line, self.any("products"), line, self.rng.random() * 99)
                             for line in range(1, self.rng.randint(2, 5))])

    def change_order(self):
        self.db.execute("UPDATE orders SET status = ?, total = total + 0.1 WHERE id = ?",
                        (self.word(), self.any("orders")))

    def remove_order(self):
        order = self.any("orders")
        self.db.execute("DELETE FROM order_items WHERE order_id = ?", (order,))
        self.db.execute("DELETE FROM orders WHERE id = ?", (order,))

    def add_customer(self):
        self.db.execute("INSERT INTO customers VALUES (?, ?, ?, ?, ?, ?, datetime('now'))",
                        (self.next("customers"), self.word(), None, self.word(),
                         self.rng.choice([0, 12.5, -1e-7, 2**53 + 1, "n/a"]), self.word()))

    def change_customer(self):
        self.db.execute("UPDATE customers SET notes = ?, credit = credit * 1.01 WHERE id = ?",
                        (self.word(), self.any("customers")))

    def move_customer(self):
        self.db.execute("UPDATE OR IGNORE customers SET id = ? WHERE id = ?",
                        (self.any("customers"), self.any("customers")))

    def remove_customer(self):
        self.db.execute("DELETE FROM customers WHERE id = ?", (self.any("customers"),))

    def replace_product(self):
        """May remove another row that has the same sku: the hard case of REPLACE."""
        number = self.any("products")
        self.db.execute("REPLACE INTO products VALUES (?, ?, ?, ?, ?, ?)",
                        (number, f"SKU-{self.any('products')}", self.word(),
                         self.rng.randint(1, 9999) / 100, 5, self.rng.randbytes(8)))

    def change_stock(self):
        self.db.execute("UPDATE products SET stock = stock - 1 WHERE id BETWEEN ? AND ? + 3",
                        (low := self.any("products"), low))

    def move_product(self):
        self.db.execute("UPDATE OR REPLACE products SET id = ? WHERE id = ?",
                        (self.any("products"), self.any("products")))

    def move_item(self):
        self.db.execute("UPDATE OR REPLACE order_items SET line = line + ? WHERE order_id = ?",
                        (self.rng.choice([-1, 1]), self.any("orders")))

    def add_session(self):
        self.db.execute("INSERT OR REPLACE INTO sessions VALUES (?, ?, ?, ?)",
                        (f"{self.rng.randbytes(2).hex()}-é", self.any("customers"),
                         int(time.time()), self.word()))

    def _token(self):
        found = self.db.execute("SELECT token FROM sessions WHERE token >= ? LIMIT 1",
                                (self.rng.randbytes(3).hex().upper(),)).fetchone()
        return found[0] if found else ""

    def change_session(self):
        self.db.execute("UPDATE sessions SET seen = seen + 1 WHERE token = ?", (self._token(),))

    def move_session(self):
        self.db.execute("UPDATE OR REPLACE sessions SET token = ? WHERE token = ?",
                        (self.rng.randbytes(2).hex() + "-é", self._token()))

    def remove_sessions(self):
        self.db.execute("DELETE FROM sessions WHERE token BETWEEN ? AND ? || '~'",
                        (token := self._token(), token))


def write(path, seed, per_second, transactions, stop):
    """Random transactions until stop() or the count is reached; returns how many were committed."""
    db = connect(path)
    db.execute("PRAGMA synchronous = NORMAL")
    rng = random.Random(seed)
    steps = Steps(db, rng)
    done = 0
    start = time.monotonic()
    while not stop() and (transactions is None or done < transactions):
        db.execute("BEGIN IMMEDIATE")
        for _ in range(rng.choice([1, 1, 1, 2, 3, 10])):
            rng.choice(steps.all)()
        if rng.random() < 0.03:
            db.execute("ROLLBACK")
            steps = Steps(db, rng)
            continue
        db.execute("COMMIT")
        done += 1
        ahead = done / per_second - (time.monotonic() - start) if per_second else 0
        if ahead > 0:
            time.sleep(min(ahead, 0.1))
    db.close()
    return done


class Writer:
    """The writer as a process. `per_second` None: as fast as it can."""

    def __init__(self, path, seed=1, per_second=None, transactions=None):
        command = [sys.executable, "-m", "support.shop", "write",
                   str(pathlib.Path(path).resolve()), "--seed", str(seed)]
        command += ["--per-second", str(per_second)] if per_second else []
        command += ["--transactions", str(transactions)] if transactions else []
        tests = str(pathlib.Path(__file__).resolve().parents[1])
        self._process = subprocess.Popen(command, cwd=tests, stdout=subprocess.PIPE, text=True,
                                         env={**os.environ, "PYTHONPATH": tests})
        assert self._process.stdout.readline() == "started\n", "the writer did not start"
        self.transactions = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        self._process.stdout.close()

    def running(self):
        return self._process.poll() is None

    def stop(self, timeout=240):
        """Lets it finish its transaction; returns how many it has committed."""
        if self.transactions is None:
            if self.running():
                self._process.send_signal(signal.SIGTERM)
            self._finish(timeout)
        return self.transactions

    def wait(self, timeout=600):
        """Waits until it has made its `transactions`."""
        if self.transactions is None:
            self._finish(timeout)
        return self.transactions

    def _finish(self, timeout):
        out, _ = self._process.communicate(timeout=timeout)
        assert self._process.returncode == 0, f"the writer failed with {self._process.returncode}"
        self.transactions = json.loads(out)["transactions"]


def _write_command(options):
    stopped = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.append(True))
    if not pathlib.Path(options.database).exists():
        sys.exit(f"{options.database} is not there")
    print("started", flush=True)
    done = write(options.database, options.seed, options.per_second, options.transactions,
                 lambda: bool(stopped))
    print(json.dumps({"transactions": done}))


def main():
    parser = argparse.ArgumentParser(prog="python3 -m support.shop")
    commands = parser.add_subparsers(dest="command", required=True)
    make = commands.add_parser("make", help="make the database")
    make.add_argument("database")
    make.add_argument("--orders", type=int, default=2000)
    make.add_argument("--journal", default="WAL", choices=["WAL", "DELETE"])
    writer = commands.add_parser("write", help="keep writing until SIGTERM")
    writer.add_argument("database")
    writer.add_argument("--seed", type=int, default=1)
    writer.add_argument("--per-second", type=float)
    writer.add_argument("--transactions", type=int)
    options = parser.parse_args()
    if options.command == "make":
        print(json.dumps(make_shop(options.database, options.orders, options.journal)))
    else:
        _write_command(options)


if __name__ == "__main__":
    main()
