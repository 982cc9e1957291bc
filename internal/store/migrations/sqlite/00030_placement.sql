-- +goose Up

-- The label of the machines that have a thread's files; empty: any may run it.
ALTER TABLE threads ADD COLUMN placement TEXT NOT NULL DEFAULT '';

PRAGMA user_version = 30;

-- +goose Down

ALTER TABLE threads DROP COLUMN placement;

PRAGMA user_version = 29;
