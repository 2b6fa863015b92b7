"""One connection to a real PostgreSQL server: its settings, its deadlines, how it is lost."""

import json
import os
import select
import socket
import struct
import subprocess
import threading
import time

import pytest

from support import process

BIG = "COPY (SELECT repeat('x', 100) FROM generate_series(1, {})) TO STDOUT"


class Connection:
    """Drives the program pg_connection."""

    def __init__(self, url, *kind, env=None):
        program = os.path.join(os.path.dirname(process.program()), "tests", "support",
                               "pg_connection")
        self._process = subprocess.Popen([program, url, *kind], stdin=subprocess.PIPE,
                                         stdout=subprocess.PIPE, encoding="utf-8",
                                         env={**os.environ, **(env or {})})
        self.opened = self.answer()

    def close(self):
        self._process.stdin.close()
        try:
            assert self._process.wait(20) == 0
        finally:
            self._process.kill()
            self._process.stdout.close()

    def send(self, *fields):
        self._process.stdin.write("\t".join(map(str, fields)) + "\n")
        self._process.stdin.flush()

    def answer(self):
        return json.loads(self._process.stdout.readline())

    def call(self, *fields):
        self.send(*fields)
        return self.answer()

    def rows(self, sql):
        got = self.call("query", 10000, sql)
        assert got["status"] == "ok", got
        return got["rows"]


@pytest.fixture
def connect():
    """connect(url, "replication") gives a Connection, which has been opened or not."""
    made = []

    def call(url, *kind, **options):
        made.append(Connection(url, *kind, **options))
        return made[-1]
    yield call
    for one in made:
        one.close()


PINNED = {
    "DateStyle": "ISO, MDY", "IntervalStyle": "postgres", "TimeZone": "UTC", "search_path": "",
    "extra_float_digits": "3", "bytea_output": "hex", "lc_monetary": "C", "client_encoding": "UTF8",
    "standard_conforming_strings": "on", "statement_timeout": "0", "lock_timeout": "0",
    "row_security": "off", "default_transaction_read_only": "off",
    "default_transaction_isolation": "read committed", "application_name": "tidemark",
    "idle_in_transaction_session_timeout": "0",
}
HOSTILE = {
    "DateStyle": "German, DMY", "IntervalStyle": "iso_8601", "TimeZone": "Asia/Tokyo",
    "search_path": "public", "extra_float_digits": "-10", "bytea_output": "escape",
    "client_encoding": "LATIN1", "standard_conforming_strings": "off", "statement_timeout": "1",
    "lock_timeout": "1", "row_security": "on", "default_transaction_read_only": "on",
    "default_transaction_isolation": "serializable", "application_name": "x",
    "idle_in_transaction_session_timeout": "1",
}


def settings(connection):
    return {name: connection.rows(f"SHOW {name}")[0][0] for name in PINNED}


def test_both_kinds_of_connection_have_the_pinned_settings_whatever_others_set(any_pg, connect):
    role = f"odd_{any_pg.name}"
    any_pg.query(f"CREATE ROLE {role} LOGIN REPLICATION")
    try:
        for name, value in HOSTILE.items():
            any_pg.query(f"ALTER ROLE {role} IN DATABASE {any_pg.name} SET {name} = '{value}'"
                         if name != "search_path" else
                         f"ALTER ROLE {role} SET search_path = {value}")
        url = any_pg.url(user=role) + "?options=-c%20DateStyle%3DSQL%20-c%20work_mem%3D1MB"
        env = {"PGTZ": "Asia/Tokyo", "PGCLIENTENCODING": "LATIN1", "PGAPPNAME": "y",
               "PGDATESTYLE": "German"}
        for kind in [(), ("replication",)]:
            connection = connect(url, *kind, env=env)
            assert settings(connection) == PINNED
            assert connection.rows("SHOW work_mem") == [["1MB"]]  # what does not matter is theirs
        connection = connect(any_pg.url(user=role), env={"PGOPTIONS": "-c work_mem=2MB"})
        assert settings(connection) == PINNED
        assert connection.rows("SHOW work_mem") == [["2MB"]]
    finally:
        any_pg.query(f"DROP OWNED BY {role}; DROP ROLE {role}")


def running(pg, word):
    return pg.query(f"SELECT 1 FROM pg_stat_activity WHERE query LIKE '%{word}%' AND state = 'active'"
                    " AND pid <> pg_backend_pid()")


@pytest.mark.parametrize("kind", [(), ("replication",)], ids=["normal", "replication"])
def test_a_query_past_its_deadline_is_ended_and_the_connection_lives(pg, connect, kind):
    connection = connect(pg.url(), *kind)
    # The replication connection runs SQL as well.
    start = time.monotonic()
    got = connection.call("query", 200, "SELECT pg_sleep(30), 'first'")
    assert (got["status"], got["retriable"], got["alive"]) == ("timeout", True, True), got
    assert 0.2 <= time.monotonic() - start < 20
    assert not running(pg, "first")
    for number in range(20):  # none is hit by a cancel that comes late
        assert connection.rows(f"SELECT {number}") == [[str(number)]]


def test_a_query_is_ended_by_the_waker_and_by_a_cancel(pg, connect):
    connection = connect(pg.url())
    connection.call("wake", 150)
    got = connection.call("query", 20000, "SELECT pg_sleep(30)")
    assert (got["status"], got["alive"], got["sqlstate"]) == ("cancelled", True, ""), got
    connection.call("cancel", 150)
    got = connection.call("query", 20000, "SELECT pg_sleep(30)")
    assert (got["status"], got["alive"], got["sqlstate"]) == ("cancelled", True, "57014"), got
    assert connection.rows("SELECT 1") == [["1"]]


def test_statements_give_the_last_result_or_the_first_failure(pg, connect):
    connection = connect(pg.url())
    assert connection.rows("SELECT 1; SELECT 2, NULL") == [["2", None]]
    got = connection.call("query", 5000, "SELECT 1; SELECT 1/0; SELECT nosuch")
    assert (got["status"], got["retriable"], got["sqlstate"]) == ("remote", False, "22012"), got
    got = connection.call("query", 5000, "SELECT * FROM public.nosuch")
    assert (got["status"], got["sqlstate"]) == ("unsupported", "42P01"), got
    assert "nosuch" in got["message"] and f"/{pg.name}: ask: " in got["message"]


def test_a_copy_is_whole_or_fails(pg, connect):
    connection = connect(pg.url())
    assert connection.call("copy", 5000, BIG.format(100000))["count"] == 100000
    got = connection.call("copy", 5000, "COPY (SELECT 1/(5000 - n) FROM generate_series(1, 10000) n)"
                          " TO STDOUT")
    assert (got["status"], got["sqlstate"], got["count"]) == ("remote", "22012", 4999), got
    got = connection.call("copy", 5000, "COPY public.nosuch TO STDOUT")
    assert (got["status"], got["sqlstate"]) == ("unsupported", "42P01"), got
    got = connection.call("copy", 200, "COPY (SELECT pg_sleep(30)) TO STDOUT")
    assert (got["status"], got["alive"]) == ("timeout", True), got
    assert connection.call("abandon", 5000, BIG.format(20000000))["status"] == "ok"
    assert connection.call("copy", 5000, BIG.format(10))["count"] == 10


def test_a_connection_that_is_lost_in_a_copy_is_retriable_and_never_a_short_copy(pg, connect,
                                                                               proxy_to):
    proxy = proxy_to(pg.server)
    for size in (1, 50000, 1000000):
        connection = connect(pg.url(port=proxy.port))
        proxy.cut_after(size)
        got = connection.call("copy", 5000, BIG.format(100000))
        assert (got["status"], got["retriable"], got["alive"]) == ("io", True, False), got
        assert got["count"] < 100000
        got = connection.call("query", 5000, "SELECT 1")
        assert (got["status"], got["retriable"]) == ("io", True), got


def test_a_server_process_that_is_ended_is_retriable(pg, connect):
    connection = connect(pg.url())
    (pid,) = connection.rows("SELECT pg_backend_pid()")[0]
    ender = threading.Timer(0.3, pg.query, [f"SELECT pg_terminate_backend({pid})"])
    ender.start()
    got = connection.call("copy", 20000, "COPY (SELECT pg_sleep(20)) TO STDOUT")
    ender.join()
    assert (got["status"], got["retriable"], got["alive"]) == ("io", True, False), got

    connection = connect(pg.url())
    (pid,) = connection.rows("SELECT pg_backend_pid()")[0]
    pg.query(f"SELECT pg_terminate_backend({pid})")
    time.sleep(0.2)
    got = connection.call("query", 5000, "SELECT 1")
    assert (got["status"], got["retriable"], got["alive"]) == ("io", True, False), got


def test_a_server_that_falls_silent_holds_nobody_up(pg, connect, proxy_to):
    proxy = proxy_to(pg.server)
    connection = connect(pg.url(port=proxy.port))
    proxy.stall()
    start = time.monotonic()
    got = connection.call("query", 200, "SELECT 1")
    assert (got["status"], got["retriable"], got["alive"]) == ("timeout", True, False), got
    assert time.monotonic() - start < 20  # also the request to cancel goes unanswered
    got = connection.call("query", 200, "SELECT 1")
    assert (got["status"], got["retriable"]) == ("io", True), got
    start = time.monotonic()
    assert connect(pg.url(port=proxy.port)).opened["status"] == "timeout"
    assert 4.5 < time.monotonic() - start < 20
    proxy.go_on()


def without_options(startup):
    """The startup message as a pooler passes it on that ignores `options`."""
    parts = startup[8:].split(b"\0")
    pairs = [(name, value) for name, value in zip(parts[::2], parts[1::2]) if name]
    kept = b"".join(name + b"\0" + value + b"\0" for name, value in pairs if name != b"options")
    return struct.pack(">i", len(kept) + 9) + startup[4:8] + kept + b"\0"


def test_a_pooler_that_drops_the_settings_is_told(pg, connect):
    def serve():
        client, _ = listener.accept()
        with client, socket.create_connection(("127.0.0.1", pg.server.port)) as server:
            server.sendall(without_options(client.recv(4096)))
            pair = [client, server]
            while True:
                for one in select.select(pair, [], [], 10)[0]:
                    data = one.recv(4096)
                    if not data:
                        return
                    pair[one is client].sendall(data)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        opened = connect(pg.url(port=listener.getsockname()[1]) + "?sslmode=disable").opened
        thread.join(20)
    assert opened["status"] == "invalid" and "pooler" in opened["message"], opened


def test_a_server_that_is_away_or_full_is_retriable(pg, connect):
    pg.server.stop()
    opened = connect(pg.url()).opened
    assert (opened["status"], opened["retriable"]) == ("io", True), opened
    pg.server.start()
    pg.query(f"ALTER DATABASE {pg.name} CONNECTION LIMIT 0; CREATE ROLE guest_{pg.name} LOGIN")
    opened = connect(pg.url(user=f"guest_{pg.name}")).opened
    pg.query(f"DROP ROLE guest_{pg.name}")
    assert (opened["status"], opened["retriable"]) == ("io", True), opened
