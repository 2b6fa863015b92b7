"""Signals of every kind and at every moment, and a surrounding in which little is as usual."""

import os
import re
import resource
import shutil
import signal
import subprocess
import time

import pytest
from support.process import soak
from support.trouble import (MIB, check_equal, ends, execute, last_words, locked, make_numbers,
                             wait_for)

FOLLOW = ["copy", "sqlite:a.db", "file:out.ndjson", "--follow"]
STOPS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


@pytest.fixture
def database(tmp_path):
    make_numbers(tmp_path / "a.db")
    return tmp_path / "a.db"


@pytest.fixture
def popen(program, tmp_path):
    """popen(*args, **options of Popen) in the test's folder, standard error as text."""
    made = []

    def call(*args, **options):
        options = {"cwd": tmp_path, "stderr": subprocess.PIPE, "stdout": subprocess.PIPE,
                   "stdin": subprocess.DEVNULL, "text": True, **options}
        made.append(subprocess.Popen([program, *args], **options))
        return made[-1]
    yield call
    for one in made:
        one.kill()
        one.communicate()


# -- signals

@pytest.mark.parametrize("number", STOPS)
def test_stop_signal_ends_in_order_and_the_next_run_goes_on(run, start, database, tmp_path, number):
    out = tmp_path / "out.ndjson"
    process = start(*FOLLOW)
    process.wait_until(lambda: ends(out) == 1)
    process.signal(number)
    result = process.wait(10).check()
    assert "followed until stopped" in result.out
    execute(database, "UPDATE t SET v = 'meanwhile' WHERE id = 5")
    run(*FOLLOW[:-1]).check()
    check_equal(database, out)


@pytest.mark.parametrize("number", STOPS)
def test_stop_signal_of_run(run, start, database, tmp_path, number):
    (tmp_path / "a.yaml").write_text("name: a\nsource: sqlite:a.db\nsinks: {x: file:out.ndjson}\n")
    process = start("run", "a.yaml")
    process.wait_until(lambda: ends(tmp_path / "out.ndjson") == 1)
    process.signal(number)
    process.wait(10).check()


def test_hangup_that_the_starter_ignores_is_ignored(popen, database, tmp_path):
    """As under nohup: the terminal goes away and the program stays."""
    process = popen(*FOLLOW, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    out = tmp_path / "out.ndjson"
    wait_for(lambda: ends(out) == 1)
    process.send_signal(signal.SIGHUP)
    execute(database, "UPDATE t SET v = 'after the hangup' WHERE id = 5")
    wait_for(lambda: b"after the hangup" in out.read_bytes(), what="the change")
    assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    assert process.wait(10) == 0


def test_signals_that_the_starter_blocked_still_stop(popen, database, tmp_path):
    process = popen(*FOLLOW, preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_BLOCK, STOPS))
    wait_for(lambda: ends(tmp_path / "out.ndjson") == 1)
    process.send_signal(signal.SIGTERM)
    assert process.wait(10) == 0


@pytest.mark.parametrize("number", STOPS)
def test_signal_at_any_moment_of_the_start_leaves_what_goes_on(run, start, tmp_path, rng, number):
    make_numbers(tmp_path / "a.db", rows=3000)
    for n in range(soak(15, 300)):
        process = start(*FOLLOW[:-1], "--chunk-rows", "100", env={"TMPDIR": tmp_path})
        time.sleep(rng.uniform(0, 0.03))
        process.signal(number)
        result = process.wait(20)
        assert result.code in (0, 1, -number), (n, result)
        if result.code == 0:
            break
    result = run(*FOLLOW[:-1])  # where the last one was stopped as it was complete, it says so
    assert result.code == 0 or "has ended (complete" in result.err, result.err
    check_equal(tmp_path / "a.db", tmp_path / "out.ndjson")


def test_two_signals_at_once_and_a_storm_of_them(run, start, database, tmp_path, rng):
    process = start(*FOLLOW)
    process.wait_until(lambda: ends(tmp_path / "out.ndjson") == 1)
    for _ in range(200):
        process.signal(rng.choice(STOPS))
    assert process.wait(10).code in (0, 1)
    run(*FOLLOW[:-1]).check()
    check_equal(database, tmp_path / "out.ndjson")


def test_signals_that_mean_nothing_change_nothing(start, database, tmp_path):
    process = start(*FOLLOW)
    out = tmp_path / "out.ndjson"
    process.wait_until(lambda: ends(out) == 1)
    for number in (signal.SIGPIPE, signal.SIGCHLD, signal.SIGURG, signal.SIGWINCH, signal.SIGCONT):
        process.signal(number)
    process.signal(signal.SIGSTOP)
    execute(database, "UPDATE t SET v = 'while stopped' WHERE id = 5")
    process.signal(signal.SIGCONT)
    process.wait_until(lambda: b"while stopped" in out.read_bytes())
    process.interrupt().check()


def test_reader_that_goes_away_ends_a_follow_and_the_next_writes_it_again(run, popen, database):
    process = popen("copy", "sqlite:a.db", "-", "--follow")
    for line in process.stdout:
        if '"kind":"row"' in line:
            break
    process.stdout.close()
    assert process.wait(20) == 3
    assert "standard output was closed" in process.stderr.read()
    whole = run("copy", "sqlite:a.db", "-").check()
    assert len(set(re.findall(r'"seq":(\d+),"record"', whole.out))) == 2000


def test_reader_of_what_is_said_that_goes_away_is_no_end(popen, database, tmp_path):
    """Standard error is a pipe that nobody reads any more: frames matter more than words."""
    process = popen(*FOLLOW)
    process.stderr.close()
    out = tmp_path / "out.ndjson"
    wait_for(lambda: ends(out) == 1)
    execute(database, "UPDATE t SET v = 'unheard' WHERE id = 5")
    wait_for(lambda: b"unheard" in out.read_bytes())
    process.send_signal(signal.SIGTERM)
    assert process.wait(10) == 0
    process.stderr = None


# -- surroundings

@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)])
def test_closed_descriptors_lose_no_row_and_get_nothing_of_others(popen, run, database, tmp_path,
                                                                 closed):
    def close():
        for descriptor in closed:
            os.close(descriptor)
    process = popen(*FOLLOW[:-1], preexec_fn=close)
    process.communicate(timeout=80)
    assert process.returncode == (3 if 1 in closed else 0)
    check_equal(database, tmp_path / "out.ndjson")
    run("verify", "out.ndjson").check()


@pytest.mark.parametrize("files", range(3, 24))
def test_few_files_are_said_and_what_was_there_is_left_alone(popen, run, database, tmp_path, files):
    def limit():
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    process = popen(*FOLLOW[:-1], preexec_fn=limit)
    _, said = process.communicate(timeout=120)
    if process.returncode == 127 and "error while loading shared libraries" in said:
        return  # the loader itself had no file to open the libraries with
    assert process.returncode in (0, 3), (files, process.returncode, said)
    if process.returncode == 3:
        assert re.search("^tidemark: .*(open files|unable to open database)", said, re.M), (files, said)
        run(*FOLLOW[:-1]).check()
    check_equal(database, tmp_path / "out.ndjson")


def test_many_tables_need_no_file_each_at_once(popen, run, tmp_path):
    """A file a table: with too few for all, what cannot be opened is said and nothing is lost."""
    execute(tmp_path / "a.db", *[f"CREATE TABLE t{n} (id INTEGER PRIMARY KEY)" for n in range(60)],
            *[f"INSERT INTO t{n} VALUES ({n})" for n in range(60)])
    def limit():
        resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))
    arguments = ["copy", "sqlite:a.db", "file:out/", "--state", "state"]
    process = popen(*arguments, preexec_fn=limit)
    wait_for(lambda: process.poll() is not None or len(list((tmp_path / "out").glob("*"))) > 5)
    try:
        _, said = process.communicate(timeout=24)
    except subprocess.TimeoutExpired:
        process.kill()
        _, said = process.communicate()
    assert process.returncode == 0 or "Too many open files" in said, said
    run(*arguments).check()
    check_equal(tmp_path / "a.db", *(tmp_path / "out").glob("*.ndjson"))


@pytest.mark.parametrize("size", [0, 1000, 20000, 60000])
def test_files_that_may_not_grow_are_said(popen, run, tmp_path, size):
    """RLIMIT_FSIZE, with the signal as it is by default: like a full disk, for this program alone."""
    make_numbers(tmp_path / "a.db", rows=300)
    before = (tmp_path / "a.db").read_bytes()

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    process = popen(*FOLLOW[:-1], preexec_fn=limit)
    try:
        _, said = process.communicate(timeout=20)
    except subprocess.TimeoutExpired:
        process.kill()
        _, said = process.communicate()
    assert process.returncode in (3, -signal.SIGKILL), (process.returncode, said)
    assert re.search("too large|full|disk I/O|No space", said), said
    if size == 0:
        assert (tmp_path / "a.db").read_bytes() == before
    run(*FOLLOW[:-1]).check()
    check_equal(tmp_path / "a.db", tmp_path / "out.ndjson")


@pytest.mark.parametrize("environment", [{}, {"HOME": ""}, {"HOME": "/nonexistent"},
                                         {"LANG": "xx_YY.bad", "LC_ALL": "none"},
                                         {"TZ": "Asia/Kathmandu"}, {"TZ": ":/dev/zero"},
                                         {"TMPDIR": "/nonexistent"}])
def test_environment_does_not_matter(popen, run, database, tmp_path, environment):
    process = popen(*FOLLOW[:-1], env=environment)
    _, said = process.communicate(timeout=80)
    assert process.returncode == 0, said
    check_equal(database, tmp_path / "out.ndjson")


def test_folder_that_was_deleted_is_said(popen, tmp_path):
    make_numbers(tmp_path / "a.db", rows=10)
    gone = tmp_path / "gone"
    gone.mkdir()

    def delete():
        os.chdir(gone)
        os.rmdir(gone)
    process = popen("copy", f"sqlite:{tmp_path}/a.db", "file:out.ndjson", preexec_fn=delete)
    _, said = process.communicate(timeout=80)
    assert process.returncode in (2, 3) and "No such file or directory" in said, said
    process = popen("copy", f"sqlite:{tmp_path}/a.db", f"file:{tmp_path}/out.ndjson", "--state",
                    f"{tmp_path}/state", preexec_fn=lambda: (os.mkdir(gone), delete()))
    _, said = process.communicate(timeout=80)
    assert process.returncode == 0, said
    check_equal(tmp_path / "a.db", tmp_path / "out.ndjson")


def test_folder_deleted_while_it_follows_is_said(run, start, tmp_path):
    make_numbers(tmp_path / "a.db", rows=10)
    folder = tmp_path / "work"
    folder.mkdir()
    process = start("copy", "sqlite:../a.db", "file:out.ndjson", "--follow", cwd=folder)
    process.wait_until(lambda: ends(folder / "out.ndjson") == 1)
    wait_for(lambda: shutil.rmtree(folder, ignore_errors=True) or not folder.exists())
    execute(tmp_path / "a.db", "UPDATE t SET v = 'nowhere to go'")
    said = last_words(process.wait(20).check(3))
    assert re.search("No such file|is gone|not there|was (re)?moved", said), said


def test_address_space_that_is_too_small_is_no_crash_in_silence(popen, database):
    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (96 * MIB, 96 * MIB))
    process = popen(*FOLLOW[:-1], preexec_fn=limit)
    _, said = process.communicate(timeout=80)
    assert process.returncode in (0, 3, 127), (process.returncode, said)
    assert process.returncode == 0 or said


def test_killed_at_random_with_three_sinks_every_one_ends_equal(run, start, database, tmp_path, rng):
    (tmp_path / "a.yaml").write_text(
        "name: a\nsource: sqlite:a.db\nsnapshot: {chunk_rows: 50}\n"
        "sinks: {x: file:x.ndjson, y: file:y/, z: file:z.ndjson}\n")
    for n in range(soak(8, 200)):
        process = start("run", "a.yaml")
        time.sleep(rng.uniform(0, 0.25))
        process.kill()
        execute(database, f"UPDATE t SET v = 'kill {n}' WHERE id % 50 = {n % 50}",
                f"DELETE FROM t WHERE id = {3 * n}", f"INSERT INTO t VALUES ({5000 + n}, 'new')")
    process = start("run", "a.yaml")
    paths = [tmp_path / "x.ndjson", tmp_path / "y/a.t.ndjson", tmp_path / "z.ndjson"]
    execute(database, "INSERT INTO t VALUES (99999, 'the last one')")
    process.wait_until(lambda: all(ends(path) and b"the last one" in path.read_bytes()
                                   and run("verify", path).code == 0 for path in paths))
    process.terminate().check()
    for path in paths:
        check_equal(database, path)
        run("verify", path).check()


def test_stop_ends_the_wait_for_a_locked_database(start, tmp_path):
    """While a start waits for another process's lock."""
    database = tmp_path / "a.db"
    execute(database, "CREATE TABLE t (id INTEGER PRIMARY KEY)")
    with locked(database):
        process = start("copy", "sqlite:a.db", "file:out.ndjson", "--follow")
        process.wait_until(lambda: str(database) in open_files(process.pid), what="the database")
        result = process.terminate().check()
    assert "stopped while it began: a.db" in result.err and "locked" in result.err


def open_files(pid):
    return [os.path.realpath(f"/proc/{pid}/fd/{name}") for name in os.listdir(f"/proc/{pid}/fd")]
