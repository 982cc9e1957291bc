-- +goose Up

-- Which database this is. The guard file beside it names the same one, so that another
-- database in its place is noticed.
INSERT INTO memos (kind, key, value, at) VALUES ('store', 'identity', lower(hex(randomblob(16))), 0)
    ON CONFLICT (kind, key) DO NOTHING;

PRAGMA user_version = 13;

-- +goose Down

DELETE FROM memos WHERE kind = 'store';

PRAGMA user_version = 12;
