-- +goose Up

-- Where a task was asked for, and when people were last told that it waits for their yes.
ALTER TABLE tasks ADD COLUMN origin TEXT NOT NULL DEFAULT '';
ALTER TABLE tasks ADD COLUMN reminded_at BIGINT;

-- What a task gave as a plan. Approved, its steps are tasks whose parent is the task.
CREATE TABLE plans (
    task_id     TEXT    NOT NULL,
    attempt     BIGINT  NOT NULL,
    source      TEXT    NOT NULL, -- the file it was read from, or answer
    text        TEXT    NOT NULL,
    outline     TEXT    NOT NULL, -- its steps as JSON
    state       TEXT    NOT NULL, -- found, approved, rejected or deleted
    by_key      TEXT    NOT NULL, -- who decided
    at          BIGINT  NOT NULL,
    PRIMARY KEY (task_id, attempt)
) WITHOUT ROWID;

-- How far readers of the events of the work have come, such as hooks.
CREATE TABLE work_readers (
    reader      TEXT    NOT NULL PRIMARY KEY,
    seq         BIGINT  NOT NULL
) WITHOUT ROWID;

PRAGMA user_version = 23;

-- +goose Down

DROP TABLE work_readers;
DROP TABLE plans;
ALTER TABLE tasks DROP COLUMN reminded_at;
ALTER TABLE tasks DROP COLUMN origin;

PRAGMA user_version = 22;
