-- +goose Up

-- Which process works on a task: the server, or one that was started with `chorus worker`. '' on rows of earlier versions.
ALTER TABLE tasks ADD COLUMN worker TEXT NOT NULL DEFAULT '';

PRAGMA user_version = 25;

-- +goose Down

ALTER TABLE tasks DROP COLUMN worker;

PRAGMA user_version = 24;
