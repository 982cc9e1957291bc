-- What the migrations in sqlite come to; written by a test (../whole_test.go).

PRAGMA application_id = 1128812370;
PRAGMA user_version = 37;

CREATE TABLE agents (
    name        TEXT    NOT NULL PRIMARY KEY,
    model       TEXT    NOT NULL,
    profile     TEXT    NOT NULL,
    config      TEXT    NOT NULL, -- JSON
    status      TEXT    NOT NULL,
    created     BIGINT  NOT NULL
) WITHOUT ROWID;

CREATE TABLE answers (
    approval_id TEXT    NOT NULL REFERENCES approvals (id) ON DELETE CASCADE,
    principal   TEXT    NOT NULL, -- the principal's key
    principal_body TEXT NOT NULL, -- principal as JSON
    ok          BIGINT  NOT NULL,
    note        TEXT    NOT NULL,
    at          BIGINT  NOT NULL,
    PRIMARY KEY (approval_id, principal)
) WITHOUT ROWID;

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
, reason TEXT NOT NULL DEFAULT '', again TEXT NOT NULL DEFAULT '', payer TEXT NOT NULL DEFAULT '{}', who TEXT NOT NULL DEFAULT '', remind BIGINT, risk_why TEXT NOT NULL DEFAULT '', parts TEXT NOT NULL DEFAULT '', fields TEXT NOT NULL DEFAULT '');

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
, prev TEXT NOT NULL DEFAULT '', hash TEXT NOT NULL DEFAULT '', chain TEXT NOT NULL DEFAULT '', seq INTEGER NOT NULL DEFAULT 0);

CREATE TABLE audit_sealed (
    chain TEXT NOT NULL,
    seq INTEGER NOT NULL, -- the last line of the chain
    hash TEXT NOT NULL, -- that line's
    seal INTEGER NOT NULL,
    PRIMARY KEY (chain, seq)
) WITHOUT ROWID;

CREATE TABLE audit_seals (
    id INTEGER NOT NULL PRIMARY KEY, -- without gaps
    at INTEGER NOT NULL,
    chains INTEGER NOT NULL, -- how many ends it holds
    prev TEXT NOT NULL,
    hash TEXT NOT NULL
);

CREATE TABLE blobs (
    hash        TEXT    NOT NULL PRIMARY KEY,
    size        BIGINT  NOT NULL,
    data        BLOB, -- NULL: in a file of that name
    touched     BIGINT  NOT NULL
, place TEXT NOT NULL DEFAULT '');

CREATE TABLE budget_asked (
    key         TEXT    NOT NULL, -- the ceiling's place in the configuration
    whose       TEXT    NOT NULL,
    period      TEXT    NOT NULL,
    most        BIGINT  NOT NULL,
    at          BIGINT  NOT NULL,
    PRIMARY KEY (key, whose, period, most)
) WITHOUT ROWID;

CREATE TABLE counted (
    scope       TEXT    NOT NULL, -- guild, channel, agent or person
    unit        TEXT    NOT NULL, -- day or month
    PRIMARY KEY (scope, unit)
) WITHOUT ROWID;

CREATE TABLE cursors (
    platform   TEXT   NOT NULL,
    bot        TEXT   NOT NULL,
    channel    TEXT   NOT NULL,
    message_id TEXT   NOT NULL,
    at         BIGINT NOT NULL,
    PRIMARY KEY (platform, bot, channel)
) WITHOUT ROWID;

CREATE TABLE document_changes (
    one         BIGINT  NOT NULL PRIMARY KEY,
    seq         BIGINT  NOT NULL
);

CREATE TABLE document_versions (
    name        TEXT    NOT NULL,
    version     BIGINT  NOT NULL,
    digest      TEXT    NOT NULL, -- '': it was removed
    changed_by  TEXT    NOT NULL,
    changed_at  BIGINT  NOT NULL,
    PRIMARY KEY (name, version)
) WITHOUT ROWID;

CREATE TABLE documents (
    name        TEXT    NOT NULL PRIMARY KEY, -- the path of the copies, below the home
    version     BIGINT  NOT NULL,             -- counts its changes
    seq         BIGINT  NOT NULL,             -- the number of its last change among those of all documents
    digest      TEXT    NOT NULL,             -- of the body
    deleted     BIGINT  NOT NULL,             -- 1: it was removed; the row says when
    body        BLOB    NOT NULL
);

CREATE TABLE event_blobs (
    hash        TEXT    NOT NULL,
    thread_id   TEXT    NOT NULL,
    seq         BIGINT  NOT NULL,
    PRIMARY KEY (hash, thread_id, seq)
) WITHOUT ROWID;

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

CREATE TABLE goose_db_version (
		id INTEGER PRIMARY KEY AUTOINCREMENT,
		version_id INTEGER NOT NULL,
		is_applied INTEGER NOT NULL,
		tstamp TIMESTAMP DEFAULT (datetime('now'))
	);

CREATE TABLE hook_deliveries (
    hook_id     TEXT    NOT NULL,
    delivery    TEXT    NOT NULL,
    run_id      TEXT    NOT NULL,
    at          BIGINT  NOT NULL,
    PRIMARY KEY (hook_id, delivery)
) WITHOUT ROWID;

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

CREATE TABLE lanes (
    platform TEXT   NOT NULL,
    bot      TEXT   NOT NULL,
    channel  TEXT   NOT NULL,
    next_seq BIGINT NOT NULL DEFAULT 1, -- the only source of places in the lane
    PRIMARY KEY (platform, bot, channel)
) WITHOUT ROWID;

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
    settled_at  BIGINT, root_run TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (run_id, step, attempt)
) WITHOUT ROWID;

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

CREATE TABLE memos (
    kind  TEXT   NOT NULL,
    key   TEXT   NOT NULL,
    value TEXT   NOT NULL, -- JSON, of the kind's own making
    at    BIGINT NOT NULL,
    PRIMARY KEY (kind, key)
) WITHOUT ROWID;

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

CREATE TABLE message_places (
    platform   TEXT   NOT NULL,
    message_id TEXT   NOT NULL,
    thread_id  TEXT   NOT NULL,
    seq        BIGINT NOT NULL,
    part       BIGINT NOT NULL,
    bot        TEXT   NOT NULL,
    channel    TEXT   NOT NULL,
    key        TEXT   NOT NULL,
    PRIMARY KEY (platform, message_id, thread_id)
) WITHOUT ROWID;

CREATE TABLE node_labels (
	name   TEXT PRIMARY KEY,
	labels TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE nodes (
	id      TEXT PRIMARY KEY, -- one for every time that a process joins
	name    TEXT NOT NULL,    -- what people call it; several processes of one machine may share it
	beat    INTEGER NOT NULL DEFAULT 0,
	dead    INTEGER NOT NULL DEFAULT 0,
	drain   INTEGER NOT NULL DEFAULT 0,
	kind    TEXT NOT NULL DEFAULT '', -- what it was started for
	address TEXT NOT NULL DEFAULT '',
	labels  TEXT NOT NULL DEFAULT '[]',
	version TEXT NOT NULL DEFAULT '',
	started INTEGER NOT NULL,
	died    INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;

CREATE TABLE outbox (
    platform   TEXT   NOT NULL,
    bot        TEXT   NOT NULL,
    channel    TEXT   NOT NULL,
    seq        BIGINT NOT NULL, -- place in the lane
    key        TEXT   NOT NULL,
    thread_id  TEXT   NOT NULL,
    event      BIGINT NOT NULL, -- the newest event that the wish follows from
    part       BIGINT NOT NULL,
    team       TEXT   NOT NULL, -- fails together
    thing      TEXT   NOT NULL,
    target     TEXT   NOT NULL,
    target_key TEXT   NOT NULL,
    nonce      TEXT   NOT NULL,
    final      BIGINT NOT NULL,
    gone       BIGINT NOT NULL,
    want       BIGINT NOT NULL DEFAULT 1,
    have       BIGINT NOT NULL DEFAULT 0,
    message_id TEXT   NOT NULL DEFAULT '',
    tried      BIGINT NOT NULL DEFAULT 0, -- revision of the call with an unknown outcome
    tried_at   BIGINT,
    tried_body TEXT   NOT NULL DEFAULT '',
    state      TEXT   NOT NULL DEFAULT 'planned',
    attempts   BIGINT NOT NULL DEFAULT 0,
    not_before BIGINT,
    why        TEXT   NOT NULL DEFAULT '',
    error      TEXT   NOT NULL DEFAULT '',
    created    BIGINT NOT NULL,
    changed    BIGINT NOT NULL,
    body       TEXT   NOT NULL, alone BIGINT,
    PRIMARY KEY (platform, bot, channel, key)
);

CREATE TABLE owned (
	name  TEXT PRIMARY KEY,
	node  TEXT NOT NULL DEFAULT '',
	epoch INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;

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

CREATE TABLE principals (
    id          TEXT    NOT NULL PRIMARY KEY, -- kind:id
    kind        TEXT    NOT NULL,
    name        TEXT    NOT NULL,
    roles       TEXT    NOT NULL, -- JSON list
    first_seen  BIGINT  NOT NULL,
    last_seen   BIGINT  NOT NULL
) WITHOUT ROWID;

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
, approvers TEXT NOT NULL DEFAULT '[]', on_conflict TEXT NOT NULL DEFAULT '') WITHOUT ROWID;

CREATE TABLE readers (
    reader      TEXT    NOT NULL,
    thread_id   TEXT    NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    seq         BIGINT  NOT NULL,
    PRIMARY KEY (reader, thread_id)
) WITHOUT ROWID;

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

CREATE TABLE schedule_runs (
    schedule_id TEXT    NOT NULL,
    due         BIGINT  NOT NULL,
    state       TEXT    NOT NULL, -- said, refused or skipped
    seq         BIGINT  NOT NULL, -- of the prompt in the thread
    why         TEXT    NOT NULL,
    at          BIGINT  NOT NULL, thread_id TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (schedule_id, due)
) WITHOUT ROWID;

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
, kind TEXT NOT NULL DEFAULT '', adapter TEXT NOT NULL DEFAULT '', channel TEXT NOT NULL DEFAULT '', agent TEXT NOT NULL DEFAULT '', told BIGINT NOT NULL DEFAULT 0) WITHOUT ROWID;

CREATE TABLE settings (
    scope       TEXT    NOT NULL,
    key         TEXT    NOT NULL,
    value       TEXT    NOT NULL,
    PRIMARY KEY (scope, key)
) WITHOUT ROWID;

CREATE TABLE snapshots (
    thread_id   TEXT    NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    codec       TEXT    NOT NULL,
    seq         BIGINT  NOT NULL,
    state       BLOB    NOT NULL,
    at          BIGINT  NOT NULL,
    PRIMARY KEY (thread_id, codec)
);

CREATE TABLE spent (
    scope       TEXT    NOT NULL,
    whose       TEXT    NOT NULL,
    period      TEXT    NOT NULL, -- 2026-11-15 or 2026-11
    open        BIGINT  NOT NULL, -- reserved and not settled
    settled     BIGINT  NOT NULL,
    PRIMARY KEY (scope, whose, period)
) WITHOUT ROWID;

CREATE TABLE spent_days (
    day         TEXT    NOT NULL, -- 2026-11-15, of UTC
    channel     TEXT    NOT NULL,
    agent       TEXT    NOT NULL,
    payer       TEXT    NOT NULL,
    model       TEXT    NOT NULL,
    thread_id   TEXT    NOT NULL, -- one of those in the channel
    payer_body  TEXT    NOT NULL, -- principal as JSON, as it was last
    calls       BIGINT  NOT NULL,
    open        BIGINT  NOT NULL, -- reserved and not settled
    settled     BIGINT  NOT NULL,
    tok_in      BIGINT  NOT NULL,
    tok_out     BIGINT  NOT NULL,
    tok_read    BIGINT  NOT NULL,
    tok_write   BIGINT  NOT NULL,
    PRIMARY KEY (day, channel, agent, payer, model)
) WITHOUT ROWID;

CREATE TABLE spent_months (
    month       TEXT    NOT NULL, -- 2026-11, of UTC
    channel     TEXT    NOT NULL,
    agent       TEXT    NOT NULL,
    payer       TEXT    NOT NULL,
    model       TEXT    NOT NULL,
    thread_id   TEXT    NOT NULL, -- one of those in the channel
    payer_body  TEXT    NOT NULL, -- principal as JSON, as it was last
    calls       BIGINT  NOT NULL,
    open        BIGINT  NOT NULL, -- reserved and not settled
    settled     BIGINT  NOT NULL,
    tok_in      BIGINT  NOT NULL,
    tok_out     BIGINT  NOT NULL,
    tok_read    BIGINT  NOT NULL,
    tok_write   BIGINT  NOT NULL,
    PRIMARY KEY (month, channel, agent, payer, model)
) WITHOUT ROWID;

CREATE TABLE task_dependencies (
    task_id     TEXT    NOT NULL,
    needs       TEXT    NOT NULL,
    PRIMARY KEY (task_id, needs),
    CHECK (task_id <> needs)
) WITHOUT ROWID;

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
, origin TEXT NOT NULL DEFAULT '', reminded_at BIGINT, worker TEXT NOT NULL DEFAULT '', resolves TEXT NOT NULL DEFAULT '');

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
, parent TEXT NOT NULL DEFAULT '', parent_run TEXT NOT NULL DEFAULT '', parent_call TEXT NOT NULL DEFAULT '', root_run TEXT NOT NULL DEFAULT '', placement TEXT NOT NULL DEFAULT '', listing TEXT NOT NULL DEFAULT '') WITHOUT ROWID;

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

CREATE TABLE work_hours (
    project     TEXT    NOT NULL,
    hour        BIGINT  NOT NULL, -- since 1970
    tokens      BIGINT  NOT NULL,
    cost        BIGINT  NOT NULL, -- billionths of a dollar
    attempts    BIGINT  NOT NULL,
    completed   BIGINT  NOT NULL,
    PRIMARY KEY (project, hour)
) WITHOUT ROWID;

CREATE TABLE work_readers (
    reader      TEXT    NOT NULL PRIMARY KEY,
    seq         BIGINT  NOT NULL
) WITHOUT ROWID;

CREATE TABLE worktrees (
    task_id     TEXT    NOT NULL PRIMARY KEY,
    project     TEXT    NOT NULL,
    repo        TEXT    NOT NULL,
    path        TEXT    NOT NULL UNIQUE,
    branch      TEXT    NOT NULL,
    base        TEXT    NOT NULL, -- the commit it began at
    state       TEXT    NOT NULL  -- making, ready or removing
) WITHOUT ROWID;

CREATE INDEX approvals_pending ON approvals (deadline) WHERE state = 'pending';

CREATE INDEX approvals_remind ON approvals (remind) WHERE state = 'pending' AND remind IS NOT NULL;

CREATE INDEX approvals_thread ON approvals (thread_id, run_id);

CREATE UNIQUE INDEX audit_chains ON audit (chain, seq);

CREATE INDEX audit_sealed_by_seal ON audit_sealed (seal, chain);

CREATE UNIQUE INDEX documents_by_change ON documents (seq);

CREATE INDEX events_ends ON events (thread_id, seq) WHERE kind = 'run_ended';

CREATE INDEX events_heard ON events (platform, platform_id) WHERE kind = 'received' AND platform_id <> '';

CREATE UNIQUE INDEX events_platform ON events (thread_id, platform, platform_id, kind, version)
    WHERE platform_id <> '';

CREATE INDEX events_runs ON events (thread_id, seq) WHERE kind = 'run_started';

CREATE INDEX events_waiting ON events (thread_id, seq) WHERE taken = 0;

CREATE INDEX hook_deliveries_by_time ON hook_deliveries (at);

CREATE INDEX hook_runs_by_hook ON hook_runs (hook_id, created_at);

CREATE INDEX hook_runs_by_time ON hook_runs (created_at);

CREATE INDEX hook_runs_unfinished ON hook_runs (created_at) WHERE ended_at IS NULL;

CREATE INDEX hooks_by_due ON hooks (due) WHERE due IS NOT NULL AND enabled = 1;

CREATE INDEX hooks_by_owner ON hooks (owner_key, created_at);

CREATE UNIQUE INDEX hooks_made_by ON hooks (made_by) WHERE made_by IS NOT NULL;

CREATE INDEX kept_answers_at ON kept_answers (at);

CREATE INDEX ledger_at ON ledger (at);

CREATE INDEX ledger_by_root ON ledger (root_run) WHERE root_run <> '';

CREATE INDEX outbox_failed ON outbox (changed) WHERE state = 'failed';

CREATE INDEX outbox_nonce ON outbox (nonce);

CREATE INDEX outbox_open ON outbox (platform, bot, channel, seq) WHERE state = 'planned' OR state = 'sending';

CREATE INDEX owned_by_node ON owned (node) WHERE node <> '';

CREATE INDEX process_fires_by_owner ON process_fires (owner_key, at);

CREATE INDEX processes_by_owner ON processes (owner_key, started_at);

CREATE INDEX processes_by_thread ON processes (thread_id, started_at);

CREATE INDEX processes_open ON processes (started_at) WHERE ended_at IS NULL;

CREATE INDEX projects_by_channel ON projects (channel) WHERE channel <> '';

CREATE INDEX readers_thread ON readers (thread_id);

CREATE INDEX saved_contexts_place ON saved_contexts (agent, transport, place, saved_at);

CREATE UNIQUE INDEX saved_contexts_quiet ON saved_contexts (agent, transport, place, quiet) WHERE quiet IS NOT NULL;

CREATE INDEX schedules_by_begin ON schedules (begins) WHERE begins IS NOT NULL AND paused = 0;

CREATE INDEX schedules_by_owner ON schedules (owner_key, created_at);

CREATE INDEX schedules_by_thread ON schedules (thread_id) WHERE begins IS NOT NULL;

CREATE INDEX task_dependencies_back ON task_dependencies (needs, task_id);

CREATE INDEX task_results_by_project ON task_results (project);

CREATE INDEX tasks_by_moved ON tasks (state, moved_at, id);

CREATE INDEX tasks_by_parent ON tasks (parent) WHERE parent <> '';

CREATE INDEX tasks_by_project ON tasks (project, state, priority, created_at, id);

CREATE INDEX tasks_by_project_moved ON tasks (project, state, moved_at, id);

CREATE INDEX tasks_by_resolves ON tasks (resolves) WHERE resolves <> '';

CREATE INDEX tasks_by_state ON tasks (state, priority, created_at, id);

CREATE UNIQUE INDEX tasks_by_thread ON tasks (thread_id);

CREATE INDEX tasks_deadline ON tasks (deadline) WHERE deadline IS NOT NULL;

CREATE INDEX tasks_in_order ON tasks (priority, created_at, id);

CREATE UNIQUE INDEX tasks_made_by ON tasks (made_by) WHERE made_by IS NOT NULL;

CREATE INDEX tasks_not_before ON tasks (not_before) WHERE not_before IS NOT NULL;

CREATE INDEX tasks_of_project_in_order ON tasks (project, priority, created_at, id);

CREATE INDEX tasks_open ON tasks (priority, created_at, id) WHERE state NOT IN ('COMPLETED', 'FAILED', 'BLOCKED');

CREATE INDEX tasks_open_by_project ON tasks (project, priority, created_at, id) WHERE state NOT IN ('COMPLETED', 'FAILED', 'BLOCKED');

CREATE INDEX tasks_with_run ON tasks (state, project) WHERE run_id <> '';

CREATE INDEX threads_by_parent ON threads (parent) WHERE parent <> '';

CREATE INDEX threads_stirring ON threads (id) WHERE wake = 1 OR status = 'running';

CREATE INDEX work_events_by_project ON work_events (project, id);

CREATE INDEX work_events_by_task ON work_events (task_id, id) WHERE task_id <> '';

CREATE INDEX work_hours_by_time ON work_hours (hour);

CREATE TRIGGER audit_at_the_end BEFORE INSERT ON audit
WHEN NEW.hash = '' OR NEW.id <= (SELECT max(id) FROM audit) BEGIN
    SELECT RAISE(ABORT, 'the audit log is only ever appended to');
END;

CREATE TRIGGER audit_no_delete BEFORE DELETE ON audit BEGIN
    SELECT RAISE(ABORT, 'the audit log is only ever appended to');
END;

CREATE TRIGGER audit_no_update BEFORE UPDATE ON audit BEGIN
    SELECT RAISE(ABORT, 'the audit log is only ever appended to');
END;

CREATE TRIGGER audit_sealed_no_delete BEFORE DELETE ON audit_sealed BEGIN
    SELECT RAISE(ABORT, 'the audit log is only ever appended to');
END;

CREATE TRIGGER audit_sealed_no_update BEFORE UPDATE ON audit_sealed BEGIN
    SELECT RAISE(ABORT, 'the audit log is only ever appended to');
END;

CREATE TRIGGER audit_seals_no_delete BEFORE DELETE ON audit_seals BEGIN
    SELECT RAISE(ABORT, 'the audit log is only ever appended to');
END;

CREATE TRIGGER audit_seals_no_update BEFORE UPDATE ON audit_seals BEGIN
    SELECT RAISE(ABORT, 'the audit log is only ever appended to');
END;

CREATE TRIGGER spent_months_change AFTER UPDATE ON spent_days
BEGIN
    UPDATE spent_months SET calls = calls + NEW.calls - OLD.calls, open = open + NEW.open - OLD.open, settled = settled + NEW.settled - OLD.settled,
        tok_in = tok_in + NEW.tok_in - OLD.tok_in, tok_out = tok_out + NEW.tok_out - OLD.tok_out, tok_read = tok_read + NEW.tok_read - OLD.tok_read,
        tok_write = tok_write + NEW.tok_write - OLD.tok_write, thread_id = NEW.thread_id, payer_body = NEW.payer_body
    WHERE month = substr(NEW.day, 1, 7) AND channel = NEW.channel AND agent = NEW.agent AND payer = NEW.payer AND model = NEW.model;
END;

CREATE TRIGGER spent_months_new AFTER INSERT ON spent_days
BEGIN
    INSERT INTO spent_months (month, channel, agent, payer, model, thread_id, payer_body, calls, open, settled, tok_in, tok_out, tok_read, tok_write)
    VALUES (substr(NEW.day, 1, 7), NEW.channel, NEW.agent, NEW.payer, NEW.model, NEW.thread_id, NEW.payer_body, NEW.calls, NEW.open, NEW.settled,
        NEW.tok_in, NEW.tok_out, NEW.tok_read, NEW.tok_write)
    ON CONFLICT (month, channel, agent, payer, model) DO UPDATE SET thread_id = excluded.thread_id, payer_body = excluded.payer_body,
        calls = calls + excluded.calls, open = open + excluded.open, settled = settled + excluded.settled, tok_in = tok_in + excluded.tok_in,
        tok_out = tok_out + excluded.tok_out, tok_read = tok_read + excluded.tok_read, tok_write = tok_write + excluded.tok_write;
END;

INSERT INTO document_changes (one, seq) VALUES (1, 0);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (1, 0, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (2, 1, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (3, 2, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (4, 3, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (5, 4, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (6, 5, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (7, 6, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (8, 7, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (9, 8, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (10, 9, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (11, 10, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (12, 11, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (13, 12, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (14, 13, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (15, 14, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (16, 15, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (17, 16, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (18, 17, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (19, 18, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (20, 19, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (21, 20, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (22, 21, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (23, 22, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (24, 23, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (25, 24, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (26, 25, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (27, 26, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (28, 27, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (29, 28, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (30, 29, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (31, 30, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (32, 31, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (33, 32, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (34, 33, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (35, 34, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (36, 35, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (37, 36, 1);
INSERT INTO goose_db_version (id, version_id, is_applied) VALUES (38, 37, 1);
INSERT INTO memos (kind, key, value, at) VALUES ('store', 'identity', lower(hex(randomblob(16))), 0);
INSERT INTO memos (kind, key, value, at) VALUES ('store', 'spent_days', '', 0);
