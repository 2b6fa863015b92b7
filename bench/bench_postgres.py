#!/usr/bin/env python3
"""Measures PostgreSQL as a source against PostgreSQL's own programs, over TCP on one machine:

  snapshots into `null:` (every row encoded as a JSON frame), of a wide and of a narrow table,
  against `psql -c "COPY t TO STDOUT" -o /dev/null`;
  following a million changes in ten thousand transactions, against pg_recvlogical with pgoutput.

    bench/bench_postgres.py [--tidemark build/tidemark] [--rows 500000] [--rounds 5]

Each pair runs in turn, so many times; medians of rows a second, and their ratio. Whole processes
are timed: tidemark's slot, publication and removal are in its time. Starts a server of its own, and
says so and ends with 77 where none is installed.
"""

import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from support import postgres  # noqa: E402  (the path is set just above)

SETTINGS = {"shared_buffers": "1GB", "max_wal_size": "16GB", "log_min_messages": "warning"}
WIDE = """CREATE TABLE wide (id bigint PRIMARY KEY, name text, email text, city varchar(40), note text,
 active boolean, age smallint, visits int, score real, ratio double precision, price numeric(12,2),
 tax numeric, born date, made timestamptz, seen timestamp, spent interval, ref uuid, tags text[],
 data jsonb, raw bytea);
INSERT INTO wide SELECT i, 'customer ' || i, 'c' || i || '@example.org', 'City ' || i % 100,
 'a note of ordinary length, number ' || i, i % 3 = 0, i % 90, i * 7 % 1000000, i / 7.0, i / 11.0,
 i % 100000 / 100.0, i * 0.000125, date '1950-01-01' + i % 20000, timestamptz '2024-01-01' + i *
 interval '1.5 s', timestamp '2024-01-01' + i * interval '1 s', i * interval '1 min', md5(i::text)::uuid,
 ARRAY['a' || i % 10, 'b'], jsonb_build_object('i', i, 'tags', '[1,2]'::jsonb), decode(md5(i::text), 'hex')
 FROM generate_series(1, {0}) i"""
NARROW = """CREATE TABLE narrow (id int PRIMARY KEY, n int, v text);
INSERT INTO narrow SELECT i, i % 1000, 'value ' || i FROM generate_series(1, {0}) i"""
FOLLOWED = """CREATE TABLE followed (id int PRIMARY KEY, n int, v text, price numeric(12,2), at timestamptz);
INSERT INTO followed SELECT i, 0, 'value ' || i, i / 100.0, now() FROM generate_series(1, 100000) i"""
WRITE = """DO $$ BEGIN FOR i IN 0..9999 LOOP
 UPDATE followed SET n = n + 1 WHERE id > i % 1000 * 100 AND id <= i % 1000 * 100 + 100; COMMIT;
END LOOP; END $$"""
CHANGES = 1000000


def timed(command):
    start = time.monotonic()
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: {done.returncode}\n{done.stderr}")
    return time.monotonic() - start


class Bench:
    def __init__(self, server, tidemark, folder, rounds):
        self.server = server
        self.tidemark = tidemark
        self.folder = folder
        self.rounds = rounds
        self.at = ["-h", "127.0.0.1", "-p", str(server.port), "-U", "postgres", "-d", "postgres"]

    def copy(self, table, state, *more):
        return timed([self.tidemark, "copy", self.server.url(), "null:", "--quiet", "--tables", table,
                      "--state", f"{self.folder}/{state}", *more])

    def psql(self, table):
        return timed(["psql", "-X", *self.at, "-o", "/dev/null", "-c", f"COPY {table} TO STDOUT"])

    def snapshot(self, table, rows, what):
        self.psql(table)
        pairs = [(self.psql(table), self.copy(table, f"{table}-{i}")) for i in range(self.rounds)]
        report(f"snapshot of {rows} rows of {what}", "psql COPY", pairs, rows)

    def recvlogical(self, end):
        return timed(["pg_recvlogical", *self.at, "--slot", "bench", "--start", "--no-loop", "-f",
                      "/dev/null", "-o", "proto_version=1", "-o", "publication_names=bench",
                      "--endpos", end])

    def follow(self):
        query = self.server.query
        query("CREATE PUBLICATION bench FOR TABLE followed")
        query("SELECT pg_create_logical_replication_slot('bench', 'pgoutput')")
        self.copy("followed", "follow", "--keep")
        pairs = []
        for _ in range(self.rounds):
            query(WRITE, timeout=600)
            end = query("SELECT pg_current_wal_flush_lsn()")[0][0]
            pairs.append((self.recvlogical(end), self.copy("followed", "follow", "--keep")))
        report(f"following {CHANGES} changes in 10000 transactions", "pg_recvlogical", pairs, CHANGES)


def report(what, other, pairs, count):
    theirs = count / statistics.median(a for a, _ in pairs)
    ours = count / statistics.median(b for _, b in pairs)
    print(f"postgres: {what}: {other} {theirs / 1000:.0f} k/s, tidemark copy to null:"
          f" {ours / 1000:.0f} k/s, ratio {ours / theirs:.2f} (whole process,"
          " set-up and removal included)", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--tidemark", default=ROOT / "build" / "tidemark")
    parser.add_argument("--rows", type=int, default=500000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    try:
        server = postgres.Server(postgres.installed(), SETTINGS)
    except postgres.Missing as missing:
        print(f"postgres: not measured: {missing}")
        return 77
    try:
        with tempfile.TemporaryDirectory() as folder:
            bench = Bench(server, os.path.abspath(options.tidemark), folder, options.rounds)
            server.query(WIDE.format(options.rows), timeout=600)
            server.query(NARROW.format(4 * options.rows) + ";" + FOLLOWED, timeout=600)
            server.query("VACUUM ANALYZE", timeout=600)
            bench.snapshot("wide", options.rows, "20 mixed columns")
            bench.snapshot("narrow", 4 * options.rows, "3 columns")
            bench.follow()
    finally:
        server.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
