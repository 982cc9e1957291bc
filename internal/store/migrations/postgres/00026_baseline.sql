-- +goose Up

-- The whole schema as SQLite's migrations 1 to 26 leave it. What comes later has the same number in both folders.
-- Keys are compared by their bytes, as SQLite does, whatever the database's own order of words is.

-- Where and when a line of the ledger counts; budget_count.go has the same for SQLite.
-- +goose StatementBegin
CREATE FUNCTION channel_of(thread TEXT) RETURNS TEXT LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT regexp_replace(split_part(thread, ':', 1) || ':' || split_part(thread, ':', 2), '^([^/]*/[^/]*)/.*$', '\1')
$$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION guild_of(thread TEXT) RETURNS TEXT LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN strpos(split_part(thread, ':', 2), '/') > 0 THEN split_part(thread, '/', 1) ELSE split_part(thread, ':', 1) END
$$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION day_of(at BIGINT) RETURNS TEXT LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT to_char(to_timestamp(at / 1000000) AT TIME ZONE 'UTC', 'YYYY-MM-DD')
$$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION month_of(at BIGINT) RETURNS TEXT LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT to_char(to_timestamp(at / 1000000) AT TIME ZONE 'UTC', 'YYYY-MM')
$$;
-- +goose StatementEnd

CREATE TABLE threads (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    transport TEXT COLLATE "C" NOT NULL,
    place TEXT COLLATE "C" NOT NULL,
    agent TEXT COLLATE "C" NOT NULL,
    owner TEXT COLLATE "C" NOT NULL, -- principal as JSON
    title TEXT COLLATE "C" NOT NULL DEFAULT '',
    dir TEXT COLLATE "C" NOT NULL DEFAULT '',
    status TEXT COLLATE "C" NOT NULL DEFAULT 'idle',
    epoch BIGINT NOT NULL DEFAULT 0, -- the fence: an owner writes only with its own
    next_seq BIGINT NOT NULL DEFAULT 1, -- the only source of numbers
    waiting BIGINT NOT NULL DEFAULT 0, -- prompts with taken = 0
    wake BIGINT NOT NULL DEFAULT 0,
    created BIGINT NOT NULL,
    last_active BIGINT NOT NULL,
    parent TEXT COLLATE "C" NOT NULL DEFAULT '',
    parent_run TEXT COLLATE "C" NOT NULL DEFAULT '',
    parent_call TEXT COLLATE "C" NOT NULL DEFAULT '',
    root_run TEXT COLLATE "C" NOT NULL DEFAULT ''
) WITH (fillfactor = 80);

CREATE INDEX threads_stirring ON threads (id) WHERE wake = 1 OR status = 'running';

CREATE TABLE events (
    thread_id TEXT COLLATE "C" NOT NULL,
    seq BIGINT NOT NULL,
    at BIGINT NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,
    run_id TEXT COLLATE "C" NOT NULL DEFAULT '',
    who TEXT COLLATE "C" NOT NULL DEFAULT '',
    platform TEXT COLLATE "C" NOT NULL DEFAULT '',
    platform_id TEXT COLLATE "C" NOT NULL DEFAULT '',
    version BIGINT NOT NULL DEFAULT 0,
    taken BIGINT, -- NULL: not a prompt; 0: waiting; 1: taken, refused or deleted
    body TEXT COLLATE "C" NOT NULL, -- last: nothing stands behind its overflow pages
    xact BIGINT NOT NULL DEFAULT (pg_current_xact_id()::text::bigint), -- which transaction wrote it: what is not older than the oldest one that is on may have been unseen
    PRIMARY KEY (thread_id, seq)
);

CREATE UNIQUE INDEX events_platform ON events (thread_id, platform, platform_id, kind, version) WHERE platform_id <> '';

CREATE INDEX events_waiting ON events (thread_id, seq) WHERE taken = 0;

CREATE INDEX events_runs ON events (thread_id, seq) WHERE kind = 'run_started';

CREATE TABLE arrivals (
    platform TEXT COLLATE "C" NOT NULL,
    bot TEXT COLLATE "C" NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,
    platform_id TEXT COLLATE "C" NOT NULL,
    version BIGINT NOT NULL,
    decision TEXT COLLATE "C" NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (platform, bot, kind, platform_id, version)
);

CREATE TABLE readers (
    reader TEXT COLLATE "C" NOT NULL,
    thread_id TEXT COLLATE "C" NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    seq BIGINT NOT NULL,
    PRIMARY KEY (reader, thread_id)
);

CREATE INDEX readers_thread ON readers (thread_id);

CREATE TABLE blobs (
    hash TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    size BIGINT NOT NULL,
    data BYTEA, -- never in files: another node has other ones
    touched BIGINT NOT NULL
);

CREATE TABLE event_blobs (
    hash TEXT COLLATE "C" NOT NULL,
    thread_id TEXT COLLATE "C" NOT NULL,
    seq BIGINT NOT NULL,
    PRIMARY KEY (hash, thread_id, seq)
);

CREATE TABLE snapshots (
    thread_id TEXT COLLATE "C" NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    codec TEXT COLLATE "C" NOT NULL,
    seq BIGINT NOT NULL,
    state BYTEA NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (thread_id, codec)
);

CREATE TABLE approvals (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    thread_id TEXT COLLATE "C" NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    run_id TEXT COLLATE "C" NOT NULL,
    call_id TEXT COLLATE "C" NOT NULL,
    call TEXT COLLATE "C" NOT NULL, -- the whole call, as JSON blocks
    actions TEXT COLLATE "C" NOT NULL, -- JSON list
    dir TEXT COLLATE "C" NOT NULL,
    bound TEXT COLLATE "C" NOT NULL, -- JSON
    preview TEXT COLLATE "C" NOT NULL,
    risk TEXT COLLATE "C" NOT NULL,
    rule TEXT COLLATE "C" NOT NULL,
    asked_by TEXT COLLATE "C" NOT NULL, -- principal as JSON
    asked_at BIGINT NOT NULL,
    deadline BIGINT, -- NULL: none
    state TEXT COLLATE "C" NOT NULL DEFAULT 'pending',
    answered_by TEXT COLLATE "C" NOT NULL DEFAULT '',
    answered_at BIGINT,
    note TEXT COLLATE "C" NOT NULL DEFAULT '',
    reason TEXT COLLATE "C" NOT NULL DEFAULT '',
    again TEXT COLLATE "C" NOT NULL DEFAULT '',
    payer TEXT COLLATE "C" NOT NULL DEFAULT '{}',
    who TEXT COLLATE "C" NOT NULL DEFAULT '',
    remind BIGINT
);

CREATE INDEX approvals_thread ON approvals (thread_id, run_id);

CREATE INDEX approvals_pending ON approvals (deadline) WHERE state = 'pending';

CREATE TABLE ledger (
    run_id TEXT COLLATE "C" NOT NULL,
    step BIGINT NOT NULL,
    attempt BIGINT NOT NULL,
    thread_id TEXT COLLATE "C" NOT NULL,
    agent TEXT COLLATE "C" NOT NULL,
    payer TEXT COLLATE "C" NOT NULL, -- the principal's key
    payer_body TEXT COLLATE "C" NOT NULL, -- principal as JSON
    model TEXT COLLATE "C" NOT NULL,
    reserved BIGINT NOT NULL,
    settled BIGINT NOT NULL DEFAULT 0,
    how TEXT COLLATE "C" NOT NULL DEFAULT '',
    tok_in BIGINT NOT NULL DEFAULT 0,
    tok_out BIGINT NOT NULL DEFAULT 0,
    tok_read BIGINT NOT NULL DEFAULT 0,
    tok_write BIGINT NOT NULL DEFAULT 0,
    at BIGINT NOT NULL,
    settled_at BIGINT,
    root_run TEXT COLLATE "C" NOT NULL DEFAULT '',
    PRIMARY KEY (run_id, step, attempt)
) WITH (fillfactor = 80);

CREATE TABLE audit (
    id BIGINT NOT NULL PRIMARY KEY,
    at BIGINT NOT NULL,
    agent TEXT COLLATE "C" NOT NULL,
    thread_id TEXT COLLATE "C" NOT NULL,
    run_id TEXT COLLATE "C" NOT NULL,
    call_id TEXT COLLATE "C" NOT NULL,
    principal TEXT COLLATE "C" NOT NULL, -- the principal's key
    principal_body TEXT COLLATE "C" NOT NULL, -- principal as JSON
    action TEXT COLLATE "C" NOT NULL,
    decision TEXT COLLATE "C" NOT NULL,
    rule TEXT COLLATE "C" NOT NULL,
    detail TEXT COLLATE "C" NOT NULL,
    prev TEXT COLLATE "C" NOT NULL DEFAULT '',
    hash TEXT COLLATE "C" NOT NULL DEFAULT ''
);

CREATE TABLE principals (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY, -- kind:id
    kind TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    roles TEXT COLLATE "C" NOT NULL, -- JSON list
    first_seen BIGINT NOT NULL,
    last_seen BIGINT NOT NULL
);

CREATE TABLE agents (
    name TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    model TEXT COLLATE "C" NOT NULL,
    profile TEXT COLLATE "C" NOT NULL,
    config TEXT COLLATE "C" NOT NULL, -- JSON
    status TEXT COLLATE "C" NOT NULL,
    created BIGINT NOT NULL
);

CREATE TABLE settings (
    scope TEXT COLLATE "C" NOT NULL,
    key TEXT COLLATE "C" NOT NULL,
    value TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (scope, key)
);

CREATE TABLE counted (
    scope TEXT COLLATE "C" NOT NULL, -- guild, channel, agent or person
    unit TEXT COLLATE "C" NOT NULL, -- day or month
    PRIMARY KEY (scope, unit)
);

CREATE TABLE spent (
    scope TEXT COLLATE "C" NOT NULL,
    whose TEXT COLLATE "C" NOT NULL,
    period TEXT COLLATE "C" NOT NULL, -- 2026-11-15 or 2026-11
    open BIGINT NOT NULL, -- reserved and not settled
    settled BIGINT NOT NULL,
    PRIMARY KEY (scope, whose, period)
) WITH (fillfactor = 80);

CREATE TABLE budget_asked (
    key TEXT COLLATE "C" NOT NULL, -- the ceiling's place in the configuration
    whose TEXT COLLATE "C" NOT NULL,
    period TEXT COLLATE "C" NOT NULL,
    most BIGINT NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (key, whose, period, most)
);

CREATE INDEX approvals_remind ON approvals (remind) WHERE state = 'pending' AND remind IS NOT NULL;

CREATE TABLE answers (
    approval_id TEXT COLLATE "C" NOT NULL REFERENCES approvals (id) ON DELETE CASCADE,
    principal TEXT COLLATE "C" NOT NULL, -- the principal's key
    principal_body TEXT COLLATE "C" NOT NULL, -- principal as JSON
    ok BIGINT NOT NULL,
    note TEXT COLLATE "C" NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (approval_id, principal)
);

CREATE TABLE api_tokens (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    name TEXT COLLATE "C" NOT NULL,
    digest TEXT COLLATE "C" NOT NULL UNIQUE,
    scopes TEXT COLLATE "C" NOT NULL, -- JSON list
    roles TEXT COLLATE "C" NOT NULL, -- JSON list
    created_by TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    used_at BIGINT,
    expires_at BIGINT,
    revoked_at BIGINT
);

CREATE TABLE kept_answers (
    principal TEXT COLLATE "C" NOT NULL,
    key TEXT COLLATE "C" NOT NULL,
    route TEXT COLLATE "C" NOT NULL,
    digest TEXT COLLATE "C" NOT NULL, -- of the request
    status BIGINT NOT NULL, -- 0: it is still being worked on
    media TEXT COLLATE "C" NOT NULL,
    body TEXT COLLATE "C" NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (principal, key, route)
);

CREATE INDEX kept_answers_at ON kept_answers (at);

CREATE INDEX events_ends ON events (thread_id, seq) WHERE kind = 'run_ended';

CREATE TABLE lanes (
    platform TEXT COLLATE "C" NOT NULL,
    bot TEXT COLLATE "C" NOT NULL,
    channel TEXT COLLATE "C" NOT NULL,
    next_seq BIGINT NOT NULL DEFAULT 1, -- the only source of places in the lane
    PRIMARY KEY (platform, bot, channel)
);

CREATE TABLE outbox (
    platform TEXT COLLATE "C" NOT NULL,
    bot TEXT COLLATE "C" NOT NULL,
    channel TEXT COLLATE "C" NOT NULL,
    seq BIGINT NOT NULL, -- place in the lane
    key TEXT COLLATE "C" NOT NULL,
    thread_id TEXT COLLATE "C" NOT NULL,
    event BIGINT NOT NULL, -- the newest event that the wish follows from
    part BIGINT NOT NULL,
    team TEXT COLLATE "C" NOT NULL, -- fails together
    thing TEXT COLLATE "C" NOT NULL,
    target TEXT COLLATE "C" NOT NULL,
    target_key TEXT COLLATE "C" NOT NULL,
    nonce TEXT COLLATE "C" NOT NULL,
    final BIGINT NOT NULL,
    gone BIGINT NOT NULL,
    want BIGINT NOT NULL DEFAULT 1,
    have BIGINT NOT NULL DEFAULT 0,
    message_id TEXT COLLATE "C" NOT NULL DEFAULT '',
    tried BIGINT NOT NULL DEFAULT 0, -- revision of the call with an unknown outcome
    tried_at BIGINT,
    tried_body TEXT COLLATE "C" NOT NULL DEFAULT '',
    state TEXT COLLATE "C" NOT NULL DEFAULT 'planned',
    attempts BIGINT NOT NULL DEFAULT 0,
    not_before BIGINT,
    why TEXT COLLATE "C" NOT NULL DEFAULT '',
    error TEXT COLLATE "C" NOT NULL DEFAULT '',
    created BIGINT NOT NULL,
    changed BIGINT NOT NULL,
    body TEXT COLLATE "C" NOT NULL,
    alone BIGINT,
    PRIMARY KEY (platform, bot, channel, key)
);

CREATE INDEX outbox_open ON outbox (platform, bot, channel, seq) WHERE state = 'planned' OR state = 'sending';

CREATE INDEX outbox_nonce ON outbox (nonce);

CREATE INDEX outbox_failed ON outbox (changed) WHERE state = 'failed';

CREATE TABLE message_places (
    platform TEXT COLLATE "C" NOT NULL,
    message_id TEXT COLLATE "C" NOT NULL,
    thread_id TEXT COLLATE "C" NOT NULL,
    seq BIGINT NOT NULL,
    part BIGINT NOT NULL,
    bot TEXT COLLATE "C" NOT NULL,
    channel TEXT COLLATE "C" NOT NULL,
    key TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (platform, message_id, thread_id)
);

CREATE INDEX events_heard ON events (platform, platform_id) WHERE kind = 'received' AND platform_id <> '';

CREATE TABLE cursors (
    platform TEXT COLLATE "C" NOT NULL,
    bot TEXT COLLATE "C" NOT NULL,
    channel TEXT COLLATE "C" NOT NULL,
    message_id TEXT COLLATE "C" NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (platform, bot, channel)
);

CREATE TABLE saved_contexts (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    agent TEXT COLLATE "C" NOT NULL,
    transport TEXT COLLATE "C" NOT NULL,
    place TEXT COLLATE "C" NOT NULL,
    description TEXT COLLATE "C" NOT NULL,
    summary TEXT COLLATE "C" NOT NULL,
    saved_by TEXT COLLATE "C" NOT NULL,
    saved_at BIGINT NOT NULL,
    message_count BIGINT NOT NULL,
    window_start BIGINT NOT NULL,
    window_end BIGINT NOT NULL,
    file_path TEXT COLLATE "C" NOT NULL,
    quiet BIGINT -- since when nobody had spoken; NULL: somebody asked for it
);

CREATE INDEX saved_contexts_place ON saved_contexts (agent, transport, place, saved_at);

CREATE UNIQUE INDEX saved_contexts_quiet ON saved_contexts (agent, transport, place, quiet) WHERE quiet IS NOT NULL;

CREATE TABLE memos (
    kind TEXT COLLATE "C" NOT NULL,
    key TEXT COLLATE "C" NOT NULL,
    value TEXT COLLATE "C" NOT NULL, -- JSON, of the kind's own making
    at BIGINT NOT NULL,
    PRIMARY KEY (kind, key)
);

CREATE TABLE spent_days (
    day TEXT COLLATE "C" NOT NULL, -- 2026-11-15, of UTC
    channel TEXT COLLATE "C" NOT NULL,
    agent TEXT COLLATE "C" NOT NULL,
    payer TEXT COLLATE "C" NOT NULL,
    model TEXT COLLATE "C" NOT NULL,
    thread_id TEXT COLLATE "C" NOT NULL, -- one of those in the channel
    payer_body TEXT COLLATE "C" NOT NULL, -- principal as JSON, as it was last
    calls BIGINT NOT NULL,
    open BIGINT NOT NULL, -- reserved and not settled
    settled BIGINT NOT NULL,
    tok_in BIGINT NOT NULL,
    tok_out BIGINT NOT NULL,
    tok_read BIGINT NOT NULL,
    tok_write BIGINT NOT NULL,
    PRIMARY KEY (day, channel, agent, payer, model)
) WITH (fillfactor = 80);

CREATE INDEX ledger_at ON ledger (at);

CREATE TABLE spent_months (
    month TEXT COLLATE "C" NOT NULL, -- 2026-11, of UTC
    channel TEXT COLLATE "C" NOT NULL,
    agent TEXT COLLATE "C" NOT NULL,
    payer TEXT COLLATE "C" NOT NULL,
    model TEXT COLLATE "C" NOT NULL,
    thread_id TEXT COLLATE "C" NOT NULL, -- one of those in the channel
    payer_body TEXT COLLATE "C" NOT NULL, -- principal as JSON, as it was last
    calls BIGINT NOT NULL,
    open BIGINT NOT NULL, -- reserved and not settled
    settled BIGINT NOT NULL,
    tok_in BIGINT NOT NULL,
    tok_out BIGINT NOT NULL,
    tok_read BIGINT NOT NULL,
    tok_write BIGINT NOT NULL,
    PRIMARY KEY (month, channel, agent, payer, model)
) WITH (fillfactor = 80);

CREATE TABLE schedules (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    owner TEXT COLLATE "C" NOT NULL, -- principal as JSON: whose rights and money it uses
    owner_key TEXT COLLATE "C" NOT NULL,
    thread_id TEXT COLLATE "C" NOT NULL,
    words TEXT COLLATE "C" NOT NULL,
    said TEXT COLLATE "C" NOT NULL, -- when, as it was said
    spec TEXT COLLATE "C" NOT NULL, -- when, as it is read
    zone TEXT COLLATE "C" NOT NULL,
    catch_up TEXT COLLATE "C" NOT NULL,
    jitter BIGINT NOT NULL, -- microseconds
    due BIGINT, -- NULL: never again
    begins BIGINT, -- due and its jitter
    paused BIGINT NOT NULL DEFAULT 0,
    created_at BIGINT NOT NULL,
    file TEXT COLLATE "C" NOT NULL, -- of the folder events, where it comes from one
    digest TEXT COLLATE "C" NOT NULL, -- of that file
    kind TEXT COLLATE "C" NOT NULL DEFAULT '',
    adapter TEXT COLLATE "C" NOT NULL DEFAULT '',
    channel TEXT COLLATE "C" NOT NULL DEFAULT '',
    agent TEXT COLLATE "C" NOT NULL DEFAULT '',
    told BIGINT NOT NULL DEFAULT 0
);

CREATE INDEX schedules_by_begin ON schedules (begins) WHERE begins IS NOT NULL AND paused = 0;

CREATE INDEX schedules_by_owner ON schedules (owner_key, created_at);

CREATE TABLE schedule_runs (
    schedule_id TEXT COLLATE "C" NOT NULL,
    due BIGINT NOT NULL,
    state TEXT COLLATE "C" NOT NULL, -- said, refused or skipped
    seq BIGINT NOT NULL, -- of the prompt in the thread
    why TEXT COLLATE "C" NOT NULL,
    at BIGINT NOT NULL,
    thread_id TEXT COLLATE "C" NOT NULL DEFAULT '',
    PRIMARY KEY (schedule_id, due)
);

CREATE TABLE processes (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    thread_id TEXT COLLATE "C" NOT NULL,
    call_key TEXT COLLATE "C" NOT NULL, -- by which call it was started
    owner TEXT COLLATE "C" NOT NULL, -- principal as JSON: whose rights and money its hooks use
    owner_key TEXT COLLATE "C" NOT NULL, -- the person behind it
    command TEXT COLLATE "C" NOT NULL,
    dir TEXT COLLATE "C" NOT NULL,
    state TEXT COLLATE "C" NOT NULL, -- starting, running, exited, killed or lost
    exit BIGINT NOT NULL,
    why TEXT COLLATE "C" NOT NULL,
    read_to BIGINT NOT NULL, -- up to where hooks have seen its output
    hooks TEXT COLLATE "C" NOT NULL, -- JSON, with what has become of them
    timeout BIGINT NOT NULL, -- microseconds; 0: none
    version BIGINT NOT NULL,
    started_at BIGINT NOT NULL,
    ended_at BIGINT -- NULL: it runs
);

CREATE INDEX processes_open ON processes (started_at) WHERE ended_at IS NULL;

CREATE INDEX processes_by_owner ON processes (owner_key, started_at);

CREATE INDEX processes_by_thread ON processes (thread_id, started_at);

CREATE TABLE process_fires (
    process_id TEXT COLLATE "C" NOT NULL,
    hook BIGINT NOT NULL,
    n BIGINT NOT NULL, -- the how manieth time
    owner_key TEXT COLLATE "C" NOT NULL,
    action TEXT COLLATE "C" NOT NULL,
    state TEXT COLLATE "C" NOT NULL, -- done or refused
    why TEXT COLLATE "C" NOT NULL,
    seq BIGINT NOT NULL, -- of the words in the thread
    at BIGINT NOT NULL,
    PRIMARY KEY (process_id, hook, n)
);

CREATE INDEX process_fires_by_owner ON process_fires (owner_key, at);

CREATE TABLE hooks (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    name TEXT COLLATE "C" NOT NULL,
    project TEXT COLLATE "C" NOT NULL, -- a label
    owner TEXT COLLATE "C" NOT NULL, -- principal as JSON: whose rights and money it uses
    owner_key TEXT COLLATE "C" NOT NULL,
    agent TEXT COLLATE "C" NOT NULL,
    dir TEXT COLLATE "C" NOT NULL,
    kind TEXT COLLATE "C" NOT NULL, -- of the trigger: periodic, event or webhook
    definition TEXT COLLATE "C" NOT NULL, -- trigger, steps, template and actions as JSON
    enabled BIGINT NOT NULL,
    approved TEXT COLLATE "C" NOT NULL, -- digest of the steps and actions that the owner said yes to
    secret TEXT COLLATE "C" NOT NULL, -- of incoming webhooks
    made_by TEXT COLLATE "C", -- idempotency key of whoever made it
    due BIGINT, -- NULL: no time comes
    last_at BIGINT,
    passed BIGINT NOT NULL DEFAULT 0, -- triggers that did not become runs
    passed_why TEXT COLLATE "C" NOT NULL DEFAULT '',
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);

CREATE UNIQUE INDEX hooks_made_by ON hooks (made_by) WHERE made_by IS NOT NULL;

CREATE INDEX hooks_by_due ON hooks (due) WHERE due IS NOT NULL AND enabled = 1;

CREATE INDEX hooks_by_owner ON hooks (owner_key, created_at);

CREATE TABLE hook_runs (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY, -- made of the hook and its trigger, so that each runs once
    hook_id TEXT COLLATE "C" NOT NULL,
    reason TEXT COLLATE "C" NOT NULL, -- periodic, event:<type>, manual or webhook
    acting TEXT COLLATE "C" NOT NULL, -- principal as JSON
    state TEXT COLLATE "C" NOT NULL, -- waiting, running, completed, failed or skipped
    why TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    started_at BIGINT,
    ended_at BIGINT,
    progress TEXT COLLATE "C" NOT NULL -- as JSON
);

CREATE INDEX hook_runs_by_hook ON hook_runs (hook_id, created_at);

CREATE INDEX hook_runs_by_time ON hook_runs (created_at);

CREATE INDEX hook_runs_unfinished ON hook_runs (created_at) WHERE ended_at IS NULL;

CREATE TABLE hook_deliveries (
    hook_id TEXT COLLATE "C" NOT NULL,
    delivery TEXT COLLATE "C" NOT NULL,
    run_id TEXT COLLATE "C" NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (hook_id, delivery)
);

CREATE INDEX hook_deliveries_by_time ON hook_deliveries (at);

CREATE INDEX threads_by_parent ON threads (parent) WHERE parent <> '';

CREATE INDEX ledger_by_root ON ledger (root_run) WHERE root_run <> '';

CREATE TABLE memory_versions (
    path TEXT COLLATE "C" NOT NULL, -- below the home folder, with forward slashes
    n BIGINT NOT NULL,
    digest TEXT COLLATE "C" NOT NULL, -- of the text
    text TEXT COLLATE "C" NOT NULL,
    lines TEXT COLLATE "C" NOT NULL, -- which version each line is of, as "version*lines …"
    who TEXT COLLATE "C" NOT NULL, -- on whose words; '': nobody knows
    thread_id TEXT COLLATE "C" NOT NULL,
    call TEXT COLLATE "C" NOT NULL,
    how TEXT COLLATE "C" NOT NULL,
    owner BIGINT NOT NULL, -- by somebody who runs this home
    at BIGINT NOT NULL,
    PRIMARY KEY (path, n)
);

CREATE TABLE memory_writes (
    path TEXT COLLATE "C" NOT NULL,
    digest TEXT COLLATE "C" NOT NULL,
    lines TEXT COLLATE "C" NOT NULL, -- '': what is new is the writer's
    who TEXT COLLATE "C" NOT NULL,
    thread_id TEXT COLLATE "C" NOT NULL,
    call TEXT COLLATE "C" NOT NULL,
    how TEXT COLLATE "C" NOT NULL,
    owner BIGINT NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (path, digest)
);

CREATE INDEX schedules_by_thread ON schedules (thread_id) WHERE begins IS NOT NULL;

CREATE TABLE projects (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    name TEXT COLLATE "C" NOT NULL,
    weight DOUBLE PRECISION NOT NULL,
    max_runs BIGINT NOT NULL,
    state TEXT COLLATE "C" NOT NULL, -- ACTIVE, PAUSED or ARCHIVED
    token_limit BIGINT NOT NULL, -- in the rolling window; 0: none
    channel TEXT COLLATE "C" NOT NULL,
    owner TEXT COLLATE "C" NOT NULL, -- principal as JSON: whose rights and money its tasks use
    owner_key TEXT COLLATE "C" NOT NULL,
    shared BIGINT NOT NULL,
    created_at BIGINT NOT NULL
);

CREATE INDEX projects_by_channel ON projects (channel) WHERE channel <> '';

CREATE TABLE repos (
    id TEXT COLLATE "C" NOT NULL,
    project TEXT COLLATE "C" NOT NULL,
    kind TEXT COLLATE "C" NOT NULL, -- clone, link or init
    url TEXT COLLATE "C" NOT NULL,
    path TEXT COLLATE "C" NOT NULL,
    branch TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (project, id)
);

CREATE TABLE tasks (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    project TEXT COLLATE "C" NOT NULL,
    parent TEXT COLLATE "C" NOT NULL,
    repo TEXT COLLATE "C" NOT NULL,
    agent TEXT COLLATE "C" NOT NULL,
    title TEXT COLLATE "C" NOT NULL,
    description TEXT COLLATE "C" NOT NULL,
    type TEXT COLLATE "C" NOT NULL,
    priority BIGINT NOT NULL,
    state TEXT COLLATE "C" NOT NULL,
    attempt BIGINT NOT NULL,
    retries BIGINT NOT NULL,
    max_retries BIGINT NOT NULL,
    not_before BIGINT,
    deadline BIGINT,
    approval BIGINT NOT NULL,
    branch TEXT COLLATE "C" NOT NULL,
    pr TEXT COLLATE "C" NOT NULL,
    run_id TEXT COLLATE "C" NOT NULL, -- the run that holds a worker
    thread_id TEXT COLLATE "C" NOT NULL,
    owner TEXT COLLATE "C" NOT NULL, -- principal as JSON
    owner_key TEXT COLLATE "C" NOT NULL,
    plan_source TEXT COLLATE "C" NOT NULL,
    why TEXT COLLATE "C" NOT NULL,
    made_by TEXT COLLATE "C", -- idempotency key of whoever made it
    created_at BIGINT NOT NULL,
    moved_at BIGINT NOT NULL,
    origin TEXT COLLATE "C" NOT NULL DEFAULT '',
    reminded_at BIGINT,
    worker TEXT COLLATE "C" NOT NULL DEFAULT ''
);

CREATE UNIQUE INDEX tasks_by_thread ON tasks (thread_id);

CREATE UNIQUE INDEX tasks_made_by ON tasks (made_by) WHERE made_by IS NOT NULL;

CREATE INDEX tasks_by_parent ON tasks (parent) WHERE parent <> '';

CREATE INDEX tasks_by_project ON tasks (project, state, priority, created_at, id);

CREATE INDEX tasks_open ON tasks (priority, created_at, id) WHERE state NOT IN ('COMPLETED', 'FAILED', 'BLOCKED');

CREATE INDEX tasks_open_by_project ON tasks (project, priority, created_at, id) WHERE state NOT IN ('COMPLETED', 'FAILED', 'BLOCKED');

CREATE INDEX tasks_by_state ON tasks (state, priority, created_at, id);

CREATE INDEX tasks_not_before ON tasks (not_before) WHERE not_before IS NOT NULL;

CREATE INDEX tasks_deadline ON tasks (deadline) WHERE deadline IS NOT NULL;

CREATE INDEX tasks_with_run ON tasks (state, project) WHERE run_id <> '';

CREATE TABLE task_dependencies (
    task_id TEXT COLLATE "C" NOT NULL,
    needs TEXT COLLATE "C" NOT NULL,
    CHECK (task_id <> needs),
    PRIMARY KEY (task_id, needs)
);

CREATE INDEX task_dependencies_back ON task_dependencies (needs, task_id);

CREATE TABLE task_results (
    task_id TEXT COLLATE "C" NOT NULL,
    attempt BIGINT NOT NULL,
    project TEXT COLLATE "C" NOT NULL,
    run_id TEXT COLLATE "C" NOT NULL,
    agent TEXT COLLATE "C" NOT NULL,
    outcome TEXT COLLATE "C" NOT NULL,
    summary TEXT COLLATE "C" NOT NULL,
    files TEXT COLLATE "C" NOT NULL, -- a JSON list
    kind TEXT COLLATE "C" NOT NULL, -- of the error
    error TEXT COLLATE "C" NOT NULL,
    tokens BIGINT NOT NULL,
    cost BIGINT NOT NULL, -- billionths of a dollar
    at BIGINT NOT NULL,
    PRIMARY KEY (task_id, attempt)
);

CREATE TABLE worktrees (
    task_id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    project TEXT COLLATE "C" NOT NULL,
    repo TEXT COLLATE "C" NOT NULL,
    path TEXT COLLATE "C" NOT NULL UNIQUE,
    branch TEXT COLLATE "C" NOT NULL,
    base TEXT COLLATE "C" NOT NULL, -- the commit it began at
    state TEXT COLLATE "C" NOT NULL -- making, ready or removing
);

CREATE TABLE merges (
    task_id TEXT COLLATE "C" NOT NULL,
    attempt BIGINT NOT NULL,
    target TEXT COLLATE "C" NOT NULL,
    head TEXT COLLATE "C" NOT NULL,
    base TEXT COLLATE "C" NOT NULL,
    oid TEXT COLLATE "C" NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (task_id, attempt)
);

CREATE TABLE work_events (
    id BIGINT GENERATED BY DEFAULT AS IDENTITY NOT NULL PRIMARY KEY,
    at BIGINT NOT NULL,
    type TEXT COLLATE "C" NOT NULL, -- task.completed, project.created …
    project TEXT COLLATE "C" NOT NULL,
    task_id TEXT COLLATE "C" NOT NULL,
    by_key TEXT COLLATE "C" NOT NULL,
    from_state TEXT COLLATE "C" NOT NULL,
    to_state TEXT COLLATE "C" NOT NULL,
    step TEXT COLLATE "C" NOT NULL,
    text TEXT COLLATE "C" NOT NULL
);

CREATE INDEX work_events_by_task ON work_events (task_id, id) WHERE task_id <> '';

CREATE INDEX work_events_by_project ON work_events (project, id);

CREATE TABLE plans (
    task_id TEXT COLLATE "C" NOT NULL,
    attempt BIGINT NOT NULL,
    source TEXT COLLATE "C" NOT NULL, -- the file it was read from, or answer
    text TEXT COLLATE "C" NOT NULL,
    outline TEXT COLLATE "C" NOT NULL, -- its steps as JSON
    state TEXT COLLATE "C" NOT NULL, -- found, approved, rejected or deleted
    by_key TEXT COLLATE "C" NOT NULL, -- who decided
    at BIGINT NOT NULL,
    PRIMARY KEY (task_id, attempt)
);

CREATE TABLE work_readers (
    reader TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    seq BIGINT NOT NULL
);

CREATE TABLE work_hours (
    project TEXT COLLATE "C" NOT NULL,
    hour BIGINT NOT NULL, -- since 1970
    tokens BIGINT NOT NULL,
    cost BIGINT NOT NULL, -- billionths of a dollar
    attempts BIGINT NOT NULL,
    completed BIGINT NOT NULL,
    PRIMARY KEY (project, hour)
);

CREATE INDEX work_hours_by_time ON work_hours (hour);

CREATE INDEX task_results_by_project ON task_results (project);

CREATE INDEX tasks_in_order ON tasks (priority, created_at, id);

CREATE INDEX tasks_of_project_in_order ON tasks (project, priority, created_at, id);

CREATE INDEX tasks_by_moved ON tasks (state, moved_at, id);

CREATE INDEX tasks_by_project_moved ON tasks (project, state, moved_at, id);

-- What was written since a mark, in whatever thread.
CREATE INDEX events_by_xact ON events (xact, thread_id);

-- Which database this is.
INSERT INTO memos (kind, key, value, at) VALUES ('store', 'identity', replace(gen_random_uuid()::text, '-', ''), 0);

-- The end of the audit log: whoever adds to it holds this row until its transaction is over, so lines are numbered without gaps.
CREATE TABLE audit_end (
    one BIGINT NOT NULL PRIMARY KEY CHECK (one = 1),
    id BIGINT NOT NULL,
    hash TEXT COLLATE "C" NOT NULL -- '': there is no line
);
INSERT INTO audit_end (one, id, hash) VALUES (1, 0, '');

-- +goose StatementBegin
CREATE FUNCTION audit_only_appended() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the audit log is only ever appended to';
END $$;
-- +goose StatementEnd
CREATE TRIGGER audit_no_change BEFORE UPDATE OR DELETE ON audit FOR EACH ROW EXECUTE FUNCTION audit_only_appended();
CREATE TRIGGER audit_no_truncate BEFORE TRUNCATE ON audit FOR EACH STATEMENT EXECUTE FUNCTION audit_only_appended();

-- +goose StatementBegin
CREATE FUNCTION audit_appended() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE audit_end SET id = NEW.id, hash = NEW.hash WHERE id < NEW.id;
    IF NOT FOUND OR NEW.hash = '' THEN
        RAISE EXCEPTION 'the audit log is only ever appended to';
    END IF;
    RETURN NEW;
END $$;
-- +goose StatementEnd
CREATE TRIGGER audit_at_the_end BEFORE INSERT ON audit FOR EACH ROW EXECUTE FUNCTION audit_appended();

-- What the ledger comes to, for each kind of sum that a ceiling has asked for (budget_count.go). Rows are taken in one order.
-- +goose StatementBegin
CREATE FUNCTION ledger_count() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    before BIGINT := 0;
    settled_before BIGINT := 0;
BEGIN
    IF TG_OP = 'UPDATE' THEN
        before := CASE WHEN OLD.how = '' THEN OLD.reserved ELSE 0 END;
        settled_before := OLD.settled;
    END IF;
    INSERT INTO spent (scope, whose, period, open, settled)
    SELECT c.scope,
        CASE c.scope WHEN 'guild' THEN guild_of(NEW.thread_id) WHEN 'channel' THEN channel_of(NEW.thread_id) WHEN 'agent' THEN NEW.agent ELSE NEW.payer END,
        CASE c.unit WHEN 'day' THEN day_of(NEW.at) ELSE month_of(NEW.at) END,
        CASE WHEN NEW.how = '' THEN NEW.reserved ELSE 0 END - before, NEW.settled - settled_before
    FROM counted c ORDER BY c.scope, c.unit
    ON CONFLICT (scope, whose, period) DO UPDATE SET open = spent.open + excluded.open, settled = spent.settled + excluded.settled;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER ledger_count_new AFTER INSERT ON ledger FOR EACH ROW EXECUTE FUNCTION ledger_count();
CREATE TRIGGER ledger_count_change AFTER UPDATE OF reserved, settled, how ON ledger FOR EACH ROW EXECUTE FUNCTION ledger_count();

-- What the ledger comes to by day.
-- +goose StatementBegin
CREATE FUNCTION ledger_days_new() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO spent_days (day, channel, agent, payer, model, thread_id, payer_body, calls, open, settled, tok_in, tok_out, tok_read, tok_write)
    VALUES (day_of(NEW.at), channel_of(NEW.thread_id), NEW.agent, NEW.payer, NEW.model, NEW.thread_id, NEW.payer_body, 1,
        CASE WHEN NEW.how = '' THEN NEW.reserved ELSE 0 END, NEW.settled, NEW.tok_in, NEW.tok_out, NEW.tok_read, NEW.tok_write)
    ON CONFLICT (day, channel, agent, payer, model) DO UPDATE SET thread_id = excluded.thread_id, payer_body = excluded.payer_body,
        calls = spent_days.calls + excluded.calls, open = spent_days.open + excluded.open, settled = spent_days.settled + excluded.settled,
        tok_in = spent_days.tok_in + excluded.tok_in, tok_out = spent_days.tok_out + excluded.tok_out,
        tok_read = spent_days.tok_read + excluded.tok_read, tok_write = spent_days.tok_write + excluded.tok_write;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER spent_days_new AFTER INSERT ON ledger FOR EACH ROW EXECUTE FUNCTION ledger_days_new();

-- +goose StatementBegin
CREATE FUNCTION ledger_days_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE spent_days SET open = open + CASE WHEN NEW.how = '' THEN NEW.reserved ELSE 0 END - CASE WHEN OLD.how = '' THEN OLD.reserved ELSE 0 END,
        settled = settled + NEW.settled - OLD.settled, tok_in = tok_in + NEW.tok_in - OLD.tok_in, tok_out = tok_out + NEW.tok_out - OLD.tok_out,
        tok_read = tok_read + NEW.tok_read - OLD.tok_read, tok_write = tok_write + NEW.tok_write - OLD.tok_write
    WHERE day = day_of(NEW.at) AND channel = channel_of(NEW.thread_id) AND agent = NEW.agent AND payer = NEW.payer AND model = NEW.model;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER spent_days_change AFTER UPDATE OF reserved, settled, how, tok_in, tok_out, tok_read, tok_write ON ledger
    FOR EACH ROW EXECUTE FUNCTION ledger_days_change();

-- The sums by day, by month.
-- +goose StatementBegin
CREATE FUNCTION days_months() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO spent_months (month, channel, agent, payer, model, thread_id, payer_body, calls, open, settled, tok_in, tok_out, tok_read, tok_write)
        VALUES (substr(NEW.day, 1, 7), NEW.channel, NEW.agent, NEW.payer, NEW.model, NEW.thread_id, NEW.payer_body, NEW.calls, NEW.open, NEW.settled,
            NEW.tok_in, NEW.tok_out, NEW.tok_read, NEW.tok_write)
        ON CONFLICT (month, channel, agent, payer, model) DO UPDATE SET thread_id = excluded.thread_id, payer_body = excluded.payer_body,
            calls = spent_months.calls + excluded.calls, open = spent_months.open + excluded.open, settled = spent_months.settled + excluded.settled,
            tok_in = spent_months.tok_in + excluded.tok_in, tok_out = spent_months.tok_out + excluded.tok_out,
            tok_read = spent_months.tok_read + excluded.tok_read, tok_write = spent_months.tok_write + excluded.tok_write;
        RETURN NULL;
    END IF;
    UPDATE spent_months SET calls = calls + NEW.calls - OLD.calls, open = open + NEW.open - OLD.open, settled = settled + NEW.settled - OLD.settled,
        tok_in = tok_in + NEW.tok_in - OLD.tok_in, tok_out = tok_out + NEW.tok_out - OLD.tok_out, tok_read = tok_read + NEW.tok_read - OLD.tok_read,
        tok_write = tok_write + NEW.tok_write - OLD.tok_write, thread_id = NEW.thread_id, payer_body = NEW.payer_body
    WHERE month = substr(NEW.day, 1, 7) AND channel = NEW.channel AND agent = NEW.agent AND payer = NEW.payer AND model = NEW.model;
    RETURN NULL;
END $$;
-- +goose StatementEnd
CREATE TRIGGER spent_months_change AFTER INSERT OR UPDATE ON spent_days FOR EACH ROW EXECUTE FUNCTION days_months();

-- The full-text index: a reader of the journal like any other. With SQLite it is a file of its own.
CREATE TABLE search_places (
    thread TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    seq BIGINT NOT NULL -- up to where it is indexed
);

CREATE TABLE search_docs (
    thread TEXT COLLATE "C" NOT NULL,
    seq BIGINT NOT NULL,
    at BIGINT NOT NULL,
    agent TEXT COLLATE "C" NOT NULL,
    who TEXT COLLATE "C" NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,
    text TEXT COLLATE "C" NOT NULL,
    words TSVECTOR NOT NULL, -- without accents
    PRIMARY KEY (thread, seq)
);

CREATE INDEX search_docs_words ON search_docs USING gin (words);

-- +goose Down

-- The beginning cannot be taken back: drop the database instead.
-- +goose StatementBegin
DO $$ BEGIN RAISE EXCEPTION 'the first migration cannot be taken back: drop the database instead'; END $$;
-- +goose StatementEnd
