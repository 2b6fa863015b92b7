#!/bin/sh
# Records pgoutput messages of a real server as hex, one a line, behind the statement that caused
# them:
#
#     tests/golden/pgoutput/record.sh > tests/golden/pgoutput/messages.hex
#
# LSNs, transaction ids and times differ from run to run: messages.txt must then be made anew from
# the output of the failing test, and read.
set -eu
here=$(dirname "$0")
. "$here/../pg_server.sh"
psql -f "$here/setup.sql" >/dev/null
while IFS= read -r statement; do
    printf '# %s\n' "$statement"
    psql -c "$statement" >/dev/null
    psql -c "SELECT encode(data, 'hex') FROM pg_logical_slot_get_binary_changes('golden', NULL, NULL,
        'proto_version', '1', 'publication_names', 'golden', 'messages', 'true')"
done <"$here/statements.sql"
