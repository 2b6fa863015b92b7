#!/usr/bin/python3
"""Runs one area with its full counts: TIDEMARK_SOAK=1 for its unit tests and scenarios.

    scripts/soak.py [AREA]

An area is a part of the name of a unit test (tests/unit/test_<area>.c), of a scenario
(tests/scenario/test_<area>.py) or of a test in it; `fuzz` is every fuzzer for half a minute.
Without AREA, those that soak are listed.
"""

import re
import sys

from fuzz import fuzz
from run_tests import PYTEST, SANITIZER_ENV, meson_names, prepare
from tally import ROOT, Tally, one

HOURS = 3600
SOAKS = re.compile(r"soak", re.I)


def areas():
    """The names of tests that do more when soaking."""
    found = {}
    for path in sorted((ROOT / "tests").glob("unit/test_*.c")) + \
            sorted((ROOT / "tests").glob("scenario/test_*.py")):
        if SOAKS.search(path.read_text()):
            found.setdefault(path.stem.removeprefix("test_"), []).append(path.parent.name)
    return found


def soak(area):
    tally = Tally("soak")
    env = {"TIDEMARK_SOAK": "1", "TIDEMARK": str(ROOT / "build/tidemark"), **SANITIZER_ENV}
    if not prepare("build", tally.log_path("build")):
        tally.add("build", 0, 1)
        return tally.finish()
    for name in meson_names("build"):
        if area in name:
            tally.run(name, ["meson", "test", "-C", "build", "--no-rebuild",
                             "--timeout-multiplier", "0", "--print-errorlogs", name], one, env)
    tally.run(f"scenario-{area}", [*PYTEST, "-k", area, "tests/scenario"], count_pytest, env,
              timeout=12 * HOURS)
    if tally.passed + tally.failed == 0:
        print(f"no test has to do with {area}", file=sys.stderr)
        return 2
    return tally.finish()


def count_pytest(code, output):
    if code == 5:
        return (0, 0, 0)
    summary = output.strip().splitlines()[-1] if output.strip() else ""
    numbers = {word: int(number) for number, word in
               re.findall(r"(\d+) (passed|failed|error|errors|skipped)", summary)}
    failed = numbers.get("failed", 0) + numbers.get("error", 0) + numbers.get("errors", 0)
    if code != 0 and failed == 0:
        failed = 1
    return numbers.get("passed", 0), failed, numbers.get("skipped", 0)


def main():
    if sys.argv[1:] == ["fuzz"]:
        return fuzz()
    if len(sys.argv) > 1:
        return soak(sys.argv[1])
    found = {**areas(), "fuzz": ["fuzzers"]}
    print("make soak AREA=… with one of:" if found else "nothing soaks yet")
    for name, kinds in sorted(found.items()):
        print(f"  {name:<28} {', '.join(kinds)}")
    return 2


if __name__ == "__main__":
    sys.exit(main())
