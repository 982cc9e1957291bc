-- +goose Up

-- SQLite keeps the plans of its triggers: only PostgreSQL has something to say here.
PRAGMA user_version = 31;

-- +goose Down

PRAGMA user_version = 30;
