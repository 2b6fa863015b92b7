#!/usr/bin/python3
"""Fuzzes every codec for some seconds, from its seeds; what breaks one lands in fuzz/regression/.

    scripts/fuzz.py [SECONDS [CODEC...]]      30 seconds each unless said otherwise
"""

import os
import pathlib
import sys

from run_tests import SANITIZER_ENV, prepare
from tally import ROOT, Tally, one


def fuzz(seconds=30, wanted=()):
    """Every codec, or those that are wanted; the exit status."""
    tally = Tally("fuzz")
    if not prepare("build-fuzz", tally.log_path("build")):
        tally.add("build", 0, 1)
        return tally.finish()
    for source in sorted((ROOT / "fuzz").glob("fuzz_*.c")):
        codec = source.stem.removeprefix("fuzz_")
        if wanted and codec not in wanted:
            continue
        # New inputs grow in the build directory; the seeds in the repository stay as they are.
        grown = ROOT / "build-fuzz" / "corpus" / codec
        grown.mkdir(parents=True, exist_ok=True)
        broken = ROOT / "fuzz" / "regression" / codec
        broken.mkdir(parents=True, exist_ok=True)
        seeds = [folder for folder in (ROOT / "fuzz" / "corpus" / codec, broken)
                 if folder.is_dir()]
        tally.run(codec, [ROOT / "build-fuzz" / "fuzz" / source.stem,
                          f"-max_total_time={seconds}", "-rss_limit_mb=2048", "-timeout=10",
                          f"-artifact_prefix={broken}{os.sep}", grown, *seeds], one,
                  SANITIZER_ENV, timeout=seconds + 120)
        remove_if_empty(broken)
    return tally.finish()


def remove_if_empty(folder: pathlib.Path):
    if not any(folder.iterdir()):
        folder.rmdir()


if __name__ == "__main__":
    sys.exit(fuzz(int(sys.argv[1]) if len(sys.argv) > 1 else 30, sys.argv[2:]))
