-- +goose Up

-- The values that a question asks for, as JSON.
ALTER TABLE approvals ADD COLUMN fields TEXT COLLATE "C" NOT NULL DEFAULT '';

-- +goose Down

ALTER TABLE approvals DROP COLUMN fields;
