"""The archive file, looked at by plain SQLite, killed, starved of room, read while it is written, damaged."""

import gzip
import json
import os
import pathlib
import re
import shutil
import sqlite3
import struct
import subprocess
import time

import pytest

from support import process

TOOL = pathlib.Path(process.program()).parent / "tests/support/archive_tool"
GOLDEN = pathlib.Path(__file__).resolve().parents[1] / "golden" / "archive"
UUID4 = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


def tool(*args, timeout=60, **options):
    return process.run(*args, argv0=str(TOOL), timeout=timeout, **options)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """One archive with something of everything, not to be changed."""
    path = tmp_path_factory.mktemp("made") / "a.tide"
    tool("make", path).check()
    return path


@pytest.fixture
def archive(made, tmp_path):
    """A copy of it, to be changed."""
    return pathlib.Path(shutil.copy(made, tmp_path / "a.tide"))


@pytest.fixture
def rows(made):
    """rows(SQL) of the archive that was made."""
    db = sqlite3.connect(f"file:{made}?mode=ro&immutable=1", uri=True)
    yield lambda sql, *args: db.execute(sql, args).fetchall()
    db.close()


def change(path, sql):
    db = sqlite3.connect(path)
    db.executescript(sql)
    db.close()


# -- the format, table by table

def test_header_says_what_it_is(made):
    header = made.read_bytes()[:100]
    assert header[:16] == b"SQLite format 3\0"
    assert struct.unpack(">H", header[16:18]) == (4096,)
    assert header[18:20] == b"\2\2", "a write-ahead log"
    assert struct.unpack(">I", header[52:56])[0] > 0 and header[64:68] == b"\0\0\0\1", \
        "incremental vacuum"
    assert struct.unpack(">I", header[60:64]) == (4,)
    assert header[68:72] == b"dend"
    assert [path.name for path in made.parent.iterdir()] == ["a.tide"], "one file at rest"


COLUMNS = {
    "sources": [("id", "INTEGER", 0, 1), ("labels", "TEXT", 1, 0), ("metadata", "TEXT", 1, 0),
                ("complete", "INTEGER", 1, 0), ("clock_anchor_wall_ns", "INTEGER", 1, 0),
                ("uuid", "TEXT", 0, 0), ("heartbeat", "INTEGER", 0, 0),
                ("heartbeat_interval_ns", "INTEGER", 0, 0)],
    "segments": [("source_id", "INTEGER", 1, 1), ("stream", "TEXT", 1, 2), ("seq", "INTEGER", 1, 3),
                 ("rows", "INTEGER", 1, 0), ("first_ts", "INTEGER", 1, 0),
                 ("last_ts", "INTEGER", 1, 0), ("bytes", "BLOB", 1, 0),
                 ("caller_index", "BLOB", 0, 0)],
    "wal": [("source_id", "INTEGER", 1, 1), ("stream", "TEXT", 1, 2), ("ts", "INTEGER", 1, 3),
            ("wall_offset", "INTEGER", 1, 0), ("row", "BLOB", 1, 0)],
    "clock_offsets": [("source_id", "INTEGER", 1, 1), ("ts", "INTEGER", 1, 2),
                      ("offset_ns", "INTEGER", 1, 0)],
    "caller_rows": [("source_id", "INTEGER", 1, 0), ("stream", "TEXT", 1, 0),
                    ("ts", "INTEGER", 1, 0), ("blob", "BLOB", 1, 0)],
}


@pytest.mark.parametrize("table", COLUMNS)
def test_tables_have_their_columns_in_order(rows, table):
    found = [(name, kind, notnull, key) for _, name, kind, notnull, _, key
             in rows(f"PRAGMA table_info({table})")]
    assert found == COLUMNS[table]
    keys = rows(f"PRAGMA foreign_key_list({table})")
    if table == "sources":
        assert keys == []
        assert rows("PRAGMA table_info(sources)")[3][4] == "0", "complete is 0 by default"
    else:
        assert [key[2:8] for key in keys] == \
            [("sources", "source_id", "id", "NO ACTION", "NO ACTION", "NONE")]


def test_there_are_no_other_tables_and_just_these_indexes(rows):
    assert {name for name, in rows("SELECT name FROM sqlite_schema WHERE type = 'table'")} == \
        set(COLUMNS) | {"tidemark_held"}
    indexes = {(table, name): [column for _, _, column in rows(f"PRAGMA index_info({name})")]
               for name, table in rows("SELECT name, tbl_name FROM sqlite_schema WHERE type = "
                                       "'index' AND sql IS NOT NULL")}
    assert indexes == {
        ("segments", "segments_by_time"): ["source_id", "stream", "last_ts"],
        ("caller_rows", "caller_rows_by_time"): ["source_id", "stream", "ts"],
    }
    for sql, in rows("SELECT sql FROM sqlite_schema WHERE type = 'table'"):
        assert "WITHOUT ROWID" not in sql.upper() and "STRICT" not in sql.upper()
    assert rows("SELECT type FROM sqlite_schema WHERE type NOT IN ('table', 'index')") == []


def test_sources_say_who_wrote_them(rows):
    first, second = rows("SELECT labels, metadata, complete, clock_anchor_wall_ns, uuid, "
                         "heartbeat, heartbeat_interval_ns FROM sources ORDER BY id")
    assert first[0] == "{}" and second[0] == '{"a":"é\\"","z":"1"}', "compact, keys sorted"
    assert (first[2], second[2]) == (0, 1) and (first[3], second[3]) == (0, -5)
    for labels, metadata, _, anchor, uuid, heartbeat, interval in (first, second):
        assert UUID4.fullmatch(uuid)
        assert heartbeat >= 1 and interval == 20_000_000
        found = json.loads(metadata)
        assert metadata == json.dumps(found, separators=(",", ":"), sort_keys=True)
        assert all(isinstance(value, str) for value in found.values())
        assert found["encoder"] == "plain-1"
        session, = json.loads(found["writer_sessions"])
        assert session.keys() == {"session", "clock_anchor_wall_ns", "dendro"}
        assert session["clock_anchor_wall_ns"] == anchor and UUID4.fullmatch(session["session"])
    assert first[4] != second[4]


def test_segments_say_what_is_in_them(rows):
    found = rows("SELECT source_id, stream, seq, rows, first_ts, last_ts, bytes, caller_index "
                 "FROM segments ORDER BY source_id, stream, seq")
    assert [segment[:6] for segment in found] == [
        (1, "a", 0, 15, 1, 15), (1, "a", 1, 15, 16, 30),
        (1, "b", 0, 15, 1, 15), (1, "b", 1, 15, 16, 30), (2, "a", 0, 11, -10, 0)]
    for _, _, _, count, first, last, blob, index in found:
        assert blob.startswith(b"plain")
        times = [ts for ts, _ in plain_rows(blob)]
        assert times == list(range(first, last + 1)) and len(times) == count
        assert index == str(count).encode()


def plain_rows(blob):
    at = 5
    while at < len(blob):
        ts, size = struct.unpack(">qI", blob[at:at + 12])
        yield ts, blob[at + 12:at + 12 + size]
        at += 12 + size


def test_live_rows_are_those_behind_their_segments(rows):
    found = rows("SELECT source_id, stream, ts, wall_offset, row FROM wal "
                 "ORDER BY source_id, stream, ts")
    assert [row[:3] for row in found] == \
        [(1, name, ts) for name in "ab" for ts in range(31, 36)] + \
        [(2, "b", ts) for ts in range(-10, 1)]
    for _, _, ts, wall_offset, row in found:
        assert wall_offset == 1000 - ts and row == str(ts).encode()


def test_clock_offsets_are_noted_at_each_sealing_and_at_the_end(rows):
    assert rows("SELECT source_id, ts, offset_ns FROM clock_offsets ORDER BY 1, 2") == \
        [(1, 15, 985), (1, 30, 970), (2, 0, 1000), (2, 100, 7)]


def test_caller_rows_share_times_and_make_no_series(rows):
    assert rows("SELECT source_id, stream, ts, blob FROM caller_rows ORDER BY rowid") == \
        [(1, "a", 1, b"columns 1"), (1, "a", 1, b"columns 2"), (1, "b", 5, b"columns 3")]


def test_held_bytes_are_in_a_table_of_their_own(rows):
    assert rows("SELECT source_id, name, CAST(bytes AS TEXT) FROM tidemark_held ORDER BY 1") == \
        [(1, "newest", "35"), (2, "newest", "0")]


# -- files of other programs

@pytest.fixture(params=["dendro-0.3.4.tide", "dendro-0.3.4-killed.tide"])
def of_the_crate(request, tmp_path):
    """An archive that the Rust crate wrote (dendro_writer.rs), closed or killed."""
    for packed in GOLDEN.glob(f"{request.param}*.gz"):
        (tmp_path / packed.stem).write_bytes(gzip.decompress(packed.read_bytes()))
    return tmp_path / request.param


def test_an_archive_of_the_crate_is_read(of_the_crate):
    for series in "ab":
        assert tool("read", of_the_crate, series).check().out == "1-30\n"
    assert tool("catalogue", of_the_crate).check().out == "1 a 1 20 10\n1 b 1 20 10\n"
    assert tool("verify", of_the_crate, "full").check().out == ""


def test_an_archive_of_the_crate_is_gone_on_with(of_the_crate):
    """Its session and events stay, ours come behind them."""
    change(of_the_crate, "CREATE TABLE tidemark_held (source_id INTEGER NOT NULL REFERENCES "
                         "sources(id), name TEXT NOT NULL, bytes BLOB NOT NULL, "
                         "PRIMARY KEY (source_id, name));"
                         "INSERT INTO tidemark_held VALUES (1, 'newest', '30')")
    tool("write", of_the_crate, "ticks=10", "seal=40").check()
    for series in "ab":
        assert tool("read", of_the_crate, series).check().out == "1-130\n"
    tool("verify", of_the_crate, "full").check()
    db = sqlite3.connect(of_the_crate)
    metadata = json.loads(db.execute("SELECT metadata FROM sources").fetchone()[0])
    first, second = json.loads(metadata["writer_sessions"])
    assert first["dendro"] == "0.3.4" and "resumed_after_ts" not in first
    assert second["dendro"].startswith("tidemark") and second["resumed_after_ts"] == 30
    assert db.execute("SELECT group_concat(seq) FROM segments WHERE stream = 'a'").fetchone() == \
        ("0,1,2",)
    db.close()


def test_a_file_with_comments_and_unknown_tables_is_read(archive):
    change(archive, "CREATE TABLE stream_summary (a /* a comment */ TEXT);"
                    "CREATE INDEX other ON wal (row); ALTER TABLE wal ADD COLUMN more TEXT")
    assert tool("read", archive, "a").check().out == "1-35\n"
    tool("write", archive, "ticks=20").check()
    assert tool("read", archive, "a").check().out == "1-235\n"
    tool("verify", archive, "full").check()


def test_a_file_without_optional_columns_is_read_and_gone_on_with(archive):
    change(archive, "ALTER TABLE sources DROP COLUMN uuid; ALTER TABLE sources DROP COLUMN "
                    "heartbeat; ALTER TABLE sources DROP COLUMN heartbeat_interval_ns;"
                    "ALTER TABLE segments DROP COLUMN caller_index")
    assert tool("read", archive, "a").check().out == "1-35\n"
    tool("verify", archive, "full").check()
    tool("write", archive, "ticks=20").check()
    assert tool("read", archive, "a").check().out == "1-235\n"


def test_metadata_that_is_no_string_is_refused_by_name(archive):
    change(archive, "UPDATE sources SET metadata = '{\"a\":1}' WHERE id = 1")
    result = tool("catalogue", archive).check(3)
    assert "metadata of source 1" in result.err and str(archive) in result.err


def test_a_copy_is_exact_in_the_older_mode_and_gets_a_log_again(archive, tmp_path):
    copy = tmp_path / "copy.tide"
    tool("copy", archive, copy).check()
    header = copy.read_bytes()[:100]
    assert header[18:20] == b"\1\1" and header[64:72] == b"\0\0\0\1dend"
    assert tool("read", copy, "b").check().out == "1-35\n"
    tool("write", copy, "ticks=3").check()
    assert copy.read_bytes()[18:20] == b"\2\2"
    assert tool("read", copy, "b").check().out == "1-65\n"


def test_an_index_cannot_change_the_order_of_segments(archive):
    """Segments are read by number also where the index by time would give another order."""
    change(archive, "ANALYZE")
    assert tool("read", archive, "a").check().out == "1-35\n"


# -- killed at any moment

def written(out):
    """The newest row that the writer said is written."""
    found = re.findall(r"^(?:written|going on behind) (\d+)$", out, re.M)
    return int(found[-1]) if found else 0


def spans(path, series):
    out = tool("read", path, series).check().out
    return [tuple(map(int, line.rsplit("-", 1))) for line in out.splitlines()]


def check_whole(path, newest, rows_a_tick, kept=0):
    """No acknowledged row is lost or doubled (the reader fails on one that comes twice), but for
    those before the `kept` newest, if not all are."""
    found = {series: spans(path, series) or [(1, 0)] for series in "ab"}
    (first_a, last), = found["a"]
    (first_b, last_b), = found["b"]
    assert newest <= last <= newest + rows_a_tick and last % rows_a_tick == 0
    assert last_b == last
    # One of them may have been joined already when it died: of a long segment none is forgotten.
    assert max(first_a, first_b) <= (max(1, last - kept) if kept else 1)
    tool("verify", path, "full").check()


@pytest.mark.parametrize("forget", [0, 300], ids=["keep", "forget"])
def test_killed_at_random_moments_nothing_is_lost_or_doubled(tmp_path, rng, forget):
    path = tmp_path / "a.tide"
    newest = 0
    for _ in range(process.soak(10, 200)):
        with process.Process("write", path, "seal=60", "rows=5", f"forget={forget}",
                             "compact=4", argv0=str(TOOL)) as writer:
            writer.wait_for_line(r"^written", stream="out")
            time.sleep(rng.uniform(0, 0.25))
            writer.kill()
            newest = max(newest, written(writer.out()))
        check_whole(path, newest, 5, kept=forget)
    assert newest > 100


def test_killed_while_it_is_made_leaves_it_whole_or_not_there(tmp_path, rng):
    for number in range(process.soak(20, 200)):
        path = tmp_path / f"{number}.tide"
        with process.Process("write", path, "ticks=1", argv0=str(TOOL)) as writer:
            time.sleep(rng.uniform(0, 0.02))
            writer.kill()
        if path.exists():
            tool("verify", path).check()
            tool("write", path, "ticks=1").check()


# -- a disk that is full, or fails

@pytest.fixture
def small_disk(tmp_path):
    """A file system of 2 MiB; needs the right to mount."""
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)],
                             capture_output=True, check=False)
    if mounted.returncode != 0:
        pytest.skip("no file system can be mounted here")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=False)


def test_on_a_full_disk_writing_waits_and_nothing_is_lost(small_disk):
    path = small_disk / "a.tide"
    ballast = small_disk / "ballast"
    with process.Process("write", path, "rows=50", "seal=500", argv0=str(TOOL)) as writer:
        writer.wait_for_line(r"^failed: .*make room", stream="out")
        before = written(writer.out())
        time.sleep(0.2)
        assert written(writer.out()) <= before + 100, "a tick may still fit"
        writer.kill()
        newest = written(writer.out())
    check_whole(path, newest, 50)
    assert not ballast.exists()


def test_when_there_is_room_again_writing_goes_on(small_disk):
    path = small_disk / "a.tide"
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(1500 * 1024))
    with process.Process("write", path, "rows=20", "seal=200", "pause_us=500",
                         argv0=str(TOOL)) as writer:
        writer.wait_for_line(r"^failed: .*make room", stream="out")
        stuck = written(writer.out())
        ballast.unlink()
        writer.wait_until(lambda: written(writer.out()) > stuck + 200, what="writing to go on")
        writer.kill()
        newest = written(writer.out())
    check_whole(path, newest, 20)


def test_with_failing_calls_now_and_then_nothing_is_lost(tmp_path):
    path = tmp_path / "a.tide"
    result = tool("write", path, "ticks=300", "seal=60", "compact=3", "faults_every=9").check()
    assert result.out.count("failed: ") > 20
    check_whole(path, written(result.out), 10)


def remount(folder, how):
    subprocess.run(["mount", "-o", f"remount,{how}", str(folder)], check=True)


def test_on_a_read_only_disk_an_archive_at_rest_is_read(small_disk, made):
    path = pathlib.Path(shutil.copy(made, small_disk / "a b%?#.tide"))
    remount(small_disk, "ro")
    assert tool("read", path, "a").check().out == "1-35\n"
    tool("verify", path, "full").check()
    assert str(path) in tool("write", path, "ticks=1").check(3).err
    assert tool("read", path.name, "a", cwd=small_disk).check().out == "1-35\n"
    assert os.listdir(small_disk) == [path.name]


def test_on_a_read_only_disk_an_archive_with_a_log_is_not_read_short(small_disk):
    path = small_disk / "a.tide"
    with process.Process("write", path, argv0=str(TOOL)) as writer:
        writer.wait_for_line(r"^written", stream="out")
        writer.kill()
        newest = written(writer.out())
    assert pathlib.Path(f"{path}-wal").stat().st_size > 0
    for without_index in (False, True):
        if without_index:
            remount(small_disk, "rw")
            pathlib.Path(f"{path}-shm").unlink()
        remount(small_disk, "ro")
        result = tool("read", path, "a")
        assert result.code == 3 or int(result.out.split("-")[1]) >= newest
        assert result.code == 0 or str(path) in result.err


# -- read while it is written

def test_many_readers_never_see_a_torn_state(tmp_path):
    path = tmp_path / "a.tide"
    seconds = process.soak(3, 60)
    with process.Process("write", path, "seal=100", "rows=10", "compact=5", "forget=4000",
                         argv0=str(TOOL)) as writer:
        writer.wait_for_line(r"^sealed", stream="out")
        readers = [process.Process("watch", path, seconds, argv0=str(TOOL)) for _ in range(6)]
        for reader in readers:
            result = reader.wait(seconds + 60).check()
            assert int(result.out.split()[0]) > 0
        assert writer.running()
        assert writer.out().count("sealed") > 3


# -- damaged and foreign files

def quiet_answers(path):
    """Every reader gives an answer or an error that names the file; none crashes or hangs."""
    for args in (("catalogue", path), ("read", path, "a"), ("verify", path, "full")):
        result = tool(*args, timeout=60)
        assert result.code in (0, 1, 3), f"{args}: {result.code}\n{result.err}"
        if result.code == 3:  # a live row of other bytes is found by the tool alone
            assert str(path) in result.err or "the row at" in result.err, result.err


def test_random_damage_gives_errors_and_never_a_crash(made, tmp_path, rng):
    whole = made.read_bytes()
    found = 0
    for number in range(process.soak(40, 1500)):
        damaged = bytearray(whole)
        for _ in range(rng.choice((1, 3, 30))):
            at = rng.randrange(len(damaged))
            damaged[at:at + 4] = rng.randbytes(rng.choice((1, 4)))
        if rng.random() < 0.2:
            del damaged[rng.randrange(len(damaged)):]
        path = tmp_path / f"{number}.tide"
        path.write_bytes(damaged)
        quiet_answers(path)
        found += tool("verify", path, "full").code != 0
        for name in (path, f"{path}-wal", f"{path}-shm"):
            pathlib.Path(name).unlink(missing_ok=True)
    assert found > 0


def test_random_damage_to_blobs_is_found_on_reading(made, tmp_path, rng):
    """A segment is not opened by verification; whoever reads it gets its rows or an error."""
    for number in range(process.soak(20, 500)):
        path = pathlib.Path(shutil.copy(made, tmp_path / f"{number}.tide"))
        db = sqlite3.connect(path)
        blob, = db.execute("SELECT bytes FROM segments WHERE stream = 'a' AND seq = 0 AND "
                           "source_id = 1").fetchone()
        damaged = bytearray(blob)
        at = rng.randrange(len(damaged))
        damaged[at] ^= 1 << rng.randrange(8)
        if rng.random() < 0.3:
            del damaged[rng.randrange(len(damaged)):]
        db.execute("UPDATE segments SET bytes = ? WHERE stream = 'a' AND seq = 0 AND "
                   "source_id = 1", (bytes(damaged),))
        db.commit()
        db.close()
        result = tool("read", path, "a").check(3)
        assert "segment 0 of a" in result.err or "row at" in result.err
        assert tool("read", path, "b").check().out == "1-35\n", "others are not concerned"


def foreign_files(folder):
    (folder / "empty").write_bytes(b"")
    (folder / "text").write_text("no database at all\n" * 100)
    (folder / "magic").write_bytes(b"SQLite format 3\0" + bytes(84))
    for name, sql in {
            "plain": "CREATE TABLE t (a)",
            "other": "PRAGMA application_id = 1234; CREATE TABLE t (a)",
            "wal": "PRAGMA journal_mode = WAL; CREATE TABLE t (a)",
            "bare": "PRAGMA application_id = 0x64656e64; PRAGMA user_version = 4;"
                    "CREATE TABLE t (a)",
            "newer": "PRAGMA application_id = 0x64656e64; PRAGMA user_version = 5;"
                     "CREATE TABLE t (a)"}.items():
        change(folder / name, sql)
    return sorted(folder.iterdir())


def test_foreign_files_are_refused_and_keep_every_byte(tmp_path):
    for path in foreign_files(tmp_path):
        before = path.read_bytes()
        for args in (("catalogue", path), ("write", path, "ticks=1"), ("verify", path)):
            result = tool(*args).check(3)
            assert str(path) in result.err
        if path.name == "newer":
            assert "version 5" in result.err
        assert path.read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 8, "nothing appears beside them"


def test_a_missing_or_unreadable_file_is_an_error_that_names_it(tmp_path):
    assert "none.tide" in tool("catalogue", tmp_path / "none.tide").check(3).err
    assert str(tmp_path) in tool("catalogue", tmp_path).check(3).err
    assert os.listdir(tmp_path) == []
