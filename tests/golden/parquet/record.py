#!/usr/bin/python3
"""Records the kept Parquet files anew: ours by its test, the others by other programs from it.

    tests/golden/parquet/record.py [--rust]     after `ninja -C build`; look at what has changed

--rust also builds (some minutes) and runs what writes the Rust crate's files, with cargo.
"""

import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from support import oracles  # noqa: E402  (the path is set just above)

ARROW = {
    "arrow_zstd": {"compression": "zstd"},
    "arrow_v2_none": {"compression": "none", "data_page_version": "2.0"},
    "arrow_v2_lz4_plain": {"compression": "lz4", "data_page_version": "2.0",
                           "use_dictionary": False},
    "arrow_small_pages": {"compression": "zstd", "data_page_size": 20, "write_batch_size": 3,
                          "dictionary_pagesize_limit": 30, "store_decimal_as_integer": True},
}


def main():
    duckdb, pa = oracles.load()
    ours = HERE / "ours.parquet"
    subprocess.run([ROOT / "build/tests/unit/test_parquet_golden", "record", ours], check=True)
    table = pa.parquet.read_table(ours)
    for name, options in ARROW.items():
        pa.parquet.write_table(table, HERE / f"{name}.parquet", store_schema=False,
                               row_group_size=20, **options)
    duckdb.sql(f"COPY (SELECT * FROM '{ours}') TO '{HERE}/duckdb_zstd.parquet' "
               "(FORMAT parquet, COMPRESSION zstd)")
    if "--rust" in sys.argv[1:]:
        subprocess.run(["cargo", "run", "--quiet", "--", ours, HERE], cwd=HERE / "rust", check=True)


if __name__ == "__main__":
    main()
