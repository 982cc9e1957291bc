-- +goose Up

-- Who may say yes to what the tasks of a project gave, as a JSON list; [] is whoever sees the project. What becomes of a merge with
-- conflicts: '' leaves it to a person, 'task' makes a task that resolves it.
ALTER TABLE projects ADD COLUMN approvers TEXT NOT NULL DEFAULT '[]';
ALTER TABLE projects ADD COLUMN on_conflict TEXT NOT NULL DEFAULT '';

-- Which task a task resolves the conflict of; '' for all others.
ALTER TABLE tasks ADD COLUMN resolves TEXT NOT NULL DEFAULT '';
CREATE INDEX tasks_by_resolves ON tasks (resolves) WHERE resolves <> '';

PRAGMA user_version = 29;

-- +goose Down

DROP INDEX tasks_by_resolves;
ALTER TABLE tasks DROP COLUMN resolves;
ALTER TABLE projects DROP COLUMN on_conflict;
ALTER TABLE projects DROP COLUMN approvers;

PRAGMA user_version = 28;
