"""The tests' own PostgreSQL servers, sessions and proxy do what they say."""

import time

import pytest
from support.pg_session import Lost, SqlError


def test_session_gives_text_null_and_errors(any_pg):
    session = any_pg.session()
    assert session.query("SELECT 1, NULL, 'é' || chr(10) || '\\'") == [("1", None, "é\n\\")]
    with pytest.raises(SqlError) as refused:
        session.query("SELECT 1; SELECT 1/0")
    assert refused.value.code == "22012"
    assert session.query("CREATE TABLE t (i int); INSERT INTO t VALUES (7); TABLE t") == [("7",)]
    with pytest.raises(Lost):
        any_pg.server.session("no such database")


def test_session_holds_a_commit_that_waits_for_a_standby(server, pg):
    pg.query("CREATE TABLE t (i int)")
    server.setting("synchronous_standby_names", "nosuch")
    session = pg.session()
    session.send("INSERT INTO t VALUES (1)")
    assert not session.answered(0.3)
    assert pg.query("TABLE t") == []
    server.setting("synchronous_standby_names", None)
    session.receive()
    assert pg.query("TABLE t") == [("1",)]


def test_server_stopped_immediate_loses_what_was_not_written_out(server, pg):
    session = pg.session()
    session.query("CREATE TABLE t (i int)")
    server.restart("immediate")
    with pytest.raises(Lost):
        session.query("TABLE t")
    assert pg.query("TABLE t") == []


def test_proxy_cuts_stalls_and_slows(server, pg, proxy_to):
    proxy = proxy_to(server)

    def session():
        return server.session(pg.name, port=proxy.port)
    first = session()
    proxy.cut_after(100000)
    with pytest.raises(Lost):
        first.query("SELECT repeat('x', 200000)")
    second = session()
    proxy.stall()
    second.send("SELECT 1")
    assert not second.answered(0.2)
    proxy.go_on()
    assert second.receive() == [("1",)]
    proxy.slow(100000)
    start = time.monotonic()
    second.query("SELECT repeat('x', 50000)")
    assert time.monotonic() - start > 0.3
    proxy.slow(None)
    proxy.cut()
    with pytest.raises(Lost):
        second.query("SELECT 1")
    assert proxy.cuts == 2
    proxy.refuse()
    with pytest.raises(Lost):
        session()
