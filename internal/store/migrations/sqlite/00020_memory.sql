-- +goose Up

-- What memory files held, a row for every change. The files are the truth; a row is written when a change is seen.
CREATE TABLE memory_versions (
    path      TEXT   NOT NULL, -- below the home folder, with forward slashes
    n         BIGINT NOT NULL,
    digest    TEXT   NOT NULL, -- of the text
    text      TEXT   NOT NULL,
    lines     TEXT   NOT NULL, -- which version each line is of, as "version*lines …"
    who       TEXT   NOT NULL, -- on whose words; '': nobody knows
    thread_id TEXT   NOT NULL,
    call      TEXT   NOT NULL,
    how       TEXT   NOT NULL,
    owner     BIGINT NOT NULL, -- by somebody who runs this home
    at        BIGINT NOT NULL,
    PRIMARY KEY (path, n)
) WITHOUT ROWID;

-- What is about to be written to a memory file: a change whose text stands here is not by hand, whoever sees it
-- first, and whether or not the writer lived on.
CREATE TABLE memory_writes (
    path      TEXT   NOT NULL,
    digest    TEXT   NOT NULL,
    lines     TEXT   NOT NULL, -- '': what is new is the writer's
    who       TEXT   NOT NULL,
    thread_id TEXT   NOT NULL,
    call      TEXT   NOT NULL,
    how       TEXT   NOT NULL,
    owner     BIGINT NOT NULL,
    at        BIGINT NOT NULL,
    PRIMARY KEY (path, digest)
) WITHOUT ROWID;

PRAGMA user_version = 20;

-- +goose Down

DROP TABLE memory_writes;
DROP TABLE memory_versions;

PRAGMA user_version = 19;
