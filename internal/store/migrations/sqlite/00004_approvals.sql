-- +goose Up

PRAGMA user_version = 4;

-- +goose Down

PRAGMA user_version = 3;
