#!/bin/sh
# Installs the Debian 12 packages that building needs; with --dev also what tests and lint need.
# Says nothing and calls nothing when all of them are there.
set -eu

build="gcc libc6-dev make meson ninja-build pkg-config python3 libsqlite3-dev libxxhash-dev libpq-dev libyaml-dev libzstd-dev liblz4-dev libssl-dev"
dev="clang-14 clang-tidy-14 clang-format-14 llvm-14 libclang-rt-14-dev libcmocka-dev python3-pytest python3-pytest-xdist python3-venv sqlite3 zstd jq openssl git postgresql-15 postgresql-client-15"

case "${1:-}" in
    "") wanted=$build ;;
    --dev) wanted="$build $dev" ;;
    *) echo "usage: scripts/deps.sh [--dev]" >&2; exit 2 ;;
esac

command -v dpkg-query >/dev/null || {
    echo "deps.sh: this is not Debian; install the equivalents of: $wanted" >&2
    exit 3
}

missing=
for package in $wanted; do
    state=$(dpkg-query -W -f '${db:Status-Abbrev}' "$package" 2>/dev/null || true)
    case $state in
        ii*) ;;
        *) missing="$missing $package" ;;
    esac
done
[ -n "$missing" ] || exit 0

as_root=
if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || {
        echo "deps.sh: neither root nor sudo; as root run: apt-get install$missing" >&2
        exit 3
    }
    as_root=sudo
fi

echo "deps.sh: installing$missing"
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# shellcheck disable=SC2086 # the list is words on purpose
if ! { $as_root apt-get -q update && $as_root apt-get -qy --no-install-recommends install $missing; } >"$log" 2>&1; then
    cat "$log" >&2
    exit 3
fi
