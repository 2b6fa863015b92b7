"""status, backfill, pause and resume: of pipelines that run, that were stopped, that were killed."""

import json
import os
import signal
import socket
import sqlite3
import stat
import time

import pytest
import test_run
from support import frames, pg_tables, pg_writers, shop
from support.process import Process, soak

TWO = {"all": "file:all.ndjson", "each": "file:each/"}
PLACES = list(TWO.values())
STATE = ".tidemark/shop"


@pytest.fixture
def database(tmp_path):
    path = tmp_path / "shop.db"
    shop.make_shop(path, orders=soak(3000, 20000))
    return path


@pytest.fixture
def pipeline(start, tmp_path):
    """pipeline() starts it anew, or again, once its state is there."""
    test_run.configure(tmp_path, TWO, more="snapshot: {chunk_rows: 100}\n")

    def call():
        process = start("run", "--quiet", "shop.yaml")
        process.wait_for_line("; state in ")
        return process
    return call


def report(run, file="shop.yaml"):
    """What the running pipeline says; None while it does not say anything."""
    result = run("status", "--json", file)
    assert result.code in (0, 1), result.err
    found = json.loads(result.out)
    return found if "sinks" in found else None


def wait_for_report(process, run, condition, what, timeout=30, file="shop.yaml"):
    """Waits until the condition holds of a report, and returns the report."""
    def look():
        found = report(run, file)
        return found if found and condition(found) else None
    return process.wait_until(look, timeout, what)


def is_copied(found):
    """Every sink has its first copy, and nothing is asked for."""
    return all(sink["seeded"] for sink in found["sinks"]) and \
        all(one["state"] == "done" for one in found["snapshots"])


def sink_of(found, name):
    return next(sink for sink in found["sinks"] if sink["name"] == name)


def checkpoint(run, directory=STATE):
    shown = run("checkpoint", "show", "--json", directory).check().out
    return json.loads(shown)["tidemark"]


def snapshots(tmp_path, place, table):
    """The ids of a table's complete snapshots in what a sink has written, oldest first."""
    ids = []
    for path in test_run.paths_of(tmp_path, place):
        for line in path.read_bytes().splitlines():
            if line.startswith(b'{"kind":"end"'):
                frame = json.loads(line)
                if frame["store"] == f"shop.{table}":
                    ids.append(frame["snapshot_id"])
    return ids


def finish(process, run, database, tmp_path, places=PLACES):
    """Waits until all is copied and the newest change has come, and stops in order."""
    wait_for_report(process, run, is_copied, "all copies to be done", 60)
    mark = test_run.add_mark(database)
    test_run.wait_for(process, tmp_path, places, mark)
    process.terminate().check()


def check_current(run, database, tmp_path, places=PLACES):
    """Each place's frames give the tables as they are, and none of its snapshots is cut short."""
    with sqlite3.connect(database) as db:
        keys = frames.sqlite_keys(db, "shop")
        for place in places:
            tables = frames.rebuild(test_run.paths_of(tmp_path, place), keys)
            assert frames.differences(tables, db, "shop") == [], place
    for place in places:
        run("verify", *test_run.paths_of(tmp_path, place)).check()


# -- status

def test_status_of_a_pipeline_that_runs(run, database, tmp_path, pipeline):
    process = pipeline()
    found = wait_for_report(process, run, is_copied, "the copies")
    assert found["state"] == "following"
    assert found["pipeline"].startswith("shop-")
    assert [sink["name"] for sink in found["sinks"]] == ["all", "each"]
    assert {sink["state"] for sink in found["sinks"]} == {"running"}
    assert {one["store"] for one in found["snapshots"]} == {f"shop.{t}" for t in shop.TABLES}
    shown = run("status", "shop.yaml").check().out
    for pattern in ("pipeline    shop-", ": following\n", "source      sqlite:shop.db\n", "SINK ",
                    "SNAPSHOT ", "shop.orders", " done\n"):
        assert pattern in shown
    assert run("status").check().out.splitlines()[0] == shown.splitlines()[0]
    assert run("status", STATE).check().out.splitlines()[0] == shown.splitlines()[0]
    mode = os.lstat(tmp_path / STATE / "control").st_mode
    assert stat.S_ISSOCK(mode) and stat.S_IMODE(mode) == 0o600
    assert stat.S_IMODE(os.stat(tmp_path / STATE).st_mode) == 0o700
    finish(process, run, database, tmp_path)
    assert not (tmp_path / STATE / "control").exists()


def test_status_of_a_pipeline_that_does_not_run(run, database, tmp_path, pipeline):
    result = run("status", "shop.yaml").check(1)
    assert "never" in result.out
    process = pipeline()
    wait_for_report(process, run, is_copied, "the copies")
    process.terminate().check()
    for file in ("shop.yaml", STATE):
        result = run("status", file).check(1)
        assert "is not running" in result.out
        assert "shop.orders" in result.out or "orders: done" in result.out
    found = json.loads(run("status", "--json", "shop.yaml").check(1).out)
    assert found["state"] == "not running"
    assert found["checkpoint"]["tidemark"] == checkpoint(run)


def test_status_of_a_stopped_pipeline_has_a_line_a_table(run, database, tmp_path, pipeline):
    process = pipeline()
    finish(process, run, database, tmp_path)
    for _ in range(3):  # old copies are not shown
        run("backfill", "shop.yaml", "--sink", "each", "--tables", "orders").check()
    run("pause", "shop.yaml", "--sink", "all").check()
    lines = run("status", "shop.yaml").check(1).out.splitlines()
    assert "asked for   shop.orders for each" in lines
    assert "sinks       all: has its first copies, paused" in lines
    assert "            each: has its first copies" in lines
    assert lines.index("asked for   shop.orders for each") < lines.index("TABLE             COPIES")
    tables = {line.split()[0]: line.split(None, 1)[1] for line in lines if line[:5] == "shop."}
    assert tables.pop("shop.orders") == "done: all; queued: each"
    assert set(tables.values()) == {"done: all, each"} and len(tables) == 4


def test_status_of_a_killed_pipeline_and_of_the_next(run, database, tmp_path, pipeline):
    process = pipeline()
    wait_for_report(process, run, is_copied, "the copies")
    process.kill()
    assert (tmp_path / STATE / "control").exists()
    assert "is not running" in run("status", "shop.yaml").check(1).out
    process = pipeline()
    wait_for_report(process, run, is_copied, "the copies")
    run("status", "shop.yaml").check()
    finish(process, run, database, tmp_path)


def test_status_without_its_secrets_and_with_mistakes(run, tmp_path, database):
    """Whoever asks need not have what only the pipeline needs."""
    test_run.configure(tmp_path, {"all": "file:${NOWHERE}.ndjson"}, more="snapshots: 7\n")
    assert "never" in run("status", "shop.yaml").check(1).out
    test_run.configure(tmp_path, TWO, more="state: ${NOWHERE}\n")
    assert "NOWHERE" in run("status", "shop.yaml").check(2).err


def test_status_is_asked_of_no_pipeline_or_of_several(run, tmp_path, database):
    assert "name a configuration" in run("status").check(2).err
    run("status", "nowhere").check(2)
    run("status", "nowhere.yaml").check(3)
    for name in ("one", "two"):
        run("copy", "--keep", "sqlite:shop.db", f"file:{name}.ndjson", "--state",
            f".tidemark/{name}").check()
    result = run("status").check(2)
    assert ".tidemark/one\n.tidemark/two\n" in result.err
    assert "is not running" in run("status", ".tidemark/two").check(1).out


def test_status_says_which_sink_cannot_write(run, program, tmp_path, database):
    """Files may grow no further, as on a full disk; the other sink has its own in a pipe."""
    test_run.configure(tmp_path, {"all": "file:all.ndjson", "nowhere": '"null:"'})
    blocks = database.stat().st_size // 1024 + 200
    line = f"trap '' XFSZ; ulimit -f {blocks}; exec {program} run shop.yaml"
    with Process("-c", line, argv0="/bin/bash", cwd=tmp_path) as process:
        found = wait_for_report(process, run, lambda found: sink_of(found, "all")["error"],
                                "an error")
        assert sink_of(found, "all")["state"] == "waiting"
        assert sink_of(found, "all")["retry_seconds"] >= 0
        assert sink_of(found, "nowhere")["state"] == "running"
        shown = run("status", "shop.yaml").check(1).out
        assert "all: " in shown and "File too large; tried again in " in shown


def test_status_of_a_copy_that_ends(run, program, tmp_path, database):
    """It waits for a sink that cannot write, and says so at once."""
    blocks = database.stat().st_size // 1024 + 200
    line = (f"trap '' XFSZ; ulimit -f {blocks}; "
            f"exec {program} copy sqlite:shop.db file:out.ndjson --follow --state here")
    with Process("-c", line, argv0="/bin/bash", cwd=tmp_path) as process:
        process.wait_for_line("File too large; opened again")
        process.signal(signal.SIGINT)
        wait_for_report(process, run, lambda found: found["state"] == "draining", "the end", 10,
                        "here")
        began = time.monotonic()
        run("status", "here").check(1)
        assert time.monotonic() - began < 3.5
        process.interrupt(timeout=10)


def test_status_of_a_copy(run, start, tmp_path, database):
    process = start("copy", "--follow", "sqlite:shop.db", "file:out.ndjson")
    process.wait_for_line("; state in ")
    directory = next((tmp_path / ".tidemark").iterdir())
    found = wait_for_report(process, run, is_copied, "the copy", file=directory)
    assert [sink["name"] for sink in found["sinks"]] == ["sink"]
    run("status").check()
    process.terminate().check()
    run("status").check(1)


def test_two_pipelines_have_a_status_each(run, start, tmp_path, database):
    started = {}
    for name in ("one", "two"):
        test_run.configure(tmp_path, {"all": f"file:{name}.ndjson"}, name=name,
                           file=f"{name}.yaml")
        started[name] = start("run", f"{name}.yaml")
        wait_for_report(started[name], run, is_copied, "the copies", file=f"{name}.yaml")
    for name in started:
        assert report(run, f"{name}.yaml")["pipeline"].startswith(f"{name}-")
    started["one"].kill()
    run("status", "one.yaml").check(1)
    run("status", "two.yaml").check()


def test_state_directory_with_a_long_path(run, start, tmp_path, database):
    directory = "/".join(["a directory with a long name"] * 10)
    test_run.configure(tmp_path, TWO, more=f"state: {directory}\n")
    process = start("run", "shop.yaml")
    wait_for_report(process, run, is_copied, "the copies")
    run("pause", "shop.yaml", "--sink", "all").check()
    run("backfill", directory, "--sink", "each", "--tables", "orders").check()
    run("resume", "shop.yaml", "--sink", "all").check()
    process.terminate().check()


def test_hostile_clients_break_nothing(run, database, tmp_path, pipeline, rng, monkeypatch):
    process = pipeline()
    wait_for_report(process, run, is_copied, "the copies")
    before = process.open_files()
    monkeypatch.chdir(tmp_path)  # a short path: Python connects to no long one
    lines = [b"", b"\n", b"{}\n", b"{\"command\":\"status\"", b"\xff" * 1000 + b"\n", b"[" * 9000,
             b"{\"command\":\"backfill\",\"tables\":[7]}\n", b"{\"command\":\"nothing\"}\n",
             b"{\"command\":\"pause\",\"sink\":\"\"}\n", b"x" * 200000]
    clients = []
    for _ in range(300):
        client = socket.socket(socket.AF_UNIX)
        client.connect(f"{STATE}/control")
        try:
            client.sendall(rng.choice(lines))
        except OSError:
            pass  # it was thrown out
        clients.append(client)
        if rng.random() < 0.7:
            clients.pop(rng.randrange(len(clients))).close()
    run("status", "shop.yaml", timeout=10).check()
    for client in clients:
        client.close()
    process.wait_until(lambda: process.open_files() <= before, 10, "no file left open")
    finish(process, run, database, tmp_path)


def ask(tmp_path, line):
    """What comes back over the socket for a line of a client's own."""
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(os.path.relpath(tmp_path / STATE / "control"))
        client.sendall(line + b"\n")
        with client.makefile("rb") as answer:
            return json.loads(answer.read())


def test_socket_says_what_is_wrong_with_a_request(run, database, tmp_path, pipeline, monkeypatch):
    process = pipeline()
    wait_for_report(process, run, is_copied, "the copies")
    monkeypatch.chdir(tmp_path)
    for command in (b"pause", b"resume"):
        answer = ask(tmp_path, b'{"command":"%s"}' % command)
        assert answer == {"status": "invalid", "message": "say which sink: all, each"}
    answer = ask(tmp_path, b'{"command":"backfill","table":"orders"}')
    assert answer["status"] == "corrupt" and "unknown key" in answer["message"]
    assert ask(tmp_path, b'{"command":"nothing"}')["status"] == "unsupported"
    assert ask(tmp_path, b"status")["status"] == "corrupt"
    process.terminate().check()


def test_process_that_does_not_answer_is_said_soon(run, database, tmp_path, pipeline):
    process = pipeline()
    wait_for_report(process, run, is_copied, "the copies")
    process.signal(signal.SIGSTOP)
    try:
        result = run("status", "shop.yaml", timeout=9).check(3)
    finally:
        process.signal(signal.SIGCONT)
    assert "does not answer: its process is stopped" in result.err and result.seconds < 30
    process.terminate().check()


# -- backfill

def test_backfill_of_a_pipeline_that_runs(run, database, tmp_path, pipeline):
    process = pipeline()
    wait_for_report(process, run, is_copied, "the copies")
    result = run("backfill", "shop.yaml", "--sink", "all", "--tables",
                 "order*,shop.products").check()
    assert result.out == "3 tables will be copied anew to all:\n" \
        "    shop.order_items\n    shop.orders\n    shop.products\n"
    process.wait_until(lambda: len(snapshots(tmp_path, PLACES[0], "products")) == 2, 30, "a copy")
    finish(process, run, database, tmp_path)
    for table in shop.TABLES:
        again = table in ("order_items", "orders", "products")
        assert len(set(snapshots(tmp_path, PLACES[0], table))) == (2 if again else 1), table
        assert len(set(snapshots(tmp_path, PLACES[1], table))) == 1, table
    check_current(run, database, tmp_path)


def test_backfill_of_everything(run, database, tmp_path, pipeline):
    process = pipeline()
    wait_for_report(process, run, is_copied, "the copies")
    result = run("backfill", "shop.yaml").check()
    assert result.out.startswith("5 tables will be copied anew to all and each:\n")
    finish(process, run, database, tmp_path)
    for place in PLACES:
        for table in shop.TABLES:
            assert len(set(snapshots(tmp_path, place, table))) == 2
    check_current(run, database, tmp_path)


@pytest.mark.parametrize("asked", ["products", "customers"])
def test_backfill_while_a_table_is_copied(run, database, tmp_path, pipeline, asked):
    """customers is the first to be copied: it is asked for while it is; products waits."""
    with shop.Writer(database, seed=3, per_second=200) as writer:
        process = pipeline()
        wait_for_report(process, run, lambda found: any(
            one["state"] == "running" and one["store"] == "shop.customers" or one["state"] == "done"
            for one in found["snapshots"]), "customers to be copied")
        run("backfill", "shop.yaml", "--tables", asked).check()
        wait_for_report(process, run, is_copied, "the copies")
        assert writer.stop() > 0
    finish(process, run, database, tmp_path)
    check_current(run, database, tmp_path)
    for place in PLACES:
        assert len(set(snapshots(tmp_path, place, asked))) in (1, 2)
    assert checkpoint(run)["requests"] == []


def test_backfill_outlives_a_kill_right_after_the_answer(run, database, tmp_path, pipeline):
    process = pipeline()
    wait_for_report(process, run, is_copied, "the copies")
    for count in range(2, 2 + soak(3, 30)):
        run("backfill", "shop.yaml", "--sink", "each", "--tables", "orders").check()
        process.kill()
        process = pipeline()
        wait_for_report(process, run, is_copied, "the copies")
        process.wait_until(
            lambda: len(set(snapshots(tmp_path, PLACES[1], "orders"))) >= count, 30, "the copy")
    finish(process, run, database, tmp_path)
    assert len(set(snapshots(tmp_path, PLACES[0], "orders"))) == 1
    check_current(run, database, tmp_path)


def test_backfill_at_random_moments(run, database, tmp_path, pipeline, rng):
    """Whatever was answered is done, whenever it was asked and whenever the pipeline was killed."""
    answered = {}
    with shop.Writer(database, seed=rng.randrange(1000), per_second=200) as writer:
        for _ in range(soak(8, 100)):
            process = pipeline()
            time.sleep(rng.uniform(0, 0.3))
            table = rng.choice(shop.TABLES)
            before = set(snapshots(tmp_path, PLACES[0], table))
            result = run("backfill", "shop.yaml", "--sink", "all", "--tables", table)
            if result.code == 0:
                answered[table] = before
            else:
                assert result.code == 2 and "copies" in result.err  # nothing was copied yet
            time.sleep(rng.choice([0, 0, rng.uniform(0, 0.2)]))
            process.kill()
        assert writer.stop() > 0
    process = pipeline()
    finish(process, run, database, tmp_path)
    assert checkpoint(run)["requests"] == []
    for table, before in answered.items():
        assert set(snapshots(tmp_path, PLACES[0], table)) - before, table
    check_current(run, database, tmp_path)


def test_backfill_of_a_pipeline_that_does_not_run(run, database, tmp_path, pipeline):
    assert "there is no state" in run("backfill", "shop.yaml").check(2).err
    process = pipeline()
    finish(process, run, database, tmp_path)
    before = checkpoint(run)
    result = run("backfill", "shop.yaml", "--tables", "orders,customers").check()
    assert result.out == "2 tables will be copied anew to all and each by the next run:\n" \
        "    shop.orders\n    shop.customers\n"
    after = checkpoint(run)
    ids = [request["id"] for request in after["requests"]]
    assert min(ids) > max(copy["request"] for copy in before["copies"])
    assert len(set(ids)) == 2
    for key in ("stores", "copies", "sinks", "source_state"):
        assert after[key] == before[key]
    process = pipeline()
    finish(process, run, database, tmp_path)
    for place in PLACES:
        assert len(set(snapshots(tmp_path, place, "orders"))) == 2
        assert len(set(snapshots(tmp_path, place, "products"))) == 1
    check_current(run, database, tmp_path)


@pytest.mark.parametrize("runs", [True, False])
def test_what_is_not_there_is_named_with_what_is(run, database, tmp_path, pipeline, runs):
    process = pipeline()
    wait_for_report(process, run, is_copied, "the copies")
    if not runs:
        process.terminate().check()
    assert "names no table" in run("backfill", "shop.yaml", "--tables", ",").check(2).err
    before = [request["id"] for request in checkpoint(run)["requests"]]
    result = run("backfill", "shop.yaml", "--sink", "nowhere").check(2)
    assert "nowhere" in result.err and "all" in result.err and "each" in result.err
    result = run("backfill", "shop.yaml", "--tables", "orders,nothing*").check(2)
    assert "nothing*" in result.err and "shop.products" in result.err
    for command in ("pause", "resume"):
        result = run(command, "shop.yaml", "--sink", "nowhere").check(2)
        assert "nowhere" in result.err and "all" in result.err
        run(command, "shop.yaml").check(2)
    assert {request["id"] for request in checkpoint(run)["requests"]} <= set(before)


# -- pause and resume

def test_pause_lets_the_others_go_on(run, database, tmp_path, pipeline):
    process = pipeline()
    wait_for_report(process, run, is_copied, "the copies")
    assert run("pause", "shop.yaml", "--sink", "each").check().out == "each is paused\n"
    found = report(run)
    assert sink_of(found, "each")["state"] == "paused"
    assert "paused" in run("status", "shop.yaml").check().out
    mark = test_run.add_mark(database)
    test_run.wait_for(process, tmp_path, PLACES[:1], mark)
    time.sleep(0.2)
    assert not any(mark in path.read_bytes() for path in test_run.paths_of(tmp_path, PLACES[1]))
    assert run("resume", "shop.yaml", "--sink", "each").check().out == "each goes on\n"
    test_run.wait_for(process, tmp_path, PLACES, mark)
    finish(process, run, database, tmp_path)
    test_run.check_equal(run, database, tmp_path, PLACES)


def test_paused_sink_whose_lane_is_full_stops_nobody_for_ever(run, start, database, tmp_path):
    """Everything can be asked and told meanwhile, and nothing is lost."""
    test_run.configure(tmp_path, TWO, more="stream: {lane_bytes: 65536, lane_items: 4, "
                       "stalled_after_seconds: 1}\n")
    process = start("run", "--quiet", "shop.yaml")
    wait_for_report(process, run, is_copied, "the copies")
    run("pause", "shop.yaml", "--sink", "each").check()
    with sqlite3.connect(database, timeout=30, isolation_level=None) as db:
        for i in range(60):
            db.execute("UPDATE orders SET note = ? WHERE id BETWEEN ? AND ? + 29",
                       ("x" * 300 + str(i), i * 30, i * 30))
    found = wait_for_report(process, run, lambda found: found["state"] == "stalled", "the stall")
    assert "each" in found["reason"]
    assert ": stalled for " in run("status", "shop.yaml").check(1).out
    run("backfill", "shop.yaml", "--tables", "products").check()
    run("pause", "shop.yaml", "--sink", "all").check()
    process.kill()
    process = start("run", "--quiet", "shop.yaml")
    process.wait_for_line("; state in ")
    for sink in TWO:
        run("resume", "shop.yaml", "--sink", sink).check()
    finish(process, run, database, tmp_path)
    check_current(run, database, tmp_path)
    for place in PLACES:
        assert len(set(snapshots(tmp_path, place, "products"))) == 2


def test_pause_outlives_kills_and_restarts(run, database, tmp_path, pipeline):
    process = pipeline()
    wait_for_report(process, run, is_copied, "the copies")
    run("pause", "shop.yaml", "--sink", "each").check()
    process.kill()
    process = pipeline()
    found = wait_for_report(process, run, lambda found: True, "a report")
    assert sink_of(found, "each")["state"] == "paused"
    mark = test_run.add_mark(database)
    test_run.wait_for(process, tmp_path, PLACES[:1], mark)
    process.terminate().check()
    assert not any(mark in path.read_bytes() for path in test_run.paths_of(tmp_path, PLACES[1]))
    result = run("resume", "shop.yaml", "--sink", "each").check()
    assert result.out == "each goes on; the pipeline does not run now\n"
    process = pipeline()
    test_run.wait_for(process, tmp_path, PLACES, mark)
    finish(process, run, database, tmp_path)
    test_run.check_equal(run, database, tmp_path, PLACES)


def test_pause_and_resume_at_random_moments(run, database, tmp_path, pipeline, rng):
    with shop.Writer(database, seed=rng.randrange(1000), per_second=200) as writer:
        process = pipeline()
        wait_for_report(process, run, lambda found: True, "a report")
        for _ in range(soak(10, 200)):
            run(rng.choice(["pause", "resume"]), "shop.yaml", "--sink",
                rng.choice(["all", "each"])).check()
            time.sleep(rng.choice([0, rng.uniform(0, 0.1)]))
            if rng.random() < 0.3:
                process.kill()
                process = pipeline()
        assert writer.stop() > 0
    for sink in TWO:
        run("resume", "shop.yaml", "--sink", sink).check()
    finish(process, run, database, tmp_path)
    check_current(run, database, tmp_path)


# -- PostgreSQL

def configure_pg(pg, tmp_path):
    (tmp_path / "shop.yaml").write_text(
        "name: shop\nsource: postgres://postgres:${NOT_NEEDED}@127.0.0.1:"
        f"{pg.server.port}/{pg.name}\nsinks:\n  one: file:one.ndjson\n  two: file:two/\n")


def test_postgres_pipeline_is_asked_and_told(run, start, pg, tmp_path):
    pg_writers.make_tables(pg.session())
    configure_pg(pg, tmp_path)
    environment = {"NOT_NEEDED": "s3cr3t"}
    process = start("run", "--quiet", "shop.yaml", env=environment)
    found = wait_for_report(process, run, is_copied, "the copies")
    assert found["held"].count("/") == 1 and "s3cr3t" not in json.dumps(found)
    run("backfill", "shop.yaml", "--sink", "one", "--tables", "lib.*ints").check()
    process.kill()
    run("pause", "shop.yaml", "--sink", "two").check()
    result = run("backfill", "shop.yaml", "--sink", "one", "--tables", f"{pg.name}.public.*")
    assert result.check().out.count("    ") == 2
    run("resume", "shop.yaml", "--sink", "two").check()
    process = start("run", "--quiet", "shop.yaml", env=environment)
    wait_for_report(process, run, is_copied, "the copies")
    process.wait_until(lambda: test_run.ends([tmp_path / "one.ndjson"]) >= 6 + 1 + 2, 30,
                       "the new copies")
    process.terminate().check()
    pg_tables.check(pg, tmp_path / "one.ndjson", complete=False)
    pg_tables.check(pg, *(tmp_path / "two").glob("*.ndjson"))
    run("verify", "one.ndjson").check()
    assert "s3cr3t" not in run("status", "shop.yaml").check(1).out
    run("detach", "shop.yaml", env=environment).check()


def test_pipeline_that_waits_for_the_server_is_starting(run, start, pg, tmp_path):
    """A replication slot is made only once every older transaction has ended."""
    pg_writers.make_tables(pg.session())
    configure_pg(pg, tmp_path)
    session = pg.session()
    session.query("BEGIN; SELECT pg_current_xact_id()")
    environment = {"NOT_NEEDED": "x"}
    process = start("run", "--quiet", "shop.yaml", env=environment)
    process.wait_until(lambda: run("status", "shop.yaml").out.endswith("is starting\n"), 20,
                       "the start")
    run("status", "shop.yaml").check(1)
    assert json.loads(run("status", "--json", "shop.yaml").check(1).out)["state"] == "starting"
    session.query("COMMIT")
    wait_for_report(process, run, is_copied, "the copies")
    process.terminate().check()
    run("detach", "shop.yaml", env=environment).check()
