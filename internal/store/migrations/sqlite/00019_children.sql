-- +goose Up

-- Threads that an agent began: who, in which run and call, and the run at the top whose budget they use.
ALTER TABLE threads ADD COLUMN parent TEXT NOT NULL DEFAULT '';
ALTER TABLE threads ADD COLUMN parent_run TEXT NOT NULL DEFAULT '';
ALTER TABLE threads ADD COLUMN parent_call TEXT NOT NULL DEFAULT '';
ALTER TABLE threads ADD COLUMN root_run TEXT NOT NULL DEFAULT '';
CREATE INDEX threads_by_parent ON threads (parent) WHERE parent <> '';

-- What a run's children spend counts against the budget for one task of the run at the top.
ALTER TABLE ledger ADD COLUMN root_run TEXT NOT NULL DEFAULT '';
CREATE INDEX ledger_by_root ON ledger (root_run) WHERE root_run <> '';

PRAGMA user_version = 19;

-- +goose Down

DROP INDEX ledger_by_root;
ALTER TABLE ledger DROP COLUMN root_run;
DROP INDEX threads_by_parent;
ALTER TABLE threads DROP COLUMN root_run;
ALTER TABLE threads DROP COLUMN parent_call;
ALTER TABLE threads DROP COLUMN parent_run;
ALTER TABLE threads DROP COLUMN parent;

PRAGMA user_version = 18;
