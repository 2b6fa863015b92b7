#!/usr/bin/env python3
"""Measures copies of a SQLite table of ten columns, each against what a user could run instead:

    null:        every row encoded as a JSON frame, against a bare loop of sqlite3_step that reads
                 the same columns as text
    file:        the same into a file, with all syncs, against `sqlite3 -json`, which only writes
    two files    two sinks at once, against one; and two bare writers of as many bytes against one,
                 with a sync every 5 MB: more than that the disk does not give

    bench/bench_copy.py [--tidemark build/tidemark] [--bare build/bench/bare_sqlite] [--rows 1000000]
                        [--folder DIR, e.g. /dev/shm: without a disk]

They run in turn, five times. Wall time is what counts where the machine has nothing else to do (medians);
where it has, user and system time of the processor say more (least of the five).
"""

import argparse
import os
import pathlib
import resource
import shutil
import sqlite3
import statistics
import subprocess
import tempfile
import threading
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


class Took:
    """What some runs of one thing took: wall and processor seconds."""

    def __init__(self):
        self.wall, self.processor = [], []

    def time(self, run):
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        run()
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.wall.append(time.monotonic() - start)
        self.processor.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)

    def rate(self, rows):
        return f"{rows / statistics.median(self.wall) / 1000:.0f} k rows/s, " \
               f"{min(self.processor) * 1e6 / rows:.2f} us of processor a row"


def ratio(ours, theirs):
    return f"{statistics.median(theirs.wall) / statistics.median(ours.wall):.2f} by wall, " \
           f"{min(theirs.processor) / min(ours.processor):.2f} by processor"


def quietly(arguments, **options):
    subprocess.run(arguments, check=True, stderr=subprocess.DEVNULL,
                   **{"stdout": subprocess.DEVNULL, **options})


class Bench:
    def __init__(self, options, folder):
        self.tidemark, self.bare = os.path.abspath(options.tidemark), options.bare
        self.path, self.folder = f"{folder}/items.db", folder
        self.count = 0
        self.size = 0  # of the last file that was written

    def write_bare(self, writers):
        """So many threads write a file each of the size that a file sink's had."""
        threads = [threading.Thread(target=write_pieces, args=(f"{self.folder}/bare{i}", self.size))
                   for i in range(writers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def read_bare(self):
        quietly([self.bare, "read", self.path, "items"])

    def write_json(self):
        with open(f"{self.folder}/json", "wb") as out:
            quietly(["sqlite3", "-json", self.path, "SELECT * FROM items"], stdout=out)

    def copy(self, sink):
        self.count += 1
        quietly([self.tidemark, "copy", f"sqlite:{self.path}", sink, "--quiet", "--overwrite",
                 "--state", f"{self.folder}/state-{self.count}"])

    def follow_until_copied(self, names):
        """`tidemark run` with a file sink for each name, stopped once all have the end."""
        self.count += 1
        config = f"{self.folder}/{self.count}.yaml"
        files = [f"{self.folder}/{self.count}{name}.ndjson" for name in names]
        sinks = ", ".join(f"{name}: 'file:{file}'" for name, file in zip(names, files))
        with open(config, "w") as out:
            out.write(f"name: bench\nsource: sqlite:{self.path}\nsinks: {{{sinks}}}\n"
                      f"state: state-{self.count}\n")
        process = subprocess.Popen([self.tidemark, "run", config, "--quiet"],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while process.poll() is None and not all(map(has_ended, files)):
            time.sleep(0.002)
        process.terminate()
        assert process.wait() == 0
        for file in files:
            self.size = os.path.getsize(file)
            os.unlink(file)

    def detach(self):
        quietly([self.tidemark, "detach", f"{self.folder}/{self.count}.yaml"])


PIECE = os.urandom(5_000_000)


def write_pieces(path, size):
    """In pieces of 256 KiB, synced every 5 MB."""
    with open(path, "wb", buffering=0) as file:
        while size > 0:
            for at in range(0, min(size, len(PIECE)), 262144):
                file.write(PIECE[at:at + 262144])
            os.fdatasync(file.fileno())
            size -= len(PIECE)
    os.unlink(path)


def has_ended(path):
    if not os.path.exists(path):
        return False
    with open(path, "rb") as file:
        file.seek(max(0, os.path.getsize(path) - 400))
        return b'"kind":"end"' in file.read()


def measure(bench, rows, runs):
    bare, null, json, file, one, two, bare_one, bare_two = (Took() for _ in range(8))
    has_shell = shutil.which("sqlite3") is not None
    bench.read_bare()
    for _ in range(runs):
        bare.time(bench.read_bare)
        null.time(lambda: bench.copy("null:"))
        if has_shell:
            json.time(bench.write_json)
        file.time(lambda: bench.copy(f"file:{bench.folder}/out.ndjson"))
        for took, names in ((one, "a"), (two, "ab")):
            took.time(lambda names=names: bench.follow_until_copied(names))
            bench.detach()
        bare_one.time(lambda: bench.write_bare(1))
        bare_two.time(lambda: bench.write_bare(2))
    print(f"{rows} rows of 10 columns; whole processes, set-up and removal included")
    print(f"bare loop    {bare.rate(rows)}")
    print(f"copy null:   {null.rate(rows)}; of the bare loop {ratio(null, bare)} (goal 0.70)")
    if has_shell:
        print(f"sqlite3      {json.rate(rows)} (-json into a file)")
        print(f"copy file:   {file.rate(rows)}; of sqlite3 {ratio(file, json)} (goal 1.5)")
    print(f"one file     {one.rate(rows)} (tidemark run)")
    print(f"two files    {two.rate(rows)}; of one {ratio(two, one)} (goal 0.80 by wall)")
    limit = statistics.median(bare_one.wall) / statistics.median(bare_two.wall)
    print(f"two writers  {statistics.median(bare_two.wall):.2f} s, bare; of one {limit:.2f} by wall")


def main():
    root = pathlib.Path(__file__).resolve().parents[1]
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tidemark", default=root / "build" / "tidemark")
    parser.add_argument("--bare", default=root / "build-bench" / "bench" / "bare_sqlite")
    parser.add_argument("--rows", type=int, default=1000000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--folder", help="where the files are written")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        bench = Bench(options, folder)
        make(bench.path, options.rows)
        measure(bench, options.rows, options.runs)


if __name__ == "__main__":
    main()
