-- +goose Up

-- The label of the machines that have a thread's files; empty: any may run it.
ALTER TABLE threads ADD COLUMN placement TEXT COLLATE "C" NOT NULL DEFAULT '';

-- +goose Down

ALTER TABLE threads DROP COLUMN placement;
