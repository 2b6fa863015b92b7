"""tidemark run: a configuration's sinks, beside writers, killed, resumed, edited between runs."""

import json
import re
import shutil
import sqlite3
import subprocess
import time

import pytest
from support import frames, pg_tables, pg_writers, shop
from support.process import ROOT, soak

TABLES = ["customers", "order_items", "orders", "products", "sessions"]
THREE = {"all": "file:all.ndjson", "each": "file:each/", "nowhere": '"null:"'}


@pytest.fixture
def database(tmp_path):
    path = tmp_path / "shop.db"
    shop.make_shop(path, orders=soak(4000, 20000))
    return path


def configure(tmp_path, sinks, name="shop", more="", file="shop.yaml"):
    lines = [f"name: {name}", "source: sqlite:shop.db", "sinks:"]
    lines += [f"  {key}: {place}" for key, place in sinks.items()]
    (tmp_path / file).write_text("\n".join(lines) + "\n" + more)


def paths_of(tmp_path, place):
    path = tmp_path / place.removeprefix("file:")
    return sorted(path.glob("*.ndjson")) if place.endswith("/") else [path]


def ends(paths):
    return sum(path.read_bytes().count(b'{"kind":"end"') for path in paths if path.exists())


def add_mark(database):
    """Writes a row that no writer touches; returns what tells it in a frame."""
    mark = f"mark {time.monotonic_ns()}"
    with sqlite3.connect(database, timeout=30) as db:
        db.execute("INSERT INTO sessions (token, seen) VALUES (?, 0)", (mark,))
    return mark.encode()


def wait_for(process, tmp_path, places, what, timeout=60):
    """Waits until a place's files hold these bytes, everywhere."""
    process.wait_until(
        lambda: all(any(what in path.read_bytes()[-200000:] for path in paths_of(tmp_path, place)
                        if path.exists()) for place in places), timeout, f"{what} in {places}")


def wait_for_ends(process, tmp_path, places, count=5, timeout=60):
    process.wait_until(
        lambda: all(ends(paths_of(tmp_path, place)) >= count for place in places), timeout,
        f"{count} ends in {places}")


def check_equal(run, database, tmp_path, places, snapshots=1):
    """Each place's frames give the database's tables, with so many complete snapshots of each."""
    with sqlite3.connect(database) as db:
        keys = frames.sqlite_keys(db, "shop")
        for place in places:
            tables = frames.rebuild(paths_of(tmp_path, place), keys)
            assert frames.differences(tables, db, "shop") == [], place
            for table in TABLES:
                statuses = [s.status for s in tables.snapshots_of(f"shop.{table}")]
                assert statuses == ["complete"] * snapshots, (place, table)
    for place in places:
        run("verify", *paths_of(tmp_path, place)).check()


def finish(start, run, database, tmp_path, places, name="shop"):
    """Runs until everything is copied and the newest change has come, then stops in order."""
    process = start("run", f"{name}.yaml")
    process.wait_for_line("; state in ")
    mark = add_mark(database)
    # ends alone do not tell: what was held and not yet in a checkpoint is copied again
    text = (tmp_path / f"{name}.yaml").read_text().partition("sinks:\n")[2]
    sinks = re.findall(r"^  (\w+):", re.split(r"^\S", text, flags=re.M)[0], re.M)
    process.wait_until(lambda: is_copied(run, name, sinks), 60, "all sinks to have their copies")
    wait_for(process, tmp_path, places, mark)
    return process.terminate().check()


def checkpoint(run, name="shop"):
    shown = run("checkpoint", "show", "--json", f".tidemark/{name}").check().out
    return json.loads(shown)["tidemark"]


def is_copied(run, name, sinks):
    """Whether the newest checkpoint has these sinks, and a copy of all tables for each."""
    result = run("checkpoint", "show", "--json", f".tidemark/{name}")
    if result.code != 0:
        return False  # there is none yet
    found = {sink["name"]: sink["seeded"] for sink in json.loads(result.out)["tidemark"]["sinks"]}
    return found == dict.fromkeys(sinks, True)


def test_run_killed_at_random_brings_every_sink_the_same(run, start, database, tmp_path, rng):
    configure(tmp_path, THREE, more="snapshot: {chunk_rows: 200}\n")
    with shop.Writer(database, seed=rng.randrange(1000), per_second=soak(200, 1000)) as writer:
        for _ in range(soak(6, 60)):
            process = start("run", "shop.yaml")
            time.sleep(rng.uniform(0.02, 0.5))
            process.kill()
        assert writer.stop() > 0
    result = finish(start, run, database, tmp_path, ["file:all.ndjson", "file:each/"])
    assert "sqlite:shop.db to all, each and nowhere: going on" in result.err
    assert "tidemark detach shop.yaml" in result.err
    check_equal(run, database, tmp_path, ["file:all.ndjson", "file:each/"])
    assert {s["name"]: s["seeded"] for s in checkpoint(run)["sinks"]} == \
        {"all": True, "each": True, "nowhere": True}


def test_sink_that_nobody_reads_holds_up_no_other(program, database, tmp_path):
    """Standard output is a pipe; the file is whole, and current, before anybody reads from it."""
    configure(tmp_path, {"all": "file:all.ndjson", "stream": '"-"'})
    process = subprocess.Popen([program, "run", "--quiet", "shop.yaml"], cwd=tmp_path,
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        path = tmp_path / "all.ndjson"
        deadline = time.monotonic() + 120
        while not path.exists() or ends([path]) < 5:
            assert time.monotonic() < deadline and process.poll() is None
            time.sleep(0.01)
        mark = add_mark(database)
        while mark not in path.read_bytes()[-2000:]:
            assert time.monotonic() < deadline and process.poll() is None
            time.sleep(0.01)
        lines = 0
        for line in process.stdout:
            lines += 1
            if mark in line:
                break
        assert lines == path.read_bytes().count(b"\n")
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def test_sink_that_is_added_gets_its_own_copy_and_no_other_is_made(run, start, database, tmp_path,
                                                                   rng):
    configure(tmp_path, {"all": "file:all.ndjson"})
    finish(start, run, database, tmp_path, ["file:all.ndjson"])
    with shop.Writer(database, seed=rng.randrange(1000), per_second=200) as writer:
        configure(tmp_path, THREE, more="snapshot: {chunk_rows: 300}\n")
        for _ in range(3):
            process = start("run", "shop.yaml")
            time.sleep(rng.uniform(0.05, 0.3))
            process.kill()
        assert writer.stop() > 0
    finish(start, run, database, tmp_path, ["file:all.ndjson", "file:each/"])
    check_equal(run, database, tmp_path, ["file:all.ndjson", "file:each/"])
    assert ends([tmp_path / "all.ndjson"]) == 5


def test_sink_that_is_removed_counts_no_longer(run, start, database, tmp_path):
    configure(tmp_path, THREE)
    finish(start, run, database, tmp_path, ["file:all.ndjson", "file:each/"])
    before = {path: path.read_bytes() for path in paths_of(tmp_path, "file:each/")}
    configure(tmp_path, {"all": "file:all.ndjson"})
    finish(start, run, database, tmp_path, ["file:all.ndjson"])
    assert {path: path.read_bytes() for path in paths_of(tmp_path, "file:each/")} == before
    assert [s["name"] for s in checkpoint(run)["sinks"]] == ["all"]
    check_equal(run, database, tmp_path, ["file:all.ndjson"])
    # nobody waits for it any more: the log is cut to what the sink that is left has
    with sqlite3.connect(database) as db:
        tables = [name for name, in db.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name LIKE '_tidemark%log%'")]
        assert sum(db.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0]
                   for name in tables) <= 2


def test_sink_that_is_removed_while_it_is_copied_does_not_hold_the_others(run, start, database,
                                                                          tmp_path):
    configure(tmp_path, THREE, more="snapshot: {chunk_rows: 50}\n")
    process = start("run", "shop.yaml")
    wait_for(process, tmp_path, ["file:all.ndjson"], b'"kind":"row"')
    process.kill()
    configure(tmp_path, {"all": "file:all.ndjson"})
    finish(start, run, database, tmp_path, ["file:all.ndjson"])
    check_equal(run, database, tmp_path, ["file:all.ndjson"])


def test_sink_that_comes_back_is_copied_again_where_it_may_append(run, start, database, tmp_path):
    configure(tmp_path, THREE)
    finish(start, run, database, tmp_path, ["file:all.ndjson", "file:each/"])
    configure(tmp_path, {"all": "file:all.ndjson"})
    finish(start, run, database, tmp_path, ["file:all.ndjson"])
    configure(tmp_path, THREE)
    result = run("run", "shop.yaml").check(2)
    assert "existing: append" in result.err
    configure(tmp_path, {**THREE, "each": "{place: file:each/, existing: append}"})
    process = start("run", "shop.yaml")
    process.wait_for_line("; state in ")
    wait_for_ends(process, tmp_path, ["file:each/"], 10)
    wait_for(process, tmp_path, ["file:all.ndjson", "file:each/"], add_mark(database))
    process.terminate().check()
    check_equal(run, database, tmp_path, ["file:all.ndjson"])
    check_equal(run, database, tmp_path, ["file:each/"], snapshots=2)


def test_new_sink_does_not_take_over_what_is_not_its_own(run, start, database, tmp_path):
    configure(tmp_path, {"all": "file:all.ndjson"})
    finish(start, run, database, tmp_path, ["file:all.ndjson"])
    (tmp_path / "precious.ndjson").write_text("mine\n")
    configure(tmp_path, {"all": "file:all.ndjson", "new": "file:precious.ndjson"})
    result = run("run", "shop.yaml").check(2)
    assert "precious.ndjson is there" in result.err
    assert (tmp_path / "precious.ndjson").read_text() == "mine\n"
    configure(tmp_path, {"all": "file:all.ndjson",
                         "new": "{place: file:precious.ndjson, existing: overwrite}"})
    finish(start, run, database, tmp_path, ["file:all.ndjson", "file:precious.ndjson"])
    check_equal(run, database, tmp_path, ["file:all.ndjson", "file:precious.ndjson"])


def test_sink_with_another_place_is_not_taken_for_the_old_one(run, start, database, tmp_path):
    configure(tmp_path, {"all": "file:all.ndjson"})
    finish(start, run, database, tmp_path, ["file:all.ndjson"])
    configure(tmp_path, {"all": "file:other.ndjson"})
    result = run("run", "shop.yaml").check(3)
    assert "has no record of what it holds" in result.err


def test_other_tables_are_copied_when_they_are_chosen(run, start, database, tmp_path):
    configure(tmp_path, {"all": "file:all.ndjson"}, more="tables: [orders]\n")
    process = start("run", "shop.yaml")
    wait_for_ends(process, tmp_path, ["file:all.ndjson"], 1)
    process.terminate().check()
    configure(tmp_path, {"all": "file:all.ndjson"}, more="tables: [orders, products]\n")
    process = start("run", "shop.yaml")
    wait_for_ends(process, tmp_path, ["file:all.ndjson"], 2)
    process.terminate().check()
    configure(tmp_path, {"all": "file:all.ndjson"}, more="tables: [products]\n")
    process = start("run", "shop.yaml")
    process.wait_for_line("table shop.orders of the checkpoint is not among the tables to copy any more")
    process.wait_for_line("tables 1/1")
    process.terminate().check()
    with sqlite3.connect(database) as db:
        db.execute("DELETE FROM orders WHERE id = 1")   # nobody notes it
    configure(tmp_path, {"all": "file:all.ndjson"}, more="tables: [orders, products]\n")
    process = start("run", "shop.yaml")
    wait_for_ends(process, tmp_path, ["file:all.ndjson"], 3)
    process.terminate().check()
    with sqlite3.connect(database) as db:
        tables = frames.rebuild([tmp_path / "all.ndjson"], frames.sqlite_keys(db, "shop"))
        assert frames.differences(tables, db, "shop", ["orders", "products"]) == []


def test_two_pipelines_on_one_database_know_nothing_of_each_other(run, start, database, tmp_path,
                                                                  rng):
    configure(tmp_path, {"a": "file:a.ndjson"}, "one", file="one.yaml")
    configure(tmp_path, {"a": "file:b.ndjson"}, "two", file="two.yaml")
    with shop.Writer(database, seed=rng.randrange(1000), per_second=200) as writer:
        processes = [start("run", "one.yaml"), start("run", "two.yaml")]
        for i, (file, place) in enumerate([("one.yaml", "file:a.ndjson"),
                                           ("two.yaml", "file:b.ndjson")]):
            processes[i].wait_until(
                lambda place=place, i=i: ends(paths_of(tmp_path, place)) > 0
                or not processes[i].running(), what="a first table")
            if not processes[i].running():  # the other was there at the same moment, and before
                assert "run the same command again" in processes[i].wait().check(3).err
                processes[i] = start("run", file)
        wait_for_ends(processes[0], tmp_path, ["file:a.ndjson"])
        wait_for_ends(processes[1], tmp_path, ["file:b.ndjson"])
        processes[0].kill()
        assert writer.stop() > 0
    mark = add_mark(database)
    wait_for(processes[1], tmp_path, ["file:b.ndjson"], mark)
    processes[1].terminate().check()
    check_equal(run, database, tmp_path, ["file:b.ndjson"])
    run("detach", "two.yaml").check()
    finish(start, run, database, tmp_path, ["file:a.ndjson"], "one")
    check_equal(run, database, tmp_path, ["file:a.ndjson"])
    run("detach", "one.yaml").check()
    with sqlite3.connect(database) as db:
        assert db.execute("SELECT count(*) FROM sqlite_schema WHERE name LIKE '%tidemark%'"
                          ).fetchone() == (0,)


def test_run_of_a_postgres_database_killed_and_edited(run, start, pg, tmp_path, rng):
    """Beside writers: kills, a sink added between them, the end of it all by detach."""
    def write(*sinks):
        (tmp_path / "pg.yaml").write_text(
            "name: pg\nsource: ${URL}\nsnapshot: {chunk_rows: 20}\nsinks: "
            + "{" + ", ".join(f"{sink}: 'file:{sink}.ndjson'" for sink in sinks) + "}\n")

    def last_change_is_there():
        return all(path.exists() and b"the last one" in path.read_bytes()[-200000:]
                   and ends([path]) >= 7 for path in paths)
    environment = {"URL": pg.url()}
    paths = [tmp_path / "one.ndjson", tmp_path / "two.ndjson"]
    pg_writers.make_tables(pg.session())
    pg.query("CREATE TABLE marks (id int PRIMARY KEY, v text)")
    with pg_writers.Writers(pg.server, pg.name, rng) as writers:
        for sinks in [["one"], ["one"], ["one", "two"], ["one", "two"]]:
            write(*sinks)
            process = start("run", "pg.yaml", env=environment)
            time.sleep(rng.uniform(0.3, 1.0))
            assert process.running(), process.err()
            process.kill()
        assert writers.stop() > 0
    process = start("run", "pg.yaml", env=environment)
    process.wait_for_line("; state in ")
    process.wait_until(lambda: is_copied(run, "pg", ["one", "two"]), 60, "all sinks to have their copies")
    pg.query("INSERT INTO marks VALUES (1, 'the last one')")
    process.wait_until(last_change_is_there, 60, what="the last change in both")
    assert "${URL} to one and two: going on" in process.interrupt().check().err
    for path in paths:
        pg_tables.check(pg, path)
    run("verify", *paths).check()
    run("detach", "pg.yaml", env=environment).check()
    assert pg.server.slots(pg.name) == pg.server.publications(pg.name) == []


def test_second_run_of_a_configuration_is_refused(run, start, database, tmp_path):
    configure(tmp_path, {"all": "file:all.ndjson"})
    process = start("run", "shop.yaml")
    wait_for_ends(process, tmp_path, ["file:all.ndjson"])
    for command in ("run", "detach"):
        assert str(process.pid) in run(command, "shop.yaml").check(2).err
    process.interrupt().check()


def test_run_from_another_folder_finds_what_the_file_names(run, start, database, tmp_path,
                                                           monkeypatch):
    configure(tmp_path, {"all": "file:all.ndjson", "stream": '"-"'})
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    process = start("run", "../shop.yaml", cwd=elsewhere)
    wait_for_ends(process, tmp_path, ["file:all.ndjson"])
    result = process.interrupt().check()
    assert result.out.count('{"kind":"end"') == 5 and "followed" not in result.out
    assert (tmp_path / ".tidemark" / "shop").is_dir()
    assert not list(elsewhere.iterdir())
    run("detach", "../shop.yaml", cwd=elsewhere).check()


def test_detach_ends_a_pipeline_and_its_next_run_starts_anew(run, start, database, tmp_path):
    configure(tmp_path, {"all": "file:all.ndjson"})
    assert "was never run" in run("detach", "shop.yaml").check().out
    finish(start, run, database, tmp_path, ["file:all.ndjson"])
    assert "removed" in run("detach", "shop.yaml").check().out
    assert "existing: overwrite" in run("run", "shop.yaml").check(2).err
    configure(tmp_path, {"all": "{place: file:all.ndjson, existing: overwrite}"})
    finish(start, run, database, tmp_path, ["file:all.ndjson"])
    check_equal(run, database, tmp_path, ["file:all.ndjson"])


def test_limits_of_a_sink_are_its_own(run, start, database, tmp_path):
    with sqlite3.connect(database) as db:
        db.execute("INSERT INTO products VALUES (99999, 'x', ?, 1, 1, NULL)", ("long " * 1000,))
    configure(tmp_path, {"all": "file:all.ndjson",
                         "small": "{place: file:small.ndjson, max_record_bytes: 2000}"},
              more="dead_letters: {record_bytes: 100}\ntables: [products]\n")
    process = start("run", "shop.yaml")
    wait_for_ends(process, tmp_path, ["file:all.ndjson", "file:small.ndjson"], 1)
    process.interrupt().check()
    assert b"long long" in (tmp_path / "all.ndjson").read_bytes()
    assert b"long long" not in (tmp_path / "small.ndjson").read_bytes()
    letters = list((tmp_path / ".tidemark" / "shop").glob("dead_letters*"))
    (letter,) = [json.loads(line) for path in letters for line in path.read_text().splitlines()]
    assert len(letter["record"]) == 100 and letter["bytes"] > 5000


def test_check_says_every_mistake_and_what_the_source_lacks(run, database, tmp_path):
    configure(tmp_path, {"all": "file:all.ndjson"}, more="tables: [orders]\n")
    result = run("check", "shop.yaml").check()
    assert result.out.startswith("1 table can be copied:\n    orders (id)\n")
    assert not (tmp_path / ".tidemark").exists()
    configure(tmp_path, {"all": "fiel:all.ndjson"}, more="snapshots: {}\n")
    for command in ("check", "run", "detach"):
        result = run(command, "shop.yaml").check(2)
        assert result.err.splitlines() == [
            'shop.yaml:4:8: all: "fiel:all.ndjson" names no sink; write file:PATH, file:DIR/, '
            'archive:PATH, null: or -',
            'shop.yaml:5:1: a configuration has no key "snapshots"; did you mean snapshot?',
            f"tidemark: {command}: shop.yaml has 2 mistakes"]
    assert run("run", "none.yaml").check(3).err == \
        "tidemark: run: cannot open none.yaml: No such file or directory\n"


def test_secrets_are_used_and_never_shown(run, tmp_path):
    (tmp_path / "shop.yaml").write_text(
        "name: shop\nsource: postgres://ann:${PW}@127.0.0.1:1/shop?application_name=${file:app}\n"
        'sinks: {none: "null:"}\n')
    (tmp_path / "app").write_text("hunter3\n")
    for command in ("check", "run"):
        result = run(command, "shop.yaml", env={"PW": "hunter/2"}).check(3)
        assert "hunter" not in result.out + result.err and "127.0.0.1" in result.err


def test_example_runs(run, start, database, tmp_path):
    shutil.copy(ROOT / "examples" / "shop.yaml", tmp_path)
    run("check", "shop.yaml").check()
    finish(start, run, database, tmp_path, ["file:shop.ndjson", "file:shop-tables/"])
    check_equal(run, database, tmp_path, ["file:shop.ndjson", "file:shop-tables/"])


def test_sink_that_was_added_to_a_quiet_source_is_not_copied_again(run, start, database, tmp_path):
    configure(tmp_path, {"all": "file:all.ndjson"})
    finish(start, run, database, tmp_path, ["file:all.ndjson"])
    configure(tmp_path, {"all": "file:all.ndjson", "late": "file:late.ndjson"})
    for _ in range(3):
        process = start("run", "shop.yaml")
        wait_for_ends(process, tmp_path, ["file:late.ndjson"])
        process.wait_until(lambda: is_copied(run, "shop", ["all", "late"]), 30, "the copy of late")
        assert "copied anew" not in process.terminate().check().err
    assert ends([tmp_path / "late.ndjson"]) == 5


def test_standard_output_that_was_closed_fails_its_sink_alone(program, database, tmp_path):
    configure(tmp_path, {"stream": '"-"', "file": "file:all.ndjson"})
    process = subprocess.Popen([program, "run", "--quiet", "shop.yaml"], cwd=tmp_path,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    process.stdout.readline()
    process.stdout.close()
    line = next(line for line in process.stderr if "standard output was closed" in line)
    assert "sink stream has failed" in line
    process.terminate()
    assert process.wait(30) != 0
    process.stderr.close()
