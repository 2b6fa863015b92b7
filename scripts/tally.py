"""Counting what passed and failed, with a log a part that is printed only when it failed."""

import os
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
LOG_LINES_SHOWN = 400


class Tally:
    """What passed, failed and was skipped so far."""

    def __init__(self, log_prefix):
        self.passed = self.failed = self.skipped = 0
        self.log_prefix = log_prefix
        (ROOT / "build").mkdir(exist_ok=True)

    def log_path(self, part):
        return ROOT / "build" / f"{self.log_prefix}-{part}.log"

    def add(self, part, passed, failed, skipped=0, seconds=None):
        self.passed += passed
        self.failed += failed
        self.skipped += skipped
        took = "" if seconds is None else f"  {seconds:.0f} s"
        more = f", {skipped} skipped" if skipped else ""
        print(f"{part:<12} {passed} passed, {failed} failed{more}{took}", flush=True)
        if failed:
            show_log(self.log_path(part))

    def run(self, part, command, count, env=None, timeout=None):
        """Runs a command into the part's log; count(exit code, output) gives the three numbers."""
        start = time.monotonic()
        code, output = run_logged(command, self.log_path(part), env, timeout)
        self.add(part, *count(code, output), time.monotonic() - start)

    def finish(self):
        """Prints the one line that sums up and returns the exit status."""
        more = f", {self.skipped} skipped" if self.skipped else ""
        print(f"{self.passed} passed, {self.failed} failed{more}", flush=True)
        return 1 if self.failed else 0


def run_logged(command, log, env=None, timeout=None, append=False):
    """Runs a command with both outputs in `log`; gives its exit code and output."""
    with open(log, "ab" if append else "wb") as to:
        to.write(f"$ {' '.join(map(str, command))}\n".encode())
        to.flush()
        try:
            code = subprocess.run(command, cwd=ROOT, stdout=to, stderr=subprocess.STDOUT,
                                  env={**os.environ, **(env or {})}, timeout=timeout,
                                  stdin=subprocess.DEVNULL, check=False).returncode
        except subprocess.TimeoutExpired:
            to.write(f"\nstopped: it took more than {timeout} s\n".encode())
            code = -1
        except FileNotFoundError as error:
            to.write(f"\n{error} (scripts/deps.sh --dev installs what is needed)\n".encode())
            code = -1
    return code, log.read_text(errors="replace")


def show_log(log):
    """Prints the end of a log, indented so that no line of it can be taken for the summary."""
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    if len(lines) > LOG_LINES_SHOWN:
        print(f"  … {len(lines) - LOG_LINES_SHOWN} lines before; all of it is in {log}")
    for line in lines[-LOG_LINES_SHOWN:]:
        print("  " + line)
    sys.stdout.flush()


def one(code, _output):
    """Counts a command as one check."""
    return (1, 0, 0) if code == 0 else (0, 1, 0)
