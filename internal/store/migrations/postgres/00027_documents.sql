-- +goose Up

-- What people and programs write down for every machine on this database: settings, rules, agents. Files in a home are copies.
CREATE TABLE documents (
    name TEXT COLLATE "C" NOT NULL PRIMARY KEY, -- the path of the copies, below the home
    version BIGINT NOT NULL, -- counts its changes
    seq BIGINT NOT NULL, -- the number of its last change among those of all documents
    digest TEXT COLLATE "C" NOT NULL, -- of the body
    deleted BIGINT NOT NULL, -- 1: it was removed; the row says when
    body BYTEA NOT NULL
);

CREATE UNIQUE INDEX documents_by_change ON documents (seq);

-- The number of the last change. Whoever changes a document changes this row first, so numbers are in the order of the commits.
CREATE TABLE document_changes (
    one BIGINT NOT NULL PRIMARY KEY,
    seq BIGINT NOT NULL
);

INSERT INTO document_changes (one, seq) VALUES (1, 0);

CREATE TABLE document_versions (
    name TEXT COLLATE "C" NOT NULL,
    version BIGINT NOT NULL,
    digest TEXT COLLATE "C" NOT NULL, -- '': it was removed
    changed_by TEXT COLLATE "C" NOT NULL,
    changed_at BIGINT NOT NULL,
    PRIMARY KEY (name, version)
);

-- +goose Down

DROP TABLE document_versions;
DROP TABLE document_changes;
DROP TABLE documents;
