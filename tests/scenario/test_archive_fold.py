"""tidemark archive retain --fold: the state as of a moment in place of all that led to it."""

import contextlib
import json
import random
import shutil
import signal
import sqlite3
import subprocess
import time

import pytest

from support import process
from support.process import soak
from test_archive_commands import (COPY, TABLES, cat, make_history, moments_of, rows_of, state_from,
                                   wait_for_state)


@pytest.fixture(scope="module", name="made")
def made_once(tmp_path_factory):
    folder = tmp_path_factory.mktemp("history")
    (folder / "h.yaml").write_text("name: h\nsource: sqlite:h.db\nsinks:\n  a:\n"
                                   "    place: archive:h.tide\n    seal_rows: 20\n")
    return make_history(folder, ("run", "h.yaml"))


@pytest.fixture(name="history")
def history_with_a_copy_of_the_archive(made, tmp_path):
    shutil.copy(made.path.with_suffix(".tide"), tmp_path / "h.tide")
    return made


def look(run, moment, archive="h.tide"):
    """The tables as of a moment, None for one that is refused."""
    found = {}
    for table in TABLES:
        got = run("archive", "cat", archive, "-t", table, "--as-of", moment)
        assert got.code == 0 or "complete copy of the table ended later" in got.err, got.err
        found[table] = rows_of(map(json.loads, got.out.splitlines())) if got.code == 0 else None
    return found


def segments(path, table):
    with contextlib.closing(sqlite3.connect(path)) as db:
        return db.execute("SELECT seq, rows, first_ts, last_ts FROM segments WHERE stream = ?"
                          " ORDER BY seq", (f"h.{table}",)).fetchall()


def share_of(path, share):
    """The moment at which that share of the segments of both tables has ended."""
    found = sorted(segment[3] for table in TABLES for segment in segments(path, table))
    assert len(found) > 12, found
    last = found[int(len(found) * share)]
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(last // 10**9)) + \
        f".{last % 10**9 // 1000:06}Z"


def fold(run, moment, *more):
    return run("archive", "retain", "h.tide", "--older-than", moment, "--fold", *more)


def some_moments(run, history, count):
    moments = [moment for moment, _ in moments_of(run, history)]
    return random.Random(5).sample(moments, min(count, len(moments))) + moments[-2:]


@pytest.mark.parametrize("share", [0.4, 0.7, 0.9])
def test_states_from_the_base_on_are_what_they_were(run, history, tmp_path, share):
    cutoff = share_of(tmp_path / "h.tide", share)
    moments = some_moments(run, history, soak(16, 300))
    before = {moment: look(run, moment) for moment in moments}
    old = {table: segments(tmp_path / "h.tide", table) for table in TABLES}
    assert fold(run, cutoff, "--dry-run").check().out.count("would be folded to") == 2
    assert {table: segments(tmp_path / "h.tide", table) for table in TABLES} == old
    said = fold(run, cutoff).check().out
    assert said.count(": folded to") == 2 and said.count("kept from") == 2
    assert run("archive", "verify", "--full", "h.tide").check().out.endswith(": sound\n")
    compared, refused = 0, 0
    for moment in moments:
        for table, rows in look(run, moment).items():
            # Both ways of naming a moment: those before the base are refused, no other is.
            is_late = not moment.isdigit() and moment[:26] >= cutoff[:26]
            assert rows is not None or not is_late
            assert rows is None or rows == before[moment][table], (moment, table)
            compared += rows is not None
            refused += rows is None and before[moment][table] is not None
    assert compared > 1 and (refused > 0 or share < 0.5), (compared, refused)
    for table in TABLES:
        new = segments(tmp_path / "h.tide", table)
        assert len(new) < len(old[table]) and new[-1] == old[table][-1]
        assert cat(run, "h.tide", table) == history.state()[table]
    frames = run("archive", "cat", "h.tide", "--changes").check().out
    run("verify", "-", stdin=frames).check()
    again = fold(run, cutoff).check().out
    assert again.count("nothing but a copy") == 2 and again.count("kept from") == 2


def test_the_copy_goes_on_behind_a_base(run, start, tmp_path):
    history = make_history(tmp_path)
    assert fold(run, "0s").check().out.count(": folded to") == 2
    for table in TABLES:
        assert cat(run, "h.tide", table) == history.state()[table]
        assert state_from(run)[table]["complete"] == 1
        assert len(segments(tmp_path / "h.tide", table)) == 1
    copy = start(*COPY)
    for _ in range(30):
        history.change()
    wait_for_state(copy, run, history)
    assert "is in use" in fold(run, "0s").check(3).err
    copy.interrupt()
    run("archive", "verify", "--full", "h.tide").check()
    assert fold(run, "0s").check().out.count(": folded to") >= 1
    run("archive", "compact", "h.tide").check()
    for table in TABLES:
        assert cat(run, "h.tide", table) == history.state()[table]
    run("archive", "verify", "--full", "h.tide").check()


def test_before_the_first_copy_nothing_is_folded(run, history, tmp_path):
    first = min(table["from"] for table in state_from(run).values())
    old = (tmp_path / "h.tide").read_bytes()
    assert fold(run, first[:23] + "Z").out.count("not folded") == 2
    assert (tmp_path / "h.tide").read_bytes()[100:] == old[100:]
    del history


def test_killed_at_any_moment_it_leaves_one_state_or_the_other(run, history, tmp_path):
    started = time.monotonic()
    shutil.copy(tmp_path / "h.tide", tmp_path / "whole.tide")
    run("archive", "retain", "whole.tide", "--older-than", "0s", "--fold").check()
    took = time.monotonic() - started
    old = {table: segments(tmp_path / "h.tide", table) for table in TABLES}
    rnd = random.Random(6)
    folded = 0
    shutil.copy(tmp_path / "h.tide", tmp_path / "old.tide")
    for _ in range(soak(15, 200)):
        with subprocess.Popen([process.program(), "archive", "retain", "h.tide", "--older-than",
                               "0s", "--fold"], cwd=tmp_path, stdout=subprocess.DEVNULL) as child:
            time.sleep(rnd.random() * took)
            child.send_signal(signal.SIGKILL)
        assert run("archive", "verify", "--full", "h.tide").check().out.endswith(": sound\n")
        for table in TABLES:
            found = segments(tmp_path / "h.tide", table)
            is_folded = len(found) == 1
            assert found == old[table] or (is_folded and found[0][3] == old[table][-1][3])
            folded += is_folded
            assert cat(run, "h.tide", table) == history.state()[table]
        for leftover in ("", "-wal", "-shm"):
            (tmp_path / f"h.tide{leftover}").unlink(missing_ok=True)
        shutil.copy(tmp_path / "old.tide", tmp_path / "h.tide")
    assert fold(run, "0s").check().out.count(": folded to") == 2
    assert folded > 0
