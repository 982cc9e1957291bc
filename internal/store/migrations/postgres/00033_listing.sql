-- +goose Up

-- How lists show a thread: pinned, archived, or as any other.
ALTER TABLE threads ADD COLUMN listing TEXT COLLATE "C" NOT NULL DEFAULT '';

-- +goose Down

ALTER TABLE threads DROP COLUMN listing;
