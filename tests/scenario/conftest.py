"""Fixtures of the scenarios: the program, runs of it, processes, servers, a folder, counts."""

import itertools
import os
import pathlib
import random
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from support import postgres, process, proxy  # noqa: E402  (the path is set just above)


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


# -- PostgreSQL: a server a session, a fresh database a test

def _server(programs):
    try:
        return postgres.Server(programs())
    except postgres.Missing as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="session")
def installed_server():
    """A server of Debian's version; what needs it is skipped where none is installed."""
    server = _server(postgres.installed)
    yield server
    server.close()


@pytest.fixture(scope="session")
def newest_server():
    """A server of version 18, from npm; what needs it is skipped where it cannot be had."""
    server = _server(postgres.packaged)
    yield server
    server.close()


@pytest.fixture
def server(installed_server):
    """The server, running and with its own settings again when the test ends."""
    yield installed_server
    _as_before(installed_server)


@pytest.fixture(params=["installed", "newest"])
def any_server(request):
    """For tests that each version takes."""
    found = request.getfixturevalue(f"{request.param}_server")
    yield found
    _as_before(found)


def _as_before(server):
    if not server.running():
        server.start()
    if server.query("SELECT 1 FROM pg_file_settings WHERE sourcefile LIKE '%auto.conf'"):
        server.setting("ALL", None)


class Database:
    """A database of a server: `name`, which is also what its stores' names begin with."""

    def __init__(self, server, name):
        self.server = server
        self.name = name
        self._sessions = []

    def session(self, **options):
        """A session that is closed when the test ends."""
        self._sessions.append(self.server.session(self.name, **options))
        return self._sessions[-1]

    def query(self, sql, **options):
        return self.server.query(sql, self.name, **options)

    def url(self, **options):
        return self.server.url(self.name, **options)

    def close(self):
        for session in self._sessions:
            session.close()
        if not self.server.running():
            self.server.start()
        self.server.drop_database(self.name)


def _database(server):
    name = f"shop{next(_numbers)}"
    server.create_database(name)
    return Database(server, name)


_numbers = itertools.count(1)


@pytest.fixture
def database_of():
    """database_of(server) makes a fresh database, which is dropped when the test ends."""
    made = []

    def call(server):
        made.append(_database(server))
        return made[-1]
    yield call
    for one in made:
        one.close()


@pytest.fixture
def pg(server, database_of):
    """A fresh database on the installed server."""
    return database_of(server)


@pytest.fixture
def any_pg(any_server, database_of):
    """A fresh database on a server of each version."""
    return database_of(any_server)


@pytest.fixture
def proxy_to():
    """proxy_to(server) gives a proxy.Proxy in front of it."""
    made = []

    def call(server):
        made.append(proxy.Proxy(server.port))
        return made[-1]
    yield call
    for one in made:
        one.close()
