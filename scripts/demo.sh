#!/bin/sh
# Shows what Tidemark does, in under two minutes: a database of a million rows is copied while it is
# written to, the copy is killed half way, goes on, follows, and is proved complete in two ways.
# Everything happens in build/demo; nothing else is touched.
set -eu
cd "$(dirname "$0")/.."

scripts/deps.sh
[ -f build/build.ninja ] || meson setup build >/dev/null
ninja -C build >/dev/null || { ninja -C build; exit 1; }
exec /usr/bin/python3 scripts/demo.py "$@"
