#!/usr/bin/env python3
"""Measures a snapshot of SQLite into `null:` (every row encoded as a JSON frame) against a bare
loop of sqlite3_step that reads the same columns as text.

    bench/bench_copy.py [--tidemark build/tidemark] [--bare build/bench/bare_sqlite] [--rows 1000000]

The two run in turn, five times; medians of rows a second, and their ratio.
"""

import argparse
import os
import pathlib
import sqlite3
import statistics
import subprocess
import tempfile
import time


def make(path, rows):
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("CREATE TABLE items (id INTEGER PRIMARY KEY, name TEXT, price REAL, note TEXT,"
                   " quantity INTEGER, sku TEXT, city TEXT, stock INTEGER, weight REAL, code TEXT)")
        db.execute("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)"
                   " INSERT INTO items SELECT i, 'item number ' || i, (i % 100000) / 100.0,"
                   " 'a note of ordinary length, number ' || i, i % 100, 'SKU-' || i,"
                   " 'City ' || (i % 100), i * 7, i * 0.25, hex(i) FROM n", (rows,))


def bare(program, path):
    return float(subprocess.run([program, "read", path, "items"], check=True, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout)


def copy(program, path, folder):
    start = time.monotonic()
    subprocess.run([program, "copy", f"sqlite:{path}", "null:", "--quiet", "--state",
                    f"{folder}/state-{start}"], check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    return time.monotonic() - start


def main():
    root = pathlib.Path(__file__).resolve().parents[1]
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tidemark", default=root / "build" / "tidemark")
    parser.add_argument("--bare", default=root / "build-bench" / "bench" / "bare_sqlite")
    parser.add_argument("--rows", type=int, default=1000000)
    options = parser.parse_args()
    tidemark = os.path.abspath(options.tidemark)
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/items.db"
        make(path, options.rows)
        bare(options.bare, path)
        pairs = [(bare(options.bare, path), copy(tidemark, path, folder)) for _ in range(5)]
    ours = options.rows / statistics.median(b for _, b in pairs)
    theirs = options.rows / statistics.median(a for a, _ in pairs)
    print(f"copy: {options.rows} rows of 10 columns: bare sqlite3_step loop as text"
          f" {theirs / 1000:.0f} k rows/s, tidemark copy to null: {ours / 1000:.0f} k rows/s,"
          f" ratio {ours / theirs:.2f} (goal 0.70; whole process, set-up and removal included)")


if __name__ == "__main__":
    main()
