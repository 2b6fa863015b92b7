# For the recorders of golden files: a PostgreSQL server of its own in a temporary folder, gone at the
# end, and `psql` to talk to it. Needs the server's programs (PGBIN) and root, to become user postgres.
bin=${PGBIN:-/usr/lib/postgresql/15/bin}
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
    PGTZ=UTC PGCLIENTENCODING=UTF8 \
        PGOPTIONS='-c datestyle=ISO,MDY -c intervalstyle=postgres -c extra_float_digits=3 -c bytea_output=hex -c lc_monetary=C' \
        "$bin/psql" -h "$dir/run" -U postgres -XqAt -v ON_ERROR_STOP=1 "$@" postgres
}
