"""States of PostgreSQL tables out of an archive: those after each commit, by position and by time."""

import json
import random

from support.process import soak

TABLES = {"t": "SELECT row_to_json(t) FROM t", "u": "SELECT row_to_json(u) FROM u"}
LARGE = "(SELECT string_agg(md5(i::text || random()::text), '') FROM generate_series(1, 200) i)"
COPY = ("--follow", "--chunk-rows", "10")


def state_of(session):
    return {table: sorted(json.dumps(json.loads(row), sort_keys=True)
                          for row, in session.query(sql)) for table, sql in TABLES.items()}


def change(session, rnd):
    """One transaction. Large texts are stored apart, and not sent where they stay."""
    statements = []
    for _ in range(rnd.choice([1, 1, 2, 4])):
        key, other = rnd.randrange(40), rnd.randrange(1000, 9999)
        draw = rnd.random()
        if draw < 0.4:
            statements.append(f"INSERT INTO t VALUES ({key}, 'a {key}', {other}, {LARGE}) ON "
                              f"CONFLICT (id) DO UPDATE SET n = {other}")
        elif draw < 0.6:
            statements.append(f"UPDATE t SET n = {other} WHERE id = {key}")
        elif draw < 0.75:
            statements.append(f"UPDATE t SET id = {other} WHERE id = {key} AND NOT EXISTS "
                              f"(SELECT 1 FROM t WHERE id = {other})")
        elif draw < 0.85:
            statements.append(f"DELETE FROM t WHERE id IN ({key}, {key + 1})")
        elif draw < 0.97:
            statements.append(f"INSERT INTO u VALUES ('k{key}', {other}) ON CONFLICT DO NOTHING")
        else:
            statements.append("TRUNCATE " + rnd.choice(["t", "u", "t, u"]))
    session.query("BEGIN; " + "; ".join(statements) + "; COMMIT")


def now(session):
    return session.query("SELECT pg_current_wal_insert_lsn(), to_char(clock_timestamp() AT TIME "
                         "ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')")[0]


def cat(run, table, *args):
    out = run("archive", "cat", "p.tide", "-t", table, *args).check().out
    return sorted(json.dumps(json.loads(line), sort_keys=True) for line in out.splitlines())


def is_caught_up(run, want):
    return all(run("archive", "cat", "p.tide", "-t", table).code == 0 and
               cat(run, table) == want[table] for table in TABLES)


def test_states_are_those_after_each_commit(run, start, pg, tmp_path):
    session = pg.session()
    session.query("CREATE TABLE t (id int PRIMARY KEY, a text, n int, large text);"
                  "CREATE TABLE u (k text, l int, PRIMARY KEY (k, l))")
    rnd = random.Random(3)
    for _ in range(40):
        change(session, rnd)
    copy = start("copy", pg.url(), "archive:p.tide", *COPY)
    before = state_of(session)
    copy.wait_until(lambda: (tmp_path / "p.tide").exists() and is_caught_up(run, before),
                    timeout=60, what="the copy")
    states = []
    for number in range(soak(60, 1000)):
        change(session, rnd)
        states.append((now(session), state_of(session)))
        if number % 50 == 30:
            copy.kill()
            copy = start("copy", pg.url(), "archive:p.tide", *COPY)
    copy.wait_until(lambda: is_caught_up(run, states[-1][1]), timeout=60, what="the last commit")
    copy.interrupt()
    for moments, want in rnd.sample(states, soak(12, 200)):
        for moment in moments:
            for table in TABLES:
                assert cat(run, table, "--as-of", moment) == want[table], (table, moment)
    run("archive", "verify", "--full", "p.tide").check()
    frames = run("archive", "cat", "p.tide", "--changes").check().out
    run("verify", "-", stdin=frames).check()
    assert '"op":"truncate"' in frames and '"unchanged":["large"]' in frames
    late = run("archive", "cat", "p.tide", "-t", "t", "--as-of", "FFFF/0").check()
    assert "goes up to 0/" in late.err
    assert "places in PostgreSQL's log" in \
        run("archive", "cat", "p.tide", "-t", "t", "--as-of", "47").check(2).err
    said = run("archive", "export", "p.tide", "out").check()
    assert said.out.count(" rows in 1 file") == 2
    run("detach", pg.url())


def test_folding_keeps_the_states_after_it(run, start, pg, tmp_path):
    """A segment may end inside of a transaction, and values may not have been sent."""
    session = pg.session()
    session.query("CREATE TABLE t (id int PRIMARY KEY, a text, n int, large text);"
                  "CREATE TABLE u (k text, l int, PRIMARY KEY (k, l))")
    rnd = random.Random(4)
    for _ in range(40):
        change(session, rnd)
    (tmp_path / "p.yaml").write_text(f"name: p\nsource: {pg.url()}\nsinks:\n  a:\n"
                                     "    place: archive:p.tide\n    seal_rows: 7\n")
    copy = start("run", "p.yaml")
    before = state_of(session)
    copy.wait_until(lambda: (tmp_path / "p.tide").exists() and is_caught_up(run, before),
                    timeout=60, what="the copy")
    states = []
    for _ in range(soak(80, 1000)):
        change(session, rnd)
        states.append((now(session), state_of(session)))
    copy.wait_until(lambda: is_caught_up(run, states[-1][1]), timeout=60, what="the last commit")
    copy.interrupt()
    middle = len(states) // 2
    said = run("archive", "retain", "p.tide", "--older-than", states[middle][0][1], "--fold")
    assert "public.t: folded to" in said.check().out
    run("archive", "verify", "--full", "p.tide").check()
    for moments, want in [states[middle], states[-1], *rnd.sample(states[middle:], soak(8, 100))]:
        for moment in moments:
            for table in TABLES:
                assert cat(run, table, "--as-of", moment) == want[table], (table, moment)
    assert "ended later" in run("archive", "cat", "p.tide", "-t", "t", "--as-of",
                                states[0][0][0]).check(1).err
