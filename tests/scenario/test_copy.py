"""tidemark copy from SQLite to files: beside writers, killed, resumed, stopped, ended."""

import json
import sqlite3
import time

import pytest
from support import frames, shop
from support.process import MIB, soak

TABLES = ["customers", "order_items", "orders", "products", "sessions"]


@pytest.fixture
def database(tmp_path):
    path = tmp_path / "shop.db"
    shop.make_shop(path, orders=soak(8000, 30000))
    return path


def schema(path):
    with sqlite3.connect(path) as db:
        return db.execute("SELECT type, name, sql FROM sqlite_schema ORDER BY name").fetchall()


def rebuilt(database, *paths):
    """The tables as a consumer of the frames has them, after checking them against the database."""
    with sqlite3.connect(database) as db:
        tables = frames.rebuild(paths, frames.sqlite_keys(db, "shop"))
        assert frames.differences(tables, db, "shop") == []
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    return tables


def check_snapshots(tables, names=TABLES):
    """One snapshot a table, complete."""
    for name in names:
        snapshots = tables.snapshots_of(f"shop.{name}")
        assert [s.status for s in snapshots] == ["complete"], name


def checkpoint(run, state):
    return json.loads(run("checkpoint", "show", "--json", state).check().out)["tidemark"]


def test_copy_of_a_quiet_database_is_complete_and_leaves_nothing(run, database, tmp_path):
    before = schema(database)
    result = run("copy", "sqlite:shop.db", "file:out.ndjson").check()
    assert result.out.startswith("complete: 5 tables, ")
    assert schema(database) == before
    check_snapshots(rebuilt(database, tmp_path / "out.ndjson"))
    verdict = run("verify", "out.ndjson").check()
    assert verdict.out.count("complete") == 5
    assert (tmp_path / "out.ndjson").stat().st_mode & 0o777 == 0o600
    states = list((tmp_path / ".tidemark").iterdir())
    assert len(states) == 1 and states[0].stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("journal", ["WAL", "DELETE"])
def test_copy_beside_a_writer_ends_equal(run, tmp_path, journal):
    database = tmp_path / "shop.db"
    shop.make_shop(database, orders=6000, journal=journal)
    with shop.Writer(database, seed=3, per_second=400) as writer:
        run("copy", "sqlite:shop.db", "file:out.ndjson", "--keep", "--chunk-rows", "500",
            timeout=120).check()
        assert writer.stop() > 0
    # what was written after the copy had ended comes with the next run, which goes on from there
    result = run("copy", "sqlite:shop.db", "file:out.ndjson", timeout=120).check()
    assert "going on" in result.err
    check_snapshots(rebuilt(database, tmp_path / "out.ndjson"))
    run("verify", "out.ndjson").check()


def resumes(path):
    """{(store, attempt): seq} of all resume frames."""
    found = {}
    with open(path, "rb") as lines:
        for line in lines:
            if line.startswith(b'{"kind":"resume"') and line.endswith(b"\n"):
                frame = json.loads(line)
                found[frame["store"], frame["attempt"]] = frame["seq"]
    return found


def rows_by_attempt(path, store):
    """[(attempt, seq, key)] of the store's rows, in the order of arrival."""
    key = {"shop.customers": ["id"], "shop.orders": ["id"], "shop.products": ["id"],
           "shop.sessions": ["token"], "shop.order_items": ["order_id", "line"]}[store]
    with open(path, "rb") as lines:
        for line in lines:
            if line.startswith(b'{"kind":"row"') and line.endswith(b"\n"):
                frame = json.loads(line)
                if frame["store"] == store:
                    yield (frame.get("attempt", 0), frame["seq"],
                           [frame["record"][column] for column in key])


def check_no_held_chunk_is_read_again(path, held):
    """`held`: {(store, attempt that comes next): (next_seq, last key)} from the checkpoints."""
    for (store, attempt), seq in resumes(path).items():
        next_seq, last_key = held[store, attempt]
        assert seq == next_seq, (store, attempt)
        later = [key for a, _, key in rows_by_attempt(path, store) if a == attempt]
        assert last_key is None or not later or later[0] > last_key, (store, attempt)


def note_held(run, state, held):
    for copy in checkpoint(run, state)["copies"]:
        if copy.get("snapshot_id") and not copy.get("done"):
            last = copy["last_pk"]
            held.setdefault((copy["store"], copy["attempt"] + 1),
                            (copy["next_seq"], last and [value["value"] for value in last]))
            held[copy["store"], copy["attempt"] + 1] = (
                copy["next_seq"], last and [value["value"] for value in last])


@pytest.mark.parametrize("target", ["file:out.ndjson", "file:frames/"])
def test_copy_killed_at_random_and_resumed_ends_equal(run, start, database, tmp_path, rng, target):
    arguments = ["copy", "sqlite:shop.db", target, "--state", "state", "--chunk-rows", "200"]
    held = {}
    with shop.Writer(database, seed=rng.randrange(1000), per_second=soak(300, 1000)) as writer:
        for _ in range(soak(10, 100)):
            process = start(*arguments, "--follow")
            time.sleep(rng.uniform(0.02, 0.4))
            process.kill()
            if list((tmp_path / "state").glob("checkpoint_*")):
                note_held(run, "state", held)
        assert writer.stop() > 0
    run(*arguments, timeout=240).check()
    paths = [tmp_path / "out.ndjson"] if target.endswith("json") else \
        sorted((tmp_path / "frames").glob("*.ndjson"))
    check_snapshots(rebuilt(database, *paths))
    for path in paths:
        check_no_held_chunk_is_read_again(path, held)
    run("verify", *paths).check()
    assert not [name for _, name, _ in schema(database) if "_tidemark" in name]


def test_copy_follows_until_it_is_stopped_and_goes_on_later(run, start, database, tmp_path):
    arguments = ["copy", "sqlite:shop.db", "file:out.ndjson", "--state", "state", "--follow"]
    process = start(*arguments)
    path = tmp_path / "out.ndjson"
    process.wait_until(lambda: path.exists() and path.read_bytes().count(b'{"kind":"end"') == 5,
                       what="five ends")
    with sqlite3.connect(database) as db:
        db.execute("UPDATE products SET title = 'followed' WHERE id = 5")
    process.wait_until(lambda: b"followed" in path.read_bytes()[-2000:], what="the change")
    result = process.interrupt().check()
    assert "followed until stopped" in result.out
    assert "tidemark detach" in result.err
    with sqlite3.connect(database) as db:
        db.execute("DELETE FROM products WHERE id = 6")
    process = start(*arguments)
    process.wait_until(lambda: b'"delete"' in path.read_bytes()[-2000:], what="the deletion")
    process.terminate().check()
    check_snapshots(rebuilt(database, path))
    run("detach", "sqlite:shop.db").check()
    assert not [name for _, name, _ in schema(database) if "_tidemark" in name]


def test_copy_stopped_in_the_moment_when_it_is_complete(run, start, tmp_path, rng):
    """Between a table's end and the end of the request for it."""
    database = tmp_path / "shop.db"
    shop.make_shop(database, orders=20)
    for i in range(soak(10, 300)):
        path = tmp_path / f"out{i}.ndjson"
        process = start("copy", "sqlite:shop.db", f"file:out{i}.ndjson", "--follow")
        ends = rng.randint(1, 5)
        process.wait_until(lambda path=path, ends=ends: path.exists() and
                           path.read_bytes().count(b'{"kind":"end"') >= ends, what="ends")
        assert process.interrupt().code in (0, 1), process.err()
        run("copy", "sqlite:shop.db", f"file:out{i}.ndjson").check()
        check_snapshots(rebuilt(database, path))


def test_copy_stopped_before_it_is_complete_says_so(run, start, tmp_path):
    database = tmp_path / "shop.db"
    shop.make_shop(database, orders=40000)
    process = start("copy", "sqlite:shop.db", "file:out.ndjson", "--chunk-rows", "50")
    process.wait_until(lambda: (tmp_path / "out.ndjson").exists() and
                       (tmp_path / "out.ndjson").stat().st_size > 0)
    result = process.interrupt()
    assert result.code == 1, result.err
    assert "stopped before it was complete" in result.out
    assert "run the same command again" in result.err
    verdict = run("verify", "out.ndjson")
    assert verdict.code == 1 and "open" in verdict.out
    run("copy", "sqlite:shop.db", "file:out.ndjson", timeout=120).check()
    check_snapshots(rebuilt(database, tmp_path / "out.ndjson"))


def test_copy_of_chosen_tables_leaves_the_others_alone(run, database, tmp_path):
    run("copy", "sqlite:shop.db", "file:out/", "--tables", "order*,prod?cts").check()
    assert sorted(path.name for path in (tmp_path / "out").glob("*.ndjson")) == [
        "shop.order_items.ndjson", "shop.orders.ndjson", "shop.products.ndjson"]


def test_copy_of_no_table_is_refused(run, database, tmp_path):
    result = run("copy", "sqlite:shop.db", "file:out.ndjson", "--tables", "nothing*")
    assert result.code == 2 and "nothing*" in result.err
    assert not (tmp_path / "out.ndjson").exists()


def test_copy_to_standard_output_is_frames_alone(run, database):
    result = run("copy", "sqlite:shop.db", "-").check()
    kinds = {json.loads(line)["kind"] for line in result.out.splitlines()}
    assert kinds == {"begin", "row", "end"}
    assert "complete: 5 tables" in result.err


def test_copy_refuses_a_file_that_is_not_its_own(run, database, tmp_path):
    (tmp_path / "out.ndjson").write_text("mine\n")
    result = run("copy", "sqlite:shop.db", "file:out.ndjson")
    assert result.code == 2 and "--overwrite" in result.err
    assert (tmp_path / "out.ndjson").read_text() == "mine\n"
    run("copy", "sqlite:shop.db", "file:out.ndjson", "--overwrite").check()
    check_snapshots(rebuilt(database, tmp_path / "out.ndjson"))


def test_second_copy_with_the_same_state_is_refused(run, start, database):
    arguments = ["copy", "sqlite:shop.db", "file:out.ndjson", "--state", "state", "--follow"]
    first = start(*arguments)
    first.wait_for_line("state in")
    result = run(*arguments)
    assert result.code == 2 and str(first.pid) in result.err
    first.interrupt().check()


def test_oversize_rows_become_stubs_with_their_dead_letter(run, database, tmp_path):
    with sqlite3.connect(database) as db:
        db.execute("UPDATE products SET title = hex(zeroblob(2000)) WHERE id IN (3, 4)")
    result = run("copy", "sqlite:shop.db", "file:out.ndjson", "--max-record-bytes", "1024",
                 "--state", "state").check()
    assert "2 stubs" in result.out
    letters = [json.loads(line)
               for line in (tmp_path / "state/dead_letters.ndjson").read_text().splitlines()]
    assert [letter["store"] for letter in letters] == ["shop.products"] * 2
    run("verify", "out.ndjson").check()


def test_copy_of_another_database_into_the_same_state_is_refused(run, start, database, tmp_path):
    run("copy", "sqlite:shop.db", "file:out.ndjson", "--state", "state", "--keep").check()
    shop.make_shop(tmp_path / "other.db", orders=10)
    result = run("copy", "sqlite:other.db", "file:out.ndjson", "--state", "state")
    assert result.code != 0 and "state" in result.err


def test_record_of_what_is_held_that_lost_its_newest_slot_is_noticed(run, start, tmp_path):
    """A torn slot was never acknowledged; one that rots later was, and the checkpoint knows."""
    database = tmp_path / "shop.db"
    shop.make_shop(database, orders=2000)
    arguments = ["copy", "sqlite:shop.db", "file:out.ndjson", "--state", "state"]
    process = start(*arguments, "--follow")
    process.wait_until(lambda: (tmp_path / "out.ndjson").exists() and
                       (tmp_path / "out.ndjson").read_bytes().count(b'{"kind":"end"') == 5)
    process.interrupt().check()
    record = tmp_path / ".out.ndjson.tidemark"
    slots = bytearray(record.read_bytes())
    half = len(slots) // 2
    numbers = [int.from_bytes(slots[at + 16:at + 24], "little") for at in (0, half)]
    newest = half if numbers[1] > numbers[0] else 0
    slots[newest + 30:newest + 34] = b"XXXX"
    record.write_bytes(slots)
    result = run(*arguments)
    if result.code == 0:  # the older slot said the same: nothing came between them
        check_snapshots(rebuilt(database, tmp_path / "out.ndjson"))
    else:
        assert result.code == 3 and "holds less than the checkpoint" in result.err


def test_tables_that_come_later_are_copied_too(run, database, tmp_path):
    arguments = ["copy", "sqlite:shop.db", "file:out.ndjson", "--state", "state"]
    run(*arguments, "--keep", "--tables", "orders").check()
    result = run(*arguments).check()
    assert "table shop.customers: it is new; it is copied anew" in result.err
    check_snapshots(rebuilt(database, tmp_path / "out.ndjson"))


def test_virtual_table_is_named_when_it_is_left_out_and_refused_by_name(run, tmp_path):
    with sqlite3.connect(tmp_path / "shop.db") as db:
        db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")
        db.execute("CREATE VIRTUAL TABLE f USING fts5(words)")
    result = run("copy", "sqlite:shop.db", "file:out.ndjson").check()
    assert "note: table f" in result.err
    result = run("copy", "sqlite:shop.db", "file:other.ndjson", "--tables", "t,f")
    assert result.code == 2 and "table f " in result.err


def test_memory_stays_flat_under_a_limit(run, start, tmp_path):
    """Five million rows with 256 MiB for everything; resident memory does not grow with the table."""
    database = tmp_path / "big.db"
    with sqlite3.connect(database) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("CREATE TABLE big (id INTEGER PRIMARY KEY, a TEXT, b INTEGER)")
        db.execute("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)"
                   " INSERT INTO big SELECT i, 'row ' || i, i * 7 FROM n", (soak(5000000, 20000000),))
    process = start("copy", "sqlite:big.db", "file:out.ndjson")
    samples = []
    while process.running():
        samples.append(process.memory_kib())
        time.sleep(0.05)
    result = process.wait()
    result.check()
    third = len(samples) // 3
    early, late = max(samples[:third]), max(samples[-third:])
    print(f"resident: {early} KiB in the first third, {late} KiB in the last")
    assert result.peak_kib < 64 * 1024
    assert late < early * 1.25 + 16384  # how full lanes are varies within the budget
    (tmp_path / "out.ndjson").unlink()
    (tmp_path / "big.db").unlink()


def test_tables_that_cannot_be_followed_are_counted_at_the_end(run, start, tmp_path):
    """Also by the run that goes on, which names them no more."""
    with sqlite3.connect(tmp_path / "a.db") as db:
        db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, text TEXT)")
        db.executemany("INSERT INTO t VALUES (?, 'text')", [(n,) for n in range(5000)])
        db.execute("CREATE VIRTUAL TABLE search USING fts5(text)")
        db.execute("CREATE TABLE ids (rowid, oid, _rowid_)")
    db.close()
    told = "; not in it: 2 tables that cannot be followed\n"
    result = run("copy", "sqlite:a.db", "null:", "--state", "one").check()
    assert result.out.startswith("complete: 1 table, 5,000 rows, ") and result.out.endswith(told)
    copy = ["copy", "sqlite:a.db", "file:out.ndjson", "--state", "two", "--chunk-rows", "20"]
    process = start(*copy)
    process.wait_until(lambda: (tmp_path / "out.ndjson").exists() and
                       (tmp_path / "out.ndjson").stat().st_size > 20000, what="some rows")
    process.kill()
    result = run(*copy).check()
    assert "complete: 1 table, in this run " in result.out and result.out.endswith(told)
    only = run("copy", "sqlite:a.db", "null:", "--state", "three", "--tables", "t").check()
    assert "not in it" not in only.out
