# A thin front over Meson: `make` builds, `make test` proves, `make demo` shows.
.DEFAULT_GOAL := build/tidemark
.PHONY: build/tidemark demo test soak lint format fuzz bench install clean

FUZZ_SECONDS ?= 30
PREFIX ?= /usr/local

# Always asks ninja, which knows what has changed.
build/tidemark:
	@[ -f build/build.ninja ] || meson setup build
	@ninja -C build

demo:
	@scripts/demo.sh

# Everything, at most ten minutes on two cores; one part: make test PARTS=unit
test:
	@scripts/run_tests.py $(PARTS)

# The full counts of one area; without AREA the areas are listed.
soak:
	@scripts/soak.py $(AREA)

lint:
	@scripts/lint.py

format:
	@git ls-files '*.c' '*.h' | xargs clang-format-14 -i

fuzz:
	@scripts/fuzz.py $(FUZZ_SECONDS)

bench:
	@[ -f build-bench/build.ninja ] || meson setup build-bench -Dbuildtype=release -Dbench=true -Dtests=false
	@ninja -C build-bench
	@meson test -C build-bench --benchmark --verbose

install: build/tidemark
	@meson configure build -Dprefix=$(PREFIX)
	@meson install -C build

clean:
	@rm -rf build build-asan build-tsan build-fuzz build-bench
