-- +goose Up

-- The processes that share this database. Whoever sees the same beat for long marks the node as dead; a node that is dead stays so.
CREATE TABLE nodes (
	id      TEXT PRIMARY KEY, -- one for every time that a process joins
	name    TEXT NOT NULL,    -- what people call it; several processes of one machine may share it
	beat    INTEGER NOT NULL DEFAULT 0,
	dead    INTEGER NOT NULL DEFAULT 0,
	drain   INTEGER NOT NULL DEFAULT 0,
	kind    TEXT NOT NULL DEFAULT '', -- what it was started for
	address TEXT NOT NULL DEFAULT '',
	labels  TEXT NOT NULL DEFAULT '[]',
	version TEXT NOT NULL DEFAULT '',
	started INTEGER NOT NULL,
	died    INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;

-- The labels that people gave to a node, over its restarts.
CREATE TABLE node_labels (
	name   TEXT PRIMARY KEY,
	labels TEXT NOT NULL
) WITHOUT ROWID;

-- What only one node may have. The epoch grows with every taking; a row without a node is free.
CREATE TABLE owned (
	name  TEXT PRIMARY KEY,
	node  TEXT NOT NULL DEFAULT '',
	epoch INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE INDEX owned_by_node ON owned (node) WHERE node <> '';

PRAGMA user_version = 28;

-- +goose Down

DROP TABLE owned;
DROP TABLE node_labels;
DROP TABLE nodes;

PRAGMA user_version = 27;
