"""The whole of it as a service: three sinks, writers at random, kills, sinks taken away and given back.

    make soak AREA=service        hours of it
"""

import contextlib
import re
import shutil
import sqlite3
import subprocess
import time

import pytest
from support import frames, pg_tables, pg_writers, shop
from support.process import soak
from support.trouble import count, ends, execute, make_numbers, mount, wait_for

SINKS = {"x": "file:x/all.ndjson", "y": "file:y/each/", "z": "file:z/all.ndjson"}


class Service:
    """`tidemark run` of a configuration that is started again whatever ends it."""

    def __init__(self, start, run, folder, source, env=None):
        self.start_program, self.run_program, self.folder, self.env = start, run, folder, env
        lines = [f"  {name}: {place}" for name, place in SINKS.items()]
        for name in SINKS:
            (folder / name).mkdir()
        (folder / "a.yaml").write_text(
            f"name: a\nsource: {source}\nsnapshot: {{chunk_rows: 50}}\nsinks:\n" + "\n".join(lines) + "\n")
        self.process = None

    def start(self):
        self.process = self.start_program("run", "--quiet", "a.yaml", env=self.env)

    def paths(self, name):
        path = self.folder / SINKS[name].removeprefix("file:")
        return sorted(path.glob("*.ndjson")) if SINKS[name].endswith("/") else [path]

    def seeded(self, name, tables):
        return sum(ends(path) for path in self.paths(name)) >= tables

    def has(self, name, text):
        return any(count(path, text) for path in self.paths(name))

    def verify(self, name):
        """Of every snapshot that was ever begun."""
        return self.run_program("verify", "--all", *self.paths(name))

    def kill(self):
        self.process.kill()
        self.start()

    def stop(self):
        """In order; with a sink that cannot write it takes a second signal."""
        self.process.signal(15)
        time.sleep(0.3)
        self.process.signal(15)
        self.process.wait(40)
        assert self.process.code == 0, self.process.err()
        self.start()

    def nothing(self):
        pass

    def keep_up(self, disturbed):
        """A start that finds no sink that can be opened ends with 3 and says why; else it stays."""
        if not self.process.running():
            assert disturbed, self.process.err()
            assert self.process.code == 3, self.process.err()
            self.start()

    def try_again(self, name):
        """What `resume` is for; between two runs nobody is there to be told."""
        self.run_program("resume", "a.yaml", "--sink", name)

    def last_run(self, mark, tables, timeout=90):
        """Everything is given back: one more start, until every sink has the mark."""
        self.process.kill()
        self.start()
        for name in SINKS:
            self.process.wait_until(lambda name=name: self.has(name, mark) and self.seeded(name, tables)
                                    and self.verify(name).code == 0, timeout,
                                    f"the mark and every end in {name}")
        self.process.terminate().check()


class Troubles:
    """What happens to a sink's files; each takes them away and gives a function that gives back."""

    def __init__(self, folder, rng):
        self.folder, self.rng = folder, rng

    def one(self, name):
        return self.rng.choice([self.moved_away, self.directory_in_place, self.read_only,
                                self.immutable])(name)

    def moved_away(self, name):
        here, away = self.folder / name, self.folder / f"{name}.away"
        here.rename(away)

        def give_back():
            if here.exists():
                shutil.rmtree(here)  # whatever came meanwhile is not the sink's
            away.rename(here)
        return give_back

    def target(self, name):
        paths = [path for path in sorted((self.folder / name).rglob("*.ndjson")) if path.is_file()]
        return self.rng.choice(paths) if paths else None

    def directory_in_place(self, name):
        path = self.target(name)
        if path is None:
            return lambda: None
        away = path.with_name(path.name + ".away")
        path.rename(away)
        with contextlib.suppress(OSError):
            path.mkdir()

        def give_back():
            if path.is_dir():
                path.rmdir()
            away.rename(path)
        return give_back

    def read_only(self, name):
        here = self.folder / name
        if mount("--bind", here, here) or mount("-o", "remount,ro,bind", here):
            subprocess.run(["umount", here], check=False, capture_output=True)
            return lambda: None
        return lambda: subprocess.run(["umount", "-l", here], check=True)

    def immutable(self, name):
        path = self.target(name)
        if path is None or subprocess.run(["chattr", "+i", path], capture_output=True,
                                          check=False).returncode != 0:
            return lambda: None
        return lambda: subprocess.run(["chattr", "-i", path], check=True)


def trouble_and_kills(service, troubles, rng, rounds):
    """Mostly one sink is disturbed, sometimes two; the third one always has a way."""
    for _ in range(rounds):
        names = rng.sample(list(SINKS), rng.choice([0, 1, 1, 2]))
        give_backs = [troubles.one(name) for name in names]
        try:
            rng.choice([service.kill, service.kill, service.stop, service.nothing])()
            time.sleep(rng.uniform(0.05, 0.6))
            service.keep_up(names)
        finally:
            for give_back in give_backs:
                give_back()
        for name in names:
            service.try_again(name)
        time.sleep(rng.uniform(0, 0.3))
        service.keep_up(names)


def first_copies(service, tables):
    """Errors of a sink's first run are for who has just written its configuration: none here yet."""
    service.start()
    service.process.wait_until(lambda: all(service.seeded(name, tables) for name in SINKS), 60,
                               "the first copies")


def test_service_of_sqlite_with_three_sinks_outlives_everything(start, run, tmp_path, rng):
    database = tmp_path / "shop.db"
    shop.make_shop(database, orders=soak(600, 20000))
    service = Service(start, run, tmp_path, "sqlite:shop.db")
    with shop.Writer(database, seed=rng.randrange(1000), per_second=soak(100, 500)) as writer:
        first_copies(service, 5)
        for n in range(soak(1, 200)):
            trouble_and_kills(service, Troubles(tmp_path, rng), rng, 8)
            if n % 2 == 0:
                service.run_program("backfill", "a.yaml", "--sink", rng.choice(list(SINKS)))
        assert writer.stop() > 0
    execute(database, "INSERT INTO sessions (token, seen) VALUES ('the last one', 0)")
    service.last_run(b"the last one", 5)
    for name in SINKS:
        with contextlib.closing(sqlite3.connect(database)) as db:
            tables = frames.rebuild(service.paths(name), frames.sqlite_keys(db, "shop"))
            assert frames.differences(tables, db, "shop") == [], name
        assert service.verify(name).check().out.count("complete") >= 5


def test_service_of_postgres_with_three_sinks_outlives_everything(start, run, pg, tmp_path, rng):
    pg_writers.make_tables(pg.session())
    pg.query("CREATE TABLE marks (id int PRIMARY KEY, v text)")
    service = Service(start, run, tmp_path, "${URL}", {"URL": pg.url()})
    with pg_writers.Writers(pg.server, pg.name, rng) as writers:
        first_copies(service, 7)
        for _ in range(soak(1, 100)):
            trouble_and_kills(service, Troubles(tmp_path, rng), rng, 8)
        assert writers.stop() > 0
    pg.query("INSERT INTO marks VALUES (1, 'the last one')")
    service.last_run(b"the last one", 7)
    for name in SINKS:
        pg_tables.check(pg, *service.paths(name))
        assert service.verify(name).check().out.count("complete") >= 7


# -- a slow sink and the others

SLOW = ("name: a\nsource: {}\nstream: {{lane_items: 32}}\n"
        "sinks: {{quick: file:quick.ndjson, slow: file:slow/all.ndjson}}\n")


@pytest.fixture
def sinks(tmp_path):
    (tmp_path / "slow").mkdir()
    return tmp_path / "quick.ndjson", tmp_path / "slow/all.ndjson"


def stop_slow(run, process, tmp_path):
    """Takes the slow sink's folder away; returns what gives it back."""
    (tmp_path / "slow").rename(tmp_path / "slow.away")

    def give_back():
        (tmp_path / "slow.away").rename(tmp_path / "slow")
        run("resume", "a.yaml", "--sink", "slow").check()
    return give_back


def write_until_full(process, write, quick):
    """One commit at a time, each waited for in the quick sink, until its change comes no more: then
    the slow sink's lane is full. Returns how many came."""
    for n in range(500):
        write(n)
        deadline = time.monotonic() + 6
        while not count(quick, b'"full %d"' % n):
            if time.monotonic() > deadline:
                return n
            time.sleep(0.005)
        assert process.running(), process.err()
    raise AssertionError("a sink that takes nothing never holds up the other")


def test_service_with_a_slow_sink_keeps_the_log_of_sqlite_for_it(start, run, sinks, tmp_path):
    quick, slow = sinks
    database = tmp_path / "a.db"
    make_numbers(database, rows=100)
    (tmp_path / "a.yaml").write_text(SLOW.format("sqlite:a.db"))
    process = start("run", "--quiet", "a.yaml")
    process.wait_until(lambda: ends(quick) == ends(slow) == 1)

    def logged(what="count(*)"):
        with contextlib.closing(sqlite3.connect(database)) as db:
            return db.execute(f"SELECT {what} FROM _tidemark_changes").fetchone()[0]

    execute(database, "UPDATE t SET v = 'before' WHERE id = 1")
    process.wait_until(lambda: count(slow, b'"before"') and logged() <= 2)
    give_back = stop_slow(run, process, tmp_path)
    execute(database, "UPDATE t SET v = 'first missed' WHERE id = 2")
    first = logged("max(id)")
    came = write_until_full(process, lambda n: execute(
        database, f"UPDATE t SET v = 'full {n}' WHERE id = {3 + n % 90}"), quick)
    assert came >= 4
    time.sleep(2)  # several confirms' time
    assert logged("min(id)") <= first and logged() >= came
    give_back()
    for path in sinks:
        process.wait_until(lambda path=path: count(path, b'"full %d"' % came), 70, f"the rest in {path}")
    process.wait_until(lambda: logged() <= 2, 20, "the log to be pruned")
    process.terminate().check()
    for path in sinks:
        with contextlib.closing(sqlite3.connect(database)) as db:
            assert frames.differences(frames.rebuild([path], {"a.t": ["id"]}), db, "a") == []


def test_service_with_a_slow_sink_keeps_the_log_of_postgres_for_it(start, run, pg, sinks, tmp_path):
    quick, slow = sinks
    pg.query("CREATE TABLE t (id int PRIMARY KEY, v text); INSERT INTO t SELECT generate_series(0, 99)")
    (tmp_path / "a.yaml").write_text(SLOW.format("${URL}"))
    process = start("run", "--quiet", "a.yaml", env={"URL": pg.url()})
    process.wait_until(lambda: ends(quick) == ends(slow) == 1)

    def confirmed(lsn):
        return pg.query(f"SELECT confirmed_flush_lsn >= '{lsn}' FROM pg_replication_slots WHERE"
                        " database = current_database()") == [("t",)]

    pg.query("UPDATE t SET v = 'before' WHERE id = 1")
    process.wait_until(lambda: count(slow, b'"before"'))
    give_back = stop_slow(run, process, tmp_path)
    pg.query("UPDATE t SET v = 'first missed' WHERE id = 2")
    (missed,), = pg.query("SELECT pg_current_wal_lsn()")
    came = write_until_full(process, lambda n: pg.query(
        f"UPDATE t SET v = 'full {n}' WHERE id = {3 + n % 90}"), quick)
    assert came >= 4
    time.sleep(2)
    assert not confirmed(missed)
    give_back()
    for path in sinks:
        process.wait_until(lambda path=path: count(path, b'"full %d"' % came), 70, f"the rest in {path}")
    wait_for(lambda: confirmed(missed), 20, "the slot to move on")
    process.terminate().check()
    for path in sinks:
        pg_tables.check(pg, path)
    assert not re.search("error|assert", process.err()), process.err()
