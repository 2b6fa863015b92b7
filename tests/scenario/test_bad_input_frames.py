"""Frames that are cut, hostile or garbage: `tidemark verify` says where, and stays small and quick."""

import json
import subprocess

import pytest
from support.process import MIB, soak

T = "2026-11-29T13:40:55.567Z"
SNAPSHOT = '"snapshot_id":"A","snapshot_at":"%s","timestamp":"%s","store":"s.t"' % (T, T)


def frame(kind, seq, more=""):
    """A frame as text, with numbers as they are given: no number of Python's bounds them."""
    return f'{{"kind":"{kind}",{SNAPSHOT},"seq":{seq}{more}}}'


BEGIN = frame("begin", 0, ',"changes_from":null')
ROW = frame("row", 0, ',"record":{"id":"zwölf"}')
STUB = frame("oversize", 1, ',"bytes":123456')
END = frame("end", 2, f',"row_count":2,"completed_at":"{T}"')
CHANGE = (f'{{"kind":"change","op":"insert","timestamp":"{T}","store":"s.t","position":5,"index":0,'
          '"prev":null,"key":{"id":1},"record":{"id":1}}')
SMALL = "\n".join([BEGIN, ROW, CHANGE, STUB, END]) + "\n"


@pytest.fixture
def verify(run, tmp_path):
    """verify(text) gives the result; memory and time are bounded."""
    def call(text, *options):
        (tmp_path / "a.ndjson").write_bytes(text if isinstance(text, bytes) else text.encode())
        return run("verify", *options, "a.ndjson", memory=64 * MIB, timeout=20)
    return call


def test_frames_cut_at_every_byte_are_never_complete(program, tmp_path):
    whole = SMALL.encode()
    last_end = len(whole) - 1  # the last line is whole without its end
    for cut in range(0, len(whole), soak(3, 1)):
        (tmp_path / "cut").write_bytes(whole[:cut])
        done = subprocess.run([program, "verify", "cut"], cwd=tmp_path, capture_output=True,
                              text=True, check=False)
        assert done.returncode == (0 if cut >= last_end else 1), (cut, done)
        assert "complete" not in done.stdout or cut >= last_end
        inside = cut > 0 and whole[cut - 1:cut] != b"\n" and whole[cut:cut + 1] != b"\n"
        assert ("the last frame is cut off" in done.stderr) == inside, (cut, done)
    assert subprocess.run([program, "verify", "cut"], cwd=tmp_path, check=False).returncode in (0, 1)


def test_frames_without_their_beginning_are_never_complete(program, tmp_path):
    """A file whose start was lost, at each byte: what is left of a line is no frame."""
    whole = SMALL.encode()
    for cut in range(1, len(whole), soak(7, 1)):
        (tmp_path / "cut").write_bytes(whole[cut:])
        done = subprocess.run([program, "verify", "cut"], cwd=tmp_path, capture_output=True,
                              text=True, check=False)
        if b"\n" in whole[cut - 1:cut + 1]:
            assert done.returncode in (0, 1)  # without `begin` it may still be complete
        elif b"\n" in whole[cut:-1] or done.returncode != 1:
            assert done.returncode == 3 and "cut: byte 0: " in done.stderr, (cut, done)


HOSTILE = {
    "row_count_at_its_limit": (frame("end", 2**64 - 1, ',"row_count":18446744073709551615'), 1),
    "seq_past_64_bits": (frame("row", 2**64, ',"record":{}'), 3),
    "seq_at_its_limit": (frame("row", 2**64 - 1, ',"record":{}'), None),
    "seq_negative": (frame("row", -1, ',"record":{}'), 3),
    "seq_fraction": (frame("row", "1.5", ',"record":{}'), 3),
    "seq_exponent": (frame("row", "1e400", ',"record":{}'), 3),
    "seq_whole_exponent": (frame("row", "1e2", ',"record":{}'), 3),
    "seq_text": (frame("row", '"1"', ',"record":{}'), 3),
    "seq_null": (frame("row", "null", ',"record":{}'), 3),
    "seq_digits_without_end": (frame("row", "9" * 100000, ',"record":{}'), 3),
    "seq_leading_zero": (frame("row", "007", ',"record":{}'), 3),
    "row_count_negative": (frame("end", 2, ',"row_count":-2'), 3),
    "row_count_exponent": (frame("end", 2, ',"row_count":1e400'), 3),
    "attempt_past_32_bits": (frame("row", 0, ',"attempt":4294967296,"record":{}'), 3),
    "attempt_at_its_limit": (frame("row", 0, ',"attempt":4294967295,"record":{}'), None),
    "attempt_negative": (frame("row", 0, ',"attempt":-1,"record":{}'), 3),
    "starts_unsorted": (frame("resume", 5, ',"attempt":2,"starts":[9,5]'), None),
    "starts_that_do_not_fit": (frame("resume", 5, ',"attempt":2,"starts":[1]'), 3),
    "starts_of_nothing": (frame("resume", 5, ',"attempt":1,"starts":[]'), 3),
    "bytes_negative": (frame("oversize", 0, ',"bytes":-5'), 3),
    "position_number_of_any_size": (CHANGE.replace('"position":5', '"position":1e999'), None),
    "time_that_is_none": (ROW.replace(T, "yesterday"), None),
    "key_twice": (ROW.replace('"seq":0', '"seq":0,"seq":1'), 3),
    "record_nested": (frame("row", 0, ',"record":' + '{"a":' * 100000 + "1" + "}" * 100000), None),
    "record_nested_open": (frame("row", 0, ',"record":' + "[" * 100000), None),
    "escapes": (ROW.replace("zwölf", "\\ud800"), None),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_numbers_are_told_or_taken_in_bounded_memory(verify, name):
    line, code = HOSTILE[name]
    if '"end"' in line and "completed_at" not in line:
        line = line[:-1] + f',"completed_at":"{T}"}}'
    result = verify("\n".join([BEGIN, line, ROW, CHANGE]) + "\n")
    assert result.code in (1, 3) if code is None else result.code == code, (result.code, result.err)
    if result.code == 3:
        assert f"a.ndjson: byte {len(BEGIN.encode()) + 1}: " in result.err, result.err
        assert result.err.count("\n") == 1 and len(result.err) < 700


@pytest.mark.parametrize("filler", [b"x", b"[", b"\0", b'{"kind":"row","record":"'])
def test_line_of_a_gibibyte_is_refused_in_bounded_memory(start, tmp_path, filler):
    """A frame may have 64 MiB; of a longer line no more than that is read."""
    size = soak(256, 1024) * MIB
    with open(tmp_path / "a.ndjson", "wb") as file:
        file.write(BEGIN.encode() + b"\n" + filler)
        file.truncate(size)
    process = start("verify", "a.ndjson", memory=256 * MIB)
    result = process.wait(60)
    assert result.code == 3 and f"a.ndjson: byte {len(BEGIN) + 1}: " in result.err, result.err
    assert result.peak_kib < 200 * 1024
    (tmp_path / "a.ndjson").unlink()


def test_long_line_is_taken_as_far_as_is_asked_for(verify):
    line = ROW.replace("zwölf", "x" * (5 * MIB))
    text = "\n".join([BEGIN, line, STUB, END]) + "\n"
    assert verify(text).check().out.startswith("complete ")
    assert "--max-frame-bytes" in verify(text, "--max-frame-bytes", "1000000").check(3).err


def test_garbage_between_frames_is_told_with_its_place(verify, rng):
    lines = SMALL.encode().splitlines(keepends=True)
    for _ in range(soak(30, 1000)):
        garbage = rng.randbytes(rng.choice([1, 2, 7, 100, 5000])).replace(b"\n", b"x")
        at = rng.randrange(len(lines))
        before = b"".join(lines[:at])
        result = verify(before + garbage + b"\n" + b"".join(lines[at:]))
        if garbage.strip(b" \t\r") == b"":
            continue
        assert result.code == 3 and f"a.ndjson: byte {len(before)}: " in result.err, garbage
        assert result.out == ""


def test_bytes_flipped_anywhere_never_crash_it(program, tmp_path, rng):
    """Whatever it says, it says with one of the four statuses, and never complete with less rows."""
    whole = SMALL.encode()
    for _ in range(soak(200, 20000)):
        spoiled = bytearray(whole)
        for _ in range(rng.choice([1, 1, 2, 8])):
            spoiled[rng.randrange(len(spoiled))] = rng.randrange(256)
        (tmp_path / "a").write_bytes(spoiled)
        done = subprocess.run([program, "verify", "--json", "a"], cwd=tmp_path, capture_output=True,
                              check=False)
        assert done.returncode in (0, 1, 3), bytes(spoiled)
        if done.returncode == 0:
            assert all(json.loads(line)["rows"] + json.loads(line)["stubs"] == 2
                       for line in done.stdout.splitlines()), bytes(spoiled)


def test_lines_that_are_empty_or_spaces(verify):
    spaced = "\n".join([BEGIN, "", ROW, "   ", STUB, END, ""]) + "\n"
    result = verify(spaced)
    assert result.code in (0, 3) and (result.code == 0 or "byte" in result.err)


def test_frames_on_standard_input_that_never_end_are_read_in_bounded_memory(program):
    """A gigabyte of rows of a snapshot that is still open."""
    feed = subprocess.Popen(["yes", ROW], stdout=subprocess.PIPE)
    head = subprocess.Popen(["head", "-c", str(soak(100, 1000) * MIB)], stdin=feed.stdout,
                            stdout=subprocess.PIPE)
    done = subprocess.run(["/bin/sh", "-c", f'ulimit -d 65536; exec "{program}" verify -'],
                          stdin=head.stdout, capture_output=True, text=True, check=False, timeout=120)
    for one in (feed, head):
        one.stdout.close()
        one.kill()
        one.wait()
    assert done.returncode == 1 and done.stdout.startswith("open "), done.stderr


def test_memory_that_is_not_there_is_said(program, tmp_path):
    (tmp_path / "a.ndjson").write_text(BEGIN + "\n" + ROW.replace("zwölf", "x" * (40 * MIB)) + "\n")
    done = subprocess.run(["/bin/sh", "-c", f'ulimit -d 20000; exec "{program}" verify a.ndjson'],
                          cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith("tidemark: the system gives no more memory: Cannot allocate")
