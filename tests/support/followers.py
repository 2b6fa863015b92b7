"""Archives that are published and followed: starting both sides, certificates, what each holds.

    publisher = start_publisher(start, "a.tide", "tcp://127.0.0.1:0")
    run("archive", "subscribe", publisher.address, "b.tide").check()
    differences("a.tide", "b.tide")      [] where both hold the same
"""

import re
import sqlite3
import subprocess

# What two archives have in common, whatever numbers their sources have.
TABLES = {
    "sources": "SELECT uuid, labels, clock_anchor_wall_ns, complete FROM sources ORDER BY 1",
    "segments": "SELECT uuid, stream, seq, rows, first_ts, last_ts, bytes, caller_index"
                " FROM segments JOIN sources ON id = source_id ORDER BY 1, 2, 3",
    "wal": "SELECT uuid, stream, ts, wall_offset, row FROM wal JOIN sources ON id = source_id"
           " ORDER BY 1, 2, 3",
    "caller_rows": "SELECT uuid, stream, ts, blob FROM caller_rows JOIN sources ON id = source_id"
                   " ORDER BY 1, 2, 3, 4",
    "clock_offsets": "SELECT uuid, ts, offset_ns FROM clock_offsets"
                     " JOIN sources ON id = source_id ORDER BY 1, 2",
}


def ask(archive, sql):
    db = sqlite3.connect(f"file:{archive}?mode=rw", uri=True, timeout=30)  # never makes one
    try:
        return db.execute(sql).fetchall()
    finally:
        db.close()


def differences(archive, copy, tables=tuple(TABLES)):
    """The names of the tables in which two archives differ."""
    return [table for table in tables if ask(archive, TABLES[table]) != ask(copy, TABLES[table])]


def rows_of(archive):
    """How many rows are there, sealed and live."""
    try:
        return ask(archive, "SELECT (SELECT COUNT(*) FROM wal) +"
                            " (SELECT COALESCE(SUM(rows), 0) FROM segments)")[0][0]
    except sqlite3.Error:  # it is being made
        return 0


def start_publisher(start, archive, listen, *options, **keywords):
    """A running `archive publish`, with the address that it said in `address`."""
    process = start("archive", "publish", archive, "--listen", listen, *options, **keywords)
    said = process.wait_for_line(r"is published at (\S+)", timeout=60)
    process.address = said.group(1)
    process.port = int(process.address.rsplit(":", 1)[1]) if "://" in process.address else None
    return process


def followers_of(process):
    """How many streams have begun so far."""
    return len(re.findall(r" follows; ", process.err()))


class Certificates:
    """An authority, and what it signs: `ca`, and pairs of files by the name that they are for."""

    def __init__(self, folder, name="ca"):
        self.folder = folder
        self.name = name
        self.ca = folder / f"{name}.pem"
        self.key = folder / f"{name}.key"
        self._openssl("req", "-x509", *self._new_key(self.key), "-out", self.ca, "-days", "2",
                      "-subj", f"/CN={name}")

    @staticmethod
    def _openssl(*args):
        subprocess.run(["openssl", *map(str, args)], check=True, capture_output=True, timeout=60)

    @staticmethod
    def _new_key(path):
        return ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout",
                path)

    def sign(self, name, alternative="DNS:localhost,IP:127.0.0.1", days=2):
        """(certificate, key) of a new pair."""
        key, request = self.folder / f"{name}.key", self.folder / f"{name}.csr"
        certificate, extra = self.folder / f"{name}.pem", self.folder / f"{name}.ext"
        extra.write_text(f"subjectAltName={alternative}\n")
        self._openssl("req", *self._new_key(key), "-out", request, "-subj", f"/CN={name}")
        self._openssl("x509", "-req", "-in", request, "-CA", self.ca, "-CAkey", self.key,
                      "-CAcreateserial", "-out", certificate, "-days", str(days), "-extfile", extra)
        key.chmod(0o600)
        return certificate, key


def token_file(path, token="0123456789abcdef-token", mode=0o600):
    path.write_text(token + "\n")
    path.chmod(mode)
    return path
