"""tidemark verify and the tests' own reader of frames judge the same streams alike."""

import collections
import json

from support import frames, process

TIME = "2026-11-29T13:40:55.567Z"
MANY = 400  # snapshots a file: one run of the program judges them all


class Dump:
    """One copy of a table as it would be written: attempts, rows, stubs, chained changes."""

    def __init__(self, rng, number):
        self.rng = rng
        self.id = f"01a22789-8c8f-7abc-8def-{number:012x}"
        self.store = f"shop.t{number}"
        self.frames = []
        self.position = rng.randint(1, 50)
        self.last = None  # place of the last change
        self.starts = []
        if rng.random() < 0.5:
            self.change()
        self.write()

    def head(self, kind, seq, **tail):
        attempt = {"attempt": len(self.starts)} if self.starts else {}
        self.frames.append({"kind": kind, "snapshot_id": self.id, "snapshot_at": TIME,
                            "timestamp": TIME, "store": self.store, "seq": seq, **tail, **attempt})

    def change(self, op="update"):
        self.position += self.rng.randint(1, 3)
        row = {"key": {"id": 1}, "record": {"id": 1}} if op == "update" else {}
        self.frames.append({"kind": "change", "op": op, "timestamp": TIME,
                            "store": self.store, "position": self.position, "index": 0,
                            "prev": self.last, **row})
        self.last = [self.position, 0]

    def write(self):
        count = self.rng.randint(0, 12)
        self.head("begin", 0, changes_from=self.last)
        seq = 0
        while seq < count:
            if self.rng.random() < 0.2:
                self.change("truncate" if self.rng.random() < 0.3 else "update")
            if self.rng.random() < 0.1:
                self.head("oversize", seq, bytes=99, row_key="[1]")
            else:
                self.head("row", seq, record={"id": seq, "v": len(self.starts)},
                          position=self.position)
            seq += 1
            if self.rng.random() < 0.1 and len(self.starts) < 3:
                seq = self.rng.randint(self.starts[-1] if self.starts else 0, seq)
                self.starts.append(seq)
                self.head("resume", seq, changes_from=self.last, starts=list(self.starts))
        starts = {"starts": self.starts} if self.starts else {}
        self.head("end", count, row_count=count, completed_at=TIME, changes_to=self.last, **starts)

    def spoiled(self):
        """As it is, cut short, with one or two frames lost, or with a part delivered again."""
        kept = list(self.frames)
        kind = self.rng.choice(["whole", "cut", "lost", "lost", "again", "again and lost"])
        if "again" in kind:
            start = self.rng.randrange(len(kept))
            kept += kept[start:]
        if kind == "cut":
            kept = kept[:self.rng.randint(1, len(kept))]
        if "lost" in kind:
            for _ in range(self.rng.randint(1, 2)):
                if len(kept) > 1:
                    kept.pop(self.rng.randrange(len(kept)))
        return kept


def test_verify_agrees_with_the_reader_of_the_tests(run, rng, tmp_path):
    seen = collections.Counter()
    for round_number in range(process.soak(3, 300)):
        path = tmp_path / f"{round_number}.ndjson"
        with open(path, "w") as file:
            for number in range(MANY):
                for frame in Dump(rng, number).spoiled():
                    file.write(json.dumps(frame, separators=(",", ":")) + "\n")
        ours = {snapshot.id: snapshot.status for snapshot in
                frames.rebuild(path, {f"shop.t{n}": ["id"] for n in range(MANY)}).snapshots}
        result = run("verify", "--all", "--json", path)
        assert result.code == 1, result.err
        theirs = {entry["snapshot_id"]: entry for entry in map(json.loads, result.out.splitlines())}
        assert set(ours) == set(theirs)
        wrong = {one: (status, theirs[one]) for one, status in ours.items()
                 if status != theirs[one]["status"]}
        assert not wrong, f"in {path}: {dict(list(wrong.items())[:3])}"
        seen.update(ours.values())
        path.unlink()
    assert min(seen[status] for status in ("complete", "truncated", "open")) > 100, seen
