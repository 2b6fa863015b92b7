"""An archive that is published and followed: over sockets, pipes and files, once and on and on."""

import json
import os
import pathlib
import socket
import sqlite3
import stat
import struct
import subprocess

import pytest

from support import followers, process, shop
from support.followers import ask, differences, rows_of, start_publisher

TOOL = pathlib.Path(process.program()).parent / "tests/support/archive_tool"


@pytest.fixture
def archive(run, tmp_path):
    """A shop's archive: five tables, sealed."""
    shop.make_shop(tmp_path / "shop.db", orders=300)
    run("copy", "sqlite:shop.db", "archive:a.tide", "--quiet").check()
    return tmp_path / "a.tide"


@pytest.fixture
def growing(start, tmp_path):
    """growing() starts a pipeline that writes a.tide, sealing often, and a writer to its source."""
    writers = []

    def call(per_second=300, seal_rows=100):
        shop.make_shop(tmp_path / "shop.db", orders=200)
        (tmp_path / "shop.yaml").write_text(
            "name: shop\nsource: sqlite:shop.db\nsinks:\n"
            f"  kept: {{place: 'archive:a.tide', seal_rows: {seal_rows}}}\n")
        pipeline = start("run", "shop.yaml", "--quiet")
        pipeline.wait_until(lambda: rows_of(tmp_path / "a.tide") > 500, timeout=60)
        writers.append(shop.Writer(tmp_path / "shop.db", seed=7, per_second=per_second))
        return pipeline, writers[-1].__enter__()
    yield call
    for writer in writers:
        writer.__exit__(None, None, None)


def check_sound(run, *archives):
    for archive in archives:
        assert run("archive", "verify", "--full", archive).check().out.endswith(": sound\n")


def subscribed(run, *args, **options):
    """What `subscribe --json` says that it did."""
    return json.loads(run("archive", "subscribe", *args, "--json", **options).check().out)


@pytest.mark.parametrize("listen", ["tcp://127.0.0.1:0", "tcp://localhost:0", "unix:a.sock"])
def test_follower_gets_all_then_nothing_again(run, start, tmp_path, archive, listen):
    publisher = start_publisher(start, "a.tide", listen)
    said = subscribed(run, publisher.address, "b.tide")
    assert said["caught_up"] and said["segments"] == 5 and said["rows_held"] == 0
    assert differences(archive, tmp_path / "b.tide") == []
    again = subscribed(run, publisher.address, "archive:b.tide")
    assert again["segments"] == again["rows"] == again["segments_held"] == again["rows_held"] == 0
    assert again["bytes"] < said["bytes"] / 2
    check_sound(run, "b.tide")
    assert stat.S_IMODE((tmp_path / "b.tide").stat().st_mode) == 0o600
    publisher.terminate().check()
    assert "it has said what it holds" in publisher.err()
    assert not (tmp_path / "a.sock").exists()


def test_publisher_says_what_it_has_done_as_json(run, start, archive):
    publisher = start_publisher(start, "a.tide", "tcp://127.0.0.1:0", "--json")
    run("archive", "subscribe", publisher.address, "b.tide", "--quiet").check()
    said = json.loads(publisher.interrupt().check().out)
    assert said["followers"] == said["connections"] == 1 and said["bytes"] > 10000
    assert said["refused"] == said["dropped"] == 0


def test_stream_through_a_pipe_and_zstd(program, run, tmp_path, archive):
    command = (f"{program} archive publish a.tide --listen - --quiet | zstd -q | zstd -dq |"
               f" {program} archive subscribe - b.tide --json")
    done = subprocess.run(["bash", "-o", "pipefail", "-c", command], cwd=tmp_path, text=True,
                          capture_output=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["caught_up"]
    assert differences(archive, tmp_path / "b.tide") == []
    check_sound(run, "b.tide")


def test_stream_in_a_file_is_applied_once_and_again(program, run, tmp_path, archive):
    with open(tmp_path / "a.stream", "wb") as file:
        subprocess.run([program, "archive", "publish", "a.tide", "--listen", "-", "--quiet"],
                       cwd=tmp_path, stdout=file, check=True, timeout=60)
    stream = (tmp_path / "a.stream").read_bytes()
    assert stream.startswith(b"dendro-repl\0\x01\0")
    first = subscribed(run, "-", "b.tide", stdin=stream)
    assert first["segments"] == 5 and first["caught_up"]
    second = subscribed(run, "-", "b.tide", stdin=stream)
    assert second["segments"] == 0 and second["segments_held"] == 5
    assert differences(archive, tmp_path / "b.tide") == []


def test_stream_that_is_cut_keeps_what_came_and_is_gone_on_with(program, run, tmp_path, archive):
    stream = subprocess.run([program, "archive", "publish", "a.tide", "--listen", "-", "--quiet"],
                            cwd=tmp_path, capture_output=True, check=True, timeout=60).stdout
    result = run("archive", "subscribe", "-", "b.tide", stdin=stream[:-40]).check(3)
    assert "cut" in result.err
    check_sound(run, "b.tide")
    assert 0 < rows_of(tmp_path / "b.tide")
    subscribed(run, "-", "b.tide", stdin=stream)
    assert differences(archive, tmp_path / "b.tide") == []


def test_stream_whose_publisher_was_killed_is_not_taken_for_whole(program, run, tmp_path, archive):
    """It had caught up before, and sent more, when it ended: between two frames."""
    stream = subprocess.run([program, "archive", "publish", "a.tide", "--listen", "-", "--quiet"],
                            cwd=tmp_path, capture_output=True, check=True, timeout=60).stdout
    offset = struct.pack("<IBIqq", 21, 5, 0, 1, 0)
    for follow in ((), ("--follow",)):
        result = run("archive", "subscribe", "-", "b.tide", *follow, stdin=stream + offset).check(1)
        assert "it may have been killed" in result.err
    run("archive", "subscribe", "-", "b.tide", stdin=stream).check()
    check_sound(run, "b.tide")


def test_follower_is_told_of_rows_that_were_forgotten_while_it_was_away(run, start, tmp_path,
                                                                        archive):
    publisher = start_publisher(start, "a.tide", "tcp://127.0.0.1:0")
    run("archive", "subscribe", publisher.address, "b.tide").check()
    run("copy", "sqlite:shop.db", "archive:a.tide", "--append", "--quiet").check()
    newest = ask(tmp_path / "b.tide", "SELECT MAX(last_ts) FROM segments")[0][0]
    db = sqlite3.connect(tmp_path / "a.tide")
    with db:
        db.execute("DELETE FROM segments WHERE last_ts <= ?", (newest,))
    db.close()
    told = run("archive", "subscribe", publisher.address, "b.tide").check(1)
    assert "forgotten them before they could be sent" in told.err
    run("archive", "subscribe", publisher.address, "b.tide").check()  # once


def test_stream_that_goes_on_into_a_file_is_stopped_between_frames(program, run, tmp_path, growing):
    """While rows come: nothing is sealed meanwhile, since nobody on a file could be told so."""
    pipeline, _ = growing(seal_rows=1000000)
    with open(tmp_path / "a.stream", "wb") as file:
        publisher = subprocess.Popen([program, "archive", "publish", "a.tide", "--listen", "-",
                                      "--follow", "--quiet", "--keep-alive", "1"], cwd=tmp_path,
                                     stdout=file)
    try:
        size = (tmp_path / "a.stream").stat
        pipeline.wait_until(lambda: size().st_size > 100000, timeout=60)
    finally:
        publisher.terminate()
        code = publisher.wait(60)
    assert code == 0
    said = subscribed(run, "-", "b.tide", stdin=(tmp_path / "a.stream").read_bytes())
    assert said["caught_up"] and said["rows"] > 500
    check_sound(run, "b.tide")


def test_standard_output_that_fails_is_said(program, tmp_path, archive):
    with open("/dev/full", "wb") as full:
        done = subprocess.run([program, "archive", "publish", archive, "--listen", "-"], stdout=full,
                              stderr=subprocess.PIPE, text=True, check=False, timeout=60)
    assert done.returncode == 3 and "No space left on device" in done.stderr
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([program, "archive", "publish", archive, "--listen", "-"], stdout=writer,
                          stderr=subprocess.PIPE, text=True, check=False, timeout=60)
    os.close(writer)
    assert done.returncode == 3


def test_silent_connection_gets_the_same_stream_as_a_pipe(program, start, tmp_path, archive):
    publisher = start_publisher(start, "a.tide", "unix:a.sock", "--hello-wait", "1")
    piped = subprocess.run([program, "archive", "publish", "a.tide", "--listen", "-", "--quiet"],
                           cwd=tmp_path, capture_output=True, check=True, timeout=60).stdout
    with socket.socket(socket.AF_UNIX) as peer:
        peer.settimeout(60)
        peer.connect(str(tmp_path / "a.sock"))
        came = b""
        while len(came) < len(piped):
            came += peer.recv(len(piped) - len(came))
    assert came == piped
    publisher.wait_for_line("it has said nothing")


def test_unix_socket_is_private_and_replaced_when_left_behind(run, start, tmp_path, archive):
    publisher = start_publisher(start, "a.tide", "unix:a.sock")
    assert stat.S_IMODE((tmp_path / "a.sock").stat().st_mode) == 0o600
    second = run("archive", "publish", "a.tide", "--listen", "unix:a.sock").check(2)
    assert "another program listens on" in second.err
    publisher.kill()
    assert (tmp_path / "a.sock").exists()
    assert "cannot reach" in run("archive", "subscribe", "unix:a.sock", "b.tide").check(3).err
    publisher = start_publisher(start, "a.tide", "unix:a.sock")
    subscribed(run, "unix:a.sock", "b.tide")
    publisher.terminate().check()
    (tmp_path / "a.sock").write_text("precious")
    refused = run("archive", "publish", "a.tide", "--listen", "unix:a.sock").check(2)
    assert "is no socket" in refused.err and (tmp_path / "a.sock").read_text() == "precious"
    (tmp_path / "open").mkdir()
    os.chmod(tmp_path / "open", 0o777)
    refused = run("archive", "publish", "a.tide", "--listen", "unix:open/a.sock").check(2)
    assert "chmod go-w" in refused.err


def test_rows_that_are_written_come_while_it_follows(run, start, tmp_path, growing):
    pipeline, writer = growing()
    publisher = start_publisher(start, "a.tide", "tcp://127.0.0.1:0")
    follower = start("archive", "subscribe", publisher.address, "b.tide", "--follow")
    follower.wait_until(lambda: rows_of(tmp_path / "b.tide") > 1000, timeout=60)
    writer.stop()
    pipeline.terminate().check()
    follower.wait_until(lambda: differences(tmp_path / "a.tide", tmp_path / "b.tide") == [],
                        timeout=60, what="the follower to hold the same")
    result = follower.terminate().check()
    assert "single rows came" in result.err and "gap" not in result.err
    publisher.terminate().check()
    check_sound(run, "a.tide", "b.tide")
    assert run("archive", "cat", "a.tide", "--changes").out == \
        run("archive", "cat", "b.tide", "--changes").out


def test_late_follower_gets_segments_not_rows(run, start, growing, tmp_path):
    pipeline, writer = growing(seal_rows=50)
    publisher = start_publisher(start, "a.tide", "tcp://127.0.0.1:0")
    sealed = followers.ask(tmp_path / "a.tide", "SELECT COUNT(*), SUM(rows) FROM segments")[0]
    said = subscribed(run, publisher.address, "b.tide")
    assert said["segments"] >= sealed[0] and said["sealed"] == 0
    assert said["rows"] < 0.5 * rows_of(tmp_path / "b.tide")
    writer.stop()
    pipeline.terminate().check()


def test_since_leaves_out_what_is_older(run, start, tmp_path, archive):
    publisher = start_publisher(start, "a.tide", "tcp://127.0.0.1:0", "--since", "now")
    said = subscribed(run, publisher.address, "b.tide")
    assert said["segments"] == said["rows"] == 0 and said["caught_up"]
    publisher.terminate().check()
    publisher = start_publisher(start, "a.tide", "tcp://127.0.0.1:0", "--since", "1h")
    assert subscribed(run, publisher.address, "c.tide")["segments"] == 5
    publisher.terminate().check()
    publisher = start_publisher(start, "a.tide", "tcp://127.0.0.1:0", "--since", "2199-01-01")
    assert subscribed(run, publisher.address, "d.tide")["segments"] == 0


def test_follower_too_many_is_refused_with_a_reason(run, start, archive):
    publisher = start_publisher(start, "a.tide", "tcp://127.0.0.1:0", "--max-followers", "1")
    first = start("archive", "subscribe", publisher.address, "b.tide", "--follow")
    publisher.wait_for_line(" follows; ")
    result = run("archive", "subscribe", publisher.address, "c.tide").check(3)
    assert "the publisher refuses: there are as many followers as may be (--max-followers)" \
        in result.err
    second = start("archive", "subscribe", publisher.address, "c.tide", "--follow", "--max-wait", "1")
    second.wait_for_line("tried again in")
    first.terminate().check()
    second.wait_until(lambda: followers.followers_of(publisher) == 2, timeout=60)
    second.terminate().check()


def test_pipeline_and_second_follower_cannot_write_a_copy(run, start, tmp_path, archive):
    publisher = start_publisher(start, "a.tide", "tcp://127.0.0.1:0")
    follower = start("archive", "subscribe", publisher.address, "b.tide", "--follow")
    publisher.wait_for_line(" follows; ")
    result = run("archive", "subscribe", publisher.address, "b.tide")
    assert result.code in (2, 3) and "b.tide" in result.err
    follower.terminate().check()
    assert run("archive", "subscribe", publisher.address, "a.tide").code in (2, 3)
    refused = run("copy", "sqlite:shop.db", "archive:b.tide", "--append").check(2)
    assert "b.tide is what \"archive subscribe\" made" in refused.err
    assert "name another file" in refused.err
    run("archive", "subscribe", publisher.address, "b.tide").check()
    run("copy", "sqlite:shop.db", "archive:b.tide", "--overwrite").check()


def handshake(uuid, metadata):
    """A stream of nothing but a source that is introduced."""
    pairs = b"".join(struct.pack("<I", len(text)) + text for pair in metadata for text in pair)
    fields = struct.pack("<BIBI", 1, 0, 1, len(uuid)) + uuid
    fields += struct.pack("<II", 0, len(metadata)) + pairs + struct.pack("<qB", 0, 0)
    return b"dendro-repl\0\x01\0" + struct.pack("<I", len(fields)) + fields


def test_stream_that_is_refused_at_once_leaves_nothing(run, tmp_path):
    uuid = b"3f2b1c4d-0000-4000-8000-00000000abcd"
    for stream, status, says in (
            (b"dendro-repl\0\x01\0", 1, "does not say that it had no more"),
            (handshake(uuid, [(b"encoder", b"other-\x1b[31m3")]), 3, "the encoder other-?[31m3"),
            (handshake(uuid, [(b"k\0", b"v")]), 3, "NUL"),
            (handshake(uuid, [(b"k", b"v" * 17_000_000)]), 3, "the limit is 16777216")):
        result = run("archive", "subscribe", "-", "b.tide", stdin=stream).check(status)
        assert says in result.err, result.err
        assert not list(tmp_path.glob("b.tide*"))


def test_archive_that_is_replaced_is_followed_by_its_name(run, start, tmp_path, archive):
    publisher = start_publisher(start, "a.tide", "tcp://127.0.0.1:0")
    follower = start("archive", "subscribe", publisher.address, "b.tide", "--follow",
                     "--max-wait", "1")
    follower.wait_until(lambda: rows_of(tmp_path / "b.tide") == rows_of(archive), timeout=60)
    with sqlite3.connect(tmp_path / "shop.db") as db:
        db.execute("UPDATE orders SET note = 'later'")
    run("copy", "sqlite:shop.db", "archive:c.tide", "--quiet", "--state", "other").check()
    archive.unlink()
    publisher.wait_for_line("the archive has been removed")
    (tmp_path / "c.tide").rename(archive)
    every = len(ask(archive, "SELECT 1 FROM sources")) + 1
    follower.wait_until(lambda: len(ask(tmp_path / "b.tide", "SELECT 1 FROM sources")) == every,
                        timeout=60)
    follower.terminate().check()
    publisher.terminate().check()
    check_sound(run, "b.tide")


def test_subscribe_that_reaches_nobody_leaves_nothing(run, tmp_path, archive):
    result = run("archive", "subscribe", "unix:/nope", "b.tide").check(3)
    assert "reach /nope: No such file" in result.err
    assert not list(tmp_path.glob("b.tide*"))
    (tmp_path / "b.tide").write_bytes(archive.read_bytes())
    followers.ask(tmp_path / "b.tide", "SELECT 1")
    run("archive", "subscribe", "unix:/nope", "b.tide")
    assert (tmp_path / "b.tide").exists()


def test_thousands_of_sources_are_found_again(run, tmp_path):
    """Of one stream, with a uuid and without; in the next one they are the same."""
    count = 20000
    frames = [b"dendro-repl\0\x01\0"]
    for number in range(count):
        uuid = f"{number:08x}-0000-4000-8000-000000000000".encode() if number % 2 else b""
        label = b"%d" % number
        fields = struct.pack("<BI", 1, number)
        fields += b"\x01" + struct.pack("<I", len(uuid)) + uuid if uuid else b"\0"
        fields += struct.pack("<II1sI", 1, 1, b"n", len(label)) + label
        fields += struct.pack("<IqB", 0, 7, 0)
        frames.append(struct.pack("<I", len(fields)) + fields)
    for _ in range(2):
        run("archive", "subscribe", "-", "b.tide", stdin=b"".join(frames)).check(1)
        assert ask(tmp_path / "b.tide", "SELECT COUNT(*) FROM sources") == [(count,)]


@pytest.mark.parametrize("args, says", [
    (["publish"], "an ARCHIVE is missing"),
    (["publish", "a.tide"], "--listen is missing"),
    (["publish", "a.tide", "b.tide", "--listen", "-"], "too many arguments"),
    (["publish", "a.tide", "--listen", "a.sock"], "is no address"),
    (["publish", "a.tide", "--listen", "tcp://127.0.0.1"], "a port is missing"),
    (["publish", "a.tide", "--listen", "tcp://0.0.0.0:9465"], "use tls://"),
    (["publish", "a.tide", "--listen", "tcp://[::]:9465"], "use tls://"),
    (["publish", "none.tide", "--listen", "tcp://127.0.0.1:0"], "none.tide"),
    (["publish", "text", "--listen", "-"], "not an archive"),
    (["publish", "a.tide", "--listen", "-", "--max-followers", "2"], "has one follower"),
    (["publish", "a.tide", "--listen", "-", "--json"], "would both be on standard output"),
    (["publish", "a.tide", "--listen", "-", "--token-file", "t"], "--token-file is for sockets"),
    (["publish", "a.tide", "--listen", "tcp://127.0.0.1:0", "--max-followers", "0"], "from 1 to"),
    (["publish", "a.tide", "--listen", "tcp://127.0.0.1:0", "--keep-alive", "x"], "from 1 to"),
    (["publish", "a.tide", "--listen", "tcp://127.0.0.1:0", "--since", "soon"], "all, now"),
    (["publish", "a.tide", "--listen", "tcp://127.0.0.1:0", "--key", "k"], "is for tls://"),
    (["publish", "a.tide", "--listen", "unix:"], "path of a socket is missing"),
    (["publish", "a.tide", "--listen", "tls://127.0.0.1:0", "--certificate", "nope.pem", "--key",
      "shop.key", "--client-ca", "nope-ca.pem"], "nope.pem: No such file"),
    (["subscribe", "tls://127.0.0.1:1", "b.tide", "--ca", "nope.pem"], "nope.pem: No such file"),
    (["publish", "a.tide", "--listen", "-", "--listen", "unix:a.sock"], "--listen is given twice"),
    (["subscribe", "-", "-"], "cannot be written to standard output"),
    (["subscribe", "unix:" + "x" * 120, "b.tide"], "the name is too long"),
    (["subscribe"], "an ADDRESS and an ARCHIVE"),
    (["subscribe", "tcp://127.0.0.1:1"], "an ADDRESS and an ARCHIVE"),
    (["subscribe", "-", "b.tide", "c"], "too many arguments"),
    (["subscribe", "http://127.0.0.1:1", "b.tide"], "is no address"),
    (["subscribe", "tcp://192.0.2.1:9465", "b.tide"], "use tls://"),
    (["subscribe", "tcp://127.0.0.1:1", "b.tide", "--ca", "c"], "--ca is for tls://"),
    (["subscribe", "tcp://127.0.0.1:1", "b.tide", "--max-wait", "0"], "from 1 to"),
    (["subscribe", "tcp://127.0.0.1:1", "text"], "not an archive"),
    (["subscribe", "tcp://127.0.0.1:1", "b.tide", "--listen", "-"], "--listen"),
])
def test_wrong_usage_is_said(run, tmp_path, archive, args, says):
    (tmp_path / "shop.key").touch(0o600)
    (tmp_path / "text").write_text("no archive at all, but long enough to have a header" * 4)
    (tmp_path / "t").write_text("x")
    before = archive.read_bytes()
    result = run("archive", *args).check(2)
    assert says in result.err and result.out == ""
    assert archive.read_bytes() == before
    assert (tmp_path / "text").read_text().startswith("no archive")


def test_help_of_both(run):
    for name in ("publish", "subscribe"):
        assert run("archive", name, "--help").check().out.startswith(f"Usage: tidemark archive {name}")
