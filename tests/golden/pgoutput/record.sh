#!/bin/sh
# Records pgoutput messages of a real server as hex, one a line, with the statement that caused them
# before them as a comment. Needs the server's programs (PGBIN) and root, to become user postgres:
#
#     tests/golden/pgoutput/record.sh > tests/golden/pgoutput/messages.hex
#
# LSNs, transaction ids and times differ from run to run: messages.txt must then be made anew from
# the output of the failing test, and read.
set -eu
bin=${PGBIN:-/usr/lib/postgresql/15/bin}
here=$(dirname "$0")
dir=$(mktemp -d)
chmod 755 "$dir"
mkdir "$dir/run" "$dir/pg"
chown postgres: "$dir/run" "$dir/pg"
stop() {
    runuser -u postgres -- "$bin/pg_ctl" -D "$dir/pg/data" -m immediate stop >/dev/null 2>&1 || true
    rm -rf "$dir"
}
trap stop EXIT
runuser -u postgres -- "$bin/initdb" -D "$dir/pg/data" -U postgres --auth=trust --encoding=UTF8 \
    --locale=C.UTF-8 >/dev/null
cat >>"$dir/pg/data/postgresql.conf" <<CONF
listen_addresses = ''
unix_socket_directories = '$dir/run'
wal_level = logical
fsync = off
CONF
runuser -u postgres -- "$bin/pg_ctl" -D "$dir/pg/data" -l "$dir/pg/log" -w start >/dev/null
psql() {
    "$bin/psql" -h "$dir/run" -U postgres -XqAt -v ON_ERROR_STOP=1 "$@" postgres
}
psql -f "$here/setup.sql" >/dev/null
while IFS= read -r statement; do
    case $statement in
    '' | --*) continue ;;
    esac
    printf "# %s\n" "$statement"
    psql -c "$statement" >/dev/null
    psql -c "SELECT encode(data, 'hex') FROM pg_logical_slot_get_binary_changes('golden', NULL, NULL,
        'proto_version', '1', 'publication_names', 'golden', 'messages', 'true')"
done <"$here/statements.sql"
