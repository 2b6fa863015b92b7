"""A session with a PostgreSQL server over its own protocol: no third-party package, no subprocess.

    with Session(port, "shop") as session:
        session.query("SELECT id, v FROM t")        [("1", "a"), ("2", None)]: the server's own text
        session.send("COMMIT")                      does not wait: for commits that must hang
        session.answered(0.5)                       whether the answer has come within half a second
        session.receive()                           waits for it and returns its rows

Simple queries only, trust authentication only. Belongs to one thread.
"""

import socket
import struct
import time

PROTOCOL = 196608
CANCEL = 80877102
# As the program pins them, so that the same value has the same text.
PINNED = {"client_encoding": "UTF8", "DateStyle": "ISO, MDY", "IntervalStyle": "postgres",
          "TimeZone": "UTC", "extra_float_digits": "3", "bytea_output": "hex",
          "lc_monetary": "C", "quote_all_identifiers": "off", "application_name": "tests"}


class SqlError(Exception):
    """What the server refused; `code` is its SQLSTATE."""

    def __init__(self, fields):
        self.code = fields.get("C", "")
        super().__init__(f"{self.code} {fields.get('M', '')} {fields.get('D', '')}".strip())


class Lost(Exception):
    """The connection is gone, or was never made."""


class Session:
    def __init__(self, port, database="postgres", user="postgres", host="127.0.0.1", timeout=240,
                 **settings):
        self.timeout = timeout
        self.pid = self.secret = 0
        self._address = (host, port)
        self._input = b""
        self._deadline = time.monotonic() + timeout
        try:
            self._socket = socket.create_connection(self._address, timeout)
        except OSError as error:
            raise Lost(str(error)) from error
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        pairs = {"user": user, "database": database, **PINNED, **settings}
        text = b"".join(f"{key}\0{value}\0".encode() for key, value in pairs.items())
        self._write(struct.pack(">ii", len(text) + 9, PROTOCOL) + text + b"\0")
        try:
            self._answer()
        except BaseException:
            self._socket.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    # -- asking

    def query(self, sql, timeout=None):
        """Sends statements and returns the rows of the last one that had any, as text or None."""
        self.send(sql)
        return self.receive(timeout)

    def value(self, sql, timeout=None):
        """The one value of a query; None when it has no row."""
        rows = self.query(sql, timeout)
        return rows[0][0] if rows else None

    def send(self, sql):
        """Sends statements without waiting for the answer."""
        text = sql.encode() + b"\0"
        self._write(b"Q" + struct.pack(">i", len(text) + 4) + text)

    def receive(self, timeout=None):
        """The rows of what was sent; SqlError once the session is ready for the next."""
        self._deadline = time.monotonic() + (timeout or self.timeout)
        return self._answer()

    def answered(self, seconds=0):
        """Whether something of the answer has come within `seconds`."""
        if self._input:
            return True
        self._socket.settimeout(max(seconds, 0.0001))
        try:
            self._input = self._socket.recv(65536)
        except (TimeoutError, BlockingIOError):
            return False
        except OSError as error:
            raise Lost(str(error)) from error
        if not self._input:
            raise Lost("the server closed the connection")
        return True

    def cancel(self):
        """Cancels what this session waits for; its answer is then an error or a warning."""
        with socket.create_connection(self._address, 10) as other:
            other.sendall(struct.pack(">iiii", 16, CANCEL, self.pid, self.secret))
            other.settimeout(10)
            other.recv(1)

    def close(self):
        try:
            self._socket.sendall(b"X" + struct.pack(">i", 4))
        except OSError:
            pass
        self._socket.close()

    # -- the wire

    def _write(self, data):
        self._socket.settimeout(self.timeout)
        try:
            self._socket.sendall(data)
        except OSError as error:
            raise Lost(str(error)) from error

    def _read(self, size):
        while len(self._input) < size:
            left = self._deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError("the server did not answer in time")
            self._socket.settimeout(left)
            try:
                got = self._socket.recv(max(65536, size - len(self._input)))
            except TimeoutError:
                continue
            except OSError as error:
                raise Lost(str(error)) from error
            if not got:
                raise Lost("the server closed the connection")
            self._input += got
        taken, self._input = self._input[:size], self._input[size:]
        return taken

    def _message(self):
        kind, size = struct.unpack(">ci", self._read(5))
        return kind, self._read(size - 4)

    def _answer(self):
        rows, current, error = [], None, None
        while True:
            kind, body = self._message()
            if kind == b"T":
                current = []
            elif kind == b"D":
                current.append(row(body))
            elif kind == b"C" and current is not None:
                rows, current = current, None
            elif kind == b"E":
                error = error or SqlError(fields(body))
            elif kind == b"K":
                self.pid, self.secret = struct.unpack(">ii", body)
            elif kind == b"R" and struct.unpack(">i", body[:4])[0] != 0:
                raise Lost("the server asks for a password; the tests' servers trust")
            elif kind == b"Z":
                if error:
                    raise error
                return rows
            if error and error.code.startswith(("57P", "28", "3D")) or error and not self.pid:
                raise Lost(str(error))  # the server ends the session after these


def row(body):
    count, = struct.unpack(">h", body[:2])
    values, at = [], 2
    for _ in range(count):
        size, = struct.unpack(">i", body[at:at + 4])
        at += 4
        if size < 0:
            values.append(None)
        else:
            values.append(body[at:at + size].decode())
            at += size
    return tuple(values)


def fields(body):
    """{code of the field: text} of an error."""
    return {part[:1].decode(): part[1:].decode(errors="replace")
            for part in body.split(b"\0") if part}
