-- +goose Up

-- Projects, their repositories and tasks. A task's conversation is a thread; its row moves in the same transaction as the
-- events of that thread, and every move leaves a row in work_events.
CREATE TABLE projects (
    id          TEXT    NOT NULL PRIMARY KEY,
    name        TEXT    NOT NULL,
    weight      REAL    NOT NULL,
    max_runs    BIGINT  NOT NULL,
    state       TEXT    NOT NULL, -- ACTIVE, PAUSED or ARCHIVED
    token_limit BIGINT  NOT NULL, -- in the rolling window; 0: none
    channel     TEXT    NOT NULL,
    owner       TEXT    NOT NULL, -- principal as JSON: whose rights and money its tasks use
    owner_key   TEXT    NOT NULL,
    shared      BIGINT  NOT NULL,
    created_at  BIGINT  NOT NULL
) WITHOUT ROWID;

CREATE INDEX projects_by_channel ON projects (channel) WHERE channel <> '';

CREATE TABLE repos (
    id          TEXT    NOT NULL,
    project     TEXT    NOT NULL,
    kind        TEXT    NOT NULL, -- clone, link or init
    url         TEXT    NOT NULL,
    path        TEXT    NOT NULL,
    branch      TEXT    NOT NULL,
    created_at  BIGINT  NOT NULL,
    PRIMARY KEY (project, id)
) WITHOUT ROWID;

CREATE TABLE tasks (
    id          TEXT    NOT NULL PRIMARY KEY,
    project     TEXT    NOT NULL,
    parent      TEXT    NOT NULL,
    repo        TEXT    NOT NULL,
    agent       TEXT    NOT NULL,
    title       TEXT    NOT NULL,
    description TEXT    NOT NULL,
    type        TEXT    NOT NULL,
    priority    BIGINT  NOT NULL,
    state       TEXT    NOT NULL,
    attempt     BIGINT  NOT NULL,
    retries     BIGINT  NOT NULL,
    max_retries BIGINT  NOT NULL,
    not_before  BIGINT,
    deadline    BIGINT,
    approval    BIGINT  NOT NULL,
    branch      TEXT    NOT NULL,
    pr          TEXT    NOT NULL,
    run_id      TEXT    NOT NULL, -- the run that holds a worker
    thread_id   TEXT    NOT NULL,
    owner       TEXT    NOT NULL, -- principal as JSON
    owner_key   TEXT    NOT NULL,
    plan_source TEXT    NOT NULL,
    why         TEXT    NOT NULL,
    made_by     TEXT,             -- idempotency key of whoever made it
    created_at  BIGINT  NOT NULL,
    moved_at    BIGINT  NOT NULL
);

CREATE UNIQUE INDEX tasks_by_thread ON tasks (thread_id);
CREATE UNIQUE INDEX tasks_made_by ON tasks (made_by) WHERE made_by IS NOT NULL;
CREATE INDEX tasks_by_parent ON tasks (parent) WHERE parent <> '';
CREATE INDEX tasks_by_project ON tasks (project, state, priority, created_at, id);
-- What is not over, so that lists and the scheduler do not depend on what was.
CREATE INDEX tasks_open ON tasks (priority, created_at, id) WHERE state NOT IN ('COMPLETED', 'FAILED', 'BLOCKED');
CREATE INDEX tasks_open_by_project ON tasks (project, priority, created_at, id) WHERE state NOT IN ('COMPLETED', 'FAILED', 'BLOCKED');
CREATE INDEX tasks_by_state ON tasks (state, priority, created_at, id);
CREATE INDEX tasks_not_before ON tasks (not_before) WHERE not_before IS NOT NULL;
CREATE INDEX tasks_deadline ON tasks (deadline) WHERE deadline IS NOT NULL;
CREATE INDEX tasks_with_run ON tasks (state, project) WHERE run_id <> '';

CREATE TABLE task_dependencies (
    task_id     TEXT    NOT NULL,
    needs       TEXT    NOT NULL,
    PRIMARY KEY (task_id, needs),
    CHECK (task_id <> needs)
) WITHOUT ROWID;

CREATE INDEX task_dependencies_back ON task_dependencies (needs, task_id);

CREATE TABLE task_results (
    task_id     TEXT    NOT NULL,
    attempt     BIGINT  NOT NULL,
    project     TEXT    NOT NULL,
    run_id      TEXT    NOT NULL,
    agent       TEXT    NOT NULL,
    outcome     TEXT    NOT NULL,
    summary     TEXT    NOT NULL,
    files       TEXT    NOT NULL, -- a JSON list
    kind        TEXT    NOT NULL, -- of the error
    error       TEXT    NOT NULL,
    tokens      BIGINT  NOT NULL,
    cost        BIGINT  NOT NULL, -- billionths of a dollar
    at          BIGINT  NOT NULL,
    PRIMARY KEY (task_id, attempt)
) WITHOUT ROWID;

CREATE INDEX task_results_by_time ON task_results (at, project, outcome, tokens);

-- A task's own checkout.
CREATE TABLE worktrees (
    task_id     TEXT    NOT NULL PRIMARY KEY,
    project     TEXT    NOT NULL,
    repo        TEXT    NOT NULL,
    path        TEXT    NOT NULL UNIQUE,
    branch      TEXT    NOT NULL,
    base        TEXT    NOT NULL, -- the commit it began at
    state       TEXT    NOT NULL  -- making, ready or removing
) WITHOUT ROWID;

-- A merge is written down before it is made, with the commit that it will be: whoever finds it later asks git.
CREATE TABLE merges (
    task_id     TEXT    NOT NULL,
    attempt     BIGINT  NOT NULL,
    target      TEXT    NOT NULL,
    head        TEXT    NOT NULL,
    base        TEXT    NOT NULL,
    oid         TEXT    NOT NULL,
    at          BIGINT  NOT NULL,
    PRIMARY KEY (task_id, attempt)
) WITHOUT ROWID;

CREATE TABLE work_events (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    at          BIGINT  NOT NULL,
    type        TEXT    NOT NULL, -- task.completed, project.created …
    project     TEXT    NOT NULL,
    task_id     TEXT    NOT NULL,
    by_key      TEXT    NOT NULL,
    from_state  TEXT    NOT NULL,
    to_state    TEXT    NOT NULL,
    step        TEXT    NOT NULL,
    text        TEXT    NOT NULL
);

CREATE INDEX work_events_by_task ON work_events (task_id, id) WHERE task_id <> '';
CREATE INDEX work_events_by_project ON work_events (project, id);

PRAGMA user_version = 22;

-- +goose Down

DROP TABLE work_events;
DROP TABLE merges;
DROP TABLE worktrees;
DROP TABLE task_results;
DROP TABLE task_dependencies;
DROP TABLE tasks;
DROP TABLE repos;
DROP TABLE projects;

PRAGMA user_version = 21;
