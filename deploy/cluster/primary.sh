#!/bin/sh
# The first PostgreSQL: as the image starts it, with replication allowed inside this network. With STANDBY=standby no commit is
# acknowledged before the second server has it, so that the loss of the first loses nothing.
set -eu
mkdir -p /docker-entrypoint-initdb.d
cat >/docker-entrypoint-initdb.d/replication.sh <<'EOF'
echo "host replication chorus all scram-sha-256" >> "$PGDATA/pg_hba.conf"
EOF
# While the image makes the database there is no standby yet to wait for.
export PGOPTIONS="-c synchronous_commit=local"
exec docker-entrypoint.sh postgres \
	-c max_connections=200 \
	-c wal_level=replica -c max_wal_senders=5 -c wal_keep_size=512MB \
	-c synchronous_standby_names="${STANDBY:-}" \
	-c tcp_keepalives_idle=5 -c tcp_keepalives_interval=2 -c tcp_keepalives_count=3
