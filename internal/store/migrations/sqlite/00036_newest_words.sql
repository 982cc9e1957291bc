-- +goose Up

-- The full-text index of SQLite is a file of its own: only PostgreSQL has something to say here.
PRAGMA user_version = 36;

-- +goose Down

PRAGMA user_version = 35;
