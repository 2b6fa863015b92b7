"""The scripts that sum up can fail, and count what they are given."""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import run_tests  # noqa: E402  (the path is set just above)
import soak  # noqa: E402

CMOCKA = """[==========] Running 3 test(s).
[ RUN      ] a
[       OK ] a
[ RUN      ] b
{}
[==========] 3 test(s) run.
[  PASSED  ] 2 test(s).
"""


@pytest.mark.parametrize("second,result,want", [
    ("[       OK ] b", "OK", (2, 0, 0)),
    ("[  FAILED  ] b", "FAIL", (1, 1, 0)),
    ("[  SKIPPED ] b", "OK", (1, 0, 1)),
    ("", "FAIL", (1, 1, 0)),       # it died in b
    ("", "TIMEOUT", (1, 1, 0)),
])
def test_count_cases_counts_each_and_a_program_that_died(second, result, want):
    assert run_tests.count_cases(CMOCKA.format(second), result) == want


def test_count_cases_of_a_program_without_cases_is_one():
    assert run_tests.count_cases("", "OK") == (1, 0, 0)
    assert run_tests.count_cases("", "ERROR") == (0, 1, 0)


def test_failed_summary_of_cmocka_is_not_counted_twice():
    text = "[  FAILED  ] b\n[  FAILED  ] unit: 1 test(s), listed below:\n[  FAILED  ] 1 test(s)\n"
    assert run_tests.count_cases(text, "FAIL") == (0, 1, 0)


def test_soak_counts_pytest_and_a_crash_of_it():
    assert soak.count_pytest(1, "2 failed, 3 passed, 1 skipped in 0.1s") == (3, 2, 1)
    assert soak.count_pytest(-1, "stopped") == (0, 1, 0)
    assert soak.count_pytest(5, "7 deselected in 0.01s") == (0, 0, 0)


def ci(tmp_path, lint, test, code=0):
    """Runs .ci/run with `make` and deps.sh replaced by ones that say what they are told."""
    for folder in (".ci", "scripts", "bin"):
        (tmp_path / folder).mkdir()
    shutil.copy(ROOT / ".ci" / "run", tmp_path / ".ci" / "run")
    (tmp_path / "scripts" / "deps.sh").write_text("#!/bin/sh\n")
    (tmp_path / "bin" / "make").write_text(
        f'#!/bin/sh\n[ "$1" = lint ] && echo "{lint}" || echo "{test}"\nexit {code}\n')
    for program in ("scripts/deps.sh", "bin/make"):
        (tmp_path / program).chmod(0o755)
    result = subprocess.run([tmp_path / ".ci" / "run"], capture_output=True, text=True, check=False,
                            env={**os.environ, "PATH": f"{tmp_path}/bin:{os.environ['PATH']}"})
    return result.returncode, result.stdout.splitlines()[-1]


def test_ci_adds_up_lint_and_tests(tmp_path):
    # deps.sh says nothing and is one part that passed
    assert ci(tmp_path, "3 passed, 0 failed", "40 passed, 0 failed, 2 skipped") == \
        (0, "44 passed, 0 failed, 2 skipped")


def test_ci_fails_with_one_failure(tmp_path):
    assert ci(tmp_path, "2 passed, 1 failed", "40 passed, 0 failed") == (1, "43 passed, 1 failed")


def test_ci_fails_when_a_part_dies_without_a_summary(tmp_path):
    assert ci(tmp_path, "a crash", "a crash", code=2) == (1, "1 passed, 2 failed")


def test_ci_fails_when_a_part_exits_badly_after_a_good_summary(tmp_path):
    assert ci(tmp_path, "1 passed, 0 failed", "1 passed, 0 failed", code=1) == \
        (1, "3 passed, 2 failed")


def test_deps_refuses_what_it_does_not_know():
    result = subprocess.run([ROOT / "scripts" / "deps.sh", "--no-such"], capture_output=True,
                            text=True, check=False)
    assert result.returncode == 2 and "usage" in result.stderr


def test_run_tests_refuses_an_unknown_part():
    result = subprocess.run([sys.executable, ROOT / "scripts" / "run_tests.py", "unti"],
                            capture_output=True, text=True, check=False)
    assert result.returncode == 2 and "parts:" in result.stderr


JUNIT = """<testsuites><testsuite>
<testcase classname="tests.scenario.test_a" name="test_one[x-1]"><failure message="no"/></testcase>
<testcase classname="tests.scenario.test_a" name="test_two"/>
<testcase classname="tests.scenario.test_b" name="test_three"><error message="no"/></testcase>
<testcase classname="tests.scenario.test_b" name="test_four"><skipped/></testcase>
</testsuite></testsuites>
"""


def test_failed_tests_are_named_as_pytest_takes_them(tmp_path):
    report = tmp_path / "report.xml"
    assert run_tests.failed_tests(report) == []
    report.write_text(JUNIT)
    assert run_tests.failed_tests(report) == ["tests/scenario/test_a.py::test_one[x-1]",
                                              "tests/scenario/test_b.py::test_three"]


def test_what_fails_alone_too_stays_failed(tmp_path, monkeypatch):
    """Two that fail in the first run; the second passes when it runs alone."""
    folder = tmp_path / "cases"
    folder.mkdir()
    (tmp_path / "build").mkdir()
    (folder / "test_x.py").write_text(
        "import pathlib\nMARK = pathlib.Path(__file__).with_name('mark')\n"
        "def test_never():\n    assert False\n"
        "def test_later():\n    seen = MARK.exists()\n    MARK.touch()\n    assert seen\n")
    monkeypatch.setattr(run_tests, "ROOT", tmp_path)
    monkeypatch.setattr("tally.ROOT", tmp_path)
    monkeypatch.chdir(tmp_path)
    tally = run_tests.Tally("test")
    tally.log_path = lambda part: tmp_path / "build" / f"{part}.log"
    monkeypatch.setattr(run_tests, "prepare", lambda *_: True)
    monkeypatch.setattr(run_tests, "PARALLEL", [])
    run_tests.pytest(tally, "scenario", "cases", True)
    assert (tally.passed, tally.failed) == (1, 1)
