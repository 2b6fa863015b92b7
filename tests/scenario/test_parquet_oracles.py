"""Our Parquet files in DuckDB and pyarrow, and theirs in ours, value by value and type by type."""

import pathlib
import random
import struct
import subprocess
from datetime import datetime
from decimal import Decimal

import pytest

from support import oracles, process
from support.parquet_columns import (BYTES, Column, bits_of, draw, every_column, parse, text_of,
                                     text_of_table)

TOOL = pathlib.Path(process.program()).resolve().parent / "tests" / "support" / "parquet_tool"


@pytest.fixture(scope="module", name="both")
def both_oracles():
    return oracles.load()


def tool(*arguments, code=0):
    result = subprocess.run([TOOL, *map(str, arguments)], capture_output=True, text=True,
                            timeout=60, check=False)
    assert result.returncode == code, result.stderr
    return result.stdout if code == 0 else result.stderr


def write_ours(folder, columns, table, *options, pairs=()):
    path = folder / "ours.parquet"
    (folder / "table.txt").write_text(text_of_table(columns, table, pairs))
    tool("write", folder / "table.txt", path, *options)
    return path


# pyarrow's types and arrays

def arrow_type(pa, column):
    if column.type == "decimal":
        return pa.decimal128(column.precision, column.scale)
    if column.type == "time":
        return pa.time32("ms") if column.unit == "ms" else pa.time64(column.unit)
    if column.type == "timestamp":
        return pa.timestamp(column.unit, tz="UTC" if column.utc else None)
    return {"bool": pa.bool_(), "float": pa.float32(), "double": pa.float64(),
            "date": pa.date32(), "string": pa.string(), "binary": pa.binary(),
            "uuid": pa.uuid(), "json": pa.json_(pa.string())}.get(column.type) \
        or getattr(pa, column.type)()


def from_arrow(pa, column, array):
    """An arrow array's values in the form of parquet_columns."""
    if pa.types.is_list(array.type):
        starts = array.offsets.to_pylist()
        flat = from_arrow(pa, column, array.values)
        return [flat[starts[row]:starts[row + 1]] if array[row].is_valid else None
                for row in range(len(array))]
    if isinstance(array.type, pa.BaseExtensionType):
        array = array.storage
    if column.type in ("time", "date", "timestamp"):
        array = array.cast(pa.int32() if array.type.bit_width == 32 else pa.int64())
    return [plain(column, value) for value in array.to_pylist()]


def plain(column, value):
    if value is None:
        return None
    if column.type in ("float", "double"):
        return bits_of(value, "f" if column.type == "float" else "d")
    if column.type == "decimal":
        return text_of(value, column.scale)
    if column.type == "uuid":
        return getattr(value, "bytes", value)
    if column.type in BYTES:
        return value.encode() if isinstance(value, str) else bytes(value)
    return int(value)


def to_arrow(pa, column, values):
    """An arrow array of the column's own type."""
    if column.list:
        starts, flat = [], []
        for value in values:
            starts.append(None if value is None else len(flat))
            flat += value or []
        element = Column(column.name, column.type, column.unit, column.utc, column.precision,
                         column.scale)
        return pa.ListArray.from_arrays(pa.array([*starts, len(flat)], pa.int32()),
                                        to_arrow(pa, element, flat))
    wanted = arrow_type(pa, column)
    if column.type in ("time", "date", "timestamp"):
        width = pa.int32() if wanted.bit_width == 32 else pa.int64()
        return pa.array(values, width).cast(wanted)
    if column.type == "uuid":
        return pa.ExtensionArray.from_storage(wanted, pa.array(values, pa.binary(16)))
    if column.type == "json":
        return pa.ExtensionArray.from_storage(wanted, pa.array(decoded(values), pa.string()))
    if column.type in ("float", "double"):
        form = "f" if column.type == "float" else "d"
        return pa.array([unpack(form, value) for value in values], wanted)
    if column.type == "decimal":
        return pa.array([None if v is None else Decimal(v) for v in values], wanted)
    if column.type == "bool":
        return pa.array([None if v is None else bool(v) for v in values], wanted)
    return pa.array(decoded(values) if column.type == "string" else values, wanted)


def decoded(values):
    return [None if value is None else value.decode() for value in values]


def unpack(form, value):
    return None if value is None else struct.unpack(">" + form, bytes.fromhex(value))[0]


# DuckDB's types and values

def duck_type(column):
    simple = {"bool": "BOOLEAN", "int8": "TINYINT", "int16": "SMALLINT", "int32": "INTEGER",
              "int64": "BIGINT", "uint8": "UTINYINT", "uint16": "USMALLINT", "uint32": "UINTEGER",
              "uint64": "UBIGINT", "float": "FLOAT", "double": "DOUBLE", "date": "DATE",
              "string": "VARCHAR", "binary": "BLOB", "uuid": "UUID", "json": "JSON",
              "decimal": f"DECIMAL({column.precision},{column.scale})"}
    name = simple.get(column.type)
    if column.type == "time":
        name = "TIME WITH TIME ZONE" if column.utc else \
            "TIME_NS" if column.unit == "ns" else "TIME"
    elif column.type == "timestamp":
        is_ns = column.unit == "ns"
        name = ("TIMESTAMPTZ_NS" if is_ns else "TIMESTAMP WITH TIME ZONE") if column.utc else \
            ("TIMESTAMP_NS" if is_ns else "TIMESTAMP")
    return name + "[]" * column.list


def duck_expression(column, name):
    """SQL that gives the value as a number where Python's own type could not hold it."""
    if column.type == "date":
        return f"{name} - DATE '1970-01-01'"
    if column.type in ("time", "timestamp"):
        return {"ms": f"epoch_us({name}) // 1000", "us": f"epoch_us({name})",
                "ns": f"epoch_ns({name})"}[column.unit]
    return name


def from_duck(duckdb, path, columns):
    """Each column's values, in the form of parquet_columns."""
    wanted = []
    for column in columns:
        name = f'"{column.name}"'
        wanted.append(f"list_transform({name}, lambda x: {duck_expression(column, 'x')})"
                      if column.list else duck_expression(column, name))
    rows = duckdb.sql(f"SELECT {', '.join(wanted)} FROM '{path}'").fetchall()
    return [[[plain(column, item) for item in row[at]] if isinstance(row[at], list)
             else plain(column, row[at]) for row in rows] for at, column in enumerate(columns)]


def as_duck_keeps(column, values):
    """DuckDB has no time of day in UTC that is finer than a microsecond."""
    if (column.type, column.unit, column.utc) != ("time", "ns", 1):
        return values

    def cut(value):
        return None if value is None else value // 1000 * 1000
    return [list(map(cut, value)) if isinstance(value, list) else cut(value) for value in values]


def check(columns, want, got):
    assert len(want) == len(got)
    for column, expected, values in zip(columns, want, got):
        assert len(values) == len(expected), column
        for row, (one, other) in enumerate(zip(expected, values)):
            assert one == other, (column, row)


OURS = [(), ("none",), ("lz4",), ("zstd", 100, 50, 7), ("lz4", 1, 0, 100), ("none", 5000, 1000, 64),
        ("zstd", 1000000, 0, 1000)]


@pytest.mark.parametrize("seed", range(len(OURS)))
def test_our_files_in_pyarrow(both, tmp_path, seed):
    _, pa = both
    rng = random.Random(seed)
    columns = every_column(rng)
    table = [draw(rng, column, 400) for column in columns]
    path = write_ours(tmp_path, columns, table, *OURS[seed], pairs=[("key", "value\u00e9")])
    got = pa.parquet.read_table(path, page_checksum_verification=True)
    assert got.schema.metadata[b"key"].decode() == "value\u00e9"
    for at, column in enumerate(columns):
        field = got.schema.field(at)
        kind = arrow_type(pa, column)
        assert field.name == column.name and field.nullable == bool(column.nullable)
        if column.list:
            assert field.type.value_type == kind, column
            assert field.type.value_field.nullable == bool(column.element_nullable)
        else:
            assert field.type == kind, column
    check(columns, table, [from_arrow(pa, column, got.column(at).combine_chunks())
                           for at, column in enumerate(columns)])


@pytest.mark.parametrize("seed", range(len(OURS)))
def test_our_files_in_duckdb(both, tmp_path, seed):
    duckdb, _ = both
    rng = random.Random(seed)
    columns = every_column(rng)
    table = [draw(rng, column, 400) for column in columns]
    path = write_ours(tmp_path, columns, table, *OURS[seed])
    kinds = duckdb.sql(f"DESCRIBE SELECT * FROM '{path}'").fetchall()
    assert [(row[0], row[1]) for row in kinds] == \
        [(column.name, duck_type(column)) for column in columns]
    want = [as_duck_keeps(column, values) for column, values in zip(columns, table)]
    check(columns, want, from_duck(duckdb, path, columns))


def test_empty_and_tiny_tables(both, tmp_path):
    duckdb, pa = both
    rng = random.Random(3)
    columns = every_column(rng)
    for rows in (0, 1, 8, 9):
        table = [draw(rng, column, rows) for column in columns]
        path = write_ours(tmp_path, columns, table)
        got = pa.parquet.read_table(path)
        check(columns, table, [from_arrow(pa, column, got.column(at).combine_chunks())
                               for at, column in enumerate(columns)])
        assert duckdb.sql(f"SELECT count(*) FROM '{path}'").fetchall() == [(rows,)]


def test_statistics_are_true_and_used(both, tmp_path):
    """pyarrow shows minimum and maximum in the type's order; DuckDB filters by them."""
    duckdb, pa = both
    columns = [Column("i", "int32"), Column("u", "uint32"), Column("s", "string"),
               Column("d", "decimal", precision=20, scale=2), Column("f", "double"),
               Column("nan", "double"), Column("zero", "double"), Column("none", "int64"),
               Column("long", "string"), Column("b", "bool")]
    table = [[5, -7, None], [5, 4000000000, 0], ["z".encode(), "\u00e9".encode(), b""],
             ["-100.00", "99.50", None], [bits_of(v, "d") for v in (1.5, -2.0, float("inf"))],
             [bits_of(v, "d") for v in (1.0, float("nan"), 2.0)],
             [bits_of(v, "d") for v in (0.0, 0.0, 0.0)], [None, None, None],
             [b"a" * 100, b"m", b"z" * 100], [1, 0, None]]
    path = write_ours(tmp_path, columns, table)
    group = pa.parquet.ParquetFile(path).metadata.row_group(0)
    found = {}
    for at, column in enumerate(columns):
        statistics = group.column(at).statistics
        found[column.name] = (statistics.min, statistics.max) if statistics.has_min_max else None
        assert statistics.null_count == sum(value is None for value in table[at])
    assert found == {"i": (-7, 5), "u": (0, 4000000000), "s": ("", "\u00e9"),
                     "d": (Decimal("-100.00"), Decimal("99.50")), "f": (-2.0, float("inf")),
                     "nan": None, "zero": (0.0, 0.0), "none": None,
                     "long": ("a" * 64, "z" * 63 + "{"), "b": (False, True)}
    assert str(found["zero"][0]) == "-0.0" and str(found["zero"][1]) == "0.0"
    for condition, count in (("u > 3999999999", 1), ("d < 0", 1), (f"long = '{'z' * 100}'", 1),
                             ("s = '\u00e9'", 1), ("zero = 0", 3), ("i < -7", 0)):
        rows = duckdb.sql(f"SELECT count(*) FROM '{path}' WHERE {condition}").fetchall()
        assert rows == [(count,)], condition


ARROW = [{}, {"data_page_version": "2.0"}, {"use_dictionary": False},
         {"use_dictionary": False, "data_page_version": "2.0"},
         {"compression": "lz4"}, {"compression": "none", "data_page_version": "2.0"},
         {"data_page_size": 200, "row_group_size": 90}, {"dictionary_pagesize_limit": 50},
         {"version": "2.4"}, {"store_decimal_as_integer": True}, {"store_schema": False},
         {"write_page_checksum": True, "write_page_index": True}]


def of_both(column, options):
    """Whether pyarrow's file can say what the column is."""
    if options.get("version") == "2.4" and column.unit == "ns":
        return False  # kept as microseconds
    return column.type != "time" or column.utc == 0  # its times of day have no zone


@pytest.mark.parametrize("number", range(len(ARROW)))
def test_pyarrow_files_in_ours(both, tmp_path, number):
    _, pa = both
    options = {"compression": "zstd", **ARROW[number]}
    rng = random.Random(number)
    columns = [column for column in every_column(rng) if of_both(column, options)]
    table = [draw(rng, column, 400) for column in columns]
    arrays = [to_arrow(pa, column, values) for column, values in zip(columns, table)]
    path = tmp_path / "theirs.parquet"
    names = [column.name for column in columns]
    pa.parquet.write_table(pa.table(arrays, names=names), path, **options)
    got_columns, got, refused, _ = parse(tool("read", path))
    assert refused == {}
    assert [column.kind() for column in got_columns] == [column.kind() for column in columns]
    check(columns, table, got)


@pytest.mark.parametrize("codec", ["zstd", "lz4_raw", "uncompressed"])
def test_duckdb_files_in_ours(both, tmp_path, codec):
    duckdb, _ = both
    rng = random.Random(17)
    columns = [column for column in every_column(rng)
               if column.type not in ("time", "timestamp") or column.unit == "us"]
    table = [draw(rng, column, 5000) for column in columns]
    ours = write_ours(tmp_path, columns, table)
    theirs = tmp_path / "theirs.parquet"
    duckdb.sql(f"COPY (SELECT * FROM '{ours}') TO '{theirs}' "
               f"(FORMAT parquet, COMPRESSION {codec})")
    got_columns, got, refused, _ = parse(tool("read", theirs))
    assert refused == {}
    assert [column.kind() for column in got_columns] == [column.kind() for column in columns]
    check(columns, table, got)


REFUSED = [
    ({"compression": "snappy"}, "column x is compressed by SNAPPY, which is not read"),
    ({"compression": "gzip"}, "column x is compressed by GZIP, which is not read"),
    ({"compression": "brotli"}, "column x is compressed by BROTLI, which is not read"),
    ({"column_encoding": {"x": "DELTA_BINARY_PACKED"}},
     "column x is encoded DELTA_BINARY_PACKED, which is not read"),
    ({"column_encoding": {"x": "BYTE_STREAM_SPLIT"}},
     "column x is encoded BYTE_STREAM_SPLIT, which is not read"),
]


@pytest.mark.parametrize("options,message", REFUSED)
def test_refused_by_name(both, tmp_path, options, message):
    _, pa = both
    path = tmp_path / "theirs.parquet"
    options = {"compression": "zstd", "use_dictionary": False, **options}
    pa.parquet.write_table(pa.table({"x": pa.array(range(100), pa.int64())}), path, **options)
    assert parse(tool("read", path))[2] == {"x": message}


def test_refused_strings_by_name(both, tmp_path):
    _, pa = both
    for encoding in ("DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"):
        path = tmp_path / "theirs.parquet"
        pa.parquet.write_table(pa.table({"x": ["a", "b"]}), path, use_dictionary=False,
                               compression="zstd", column_encoding={"x": encoding})
        assert parse(tool("read", path))[2] == {
            "x": f"column x is encoded {encoding}, which is not read"}


def test_refused_types_by_name_and_others_read(both, tmp_path):
    """A column that is not read keeps none of the others from it."""
    _, pa = both
    arrays = {
        "struct": pa.array([{"a": 1, "b": "x"}]),
        "map": pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64())),
        "nested": pa.array([[[1, 2]]]),
        "structs": pa.array([[{"a": 1}]]),
        "wide": pa.array([Decimal(1)], pa.decimal256(50, 2)),
        "half": pa.array([1.5], pa.float16()),
        "null": pa.array([None], pa.null()),
        "kept": pa.array(["yes"]),
    }
    path = tmp_path / "theirs.parquet"
    pa.parquet.write_table(pa.table(arrays), path, compression="zstd")
    columns, table, refused, _ = parse(tool("read", path))
    assert refused == {
        "struct": "column struct is a struct, which is not read",
        "map": "column map is a map, which is not read",
        "nested": "column nested is a list of lists, structs or maps, or one of only two levels,"
                  " which is not read",
        "structs": "column structs is a list of lists, structs or maps, or one of only two levels,"
                   " which is not read",
        "wide": "column wide is a decimal of more than 38 digits, which is not read",
        "half": "column half is of a logical type that is not known, which is not read",
        "null": "column null is of a logical type that is not known, which is not read",
    }
    assert columns[-1].name == "kept" and table[-1] == [b"yes"]
    pa.parquet.write_table(pa.table({"t": pa.array([datetime(2026, 1, 1)])}), path,
                           compression="zstd", use_deprecated_int96_timestamps=True)
    assert parse(tool("read", path))[2] == {"t": "column t is an INT96, which is not read"}


def test_fixed_length_binary_is_read(both, tmp_path):
    _, pa = both
    path = tmp_path / "theirs.parquet"
    values = [b"abc", None, b"\x00\x01\xff", b"abc"]
    pa.parquet.write_table(pa.table({"x": pa.array(values, pa.binary(3))}), path,
                           compression="zstd")
    columns, table, refused, _ = parse(tool("read", path))
    assert refused == {} and columns[0].type == "binary" and table == [values]
