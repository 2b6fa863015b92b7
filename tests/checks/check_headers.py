#!/usr/bin/python3
"""Every header has `#pragma once`, compiles alone, and says something about what it exports.

A comment covers the declarations that follow it without an empty line between.
"""

import concurrent.futures
import os
import re
import subprocess

import check

# The start of a declaration with a parameter list at the left margin, macros left out.
DECLARATION = re.compile(r"^(?!#|typedef|return|static|\}|\s)[A-Za-z_][\w \t*]*?\b(tide_\w+)\(", re.M)
FLAGS = ["-std=gnu17", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-fsyntax-only",
         '-DTIDE_VERSION="0"',
         *subprocess.run(["pkg-config", "--cflags", "libpq"], capture_output=True, text=True,
                         check=False).stdout.split()]


def compiles_alone(root, path):
    name = path.relative_to(root / "src").as_posix()
    result = subprocess.run(["gcc", *FLAGS, "-I", root / "src", "-include", path, "-x", "c", "-"],
                            input="typedef int not_empty;\n", capture_output=True, text=True,
                            check=False)
    if result.returncode != 0:
        first = next((line for line in result.stderr.splitlines() if "error" in line), "")
        return [f"src/{name}:1: does not compile alone: {first}"]
    return []


def is_commented(lines, index):
    """Whether the block of lines that a declaration stands in begins with a comment."""
    while index > 0 and lines[index - 1].strip():
        index -= 1
        if lines[index].rstrip().endswith("*/"):
            return True
    return False


def uncommented(root, path):
    name = path.relative_to(root / "src").as_posix()
    text = path.read_text()
    if "#pragma once" not in text:
        yield f"src/{name}:1: no #pragma once"
    lines = text.splitlines()
    code = check.without_comments(text)
    for match in DECLARATION.finditer(code):
        line = check.line_of(code, match.start())
        if not is_commented(lines, line - 1):
            yield f"src/{name}:{line}: {match.group(1)} has no comment"


def check_headers(root):
    headers = check.sources(root, "src/**/*.h")
    for path in headers:
        yield from uncommented(root, path)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for found in pool.map(lambda path: compiles_alone(root, path), headers):
            yield from found


if __name__ == "__main__":
    check.main(check_headers)
