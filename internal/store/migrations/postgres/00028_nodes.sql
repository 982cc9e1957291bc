-- +goose Up

-- The processes that share this database. Whoever sees the same beat for long marks the node as dead; a node that is dead stays so.
CREATE TABLE nodes (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY, -- one for every time that a process joins
    name TEXT COLLATE "C" NOT NULL, -- what people call it; several processes of one machine may share it
    beat BIGINT NOT NULL DEFAULT 0,
    dead BIGINT NOT NULL DEFAULT 0,
    drain BIGINT NOT NULL DEFAULT 0,
    kind TEXT COLLATE "C" NOT NULL DEFAULT '', -- what it was started for
    address TEXT COLLATE "C" NOT NULL DEFAULT '',
    labels TEXT COLLATE "C" NOT NULL DEFAULT '[]',
    version TEXT COLLATE "C" NOT NULL DEFAULT '',
    started BIGINT NOT NULL,
    died BIGINT NOT NULL DEFAULT 0
);

-- The labels that people gave to a node, over its restarts.
CREATE TABLE node_labels (
    name TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    labels TEXT COLLATE "C" NOT NULL
);

-- What only one node may have. The epoch grows with every taking; a row without a node is free.
CREATE TABLE owned (
    name TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    node TEXT COLLATE "C" NOT NULL DEFAULT '',
    epoch BIGINT NOT NULL DEFAULT 0
);

CREATE INDEX owned_by_node ON owned (node) WHERE node <> '';

-- +goose Down

DROP TABLE owned;
DROP TABLE node_labels;
DROP TABLE nodes;
