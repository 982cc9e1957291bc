-- +goose Up

-- Who may come in over HTTP. Only a digest of the token is kept.
CREATE TABLE api_tokens (
    id         TEXT   NOT NULL PRIMARY KEY,
    name       TEXT   NOT NULL,
    digest     TEXT   NOT NULL UNIQUE,
    scopes     TEXT   NOT NULL, -- JSON list
    roles      TEXT   NOT NULL, -- JSON list
    created_by TEXT   NOT NULL,
    created_at BIGINT NOT NULL,
    used_at    BIGINT,
    expires_at BIGINT,
    revoked_at BIGINT
) WITHOUT ROWID;

-- What a request with an Idempotency-Key was answered, so that the same one gets it again.
CREATE TABLE kept_answers (
    principal TEXT   NOT NULL,
    key       TEXT   NOT NULL,
    route     TEXT   NOT NULL,
    digest    TEXT   NOT NULL, -- of the request
    status    BIGINT NOT NULL, -- 0: it is still being worked on
    media     TEXT   NOT NULL,
    body      TEXT   NOT NULL,
    at        BIGINT NOT NULL,
    PRIMARY KEY (principal, key, route)
) WITHOUT ROWID;

CREATE INDEX kept_answers_at ON kept_answers (at);

PRAGMA user_version = 5;

-- +goose Down

DROP TABLE kept_answers;
DROP TABLE api_tokens;

PRAGMA user_version = 4;
