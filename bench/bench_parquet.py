#!/usr/bin/python3
"""Speed and size of our Parquet files, and the size of DuckDB's file of the same rows.

    bench_parquet.py --bench build-bench/bench/bench_parquet [--rows 1000000]
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests"))

from support import oracles  # noqa: E402  (the path is set just above)

SKIPPED = 77


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bench", required=True)
    parser.add_argument("--rows", default="1000000")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        ours, theirs = pathlib.Path(folder, "ours"), pathlib.Path(folder, "theirs")
        subprocess.run([arguments.bench, arguments.rows, ours], check=True)
        problem = oracles.install()
        if problem is not None:
            print(f"DuckDB cannot be had from PyPI: {problem}")
            return SKIPPED
        duckdb, _ = oracles.load()
        duckdb.sql(f"COPY (SELECT * FROM read_parquet('{ours}')) TO '{theirs}'"
                   " (FORMAT parquet, COMPRESSION zstd)")
        sizes = ours.stat().st_size, theirs.stat().st_size
    print(f"ours {sizes[0]} bytes, DuckDB's {sizes[1]}: {sizes[0] / sizes[1]:.3f}, at most 1.25")
    return 0 if sizes[0] <= 1.25 * sizes[1] else 1


if __name__ == "__main__":
    sys.exit(main())
