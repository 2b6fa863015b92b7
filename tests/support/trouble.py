"""What goes wrong around a program: full and read-only file systems, locked and damaged databases.

    with Tmpfs(4 * MIB) as small:        a file system of its own; the test is skipped without root
        small.path; small.fill(); small.empty(); small.read_only(); small.writable()
    damage(path, first, pages)           overwrites pages in the middle of a database
    with locked(path): …                 another process has the database for itself
"""

import contextlib
import json
import os
import pathlib
import sqlite3
import subprocess
import tempfile
import time

import pytest

from support import frames

MIB = 1024 * 1024


def mount(*arguments):
    """None when it worked, else why it did not."""
    done = subprocess.run(["mount", *map(str, arguments)], capture_output=True, text=True, check=False)
    return None if done.returncode == 0 else done.stderr.strip()


class Tmpfs:
    """A file system in memory; unmounted at the end, also under files that are still open."""

    def __init__(self, size):
        self.path = pathlib.Path(tempfile.mkdtemp(prefix="tidemark-tmpfs-"))
        why = mount("-t", "tmpfs", "-o", f"size={size},mode=755", "tmpfs", self.path)
        if why:
            self.path.rmdir()
            pytest.skip(f"no file system of its own can be mounted: {why}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for options in ([], ["-l"]):
            if subprocess.run(["umount", *options, self.path], check=False,
                              capture_output=True).returncode == 0:
                break
        self.path.rmdir()

    def fill(self, leave=0):
        """Takes all room that is left, but for so many bytes; there may be more of it each time."""
        with open(self.path / "filler", "ab", buffering=0) as filler:
            with contextlib.suppress(OSError):
                while True:
                    filler.write(b"\0" * 65536)
            with contextlib.suppress(OSError):
                while True:
                    filler.write(b"\0" * 512)
            if leave:
                filler.truncate(max(filler.tell() - leave, 0))

    def empty(self):
        (self.path / "filler").unlink(missing_ok=True)

    def read_only(self):
        """Fails while somebody has a file open for writing there; `busy` tells."""
        return mount("-o", "remount,ro", self.path)

    def writable(self):
        assert mount("-o", "remount,rw", self.path) is None


@contextlib.contextmanager
def read_only(path):
    """Makes a folder or file read-only for everybody, root too: a mount over itself."""
    why = mount("--bind", path, path) or mount("-o", "remount,ro,bind", path)
    if why:
        subprocess.run(["umount", path], check=False, capture_output=True)
        pytest.skip(f"nothing can be made read-only: {why}")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", path], check=True)


@contextlib.contextmanager
def locked(path):
    """Another process (this one) has the database for itself: nobody else reads or writes."""
    db = sqlite3.connect(path, isolation_level=None, timeout=30)
    try:
        db.execute("PRAGMA locking_mode = EXCLUSIVE")
        db.execute("BEGIN EXCLUSIVE")
        yield db
        db.execute("ROLLBACK")
    finally:
        db.close()


def page_size(path):
    with open(path, "rb") as file:
        file.seek(16)
        return int.from_bytes(file.read(2), "big") or 1  # 65536 is written as 1; not used here


def damage(path, first=None, pages=8):
    """Overwrites pages, in the middle unless told; returns what gives them back."""
    size = page_size(path)
    count = os.path.getsize(path) // size
    place = (count // 2 if first is None else first) * size
    with open(path, "r+b") as file:
        file.seek(place)
        before = file.read(pages * size)
        file.seek(place)
        file.write(b"\xee" * len(before))

    def mend():
        with open(path, "r+b") as again:
            again.seek(place)
            again.write(before)
    return mend


def make_numbers(path, rows=2000, journal="WAL", text="x" * 100):
    """A database with one table, t (id, v)."""
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute(f"PRAGMA journal_mode = {journal}")
        db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT)")
        db.executemany("INSERT INTO t VALUES (?, ?)", ((i, f"{i} {text}") for i in range(rows)))
        db.commit()


def execute(path, *statements, timeout=30):
    """Statements in one transaction on a connection of its own."""
    with contextlib.closing(sqlite3.connect(path, timeout=timeout)) as db, db:
        for statement in statements:
            db.execute(*([statement] if isinstance(statement, str) else statement))


def wait_for(condition, timeout=120, what="the condition"):
    """Waits for what another process does; returns what condition() returned."""
    deadline = time.monotonic() + timeout
    while not (value := condition()):
        assert time.monotonic() < deadline, f"waiting for {what}: {timeout} s went by"
        time.sleep(0.01)
    return value


def ends(path):
    """How many snapshots have ended in a file of frames."""
    return path.read_bytes().count(b'{"kind":"end"') if path.exists() else 0


def check_equal(database, *paths):
    """These frames give the SQLite database's tables, and every snapshot in them is complete."""
    name = pathlib.Path(database).stem
    with contextlib.closing(sqlite3.connect(database)) as db:
        tables = frames.rebuild(paths, frames.sqlite_keys(db, name))
        assert frames.differences(tables, db, name) == []
        assert {snapshot.status for snapshot in tables.snapshots} == {"complete"}
    return tables


def last_words(result):
    """The one sentence that the program ends with when it failed."""
    lines = [line for line in result.err.splitlines() if line.startswith("tidemark")]
    assert len(lines) == 1, result.err
    return lines[0]


def one_sentence(result, code, *words):
    """The exit status, and one last sentence that has these words."""
    said = last_words(result.check(code))
    for word in words:
        assert word in said, said


def count(path, text):
    """How often bytes are in a file, which need not be there yet."""
    return path.read_bytes().count(text) if path.exists() else 0


def frames_of(path, kind, store=None):
    """The frames of a kind, of all stores or one; a last line without its end is none."""
    with open(path, "rb") as lines:
        found = [json.loads(line) for line in lines
                 if line.startswith(b'{"kind":"%s"' % kind.encode()) and line.endswith(b"\n")]
    return [frame for frame in found if store is None or frame["store"] == store]
