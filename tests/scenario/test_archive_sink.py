"""Copies into an archive: beside a writer, killed and gone on with, on a full disk; read back."""

import itertools
import json
import os
import random
import shutil
import sqlite3
import subprocess
import time

import pytest
from support import frames, pg_tables, process, shop
from support.process import soak
from support.trouble import MIB, Tmpfs, execute, last_words, make_numbers

END = b'{"kind":"end"'


def read_back(archive, out):
    """What the archive holds as frames, in a file: nothing while it holds nothing."""
    if not ask(archive, "SELECT 1 FROM sqlite_schema WHERE name = 'tidemark_held'") or \
            not ask(archive, "SELECT 1 FROM wal UNION ALL SELECT 1 FROM segments LIMIT 1"):
        out.write_bytes(b"")
        return out
    with open(out, "wb") as file:
        done = subprocess.run([process.program(), "archive", "cat", archive, "--changes"],
                              stdout=file, stderr=subprocess.PIPE, text=True, check=False,
                              timeout=120)
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


def check_once(out):
    """No change and no row of an attempt is there twice."""
    seen = set()
    for line in out.read_bytes().splitlines():
        frame = json.loads(line)
        place = (frame.get("incarnation", 0), json.dumps(frame["position"]), frame["index"]) \
            if frame["kind"] == "change" else \
            (frame["kind"], frame["snapshot_id"], frame.get("attempt", 0), frame["seq"])
        assert (frame["store"], *place) not in seen, line
        seen.add((frame["store"], *place))


def check_equal(archive, database, run):
    """The archive is whole, holds nothing twice, and rebuilds to what the database is."""
    check_sound(archive)
    out = read_back(archive, archive.with_suffix(".ndjson"))
    run("verify", out).check()
    check_once(out)
    with sqlite3.connect(database) as db:
        connection = database.stem
        rebuilt = frames.rebuild(out, frames.sqlite_keys(db, connection))
        assert frames.differences(rebuilt, db, connection) == []
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
    assert any(store.changes for store in rebuilt.stores.values())
    assert ask(tmp_path / "shop.tide",  # a first start that was killed may leave an empty one
               "SELECT COUNT(*) FROM (SELECT source_id FROM wal UNION SELECT source_id FROM segments)"
               ) == [(1,)]


def is_equal(folder, run):
    try:
        check_equal(folder / "shop.tide", folder / "shop.db", run)
    except AssertionError:
        return False
    return True


def test_reading_beside_the_writer_never_sees_half_of_anything(start, run, tmp_path):
    """Each reading is of one moment: chains of changes have no hole, whatever is being sealed."""
    shop.make_shop(tmp_path / "shop.db", orders=500)
    (tmp_path / "shop.yaml").write_text(
        "name: shop\nsource: sqlite:shop.db\nsinks:\n"
        "  kept: {place: 'archive:shop.tide', seal_rows: 100}\n")
    archive = tmp_path / "shop.tide"
    with shop.Writer(tmp_path / "shop.db", seed=6, per_second=400) as writer:
        service = start("run", "shop.yaml")
        service.wait_until(lambda: archive.exists() and
                           read_back(archive, tmp_path / "now.ndjson").read_bytes().count(END) == 5)
        for _ in range(soak(15, 300)):
            done = run("verify", read_back(archive, tmp_path / "now.ndjson"))
            assert done.code == 0 or "open" in done.out, done.out
            assert not any(word in done.out for word in ("truncated", "conflicting", "missing"))
            assert service.running(), service.err()
        writer.stop()
    service.wait_until(lambda: is_equal(tmp_path, run), timeout=60, what="the archive to catch up")
    service.terminate().check()
    check_equal(archive, tmp_path / "shop.db", run)
    assert ask(archive, "SELECT COUNT(*) > 10, SUM(rows) > 1000 FROM segments") == [(1, 1)]
    assert ask(archive, "SELECT complete FROM sources") == [(1,)]


def test_full_disk_is_waited_for_and_loses_nothing(start, run, tmp_path):
    make_numbers(tmp_path / "a.db", rows=6000, text="x" * 300)
    with Tmpfs(16 * MIB) as small:
        small.fill(leave=MIB)
        copy = start("copy", "sqlite:a.db", f"archive:{small.path}/a.tide", "--chunk-rows", "500")
        copy.wait_for_line("full")
        time.sleep(0.5)
        assert copy.running()
        execute(tmp_path / "a.db", "UPDATE t SET v = 'meanwhile' WHERE id % 5 = 0")
        small.empty()
        copy.wait(60).check()
        shutil.copy(small.path / "a.tide", tmp_path / "a.tide")
    check_equal(tmp_path / "a.tide", tmp_path / "a.db", run)


def test_full_disk_while_following_and_a_kill(start, run, tmp_path):
    make_numbers(tmp_path / "a.db", rows=100)
    with Tmpfs(4 * MIB) as small:
        arguments = ["copy", "sqlite:a.db", f"archive:{small.path}/a.tide", "--follow"]
        copy = start(*arguments)
        archive = small.path / "a.tide"
        copy.wait_until(lambda: archive.exists() and ask(
            archive, "SELECT COUNT(*) > 100 FROM wal") == [(1,)])
        small.fill(leave=200000)
        rounds = itertools.count()  # versions that come and go between two looks are one

        def fill():
            execute(tmp_path / "a.db",
                    f"UPDATE t SET v = 'round {next(rounds)} ' || hex(randomblob(200))")
            return "full" in copy.err()
        copy.wait_until(fill, 60, "the disk to be full")
        copy.kill()
        small.empty()
        copy = start(*arguments)
        execute(tmp_path / "a.db", "INSERT INTO t VALUES (1000000, 'the last')")
        copy.wait_until(lambda: b"the last" in read_back(archive, tmp_path / "b.ndjson").read_bytes(),
                        timeout=60)
        copy.interrupt()
        shutil.copy(archive, tmp_path / "a.tide")
    check_equal(tmp_path / "a.tide", tmp_path / "a.db", run)


def test_postgres_tables_killed_and_gone_on_with(start, run, pg, tmp_path):
    """Values that the server did not send are kept as such."""
    pg.query("CREATE TABLE big (id int PRIMARY KEY, n int, v text);"
             "ALTER TABLE big ALTER v SET STORAGE EXTERNAL;"
             "INSERT INTO big SELECT i, 0, repeat('x', 5000) FROM generate_series(1, 300) i;"
             "CREATE TABLE parted (a text, b int, at timestamptz, PRIMARY KEY (b, a));"
             "INSERT INTO parted SELECT 'a' || i, i % 7, now() FROM generate_series(1, 2000) i")
    (tmp_path / "shop.yaml").write_text(
        f"name: shop\nsource: {pg.url()}\nsnapshot: {{chunk_rows: 100}}\nsinks:\n"
        "  kept: {place: 'archive:a.tide', seal_rows: 200}\n")
    archive = tmp_path / "a.tide"
    rng = random.Random(8)
    for i in range(soak(6, 60)):
        service = start("run", "shop.yaml")
        time.sleep(0.1 + rng.random() * 0.4)
        pg.query(f"UPDATE big SET n = {i} WHERE id % 3 = 0; DELETE FROM parted WHERE b = {i};"
                 f"UPDATE big SET id = id + 1000 WHERE id = {10 + i};"
                 f"UPDATE parted SET a = a || '.' WHERE a = 'a{8 + i}'")
        assert service.running(), service.err()
        service.kill()
    pg.query("INSERT INTO parted VALUES ('the last', 0, now())")
    service = start("run", "shop.yaml")
    out = tmp_path / "out.ndjson"
    service.wait_until(lambda: b"the last" in read_back(archive, out).read_bytes(), timeout=60)
    service.terminate().check()
    check_sound(archive)
    run("verify", read_back(archive, out)).check()
    pg_tables.check(pg, out, complete=False)
    check_once(out)
    assert b'"unchanged":["v"]' in out.read_bytes()


def test_postgres_values_that_were_not_sent_are_filled_in(start, run, pg, tmp_path):
    pg.query("CREATE TABLE big (id int PRIMARY KEY, n int, v text);"
             "ALTER TABLE big ALTER v SET STORAGE EXTERNAL;"
             "INSERT INTO big SELECT i, 0, i || repeat('x', 5000) FROM generate_series(1, 9) i")
    (tmp_path / "a.yaml").write_text(
        f"name: a\nsource: {pg.url()}\nsinks:\n"
        "  kept: {place: 'archive:a.tide', fill_unchanged: true}\n")
    archive, out = tmp_path / "a.tide", tmp_path / "out.ndjson"

    def until(text, service):
        service.wait_until(lambda: archive.exists() and text in read_back(archive, out).read_bytes())
        return service

    service = until(END, start("run", "a.yaml"))
    pg.query("UPDATE big SET n = 1; UPDATE big SET id = id + 100, n = 2 WHERE id > 5;"
             "UPDATE big SET n = 3; DELETE FROM big WHERE id = 2; TRUNCATE big;"
             "INSERT INTO big VALUES (1, 7, repeat('y', 5000)), (2, 7, repeat('z', 5000));"
             "UPDATE big SET n = 8")
    until(b'"n":8,', service)
    changes = read_back(archive, out).read_bytes()
    assert b'"unchanged"' not in changes and b'"id":106,"n":3,"v":"6xxx' in changes
    assert b'"id":2,"n":8,"v":"zzz' in changes
    service.terminate().check()
    service = start("run", "a.yaml")  # knows what has been written, too
    service.wait_for_line("going on")
    pg.query("UPDATE big SET n = 9 WHERE id = 1")
    until(b'"n":9', service)
    assert b'"unchanged"' not in out.read_bytes() and b'"id":1,"n":9,"v":"yyy' in out.read_bytes()
    sink = json.loads(run("status", "a.yaml", "--json").out)["sinks"][0]
    assert sink["unfilled"] == 0
    service.terminate().check()
    pg_tables.check(pg, out)


def test_records_that_are_too_long_are_stubs_and_dead_letters(start, run, tmp_path):
    make_numbers(tmp_path / "a.db", rows=20)
    execute(tmp_path / "a.db", "UPDATE t SET v = hex(randomblob(2000)) WHERE id = 7")
    (tmp_path / "a.yaml").write_text(
        "name: a\nsource: sqlite:a.db\nsinks:\n"
        "  one: {place: 'archive:a.tide', max_record_bytes: 1024}\n"
        "  two: {place: 'file:a.ndjson', max_record_bytes: 1024}\n")
    archive, out, file = (tmp_path / name for name in ("a.tide", "out.ndjson", "a.ndjson"))
    service = start("run", "a.yaml")
    service.wait_until(lambda: archive.exists() and END in read_back(archive, out).read_bytes())
    execute(tmp_path / "a.db", "UPDATE t SET v = hex(randomblob(3000)) WHERE id = 9")
    service.wait_until(lambda: b'"oversize":' in read_back(archive, out).read_bytes())
    service.wait_until(lambda: b'"oversize":' in file.read_bytes())
    execute(tmp_path / "a.db", "UPDATE t SET v = 'short' WHERE id = 9")
    service.wait_until(lambda: b"short" in read_back(archive, out).read_bytes())
    service.wait_until(lambda: b"short" in file.read_bytes())
    service.terminate().check()
    said = run("dead-letters", "list", "a.yaml", "--json").check().out.splitlines()
    letters = [json.loads(line) for line in said]
    reasons = {"one": [], "two": []}
    for letter in letters:
        reasons[letter["sink"]].append(letter["reason"])
    assert len(reasons["one"]) == 2 and sorted(reasons["one"]) == sorted(reasons["two"]), said
    for kind in (b"oversize", b"change"):  # what both sinks have of the records is the same
        lines = [sorted(line for line in path.read_bytes().splitlines()
                        if line.startswith(b'{"kind":"%s"' % kind)) for path in (out, file)]
        assert [json.loads(line) for line in lines[0]] == [json.loads(line) for line in lines[1]]
        assert lines[0]


# -- what is at the place

def test_a_place_that_is_taken(run, start, tmp_path):
    make_numbers(tmp_path / "a.db", rows=10)
    run("copy", "sqlite:a.db", "archive:a.tide").check()
    assert "holds an earlier copy" in last_words(run("copy", "sqlite:a.db", "archive:a.tide").check(2))
    run("copy", "sqlite:a.db", "archive:a.tide", "--append").check()
    assert ask(tmp_path / "a.tide", "SELECT SUM(rows) FROM segments") == [(24,)]
    run("copy", "sqlite:a.db", "archive:a.tide", "--overwrite").check()
    assert ask(tmp_path / "a.tide", "SELECT SUM(rows), COUNT(*) FROM segments") == [(12, 1)]
    check_equal(tmp_path / "a.tide", tmp_path / "a.db", run)
    start("copy", "sqlite:a.db", "archive:a.tide", "--append", "--follow").wait_until(
        (tmp_path / "a.tide-lock").exists)
    make_numbers(tmp_path / "b.db", rows=10)
    os.symlink("a.tide", tmp_path / "b.tide")
    for way in ("--append", "--overwrite"):
        result = run("copy", "sqlite:b.db", "archive:b.tide", way).check(2)
        assert "is being written by another process" in last_words(result)


@pytest.mark.parametrize("name", ["a.db", "a.db-wal", "link.tide", "hard.tide", "x.tide-lock",
                                  "x.tide-new"])
def test_the_database_is_never_the_place(run, tmp_path, name):
    make_numbers(tmp_path / "a.db", rows=10)
    os.symlink("a.db", tmp_path / "link.tide")
    os.link(tmp_path / "a.db", tmp_path / "hard.tide")
    if name.startswith("x."):
        os.link(tmp_path / "a.db", tmp_path / name)
    before = (tmp_path / "a.db").read_bytes()
    place = "x.tide" if name.startswith("x.") else name
    result = run("copy", "sqlite:a.db", f"archive:{place}", "--overwrite").check(2)
    assert "source's own file" in last_words(result)
    assert (tmp_path / "a.db").read_bytes() == before


@pytest.mark.parametrize("place, problem", [
    ("archive:new.tide", None),
    ("archive:none/new.tide", "there is no such directory"),
    ("archive:mine.txt", "is not an archive that we can write; replace it"),
    ("archive:taken.tide", "is an archive that is there already"),
    ("archive:pipe", "is not a regular file"),
    ("archive:", "needs the path of a file"),
    ("archive:a.db", "source's own file"),
])
def test_check_says_what_run_would_refuse(run, tmp_path, place, problem):
    make_numbers(tmp_path / "a.db", rows=10)
    run("copy", "sqlite:a.db", "archive:taken.tide").check()
    (tmp_path / "mine.txt").write_text("mine " * 100)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "a.yaml").write_text(f"name: a\nsource: sqlite:a.db\nsinks: {{one: '{place}'}}\n")
    before = sorted(os.listdir(tmp_path))
    result = run("check", "a.yaml")
    said = result.out + result.err
    assert (result.code == 0) == (problem is None), said
    assert problem is None or problem in said
    assert sorted(os.listdir(tmp_path)) == before
    if problem is not None:
        assert run("run", "a.yaml").code in (2, 3)


# -- going on

def move(folder, name, to):
    """An archive with what a kill has left beside it."""
    for suffix in ("", "-wal", "-shm"):
        if (folder / f"{name}{suffix}").exists():
            os.rename(folder / f"{name}{suffix}", folder / f"{to}{suffix}")


def test_an_archive_that_is_gone_or_another_is_not_gone_on_with(start, run, tmp_path):
    make_numbers(tmp_path / "a.db", rows=10)
    make_numbers(tmp_path / "b.db", rows=10)
    run("copy", "sqlite:b.db", "archive:b.tide").check()
    copy = start("copy", "sqlite:a.db", "archive:a.tide", "--follow")
    copy.wait_until(lambda: (tmp_path / "a.tide").exists() and ask(
        tmp_path / "a.tide", "SELECT COUNT(*) FROM wal") == [(12,)])
    copy.kill()
    move(tmp_path, "a.tide", "moved")
    again = ["copy", "sqlite:a.db", "archive:a.tide", "--follow"]
    assert "a.tide is not there; give the sink another name" in last_words(run(*again).check(3))
    shutil.copy(tmp_path / "b.tide", tmp_path / "a.tide")
    assert "holds a copy of the pipeline" in last_words(run(*again).check(2))
    move(tmp_path, "a.tide", "other")
    move(tmp_path, "moved", "a.tide")
    execute(tmp_path / "a.db", "UPDATE t SET v = 'later'")
    copy = start(*again)
    copy.wait_until(lambda: b"later" in read_back(tmp_path / "a.tide",
                                                  tmp_path / "out.ndjson").read_bytes())
    copy.interrupt().check()
    check_equal(tmp_path / "a.tide", tmp_path / "a.db", run)


def test_a_service_copies_anew_what_a_backup_lacks(start, run, tmp_path):
    make_numbers(tmp_path / "a.db", rows=50)
    (tmp_path / "a.yaml").write_text("name: a\nsource: sqlite:a.db\nsinks: {one: 'archive:a.tide'}\n")
    archive, out = tmp_path / "a.tide", tmp_path / "out.ndjson"

    def until(text):
        service = start("run", "a.yaml")
        service.wait_until(lambda: archive.exists() and text in read_back(archive, out).read_bytes())
        time.sleep(0.3)
        service.terminate().check()

    until(b'"kind":"end"')
    shutil.copy(archive, tmp_path / "backup")
    execute(tmp_path / "a.db", "UPDATE t SET v = 'later'", "DELETE FROM t WHERE id < 10")
    until(b'"op":"delete"')
    shutil.copy(tmp_path / "backup", archive)
    execute(tmp_path / "a.db", "INSERT INTO t VALUES (1000, 'the last')")
    service = start("run", "a.yaml")
    service.wait_until(
        lambda: read_back(archive, out).read_bytes().count(b'"kind":"end"') == 2, timeout=30)
    service.wait_until(lambda: b"the last" in read_back(archive, out).read_bytes())
    service.terminate().check()
    check_sound(archive)
    with sqlite3.connect(tmp_path / "a.db") as db:
        rebuilt = frames.rebuild(out, frames.sqlite_keys(db, "a"))
        assert frames.differences(rebuilt, db, "a") == []


@pytest.mark.parametrize("how", ["remove", "move"])
def test_archive_that_is_taken_away_is_noticed_before_anything_is_acknowledged(start, tmp_path, how):
    make_numbers(tmp_path / "a.db", rows=50)
    (tmp_path / "a.yaml").write_text("name: a\nsource: sqlite:a.db\nsinks:\n  kept: archive:a.tide\n"
                                     "  all: file:a.ndjson\n")
    service = start("run", "a.yaml")
    archive = tmp_path / "a.tide"
    service.wait_until(lambda: archive.exists() and ask(
        archive, "SELECT COUNT(*) > 50 FROM wal") == [(1,)], 30, "the copy")
    if how == "move":
        archive.rename(tmp_path / "b.tide")
    else:
        for path in tmp_path.glob("a.tide*"):
            path.unlink()
    execute(tmp_path / "a.db", "INSERT INTO t VALUES (1000, 'the last')")
    service.wait_for_line("a.tide was moved, removed or replaced while it was being written")
    service.terminate()
