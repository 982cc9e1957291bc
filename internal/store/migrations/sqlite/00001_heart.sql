-- +goose Up

-- "CHOR": so that a file of somebody else's is recognised before it is touched.
PRAGMA application_id = 1128812370;

CREATE TABLE threads (
    id          TEXT    NOT NULL PRIMARY KEY,
    transport   TEXT    NOT NULL,
    place       TEXT    NOT NULL,
    agent       TEXT    NOT NULL,
    owner       TEXT    NOT NULL, -- principal as JSON
    title       TEXT    NOT NULL DEFAULT '',
    dir         TEXT    NOT NULL DEFAULT '',
    status      TEXT    NOT NULL DEFAULT 'idle',
    epoch       BIGINT  NOT NULL DEFAULT 0, -- the fence: an owner writes only with its own
    next_seq    BIGINT  NOT NULL DEFAULT 1, -- the only source of numbers
    waiting     BIGINT  NOT NULL DEFAULT 0, -- prompts with taken = 0
    wake        BIGINT  NOT NULL DEFAULT 0,
    created     BIGINT  NOT NULL,
    last_active BIGINT  NOT NULL
) WITHOUT ROWID;

-- What the sweep and a restart read, and nothing else.
CREATE INDEX threads_stirring ON threads (id) WHERE wake = 1 OR status = 'running';

CREATE TABLE events (
    thread_id   TEXT    NOT NULL,
    seq         BIGINT  NOT NULL,
    at          BIGINT  NOT NULL,
    kind        TEXT    NOT NULL,
    run_id      TEXT    NOT NULL DEFAULT '',
    who         TEXT    NOT NULL DEFAULT '',
    platform    TEXT    NOT NULL DEFAULT '',
    platform_id TEXT    NOT NULL DEFAULT '',
    version     BIGINT  NOT NULL DEFAULT 0,
    taken       BIGINT, -- NULL: not a prompt; 0: waiting; 1: taken, refused or deleted
    body        TEXT    NOT NULL, -- last: nothing stands behind its overflow pages
    PRIMARY KEY (thread_id, seq)
);

CREATE UNIQUE INDEX events_platform ON events (thread_id, platform, platform_id, kind, version)
    WHERE platform_id <> '';

CREATE INDEX events_waiting ON events (thread_id, seq) WHERE taken = 0;
CREATE INDEX events_runs ON events (thread_id, seq) WHERE kind = 'run_started';

CREATE TABLE arrivals (
    platform    TEXT    NOT NULL,
    bot         TEXT    NOT NULL,
    kind        TEXT    NOT NULL,
    platform_id TEXT    NOT NULL,
    version     BIGINT  NOT NULL,
    decision    TEXT    NOT NULL,
    at          BIGINT  NOT NULL,
    PRIMARY KEY (platform, bot, kind, platform_id, version)
) WITHOUT ROWID;

CREATE TABLE readers (
    reader      TEXT    NOT NULL,
    thread_id   TEXT    NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    seq         BIGINT  NOT NULL,
    PRIMARY KEY (reader, thread_id)
) WITHOUT ROWID;

CREATE INDEX readers_thread ON readers (thread_id);

CREATE TABLE blobs (
    hash        TEXT    NOT NULL PRIMARY KEY,
    size        BIGINT  NOT NULL,
    data        BLOB, -- NULL: in a file of that name
    touched     BIGINT  NOT NULL
);

CREATE TABLE event_blobs (
    hash        TEXT    NOT NULL,
    thread_id   TEXT    NOT NULL,
    seq         BIGINT  NOT NULL,
    PRIMARY KEY (hash, thread_id, seq)
) WITHOUT ROWID;

CREATE TABLE snapshots (
    thread_id   TEXT    NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    codec       TEXT    NOT NULL,
    seq         BIGINT  NOT NULL,
    state       BLOB    NOT NULL,
    at          BIGINT  NOT NULL,
    PRIMARY KEY (thread_id, codec)
);

CREATE TABLE approvals (
    id          TEXT    NOT NULL PRIMARY KEY,
    thread_id   TEXT    NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    run_id      TEXT    NOT NULL,
    call_id     TEXT    NOT NULL,
    call        TEXT    NOT NULL, -- the whole call, as JSON blocks
    actions     TEXT    NOT NULL, -- JSON list
    dir         TEXT    NOT NULL,
    bound       TEXT    NOT NULL, -- JSON
    preview     TEXT    NOT NULL,
    risk        TEXT    NOT NULL,
    rule        TEXT    NOT NULL,
    asked_by    TEXT    NOT NULL, -- principal as JSON
    asked_at    BIGINT  NOT NULL,
    deadline    BIGINT, -- NULL: none
    state       TEXT    NOT NULL DEFAULT 'pending',
    answered_by TEXT    NOT NULL DEFAULT '',
    answered_at BIGINT,
    note        TEXT    NOT NULL DEFAULT ''
);

CREATE INDEX approvals_thread ON approvals (thread_id, run_id);
CREATE INDEX approvals_pending ON approvals (deadline) WHERE state = 'pending';

CREATE TABLE ledger (
    run_id      TEXT    NOT NULL,
    step        BIGINT  NOT NULL,
    attempt     BIGINT  NOT NULL,
    thread_id   TEXT    NOT NULL,
    agent       TEXT    NOT NULL,
    payer       TEXT    NOT NULL, -- the principal's key
    payer_body  TEXT    NOT NULL, -- principal as JSON
    model       TEXT    NOT NULL,
    reserved    BIGINT  NOT NULL,
    settled     BIGINT  NOT NULL DEFAULT 0,
    how         TEXT    NOT NULL DEFAULT '',
    tok_in      BIGINT  NOT NULL DEFAULT 0,
    tok_out     BIGINT  NOT NULL DEFAULT 0,
    tok_read    BIGINT  NOT NULL DEFAULT 0,
    tok_write   BIGINT  NOT NULL DEFAULT 0,
    at          BIGINT  NOT NULL,
    settled_at  BIGINT,
    PRIMARY KEY (run_id, step, attempt)
) WITHOUT ROWID;

-- No index by time or thread on ledger and audit: both are written in every turn and
-- summed up now and then, and a sum over a year reads faster than a year of turns
-- would pay for the index.

CREATE TABLE audit (
    id          INTEGER PRIMARY KEY,
    at          BIGINT  NOT NULL,
    agent       TEXT    NOT NULL,
    thread_id   TEXT    NOT NULL,
    run_id      TEXT    NOT NULL,
    call_id     TEXT    NOT NULL,
    principal   TEXT    NOT NULL, -- the principal's key
    principal_body TEXT NOT NULL, -- principal as JSON
    action      TEXT    NOT NULL,
    decision    TEXT    NOT NULL,
    rule        TEXT    NOT NULL,
    detail      TEXT    NOT NULL
);

CREATE TABLE principals (
    id          TEXT    NOT NULL PRIMARY KEY, -- kind:id
    kind        TEXT    NOT NULL,
    name        TEXT    NOT NULL,
    roles       TEXT    NOT NULL, -- JSON list
    first_seen  BIGINT  NOT NULL,
    last_seen   BIGINT  NOT NULL
) WITHOUT ROWID;

CREATE TABLE agents (
    name        TEXT    NOT NULL PRIMARY KEY,
    model       TEXT    NOT NULL,
    profile     TEXT    NOT NULL,
    config      TEXT    NOT NULL, -- JSON
    status      TEXT    NOT NULL,
    created     BIGINT  NOT NULL
) WITHOUT ROWID;

CREATE TABLE settings (
    scope       TEXT    NOT NULL,
    key         TEXT    NOT NULL,
    value       TEXT    NOT NULL,
    PRIMARY KEY (scope, key)
) WITHOUT ROWID;

PRAGMA user_version = 1;

-- +goose Down

DROP TABLE settings;
DROP TABLE agents;
DROP TABLE principals;
DROP TABLE audit;
DROP TABLE ledger;
DROP TABLE approvals;
DROP TABLE snapshots;
DROP TABLE event_blobs;
DROP TABLE blobs;
DROP TABLE readers;
DROP TABLE arrivals;
DROP TABLE events;
DROP TABLE threads;

PRAGMA user_version = 0;
