"""Fixtures of the scenarios: the program, runs of it, processes, a folder, counts."""

import os
import pathlib
import random
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from support import process  # noqa: E402  (the path is set just above)


def pytest_configure(config):
    config.addinivalue_line("markers", "soak_only: runs in `make soak AREA=…` alone")


def pytest_collection_modifyitems(items):
    if process.soak(0, 1):
        return
    skip = pytest.mark.skip(reason="only in make soak")
    for item in items:
        if item.get_closest_marker("soak_only"):
            item.add_marker(skip)


@pytest.fixture(scope="session")
def program():
    """The path of the program under test."""
    path = process.program()
    if not os.access(path, os.X_OK):
        pytest.fail(f"{path} is not there: run make, or set TIDEMARK", pytrace=False)
    return path


@pytest.fixture
def run(program, tmp_path):
    """run("copy", …, timeout=60, env=…, memory=…) in the test's folder; gives process.Result."""
    def call(*args, **options):
        options.setdefault("cwd", tmp_path)
        return process.run(*args, argv0=program, **options)
    return call


@pytest.fixture
def start(program, tmp_path):
    """start("copy", …) gives a process.Process; what still runs when the test ends is killed."""
    started = []

    def call(*args, **options):
        options.setdefault("cwd", tmp_path)
        started.append(process.Process(*args, argv0=program, **options))
        return started[-1]
    yield call
    for one in started:
        one.close()


@pytest.fixture
def rng(request):
    """Random numbers with a seed that a failing test prints; TIDEMARK_SEED repeats it."""
    seed = int(os.environ.get("TIDEMARK_SEED") or random.SystemRandom().randrange(2**32))
    print(f"TIDEMARK_SEED={seed} {request.node.nodeid}")
    return random.Random(seed)
