"""`tidemark verify` over frames compressed with zstd."""

import json
import os
import subprocess

import pytest

from test_verify import begin, end, row


def zstd(data, *options):
    return subprocess.run(["zstd", "-q", "-c", *options], input=data, stdout=subprocess.PIPE,
                          check=True).stdout


def lines(*frames):
    return "".join(frame + "\n" for frame in frames).encode()


def rows(count):
    return [row(seq, {"id": seq, "text": f"{seq * 7919 % 104729:x}" * 9}) for seq in range(count)]


@pytest.fixture
def verify(run, tmp_path):
    """verify(bytes, code) of a file of these bytes; gives the result."""
    def call(data, code=0, name="a.ndjson.zst", **options):
        (tmp_path / name).write_bytes(data)
        return run("verify", "--json", name, **options).check(code)
    return call


SKIPPABLE = b"\x5a\x2a\x4d\x18\x03\x00\x00\x00abc"


@pytest.mark.parametrize("level", ["-1", "-19", "--ultra", "--no-check"])
def test_a_compressed_file_is_read_as_what_it_holds(verify, level):
    data = zstd(lines(begin(), *rows(20000), end(20000)), level)
    found = json.loads(verify(data).out)
    assert (found["status"], found["rows"]) == ("complete", 20000)


def test_frames_that_follow_each_other_are_one_stream(verify):
    whole = lines(begin(), *rows(50), end(50))
    cuts = [0, 1, 2, 3, 777, 778, len(whole) - 1, len(whole)]
    parts = [zstd(whole[a:b]) for a, b in zip(cuts, cuts[1:])]
    for data in (b"".join(parts), SKIPPABLE.join([b"", *parts, b""]), zstd(b"") + zstd(whole)):
        assert '"status":"complete","rows":50' in verify(data).out


def test_a_name_does_not_matter_but_for_what_is_not_compressed(verify):
    whole = lines(begin(), row(0), end(1))
    assert '"complete"' in verify(zstd(whole), name="a.ndjson").out
    assert "a.ndjson.zst: byte 0: is named like zstd data" in verify(whole, 3).err
    assert "no snapshot" in verify(b"", 1).err
    assert "no snapshot" in verify(zstd(b""), 1).err


def test_a_directory_has_compressed_files_too(run, tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a.json.zst").write_bytes(zstd(lines(begin(), row(0))))
    (tmp_path / "in/b.ndjson.zst").write_bytes(zstd(lines(end(1))))
    (tmp_path / "in/c.zst").write_bytes(b"not frames")
    run("verify", "in").check()


def test_what_came_twice_is_compared(verify):
    found = json.loads(verify(zstd(lines(row(0), row(1), row(0))) + zstd(lines(end(2)))).out)
    assert (found["duplicates"], found["compared"]) == (1, True)
    found = json.loads(verify(zstd(lines(row(0), row(0, {"id": 9}), end(1))), 1).out)
    assert found["reason"] == "seq 0 came with two different records"


def test_standard_input_is_known_by_its_first_bytes(program):
    data = zstd(lines(begin(), *rows(20), end(20)))
    for step in (1, 3, len(data)):
        child = subprocess.Popen([program, "verify", "-"], stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE)
        for at in range(0, len(data), step):
            os.write(child.stdin.fileno(), data[at:at + step])
        assert b"20 rows" in child.communicate()[0] and child.returncode == 0
    for short in (b"", b"\x28", b"\x28\xb5\x2f"):
        result = subprocess.run([program, "verify", "-"], input=short, stderr=subprocess.PIPE)
        assert result.returncode == (3 if short else 1)


def test_a_cut_at_any_byte_is_reported(verify):
    first = zstd(lines(begin(), row(0)))
    data = first + zstd(lines(row(1), end(2)))
    assert "2 rows" not in verify(first, 1).out
    for cut in range(4, len(data)):
        result = verify(data[:cut], 1 if cut == len(first) else 3)
        start = 0 if cut <= len(first) else len(first)
        if cut > len(first) + 4:
            assert result.out == ""
        if cut != len(first):
            assert f"a.ndjson.zst: byte {cut}: the zstd data end here, within the frame that " \
                   f"starts at byte {start}" in result.err


def test_damage_is_reported_with_the_frame_it_is_in(verify):
    first = zstd(lines(begin(), *rows(100)))
    second = zstd(lines(*rows(100)[50:], end(100)))
    spoilt = bytearray(first + second)
    spoilt[-1] ^= 1
    result = verify(bytes(spoilt), 3)
    assert f"in the frame that starts at byte {len(first)}: Restored data doesn't match checksum" \
        in result.err and result.out == ""
    result = verify(first + b"garbage", 3)
    assert f"byte {len(first)}: the zstd data cannot be read" in result.err
    for at in range(4, len(first), 97):
        spoilt = bytearray(first)
        spoilt[at] ^= 0x55
        assert "a.ndjson.zst: byte " in verify(bytes(spoilt), 3).err


def test_what_is_no_frame_is_named_by_its_place_once_decompressed(verify):
    good = lines(begin(), row(0))
    result = verify(zstd(good + b"garbage\n" + lines(end(1))), 3)
    assert f"a.ndjson.zst: decompressed byte {len(good)}: " in result.err
    cut = verify(zstd(good + end(1)[:-1].encode()), 1)
    assert f"decompressed byte {len(good)}: the last frame is cut off" in cut.err


def test_a_bomb_costs_no_more_than_the_longest_line(verify):
    bomb = subprocess.run("head -c 2000000000 /dev/zero | tr '\\0' ' ' | zstd -q -c", shell=True,
                          stdout=subprocess.PIPE, check=True).stdout
    result = verify(bomb, 3, memory=96 * 2**20)
    assert "decompressed byte 0: a frame of more than 67108864 bytes" in result.err


def test_a_window_over_the_limit_is_refused(verify):
    data = zstd(lines(begin(), end(0)), "--ultra", "-22", "--long=31", "--no-content-size")
    magic_and_window = data[:4] + bytes([0x04, (31 - 10) << 3])
    result = verify(magic_and_window + data[6:], 3)
    assert "a.ndjson.zst: byte 0: " in result.err and "more than 128 MiB" in result.err
