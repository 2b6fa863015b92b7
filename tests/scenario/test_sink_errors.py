"""Errors of sinks that do not pass by themselves end a copy; it does not try for ever."""

import os
import signal
import subprocess
import time

import pytest
from support import shop


@pytest.fixture
def database(tmp_path):
    path = tmp_path / "shop.db"
    shop.make_shop(path, orders=8000)
    return path


def shell(program, folder, line):
    """Runs a line of bash, where $T is the program; its result with all it wrote."""
    return subprocess.run(["bash", "-c", line], cwd=folder, capture_output=True, text=True,
                          check=False, timeout=30, env={**os.environ, "T": str(program)})


def test_copy_to_a_pipe_whose_reader_goes_away_ends(program, database, tmp_path):
    done = shell(program, tmp_path, "$T copy sqlite:shop.db - | head -n 1; exit ${PIPESTATUS[0]}")
    assert done.returncode == 3, done.stderr
    assert done.stdout.count("\n") == 1
    assert "standard output was closed" in done.stderr
    assert "opened again" not in done.stderr


def test_copy_without_standard_output_does_not_begin(run, program, database, tmp_path):
    before = database.read_bytes()
    done = shell(program, tmp_path, "$T copy sqlite:shop.db - >&-")
    assert done.returncode == 3, done.stderr
    assert "standard output was closed" in done.stderr
    assert database.read_bytes() == before
    assert shell(program, tmp_path, "$T copy sqlite:shop.db file:out.ndjson <&- 2>&-"
                 ).returncode == 0
    run("verify", "out.ndjson").check()


def test_command_without_standard_output_writes_into_no_file(run, program, database, tmp_path):
    done = shell(program, tmp_path, "$T copy sqlite:shop.db file:out.ndjson >&- <&-")
    assert done.returncode == 3
    assert "standard output could not be written" in done.stderr
    run("verify", "out.ndjson").check()
