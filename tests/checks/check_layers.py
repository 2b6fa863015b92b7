#!/usr/bin/python3
"""Every include points down: floors of docs/architecture.md, and libraries only in their module.

A file includes its own folder and lower floors. Adapters never include each other or the engine,
and the engine never includes adapters; they share a floor and meet in app/ alone. The header of a
library stays in the module's .c files: a header of ours names none, so its types do not spread.
"""

import re

import check

FLOORS = {"base": 1, "model": 2, "format": 3, "port": 4, "archive": 5, "net": 5,
          "replication": 6, "source": 6, "stream": 6, "sink": 6, "engine": 6, "http": 7, "app": 7}
# Folders that are one adapter each: source/sqlite and source/postgres are strangers.
ADAPTER_GROUPS = ("source", "sink")
# C, POSIX and Linux headers that a header of ours may include; anything else is a library.
SYSTEM = re.compile(r"(std\w+|string|strings|stdatomic|limits|inttypes|errno|assert|ctype|time|"
                    r"pthread|signal|unistd|fcntl|poll|math|argp|endian|dirent|"
                    r"sys/\w+|netinet/\w+|arpa/\w+|linux/\w+|\w+intrin)\.h")
INCLUDE = re.compile(r'^\s*#\s*include\s+(?:"([^"]+)"|<([^>]+)>)', re.M)
# A library header that a header may include because only its own folder includes that header.
PRIVATE_LIBRARY_HEADERS = {"sqlite3.h": "source/sqlite", "libpq-fe.h": "source/postgres",
                           "yaml.h": "app", "microhttpd.h": "http", "zstd.h": "archive",
                           "lz4.h": "archive", "xxhash.h": "archive"}


def room_of(path):
    """("source/sqlite", 6) for src/source/sqlite/x.c; the room is what may include itself."""
    parts = path.split("/")
    group = parts[0]
    if group not in FLOORS:
        return None, None
    room = "/".join(parts[:2]) if group in ADAPTER_GROUPS and len(parts) > 2 else group
    return room, FLOORS[group]


def findings_of(root, name, text):
    room, floor = room_of(name)
    if room is None:
        yield f"src/{name}:1: the folder is on no floor; add it to tests/checks/check_layers.py"
        return
    for match in INCLUDE.finditer(text):
        line = check.line_of(text, match.start(1) if match.group(1) else match.start(2))
        if match.group(1) and (root / "src" / name).parent.joinpath(match.group(1)).exists():
            continue  # its own folder
        if match.group(1):
            yield from project_include(f"src/{name}:{line}", room, floor, match.group(1))
        elif name.endswith(".h"):
            yield from library_include(f"src/{name}:{line}", room, match.group(2))


def project_include(where, room, floor, included):
    other, other_floor = room_of(included)
    if other is None:
        yield f'{where}: "{included}" does not name its floor; write the path below src/'
    elif other != room and other_floor >= floor:
        kind = "points up to" if other_floor > floor else "reaches across to"
        yield f"{where}: {room} {kind} {other}"


def library_include(where, room, included):
    if not SYSTEM.fullmatch(included) and PRIVATE_LIBRARY_HEADERS.get(included) != room:
        yield f"{where}: a library's header, <{included}>, in a header; keep it in the .c file"


def leaking_headers(root):
    """Headers that include a library's header, included from another folder."""
    private = {}
    for path in check.sources(root, "src/**/*.h"):
        name = path.relative_to(root / "src").as_posix()
        for _, library in INCLUDE.findall(path.read_text()):
            if library in PRIVATE_LIBRARY_HEADERS:
                private[name] = library
    for path in check.sources(root, "src/**/*.c", "src/**/*.h"):
        name = path.relative_to(root / "src").as_posix()
        for included, _ in INCLUDE.findall(path.read_text()):
            if included in private and room_of(name)[0] != room_of(included)[0]:
                yield f"src/{name}:1: {included} brings <{private[included]}> out of its module"


def check_layers(root):
    for path in check.sources(root, "src/**/*.c", "src/**/*.h"):
        yield from findings_of(root, path.relative_to(root / "src").as_posix(), path.read_text())
    yield from leaking_headers(root)


if __name__ == "__main__":
    check.main(check_layers)
