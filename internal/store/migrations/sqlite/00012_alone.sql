-- +goose Up

-- Since when the platform fails on this one though it answers others: what goes on like that for long is given up.
ALTER TABLE outbox ADD COLUMN alone BIGINT;

PRAGMA user_version = 12;

-- +goose Down

ALTER TABLE outbox DROP COLUMN alone;

PRAGMA user_version = 11;
