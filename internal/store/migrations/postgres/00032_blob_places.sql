-- +goose Up

-- Where the bytes are if data is NULL: the name of the storage outside.
ALTER TABLE blobs ADD COLUMN place TEXT COLLATE "C" NOT NULL DEFAULT '';

-- +goose Down

ALTER TABLE blobs DROP COLUMN place;
