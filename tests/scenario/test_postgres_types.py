"""Every built-in type of PostgreSQL: the same bytes in a snapshot's row and in a change.

What a frame should hold is worked out from the server's text as well (support.pg_tables).
"""

import json
import random

import pytest
from support import pg_tables

# column type -> literals; rows take them in turn. A NULL and the type's own extremes among them.
TYPES = {
    "bool": ["true", "false", None],
    "int2": ["-32768", "0", "32767"],
    "int4": ["-2147483648", "2147483647", None],
    "int8": ["-9223372036854775808", "9223372036854775807", "9007199254740993"],
    "numeric": ["NaN", "Infinity", "-Infinity", "1e-40", "0.00", "-216237.00000035969", "1e30",
                "123456789012345678901234567890.123456789", "-0.0000000000000000000001"],
    "numeric(10,2)": ["19.90", "-0.01", "99999999.99", "NaN", None],
    "numeric(6,-2)": ["123456", "-700"],
    "float4": ["NaN", "Infinity", "-Infinity", "1", "-0", "3.4028235e38", "1.4e-45", "0.1", "16777217"],
    "float8": ["NaN", "-Infinity", "0", "-0", "1.7976931348623157e308", "4.94e-324", "0.1", "1e21",
               "2.5", "123456789012345680", "0.30000000000000004"],
    "money": ["-92233720368547758.08", "92233720368547758.07", "0", "1234.5"],
    "text": ["", "NULL", "null", "a'b\"c\\d", "two\nlines\r\tand \x01", "é日本😀", "\\N", "\\.", "{}",
             "x" * 3000, None],
    "varchar(20)": ["trailing  ", "", "ünï"],
    "char(5)": ["ab", "abcde", ""],
    "bpchar": ["ab ", "", "x"],
    "\"char\"": ["a", "", "\\377"],
    "name": ["pg_class", "", "ÄÖÜ"],
    "bytea": ["", "\\x00ff5c27", "\\x", "\\xdeadbeef" * 1, None],
    "date": ["infinity", "-infinity", "4713-01-01 BC", "0002-11-30 BC", "5874897-12-31", "2024-02-29"],
    "time": ["00:00", "24:00:00", "23:59:59.999999", "12:00:00.1"],
    "timetz": ["00:00+15:59", "24:00:00-15:59", "12:34:56.789+05:30"],
    "timestamp": ["infinity", "-infinity", "4713-01-01 00:00 BC", "294276-12-31 23:59:59.999999",
                  "1969-12-31 23:59:59.5", "2024-02-29 12:00"],
    "timestamptz": ["infinity", "-infinity", "4714-11-24 00:00+00 BC", "294276-12-31 23:59:59.999999+00",
                    "1969-12-31 23:59:59.5+05:30", "0001-01-01 00:00+00", "2024-03-31 02:30 Europe/Berlin"],
    "timestamp(0)": ["2024-01-01 00:00:00.7", None],
    "interval": ["-1 year 2 months -3 days 04:05:06.789", "178000000 years", "-178000000 years", "0",
                 "1 mon -1 day", "00:00:00.000001"],
    "interval day to second": ["1 day 2:03:04.5"],
    "uuid": ["00000000-0000-0000-0000-000000000000", "ffffffff-FFFF-ffff-ffff-ffffffffffff"],
    "json": ['{"b":1, "a" : [1.0,1e5,null], "b":2}', "null", '"x"', "1234567890123456789", '"\\u00e9\\n"',
             "[\n1,\n2]", '"\\ud83d\\ude00"', None],
    "jsonb": ['{"b":1, "a" : [1.0,1e5,null], "b":2}', "null", "true", "1234567890123456789.10", "[]",
              '"a\\"b\\\\c"'],
    "jsonpath": ["$.a[*] ? (@.b > 1)", "strict $"],
    "xml": ["<a b=\"c\">d&amp;é</a>", "text"],
    "inet": ["192.168.0.1/24", "::1", "10.0.0.1"],
    "cidr": ["192.168.0.0/24", "2001:db8::/32"],
    "macaddr": ["08:00:2b:01:02:03"],
    "macaddr8": ["08:00:2b:01:02:03:04:05"],
    "bit(3)": ["101", "000"],
    "varbit": ["", "1", "10101010101"],
    "point": ["(1.5,-2)", "(NaN,Infinity)", "(0.1,1e-300)"],
    "line": ["{1,-1,0}"],
    "lseg": ["[(0,0),(1,1)]"],
    "box": ["(1,1),(0,0)"],
    "path": ["((0,0),(1,1),(2,0))", "[(0,0),(1,1)]"],
    "polygon": ["((0,0),(1,1),(2,0))"],
    "circle": ["<(0,0),1.5>"],
    "tsvector": ["'a':1 'b''c':2A", ""],
    "tsquery": ["'a' & !'b'", "'x' <2> 'y':*A"],
    "int4range": ["empty", "[1,5)", "(,)", "[2147483646,)"],
    "int8range": ["[-9223372036854775808,9223372036854775807)"],
    "numrange": ["[1.10,2.20]", "(NaN,)", "empty"],
    "tsrange": ["[2024-01-01,2024-02-01)", "(-infinity,infinity)"],
    "tstzrange": ["[2024-01-01 00:00+02,)"],
    "daterange": ["[2024-01-01,2024-01-31]"],
    "int4multirange": ["{}", "{[1,3),[5,7)}"],
    "nummultirange": ["{[1.0,2.0],(3,)}"],
    "tstzmultirange": ["{[2024-01-01 00:00+00,2024-01-02 00:00+00)}"],
    "oid": ["0", "4294967295"],
    "regclass": ["pg_catalog.pg_class", "here.\"T x\""],
    "regtype": ["int4", "here.mood"],
    "regproc": ["pg_catalog.now"],
    "regnamespace": ["here"],
    "xid": ["4294967295"],
    "xid8": ["18446744073709551615"],
    "cid": ["1"],
    "tid": ["(0,1)"],
    "pg_lsn": ["16/B374D848", "FFFFFFFF/FFFFFFFF"],
    "pg_snapshot": ["10:20:10,14,15"],
    "txid_snapshot": ["10:20:10"],
    "int2vector": ["1 2 3"],
    "oidvector": ["1 2"],
    "here.mood": ["sad", "so so", "it's \"x\"", None],
    "here.short": ["12", "-3"],
    "here.shorter": ["7"],
    "here.words": ["{a,NULL}"],
    "here.pair": ["(1,\"a \"\"b\"\" c\")", "(,)"],
    "here.span": ["[1.5,2.5)"],
    "bool[]": ["{t,f,NULL}", "{}"],
    "int4[]": ["{1,2,NULL}", "{}", "{{1,2},{3,4}}", "[2:3]={7,8}", "{{{1}}}"],
    "int8[]": ["{9223372036854775807,-1}"],
    "numeric[]": ["{NaN,1.50,Infinity,1e-40}"],
    "float8[]": ["{0.1,NaN,-0,1e300}", "{-Infinity}"],
    "float4[]": ["{0.1,1}"],
    "text[]": ["{\"a,b\",\"c\\\"d\",NULL,\"NULL\",\"\",\"\\\\\",é,\"{x}\",\" s \"}", "{{a,b},{c,d}}",
               "{\"two\nlines\"}"],
    "varchar(9)[]": ["{abc,\"d e\"}"],
    "char(3)[]": ["{a,\"b c\"}"],
    "bytea[]": ["{\"\\\\x00ff\",NULL,\"\\\\x\"}"],
    "date[]": ["{infinity,2024-02-29,\"0002-11-30 BC\"}"],
    "timestamptz[]": ["{\"2024-01-01 00:00+00\",infinity}"],
    "interval[]": ["{\"1 day\",\"-00:00:01\"}"],
    "uuid[]": ["{00000000-0000-0000-0000-000000000000}"],
    "json[]": ["{\"{\\\"a\\\": [1, 2]}\",null,NULL,\"\\\"x\\\"\"}"],
    "jsonb[]": ["{\"{\\\"a\\\":1.0}\",\"[]\"}"],
    "inet[]": ["{192.168.0.1/24,::1}"],
    "point[]": ["{\"(1,2)\",\"(3,4)\"}"],
    "box[]": ["{(1,1),(0,0);(2,2),(1,1)}"],
    "int4range[]": ["{\"[1,3)\",empty}"],
    "tsvector[]": ["{\"'a':1\"}"],
    "here.mood[]": ["{sad,\"so so\",NULL}"],
    "here.short[]": ["{1,2}"],
    "here.pair[]": ["{\"(1,a)\",\"(,)\"}"],
}
SCHEMA = """
CREATE SCHEMA here; CREATE TABLE here."T x" (id int PRIMARY KEY);
CREATE TYPE here.mood AS ENUM ('sad', 'so so', 'it''s "x"');
CREATE DOMAIN here.short AS int CHECK (VALUE < 1000); CREATE DOMAIN here.shorter AS here.short;
CREATE DOMAIN here.words AS text[];
CREATE TYPE here.pair AS (a int, b text); CREATE TYPE here.span AS RANGE (subtype = float8);
"""
# What a database can say for its sessions, and both of ours must not heed.
HEADSTRONG = {"DateStyle": "SQL, DMY", "IntervalStyle": "sql_standard", "TimeZone": "Asia/Kolkata",
              "bytea_output": "escape", "extra_float_digits": "-3", "search_path": "here, public",
              "standard_conforming_strings": "off", "quote_all_identifiers": "on",
              "backslash_quote": "off", "array_nulls": "off", "xmloption": "document",
              "statement_timeout": "60s", "default_transaction_read_only": "off",
              "default_transaction_isolation": "serializable", "row_security": "off",
              "synchronous_commit": "off", "idle_in_transaction_session_timeout": "30s"}
ROWS = max(len(literals) for literals in TYPES.values())


def literal(text):
    return "NULL" if text is None else "E'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def insert(table, i, key):
    values = ", ".join(literal(literals[i % len(literals)]) for literals in TYPES.values())
    return f"INSERT INTO {table} VALUES ({key}, {values})"


def column(i):
    """The column's name: which type it is can be read in a failure."""
    return f"c{i} {list(TYPES)[i]}"


def make_table(session, table):
    columns = ", ".join(f"{pg_tables.quoted(column(i))} {kind}" for i, kind in enumerate(TYPES))
    session.query(f"CREATE TABLE {table} (id int PRIMARY KEY, {columns})")


def record_text(line):
    """The bytes of a frame's record, cut out of its line."""
    start = line.index('"record":') + len('"record":')
    _, end = json.JSONDecoder().raw_decode(line, start)
    return line[start:end]


def columns_text(line):
    """{column: the bytes of its value} of a frame's record, as they stand there."""
    text, found, at = record_text(line), {}, 1
    decoder = json.JSONDecoder()
    while text[at:at + 1] == '"':
        name, at = decoder.raw_decode(text, at)
        _, end = decoder.raw_decode(text, at + 1)
        found[name] = text[at + 1:end]
        at = end + 1
    return found


def lines(path, kind):
    return [line for line in path.read_text().splitlines()
            if line.startswith(f'{{"kind":"{kind}"')] if path.exists() else []


@pytest.mark.parametrize("identity", ["DEFAULT", "FULL"])
def test_trap_a7_every_type_has_the_same_bytes_in_snapshot_and_stream(start, any_pg, tmp_path, identity):
    pg, out = any_pg, tmp_path / "out.ndjson"
    session = pg.session(xmloption="content")
    session.query(SCHEMA)
    make_table(session, "here.t")
    session.query(f"ALTER TABLE here.t REPLICA IDENTITY {identity}")
    for name, value in HEADSTRONG.items():
        session.query(f"ALTER DATABASE {pg.name} SET {name} = '{value}'"
                      if name != "search_path" else
                      f"ALTER DATABASE {pg.name} SET search_path = {value}")
    for i in range(ROWS):
        session.query(insert("here.t", i, i))
    process = start("copy", pg.url(), "file:out.ndjson", "--follow", "--tables", "t", "--chunk-rows", "4")
    process.wait_until(lambda: lines(out, "end"), what="the end of the copy")
    for i in range(ROWS):
        session.query(insert("here.t", i, 1000 + i))
    session.query(f"UPDATE here.t SET id = id + 1000 WHERE id >= 1000")
    process.wait_until(lambda: len(lines(out, "change")) == 2 * ROWS, what="the changes")
    process.interrupt().check()
    rows = {columns.pop("id"): columns for columns in map(columns_text, lines(out, "row"))}
    assert len(rows) == ROWS
    for line in lines(out, "change"):
        change = columns_text(line)
        key = int(change.pop("id")) % 1000
        unsent = json.loads(line).get("unchanged", [])  # out of line, and not changed by a move
        assert not unsent or identity == "DEFAULT" and '"moved_from"' in line
        differing = {name: (text, change.get(name)) for name, text in rows[str(key)].items()
                     if change.get(name) != text and name not in unsent}
        assert differing == {}, f"row {key}"
    pg_tables.check(pg, out, only=[("here", "t")])


KEYS = {
    "bool": ["true", "false"],
    "int2": None, "int4": None, "int8": None, "oid": None,
    "numeric": ["NaN", "Infinity", "-Infinity", "1e-40", "0.00", "-1.50", "1e30", "2", "10"],
    "float4": ["NaN", "Infinity", "1", "0", "3.4028235e38", "1.4e-45", "0.1"],
    "float8": ["NaN", "-Infinity", "0", "4.94e-324", "0.1", "0.30000000000000004", "1e21", "10", "9"],
    "money": ["-1.5", "2", "10", "92233720368547758.07"],
    "text": ["", "e", "é", "E", "z", "_", "-", "a'b", "a\\b", "\\", "it''s", "two\nlines", "10", "9", "NULL",
             "\x01", "😀", "$$", "E'x'"],
    'text COLLATE "C"': ["", "e", "é", "E", "z", "_", "-", "B", "a"],
    'text COLLATE "en-x-icu"': ["", "e", "é", "E", "z", "_", "-", "B", "a", "co-op", "coop", "CO-OP"],
    "text COLLATE here.loose": ["e", "z", "É", "b", "C"],
    "varchar(9)": ["b", "a ", "a"],
    "char(5)": ["b", "a", ""],
    "\"char\"": ["a", "b"],
    "name": ["b", "a"],
    "bytea": ["", "\\x00", "\\x0027", "\\x5c", "\\xff"],
    "date": ["infinity", "-infinity", "0002-11-30 BC", "2024-02-29", "10000-01-01", "9999-12-31"],
    "time": None, "timetz": None, "timestamp": None, "timestamptz": None, "interval": None,
    "uuid": None, "inet": None, "macaddr": None, "bit(3)": None, "varbit": None, "tsvector": None,
    "jsonb": ['{"a":1}', "[]", "null", "2", '"it\'s"', "10"],
    "int4range": None, "numrange": None, "int4multirange": None, "pg_lsn": None, "xid8": None,
    "here.mood": ["sad", "so so", "it's \"x\""],
    "here.short": ["12", "-3", "7"],
    "here.pair": ["(1,\"a \"\"b\"\" c\")", "(2,)"],
    "int4[]": ["{1,2}", "{}", "{10}", "{9}", "{{1},{2}}"],
    "text[]": ["{\"a,b\",\"it's\"}", "{}", "{b}", "{a}"],
}


def key_tables():
    """{table: (columns' types, keys)}: one of each type, and keys of several columns."""
    found = {}
    for i, (kind, keys) in enumerate(KEYS.items()):
        keys = keys or [text for text in TYPES[kind] if text is not None]
        found[f"here.k{i}"] = ([kind], [(key,) for key in keys])
    rng = random.Random(7)
    several = [['text COLLATE "en-x-icu"', "int8", "timestamptz"], ["numeric", "text"],
               ["here.mood", "uuid", "bytea"]]
    for i, kinds in enumerate(several):
        pools = [KEYS[kind] or [text for text in TYPES[kind] if text is not None] for kind in kinds]
        keys = {tuple(rng.choice(pool[:4]) for pool in pools) for _ in range(40)}
        found[f"here.several{i}"] = (kinds, sorted(keys))
    return found


def test_keys_of_every_type_carry_a_copy_through_small_chunks(start, any_pg, tmp_path):
    """Chunks of two rows: every key goes back to the server as a literal, in its collation."""
    pg, out = any_pg, tmp_path / "out.ndjson"
    session = pg.session()
    session.query(SCHEMA + "CREATE COLLATION here.loose (provider = icu, locale = 'und-u-ks-level2',"
                  " deterministic = false)")
    tables = key_tables()
    for table, (kinds, keys) in tables.items():
        names = [f"\"K{i}\"" for i in range(len(kinds))]
        session.query(f"CREATE TABLE {table} (n int, "
                      + ", ".join(f"{name} {kind}" for name, kind in zip(names, kinds))
                      + f", PRIMARY KEY ({', '.join(names)}));"
                      + ";".join(f"INSERT INTO {table} VALUES (0, {', '.join(map(literal, key))})"
                                 for key in keys))
    for name, value in HEADSTRONG.items():
        if name != "search_path":
            session.query(f"ALTER DATABASE {pg.name} SET {name} = '{value}'")
    process = start("copy", pg.url(), "file:out.ndjson", "--follow", "--tables", "k*,several*",
                    "--chunk-rows", "2")
    process.wait_until(lambda: len(lines(out, "end")) == len(tables), 60, what="all ends")
    assert len(lines(out, "row")) == sum(len(keys) for _, keys in tables.values())
    for table in tables:
        session.query(f"UPDATE {table} SET n = n + 1")
    process.wait_until(lambda: len(lines(out, "change")) ==
                       sum(len(keys) for _, keys in tables.values()), what="all updates")
    for table, (kinds, keys) in tables.items():
        condition = " AND ".join(f"\"K{i}\" = {literal(text)}::{kind.split(' COLLATE')[0]}"
                                 for i, (kind, text) in enumerate(zip(kinds, keys[0])))
        session.query(f"DELETE FROM {table} WHERE {condition}")
    process.wait_until(lambda: sum('"op":"delete"' in line for line in lines(out, "change")) ==
                       len(tables), what="all deletions")
    process.interrupt().check()
    only = [tuple(table.split(".")) for table in tables]
    pg_tables.check(pg, out, only=only)


def test_database_of_another_encoding_comes_as_utf_8(start, server, database_of, tmp_path):
    name = "latin"
    server.query("CREATE DATABASE latin TEMPLATE template0 ENCODING LATIN1 LOCALE 'C'")
    try:
        out = tmp_path / "out.ndjson"
        with server.session(name) as session:
            session.query("CREATE TABLE \"tä\" (k text PRIMARY KEY, \"ö\" text);"
                          "INSERT INTO \"tä\" VALUES ('é', 'ü'), ('a', 'ß'), ('ÿ', NULL)")
            process = start("copy", server.url(name), "file:out.ndjson", "--follow", "--chunk-rows",
                            "1")
            process.wait_until(lambda: lines(out, "end"), what="the end")
            session.query("UPDATE \"tä\" SET \"ö\" = 'è' WHERE k = 'é'; DELETE FROM \"tä\" WHERE k = 'a';"
                          "INSERT INTO \"tä\" VALUES ('ñ', '¿')")
            process.wait_until(lambda: len(lines(out, "change")) == 3, what="the changes")
            process.interrupt().check()
            again = pg_tables.rebuild([out], pg_tables.keys(session, name))
            assert pg_tables.differences(again, session, name) == []
    finally:
        server.drop_database(name)
