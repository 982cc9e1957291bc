-- +goose Up

-- Small things that a part of the program must not forget: work that was announced and is
-- not done, a summary that was paid for.
CREATE TABLE memos (
    kind  TEXT   NOT NULL,
    key   TEXT   NOT NULL,
    value TEXT   NOT NULL, -- JSON, of the kind's own making
    at    BIGINT NOT NULL,
    PRIMARY KEY (kind, key)
) WITHOUT ROWID;

PRAGMA user_version = 9;

-- +goose Down

DROP TABLE memos;

PRAGMA user_version = 8;
