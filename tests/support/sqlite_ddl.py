"""Calls the program sqlite_ddl (beside the tests' other programs) from Python."""

import dataclasses
import os
import subprocess

from support import process


@dataclasses.dataclass
class Captured:
    """A table for which capture is installed."""
    number: int
    name: str
    rowid: str          # a name by which SQL reaches the rowid; may be empty
    is_nullable: bool
    is_exact: bool
    identity: int       # 1 integer key, 2 primary key, 3 unique key, 4 rowid
    key: list           # columns; the rowid for identity 4


class Failed(Exception):
    """The program's failure: `status` is the name of a tide_status."""

    def __init__(self, status, message):
        super().__init__(f"{status}: {message}")
        self.status = status
        self.message = message


def program():
    return os.path.join(os.path.dirname(process.program()), "tests", "support", "sqlite_ddl")


def call(*args):
    """The lines that the program printed, each a list; raises Failed."""
    done = subprocess.run([program(), *map(str, args)], stdout=subprocess.PIPE, check=True,
                          encoding="utf-8", timeout=240)
    return answer(done.stdout.splitlines())


def answer(lines):
    fields = [line.split("\t") for line in lines]
    if fields[-1][0] == "failed":
        raise Failed(fields[-1][1], fields[-1][2])
    assert fields[-1] == ["ok"], lines
    return fields[:-1]


def text(hexadecimal):
    return bytes.fromhex(hexadecimal).decode()


def captured(lines):
    tables = []
    for fields in lines:
        if fields[0] != "table":
            continue
        identity = int(fields[6])
        rowid = text(fields[3])
        key = [rowid] if identity == 4 else [text(column) for column in fields[7:]]
        tables.append(Captured(int(fields[1]), text(fields[2]), rowid, fields[4] == "1",
                               fields[5] == "1", identity, key))
    return tables


def install(path, pipeline, *globs):
    return captured(call("install", path, pipeline, *globs))


def load(path, pipeline, position, *globs):
    return captured(call("load", path, pipeline, position, *globs))


def uninstall(path, pipeline=""):
    """What it says it did."""
    return [fields[1] for fields in call("uninstall", path, pipeline)]


def check(path, *globs):
    """The findings: (is problem, what, remedy)."""
    return [(fields[0] == "problem", fields[1], fields[2])
            for fields in call("check", path, *globs)]


class Watch:
    """A reader's watch in a process of its own, asked by look()."""

    def __init__(self, path, pipeline, *globs):
        self.process = subprocess.Popen([program(), "watch", path, pipeline, *globs],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        encoding="utf-8", bufsize=1)
        assert self.process.stdout.readline() == "moved\tok\n"      # the first look reads all

    def look(self, nonce=""):
        """None when all is well, "moved" when the schema was mended, else why the copy ends."""
        self.process.stdin.write(nonce + "\n")
        self.process.stdin.flush()
        fields = self.process.stdout.readline().rstrip("\n").split("\t")
        if fields[-1] == "ok":
            return "moved" if fields[0] == "moved" else None
        assert fields[:2] == ["failed", "stale"], fields
        return fields[2]

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait(timeout=40)
