-- +goose Up

-- The values that a question asks for, as JSON.
ALTER TABLE approvals ADD COLUMN fields TEXT NOT NULL DEFAULT '';

PRAGMA user_version = 37;

-- +goose Down

ALTER TABLE approvals DROP COLUMN fields;

PRAGMA user_version = 36;
