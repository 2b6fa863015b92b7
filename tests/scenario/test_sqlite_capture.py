"""Capture by triggers: copies built from the log equal the tables, whatever applications do."""

import os
import tempfile

import pytest

from support import process, sqlite_ddl
from support.sqlite_histories import History
from support.sqlite_log_reader import LogReader

ROUNDS = 25
GROUPS = 10                                     # so that a failure names a part of the seeds
FIRST_SEED = int(os.environ.get("TIDEMARK_SEED") or 0)


class Copy:
    """What a consumer has: rows by key, fed with frames, also with such as come twice."""

    def __init__(self, history, reader):
        self.history = history
        self.reader = reader
        _, self.position, self.rows = reader.frames(reader.last(), 1)
        self.confirmed = self.position
        self.delivered = {}     # (table, key, log id) → row: a redelivery must be the same
        self.count = 0

    def read(self):
        rng = self.history.rng
        start = self.confirmed if rng.random() < .2 else self.position      # as after a crash
        frames, self.position, full = self.reader.frames(start, rng.choice([2**31, 2**31, 1, 3]))
        latest = {}
        for number, key, _, row, log_id in frames:
            if row is None:
                self.rows[number].pop(key, None)
            else:
                self.rows[number][key] = row
            latest[number, key] = (log_id, row)
        for (number, key), (log_id, row) in latest.items():
            before = self.delivered.setdefault((number, key, log_id), (row,))
            assert before == (row,), f"{key} of {number} at {log_id} came as {before}, then {row}"
        self.count += len(frames)
        for number, rows in full.items():
            copy = self.rows[number]
            assert copy == rows, (
                f"table {number}: only in the copy {dict(copy.items() - rows.items())},"
                f" only in the table {dict(rows.items() - copy.items())}")

    def confirm(self):
        self.confirmed = self.position
        self.reader.prune(self.history.writers[0].connection, self.confirmed)


def play(seed, path):
    """One history; gives the number of frames. A failure carries all that was executed."""
    history = History(seed, path)
    tables = []
    history.install(lambda names: tables.extend(sqlite_ddl.install(path, "histories", *names)))
    reader = LogReader(path, tables)
    copy = Copy(history, reader)
    try:
        for _ in range(ROUNDS):
            history.play()
            copy.read()
            if history.rng.random() < .3:
                copy.confirm()
    except AssertionError as error:
        said = ";\n".join(history.said)
        raise AssertionError(f"seed {seed}: {error}\n{said}") from None
    finally:
        reader.close()
        history.close()
    return copy.count


def memory_folder():
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


@pytest.mark.parametrize("group", range(GROUPS))
def test_random_histories_copy_equals_table(group):
    count = process.soak(15, 400)
    frames = 0
    with tempfile.TemporaryDirectory(dir=memory_folder()) as folder:
        for seed in range(FIRST_SEED + group * count, FIRST_SEED + (group + 1) * count):
            frames += play(seed, os.path.join(folder, "history.db"))
    assert frames > count * ROUNDS
