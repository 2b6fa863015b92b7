"""Peers that mean no good, on both sides: clear errors, bounded memory, archives untouched."""

import hashlib
import os
import random
import resource
import socket
import struct
import threading
import time

import pytest

from support import followers, shop
from support.followers import differences, rows_of, start_publisher, token_file
from support.process import soak

PREAMBLE = b"dendro-repl\0\x01\0"
HELLO = b"tidemark-hi\0\x01\0"


@pytest.fixture
def archive(run, tmp_path):
    shop.make_shop(tmp_path / "shop.db", orders=100)
    run("copy", "sqlite:shop.db", "archive:a.tide", "--quiet").check()
    return tmp_path / "a.tide"


def digest(archive):
    """Of all that its tables hold, and of its file."""
    return hashlib.sha256(archive.read_bytes()).hexdigest(), \
        [followers.ask(archive, sql) for sql in followers.TABLES.values()]


def connect(publisher):
    return socket.create_connection(("127.0.0.1", publisher.port), 60)


def check_serves(run, publisher, archive, copy, *options):
    copy.unlink(missing_ok=True)
    run("archive", "subscribe", publisher.address, copy, *options).check()
    assert differences(archive, copy) == []


# -- towards a publisher

def test_random_words_reach_nobody(run, start, tmp_path, archive):
    before = digest(archive)
    publisher = start_publisher(start, "a.tide", "tcp://127.0.0.1:0")
    rng = random.Random(1)
    starts = (b"", b"tidemark-", HELLO, HELLO + b"\xff\xff\xff\x7f", b"tidemark-go\0\x01\0", PREAMBLE)
    for _ in range(soak(300, 30000)):
        with connect(publisher) as peer:
            try:
                peer.sendall(rng.choice(starts) + rng.randbytes(rng.randrange(1, 3000)))
                if rng.random() < 0.5:
                    peer.recv(100)
            except OSError:
                pass
    check_serves(run, publisher, archive, tmp_path / "b.tide")
    assert publisher.running() and digest(archive) == before
    assert publisher.err().count("\n") < 1000  # not a line for each
    publisher.terminate().check()


def test_handshakes_without_end_cost_nothing(run, start, tmp_path, archive):
    publisher = start_publisher(start, "a.tide", "tcp://127.0.0.1:0", "--hello-wait", "60")
    check_serves(run, publisher, archive, tmp_path / "b.tide")
    files, memory = publisher.open_files(), publisher.memory_kib("VmHWM")
    for _ in range(soak(2000, 1000000)):
        peer = connect(publisher)
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        peer.close()
    check_serves(run, publisher, archive, tmp_path / "b.tide")
    publisher.wait_until(lambda: publisher.open_files() <= files, timeout=60)
    assert publisher.memory_kib("VmHWM") < memory + 8192
    publisher.terminate().check()


def test_half_open_connections_give_way(run, start, tmp_path, archive):
    token_file(tmp_path / "token")
    publisher = start_publisher(start, "a.tide", "tcp://127.0.0.1:0", "--hello-wait", "60",
                                "--token-file", "token")
    crowd = []
    try:
        for number in range(300):
            crowd.append(connect(publisher))
            if number % 3 == 0:
                crowd[-1].sendall(HELLO[:number % 14])
        check_serves(run, publisher, archive, tmp_path / "b.tide", "--token-file", "token")
        assert publisher.open_files() < 64 + 40
    finally:
        for peer in crowd:
            peer.close()
    publisher.terminate().check()


def test_slow_writers_are_not_waited_for(start, archive):
    publisher = start_publisher(start, "a.tide", "tcp://127.0.0.1:0", "--timeout", "1")
    with connect(publisher) as peer:
        deadline = time.monotonic() + 60
        try:
            for byte in HELLO + struct.pack("<I", 4000000) + b"\0" * 100000:
                assert time.monotonic() < deadline
                peer.sendall(bytes([byte]))
                time.sleep(0.05)
        except OSError:
            pass
    publisher.wait_for_line("was refused: its hello did not come whole in time")
    publisher.terminate().check()


def test_large_hellos_are_bounded_together(run, start, tmp_path, archive):
    publisher = start_publisher(start, "a.tide", "tcp://127.0.0.1:0")
    crowd = []
    try:
        for _ in range(12):
            peer = connect(publisher)
            crowd.append(peer)
            try:
                peer.sendall(HELLO + struct.pack("<I", 4 << 20) + b"\0" * ((4 << 20) - 1))
            except OSError:
                pass
        publisher.wait_for_line("too much is being said by too many at once")
        assert publisher.memory_kib("VmHWM") < 64 * 1024
    finally:
        for peer in crowd:
            peer.close()
    publisher.wait_until(lambda: run("archive", "subscribe", publisher.address, "b.tide").code == 0,
                         timeout=60)
    assert differences(archive, tmp_path / "b.tide") == []


def test_silent_crowd_is_followers_no_more_than_may_be(run, start, tmp_path, archive):
    publisher = start_publisher(start, "a.tide", "tcp://127.0.0.1:0", "--max-followers", "3",
                                "--hello-wait", "1")
    crowd = [connect(publisher) for _ in range(10)]
    try:
        publisher.wait_until(lambda: followers.followers_of(publisher) == 3 and
                             publisher.err().count("as many followers as may be") == 7, timeout=60)
    finally:
        for peer in crowd:
            peer.close()
    publisher.wait_until(lambda: run("archive", "subscribe", publisher.address, "b.tide").code == 0,
                         timeout=60)


# -- towards a follower

class Hostile:
    """Listens, and says to each that connects what it is given."""

    def __init__(self, words, endless=b""):
        self.words, self.endless = words, endless
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"tcp://127.0.0.1:{self.listener.getsockname()[1]}"
        self.accepted = 0
        self.ended = False
        self.said = 0        # how often `endless`
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def _serve(self):
        while not self.ended:
            try:
                peer, _ = self.listener.accept()
            except OSError:
                return
            self.accepted += 1
            with peer:
                peer.settimeout(60)
                try:
                    peer.sendall(self.words)
                    while self.endless and not self.ended:
                        peer.sendall(self.endless)
                        self.said += 1
                except OSError:
                    pass

    def wait_for(self, said):
        deadline = time.monotonic() + 60
        while self.said < said:
            assert time.monotonic() < deadline
            time.sleep(0.005)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.ended = True
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join(60)


def frame(kind, fields=b""):
    return struct.pack("<IB", 1 + len(fields), kind) + fields


def text(words):
    return struct.pack("<I", len(words)) + words


UUID = b"3f2b1c4d-0000-4000-8000-00000000abcd"
HANDSHAKE = frame(1, struct.pack("<IB", 0, 1) + text(UUID) + struct.pack("<IIqB", 0, 0, 1, 0))
ROW = text(b"s") + struct.pack("<qq", 1000, 0) + text(b"x")


@pytest.mark.parametrize("words, says", [
    (b"HTTP/1.1 400 Bad Request\r\n\r\n", "not a dendro replication stream"),
    (b"dendro-repl\0\x63\0", "version 99"),
    (PREAMBLE + struct.pack("<I", 0), "at byte 14"),
    (PREAMBLE + struct.pack("<I", 0xffffffff), "limit"),
    (PREAMBLE + struct.pack("<I", 64 * 1024 * 1024 + 1), "limit"),
    (PREAMBLE + frame(1, b"\0"), "malformed"),
    (PREAMBLE + frame(3, struct.pack("<IQQQI", 7, 0, 0, 0, 1) + ROW), "source 7"),
    (PREAMBLE + HANDSHAKE + HANDSHAKE, "second handshake"),
    (PREAMBLE + HANDSHAKE + frame(3, struct.pack("<IQQQI", 0, 0, 0, 0, 2) + ROW), "malformed"),
    (PREAMBLE + HANDSHAKE + frame(4, struct.pack("<I", 0) + text(b"s") +
                                  struct.pack("<Qqq", 0, 2, 1) + text(b"") + b"\0"), "segment"),
    (b"tidemark-no\0\x01\0\x0c\0\0\0\0\x07\0\0\0go away", "the publisher refuses: go away"),
    (b"tidemark-no\0\x01\0\xff\xff\xff\xff", "refusal claims"),
    (b"tidemark-no\0\x07\0\x0c\0\0\0", "refusal has version 7"),
])
def test_hostile_publisher_is_left_for_good_and_nothing_kept(run, tmp_path, archive, words, says):
    before = differences(archive, archive), rows_of(archive)
    with Hostile(words) as publisher:
        result = run("archive", "subscribe", publisher.address, "b.tide", "--follow").check(3)
        assert says in result.err, result.err
        assert publisher.accepted == 1
    assert rows_of(tmp_path / "b.tide") == 0
    assert (differences(archive, archive), rows_of(archive)) == before


def test_random_bytes_never_harm_a_copy(run, start, tmp_path, archive):
    publisher = start_publisher(start, "a.tide", "tcp://127.0.0.1:0")
    check_serves(run, publisher, archive, tmp_path / "b.tide")
    before = [followers.ask(tmp_path / "b.tide", sql) for sql in followers.TABLES.values()][1:4]
    rng = random.Random(2)
    for number in range(soak(20, 2000)):
        words = (b"", PREAMBLE, PREAMBLE + HANDSHAKE)[number % 3] + rng.randbytes(5000)
        with Hostile(words) as hostile:
            assert run("archive", "subscribe", hostile.address, "b.tide").code == 3
    assert [followers.ask(tmp_path / "b.tide", sql)
            for sql in followers.TABLES.values()][1:4] == before
    assert run("archive", "verify", "--full", "b.tide").check().out.endswith(": sound\n")


def test_frames_of_unknown_kinds_without_end_take_no_memory(start, tmp_path):
    with Hostile(PREAMBLE, endless=frame(200, os.urandom(1 << 20)) * 4) as hostile:
        follower = start("archive", "subscribe", hostile.address, "b.tide", "--follow")
        follower.wait_for_line("frames that are not known here", timeout=60)
        hostile.wait_for(256)
        result = follower.terminate().check()
        assert result.peak_kib < 64 * 1024
    assert "frames of unknown kinds" in result.err


def test_publisher_that_says_nothing_is_left_and_tried_again(start, tmp_path):
    listener = socket.create_server(("127.0.0.1", 0), backlog=16)
    follower = start("archive", "subscribe", f"tcp://127.0.0.1:{listener.getsockname()[1]}",
                     "b.tide", "--follow", "--timeout", "1", "--max-wait", "1")
    follower.wait_for_line(r"nothing has come for 1\.0 s \(--timeout\); tried again in 0\.2 s")
    follower.wait_for_line(r"tried again in 0\.4 s")
    follower.terminate().check()
    listener.close()


def test_ways_out_of_descriptors_are_survived(start, run, tmp_path, archive):
    """Others are let in again once there is room."""
    publisher = start_publisher(start, "a.tide", "tcp://127.0.0.1:0")
    held = publisher.open_files()
    resource.prlimit(publisher.pid, resource.RLIMIT_NOFILE, (held + 6, held + 6))
    crowd = []
    for _ in range(12):
        crowd.append(connect(publisher))
    time.sleep(0.3)
    assert publisher.running()
    for peer in crowd:
        peer.close()
    publisher.wait_until(lambda: run("archive", "subscribe", publisher.address, "b.tide").code == 0,
                         timeout=60)
    assert differences(archive, tmp_path / "b.tide") == []
