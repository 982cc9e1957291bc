-- +goose Up

-- Commands that agents left running. What is written about one is written from the version that was read: of several that
-- look after it, one writes.
CREATE TABLE processes (
    id          TEXT    NOT NULL PRIMARY KEY,
    thread_id   TEXT    NOT NULL,
    call_key    TEXT    NOT NULL, -- by which call it was started
    owner       TEXT    NOT NULL, -- principal as JSON: whose rights and money its hooks use
    owner_key   TEXT    NOT NULL, -- the person behind it
    command     TEXT    NOT NULL,
    dir         TEXT    NOT NULL,
    state       TEXT    NOT NULL, -- starting, running, exited, killed or lost
    exit        BIGINT  NOT NULL,
    why         TEXT    NOT NULL,
    read_to     BIGINT  NOT NULL, -- up to where hooks have seen its output
    hooks       TEXT    NOT NULL, -- JSON, with what has become of them
    timeout     BIGINT  NOT NULL, -- microseconds; 0: none
    version     BIGINT  NOT NULL,
    started_at  BIGINT  NOT NULL,
    ended_at    BIGINT            -- NULL: it runs
) WITHOUT ROWID;

CREATE INDEX processes_open ON processes (started_at) WHERE ended_at IS NULL;
CREATE INDEX processes_by_owner ON processes (owner_key, started_at);
CREATE INDEX processes_by_thread ON processes (thread_id, started_at);

CREATE TABLE process_fires (
    process_id  TEXT    NOT NULL,
    hook        BIGINT  NOT NULL,
    n           BIGINT  NOT NULL, -- the how manieth time
    owner_key   TEXT    NOT NULL,
    action      TEXT    NOT NULL,
    state       TEXT    NOT NULL, -- done or refused
    why         TEXT    NOT NULL,
    seq         BIGINT  NOT NULL, -- of the words in the thread
    at          BIGINT  NOT NULL,
    PRIMARY KEY (process_id, hook, n)
) WITHOUT ROWID;

CREATE INDEX process_fires_by_owner ON process_fires (owner_key, at);

PRAGMA user_version = 17;

-- +goose Down

DROP TABLE process_fires;
DROP TABLE processes;

PRAGMA user_version = 16;
