"""`tidemark check` of a PostgreSQL database: what it finds, and that what it says mends it."""

import dataclasses
import time

import pytest

from support import postgres

READY = "ready to be copied"


@dataclasses.dataclass
class Found:
    """One finding of the program's output."""
    is_problem: bool
    what: str
    remedy: str = ""


def findings(out):
    """The findings in what check printed."""
    found = []
    for line in out.splitlines():
        kind, _, rest = line.partition(": ")
        if kind in ("problem", "note"):
            found.append(Found(kind == "problem", rest))
        elif line.startswith("    ") and found:
            found[-1].remedy = line.strip()
    return found


@pytest.fixture
def check(run):
    """check(url, *globs) gives (exit status, findings, all output)."""
    def call(url, *globs):
        tables = ["--tables", ",".join(globs)] if globs else []
        result = run("check", *tables, url)
        return result.code, findings(result.out), result.out + result.err
    return call


def problems(found):
    return [one for one in found if one.is_problem]


def ours(pg):
    return pg.server.slots(pg.name) + pg.server.publications(pg.name)


def test_a_database_that_can_be_copied_is_ready_and_nothing_is_changed(any_pg, check):
    any_pg.query('CREATE SCHEMA "Big One"; CREATE TABLE "Big One"."it\'s" (b text, a int, c text,'
                 ' PRIMARY KEY (a, b)); CREATE TABLE plain (id int PRIMARY KEY)')
    code, found, out = check(any_pg.url())
    assert (code, found) == (0, []), out
    assert out.splitlines() == ["2 tables can be copied:", "    Big One.it's (a, b)",
                                "    public.plain (id)", READY]
    assert ours(any_pg) == []
    assert check(any_pg.url(scheme="postgresql"))[0] == 0


# name, how it is made, word of the reason; the remedy is run as it is, with `a` for `...`
SPOILED = [
    ("nokey", "CREATE TABLE nokey (a int NOT NULL, b int)", "no primary key"),
    ("index", "CREATE TABLE index (a int NOT NULL, b int); CREATE INDEX i0 ON index (a);"
     " CREATE UNIQUE INDEX i1 ON index (b); CREATE UNIQUE INDEX i2 ON index (a) WHERE b > 0;"
     " CREATE UNIQUE INDEX \"I 3\" ON index (a)", "no primary key"),
    ("unlogged", "CREATE UNLOGGED TABLE unlogged (a int PRIMARY KEY)", "unlogged"),
    ("late", "CREATE TABLE late (a int, \"B c\" text, x int, CONSTRAINT \"its Key\""
     " PRIMARY KEY (\"B c\", a) DEFERRABLE)", "deferrable"),
    ("nothing", "CREATE TABLE nothing (a int PRIMARY KEY); ALTER TABLE nothing REPLICA IDENTITY"
     " NOTHING", "REPLICA IDENTITY NOTHING"),
    ("other", "CREATE TABLE other (a int PRIMARY KEY, b int NOT NULL UNIQUE);"
     " ALTER TABLE other REPLICA IDENTITY USING INDEX other_b_key", "USING INDEX"),
    ("gone", "CREATE TABLE gone (a int PRIMARY KEY, b int NOT NULL UNIQUE);"
     " ALTER TABLE gone REPLICA IDENTITY USING INDEX gone_b_key;"
     " ALTER TABLE gone DROP CONSTRAINT gone_b_key", "USING INDEX"),
]


@pytest.mark.parametrize("name,sql,word", SPOILED, ids=[case[0] for case in SPOILED])
def test_a_table_that_cannot_be_followed_is_mended_by_what_check_says(pg, check, name, sql, word):
    pg.query(sql + '; CREATE TABLE good (id int PRIMARY KEY)')

    code, found, out = check(pg.url())
    assert code == 0 and len(found) == 1 and not found[0].is_problem, out
    assert f"public.{name} is left out" in found[0].what and word in found[0].what

    code, found, out = check(pg.url(), name, "good")
    assert code == 1 and len(found) == 1 and found[0].is_problem, out
    assert f"public.{name} " in found[0].what and word in found[0].what

    pg.query(found[0].remedy.replace("...", "a"))
    code, found, out = check(pg.url(), f"public.{name}")
    assert (code, found) == (0, []), out


def test_an_index_as_identity_is_fine_when_it_is_the_primary_key(pg, check):
    pg.query("CREATE TABLE t (a int PRIMARY KEY); ALTER TABLE t REPLICA IDENTITY USING INDEX t_pkey;"
             "CREATE TABLE f (a int PRIMARY KEY); ALTER TABLE f REPLICA IDENTITY FULL")
    assert check(pg.url(), "t", "f")[:2] == (0, [])


def test_what_has_no_log_of_its_own_is_refused_only_when_named(pg, check):
    pg.query("CREATE TABLE t (a int PRIMARY KEY); CREATE VIEW v AS SELECT 1 AS a;"
             "CREATE MATERIALIZED VIEW m AS SELECT 1 AS a;"
             "CREATE TABLE p (a int PRIMARY KEY) PARTITION BY RANGE (a);"
             "CREATE TABLE p_1 PARTITION OF p FOR VALUES FROM (0) TO (9)")
    code, found, out = check(pg.url())
    assert code == 0 and [one.is_problem for one in found] == [False], out
    assert "public.p is left out" in found[0].what and "partition" in found[0].what
    assert "    public.t (a)" in out and "p_1" not in out
    for name, word in [("v", "view"), ("m", "materialized"), ("p", "partitioned")]:
        code, found, out = check(pg.url(), name, "t")
        assert code == 1 and word in problems(found)[0].what, out
    code, found, out = check(pg.url(), "p_1")
    assert code == 0 and "is a partition" in found[0].what, out


def test_generated_columns_are_said_to_be_left_out(pg, check):
    pg.query("CREATE TABLE t (a int PRIMARY KEY, g int GENERATED ALWAYS AS (a * 2) STORED,"
             " \"H\" int GENERATED ALWAYS AS (a) STORED)")
    code, found, out = check(pg.url())
    assert code == 0 and len(found) == 1 and found[0].what.endswith("g, H"), out


def test_a_glob_that_matches_nothing_and_an_empty_database_are_problems(pg, check):
    code, found, out = check(pg.url())
    assert code == 1 and "no table that can be followed" in found[0].what, out
    pg.query("CREATE TABLE orders (a int PRIMARY KEY); CREATE TABLE axb (a int PRIMARY KEY)")
    pg.query("CREATE TABLE keyless (a int)")
    for glob in ("Orders", "order", "a_b", "nix.*", "a%"):
        code, found, out = check(pg.url(), glob)
        assert code == 1 and glob in found[0].what, out
        code, found, out = check(pg.url(), "axb", glob, "keyless")
        assert code == 1 and len(found) == 2, out
        assert glob in found[0].what and "no primary key" in found[1].what, out


@pytest.fixture
def role(pg):
    """A role that may do nothing; gone when the test ends."""
    name = f"it's {pg.name}"
    pg.query(f'CREATE ROLE "{name}" LOGIN')
    yield name
    pg.query(f'REASSIGN OWNED BY "{name}" TO postgres; DROP OWNED BY "{name}"; DROP ROLE "{name}"')


def test_what_check_says_gives_a_role_the_rights_that_a_copy_needs(pg, check, role, run, tmp_path):
    pg.query('CREATE ROLE "big Boss"; CREATE SCHEMA s; CREATE TABLE s.t (a int PRIMARY KEY);'
             'INSERT INTO s.t VALUES (1), (2); CREATE TABLE mine (a int PRIMARY KEY);'
             'ALTER TABLE s.t OWNER TO "big Boss"')
    try:
        code, found, out = check(pg.url(user=role))
        assert code == 1 and len(problems(found)) == 5, out
        for one in problems(found):
            assert bool(one.remedy) == ("no table that can" not in one.what), out
            if one.remedy:
                pg.query(one.remedy)
        code, found, out = check(pg.url(user=role))
        assert (code, found) == (0, []), out
        run("copy", pg.url(user=role), "file:out.ndjson").check()
        assert (tmp_path / "out.ndjson").read_text().count('"kind":"row"') == 2
    finally:
        pg.query('REASSIGN OWNED BY "big Boss" TO postgres; DROP ROLE "big Boss"')


def test_a_missing_right_is_a_problem_under_a_wildcard_too(pg, check, role):
    pg.query(f'ALTER ROLE "{role}" REPLICATION; GRANT CREATE ON DATABASE {pg.name} TO "{role}";'
             f'CREATE TABLE a (a int PRIMARY KEY); ALTER TABLE a OWNER TO "{role}";'
             'CREATE TABLE b (a int PRIMARY KEY)')
    code, found, out = check(pg.url(user=role))
    assert code == 1 and len(found) == 1 and "public.b may not be read" in found[0].what, out
    assert check(pg.url(user=role), "a")[:2] == (0, [])


def test_row_level_security_that_hides_rows_is_a_problem(pg, check, role):
    pg.query(f'ALTER ROLE "{role}" REPLICATION; GRANT CREATE ON DATABASE {pg.name} TO "{role}";'
             f'CREATE TABLE a (a int PRIMARY KEY); ALTER TABLE a OWNER TO "{role}";'
             'ALTER TABLE a ENABLE ROW LEVEL SECURITY')
    assert check(pg.url(user=role))[:2] == (0, [])  # the owner sees all
    pg.query('ALTER TABLE a FORCE ROW LEVEL SECURITY')
    code, found, out = check(pg.url(user=role))
    assert code == 1 and "row-level security" in found[0].what, out
    pg.query(found[0].remedy)
    assert check(pg.url(user=role))[:2] == (0, [])


def test_transactions_that_a_start_would_wait_for_are_told(pg, check):
    pg.query("CREATE TABLE t (a int PRIMARY KEY)")
    writer, reader = pg.session(), pg.session()
    reader.query("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT * FROM t")
    writer.query("BEGIN; INSERT INTO t VALUES (1)")
    pg.query("BEGIN; INSERT INTO t VALUES (2); PREPARE TRANSACTION 'it''s'")
    time.sleep(5.5)

    code, found, out = check(pg.url())
    assert code == 1 and len(found) == 2, out
    note, problem = found
    pid = writer.value("SELECT pg_backend_pid()")
    assert f"process {pid} " in note.what and str(pid) in note.remedy and not note.is_problem
    assert "it's" in problem.what and problem.is_problem

    writer.query("COMMIT")
    pg.query(problem.remedy.split("; or ")[1])
    assert check(pg.url())[:2] == (0, [])


def test_what_is_there_of_ours_is_told_and_nothing_that_only_looks_so(pg, check, run, database_of):
    pg.query("CREATE TABLE t (a int PRIMARY KEY); CREATE PUBLICATION \"tidemarkXother\";"
             "CREATE PUBLICATION \"Tidemark_other\"")
    pg.query("SELECT pg_create_logical_replication_slot('tidemarkxother', 'pgoutput')")
    other = database_of(pg.server)
    other.query("SELECT pg_create_logical_replication_slot('tidemark_elsewhere', 'pgoutput')")
    assert check(pg.url())[:2] == (0, [])

    run("copy", "--keep", pg.url(), "file:out.ndjson").check()
    code, found, out = check(pg.url())
    assert code == 0 and len(found) == 1, out
    assert "not in use" in found[0].what and "detach" in found[0].remedy

    (slot,) = [name for name in pg.server.slots(pg.name) if name.startswith("tidemark_")]
    pg.query(f"SELECT pg_drop_replication_slot('{slot}')")
    code, found, out = check(pg.url())
    assert code == 0 and [one.what for one in found] == [
        f"publication {slot} is there without its slot"], out


def test_a_slot_of_another_database_or_kind_is_left_alone(pg, run, database_of):
    other = database_of(pg.server)
    other.query("SELECT pg_create_logical_replication_slot('tidemark_elsewhere', 'pgoutput')")
    pg.query("SELECT pg_create_logical_replication_slot('tidemark_kind', 'test_decoding')")
    for name in ("elsewhere", "kind"):
        result = run("detach", "--pipeline", name, pg.url())
        assert result.code != 0 and f"tidemark_{name}" in result.err, result.out + result.err
    run("detach", pg.url())
    assert other.server.slots(other.name) == ["tidemark_elsewhere"]
    assert pg.server.slots(pg.name) == ["tidemark_kind"]


def test_a_time_limit_for_idle_slots_is_told(newest_server, database_of, check):
    one = database_of(newest_server)
    one.query("CREATE TABLE t (a int PRIMARY KEY)")
    newest_server.setting("idle_replication_slot_timeout", "3600")
    code, found, out = check(one.url())
    newest_server.setting("idle_replication_slot_timeout", None)
    assert code == 0 and len(found) == 1 and "is 1h" in found[0].what, out


def test_settings_that_are_dangerous_are_told(pg, check):
    pg.query("CREATE TABLE t (a int PRIMARY KEY)")
    pg.server.setting("max_slot_wal_keep_size", "64MB")
    pg.server.setting("synchronous_standby_names", "*")
    code, found, out = check(pg.url())
    assert code == 0 and len(found) == 2, out
    assert "64MB" in found[0].what and "synchronous_standby_names" in found[1].what
    pg.server.setting("synchronous_standby_names", None)
    pg.server.setting("max_slot_wal_keep_size", None)
    assert check(pg.url())[:2] == (0, [])


def test_a_server_that_is_not_set_up_for_it_is_told_how(check):
    try:
        server = postgres.Server(postgres.installed(), settings={
            "wal_level": "replica", "max_wal_senders": 0, "max_replication_slots": 0})
    except postgres.Missing as missing:
        pytest.skip(str(missing))
    try:
        server.query("CREATE TABLE t (a int PRIMARY KEY)")
        code, found, out = check(server.url())
        assert code == 1 and len(problems(found)) == 3, out
        with server.session() as session:
            for one in problems(found):
                session.query(one.remedy.split(" and restart")[0])
        server.restart()
        assert check(server.url())[:2] == (0, [])

        server.stop()
        (server.data / "standby.signal").touch()
        server.start()
        code, found, out = check(server.url())
        assert code == 1 and "standby" in problems(found)[0].what, out
    finally:
        server.close()


def test_what_cannot_be_reached_is_told_with_its_reason(pg, run):
    for url, word, code in [(pg.server.url("nix"), "3D000", 3), (pg.url(user="nobody"), "28000", 3),
                            (pg.url(port=1), "refused", 3),
                            (pg.url() + "?options=-c%20nix%3D1", "nix", 2),
                            ("postgres://u:Se@cret@127.0.0.1/x", "not well-formed", 2)]:
        for command in (["check", url], ["copy", url, "null:"]):
            result = run(*command).check(code)
            assert word in result.err and "cret" not in result.err, result.err


def test_who_is_not_let_in_has_not_reached_the_database(pg, run):
    role = f"locked_{pg.name}"
    hba = pg.server.data / "pg_hba.conf"
    before = hba.read_text()
    pg.query(f"CREATE ROLE {role} LOGIN PASSWORD 'right'")
    try:
        hba.write_text(f"host all {role} all scram-sha-256\n" + before)
        pg.query("SELECT pg_reload_conf()")
        ours = {"PGPASSFILE": "/nowhere"}
        run("check", pg.url(user=role), env={**ours, "PGPASSWORD": "right"}).check(1)
        for env, word in [({**ours, "PGPASSWORD": "wrong"}, "28P01"), (ours, "no password")]:
            for command in (["check", pg.url(user=role)], ["copy", pg.url(user=role), "null:"],
                            ["detach", pg.url(user=role)]):
                assert word in run(*command, env=env).check(3).err
        pg.query(f"REVOKE CONNECT ON DATABASE {pg.name} FROM PUBLIC")
        result = run("check", pg.url(user=role), env={**ours, "PGPASSWORD": "right"}).check(3)
        assert "42501" in result.err
    finally:
        hba.write_text(before)
        pg.query("SELECT pg_reload_conf()")
        pg.query(f"DROP ROLE {role}")


def test_what_was_done_to_the_source_of_a_pipeline_is_told(pg, run, start, tmp_path):
    """As the next run will find it; while it runs, its slot may be in use."""
    pg.query("CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1)")
    (tmp_path / "shop.yaml").write_text(f"name: shop\nsource: {pg.url()}\n"
                                        "sinks:\n  one: file:one.ndjson\n")
    run("check", "shop.yaml").check()
    process = start("run", "shop.yaml")
    process.wait_until(lambda: (tmp_path / "one.ndjson").exists() and
                       b'"kind":"end"' in (tmp_path / "one.ndjson").read_bytes(), what="the end")
    assert "problem" not in run("check", "shop.yaml").check().out
    process.interrupt().check()
    assert "problem" not in run("check", "shop.yaml").check().out
    slot, = pg.server.slots(pg.name)
    pg.query(f"SELECT pg_drop_replication_slot('{slot}')")
    told = f"replication slot {slot} is gone"
    assert f"problem: {told}" in run("check", "shop.yaml").check(1).out
    assert told in run("run", "shop.yaml").check(3).err
