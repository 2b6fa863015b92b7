"""What the checks share: the sources under a root, and findings as `file:line: sentence`."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def sources(root, *patterns):
    """Paths under `root` that match, sorted: sources(root, "src/**/*.c", "src/**/*.h")."""
    return sorted({path for pattern in patterns for path in root.glob(pattern)})


def without_comments(text):
    """C text with comments and literals blanked out, line ends kept."""
    token = re.compile(r'/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)

    def blank(match):
        found = match.group()
        if found.startswith("/*"):
            return re.sub(r"[^\n]", " ", found)
        return found[0] + " " * (len(found) - 2) + found[-1]
    return token.sub(blank, text)


def line_of(text, index):
    return text.count("\n", 0, index) + 1


def main(check):
    """Runs `check(root)`, which yields findings, on the repository or the folder given."""
    root = pathlib.Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else ROOT
    found = list(check(root))
    for finding in found:
        print(finding)
    sys.exit(1 if found else 0)
