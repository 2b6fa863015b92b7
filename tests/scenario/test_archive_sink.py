"""Copies into an archive: beside a writer, killed and gone on with, on a full disk; read back."""

import pathlib
import random
import sqlite3
import subprocess
import time

from support import frames, process, shop
from support.process import soak

FRAMES = pathlib.Path(process.program()).resolve().parent / "tests/support/archive_frames"


def read_back(archive, out):
    """The archive's rows as frames, in a file; None while there is no archive."""
    with open(out, "wb") as file:
        done = subprocess.run([FRAMES, archive], stdout=file, stderr=subprocess.PIPE, text=True,
                              check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return out


def ask(archive, sql):
    db = sqlite3.connect(archive)
    try:
        return db.execute(sql).fetchall()
    finally:
        db.close()


def check_sound(archive):
    """SQLite's own check, and that no row is there twice: neither by time nor by what it says."""
    assert ask(archive, "PRAGMA integrity_check") == [("ok",)]
    assert ask(archive, "SELECT COUNT(*) FROM wal w JOIN segments s USING (source_id, stream)"
                        " WHERE w.ts BETWEEN s.first_ts AND s.last_ts") == [(0,)]


def check_equal(archive, database, run, changes_once=True):
    """The archive is whole, holds nothing twice, and rebuilds to what the database is."""
    check_sound(archive)
    out = read_back(archive, archive.with_suffix(".ndjson"))
    run("verify", out).check()
    with sqlite3.connect(database) as db:
        connection = database.stem
        rebuilt = frames.rebuild(out, frames.sqlite_keys(db, connection))
        assert frames.differences(rebuilt, db, connection) == []
    if changes_once:
        assert sum(store.repeated for store in rebuilt.stores.values()) == 0
    return rebuilt


def test_copy_of_a_shop_beside_a_writer(run, tmp_path):
    database = tmp_path / "shop.db"
    shop.make_shop(database, orders=2000)
    with shop.Writer(database, seed=3) as writer:
        result = run("copy", "sqlite:shop.db", "archive:shop.tide", "--chunk-rows", "200").check()
        writer.stop()
    assert "complete: 5 tables" in result.out + result.err
    archive = tmp_path / "shop.tide"
    check_sound(archive)
    run("verify", read_back(archive, tmp_path / "out.ndjson")).check()
    assert ask(archive, "SELECT complete, (SELECT COUNT(*) FROM wal) FROM sources") == [(1, 0)]
    assert not (tmp_path / "shop.tide-wal").exists()
    assert not (tmp_path / "shop.tide-lock").exists()


def test_copy_killed_again_and_again_and_gone_on_with(start, run, tmp_path):
    """Nothing is lost and nothing doubled, whenever it dies."""
    database = tmp_path / "shop.db"
    shop.make_shop(database, orders=1500)
    rng = random.Random(5)
    arguments = ["copy", "sqlite:shop.db", "archive:shop.tide", "--follow", "--chunk-rows", "150"]
    with shop.Writer(database, seed=4, per_second=300) as writer:
        for _ in range(soak(20, 200)):
            copy = start(*arguments)
            time.sleep(rng.random() * 0.5)
            assert copy.running(), copy.err()
            copy.kill()
        writer.stop()
    copy = start(*arguments)
    copy.wait_until(lambda: is_equal(tmp_path, run), timeout=60, what="the archive to catch up")
    copy.interrupt()
    rebuilt = check_equal(tmp_path / "shop.tide", database, run)
    assert all(store.changes for store in rebuilt.stores.values())
    assert ask(tmp_path / "shop.tide", "SELECT COUNT(*) FROM sources") == [(1,)]


def is_equal(folder, run):
    try:
        check_equal(folder / "shop.tide", folder / "shop.db", run)
    except AssertionError:
        return False
    return True
