-- +goose Up

-- Where the bytes are if data is NULL: the name of the storage outside; empty: a file of the home.
ALTER TABLE blobs ADD COLUMN place TEXT NOT NULL DEFAULT '';

PRAGMA user_version = 32;

-- +goose Down

ALTER TABLE blobs DROP COLUMN place;

PRAGMA user_version = 31;
