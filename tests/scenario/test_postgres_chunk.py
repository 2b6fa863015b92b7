"""Chunks of PostgreSQL tables, read by the source's reader alone: which rows, when, and as of what."""

import time

import pytest

from support.pg_chunks import Chunks, Failed


@pytest.fixture
def chunks_of():
    """chunks_of(pg, "t", schema=…, port=…) gives Chunks that have remembered."""
    made = []

    def call(pg, table, schema="public", **options):
        made.append(Chunks(pg.url(**options), schema, table))
        made[-1].remember()
        return made[-1]
    yield call
    for one in made:
        one.close()


HOSTILE = ["", " ", "'", "''", "\\", "\\'", "\\\\", "a'b", "E'x'", "'; DROP TABLE t; --", "$1", "$$",
           "\t", "\n", "\r", "\\N", "\\.", "\b\f\v", "\x01", "\x7f", "a\tb", "é", "e\u0301", "Ж",
           "\U0001f600", "\u2028", "NULL", "null", "%s", "\"", "x" * 3000 + "'", "{}", "(1,2)", "::text"]
WORDS = ["e", "é", "E", "É", "z", "Z", "_", "-", "a b", "ab", "a-b", "aB", "Ab", "ss", "ß", "10", "9"]

SETUP = """
CREATE EXTENSION citext;
CREATE SCHEMA "we ird";
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy', 'an''gry', 'zz"');
ALTER TYPE mood ADD VALUE 'better' AFTER 'ok';
CREATE TYPE "we ird"."pa'ir" AS (a int, b text);
CREATE DOMAIN "we ird".short AS varchar(12) CHECK (value <> 'never');
CREATE COLLATION blind (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE COLLATION german (provider = icu, locale = 'de');
"""

# name, key columns, keys as SQL rows without parentheses
KEYS = [
    ("int", "k int", ["-2147483648", "-1", "0", "1", "2147483647"]),
    ("bigint", "k bigint", ["-9223372036854775808", "-9223372036854775807", "0",
                            "9007199254740993", "9223372036854775806", "9223372036854775807"]),
    ("smallint", "k smallint", ["-32768", "2", "10", "9", "32767"]),
    ("oid", "k oid", ["0", "1", "4294967295"]),
    ("numeric", "k numeric", ["'NaN'", "'Infinity'", "'-Infinity'", "0", "1.0", "1.5", "-1e-40",
                              "1e-40", "1e130", "123456789012345678901234567890.123"]),
    ("numeric scaled", "k numeric(10,2)", ["-1.10", "0", "1.01", "99999999.99"]),
    ("float8", "k float8", ["'NaN'", "'Infinity'", "'-Infinity'", "0", "1e-300", "5e-324", "0.1",
                            "0.30000000000000004", "-216237.00000035969", "1e300"]),
    ("float4", "k float4", ["'NaN'", "0.1", "1e-45", "3.4028235e38", "-2.12902e+06"]),
    ("boolean", "k boolean", ["false", "true"]),
    ("uuid", "k uuid", [f"'{n:032x}'" for n in (0, 1, 2**64, 2**127, 2**128 - 1)]),
    ("bytea", "k bytea", [r"'\x'", r"'\x00'", r"'\x0027'", r"'\x5c'", r"'\xff'", r"'\xff00'"]),
    ("date", "k date", ["'infinity'", "'-infinity'", "'0044-03-15 BC'", "'2000-02-29'",
                        "'9999-12-31'", "'20000-01-01'"]),
    ("time", "k time", ["'00:00'", "'23:59:59.999999'", "'24:00'"]),
    ("timetz", "k timetz", ["'12:00+00'", "'12:00+01'", "'11:00+00'"]),
    ("timestamp", "k timestamp", ["'infinity'", "'-infinity'", "'4713-01-02 BC'",
                                  "'2026-11-29 13:40:55.000001'", "'2026-11-29 13:40:55'",
                                  "'294276-12-31 23:59:59.999999'"]),
    ("timestamp cut", "k timestamp(2)", ["'2026-11-29 13:40:55.12'", "'2026-11-29 13:40:55.1'"]),
    ("timestamptz", "k timestamptz", ["'2026-10-25 02:30+02'", "'2026-10-25 02:30+01'",
                                      "'0002-11-30 BC'"]),
    ("interval", "k interval", ["'1 mon'", "'29 days'", "'-1 year 2 mons'", "'0.000001 s'",
                                "'178000000 years'"]),
    ("enum", "k mood", ["'happy'", "'sad'", "'better'", "'ok'", "'an''gry'", "'zz\"'"]),
    ("text C", 'k text COLLATE "C"', list(dict.fromkeys(WORDS + HOSTILE))),
    ("text default", "k text", list(dict.fromkeys(WORDS + HOSTILE))),
    ("text icu", "k text COLLATE german", list(dict.fromkeys(WORDS + HOSTILE))),
    ("text blind", "k text COLLATE blind", ["a", "B", "c", "É", "z", "Zz", "'", "\\"]),
    ("varchar", "k varchar(5)", ["a", "B", "a'b", "\\", "     ", ""]),
    ("char", "k char(5)", ["a", "B", "a'b", "\\", "ab   "]),
    ("bpchar", "k bpchar", ["a", "B", "a'b"]),
    ("internal char", 'k "char"', ["a", "\\", "'"]),
    ("name", "k name", ["a", "B", "a'b", "x" * 63]),
    ("citext", "k citext", ["b", "A", "C", "_", "z", "É", "ab"]),
    ("domain", 'k "we ird".short', ["a", "B", "it's", "\\"]),
    ("int array", "k int[]", ["'{}'", "'{1}'", "'{1,NULL}'", "'{1,2}'", "'{{1,2},{3,4}}'",
                              "'[0:1]={1,2}'"]),
    ("text array", "k text[]", ["'{}'", "'{\"\"}'", r"""'{"a,b","c\\d\"e''"}'""", "'{NULL,\"NULL\"}'"]),
    ("jsonb", "k jsonb", ["'null'", "'1'", "'1.0000000000000000001'", "'\"a''b\\\\\"'", "'[]'",
                          "'{\"a\":1}'", "'true'"]),
    ("composite type", """k "we ird"."pa'ir\"""", ["'(1,a)'", "'(1,\"b c\")'", "'(,)'", "'(-1,\"\"\"\")'"]),
    ("range", "k int4range", ["'empty'", "'[1,2)'", "'[1,)'", "'(,)'"]),
    ("inet", "k inet", ["'10.0.0.1'", "'10.0.0.0/8'", "'::1'"]),
    ("bit", "k bit varying(9)", ["''", "'0'", "'1'", "'10'", "'01'"]),
    ("money", "k money", ["'-$1.00'", "'0'", "'92233720368547758.07'"]),
    ("pg_lsn", "k pg_lsn", ["'0/0'", "'16/B374D848'", "'FFFFFFFF/FFFFFFFF'"]),
    ("three", "k int, l text COLLATE \"C\", m timestamp(3)",
     [f"{k}, '{el}', '2026-01-0{m}'" for k in (-1, 1) for el in ("", "a", "a''b") for m in (1, 2, 3)]),
    ("three of extension", "k citext, l mood, m bigint",
     [f"'{k}', '{el}', {m}" for k in "aB" for el in ("sad", "ok") for m in (-1, 5)]),
]


def literal(value):
    return "E'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def as_row(name, value):
    is_text = name in ("text C", "text default", "text icu", "text blind", "varchar", "char",
                       "bpchar", "internal char", "name", "citext", "domain")
    return literal(value) if is_text else value


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_a_key_of_each_type_brings_every_row_once_in_its_order(any_pg, chunks_of, rows):
    session = any_pg.session()
    session.query(SETUP)
    for name, columns, values in KEYS:
        names = ", ".join(column.split()[0] for column in columns.split(", "))
        session.query(f"DROP TABLE IF EXISTS t; CREATE TABLE t (label int, {columns},"
                      f" PRIMARY KEY ({names}))")
        for number, value in enumerate(values):
            session.query(f"INSERT INTO t VALUES ({number}, {as_row(name, value)})")
        order = ", ".join("t." + one for one in names.split(", "))
        want = [label for label, in session.query(f"SELECT label FROM t ORDER BY {order}")]
        assert len(want) == len(values)
        chunks = chunks_of(any_pg, "t")
        got = list(chunks.chunks(rows=rows))
        assert [row[0] for chunk in got for row in chunk.rows] == want, name
        assert all(len(chunk.rows) == rows for chunk in got[:-1]), name
        # each key finds its row again
        keys = [tuple(row[1:]) for chunk in got for row in chunk.rows]
        if name not in ("boolean", "bytea"):  # what is printed is not the server's text
            again = chunks.read(again=keys, only_again=True)
            assert sorted(row[0] for row in again.rows) == sorted(want), name


def test_names_of_every_kind_are_quoted(pg, chunks_of):
    session = pg.session()
    session.query("""
        CREATE SCHEMA "S ""x""'";
        CREATE TABLE "S ""x""'"."t.Ж'" ("select" int, "A" text, a text, "a""b'\\" text,
            PRIMARY KEY ("a""b'\\", "select"));
        INSERT INTO "S ""x""'"."t.Ж'" SELECT g, 'A', 'a', 'k' FROM generate_series(1, 5) g""")
    got = chunks_of(pg, "t.Ж'", schema='S "x"\'').read_all(rows=2)
    assert got == [[str(n), "A", "a", "k"] for n in range(1, 6)]


def test_an_output_column_does_not_order_the_rows(pg, chunks_of):
    pg.query("CREATE TABLE t (id int PRIMARY KEY, x text); "
             "INSERT INTO t SELECT g, 'x' FROM generate_series(1, 30) g")
    got = chunks_of(pg, "t").read_all(rows=7)
    assert [int(row[0]) for row in got] == list(range(1, 31))


def test_an_empty_table_ends_at_once(pg, chunks_of):
    pg.query("CREATE TABLE t (id int PRIMARY KEY)")
    chunk = chunks_of(pg, "t").read(rows=1)
    assert chunk.trusted and chunk.last and chunk.rows == [] and chunk.last_key is None


@pytest.mark.parametrize("count, rows, sizes", [
    (1, 1, [1, 0]), (2, 1, [1, 1, 0]), (2, 2, [2, 0]), (3, 2, [2, 1]), (1, 2, [1])])
def test_a_range_ends_with_the_chunk_that_is_not_full(pg, chunks_of, count, rows, sizes):
    pg.query("CREATE TABLE t (id int PRIMARY KEY); "
             f"INSERT INTO t SELECT generate_series(1, {count})")
    got = list(chunks_of(pg, "t").chunks(rows=rows))
    assert [len(chunk.rows) for chunk in got] == sizes
    assert [chunk.last for chunk in got] == [False] * (len(got) - 1) + [True]


def test_values_are_the_server_s_own_text(any_pg, chunks_of):
    any_pg.query("""CREATE TABLE t (id int PRIMARY KEY, b boolean, n numeric, f float8, y bytea,
                                    t timestamptz, i interval, m money, a int[], x text, z text);
        INSERT INTO t VALUES (1, true, 'NaN', 0.1, '\\x00ff', '2026-11-29 13:40:55.5+02',
            '1 mon -3 days 04:05:06.7', 12.3, '{1,NULL}', E'a\\tb\\nc\\\\d', NULL)""")
    row = chunks_of(any_pg, "t").read().rows[0]
    assert row == ["1", "true", "NaN", "0.1", "00ff", "2026-11-29T11:40:55.5+00",
                   "1 mon -3 days +04:05:06.7", "$12.30", "[1,null]", "a\tb\nc\\d", None]


# -- big rows

def test_a_chunk_ends_early_when_its_bytes_are_passed(pg, chunks_of):
    pg.query("CREATE TABLE t (id int PRIMARY KEY, v text); ALTER TABLE t ALTER v SET STORAGE EXTERNAL;"
             "INSERT INTO t SELECT g, repeat('x', 20000) FROM generate_series(1, 400) g;"
             "INSERT INTO t SELECT g, 'small' FROM generate_series(401, 3000) g")
    chunks = chunks_of(pg, "t")
    got = list(chunks.chunks(size=100000))
    assert [int(row[0]) for chunk in got for row in chunk.rows] == list(range(1, 3001))
    assert len(got[0].rows) == 5 and not got[0].last
    assert max(sum(len(row[1]) for row in chunk.rows) for chunk in got) < 130000
    # what is left was cancelled, on the connection that goes on being used
    assert pg.query("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'tidemark'"
                    " AND datname = current_database()") == [("1",)]


def test_rows_larger_than_the_bound_come_one_by_one(pg, chunks_of):
    pg.query("CREATE TABLE t (id int PRIMARY KEY, v text); ALTER TABLE t ALTER v SET STORAGE EXTERNAL;"
             "INSERT INTO t SELECT g, repeat(chr(96 + g), 9000000) FROM generate_series(1, 4) g")
    got = list(chunks_of(pg, "t").chunks(size=1000))
    assert [(row[0], len(row[1]), row[1][0]) for chunk in got for row in chunk.rows] == \
        [("1", 9000000, "a"), ("2", 9000000, "b"), ("3", 9000000, "c"), ("4", 9000000, "d")]


# -- again

def test_keys_are_read_again_beside_the_range(pg, chunks_of):
    pg.query("CREATE TABLE t (a int, b text, v text, PRIMARY KEY (a, b));"
             "INSERT INTO t SELECT g / 3, 'k''' || g, 'v' || g FROM generate_series(1, 20) g")
    chunks = chunks_of(pg, "t")
    chunk = chunks.read(rows=4, again=[("6", "k'20"), ("5", "k'16"), ("5", "not there"), ("0", "k'1")])
    assert [row[2] for row in chunk.rows[:4]] == ["v1", "v2", "v3", "v4"]
    assert chunk.last_key == ["1", "k'4"] and not chunk.last
    assert sorted(row[2] for row in chunk.rows[4:]) == ["v1", "v16", "v20"]


def test_many_keys_are_read_again(pg, chunks_of):
    pg.query("CREATE TABLE t (a int PRIMARY KEY, v text); "
             "INSERT INTO t SELECT g, g FROM generate_series(1, 3000) g")
    chunk = chunks_of(pg, "t").read(rows=1, again=[(str(n),) for n in range(3000, 1000, -1)])
    assert sorted(int(row[0]) for row in chunk.rows[1:]) == list(range(1001, 3001))
    assert chunk.rows[0][0] == "1"


def test_a_key_read_again_is_matched_byte_by_byte(pg, chunks_of):
    """The collation holds them equal; to whoever follows the changes they are two keys."""
    pg.query("CREATE COLLATION blind (provider = icu, locale = 'und-u-ks-level2', deterministic = false);"
             "CREATE TABLE t (k text COLLATE blind PRIMARY KEY); INSERT INTO t VALUES ('Abc'), ('x')")
    chunks = chunks_of(pg, "t")
    assert chunks.read(again=[("abc",), ("x",)], only_again=True).rows == [["x"]]
    assert chunks.read(again=[("Abc",)], only_again=True).rows == [["Abc"]]


def test_keys_are_read_again_when_the_range_was_cut(pg, chunks_of):
    pg.query("CREATE TABLE t (id int PRIMARY KEY, v text); ALTER TABLE t ALTER v SET STORAGE EXTERNAL;"
             "INSERT INTO t SELECT g, repeat('x', 20000) FROM generate_series(1, 400) g")
    chunk = chunks_of(pg, "t").read(size=50000, again=[("399",), ("400",)])
    assert [row[0] for row in chunk.rows] == ["1", "2", "3", "399", "400"]
    assert chunk.last_key == ["3"] and not chunk.last


# -- as of what

def test_a_chunk_waits_for_transactions_of_before(pg, chunks_of):
    pg.query("CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1)")
    writer = pg.session()
    writer.query("BEGIN; INSERT INTO t VALUES (2)")
    xid = int(writer.value("SELECT pg_current_xact_id()"))
    chunks = chunks_of(pg, "t")
    probe = chunks.read()
    assert not probe.trusted and probe.rows == [] and probe.xmin == xid
    writer.query("COMMIT")
    chunk = chunks.read()
    assert chunk.trusted and chunk.xmin > xid and [row[0] for row in chunk.rows] == ["1", "2"]


def test_a_chunk_says_which_transactions_it_sees(pg, chunks_of):
    pg.query("CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1)")
    chunks = chunks_of(pg, "t")
    writer, other = pg.session(), pg.session()
    writer.query("BEGIN; INSERT INTO t VALUES (2)")
    xid = int(writer.value("SELECT pg_current_xact_id()"))
    other.query("INSERT INTO t VALUES (3)")
    chunk = chunks.read()
    assert chunk.in_progress == [xid] and chunk.xmin == xid and chunk.xmax > xid + 1
    assert [row[0] for row in chunk.rows] == ["1", "3"]


def test_a_position_that_is_not_flushed_soon_is(pg, chunks_of):
    pg.query("CREATE TABLE t (id int PRIMARY KEY)")
    chunks = chunks_of(pg, "t")
    writer = pg.session(synchronous_commit="off")
    for number in range(20):
        writer.query(f"INSERT INTO t VALUES ({number})")
        chunk = chunks.read(rows=1)
        flushed = writer.value("SELECT pg_current_wal_flush_lsn() - '0/0'::pg_lsn")
        assert int(flushed) > chunk.position
    start = writer.value("SELECT (extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint")
    assert chunk.epoch == int(start)


# -- what happens meanwhile

REWRITES = [
    "ALTER TABLE t ALTER v TYPE varchar(9)",
    "ALTER TABLE t ALTER v SET DEFAULT 'a', ALTER w TYPE bigint USING w::bigint",
    "TRUNCATE t; INSERT INTO t SELECT g, 'w', '2' FROM generate_series(1, 5) g",
    "DELETE FROM t; INSERT INTO t SELECT g, 'w', '2' FROM generate_series(1, 5) g",
]
TABLE = ("CREATE TABLE t (id int PRIMARY KEY, v text, w text);"
         "INSERT INTO t SELECT g, 'w', '2' FROM generate_series(1, 5) g")


@pytest.mark.parametrize("rewrite", REWRITES)
def test_a_chunk_that_met_a_rewrite_has_all_rows(pg, chunks_of, rewrite):
    """The lock is taken before the snapshot: with the snapshot first the rows would be gone."""
    pg.query(TABLE)
    writer = pg.session()
    chunks = chunks_of(pg, "t")
    writer.query("BEGIN; LOCK TABLE t; " + rewrite)
    chunks.ask()
    wait_until(pg, "wait_event_type = 'Lock'")
    writer.query("COMMIT")
    assert chunks.answer().rows == [[str(n), "w", "2"] for n in range(1, 6)]


def test_a_rewrite_between_chunks_goes_on_with_the_next_row(pg, chunks_of):
    pg.query(TABLE)
    chunks = chunks_of(pg, "t")
    assert [row[0] for row in chunks.read(rows=2).rows] == ["1", "2"]
    pg.query("ALTER TABLE t ALTER v TYPE varchar(9), ALTER w TYPE bigint USING w::bigint")
    assert chunks.read().rows == [[str(n), "w", "2"] for n in (3, 4, 5)]


def test_a_table_that_is_emptied_between_chunks_ends(pg, chunks_of):
    pg.query(TABLE)
    chunks = chunks_of(pg, "t")
    chunks.read(rows=2)
    pg.query("TRUNCATE t")
    chunk = chunks.read()
    assert chunk.last and chunk.rows == []


def test_a_table_that_stays_locked_is_tried_again(pg, chunks_of):
    pg.query(TABLE)
    writer = pg.session()
    chunks = chunks_of(pg, "t")
    writer.query("BEGIN; LOCK TABLE t")
    began = time.monotonic()
    with pytest.raises(Failed) as failed:
        chunks.read()
    assert failed.value.retriable and 0.8 < time.monotonic() - began < 5
    writer.query("ROLLBACK")
    assert len(chunks.read().rows) == 5


def big_table(pg, rows=3000):
    pg.query("CREATE TABLE t (id int PRIMARY KEY, v text); INSERT INTO t"
             f" SELECT g, repeat('x', 1000) FROM generate_series(1, {rows}) g")


def ask_slowly(pg, chunks, proxy):
    """A chunk of 30 MB is on its way when this returns: more than the kernel's buffers take."""
    chunks.read(rows=1)
    proxy.slow(10000000)
    chunks.ask(rows=30000, size=1 << 30)
    wait_until(pg, "query LIKE '%COPY%' AND wait_event = 'ClientWrite'")


def wait_until(pg, condition, timeout=40):
    """Until a session of the program's fulfils the condition."""
    deadline = time.monotonic() + timeout
    with pg.server.session(pg.name) as session:
        while not session.query("SELECT 1 FROM pg_stat_activity WHERE application_name = 'tidemark'"
                                f" AND datname = current_database() AND {condition}"):
            assert time.monotonic() < deadline, f"never: {condition}"
            time.sleep(0.005)


@pytest.mark.parametrize("meanwhile", [
    "ALTER TABLE t ALTER v TYPE varchar(2000) USING v || 'y'", "TRUNCATE t", "DROP TABLE t"])
def test_a_rewrite_during_a_chunk_waits_for_it(pg, chunks_of, proxy_to, meanwhile):
    big_table(pg, 30000)
    proxy = proxy_to(pg.server)
    chunks = chunks_of(pg, "t", port=proxy.port)
    ask_slowly(pg, chunks, proxy)
    writer = pg.session()
    writer.send(meanwhile)
    assert not writer.answered(0.1)
    proxy.slow(None)
    chunk = chunks.answer()
    writer.receive()
    assert [(row[0], row[1]) for row in chunk.rows] == \
        [(str(n), "x" * 1000) for n in range(2, 30001)]


@pytest.mark.parametrize("cut_after", [1, 3000, 20000, 300000, 1000000])
def test_a_connection_that_is_cut_brings_nothing(pg, chunks_of, proxy_to, cut_after):
    big_table(pg)
    proxy = proxy_to(pg.server)
    chunks = chunks_of(pg, "t", port=proxy.port)
    proxy.cut_after(cut_after)
    with pytest.raises(Failed) as failed:
        chunks.read(rows=2000)
    assert failed.value.retriable and proxy.cuts == 1
    chunk = chunks.read(rows=2000)
    assert [int(row[0]) for row in chunk.rows] == list(range(1, 2001)) and not chunk.last


def test_rows_come_once_whatever_is_cut(pg, chunks_of, proxy_to, rng):
    pg.query("CREATE TABLE t (id int PRIMARY KEY, v text); ALTER TABLE t ALTER v SET STORAGE EXTERNAL;"
             "SELECT setseed(0.5); INSERT INTO t SELECT g, repeat(chr(97 + g % 26),"
             " (1 / (random() + 0.0005))::int * 20) FROM generate_series(1, 20000) g")
    proxy = proxy_to(pg.server)
    chunks = chunks_of(pg, "t", port=proxy.port)
    got, last, failures = [], False, 0
    while not last:
        if rng.random() < 0.5:
            proxy.cut_after(rng.randrange(1, 300000))
        try:
            chunk = chunks.read(rows=rng.randrange(1, 3000), size=rng.randrange(1, 400000))
        except Failed as failed:
            assert failed.retriable, failed
            failures += 1
            continue
        got += chunk.rows
        last = chunk.last
    assert [int(row[0]) for row in got] == list(range(1, 20001))
    assert failures > 5
    lengths = [int(size) for size, in pg.query("SELECT length(v) FROM t ORDER BY id")]
    assert [len(row[1]) for row in got] == lengths


@pytest.mark.parametrize("how", ["pg_terminate_backend", "pg_cancel_backend"])
def test_a_statement_that_is_ended_brings_nothing(pg, chunks_of, proxy_to, how):
    big_table(pg, 30000)
    proxy = proxy_to(pg.server)
    chunks = chunks_of(pg, "t", port=proxy.port)
    ask_slowly(pg, chunks, proxy)
    pg.query(f"SELECT {how}(pid) FROM pg_stat_activity WHERE application_name = 'tidemark'"
             " AND datname = current_database()")
    proxy.slow(None)
    with pytest.raises(Failed) as failed:
        chunks.answer()
    assert failed.value.retriable, failed.value
    assert [int(row[0]) for row in chunks.read_all(rows=30000, size=1 << 30)] == list(range(2, 30001))


def test_a_server_that_restarts_is_reached_again(pg, chunks_of):
    big_table(pg)
    chunks = chunks_of(pg, "t")
    first = chunks.read(rows=100)
    pg.server.restart("immediate")
    with pytest.raises(Failed) as failed:
        chunks.read(rows=100)
    assert failed.value.retriable
    second = chunks.read(rows=100)
    assert second.epoch != first.epoch
    assert [int(row[0]) for row in second.rows] == list(range(101, 201))


def test_a_chunk_is_cancelled_from_another_thread(pg, chunks_of):
    pg.query(TABLE)
    writer = pg.session()
    chunks = chunks_of(pg, "t")
    writer.query("BEGIN; LOCK TABLE t")
    chunks.cancel_in(100)
    began = time.monotonic()
    with pytest.raises(Failed) as failed:
        chunks.read()
    assert failed.value.status == "cancelled" and time.monotonic() - began < 0.8
    writer.query("ROLLBACK")
    assert len(chunks.read().rows) == 5


def test_a_stalled_chunk_is_cancelled(pg, chunks_of, proxy_to):
    big_table(pg)
    proxy = proxy_to(pg.server)
    chunks = chunks_of(pg, "t", port=proxy.port)
    chunks.read(rows=1)
    proxy.slow(1000000)
    chunks.cancel_in(100)
    began = time.monotonic()
    with pytest.raises(Failed) as failed:
        chunks.read(rows=3000)
    assert failed.value.status == "cancelled" and time.monotonic() - began < 4
    proxy.slow(None)
    assert [row[0] for row in chunks.read(rows=3).rows] == ["2", "3", "4"]


# -- another shape

GONE = [
    ("DROP TABLE t", "gone"),
    ("ALTER TABLE t RENAME TO u", "gone"),
    ("ALTER TABLE t SET SCHEMA elsewhere", "gone"),
    ("DROP TABLE t; " + TABLE, "another"),
    ("ALTER TABLE t RENAME TO u; " + TABLE.replace("PRIMARY KEY", "CONSTRAINT x PRIMARY KEY"), "another"),
    ("ALTER TABLE t ADD c int", "columns"),
    ("ALTER TABLE t DROP w", "columns"),
    ("ALTER TABLE t RENAME v TO u", "columns"),
    ("ALTER TABLE t DROP CONSTRAINT t_pkey, ADD PRIMARY KEY (id, v)", "key"),
    ("ALTER TABLE t DROP CONSTRAINT t_pkey", "copied"),
    ("ALTER TABLE t ALTER id TYPE text", "order"),
    ("ALTER TABLE t ALTER id TYPE numeric", "order"),
]


@pytest.mark.parametrize("change, word", GONE)
def test_a_table_of_another_shape_ends_its_copy(pg, chunks_of, change, word):
    pg.query("CREATE SCHEMA elsewhere; " + TABLE)
    chunks = chunks_of(pg, "t")
    chunks.read(rows=2)
    pg.query(change)
    with pytest.raises(Failed) as failed:
        chunks.read(rows=2)
    assert failed.value.status == "unsupported" and not failed.value.retriable
    assert word in failed.value.message, failed.value.message
    assert "t" in failed.value.message


def test_a_key_that_is_ordered_otherwise_ends_the_copy(pg, chunks_of):
    pg.query('CREATE TABLE t (k text COLLATE "C" PRIMARY KEY);'
             "INSERT INTO t VALUES ('a'), ('B'), ('c'), ('D')")
    chunks = chunks_of(pg, "t")
    chunks.read(rows=2)
    pg.query('ALTER TABLE t ALTER k TYPE text COLLATE "und-x-icu"')
    with pytest.raises(Failed) as failed:
        chunks.read(rows=2)
    assert failed.value.status == "unsupported" and "collation" in failed.value.message


@pytest.mark.parametrize("change", [
    "ALTER TABLE t ALTER id TYPE bigint", "ALTER TABLE t ALTER v TYPE varchar(100)",
    "ALTER TABLE t ALTER w TYPE int USING w::int", "ALTER TABLE t ALTER v SET STATISTICS 10",
    "CREATE INDEX ON t (v)", "ALTER TABLE t ALTER v SET NOT NULL", "ANALYZE t",
    "ALTER TABLE t ADD g int GENERATED ALWAYS AS (id * 2) STORED", "CLUSTER t USING t_pkey"])
def test_a_table_with_the_same_names_goes_on(pg, chunks_of, change):
    pg.query(TABLE)
    chunks = chunks_of(pg, "t")
    chunks.read(rows=2)
    pg.query(change)
    assert chunks.read().rows == [[str(n), "w", "2"] for n in (3, 4, 5)]


def test_rows_of_tables_that_inherit_are_not_its_own(pg, chunks_of):
    pg.query(TABLE + "; CREATE TABLE child (PRIMARY KEY (id)) INHERITS (t);"
             "INSERT INTO child VALUES (6, 'w', '2')")
    assert [row[0] for row in chunks_of(pg, "t").read_all(rows=2)] == ["1", "2", "3", "4", "5"]


@pytest.mark.parametrize("change", [
    "ALTER TABLE t ENABLE ROW LEVEL SECURITY; ALTER TABLE t FORCE ROW LEVEL SECURITY;"
    "CREATE POLICY p ON t USING (id < 3)",
    "REVOKE SELECT ON t FROM {role}"])
def test_rows_that_may_not_be_read_are_an_error(pg, chunks_of, change):
    """A policy would otherwise leave them out without a word."""
    role = f"reader_of_{pg.name}"
    pg.query(TABLE + f"; CREATE ROLE {role} LOGIN; ALTER TABLE t OWNER TO {role}")
    try:
        chunks = chunks_of(pg, "t", user=role)
        chunks.read(rows=1)
        pg.query(change.format(role=role))
        with pytest.raises(Failed) as failed:
            chunks.read()
        assert failed.value.status == "unsupported" and "cannot be read" in failed.value.message
    finally:
        pg.query(f"DROP OWNED BY {role}; DROP ROLE {role}")
