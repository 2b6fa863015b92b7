"""An archive kept in order beside the sink that writes it: retain, compact; killed meanwhile."""

import json
import random
import sqlite3
import time

import pytest

from support import process
from support.process import soak
from test_archive_commands import (TABLES, History, cat, moments_of, rows_of, state_from,
                                   wait_for_state)

CONFIG = """name: h
source: sqlite:h.db
snapshot: {chunk_rows: 20}
sinks:
  a: {place: 'archive:h.tide', seal_rows: 40, retain: 1s}
"""


def kept_from(path):
    with sqlite3.connect(path) as db:
        return db.execute("SELECT MIN(first_ts) FROM segments").fetchone()[0]


@pytest.fixture(name="history")
def history_to_be_copied(tmp_path):
    (tmp_path / "h.yaml").write_text(CONFIG)
    return History(tmp_path / "h.db", seed=17)


def live(history, rnd, service, seconds):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        history.change()
        time.sleep(rnd.choice([0, 0.002, 0.01]))
    assert service.running(), service.err()


def test_killed_while_it_forgets_and_joins_nothing_is_lost(run, start, history, tmp_path):
    """Whenever it dies: what is left is sound and whole, and each state that it tells was so."""
    rnd = random.Random(18)
    archive = tmp_path / "h.tide"
    for number in range(soak(7, 200)):
        service = start("run", "h.yaml")
        if number % 3 == 1 and archive.exists():
            run("backfill", "h.yaml", "--sink", "a", "--tables", "*")  # not if it is starting still
        live(history, rnd, service, 0.2 + rnd.random() * 0.5)
        if number % 4 == 3:
            service.interrupt()  # seals what is live, so that there are small segments
        else:
            service.kill()
        if archive.exists():
            run("archive", "verify", "--full", "h.tide").check()
    with process.Process("run", "h.yaml", cwd=tmp_path) as service:
        wait_for_state(service, run, history, 60)
        for _ in range(100):
            history.change()
        wait_for_state(service, run, history, 60)
        before = kept_from(archive)
        run("backfill", "h.yaml", "--sink", "a", "--tables", "*").check()
        service.wait_until(lambda: history.change() or kept_from(archive) > before, 60,
                           "old copies to be forgotten")
        wait_for_state(service, run, history, 60)
        service.interrupt()
    run("archive", "verify", "--full", "h.tide").check()
    compared = 0
    moments = list(moments_of(run, history))
    some = rnd.sample(moments, min(len(moments), soak(16, 200)))
    for moment, want in some + moments[-4:]:
        for table in TABLES:
            got = run("archive", "cat", "h.tide", "-t", table, "--as-of", moment)
            if got.code == 0:
                assert rows_of(map(json.loads, got.out.splitlines())) == want[table], moment
                compared += 1
            else:
                assert "complete copy of the table ended later" in got.err
    assert compared > 0
    for table in TABLES:
        assert cat(run, "h.tide", table) == history.state()[table]


def test_small_segments_are_joined(start, run, history, tmp_path):
    def configure(sink):
        (tmp_path / "h.yaml").write_text(CONFIG.replace("seal_rows: 40, retain: 1s", sink))

    def segments():
        return sum(table["segments"] for table in state_from(run).values())
    configure("seal_rows: 3, retain: 10s")  # all are as large as they are to be
    service = start("run", "h.yaml")
    wait_for_state(service, run, history, 60)
    for _ in range(100):
        history.change()
    wait_for_state(service, run, history, 60)
    service.interrupt()
    many = segments()
    assert many > 20
    before = run("archive", "cat", "h.tide", "--changes").check().out
    configure("retain: 10s")
    service = start("run", "h.yaml")
    service.wait_until(lambda: segments() < many / 5, 60, "small segments to be joined")
    service.interrupt()
    assert run("archive", "cat", "h.tide", "--changes").check().out == before
    run("archive", "verify", "--full", "h.tide").check()


def test_commands_killed_beside_the_pipeline_leave_it_going(run, start, history, tmp_path):
    """retain and compact while the archive is written, killed at any moment."""
    rnd = random.Random(20)
    (tmp_path / "h.yaml").write_text(CONFIG.replace(", retain: 1s", ", compact: false"))
    service = start("run", "h.yaml")
    wait_for_state(service, run, history, 60)
    for number in range(soak(3, 200)):
        if number % 3 == 0:
            run("backfill", "h.yaml", "--sink", "a", "--tables", "*").check()
        live(history, rnd, service, 0.1)
        args = ["retain", "h.tide", "--older-than", "0s"] if number % 2 else \
            ["compact", "h.tide", "--rows", "200"]
        command = start("archive", *args)
        live(history, rnd, service, 0.9 + rnd.random() * 0.5)  # it asks for the file alone for 1 s
        command.kill()
    run("archive", "compact", "h.tide", "--rows", "200").check()
    run("archive", "retain", "h.tide", "--older-than", "0s").check()
    history.change()
    wait_for_state(service, run, history, 60)
    service.interrupt()
    assert "opened again" not in service.err()
    run("archive", "verify", "--full", "h.tide").check()
    compared = 0
    for moment, want in list(moments_of(run, history))[-soak(20, 200):]:
        for table in TABLES:
            got = run("archive", "cat", "h.tide", "-t", table, "--as-of", moment)
            if got.code == 0:
                assert rows_of(map(json.loads, got.out.splitlines())) == want[table], moment
                compared += 1
    assert compared > 0
