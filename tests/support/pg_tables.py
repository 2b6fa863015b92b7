"""Compares tables rebuilt from frames with the PostgreSQL tables that they were copied from.

    differences(rebuilt, session, "shop")       sentences on what differs; [] when nothing does
    keys(session, "shop")                       {store: key columns}, for frames.rebuild
    check(pg, "out.ndjson")                     both, for a database of the fixtures

What a frame should hold is worked out here from the server's text and the column's type alone
(docs/formats.md), independently of the program.
"""

import base64
import collections
import itertools
import json
import math
import re

from support.frames import Number, key_text, rebuild

Column = collections.namedtuple("Column", "name kind element in_key")

_decode = json.JSONDecoder(parse_float=Number, parse_constant=Number).decode

TABLES = """
SELECT n.nspname, c.relname, c.oid FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE c.relkind = 'r' AND c.relpersistence = 'p' AND NOT c.relispartition
   AND n.nspname NOT IN ('pg_catalog', 'information_schema') ORDER BY 1, 2"""
# The type of a column is that of its domain's base; arrays of arrays there are none.
COLUMNS = """
WITH RECURSIVE base (num, name, oid, kind) AS (
  SELECT a.attnum, a.attname, t.oid, t.typtype FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
   WHERE a.attrelid = {0} AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
  UNION ALL
  SELECT num, name, b.oid, b.typtype FROM base JOIN pg_type d ON d.oid = base.oid AND d.typtype = 'd'
    JOIN pg_type b ON b.oid = d.typbasetype)
SELECT base.name, t.typname, e.typname,
       (SELECT array_position(i.indkey::int2[], base.num::int2) FROM pg_index i
         WHERE i.indrelid = {0} AND i.indisprimary)
  FROM base JOIN pg_type t ON t.oid = base.oid
  LEFT JOIN pg_type e ON e.typarray = t.oid AND e.oid < 10000
 WHERE t.typtype <> 'd' ORDER BY num"""


def check(database, *paths, only=None, complete=True):
    """Rebuilds the frames and fails the test unless they give what a conftest.Database holds."""
    with database.server.session(database.name) as session:
        known = keys(session, database.name)
        if only is not None:
            known = {f"{database.name}.{schema}.{table}":
                     known[f"{database.name}.{schema}.{table}"] for schema, table in only}
        tables_again = rebuild(paths, known)
        found = differences(tables_again, session, database.name, only)
        assert not found, "\n".join(found)
    if complete:
        for store in known:
            statuses = [snapshot.status for snapshot in tables_again.snapshots_of(store)]
            assert statuses == ["complete"], f"{store}: {statuses}"
    return tables_again


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


def tables(session):
    """[(schema, table)] of the ordinary tables."""
    return [(schema, table) for schema, table, _ in session.query(TABLES)]


def columns(session, schema, table):
    oid = session.value(f"SELECT $${quoted(schema)}.{quoted(table)}$$::regclass::oid")
    return [Column(name, kind, element, int(place) if place is not None else None)
            for name, kind, element, place in session.query(COLUMNS.format(oid))]


def key_columns(all_columns):
    """In key order. (indkey counts from 0, so its places may begin there.)"""
    return [column.name for column in sorted((c for c in all_columns if c.in_key is not None),
                                             key=lambda column: column.in_key)]


def keys(session, connection):
    return {f"{connection}.{schema}.{table}": key_columns(columns(session, schema, table))
            for schema, table in tables(session)}


def framed(text, kind, element=None, in_key=None):
    """What a frame holds for a server's text, decoded as frames.py decodes."""
    if text is None:
        return None
    if element is not None and in_key is None:
        return _framed_array(text, element)
    if kind == "bool":
        return text == "t"
    if kind in ("int2", "int4", "int8", "oid"):
        return int(text)
    if kind in ("numeric", "float4", "float8"):
        return _framed_number(text)
    if kind in ("json", "jsonb") and in_key is None:
        return _decode(text)
    if kind in ("timestamp", "timestamptz"):
        return re.sub(r"^(\d+-\d\d-\d\d) (?=\d)", r"\1T", text)
    if kind == "bytea":
        return base64.b64encode(bytes.fromhex(text[2:])).decode()
    return text


def _framed_number(text):
    if text in ("NaN", "Infinity", "-Infinity"):
        return text
    return _decode(text)


def _framed_array(text, element):
    """An array's text as a JSON array; as it is when its bounds do not begin at 1."""
    if text.startswith("["):
        return text
    stack, at = [[]], 0
    delimiter = ";" if element == "box" else ","
    while at < len(text):
        if text[at] == "{":
            stack.append([])
        elif text[at] == "}":
            inner = stack.pop()
            stack[-1].append(inner)
        elif text[at] != delimiter:
            item, at = _array_item(text, at, delimiter)
            stack[-1].append(framed(item, element))
            continue
        at += 1
    return stack[0][0]


def _array_item(text, at, delimiter):
    if text[at] != '"':
        end = min(place for place in (text.find(delimiter, at), text.find("}", at)) if place >= 0)
        item = text[at:end]
        return (None if item == "NULL" else item), end
    item, at = [], at + 1
    while text[at] != '"':
        at += text[at] == "\\"
        item.append(text[at])
        at += 1
    return "".join(item), at + 1


def same(got, want, kind):
    """Whether a frame's value is what was worked out; binary floats are compared by value."""
    if kind in ("float4", "float8") and isinstance(want, (Number, int)):
        return isinstance(got, (Number, int)) and not isinstance(got, bool) and \
            float(got) == float(want) and math.copysign(1, float(got)) == math.copysign(1, float(want))
    if isinstance(want, list):
        return isinstance(got, list) and len(got) == len(want) and \
            all(same(a, b, kind) for a, b in zip(got, want))
    return type(got) is type(want) and got == want


def differences(rebuilt, session, connection, only=None, limit=20):
    """`only`: [(schema, table)] instead of all tables."""
    found = []
    for schema, table in only or tables(session):
        store = f"{connection}.{schema}.{table}"
        if store not in rebuilt.stores:
            found.append(f"{store}: no frame of it")
            continue
        found += itertools.islice(_of_table(rebuilt.stores[store], session, schema, table), limit)
    return found[:limit]


def _of_table(store, session, schema, table):
    described = columns(session, schema, table)
    names = ", ".join(f"x.{quoted(column.name)}" for column in described)
    rows = session.query("SET LOCAL search_path = '';"
                         f"SELECT {names} FROM {quoted(schema)}.{quoted(table)} x")
    unmatched = sum(held.record is not None for held in store.held.values())
    for row in rows:
        want = {column.name: framed(text, column.kind, column.element, column.in_key)
                for column, text in zip(described, row)}
        key = key_text({name: want[name] for name in key_columns(described)})
        held = store.held.get(key)
        if held is None or held.record is None:
            yield f"{store.name} {key}: in the database, not in the frames"
            continue
        unmatched -= 1
        yield from _of_row(f"{store.name} {key}", held.decoded(), want, described)
    if unmatched:
        yield f"{store.name}: {unmatched} rows in the frames that the database does not have"


def _of_row(where, record, want, described):
    if sorted(record) != sorted(want):
        yield f"{where}: columns {list(record)} in the frames, {list(want)} in the database"
    for column in described:
        got = record.get(column.name, "nothing")
        if not same(got, want[column.name], column.element or column.kind):
            yield (f"{where}: {column.name} is {_short(want[column.name])} in the database,"
                   f" {_short(got)} in the frames")


def _short(value):
    text = repr(value)
    return text if len(text) < 100 else f"{text[:60]}… ({len(text)} characters)"
