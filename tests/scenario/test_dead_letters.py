"""Refused records: what becomes of them per sink and table, and the dead letters they leave."""

import collections
import json
import re
import sqlite3
import subprocess
import time

import pytest
from support import shop

LONG = "long " * 1000  # more than the sinks below take


@pytest.fixture
def database(tmp_path):
    path = tmp_path / "shop.db"
    shop.make_shop(path, orders=300)
    return path


def make_long(database, products=(), customers=()):
    with sqlite3.connect(database, timeout=30) as db:
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
    process.wait_for_line("; state in ")
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
        process = start("run", "shop.yaml")
        process.wait_for_line("sink all has failed: ")
        process.wait_until(  # alone: the other goes on
            lambda: (tmp_path / "large.ndjson").read_bytes().count(b'"end"') >= 5, 30, "large")
        failed = process.interrupt().check(2)
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
    process.wait_for_line("sink all has failed: ")
    failed = process.interrupt().check(2)
    assert '(shop.products, key {"id":5}, change at ' in failed.err
    assert letters(state_of(tmp_path)) == []


def test_copy_has_a_policy_too(run, database, tmp_path):
    make_long(database, products=[3])
    copy = ["copy", "sqlite:shop.db", "file:out.ndjson", "--state", "state", "--max-record-bytes"]
    assert "not \"drop\"" in run(*copy, 2000, "--refused", "drop").check(2).err
    assert "(shop.products, key [3], seq " in run(*copy, 2000, "--refused", "stop").check(2).err
    done = run(*copy, 2000, "--refused", "skip").check()
    assert "1 stub" in done.out and "1 refused record skipped" in done.err
    assert letters(tmp_path / "state") == []
    run("verify", "out.ndjson").check()


def test_rules_of_no_table_are_noted(run, start, database, tmp_path):
    configure(tmp_path, {"all": sink("all.ndjson", "{tables: {order: stop, ord*: skip}}")})
    process = run_until_copied(start, tmp_path, ["all.ndjson"])
    result = process.interrupt().check()
    assert "note: refused of sink all: no table matches order\n" in result.err
    assert "ord*" not in result.err


def test_letters_are_kept_once_however_often_the_run_is_killed(run, start, database, tmp_path, rng):
    """Killed while rows are refused; what is delivered again has its letter already."""
    with sqlite3.connect(database) as db:
        db.execute("UPDATE orders SET note = hex(zeroblob(1500)) WHERE id % 3 = 0")
        expected = {f"[{key}]" for (key,) in db.execute("SELECT id FROM orders WHERE id % 3 = 0")}
    policies = {"kept": sink("kept.ndjson"), "skipped": sink("skipped.ndjson", "skip")}
    small = "snapshot: {chunk_rows: 10}\ndead_letters: {file_bytes: 65536, files: 100}\n"
    configure(tmp_path, policies, small)
    for number in range(12):
        process = start("run", "shop.yaml")
        process.wait_for_line("; state in ")
        make_long(database, products=[number + 1])
        pause = rng.uniform(0, 0.08)
        deadline = time.monotonic() + pause
        while time.monotonic() < deadline and process.running():
            time.sleep(0.001)
        process.kill()
    process = start("run", "shop.yaml")
    process.wait_for_line("; state in ")
    # ends alone do not tell: an end may be written again after a kill
    for path in ("kept.ndjson", "skipped.ndjson"):
        process.wait_until(
            lambda p=path: len(re.findall("^complete ", run("verify", p).out, re.M)) == 5, 60,
            "complete copies")
    process.interrupt().check()
    kept = letters(state_of(tmp_path))
    rows = collections.Counter(x["row_key"] for x in kept if x["store"] == "shop.orders")
    assert set(rows) == expected and set(rows.values()) == {1}
    assert len({x["id"] for x in kept}) == len(kept)
    # a change that was not written when it was killed may be merged into a later one
    changes = [(x["position"], x["index"]) for x in kept if "position" in x]
    written = [(x["position"], x["index"]) for x in frames(tmp_path / "kept.ndjson", "change")
               if "oversize" in x]
    assert len(set(changes)) == len(changes) and set(written) <= set(changes)
    assert len(set(written)) == len(written)
    assert len(list(state_of(tmp_path).glob("dead_letters*.ndjson"))) > 3
    for path in ("kept.ndjson", "skipped.ndjson"):
        run("verify", path).check()
    listed = run("dead-letters", "list", "shop.yaml", "--count").check().out
    assert int(listed) == len(kept)


def test_letters_that_are_full_stop_the_sink_until_there_is_room(run, start, database, tmp_path):
    with sqlite3.connect(database) as db:
        db.execute("UPDATE orders SET note = hex(zeroblob(1500))")
    bound = "dead_letters: {file_bytes: 65536, files: 3}\n"
    configure(tmp_path, {"all": sink("all.ndjson"), "large": "file:large.ndjson"},
              bound + "stream: {retry_max_seconds: 1}\n")
    process = start("run", "shop.yaml")
    process.wait_for_line("have filled their 3 files of 65536 bytes")
    process.wait_until(lambda: (tmp_path / "large.ndjson").read_bytes().count(b'"end"') == 5, 30,
                       "the other sink")
    first = letters(state_of(tmp_path))

    def make_room():
        """Takes full files away, as somebody who has looked at them; true once all is written."""
        for path in state_of(tmp_path).glob("dead_letters.*.ndjson"):
            path.rename(tmp_path / path.name)
        return (tmp_path / "all.ndjson").read_bytes().count(b'"end"') == 5
    process.wait_until(make_room, 30, "the sink to go on by itself")
    run_done = process.interrupt().check()
    assert "opened again" in run_done.err
    all_of_them = letters(tmp_path) + letters(state_of(tmp_path))
    assert all_of_them[:len(first)] == first
    keys = [x["row_key"] for x in all_of_them]
    assert len(keys) == len(set(keys)) == 300
    run("verify", "all.ndjson").check()


def test_drop_oldest_goes_on_and_says_how_many(run, start, database, tmp_path):
    with sqlite3.connect(database) as db:
        db.execute("UPDATE orders SET note = hex(zeroblob(1500))")
    bound = "dead_letters: {file_bytes: 65536, files: 2, when_full: drop_oldest}\n"
    configure(tmp_path, {"all": sink("all.ndjson")}, bound)
    process = run_until_copied(start, tmp_path, ["all.ndjson"])
    result = process.interrupt().check()
    dropped = sum(map(int, re.findall(r"dropped the (\d+) oldest dead letters", result.err)))
    kept = letters(state_of(tmp_path))
    assert dropped > 50 and dropped + len(kept) == 300
    assert len(list(state_of(tmp_path).glob("dead_letters*.ndjson"))) == 2


def test_full_disk_for_the_letters_waits_and_loses_nothing(run, start, database, tmp_path):
    with sqlite3.connect(database) as db:
        db.execute("UPDATE orders SET note = hex(zeroblob(1500))")
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", disk],
                      check=False, capture_output=True).returncode != 0:
        pytest.skip("needs the right to mount a file system")
    try:
        configure(tmp_path, {"all": sink("all.ndjson")}, "state: disk/state\n")
        process = start("run", "shop.yaml")
        process.wait_for_line("dead_letters.ndjson: No space left on device")
        process.kill()  # a checkpoint, which has no room either, may have ended it
        held = len(letters(disk / "state"))
        subprocess.run(["mount", "-o", "remount,size=8m", disk], check=True)
        run_until_copied(start, tmp_path, ["all.ndjson"]).interrupt().check()
        assert 0 < held < 300
        keys = [x["row_key"] for x in letters(disk / "state")]
        assert len(keys) == len(set(keys)) == 300
    finally:
        subprocess.run(["umount", disk], check=False)
    run("verify", "all.ndjson").check()


def test_list_and_show_say_what_is_there(run, start, database, tmp_path):
    make_long(database, products=[1, 3], customers=[2])
    configure(tmp_path, {"all": sink("all.ndjson"), "other": sink("other.ndjson", limit=3000)},
              "dead_letters: {record_bytes: 100}\n")
    process = run_until_copied(start, tmp_path, ["all.ndjson", "other.ndjson"])
    make_long(database, customers=[4])
    process.wait_until(lambda: len(letters(state_of(tmp_path))) == 8, 30, "the letters")
    listed = run("dead-letters", "list", "shop.yaml").check()  # while it runs
    process.interrupt().check()
    kept = letters(state_of(tmp_path))
    lines = listed.out.splitlines()
    assert [line.split()[0] for line in lines] == [x["id"][:12] for x in kept]
    for line, letter in zip(lines, kept):
        assert f"  {letter['sink']}  {letter['store']}  " in line
        assert line.endswith(letter["reason"])
    by_table = run("dead-letters", "list", state_of(tmp_path), "--tables", "cust*,nothing", "--json",
                   "--sink", "all").check().out
    shown = [json.loads(line) for line in by_table.splitlines()]
    assert [(x["store"], x["sink"], x["kept"]) for x in shown] == [
        ("shop.customers", "all", 100)] * 2
    assert run("dead-letters", "list", "shop.yaml", "--sink", "all", "--count").check().out == "4\n"
    assert run("dead-letters", "list", "shop.yaml", "--sink", "none", "--count").check().out == "0\n"

    letter = kept[-1]
    whole = run("dead-letters", "show", "shop.yaml", letter["id"][:12]).check().out
    for text in (letter["id"], letter["destination"], letter["reason"], letter["record"]):
        assert text in whole
    raw = run("dead-letters", "show", "shop.yaml", letter["id"], "--raw").check().out
    assert raw == letter["record"] and len(raw) == 100
    again = run("dead-letters", "show", state_of(tmp_path), letter["id"], "--json").check().out
    assert json.loads(again) == letter
    assert "there is no dead letter 00" in run("dead-letters", "show", "shop.yaml",
                                               "0000000000000000").check(1).err


def test_lines_that_are_no_letters_are_said_and_the_others_shown(run, program, tmp_path):
    state = tmp_path / "state"
    state.mkdir()
    good = ('{"timestamp":"2026-01-01T00:00:00.000Z","store":"a.\\u001b[31mt","destination":"-",'
            '"reason":"r","bytes":1,"record_base64":"AAH/"}\n')
    (state / "dead_letters.1.ndjson").write_bytes(b"\xff\xfe\n" + good.encode() + b"{}\n")
    (state / "dead_letters.ndjson").write_text(good.replace(":1,", ":2,") + '{"torn')
    done = run("dead-letters", "list", state).check(3)
    assert len(done.out.splitlines()) == 2 and "\x1b" not in done.out
    assert f"{state}/dead_letters.1.ndjson:1: no dead letter: " in done.err
    assert f"{state}/dead_letters.1.ndjson:3: no dead letter: missing key `timestamp`" in done.err
    identity = done.out.split()[0]
    raw = subprocess.run([program, "dead-letters",
                          "show", state, identity, "--raw"], capture_output=True, check=False)
    assert raw.stdout == b"\x00\x01\xff" and raw.returncode == 3


@pytest.mark.parametrize("arguments,message", [
    ([], "say what to do"),
    (["lisst", "x"], "say what to do"),
    (["list"], "list wants one FILE or DIR"),
    (["list", "a", "b"], "list wants one FILE or DIR"),
    (["show", "a"], "show wants a FILE or DIR and an ID"),
    (["show", "a", "xyz"], "no id of a letter"),
    (["show", "a", "ab", "--sink", "s"], "are for list and replay"),
    (["replay", "a", "--count"], "are for list"),
    (["replay", "a", "--json"], "--json is for list and show"),
    (["list", "a", "--force"], "--force is for replay"),
    (["list", "a", "--raw"], "--raw is for show"),
    (["list", "a", "--json", "--count"], "--json goes with neither"),
])
def test_wrong_usage_is_said(run, arguments, message):
    assert message in run("dead-letters", *arguments).check(2).err


def test_no_directory_is_said(run, tmp_path):
    assert "nowhere is no state directory" in run("dead-letters", "list", "nowhere").check(2).err


def list_count(run, *options):
    return int(run("dead-letters", "list", "shop.yaml", "--count", *options).check().out)


def test_replay_copies_the_tables_anew_to_their_sinks(run, start, database, tmp_path):
    make_long(database, products=[1, 3], customers=[2])
    configure(tmp_path, {"all": sink("all.ndjson"), "other": sink("other.ndjson")})
    run_until_copied(start, tmp_path, ["all.ndjson", "other.ndjson"]).interrupt().check()
    assert list_count(run) == 6
    refused = run("dead-letters", "replay", "shop.yaml", "--sink", "all").check(2)
    assert "sink all would refuse a record of shop." in refused.err
    assert "limit 2000; raise max_record_bytes of the sink first" in refused.err
    refused = run("dead-letters", "replay", state_of(tmp_path)).check(2)
    assert "name its configuration instead" in refused.err
    assert list_count(run) == 6

    # of one table, for the next run
    configure(tmp_path, {"all": sink("all.ndjson", limit=100000), "other": sink("other.ndjson")})
    asked = run("dead-letters", "replay", "shop.yaml", "--sink", "all", "--tables", "prod*").check()
    assert asked.out == ("2 letters of sink all: 1 table will be copied anew by the next run:\n"
                         "    shop.products\n")
    assert list_count(run) == 4 and list_count(run, "--all") == 6
    assert list_count(run, "--sink", "all") == 1
    process = run_until_copied(start, tmp_path, ["all.ndjson"], ends=6)

    # of the others, while it runs
    refused = run("dead-letters", "replay", "shop.yaml").check(2)
    assert "sink other would refuse" in refused.err and "run the pipeline again" in refused.err
    asked = run("dead-letters", "replay", state_of(tmp_path), "--sink", "all").check()
    assert asked.out == ("1 letter of sink all: 1 table will be copied anew:\n"
                         "    shop.customers\n")
    process.wait_until(lambda: (tmp_path / "all.ndjson").read_bytes().count(b'"kind":"end"') == 7,
                       30, "the copy of customers")
    asked = run("dead-letters", "replay", "shop.yaml", "--force").check()
    assert "3 letters of sink other: 2 tables will be copied anew:" in asked.out
    # they come again, of new snapshots
    process.wait_until(lambda: list_count(run) == 3, 30, "the letters of the new copies")
    assert list_count(run, "--all") == 9
    assert "there are no letters to replay" in run(
        "dead-letters", "replay", "shop.yaml", "--sink", "all").check().out
    process.interrupt().check()
    run("verify", "all.ndjson").check()
    run("verify", "other.ndjson").check()
    assert [x["row_key"] for x in frames(tmp_path / "all.ndjson", "oversize")] == [
        "[2]", "[1]", "[3]"]
    listed = run("dead-letters", "list", "shop.yaml", "--all").check().out
    assert listed.count("(replayed)") == 6


def test_replay_passes_over_what_is_gone(run, start, database, tmp_path):
    make_long(database, products=[1], customers=[2])
    with sqlite3.connect(database) as db:
        db.execute("CREATE TABLE old (id INTEGER PRIMARY KEY, text TEXT)")
        db.execute("INSERT INTO old VALUES (1, ?)", (LONG,))
    configure(tmp_path, {"all": sink("all.ndjson"), "other": sink("other.ndjson")})
    run_until_copied(start, tmp_path, ["all.ndjson", "other.ndjson"], ends=6).interrupt().check()
    with sqlite3.connect(database) as db:
        db.execute("DROP TABLE old")
    configure(tmp_path, {"all": sink("all.ndjson", limit=100000)})
    process = run_until_copied(start, tmp_path, ["all.ndjson"], ends=6)
    process.wait_until(lambda: "shop.old" not in run("status", "shop.yaml").out, 30, "old to go")
    asked = run("dead-letters", "replay", "shop.yaml").check()
    assert asked.out.startswith("2 letters of sink all: 2 tables will be copied anew:\n")
    assert "note: 3 letters are passed over: there is no sink other any more\n" in asked.err
    assert "note: 1 letter is passed over: there is no table shop.old any more\n" in asked.err
    assert list_count(run) == 4
    process.interrupt().check()
    again = run("dead-letters", "replay", "shop.yaml").check()  # when it does not run
    assert again.out == "" and "there is no sink other any more" in again.err


def test_list_of_a_sink_or_table_without_letters_names_those_that_have_some(
        run, start, database, tmp_path):
    make_long(database, products=[1])
    configure(tmp_path, {"all": sink("all.ndjson")})
    run_until_copied(start, tmp_path, ["all.ndjson"]).interrupt().check()
    for options, asked in ((["--sink", "al"], "of sink al;"),
                           (["--tables", "no*,x"], "of a table that matches no*, x;")):
        listed = run("dead-letters", "list", "shop.yaml", *options).check(1)
        assert listed.out == ""
        assert listed.err == f"there is no letter {asked} there are some of sinks all and of " \
            "tables shop.products\n"
    assert list_count(run, "--sink", "al") == 0


def test_letters_of_postgres_have_schemas_and_positions(run, start, pg, tmp_path):
    pg.query("CREATE TABLE big (id int PRIMARY KEY, v text, j json)")
    pg.query("CREATE SCHEMA app CREATE TABLE big (id int PRIMARY KEY, v text)")
    pg.query("INSERT INTO big VALUES (1, repeat('x', 3000), '{\"a\":  1}')")
    pg.query("INSERT INTO app.big VALUES (1, repeat('x', 3000))")
    (tmp_path / "shop.yaml").write_text(
        "name: shop\nsource: ${URL}\nsinks:\n"
        f"  all: {sink('all.ndjson', '{tables: {app.*: skip, nothing: stop}}')}\n")
    environment = {"URL": pg.url()}
    process = start("run", "shop.yaml", env=environment)
    process.wait_until(lambda: (tmp_path / "all.ndjson").exists() and (
        tmp_path / "all.ndjson").read_bytes().count(b'"kind":"end"') == 2, 60, "the copies")
    pg.query("INSERT INTO big VALUES (2, repeat('y', 3000), NULL)")
    pg.query("UPDATE app.big SET v = repeat('y', 3000)")
    process.wait_until(lambda: (tmp_path / "all.ndjson").read_bytes().count(b'"oversize":') == 2,
                       30, "the changes")
    done = process.interrupt().check()
    assert "2 dead letters: " in done.err and "2 refused records skipped" in done.err
    assert "no table matches nothing\n" in done.err and "matches app" not in done.err
    row, change = letters(state_of(tmp_path))
    assert (row["store"], row["row_key"]) == (f"{pg.name}.public.big", "[1]")
    assert (change["key"], change["index"]) == ({"id": 2}, 0) and "/" in change["position"]
    listed = run("dead-letters", "list", state_of(tmp_path), "--tables", "public.*").check().out
    assert f'  change at "{change["position"]}", 0  ' in listed.splitlines()[1]
    run("verify", "all.ndjson").check()
    run("detach", "shop.yaml", env=environment).check()
