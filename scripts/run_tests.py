#!/usr/bin/python3
"""Runs every test of the repository and ends with one line, `N passed, N failed`.

    scripts/run_tests.py [PART...]      parts: unit asan threads fuzz scenario checks
"""

import importlib.util
import json
import os
import re
import sys
import time
import xml.etree.ElementTree

from tally import ROOT, Tally, run_logged

CLANG = {"CC": "clang-14"}
SANITIZE = ["-Db_lundef=false", "-Dbuildtype=debugoptimized"]
# What each build directory is configured with; set up once.
BUILDS = {
    "build": ({}, []),
    "build-asan": (CLANG, SANITIZE + ["-Db_sanitize=address,undefined",
                                      "-Dc_args=-fno-sanitize-recover=all"]),
    "build-tsan": (CLANG, SANITIZE + ["-Db_sanitize=thread"]),
    "build-fuzz": (CLANG, SANITIZE + ["-Db_sanitize=address,undefined", "-Dfuzz=true",
                                      "-Dtests=false",
                                      "-Dc_args=-fno-sanitize-recover=all -fsanitize=fuzzer-no-link"]),
}
SANITIZER_ENV = {
    "ASAN_OPTIONS": "detect_leaks=1:detect_stack_use_after_return=1",
    "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
    "TSAN_OPTIONS": "halt_on_error=1:second_deadlock_stack=1",
}
CASE = re.compile(r"^\[ +(OK|FAILED|SKIPPED) +\] (?!\w+: \d+ test|\d+ test)", re.M)
ALONE_MAX = 5  # more are no accident
PYTEST = ["/usr/bin/python3", "-m", "pytest", "-q", "-p", "no:cacheprovider"]
# Scenarios mostly wait: as many at a time as there are processors, on servers of their own.
PARALLEL = ["-n", "auto", "--maxprocesses", "4"] \
    if importlib.util.find_spec("xdist") is not None else []


def prepare(directory, log):
    """Sets up a build directory once and builds all of it; `log` stays only when that fails."""
    env, options = BUILDS[directory]
    if not (ROOT / directory / "build.ninja").exists():
        code, _ = run_logged(["meson", "setup", directory, *options], log, env)
        if code != 0:
            return False
    elif "-Dtests=false" not in options and not has_tests(directory):
        run_logged(["meson", "setup", "--reconfigure", directory], log, env, append=True)
    code, _ = run_logged(["ninja", "-C", directory], log, append=True)
    if code == 0:
        log.unlink()
    return code == 0


def has_tests(directory):
    """False for a directory that was set up before cmocka was there."""
    listed = ROOT / directory / "meson-info" / "intro-tests.json"
    return listed.exists() and json.loads(listed.read_text()) != []


def meson_names(directory):
    """The names of the unit tests that a build directory has."""
    listed = ROOT / directory / "meson-info" / "intro-tests.json"
    return [test["name"] for test in json.loads(listed.read_text())]


def count_cases(text, result):
    """The cases of one cmocka program; a program that died counts as a failure of its own."""
    cases = CASE.findall(text)
    passed, failed = cases.count("OK"), cases.count("FAILED")
    if result not in ("OK", "SKIP") and failed == 0:
        failed = 1
    if result == "OK" and passed == 0:
        passed = 1
    return passed, failed, cases.count("SKIPPED") + (result == "SKIP")


def meson_tests(tally, part, directory, suite):
    """Builds and runs a suite; the results are read from meson's log of JSON lines."""
    start = time.monotonic()
    log = tally.log_path(part)
    if not prepare(directory, log):
        tally.add(part, 0, 1)
        return
    results = ROOT / directory / "meson-logs" / "testlog.json"
    results.unlink(missing_ok=True)
    run_logged(["meson", "test", "-C", directory, "--no-rebuild", "--suite", suite,
                "--print-errorlogs"], log, SANITIZER_ENV, append=True)
    total = [0, 0, 0]
    for line in results.read_text().splitlines() if results.exists() else []:
        test = json.loads(line)
        text = test.get("stdout", "") + test.get("stderr", "")
        total = [a + b for a, b in zip(total, count_cases(text, test["result"]))]
    if suite == "unit" and total == [0, 0, 0]:
        total = [0, 1, 0]  # no test ran at all: cmocka is missing, or the log is
    tally.add(part, *total, time.monotonic() - start)


def inputs_of(codec):
    found = []
    for kind in ("corpus", "regression"):
        folder = ROOT / "fuzz" / kind / codec
        found += sorted(folder.iterdir()) if folder.is_dir() else []
    return found


def fuzz_regressions(tally, part):
    """Every fuzzer over the inputs that are kept; each fuzzer is one test."""
    start = time.monotonic()
    log = tally.log_path(part)
    if not prepare("build-fuzz", log):
        tally.add(part, 0, 1)
        return
    passed = failed = 0
    for source in sorted((ROOT / "fuzz").glob("fuzz_*.c")):
        program = ROOT / "build-fuzz" / "fuzz" / source.stem
        inputs = inputs_of(source.stem.removeprefix("fuzz_"))
        command = [program, "-rss_limit_mb=2048", *(inputs or ["-runs=1"])]
        code, _ = run_logged(command, log, SANITIZER_ENV, timeout=300, append=True)
        passed, failed = passed + (code == 0), failed + (code != 0)
    tally.add(part, passed, failed, 0, time.monotonic() - start)


def failed_tests(report):
    """The tests that failed, as pytest takes them; none where the report is not whole."""
    if not report.exists():
        return []
    cases = xml.etree.ElementTree.parse(report).getroot().iter("testcase")
    return [f"{case.get('classname').replace('.', '/')}.py::{case.get('name')}" for case in cases
            if case.find("failure") is not None or case.find("error") is not None]


def pass_alone(part, log, env):
    """Runs what failed once more, with the machine to itself: scenarios have deadlines, and all that
    runs at a time shares two processors. Every one that needed it is said."""
    failed = failed_tests(ROOT / "build" / f"{part}.xml")
    if not failed or len(failed) > ALONE_MAX:
        return 0
    report = ROOT / "build" / f"{part}-alone.xml"
    report.unlink(missing_ok=True)
    run_logged([*PYTEST, "--junitxml", report, *failed], log, env, append=True)
    if not report.exists():
        return 0
    failed_again = set(failed_tests(report))
    passed = [test for test in failed if test not in failed_again]
    for test in passed:
        print(f"{part}: passed only when it ran alone: {test}", flush=True)
    return len(passed)


def pytest(tally, part, folder, needs_program):
    """Runs a folder of Python tests; the counts are read from pytest's JUnit file."""
    start = time.monotonic()
    log = tally.log_path(part)
    if needs_program and not prepare("build", log):
        tally.add(part, 0, 1)
        return
    report = ROOT / "build" / f"{part}.xml"
    report.unlink(missing_ok=True)
    env = {"TIDEMARK": os.environ.get("TIDEMARK", str(ROOT / "build/tidemark"))}
    code, _ = run_logged([*PYTEST, *(PARALLEL if needs_program else []), "--junitxml", report,
                          folder], log, env, append=True)
    if code == 5:  # no tests there yet
        tally.add(part, 0, 0)
        return
    suite = xml.etree.ElementTree.parse(report).getroot().find("testsuite") \
        if report.exists() else None
    numbers = {} if suite is None else suite.attrib
    failed = int(numbers.get("failures", 0)) + int(numbers.get("errors", 0))
    skipped = int(numbers.get("skipped", 0))
    passed = int(numbers.get("tests", 0)) - failed - skipped
    if code != 0 and failed == 0:
        failed = 1
    alone = pass_alone(part, log, env) if needs_program else 0
    tally.add(part, passed + alone, failed - alone, skipped, time.monotonic() - start)


PARTS = {
    "unit": lambda tally, part: meson_tests(tally, part, "build", "unit"),
    "checks": lambda tally, part: pytest(tally, part, "tests/checks", False),
    "asan": lambda tally, part: meson_tests(tally, part, "build-asan", "unit"),
    "threads": lambda tally, part: meson_tests(tally, part, "build-tsan", "threads"),
    "fuzz": fuzz_regressions,
    "scenario": lambda tally, part: pytest(tally, part, "tests/scenario", True),
}


def main():
    unknown = [part for part in sys.argv[1:] if part not in PARTS]
    if unknown:
        print(f"there is no part {unknown[0]}; parts: {' '.join(PARTS)}", file=sys.stderr)
        return 2
    tally = Tally("test")
    for part in sys.argv[1:] or PARTS:
        tally.log_path(part).unlink(missing_ok=True)
        PARTS[part](tally, part)
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
