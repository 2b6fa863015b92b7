"""Text as SQLite may hold it: NUL bytes, bytes that are no UTF-8, UTF-16; in keys and in columns."""

import base64
import json

import pytest
from support.sqlite_copies import connect, execute, lines

COPY = ["copy", "sqlite:shop.db", "file:out.ndjson", "--state", "state", "--follow"]
# Bytes of the text, and what they are in a frame.
TEXTS = {
    b"": "", b"plain": "plain", b"\x00": "\0", b"a\x00b": "a\0b", b"a\x00": "a\0",
    "ü日\U0001f600".encode(): "ü日\U0001f600", b"\xff": None, b"ok \xc3": None, b"a\x00\xed\xa0\x80": None,
    b'"\\\n\x1f\x7f': '"\\\n\x1f\x7f', b"\xf4\x90\x80\x80": None, "\ufeff\ufffe".encode(): "\ufeff\ufffe",
}


def framed(text):
    shown = TEXTS[text]
    return shown if shown is not None else {"$text": base64.b64encode(text).decode()}


def follow_and_touch(start, tmp_path, database, texts):
    """The records of rows and of changes, by number; each also with its key."""
    out = tmp_path / "out.ndjson"
    process = start(*COPY)
    process.wait_until(lambda: any(kind == "end" for _, kind, _ in lines(out)), what="the end")
    execute(database, "UPDATE t SET n = n + 100")
    process.wait_until(lambda: sum(kind == "change" for _, kind, _ in lines(out)) == len(texts),
                       what="the changes")
    process.interrupt().check()
    frames = [json.loads(line) for _, _, line in lines(out)]
    return ({frame["record"]["n"]: frame["record"] for frame in frames if frame["kind"] == "row"},
            {frame["record"]["n"] - 100: frame for frame in frames if frame["kind"] == "change"})


@pytest.mark.parametrize("key", ["k TEXT NOT NULL PRIMARY KEY", "k TEXT PRIMARY KEY", "k PRIMARY KEY",
                                 "k TEXT COLLATE NOCASE NOT NULL UNIQUE"])
def test_text_is_the_same_in_rows_and_in_changes(start, tmp_path, key):
    database = tmp_path / "shop.db"
    execute(database, f"CREATE TABLE t ({key}, v TEXT, n INT)")
    db = connect(database)
    for number, text in enumerate(TEXTS):
        db.execute("INSERT INTO t VALUES (CAST(? AS TEXT), CAST(? AS TEXT), ?)", (text, text, number))
    db.close()
    rows, changes = follow_and_touch(start, tmp_path, database, TEXTS)
    for number, text in enumerate(TEXTS):
        want = framed(text)
        assert rows[number]["k"] == rows[number]["v"] == want
        assert changes[number]["record"]["k"] == changes[number]["record"]["v"] == want
        assert changes[number]["key"]["k"] == want


@pytest.mark.parametrize("encoding", ["UTF-16le", "UTF-16be"])
def test_utf_16_databases_come_as_utf_8(start, tmp_path, encoding):
    database = tmp_path / "shop.db"
    # SQLite itself turns U+FFFE and U+FFFF into U+FFFD where it converts: documented.
    texts = [shown for shown in TEXTS.values() if shown is not None and "\ufffe" not in shown]
    execute(database, f"PRAGMA encoding = '{encoding}'; CREATE TABLE \"t\" (k TEXT NOT NULL PRIMARY KEY,"
            " v TEXT, n INT); CREATE UNIQUE INDEX \"odd ü\" ON t (n) WHERE v <> 'ü'")
    db = connect(database)
    assert db.execute("PRAGMA encoding").fetchone() == (encoding,)
    for number, text in enumerate(texts):
        db.execute("INSERT INTO t VALUES (?, ?, ?)", (text, text, number))
    db.execute("ALTER TABLE t ADD COLUMN \"日\" DEFAULT 'ü'")
    db.close()
    rows, changes = follow_and_touch(start, tmp_path, database, texts)
    for number, text in enumerate(texts):
        assert rows[number]["k"] == rows[number]["v"] == text and rows[number]["日"] == "ü"
        assert changes[number]["key"]["k"] == changes[number]["record"]["v"] == text
