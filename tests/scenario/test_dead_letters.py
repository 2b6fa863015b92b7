"""Refused records: what becomes of them per sink and table, and the dead letters they leave."""

import collections
import json
import sqlite3

import pytest
from support import shop

LONG = "long " * 1000  # more than the sinks below take


@pytest.fixture
def database(tmp_path):
    path = tmp_path / "shop.db"
    shop.make_shop(path, orders=300)
    return path


def make_long(database, products=(), customers=()):
    with sqlite3.connect(database) as db:
        for key in products:
            db.execute("UPDATE products SET title = ? WHERE id = ?", (f"{key} {LONG}", key))
        for key in customers:
            db.execute("UPDATE customers SET name = ? WHERE id = ?", (f"{key} {LONG}", key))


def configure(tmp_path, sinks, more="", name="shop"):
    lines = [f"name: {name}", "source: sqlite:shop.db", "sinks:"]
    lines += [f"  {key}: {value}" for key, value in sinks.items()]
    (tmp_path / f"{name}.yaml").write_text("\n".join(lines) + "\n" + more)


def sink(path, refused="dead_letter", limit=2000):
    return f"{{place: 'file:{path}', max_record_bytes: {limit}, refused: {refused}}}"


def letters(state):
    """All letters, the oldest first."""
    def number(path):
        middle = path.name.split(".")[1]
        return int(middle) if middle.isdigit() else float("inf")
    files = sorted(state.glob("dead_letters*.ndjson"), key=number)
    return [json.loads(line) for path in files for line in path.read_text().splitlines()]


def frames(path, kind):
    return [frame for frame in map(json.loads, path.read_text().splitlines())
            if frame["kind"] == kind]


def run_until_copied(start, tmp_path, paths, name="shop", ends=5):
    process = start("run", f"{name}.yaml")
    process.wait_until(lambda: all(
        (tmp_path / path).exists() and (tmp_path / path).read_bytes().count(b'"kind":"end"') >= ends
        for path in paths), 60, f"ends in {paths}")
    return process


def state_of(tmp_path, name="shop"):
    return tmp_path / ".tidemark" / name


def test_each_sink_and_table_has_its_policy(run, start, database, tmp_path):
    make_long(database, products=[1, 3], customers=[2])
    configure(tmp_path, {
        "all": sink("all.ndjson", "{tables: {cust*: skip}}"),
        "none": sink("none.ndjson", "skip"),
        "large": "file:large.ndjson",
    })
    process = run_until_copied(start, tmp_path, ["all.ndjson", "none.ndjson", "large.ndjson"])
    make_long(database, products=[4], customers=[5])
    for path in ("all.ndjson", "none.ndjson"):
        process.wait_until(lambda p=path: (tmp_path / p).read_bytes().count(b'"oversize":') == 2,
                           30, "changes without their record")
    process.interrupt().check()
    kept = letters(state_of(tmp_path))
    assert [(x["sink"], x["store"], x["reason"].partition(",")[0]) for x in kept] == [
        ("all", "shop.products", f"{x['bytes']} bytes") for x in kept]
    rows = {x["row_key"]: x for x in kept if "seq" in x}
    assert set(rows) == {"[1]", "[3]"} and all("attempt" not in x for x in rows.values())
    (change,) = [x for x in kept if "position" in x]
    assert change["key"] == {"id": 4} and change["destination"] == "file:all.ndjson"
    assert len({x["id"] for x in kept}) == 3
    for path in ("all.ndjson", "none.ndjson"):
        stubs = collections.Counter(frame["store"] for frame in frames(tmp_path / path, "oversize"))
        assert stubs == {"shop.products": 2, "shop.customers": 1}, path
        run("verify", path).check()
    for stub in frames(tmp_path / "all.ndjson", "oversize"):
        if stub["store"] == "shop.products":
            letter = rows[stub["row_key"]]
            assert (stub["seq"], stub["snapshot_id"]) == (letter["seq"], letter["snapshot_id"])
    assert not frames(tmp_path / "large.ndjson", "oversize")


def test_stop_says_which_record_and_goes_on_once_it_is_mended(run, start, database, tmp_path):
    make_long(database, products=[3], customers=[2])
    refused = "{default: skip, tables: {prod*: stop, products: skip}}"
    configure(tmp_path, {"all": sink("all.ndjson", refused), "large": "file:large.ndjson"})
    for _ in range(2):
        failed = run("run", "shop.yaml").check(2)
        assert "sink all cannot take a record and `refused` says stop (shop.products, key [3], " \
               "seq " in failed.err
        assert " bytes, limit 2000); raise its max_record_bytes" in failed.err
        assert "opened again" not in failed.err
    assert letters(state_of(tmp_path)) == []
    assert b'"row_key":"[3]"' not in (tmp_path / "all.ndjson").read_bytes()
    configure(tmp_path, {"all": sink("all.ndjson", refused, limit=900000),
                         "large": "file:large.ndjson"})
    process = run_until_copied(start, tmp_path, ["all.ndjson"])
    configure(tmp_path, {"all": sink("all.ndjson", refused), "large": "file:large.ndjson"})
    process.interrupt().check()
    run("verify", "all.ndjson").check()
    process = start("run", "shop.yaml")
    process.wait_for_line("; state in ")
    make_long(database, products=[5])
    failed = process.wait(30).check(2)
    assert '(shop.products, key {"id":5}, change at ' in failed.err
    assert letters(state_of(tmp_path)) == []
