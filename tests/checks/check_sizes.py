#!/usr/bin/python3
"""No function of src/ over 70 lines, no file over 500; prints the median function."""

import re
import statistics

import check

FUNCTION_LINES_MAX = 70
FILE_LINES_MAX = 500


def functions(text):
    """(name, first line, lines) of each function body: a `{` alone at the margin to its `}`."""
    lines = check.without_comments(text).splitlines()
    start = None
    for number, line in enumerate(lines, 1):
        if line.rstrip() == "{":
            start = number
        elif start is not None and line.startswith("}"):
            yield name_before(lines, start), start, number - start + 1
            start = None


def name_before(lines, start):
    """The head of a function may take several lines; its name stands before the parenthesis."""
    head = ""
    for line in reversed(lines[max(start - 8, 0):start - 1]):
        head = line + " " + head
        if line and not line[0].isspace():
            break
    found = re.search(r"(\w+)\s*\(", head)
    return found.group(1) if found else "?"


def check_sizes(root, lengths=None):
    for path in check.sources(root, "src/**/*.c", "src/**/*.h"):
        name = path.relative_to(root).as_posix()
        text = path.read_text()
        count = text.count("\n")
        if count > FILE_LINES_MAX:
            yield f"{name}:{count}: {count} lines, at most {FILE_LINES_MAX}: split it by purpose"
        for function, line, size in functions(text):
            if lengths is not None:
                lengths.append(size)
            if size > FUNCTION_LINES_MAX:
                yield (f"{name}:{line}: {function} has {size} lines,"
                       f" at most {FUNCTION_LINES_MAX}: take a step out of it")


def summary(lengths):
    over = sum(size > 30 for size in lengths)
    return (f"{len(lengths)} functions, median {statistics.median(lengths):.0f} lines, longest"
            f" {max(lengths)}, {over} over 30") if lengths else "no functions"


if __name__ == "__main__":
    SIZES = []

    def checked(root):
        yield from check_sizes(root, SIZES)
        print(summary(SIZES))
    check.main(checked)
