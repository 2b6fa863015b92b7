#!/usr/bin/python3
"""Judges the sources without running them and ends with one line, `N passed, N failed`.

    scripts/lint.py [PART...]      parts: format layers headers sizes words warnings analyzer tidy
"""

import concurrent.futures
import json
import os
import pathlib
import shlex
import subprocess
import sys
import time

from run_tests import prepare
from tally import ROOT, Tally, one

# Floors that gcc's analyzer judges: pure code, where it is quick and right.
ANALYZED = ("src/base", "src/model", "src/format")


def tracked(*patterns):
    return subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard",
                           *patterns], cwd=ROOT, capture_output=True, text=True,
                          check=True).stdout.split()


def clang_format(tally, part):
    tally.run(part, ["clang-format-14", "--dry-run", "-Werror", *tracked("*.c", "*.h")], one)


def check(tally, part):
    tally.run(part, [sys.executable, f"tests/checks/check_{part}.py"], one)


def compile_commands(tally, part):
    """{path below the root: how it is compiled} of every source, from build/."""
    if not prepare("build", tally.log_path(part)):
        return {}
    entries = json.loads((ROOT / "build" / "compile_commands.json").read_text())
    found = {}
    for entry in entries:
        path = pathlib.Path(entry["directory"], entry["file"]).resolve().relative_to(ROOT).as_posix()
        found.setdefault(path, entry)
    return found


def each_file(tally, part, commands):
    """Runs one command a file, as many at once as there are processors; a file is one test."""
    start = time.monotonic()

    def run(command):
        return subprocess.run(command[1], cwd=command[0], capture_output=True, text=True,
                              check=False)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(run, commands))
    failed = [result for result in results if result.returncode != 0]
    with open(tally.log_path(part), "a") as log:
        for result in failed:
            log.write(result.stdout + result.stderr)
        log.write("\n".join(sorted({line for result in failed for line in
                                    (result.stdout + result.stderr).splitlines()
                                    if " error: " in line})))
    tally.add(part, len(results) - len(failed), len(failed) if results else 1,
              seconds=time.monotonic() - start)


def clang_tidy(tally, part):
    # The commands are gcc's; clang does not know some of the warnings in them.
    each_file(tally, part, [(ROOT, ["clang-tidy-14", "-p", "build", "--quiet",
                                    "--extra-arg=-Wno-unknown-warning-option", path])
                            for path in sorted(compile_commands(tally, part))
                            if path.startswith("src/")])


def gcc_warnings(tally, part):
    commands = compile_commands(tally, part)
    each_file(tally, part, [(entry["directory"], strict(entry["command"]))
                            for path, entry in sorted(commands.items())
                            if not path.startswith(ANALYZED)])


def gcc_analyzer(tally, part):
    commands = compile_commands(tally, part)
    each_file(tally, part, [(entry["directory"], [*strict(entry["command"]), "-fanalyzer", "-DTIDE_ANALYZER"])
                            for path, entry in sorted(commands.items())
                            if path.startswith(ANALYZED)])


def strict(command):
    """The build's command without its outputs, any warning an error."""
    words = shlex.split(command)
    for option in ("-o", "-MF", "-MQ"):
        if option in words:
            at = words.index(option)
            del words[at:at + 2]
    kept = [word for word in words if word != "-MD"]
    return [*kept, "-Werror", "-fdiagnostics-color=never", "-o", "/dev/null"]


PARTS = {"format": clang_format, "layers": check, "headers": check, "sizes": check,
         "words": check, "warnings": gcc_warnings, "analyzer": gcc_analyzer, "tidy": clang_tidy}


def main():
    unknown = [part for part in sys.argv[1:] if part not in PARTS]
    if unknown:
        print(f"there is no part {unknown[0]}; parts: {' '.join(PARTS)}", file=sys.stderr)
        return 2
    tally = Tally("lint")
    for part in sys.argv[1:] or PARTS:
        tally.log_path(part).unlink(missing_ok=True)
        PARTS[part](tally, part)
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
