#!/usr/bin/python3
"""Measures an archive of a SQLite table of ten columns against DuckDB:

    as of:   the table as it was when half of its changes (a tenth of its rows has one) had come, as
             JSON, as CSV and as a Parquet file, against what DuckDB takes to do the same from the files of
             `archive export --changes`, on one thread and on two, as rows come and sorted by their key, as
             ours are
    size:    a copy without changes, compacted, against DuckDB's zstd Parquet file of the same columns

    bench/bench_archive_state.py [--tidemark build/tidemark] [--rows 1000000] [--runs 5]

All write a file. User and system time say most, as the machine has other things to do; of each, and of wall
time, the least of some runs in turn. Of tidemark it is that of the whole process, of DuckDB that of the query
alone, once with its process warm. Skipped where DuckDB cannot be had from PyPI.
"""

import argparse
import json
import os
import pathlib
import resource
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests"))

from support import oracles  # noqa: E402  (the path is set just above)
from bench_copy import make  # noqa: E402

SKIPPED = 77
COLUMNS = "id, name, price, note, quantity, sku, city, stock, weight, code"
TOTALS = "count(*), sum(id), sum(quantity), sum(hash(note)), sum(hash(name))"


class Least:
    """The least processor seconds of some runs, and the least wall seconds."""

    def __init__(self):
        self.processor, self.wall = [], []

    def time(self, who, run):
        before, start = resource.getrusage(who), time.monotonic()
        run()
        after = resource.getrusage(who)
        self.wall.append(time.monotonic() - start)
        self.processor.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)

    def __str__(self):
        return f"{min(self.processor):.2f} s ({min(self.wall):.2f} s by wall)"

    def of(self, other):
        return f"{min(self.processor) / min(other.processor):.2f} of it " \
               f"({min(self.wall) / min(other.wall):.2f} by wall)"


class Bench:
    def __init__(self, tidemark, folder, rows):
        self.tidemark, self.folder, self.rows = os.path.abspath(tidemark), folder, rows
        self.database, self.archive = f"{folder}/items.db", f"{folder}/items.tide"
        self.changes, self.moment = f"{folder}/changes", None

    def run(self, *args, out=subprocess.DEVNULL):
        subprocess.run([self.tidemark, *args], check=True, stdout=out, stderr=subprocess.DEVNULL)

    def rows_there(self):
        if not os.path.exists(self.archive):
            return 0
        said = subprocess.run([self.tidemark, "archive", "info", "--json", "--no-wait", self.archive],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
        if said.returncode != 0:
            return 0
        return sum(series["sealed_rows"] + series["live_rows"]
                   for series in json.loads(said.stdout)["series"])

    def wait_for(self, follower, count):
        while self.rows_there() < count:
            assert follower.poll() is None, "the copy has ended"
            time.sleep(0.2)

    def update(self, rest):
        """Updates every twentieth row."""
        with sqlite3.connect(self.database, timeout=60) as db:
            db.execute("UPDATE items SET quantity = quantity + 1000, note = note || '!'"
                       " WHERE id % 20 = ?", (rest,))

    def follow(self):
        """Makes the archive: a copy, half of the changes, the moment, the other half."""
        marks = 2
        follower = subprocess.Popen([self.tidemark, "copy", f"sqlite:{self.database}",
                                     f"archive:{self.archive}", "--follow", "--quiet",
                                     "--state", f"{self.folder}/state"],
                                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            self.wait_for(follower, self.rows + marks)
            self.update(3)
            self.wait_for(follower, self.rows + marks + self.rows // 20)
            time.sleep(0.1)
            self.moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now := time.time())) + \
                f".{int(now % 1 * 1000):03}Z"
            time.sleep(0.1)
            self.update(13)
            self.wait_for(follower, self.rows + marks + self.rows // 10)
        finally:
            follower.terminate()
            follower.wait()
        self.run("archive", "export", "--changes", self.archive, self.changes)

    def cat(self, form):
        with open(f"{self.folder}/ours.{form}", "wb") as out:
            self.run("archive", "cat", self.archive, "--as-of", self.moment, "--format", form, out=out)

    def export(self):
        shutil.rmtree(f"{self.folder}/ours", ignore_errors=True)
        self.run("archive", "export", self.archive, f"{self.folder}/ours", "--as-of", self.moment)

    def query(self, is_sorted):
        return (f"SELECT {COLUMNS} FROM '{self.changes}/*.parquet' WHERE"
                " _op IN ('row', 'insert', 'update', 'delete')"
                f" AND (_commit_time IS NULL OR _commit_time <= TIMESTAMPTZ '{self.moment}')"
                " QUALIFY row_number() OVER (PARTITION BY id ORDER BY _time DESC) = 1"
                " AND _op <> 'delete'" + (" ORDER BY id" if is_sorted else ""))

    def ask(self, duckdb, form, way):
        out = f"{self.folder}/theirs.{form.split(',')[0]}"
        with duckdb.connect() as db:
            db.execute(f"SET threads = {way.threads}")
            db.execute(f"COPY ({self.query(way.is_sorted)}) TO '{out}' (FORMAT {form})")

    def check(self, duckdb):
        """All six are the same table, and half of its changes are in it."""
        found = [duckdb.sql(f"SELECT {TOTALS} FROM {table}").fetchall()[0] for table in (
            f"'{self.folder}/ours.ndjson'", f"'{self.folder}/ours.csv'",
            f"'{self.folder}/ours/*.parquet'", f"'{self.folder}/theirs.json'",
            f"'{self.folder}/theirs.csv'", f"'{self.folder}/theirs.parquet'")]
        assert len(set(found)) == 1 and found[0][0] == self.rows, found
        changed = duckdb.sql(f"SELECT count(*) FROM '{self.folder}/ours.ndjson'"
                             " WHERE quantity >= 1000").fetchall()[0]
        assert changed == (self.rows // 20,), changed


class Way:
    """How DuckDB is asked."""

    def __init__(self, name, threads, is_sorted):
        self.name, self.threads, self.is_sorted = name, threads, is_sorted


WAYS = (Way("one thread", 1, False), Way("two threads", 2, False),
        Way("one thread, sorted", 1, True), Way("two threads, sorted", 2, True))


def measure_state(bench, duckdb, runs, ours_name, ours, form):
    """One form of output: ours, then DuckDB's in each way, in turn."""
    least, theirs = Least(), {way: Least() for way in WAYS}
    for _ in range(runs):
        least.time(resource.RUSAGE_CHILDREN, ours)
        for way in WAYS:
            theirs[way].time(resource.RUSAGE_SELF, lambda way=way: bench.ask(duckdb, form, way))
    print(f"as of, {ours_name}: {least}")
    for way in WAYS:
        print(f"    DuckDB, {way.name}: {theirs[way]}; ours {least.of(theirs[way])}")


def measure_states(bench, duckdb, runs):
    measure_state(bench, duckdb, runs, "cat, JSON (goal: at most 2)", lambda: bench.cat("ndjson"),
                  "json")
    measure_state(bench, duckdb, runs, "cat, CSV", lambda: bench.cat("csv"), "csv")
    measure_state(bench, duckdb, runs, "export, Parquet", bench.export, "parquet, COMPRESSION zstd")
    bench.check(duckdb)


def measure_size(bench, duckdb):
    """Of the whole archive against DuckDB's file of all that its segments hold."""
    archive, folder = f"{bench.folder}/size.tide", f"{bench.folder}/segments"
    bench.run("copy", f"sqlite:{bench.database}", f"archive:{archive}", "--quiet",
              "--state", f"{bench.folder}/size-state")
    before = os.path.getsize(archive)
    bench.run("archive", "compact", archive)
    with sqlite3.connect(archive) as db:
        sealed, rows, count = db.execute(
            "SELECT sum(length(bytes)), sum(rows), count(*) FROM segments").fetchone()
    bench.run("archive", "export", "--changes", archive, folder)
    duckdb.sql(f"COPY (SELECT * FROM '{folder}/*.parquet' ORDER BY _time)"
               f" TO '{bench.folder}/all.parquet' (FORMAT parquet, COMPRESSION zstd)")
    theirs, whole = os.path.getsize(f"{bench.folder}/all.parquet"), os.path.getsize(archive)
    print(f"size            archive {whole} bytes, {before} before it was compacted; {rows} rows"
          f" sealed in {count} segments of {sealed} bytes")
    print(f"                DuckDB {theirs} bytes of all rows: archive {whole / theirs:.2f}, "
          f"segments {sealed / theirs:.2f}, goal at most 1.25")


def main():
    root = pathlib.Path(__file__).resolve().parents[1]
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--tidemark", default=root / "build" / "tidemark")
    parser.add_argument("--rows", type=int, default=1000000)
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    problem = oracles.install()
    if problem is not None:
        print(f"DuckDB cannot be had from PyPI: {problem}")
        return SKIPPED
    duckdb, _ = oracles.load()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(options.tidemark, folder, options.rows // 20 * 20)
        make(bench.database, bench.rows)
        measure_size(bench, duckdb)
        bench.follow()
        measure_states(bench, duckdb, options.runs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
