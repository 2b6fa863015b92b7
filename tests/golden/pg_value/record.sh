#!/bin/sh
# Records values of a real server as COPY writes them: the type's oid and the text, one a line, behind
# the expression that made it:
#
#     tests/golden/pg_value/record.sh > tests/golden/pg_value/values.copy
set -eu
here=$(dirname "$0")
. "$here/../pg_server.sh"
psql -f "$here/setup.sql" >/dev/null
while IFS= read -r expression; do
    printf '# %s\n' "$expression"
    psql -c "COPY (SELECT pg_typeof(v)::oid, v FROM (SELECT $expression AS v) x) TO STDOUT"
done <"$here/expressions.sql"
