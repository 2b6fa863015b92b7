#!/usr/bin/env python3
"""Measures `tidemark verify`: a file of about --mib MiB of frames, its speed and its memory.

    bench/bench_verify.py [--tidemark build/tidemark] [--mib 1024] [--runs 3]

Prints MB/s for frames as the program writes them, for change frames, for frames out of order, and
for `jq -c .kind` over the first 64 MiB of the same frames.
"""

import argparse
import os
import random
import shutil
import subprocess
import tempfile
import time

HEAD = ('{"kind":"%s","snapshot_id":"01a22789-8c8f-7abc-8def-0123456789ab",'
        '"snapshot_at":"2026-11-29T13:40:55.567Z","timestamp":"2026-11-29T13:40:55.567Z",'
        '"store":"shop.orders","seq":%d')
ROW = (HEAD % ("row", 0))[:-1] + (
    '%d,"record":{"id":%d,"customer":"customer number %d","note":"a note of ordinary length, as '
    'they are","total":%d.50,"paid":true,"shipped":null,"at":"2026-11-29 13:40:55.567"},'
    '"position":"16/B374D848"}\n')
CHANGE = ('{"kind":"change","op":"update","timestamp":"2026-11-29T13:41:00.000Z",'
          '"store":"shop.orders","position":%d,"index":0,"prev":[%d,0],"tx":"7731","key":{"id":%d},'
          '"record":{"id":%d,"customer":"customer number %d","note":"a note of ordinary length",'
          '"total":19.90}}\n')


def row(seq):
    return ROW % (seq, seq, seq * 7919 % 100003, seq % 997)


def change(n):
    return CHANGE % (n + 1, n, n * 7919 % 100003, n, n)


def write(path, size, line, order=None):
    count = 0
    with open(path, "w") as out:
        out.write(HEAD % ("begin", 0) + ',"changes_from":[0,0]}\n')
        while out.tell() < size:
            numbers = list(range(count, count + 20000))
            if order is not None:
                order.shuffle(numbers)
            out.write("".join(map(line, numbers)))
            count += 20000
        rows = count if line is row else 0
        last = count if line is change else 0
        out.write(HEAD % ("end", rows) + ',"row_count":%d,"completed_at":"2026-11-29T13:50:00.000Z",'
                  '"changes_to":[%d,0]}\n' % (rows, last))


def timed(*command):
    """GNU time starts the program, since what we fork ourselves inherits our own peak of memory."""
    start = time.monotonic()
    result = subprocess.run(["/usr/bin/time", "-f", "%U %S %M", *command], capture_output=True)
    wall = time.monotonic() - start
    user, system, kib = result.stderr.decode().split("\n")[-2].split()
    return wall, float(user) + float(system), int(kib), result.returncode, result.stdout


def measure(name, program, path, runs):
    size = os.path.getsize(path)
    best = min((timed(program, "verify", path) for _ in range(runs)), key=lambda r: r[0])
    wall, cpu, rss, status, out = best
    assert status == 0, out
    speed = size / wall / 1e6
    print(f"{name:24} {size / 2**20:7.0f} MiB  {wall:6.2f} s  {speed:7.0f} MB/s  "
          f"cpu {cpu:5.2f} s  peak {rss / 1024:5.1f} MiB", flush=True)
    return speed


def measure_jq(path, folder):
    part = os.path.join(folder, "part.ndjson")
    with open(path, "rb") as whole, open(part, "wb") as out:
        out.write(whole.read(64 * 2**20).rsplit(b"\n", 1)[0] + b"\n")
    start = time.monotonic()
    subprocess.run(["jq", "-c", ".kind", part], stdout=subprocess.DEVNULL, check=True)
    speed = os.path.getsize(part) / (time.monotonic() - start) / 1e6
    print(f"{'jq -c .kind':24} {64:7.0f} MiB  {'':8}  {speed:7.0f} MB/s", flush=True)
    return speed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tidemark", default="build/tidemark")
    parser.add_argument("--mib", type=int, default=1024)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "frames.ndjson")
        write(path, options.mib * 2**20, row)
        speed = measure("rows", options.tidemark, path, options.runs)
        if shutil.which("jq"):
            print(f"{'ratio to jq':24} {speed / measure_jq(path, folder):.0f}")
        write(path, options.mib * 2**18, row, random.Random(1))
        measure("rows out of order", options.tidemark, path, options.runs)
        write(path, options.mib * 2**18, change)
        measure("changes", options.tidemark, path, options.runs)


if __name__ == "__main__":
    main()
