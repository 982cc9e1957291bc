-- +goose Up

-- Why a call that is asked for has its risk, in a sentence, and what the rules say of each of its parts, as JSON.
ALTER TABLE approvals ADD COLUMN risk_why TEXT NOT NULL DEFAULT '';
ALTER TABLE approvals ADD COLUMN parts TEXT NOT NULL DEFAULT '';

PRAGMA user_version = 35;

-- +goose Down

ALTER TABLE approvals DROP COLUMN parts;
ALTER TABLE approvals DROP COLUMN risk_why;

PRAGMA user_version = 34;
