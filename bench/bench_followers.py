#!/usr/bin/env python3
"""Measures replication: catching up, how soon rows are seen, and what many followers cost.

    bench/bench_followers.py [--tidemark build/tidemark] [--mib 512] [--runs 5] [--seconds 10]
                               [--rate 20000] [--followers 20]

Catching up over loopback is compared with copying the same file and syncing it, in turns. Rows are
seen when another process can read them from the follower's archive; time counts from the end of the
commit that wrote them. The publisher's memory is its highest, with followers that read all.
"""

import argparse
import multiprocessing
import os
import pathlib
import re
import shutil
import socket
import sqlite3
import statistics
import struct
import subprocess
import tempfile
import threading
import time

TICK = 0.005
# Says that all is wanted, and that nothing is held.
WORDS = b"tidemark-go\0\x01\0" + struct.pack("<IBB", 2, 0, 0) + \
    b"tidemark-hi\0\x01\0" + struct.pack("<II", 4, 0)


class Publisher:
    """A running `archive publish`, by its port."""

    def __init__(self, tidemark, archive):
        self.process = subprocess.Popen(
            [tidemark, "archive", "publish", archive, "--listen", "tcp://127.0.0.1:0",
             "--max-followers", "100"], stderr=subprocess.PIPE, text=True)
        self.port = int(re.search(r"127\.0\.0\.1:(\d+)", self.process.stderr.readline()).group(1))
        self.address = f"tcp://127.0.0.1:{self.port}"
        threading.Thread(target=self.process.stderr.read, daemon=True).start()

    def high_mib(self):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"^VmHWM:\s+(\d+)", status, re.M).group(1)) / 1024

    def cpu_seconds(self):
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(60)


def make_archive(tidemark, folder, mib):
    """An archive of so many MiB, of rows that do not compress."""
    db = sqlite3.connect(folder / "big.db")
    db.executescript("PRAGMA synchronous = OFF; CREATE TABLE t (id INTEGER PRIMARY KEY, body BLOB);")
    with db:
        db.execute("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)"
                   " INSERT INTO t SELECT i, randomblob(1000) FROM n", (mib * 1024,))
    db.close()
    subprocess.run([tidemark, "copy", f"sqlite:{folder}/big.db", f"archive:{folder}/a.tide",
                    "--quiet", "--state", folder / "state"], check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    (folder / "big.db").unlink()
    return folder / "a.tide"


def timed_copy(archive, to):
    start = time.monotonic()
    shutil.copyfile(archive, to)
    fd = os.open(to, os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)
    return time.monotonic() - start


def timed_subscribe(tidemark, publisher, to):
    start = time.monotonic()
    subprocess.run([tidemark, "archive", "subscribe", publisher.address, to, "--quiet"], check=True)
    return time.monotonic() - start


def measure_catching_up(tidemark, folder, archive, runs):
    size = archive.stat().st_size / 1e6
    pairs = []
    with Publisher(tidemark, archive) as publisher:
        for number in range(runs + 1):
            copied = timed_copy(archive, folder / "copy")
            (folder / "copy").unlink()
            followed = timed_subscribe(tidemark, publisher, folder / "b.tide")
            for suffix in ("", "-wal", "-shm", "-lock"):
                (folder / f"b.tide{suffix}").unlink(missing_ok=True)
            if number > 0:  # the first one warms up
                pairs.append((copied, followed))
    copied, followed = (statistics.median(times) for times in zip(*pairs))
    ratio = statistics.median(one / other for one, other in pairs)
    print(f"catching up, {size:.0f} MB: {size / followed:.0f} MB/s, cp and fsync"
          f" {size / copied:.0f} MB/s, ratio {ratio:.2f}"
          f" [{min(c / f for c, f in pairs):.2f}..{max(c / f for c, f in pairs):.2f}]")


def write_rows(archive, rate, seconds, ready, ret):
    """Ticks of rows of 200 bytes; [(time of the last row, when its commit had ended)]."""
    db = sqlite3.connect(archive, isolation_level=None, timeout=30)
    db.execute("PRAGMA synchronous = NORMAL")
    source = db.execute("SELECT id FROM sources").fetchone()[0]
    count, body, ticks = int(rate * TICK), os.urandom(200), []
    ready.wait()
    begin = time.monotonic()
    while time.monotonic() < begin + seconds:
        now = time.time_ns()
        db.execute("BEGIN IMMEDIATE")
        db.executemany("INSERT INTO wal (source_id, stream, ts, wall_offset, row)"
                       " VALUES (?, 'bench', ?, 0, ?)",
                       [(source, now + i, body) for i in range(count)])
        db.execute("COMMIT")
        ticks.append((now + count - 1, time.monotonic()))
        time.sleep(max(begin + len(ticks) * TICK - time.monotonic(), 0))
    ret.put((ticks, time.monotonic() - begin))


def newest_row(db):
    found = db.execute("SELECT ts FROM wal WHERE source_id = (SELECT MIN(id) FROM sources)"
                       " AND stream = 'bench' ORDER BY ts DESC LIMIT 1").fetchone()
    return found[0] if found else 0


def watch_rows(copy, until, seen):
    """[(when, newest row that can be read)]"""
    db = sqlite3.connect(copy, isolation_level=None, timeout=30)
    while not until.is_set():
        newest = newest_row(db)
        if not seen or newest != seen[-1][1]:
            seen.append((time.monotonic(), newest))
        time.sleep(0.0005)
    seen.append((time.monotonic(), newest_row(db)))


def delays(ticks, seen):
    """Milliseconds from each commit until its last row was seen."""
    found, at = [], 0
    for newest, committed in ticks:
        while at < len(seen) and seen[at][1] < newest:
            at += 1
        if at == len(seen):
            raise SystemExit("rows have not come")
        found.append((seen[at][0] - committed) * 1000)
    return sorted(found)


def measure_delay(tidemark, folder, archive, rate, seconds):
    with Publisher(tidemark, archive) as publisher:
        follower = subprocess.Popen([tidemark, "archive", "subscribe", publisher.address,
                                     folder / "b.tide", "--follow", "--quiet"])
        timed_subscribe(tidemark, publisher, folder / "c.tide")  # by now the other has all as well
        time.sleep(1)
        ready, ret = multiprocessing.Event(), multiprocessing.Queue()
        writer = multiprocessing.Process(target=write_rows, args=(archive, rate, seconds, ready, ret))
        writer.start()
        until, seen = threading.Event(), []
        watcher = threading.Thread(target=watch_rows, args=(folder / "b.tide", until, seen))
        watcher.start()
        before = publisher.cpu_seconds()
        ready.set()
        ticks, wall = ret.get()
        writer.join()
        used = publisher.cpu_seconds() - before
        time.sleep(1)
        until.set()
        watcher.join()
        follower.terminate()
        follower.wait(60)
    found = delays(ticks, seen)
    print(f"rows are seen, {len(ticks) * int(rate * TICK) / wall:.0f} written a second:"
          f" p50 {found[len(found) // 2]:.1f} ms, p99 {found[len(found) * 99 // 100]:.1f} ms,"
          f" max {found[-1]:.1f} ms; publisher {100 * used / wall:.0f} % of a core")


def read_all(port, size, done):
    with socket.create_connection(("127.0.0.1", port)) as peer:
        peer.sendall(WORDS)
        room, came = bytearray(1 << 18), 0
        while came < size:
            got = peer.recv_into(room)
            if got == 0:
                return
            came += got
        done.wait()


def measure_many(tidemark, archive, followers, rate):
    size = archive.stat().st_size
    with Publisher(tidemark, archive) as publisher:
        done = threading.Event()
        start = time.monotonic()
        readers = [threading.Thread(target=read_all, args=(publisher.port, size * 9 // 10, done))
                   for _ in range(followers)]
        for reader in readers:
            reader.start()
        ready, ret = multiprocessing.Event(), multiprocessing.Queue()
        ready.set()
        writer = multiprocessing.Process(target=write_rows, args=(archive, rate, 5, ready, ret))
        writer.start()
        ret.get()
        writer.join()
        time.sleep(2)
        print(f"{followers} followers, which catch up while {rate} rows a second are written:"
              f" the publisher has {publisher.high_mib():.1f} MiB at most")
        done.set()
        for reader in readers:
            reader.join()
        wall = time.monotonic() - start
        used = publisher.cpu_seconds()
        print(f"    {followers * size / 1e6 / wall:.0f} MB/s to all, {100 * used / wall:.0f} % of a core")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tidemark", default="build/tidemark")
    parser.add_argument("--mib", type=int, default=512)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--rate", type=int, default=20000)
    parser.add_argument("--followers", type=int, default=20)
    args = parser.parse_args()
    tidemark = os.path.abspath(args.tidemark)
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR", "/tmp")) as name:
        folder = pathlib.Path(name)
        archive = make_archive(tidemark, folder, args.mib)
        measure_catching_up(tidemark, folder, archive, args.runs)
        small = pathlib.Path(name, "small")
        small.mkdir()
        measure_delay(tidemark, small, make_archive(tidemark, small, 4), args.rate, args.seconds)
        measure_many(tidemark, archive, args.followers, args.rate)


if __name__ == "__main__":
    main()
