"""Rebuilds tables from snapshot frames by the consumer's rule, independently of the program.

The rule (docs/envelope.md): every row and change has a place (incarnation, position, index); a row
counts as after every change of its position. What comes under a key counts only if its place is
past the one held there, for deleted keys too. Positions are integers or PostgreSQL's "H/H". A moved
row is taken from its old key and removed there if it is older; a truncate removes what is older. At
a snapshot's `end`, keys that are held, are neither rows nor stubs of the snapshot and have no change
past `changes_from` are removed. Rows, stubs and ends of an earlier attempt at or past a later
attempt's start are void.

    rebuilt = rebuild(["out.ndjson"], keys={"shop.orders": ["id"]})
    rebuilt.tables["shop.orders"]['{"id":1}']  ->  {"id": 1, "total": Number("12.50"), …}

As a program it compares frames with the SQLite database that they were copied from:

    python3 -m support.frames shop.db out.ndjson...
"""

import array
import base64
import itertools
import json
import math
import sqlite3
import sys

AFTER_ALL = math.inf  # the index of a row: after every change of its position
HIDDEN = "_rowid_"


class Number(str):
    """A JSON number with a fraction or an exponent, its digits kept; never equal to a text."""

    __slots__ = ()

    def __eq__(self, other):
        return isinstance(other, Number) and str.__eq__(self, other)

    def __ne__(self, other):
        return not self == other

    __hash__ = str.__hash__

    def __repr__(self):
        return f"Number({str(self)})"


def _encode(value):
    return str(value) if isinstance(value, Number) else json.dumps(value, ensure_ascii=False)


_decode = json.JSONDecoder(parse_float=Number, parse_constant=Number).decode


class FrameError(Exception):
    """A line that is no frame; says which file and line."""


class Snapshot:
    """What was seen of one snapshot."""

    def __init__(self, store, snapshot_id, chain, truncates):
        self.store = store
        self.chain = chain       # (prev, place) of every change of the store that came
        self.id = snapshot_id
        self.attempts = []       # attempt numbers in the order first seen
        self.starts = {}         # attempt -> its first seq: said by resume and end
        self.first_seen = {}     # attempt -> the seq of the first row or stub that came
        self.seqs = {}           # attempt -> array of every seq that came, in order, with repeats
        self.stubs = {}          # attempt -> seqs that were stubs
        self.stub_keys = []      # (attempt, seq, row_key or None)
        self.begun = False
        self.openings = {}       # attempt -> changes_from of its begin or resume
        self.ended = None        # the `end` frame of the highest attempt that came
        self.incarnation = 0
        self.changes_from = None  # as `begin` says it; where that is lost, the first `resume`
        self.opened_by = math.inf  # the attempt that said it
        self.keys = {}           # attempt -> key of each of `seqs`, None for a stub, until the end
        self.latest = None       # the latest place of a row or opening
        self.truncates = truncates  # places of the store's truncates that came
        self.blocked_removal = False  # a stub without a key forbade the removal at the end

    def starts_of_later(self, attempt):
        return [start for later, start in self.starts.items() if later > attempt]

    def is_void(self, attempt, seq):
        return any(seq >= start for start in self.starts_of_later(attempt))

    def seen(self):
        """The seqs of rows and stubs that are not void."""
        seen = set()
        for attempt, seqs in self.seqs.items():
            limit = min(self.starts_of_later(attempt), default=math.inf)
            seen.update(seq for seq in seqs if seq < limit)
        return seen

    @property
    def status(self):
        """"open", "complete" or "truncated", as `tidemark verify` should say."""
        if self.ended is None or self.ended.get("attempt", 0) < max(self.attempts, default=0):
            return "complete" if self.is_emptied() else "open"
        count = self.ended["row_count"]
        seen = self.seen()
        whole = len(seen) == count and all(seq < count for seq in seen)
        reached = self.ended.get("changes_to")
        if reached is not None:
            covered = self.covered()
            whole = whole and covered is not None and covered >= in_log(self.incarnation, reached)
        return "complete" if whole else "truncated"

    def is_emptied(self):
        """A truncate came after all of it: the table's rows are in the changes after that."""
        return any(self.openings and (self.latest is None or place > self.latest)
                   for place in self.truncates)

    def reached(self, place):
        if place is not None and (self.latest is None or place > self.latest):
            self.latest = place

    def covered(self):
        """How far the store's changes are known without a hole, in whatever order they came, from
        the earliest opening on. Where something counts that came before it, only a chain from the
        store's very first change proves anything."""
        first = max((attempt for attempt, start in self.starts.items() if start == 0), default=0)
        earliest = min(self.openings, default=first + 1)
        covered = self.openings[earliest] if earliest <= first else None
        for prev, place in sorted(self.chain, key=lambda link: (link[0] is not None, link)):
            if prev is None or (covered is not None and prev <= covered):
                covered = place if covered is None else max(covered, place)
        return covered


class Held:
    """What is held under one key; the record is the frame's bytes until it is needed."""

    __slots__ = ("place", "record")

    def __init__(self, place, record):
        self.place = place
        self.record = record  # bytes of a frame, a dict, or None: deleted or stale

    def decoded(self):
        """The record; decoded anew each time, because a million dicts would not fit well."""
        if isinstance(self.record, bytes):
            return _decode(self.record.decode())["record"]
        return self.record


class Store:
    """One table while it is rebuilt."""

    def __init__(self, name, key_columns):
        self.name = name
        self.key_columns = key_columns
        self.held = {}
        self.last_change = {}    # key -> the latest place of a change, counted or not
        self.stale = set()       # keys whose newest change was over the limit
        self.truncated_at = None
        self.changes = 0
        self.repeated = 0        # rows and changes that did not count

    def counts(self, key, place):
        held = self.held.get(key)
        if held is not None and held.place is not None and place is not None:
            return place > held.place
        return self.truncated_at is None or place is None or place > self.truncated_at


class Rebuilt:
    """The outcome: tables, snapshots, and what else was noticed."""

    def __init__(self, stores, snapshots, torn):
        self.stores = stores
        self.snapshots = snapshots   # in order of appearance
        self.torn = torn             # bytes of a last line without its end, after a kill
        self.stale = {name: store.stale for name, store in stores.items() if store.stale}
        self._tables = None

    @property
    def tables(self):
        """{store: {key as JSON: record}}"""
        if self._tables is None:
            self._tables = {name: dict(self.rows(name)) for name in self.stores}
        return self._tables

    def rows(self, name):
        for key, held in self.stores[name].held.items():
            if held.record is not None:
                yield key, held.decoded()

    def snapshots_of(self, store):
        return [snapshot for snapshot in self.snapshots if snapshot.store == store]


def ordered(position):
    """A position as a number: an integer as it is, an LSN ("16/B374D848") by its value."""
    if isinstance(position, str):
        high, low = position.split("/")
        return int(high, 16) << 32 | int(low, 16)
    return position


def in_log(incarnation, place):
    """A place, [position, index] of a frame, as a tuple that can be compared; None for none."""
    return (incarnation, ordered(place[0]), place[1]) if place else None


def key_text(key):
    """A key object as the text that tables are indexed by: JSON, columns sorted by name."""
    return "{" + ",".join(f"{_encode(column)}:{_encode(key[column])}"
                          for column in sorted(key)) + "}"


def lines_of(paths):
    """(path, line number, bytes) of every whole line; a torn last line comes with number 0."""
    for path in paths:
        with open(path, "rb") as file:
            for number, line in enumerate(file, 1):
                if line.endswith(b"\n"):
                    yield path, number, line
                else:
                    yield path, 0, line


def decode(path, number, line):
    try:
        frame = _decode(line.decode())
        frame["kind"]
        frame["store"]
        return frame
    except (ValueError, KeyError, TypeError) as error:
        raise FrameError(f"{path}:{number}: not a frame: {error}: {line[:200]!r}") from error


class Rebuilder:
    """Reads frames twice: first what only later frames tell, then every frame in order."""

    def __init__(self, keys=None):
        self.key_columns = {store: list(columns) for store, columns in (keys or {}).items()}
        self.stores = {}
        self.snapshots = {}
        self.torn = b""
        self._last_place = None
        self._chains = {}
        self._truncates = {}

    # -- first pass: attempts, their starts, key columns

    def look_ahead(self, paths):
        for path, number, line in lines_of(paths):
            if number == 0 or line.startswith((b'{"kind":"row"', b'{"kind":"oversize"')):
                continue
            frame = decode(path, number, line)
            if frame["kind"] == "change":
                self._learn_key(frame)
            elif frame["kind"] in ("resume", "end"):
                self._learn_starts(frame)

    def _learn_key(self, frame):
        known = self.key_columns.setdefault(frame["store"], [])
        known.extend(column for column in frame.get("key") or () if column not in known)

    def _learn_starts(self, frame):
        snapshot = self._snapshot(frame)
        for attempt, start in enumerate(frame.get("starts", ()), 1):
            snapshot.starts[attempt] = start
        if frame["kind"] == "resume":
            snapshot.starts[frame.get("attempt", 0)] = frame["seq"]

    # -- second pass

    def read(self, paths):
        apply = {"begin": self._begin, "resume": self._begin, "row": self._row,
                 "oversize": self._oversize, "end": self._end, "change": self._change}
        for path, number, line in lines_of(paths):
            if number == 0:
                self.torn = line
                continue
            frame = decode(path, number, line)
            if frame["kind"] not in apply:
                raise FrameError(f"{path}:{number}: no such kind: {frame['kind']}")
            apply[frame["kind"]](frame, line)

    def _snapshot(self, frame):
        found = self.snapshots.get(frame["snapshot_id"])
        if found is None:
            found = self.snapshots[frame["snapshot_id"]] = \
                Snapshot(frame["store"], frame["snapshot_id"], self._chain(frame["store"]),
                         self._truncates.setdefault(frame["store"], []))
        return found

    def _chain(self, store):
        return self._chains.setdefault(store, [])

    def _store(self, frame):
        name = frame["store"]
        found = self.stores.get(name)
        if found is None:
            found = self.stores[name] = Store(name, self.key_columns.get(name, []))
        return found

    def _place(self, frame, index):
        """Rows of one chunk share their place: one tuple for all of them saves memory."""
        if "position" not in frame:
            return None
        place = (frame.get("incarnation", 0), ordered(frame["position"]), index)
        if place != self._last_place:
            self._last_place = place
        return self._last_place

    def _begin(self, frame, _line):
        self._store(frame)
        snapshot = self._snapshot(frame)
        self._attempt(snapshot, frame)
        is_begin = frame["kind"] == "begin"
        since = frame.get("changes_from")
        incarnation = frame.get("incarnation", 0)
        snapshot.openings.setdefault(frame.get("attempt", 0),
                                     in_log(incarnation, since))
        snapshot.reached(in_log(incarnation, since))
        attempt = frame.get("attempt", 0)
        if attempt <= snapshot.opened_by:
            snapshot.opened_by = attempt
            snapshot.incarnation = incarnation
            snapshot.changes_from = in_log(incarnation, since)
        snapshot.begun = snapshot.begun or is_begin

    @staticmethod
    def _attempt(snapshot, frame):
        attempt = frame.get("attempt", 0)
        if attempt not in snapshot.seqs:
            snapshot.attempts.append(attempt)
            snapshot.seqs[attempt] = array.array("Q")
            snapshot.stubs[attempt] = []
            snapshot.keys[attempt] = []
        return attempt

    def _seq(self, snapshot, frame, key):
        attempt = self._attempt(snapshot, frame)
        snapshot.seqs[attempt].append(frame["seq"])
        if snapshot.ended is None:
            snapshot.keys[attempt].append(key)
        snapshot.first_seen.setdefault(attempt, frame["seq"])
        return attempt

    def _row(self, frame, line):
        store, snapshot = self._store(frame), self._snapshot(frame)
        key = self._row_key(store, frame["record"])
        self._seq(snapshot, frame, key)
        place = self._place(frame, AFTER_ALL)
        snapshot.reached(place)
        if store.counts(key, place):
            store.held[key] = Held(place, line)
            store.stale.discard(key)
        else:
            store.repeated += 1

    @staticmethod
    def _row_key(store, record):
        """The key from the record; a hidden rowid is part of it only where the record has one."""
        columns = store.key_columns or ([HIDDEN] if HIDDEN in record else [])
        if not columns:
            raise FrameError(f"the key columns of {store.name} are not known: give keys={{…}}")
        return key_text({column: record[column] for column in columns if column in record})

    def _oversize(self, frame, _line):
        snapshot = self._snapshot(frame)
        attempt = self._seq(snapshot, frame, None)
        snapshot.stubs[attempt].append(frame["seq"])
        snapshot.stub_keys.append((attempt, frame["seq"], frame.get("row_key")))

    def _change(self, frame, line):
        store = self._store(frame)
        store.changes += 1
        place = self._place(frame, frame["index"])
        prev = frame.get("prev")
        self._chain(store.name).append(
            (in_log(frame.get("incarnation", 0), prev), place))
        if frame["op"] == "truncate":
            self._truncates.setdefault(store.name, []).append(place)
            self._truncate(store, place)
            return
        key = key_text(frame["key"])
        moved_from = key_text(frame["moved_from"]) if frame.get("moved_from") else None
        for one in (key, moved_from):
            if one is not None and (one not in store.last_change or store.last_change[one] < place):
                store.last_change[one] = place
        old = self._take(store, moved_from, place) if moved_from else store.held.get(key)
        if not store.counts(key, place):
            store.repeated += 1
            return
        store.stale.discard(key)
        record = None
        if "oversize" in frame:
            store.stale.add(key)
        elif frame["op"] != "delete":
            record = self._whole(frame, old) if frame.get("unchanged") else line
        store.held[key] = Held(place, record)

    @staticmethod
    def _take(store, key, place):
        """The row that moves away from `key`: removed there if it is older than the move."""
        old = store.held.get(key)
        if store.counts(key, place):
            store.held[key] = Held(place, None)
            store.stale.discard(key)
            return old
        return None

    @staticmethod
    def _whole(frame, old):
        """The record with the columns that the source did not send taken from the old row."""
        record = dict(frame["record"])
        before = old.decoded() if old is not None else None
        for column in frame["unchanged"]:
            if before is not None and column in before:
                record[column] = before[column]
        return record

    @staticmethod
    def _truncate(store, place):
        if store.truncated_at is None or place > store.truncated_at:
            store.truncated_at = place
        for key, held in store.held.items():
            if held.place is None or held.place < place:
                store.held[key] = Held(place, None)
                store.stale.discard(key)

    def _end(self, frame, _line):
        store, snapshot = self._store(frame), self._snapshot(frame)
        attempt = self._attempt(snapshot, frame)
        if any(later > attempt for later in snapshot.starts):
            return  # void: a later attempt went on from before it
        if snapshot.ended is None:
            snapshot.ended = frame
            self._remove_unseen(store, snapshot)
            snapshot.keys = {}

    def _remove_unseen(self, store, snapshot):
        kept = set()
        for attempt, keys in snapshot.keys.items():
            limit = min(snapshot.starts_of_later(attempt), default=math.inf)
            kept.update(key for seq, key in zip(snapshot.seqs[attempt], keys) if seq < limit)
        for attempt, seq, row_key in snapshot.stub_keys:
            if snapshot.is_void(attempt, seq):
                continue
            if row_key is None:
                snapshot.blocked_removal = True
                return
            kept.add(self._stub_key(store, row_key))
        # none yet: before every change of its own incarnation, after all of older ones
        since = snapshot.changes_from or (snapshot.incarnation, -math.inf, 0)
        for key, held in store.held.items():
            if held.record is None and key not in store.stale or key in kept:
                continue
            change = store.last_change.get(key)
            if change is None or change <= since:
                store.held[key] = Held(held.place, None)
                store.stale.discard(key)

    @staticmethod
    def _stub_key(store, row_key):
        """A stub's row_key is the array of the key's values, in key order."""
        return key_text(dict(zip(store.key_columns, _decode(row_key))))


def rebuild(paths, keys=None):
    """Rebuilds every store of the files, read in the order given.

    `keys`: {store: [key columns in key order]} where no change frame tells them.
    """
    paths = [paths] if isinstance(paths, str) or hasattr(paths, "__fspath__") else list(paths)
    rebuilder = Rebuilder(keys)
    rebuilder.look_ahead(paths)
    rebuilder.read(paths)
    return Rebuilt(rebuilder.stores, list(rebuilder.snapshots.values()), rebuilder.torn)


# -- comparing with an SQLite database

def sqlite_keys(db, connection, tables=None):
    """{store: key columns} of a database, as the source identifies its rows."""
    return {f"{connection}.{table}": _sqlite_key(db, table)
            for table in tables or sqlite_tables(db)}


def sqlite_tables(db):
    return [name for name, in db.execute(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE"
        " '\\' AND name NOT LIKE '\\_tidemark\\_%' ESCAPE '\\' AND sql NOT LIKE 'CREATE VIRTUAL%'"
        " ORDER BY name")]


def _sqlite_key(db, table):
    """The key columns; a hidden rowid is the last where rows can need it."""
    info = db.execute("SELECT name, pk, \"notnull\", type FROM pragma_table_info(?)",
                      (table,)).fetchall()
    key = sorted((pk, name, not_null, kind) for name, pk, not_null, kind in info if pk)
    if key:
        is_alias = len(key) == 1 and key[0][3].upper() == "INTEGER"
        whole = is_alias or all(not_null for _, _, not_null, _ in key)
        hidden = [] if whole else hidden_name(db, table)
        return [name for _, name, _, _ in key] + hidden
    return _unique_key(db, table) or hidden_name(db, table)


def _unique_key(db, table):
    for index, in db.execute("SELECT name FROM pragma_index_list(?) WHERE \"unique\" AND NOT partial"
                             " ORDER BY seq DESC", (table,)).fetchall():
        names = db.execute("SELECT i.name, t.\"notnull\" FROM pragma_index_info(?) i LEFT JOIN"
                           " pragma_table_info(?) t ON t.name = i.name ORDER BY i.seqno",
                           (index, table)).fetchall()
        if names and all(name is not None and not_null for name, not_null in names):
            return [name for name, _ in names]
    return []


def hidden_name(db, table):
    """[the first name of the rowid that is no column], [] for WITHOUT ROWID."""
    columns = {name.lower() for name, in db.execute("SELECT name FROM pragma_table_xinfo(?)",
                                                    (table,))}
    for name in (HIDDEN, "rowid", "oid"):
        if name not in columns:
            try:
                db.execute(f"SELECT {name} FROM {quoted(table)} LIMIT 0")
                return [name]
            except sqlite3.OperationalError:
                return []
    return []


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


def same_value(framed, stored):
    """Whether a frame's value is what SQLite holds: numbers by value, blobs by base64."""
    if stored is None or isinstance(stored, (int, str)):
        return type(framed) is type(stored) and framed == stored
    if isinstance(stored, float):
        if not isinstance(framed, (Number, int, str)) or isinstance(framed, bool):
            return False
        if math.isinf(stored):
            return framed in ("Infinity", "-Infinity") and float(framed) == stored
        return isinstance(framed, (Number, int)) and float(framed) == stored
    return isinstance(framed, str) and framed == base64.b64encode(stored).decode()


def differences(rebuilt, db, connection, tables=None, limit=20):
    """Sentences on what differs between the rebuilt tables and the database; [] when nothing does.

    Keys are compared as the frames have them, so a key of a real number must not be asked for.
    """
    found = []
    for table in tables or sqlite_tables(db):
        store = f"{connection}.{table}"
        if store not in rebuilt.stores:
            found.append(f"{store}: no frame of it")
            continue
        found += itertools.islice(_table_differences(rebuilt.stores[store], db, table), limit)
    return found[:limit]


def _table_differences(store, db, table):
    key_columns = _sqlite_key(db, table)
    hidden = [name for name in hidden_name(db, table) if name in key_columns]
    rows = db.execute(f"SELECT {''.join(name + ', ' for name in hidden)}* FROM {quoted(table)}")
    names = hidden + [column[0] for column in rows.description][len(hidden):]
    unmatched = sum(held.record is not None for held in store.held.values())
    for row in rows:
        stored = dict(zip(names, row))
        if hidden and len(key_columns) > 1 and None not in [stored[c] for c in key_columns]:
            del stored[hidden[0]]  # needed by rows with a NULL in their key alone
        key = key_text({column: _framed_key(stored[column]) for column in key_columns
                        if column in stored})
        held = store.held.get(key)
        if held is None or held.record is None:
            yield f"{store.name} {key}: in the database, not in the frames"
            continue
        unmatched -= 1
        record = held.decoded()
        for name, value in stored.items():
            if name not in record or not same_value(record[name], value):
                yield (f"{store.name} {key}: {name} is {value!r} in the database,"
                       f" {record.get(name, 'nothing')!r} in the frames")
    if unmatched:
        yield f"{store.name}: {unmatched} rows in the frames that the database does not have"


def _framed_key(value):
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value


def main(arguments):
    if len(arguments) < 2:
        print("usage: python3 -m support.frames DATABASE FRAMES...", file=sys.stderr)
        return 2
    db = sqlite3.connect(f"file:{arguments[0]}?mode=ro", uri=True)
    connection = arguments[0].rsplit("/", 1)[-1].rsplit(".", 1)[0]
    rebuilt = rebuild(arguments[1:], sqlite_keys(db, connection))
    found = differences(rebuilt, db, connection)
    for sentence in found:
        print(sentence)
    rows = sum(held.record is not None for store in rebuilt.stores.values()
               for held in store.held.values())
    changes = sum(store.changes for store in rebuilt.stores.values())
    repeated = sum(store.repeated for store in rebuilt.stores.values())
    for snapshot in rebuilt.snapshots:
        print(f"{snapshot.store}: snapshot {snapshot.id} {snapshot.status},"
              f" {len(snapshot.attempts)} attempts")
    print(f"{rows} rows rebuilt from frames ({changes} changes, {repeated} came again):"
          f" {'differs' if found else 'equal'}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
