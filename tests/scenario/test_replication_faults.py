"""Followers, publishers and networks that die, stall and come back: nothing is lost or doubled."""

import os
import pathlib
import re
import signal
import subprocess
import time

import pytest

from support import followers, proxy, shop
from support.followers import differences, rows_of, start_publisher
from support.process import soak
from support.trouble import MIB, Tmpfs, damage, wait_for


@pytest.fixture
def pipeline(start, tmp_path):
    """pipeline() writes a.tide, sealing often, from a shop that a writer changes."""
    writers = []

    def call(per_second=200, seal_rows=150, orders=200):
        shop.make_shop(tmp_path / "shop.db", orders=orders)
        (tmp_path / "shop.yaml").write_text(
            "name: shop\nsource: sqlite:shop.db\nsinks:\n"
            f"  kept: {{place: 'archive:a.tide', seal_rows: {seal_rows}}}\n")
        running = start("run", "shop.yaml", "--quiet")
        running.wait_until(lambda: (tmp_path / "a.tide").exists() and
                           rows_of(tmp_path / "a.tide") > 0, timeout=60)
        writers.append(shop.Writer(tmp_path / "shop.db", seed=11, per_second=per_second))
        return running, writers[-1].__enter__()
    yield call
    for writer in writers:
        writer.__exit__(None, None, None)


def segments(archive):
    return followers.ask(archive, "SELECT COUNT(*) FROM segments")[0][0]


def wait_equal(one, archive, *copies):
    """Until the copies hold what the archive holds, table by table, segments byte for byte."""
    for copy in copies:
        one.wait_until(lambda copy=copy: copy.exists() and differences(archive, copy) == [],
                       timeout=120, what=f"{copy.name} to hold the same")


def check_sound(run, *archives):
    for archive in archives:
        assert run("archive", "verify", "--full", archive).check().out.endswith(": sound\n")


def cat(run, archive, moment):
    """The orders as of a moment; where no copy was complete yet, the error instead."""
    result = run("archive", "cat", archive, "-t", "orders", "--as-of", moment)
    said = re.sub(r"^\S+Z ", "", result.err, flags=re.M)
    return result.code, result.out, said.replace(str(archive), "")


class Follower:
    """One that is killed and started again, behind a proxy of its own."""

    def __init__(self, start, folder, name, port):
        self.start = start
        self.copy = folder / name
        self.proxy = proxy.Proxy(port)
        self.process = None
        self.run()

    def run(self):
        self.process = self.start("archive", "subscribe", f"tcp://127.0.0.1:{self.proxy.port}",
                                  self.copy, "--follow", "--max-wait", "1", "--timeout", "5")

    def trouble(self, rng):
        what = rng.choice(("kill", "cut", "slow", "full", "cut later"))
        if what == "kill":
            self.process.kill()
            self.run()
        elif what == "cut":
            self.proxy.cut()
        elif what == "cut later":
            self.proxy.cut_after(rng.randrange(1, 20000))
        else:
            self.proxy.slow(rng.randrange(3000, 100000) if what == "slow" else None)


def test_three_followers_in_all_kinds_of_trouble_end_up_equal(start, run, tmp_path, rng, pipeline):
    """Each is killed and started, the network is cut and slowed, the publisher is killed."""
    running, writer = pipeline()
    archive = tmp_path / "a.tide"
    publisher = start_publisher(start, "a.tide", "tcp://127.0.0.1:0", "--keep-alive", "1")
    address = f"tcp://127.0.0.1:{publisher.port}"
    three = [Follower(start, tmp_path, f"{name}.tide", publisher.port) for name in "bcd"]
    try:
        for turn in range(soak(40, 3000)):
            time.sleep(rng.random() * 0.2)
            rng.choice(three).trouble(rng)
            if turn % 10 == 9:
                publisher.kill()
                publisher = start_publisher(start, "a.tide", address, "--keep-alive", "1")
            for one in three:
                assert one.process.running(), one.process.err()
        for one in three:
            one.proxy.slow(None)
        writer.stop()
        running.terminate(timeout=120).check()
        wait_equal(publisher, archive, *(one.copy for one in three))
        for one in three:
            one.process.terminate().check()
    finally:
        for one in three:
            one.proxy.close()
    assert segments(archive) > 5
    check_sound(run, archive, *(one.copy for one in three))
    check_states(run, archive, [one.copy for one in three], rng)


def check_states(run, archive, copies, rng):
    """At random moments all archives rebuild the same state, and tell the same changes."""
    first, last = followers.ask(archive, "SELECT MIN(first_ts), MAX(last_ts) FROM segments"
                                         " WHERE stream = 'shop.orders'")[0]
    moments = [rng.randrange(first // 1000000, last // 1000000 + 1) for _ in range(soak(4, 40))]
    for moment in [*moments, last // 1000000 + 1]:
        text = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(moment // 1000)) + \
            f".{moment % 1000:03}Z"
        wanted = cat(run, archive, text)
        assert wanted[0] == 0 or moment in moments, wanted
        for copy in copies:
            assert cat(run, copy, text) == wanted, text
    changes = run("archive", "cat", archive, "--changes", timeout=600).check().out
    for copy in copies:
        assert run("archive", "cat", copy, "--changes", timeout=600).check().out == changes


def test_publisher_that_is_paused_over_several_sealings_loses_nothing(start, run, tmp_path,
                                                                      pipeline):
    running, writer = pipeline(per_second=300, seal_rows=60)
    archive = tmp_path / "a.tide"
    publisher = start_publisher(start, "a.tide", "tcp://127.0.0.1:0")
    follower = start("archive", "subscribe", publisher.address, "b.tide", "--follow")
    follower.wait_until(lambda: (tmp_path / "b.tide").exists() and
                        rows_of(tmp_path / "b.tide") > 500, timeout=60)
    publisher.signal(signal.SIGSTOP)
    before = segments(archive)
    running.wait_until(lambda: segments(archive) > before + 8, timeout=120,
                       what="several sealings")
    publisher.signal(signal.SIGCONT)
    writer.stop()
    running.terminate(timeout=120).check()
    wait_equal(follower, archive, tmp_path / "b.tide")
    follower.terminate().check()
    check_sound(run, tmp_path / "b.tide")


def test_silent_follower_of_a_paused_publisher_misses_nothing(program, start, run, tmp_path,
                                                              pipeline):
    """A pipe gets rows alone: those that were sealed before they were sent come out of segments."""
    running, writer = pipeline(per_second=300, seal_rows=60)
    archive, copy = tmp_path / "a.tide", tmp_path / "b.tide"
    pipe = (f"{program} archive publish a.tide --listen - --follow --quiet |"
            f" {program} archive subscribe - b.tide --quiet; echo ${{PIPESTATUS[*]}}")
    with subprocess.Popen(["bash", "-c", pipe], cwd=tmp_path, stdout=subprocess.PIPE, text=True,
                          stderr=subprocess.PIPE, start_new_session=True) as piped:
        try:
            running.wait_until(lambda: copy.exists() and rows_of(copy) > 500, timeout=60)
            publisher, = children_of(piped.pid, "publish")
            os.kill(publisher, signal.SIGSTOP)
            before = segments(archive)
            running.wait_until(lambda: segments(archive) > before + 8, timeout=120,
                               what="several sealings")
            os.kill(publisher, signal.SIGCONT)
            writer.stop()
            running.terminate(timeout=120).check()
            wait_for(lambda: rows_of(copy) == rows_of(archive),
                     what="the rows that were sealed meanwhile")
            os.kill(publisher, signal.SIGTERM)
            out, err = piped.communicate(timeout=120)
        finally:
            if piped.poll() is None:
                os.killpg(piped.pid, signal.SIGKILL)
    assert out.endswith(" 0\n"), (out, err)
    check_sound(run, copy)
    assert run("archive", "cat", "b.tide", "--changes").check().out == \
        run("archive", "cat", "a.tide", "--changes").check().out


def children_of(pid, word):
    """The children of a shell whose command line has the word."""
    children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(child) for child in children
            if word in pathlib.Path(f"/proc/{child}/cmdline").read_text()]


def test_follower_that_does_not_read_is_dropped_and_catches_up(start, run, tmp_path, proxy_to):
    """More than the kernel's buffers hold is in the archive; the others are not held up."""
    shop.make_shop(tmp_path / "shop.db", orders=20000)
    run("copy", "sqlite:shop.db", "archive:a.tide", "--quiet").check()
    blob_up(tmp_path / "a.tide")
    archive = tmp_path / "a.tide"
    publisher = start_publisher(start, "a.tide", "tcp://127.0.0.1:0", "--timeout", "2")
    follower = start("archive", "subscribe", publisher.address, "b.tide", "--follow",
                     "--max-wait", "1")
    publisher.wait_for_line(" follows; ")
    follower.signal(signal.SIGSTOP)
    publisher.wait_for_line("was dropped: it did not take what was sent in time", timeout=60)
    run("archive", "subscribe", publisher.address, "c.tide").check()
    follower.signal(signal.SIGCONT)
    wait_equal(follower, archive, tmp_path / "b.tide", tmp_path / "c.tide")
    follower.terminate().check()


def blob_up(archive):
    """Makes it larger than the kernel buffers of a connection: caller rows of 512 KiB."""
    db = followers.sqlite3.connect(archive)
    with db:
        db.execute("PRAGMA synchronous = OFF")
        for number in range(64):
            db.execute("INSERT INTO caller_rows SELECT id, 'note', ?, randomblob(524288)"
                       " FROM sources", (number,))
    db.close()


def test_archive_that_goes_while_it_is_published(start, run, tmp_path):
    """Its followers keep what they have, and go on when it is there again."""
    shop.make_shop(tmp_path / "shop.db", orders=50)
    run("copy", "sqlite:shop.db", "archive:a.tide", "--quiet").check()
    publisher = start_publisher(start, "a.tide", "tcp://127.0.0.1:0")
    (tmp_path / "a.tide").rename(tmp_path / "gone.tide")
    result = run("archive", "subscribe", publisher.address, "b.tide").check(3)
    assert "what it follows cannot be read just now" in result.err
    publisher.wait_for_line("cannot be served: .*a.tide")
    (tmp_path / "gone.tide").rename(tmp_path / "a.tide")
    run("archive", "subscribe", publisher.address, "b.tide").check()
    assert differences(tmp_path / "a.tide", tmp_path / "b.tide") == []
    publisher.terminate().check()


def test_damage_at_the_publisher_is_said_to_followers(start, run, tmp_path):
    shop.make_shop(tmp_path / "shop.db", orders=300)
    run("copy", "sqlite:shop.db", "archive:a.tide", "--quiet").check()
    publisher = start_publisher(start, "a.tide", "tcp://127.0.0.1:0")
    damage(tmp_path / "a.tide", first=1, pages=8)
    follower = start("archive", "subscribe", publisher.address, "b.tide", "--follow")
    assert "the publisher refuses: the archive that it follows is damaged" in \
        follower.wait(60).check(3).err
    assert not (tmp_path / "b.tide").exists()
    publisher.terminate().check()


def test_full_disk_of_a_follower_is_said_and_gone_on_from(start, run, tmp_path):
    shop.make_shop(tmp_path / "shop.db", orders=100)
    run("copy", "sqlite:shop.db", "archive:a.tide", "--quiet").check()
    blob_up(tmp_path / "a.tide")
    publisher = start_publisher(start, "a.tide", "tcp://127.0.0.1:0")
    with Tmpfs(96 * MIB) as small:
        small.fill(leave=8 * MIB)
        result = run("archive", "subscribe", publisher.address, small.path / "b.tide").check(3)
        assert "full" in result.err
        small.empty()
        run("archive", "subscribe", publisher.address, small.path / "b.tide").check()
        assert differences(tmp_path / "a.tide", small.path / "b.tide") == []
        check_sound(run, small.path / "b.tide")


def test_full_disk_is_waited_out_by_who_goes_on(start, run, tmp_path):
    """Whatever was half done when the room ended: nothing else is taken for the reason."""
    shop.make_shop(tmp_path / "shop.db", orders=100)
    run("copy", "sqlite:shop.db", "archive:a.tide", "--quiet").check()
    blob_up(tmp_path / "a.tide")
    publisher = start_publisher(start, "a.tide", "tcp://127.0.0.1:0")
    with Tmpfs(96 * MIB) as small:
        small.fill(leave=8 * MIB)
        follower = start("archive", "subscribe", publisher.address, small.path / "b.tide",
                         "--follow", "--max-wait", "1")
        follower.wait_until(lambda: follower.err().count("full") >= 5, timeout=90)
        small.empty()
        follower.wait_until(lambda: rows_of(small.path / "b.tide") == rows_of(tmp_path / "a.tide"),
                            timeout=90)
        follower.terminate().check()
        assert "another program" not in follower.err()
        assert differences(tmp_path / "a.tide", small.path / "b.tide") == []
        check_sound(run, small.path / "b.tide")


def test_stop_signals_end_both_in_order(start, run, tmp_path, pipeline):
    running, writer = pipeline()
    publisher = start_publisher(start, "a.tide", "tcp://127.0.0.1:0")
    ended = []
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        follower = start("archive", "subscribe", publisher.address, "b.tide", "--follow", "--json")
        follower.wait_until(lambda: len(ended) + 1 == followers.followers_of(publisher), timeout=60)
        follower.signal(number)
        ended.append(follower.wait(60).check())
        assert ended[-1].out.startswith('{"caught_up":')
    follower = start("archive", "subscribe", publisher.address, "b.tide", "--follow")
    follower.wait_until(lambda: followers.followers_of(publisher) == 4, timeout=60)
    publisher.terminate().check()
    follower.wait_for_line("the publisher has ended the connection; tried again in 0.2 s")
    follower.terminate().check()
    writer.stop()
    running.terminate().check()
