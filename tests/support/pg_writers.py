"""Six PostgreSQL tables and threads that write to them at random, as applications do and more so.

    make_tables(session, rows=300)
    with Writers(server, "shop", rng, count=3) as writers:
        …
        writers.stop()                 how many transactions were committed

Each table has a key of another type, a counter `n` and a `big` text that is kept out of line, so
that an update of `n` alone, or of the key alone, leaves it unsent. Keys come from small pools:
writers meet each other's rows, chunks and changes. A writer whose connection is lost comes again.
"""

import random
import threading
import time
import uuid

from support.pg_session import Lost, Session, SqlError

POOL = 400
WORDS = ["e", "é", "E", "z", "_", "-", "ß", "ss", "Ä", "a'b", "a\\b", "日本", "%", '"', "co-op", "coop"]

SCHEMA = """
CREATE SCHEMA lib;
CREATE TYPE lib.mood AS ENUM ('sad', 'so so', 'happy');
CREATE TABLE lib.ints (id int PRIMARY KEY, n int NOT NULL, big text);
CREATE TABLE lib.bigs (n int NOT NULL, big text, id bigint PRIMARY KEY, price numeric(12,2));
CREATE TABLE lib.words (id text COLLATE "en-x-icu" PRIMARY KEY, n int NOT NULL, big text);
CREATE TABLE lib."Pairs" (n int NOT NULL, "B" text COLLATE "C", a int, big text, mood lib.mood,
                          PRIMARY KEY (a, "B"));
CREATE TABLE public.ids (id uuid PRIMARY KEY, n int NOT NULL, big text, at timestamptz);
CREATE TABLE public.whole (id int PRIMARY KEY, n int NOT NULL, big text);
ALTER TABLE public.whole REPLICA IDENTITY FULL;
"""


def _word(i):
    return f"{WORDS[i % len(WORDS)]}{i // len(WORDS) or ''}"


def _text(value):
    return "'" + str(value).replace("'", "''") + "'"


# table -> the literals of the i-th key of its pool, by column
KEYS = {
    "lib.ints": lambda i: {"id": str(i - POOL // 2)},
    "lib.bigs": lambda i: {"id": str((i - POOL // 2) * 10**15 or -2**63)},
    "lib.words": lambda i: {"id": _text(_word(i))},
    'lib."Pairs"': lambda i: {"a": str(i % 20), '"B"': _text(_word(i // 20))},
    "public.ids": lambda i: {"id": _text(uuid.uuid5(uuid.NAMESPACE_OID, str(i)))},
    "public.whole": lambda i: {"id": str(i)},
}
TABLES = sorted(KEYS)


def where(key):
    return " AND ".join(f"{column} = {value}" for column, value in key.items())


def assigned(key):
    return ", ".join(f"{column} = {value}" for column, value in key.items())


def insert(table, i, big="repeat(md5('{0}'), 120)", conflict="DO NOTHING"):
    key = KEYS[table](i)
    return (f"INSERT INTO {table} ({', '.join(key)}, n, big) VALUES ({', '.join(key.values())}, {i},"
            f" {big.format(i)}) ON CONFLICT {conflict}")


def make_tables(session, rows=POOL * 3 // 4):
    """`rows` of each table's pool, spread over it."""
    session.query(SCHEMA)
    for table in TABLES:
        session.query(f"ALTER TABLE {table} ALTER big SET STORAGE EXTERNAL")
        session.query(";".join(insert(table, i * POOL // rows) for i in range(rows)))
    session.query("ANALYZE")


class Steps:
    """One writer's statements, chosen at random."""

    def __init__(self, rng, name):
        self.rng = rng
        self.name = name
        self.made = 0

    def transaction(self):
        """(statements, how it ends): one simple query each, so that an error stops it."""
        rng = self.rng
        steps = [self.step() for _ in range(rng.choice((1, 1, 2, 3, 8)))]
        if rng.random() < 0.2:
            at = rng.randrange(len(steps))
            steps[at:at + 1] = ["SAVEPOINT a", steps[at],
                                rng.choice(("ROLLBACK TO a", "RELEASE a"))]
        begin = f"BEGIN; SET LOCAL synchronous_commit = {rng.choice(('on', 'off'))}"
        self.made += 1
        ends = rng.random()
        if ends < 0.1:
            return [begin, *steps, "ROLLBACK"]
        if ends < 0.15:
            gid = f"{self.name}-{self.made}"
            return [begin, *steps, f"PREPARE TRANSACTION '{gid}'",
                    f"{rng.choice(('COMMIT', 'ROLLBACK'))} PREPARED '{gid}'"]
        return [begin, *steps, "COMMIT"]

    def step(self):
        table = self.rng.choice(TABLES)
        make = self.rng.choices((self.add, self.count, self.fill, self.remove, self.move, self.swap),
                                (5, 5, 2, 3, 4, 1))[0]
        return make(table)

    def key(self, table):
        return KEYS[table](self.rng.randrange(POOL))

    def add(self, table):
        return insert(table, self.rng.randrange(POOL),
                      conflict=self.rng.choice(("DO NOTHING", self._update(table))))

    @staticmethod
    def _update(table):
        return f"({', '.join(KEYS[table](0))}) DO UPDATE SET n = EXCLUDED.n + 1"

    def count(self, table):
        return f"UPDATE {table} SET n = n + 1 WHERE {where(self.key(table))}"

    def fill(self, table):
        big = self.rng.choice(("NULL", "'short'", f"repeat(md5('{self.rng.random()}'), 120)"))
        return f"UPDATE {table} SET big = {big} WHERE {where(self.key(table))}"

    def remove(self, table):
        return f"DELETE FROM {table} WHERE {where(self.key(table))}"

    def move(self, table):
        """To any key of the pool, forwards or backwards, whoever is there."""
        old, new = self.key(table), self.key(table)
        if old == new:
            return self.count(table)
        return (f"DELETE FROM {table} WHERE {where(new)};"
                f"UPDATE {table} SET {assigned(new)} WHERE {where(old)}")

    def swap(self, table):
        """Two rows change places, over a key that nobody else has."""
        one, two = self.key(table), self.key(table)
        if one == two:
            return self.count(table)
        spare = KEYS[table](POOL + self.rng.randrange(1000))
        return "; ".join(f"UPDATE {table} SET {assigned(new)} WHERE {where(old)}"
                         for old, new in ((one, spare), (two, one), (spare, two)))


class Writers:
    def __init__(self, server, database, rng, count=3, per_second=60):
        self._server = server
        self._database = database
        self._pause = 1 / per_second
        self._stopping = threading.Event()
        self.committed = 0
        self.refused = {}    # SQLSTATE -> how often
        self.unexpected = [] # what no writer may meet
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._write, daemon=True,
                                          args=(Steps(random.Random(rng.random()), f"w{i}"),))
                         for i in range(count)]

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._stopping.set()
        for thread in self._threads:
            thread.join(30)

    def stop(self):
        """Stops, ends prepared transactions that were left by a lost connection."""
        self.__exit__()
        assert not any(thread.is_alive() for thread in self._threads)
        assert self.unexpected == []
        with self._session() as session:
            for i, (gid,) in enumerate(session.query("SELECT gid FROM pg_prepared_xacts WHERE"
                                                     " database = current_database()")):
                session.query(f"{('COMMIT', 'ROLLBACK')[i % 2]} PREPARED '{gid}'")
        return self.committed

    def _session(self):
        return Session(self._server.port, self._database, timeout=20, lock_timeout="2s")

    def _write(self, steps):
        session = None
        while not self._stopping.is_set():
            try:
                session = session or self._session()
                self._one(session, steps)
                self._stopping.wait(self._pause)
            except (Lost, TimeoutError):
                if session:
                    session.close()
                session = None
                self._end_prepared(steps.name)
                time.sleep(0.05)
        if session:
            session.close()

    def _one(self, session, steps):
        try:
            statements = steps.transaction()
            for statement in statements:
                session.query(statement)
            self._count(statements[-1].startswith("COMMIT"))
        except SqlError as error:
            self._note(error)
            try:
                session.query("ROLLBACK")
            except SqlError as second:
                self._note(second)

    def _count(self, is_commit):
        with self._lock:
            self.committed += is_commit

    def _note(self, error):
        # a key that another has taken, a deadlock, a lock that takes long, a name already used
        expected = ("23505", "40P01", "55P03", "42710", "25P02", "42704", "55000")
        with self._lock:
            self.refused[error.code] = self.refused.get(error.code, 0) + 1
            if error.code not in expected:
                self.unexpected.append(str(error))

    def _end_prepared(self, name):
        """A prepared transaction outlives its session, and holds what would wait for it."""
        try:
            with self._session() as session:
                for gid, in session.query(f"SELECT gid FROM pg_prepared_xacts WHERE gid LIKE '{name}-%'"):
                    session.query(f"COMMIT PREPARED '{gid}'")
        except (Lost, SqlError, TimeoutError):
            pass
