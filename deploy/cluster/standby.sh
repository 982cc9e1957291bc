#!/bin/sh
# The second PostgreSQL: copies the first one once and follows it from then on, under the name that synchronous_standby_names waits for.
set -eu
if [ ! -s "$PGDATA/PG_VERSION" ]; then
	install -d -o postgres -g postgres -m 0700 "$PGDATA"
	gosu postgres pg_basebackup -h postgres -U chorus -D "$PGDATA" -X stream -R -d "host=postgres user=chorus application_name=standby"
fi
exec gosu postgres postgres
