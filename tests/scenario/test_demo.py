"""The demo that newcomers run is as good as it says; here with few rows."""

import os
import subprocess

from support.process import ROOT


def test_demo_ends_equal(program, tmp_path):
    result = subprocess.run(["/usr/bin/python3", ROOT / "scripts" / "demo.py", "--orders", "4000",
                             "--folder", tmp_path / "demo", "--seconds", "1"],
                            capture_output=True, text=True, check=False, timeout=120,
                            env={**os.environ, "TIDEMARK": str(program)})
    assert result.returncode == 0, result.stdout + result.stderr
    assert "killed with" in result.stdout and "equal: " in result.stdout
    assert result.stdout.count("   truncated ") == 1
    assert "shop.tide: sound" in result.stdout
