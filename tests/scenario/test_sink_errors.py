"""Errors of sinks that do not pass by themselves end a copy; it does not try for ever."""

import os
import signal
import subprocess

import pytest
from support import shop
from support.process import Process


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


def link_to_nowhere(path):
    os.symlink("nowhere", path)


@pytest.mark.parametrize("target,name,put", [
    *[(target, name, put) for put in (link_to_nowhere, os.mkdir) for target, name in [
        ("file:out/", "out/shop.orders.ndjson"),
        ("file:out/", "out/.tidemark-held"),
        ("file:out/", "out/..tidemark-held.tmp"),
        ("file:out.ndjson", ".out.ndjson.tidemark"),
        ("file:out.ndjson", "..out.ndjson.tidemark.tmp"),
    ]],
    ("file:out.ndjson", "out.ndjson", link_to_nowhere),
])
def test_name_that_is_taken_ends_the_copy(run, database, tmp_path, target, name, put):
    (tmp_path / "out").mkdir()
    put(tmp_path / name)
    result = run("copy", "sqlite:shop.db", target, "--overwrite", timeout=20)
    result.check(3)
    assert name in result.err and "opened again" not in result.err, result.err


def test_link_that_leads_nowhere_is_named(run, database, tmp_path):
    (tmp_path / "out").mkdir()
    link_to_nowhere(tmp_path / "out" / "shop.orders.ndjson")
    result = run("copy", "sqlite:shop.db", "file:out/", "--overwrite", timeout=20).check(3)
    assert "out/shop.orders.ndjson is a symbolic link that leads nowhere" in result.err


WAITING = "waiting for the sink to take what was published; again to stop at once"


def test_stop_while_the_sink_cannot_write_says_what_it_waits_for(program, database):
    # files may grow no further: like a full disk, but for this process alone
    blocks = database.stat().st_size // 1024 + 200
    line = (f"trap '' XFSZ; ulimit -f {blocks}; "
            f"exec {program} copy sqlite:shop.db file:out.ndjson --follow")
    with Process("-c", line, argv0="/bin/bash", cwd=database.parent) as process:
        process.wait_for_line("File too large; opened again")
        process.signal(signal.SIGINT)
        process.wait_for_line(f"^{WAITING}$", timeout=10)
        assert process.running()
        result = process.interrupt(timeout=10)
    assert result.err.count(WAITING) == 1
    assert result.code == 0


def test_stop_of_a_sink_that_keeps_up_waits_for_nothing(start, database):
    process = start("copy", "sqlite:shop.db", "file:out.ndjson", "--follow")
    process.wait_for_line("starting")
    assert WAITING not in process.interrupt().check().err
