"""State directories that are somebody else's, torn, older than they should be, or no directories."""

import contextlib
import json
import os
import shutil
import sqlite3

import pytest
from support.process import soak
from support.trouble import (check_equal, ends, execute, last_words, make_numbers, one_sentence,
                             read_only)

COPY = ["copy", "sqlite:a.db", "file:out.ndjson", "--state", "state"]


@pytest.fixture
def database(tmp_path):
    make_numbers(tmp_path / "a.db")
    return tmp_path / "a.db"


@pytest.fixture
def kept(start, database, tmp_path):
    """A copy that followed for a while and was killed: two checkpoints, changes still to come."""
    process = start(*COPY, "--follow", "--chunk-rows", "200")
    out = tmp_path / "out.ndjson"
    process.wait_until(lambda: ends(out) == 1)
    for n in range(3):
        execute(database, f"UPDATE t SET v = 'step {n}' WHERE id = {n}")
        process.wait_until(lambda n=n: b"step %d" % n in out.read_bytes())
    process.wait_until(lambda: len(checkpoints(tmp_path / "state")) == 2
                       and sequence(checkpoints(tmp_path / "state")[-1]) > 3)
    process.kill()
    execute(database, "UPDATE t SET v = 'after the kill' WHERE id = 9")
    return tmp_path / "state"


def copy_state(state, to):
    """What a backup has of it: not the socket."""
    shutil.copytree(state, to, ignore=shutil.ignore_patterns("control"))


def sequence(path):
    return json.loads(json.loads(path.read_text())["checkpoint_data"])["tidemark"]["sequence"]


def checkpoints(state):
    """The files, the newest last."""
    return sorted(state.glob("checkpoint_*"), key=sequence)


TEARS = {
    "empty": lambda text: b"",
    "cut_in_half": lambda text: text[:len(text) // 2],
    "one_byte_short": lambda text: text[:-1],
    "zeros": lambda text: b"\0" * len(text),
    "another_file": lambda text: b'{"a": 1}',
    "garbage_behind": lambda text: text + b"}",
}


@pytest.mark.parametrize("tear", TEARS)
def test_newest_checkpoint_torn_goes_on_from_the_one_before(run, kept, database, tmp_path, tear):
    newest = checkpoints(kept)[-1]
    newest.write_bytes(TEARS[tear](newest.read_bytes()))
    result = run(*COPY).check()
    assert newest.name in result.err and "going on" in result.err
    check_equal(database, tmp_path / "out.ndjson")


@pytest.mark.parametrize("tear", TEARS)
def test_all_checkpoints_torn_are_named_and_nothing_begins_anew(run, kept, database, tmp_path, tear):
    before = (tmp_path / "out.ndjson").read_bytes()
    saved = {path: path.read_bytes() for path in checkpoints(kept)}
    for path, text in saved.items():
        path.write_bytes(TEARS[tear](text))
    one_sentence(run(*COPY), 3, "state", "checkpoint")
    result = run(*COPY)
    assert all(path.name in result.err for path in saved)
    assert (tmp_path / "out.ndjson").read_bytes() == before
    for path, text in saved.items():
        path.write_bytes(text)
    run(*COPY).check()
    check_equal(database, tmp_path / "out.ndjson")


def test_newest_checkpoint_cut_at_every_byte_never_loses_anything(run, kept, database, tmp_path):
    saved = tmp_path / "saved"
    copy_state(kept, saved)
    shutil.copy(tmp_path / "out.ndjson", tmp_path / "saved.ndjson")
    text = checkpoints(kept)[-1].read_bytes()
    for cut in range(0, len(text), len(text) // soak(6, 200) + 1):
        name = checkpoints(saved)[-1].name
        (kept / name).write_bytes(text[:cut])
        result = run("checkpoint", "show", "--json", "state").check()
        assert json.loads(result.out)["tidemark"]["sequence"] == sequence(checkpoints(saved)[0])
    run(*COPY).check()
    check_equal(database, tmp_path / "out.ndjson")


def test_state_restored_from_a_backup_repeats_what_the_sink_knows(run, start, kept, database,
                                                                  tmp_path):
    """Older than what the sink holds, not older than what the source has pruned."""
    copy_state(kept, tmp_path / "backup")
    process = start(*COPY, "--follow")
    process.wait_until(lambda: b"after the kill" in (tmp_path / "out.ndjson").read_bytes())
    process.kill()
    shutil.rmtree(kept)
    copy_state(tmp_path / "backup", kept)
    result = run(*COPY)
    if result.code == 0:
        check_equal(database, tmp_path / "out.ndjson")
    else:
        assert "restored from a backup" in last_words(result), result.err


def test_state_restored_from_a_backup_that_is_too_old_is_refused(run, start, kept, database,
                                                                 tmp_path):
    """Older than what the source has pruned: what is missing cannot be had again."""
    copy_state(kept, tmp_path / "backup")
    process = start(*COPY, "--follow")
    for n in range(4):
        execute(database, f"UPDATE t SET v = 'round {n}'")
        process.wait_until(lambda n=n: confirmed(database) > 2000 * (n + 1) - 100, 20, "a confirm")
    process.kill()
    shutil.rmtree(kept)
    copy_state(tmp_path / "backup", kept)
    before = (tmp_path / "out.ndjson").read_bytes()
    result = run(*COPY).check(3)
    assert "--overwrite" in result.err, result.err
    assert (tmp_path / "out.ndjson").read_bytes() == before
    run("copy", "sqlite:a.db", "file:out.ndjson", "--state", "anew", "--overwrite").check()
    check_equal(database, tmp_path / "out.ndjson")


def confirmed(database):
    with contextlib.closing(sqlite3.connect(database)) as db:
        return db.execute("SELECT confirmed FROM _tidemark_pipelines").fetchone()[0]


def test_state_of_another_source_is_refused_and_kept(run, kept, database, tmp_path):
    make_numbers(tmp_path / "b.db", rows=5)
    saved = {path: path.read_bytes() for path in kept.glob("check*")}
    result = run("copy", "sqlite:b.db", "file:b.ndjson", "--state", "state")
    assert result.code in (2, 3) and "state" in last_words(result), result.err
    assert {path: path.read_bytes() for path in kept.glob("check*")} == saved
    run(*COPY).check()
    check_equal(database, tmp_path / "out.ndjson")


def test_state_in_use_is_refused_and_free_once_that_process_is_killed(run, start, database, tmp_path):
    process = start(*COPY, "--follow")
    process.wait_until(lambda: ends(tmp_path / "out.ndjson") == 1)
    one_sentence(run(*COPY), 2, "state", str(process.pid))
    process.kill()
    run(*COPY).check()
    check_equal(database, tmp_path / "out.ndjson")


@pytest.mark.parametrize("place, put, word", [
    ("state", lambda path: path.write_text("mine"), 0),
    ("state", os.mkfifo, 0),
    ("state", lambda path: path.symlink_to("nowhere"), 0),
    ("state/below", lambda path: path.parent.write_text("mine"), 0),
    ("/dev/null", lambda path: None, 2),
    ("/proc/tidemark", lambda path: None, 2),
], ids=["file", "fifo", "link", "below_a_file", "device", "proc"])
def test_state_that_is_no_directory_is_named(run, database, tmp_path, place, put, word):
    put(tmp_path / place)
    before = database.read_bytes()
    result = run("copy", "sqlite:a.db", "file:out.ndjson", "--state", place, timeout=10)
    assert result.code in (2, 3) and place.split("/")[word] in last_words(result), result.err
    assert database.read_bytes() == before
    if (tmp_path / "state").is_file():
        assert (tmp_path / "state").read_text() == "mine"


def test_state_that_cannot_be_written_is_named_and_gone_on_with(run, kept, database, tmp_path):
    with read_only(kept):
        one_sentence(run(*COPY), 3, "state", "Read-only file system")
        run("checkpoint", "show", "state").check()
    run(*COPY).check()
    check_equal(database, tmp_path / "out.ndjson")


@pytest.mark.parametrize("name", ["lock", "dead_letters.ndjson"])
def test_name_in_the_state_that_is_taken_is_said(run, database, tmp_path, name):
    (tmp_path / "state" / name).mkdir(parents=True)
    result = run(*COPY, "--max-record-bytes", "1024", timeout=20)
    if name == "lock":
        assert result.code in (2, 3) and "lock" in last_words(result), result.err
    else:
        assert result.code in (0, 3), result.err  # no letter was to be written


def test_checkpoint_that_is_a_directory_is_said(run, kept):
    (kept / "checkpoint_snapshot_progress_2100-01-01T00:00:00+00:00.json").mkdir()
    result = run(*COPY)
    assert result.code in (0, 3), result.err
    if result.code == 3:
        assert "2100-01-01" in last_words(result)


def test_checkpoint_of_a_newer_version_is_left_alone(run, kept, database, tmp_path):
    newest = checkpoints(kept)[-1]
    text = newest.read_text().replace('\\"version\\":1,', '\\"version\\":2,')
    assert text != newest.read_text()
    newest.write_text(text)
    one_sentence(run(*COPY), 3, newest.name, "version")
    assert newest.read_text() == text


def test_state_lost_altogether_is_never_begun_over_in_silence(run, kept, database, tmp_path):
    """The sink has a copy that no checkpoint knows: it is said, with the ways on."""
    shutil.rmtree(kept)
    before = (tmp_path / "out.ndjson").read_bytes()
    result = run(*COPY).check(2)
    assert "--overwrite" in last_words(result) and "--append" in last_words(result)
    assert (tmp_path / "out.ndjson").read_bytes() == before
    run(*COPY, "--overwrite").check()
    check_equal(database, tmp_path / "out.ndjson")
