-- +goose Up

-- What runs by itself when something happened or a time has come. A trigger, the reader's place and the run that it
-- begins are written together, so that a trigger is neither lost nor counted twice.
CREATE TABLE hooks (
    id          TEXT    NOT NULL PRIMARY KEY,
    name        TEXT    NOT NULL,
    project     TEXT    NOT NULL, -- a label
    owner       TEXT    NOT NULL, -- principal as JSON: whose rights and money it uses
    owner_key   TEXT    NOT NULL,
    agent       TEXT    NOT NULL,
    dir         TEXT    NOT NULL,
    kind        TEXT    NOT NULL, -- of the trigger: periodic, event or webhook
    definition  TEXT    NOT NULL, -- trigger, steps, template and actions as JSON
    enabled     BIGINT  NOT NULL,
    approved    TEXT    NOT NULL, -- digest of the steps and actions that the owner said yes to
    secret      TEXT    NOT NULL, -- of incoming webhooks
    made_by     TEXT,             -- idempotency key of whoever made it
    due         BIGINT,           -- NULL: no time comes
    last_at     BIGINT,
    passed      BIGINT  NOT NULL DEFAULT 0, -- triggers that did not become runs
    passed_why  TEXT    NOT NULL DEFAULT '',
    created_at  BIGINT  NOT NULL,
    updated_at  BIGINT  NOT NULL
) WITHOUT ROWID;

CREATE UNIQUE INDEX hooks_made_by ON hooks (made_by) WHERE made_by IS NOT NULL;
CREATE INDEX hooks_by_due ON hooks (due) WHERE due IS NOT NULL AND enabled = 1;
CREATE INDEX hooks_by_owner ON hooks (owner_key, created_at);

CREATE TABLE hook_runs (
    id          TEXT    NOT NULL PRIMARY KEY, -- made of the hook and its trigger, so that each runs once
    hook_id     TEXT    NOT NULL,
    reason      TEXT    NOT NULL, -- periodic, event:<type>, manual or webhook
    acting      TEXT    NOT NULL, -- principal as JSON
    state       TEXT    NOT NULL, -- waiting, running, completed, failed or skipped
    why         TEXT    NOT NULL,
    created_at  BIGINT  NOT NULL,
    started_at  BIGINT,
    ended_at    BIGINT,
    progress    TEXT    NOT NULL  -- as JSON
) WITHOUT ROWID;

CREATE INDEX hook_runs_by_hook ON hook_runs (hook_id, created_at);
CREATE INDEX hook_runs_by_time ON hook_runs (created_at);
CREATE INDEX hook_runs_unfinished ON hook_runs (created_at) WHERE ended_at IS NULL;

-- Deliveries of webhooks that were taken: one that is sent again has no effect.
CREATE TABLE hook_deliveries (
    hook_id     TEXT    NOT NULL,
    delivery    TEXT    NOT NULL,
    run_id      TEXT    NOT NULL,
    at          BIGINT  NOT NULL,
    PRIMARY KEY (hook_id, delivery)
) WITHOUT ROWID;

CREATE INDEX hook_deliveries_by_time ON hook_deliveries (at);

PRAGMA user_version = 18;

-- +goose Down

DROP TABLE hook_deliveries;
DROP TABLE hook_runs;
DROP TABLE hooks;

PRAGMA user_version = 17;
