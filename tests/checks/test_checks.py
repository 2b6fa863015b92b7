"""Each check finds what it is for, and finds nothing in this repository."""

import pathlib
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
CHECKS = ("layers", "headers", "sizes", "words")
HEADER = "#pragma once\n"


def run(name, root=None):
    return subprocess.run([sys.executable, HERE / f"check_{name}.py", *([root] if root else [])],
                          capture_output=True, text=True, check=False)


def plant(root, files):
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


LONG = "int f(void)\n{\n" + "    f();\n" * 69 + "}\n"
PLANTED = [
    ("layers", "points up", {"src/base/a.c": '#include "model/value.h"\n'}, "points up to model"),
    ("layers", "engine to adapter", {"src/engine/a.c": '#include "source/sqlite/x.h"\n'},
     "engine reaches across to source/sqlite"),
    ("layers", "adapter to engine", {"src/sink/file/a.c": '#include "engine/copy.h"\n'},
     "sink/file reaches across to engine"),
    ("layers", "adapter to adapter", {"src/sink/file/a.c": '#include "sink/null/x.h"\n'},
     "sink/file reaches across to sink/null"),
    ("layers", "stream to sink", {"src/stream/a.c": '#include "sink/null/x.h"\n'},
     "stream reaches across to sink/null"),
    ("layers", "no floor named", {"src/base/a.c": '#include "value.h"\n'}, "does not name its floor"),
    ("layers", "unknown folder", {"src/util/a.c": "\n"}, "on no floor"),
    ("layers", "library in a header", {"src/port/a.h": "#include <sqlite3.h>\n"},
     "a library's header"),
    ("layers", "unknown library in a header", {"src/sink/nats/a.h": "#include <nats.h>\n"},
     "a library's header"),
    ("layers", "library leaks", {"src/source/sqlite/a.h": "#include <sqlite3.h>\n",
                                 "src/app/b.c": '#include "source/sqlite/a.h"\n'},
     "brings <sqlite3.h> out"),
    ("headers", "not self-contained", {"src/base/a.h": HEADER + "/** F. */\nvoid tide_f(size_t n);\n"},
     "does not compile alone"),
    ("headers", "no pragma", {"src/base/a.h": "/** F. */\nvoid tide_f(void);\n"}, "no #pragma once"),
    ("headers", "no comment", {"src/base/a.h": HEADER + "/** F. */\nvoid tide_f(void);\n\n"
                                               "void tide_g(int a,\n            int b);\n"},
     ":5: tide_g has no comment"),
    ("headers", "comment of the code before",
     {"src/base/a.h": HEADER + "int x; /* ours */\n\nvoid tide_g(void);\n"},
     "tide_g has no comment"),
    ("sizes", "long function", {"src/base/a.c": LONG}, "f has 71 lines"),
    ("sizes", "long file", {"src/base/a.c": "\n" * 501}, "501 lines"),
    ("words", "source", {"src/base/a.c": "/* the connectors wait */\n"}, "connector: say"),
    ("words", "name", {"src/base/a.c": "int tide_lane_queue_size;\n"}, "queue: say lane"),
    ("words", "page", {"docs/a.md": "Rows go to the DLQ.\n"}, "dlq: say dead letter"),
]


@pytest.mark.parametrize("name,case,files,finding", PLANTED, ids=[f"{p[0]}-{p[1]}" for p in PLANTED])
def test_planted_violation_is_found(tmp_path, name, case, files, finding):
    plant(tmp_path, files)
    result = run(name, tmp_path)
    assert result.returncode == 1, case
    assert finding in result.stdout


ALLOWED = [
    ("layers", {"src/app/a.c": '#include "source/sqlite/x.h"\n#include "engine/copy.h"\n',
                "src/source/sqlite/x.h": "#include <sqlite3.h>\n"}, 1),
    ("layers", {"src/source/sqlite/a.c": '#include "b.h"\n#include "port/source.h"\n',
                "src/source/sqlite/b.h": "#include <sqlite3.h>\n#include <stdint.h>\n"}, 0),
    ("headers", {"src/base/a.h": HEADER + "#include <stddef.h>\n/** Two. */\nvoid tide_f(size_t n);\n"
                                          "void tide_g(void);\n"}, 0),
    ("sizes", {"src/base/a.c": LONG.replace("    f();\n", "", 1)}, 0),
    ("words", {"src/base/a.c": "/* words: SQL's cursor */\n",
               "docs/a.md": "as `connector.class` says; a queue of people; JobName\n"}, 0),
]


@pytest.mark.parametrize("name,files,code", ALLOWED)
def test_allowed_is_not_found(tmp_path, name, files, code):
    plant(tmp_path, files)
    result = run(name, tmp_path)
    assert result.returncode == code, result.stdout


@pytest.mark.parametrize("name", CHECKS)
def test_repository_has_no_finding(name):
    result = run(name)
    assert result.returncode == 0, result.stdout + result.stderr
