"""The sample shop and its writer do what the scenarios count on."""

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from support import shop  # noqa: E402


@pytest.mark.parametrize("journal", ["WAL", "DELETE"])
def test_writer_changes_every_table_and_counts_its_transactions(tmp_path, journal):
    path = tmp_path / "shop.db"
    counts = shop.make_shop(path, 300, journal)
    db = shop.connect(path)
    assert db.execute("PRAGMA journal_mode").fetchone()[0].upper() == journal
    for table in shop.TABLES:
        assert db.execute(f"SELECT count(*) FROM {table}").fetchone()[0] == counts[table]
    db.executescript("CREATE TABLE seen (t, op);" + "".join(
        f"CREATE TRIGGER {table}_{op} AFTER {op} ON {table} BEGIN"
        f" INSERT INTO seen VALUES ('{table}', '{op}'); END;"
        for table in shop.TABLES for op in ("INSERT", "UPDATE", "DELETE")))
    with shop.Writer(path, seed=7, transactions=400) as writer:
        assert writer.wait() == 400
    seen = {tuple(row) for row in db.execute("SELECT DISTINCT t, op FROM seen")}
    assert {(table, op) for table in shop.TABLES for op in ("INSERT", "UPDATE")} <= seen
    assert db.execute("PRAGMA integrity_check").fetchone()[0] == "ok"


def test_writer_stops_when_asked(tmp_path):
    path = tmp_path / "shop.db"
    shop.make_shop(path, 50)
    with shop.Writer(path, per_second=200) as writer:
        assert writer.running()
        assert writer.stop() >= 0
        assert not writer.running()
