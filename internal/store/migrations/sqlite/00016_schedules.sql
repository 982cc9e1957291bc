-- +goose Up

-- What is said to a thread at set times. due only moves forward, and only from the value that was read: of
-- several processes that find a schedule due, one moves it.
CREATE TABLE schedules (
    id          TEXT    NOT NULL PRIMARY KEY,
    owner       TEXT    NOT NULL, -- principal as JSON: whose rights and money it uses
    owner_key   TEXT    NOT NULL,
    thread_id   TEXT    NOT NULL,
    words       TEXT    NOT NULL,
    said        TEXT    NOT NULL, -- when, as it was said
    spec        TEXT    NOT NULL, -- when, as it is read
    zone        TEXT    NOT NULL,
    catch_up    TEXT    NOT NULL,
    jitter      BIGINT  NOT NULL, -- microseconds
    due         BIGINT,           -- NULL: never again
    begins      BIGINT,           -- due and its jitter
    paused      BIGINT  NOT NULL DEFAULT 0,
    created_at  BIGINT  NOT NULL,
    file        TEXT    NOT NULL, -- of the folder events, where it comes from one
    digest      TEXT    NOT NULL  -- of that file
) WITHOUT ROWID;

CREATE INDEX schedules_by_begin ON schedules (begins) WHERE begins IS NOT NULL AND paused = 0;
CREATE INDEX schedules_by_owner ON schedules (owner_key, created_at);

CREATE TABLE schedule_runs (
    schedule_id TEXT    NOT NULL,
    due         BIGINT  NOT NULL,
    state       TEXT    NOT NULL, -- said, refused or skipped
    seq         BIGINT  NOT NULL, -- of the prompt in the thread
    why         TEXT    NOT NULL,
    at          BIGINT  NOT NULL,
    PRIMARY KEY (schedule_id, due)
) WITHOUT ROWID;

PRAGMA user_version = 16;

-- +goose Down

DROP TABLE schedule_runs;
DROP TABLE schedules;

PRAGMA user_version = 15;
