"""Drives a chunk reader of the PostgreSQL source by itself (the program pg_chunk_reader).

    with Chunks(pg.url(), "public", "t") as chunks:
        chunks.remember()
        chunk = chunks.read(rows=2)          raises Failed; chunk.rows, .last, .trusted, …
        chunks.read_all(rows=2)              the rows of the whole range, chunk by chunk
        chunks.read(again=[("7",)])
"""

import dataclasses
import json
import os
import subprocess

from support import process

BYTES = 4 << 20


class Failed(Exception):
    def __init__(self, answer):
        super().__init__(f"{answer['status']}: {answer['message']}")
        self.status = answer["status"]
        self.retriable = answer["retriable"]
        self.message = answer["message"]


@dataclasses.dataclass
class Chunk:
    trusted: bool
    last: bool
    epoch: int
    position: int
    xmin: int
    xmax: int
    in_progress: list
    rows: list        # of lists of texts, None for NULL; bytes in hexadecimal
    last_key: list    # texts; None


def texts(values):
    return values and [value and value[1] for value in values]


class Chunks:
    def __init__(self, url, schema, table):
        program = os.path.join(os.path.dirname(process.program()), "tests", "support",
                               "pg_chunk_reader")
        self._process = subprocess.Popen([program, url, schema, table], stdin=subprocess.PIPE,
                                         stdout=subprocess.PIPE, encoding="utf-8")
        self.receive()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self._process.stdin.close()
        try:
            code = self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            raise
        finally:
            self._process.stdout.close()
        assert code == 0

    def send(self, *fields):
        self._process.stdin.write("\t".join(map(str, fields)) + "\n")
        self._process.stdin.flush()

    def receive(self):
        answer = json.loads(self._process.stdout.readline())
        if answer["status"] != "ok":
            raise Failed(answer)
        return answer

    def _call(self, *fields):
        self.send(*fields)
        return self.receive()

    def remember(self):
        self._call("remember")

    def rewind(self):
        self._call("rewind")

    def cancel_in(self, milliseconds):
        self._call("cancel", milliseconds)

    def ask(self, rows=10000, size=BYTES, again=(), only_again=False):
        """Starts to read; `answer` waits."""
        for key in again:
            self._call("again", *(part.encode().hex() for part in key))
        self.send("read", rows, size, *(["done"] if only_again else []))

    def answer(self):
        answer = self.receive()
        del answer["status"]
        answer["rows"] = [texts(row) for row in answer["rows"]]
        answer["last_key"] = texts(answer["last_key"])
        return Chunk(**answer)

    def read(self, **options):
        self.ask(**options)
        return self.answer()

    def chunks(self, **options):
        """The chunks of the range until the last."""
        while True:
            chunk = self.read(**options)
            assert chunk.trusted
            yield chunk
            if chunk.last:
                return

    def read_all(self, **options):
        return [row for chunk in self.chunks(**options) for row in chunk.rows]
