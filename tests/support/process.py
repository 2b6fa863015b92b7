"""Starting tidemark (or another program), watching it, killing it, bounding its memory."""

import dataclasses
import os
import pathlib
import re
import resource
import signal
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
MIB = 1024 * 1024
# Deadlines are for a quiet machine. One that is busy takes a multiple of that; a wait that succeeds
# ends at once, whatever its deadline.
PATIENCE = 4
# What every program under test has to get by with; TIDEMARK_LIMIT_MIB=0 lifts it (sanitizers).
MEMORY = int(os.environ.get("TIDEMARK_LIMIT_MIB", "256")) * MIB


def program():
    """The program under test: the environment's TIDEMARK, else what `make` builds."""
    return os.environ.get("TIDEMARK") or str(ROOT / "build" / "tidemark")


def soak(n_test, n_soak):
    """`n_test` rounds in `make test`, `n_soak` in `make soak AREA=…`."""
    return n_soak if os.environ.get("TIDEMARK_SOAK", "0") not in ("", "0") else n_test


@dataclasses.dataclass
class Result:
    """What a finished program left behind."""
    code: int        # exit status; negative: the signal that ended it
    out: str
    err: str
    seconds: float
    peak_kib: int    # highest resident memory

    def check(self, code=0):
        """Fails the test with all output when the exit status is another."""
        assert self.code == code, \
            f"exit status {self.code} instead of {code}\n-- out\n{self.out}-- err\n{self.err}"
        return self


class MemoryLimit:
    """Bounds the memory of children: a cgroup where one can be made, else RLIMIT_DATA.

    RLIMIT_AS is not used: it counts address space, which threads and mapped files reserve freely.
    """

    V1 = pathlib.Path("/sys/fs/cgroup/memory")
    V2 = pathlib.Path("/sys/fs/cgroup")

    def __init__(self, size):
        self.size = size
        self.group = self._make_group()
        self.kind = "cgroup" if self.group else "RLIMIT_DATA"

    def _make_group(self):
        version_2 = (self.V2 / "cgroup.controllers").exists()
        group = (self.V2 if version_2 else self.V1) / f"tidemark-test-{os.getpid()}-{id(self)}"
        limit = group / ("memory.max" if version_2 else "memory.limit_in_bytes")
        try:
            group.mkdir()
        except OSError:
            return None
        try:
            limit.write_text(str(self.size))
            if version_2 and (group / "memory.swap.max").exists():
                (group / "memory.swap.max").write_text("0")
            return group
        except OSError:
            group.rmdir()
            return None

    def enter(self):
        """Called in the child between fork and exec."""
        if self.group:
            (self.group / "cgroup.procs").write_text(str(os.getpid()))
        else:
            resource.setrlimit(resource.RLIMIT_DATA, (self.size, self.size))

    def close(self):
        if self.group:
            for _ in range(50):
                try:
                    self.group.rmdir()
                    break
                except OSError:
                    time.sleep(0.02)
            self.group = None


class Process:
    """A running program, its outputs in files. Use as a context manager: what is left is killed."""

    def __init__(self, *args, argv0=None, env=None, cwd=None, memory=MEMORY, stdin=None):
        self.args = [argv0 or program(), *map(str, args)]
        self._out = tempfile.TemporaryFile()
        self._err = tempfile.TemporaryFile()
        self._limit = MemoryLimit(memory) if memory else None
        self._stdin = tempfile.TemporaryFile() if stdin is not None else subprocess.DEVNULL
        if stdin is not None:
            self._stdin.write(stdin if isinstance(stdin, bytes) else stdin.encode())
            self._stdin.seek(0)
        self.started = time.monotonic()
        self._popen = subprocess.Popen(
            self.args, stdin=self._stdin, stdout=self._out, stderr=self._err, cwd=cwd,
            env={**os.environ, **{k: str(v) for k, v in (env or {}).items()}},
            preexec_fn=self._begin)
        self.pid = self._popen.pid
        self.code = None
        self._peak_kib = 0
        self.ended = None

    def _begin(self):
        """In the child: tests may be run under nohup, what they run is not."""
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        if self._limit:
            self._limit.enter()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    # -- what it says

    def out(self):
        return self._read(self._out)

    def err(self):
        return self._read(self._err)

    @staticmethod
    def _read(file):
        return os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0).decode(errors="replace")

    # -- waiting

    def running(self):
        """True until it has ended; its exit status is then in `code`."""
        if self.code is None:
            self.peak_kib()
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self._ended(status)
        return self.code is None

    def _ended(self, status):
        self.code = self._popen.returncode = os.waitstatus_to_exitcode(status)
        self.ended = time.monotonic()

    def wait(self, timeout=60):
        """Waits for its end; a program that does not end in time is killed and fails the test."""
        timeout *= PATIENCE
        deadline = time.monotonic() + timeout
        pause = 0.001
        while self.running():
            if time.monotonic() > deadline:
                self.kill()
                raise AssertionError(f"{' '.join(self.args)} did not end within {timeout} s\n"
                                     f"-- out\n{self.out()}-- err\n{self.err()}")
            time.sleep(pause)
            pause = min(pause * 2, 0.02)
        return Result(self.code, self.out(), self.err(), self.ended - self.started, self._peak_kib)

    def wait_until(self, condition, timeout=30, what="the condition"):
        """Waits until condition() is true and returns what it returned; fails when the program
        ends first or the time is up."""
        timeout *= PATIENCE
        deadline = time.monotonic() + timeout
        while True:
            running = self.running()  # asked first: what an ended program did is still seen
            value = condition()
            if value:
                return value
            if not running or time.monotonic() > deadline:
                why = f"it ended with {self.code}" if not running else f"{timeout} s went by"
                raise AssertionError(f"waiting for {what}: {why}\n"
                                     f"-- out\n{self.out()}-- err\n{self.err()}")
            time.sleep(0.005)

    def wait_for_line(self, pattern, timeout=30, stream="err"):
        """Waits for a line that matches on `err` or `out`; returns the match."""
        read = self.err if stream == "err" else self.out
        return self.wait_until(lambda: re.search(pattern, read(), re.M), timeout,
                               f"a line {pattern!r} on standard {stream}")

    # -- signals

    def signal(self, number):
        if self.running():
            os.kill(self.pid, number)

    def kill(self):
        """SIGKILL, and waits: nothing of it runs any more afterwards."""
        if self.running():
            os.kill(self.pid, signal.SIGKILL)
            _, status = os.waitpid(self.pid, 0)
            self._ended(status)

    def terminate(self, timeout=30):
        """SIGTERM, then its result."""
        self.signal(signal.SIGTERM)
        return self.wait(timeout)

    def interrupt(self, timeout=30):
        """SIGINT, then its result."""
        self.signal(signal.SIGINT)
        return self.wait(timeout)

    # -- memory

    def memory_kib(self, field="VmRSS"):
        """Resident memory now (`VmRSS`) or at its highest (`VmHWM`), 0 when it has ended."""
        try:
            status = pathlib.Path(f"/proc/{self.pid}/status").read_text()
        except OSError:
            return 0
        found = re.search(rf"^{field}:\s+(\d+) kB", status, re.M)
        return int(found.group(1)) if found else 0

    def peak_kib(self):
        """The highest so far, as looked at while it was waited for: what the system keeps of a
        process that has ended is at least what the tests themselves had when they started it."""
        self._peak_kib = max(self._peak_kib, self.memory_kib("VmHWM"))
        return self._peak_kib

    def open_files(self):
        """How many file descriptors it holds, for leak tests."""
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def threads(self):
        return len(os.listdir(f"/proc/{self.pid}/task"))

    def close(self):
        self.kill()
        if self._limit:
            self._limit.close()
        for file in (self._out, self._err, self._stdin):
            if file is not subprocess.DEVNULL:
                file.close()


def run(*args, timeout=60, **options):
    """Runs tidemark to its end; see Process for the options."""
    with Process(*args, **options) as process:
        return process.wait(timeout)
