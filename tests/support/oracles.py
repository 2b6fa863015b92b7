"""Other programs that know Parquet: DuckDB and pyarrow from PyPI, in a folder of the build's."""

import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "build" / "oracles"
WANTED = ("duckdb==2.0.1", "pyarrow==26.0.1")


def install():
    """Puts both into a virtual environment of this Python; what went wrong, or None."""
    done = FOLDER / "-".join(WANTED)
    if done.exists():
        return None
    for command in ([sys.executable, "-m", "venv", FOLDER],
                    [FOLDER / "bin" / "python", "-m", "pip", "install", "--quiet",
                     "--disable-pip-version-check", "--retries", "1", *WANTED]):
        try:
            result = subprocess.run(command, capture_output=True, text=True, timeout=240,
                                    check=False)
        except subprocess.TimeoutExpired:
            return "pip did not answer in time"
        if result.returncode != 0:
            return (result.stderr or result.stdout).strip().splitlines()[-1]
    done.touch()
    return None


def load():
    """(duckdb, pyarrow), or the test is skipped and says why."""
    problem = install()
    if problem is not None:
        pytest.skip(f"DuckDB and pyarrow cannot be had from PyPI: {problem}")
    for folder in FOLDER.glob("lib/python*/site-packages"):
        if str(folder) not in sys.path:
            sys.path.append(str(folder))
    import duckdb
    import pyarrow
    import pyarrow.parquet  # pylint: disable=unused-import
    return duckdb, pyarrow
