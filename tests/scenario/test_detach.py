"""Sinks that cannot take part for a while: the others go on, and each copy ends equal."""

import json
import os
import re
import shutil
import sqlite3
import subprocess
import time

import pytest
from support import frames, shop
from support.process import soak

SMALL_LOG = "stream: {lane_bytes: 65536, lane_items: 16, max_retained_bytes: 65536}\n"


@pytest.fixture
def database(tmp_path):
    path = tmp_path / "shop.db"
    shop.make_shop(path, orders=soak(300, 3000))
    return path


@pytest.fixture
def small_disk(tmp_path):
    """A file system of its own for one sink; grow() makes it large."""
    folder = tmp_path / "small"
    folder.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={soak(1, 6)}m", "tmpfs", folder],
                      check=False).returncode != 0:
        pytest.skip("no right to mount a file system")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def grow(folder):
    subprocess.run(["mount", "-o", "remount,size=256m", folder], check=True)


def configure(tmp_path, policy, more=SMALL_LOG):
    (tmp_path / "shop.yaml").write_text(
        "name: shop\nsource: sqlite:shop.db\nsinks:\n  good: file:good.ndjson\n"
        f"  late: {{place: file:small/late.ndjson, when_behind: {policy}}}\n" + more)


def add_mark(database):
    mark = f"mark {time.monotonic_ns()}"
    with sqlite3.connect(database, timeout=30) as db:
        db.execute("INSERT INTO sessions (token, seen) VALUES (?, 0)", (mark,))
    return mark.encode()


def wait_for_mark(process, path, mark, timeout=60):
    process.wait_until(lambda: path.exists() and mark in path.read_bytes()[-200000:], timeout,
                       f"{mark} in {path}")


def check_equal(run, database, *paths):
    with sqlite3.connect(database) as db:
        keys = frames.sqlite_keys(db, "shop")
        for path in paths:
            tables = frames.rebuild([path], keys)
            assert frames.differences(tables, db, "shop") == [], path
    for path in paths:
        run("verify", path).check()


def change_much(database, rounds=40):
    """More log than a sink may hold back; rows are deleted too, some for good."""
    with shop.Writer(database, seed=7, per_second=2000) as writer:
        time.sleep(0.2)
        writer.stop()
    for number in range(rounds):
        with sqlite3.connect(database, timeout=30) as db:
            db.execute("UPDATE products SET title = title || ? WHERE id % 2 = ?",
                       (f" {number}", number % 2))
            db.execute("UPDATE orders SET note = ? WHERE id % 3 = ?",
                       ("n" * 900 + str(number), number % 3))
    with sqlite3.connect(database, timeout=30) as db:
        db.execute("DELETE FROM order_items WHERE order_id % 5 = 0")
        db.execute("DELETE FROM sessions WHERE rowid % 2 = 0")


def check_backfill_without_late(run):
    """late is detached: it is copied anew anyway, and cannot be asked for now."""
    before = requests(run)
    named = run("backfill", "shop.yaml", "--sink", "late").check(2)
    assert "sink late is detached: every table is copied anew without being asked" in named.err
    assert requests(run) == before
    everywhere = run("backfill", "shop.yaml", "--tables", "sessions").check()
    assert everywhere.out == "1 table will be copied anew to good:\n    shop.sessions\n"
    assert "note: detached, and copied anew anyway when it takes part again: late" in everywhere.err


def requests(run):
    shown = json.loads(run("checkpoint", "show", "--json", ".tidemark/shop").check().out)
    found = shown.get("checkpoint", shown)["tidemark"]
    return [copy["request"] for copy in found["copies"]], found["requests"]


def test_sink_that_holds_up_the_log_is_detached_and_comes_back_equal(
        run, start, database, tmp_path, small_disk):
    configure(tmp_path, "detach")
    process = start("run", "shop.yaml")
    first = add_mark(database)
    wait_for_mark(process, small_disk / "late.ndjson", first)
    change_much(database)
    process.wait_for_line("sink late is detached: its lane is full", 60)
    mark = add_mark(database)
    wait_for_mark(process, tmp_path / "good.ndjson", mark)
    check_backfill_without_late(run)
    assert process.running()
    grow(small_disk)
    process.wait_for_line("sink late takes part again and is copied anew", 60)
    last = add_mark(database)
    wait_for_mark(process, small_disk / "late.ndjson", last)
    wait_for_mark(process, tmp_path / "good.ndjson", last)
    process.wait_until(lambda: "late: seeded\n" in run("checkpoint", "show", ".tidemark/shop").out,
                       60, "the new copy of late")
    process.terminate().check()
    check_equal(run, database, tmp_path / "good.ndjson", small_disk / "late.ndjson")


def test_sink_detached_before_it_was_open_comes_back(run, start, database, tmp_path):
    """It was paused when the run began."""
    (tmp_path / "small").mkdir()
    configure(tmp_path, "detach")
    process = start("run", "shop.yaml")
    wait_for_mark(process, tmp_path / "small/late.ndjson", add_mark(database))
    run("pause", "shop.yaml", "--sink", "late").check()
    process.terminate().check()
    process = start("run", "shop.yaml")
    process.wait_for_line("going on")
    change_much(database)
    process.wait_for_line("sink late is detached: its lane is full", 60)
    run("resume", "shop.yaml", "--sink", "late").check()
    process.wait_for_line("sink late takes part again and is copied anew", 60)
    last = add_mark(database)
    for path in (tmp_path / "small/late.ndjson", tmp_path / "good.ndjson"):
        wait_for_mark(process, path, last)
    process.wait_until(lambda: "late: seeded\n" in run("checkpoint", "show", ".tidemark/shop").out,
                       60, "the new copy of late")
    process.terminate().check()
    check_equal(run, database, tmp_path / "good.ndjson", tmp_path / "small/late.ndjson")


def test_sink_detached_is_copied_anew_by_the_next_run_after_a_kill(
        run, start, database, tmp_path, small_disk):
    configure(tmp_path, "detach")
    process = start("run", "shop.yaml")
    wait_for_mark(process, small_disk / "late.ndjson", add_mark(database))
    change_much(database)
    process.wait_for_line("sink late is detached", 60)
    process.kill()
    assert "late: not seeded, detached" in run("checkpoint", "show", ".tidemark/shop").check().out
    grow(small_disk)
    with sqlite3.connect(database, timeout=30) as db:
        db.execute("DELETE FROM order_items WHERE order_id % 7 = 0")
    process = start("run", "shop.yaml")
    last = add_mark(database)
    wait_for_mark(process, small_disk / "late.ndjson", last)
    process.wait_until(lambda: "late: seeded\n" in run("checkpoint", "show", ".tidemark/shop").out,
                       60, "the new copy of late")
    wait_for_mark(process, tmp_path / "good.ndjson", last)
    process.terminate().check()
    check_equal(run, database, tmp_path / "good.ndjson", small_disk / "late.ndjson")


def test_sink_that_may_wait_holds_the_log_until_it_comes_back(
        run, start, database, tmp_path, small_disk):
    configure(tmp_path, "wait")
    process = start("run", "shop.yaml")
    first = add_mark(database)
    wait_for_mark(process, small_disk / "late.ndjson", first)
    change_much(database)
    process.wait_for_line("sink late: .*opened again in", 60)
    process.wait_for_line("sink late is behind: the source keeps [0-9]+ bytes of log for it", 60)
    with sqlite3.connect(database) as db:
        kept = db.execute('SELECT count(*) FROM "_tidemark_changes"').fetchone()[0]
    assert kept > 500  # the slower one still needs them
    grow(small_disk)
    last = add_mark(database)
    wait_for_mark(process, small_disk / "late.ndjson", last)
    process.wait_until(lambda: log_length(database) < 50, 60, "the log to be let go of")
    assert "detached" not in process.err()
    process.terminate().check()
    check_equal(run, database, tmp_path / "good.ndjson", small_disk / "late.ndjson")
    verdicts = run("verify", "--all", "--json", small_disk / "late.ndjson").check().out
    assert verdicts.count("\n") == 5  # one copy of each table: nothing was copied twice


def log_length(database):
    with sqlite3.connect(database, timeout=30) as db:
        return db.execute('SELECT count(*) FROM "_tidemark_changes"').fetchone()[0]


def test_sink_whose_files_are_gone_fails_alone_and_goes_on_when_they_are_back(
        run, start, database, tmp_path):
    (tmp_path / "shop.yaml").write_text("name: shop\nsource: sqlite:shop.db\nsinks:\n"
                                        "  good: file:good.ndjson\n  late: file:late/\n")
    process = start("run", "shop.yaml")
    wait_for_mark(process, tmp_path / "late/shop.sessions.ndjson", add_mark(database))
    shutil.move(tmp_path / "late", tmp_path / "away")
    wait_for_mark(process, tmp_path / "good.ndjson", add_mark(database))
    process.wait_for_line("sink late: .*opened again in", 30)
    stopped = process.terminate().check()  # in order, but one sink has not got all
    assert re.search(r"^sink late could not be written to and has not taken [1-9][0-9]* batch\w* "
                     r"\([0-9]+ bytes\), which the next run brings: .*late", stopped.err, re.M)
    assert "sink good" not in stopped.err
    process = start("run", "shop.yaml")  # also when it is not there at the start
    process.wait_for_line("sink late cannot be opened now, and is tried again")
    assert not (tmp_path / "late").exists()  # it can be given back under its name
    wait_for_mark(process, tmp_path / "good.ndjson", add_mark(database))
    os.rename(tmp_path / "away", tmp_path / "late")
    last = add_mark(database)
    wait_for_mark(process, tmp_path / "late/shop.sessions.ndjson", last)
    wait_for_mark(process, tmp_path / "good.ndjson", last)
    process.terminate().check()
    with sqlite3.connect(database) as db:
        keys = frames.sqlite_keys(db, "shop")
        for paths in ([tmp_path / "good.ndjson"], sorted((tmp_path / "late").glob("*.ndjson"))):
            assert frames.differences(frames.rebuild(paths, keys), db, "shop") == []
