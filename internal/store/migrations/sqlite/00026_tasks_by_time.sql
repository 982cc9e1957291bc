-- +goose Up

-- The newest tasks of a state, such as those that were completed last, without reading the others.
CREATE INDEX tasks_by_moved ON tasks (state, moved_at, id);
CREATE INDEX tasks_by_project_moved ON tasks (project, state, moved_at, id);

PRAGMA user_version = 26;

-- +goose Down

DROP INDEX tasks_by_project_moved;
DROP INDEX tasks_by_moved;

PRAGMA user_version = 25;
