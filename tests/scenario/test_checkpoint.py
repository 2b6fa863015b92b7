"""tidemark checkpoint show and import, on the real program."""

import fcntl
import json
import os
import pathlib

import pytest

GOLDEN = pathlib.Path(__file__).resolve().parents[1] / "golden" / "checkpoint"
FOREIGN = ('{"reconciliation_pos":"0/16B3748","tables":[{"name":"users","last_pk":[{"type":"Int64",'
           '"value":42}],"done":false},{"name":"orders","last_pk":null,"done":true}]}')
OURS = [line for line in (GOLDEN / "ours.txt").read_text().splitlines() if line[0] == "{"]


def files(folder):
    return sorted(path.name for path in folder.iterdir() if path.name.startswith("checkpoint_"))


def test_import_text_then_show_gives_it_back(run, tmp_path):
    said = run("checkpoint", "import", "state", FOREIGN).check().out
    assert said == "imported into state: phase snapshot_progress, 1 of 2 tables done\n"
    assert run("checkpoint", "show", "state", "--json").check().out == FOREIGN + "\n"
    assert (tmp_path / "state").stat().st_mode & 0o777 == 0o700
    name, = files(tmp_path / "state")
    assert (tmp_path / "state" / name).stat().st_mode & 0o777 == 0o600
    stored = json.loads((tmp_path / "state" / name).read_text())
    assert list(stored) == ["checkpoint_data", "database_type", "phase", "created_at"]
    assert stored["checkpoint_data"] == FOREIGN
    assert name == "checkpoint_{}_{}.json".format(
        stored["phase"], stored["created_at"].replace("Z", "+00:00"))


@pytest.mark.parametrize("form", ["file.json", "transport.json"])
def test_import_file_and_standard_input(run, form):
    run("checkpoint", "import", "a", GOLDEN / form).check()
    run("checkpoint", "import", "b", "-", stdin=(GOLDEN / form).read_bytes()).check()
    for state in ("a", "b"):
        shown = json.loads(run("checkpoint", "show", state, "--json").check().out)
        assert shown == json.loads(FOREIGN)
        assert "phase        snapshot_progress\n" in run("checkpoint", "show", state).out


def test_import_of_another_phase_keeps_it(run):
    text = json.dumps({"database_type": "interleaved_snapshot", "checkpoint": json.loads(FOREIGN),
                       "phase": "catch_up_progress", "created_at": "2024-01-01T00:00:00Z"})
    assert "phase catch_up_progress" in run("checkpoint", "import", "a", text).check().out
    handoff = text.replace("catch_up_progress", "snapshot_handoff")
    assert "phase snapshot_progress" in run("checkpoint", "import", "b", handoff).check().out


def test_import_over_another_wants_force(run, tmp_path):
    run("checkpoint", "import", "state", OURS[1]).check()
    before = files(tmp_path / "state")
    refused = run("checkpoint", "import", "state", OURS[0]).check(2)
    assert "--force" in refused.err and refused.out == ""
    assert files(tmp_path / "state") == before
    # lower in sequence than what is there, and still the newest afterwards
    said = run("checkpoint", "import", "--force", "state", OURS[0]).check().out
    assert "in place of what was there" in said
    assert run("checkpoint", "show", "--json", "state").out == OURS[0] + "\n"
    run("checkpoint", "import", "--force", "state", FOREIGN).check()
    assert run("checkpoint", "show", "--json", "state").out == FOREIGN + "\n"
    assert len(files(tmp_path / "state")) == 1


def test_import_over_torn_ones_wants_force(run, tmp_path):
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "checkpoint_full_sync_end_2024-01-01T00:00:00+00:00.json").write_text("{")
    shown = run("checkpoint", "show", "state").check(3)
    assert "checkpoint_full_sync_end_2024-01-01T00:00:00+00:00.json" in shown.err
    run("checkpoint", "import", "state", FOREIGN).check(2)
    run("checkpoint", "import", "state", "--force", FOREIGN).check()
    assert run("checkpoint", "show", "--json", "state").check().err == ""


@pytest.mark.parametrize("text", [
    "{", "[]", '{"tables":[]}', FOREIGN + " x", FOREIGN.replace('"done":true', '"done":1'),
    '{"database_type":"mysql","checkpoint":{},"phase":"full_sync_end","created_at":'
    '"2024-01-01T00:00:00Z"}',
])
def test_import_of_anything_else_is_refused_and_touches_nothing(run, tmp_path, text):
    result = run("checkpoint", "import", "state", text).check(3)
    assert result.err.startswith("tidemark: checkpoint: ") and result.err.count("\n") == 1
    assert not (tmp_path / "state").exists()


def test_import_into_a_directory_in_use_is_refused(run, tmp_path):
    (tmp_path / "state").mkdir()
    with open(tmp_path / "state" / "lock", "w") as lock:
        lock.write("4711\n")
        lock.flush()
        fcntl.flock(lock, fcntl.LOCK_EX)
        result = run("checkpoint", "import", "state", FOREIGN).check(2)
        assert "process 4711" in result.err
        assert files(tmp_path / "state") == []


def test_show_needs_no_lock_and_changes_nothing(run, tmp_path):
    run("checkpoint", "import", "state", OURS[1]).check()
    before = {path.name: path.read_bytes() for path in (tmp_path / "state").iterdir()}
    with open(tmp_path / "state" / "lock", "r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        run("checkpoint", "show", "state").check()
    assert {path.name: path.read_bytes() for path in (tmp_path / "state").iterdir()} == before


def test_show_says_what_there_is(run):
    run("checkpoint", "import", "state", OURS[1]).check()
    lines = run("checkpoint", "show", "state").check().out.splitlines()
    for want in ("position     41", "phase        snapshot_progress", "pipeline     shop",
                 "tables       3, 1 done", '  users: copied up to (42, "-Infinity")',
                 "  orders: nothing copied yet", "  notes: done",
                 "  copy: seeded, failed tables: notes, x y", "  nats: not seeded, detached",
                 "  1 for copy: users, notes"):
        assert want in lines
    users, = [line for line in lines if line.startswith("  users for copy, nats: ")]
    for want in ("snapshot 017f22e2-79b0-7cc3-98c4-dc0c0c07398f", "attempt 2", "60 rows",
                 "2 keys to read again"):
        assert want in users


def test_show_file_says_the_same(run, tmp_path):
    run("checkpoint", "import", "state", FOREIGN).check()
    name, = files(tmp_path / "state")
    of_dir = run("checkpoint", "show", "state").check().out.splitlines()
    of_file = run("checkpoint", "show", f"state/{name}").check().out.splitlines()
    assert of_dir[1:] == of_file[1:]


def test_show_takes_the_one_before_a_torn_one_and_says_so(run, tmp_path):
    run("checkpoint", "import", "state", OURS[0]).check()
    torn = tmp_path / "state" / "checkpoint_full_sync_end_2100-01-01T00:00:00+00:00.json"
    torn.write_bytes((tmp_path / "state" / files(tmp_path / "state")[0]).read_bytes()[:-1])
    result = run("checkpoint", "show", "--json", "state").check()
    assert result.out == OURS[0] + "\n" and torn.name in result.err


def test_show_of_nothing_is_no(run, tmp_path):
    (tmp_path / "state").mkdir()
    result = run("checkpoint", "show", "state").check(1)
    assert result.out == "" and "holds no checkpoint" in result.err
    assert os.listdir(tmp_path / "state") == []


def test_show_of_what_is_not_there_or_no_checkpoint_is_failed(run, tmp_path):
    run("checkpoint", "show", "missing").check(3)
    (tmp_path / "other.json").write_text('{"a":1}')
    assert "other.json" in run("checkpoint", "show", "other.json").check(3).err


def test_show_escapes_control_characters(run):
    name = "a\x1b[2Jb\u009bc\x7f\n"
    text = json.dumps({"reconciliation_pos": name, "tables": [
        {"name": name, "last_pk": [{"type": "Text", "value": name}], "done": False}]},
        ensure_ascii=False)
    run("checkpoint", "import", "state", text).check()
    out = run("checkpoint", "show", "state").check().out
    assert not any(c in out for c in "\x1b\u009b\x7f") and "a\\x1b[2Jb" in out


def test_wrong_usage_is_two(run):
    for args in ([], ["look"], ["show"], ["show", "a", "b"], ["import", "a"], ["show", "a", "--force"],
                 ["import", "a", "{}", "--json"], ["import", "a", "{}", "c"]):
        assert run("checkpoint", *args).check(2).err.startswith("tidemark checkpoint: ")
