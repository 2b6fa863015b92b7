"""`tidemark verify` over frames written by hand: every status, every exit status."""

import json
import os
import pathlib
import sqlite3
import subprocess
import tempfile

import pytest

T = "2026-11-29T13:40:55.567Z"
LATER = "2026-11-29T14:00:00.000Z"


def frame(kind, seq, snapshot="A", store="shop.orders", at=T, **tail):
    return json.dumps({"kind": kind, "snapshot_id": snapshot, "snapshot_at": at, "timestamp": at,
                       "store": store, "seq": seq, **tail}, separators=(",", ":"))


def begin(**options):
    return frame("begin", 0, **options)


def row(seq, record=None, **options):
    return frame("row", seq, record={"id": seq} if record is None else record, **options)


def stub(seq, **options):
    return frame("oversize", seq, bytes=10**6, **options)


def end(count, **options):
    return frame("end", count, row_count=count, completed_at=LATER, **options)


def change(position, prev, store="shop.orders"):
    return json.dumps({"kind": "change", "op": "insert", "timestamp": T, "store": store,
                       "position": position, "index": 0, "prev": prev, "key": {"id": 1},
                       "record": {"id": 1}})


@pytest.fixture
def verify(run, tmp_path):
    """verify(frames, …options) writes the frames to a file and gives (exit status, objects)."""
    def call(frames, *options, code=None):
        (tmp_path / "frames.ndjson").write_text("".join(line + "\n" for line in frames))
        result = run("verify", "--json", *options, "frames.ndjson")
        if code is not None:
            result.check(code)
        return [json.loads(line) for line in result.out.splitlines()]
    return call


def test_complete_is_zero_and_says_all_there_is_to_say(verify):
    [found] = verify([begin(changes_from=None), row(0), change(5, None), stub(1), row(2),
                      end(3, changes_to=[5, 0])], code=0)
    assert found == {
        "store": "shop.orders", "snapshot_id": "A", "status": "complete", "rows": 2, "stubs": 1,
        "expected": 3, "missing": [], "missing_count": 0, "attempts": 1, "began": T,
        "completed": LATER, "changes": {"whole": True, "from": None, "to": [5, 0], "hole": None,
                                        "seen": 1},
        "emptied_at": None, "duplicates": 0, "compared": True, "reason": None}


def test_a_truncate_stands_for_the_end(verify, run, tmp_path):
    truncate = change(7, None).replace('"op": "insert"', '"op": "truncate"')
    assert '"truncate"' in truncate
    [found] = verify([begin(changes_from=None), row(0), truncate], code=0)
    assert (found["status"], found["emptied_at"], found["expected"]) == ("complete", [7, 0], None)
    out = run("verify", "frames.ndjson").check().out
    assert "1 rows, 0 stubs; no end, but the table was emptied or dropped at [7,0]" in out


@pytest.mark.parametrize("frames, status, reason", [
    ([begin(), row(0)], "open", "no end yet"),
    ([begin(), row(0), row(3), end(5)], "truncated", "3 of 5 seqs are missing: 1-2, 4"),
    ([begin(changes_from=[3, 0]), change(9, [6, 0]), end(0, changes_to=[9, 0])], "truncated",
     "changes are missing after [3,0] and up to [6,0]"),
    ([begin(total=2), row(0), end(1)], "conflicting", "its begin says a total of 2, its end 1"),
    ([row(0), end(1), end(2)], "conflicting", "two ends with different counts, 1 and 2"),
    ([row(0), stub(0), end(1)], "conflicting", "seq 0 came as a row and as a stub"),
    ([row(0), row(4), end(1)], "conflicting", "seq 4 is past the row count of 1"),
    ([row(0), row(1, store="shop.b"), end(2)], "conflicting", "its frames name two stores"),
    ([row(0), row(0, {"id": 9}), end(1)], "conflicting", "seq 0 came with two different records"),
])
def test_not_complete_is_one_and_says_why(verify, frames, status, reason):
    [found] = verify(frames, code=1)
    assert (found["status"], found["reason"]) == (status, reason)


def test_an_interrupted_copy_is_complete_without_its_void_rows(verify):
    frames = [begin(), row(0), row(1), row(2, {"old": True}), end(3),
              frame("resume", 2, starts=[2], attempt=1), row(2, attempt=1),
              end(3, starts=[2], attempt=1)]
    [found] = verify(frames, code=0)
    assert (found["rows"], found["attempts"]) == (3, 2)
    [found] = verify(frames[:-1], code=1)
    assert found["status"] == "open"


def test_the_newest_snapshot_of_each_store_is_judged(verify):
    frames = [begin(), row(0),
              begin(snapshot="B", at=LATER), end(0, snapshot="B", at=LATER),
              begin(snapshot="C", store="shop.other"), end(0, snapshot="C", store="shop.other")]
    assert [f["snapshot_id"] for f in verify(frames, code=0)] == ["B", "C"]
    assert [f["snapshot_id"] for f in verify(frames, "--all", code=1)] == ["A", "B", "C"]
    assert [f["snapshot_id"] for f in verify(frames[2:], "--all", code=0)] == ["B", "C"]
    older = [begin(snapshot="Z"), row(0, snapshot="Z")]
    assert [f["snapshot_id"] for f in verify(frames[2:4] + older, code=0)] == ["B"]


def test_no_snapshot_at_all_is_one(run, verify, tmp_path):
    assert verify([], code=1) == []
    assert verify([change(5, None)], code=1) == []
    (tmp_path / "empty").mkdir()
    result = run("verify", "empty").check(1)
    assert result.out == "" and "no snapshot" in result.err


def test_a_line_for_people(run, tmp_path):
    (tmp_path / "a.ndjson").write_text("\n".join([begin(), row(0), row(0), end(1)]) + "\n")
    assert run("verify", "a.ndjson").check().out == \
        "complete    shop.orders A: 1 rows, 0 stubs; 1 seqs came more than once\n"


def test_an_open_one_says_how_long_ago_its_last_frame_was(run, tmp_path):
    path = tmp_path / "a.ndjson"
    path.write_text(begin() + "\n")
    os.utime(path, (path.stat().st_mtime - 600,) * 2)
    assert "the last frame came 10 min ago" in run("verify", "a.ndjson").check(1).out


def test_a_directory_is_its_frame_files(run, tmp_path):
    folder = tmp_path / "frames"
    folder.mkdir()
    (folder / "b.ndjson").write_text(row(1) + "\n" + end(2) + "\n")
    (folder / "a.json").write_text(begin() + "\n" + row(0))
    (folder / "c.txt").write_text("not frames\n")
    (folder / ".d.ndjson").write_text("not frames\n")
    assert "2 rows" in run("verify", "frames").check().out
    assert "2 rows" in run("verify", "frames/b.ndjson", "frames/a.json").check().out


def test_directories_are_entered_but_not_hidden_ones_links_and_state(run, tmp_path):
    (tmp_path / "in/a/b").mkdir(parents=True)
    (tmp_path / "in/a/b/shop.c.ndjson").write_text(row(1) + "\n" + end(2) + "\n")
    (tmp_path / "in/named.json").mkdir()
    (tmp_path / "in/named.json/begin.json").write_text(begin() + "\n" + row(0) + "\n")
    for hidden in ("in/.git", "elsewhere"):
        (tmp_path / hidden).mkdir()
        (tmp_path / hidden / "bad.ndjson").write_text("not frames\n")
    (tmp_path / "in/link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "in/loop").symlink_to(tmp_path / "in")
    for letters in ("dead_letters.ndjson", "dead_letters.7.ndjson"):
        (tmp_path / "in/a" / letters).write_text("not frames\n")
    (tmp_path / "in/a/checkpoint_a.json").write_text("not frames\n")
    result = run("verify", "in").check()
    assert "2 rows" in result.out and result.err == ""
    (tmp_path / "in/b.ndjson").symlink_to(tmp_path / "elsewhere/bad.ndjson")
    assert "in/b.ndjson: byte 0" in run("verify", "in").check(3).err


def test_many_files_and_a_deep_directory(run, tmp_path):
    folder = tmp_path / "many"
    folder.mkdir()
    for n in range(10000):
        (folder / f"{n:05}.ndjson").write_text(row(n) + "\n")
    deep = folder
    for _ in range(200):
        deep = deep / "d"
        deep.mkdir()
    (deep / "end.ndjson").write_text(end(10000) + "\n")
    result = run("verify", "many", memory=24 * 2**20).check()
    assert "10000 rows" in result.out and result.err == ""


@pytest.fixture
def beside(run, tmp_path):
    """beside(path, code=3) verifies `path` beside a complete snapshot, which must be judged."""
    def call(path, *options):
        (tmp_path / "whole.ndjson").write_text(end(0, snapshot="W", store="shop.whole") + "\n")
        result = run("verify", *options, path, "whole.ndjson").check(3)
        assert result.out == "complete    shop.whole W: 0 rows, 0 stubs\n"
        assert result.err.count("\n") == 1 and path in result.err
        return result.err
    return call


def test_what_cannot_be_read_stops_no_other(beside, tmp_path):
    assert "No such file" in beside("missing.ndjson")
    (tmp_path / "in").mkdir()
    (tmp_path / "in/gone.ndjson").symlink_to("nowhere")
    assert "in/gone.ndjson: could not be read: No such file" in beside("in")
    (tmp_path / "bad.ndjson").write_text(begin() + "\n" + row(0) + "\ngarbage\n" + end(1) + "\n")
    assert "1 snapshot with frames in it is not judged" in beside("bad.ndjson")
    assert "could not be read: Input/output error" in beside("/proc/self/mem")


def test_what_may_not_be_read_stops_no_other(program):
    nobody = {"user": 65534} if os.getuid() == 0 else {}
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        for name in ("whole.ndjson", "file.ndjson", "a/below.ndjson", "a/folder/x.ndjson"):
            path = pathlib.Path(folder, name)
            path.parent.mkdir(exist_ok=True)
            path.write_text(end(0, snapshot=path.stem, store=f"shop.{path.stem}") + "\n")
        for name in ("file.ndjson", "a/folder"):
            os.chmod(os.path.join(folder, name), 0)
        try:
            result = subprocess.run([program, "verify", "."], cwd=folder, capture_output=True,
                                    text=True, check=False, **nobody)
        except PermissionError:
            pytest.skip("another user may not run the program")
        finally:
            os.chmod(os.path.join(folder, "a/folder"), 0o700)
    assert result.returncode == 3
    assert [line.split()[1] for line in result.stdout.splitlines()] == ["shop.below", "shop.whole"]
    assert result.stderr == "".join(
        f"tidemark: verify: ./{name}: could not be read: Permission denied\n"
        for name in ("a/folder", "file.ndjson"))


def test_an_older_snapshot_does_not_stand_for_the_newest_in_doubt(run, tmp_path):
    (tmp_path / "a.ndjson").write_text(end(0) + "\n")
    (tmp_path / "b.ndjson").write_text(begin(snapshot="B", at=LATER) + "\n?\n")
    result = run("verify", "a.ndjson", "b.ndjson").check(3)
    assert result.out == "" and "b.ndjson: byte" in result.err
    assert " A: " in run("verify", "--all", "a.ndjson", "b.ndjson").check(3).out


def test_a_special_file_in_a_directory_is_passed_over(run, tmp_path):
    (tmp_path / "in").mkdir()
    os.mkfifo(tmp_path / "in/a.ndjson")
    (tmp_path / "in/b.ndjson").write_text(end(0) + "\n")
    assert "in/a.ndjson: passed over" in run("verify", "in").check().err


def test_a_pipe_by_name_is_read_and_a_file_gone_meanwhile_is_named(program, tmp_path):
    (tmp_path / "in").mkdir()
    for name in ("a", "b", "c"):
        (tmp_path / f"in/{name}.ndjson").write_text(
            end(0, snapshot=name, store=f"shop.{name}") + "\n")
    os.mkfifo(tmp_path / "pipe")
    child = subprocess.Popen([program, "verify", "pipe", "in"], cwd=tmp_path, text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    with open(tmp_path / "pipe", "w") as pipe:  # opens when verify does, which has listed `in`
        (tmp_path / "in/b.ndjson").unlink()
        pipe.write(end(0, snapshot="P", store="shop.pipe") + "\n")
    out, err = child.communicate(timeout=60)
    assert child.returncode == 3
    assert [line.split()[1] for line in out.splitlines()] == ["shop.a", "shop.c", "shop.pipe"]
    assert err == "tidemark: verify: in/b.ndjson: could not be read: No such file or directory\n"


def test_a_long_line_costs_no_memory_and_is_named(beside, tmp_path):
    with open(tmp_path / "long.ndjson", "w") as out:
        out.write(begin() + "\n" + row(0)[:-1] + ',"x":"')
        out.truncate(1 << 30)
    place = len(begin()) + 1
    message = beside("long.ndjson", "--max-frame-bytes", "1000000")
    assert f"long.ndjson: byte {place}: a frame of more than 1000000 bytes" in message


def test_a_gigabyte_in_one_line_is_refused_in_bounded_memory(run, tmp_path):
    with open(tmp_path / "long.ndjson", "w") as out:
        out.write('{"')
        out.truncate(1 << 30)
    result = run("verify", "long.ndjson", memory=96 * 2**20).check(3)
    assert "long.ndjson: byte 0: a frame of more than 67108864 bytes" in result.err


HOSTILE = [
    row(0).replace('"seq":0', f'"seq":{number}') for number in
    ("18446744073709551616", "-1", "1.5", "1e400", "1e-1", "0x1", "NaN", "00", "9" * 100000, '"0"')
] + [
    end(0).replace('"row_count":0', '"row_count":18446744073709551616'),
    row(0, attempt=1)[:-2] + "99999999999}",
    row(0).replace('"record":{"id":0}', '"record":' + "[" * 300 + "]" * 300),
    row(0).replace('"record":{"id":0}', '"record":' + '{"a":' * 100000),
    frame("resume", 0, starts=[2**64], attempt=1), frame("resume", 0, starts=[1] * 9, attempt=1),
    row(0).replace("shop", "\0"), row(0)[:-1] + ',"seq":1}', '"row"', "[]", "null", "{" * 1000000,
]


@pytest.mark.parametrize("line", HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_frame_is_named(beside, tmp_path, line):
    (tmp_path / "bad.ndjson").write_text(begin() + "\n" + line + "\n" + row(1) + "\n")
    assert f"bad.ndjson: byte {len(begin()) + 1}: " in beside("bad.ndjson")


def test_numbers_at_their_bounds_are_read(verify):
    [found] = verify([row(2**64 - 1), end(2**64 - 1)], code=1)
    assert found["reason"] == "seq 18446744073709551615 is past the row count of " \
                              "18446744073709551615"
    [found] = verify([row(0).replace('"id":0', '"id":1e999999999'), end(1)], code=0)
    assert found["rows"] == 1


def test_standard_input_cannot_be_compared(program):
    def verify(lines):
        return subprocess.run([program, "verify", "--json", "-"], input="\n".join(lines) + "\n",
                              capture_output=True, text=True, check=False)
    result = verify([row(0), end(1)])
    assert result.returncode == 0 and json.loads(result.stdout)["compared"]
    result = verify([row(0), row(0, {"id": 9}), end(1)])
    found = json.loads(result.stdout)
    assert (found["duplicates"], found["compared"]) == (1, False)


def test_a_last_frame_that_is_cut_off_does_not_count(run, tmp_path):
    path = tmp_path / "a.ndjson"
    whole = "\n".join([begin(), row(0), end(1)])
    path.write_text(whole)
    assert run("verify", "a.ndjson").check().err == ""
    for cut in (1, 2, len(end(1)) - 1):
        path.write_text(whole[:-cut])
        result = run("verify", "a.ndjson").check(1)
        place = len(whole) - len(end(1))
        assert f"a.ndjson: byte {place}: the last frame is cut off" in result.err
        assert result.out.startswith("open ")


def test_what_is_no_frame_is_three_and_its_place_named(run, tmp_path):
    path = tmp_path / "a.ndjson"
    good = begin() + "\n"
    cut = row(0)[:-3]
    for bad in ("garbage\n", "garbage", "{}\n", cut + "\n", cut + "\n" + row(0) + "\n",
                row(0).replace('"row"', '"rows"') + "\n", "\0\0\0\0"):
        path.write_text(good + bad)
        result = run("verify", "a.ndjson").check(3)
        assert f"a.ndjson: byte {len(good)}: " in result.err and result.out == ""
        assert result.err.count("\n") == 1


def test_what_cannot_be_read_is_three(run, tmp_path):
    assert "missing.ndjson" in run("verify", "missing.ndjson").check(3).err
    (tmp_path / "a.ndjson").write_text(row(0, {"text": "x" * 5000}) + "\n" + end(1) + "\n")
    run("verify", "a.ndjson").check()
    result = run("verify", "--max-frame-bytes", "4000", "a.ndjson").check(3)
    assert "a.ndjson: byte 0: " in result.err and "--max-frame-bytes" in result.err


def test_wrong_usage_is_two(run):
    for args in ([], ["--max-frame-bytes", "many", "-"], ["--max-frame-bytes", "0", "-"], ["--x"]):
        assert run("verify", *args).check(2).out == ""


def test_a_reader_that_leaves_is_no_crash(program, tmp_path):
    path = tmp_path / "a.ndjson"
    path.write_text("".join(end(0, snapshot=f"S{n}", store=f"shop.{n}") + "\n"
                            for n in range(20000)))
    child = subprocess.Popen([program, "verify", str(path)], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE)
    child.stdout.readline()
    child.stdout.close()
    assert child.stderr.read() == b""
    assert child.wait() == 3


def test_memory_follows_what_was_seen(run, tmp_path):
    with open(tmp_path / "a.ndjson", "w") as out:
        out.write(begin(total=200000) + "\n")
        for seq in range(0, 200000, 2):
            out.write(row(seq) + "\n" + row(200000 - 1 - seq) + "\n")
        out.write(end(200000) + "\n")
        out.write(end(2**64 - 1, snapshot="B", at=LATER) + "\n")
    result = run("verify", "--all", "a.ndjson", memory=16 * 2**20).check(1)
    assert "200000 rows" in result.out
    assert "18446744073709551615 of 18446744073709551615 seqs are missing" in result.out


def test_a_real_copy_is_complete_and_without_any_one_of_its_frames_is_not(run, tmp_path):
    with sqlite3.connect(tmp_path / "shop.db") as shop:
        shop.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, note TEXT)")
        shop.executemany("INSERT INTO orders VALUES (?, ?)",
                         [(n, "x" * (5000 if n == 3 else n)) for n in range(12)])
    shop.close()
    run("copy", "sqlite:shop.db", "file:whole.ndjson", "--max-record-bytes", "2000").check()
    lines = (tmp_path / "whole.ndjson").read_text().splitlines(keepends=True)
    assert "11 rows, 1 stubs" in run("verify", "whole.ndjson").check().out
    for lost, line in enumerate(lines):
        (tmp_path / "cut.ndjson").write_text("".join(lines[:lost] + lines[lost + 1:]))
        kind = json.loads(line)["kind"]
        result = run("verify", "--json", "cut.ndjson").check(0 if kind == "begin" else 1)
        status = json.loads(result.out)["status"]
        assert status == {"begin": "complete", "end": "open"}.get(kind, "truncated")
