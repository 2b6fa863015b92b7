"""Segments of an archive in DuckDB and pyarrow: what a reader of docs/archive.md is told to expect."""

import datetime
import decimal
import json
import os
import pathlib
import subprocess
import uuid

import pytest

from support import oracles

TOOL = pathlib.Path(os.environ.get("TIDEMARK", "build/tidemark")).resolve().parent / \
    "tests" / "support" / "change_segment"


@pytest.fixture(scope="module", name="both")
def both_oracles():
    return oracles.load()


@pytest.fixture(name="shop")
def shop_segment(tmp_path):
    path = tmp_path / "shop.parquet"
    subprocess.run([TOOL, "shop", path], check=True, timeout=60)
    return path


def test_columns_have_types_that_duckdb_knows(both, shop):
    duckdb, _ = both
    types = dict(row[:2] for row in duckdb.sql(f"DESCRIBE SELECT * FROM '{shop}'").fetchall())
    assert types["id"] == "BIGINT" and types["price"] == "DECIMAL(10,2)"
    assert types["weight"] == "DOUBLE" and types["is_new"] == "BOOLEAN"
    assert types["since"] == "DATE" and types["sold"] == "TIMESTAMP WITH TIME ZONE"
    assert types["tag"] == "UUID" and types["extra"] == "JSON" and types["photo"] == "BLOB"
    assert types["name"] == types["name#kind"] == types["price#other"] == "VARCHAR"
    assert types["_unchanged"] == types["_moved_from"] == types["_key"] == "VARCHAR[]"
    assert types["_starts"] == "UBIGINT[]" and types["_index"] == types["_seq"] == "UBIGINT"
    assert types["_commit_time"] == "TIMESTAMP WITH TIME ZONE"


def test_values_are_those_of_the_rows(both, shop):
    duckdb, _ = both
    rows = duckdb.sql("SELECT id, name, price, weight, is_new, since, epoch_us(sold), tag, extra, "
                      f"photo FROM '{shop}' WHERE _op IN ('row', 'insert')").fetchall()
    first = (1, "grün", decimal.Decimal("19.90"), 0.1, True, datetime.date(2026, 11, 29),
             1795959655500000, uuid.UUID("b3d0a1f2-0000-4000-8000-00000000000a"),
             '{"a": [1, 2]}', b"\x01\xff")
    assert rows == [first, first]


def test_what_a_type_cannot_hold_stands_beside_it(both, shop):
    duckdb, _ = both
    sql = ('SELECT id, price, "price#other", "weight#other", is_new, "since#other", "sold#other", '
           '"extra#other", _unchanged, _moved_from, _key '
           f"FROM '{shop}' WHERE _op = 'update' AND _bytes IS NULL")
    assert duckdb.sql(sql).fetchall() == [(
        2, None, "decimal:NaN", "real:Infinity", None, "text:0044-03-15 BC", "text:infinity",
        'text:"\\ud800"', ["name", "photo"], ["integer:7"], None)]


def test_rows_say_what_they_are(both, shop):
    duckdb, _ = both
    sql = ("SELECT _op, _position, _index, _seq, _attempt, _starts, _bytes, id "
           f"FROM '{shop}' ORDER BY _time")
    assert duckdb.sql(sql).fetchall() == [
        ("begin", '"16/0"', 3, 0, 0, None, None, None),
        ("row", '"16/1"', None, 0, 0, None, None, 1),
        ("insert", '"16/2"', 3, None, None, None, None, 1),
        ("update", '"16/3"', 3, None, None, None, None, 2),
        ("update", '"16/4"', 3, None, None, None, 1000000, 1),
        ("delete", '"16/5"', 3, None, None, None, None, 2),
        ("truncate", '"16/6"', 3, None, None, None, None, None),
        ("resume", '"16/7"', 3, 1, 1, [1], None, None),
        ("stub", '"16/8"', None, 1, 1, None, 2000000, 2),
        ("end", '"16/9"', 3, 2, 1, [1], None, None),
    ]


def test_a_segment_explains_itself(both, shop):
    _, pa = both
    table = pa.parquet.read_table(shop)
    about = table.schema.metadata
    assert about[b"tidemark.encoder"] == b"tidemark-changes-1"
    assert about[b"tidemark.series"] == b"pg.shop.things"
    columns = json.loads(about[b"tidemark.columns"])
    assert columns["key"] == ["id"] and columns["columns"][2]["type"] == "numeric(10,2)"
    assert table["_time"][0].value == 1796000000000000000
    assert table["_snapshot_id"][0].as_py() == "01900000-0000-7000-8000-0000000000ff"


@pytest.mark.parametrize("seed", range(1, 41))
def test_segments_of_random_tables_are_read(both, tmp_path, seed):
    duckdb, pa = both
    path = tmp_path / "random.parquet"
    subprocess.run([TOOL, "random", str(seed), path], check=True, timeout=60)
    table = pa.parquet.read_table(path)
    assert table.num_rows == 200
    assert len(duckdb.sql(f"SELECT * FROM '{path}'").fetchall()) == 200
    ops = duckdb.sql(f"SELECT _op FROM '{path}' ORDER BY _time").fetchall()
    assert [op for op, in ops] == table["_op"].to_pylist()
