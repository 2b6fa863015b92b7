#!/usr/bin/python3
"""The demo after building: scripts/demo.sh [--orders N]; a million rows are 210,000 orders.

Works in build/demo; the tests run it small, in a folder of theirs.
"""

import argparse
import datetime
import json
import os
import pathlib
import shutil
import signal
import sqlite3
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from support import frames, process, shop  # noqa: E402  (the path is set just above)

# Files in the folder of the demo, which is the working directory.
DATABASE = pathlib.Path("shop.db")
OUTPUT = pathlib.Path("shop.ndjson")
DAMAGED = pathlib.Path("damaged.ndjson")
ARCHIVE = pathlib.Path("shop.tide")
COPY = ["copy", f"sqlite:{DATABASE}", f"file:{OUTPUT}", "--follow"]
ARCHIVE_COPY = ["copy", f"sqlite:{DATABASE}", f"archive:{ARCHIVE}", "--follow", "--tables", "products"]
WAIT_SECONDS = 90


class DemoFailed(Exception):
    """Something was not as the demo says it is."""


def say(text=""):
    print(text, flush=True)


def step(text):
    say(f"\n\033[1m== {text}\033[0m" if sys.stdout.isatty() else f"\n== {text}")


def show(arguments):
    say(f"   $ tidemark {' '.join(arguments)}")


class Watch:
    """Counts frames in the output as it grows, without reading anything twice."""

    def __init__(self, path):
        self.path = path
        self.at = 0
        self.lines = 0
        self.ends = 0
        self.rest = b""

    def look(self, pieces=None):
        """Reads on, to the end or so many pieces: what grows fast may have no end yet."""
        if not self.path.exists():
            return self
        if self.path.stat().st_size < self.at:  # cut back to what was held
            self.__init__(self.path)
        with open(self.path, "rb") as file:
            file.seek(self.at)
            while pieces != 0 and (piece := file.read(1 << 22)):
                pieces = pieces and pieces - 1
                self.at += len(piece)
                whole, found, rest = (self.rest + piece).rpartition(b"\n")
                self.rest = rest
                if found:
                    self.lines += whole.count(b"\n") + 1
                    self.ends += whole.count(b'{"kind":"end"')
        return self

    def estimate(self):
        """The frames by now, by the length of some: counting all would come too late."""
        self.look(1)
        return self.lines * self.path.stat().st_size // self.at if self.at else 0


def start():
    """Starts the copy with the terminal as it is, so that its progress is seen."""
    show(COPY)
    return subprocess.Popen([process.program(), *COPY])


def wait_for(running, condition, what):
    deadline = time.monotonic() + WAIT_SECONDS
    while not condition():
        if running.poll() is not None:
            raise DemoFailed(f"the copy ended with {running.returncode} before {what}")
        if time.monotonic() > deadline:
            raise DemoFailed(f"{WAIT_SECONDS} s went by before {what}")
        time.sleep(0.005)


def wait_until_quiet(running, watch):
    """Once nobody writes, the copy has caught up when its output has stopped growing."""
    deadline = time.monotonic() + WAIT_SECONDS
    size, since = -1, time.monotonic()
    while time.monotonic() - since < 2:
        if running.poll() is not None:
            raise DemoFailed(f"the copy ended with {running.returncode} while following")
        if time.monotonic() > deadline:
            raise DemoFailed("the copy does not come to rest although nobody writes")
        if watch.look().at != size:
            size, since = watch.at, time.monotonic()
        time.sleep(0.05)


def run(arguments, expected):
    show(arguments)
    result = subprocess.run([process.program(), *arguments], check=False,
                            stdout=subprocess.PIPE, text=True)
    for line in result.stdout.splitlines():
        say(f"   {line}")
    if result.returncode != expected:
        raise DemoFailed(f"it left with {result.returncode} instead of {expected}")


def copy_killed_half_way(rows):
    # Asked for a little before: some more go out while it is noticed.
    step("Copying it while it is written to, and killing the copy half way (SIGKILL)")
    watch = Watch(OUTPUT)
    running = start()
    try:
        wait_for(running, lambda: watch.estimate() > rows * 0.45, "half of the rows were out")
    finally:
        running.send_signal(signal.SIGKILL)
        running.wait()
    say(f"   killed with {watch.look().lines:,} frames written")


def resume_and_follow(writer, seconds):
    step("The same command again: it goes on where the copy was held, then follows")
    watch = Watch(OUTPUT)
    running = start()
    try:
        wait_for(running, lambda: watch.look().ends >= len(shop.TABLES), "all tables were complete")
        say(f"   all {len(shop.TABLES)} tables are copied; following for {seconds:g} seconds")
        time.sleep(seconds)
        transactions = writer.stop()
        wait_until_quiet(running, watch)
        running.send_signal(signal.SIGINT)
        if running.wait(30) != 0:
            raise DemoFailed(f"stopped by SIGINT it left with {running.returncode}")
    finally:
        if running.poll() is None:
            running.kill()
            running.wait()
    say(f"   stopped; the shop committed {transactions:,} transactions meanwhile")


def verify():
    step("Is the copy complete? The frames themselves say so")
    run(["verify", OUTPUT.name], 0)
    step("One row taken out of the middle: would it be noticed?")
    taken = damage()
    say(f"   taken out: {taken[:110]}…")
    run(["verify", DAMAGED.name], 1)
    DAMAGED.unlink()


def damage():
    """Copies the output without a row in its middle; returns that row's line."""
    rows, starts = 0, {}
    with open(OUTPUT, "rb") as file:
        for line in file:
            rows += is_row(line)
            if line.startswith(b'{"kind":"end"'):
                end = json.loads(line)
                starts[end["snapshot_id"]] = end.get("starts", [])
    taken, passed = b"", 0
    with open(OUTPUT, "rb") as file, open(DAMAGED, "wb") as to:
        for line in file:
            passed += is_row(line)
            if not taken and passed >= rows // 2 and is_row(line) and counts(line, starts):
                taken = line
            else:
                to.write(line)
    return taken.decode()


def is_row(line):
    return line.startswith(b'{"kind":"row"')


def counts(line, starts):
    """False for a row that a later attempt has sent once more: nobody would miss it."""
    row = json.loads(line)
    later = starts[row["snapshot_id"]][row.get("attempt", 0):]
    return all(row["seq"] < start for start in later)


def compare():
    step("Does it equal the database? Rebuilt from the frames by a reader of its own, in Python")
    db = sqlite3.connect(f"file:{DATABASE}?mode=ro", uri=True)
    connection = DATABASE.stem
    rebuilt = frames.rebuild(OUTPUT, frames.sqlite_keys(db, connection))
    found = frames.differences(rebuilt, db, connection)
    for sentence in found:
        say(f"   {sentence}")
    if found:
        raise DemoFailed("the copy differs from the database")
    rows = changes = repeated = 0
    for store in rebuilt.stores.values():
        rows += sum(held.record is not None for held in store.held.values())
        changes += store.changes
        repeated += store.repeated
    attempts = max(len(snapshot.attempts) for snapshot in rebuilt.snapshots)
    say(f"   equal: {rows:,} rows in {len(rebuilt.stores)} tables, {changes:,} changes applied,"
        f" {repeated:,} rows and changes older than what was held")
    if attempts < 2:
        say("   (the kill came between two tables: no table was interrupted)")
    db.close()


def archive():
    step("The same into an archive: a table can be had as it was at any moment since")
    db = sqlite3.connect(DATABASE, timeout=30, isolation_level=None)
    (number,), = db.execute("SELECT min(id) FROM products")
    change = f"UPDATE products SET stock = stock + 1000 WHERE id = {number}"
    show(ARCHIVE_COPY)
    running = subprocess.Popen([process.program(), *ARCHIVE_COPY])
    try:
        wait_for(running, lambda: product(number), "the archive held a complete copy")
        before = datetime.datetime.now(datetime.timezone.utc).isoformat()
        was = product(number)
        db.execute(change)
        say(f"   $ sqlite3 {DATABASE} '{change}'")
        wait_for(running, lambda: product(number) != was, "the archive held the change")
    finally:
        running.send_signal(signal.SIGINT)
        running.wait(30)
        db.close()
    for moment in (before, None):
        show(cat_of(moment) + [f"| grep '\"id\":{number},'"])
        say(f"   {product(number, moment)}")
    if product(number, before) != was or product(number) == was:
        raise DemoFailed("the archive does not say what was")
    run(["archive", "verify", "--full", ARCHIVE.name], 0)


def cat_of(moment):
    return ["archive", "cat", ARCHIVE.name, "-t", "products"] + \
        (["--as-of", moment] if moment else [])


def product(number, moment=None):
    """The line of one product, as it was or is in the archive; None while there is none."""
    result = subprocess.run([process.program(), *cat_of(moment)], capture_output=True, text=True,
                            check=False)
    lines = [line for line in result.stdout.splitlines() if line.startswith(f'{{"id":{number},')]
    return lines[0] if result.returncode == 0 and lines else None


def detach():
    step("Taking out of the database what was put there to follow it")
    run(["detach", f"sqlite:{DATABASE.name}"], 0)
    db = sqlite3.connect(DATABASE)
    left = [name for name, in db.execute(
        "SELECT name FROM sqlite_schema WHERE name LIKE '\\_tidemark%' ESCAPE '\\'")]
    db.close()
    if left:
        raise DemoFailed(f"left in the database: {', '.join(left)}")


def demo(folder, orders, seconds):
    began = time.monotonic()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    os.chdir(folder)
    step("A shop database, and somebody who keeps writing to it")
    counts = shop.make_shop(DATABASE, orders)
    rows = sum(counts.values())
    say(f"   {rows:,} rows: " + ", ".join(f"{table} {count:,}" for table, count in counts.items()))
    with shop.Writer(DATABASE, seed=int(began), per_second=200) as writer:
        copy_killed_half_way(rows)
        resume_and_follow(writer, seconds)
    verify()
    compare()
    archive()
    detach()
    step(f"Done in {time.monotonic() - began:.0f} seconds")
    say(f"   the database  {folder / DATABASE}")
    say(f"   its copy      {folder / OUTPUT}  (what is in it: docs/envelope.md)")
    say(f"   its archive   {folder / ARCHIVE}  (docs/archive.md)")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--orders", type=int, default=210000)
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "build" / "demo")
    parser.add_argument("--seconds", type=float, default=5, help="how long to follow")
    options = parser.parse_args()
    try:
        demo(options.folder.resolve(), options.orders, options.seconds)
    except DemoFailed as failure:
        say(f"\nThe demo failed: {failure}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
