"""tidemark archive info and verify, on the real program and an archive that a test tool makes."""

import contextlib
import json
import pathlib
import shutil
import sqlite3

import pytest

from support import process

TOOL = pathlib.Path(process.program()).parent / "tests/support/archive_tool"


@pytest.fixture
def archive(tmp_path):
    path = tmp_path / "a.tide"
    process.run("make", path, argv0=str(TOOL)).check()
    return path


def test_info_lists_sources_and_series(run, archive):
    lines = run("archive", "info", archive.name).check().out.splitlines()
    assert lines[0].startswith("a.tide: ") and lines[0].endswith(", 2 sources, 4 series")
    assert lines[1].startswith("source 1 stopped  ")
    assert lines[1].endswith("; encoder plain-1")
    assert lines[2] == ("    a: 30 rows in 2 segments, 421 B; 5 live rows; "
                        "1970-01-01T00:00:00.000Z to 1970-01-01T00:00:00.000Z")
    assert lines[4].startswith("source 2 complete ") and lines[4].endswith(' a=é" z=1; encoder plain-1')
    assert lines[5].startswith("    a: 11 rows in 1 segment, 159 B; 19")
    assert lines[6].startswith("    b: 11 live rows; ")
    assert len(lines) == 7


def test_info_as_json_gives_every_number(run, archive):
    said = json.loads(run("archive", "info", "--json", f"archive:{archive}").check().out)
    assert said["path"] == str(archive) and said["bytes"] == archive.stat().st_size
    assert [source["complete"] for source in said["sources"]] == [False, True]
    assert said["sources"][1]["labels"] == {"a": 'é"', "z": "1"}
    assert said["series"][0] == {
        "source": 1, "name": "a", "segments": 2, "sealed_rows": 30, "sealed_bytes": 421,
        "sealed_from": 1, "sealed_to": 30, "live_rows": 5, "live_from": 31, "live_to": 35}
    assert said["series"][3] == {
        "source": 2, "name": "b", "segments": 0, "sealed_rows": 0, "sealed_bytes": 0,
        "sealed_from": None, "sealed_to": None, "live_rows": 11, "live_from": -10, "live_to": 0}


def test_times_that_a_double_would_round_are_strings(run, archive):
    db = sqlite3.connect(archive)
    db.execute("UPDATE wal SET ts = 9007199254740993 WHERE ts = 35 AND stream = 'a'")
    db.commit()
    db.close()
    said = json.loads(run("archive", "info", "--json", archive).check().out)
    assert said["series"][0]["live_to"] == "9007199254740993"


def test_names_cannot_command_the_terminal(run, archive):
    db = sqlite3.connect(archive)
    db.execute("UPDATE wal SET stream = ? WHERE stream = 'b'", ("\x1b[2J\nx",))
    db.commit()
    db.close()
    assert "\\x1b[2J\\x0ax: " in run("archive", "info", archive).check().out


def test_verify_says_sound_or_what_is_not(run, archive):
    assert run("archive", "verify", archive.name).check().out == "a.tide: sound\n"
    assert run("archive", "verify", "--full", archive.name).check().out == \
        "".join(f"note: source {i}: its rows are not opened: their encoder is plain-1\n"
                for i in (1, 2)) + "a.tide: sound\n"
    db = sqlite3.connect(archive)
    db.execute("INSERT INTO wal SELECT source_id, stream, 2, 0, x'00' FROM segments "
               "WHERE stream = 'a' AND seq = 0 AND source_id = 1")
    db.commit()
    assert run("archive", "verify", archive.name).check().out == \
        ("note: rows are still stored behind their segment; the next writer removes them: "
         "source 1, series a, 1\na.tide: sound\n")
    db.execute("UPDATE segments SET rows = 0 WHERE seq = 1")
    db.commit()
    db.close()
    result = run("archive", "verify", archive.name).check(1)
    assert "problem: a segment has no rows: source 1, series a, 1\n" in result.out
    assert result.out.endswith("a.tide: 2 problems\n")
    said = json.loads(run("archive", "verify", "--json", archive).check(1).out)
    assert said["sound"] is False and said["problems"] == 2 and len(said["findings"]) == 3


def test_verify_of_a_damaged_file_lists_what_is_damaged(run, archive):
    damaged = bytearray(archive.read_bytes())
    damaged[3 * 4096:4 * 4096] = b"\xff" * 4096
    archive.write_bytes(damaged)
    result = run("archive", "verify", archive).check(1)
    assert "damaged" in result.out


def test_copy_of_a_damaged_file_says_that_it_is_damaged(run, tmp_path):
    """SQLite takes some pages that make no sense for a disk without room."""
    with contextlib.closing(sqlite3.connect(tmp_path / "s.db")) as db:
        db.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, v)")
        db.executemany("INSERT INTO t VALUES(?, ?)", [(i, str(i) * 20) for i in range(4000)])
        db.commit()
    run("copy", "-q", "sqlite:s.db", "archive:h.tide").check()
    whole = (tmp_path / "h.tide").read_bytes()
    said = []
    for at in range(3 * 4096 + 100, len(whole) - 5000, (len(whole) - 20000) // 8):
        (tmp_path / "d.tide").write_bytes(whole[:at] + b"x" * 5000 + whole[at + 5000:])
        result = run("archive", "copy", "d.tide", f"{at}.tide")
        said += [result.err] if result.code != 0 else []
    assert len(said) > 3 and all("the file is damaged" in line for line in said), said


@pytest.mark.parametrize("size", [4096, 8192, 5 * 4096 + 7])
def test_verify_of_a_file_that_was_cut_says_no(run, archive, size):
    archive.write_bytes(archive.read_bytes()[:size])
    result = run("archive", "verify", archive.name).check(1)
    assert "problem: " in result.out and result.err == ""
    assert "verify" not in result.out  # no way out, for who has just done it
    said = json.loads(run("archive", "verify", "--json", archive).check(1).out)
    assert said["sound"] is False and said["problems"] == len(said["findings"]) >= 1


@pytest.mark.parametrize("args, said", [
    ((), "say what to do"),
    (("info",), "an ARCHIVE is missing"),
    (("look", "a.tide"), "there is no command 'look'"),
    (("info", "a.tide", "b.tide"), "too many arguments"),
    (("info", "--full", "a.tide"), "unrecognized option '--full'"),
    (("info", "none.tide"), "none.tide"),
    (("verify", "."), "is not a file"),
])
def test_wrong_usage_is_said(run, args, said):
    result = run("archive", *args).check(2)
    assert said in result.err and result.out == ""


def test_a_foreign_file_is_refused_and_kept(run, tmp_path):
    path = pathlib.Path(shutil.copy(__file__, tmp_path / "text"))
    assert "not an archive" in run("archive", "verify", path).check(2).err
    assert path.read_bytes() == pathlib.Path(__file__).read_bytes()
