"""`tidemark verify` keeps a bit a row: 100 million rows of a pipe, in any order, in 64 MiB."""

import os
import re
import subprocess

import pytest

from support import process

ROWS = 100_000_000
LIMIT_KIB = 64 * 1024
ORDERS = ["in_order", "reverse", "second", "windows", "scattered", "stores", "scattered_stores"]


@pytest.fixture
def peak_kib(program):
    """peak_kib(order, rows): the highest resident memory of a verify that finds all complete."""
    def call(order, rows):
        flood = os.path.join(os.path.dirname(program), "tests/support/frame_flood")
        result = subprocess.run([flood, order, str(rows), program, "verify", "-"],
                                capture_output=True, text=True, check=False)
        assert result.returncode == 0, result.stdout[-2000:] + result.stderr[-2000:]
        stores = 97 if "stores" in order else 1
        assert result.stdout.count(f": {rows // stores} rows, 0 stubs\n") == stores
        return int(re.fullmatch(r"peak (\d+) KiB\n", result.stderr).group(1))
    return call


@pytest.mark.parametrize("order", ORDERS)
def test_memory_for_a_hundred_million_rows(peak_kib, order):
    if process.soak(0, 1):
        assert peak_kib(order, ROWS) < LIMIT_KIB
        return
    few, many = 400_000, 2_000_000
    base, more = peak_kib(order, few), peak_kib(order, many)
    a_row = max(more - base, 0) / (many - few)
    assert base + a_row * (ROWS - few) < LIMIT_KIB, (base, more)
