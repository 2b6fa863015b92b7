"""A wall clock that is set back by a year, or on, while a copy runs and between two runs of it."""

import contextlib
import json
import os
import pathlib
import sqlite3
import struct
import time

import pytest
from support.trouble import check_equal, ends, execute, make_numbers

YEAR = 365 * 86400
FOLLOW = ["copy", "sqlite:a.db", "file:out.ndjson", "--state", "state"]


class Clock:
    """The environment that shifts a program's clock, and the shift, in seconds."""

    def __init__(self, program, folder):
        self.path = folder / "clock"
        self.set(0)
        self.library = pathlib.Path(program).parent / "tests/support/clock_shift.so"
        self.env = {"LD_PRELOAD": self.library, "CLOCK_SHIFT": self.path}

    def set(self, seconds):
        """Written in place: the program has the file mapped."""
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT)
        os.pwrite(descriptor, struct.pack("=q", seconds), 0)
        os.close(descriptor)


@pytest.fixture
def clock(program, tmp_path):
    made = Clock(program, tmp_path)
    if not made.library.exists():
        pytest.skip(f"{made.library} is not built")
    return made


def times(path, kind):
    """The years of the frames of a kind, in order."""
    with open(path) as lines:
        return [int(json.loads(line)["timestamp"][:4]) for line in lines
                if line.startswith(f'{{"kind":"{kind}"')]


@pytest.mark.parametrize("first, second", [(-YEAR, YEAR), (YEAR, -YEAR)])
def test_clock_set_while_following_holds_nothing_up(start, run, clock, tmp_path, first, second):
    database, out = tmp_path / "a.db", tmp_path / "out.ndjson"
    make_numbers(database)
    process = start(*FOLLOW, "--follow", env=clock.env)
    process.wait_until(lambda: ends(out) == 1)
    for n, shift in enumerate((first, second)):
        clock.set(shift)
        began = time.monotonic()
        execute(database, f"UPDATE t SET v = 'shift {n}' WHERE id < 5")
        process.wait_until(lambda n=n: out.read_bytes().count(b"shift %d" % n) == 5, 10)
        assert time.monotonic() - began < 5
        process.wait_until(lambda n=n: confirmed_all(database), 10, "the log to be pruned")
    process.interrupt().check()
    years = times(out, "change")
    now = time.gmtime().tm_year
    assert years[0] < now < years[-1] or years[0] > now > years[-1]
    run(*FOLLOW).check()  # with the clock as it is
    check_equal(database, out)
    run("verify", "out.ndjson").check()


def confirmed_all(database):
    with contextlib.closing(sqlite3.connect(database)) as db:
        return db.execute("SELECT count(*) FROM _tidemark_changes").fetchone()[0] <= 2


@pytest.mark.parametrize("shift", [-YEAR, YEAR])
def test_clock_set_between_a_kill_and_the_next_run(start, run, clock, tmp_path, shift):
    """The newest checkpoint is the newest, whatever its file's name says of the time."""
    database, out = tmp_path / "a.db", tmp_path / "out.ndjson"
    make_numbers(database)
    for n in range(3):
        clock.set(shift * n)
        process = start(*FOLLOW, "--follow", "--chunk-rows", "100", env=clock.env)
        process.wait_until(lambda n=n: ends(out) >= 1 or n < 1 and out.exists())
        execute(database, f"UPDATE t SET v = 'run {n}' WHERE id = 7")
        if n > 0:
            process.wait_until(lambda n=n: b"run %d" % n in out.read_bytes())
        process.kill()
    sequences = [json.loads(run("checkpoint", "show", "--json", path).check().out)["tidemark"]
                 ["sequence"] for path in sorted((tmp_path / "state").glob("checkpoint_*"))]
    shown = json.loads(run("checkpoint", "show", "--json", "state").check().out)
    assert shown["tidemark"]["sequence"] == max(sequences)
    run(*FOLLOW, env=clock.env).check()
    check_equal(database, out)
    run("verify", "out.ndjson").check()


def test_clock_set_back_while_a_table_is_copied(start, run, clock, tmp_path):
    database, out = tmp_path / "a.db", tmp_path / "out.ndjson"
    make_numbers(database, rows=30000)
    process = start(*FOLLOW, "--chunk-rows", "50", env=clock.env)
    process.wait_until(lambda: out.exists() and out.stat().st_size > 0)
    clock.set(-YEAR)
    process.wait(60).check()
    check_equal(database, out)
    assert "complete" in run("verify", "out.ndjson").check().out


def test_clock_before_1970_and_far_ahead(run, clock, tmp_path):
    """No time that frames, ids and names of files could not say is ever written."""
    make_numbers(tmp_path / "a.db", rows=10)
    for n, shift in enumerate((-60 * YEAR, 300 * YEAR, 9000 * YEAR)):
        clock.set(shift)
        run("copy", "sqlite:a.db", f"file:{n}.ndjson", env=clock.env).check()
        assert "complete" in run("verify", f"{n}.ndjson").check().out
        check_equal(tmp_path / "a.db", tmp_path / f"{n}.ndjson")
