-- +goose Up

-- How lists show a thread: pinned, archived, or as any other.
ALTER TABLE threads ADD COLUMN listing TEXT NOT NULL DEFAULT '';

PRAGMA user_version = 33;

-- +goose Down

ALTER TABLE threads DROP COLUMN listing;

PRAGMA user_version = 32;
