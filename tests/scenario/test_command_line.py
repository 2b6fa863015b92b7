"""The command line as a whole: help, version, exit statuses, a closed standard output."""

import os
import subprocess


def test_version_is_one_line(run):
    result = run("--version").check()
    assert result.out.startswith("tidemark ") and result.out.count("\n") == 1


def test_help_lists_every_command_with_one_line(run):
    lines = run("--help").check().out.splitlines()
    listed = [line for line in lines if line.startswith("  ") and not line.startswith("  tidemark")]
    assert all(len(line) < 80 and len(line.split()) > 1 for line in listed)


def test_help_of_each_command_is_done_and_on_standard_output(run):
    for line in run("--help").out.splitlines():
        if line.startswith("  ") and not line.startswith("  tidemark"):
            name = line.split()[0]
            result = run(name, "--help").check()
            assert result.out.startswith(f"Usage: tidemark {name}")
            assert result.err == ""


def test_wrong_usage_is_two_and_says_the_way_out(run):
    for args in ([], ["cpoy"], ["--jsno"], [""], ["x" * 5000]):
        result = run(*args).check(2)
        assert result.out == "" and result.err.startswith("tidemark: ")
        assert result.err.count("\n") == 1


def test_unknown_option_of_each_command_is_two(run):
    for line in run("--help").out.splitlines():
        if line.startswith("  ") and not line.startswith("  tidemark"):
            result = run(line.split()[0], "--no-such-option").check(2)
            assert "no-such-option" in result.err


def test_full_standard_output_is_failed(program):
    with open("/dev/full", "wb") as full:
        result = subprocess.run([program, "--help"], stdout=full, stderr=subprocess.PIPE, check=False)
    assert result.returncode == 3
    assert b"standard output" in result.stderr


def test_closed_pipe_is_failed_and_quiet(program):
    reader, writer = os.pipe()
    os.close(reader)
    result = subprocess.run([program, "--help"], stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    assert result.returncode == 3 and result.stderr == b""


def test_append_and_overwrite_together_are_refused(run, tmp_path):
    for both in (["--append", "--overwrite"], ["--overwrite", "--append"]):
        result = run("copy", "sqlite:shop.db", "file:out.ndjson", *both).check(2)
        assert "choose one" in result.err
    assert not list(tmp_path.iterdir())


def test_tables_that_name_none_are_refused(run, tmp_path):
    for none in ("", ",", ",,"):
        for command in (["copy", "sqlite:shop.db", "null:"], ["check", "sqlite:shop.db"],
                        ["backfill", "shop.yaml"], ["dead-letters", "replay", "shop.yaml"]):
            result = run(*command, "--tables", none).check(2)
            assert "--tables names no table" in result.err, (command, result.err)
    assert not list(tmp_path.iterdir())
