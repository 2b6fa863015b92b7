"""Tables of PostgreSQL that come, go and are made anew while nobody follows."""

import time

import pytest
from support import pg_tables


def configure(pg, tmp_path, tables="*"):
    (tmp_path / "shop.yaml").write_text(
        f"name: shop\nsource: {pg.url()}\ntables: [\"{tables}\"]\nsinks:\n  out: file:out.ndjson\n")


def add_mark(pg, table="marks"):
    mark = f"mark {time.monotonic_ns()}"
    pg.query(f"INSERT INTO {table} (word) VALUES ('{mark}')")
    return mark.encode()


def run_until(start, path, mark, command=("run", "shop.yaml")):
    """Runs until the mark is in the file and every table has its copy, then stops in order."""
    process = start(*command)
    process.wait_until(lambda: path.exists() and mark in path.read_bytes(), 60, f"{mark}")
    return process


def make(pg, name, rows=500):
    pg.query(f"CREATE TABLE {name} (id serial PRIMARY KEY, word text)")
    pg.query(f"INSERT INTO {name} (word) SELECT 'w' || i FROM generate_series(1, {rows}) i")


@pytest.fixture
def begun(pg, start, tmp_path):
    """A pipeline that has copied two tables, and was stopped."""
    make(pg, "marks")
    make(pg, "old")
    configure(pg, tmp_path)
    process = run_until(start, tmp_path / "out.ndjson", add_mark(pg))
    process.wait_until(lambda: (tmp_path / "out.ndjson").read_bytes().count(b'{"kind":"end"') == 2,
                       30, "both copies")
    process.terminate().check()
    return pg


def ends(tmp_path, count):
    return lambda: (tmp_path / "out.ndjson").read_bytes().count(b'{"kind":"end"') >= count


def test_table_made_meanwhile_is_copied_and_followed_by_the_next_run(begun, run, start, tmp_path):
    make(begun, "fresh")
    process = run_until(start, tmp_path / "out.ndjson", add_mark(begun))
    process.wait_for_line(r"table .*\.fresh: it is new to the pipeline; it is copied anew")
    process.wait_until(ends(tmp_path, 3), 30, "the new copy")
    begun.query("UPDATE fresh SET word = 'changed' WHERE id % 2 = 0")
    last = add_mark(begun, "fresh")
    process.wait_until(lambda: last in (tmp_path / "out.ndjson").read_bytes(), 30, "the change")
    process.terminate().check()
    pg_tables.check(begun, tmp_path / "out.ndjson")


def test_table_made_anew_under_its_old_name_is_copied_anew(begun, run, start, tmp_path):
    begun.query("DROP TABLE old")
    make(begun, "old", rows=20)
    begun.query("UPDATE old SET word = 'of the new one'")
    process = run_until(start, tmp_path / "out.ndjson", add_mark(begun))
    process.wait_until(ends(tmp_path, 3), 30, "the new copy")
    process.terminate().check()
    pg_tables.check(begun, tmp_path / "out.ndjson", complete=False)
    run("verify", "out.ndjson").check()


def test_tables_that_swapped_their_names_are_copied_anew(begun, run, start, tmp_path):
    begun.query("ALTER TABLE old RENAME TO waiting; ALTER TABLE marks RENAME TO old;"
                " ALTER TABLE waiting RENAME TO marks; UPDATE old SET word = word || '!'")
    process = run_until(start, tmp_path / "out.ndjson", add_mark(begun))
    process.wait_until(ends(tmp_path, 4), 30, "the new copies")
    process.terminate().check()
    pg_tables.check(begun, tmp_path / "out.ndjson", complete=False)
    run("verify", "out.ndjson").check()


def test_table_that_is_gone_does_not_keep_the_others(begun, start, tmp_path):
    begun.query("DROP TABLE old")
    process = run_until(start, tmp_path / "out.ndjson", add_mark(begun))
    process.terminate().check()
    assert "old of the checkpoint is not among the tables to copy any more" in process.err()


def test_kill_right_after_the_table_joined_the_publication_loses_no_copy(
        begun, run, start, tmp_path):
    make(begun, "fresh")
    for wait in (0.05, 0.15, 0.3):
        process = start("run", "shop.yaml")
        time.sleep(wait)
        process.kill()
    process = run_until(start, tmp_path / "out.ndjson", add_mark(begun, "fresh"))
    # an end may be void after a kill: verify tells
    process.wait_until(lambda: run("verify", "out.ndjson").code == 0, 30, "complete copies")
    process.terminate().check()
    pg_tables.check(begun, tmp_path / "out.ndjson", complete=False)
    run("verify", "out.ndjson").check()


def test_writer_of_a_table_that_joins_is_waited_for(begun, start, tmp_path):
    make(begun, "fresh")
    writer = begun.session()
    writer.query("BEGIN")
    writer.query("INSERT INTO fresh (word) VALUES ('early')")
    process = start("run", "shop.yaml")
    process.wait_for_line("fresh waits for transactions that have written to it")
    writer.query("INSERT INTO fresh (word) VALUES ('late')")
    writer.query("COMMIT")
    mark = add_mark(begun, "fresh")
    process.wait_until(lambda: mark in (tmp_path / "out.ndjson").read_bytes(), 30, "the mark")
    process.wait_until(ends(tmp_path, 3), 30, "the new copy")
    process.terminate().check()
    pg_tables.check(begun, tmp_path / "out.ndjson")


def test_backfill_after_a_column_was_added_copies_its_new_shape(begun, run, start, tmp_path):
    """The column's default is in no change: only a new copy brings it."""
    process = run_until(start, tmp_path / "out.ndjson", add_mark(begun))
    begun.query("ALTER TABLE old ADD COLUMN w int DEFAULT 5")
    run("backfill", "shop.yaml", "--tables", "old").check()
    process.wait_until(ends(tmp_path, 3), 30, "the new copy")
    begun.query("ALTER TABLE old ADD COLUMN x text DEFAULT 'x'; UPDATE old SET word = 'y' WHERE id < 9")
    run("backfill", "shop.yaml", "--tables", "old").check()
    process.wait_until(ends(tmp_path, 4), 30, "another new copy")
    last = add_mark(begun, "old")
    process.wait_until(lambda: last in (tmp_path / "out.ndjson").read_bytes(), 30, "the change")
    assert "was not copied" not in process.err()
    process.terminate().check()
    pg_tables.check(begun, tmp_path / "out.ndjson", complete=False)
    run("verify", "out.ndjson").check()
