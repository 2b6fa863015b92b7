#!/usr/bin/python3
"""One word for one thing: sources and pages say source, sink, lane, position, dead letter.

Where a word is somebody else's (an API's, an SQL term, another product's name for its thing), it
stands in code quotes in a page, or its line carries the remark `words: <why>`.
"""

import re

import check

INSTEAD = {
    "connector": "source or sink",
    "dlq": "dead letter",
    "cursor": "position, or the key reached",
    "job": "copy or request",
    "queue": "lane",
}
# An option of the envelope's public layout that we take over by its name; what terminals have.
TAKEN_OVER = re.compile(r"max_dlq_bytes|terminal's cursor")
CODE_QUOTES = re.compile(r"`[^`]*`")
WORD = re.compile(r"(?<![A-Za-z])(connector|dlq|cursor|job)s?(?![A-Za-z])", re.I)
# "queue" has uses of its own in prose and as a verb; a name that we coin for a thing has none.
COINED = re.compile(r"\btide_(?:\w+_)?(queue)s?(?:_(?:size|bytes|items|count|max|push|pop)\w*)?\b",
                    re.I)
PATHS = ("src/**/*.c", "src/**/*.h", "docs/**/*.md", "*.md")


def check_words(root):
    for path in check.sources(root, *PATHS):
        name = path.relative_to(root).as_posix()
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if "words:" in line or name == "docs/style.md":
                continue
            kept = TAKEN_OVER.sub(" ", line)
            kept = CODE_QUOTES.sub(" ", kept) if path.suffix == ".md" else kept
            for match in [*WORD.finditer(kept), *COINED.finditer(kept)]:
                word = match.group(1).lower()
                yield f"{name}:{number}: {word}: say {INSTEAD[word]}, or add `words: <why>`"


if __name__ == "__main__":
    check.main(check_words)
