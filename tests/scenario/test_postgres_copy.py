"""tidemark copy from PostgreSQL: beside writers, killed, its server stopped, its connections cut."""

import json
import re
import time

import pytest
from support import pg_tables, pg_writers
from support.process import MIB, ROOT, soak


def frames_of(path, kind, store=None):
    if not path.exists():
        return []
    with open(path, "rb") as lines:
        found = [json.loads(line) for line in lines
                 if line.startswith(b'{"kind":"%s"' % kind.encode()) and line.endswith(b"\n")]
    return [frame for frame in found if store is None or frame["store"] == store]


def count(path, text):
    return path.read_bytes().count(text) if path.exists() else 0


def ended(path, tables):
    """A condition: the copies of so many tables have ended."""
    return lambda: len({frame["store"] for frame in frames_of(path, "end")}) >= tables


def follows(pg):
    """Whether somebody streams from a slot of the database."""
    return pg.query("SELECT 1 FROM pg_stat_replication r JOIN pg_replication_slots s ON"
                    " s.active_pid = r.pid WHERE s.database = current_database() AND r.state ="
                    " 'streaming'")


def leaves_nothing(pg):
    assert pg.server.slots(pg.name) == []
    assert pg.server.publications(pg.name) == []


@pytest.fixture
def out(tmp_path):
    return tmp_path / "out.ndjson"


# -- whole copies

def test_copy_of_a_quiet_database_is_complete_and_leaves_nothing(run, any_pg, out):
    pg_writers.make_tables(any_pg.session())
    any_pg.query("CREATE TABLE empty (id int PRIMARY KEY)")
    result = run("copy", any_pg.url(), "file:out.ndjson", "--chunk-rows", "50").check()
    assert result.out.startswith("complete: 7 tables, ")
    assert "change" not in {frame["kind"] for frame in frames_of(out, "change")}
    pg_tables.check(any_pg, out)
    assert run("verify", "out.ndjson").check().out.count("complete") == 7
    leaves_nothing(any_pg)


def test_copy_takes_both_schemes_and_never_shows_the_password(run, pg, tmp_path):
    pg.query("CREATE TABLE t (id int PRIMARY KEY)")
    secret = pg.url().replace("postgres@", "postgres:s3cr3t@")
    for scheme in ("postgres", "postgresql"):
        url = secret.replace("postgres:", f"{scheme}:", 1) + "?connect_timeout=5&sslmode=disable"
        result = run("copy", url, f"file:{scheme}.ndjson").check()
        assert "s3cr3t" not in result.out + result.err
        assert [frame["store"] for frame in frames_of(tmp_path / f"{scheme}.ndjson", "end")] == \
            [f"{pg.name}.public.t"]
    nowhere = secret.replace(f":{pg.server.port}/", ":1/")
    result = run("copy", nowhere, "file:nowhere.ndjson")
    assert result.code == 3 and "s3cr3t" not in result.out + result.err
    assert not [path for path in tmp_path.rglob("*s3cr3t*")]
    for path in tmp_path.rglob("*"):
        assert path.is_dir() or b"s3cr3t" not in path.read_bytes(), path


def test_copy_of_chosen_tables(run, pg, tmp_path):
    pg_writers.make_tables(pg.session(), rows=20)
    run("copy", pg.url(), "file:one/", "--tables", "*ints,public.*").check()
    assert sorted(path.name for path in (tmp_path / "one").glob("*.ndjson")) == [
        f"{pg.name}.{table}.ndjson" for table in ("lib.ints", "public.ids", "public.whole")]
    run("copy", pg.url(), "file:two/", "--tables", "Pairs").check()
    assert [path.name for path in (tmp_path / "two").glob("*.ndjson")] == [
        f"{pg.name}.lib.Pairs.ndjson"]
    result = run("copy", pg.url(), "file:three.ndjson", "--tables", "pairs")
    assert result.code == 2 and "pairs" in result.err


HOSTILE = ["a.b", "we ird", 'quo"te', "Ж", "select", "Case", "case", "back\\slash", "per%cent",
           "under_score", "underXscore", "it's"]


def test_copy_of_hostile_names(run, start, pg, out):
    """Tables and columns whose names must be quoted, also when they change."""
    session = pg.session()
    for i, name in enumerate(HOSTILE):
        table = pg_tables.quoted(name)
        schema = pg_tables.quoted(f"s {name}") if i % 2 else "public"
        session.query(f"CREATE SCHEMA IF NOT EXISTS {schema};"
                      f"CREATE TABLE {schema}.{table} ({table} text PRIMARY KEY, \"Id\" int, id int);"
                      f"INSERT INTO {schema}.{table} SELECT 'k''\\{i}' || i, i, -i"
                      " FROM generate_series(1, 5) i")
    process = start("copy", pg.url(), "file:out.ndjson", "--follow", "--chunk-rows", "2")
    process.wait_until(ended(out, len(HOSTILE)), what="all ends")
    for i, name in enumerate(HOSTILE):
        schema = pg_tables.quoted(f"s {name}") if i % 2 else "public"
        session.query(f"UPDATE {schema}.{pg_tables.quoted(name)} SET id = id - 1;"
                      f"DELETE FROM {schema}.{pg_tables.quoted(name)} WHERE \"Id\" = 3")
    process.wait_until(lambda: count(out, b'"delete"') == len(HOSTILE), what="all deletions")
    process.interrupt().check()
    pg_tables.check(pg, out)
    run("detach", pg.url()).check()
    leaves_nothing(pg)


def test_copy_leaves_generated_columns_out(run, start, any_pg, out):
    any_pg.query("CREATE TABLE t (id int PRIMARY KEY, a int, g int GENERATED ALWAYS AS (a * 2) STORED,"
                 " b int GENERATED BY DEFAULT AS IDENTITY); INSERT INTO t (id, a) VALUES (1, 5)")
    process = start("copy", any_pg.url(), "file:out.ndjson", "--follow")
    process.wait_until(ended(out, 1), what="the end")
    any_pg.query("INSERT INTO t (id, a) VALUES (2, 6); UPDATE t SET a = 7 WHERE id = 1")
    process.wait_until(lambda: count(out, b'"kind":"change"') == 2, what="the changes")
    process.interrupt().check()
    pg_tables.check(any_pg, out)
    assert b'"g"' not in out.read_bytes()
    assert "g" in run("check", any_pg.url()).check().out


# -- beside writers

def finish(run, pg, out, arguments):
    """Goes on to the end of the copy with nobody writing, and compares."""
    run(*arguments, timeout=120).check()
    tables = pg_tables.check(pg, out)
    run("verify", out).check()
    leaves_nothing(pg)
    return tables


@pytest.mark.parametrize("version,kills", [("installed", (10, 100)), ("newest", (3, 30))])
def test_trap_b8_copy_killed_at_random_beside_writers_ends_equal(request, run, start, database_of, out, rng,
                                                         version, kills):
    server = request.getfixturevalue(f"{version}_server")
    pg = database_of(server)
    pg_writers.make_tables(pg.session())
    arguments = ["copy", pg.url(), "file:out.ndjson", "--state", "state", "--chunk-rows", "20"]
    with pg_writers.Writers(server, pg.name, rng) as writers:
        for _ in range(soak(*kills)):
            process = start(*arguments, "--follow")
            time.sleep(rng.uniform(0.05, 0.8))
            assert process.running(), process.err()
            process.kill()
        process = start(*arguments, "--follow")
        process.wait_until(lambda: follows(pg), what="the stream")
        process.wait_until(ended(out, 6), 60, what="six ends")
        assert writers.stop() > 0
        process.interrupt().check()
    finish(run, pg, out, arguments)


class Accidents:
    """What happens to a server and the way to it, while tidemark stays up."""

    def __init__(self, pg, proxy, rng):
        self.pg = pg
        self.proxy = proxy
        self.rng = rng

    def one(self):
        self.rng.choice((self.crash, self.crash, self.restart, self.walsenders, self.everybody,
                         self.cut, self.cut_inside, self.stall))()

    def crash(self):
        self.pg.server.restart("immediate", down=self.rng.choice((0, 0.3)))

    def restart(self):
        self.pg.server.restart("fast")

    def _terminate(self, which):
        self.pg.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname ="
                      f" current_database() AND application_name = 'tidemark' AND {which}")

    def walsenders(self):
        self._terminate("backend_type = 'walsender'")

    def everybody(self):
        self._terminate("true")

    def cut(self):
        self.proxy.cut()

    def cut_inside(self):
        self.proxy.cut_after(self.rng.randrange(1, 100000))

    def stall(self):
        self.proxy.stall()
        time.sleep(0.3)
        self.proxy.go_on()


def start_again(start, pg, arguments):
    """Follows again. A server that is still recovering lets nobody in, which ends a start."""
    while True:
        process = start(*arguments, "--follow")
        process.wait_until(lambda process=process: follows(pg) or not process.running(),
                           what="the stream")
        if process.running():
            return process
        assert process.code == 3 and "PostgreSQL" in process.err(), process.err()


def test_trap_b9_copy_outlives_accidents_of_the_server_beside_writers(run, start, server, pg, out, rng,
                                                              proxy_to):
    pg_writers.make_tables(pg.session())
    proxy = proxy_to(server)
    arguments = ["copy", pg.url(port=proxy.port), "file:out.ndjson", "--state", "state",
                 "--chunk-rows", "20"]
    accidents = Accidents(pg, proxy, rng)
    with pg_writers.Writers(server, pg.name, rng) as writers:
        process = start(*arguments, "--follow")
        process.wait_until(lambda: count(out, b'"kind":"begin"') > 0, what="the copy's begin")
        for _ in range(soak(10, 100)):
            accidents.one()
            time.sleep(rng.uniform(0.1, 0.7))
            assert process.running(), process.err()
            if rng.random() < 0.2:
                process.kill()
                process = start_again(start, pg, arguments)
        process.wait_until(ended(out, 6), 60, what="six ends")
        assert writers.stop() > 0
        process.interrupt().check()
    finish(run, pg, out, arguments)


def wide_table(pg, rows=3000):
    pg.query("CREATE TABLE t (id int PRIMARY KEY, v text);"
             f"INSERT INTO t SELECT i, repeat(md5(i::text), 10) FROM generate_series(1, {rows}) i")


def test_trap_a3_connection_cut_in_the_middle_of_a_chunk_is_no_end(run, start, pg, out, proxy_to):
    """A short read is not the end of a table, wherever it is cut."""
    wide_table(pg)
    proxy = proxy_to(pg.server)
    process = start("copy", pg.url(port=proxy.port), "file:out.ndjson", "--chunk-rows", "500")
    for cut in range(1, 5):
        proxy.cut_after(70000 + 7919 * cut)
        process.wait_until(lambda cut=cut: proxy.cuts >= cut, what="the cut")
    process.wait(60).check()
    tables = pg_tables.check(pg, out)
    assert len(frames_of(out, "end")) == 1
    assert sum(held.record is not None for held in tables.stores[f"{pg.name}.public.t"].held.values()) \
        == 3000


def test_trap_a3_statement_stopped_in_the_middle_of_a_chunk_is_no_end(start, pg, out, proxy_to):
    wide_table(pg)
    proxy = proxy_to(pg.server)
    proxy.slow(300000)
    process = start("copy", pg.url(port=proxy.port), "file:out.ndjson", "--chunk-rows", "1000")
    process.wait_until(lambda: count(out, b'"kind":"begin"') > 0, what="the begin")
    for _ in range(3):
        pg.query("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE datname ="
                 " current_database() AND query ILIKE 'COPY%' AND pid <> pg_backend_pid()")
        time.sleep(0.3)
    proxy.slow(None)
    process.wait(60).check()
    pg_tables.check(pg, out)


# -- following

def test_copy_follows_until_it_is_stopped_and_goes_on_later(run, start, any_pg, out):
    any_pg.query("CREATE TABLE t (id int PRIMARY KEY, v text); INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    arguments = ["copy", any_pg.url(), "file:out.ndjson", "--state", "state", "--follow"]
    process = start(*arguments)
    process.wait_until(ended(out, 1), what="the end")
    any_pg.query("UPDATE t SET v = 'followed' WHERE id = 1")
    process.wait_until(lambda: count(out, b"followed"), what="the change")
    result = process.interrupt().check()
    assert "followed until stopped" in result.out and "tidemark detach" in result.err
    any_pg.query("DELETE FROM t WHERE id = 2; INSERT INTO t VALUES (3, 'c')")
    process = start(*arguments)
    process.wait_until(lambda: count(out, b'"op":"insert"'), what="what was done meanwhile")
    process.terminate().check()
    pg_tables.check(any_pg, out)
    run("detach", any_pg.url()).check()
    leaves_nothing(any_pg)


def test_trap_b7_changes_of_one_transaction_are_whole_across_a_kill(start, run, pg, out, rng):
    """One transaction of many batches; killed while it is delivered."""
    pg.query("CREATE TABLE t (id int PRIMARY KEY, v text); INSERT INTO t VALUES (0, 'first')")
    arguments = ["copy", pg.url(), "file:out.ndjson", "--state", "state", "--follow"]
    process = start(*arguments)
    process.wait_until(ended(out, 1), what="the end")
    rows = soak(60000, 500000)
    pg.query(f"INSERT INTO t SELECT i, repeat('x', 100) FROM generate_series(1, {rows}) i")
    for _ in range(3):
        time.sleep(rng.uniform(0.02, 0.2))
        process.kill()
        process = start(*arguments)
    pg.query("INSERT INTO t VALUES (-1, 'last')")
    process.wait_until(lambda: count(out, b'"last"'), 60, what="the last change")
    process.interrupt().check()
    pg_tables.check(pg, out)
    indexes = [frame["index"] for frame in frames_of(out, "change")
               if frame["op"] == "insert" and 0 < frame["key"]["id"]]
    assert set(indexes) == set(range(rows))


def test_trap_b4_two_transactions_that_overlap_come_in_commit_order(start, pg, out, rng):
    pg.query("CREATE TABLE t (id int PRIMARY KEY, v int)")
    arguments = ["copy", pg.url(), "file:out.ndjson", "--state", "state", "--follow"]
    process = start(*arguments)
    process.wait_until(ended(out, 1), what="the end")
    one, two = pg.session(), pg.session()
    for i in range(soak(10, 200)):
        one.query(f"BEGIN; INSERT INTO t VALUES ({4 * i}, 1)")
        two.query(f"BEGIN; INSERT INTO t VALUES ({4 * i + 1}, 2)")
        one.query(f"INSERT INTO t VALUES ({4 * i + 2}, 1)")
        two.query("COMMIT")
        if rng.random() < 0.4:
            time.sleep(rng.uniform(0, 0.1))
            process.kill()
            process = start(*arguments)
        one.query(f"INSERT INTO t VALUES ({4 * i + 3}, 1); COMMIT")
    process.wait_until(lambda: count(out, b'"op":"insert"') >= 4 * soak(10, 200), 60, "all")
    time.sleep(0.2)
    process.interrupt().check()
    tables = pg_tables.check(pg, out)
    assert len(list(tables.rows(f"{pg.name}.public.t"))) == 4 * soak(10, 200)


def test_trap_i1_large_transaction_in_bounded_memory(start, pg, out):
    rows = soak(80000, 2000000)
    pg.query(f"CREATE TABLE t (id int PRIMARY KEY, v text); INSERT INTO t SELECT i, repeat('x', 200)"
             f" FROM generate_series(1, {rows}) i")
    process = start("copy", pg.url(), "file:out.ndjson", "--follow", memory=64 * MIB)
    process.wait_until(ended(out, 1), 60, what="the end")
    pg.query("UPDATE t SET v = v || 'y'; DELETE FROM t WHERE id % 2 = 0; INSERT INTO t VALUES (0, 'z')")
    process.wait_until(lambda: count(out, b'"z"'), 90, what="the last change")
    result = process.interrupt().check()
    print(f"peak {result.peak_kib} KiB")
    pg_tables.check(pg, out)
    out.unlink()


def test_idle_tables_let_the_log_go(start, pg, database_of, out):
    """Others write, here and in another database; the slot moves on although nothing is ours."""
    pg.query("CREATE TABLE t (id int PRIMARY KEY); CREATE TABLE busy (id serial PRIMARY KEY, v text)")
    process = start("copy", pg.url(), "file:out.ndjson", "--follow", "--tables", "t")
    process.wait_until(ended(out, 1), what="the end")
    session, other = pg.session(), database_of(pg.server).session()
    other.query("CREATE TABLE busy (id serial PRIMARY KEY, v text)")
    for writing in (session, other):
        for _ in range(20):
            writing.query("INSERT INTO busy (v) SELECT repeat('x', 1000) FROM generate_series(1, 200)")
        target = session.value("SELECT pg_current_wal_lsn()")
        process.wait_until(lambda target=target: session.value(
            f"SELECT confirmed_flush_lsn >= '{target}' FROM pg_replication_slots WHERE database ="
            " current_database()") == "t", 20, what="the slot to move on")
    process.interrupt().check()


def test_pipelines_beside_each_other_are_told_apart(start, run, pg, tmp_path):
    """Names that differ in a byte that slots cannot have, or that LIKE takes for any."""
    pg.query("CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1)")
    names = ["a_b", "a-b", "axb", "A_B", "a" * 100]
    processes = [start("copy", pg.url(), f"file:{i}.ndjson", "--state", f"states/{name}", "--follow")
                 for i, name in enumerate(names)]
    for i, process in enumerate(processes):
        process.wait_until(ended(tmp_path / f"{i}.ndjson", 1), what="the end")
    assert len(pg.server.slots(pg.name)) == len(names)
    pg.query("INSERT INTO t VALUES (2)")
    for i, process in enumerate(processes):
        path = tmp_path / f"{i}.ndjson"
        process.wait_until(lambda path=path: count(path, b'"kind":"change"'), what="the change")
        process.interrupt().check()
        pg_tables.check(pg, path)
    run("copy", pg.url(), "file:0.ndjson", "--state", "states/a_b").check()
    assert len(pg.server.slots(pg.name)) == len(pg.server.publications(pg.name)) == len(names) - 1
    run("detach", pg.url()).check()
    leaves_nothing(pg)


# -- changes of key, large values, truncation

def test_key_changes_with_unsent_columns_while_the_table_is_copied(start, run, pg, out, proxy_to):
    """Forwards and backwards over what is copied already, and swapped."""
    pg.query("CREATE TABLE t (id int PRIMARY KEY, n int, big text);"
             "ALTER TABLE t ALTER big SET STORAGE EXTERNAL;"
             "INSERT INTO t SELECT i, 0, repeat(md5(i::text), 70) FROM generate_series(10, 1000, 10) i")
    proxy = proxy_to(pg.server)
    proxy.slow(60000)
    process = start("copy", pg.url(port=proxy.port), "file:out.ndjson", "--chunk-rows", "10")
    process.wait_until(lambda: count(out, b'"kind":"row"') >= 10, what="first rows")
    proxy.slow(10000)
    for old, new in ((900, 5), (910, 15), (20, 995), (30, 505), (800, 805), (40, 45), (805, 46)):
        pg.query(f"UPDATE t SET id = {new} WHERE id = {old}")
    for one, two in ((50, 850), (60, 70), (860, 870)):
        pg.query(f"BEGIN; UPDATE t SET id = 0 WHERE id = {one}; UPDATE t SET id = {one} WHERE id ="
                 f" {two}; UPDATE t SET id = {two} WHERE id = 0; COMMIT")
    assert count(out, b'"kind":"row"') < 60, "the copy was too quick for this test"
    pg.query("UPDATE t SET n = n + 1 WHERE id % 3 = 0")
    proxy.slow(None)
    process.wait(60).check()
    pg_tables.check(pg, out)


def test_unchanged_large_value_is_left_out_and_full_identity_fills_it(start, pg, out):
    for table in ("plain", "whole"):
        pg.query(f"CREATE TABLE {table} (id int PRIMARY KEY, n int, big text);"
                 f"ALTER TABLE {table} ALTER big SET STORAGE EXTERNAL;"
                 f"INSERT INTO {table} VALUES (1, 0, repeat('x', 5000)), (2, 0, NULL)")
    pg.query("ALTER TABLE whole REPLICA IDENTITY FULL")
    process = start("copy", pg.url(), "file:out.ndjson", "--follow")
    process.wait_until(ended(out, 2), what="both ends")
    pg.query("UPDATE plain SET n = 1; UPDATE whole SET n = 1; UPDATE plain SET id = id + 10;"
             "UPDATE whole SET id = id + 10; DELETE FROM whole WHERE id = 12;"
             "UPDATE plain SET big = NULL WHERE id = 11")
    process.wait_until(lambda: count(out, b'"kind":"change"') == 10, what="ten changes")
    process.interrupt().check()
    pg_tables.check(pg, out)
    plain = frames_of(out, "change", f"{pg.name}.public.plain")
    whole = frames_of(out, "change", f"{pg.name}.public.whole")
    assert plain[0]["unchanged"] == ["big"] and "big" not in plain[0]["record"]
    assert "unchanged" not in plain[1] and plain[1]["record"]["big"] is None
    assert plain[2]["moved_from"] == {"id": 1} and plain[2]["key"] == {"id": 11}
    assert all("before" not in change for change in plain)
    assert all("unchanged" not in change for change in whole)
    assert whole[0]["record"]["big"] == "x" * 5000
    assert whole[0]["before"]["n"] == 0
    assert whole[-1]["op"] == "delete" and whole[-1]["before"]["n"] == 1


def test_truncate_before_between_and_after_chunks(start, pg, out, proxy_to):
    for table in "abc":
        pg.query(f"CREATE TABLE {table} (id int PRIMARY KEY, v text);"
                 f"INSERT INTO {table} SELECT i, repeat('x', 300) FROM generate_series(1, 500) i")
    proxy = proxy_to(pg.server)
    proxy.slow(100000)
    process = start("copy", pg.url(port=proxy.port), "file:out.ndjson", "--chunk-rows", "50",
                    "--follow")
    process.wait_until(lambda: count(out, b'"kind":"row"') >= 50, what="first rows")
    pg.query("TRUNCATE a, c; INSERT INTO a VALUES (7, 'again'), (1000, 'new')")
    proxy.slow(None)
    process.wait_until(ended(out, 3), what="three ends")
    pg.query("TRUNCATE b; INSERT INTO b VALUES (1, 'later')")
    process.wait_until(lambda: count(out, b'"later"'), what="the last change")
    process.interrupt().check()
    pg_tables.check(pg, out)
    assert {frame["store"][-1] for frame in frames_of(out, "change") if frame["op"] == "truncate"} \
        == {"a", "b", "c"}


# -- changes of shape

def test_table_rewritten_while_it_is_copied_is_not_taken_for_empty(start, run, pg, out, proxy_to):
    """A rewriting ALTER is not MVCC-safe: a snapshot taken before it reads no rows at all."""
    pg.query("CREATE TABLE t (id int PRIMARY KEY, v int, pad text);"
             "INSERT INTO t SELECT i, i, repeat('x', 200) FROM generate_series(1, 2000) i")
    proxy = proxy_to(pg.server)
    proxy.slow(100000)
    process = start("copy", pg.url(port=proxy.port), "file:out.ndjson", "--chunk-rows", "50")
    process.wait_until(lambda: count(out, b'"kind":"row"') >= 100, what="first rows")
    session = pg.session()
    session.query("BEGIN; ALTER TABLE t ALTER v TYPE bigint")
    time.sleep(0.5)
    session.query("COMMIT")
    proxy.slow(None)
    result = process.wait(60)
    if result.code == 0:  # copied through to the end: then every row must be there
        pg_tables.check(pg, out)
    else:                 # or stopped with a sentence: then it must not look complete
        assert "t" in result.err
        assert run("verify", "out.ndjson").code == 1


def test_columns_added_dropped_and_renamed_while_nobody_follows(start, run, pg, out):
    """Changes are decoded by the shape that the table had when they were made."""
    pg.query("CREATE TABLE t (id int PRIMARY KEY, a text, b text, c text);"
             "INSERT INTO t VALUES (1, 'a', 'b', 'c')")
    arguments = ["copy", pg.url(), "file:out.ndjson", "--state", "state", "--follow"]
    process = start(*arguments)
    process.wait_until(ended(out, 1), what="the end")
    process.interrupt().check()
    pg.query("INSERT INTO t VALUES (2, 'a2', 'b2', 'c2')")
    pg.query("ALTER TABLE t DROP COLUMN a; ALTER TABLE t RENAME c TO d; ALTER TABLE t ADD e int")
    pg.query("INSERT INTO t VALUES (3, 'b3', 'd3', 3)")
    process = start(*arguments)
    process.wait_until(lambda: count(out, b'"d3"'), what="the last change")
    process.interrupt()
    records = [frame["record"] for frame in frames_of(out, "change")]
    assert {"id": 2, "a": "a2", "b": "b2", "c": "c2"} in records
    assert {"id": 3, "b": "b3", "d": "d3", "e": 3} in records


def test_table_dropped_half_way_does_not_end_as_complete(start, run, pg, out, proxy_to):
    wide_table(pg)
    pg.query("CREATE TABLE a (id int PRIMARY KEY); INSERT INTO a VALUES (1)")
    proxy = proxy_to(pg.server)
    proxy.slow(200000)
    process = start("copy", pg.url(port=proxy.port), "file:out.ndjson", "--chunk-rows", "100")
    process.wait_until(lambda: count(out, b'"kind":"row"') >= 100, what="first rows")
    pg.query("DROP TABLE t")
    proxy.slow(None)
    result = process.wait(60)
    assert result.code != 0 and "t" in result.err
    assert "complete    " + f"{pg.name}.public.t" not in run("verify", "out.ndjson").out


# -- what is refused

REFUSED = {
    "no_key": "CREATE TABLE no_key (id int)",
    "later": "CREATE TABLE later (id int PRIMARY KEY DEFERRABLE)",
    "nothing": "CREATE TABLE nothing (id int PRIMARY KEY); ALTER TABLE nothing REPLICA IDENTITY NOTHING",
    "by_index": "CREATE TABLE by_index (id int PRIMARY KEY, u int NOT NULL UNIQUE);"
                "ALTER TABLE by_index REPLICA IDENTITY USING INDEX by_index_u_key",
    "parts": "CREATE TABLE parts (id int PRIMARY KEY) PARTITION BY RANGE (id);"
             "CREATE TABLE part_1 PARTITION OF parts FOR VALUES FROM (0) TO (10)",
    "seen": "CREATE VIEW seen AS SELECT 1 AS id",
    "unlogged": "CREATE UNLOGGED TABLE unlogged (id int PRIMARY KEY)",
}


def test_tables_that_cannot_be_followed_are_refused_by_name_and_left_out_by_glob(run, pg, out):
    pg.query("CREATE TABLE good (id int PRIMARY KEY); INSERT INTO good VALUES (1)")
    for statement in REFUSED.values():
        pg.query(statement)
    checked = run("check", pg.url())
    said = checked.out + checked.err
    for name in REFUSED:
        result = run("copy", pg.url(), "file:out.ndjson", "--tables", name)
        assert result.code == 2 and name in result.err, name
        assert not out.exists()
    for name in ("no_key", "later", "nothing", "by_index", "parts"):
        assert name in said, name
    run("copy", pg.url(), "file:out.ndjson").check()
    assert {frame["store"] for frame in frames_of(out, "row")} == {f"{pg.name}.public.good"}
    pg.query("CREATE TABLE still (id int); INSERT INTO no_key VALUES (1); UPDATE no_key SET id = 2")
    leaves_nothing(pg)


def test_server_without_logical_log_is_refused_with_what_mends_it(run, server, pg):
    pg.query("CREATE TABLE t (id int PRIMARY KEY)")
    server.query("ALTER SYSTEM SET wal_level = replica")
    server.restart()
    try:
        checked = run("check", pg.url())
        copied = run("copy", pg.url(), "file:out.ndjson")
    finally:
        server.query("ALTER SYSTEM RESET wal_level")
        server.restart()
    assert checked.code == 1 and "wal_level" in checked.out
    assert copied.code != 0 and "wal_level" in copied.err


def test_role_with_too_few_rights_is_told_which(run, pg):
    pg.query("CREATE TABLE t (id int PRIMARY KEY); DROP ROLE IF EXISTS weak; CREATE ROLE weak LOGIN")
    try:
        checked = run("check", pg.url(user="weak"))
        copied = run("copy", pg.url(user="weak"), "file:out.ndjson")
    finally:
        pg.query("DROP ROLE weak")
    assert checked.code == 1 and "REPLICATION" in checked.out.upper()
    assert copied.code != 0
    leaves_nothing(pg)


# -- going on only where it is right

def followed(start, pg, out):
    """A copy that has ended and is to go on later; gives its arguments."""
    pg.query("CREATE TABLE t (id int PRIMARY KEY, v text); INSERT INTO t VALUES (1, 'a')")
    arguments = ["copy", pg.url(), "file:out.ndjson", "--state", "state", "--follow"]
    process = start(*arguments)
    process.wait_until(ended(out, 1), what="the end")
    pg.query("INSERT INTO t VALUES (2, 'b')")
    process.wait_until(lambda: count(out, b'"b"'), what="the change")
    process.interrupt().check()
    return arguments


def test_slot_dropped_stops_the_next_start(start, run, pg, out):
    arguments = followed(start, pg, out)
    slot, = pg.server.slots(pg.name)
    pg.query(f"SELECT pg_drop_replication_slot('{slot}')")
    result = run(*arguments)
    assert result.code not in (0, 1) and slot in result.err


def test_trap_b6_slot_made_anew_stops_the_next_start(start, run, pg, out):
    """Writes between are in no slot: going on would lose them without a word."""
    arguments = followed(start, pg, out)
    slot, = pg.server.slots(pg.name)
    pg.query(f"SELECT pg_drop_replication_slot('{slot}')")
    pg.query("INSERT INTO t VALUES (3, 'lost')")
    pg.query(f"SELECT pg_create_logical_replication_slot('{slot}', 'pgoutput')")
    result = run(*arguments)
    assert result.code not in (0, 1) and slot in result.err
    assert count(out, b'"lost"') == 0


def test_slot_that_others_moved_on_stops_the_next_start(start, run, pg, out):
    arguments = followed(start, pg, out)
    slot, = pg.server.slots(pg.name)
    pg.query("INSERT INTO t VALUES (3, 'lost')")
    pg.query(f"SELECT pg_replication_slot_advance('{slot}', pg_current_wal_lsn())")
    result = run(*arguments)
    assert result.code not in (0, 1) and slot in result.err


def test_another_database_with_the_same_state_is_refused(start, run, pg, database_of, out):
    arguments = followed(start, pg, out)
    other = database_of(pg.server)
    other.query("CREATE TABLE t (id int PRIMARY KEY, v text)")
    result = run("copy", other.url(), *arguments[2:])
    assert result.code not in (0, 1)


def manual_sql(section, **names):
    """The indented statements of a paragraph of docs/postgres.md, with other names."""
    text = (ROOT / "docs" / "postgres.md").read_text()
    paragraph = text[text.index(f"**{section}"):]
    block = re.search(r"\n((?:    [^\n]*\n)+)", paragraph).group(1)
    for name, ours in names.items():
        block = re.sub(rf"\b{name}\b", ours, block)
    return block


def test_role_with_the_rights_of_the_manual_is_enough(run, start, any_pg, out):
    pg = any_pg
    names = {"app": f"app_{pg.name}", "tidemark": f"role_{pg.name}", "shop": pg.name}
    pg.query(f"CREATE ROLE {names['app']}; GRANT CREATE ON DATABASE {pg.name} TO {names['app']}")
    pg.query(f"SET ROLE {names['app']}; CREATE SCHEMA s; CREATE TABLE s.t (id int PRIMARY KEY);"
             "INSERT INTO s.t SELECT generate_series(1, 100)")
    pg.query(manual_sql("A role", **names))
    try:
        url = pg.url(user=names["tidemark"])
        run("check", url).check()
        process = start("copy", url, "file:out.ndjson", "--follow", "--chunk-rows", "30")
        process.wait_until(ended(out, 1), what="the end")
        pg.query("INSERT INTO s.t VALUES (0)")
        process.wait_until(lambda: count(out, b'"kind":"change"'), what="the change")
        process.interrupt().check()
        pg_tables.check(pg, out)
        run("detach", url).check()
        leaves_nothing(pg)
    finally:
        for name in (names["tidemark"], names["app"]):
            pg.query(f"DROP OWNED BY {name} CASCADE; DROP ROLE {name}")


def test_standby_is_refused_and_a_promotion_stops_the_next_start(start, run, server, pg, out):
    """The promoted server goes on with another log than the one that was followed."""
    arguments = followed(start, pg, out)
    server.stop()
    (server.data / "standby.signal").touch()
    server.start()
    try:
        checked = run("check", pg.url())
        on_standby = run("copy", pg.url(), "file:other.ndjson")
    finally:
        server.query("SELECT pg_promote()")
    assert checked.code == 1 and "standby" in checked.out
    assert on_standby.code not in (0, 1)
    pg.query("INSERT INTO t VALUES (3, 'promoted')")
    result = run(*arguments)
    assert result.code not in (0, 1) and "timeline" in result.err
    assert count(out, b"promoted") == 0


def test_slot_whose_log_the_server_threw_away_stops_the_next_start(start, run, server, pg, out):
    arguments = followed(start, pg, out)
    slot, = server.slots(pg.name)
    server.setting("max_slot_wal_keep_size", "1MB")
    for i in range(3, 7):
        pg.query(f"INSERT INTO t VALUES ({i}, 'lost'); SELECT pg_switch_wal()")
    pg.query("CHECKPOINT")
    assert pg.query(f"SELECT wal_status FROM pg_replication_slots WHERE slot_name = '{slot}'") \
        == [("lost",)]
    result = run(*arguments)
    assert result.code not in (0, 1) and slot in result.err
    assert count(out, b'"lost"') == 0
    run("detach", pg.url()).check()
    leaves_nothing(pg)


def test_rows_of_many_megabytes_come_whole_or_as_stubs(start, run, pg, out):
    def big(key):
        return f"({key}, repeat(md5('{key}'), 250000))"
    pg.query("CREATE TABLE t (id int PRIMARY KEY, v text);"
             f"INSERT INTO t VALUES (1, 'small'), {big(2)}, {big(3)}, (4, 'small')")
    process = start("copy", pg.url(), "file:out.ndjson", "--follow", "--state", "state",
                    "--max-record-bytes", "20000000")
    process.wait_until(ended(out, 1), what="the end")
    pg.query(f"INSERT INTO t VALUES {big(5)}; UPDATE t SET v = 'smaller' WHERE id = 2;"
             "UPDATE t SET id = 6 WHERE id = 3; INSERT INTO t VALUES (7, 'last')")
    process.wait_until(lambda: count(out, b'"last"'), what="the last change")
    process.interrupt().check()
    pg_tables.check(pg, out)
    result = run("copy", pg.url(), "file:stubs.ndjson").check()
    assert "2 stubs" in result.out
    run("verify", "stubs.ndjson").check()


# -- a table that could not be copied

def test_table_that_changed_before_its_turn_is_copied_by_the_next_run(run, start, pg, out):
    pg.query("CREATE TABLE a (id int PRIMARY KEY, v text); CREATE TABLE b (LIKE a INCLUDING ALL);"
             "INSERT INTO a SELECT g, 'row ' || g FROM generate_series(1, 60000) g;"
             "INSERT INTO b SELECT * FROM a WHERE id <= 500")
    arguments = ["copy", pg.url(), "file:out.ndjson", "--state", "state", "--chunk-rows", "100"]
    process = start(*arguments)
    process.wait_until(lambda: frames_of(out, "begin"), what="the first table's begin")
    pg.query("ALTER TABLE b ADD COLUMN w int DEFAULT 3")
    result = process.wait(60)
    if result.code == 1:
        assert "b was not copied" in result.err
        run(*arguments, timeout=60).check()
    pg_tables.check(pg, out, complete=False)  # what the first run had begun stays open
    assert run("verify", "out.ndjson").check().out.count("complete") == 2
    leaves_nothing(pg)
