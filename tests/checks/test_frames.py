"""The reader that rebuilds tables from frames, tried on small hand-made streams."""

import json
import pathlib
import sqlite3
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from support import frames  # noqa: E402

S = "shop.t"
KEYS = {S: ["id"]}


def head(kind, seq, attempt=0, **tail):
    frame = {"kind": kind, "snapshot_id": "s1", "store": S, "seq": seq, **tail}
    return {**frame, "attempt": attempt} if attempt else frame


def row(seq, key, value, position, attempt=0):
    return head("row", seq, attempt, record={"id": key, "v": value}, position=position)


def change(op, key, position, value=None, prev=None, **more):
    frame = {"kind": "change", "op": op, "store": S, "position": position, "index": 0,
             "prev": prev, "key": {"id": key}, **more}
    return frame if op in ("delete", "truncate") else \
        {"record": {"id": key, "v": value}, **frame}


def rebuilt(tmp_path, *stream):
    path = tmp_path / "frames.ndjson"
    path.write_text("".join(json.dumps(frame) + "\n" for frame in stream))
    return frames.rebuild(path, KEYS)


def values(result):
    return {record["id"]: record["v"] for _, record in result.rows(S)}


def test_change_past_a_row_wins_and_one_before_it_loses(tmp_path):
    result = rebuilt(tmp_path, head("begin", 0), change("update", 2, 7, "new"), row(0, 1, "a", 5),
                     row(1, 2, "old", 5), change("update", 1, 6, "b"), change("update", 1, 5, "x"),
                     head("end", 2, row_count=2, changes_to=[7, 0]))
    assert values(result) == {1: "b", 2: "new"}


def test_row_counts_as_after_every_change_of_its_position(tmp_path):
    result = rebuilt(tmp_path, head("begin", 0), change("update", 1, 5, "old"), row(0, 1, "row", 5))
    assert values(result) == {1: "row"}


def test_deleted_key_stays_deleted_against_an_older_row(tmp_path):
    result = rebuilt(tmp_path, head("begin", 0), change("delete", 1, 6), row(0, 1, "old", 5))
    assert values(result) == {}


def test_end_removes_what_the_snapshot_does_not_have(tmp_path):
    result = rebuilt(tmp_path, change("insert", 1, 1, "lost"), change("insert", 2, 9, "late"),
                     head("begin", 0, changes_from=[3, 0]), row(0, 3, "c", 8),
                     head("end", 1, row_count=1))
    assert values(result) == {2: "late", 3: "c"}


def test_end_keeps_keys_of_stubs_and_is_forbidden_by_one_without_a_key(tmp_path):
    before = [change("insert", 1, 1, "a"), change("insert", 2, 1, "b"),
              head("begin", 0, changes_from=[3, 0])]
    end = head("end", 1, row_count=1)
    keyed = rebuilt(tmp_path, *before, head("oversize", 0, bytes=9, row_key="[1]"), end)
    assert values(keyed) == {1: "a"}
    unkeyed = rebuilt(tmp_path, *before, head("oversize", 0, bytes=9), end)
    assert values(unkeyed) == {1: "a", 2: "b"} and unkeyed.snapshots[0].blocked_removal


def test_void_row_does_not_keep_its_key(tmp_path):
    stream = [head("begin", 0, changes_from=[3, 0]), row(0, 1, "a", 4), row(1, 2, "void", 4),
              head("end", 2, row_count=2), head("resume", 1, 1, changes_from=[3, 0]),
              row(1, 3, "c", 6, 1), head("end", 2, 1, row_count=2, starts=[1])]
    result = rebuilt(tmp_path, *stream)
    assert values(result) == {1: "a", 3: "c"}
    snapshot = result.snapshots[0]
    assert snapshot.status == "complete" and snapshot.attempts == [0, 1]
    assert list(snapshot.seqs[0]) == [0, 1] and snapshot.first_seen == {0: 0, 1: 1}
    assert rebuilt(tmp_path, *stream[:-1]).snapshots[0].status == "open"


def test_move_takes_unchanged_columns_and_removes_the_old_key(tmp_path):
    result = rebuilt(tmp_path, change("insert", 1, 1, "kept"),
                     {**change("update", 2, 2, moved_from={"id": 1}, unchanged=["v"]),
                      "record": {"id": 2}})
    assert values(result) == {2: "kept"}


def test_move_leaves_a_newer_row_under_the_old_key(tmp_path):
    result = rebuilt(tmp_path, change("insert", 1, 5, "newer"),
                     change("update", 2, 2, "moved", moved_from={"id": 1}))
    assert values(result) == {1: "newer", 2: "moved"}


def test_truncate_removes_what_is_older_and_keeps_older_rows_out(tmp_path):
    result = rebuilt(tmp_path, change("insert", 1, 1, "a"), change("insert", 2, 9, "b"),
                     change("truncate", 0, 5), head("begin", 0), row(0, 3, "c", 4))
    assert values(result) == {2: "b"}


def test_redelivery_changes_nothing(tmp_path):
    stream = [head("begin", 0), row(0, 1, "a", 1), change("update", 1, 2, "b"),
              change("delete", 2, 3, prev=[2, 0]), head("end", 1, row_count=1, changes_to=[3, 0])]
    once, again = rebuilt(tmp_path, *stream), rebuilt(tmp_path, *stream, *stream)
    assert values(once) == values(again) == {1: "b"}
    assert again.snapshots[0].status == "complete"
    assert again.stores[S].repeated == 3


def test_newer_incarnation_wins_with_lower_positions(tmp_path):
    result = rebuilt(tmp_path, change("insert", 1, 900, "old"),
                     {**change("update", 1, 2, "new"), "incarnation": 1})
    assert values(result) == {1: "new"}


def test_oversize_change_makes_the_row_stale(tmp_path):
    big = {key: value for key, value in change("update", 1, 2, oversize=99).items()
           if key != "record"}
    result = rebuilt(tmp_path, change("insert", 1, 1, "a"), big)
    assert values(result) == {} and result.stale == {S: {'{"id":1}'}}


def test_lost_row_and_lost_change_are_truncated(tmp_path):
    stream = [head("begin", 0, changes_from=[1, 0]), row(0, 1, "a", 2),
              change("update", 1, 3, "b", prev=[1, 0]), change("update", 1, 4, "c", prev=[3, 0]),
              head("end", 1, row_count=1, changes_to=[4, 0])]
    assert rebuilt(tmp_path, *stream).snapshots[0].status == "complete"
    for lost in (1, 2, 3):
        part = stream[:lost] + stream[lost + 1:]
        assert rebuilt(tmp_path, *part).snapshots[0].status == "truncated"


def test_numbers_keep_their_digits_and_differ_from_texts(tmp_path):
    path = tmp_path / "f"
    path.write_text('{"kind":"change","op":"insert","store":"shop.t","position":1,"index":0,'
                    '"prev":null,"key":{"id":1},"record":{"id":1,"v":1.10}}\n')
    value = frames.rebuild(path).tables[S]['{"id":1}']["v"]
    assert value == frames.Number("1.10") and value != "1.10" and value != frames.Number("1.1")


def test_torn_last_line_is_told_and_garbage_is_an_error(tmp_path):
    path = tmp_path / "f"
    whole = json.dumps(change("insert", 1, 1, "a")) + "\n"
    path.write_text(whole + '{"kind":"ro')
    assert frames.rebuild(path).torn == b'{"kind":"ro'
    path.write_text(whole + "{}\n" + whole)
    with pytest.raises(frames.FrameError, match=":2:"):
        frames.rebuild(path)


def test_differences_finds_a_wrong_value_a_missing_and_a_surplus_row(tmp_path):
    db = sqlite3.connect(":memory:")
    db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, v)")
    db.executemany("INSERT INTO t VALUES (?, ?)", [(1, "a"), (2, b"\x00\xff"), (3, None)])
    good = [change("insert", 1, 1, "a"), change("insert", 2, 2, "AP8="),
            change("insert", 3, 3, None)]
    assert frames.differences(rebuilt(tmp_path, *good), db, "shop") == []
    wrong = [change("insert", 1, 1, "b"), change("insert", 2, 2, "AP8="),
             change("insert", 4, 3, None)]
    found = frames.differences(rebuilt(tmp_path, *wrong), db, "shop")
    assert len(found) == 3
    assert "v is 'a'" in found[0] and "not in the frames" in found[1] and "1 rows" in found[2]


def test_lsn_positions_are_compared_by_their_value(tmp_path):
    """"9/…" comes before "10/…" and "A/…", whatever the texts say."""
    result = rebuilt(tmp_path, head("begin", 0, changes_from=["9/FF", 0]), row(0, 1, "row", "A/0"),
                     change("update", 1, "9/FFFFFF00", "old", prev=["9/FF", 0]),
                     change("update", 1, "10/8", "new", prev=["9/FFFFFF00", 0]),
                     head("end", 1, row_count=1, changes_to=["10/8", 0]))
    assert values(result) == {1: "new"}
    assert result.snapshots[0].status == "complete"
    short = rebuilt(tmp_path, head("begin", 0, changes_from=["9/FF", 0]), row(0, 1, "row", "A/0"),
                    head("end", 1, row_count=1, changes_to=["10/8", 0]))
    assert short.snapshots[0].status == "truncated"
