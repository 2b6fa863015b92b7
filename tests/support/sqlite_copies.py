"""Following an SQLite database into a file while its schema changes, and what a consumer then has."""

import json
import sqlite3
import time

from support import frames

CONNECTION = "shop"


def connect(path):
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA busy_timeout = 10000")
    return db


def execute(path, script):
    db = connect(path)
    try:
        db.executescript(script)
    finally:
        db.close()


def lines(path):
    """The whole lines, each as (store, kind, bytes)."""
    if not path.exists():
        return []
    found = []
    for line in path.read_bytes().splitlines(keepends=True):
        if line.endswith(b"\n"):
            frame = json.loads(line)
            found.append((frame["store"], frame["kind"], line))
    return found


def since_last_begin(path, only):
    """Frames of those stores from their last `begin` on: keys may have been others before it."""
    all_lines = lines(path)
    begins = {store: at for at, (store, kind, _) in enumerate(all_lines) if kind == "begin"}
    kept = path.with_suffix(".latest")
    kept.write_bytes(b"".join(line for at, (store, _, line) in enumerate(all_lines)
                              if store not in only or at >= begins.get(store, 0)))
    return kept


def current(path):
    """The frames that count for each store: since its last `begin`, and none behind a truncation
    that nothing has come after, as of a table that is gone."""
    all_lines = lines(path)
    begins, changes = {}, {}
    for at, (store, kind, line) in enumerate(all_lines):
        if kind == "begin":
            begins[store] = at
        if kind == "change":
            changes[store] = at if b'"op":"truncate"' in line[:40] else None
    kept = path.with_suffix(".latest")
    kept.write_bytes(b"".join(
        line for at, (store, _, line) in enumerate(all_lines)
        if at >= begins.get(store, 0) and (changes.get(store) or 0) <= begins.get(store, 0)))
    return kept


def differences(database, path, other_keys=(), gone=None, all_keys=False):
    """What a consumer of all frames has otherwise than the database; [] when nothing. `gone`:
    {store: key columns} of tables that the database does not have any more."""
    db = connect(database)
    try:
        path = current(path) if all_keys else since_last_begin(path, {f"{CONNECTION}.{table}" for table in other_keys})
        rebuilt = frames.rebuild([path], {**(gone or {}), **frames.sqlite_keys(db, CONNECTION)})
        found = frames.differences(rebuilt, db, CONNECTION)
        there = {f"{CONNECTION}.{table}" for table in frames.sqlite_tables(db)}
        return found + [f"{store}: rows of a table that is gone" for store in rebuilt.stores
                        if store not in there and any(True for _ in rebuilt.rows(store))]
    except frames.FrameError as error:
        return [str(error)]     # rows of a table that is gone, without its truncation as yet
    finally:
        db.close()


def open_snapshots(database, path):
    """Tables whose last snapshot has no end yet."""
    last = {}
    for store, kind, _ in lines(path):
        if kind in ("begin", "resume", "end"):
            last[store] = kind
    db = connect(database)
    there = {f"{CONNECTION}.{table}" for table in frames.sqlite_tables(db)}
    db.close()
    return [store for store, kind in last.items() if kind != "end" and store in there]


def wait_equal(process, database, path, other_keys=(), gone=None, all_keys=False, timeout=80):
    """Waits until a consumer has what the database has."""
    deadline = time.monotonic() + timeout
    while True:
        is_running = process.running()
        found = open_snapshots(database, path) or differences(database, path, other_keys, gone, all_keys)
        if not found:
            return
        assert is_running and time.monotonic() < deadline, (
            "\n".join(map(str, found)) + f"\n-- out\n{process.out()}-- err\n{process.err()}")
        time.sleep(0.05)
