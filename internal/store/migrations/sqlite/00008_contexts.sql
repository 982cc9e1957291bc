-- +goose Up

-- Conversations that were kept to be taken up again: the row is what lists show, the
-- file has every message.
CREATE TABLE saved_contexts (
    id            TEXT   NOT NULL PRIMARY KEY,
    agent         TEXT   NOT NULL,
    transport     TEXT   NOT NULL,
    place         TEXT   NOT NULL,
    description   TEXT   NOT NULL,
    summary       TEXT   NOT NULL,
    saved_by      TEXT   NOT NULL,
    saved_at      BIGINT NOT NULL,
    message_count BIGINT NOT NULL,
    window_start  BIGINT NOT NULL,
    window_end    BIGINT NOT NULL,
    file_path     TEXT   NOT NULL,
    quiet         BIGINT -- since when nobody had spoken; NULL: somebody asked for it
) WITHOUT ROWID;

CREATE INDEX saved_contexts_place ON saved_contexts (agent, transport, place, saved_at);

-- One for each time that a place falls quiet.
CREATE UNIQUE INDEX saved_contexts_quiet ON saved_contexts (agent, transport, place, quiet) WHERE quiet IS NOT NULL;

PRAGMA user_version = 8;

-- +goose Down

DROP TABLE saved_contexts;

PRAGMA user_version = 7;
