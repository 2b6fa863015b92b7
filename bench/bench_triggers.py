#!/usr/bin/env python3
"""Measures what change capture costs a writer: the same writes with and without our triggers, for
transactions of 1, 10 and 1000 rows.

    bench/bench_triggers.py [--tidemark build/tidemark] [--bare build/bench/bare_sqlite]

Prints the ratio of the times (1 = no cost), medians of five pairs, beside the bar that
docs/sqlite.md gives.
"""

import argparse
import contextlib
import os
import pathlib
import shutil
import sqlite3
import statistics
import subprocess
import tempfile

ROWS = {("NORMAL", 1): 20000, ("NORMAL", 10): 60000, ("NORMAL", 1000): 200000,
        ("FULL", 1): 2000, ("FULL", 10): 20000, ("FULL", 1000): 200000}


def bar(sync, columns, op, size):
    if sync == "FULL" and size < 1000:
        return 1.2
    if size == 1:
        return 1.7
    return 2.2 if columns == 4 and op == "insert" else 1.7 if columns == 4 else 1.4


def make(path, columns, rows):
    names = ", ".join(f"c{i}" for i in range(1, columns))
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute(f"CREATE TABLE items (id INTEGER PRIMARY KEY, {names})")
        db.execute("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)"
                   f" INSERT INTO items SELECT i{', 1' * (columns - 1)} FROM n WHERE ? > 0",
                   (max(rows, 1), rows))
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def write(bare, path, op, rows, size, columns, sync):
    return float(subprocess.run([bare, "write", path, "items", op, str(rows), str(size),
                                 str(columns), sync], check=True, text=True,
                                stdout=subprocess.PIPE).stdout)


def pair(options, folder, op, rows, size, columns, sync):
    plain, followed = f"{folder}/plain.db", f"{folder}/followed.db"
    make(plain, columns, rows if op == "update" else 0)
    shutil.copy(plain, followed)
    subprocess.run([options.tidemark, "copy", f"sqlite:{followed}", "null:", "--keep", "--quiet",
                    "--state", f"{folder}/state"], check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    with contextlib.closing(sqlite3.connect(followed)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    times = [write(options.bare, path, op, rows, size, columns, sync)
             for path in (plain, followed)]
    shutil.rmtree(folder)
    os.mkdir(folder)
    return times[1] / times[0]


def main():
    root = pathlib.Path(__file__).resolve().parents[1]
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tidemark", default=root / "build" / "tidemark")
    parser.add_argument("--bare", default=root / "build-bench" / "bench" / "bare_sqlite")
    options = parser.parse_args()
    options.tidemark = os.path.abspath(options.tidemark)
    with tempfile.TemporaryDirectory() as top:
        folder = f"{top}/run"
        os.mkdir(folder)
        for (sync, size), rows in ROWS.items():
            for columns in (4, 20):
                for op in ("insert", "update"):
                    ratios = [pair(options, folder, op, rows, size, columns, sync)
                              for _ in range(5)]
                    print(f"triggers: {sync:6} {columns:2} columns, {op} of {size:4} a transaction:"
                          f" {statistics.median(ratios):.2f} (at most"
                          f" {bar(sync, columns, op, size):.1f})", flush=True)


if __name__ == "__main__":
    main()
