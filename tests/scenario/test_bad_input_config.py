"""Configurations that are wrong, hostile or no configuration at all: where, what, and no crash."""

import os
import re

import pytest
from support.process import MIB

GOOD = "name: a\nsource: sqlite:a.db\nsinks: {x: 'null:'}\n"
DEEP = 100000
HEAD = "name: a\nsource: sqlite:a.db\n"


def laughs(levels=10, each=9):
    """Each line is nine of the line before: 9^10 values in 700 bytes."""
    lines = ["a0: &a0 [lol]"]
    lines += [f"a{n}: &a{n} [" + ",".join([f"*a{n - 1}"] * each) + "]" for n in range(1, levels)]
    return GOOD + "\n".join(lines) + "\n"


# name: (text, what is said where)
MISTAKES = {
    "empty": ("", ":1:1: the file is empty"),
    "only_comments": ("# nothing\n\n", "the file is empty"),
    "one_word": ("tidemark\n", ":1:1: "),
    "a_list": ("- a\n- b\n", ":1:1: "),
    "tabs": (HEAD + "sinks:\n\tx: 'null:'\n", ":4:1: not YAML: .*indent with spaces, not with tabs"),
    "nested_lists": (HEAD + "sinks: " + "[" * DEEP, ":3:39: nested deeper than 32 levels"),
    "nested_closed_lists": (HEAD + "sinks: " + "[" * DEEP + "]" * DEEP, "nested deeper than 32"),
    "nested_maps": (HEAD + "sinks: " + "{a: " * DEEP, "nested deeper than 32 levels"),
    "nested_block_lists": ("- " * DEEP, ":1:65: nested deeper than 32 levels"),
    "nested_block_maps": ("".join(" " * n + "a:\n" for n in range(1000)), "nested deeper than 32"),
    "nested_keys": (HEAD + "? " * DEEP, ":3:.*nested deeper than 32 levels|not YAML"),
    "open_quotes": (HEAD + "sinks: 'x\n" * 2, "not YAML"),
    "laughs": (laughs(), "its aliases stand for more than 10000 values"),
    "alias_of_itself": (GOOD + "a: &a [*a]\n", r"\*a stands for nothing that ends before it"),
    "many_anchors": (GOOD + "".join(f"a{n}: &a{n} 1\n" for n in range(5000)), "anchors|values"),
    "merge_key": (GOOD + "b: &b {c: 1}\nd: {<<: *b}\n", "has no key"),
    "tag": (GOOD + "tables: !!python/object:os.system [x]\n", "a tag means nothing here"),
    "two_documents": (GOOD + "---\n" + GOOD, ":4:1: a second document"),
    "key_twice": ("name: b\n" + GOOD, ":2:1: name is there twice; line 1 has it too"),
    "sink_twice": (HEAD + "sinks: {x: 'null:', x: 'null:'}\n", 'two sinks are called "x"'),
    "unknown_key": (GOOD + "sinkes: 1\n", 'no key "sinkes"; did you mean sinks?'),
    "list_as_name": ("name: [a]\n" + GOOD[8:], ":1:7: name takes .* not a list"),
    "number_as_sinks": (HEAD + "sinks: 3\n", ":3:8: sinks has no sink"),
    "text_as_number": (GOOD + "snapshot: {chunk_rows: many}\n", ":4:.*chunk_rows.*many"),
    "negative": (GOOD + "snapshot: {chunk_rows: -1}\n", ":4:.*chunk_rows.*-1"),
    "huge_number": (GOOD + "snapshot: {chunk_rows: 99999999999999999999999}\n", ":4:.*chunk_rows"),
    "fraction": (GOOD + "snapshot: {chunk_rows: 1.5}\n", ":4:.*chunk_rows"),
    "map_as_tables": (GOOD + "tables: {a: b}\n", ":4:9: "),
    "nul_byte": ("name: a\0b\n" + GOOD[8:], ":1:8: not YAML: control characters"),
    "nul_escaped": ('name: "a\\0"\n' + GOOD[8:], ":1:7: a text with a NUL character"),
    "only_nul": ("\0" * 4096, "not YAML|control"),
    "invalid_utf_8": (b'name: "a\xff"\n' + GOOD[8:].encode(), ":1:9: not UTF-8: byte 0xff"),
    "overlong_utf_8": (b"name: \xc0\xaf\n" + GOOD[8:].encode(), ":1:7: not UTF-8: byte 0xc0"),
    "surrogate": (b"name: \xed\xa0\x80\n" + GOOD[8:].encode(), ":1:7: not UTF-8"),
    "utf_16": (GOOD.encode("utf-16"), ":1:1: not UTF-8: byte 0xff"),
    "binary": (bytes(range(256)) * 16, ":2:118: not UTF-8: byte 0x80"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistake_is_named_with_its_place(run, tmp_path, name):
    text, said = MISTAKES[name]
    (tmp_path / "a.yaml").write_bytes(text if isinstance(text, bytes) else text.encode())
    for command in ("check", "run", "detach"):
        result = run(command, "a.yaml", memory=64 * MIB, timeout=10).check(2)
        assert result.out == ""
        lines = result.err.splitlines()
        assert lines[-1].startswith(f"tidemark: {command}: a.yaml has "), result.err[:2000]
        assert all(line.startswith("a.yaml:") and len(line) < 600 for line in lines[:-1])
        assert any(re.search(said, line) for line in lines[:-1]), result.err[:2000]
    assert os.listdir(tmp_path) == ["a.yaml"]


@pytest.mark.parametrize("text", ["#" + "x" * 99 + "\n", "a: b\n"])
def test_ten_megabytes_are_no_configuration(run, tmp_path, text):
    (tmp_path / "a.yaml").write_text(GOOD + text * (10 * MIB // len(text)))
    result = run("run", "a.yaml", memory=64 * MIB, timeout=10).check(2)
    assert "a.yaml is longer than 1048576 bytes: no configuration" in result.err


def test_directory_as_configuration_cannot_be_read(run, tmp_path):
    (tmp_path / "a.yaml").mkdir()
    for command in ("check", "run", "detach"):
        result = run(command, "a.yaml").check(3)
        assert "a.yaml: Is a directory" in result.err


def test_endless_configuration_is_none(run):
    assert "/dev/zero is longer than" in run("run", "/dev/zero", memory=64 * MIB).check(2).err


def test_line_ends_of_other_systems_are_fine(run, tmp_path):
    (tmp_path / "a.yaml").write_bytes(b"\xef\xbb\xbf" + GOOD.replace("\n", "\r\n").encode())
    assert "cannot open the SQLite database" in run("check", "a.yaml").check(3).err


def test_mistakes_without_number_are_told_in_bounds(run, tmp_path):
    (tmp_path / "a.yaml").write_text(GOOD + "".join(f"key{n}: 1\n" for n in range(3000)))
    result = run("check", "a.yaml", memory=64 * MIB, timeout=10).check(2)
    assert "key0" in result.err and "a.yaml has " in result.err
